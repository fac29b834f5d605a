//! Pictures that the compositor takes of what it shows, for programs that the user lets ask for that.
//!
//! The compositor writes into a buffer of this side's, as it would into the program's. What it has written is packed by
//! a thread, for a whole screen takes long, and goes back through a pipe. Invariant: a pipe that was opened for a
//! picture ends, with the whole picture or with nothing.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use wayferry_pixels::{Compression, Content, Encoder, Format, Layout, Region, Size};

use crate::action::End;
use crate::app::MAX_COPIES;
use crate::message::{Request, ToApp, WireId};
use crate::picture;
use crate::tables;
use crate::wire::Arg;

use super::buffers::Spec;
use super::connection::{Connection, wrong};
use super::objects::Own;
use super::shm::Part;

/// The pictures of one program, by their frames.
#[derive(Debug, Default)]
pub(super) struct Captures {
    frames: HashMap<WireId, Capture>,
    /// Counts the threads that pack.
    packing: Arc<()>,
}

#[derive(Debug)]
struct Capture {
    size: Size,
    format: Format,
    layout: Layout,
    taking: Option<Taking>,
    /// The compositor has filled it, or will not.
    over: bool,
}

/// A buffer of this side's; it stays until the frame is gone, for its pixels may still be read.
#[derive(Debug)]
struct Taking {
    pipe: u64,
    buffer: u32,
    part: Part,
}

impl Captures {
    /// Whether nothing more comes of a frame.
    pub(super) fn is_over(&self, frame: WireId) -> bool {
        self.frames.get(&frame).is_some_and(|capture| capture.over)
    }

    /// How many copies have not gone back.
    fn under_way(&self) -> usize {
        let waiting = self.frames.values().filter(|capture| capture.taking.is_some() && !capture.over);
        waiting.count() + Arc::strong_count(&self.packing) - 1
    }
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
            let capture = Capture { size, format, layout, taking: None, over: false };
            self.state.captures.frames.entry(frame).or_insert(capture);
        }
    }

    /// The buffer for a frame, whose pixels go back through this pipe.
    ///
    /// # Errors
    /// The frame has one, or cannot have one: the app side asks only once, and after it was told of what kind.
    pub(super) fn capture_buffer(&mut self, frame: WireId, pipe: u64) -> Result<u32, End> {
        if self.state.captures.under_way() >= MAX_COPIES {
            return Err(wrong("too many copies at once".to_owned()));
        }
        let capture = self.state.captures.frames.get(&frame).filter(|capture| capture.taking.is_none());
        let Some(Capture { size, format, layout, .. }) = capture else {
            return Err(wrong("a copy of a frame that has no buffer".to_owned()));
        };
        // Below 2³¹, or there is no such buffer.
        let (length, stride) = (layout.end() as usize, layout.stride() as usize);
        let spec = Spec { size: *size, format: *format, length, stride };
        let (buffer, part) = self.make_buffer(Own::Helper, &spec)?;
        if let Some(capture) = self.state.captures.frames.get_mut(&frame) {
            capture.taking = Some(Taking { pipe, buffer, part });
        }
        Ok(buffer)
    }

    /// The compositor has filled it, or will not.
    pub(super) fn on_capture_over(&mut self, frame: WireId, is_filled: bool) -> Result<(), End> {
        let captures = &mut self.state.captures;
        let Some(capture) = captures.frames.get_mut(&frame).filter(|capture| !capture.over) else {
            return Ok(());
        };
        capture.over = true;
        let Some(taking) = &capture.taking else { return Ok(()) };
        let packing = Packing::of(capture, taking, &captures.packing).filter(|_| is_filled);
        let pipe = taking.pipe;
        let into = self.open_pipe(pipe)?;
        if let Some(packing) = packing {
            // Without a thread nothing comes of it.
            let thread = std::thread::Builder::new().name("picture".to_owned());
            let _ = thread.spawn(move || packing.pack_into(into));
        }
        Ok(())
    }

    /// The program is done with a frame.
    pub(super) fn forget_capture(&mut self, frame: WireId) -> Result<(), End> {
        self.on_capture_over(frame, false)?;
        let capture = self.state.captures.frames.remove(&frame);
        match capture.and_then(|capture| capture.taking) {
            Some(Taking { buffer, .. }) => self.abandon_buffer(buffer),
            None => Ok(()),
        }
    }

    /// The compositor cannot be asked for a frame.
    pub(super) fn fail_capture(&mut self, frame: WireId) {
        let interface = tables::interface("zwlr_screencopy_frame_v1");
        let opcode = interface.and_then(|interface| tables::event_opcode(interface, "failed"));
        if let Some(opcode) = opcode {
            self.tell(&ToApp::Event(Request { object: frame, opcode, args: Vec::new() }));
        }
    }
}

/// What a thread needs to pack a picture.
struct Packing {
    file: File,
    start: u64,
    size: Size,
    format: Format,
    layout: Layout,
    counted: Arc<()>,
}

impl Packing {
    /// `None` if there is no descriptor left.
    fn of(capture: &Capture, taking: &Taking, counted: &Arc<()>) -> Option<Self> {
        let (file, start) = taking.part.file().ok()?;
        let Capture { size, format, layout, .. } = *capture;
        Some(Self { file, start, size, format, layout, counted: Arc::clone(counted) })
    }

    /// Packs it, and writes that to a pipe, which may take as long as the link takes.
    fn pack_into(self, into: OwnedFd) {
        let mut content = Content::new(self.size, self.format);
        let read = |offset: u64, bytes: &mut [u8]| self.file.read_exact_at(bytes, self.start + offset);
        let mut into = File::from(into);
        if content.absorb(&self.layout, &Region::full(self.size), read).is_ok() {
            let packed = picture::pack(&mut Encoder::new(Compression::default()), content);
            // A reader that is gone needs no picture.
            let _ = into.write_all(&packed).and_then(|()| into.write_all(picture::LAST));
        }
        // The other side may ask for the next one when this one ends.
        drop(self.counted);
        drop(into);
    }
}
