//! When predictions are drawn: where the answer to a key takes long.
//!
//! On above a round trip of [`FAR`], off below [`NEAR`]; on also from an answer that took longer than [`LATE`], until
//! [`QUICK`] in succession did not, so that a lossy link counts as far. It knows neither keys nor pictures. Invariant:
//! while keys are outstanding nothing that is drawn is taken back, and what is never drawn stays so.

use std::time::Duration;

/// What the user wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Predict {
    /// Predictions are drawn where the answer takes long.
    #[default]
    Auto,
    /// Nothing is predicted, nor learned.
    Never,
    /// Predictions are drawn on any link.
    Always,
}

impl Predict {
    /// As users write it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Never => "never",
            Self::Always => "always",
        }
    }
}

/// How a picture is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Marking {
    /// Only letters that are not known.
    Plain,
    /// A line under letters that are not confirmed.
    Lined,
    /// The same, and in a colour: the answer is missing for long.
    Overdue,
}

/// Whether, and how, predictions are drawn now.
#[derive(Clone, Debug, Default)]
pub(crate) struct When {
    wish: Predict,
    rtt: Duration,
    is_far: bool,
    is_lined: bool,
    /// Quick answers that are missing since the last late one.
    missing: u32,
    is_on: bool,
}

impl When {
    pub(crate) fn new(wish: Predict) -> Self {
        Self { wish, is_on: wish == Predict::Always, ..Self::default() }
    }

    /// The user wants this from now on.
    pub(crate) fn wish(&mut self, wish: Predict) {
        self.wish = wish;
    }

    /// Whether keys and contents are looked at at all.
    pub(crate) fn learns(&self) -> bool {
        self.wish != Predict::Never
    }

    /// Whether predictions are drawn.
    pub(crate) fn draws(&self) -> bool {
        self.is_on
    }

    /// The smoothed round trip is this now.
    pub(crate) fn measured(&mut self, rtt: Duration) {
        self.rtt = rtt;
        self.is_far = rtt > FAR || (self.is_far && rtt >= NEAR);
        self.is_lined = rtt > LINED || (self.is_lined && rtt >= UNLINED);
    }

    /// A key was answered so long after it was pressed.
    pub(crate) fn answered(&mut self, after: Duration) {
        self.missing = if after > LATE { QUICK } else { self.missing.saturating_sub(1) };
    }

    /// The oldest outstanding key, if any, was pressed so long ago: decides anew.
    pub(crate) fn decide(&mut self, oldest: Option<Duration>) {
        if oldest.is_some_and(|age| age > LATE) {
            self.missing = QUICK;
        }
        let is_wanted = self.is_far || self.missing > 0;
        self.is_on = match self.wish {
            Predict::Auto => is_wanted || (self.is_on && oldest.is_some()),
            Predict::Never => false,
            Predict::Always => true,
        };
    }

    /// How a picture is marked whose oldest key was pressed so long ago.
    pub(crate) fn marking(&self, age: Duration) -> Marking {
        if age > OVERDUE {
            Marking::Overdue
        } else if self.is_lined || age > LATE {
            Marking::Lined
        } else {
            Marking::Plain
        }
    }

    /// The ages of a key that make a difference: beyond the bounds, not at them.
    pub(crate) fn ages() -> impl Iterator<Item = Duration> {
        [LATE, OVERDUE].into_iter().map(|bound| bound + Duration::from_millis(1))
    }
}

/// The smoothed round trip above which predictions are drawn, and below which not any more.
const FAR: Duration = Duration::from_millis(60);
const NEAR: Duration = Duration::from_millis(40);

/// The same for the line under letters that are not confirmed.
const LINED: Duration = Duration::from_millis(80);
const UNLINED: Duration = Duration::from_millis(50);

/// An answer is late after this, and a letter without one is marked.
const LATE: Duration = Duration::from_millis(250);

/// Answers in succession that are not late, after which the link is taken to be quick again.
const QUICK: u32 = 10;

/// A letter without an answer is marked in a colour after this.
const OVERDUE: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn a_far_link_is_predicted_and_a_near_one_not_with_room_between() {
        let mut when = When::new(Predict::Auto);
        let mut draws = |rtt| {
            when.measured(ms(rtt));
            when.decide(None);
            when.draws()
        };
        let seen = [50, 60, 61, 50, 40, 39, 50, 61].map(&mut draws);
        assert_eq!(seen, [false, false, true, true, true, false, false, true]);
    }

    #[test]
    fn a_late_answer_is_enough_until_ten_are_quick() {
        let mut when = When::new(Predict::Auto);
        when.measured(ms(5));
        when.answered(ms(251));
        for _ in 0..10 {
            when.decide(None);
            assert!(when.draws());
            when.answered(ms(6));
        }
        when.decide(None);
        assert!(!when.draws());
        when.decide(Some(ms(251)));
        assert!(when.draws(), "the answer need not have come");
    }

    #[test]
    fn marks_come_with_the_distance_and_with_age() {
        let mut when = When::new(Predict::Auto);
        when.measured(ms(70));
        assert_eq!([0, 250, 251, 5000, 5001].map(|age| when.marking(ms(age))), {
            use Marking::{Lined, Overdue, Plain};
            [Plain, Plain, Lined, Lined, Overdue]
        });
        when.measured(ms(81));
        assert_eq!(when.marking(ms(0)), Marking::Lined);
        when.measured(ms(50));
        assert_eq!(when.marking(ms(0)), Marking::Lined);
        when.measured(ms(49));
        assert_eq!(when.marking(ms(0)), Marking::Plain);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Rtt(u64),
        Answer(u64),
        Decide(Option<u64>),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0u64..400).prop_map(Step::Rtt),
            (0u64..400).prop_map(Step::Answer),
            proptest::option::of(0u64..400).prop_map(Step::Decide),
        ]
    }

    proptest! {
        #[test]
        fn the_user_has_the_last_word_and_nothing_flickers(
            steps in proptest::collection::vec(step(), 0..60),
        ) {
            let mut all = [Predict::Auto, Predict::Never, Predict::Always].map(When::new);
            for step in steps {
                let before = all[0].draws();
                for when in &mut all {
                    match step {
                        Step::Rtt(rtt) => when.measured(ms(rtt)),
                        Step::Answer(after) => when.answered(ms(after)),
                        Step::Decide(oldest) => when.decide(oldest.map(ms)),
                    }
                }
                prop_assert!(!all[1].draws() && !all[1].learns());
                prop_assert!(all[2].draws());
                if let Step::Decide(oldest) = step {
                    prop_assert!(all[0].draws() || !before || oldest.is_none(), "taken back while a key is outstanding");
                } else {
                    prop_assert_eq!(all[0].draws(), before, "decided without being asked");
                }
            }
        }

        #[test]
        fn a_link_that_is_near_and_quick_ends_it(
            steps in proptest::collection::vec(step(), 0..60),
        ) {
            let mut when = When::new(Predict::Auto);
            for step in steps {
                match step {
                    Step::Rtt(rtt) => when.measured(ms(rtt)),
                    Step::Answer(after) => when.answered(ms(after)),
                    Step::Decide(oldest) => when.decide(oldest.map(ms)),
                }
            }
            when.measured(ms(39));
            (0..QUICK).for_each(|_| when.answered(LATE));
            when.decide(None);
            prop_assert!(!when.draws());
        }
    }
}
