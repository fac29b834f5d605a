//! How many bytes lie in the QUIC stack that no packet has carried yet, and what the congestion controller knows.
//!
//! noq tells neither, so a shell around the controller listens, as in the product (`crates/net/src/quic/meter.rs`), and
//! with the same estimate: bytes written to streams, minus the payload of packets sent, plus that of packets lost; set
//! right whenever the connection ran out of data. It changes nothing. Invariant: content ≤ unsent, because everything
//! else goes first.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};
use wayferry_congestion::Shared;

/// What one host knows of its sending side. Clones are the same meter.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    figures: Arc<Mutex<Figures>>,
    /// What our own controller tells by itself.
    shared: Shared,
}

/// See [`Meter`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Figures {
    /// Stream bytes written and not sent.
    pub unsent: u64,
    /// Those of content and bulk among them.
    pub content: u64,
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// The round-trip time of the empty path: the controller's own figure, or else the smallest that noq remembers.
    pub base_rtt: Duration,
    /// How long packets wait at the bottleneck: likewise, or else the difference of those two.
    pub queue_delay: Duration,
    /// The congestion window in bytes.
    pub window: u64,
    /// The controller's estimate of the bottleneck in bytes per second.
    pub rate: Option<u64>,
    /// Packets sent.
    pub sent_packets: u64,
    /// Packets declared lost.
    pub lost_packets: u64,
    /// In how many runs those were sent.
    pub lost_runs: u64,
    /// Packets acknowledged.
    pub acked_packets: u64,
    /// The last one that was declared lost.
    last_lost: Option<u64>,
    /// Written since noq last looked for something to send.
    unseen: u64,
    mtu: u64,
}

impl Figures {
    /// The most that a packet carries of one stream, as in the product.
    pub fn payload(&self) -> u16 {
        (self.mtu as u16).saturating_sub(LEAST_OVERHEAD)
    }
}

impl Meter {
    /// What is known now.
    pub fn figures(&self) -> Figures {
        let (mut figures, state) = (*self.lock(), self.shared.state());
        if state.base_rtt > Duration::ZERO {
            figures.base_rtt = state.base_rtt;
            figures.queue_delay = state.queue_delay;
        }
        figures
    }

    /// Where our own controller publishes its state.
    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// `bytes` were written to a stream.
    pub fn on_written(&self, bytes: usize, content: bool) {
        let mut figures = self.lock();
        figures.unsent += bytes as u64;
        figures.unseen += bytes as u64;
        figures.content += if content { bytes as u64 } else { 0 };
    }

    fn lock(&self) -> MutexGuard<'_, Figures> {
        self.figures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes the controllers of `inner`, listened to by `meter`.
pub(crate) fn metered(
    inner: Arc<dyn ControllerFactory + Send + Sync>,
    meter: &Meter,
) -> Arc<dyn ControllerFactory + Send + Sync> {
    Arc::new(Factory { inner, meter: meter.clone() })
}

struct Factory {
    inner: Arc<dyn ControllerFactory + Send + Sync>,
    meter: Meter,
}

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn Controller> {
        let inner = Arc::clone(&self.inner).build(now, mtu);
        let mut figures = self.meter.lock();
        figures.mtu = mtu.into();
        figures.window = inner.window();
        drop(figures);
        Box::new(Metered { inner, meter: self.meter.clone() })
    }
}

/// A controller that is listened to.
#[derive(Debug)]
struct Metered {
    inner: Box<dyn Controller>,
    meter: Meter,
}

impl Controller for Metered {
    fn on_sent(&mut self, now: Instant, bytes: u64, largest: u64) {
        self.inner.on_sent(now, bytes, largest);
    }

    fn on_packet_sent(&mut self, now: Instant, bytes: u16, number: u64) {
        self.inner.on_packet_sent(now, bytes, number);
        let mut figures = self.meter.lock();
        figures.sent_packets += 1;
        // A packet above the path's MTU is a probe: padding, no data.
        if u64::from(bytes) <= figures.mtu {
            figures.unsent = figures.unsent.saturating_sub(payload(bytes));
            figures.content = figures.content.min(figures.unsent);
        }
    }

    fn on_cwnd_limited(&mut self) {
        self.inner.on_cwnd_limited();
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        number: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.inner.on_ack(now, sent, bytes, number, app_limited, rtt);
        let mut figures = self.meter.lock();
        figures.acked_packets += 1;
        figures.rtt = rtt.get();
        figures.base_rtt = rtt.min();
        figures.queue_delay = rtt.get().saturating_sub(rtt.min());
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, ran_dry: bool, largest: Option<u64>) {
        self.inner.on_end_acks(now, in_flight, ran_dry, largest);
        let metrics = self.inner.metrics();
        let mut figures = self.meter.lock();
        figures.window = metrics.congestion_window;
        figures.rate = metrics.bandwidth_estimate.map(|bits| bits / 8);
        if ran_dry {
            figures.unsent = figures.unseen;
            figures.content = figures.content.min(figures.unsent);
        }
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        persistent: bool,
        ecn: bool,
        lost_bytes: u64,
        largest_lost: u64,
    ) {
        self.inner.on_congestion_event(now, sent, persistent, ecn, lost_bytes, largest_lost);
    }

    fn on_packet_lost(&mut self, bytes: u16, number: u64, now: Instant) {
        let mut figures = self.meter.lock();
        figures.lost_packets += 1;
        figures.lost_runs += u64::from(figures.last_lost.is_none_or(|last| last + 1 != number));
        figures.last_lost = Some(number);
        figures.unsent += payload(bytes);
        drop(figures);
        self.inner.on_packet_lost(bytes, number, now);
    }

    fn on_spurious_congestion_event(&mut self) {
        self.inner.on_spurious_congestion_event();
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.meter.lock().mtu = mtu.into();
        self.inner.on_mtu_update(mtu);
    }

    fn on_ack_frequency_update(&mut self, threshold: u64, delay: Duration) {
        self.inner.on_ack_frequency_update(threshold, delay);
    }

    fn window(&self) -> u64 {
        self.inner.window()
    }

    /// noq asks each time it looks for something to send: what was written before that has been seen.
    fn metrics(&self) -> ControllerMetrics {
        self.meter.lock().unseen = 0;
        self.inner.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self { inner: self.inner.clone_box(), meter: self.meter.clone() })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// Stream data of a packet, estimated low so that what is unsent is estimated high.
fn payload(bytes: u16) -> u64 {
    u64::from(bytes).saturating_sub(PACKET_OVERHEAD)
}

/// Header with connection id and packet number (11), tag (16), a STREAM frame's header (11). RFC 9000 §17.3, §19.8.
const PACKET_OVERHEAD: u64 = 38;

/// The least that they can be: flags, connection id of 8 bytes, packet number, tag, and a STREAM frame's type and id.
const LEAST_OVERHEAD: u16 = 28;
