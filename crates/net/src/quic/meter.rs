//! What the run loop and the tasks of one connection are told of its sending side.
//!
//! The figures are [`wayferry_congestion::Meter`]'s, which hears of every packet around the congestion controller. Here
//! they meet what the pump holds back: the outbox learns how much is unsent, the run loop that there is room again, and
//! [`super::probe`] that an acknowledgement is waited for.
//!
//! Invariant: each time that something was written, sent or acknowledged, the outbox knows of it before the lock is
//! free.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use noq::congestion::{Bbr3Config, ControllerFactory, CubicConfig};
use tokio::sync::Notify;
use wayferry_congestion::{self as congestion, CopaFactory, Figures, Listener, Report, metered};
use wayferry_mux::Backlog;
use wayferry_proto::LinkState;

use super::config::Congestion;
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
    counted: congestion::Meter,
    /// Written by the session, not taken by noq.
    backlog: Backlog,
    /// Everything that was ever written is acknowledged.
    quiet: bool,
    /// Since when an acknowledgement is waited for.
    waits: Option<Instant>,
    level: Level,
}

impl Meter {
    pub(super) fn new(outbox: Arc<Outbox>) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State { quiet: true, ..State::default() }),
            begun: Notify::new(),
            outbox,
        })
    }

    /// Makes the controllers of the connection, which report to this meter.
    pub(super) fn controllers(
        self: &Arc<Self>,
        congestion: Congestion,
    ) -> Arc<dyn ControllerFactory + Send + Sync> {
        let inner: Arc<dyn ControllerFactory + Send + Sync> = match congestion {
            Congestion::Copa => Arc::new(CopaFactory::new(self.lock().counted.shared().clone())),
            Congestion::Bbr3 => Arc::new(Bbr3Config::default()),
            Congestion::Cubic => Arc::new(CubicConfig::default()),
        };
        metered(inner, Arc::clone(self) as Arc<dyn Listener>)
    }

    /// `bytes` were written to a stream.
    pub(super) fn on_written(&self, bytes: usize, content: bool) {
        let mut state = self.lock();
        state.counted.on_written(bytes, content);
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

    /// How long an acknowledgement has been waited for, and how long a round trip takes; `None` when none is, or the
    /// peer has acknowledged little so far.
    pub(super) fn waits(&self) -> Option<(Duration, Duration)> {
        let state = self.lock();
        let figures = state.counted.figures();
        let waits = state.waits.filter(|_| figures.acked_packets >= KNOWN);
        waits.map(|since| (since.elapsed(), figures.rtt))
    }

    /// Comes back when an acknowledgement begins to be waited for, and when the peer has acknowledged enough.
    pub(super) async fn begun(&self) {
        self.begun.notified().await;
    }

    pub(super) fn figures(&self) -> Figures {
        self.lock().counted.figures()
    }

    fn publish(&self, state: &mut State, counted: u64) {
        let figures = state.counted.figures();
        let Backlog { total, content } = state.backlog;
        let rest = Backlog { total: figures.unsent + total, content: figures.content + content };
        let link = LinkState { window: figures.window, rate: figures.rate, ..LinkState::default() };
        self.outbox.publish(&mut state.level, counted, rest, link.ahead());
    }

    fn on_sent(&self, state: &mut State, now: Instant) {
        state.quiet = false;
        if state.waits.is_none() {
            state.waits = Some(now);
            self.begun.notify_one();
        }
        self.publish(state, 0);
    }

    /// One packet more is acknowledged. A connection that is never at rest is told of here: its waiting began before.
    fn on_acked(&self, figures: Figures) {
        if figures.acked_packets == KNOWN {
            self.begun.notify_one();
        }
    }

    /// All acknowledgements of a packet have been told. Wakes the run loop after a silence: what it held back may
    /// leave.
    fn on_acks(&self, state: &mut State, now: Instant, in_flight: u64, ran_dry: bool) {
        let late = state.is_late(now);
        state.waits = (in_flight > 0).then_some(now);
        if ran_dry {
            state.quiet = in_flight == 0 && state.counted.figures().unsent == 0;
        }
        self.publish(state, 0);
        if late {
            self.outbox.rouse();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Listener for Meter {
    fn hear(&self, report: Report) {
        let mut state = self.lock();
        state.counted.take(report);
        match report {
            Report::Sent { now, .. } => self.on_sent(&mut state, now),
            Report::Acked { .. } => self.on_acked(state.counted.figures()),
            Report::Acks { now, in_flight, ran_dry, .. } => {
                self.on_acks(&mut state, now, in_flight, ran_dry);
            }
            Report::Begun { .. } | Report::Looked | Report::Lost { .. } | Report::Mtu(_) => {}
        }
    }
}

impl State {
    /// Whether an acknowledgement takes longer than it should.
    fn is_late(&self, now: Instant) -> bool {
        let rtt = self.counted.figures().rtt;
        self.waits.is_some_and(|since| is_late(now.duration_since(since), rtt))
    }
}

impl fmt::Debug for Meter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Meter").field("figures", &self.figures()).finish_non_exhaustive()
    }
}

/// Packets that a peer has acknowledged whose silence is worth being broken.
const KNOWN: u64 = 16;

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

    use noq::congestion::Controller;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

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
            let controller = meter.controllers(Congestion::Bbr3).build(now, 1200);
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

        /// The peer acknowledges this many packets.
        fn acknowledge(&self, packets: u64) {
            let rtt = Duration::from_millis(20);
            (0..packets).for_each(|_| self.meter.hear(Report::Acked { rtt, least: rtt }));
        }

        fn write(&self, bytes: usize, content: bool) {
            self.meter.on_written(bytes, content);
            self.meter.settle(0, Backlog::default());
        }
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
            rig.acknowledge(1);
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
    fn waiting_begins_with_the_first_packet_and_again_with_each_answer() {
        let mut rig = Rig::new();
        assert_eq!(rig.meter.waits(), None);
        let second = Duration::from_secs(1);
        rig.now -= 3 * second;
        rig.acknowledge(KNOWN - 1);
        rig.send(&[1200]);
        assert_eq!(rig.meter.waits(), None, "a stranger");
        rig.acknowledge(1);
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
