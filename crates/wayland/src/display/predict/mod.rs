//! Predicted text: what is typed is drawn before the program answers, over its window.
//!
//! The predictor is the crate `echo`; here it is fed and what it says is drawn, on a subsurface of ours (`lay.rs`).
//! Nothing of that is in the program's surfaces, their contents, units and frames, and nothing of it is told to the app
//! side. What was typed and learned is in memory only, of one window, while that has the keyboard. Invariant: a
//! prediction is taken back or confirmed with the commit that shows the truth, not before and not after.

use std::fmt;

use wayferry_echo::Overlay;
use wayferry_proto::Time;

mod count;
mod feed;
mod fields;
mod lay;
mod picture;
mod sheet;
mod typing;
mod when;
mod wishes;

use self::fields::Fields;
use self::sheet::Sheet;
use self::typing::Typing;
pub use self::when::Predict;
use self::when::{Marking, When};
pub use self::wishes::Wishes;

/// What is predicted of one program.
pub(super) struct Predictions {
    when: When,
    typing: Option<Typing>,
    sheet: Option<Sheet>,
    fields: Fields,
    /// When what was due was last done.
    looked: Time,
}

impl Predictions {
    pub(super) fn new(wish: Predict) -> Self {
        Self {
            when: When::new(wish),
            typing: None,
            sheet: None,
            fields: Fields::default(),
            looked: Time::ZERO,
        }
    }

    /// When something is due.
    pub(super) fn next_timeout(&self) -> Option<Time> {
        let typing = self.typing.as_ref()?;
        let ages = |since: Time| When::ages().map(move |age| since + age);
        let drawn = typing.wanted().map(|overlay| Time::new(overlay.since));
        let due = typing.oldest().into_iter().chain(drawn).flat_map(ages).filter(|at| *at > self.looked);
        due.chain(typing.timeout()).min()
    }

    /// Who types, if anything may be predicted of that.
    fn typing(&mut self) -> Option<&mut Typing> {
        let may = self.when.learns() && !self.fields.are_sensitive();
        self.typing.as_mut().filter(|_| may)
    }

    /// Whether predictions are drawn, anew.
    fn decide(&mut self, now: Time) {
        let oldest = self.typing.as_ref().and_then(Typing::oldest);
        self.when.decide(oldest.map(|at| now.since(at)));
    }

    /// What is to be drawn.
    fn wanted(&self, now: Time) -> Option<(&Overlay, Marking)> {
        let overlay = self.typing.as_ref().filter(|_| self.when.draws())?.wanted()?;
        Some((overlay, self.when.marking(now.since(Time::new(overlay.since)))))
    }
}

impl fmt::Debug for Predictions {
    /// Without what was typed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Predictions").field("when", &self.when).finish_non_exhaustive()
    }
}
