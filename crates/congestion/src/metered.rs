//! A congestion controller that is listened to.
//!
//! Between noq and any controller: it reports what passes and changes nothing. What is made of the reports is for the
//! [`Listener`]; [`Meter`] adds them up. Invariant: every call of noq reaches the controller, with its own arguments.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};

use crate::meter::Meter;

/// What passed between noq and a controller.
#[derive(Clone, Copy, Debug)]
pub enum Report {
    /// The controller was made.
    Begun {
        /// Its window in bytes.
        window: u64,
        /// Bytes of a packet.
        mtu: u16,
    },
    /// noq looks for something to send.
    Looked,
    /// A packet was sent.
    Sent {
        /// When.
        now: Instant,
        /// Its size.
        bytes: u16,
    },
    /// One packet more is acknowledged; [`Report::Acks`] follows the last of one acknowledgement.
    Acked {
        /// The smoothed round-trip time, without this acknowledgement's own sample.
        rtt: Duration,
        /// The smallest that noq remembers.
        least: Duration,
    },
    /// All that one packet acknowledged has been told, and the controller has drawn its conclusions.
    Acks {
        /// When.
        now: Instant,
        /// Bytes that are still on their way.
        in_flight: u64,
        /// There was nothing more to send.
        ran_dry: bool,
        /// The controller's window in bytes.
        window: u64,
        /// Its estimate of the bottleneck in bytes per second.
        rate: Option<u64>,
    },
    /// A packet was declared lost.
    Lost {
        /// Its size.
        bytes: u16,
        /// Its number.
        number: u64,
    },
    /// Packets may have this many bytes from now on.
    Mtu(u16),
}

/// Hears what the controllers of one connection report.
pub trait Listener: fmt::Debug + Send + Sync + 'static {
    /// This happened. Called within noq's work on the connection: it must not wait.
    fn hear(&self, report: Report);
}

/// Adds up, and nothing else.
impl Listener for Mutex<Meter> {
    fn hear(&self, report: Report) {
        self.lock().unwrap_or_else(PoisonError::into_inner).take(report);
    }
}

/// Makes the controllers of `inner`, to which `listener` listens.
pub fn metered(
    inner: Arc<dyn ControllerFactory + Send + Sync>,
    listener: Arc<dyn Listener>,
) -> Arc<dyn ControllerFactory + Send + Sync> {
    Arc::new(Factory { inner, listener })
}

struct Factory {
    inner: Arc<dyn ControllerFactory + Send + Sync>,
    listener: Arc<dyn Listener>,
}

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn Controller> {
        let inner = Arc::clone(&self.inner).build(now, mtu);
        self.listener.hear(Report::Begun { window: inner.window(), mtu });
        Box::new(Metered { inner, listener: Arc::clone(&self.listener) })
    }
}

/// See the module.
#[derive(Debug)]
struct Metered {
    inner: Box<dyn Controller>,
    listener: Arc<dyn Listener>,
}

impl Controller for Metered {
    fn on_sent(&mut self, now: Instant, bytes: u64, largest: u64) {
        self.inner.on_sent(now, bytes, largest);
    }

    fn on_packet_sent(&mut self, now: Instant, bytes: u16, number: u64) {
        self.inner.on_packet_sent(now, bytes, number);
        self.listener.hear(Report::Sent { now, bytes });
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
        self.listener.hear(Report::Acked { rtt: rtt.get(), least: rtt.min() });
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, ran_dry: bool, largest: Option<u64>) {
        self.inner.on_end_acks(now, in_flight, ran_dry, largest);
        let metrics = self.inner.metrics();
        let (window, rate) = (metrics.congestion_window, metrics.bandwidth_estimate.map(|bits| bits / 8));
        self.listener.hear(Report::Acks { now, in_flight, ran_dry, window, rate });
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
        self.inner.on_packet_lost(bytes, number, now);
        self.listener.hear(Report::Lost { bytes, number });
    }

    fn on_spurious_congestion_event(&mut self) {
        self.inner.on_spurious_congestion_event();
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.inner.on_mtu_update(mtu);
        self.listener.hear(Report::Mtu(mtu));
    }

    fn on_ack_frequency_update(&mut self, threshold: u64, delay: Duration) {
        self.inner.on_ack_frequency_update(threshold, delay);
    }

    fn window(&self) -> u64 {
        self.inner.window()
    }

    /// noq asks each time it looks for something to send.
    fn metrics(&self) -> ControllerMetrics {
        self.listener.hear(Report::Looked);
        self.inner.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self { inner: self.inner.clone_box(), listener: Arc::clone(&self.listener) })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
