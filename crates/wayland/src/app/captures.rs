//! Pictures that the display takes of what it shows, for programs that may ask for that (`zwlr_screencopy_frame_v1`).
//!
//! The compositor at the display fills a buffer of the display side's; its pixels come back through a pipe, are opened
//! as they come, and are put into the program's own buffer before the program hears that it is ready. That is done by a
//! thread: a write to a file waits for what others do to it. Invariant: a program's buffer is written to only where it
//! is, only between its request and the answer, and only once.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use wayferry_pixels::{Content, Format, Layout, Size};
use wayferry_proto::Time;

use crate::action::{Action, Piece};
use crate::message::WireArg;
use crate::picture::Unpacker;
use crate::wire::Arg;
use crate::workers::Workers;

use super::buffer::Buffer;
use super::call::Call;
use super::connection::Connection;
use super::fault::Fault;
use super::object::Data;

/// The copies of one program, also of frames that it has destroyed since.
#[derive(Debug, Default)]
pub(super) struct Captures {
    /// Those whose pixels come, by their pipes.
    coming: BTreeMap<u64, Coming>,
    filling: Vec<Filling>,
}

/// A copy whose pixels come.
#[derive(Debug)]
struct Coming {
    frame: u32,
    /// What has come, if nothing of it is wrong.
    packed: Option<Unpacker>,
}

/// A picture that a thread puts into a program's buffer.
#[derive(Debug)]
struct Filling {
    frame: u32,
    pipe: u64,
    /// What the program will hear.
    ready: Vec<Arg>,
    outcome: Arc<OnceLock<bool>>,
}

/// What is kept of a frame.
#[derive(Debug, Default)]
pub(super) struct Capture {
    told: Option<Told>,
    copy: Option<Copy>,
    /// The program has its answer, or will have it from a thread.
    over: bool,
}

/// What the program's buffer is to be like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Told {
    size: Size,
    format: Format,
    stride: u64,
}

/// A copy that has been asked for.
#[derive(Debug)]
struct Copy {
    buffer: Rc<Buffer>,
    pipe: u64,
    /// What came, once that is all; nothing if it is not whole.
    content: Option<Option<Content>>,
    /// What the program will hear with it.
    ready: Option<Vec<Arg>>,
}

impl Captures {
    fn under_way(&self) -> usize {
        self.coming.len() + self.filling.len()
    }

    /// When to look at what threads do: at once when one is done, and now and then where no crew has this called then.
    pub(super) fn due(&self, now: Time, has_crew: bool) -> Option<Time> {
        let is_done = self.filling.iter().any(|filling| filling.outcome.get().is_some());
        let looks = !self.filling.is_empty() && !has_crew;
        is_done.then_some(now).or(looks.then(|| now + LOOK))
    }

    /// The display is gone: what comes is of no use.
    pub(super) fn part(&mut self) {
        *self = Self::default();
    }
}

impl Connection {
    /// The display side has told what a buffer for this frame is to be like.
    pub(super) fn on_capture_told(&mut self, id: u32, args: &[WireArg]) {
        let [WireArg::Uint(format), WireArg::Uint(width), WireArg::Uint(height), WireArg::Uint(stride)] =
            args
        else {
            return;
        };
        let told = Size::new(*width, *height).ok().zip(Format::from_wl_shm(*format));
        let told = told.map(|(size, format)| Told { size, format, stride: u64::from(*stride) });
        if let Some(capture) = self.capture(id) {
            capture.told = told;
        }
    }

    /// A frame is to be copied to a buffer of the program's.
    ///
    /// # Errors
    /// It has been already, or the buffer is not as it was told to be.
    pub(super) fn check_copy(&mut self, call: Call, args: &[Arg]) -> Result<(), Fault> {
        let buffer =
            args.first().and_then(|arg| if let Arg::Object(id) = arg { self.buffer(*id) } else { None });
        let Some(capture) = self.capture(call.id) else { return Ok(()) };
        if capture.copy.is_some() {
            return Err(Fault::app(call.id, ALREADY_USED, "the frame has been copied"));
        }
        let is = buffer.map(|buffer| Told {
            size: buffer.size,
            format: buffer.format,
            stride: buffer.layout().stride(),
        });
        match (is, capture.told) {
            // What was told is no format of ours: it fails by itself.
            (Some(_), None) => Ok(()),
            (Some(is), Some(told)) if is == told => Ok(()),
            _ => Err(Fault::app(call.id, INVALID_BUFFER, "the buffer is not as the frame is")),
        }
    }

    /// The pipe through which the pixels for a buffer come; `None` if there are too many, or no buffer is right.
    pub(super) fn begin_copy(&mut self, frame: u32, buffer: u32) -> Option<u64> {
        let buffer = self.buffer(buffer)?;
        let is_full = self.captures.under_way() >= MAX_COPIES;
        self.capture(frame).filter(|capture| !is_full && !capture.over)?.told?;
        let pipe = self.line.name_pipe();
        let packed = Some(Unpacker::new(buffer.size, buffer.format));
        self.captures.coming.insert(pipe, Coming { frame, packed });
        self.capture(frame)?.copy = Some(Copy { buffer, pipe, content: None, ready: None });
        self.line.act(Action::Collect { pipe });
        Some(pipe)
    }

    /// What comes of a pipe that is collected.
    pub fn on_collected(&mut self, now: Time, pipe: u64, piece: &Piece) {
        self.now = now;
        let Some(coming) = self.captures.coming.get_mut(&pipe).filter(|_| self.end.is_none()) else { return };
        if let Piece::Bytes(bytes) = piece {
            coming.packed.take_if(|packed| packed.push(bytes).is_err());
            return;
        }
        let Some(Coming { frame, packed }) = self.captures.coming.remove(&pipe) else { return };
        let content = packed.filter(|_| *piece == Piece::Whole).and_then(Unpacker::finish);
        // Another object may have its id by now.
        if let Some(copy) = self.copy_of(frame).filter(|copy| copy.pipe == pipe) {
            copy.content = Some(content);
            let step = self.finish_copy(frame);
            self.settle(step);
        }
    }

    /// The compositor has filled its buffer: the program hears so once its own is.
    pub(super) fn on_capture_ready(&mut self, id: u32, args: &[WireArg]) {
        let [WireArg::Uint(high), WireArg::Uint(low), WireArg::Uint(nanos)] = args else { return };
        let seconds = u64::from(*high) << 32 | u64::from(*low);
        let theirs = seconds.saturating_mul(NANOS).saturating_add(u64::from(*nanos));
        let ours = self.offering.desk().clock.ours_from_nanos(theirs);
        let (seconds, nanos) = (ours / NANOS, (ours % NANOS) as u32);
        if let Some(copy) = self.copy_of(id) {
            copy.ready = Some([(seconds >> 32) as u32, seconds as u32, nanos].map(Arg::Uint).into());
        }
        let step = self.finish_copy(id);
        self.settle(step);
    }

    /// The display side will not give a frame. Says whether that is news.
    pub(super) fn on_capture_failed(&mut self, id: u32) -> bool {
        self.capture(id).is_some_and(|capture| !std::mem::replace(&mut capture.over, true))
    }

    fn finish_copy(&mut self, frame: u32) -> Result<(), Fault> {
        let workers = self.config.workers.clone();
        let Some(capture) = self.capture(frame).filter(|capture| !capture.over) else { return Ok(()) };
        let Some(Copy { buffer, pipe, content: content @ Some(_), ready: ready @ Some(_) }) =
            &mut capture.copy
        else {
            return Ok(());
        };
        capture.over = true;
        let (content, ready, pipe) = (content.take().flatten(), ready.take().unwrap_or_default(), *pipe);
        let outcome = content.and_then(|content| fill(&workers, buffer, content).ok());
        match outcome {
            Some(outcome) => {
                self.captures.filling.push(Filling { frame, pipe, ready, outcome });
                Ok(())
            }
            None => self.emit(frame, "failed", Vec::new()),
        }
    }

    /// Tells programs of pictures that threads have put into their buffers.
    pub(super) fn tell_filled(&mut self) -> Result<(), Fault> {
        let is_done = |filling: &mut Filling| filling.outcome.get().is_some();
        let done: Vec<Filling> = self.captures.filling.extract_if(.., is_done).collect();
        for Filling { frame, pipe, ready, outcome } in done {
            if self.copy_of(frame).is_none_or(|copy| copy.pipe != pipe) {
                continue;
            }
            match outcome.get() {
                Some(true) => self.emit(frame, "ready", ready)?,
                _ => self.emit(frame, "failed", Vec::new())?,
            }
        }
        Ok(())
    }

    fn buffer(&self, id: u32) -> Option<Rc<Buffer>> {
        match &self.objects.of(id)?.data {
            Data::Buffer(buffer) => Some(Rc::clone(buffer)),
            _ => None,
        }
    }

    fn capture(&mut self, frame: u32) -> Option<&mut Capture> {
        self.objects.of_mut(frame).filter(|object| object.interface.name == FRAME)?.begin_own::<Capture>()
    }

    fn copy_of(&mut self, frame: u32) -> Option<&mut Copy> {
        self.capture(frame)?.copy.as_mut()
    }
}

/// Has a thread put a content into a buffer of its size and format; it says there whether it could.
fn fill(workers: &Workers, buffer: &Buffer, content: Content) -> io::Result<Arc<OnceLock<bool>>> {
    let (file, layout) = (buffer.file()?, buffer.layout());
    workers.start_apart("picture", move || write(&file, layout, &content).is_ok())
}

/// Never beyond the end of the file: a program that says that it is longer would have it made so.
fn write(file: &File, layout: Layout, content: &Content) -> io::Result<()> {
    if file.metadata()?.len() < layout.end() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let (width, height) = (content.size().width(), content.size().height());
    (0..height).try_for_each(|y| file.write_all_at(content.row(y, 0, width), layout.row(y)))
}

/// Copies of one program that are under way at once; more fail.
pub(crate) const MAX_COPIES: usize = 4;

/// How often threads are looked after where there is no crew: they take a few milliseconds.
const LOOK: Duration = Duration::from_millis(2);

const FRAME: &str = "zwlr_screencopy_frame_v1";

/// `zwlr_screencopy_frame_v1.error`.
const ALREADY_USED: u32 = 0;
const INVALID_BUFFER: u32 = 1;

/// Nanoseconds in a second.
const NANOS: u64 = 1_000_000_000;
