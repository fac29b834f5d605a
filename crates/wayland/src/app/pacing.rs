//! How fast commits of a program leave: the beat, what the link takes, and what was handed over beyond that.
//!
//! Order beats pace: what must leave at once is handed over as a debt, and above a bound the program's requests wait.
//! Small content may pass large ones that are on their way, up to a bound, too. Knows no surfaces: which commit is due
//! is decided in `flush`. Invariant: what is on its way, and what is owed, is bounded however many windows a program
//! has.

use std::time::Duration;

use wayferry_proto::Time;

use crate::message::{MAX_AHEAD, WireId};

use super::beat::Beat;
use super::credit::Credit;
use super::flow::Flow;
use super::under_way::UnderWay;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Pacing {
    /// A tick of the [beat](Beat).
    origin: Time,
    /// What is left of the credit that the last flush came with.
    credit: Credit,
    /// The last flush left no budget.
    no_credit: bool,
    /// Content handed over beyond the budget because order demanded it.
    debt: u64,
    /// Content handed over without budget because it is small.
    small_debt: u64,
    /// Messages to the display side.
    flow: Flow,
    /// Units of commits that left and are not applied.
    under_way: UnderWay,
}

/// What bears the cost of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Payer {
    /// The budget, but for so many bytes, which were paid for. There may have been none left: it is a debt of small
    /// commits.
    Credit { paid: u64, debt: bool },
    /// Without budget it takes a place that it had.
    Place,
    /// Order demands it, with any budget.
    Debt,
}

impl Pacing {
    /// The clock that programs draw by, whose ticks are so far apart.
    pub(super) fn beat(&self, period: Duration) -> Beat {
        Beat::new(self.origin, period)
    }

    /// The display wants what it shows to be there at `at`: ticks come nearer to being that much earlier.
    pub(super) fn lean(&mut self, period: Duration, at: Time) {
        // By how much the clocks are compared wrongly, half the round trip is wrong the other way.
        self.origin = self.beat(period).leaning_to(at - self.credit.rtt / 2).origin();
    }

    /// What the link takes now.
    pub(super) fn credit(&self) -> &Credit {
        &self.credit
    }

    /// As [`Self::credit`], to be spent.
    pub(super) fn credit_mut(&mut self) -> &mut Credit {
        &mut self.credit
    }

    /// How many pixels more may be encoded in this turn, of which a slice has so many.
    pub(super) fn room(&self, slice: u64) -> u64 {
        slice.saturating_sub(self.credit.encoded)
    }

    /// There is budget, so what was handed over without is paid. Returns whether requests have waited for that.
    pub(super) fn settle_debts(&mut self) -> bool {
        if self.credit.content == 0 {
            return false;
        }
        self.small_debt = 0;
        std::mem::take(&mut self.debt) > MAX_DEBT
    }

    /// Notes whether there is budget left.
    pub(super) fn look(&mut self) {
        self.no_credit = self.credit.content == 0;
    }

    /// Whether there was none when that was noted last.
    pub(super) fn has_no_credit(&self) -> bool {
        self.no_credit
    }

    /// Whether content must wait for budget. Small content may pass large ones that are on their way: the session sends
    /// it before them, so a typed character does not wait behind a video.
    pub(super) fn waits(&self, is_small: impl FnOnce() -> bool) -> bool {
        self.no_credit && !(self.small_debt <= MAX_SMALL_DEBT && is_small())
    }

    /// Something takes as long as content of that size, and was not asked whether it may.
    pub(super) fn owe(&mut self, bytes: u64) {
        self.debt += bytes;
    }

    /// So much content has left.
    pub(super) fn pay(&mut self, payer: &mut Payer, bytes: u64) {
        match payer {
            Payer::Credit { paid, debt } => {
                let due = bytes.saturating_sub(*paid);
                *paid = paid.saturating_sub(bytes);
                // How far it goes beyond the budget must not hold up the small ones after it.
                self.small_debt += if *debt { due } else { 0 };
                self.credit.spend(due);
            }
            Payer::Place => {}
            Payer::Debt => {
                self.debt += bytes;
                self.credit.spend(bytes);
            }
        }
    }

    /// Whether too much of what requests brought is on its way: further ones wait.
    pub(super) fn is_overrun(&self) -> bool {
        self.debt > MAX_DEBT || self.flow.is_ahead(MAX_AHEAD)
    }

    /// A message leaves.
    pub(super) fn send(&mut self, bytes: &[u8]) {
        self.flow.send(bytes);
    }

    /// See [`Flow::on_consumed`].
    pub(super) fn on_consumed(&mut self, bytes: u64) -> Result<(), String> {
        self.flow.on_consumed(bytes)
    }

    /// About how far apart a surface's units are at least, if that is more than a period: while nothing that left is
    /// applied, which is so since `silence`, and nothing else is heard. When the link is back, fewer old pictures are
    /// on their way then.
    pub(super) fn pace(&self, now: Time, silence: Duration) -> Duration {
        let heard = self.credit.heard.map_or(Duration::MAX, |heard| now.since(heard));
        let silence = silence.min(heard);
        let late = silence > self.credit.rtt + LATE;
        let longest = if silence < SILENT { LATE_PERIOD } else { SILENT_PERIOD };
        if late { (silence / 4).min(longest) } else { Duration::ZERO }
    }

    /// The units that left and are not applied.
    pub(super) fn under_way(&self) -> &UnderWay {
        &self.under_way
    }

    /// A unit leaves, with so much content.
    pub(super) fn leave(&mut self, surface: WireId, unit: u64, bytes: u64) {
        self.under_way.add(surface, unit, bytes);
    }

    /// The display side has applied a unit, and so all of the surface before it.
    pub(super) fn on_applied(&mut self, surface: WireId, unit: u64) {
        self.under_way.applied(surface, unit);
    }

    /// The content of a surface's units does not arrive, another's does.
    pub(super) fn give_up(&mut self, surface: WireId) {
        self.under_way.give_up(surface);
    }

    /// The surface is destroyed: its units are never applied.
    pub(super) fn forget(&mut self, surface: WireId) {
        self.under_way.forget(surface);
    }

    /// The display is gone, and with it what was on its way there.
    pub(super) fn part(&mut self) {
        let Self { origin, credit, .. } = *self;
        *self = Self { origin, credit, ..Self::default() };
    }

    /// Content handed over without budget because it is small.
    #[cfg(test)]
    pub(super) fn small_debt(&self) -> u64 {
        self.small_debt
    }

    /// Bytes of messages that were sent so far.
    #[cfg(test)]
    pub(super) fn sent(&self) -> u64 {
        self.flow.sent()
    }
}

/// Content handed over beyond the budget because order demanded it; above this the program's requests wait.
const MAX_DEBT: u64 = 4 << 20;
/// Small content that may be handed over while there is no budget at all.
const MAX_SMALL_DEBT: u64 = 256 << 10;

/// A unit that is not applied for so much longer than a round trip is late: the link may be silent.
const LATE: Duration = Duration::from_millis(100);
/// Then commits leave only so often, until the display side is heard again.
const LATE_PERIOD: Duration = Duration::from_millis(50);
/// After so much silence they leave less often still. No earlier: a display that has just come is late, too, and should
/// not wait.
const SILENT: Duration = Duration::from_secs(1);
const SILENT_PERIOD: Duration = Duration::from_millis(250);

#[cfg(test)]
mod tests {
    use super::*;

    fn lend(pacing: &mut Pacing, content: u64) {
        *pacing.credit_mut() = Credit { content, ..Credit::default() };
        pacing.look();
    }

    #[test]
    fn small_content_passes_large_content_until_it_is_much() {
        let mut pacing = Pacing::default();
        lend(&mut pacing, 0);
        assert!(pacing.waits(|| false) && !pacing.waits(|| true));
        let mut payer = Payer::Credit { paid: 0, debt: true };
        pacing.pay(&mut payer, MAX_SMALL_DEBT + 1);
        assert!(pacing.waits(|| true), "there is a bound");
        lend(&mut pacing, 1);
        assert!(!pacing.settle_debts() && !pacing.waits(|| false), "nothing waited for it but content");
        lend(&mut pacing, 0);
        assert!(!pacing.waits(|| true));
    }

    #[test]
    fn what_was_replaced_has_paid_for_what_comes_in_its_place() {
        let mut pacing = Pacing::default();
        lend(&mut pacing, 1000);
        let mut payer = Payer::Credit { paid: 300, debt: false };
        pacing.pay(&mut payer, 200);
        pacing.pay(&mut payer, 200);
        assert_eq!((pacing.credit().content, pacing.small_debt()), (900, 0));
        pacing.pay(&mut Payer::Place, 500);
        assert_eq!(pacing.credit().content, 900);
    }

    #[test]
    fn requests_wait_for_budget_once_order_has_demanded_much() {
        let mut pacing = Pacing::default();
        lend(&mut pacing, 0);
        pacing.pay(&mut Payer::Debt, MAX_DEBT);
        assert!(!pacing.is_overrun());
        pacing.owe(1);
        assert!(pacing.is_overrun() && !pacing.settle_debts(), "there is no budget");
        lend(&mut pacing, 1);
        assert!(pacing.settle_debts() && !pacing.is_overrun());
    }

    #[test]
    fn commits_leave_less_often_the_longer_nothing_is_heard() {
        let mut pacing = Pacing::default();
        let (now, ms) = (Time::from_millis(60_000), Duration::from_millis);
        let paces = [0, 100, 101, 400, 999, 1000, 60_000].map(|silence| pacing.pace(now, ms(silence)));
        assert_eq!(paces, [ms(0), ms(0), ms(101) / 4, ms(50), ms(50), ms(250), ms(250)]);
        pacing.credit_mut().heard = Some(now);
        assert_eq!(pacing.pace(now, ms(60_000)), ms(0), "something else is heard");
    }

    #[test]
    fn with_the_display_goes_what_was_on_its_way_there() {
        let mut pacing = Pacing::default();
        lend(&mut pacing, 7);
        pacing.owe(MAX_DEBT + 1);
        pacing.send(&[0; 9]);
        pacing.leave(WireId(4), 1, 100);
        pacing.part();
        assert!(!pacing.is_overrun() && pacing.sent() == 0 && !pacing.under_way().is_full());
        assert_eq!(pacing.credit().content, 7);
    }
}
