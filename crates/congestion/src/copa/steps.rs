//! What the controller does at each acknowledgement: measures, then takes a step in its phase.
//!
//! It knows no trait and no clock. Invariant: every phase ends by itself, or when the sender has been idle.

use std::time::Duration;

use super::Copa;
use crate::ack::Batch;
use crate::compete::Compete;
use crate::phase::{Drain, Phase, Raised};
use crate::train::Limit;
use crate::window::Path;

impl Copa {
    pub(super) fn measure(&mut self, now: Duration, batch: Batch) {
        let limited = self.is_limited(now);
        if batch.newest >= self.newest {
            self.newest = batch.newest;
            let rtt = now.saturating_sub(batch.newest);
            self.rtt.on_sample(now, rtt, batch.packets < 2);
            let alone = matches!(self.phase, Phase::StartUp | Phase::Cruise) && !self.has_rival(now);
            self.base.on_sample(now, rtt, alone && !limited);
            if let Phase::Drain(drain) | Phase::Compete(_, Some(drain)) = &mut self.phase {
                drain.on_batch(now, batch, rtt);
            }
        }
        let path = self.path(now);
        self.rate.on_batch(now, batch, &self.rtt, limited && path.queue > path.threshold());
        self.loss.on_acked(batch.packets, batch.bytes);
    }

    /// One step of the phase.
    pub(super) fn step(&mut self, now: Duration, acked: u64) {
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
                    let most = self.window.bytes() * 2.0;
                    self.window.set((product + path.allowance()).min(most), self.mtu);
                    self.cruise(now);
                }
            }
            Phase::Cruise => {
                if self.window.own(&path) > path.allowance() / 2.0 {
                    // Where a queue can be felt there is no need for caution.
                    self.dropped = None;
                }
                let eager = !self.is_cautious(now);
                self.window.steer(&path, acked, limited, eager);
                if !limited {
                    self.keep_floor(&path);
                }
                self.watch(&path, limited);
            }
            Phase::Drain(drain) => {
                let drain = *drain;
                if drain.is_over(now) {
                    self.conclude(&path, drain);
                }
            }
            Phase::Compete(compete, check) => {
                let check = *check;
                compete.on_ack(&path, acked, limited);
                let due = compete.is_due(now, self.drained);
                self.rival = Some(now);
                self.look_for_rival(&path, check, due);
            }
        }
    }

    /// One step beside a rival: now and then, whether it is still there.
    fn look_for_rival(&mut self, path: &Path, check: Option<Drain>, due: bool) {
        let now = path.now;
        match check {
            Some(drain) if now >= drain.until => {
                self.drained = now;
                if drain.least.saturating_sub(path.base) <= path.threshold() / 2 {
                    self.window.set(path.product().unwrap_or(0.0) + path.allowance(), self.mtu);
                    self.cruise(now);
                } else {
                    self.set_check(None);
                }
            }
            None if due => {
                let cap = path.product().unwrap_or(0.0) / 2.0;
                let until = now + path.queue + path.base * 3 / 2;
                self.set_check(Some(Drain::new(now, until, cap, self.in_flight, &self.rtt)));
            }
            _ => {}
        }
    }

    fn set_check(&mut self, to: Option<Drain>) {
        if let Phase::Compete(_, check) = &mut self.phase {
            *check = to;
        }
    }

    /// A sender begins after a pause: it is not held by what it had begun to look at, and its rate is still there.
    pub(super) fn leave_idle(&mut self, now: Duration) {
        if !matches!(self.phase, Phase::StartUp) {
            self.cruise(now);
            self.keep_floor(&self.path(now));
        }
    }

    /// The bottleneck has marked packets, or nothing at all came through.
    pub(super) fn step_back(&mut self, now: Duration, sent: Duration, is_persistent: bool) {
        if sent < self.stepped_back {
            return;
        }
        self.stepped_back = now;
        self.window.set(self.window.bytes() * if is_persistent { 0.5 } else { 0.8 }, self.mtu);
        if let Some(rate) = self.rate.rate().filter(|_| is_persistent) {
            self.rate.set(rate / 2);
        }
        if is_persistent {
            // Who comes back from an outage may be on another network.
            self.cruise(now);
            self.phase = Phase::StartUp;
        } else if matches!(self.phase, Phase::StartUp) {
            self.cruise(now);
        }
    }

    fn has_rival(&self, now: Duration) -> bool {
        self.rival.is_some_and(|at| now.saturating_sub(at) < RIVAL_MEMORY)
    }

    pub(super) fn cruise(&mut self, now: Duration) {
        self.rtt.skip_round();
        self.phase = Phase::Cruise;
        self.window.wait(now + self.base.get().unwrap_or_default() * 3 / 2);
        self.standing = None;
        self.drained = now;
    }

    /// What the bottleneck takes anyway may be on its way at once, also from an idle sender.
    pub(super) fn keep_floor(&mut self, path: &Path) {
        if let Some(product) = path.product().filter(|_| path.queue <= path.threshold())
            && !self.is_cautious(path.now)
        {
            self.window.raise(product + path.allowance());
        }
    }

    /// Looks for queues that should not be there.
    fn watch(&mut self, path: &Path, limited: bool) {
        let now = path.now;
        if let Some(raised) = self.raised.filter(|it| path.base < it.middle()) {
            // Jitter lowers it too, but loses nothing.
            if raised.is_fresh(now) && self.lost.is_some_and(|at| at >= raised.at) {
                self.compete(path);
                return;
            }
            self.raised = None;
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
                if self.has_rival(now) {
                    self.compete(path);
                    return;
                }
                let pending = path.time(self.in_flight, path.rate.unwrap_or(1));
                let time = pending.max(path.queue) + path.base * 3 / 2;
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
        self.rtt.skip_round();
        let drain = Drain::new(self.now, until, cap, self.in_flight, &self.rtt);
        self.phase = Phase::Drain(Drain { rate, queue: self.path(self.now).queue, ..drain });
    }

    fn conclude(&mut self, path: &Path, drain: Drain) {
        let now = path.now;
        self.base.on_sample(now, drain.least, !self.has_rival(now));
        let left = drain.least.saturating_sub(path.base);
        let Some(rate) = drain.rate else {
            self.cruise(now);
            return;
        };
        if left <= path.threshold().max(drain.queue * 2 / 5) {
            // Two packets on a slow line take their time too.
            let packets = path.rate.map_or(Duration::ZERO, |rate| path.time(2 * path.mtu, rate));
            if left <= (drain.queue / 8).max(packets.min(drain.queue / 3)) {
                self.rate.forget_line();
            }
            self.window.set(drain.share() * path.base.as_secs_f64() + path.allowance(), self.mtu);
            self.cruise(now);
        } else if drain.is_inconclusive(path.base) {
            let pending = path.time(self.in_flight, drain.share() as u64);
            let cap = drain.share() * path.base.as_secs_f64() / 2.0;
            let second = Drain::new(now, now + pending + path.base * 3 / 2, cap, self.in_flight, &self.rtt);
            self.phase = Phase::Drain(Drain { rate: drain.rate, queue: drain.queue, again: true, ..second });
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
        let line = path.line.unwrap_or(0) as f64;
        let full = line * (path.base + path.queue).as_secs_f64();
        let peak = self.window.bytes().max(full / 2.0);
        self.rival = Some(path.now);
        self.phase = Phase::Compete(Compete::new(path.now, peak, path.queue, line), None);
        self.drained = path.now;
    }

    /// More than a link's own loss: a policer, or a queue too short to be felt.
    pub(super) fn judge_loss(&mut self, now: Duration) {
        let Some(passed) = self.loss.poll(now, self.rtt.smoothed()) else { return };
        if !self.is_limited(now) || matches!(self.phase, Phase::Compete(..)) {
            return;
        }
        if passed.lost >= DROPPER {
            self.dropped = Some(now);
            self.rate.set(passed.rate);
            self.window.set(passed.rate as f64 * self.rtt.smoothed().as_secs_f64() * BELOW, self.mtu);
            if matches!(self.phase, Phase::StartUp) {
                self.cruise(now);
            }
        } else if self.is_cautious(now) {
            self.rate.set(passed.rate);
        }
    }

    /// Whether somebody drops what exceeds a rate, so that bursts tell nothing.
    pub(super) fn is_cautious(&self, now: Duration) -> bool {
        self.dropped.is_some_and(|at| now.saturating_sub(at) < CAUTION)
    }
}

/// What a dropper's bucket needs to fill again: 5.2 % dropped, with 0.95 6.5 %.
const BELOW: f64 = 0.9;

/// The queue is emptied this often, so that the base is seen.
const DIP_INTERVAL: Duration = Duration::from_millis(2500);

/// How long somebody who filled the queue is expected back.
const RIVAL_MEMORY: Duration = Duration::from_secs(15);

/// A share of losses that is not the link's own.
const DROPPER: f64 = 0.12;

/// How long growth stays slow after a dropper was met.
const CAUTION: Duration = Duration::from_secs(10);
