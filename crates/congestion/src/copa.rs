//! The controller that noq calls.
//!
//! noq calls, for each acknowledgement, `on_ack` for every packet, then `on_end_acks`, then `on_packet_lost` for every
//! loss found and `on_congestion_event` once. The round-trip time that it passes is one acknowledgement old, so this
//! takes its own: from the newest packet. Invariant: the window and the pace change only in these calls.

mod steps;

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};

use crate::ack::Batch;
use crate::base_rtt::BaseRtt;
use crate::loss::LossWindow;
use crate::pacing::Pace;
use crate::phase::{Phase, Raised};
use crate::queue::RttFilter;
use crate::rate::RateEstimator;
use crate::state::{Shared, State};
use crate::window::{Path, Window};

/// Makes the controllers of one connection, which publish to one [`Shared`].
#[derive(Clone, Debug, Default)]
pub struct CopaFactory {
    shared: Shared,
}

impl CopaFactory {
    /// For one connection, whose state is then in `shared`.
    pub fn new(shared: Shared) -> Self {
        Self { shared }
    }
}

impl ControllerFactory for CopaFactory {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn Controller> {
        Box::new(Copa::new(now, mtu, self.shared.clone()))
    }
}

/// See the [crate] and this module.
#[derive(Clone, Debug)]
pub struct Copa {
    zero: Instant,
    /// The last time that any call told.
    now: Duration,
    mtu: u64,
    shared: Shared,
    in_flight: u64,
    batch: Option<Batch>,
    newest: Duration,
    limited: Option<Duration>,
    rtt: RttFilter,
    base: BaseRtt,
    rate: RateEstimator,
    loss: LossWindow,
    window: Window,
    phase: Phase,
    /// Since when a long queue stands, and the rate before.
    standing: Option<(Duration, Option<u64>)>,
    /// When the queue was last seen empty.
    drained: Duration,
    raised: Option<Raised>,
    /// When a packet was last lost.
    lost: Option<Duration>,
    /// When somebody who fills the queue was last met.
    rival: Option<Duration>,
    /// When more than the link's own loss was last seen.
    dropped: Option<Duration>,
    /// What was sent before has had its consequence.
    stepped_back: Duration,
}

impl Copa {
    /// A controller for packets of up to `mtu` bytes.
    pub fn new(now: Instant, mtu: u16, shared: Shared) -> Self {
        let copa = Self {
            zero: now,
            now: Duration::ZERO,
            mtu: mtu.into(),
            shared,
            in_flight: 0,
            batch: None,
            newest: Duration::ZERO,
            limited: None,
            rtt: RttFilter::default(),
            base: BaseRtt::default(),
            rate: RateEstimator::default(),
            loss: LossWindow::default(),
            window: Window::new(INITIAL_PACKETS * u64::from(mtu)),
            phase: Phase::StartUp,
            standing: None,
            drained: Duration::ZERO,
            raised: None,
            lost: None,
            rival: None,
            dropped: None,
            stepped_back: Duration::ZERO,
        };
        copa.publish();
        copa
    }

    /// What it knows.
    pub fn state(&self) -> State {
        let base = self.base.get();
        State {
            window: self.window(),
            in_flight: self.in_flight,
            rate: self.rate.rate(),
            queue_delay: self.rtt.standing().saturating_sub(base.unwrap_or_default()),
            base_rtt: base.unwrap_or_default(),
        }
    }

    fn publish(&self) {
        self.shared.publish(self.state());
    }

    fn since(&mut self, now: Instant) -> Duration {
        self.now = self.now.max(now.saturating_duration_since(self.zero));
        self.now
    }

    fn path(&self, now: Duration) -> Path {
        let base = self.base.get().unwrap_or_default();
        Path {
            now,
            mtu: self.mtu,
            base,
            queue: self.rtt.standing().saturating_sub(base),
            smoothed: self.rtt.smoothed(),
            noise: self.rtt.noise(),
            jitter: self.rtt.jitter(),
            rate: self.rate.rate(),
            line: self.rate.line(),
        }
    }

    /// Whether the window has held packets back in the last two round trips.
    fn is_limited(&self, now: Duration) -> bool {
        self.limited.is_some_and(|at| now.saturating_sub(at) <= self.rtt.smoothed() * 2)
    }

    /// A packet was acknowledged; more may follow before the batch is over.
    fn on_acked(&mut self, now: Instant, sent: Instant, bytes: u64) {
        self.since(now);
        let sent = sent.saturating_duration_since(self.zero);
        match &mut self.batch {
            Some(batch) => batch.add(sent, bytes),
            None => self.batch = Some(Batch::new(sent, bytes)),
        }
    }
}

impl Controller for Copa {
    fn on_packet_sent(&mut self, now: Instant, bytes: u16, _: u64) {
        let now = self.since(now);
        if self.in_flight == 0 {
            self.leave_idle(now);
        }
        self.in_flight += u64::from(bytes);
        self.shared.set_in_flight(self.in_flight);
    }

    fn on_cwnd_limited(&mut self) {
        self.limited = Some(self.now);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, _: u64, _: bool, _: &RttEstimator) {
        self.on_acked(now, sent, bytes);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, _: bool, _: Option<u64>) {
        let now = self.since(now);
        self.in_flight = in_flight;
        if let Some(batch) = self.batch.take() {
            self.measure(now, batch);
            self.step(now, batch.bytes);
            self.judge_loss(now);
        }
        self.publish();
    }

    fn on_packet_lost(&mut self, bytes: u16, number: u64, now: Instant) {
        self.lost = Some(self.since(now));
        self.in_flight = self.in_flight.saturating_sub(bytes.into());
        self.loss.on_lost(number);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent: bool,
        is_ecn: bool,
        _: u64,
        _: u64,
    ) {
        let now = self.since(now);
        let sent = sent.saturating_duration_since(self.zero);
        let path = self.path(now);
        if let Phase::Compete(compete, _) = &mut self.phase {
            compete.on_loss(now, sent, path.mtu, path.queue);
        }
        if is_persistent || is_ecn {
            self.step_back(now, sent, is_persistent);
        }
        self.publish();
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.mtu = mtu.into();
    }

    fn window(&self) -> u64 {
        let bytes = match &self.phase {
            Phase::StartUp | Phase::Cruise => self.window.bytes(),
            Phase::Drain(drain) => drain.cap,
            Phase::Compete(compete, None) => compete.bytes(),
            Phase::Compete(_, Some(drain)) => drain.cap,
        };
        (bytes as u64).max(4 * self.mtu)
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.window();
        if !self.rtt.smoothed().is_zero() {
            let competes = matches!(self.phase, Phase::Compete(..));
            let pace = Pace {
                window: self.window() as f64,
                rtt: self.rtt.smoothed(),
                rate: self.rate.rate().filter(|_| !competes),
                limit: self.rate.limit(),
                probing: !competes && !self.is_cautious(self.now),
            };
            metrics.pacing_rate = Some(pace.rate());
        }
        metrics.bandwidth_estimate = self.rate.rate().map(|rate| rate.saturating_mul(8));
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        INITIAL_PACKETS * self.mtu
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// Packets of the first round trip: what the goals for start-up need with a doubling in each (3 round trips for 200).
const INITIAL_PACKETS: u64 = 32;

#[cfg(test)]
mod tests;
