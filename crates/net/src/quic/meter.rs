//! Counting what left: how many content bytes lie in the QUIC stack that no packet has carried yet.
//!
//! noq does not tell, so the estimate comes from around the congestion controller: bytes written to streams, minus
//! payload of packets sent, plus payload of packets lost (it is sent again, not for the first time). The controller
//! itself is untouched. Packets are taken to carry a little less than they do, so that the estimate errs
//! upward, and each time the connection has run out of data the estimate is set right.
//!
//! Invariant: content ≤ unsent, because everything else goes first.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use noq::congestion::{Bbr3Config, Controller, ControllerFactory, ControllerMetrics, CubicConfig};
use noq_proto::RttEstimator;
use tokio::sync::Notify;
use wayferry_congestion::{CopaFactory, Shared};
use wayferry_proto::LinkState;

use super::config::Congestion;
use crate::carrier::Backlog;
use crate::outbox::{Level, Outbox};

/// What is known of the sending side of one connection.
pub(super) struct Meter {
    state: Mutex<State>,
    /// An acknowledgement is waited for again.
    begun: Notify,
    outbox: Arc<Outbox>,
}

#[derive(Default)]
struct State {
    /// Stream bytes written and not sent, of all classes.
    unsent: u64,
    /// Those of content among them.
    content: u64,
    /// Written since noq last looked for something to send.
    unseen: u64,
    /// Written by the session, not taken by noq.
    backlog: Backlog,
    /// Everything that was ever written is acknowledged.
    quiet: bool,
    /// Since when an acknowledgement is waited for.
    waits: Option<Instant>,
    level: Level,
    figures: Figures,
    /// The last packet that was declared lost.
    last_lost: Option<u64>,
    mtu: u64,
}

/// What the meter adds to [`LinkState`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Figures {
    pub(super) rtt: Duration,
    pub(super) base_rtt: Duration,
    pub(super) queue_delay: Duration,
    pub(super) payload: u16,
    pub(super) window: u64,
    pub(super) rate: Option<u64>,
    pub(super) sent_packets: u64,
    pub(super) lost_packets: u64,
    pub(super) lost_runs: u64,
    pub(super) acked_packets: u64,
}

impl Meter {
    pub(super) fn new(outbox: Arc<Outbox>) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State { quiet: true, ..State::default() }),
            begun: Notify::new(),
            outbox,
        })
    }

    /// `bytes` were written to a stream.
    pub(super) fn on_written(&self, bytes: usize, content: bool) {
        let mut state = self.lock();
        let bytes = bytes as u64;
        state.unsent += bytes;
        state.unseen += bytes;
        state.content += if content { bytes } else { 0 };
        state.quiet = false;
    }

    /// The pump has taken `counted` bytes of content out of the outbox and holds `backlog`.
    pub(super) fn settle(&self, counted: u64, backlog: Backlog) {
        let mut state = self.lock();
        state.backlog = backlog;
        self.publish(&mut state, counted);
    }

    /// Whether everything that was written has been acknowledged.
    pub(super) fn is_quiet(&self) -> bool {
        self.lock().quiet
    }

    /// How long an acknowledgement has been waited for, and how long a round trip takes; `None` when none is, or the peer has
    /// acknowledged little so far.
    pub(super) fn waits(&self) -> Option<(Duration, Duration)> {
        let state = self.lock();
        let waits = state.waits.filter(|_| state.figures.acked_packets >= KNOWN);
        waits.map(|since| (since.elapsed(), state.figures.rtt))
    }

    /// Comes back when an acknowledgement begins to be waited for, and when the peer has acknowledged enough.
    pub(super) async fn begun(&self) {
        self.begun.notified().await;
    }

    pub(super) fn figures(&self) -> Figures {
        self.lock().figures
    }

    fn publish(&self, state: &mut State, counted: u64) {
        state.content = state.content.min(state.unsent);
        let Backlog { total, content } = state.backlog;
        let rest = Backlog { total: state.unsent + total, content: state.content + content };
        let Figures { window, rate, .. } = state.figures;
        let link = LinkState { window, rate, ..LinkState::default() };
        self.outbox.publish(&mut state.level, counted, rest, link.ahead());
    }

    fn on_sent(&self, now: Instant, bytes: u64) {
        let mut state = self.lock();
        state.quiet = false;
        if state.waits.is_none() {
            state.waits = Some(now);
            self.begun.notify_one();
        }
        state.figures.sent_packets += 1;
        // A packet above the path's MTU is a probe: padding, no data.
        if bytes <= state.mtu {
            state.unsent = state.unsent.saturating_sub(bytes.saturating_sub(PACKET_OVERHEAD));
            self.publish(&mut state, 0);
        }
    }

    fn on_acked(&self, rtt: &RttEstimator, knows_path: bool) {
        let mut state = self.lock();
        self.count_acked(&mut state);
        let figures = &mut state.figures;
        figures.rtt = rtt.get();
        // Our own controller knows better, and tells at the end of the acknowledgements.
        if !knows_path {
            figures.base_rtt = rtt.min();
            figures.queue_delay = rtt.get().saturating_sub(rtt.min());
        }
    }

    /// One packet more is acknowledged. A connection that is never at rest is told of here: its waiting began before.
    fn count_acked(&self, state: &mut State) {
        state.figures.acked_packets += 1;
        if state.figures.acked_packets == KNOWN {
            self.begun.notify_one();
        }
    }

    fn on_lost(&self, bytes: u64, number: u64) {
        let mut state = self.lock();
        state.figures.lost_packets += 1;
        state.figures.lost_runs += u64::from(state.last_lost.is_none_or(|last| last + 1 != number));
        state.last_lost = Some(number);
        state.unsent += bytes.saturating_sub(PACKET_OVERHEAD);
    }

    /// All acknowledgements of a packet have been told. Wakes the run loop after a silence: what it held back may leave.
    fn on_acks(
        &self,
        now: Instant,
        in_flight: u64,
        ran_dry: bool,
        inner: &dyn Controller,
        copa: Option<&Shared>,
    ) {
        let mut state = self.lock();
        let metrics = inner.metrics();
        let late = state.is_late(now);
        state.waits = (in_flight > 0).then_some(now);
        state.figures.window = metrics.congestion_window;
        state.figures.rate = metrics.bandwidth_estimate.map(|bits| bits / 8);
        if let Some(copa) = copa {
            state.figures.know_path(copa);
        }
        if ran_dry {
            state.unsent = state.unseen;
            state.quiet = in_flight == 0 && state.unsent == 0;
        }
        self.publish(&mut state, 0);
        if late {
            self.outbox.rouse();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Figures {
    /// Takes what our own controller knows better than the transport.
    fn know_path(&mut self, copa: &Shared) {
        let known = copa.state();
        (self.rate, self.queue_delay, self.base_rtt) = (known.rate, known.queue_delay, known.base_rtt);
    }
}

impl State {
    /// Whether an acknowledgement takes longer than it should.
    fn is_late(&self, now: Instant) -> bool {
        self.waits.is_some_and(|since| is_late(now.duration_since(since), self.figures.rtt))
    }

    fn set_mtu(&mut self, mtu: u16) {
        self.mtu = mtu.into();
        self.figures.payload = mtu.saturating_sub(LEAST_OVERHEAD);
    }
}

impl fmt::Debug for Meter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Meter").field("figures", &self.figures()).finish_non_exhaustive()
    }
}

/// Makes controllers that report to one meter.
pub(super) struct MeteredFactory {
    inner: Arc<dyn ControllerFactory + Send + Sync>,
    meter: Arc<Meter>,
    /// Where our own controllers tell what they know beyond what every controller tells.
    copa: Option<Shared>,
}

impl MeteredFactory {
    pub(super) fn new(congestion: Congestion, meter: Arc<Meter>) -> Self {
        let (inner, copa): (Arc<dyn ControllerFactory + Send + Sync>, _) = match congestion {
            Congestion::Copa => {
                let shared = Shared::default();
                (Arc::new(CopaFactory::new(shared.clone())), Some(shared))
            }
            Congestion::Bbr3 => (Arc::new(Bbr3Config::default()), None),
            Congestion::Cubic => (Arc::new(CubicConfig::default()), None),
        };
        Self { inner, meter, copa }
    }
}

impl ControllerFactory for MeteredFactory {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn Controller> {
        let inner = Arc::clone(&self.inner).build(now, mtu);
        let mut state = self.meter.lock();
        state.set_mtu(mtu);
        state.figures.window = inner.window();
        drop(state);
        Box::new(Metered { inner, meter: Arc::clone(&self.meter), copa: self.copa.clone() })
    }
}

/// A controller that reports what passes and changes nothing.
#[derive(Debug)]
struct Metered {
    inner: Box<dyn Controller>,
    meter: Arc<Meter>,
    copa: Option<Shared>,
}

impl Controller for Metered {
    fn on_sent(&mut self, now: Instant, bytes: u64, largest_pn: u64) {
        self.inner.on_sent(now, bytes, largest_pn);
    }

    fn on_packet_sent(&mut self, now: Instant, bytes: u16, pn: u64) {
        self.meter.on_sent(now, bytes.into());
        self.inner.on_packet_sent(now, bytes, pn);
    }

    fn on_cwnd_limited(&mut self) {
        self.inner.on_cwnd_limited();
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        pn: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.meter.on_acked(rtt, self.copa.is_some());
        self.inner.on_ack(now, sent, bytes, pn, app_limited, rtt);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, largest_acked: Option<u64>) {
        self.inner.on_end_acks(now, in_flight, app_limited, largest_acked);
        self.meter.on_acks(now, in_flight, app_limited, &*self.inner, self.copa.as_ref());
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        is_ecn: bool,
        lost_bytes: u64,
        largest_lost_pn: u64,
    ) {
        self.inner.on_congestion_event(
            now,
            sent,
            is_persistent_congestion,
            is_ecn,
            lost_bytes,
            largest_lost_pn,
        );
    }

    fn on_packet_lost(&mut self, lost_bytes: u16, pn: u64, now: Instant) {
        self.meter.on_lost(lost_bytes.into(), pn);
        self.inner.on_packet_lost(lost_bytes, pn, now);
    }

    fn on_spurious_congestion_event(&mut self) {
        self.inner.on_spurious_congestion_event();
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.meter.lock().set_mtu(new_mtu);
        self.inner.on_mtu_update(new_mtu);
    }

    fn on_ack_frequency_update(&mut self, threshold: u64, requested_max_ack_delay: Duration) {
        self.inner.on_ack_frequency_update(threshold, requested_max_ack_delay);
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
        let inner = self.inner.clone_box();
        Box::new(Self { inner, meter: Arc::clone(&self.meter), copa: self.copa.clone() })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// Bytes of a packet that are not stream data: header with connection id and packet number (11), tag (16), and a
/// STREAM frame's header (up to 11). RFC 9000 §17.3, §19.8.
const PACKET_OVERHEAD: u64 = 38;

/// Packets that a peer has acknowledged whose silence is worth being broken.
const KNOWN: u64 = 16;

/// The least that they can be: flags, connection id of 8 bytes, packet number, tag, and a STREAM frame's type and id.
const LEAST_OVERHEAD: u16 = 28;

/// Whether an acknowledgement is late that has been waited for so long, when a round trip is as long as is `usual`.
pub(super) fn is_late(waits: Duration, usual: Duration) -> bool {
    waits >= usual + LATE
}

/// An acknowledgement that takes so much longer than a round trip is late.
pub(super) const LATE: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::task::{Context, Waker};

    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::LATE;
    use super::*;
    use crate::wake::Wake;

    struct Rig {
        meter: Arc<Meter>,
        outbox: Arc<Outbox>,
        wake: Arc<Wake>,
        controller: Box<dyn Controller>,
        now: Instant,
        packets: u64,
    }

    impl Rig {
        fn new() -> Self {
            let wake = Arc::new(Wake::new().unwrap());
            let outbox = Arc::new(Outbox::new(Arc::clone(&wake)));
            let meter = Meter::new(Arc::clone(&outbox));
            let now = Instant::now();
            let controller =
                Arc::new(MeteredFactory::new(Congestion::Bbr3, Arc::clone(&meter))).build(now, 1200);
            Self { meter, outbox, wake, controller, now, packets: 0 }
        }

        /// noq looks for data and sends packets of this size.
        fn send(&mut self, sizes: &[u16]) {
            for size in sizes {
                let _ = self.controller.metrics();
                self.controller.on_packet_sent(self.now, *size, self.packets);
                self.packets += 1;
            }
            let _ = self.controller.metrics();
        }

        /// Whether the run loop is to look.
        fn is_roused(&self) -> bool {
            let mut fds = [PollFd::new(&self.wake, PollFlags::IN)];
            poll(&mut fds, Some(&Timespec::default())).unwrap() == 1
        }

        fn write(&self, bytes: usize, content: bool) {
            self.meter.on_written(bytes, content);
            self.meter.settle(0, Backlog::default());
        }
    }

    #[test]
    fn packets_take_content_off_and_err_upward() {
        let mut rig = Rig::new();
        rig.write(100_000, true);
        assert_eq!(rig.outbox.unsent(), 100_000);
        rig.send(&[1200; 50]);
        let left = rig.outbox.unsent();
        assert!((100_000 - 50 * 1200..=100_000 - 50 * 1150).contains(&left), "{left}");
    }

    #[test]
    fn regression_a_connection_that_is_never_at_rest_is_watched_too() {
        let mut rig = Rig::new();
        let has_begun = |meter: &Meter| {
            let begun = std::pin::pin!(meter.begun());
            begun.poll(&mut Context::from_waker(Waker::noop())).is_ready()
        };
        rig.send(&[1200]);
        assert!(has_begun(&rig.meter) && rig.meter.waits().is_none(), "it may be a stranger");
        for acked in 1..=KNOWN {
            assert!(!has_begun(&rig.meter), "after {acked}");
            rig.meter.count_acked(&mut rig.meter.lock());
            rig.controller.on_end_acks(rig.now, 1200, false, Some(acked));
        }
        assert!(has_begun(&rig.meter) && rig.meter.waits().is_some());
    }

    #[test]
    fn the_run_loop_is_told_when_a_late_answer_comes_and_only_then() {
        let mut rig = Rig::new();
        rig.send(&[1200]);
        rig.now += LATE - Duration::from_millis(1);
        rig.controller.on_end_acks(rig.now, 1200, false, Some(0));
        assert!(!rig.is_roused());
        rig.now += LATE;
        rig.controller.on_end_acks(rig.now, 0, false, Some(1));
        assert!(rig.is_roused());
    }

    #[test]
    fn everything_else_is_sent_before_content() {
        let mut rig = Rig::new();
        rig.write(10_000, true);
        rig.write(50_000, false);
        rig.send(&[1200; 20]);
        assert_eq!(rig.outbox.unsent(), 10_000);
        rig.send(&[1200; 25]);
        assert!(rig.outbox.unsent() < 10_000);
    }

    #[test]
    fn running_dry_sets_the_estimate_right_but_for_what_noq_has_not_seen() {
        let mut rig = Rig::new();
        rig.write(5000, true);
        rig.send(&[1200, 1200, 1200, 800]);
        assert!(rig.outbox.unsent() > 0, "drifts upward");
        rig.write(700, true);
        rig.controller.on_end_acks(rig.now, 4400, true, Some(3));
        assert_eq!(rig.outbox.unsent(), 700);
        assert!(!rig.meter.is_quiet());
        rig.send(&[760]);
        rig.controller.on_end_acks(rig.now, 0, true, Some(4));
        assert_eq!(rig.outbox.unsent(), 0);
        assert!(rig.meter.is_quiet());
    }

    #[test]
    fn data_that_waits_for_the_window_does_not_count_as_dry() {
        let mut rig = Rig::new();
        rig.write(50_000, true);
        rig.send(&[1200; 10]);
        let before = rig.outbox.unsent();
        rig.controller.on_end_acks(rig.now, 0, false, Some(9));
        assert_eq!(rig.outbox.unsent(), before);
        assert!(!rig.meter.is_quiet());
    }

    #[test]
    fn a_retransmission_is_no_progress_and_a_probe_carries_nothing() {
        let mut rig = Rig::new();
        rig.write(50_000, true);
        rig.send(&[1200; 10]);
        let before = rig.outbox.unsent();
        rig.controller.on_packet_lost(1200, 3, rig.now);
        rig.send(&[1200, 1452]);
        assert_eq!(rig.outbox.unsent(), before);
        let figures = rig.meter.figures();
        assert_eq!((figures.sent_packets, figures.lost_packets), (12, 1));
        assert!(figures.window > 0);
    }

    #[test]
    fn a_clone_of_the_controller_reports_to_the_same_meter() {
        let mut rig = Rig::new();
        rig.write(5000, true);
        rig.controller = rig.controller.clone_box();
        rig.send(&[1200]);
        assert!(rig.outbox.unsent() < 5000);
    }

    #[test]
    fn waiting_begins_with_the_first_packet_and_again_with_each_answer() {
        let mut rig = Rig::new();
        assert_eq!(rig.meter.waits(), None);
        let second = Duration::from_secs(1);
        rig.now -= 3 * second;
        rig.meter.lock().figures.acked_packets = KNOWN - 1;
        rig.send(&[1200]);
        assert_eq!(rig.meter.waits(), None, "a stranger");
        rig.meter.lock().figures.acked_packets = KNOWN;
        rig.send(&[1200]);
        rig.now += second;
        rig.send(&[1200]);
        assert!(rig.meter.waits().unwrap().0 >= 3 * second);
        rig.now += second;
        rig.controller.on_end_acks(rig.now, 1200, false, Some(0));
        assert!((second..2 * second).contains(&rig.meter.waits().unwrap().0));
        rig.controller.on_end_acks(rig.now, 0, true, Some(1));
        assert_eq!(rig.meter.waits(), None);
    }
}
