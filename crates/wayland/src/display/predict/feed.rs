//! What predictions are made of: keys, contents, and what comes between.
//!
//! Each of these may change what is drawn, which `lay.rs` does. Invariant: what comes of a surface that has not the
//! keyboard changes nothing.

use std::time::Duration;

use wayferry_echo::KeyId;
use wayferry_pixels::{Rect, Region};
use wayferry_proto::Time;

use crate::action::End;
use crate::message::{WireArg, WireId};

use super::super::connection::Connection;
use super::typing::{Typing, Whose};

impl Connection {
    /// The smoothed round trip to the app side is this now.
    pub fn set_round_trip(&mut self, now: Time, rtt: Duration) {
        let predictions = &mut self.state.predictions;
        let drew = predictions.when.draws();
        predictions.when.measured(rtt);
        predictions.decide(now);
        if predictions.when.draws() != drew && self.end.is_none() {
            let outcome = self.lay(now);
            self.settle(outcome);
        }
    }

    /// Does what is due.
    pub(in super::super) fn predict_in_time(&mut self, now: Time) -> Result<(), End> {
        let predictions = &mut self.state.predictions;
        let Some(typing) = &mut predictions.typing else { return Ok(()) };
        typing.passed(now);
        predictions.decide(now);
        predictions.looked = now;
        self.lay(now)
    }

    /// A keyboard came to a surface.
    pub(in super::super) fn predict_for(&mut self, keyboard: WireId, focus: WireId) -> Result<(), End> {
        let typing = self.state.predictions.typing.as_ref();
        if typing.is_some_and(|typing| typing.focus == focus) {
            return Ok(());
        }
        self.stop_predicting()?;
        let predictions = &mut self.state.predictions;
        predictions.typing = predictions.when.learns().then(|| Typing::new(keyboard, focus));
        Ok(())
    }

    /// A keyboard left, or is gone.
    pub(in super::super) fn predict_no_more(&mut self, keyboard: WireId) -> Result<(), End> {
        let typing = self.state.predictions.typing.as_ref();
        if typing.is_some_and(|typing| typing.keyboard == keyboard) { self.stop_predicting() } else { Ok(()) }
    }

    /// A surface is gone.
    pub(in super::super) fn predict_without(&mut self, surface: WireId) -> Result<(), End> {
        let typing = self.state.predictions.typing.as_ref();
        let ends = typing.is_some_and(|typing| [typing.focus, typing.target].contains(&surface));
        if ends { self.stop_predicting() } else { Ok(()) }
    }

    /// The program says which application it is.
    pub(in super::super) fn predict_as(&mut self, app_id: &[u8]) -> Result<(), End> {
        let wish = self.config.predict.of(str::from_utf8(app_id).ok());
        self.state.predictions.when.wish(wish);
        if self.state.predictions.when.learns() { Ok(()) } else { self.stop_predicting() }
    }

    fn stop_predicting(&mut self) -> Result<(), End> {
        self.state.predictions.typing = None;
        self.remove_sheet()
    }

    /// Forgets what was typed and learned; the keyboard stays where it is.
    pub(in super::super) fn forget_predictions(&mut self) -> Result<(), End> {
        if let Some(typing) = &mut self.state.predictions.typing {
            typing.forget();
        }
        self.remove_sheet()
    }

    /// `wl_keyboard.modifiers`.
    pub(in super::super) fn predict_with(&mut self, keyboard: WireId, modifiers: [u32; 4]) {
        let typing = self.state.predictions.typing.as_mut();
        if let Some(typing) = typing.filter(|typing| typing.keyboard == keyboard) {
            typing.modifiers(modifiers);
        }
    }

    /// A key was pressed.
    pub(in super::super) fn predict_key(
        &mut self,
        now: Time,
        keyboard: WireId,
        (number, code): (u64, u32),
    ) -> Result<(), End> {
        let Some(typing) = self.state.predictions.typing() else { return Ok(()) };
        if typing.keyboard != keyboard {
            return Ok(());
        }
        typing.key(now, KeyId(number), code);
        self.state.predictions.decide(now);
        self.lay(now)
    }

    /// A surface is about to be committed with its content, which is different inside of `changed`, and was made after
    /// the program had been given the key `answered`.
    pub(in super::super) fn predict_content(
        &mut self,
        now: Time,
        surface: WireId,
        changed: &Region,
        answered: Option<u64>,
    ) -> Result<(), End> {
        if !self.is_typed_in(surface) {
            return Ok(());
        }
        let answered = answered.map(KeyId);
        let Some(typing) = self.state.predictions.typing() else { return Ok(()) };
        let whose = typing.whose(surface, answered);
        if whose == Whose::Target
            && let Some(shown) = self.surfaces.get(&surface)
        {
            match &shown.content {
                Some(content) if shown.videos.are_none() => typing.content(now, content, changed, answered),
                _ => typing.disturbed(),
            }
        }
        self.predict_answer(now, answered);
        match whose {
            Whose::Target => self.lay_in_step(now, surface),
            Whose::Moved => self.remove_sheet(),
            Whose::Other => Ok(()),
        }
    }

    /// A surface is about to be committed without a content.
    pub(in super::super) fn predict_nothing(&mut self, now: Time, surface: WireId) -> Result<(), End> {
        if self.is_typed_in(surface) { self.disturb_predictions(now) } else { Ok(()) }
    }

    /// Whether a surface is of the window that is typed in.
    fn is_typed_in(&self, surface: WireId) -> bool {
        let root = |surface| self.tree.above(surface).last().unwrap_or(surface);
        let typing = self.state.predictions.typing.as_ref();
        typing.is_some_and(|typing| root(typing.focus) == root(surface))
    }

    /// The app side will not answer these keys any more.
    pub(in super::super) fn predict_late(&mut self, now: Time, key: u64) -> Result<(), End> {
        let Some(typing) = self.state.predictions.typing() else { return Ok(()) };
        typing.late(now, KeyId(key));
        self.predict_answer(now, Some(KeyId(key)));
        self.lay(now)
    }

    fn predict_answer(&mut self, now: Time, answered: Option<KeyId>) {
        let predictions = &mut self.state.predictions;
        if let (Some(typing), Some(answered)) = (&mut predictions.typing, answered) {
            typing.answered(now, answered).for_each(|after| predictions.when.answered(after));
        }
        predictions.decide(now);
    }

    /// Something else than keys comes between: a button, another state of the window, an input method.
    pub(in super::super) fn disturb_predictions(&mut self, now: Time) -> Result<(), End> {
        let Some(typing) = self.state.predictions.typing() else { return Ok(()) };
        typing.disturbed();
        self.lay(now)
    }

    /// The program says something of the field that has the focus.
    pub(in super::super) fn predict_field(&mut self, input: WireId, request: &str, args: &[WireArg]) {
        let fields = &mut self.state.predictions.fields;
        let caret = fields.asked(input, request, args);
        if fields.are_sensitive() {
            let outcome = self.forget_predictions();
            self.settle(outcome);
        } else if let Some(caret) = caret {
            self.predict_at(caret);
        }
    }

    /// The program says where its caret is, in units of the surface with the focus. What is drawn changes with what
    /// comes next.
    fn predict_at(&mut self, [x, y, width, height]: [i32; 4]) {
        let Some(typing) = self.state.predictions.typing().filter(|typing| typing.target == typing.focus)
        else {
            return;
        };
        let surface = self.surfaces.get(&typing.target);
        let Some((surface, content)) = surface.and_then(|surface| Some((surface, surface.content.as_ref()?)))
        else {
            return;
        };
        let Some(ratio) = surface.extent.ratio(content.size()) else { return };
        if let [Some(x), Some(y), Some(width), Some(height)] =
            [x, y, width, height].map(|side| ratio.pixels(side))
        {
            typing.hint(content, Rect::new(x, y, width, height));
        }
    }

    /// A text input is gone.
    pub(in super::super) fn predict_without_field(&mut self, input: WireId) {
        self.state.predictions.fields.forget(input);
    }
}
