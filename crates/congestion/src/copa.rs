//! The controller that noq calls.
//!
//! noq calls, for each acknowledgement, `on_ack` for every packet, then `on_end_acks`, then `on_packet_lost` for every
//! loss found and `on_congestion_event` once. The round-trip time that it passes is one acknowledgement old, so this
//! takes its own: from the newest packet. Invariant: the window and the pace change only in these calls.

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};

use crate::ack::Batch;
use crate::base_rtt::BaseRtt;
use crate::compete::Compete;
use crate::loss::LossWindow;
use crate::pacing::Pace;
use crate::phase::{Drain, Phase, Raised};
use crate::queue::RttFilter;
use crate::rate::RateEstimator;
use crate::state::{Shared, State};
use crate::train::Limit;
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
    /// When more than the link's own loss was last seen.
    dropped: Option<Duration>,
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
            dropped: None,
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
            rate: self.rate.rate(),
        }
    }

    /// Whether the window has held packets back in the last two round trips.
    fn is_limited(&self, now: Duration) -> bool {
        self.limited.is_some_and(|at| now.saturating_sub(at) <= self.rtt.smoothed() * 2)
    }

    fn measure(&mut self, now: Duration, batch: Batch) {
        let limited = self.is_limited(now);
        if batch.newest >= self.newest {
            self.newest = batch.newest;
            let rtt = now.saturating_sub(batch.newest);
            self.rtt.on_sample(now, rtt);
            self.base.on_sample(now, rtt, !limited);
            if let Phase::Drain(drain) | Phase::Compete(_, Some(drain)) = &mut self.phase {
                drain.least = drain.least.min(rtt);
            }
        }
        let path = self.path(now);
        self.rate.on_batch(now, batch, self.rtt.smoothed(), limited && path.queue > path.threshold());
        self.loss.on_acked(batch.packets, batch.bytes);
    }

    /// One step of the phase.
    fn step(&mut self, now: Duration, acked: u64) {
        let path = self.path(now);
        let limited = self.is_limited(now);
        match &mut self.phase {
            Phase::StartUp => {
                if limited {
                    self.window.double(acked);
                }
                self.keep_floor(&path);
                let found = self.rate.limit() == Some(Limit::Link) || path.queue > path.threshold();
                if let Some(product) = path.product().filter(|_| found && limited) {
                    self.window.set(product + path.allowance(), self.mtu);
                    self.cruise(now);
                }
            }
            Phase::Cruise => {
                let eager = !self.is_cautious(now);
                self.window.steer(&path, acked, limited, eager);
                self.keep_floor(&path);
                self.watch(&path, limited);
            }
            Phase::Drain(drain) => {
                let drain = *drain;
                if now >= drain.until {
                    self.conclude(&path, drain);
                }
            }
            Phase::Compete(compete, check) => {
                compete.on_ack(now, acked, path.mtu, path.smoothed, path.queue);
                match *check {
                    Some(drain) if now >= drain.until => {
                        let alone = drain.least.saturating_sub(path.base) <= path.threshold() / 2;
                        *check = None;
                        self.drained = now;
                        if alone {
                            self.window.set(path.product().unwrap_or(0.0) + path.allowance(), self.mtu);
                            self.cruise(now);
                        }
                    }
                    Some(_) => {}
                    None if now.saturating_sub(self.drained) > CHECK_INTERVAL => {
                        let cap = path.product().unwrap_or(0.0) / 2.0;
                        let until = now + path.queue + path.base + path.base / 2;
                        *check = Some(Drain { cap, until, least: self.rtt.latest(), rate: None });
                    }
                    None => {}
                }
            }
        }
    }

    fn cruise(&mut self, now: Duration) {
        self.phase = Phase::Cruise;
        self.standing = None;
        self.drained = now;
    }

    /// What the bottleneck takes anyway may be on its way at once, also from an idle sender.
    fn keep_floor(&mut self, path: &Path) {
        if let Some(product) = path.product().filter(|_| path.queue <= path.threshold())
            && !self.is_cautious(path.now)
        {
            self.window.raise(FLOOR * product);
        }
    }

    /// Looks for queues that should not be there.
    fn watch(&mut self, path: &Path, limited: bool) {
        let now = path.now;
        if let Some(raised) = self.raised.filter(|it| it.is_fresh(now))
            && path.base + path.threshold() / 2 < raised.to
        {
            self.compete(path);
            return;
        }
        let own = self.window.own(path);
        if !limited || own < path.allowance() / 4.0 {
            self.drained = now;
        }
        if path.queue <= path.threshold() || !limited {
            self.standing = None;
        } else {
            let (since, rate) = *self.standing.get_or_insert((now, path.rate));
            if now.saturating_sub(since) > path.base + path.queue {
                let pending = self.in_flight as f64 / path.rate.unwrap_or(1) as f64;
                let time = Duration::from_secs_f64(pending.min(2.0)).max(path.queue) + path.base * 3 / 2;
                let cap = path.product().unwrap_or(0.0) / 2.0;
                self.drain(now + time, cap, rate);
                return;
            }
        }
        if now.saturating_sub(self.drained) > DIP_INTERVAL.max(path.smoothed * 20) {
            let cap = self.window.bytes() - 1.5 * own - self.mtu as f64;
            self.drain(now + (path.base + path.queue) * 5 / 4, cap, None);
        }
    }

    fn drain(&mut self, until: Duration, cap: f64, rate: Option<u64>) {
        self.phase = Phase::Drain(Drain { cap, until, least: self.rtt.latest(), rate });
    }

    fn conclude(&mut self, path: &Path, drain: Drain) {
        let now = path.now;
        self.base.on_sample(now, drain.least, true);
        let Some(rate) = drain.rate else {
            self.cruise(now);
            return;
        };
        if drain.least.saturating_sub(path.base) <= path.threshold() / 2 {
            self.window.set(path.product().unwrap_or(0.0) + path.allowance(), self.mtu);
            self.cruise(now);
        } else if self.raised.is_some_and(|raised| raised.is_fresh(now)) {
            self.rate.set(rate.max(path.rate.unwrap_or(0)));
            self.compete(&self.path(now));
        } else {
            self.raised = Some(Raised { at: now, to: drain.least, from: path.base });
            self.base.set(now, drain.least);
            self.rate.set(rate.max(path.rate.unwrap_or(0)));
            self.cruise(now);
            self.phase = Phase::StartUp;
        }
    }

    fn compete(&mut self, path: &Path) {
        if let Some(raised) = self.raised.take() {
            self.base.set(path.now, raised.from.min(path.base));
        }
        let path = self.path(path.now);
        let full = path.rate.unwrap_or(0) as f64 * (path.base + path.queue).as_secs_f64();
        let peak = self.window.bytes().max(full / 2.0);
        self.phase = Phase::Compete(Compete::new(path.now, peak, path.queue), None);
        self.drained = path.now;
    }

    /// More than a link's own loss: a policer, or a queue too short to be felt.
    fn judge_loss(&mut self, now: Duration) {
        let Some(passed) = self.loss.poll(now, self.rtt.smoothed()) else { return };
        if !self.is_limited(now) || matches!(self.phase, Phase::Compete(..)) {
            return;
        }
        if passed.lost >= DROPPER {
            self.dropped = Some(now);
            self.rate.set(passed.rate);
            self.window.set(passed.rate as f64 * self.rtt.smoothed().as_secs_f64() * FLOOR, self.mtu);
            if matches!(self.phase, Phase::StartUp) {
                self.cruise(now);
            }
        } else if self.is_cautious(now) {
            self.rate.set(passed.rate);
        }
    }

    /// Whether somebody drops what exceeds a rate, so that bursts tell nothing.
    fn is_cautious(&self, now: Duration) -> bool {
        self.dropped.is_some_and(|at| now.saturating_sub(at) < CAUTION)
    }
}

impl Controller for Copa {
    fn on_packet_sent(&mut self, now: Instant, bytes: u16, _: u64) {
        let now = self.since(now);
        self.in_flight += u64::from(bytes);
        self.shared.set_in_flight(self.in_flight);
        // A sender that was idle is not held by what it once began to look at.
        if let Phase::Drain(drain) = self.phase
            && now >= drain.until + self.rtt.smoothed()
        {
            self.cruise(now);
        }
    }

    fn on_cwnd_limited(&mut self) {
        self.limited = Some(self.now);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, _: u64, _: bool, _: &RttEstimator) {
        self.since(now);
        let sent = sent.saturating_duration_since(self.zero);
        match &mut self.batch {
            Some(batch) => batch.add(sent, bytes),
            None => self.batch = Some(Batch::new(sent, bytes)),
        }
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

    fn on_packet_lost(&mut self, bytes: u16, _: u64, now: Instant) {
        self.since(now);
        self.in_flight = self.in_flight.saturating_sub(bytes.into());
        self.loss.on_lost();
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
            self.window.set(self.window.bytes() * if is_persistent { 0.5 } else { 0.8 }, self.mtu);
            if let Some(rate) = self.rate.rate().filter(|_| is_persistent) {
                self.rate.set(rate / 2);
            }
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

/// The window's floor in bandwidth-delay products: rates are measured a few percent too high.
const FLOOR: f64 = 0.95;

/// The queue is emptied this often, so that the base is seen.
const DIP_INTERVAL: Duration = Duration::from_millis(2500);

/// How often a competitor looks whether it is alone.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// A share of losses that is not the link's own.
const DROPPER: f64 = 0.12;

/// How long growth stays slow after a dropper was met.
const CAUTION: Duration = Duration::from_secs(10);
