//! Pictures that the compositor takes of what it shows, for programs that the user lets ask for that.
//!
//! The compositor writes into a buffer of this side's, as it would into the program's; what it has written goes back
//! through a pipe. Invariant: a pipe that was opened for a picture ends, with the whole picture or with nothing.

use std::collections::HashMap;

use rustix::fs::SeekFrom;
use wayferry_pixels::{Compression, Content, Encoder, Format, Layout, Region, Size};

use crate::action::End;
use crate::app::MAX_COPIES;
use crate::message::WireId;
use crate::picture;
use crate::wire::Arg;

use super::buffers::{Memory, Spec};
use super::connection::{Connection, wrong};
use super::objects::Own;
use super::shm::Part;

/// The pictures of one program that are being taken, by their frames.
#[derive(Debug, Default)]
pub(super) struct Captures(HashMap<WireId, Capture>);

#[derive(Debug)]
struct Capture {
    size: Size,
    format: Format,
    layout: Layout,
    taking: Option<Taking>,
}

#[derive(Debug)]
struct Taking {
    pipe: u64,
    buffer: u32,
    part: Part,
}

impl Connection {
    /// The compositor has told what a buffer for this frame is to be like; one that is like nothing here is never made.
    pub(super) fn on_capture_told(&mut self, frame: WireId, args: &[Arg]) {
        let [Arg::Uint(format), Arg::Uint(width), Arg::Uint(height), Arg::Uint(stride)] = args else {
            return;
        };
        let told = Size::new(*width, *height).ok().zip(Format::from_wl_shm(*format));
        let Some((size, format)) = told else { return };
        if let Ok(layout) = Layout::new(0, u64::from(*stride), size, format) {
            self.state.captures.0.insert(frame, Capture { size, format, layout, taking: None });
        }
    }

    /// The buffer for a frame, whose pixels go back through this pipe.
    ///
    /// # Errors
    /// The frame has one, or cannot have one: the app side asks only once, and after it was told of what kind.
    pub(super) fn capture_buffer(&mut self, frame: WireId, pipe: u64) -> Result<u32, End> {
        let captures = &self.state.captures.0;
        if captures.values().filter(|capture| capture.taking.is_some()).count() >= MAX_COPIES {
            return Err(wrong("too many copies at once".to_owned()));
        }
        let capture = captures.get(&frame).filter(|capture| capture.taking.is_none());
        let Some(Capture { size, format, layout, .. }) = capture else {
            return Err(wrong("a copy of a frame that has no buffer".to_owned()));
        };
        // Below 2³¹, or there is no such buffer.
        let (length, stride) = (layout.end() as usize, layout.stride() as usize);
        let spec = Spec { size: *size, format: *format, length, stride };
        let (buffer, part) = self.make_buffer(Own::Helper, &spec)?;
        if let Some(capture) = self.state.captures.0.get_mut(&frame) {
            capture.taking = Some(Taking { pipe, buffer, part });
        }
        Ok(buffer)
    }

    /// The compositor has filled it.
    pub(super) fn on_capture_ready(&mut self, frame: WireId) -> Result<(), End> {
        let packed = self.state.captures.0.get(&frame).and_then(Capture::pack);
        self.end_capture(frame, &packed.unwrap_or_default())
    }

    /// Nothing more will come of a frame.
    pub(super) fn forget_capture(&mut self, frame: WireId) -> Result<(), End> {
        self.end_capture(frame, &[])
    }

    fn end_capture(&mut self, frame: WireId, packed: &[u8]) -> Result<(), End> {
        let capture = self.state.captures.0.remove(&frame);
        let Some(Taking { pipe, buffer, part }) = capture.and_then(|capture| capture.taking) else {
            return Ok(());
        };
        drop(part);
        let memory = Memory::new(packed.len()).and_then(|memory| {
            memory.write(0, packed)?;
            memory.share()
        });
        match memory {
            Ok(memory) if rustix::fs::seek(&memory, SeekFrom::Start(0)).is_ok() => {
                self.peer.pipe_out(pipe, memory)
            }
            _ => drop(self.open_pipe(pipe)?),
        }
        self.abandon_buffer(buffer)
    }
}

impl Capture {
    /// Its pixels; `None` if they cannot be read.
    fn pack(&self) -> Option<Vec<u8>> {
        let taking = self.taking.as_ref()?;
        let mut content = Content::new(self.size, self.format);
        let read = |offset, into: &mut [u8]| taking.part.read(offset, into);
        content.absorb(&self.layout, &Region::full(self.size), read).ok()?;
        Some(picture::pack(&mut Encoder::new(Compression::default()), content))
    }
}
