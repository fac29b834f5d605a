//! Looks: a part of a window as it is seen, a picture each time that it changes.
//!
//! A picture is composed after each turn of the compositor in which a content changed, so what one turn replaces is not
//! seen. It decides nothing. Invariant: a look tells a contiguous run of pictures until its reader has gone or is
//! [`BACKLOG`] behind; then it ends.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::event::SurfaceId;
use super::geometry::Rect;
use super::state::State;
use crate::clock;
use crate::image::Image;

/// A part of a window that is looked at, until this is dropped.
#[derive(Debug)]
pub struct Look {
    seen: Receiver<Seen>,
    _reader: Arc<()>,
}

/// A part of a window as it was seen from `time` on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// When the stage had composed it, on [`crate::now`]'s clock.
    pub time: Duration,
    /// What it looked like.
    pub picture: Image,
}

impl Look {
    /// What was seen since the last call, without waiting; the first is what the part looked like at the begin.
    pub fn take(&self) -> Vec<Seen> {
        self.seen.try_iter().collect()
    }
}

/// All that are there.
#[derive(Default)]
pub(crate) struct Looks {
    all: Vec<Looking>,
    /// Some of them may see something else than when they were last told.
    is_stale: bool,
}

/// The stage's end of a [`Look`].
struct Looking {
    window: SurfaceId,
    part: Rect,
    last: Option<Image>,
    tell: SyncSender<Seen>,
    reader: Weak<()>,
}

impl State {
    /// Begins to look at a part of a window's geometry, in logical pixels.
    pub(crate) fn look(&mut self, window: SurfaceId, part: Rect) -> Look {
        let (tell, seen) = sync_channel(BACKLOG);
        let reader = Arc::new(());
        let looking = Looking { window, part, last: None, tell, reader: Arc::downgrade(&reader) };
        self.looks.all.push(looking);
        self.looks.changed();
        self.tell_looks();
        Look { seen, _reader: reader }
    }

    /// Tells what is seen now, where that has changed.
    pub(crate) fn tell_looks(&mut self) {
        if !std::mem::take(&mut self.looks.is_stale) {
            return;
        }
        let mut looks = std::mem::take(&mut self.looks.all);
        looks.retain_mut(|look| {
            look.reader.strong_count() > 0
                && self.compose_part(look.window, look.part).is_none_or(|picture| look.tells(picture))
        });
        self.looks.all = looks;
    }
}

impl Looks {
    /// Some surface shows something else, or elsewhere.
    pub(crate) fn changed(&mut self) {
        self.is_stale = !self.all.is_empty();
    }
}

impl Looking {
    /// Says whether the look goes on.
    fn tells(&mut self, picture: Image) -> bool {
        if self.last.as_ref() == Some(&picture) {
            return true;
        }
        self.last = Some(picture.clone());
        self.tell.try_send(Seen { time: clock::now(), picture }).is_ok()
    }
}

/// Pictures that a reader may leave unread.
const BACKLOG: usize = 1024;
