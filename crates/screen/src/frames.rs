//! When a frame of the screen is asked for, into which buffer it is copied, and when it is shown. Sans-IO.
//!
//! It knows no Wayland objects: buffers are numbers. Invariant: no buffer is copied into while the session may read it,
//! and a frame is asked for only when the session has asked for one, so a slow link slows the capture and not the
//! screen's programs.

use std::time::{Duration, Instant};

use crate::damage::{Damage, Rect};

/// What is to be done next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Ask the screen's compositor for the next frame that differs from the last.
    Ask,
    /// Have it copied into this buffer.
    Copy(usize),
    /// Show this buffer, of which so much has changed, in buffer pixels.
    Show(usize, Vec<Rect>),
}

/// Where the frame is that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// There is none.
    Nothing,
    /// The compositor has yet to say what the buffer must be like.
    Asked,
    /// It has said so; no buffer was free.
    Described,
    Copying(usize),
    Copied(usize),
}

/// The frames of a screen.
#[derive(Debug)]
pub(crate) struct Frames {
    stage: Stage,
    /// The session wants a frame.
    wanted: bool,
    /// Which buffers the session may read.
    shown: [bool; BUFFERS],
    damage: Damage,
    /// Nothing is asked for before this: the screen has just refused.
    not_before: Option<Instant>,
}

impl Default for Frames {
    /// None is wanted yet.
    fn default() -> Self {
        Self {
            stage: Stage::Nothing,
            wanted: false,
            shown: [false; BUFFERS],
            damage: Damage::default(),
            not_before: None,
        }
    }
}

impl Frames {
    /// The session has room for a frame.
    pub(crate) fn want(&mut self) {
        self.wanted = true;
    }

    /// The compositor has said what the buffer of this frame must be like. `is_new`: unlike all before, which are gone.
    pub(crate) fn described(&mut self, is_new: bool) {
        if is_new {
            self.renewed();
        }
        if self.stage == Stage::Asked {
            self.stage = Stage::Described;
        }
    }

    /// All buffers are new ones.
    pub(crate) fn renewed(&mut self) {
        self.shown = [false; BUFFERS];
    }

    /// A part of the frame differs from the last that was copied.
    pub(crate) fn damaged(&mut self, rect: Rect) {
        self.damage.add(rect);
    }

    /// The frame is in its buffer.
    pub(crate) fn copied(&mut self) {
        if let Stage::Copying(buffer) = self.stage {
            self.stage = Stage::Copied(buffer);
        }
    }

    /// The compositor gives no such frame: the screen has another size now, or is off.
    pub(crate) fn failed(&mut self, now: Instant) {
        self.cancelled();
        self.not_before = Some(now + AGAIN);
    }

    /// The frame under way is none any more.
    pub(crate) fn cancelled(&mut self) {
        self.stage = Stage::Nothing;
        // What had changed by then is not known to be in a later frame's damage.
        self.damage.all();
    }

    /// The session does not read this buffer any more.
    pub(crate) fn released(&mut self, buffer: usize) {
        self.shown[buffer] = false;
    }

    /// Whether a frame is under way at the compositor, which then holds its object.
    pub(crate) fn is_under_way(&self) -> bool {
        matches!(self.stage, Stage::Asked | Stage::Described | Stage::Copying(_))
    }

    /// What to do now; call again until there is nothing.
    pub(crate) fn step(&mut self, now: Instant) -> Option<Step> {
        match self.stage {
            Stage::Nothing if self.wanted && self.not_before.is_none_or(|then| then <= now) => {
                self.not_before = None;
                self.stage = Stage::Asked;
                Some(Step::Ask)
            }
            Stage::Described => {
                let buffer = self.shown.iter().position(|shown| !shown)?;
                self.stage = Stage::Copying(buffer);
                Some(Step::Copy(buffer))
            }
            Stage::Copied(buffer) => {
                self.stage = Stage::Nothing;
                self.wanted = false;
                self.shown[buffer] = true;
                Some(Step::Show(buffer, self.damage.take()))
            }
            _ => None,
        }
    }

    /// When [`Frames::step`] has something to do without being told anything.
    pub(crate) fn timeout(&self) -> Option<Instant> {
        self.not_before.filter(|_| self.wanted && self.stage == Stage::Nothing)
    }
}

/// One that the session shows, one that it was shown, one to copy into.
pub(crate) const BUFFERS: usize = 3;

/// How long after a refusal the next frame is asked for.
const AGAIN: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Input {
        Want,
        Described(bool),
        Damaged,
        Copied,
        Failed,
        Cancelled,
        Released(usize),
        Wait,
    }

    fn inputs() -> impl Strategy<Value = Vec<Input>> {
        let one = prop_oneof![
            Just(Input::Want),
            prop::bool::weighted(0.1).prop_map(Input::Described),
            Just(Input::Damaged),
            Just(Input::Copied),
            Just(Input::Failed),
            Just(Input::Cancelled),
            (0..BUFFERS).prop_map(Input::Released),
            Just(Input::Wait),
        ];
        prop::collection::vec(one, 0..200)
    }

    proptest! {
        #[test]
        fn no_buffer_is_copied_into_that_the_session_may_read(inputs in inputs()) {
            let (mut frames, mut now) = (Frames::default(), Instant::now());
            let (mut shown, mut wanted, mut asked) = ([false; BUFFERS], 0_usize, 0_usize);
            for input in inputs {
                match input {
                    Input::Want => {
                        frames.want();
                        wanted += 1;
                    }
                    Input::Described(is_new) => {
                        frames.described(is_new);
                        if is_new {
                            shown = [false; BUFFERS];
                        }
                    }
                    Input::Damaged => frames.damaged(Rect { x: 1, y: 1, width: 2, height: 2 }),
                    Input::Copied => frames.copied(),
                    Input::Failed => frames.failed(now),
                    Input::Cancelled => frames.cancelled(),
                    Input::Released(buffer) => {
                        frames.released(buffer);
                        shown[buffer] = false;
                    }
                    Input::Wait => now += AGAIN,
                }
                while let Some(step) = frames.step(now) {
                    match step {
                        Step::Ask => asked += 1,
                        Step::Copy(buffer) => prop_assert!(!shown[buffer]),
                        Step::Show(buffer, _) => {
                            prop_assert!(!shown[buffer]);
                            shown[buffer] = true;
                            prop_assert!(wanted > 0);
                            wanted = 0;
                        }
                    }
                }
                prop_assert!(asked == 0 || frames.is_under_way() || frames.step(now).is_none());
            }
        }
    }

    /// A frame that a resize has cut short may have had damage that the next one does not tell again.
    #[test]
    fn after_a_cancelled_frame_all_counts_as_changed() {
        let (mut frames, now) = (Frames::default(), Instant::now());
        frames.want();
        assert_eq!(frames.step(now), Some(Step::Ask));
        frames.described(true);
        assert_eq!(frames.step(now), Some(Step::Copy(0)));
        frames.cancelled();
        assert_eq!(frames.step(now), Some(Step::Ask));
        frames.described(false);
        assert_eq!(frames.step(now), Some(Step::Copy(0)));
        frames.damaged(Rect { x: 5, y: 5, width: 1, height: 1 });
        frames.copied();
        assert_eq!(frames.step(now), Some(Step::Show(0, vec![Rect::ALL])));
    }

    #[test]
    fn a_screen_that_is_off_is_asked_ten_times_a_second_and_no_more() {
        let (mut frames, mut now) = (Frames::default(), Instant::now());
        frames.want();
        let mut asked = 0;
        for _ in 0..1000 {
            while let Some(step) = frames.step(now) {
                assert_eq!(step, Step::Ask);
                asked += 1;
                frames.failed(now);
            }
            now += Duration::from_millis(1);
        }
        assert_eq!(asked, 10);
    }
}
