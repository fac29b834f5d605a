//! Where the user types, and what is predicted there.
//!
//! Keys and contents go in, the picture that is wanted over the surface comes out; nothing is drawn here. All of it is
//! of one stay of the keyboard in one window, and is forgotten with that. Invariant: only the surface that answers keys
//! is predicted, and what is typed is kept no longer than until it is answered.

use std::collections::VecDeque;
use std::time::Duration;

use wayferry_echo::{Answered, Echo, Figures, Key, KeyId, MAX_OUTSTANDING, Overlay, Purpose, Show};
use wayferry_pixels::{Content, Rect, Region};
use wayferry_proto::Time;

use crate::message::WireId;

/// See the module.
pub(crate) struct Typing {
    /// The keyboard whose keys count: a program may have several of one seat.
    pub(crate) keyboard: WireId,
    /// The surface that has the keyboard, and the one of its window that answers keys.
    pub(crate) focus: WireId,
    pub(crate) target: WireId,
    /// Contents of other surfaces of the window that answered keys, since the target did.
    astray: u32,
    /// The last key that the target has answered.
    answered: Option<KeyId>,
    modifiers: u8,
    group: u8,
    echo: Echo,
    /// Keys that are not answered, and when they were pressed.
    pending: VecDeque<(KeyId, Time)>,
    settling: Option<Settling>,
    /// What is to be drawn.
    wanted: Option<Overlay>,
    /// What the predictor's figures were when they were last taken.
    counted: Figures,
}

/// Keys that contents were made after, and when they are late if those did not answer them: a caret that blinks makes
/// one, too.
#[derive(Clone, Copy, Debug)]
struct Settling {
    first: (KeyId, Time),
    last: (KeyId, Time),
}

/// What a content of a surface of the window is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// The target's.
    Target,
    /// Another surface's, which is the target from now on.
    Moved,
    /// Another surface's.
    Other,
}

impl Typing {
    /// The keyboard came to a surface.
    pub(crate) fn new(keyboard: WireId, focus: WireId) -> Self {
        Self {
            keyboard,
            focus,
            target: focus,
            astray: 0,
            answered: None,
            modifiers: 0,
            group: 0,
            echo: Echo::new(),
            pending: VecDeque::new(),
            settling: None,
            wanted: None,
            counted: Figures::default(),
        }
    }

    /// `wl_keyboard.modifiers`: pressed, latched, locked and the layout.
    pub(crate) fn modifiers(&mut self, [pressed, latched, locked, group]: [u32; 4]) {
        // Those beyond the first eight are virtual ones of the keymap.
        [self.modifiers, ..] = (pressed | latched | locked).to_le_bytes();
        [self.group, ..] = group.to_le_bytes();
    }

    /// A key was pressed.
    pub(crate) fn key(&mut self, now: Time, id: KeyId, code: u32) {
        if self.pending.len() == MAX_OUTSTANDING {
            self.pending.pop_front();
        }
        self.pending.push_back((id, now));
        match u16::try_from(code) {
            Ok(code) => {
                let key = Key { code, modifiers: self.modifiers, group: self.group };
                let show = self.echo.key(now.since_start(), id, key);
                self.hear(show);
            }
            Err(_) => self.disturbed(),
        }
    }

    /// Whose content that is, of another surface or of the target, which was made after the program had these keys.
    pub(crate) fn whose(&mut self, surface: WireId, answered: Option<KeyId>) -> Whose {
        if surface == self.target {
            // Another surface may have been shown before it for the same key.
            if answered > self.answered {
                (self.astray, self.answered) = (0, answered);
            }
            return Whose::Target;
        }
        let answers = self.pending.front().is_some_and(|(id, _)| Some(*id) <= answered);
        self.astray += u32::from(answers);
        if self.astray < ASTRAY {
            return Whose::Other;
        }
        self.forget();
        (self.target, self.astray) = (surface, 0);
        Whose::Moved
    }

    /// The target shows this now, different inside of `damage`.
    pub(crate) fn content(&mut self, now: Time, content: &Content, damage: &Region, answered: Option<KeyId>) {
        let show = self.echo.content(now.since_start(), content, damage, Answered(answered));
        self.hear(show);
    }

    /// The program says that its caret is there in what the target shows, or will show.
    pub(crate) fn hint(&mut self, content: &Content, caret: Rect) {
        let show = self.echo.hint(content, caret, Purpose::Normal);
        self.hear(show);
    }

    /// The program had been given these keys when it made what a surface of the window shows now: how long after they
    /// were pressed that is known.
    pub(crate) fn answered(&mut self, now: Time, last: KeyId) -> impl Iterator<Item = Duration> {
        if self.echo.timeout().is_some() {
            let late = (last, now + SETTLES);
            let settling = self.settling.get_or_insert(Settling { first: late, last: late });
            if settling.last.0 < last {
                settling.last = late;
            }
        }
        let count = self.pending.iter().take_while(|(id, _)| *id <= last).count();
        self.pending.drain(..count).map(move |(_, at)| now.since(at))
    }

    /// The program will not answer these keys any more.
    pub(crate) fn late(&mut self, now: Time, last: KeyId) {
        let show = self.echo.late(now.since_start(), last);
        self.hear(show);
    }

    /// Something else than keys came between.
    pub(crate) fn disturbed(&mut self) {
        let show = self.echo.disturbed();
        self.hear(show);
    }

    /// Forgets all that was typed and learned.
    pub(crate) fn forget(&mut self) {
        (self.echo, self.wanted, self.settling) = (Echo::new(), None, None);
        self.counted = Figures::default();
        self.pending.clear();
    }

    /// It is `now`.
    pub(crate) fn passed(&mut self, now: Time) {
        if let Some(Settling { first, last }) = self.settling.take_if(|it| it.first.1 <= now) {
            self.settling = (first.0 < last.0).then_some(Settling { first: last, last });
            self.late(now, first.0);
        }
        if self.echo.timeout().is_some_and(|at| at <= now.since_start()) {
            let show = self.echo.timeout_passed(now.since_start());
            self.hear(show);
        }
    }

    /// When [`Self::passed`] has something to do.
    pub(crate) fn timeout(&self) -> Option<Time> {
        let settled = self.settling.map(|it| it.first.1);
        self.echo.timeout().map(Time::new).into_iter().chain(settled).min()
    }

    /// What has become of keys since the last time.
    pub(crate) fn take_figures(&mut self) -> Figures {
        let now = self.echo.figures();
        let before = std::mem::replace(&mut self.counted, now);
        Figures {
            right: now.right - before.right,
            wrong: now.wrong - before.wrong,
            held: now.held - before.held,
        }
    }

    /// What is to be drawn.
    pub(crate) fn wanted(&self) -> Option<&Overlay> {
        self.wanted.as_ref()
    }

    /// Where it may be, until the next content.
    pub(crate) fn strip(&self) -> Option<Rect> {
        self.echo.strip()
    }

    /// When the oldest key was pressed that is not answered.
    pub(crate) fn oldest(&self) -> Option<Time> {
        self.pending.front().map(|(_, at)| *at)
    }

    fn hear(&mut self, show: Option<Show>) {
        match show {
            Some(Show::Overlay(overlay)) => self.wanted = Some(overlay),
            Some(Show::Clear) => self.wanted = None,
            None => {}
        }
    }
}

/// Contents in succession of another surface that answer keys, after which that one is predicted.
const ASTRAY: u32 = 3;

/// How long after a content a key that it might have answered is waited for. A program that writes nothing for it
/// answers no sooner by waiting longer.
const SETTLES: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    const FOCUS: WireId = WireId(8);
    const CHILD: WireId = WireId(10);

    fn typed(count: u64) -> Typing {
        let mut typing = Typing::new(WireId(4), FOCUS);
        (1..=count).for_each(|id| typing.key(Time::from_millis(id), KeyId(id), 30));
        typing
    }

    #[test]
    fn a_child_that_answers_keys_instead_of_its_window_is_predicted() {
        let mut typing = typed(9);
        let answer = |typing: &mut Typing, surface, id| {
            let whose = typing.whose(surface, Some(KeyId(id)));
            let _ = typing.answered(Time::ZERO, KeyId(id)).count();
            whose
        };
        assert_eq!(answer(&mut typing, CHILD, 1), Whose::Other);
        assert_eq!(answer(&mut typing, CHILD, 2), Whose::Other);
        assert_eq!(answer(&mut typing, FOCUS, 3), Whose::Target);
        assert_eq!([4, 5].map(|id| answer(&mut typing, CHILD, id)), [Whose::Other; 2]);
        assert_eq!(answer(&mut typing, CHILD, 5), Whose::Other, "it answers nothing");
        assert_eq!(answer(&mut typing, CHILD, 6), Whose::Moved);
        assert_eq!(typing.target, CHILD);
    }

    /// A child that is synchronised, or quicker, is shown before the surface that answers every key.
    #[test]
    fn a_child_that_is_shown_before_the_answer_is_not_predicted() {
        let mut typing = typed(9);
        for id in 1..=6 {
            for (surface, whose) in [(CHILD, Whose::Other), (FOCUS, Whose::Target)] {
                assert_eq!(typing.whose(surface, Some(KeyId(id))), whose);
                let _ = typing.answered(Time::ZERO, KeyId(id)).count();
            }
        }
    }

    /// Two contents, neither of which shows its key, within the time that one is waited for.
    #[test]
    fn each_key_that_is_not_shown_settles() {
        let mut typing = typed(3);
        for (id, at) in [(1, 10), (2, 60), (3, 100)] {
            let _ = typing.answered(Time::from_millis(at), KeyId(id)).count();
        }
        for at in [110, 200] {
            assert_eq!(typing.timeout(), Some(Time::from_millis(at)));
            typing.passed(Time::from_millis(at));
        }
        assert_eq!((typing.timeout(), typing.echo.timeout()), (None, None));
    }

    #[test]
    fn keys_without_an_answer_are_bounded() {
        let mut typing = typed(1000);
        assert_eq!(typing.pending.len(), MAX_OUTSTANDING);
        assert_eq!(typing.answered(Time::from_millis(1000), KeyId(u64::MAX)).count(), MAX_OUTSTANDING);
        assert_eq!(typing.oldest(), None);
    }
}
