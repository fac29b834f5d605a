//! The videos of one surface: what their decoders are given, and what becomes of it.
//!
//! Frames are given out when their unit has its turn, or is about to, so in the order in which they are painted.
//! Invariant: a frame that is given out has passed its stream's gate, which its decoder begins with.

use std::collections::VecDeque;
use std::rc::Rc;

use wayferry_pixels::video::Frame;
use wayferry_pixels::{Content, Format, Rect, Streams};
use wayferry_proto::Time;
use wayferry_video::{Gate, Order, Size};

use crate::decoders::{Decoders, Handle, Picture};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Videos {
    streams: Streams<Stream>,
    /// The last update whose frames were given out, or were not to be.
    pub(crate) last: u64,
    /// Pictures that may not be there yet, with their updates.
    awaited: VecDeque<(u64, Rc<Picture>)>,
}

#[derive(Debug)]
struct Stream {
    gate: Gate,
    decoder: Handle,
}

/// A frame's picture, and where it is to be painted.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) rect: Rect,
    fourth: u8,
    picture: Rc<Picture>,
}

impl Videos {
    /// Has the frames of the next update decoded, whose content has this format; with a `fresh` one all begins anew.
    ///
    /// # Errors
    /// What is wrong with one. No video can be shown then before it begins anew.
    pub(crate) fn advance(
        &mut self,
        now: Time,
        decoders: &Rc<Decoders>,
        (format, fresh): (Format, bool),
        frames: &[Frame],
    ) -> Result<Vec<Shown>, String> {
        if fresh {
            self.streams.clear();
        }
        if frames.is_empty() && self.streams.are_none() {
            return Ok(Vec::new());
        }
        let shown = self.decode(now, decoders, format, frames);
        if shown.is_err() {
            self.streams.clear();
        }
        shown
    }

    fn decode(
        &mut self,
        now: Time,
        decoders: &Rc<Decoders>,
        format: Format,
        frames: &[Frame],
    ) -> Result<Vec<Shown>, String> {
        if !frames.is_empty() && order(format).is_none() {
            return Err(format!("a video in pixel format {}", format.code()));
        }
        self.streams.advance(frames, |rect| Stream::new(decoders, rect))?;
        let mut shown = Vec::with_capacity(frames.len());
        for frame in frames {
            let Some(stream) = self.streams.decoder(frame.video.stream) else { continue };
            let kind = stream.gate.pass(&frame.data).map_err(|error| error.to_string())?;
            let picture = stream.decoder.decode(now, kind, &frame.data);
            shown.push(Shown { rect: frame.video.rect, fourth: frame.fourth, picture });
        }
        Ok(shown)
    }

    /// What is shown of an update has been asked for.
    pub(crate) fn wait_for(&mut self, update: u64, shown: &[Shown]) {
        let awaited = shown.iter().map(|shown| &shown.picture).filter(|picture| picture.is_awaited());
        self.awaited.extend(awaited.map(|picture| (update, Rc::clone(picture))));
    }

    /// Whether nothing is awaited for updates up to this one.
    pub(crate) fn are_there(&mut self, update: u64) -> bool {
        while self.awaited.pop_front_if(|(_, picture)| !picture.is_awaited()).is_some() {}
        self.awaited.front().is_none_or(|(next, _)| *next > update)
    }

    /// All are over.
    pub(crate) fn clear(&mut self) {
        self.streams.clear();
    }
}

impl Stream {
    fn new(decoders: &Rc<Decoders>, rect: Rect) -> Result<Self, String> {
        let size = Size::new(rect.width, rect.height).map_err(|error| error.to_string())?;
        let decoder = decoders.begin(size).map_err(|end| end.to_string())?;
        Ok(Self { gate: Gate::new(size), decoder })
    }
}

impl Shown {
    /// Whether there is a picture.
    pub(crate) fn is_there(&self) -> bool {
        self.picture.with(|_| ()).is_some()
    }

    /// Paints it into the content that it was decoded for.
    pub(crate) fn paint(&self, content: &mut Content) {
        let Some(order) = order(content.format()) else { return };
        let Self { rect, fourth, picture } = self;
        picture.with(|decoded| {
            let write = |y, row: &[u8]| content.write_row(rect.y + y, rect.x, row);
            decoded.picture().rows(order, *fourth, write);
        });
    }
}

/// Which bytes are which in contents of this format; others have no videos.
fn order(format: Format) -> Option<Order> {
    match format {
        Format::Argb8888 | Format::Xrgb8888 => Some(Order::Bgrx),
        Format::Abgr8888 | Format::Xbgr8888 => Some(Order::Rgbx),
        _ => None,
    }
}
