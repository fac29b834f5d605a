//! One surface: what it shows, and where it is.
//!
//! Knows pixels and places, no objects. Invariant: its content is that of the last update that was painted on it.

use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use wayferry_message::WireId;
use wayferry_pixels::{Content, Decoder, Region};
use wayferry_proto::Time;

use crate::ask::{Commit, InputRegion};
use crate::end::{End, wrong};
use crate::shape::Shape;
use crate::share::{Lease, Share};
use crate::updates::Stored;

/// Updates in succession that cannot be painted, of one surface: that is no accident any more.
const MAX_REFUSED: u32 = 3;

/// A surface counts as hidden when the page has not drawn for so long although there was something new.
const HIDDEN_AFTER: Duration = Duration::from_secs(1);

/// What of a surface's pixels is to be painted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Damage {
    /// All of them; they may have another size than before.
    All,
    /// These, perhaps none.
    Part(Region),
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Surface {
    pub(crate) shape: Shape,
    /// Inside its parent.
    pub(crate) at: (i32, i32),
    pub(crate) parent: Option<WireId>,
    /// Itself and those inside it, the lowest first.
    pub(crate) order: Vec<WireId>,
    /// Popups that belong to it, the oldest first.
    pub(crate) popups: Vec<WireId>,
    /// Where it takes the pointer; all of it without.
    pub(crate) input: Option<InputRegion>,
    /// What is said of it waits for the surface that it is inside.
    pub(crate) waits: bool,
    /// Commits that wait for that, or for another one of its own.
    pub(crate) cached: VecDeque<(Commit, Rc<Lease>)>,
    /// Its next commit shows all of its pixels in their own size.
    pub(crate) uncrops: bool,
    /// It was told that it is on the output.
    pub(crate) is_on_output: bool,
    content: Option<(Content, Lease)>,
    damage: Damage,
    /// How many updates in succession could not be painted; until a whole content comes, nothing can.
    refused: u32,
    /// Since when the page owes a frame.
    asked: Option<Time>,
    is_visible: bool,
}

impl Surface {
    pub(crate) fn new(id: WireId) -> Self {
        Self {
            shape: Shape::NEW,
            at: (0, 0),
            parent: None,
            order: vec![id],
            popups: Vec::new(),
            input: None,
            waits: true,
            cached: VecDeque::new(),
            uncrops: false,
            is_on_output: false,
            content: None,
            damage: Damage::All,
            refused: 0,
            asked: None,
            is_visible: true,
        }
    }

    pub(crate) fn content(&self) -> Option<&Content> {
        self.content.as_ref().map(|(content, _)| content)
    }

    /// It shows nothing any more.
    pub(crate) fn unmap(&mut self) {
        (self.content, self.damage, self.asked) = (None, Damage::All, None);
    }

    /// Takes in updates in their sequence. Says whether the whole content is to be asked for again: one of them could
    /// not be painted, nor what follows it.
    ///
    /// # Errors
    /// That has happened too often, or there is no room for another content.
    pub(crate) fn paint(
        &mut self,
        decoder: &mut Decoder,
        updates: &[Stored],
        room: &Rc<Share>,
    ) -> Result<bool, End> {
        if self.refused > 0 && updates.first().is_none_or(|update| !update.fresh) {
            return Ok(false);
        }
        for update in updates {
            match self.paint_one(decoder, update, room)? {
                Ok(()) => self.refused = 0,
                Err(what) => {
                    self.refused += 1;
                    if self.refused > MAX_REFUSED {
                        return Err(wrong(format!("an update cannot be painted: {what}")));
                    }
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn paint_one(
        &mut self,
        decoder: &mut Decoder,
        update: &Stored,
        room: &Rc<Share>,
    ) -> Result<Result<(), String>, End> {
        if !update.fresh {
            let Some((content, _)) = &mut self.content else {
                return Ok(Err("it builds on no content".to_owned()));
            };
            let painted = update.paint(decoder, content);
            return Ok(painted.map(|region| {
                if let Damage::Part(damage) = &mut self.damage {
                    damage.union(&region);
                }
            }));
        }
        let bytes = update.size.rect().area() as usize * update.format.bytes_per_pixel();
        let lease = room.lease(bytes)?;
        let mut content = Content::new(update.size, update.format);
        let painted = update.paint(decoder, &mut content);
        if painted.is_ok() {
            (self.content, self.damage) = (Some((content, lease)), Damage::All);
        }
        Ok(painted.map(drop))
    }

    /// What is to be painted since this was asked last.
    pub(crate) fn take_damage(&mut self) -> Damage {
        std::mem::replace(&mut self.damage, Damage::Part(Region::new()))
    }

    /// The page is to draw it.
    pub(crate) fn ask_frame(&mut self, now: Time) {
        if self.content.is_some() {
            self.asked.get_or_insert(now);
        }
    }

    /// Whether the page owes a frame.
    pub(crate) fn wants_frame(&self) -> bool {
        self.asked.is_some()
    }

    /// The page has drawn. Returns whether that makes the surface visible again; one that shows nothing any more, too,
    /// or the app side would never show something on it.
    pub(crate) fn on_frame(&mut self) -> bool {
        self.asked = None;
        !std::mem::replace(&mut self.is_visible, true)
    }

    /// When it will count as hidden, unless the page draws before.
    pub(crate) fn hidden_at(&self) -> Option<Time> {
        self.asked.filter(|_| self.is_visible).map(|asked| asked + HIDDEN_AFTER)
    }

    /// Whether it counts as hidden from now on.
    pub(crate) fn hide_if_due(&mut self, now: Time) -> bool {
        let is_due = self.hidden_at().is_some_and(|at| at <= now);
        self.is_visible &= !is_due;
        is_due
    }
}
