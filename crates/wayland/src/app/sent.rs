//! What has left of one surface, and what the display side owes for it.
//!
//! Units by their numbers, when they left, and what may still be made of the last of them. Knows no content. Invariant:
//! a unit is replaced only while nothing builds on it.

use std::collections::VecDeque;
use std::time::Duration;

use wayferry_proto::{Time, UpdateSeq};

use super::frames::MAX_FRAMES;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Sent {
    units: u64,
    /// Units that the display side has not applied yet, the oldest first, and when they left.
    unapplied: VecDeque<(u64, Time)>,
    /// The newest unit that the display side has applied.
    applied: u64,
    /// The last unit that another one cannot stand for.
    binding: u64,
    /// The ticks in whose intervals the last unit of a commit left, and the last one that made content better.
    last_commit: Option<Time>,
    last_better: Option<Time>,
    /// Content that left with the last unit, children's included.
    bytes: u64,
    /// The update of the last unit, while a newer commit may replace both.
    last: Option<UpdateSeq>,
    /// What is under way was lost in an outage.
    lost: Option<Lost>,
    /// How many units in succession were replaced; the display side holds them all until the newest comes.
    replaced: u32,
    /// An update that makes better what is shown, and that no unit has named yet.
    owed: Option<UpdateSeq>,
    /// Presentation feedback by unit number.
    feedback: Vec<(u64, u32)>,
}

/// When a commit may replace what was lost.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lost {
    /// Until then the program is waited for, which may draw something newer than what waits.
    pub(super) from: Time,
    /// After that most of it has been sent again.
    pub(super) until: Time,
}

impl Sent {
    /// A unit of a commit leaves in the interval of this tick; gives its number.
    pub(super) fn next_unit(&mut self, now: Time, tick: Time) -> u64 {
        self.units += 1;
        if self.unapplied.len() < MAX_UNAPPLIED {
            self.unapplied.push_back((self.units, now));
        }
        self.last_commit = Some(tick);
        self.units
    }

    /// Another unit cannot stand for the last one: it does more than to show newer content, or is shown with those of
    /// other surfaces, or something builds on it.
    pub(super) fn bind(&mut self) {
        self.binding = self.units;
    }

    /// The same of the one that is being made.
    pub(super) fn bind_coming(&mut self) {
        self.binding = self.units + 1;
    }

    /// Whether a unit with all that is new can stand for all that are under way.
    pub(super) fn are_replaceable(&self) -> bool {
        self.applied >= self.binding
    }

    /// The number of the next unit.
    pub(super) fn coming_unit(&self) -> u64 {
        self.units + 1
    }

    /// A unit leaves that no commit asked for, which the next commit does not keep its distance from; gives its number.
    pub(super) fn next_bare_unit(&mut self, tick: Time) -> u64 {
        self.units += 1;
        self.last_better = Some(tick);
        self.units
    }

    /// The next commit need not keep its distance from the last one.
    pub(super) fn forget_pace(&mut self) {
        self.last_commit = None;
    }

    /// The tick in whose interval the last unit of a commit left.
    pub(super) fn last_commit(&self) -> Option<Time> {
        self.last_commit
    }

    /// The same of any unit.
    pub(super) fn last_unit(&self) -> Option<Time> {
        self.last_commit.max(self.last_better)
    }

    /// Whether as many units are on their way as may be.
    pub(super) fn is_far_ahead(&self) -> bool {
        self.unapplied.len() >= MAX_UNAPPLIED
    }

    /// The display side has applied a unit, and so all before it.
    pub(super) fn on_applied(&mut self, unit: u64) {
        self.applied = self.applied.max(unit);
        self.lost = None;
        while self.unapplied.front().is_some_and(|(number, _)| *number <= unit) {
            self.unapplied.pop_front();
        }
    }

    /// When the oldest unit left that the display side has not applied.
    pub(super) fn oldest(&self) -> Option<Time> {
        self.unapplied.front().map(|(_, left)| *left)
    }

    /// For how long the display side has not applied what left.
    pub(super) fn silence(&self, now: Time) -> Duration {
        self.oldest().map_or(Duration::ZERO, |left| now.since(left))
    }

    /// Content that left with the last unit, children's included.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn set_bytes(&mut self, bytes: u64) {
        self.bytes = bytes;
    }

    /// The update of the last unit, while a newer commit may replace both.
    pub(super) fn set_last(&mut self, last: Option<UpdateSeq>) {
        self.last = last;
    }

    #[cfg(all(test, feature = "video"))]
    pub(super) fn last(&self) -> Option<UpdateSeq> {
        self.last
    }

    /// Whether a newer commit may replace the last unit.
    pub(super) fn may_be_replaced(&self) -> bool {
        self.last.is_some() && self.replaced < MAX_REPLACED
    }

    /// What is under way was lost in an outage.
    pub(super) fn lose(&mut self, lost: Lost) {
        self.lost = Some(lost);
    }

    /// When a commit may replace what was lost.
    pub(super) fn lost(&self, now: Time) -> Option<Lost> {
        self.lost.filter(|lost| now <= lost.until)
    }

    /// The program has committed new content.
    pub(super) fn note_drawn(&mut self, now: Time) {
        self.lost = self.lost.map(|lost| Lost { from: lost.from.min(now), ..lost });
    }

    /// What was lost is replaced, or comes after all.
    pub(super) fn forget_lost(&mut self) {
        self.lost = None;
    }

    /// The update that is to be replaced.
    pub(super) fn take_last(&mut self) -> Option<UpdateSeq> {
        self.last.take()
    }

    /// The last unit was replaced by a newer one, or was not.
    pub(super) fn note_replaced(&mut self, replaced: bool) {
        self.replaced = if replaced { self.replaced + 1 } else { 0 };
    }

    /// An update has left that makes better what is shown: a unit is to name it.
    pub(super) fn owe(&mut self, update: UpdateSeq) {
        (self.last, self.owed) = (None, Some(update));
    }

    /// Whether a unit is to name such an update.
    pub(super) fn owes(&self) -> bool {
        self.owed.is_some()
    }

    /// A unit names it, or a newer content.
    pub(super) fn take_owed(&mut self) -> Option<UpdateSeq> {
        self.owed.take()
    }

    /// Presentation feedback that a unit owes.
    pub(super) fn add_feedback(&mut self, unit: u64, feedback: Vec<u32>) {
        self.feedback.extend(feedback.into_iter().map(|feedback| (unit, feedback)));
    }

    /// Whether any is owed.
    pub(super) fn owes_feedback(&self) -> bool {
        !self.feedback.is_empty()
    }

    /// The oldest that a unit owes, if that are too many.
    pub(super) fn excess_feedback(&mut self) -> Option<u32> {
        (self.feedback.len() > MAX_FRAMES).then(|| self.feedback.remove(0).1)
    }

    /// What is told of a unit: the feedback that it and those before it owe.
    pub(super) fn take_feedback(&mut self, unit: u64) -> Vec<(u64, u32)> {
        let feedback = std::mem::take(&mut self.feedback);
        let (answered, waiting) = feedback.into_iter().partition(|(number, _)| *number <= unit);
        self.feedback = waiting;
        answered
    }

    /// The display is gone. Gives the feedback that it owes.
    pub(super) fn part(&mut self) -> Vec<u32> {
        std::mem::take(self).feedback.into_iter().map(|(_, id)| id).collect()
    }
}

/// Units of one surface that may be on their way; later commits fold into one that waits here. The display side holds
/// them all until their pixels come. Of all surfaces of a program together there is a bound in `under_way`.
const MAX_UNAPPLIED: usize = 64;

/// Units in succession that are replaced: the display side holds them until the link has taken the newest update, and
/// what it holds is bounded. Later commits fold into one that waits here.
const MAX_REPLACED: u32 = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_replaced_while_nothing_builds_on_it_and_not_for_ever() {
        let mut sent = Sent::default();
        assert!(!sent.may_be_replaced());
        for update in 1..=u64::from(MAX_REPLACED) {
            sent.set_last(Some(UpdateSeq(update)));
            assert!(sent.may_be_replaced());
            assert_eq!(sent.take_last(), Some(UpdateSeq(update)));
            sent.note_replaced(true);
        }
        sent.set_last(Some(UpdateSeq(99)));
        assert!(!sent.may_be_replaced(), "the display side holds them all");
        sent.note_replaced(false);
        assert!(sent.may_be_replaced());
        sent.owe(UpdateSeq(100));
        assert!(!sent.may_be_replaced() && sent.owes(), "what makes it better builds on it");
    }

    #[test]
    fn feedback_is_told_once_with_the_unit_that_it_is_for_or_a_later_one() {
        let mut sent = Sent::default();
        sent.add_feedback(1, vec![10]);
        sent.add_feedback(2, vec![20, 21]);
        sent.add_feedback(4, vec![40]);
        assert_eq!(sent.take_feedback(2), [(1, 10), (2, 20), (2, 21)]);
        assert_eq!((sent.take_feedback(3), sent.part()), (vec![], vec![40]));
    }

    #[test]
    fn units_are_applied_in_order_and_few_are_on_their_way() {
        let (mut sent, tick) = (Sent::default(), Time::ZERO);
        for unit in 1..=MAX_UNAPPLIED as u64 {
            assert!(!sent.is_far_ahead());
            assert_eq!(sent.next_unit(Time::from_millis(unit), tick), unit);
        }
        assert!(sent.is_far_ahead());
        sent.on_applied(10);
        assert_eq!(sent.oldest(), Some(Time::from_millis(11)));
        assert_eq!(sent.silence(Time::from_millis(15)), Duration::from_millis(4));
        assert_eq!(sent.next_bare_unit(Time::from_millis(7)), MAX_UNAPPLIED as u64 + 1);
        assert_eq!((sent.last_commit(), sent.last_unit()), (Some(tick), Some(Time::from_millis(7))));
    }
}
