//! Pictures that the display takes of what it shows, for programs that may ask for that (`zwlr_screencopy_frame_v1`).
//!
//! The compositor at the display fills a buffer of the display side's; its pixels come back through a pipe, packed, and
//! are put into the program's own buffer before the program hears that it is ready. Invariant: a program's buffer is
//! written to only where it is, only between its request and the answer, and only once.

use std::rc::Rc;

use wayferry_pixels::{Content, Format, Size};
use wayferry_proto::Time;

use crate::action::Action;
use crate::message::WireArg;
use crate::picture;
use crate::wire::Arg;

use super::buffer::Buffer;
use super::call::Call;
use super::connection::Connection;
use super::fault::Fault;
use super::object::{Data, Object};
use super::shm::ReadError;

/// What is kept of a frame.
#[derive(Debug, Default)]
pub(super) struct Capture {
    told: Option<Told>,
    copy: Option<Copy>,
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
    /// Where its pixels come from, until they have come.
    pipe: Option<u64>,
    /// What has come, if that is whole.
    packed: Option<Vec<u8>>,
    /// What the program will hear with it.
    ready: Option<Vec<Arg>>,
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
        let frames = self.objects.living(FRAME);
        let is_coming = |capture: &mut Capture| capture.copy.as_ref().is_some_and(|copy| copy.pipe.is_some());
        let coming = frames.into_iter().filter(|frame| self.capture(*frame).is_some_and(is_coming)).count();
        self.capture(frame)?.told?;
        if coming >= MAX_COPIES {
            return None;
        }
        let pipe = self.line.name_pipe();
        let copy = Copy { buffer, pipe: Some(pipe), packed: None, ready: None };
        self.capture(frame)?.copy = Some(copy);
        self.line.act(Action::Collect { pipe });
        Some(pipe)
    }

    /// What came through a pipe that was to be collected; `None` if that is not whole.
    pub fn on_collected(&mut self, now: Time, pipe: u64, packed: Option<Vec<u8>>) {
        self.now = now;
        if self.end.is_some() {
            return;
        }
        let frames = self.objects.living(FRAME);
        let is_it = |capture: &mut Capture| capture.copy.as_ref().is_some_and(|copy| copy.pipe == Some(pipe));
        let frame = frames.into_iter().find(|frame| self.capture(*frame).is_some_and(is_it));
        let copy = frame.and_then(|frame| self.capture(frame)?.copy.as_mut());
        let Some((frame, copy)) = frame.zip(copy) else { return };
        (copy.pipe, copy.packed) = (None, packed);
        let step = self.finish_copy(frame);
        self.settle(step);
    }

    /// The compositor has filled its buffer: the program hears so once its own is.
    pub(super) fn on_capture_ready(&mut self, id: u32, args: &[WireArg]) {
        let [WireArg::Uint(high), WireArg::Uint(low), WireArg::Uint(nanos)] = args else { return };
        let seconds = u64::from(*high) << 32 | u64::from(*low);
        let theirs = seconds.saturating_mul(NANOS).saturating_add(u64::from(*nanos));
        let ours = self.offering.desk().clock.ours_from_nanos(theirs);
        let (seconds, nanos) = (ours / NANOS, (ours % NANOS) as u32);
        let ready = [(seconds >> 32) as u32, seconds as u32, nanos].map(Arg::Uint).into();
        if let Some(copy) = self.capture(id).and_then(|capture| capture.copy.as_mut()) {
            copy.ready = Some(ready);
        }
        let step = self.finish_copy(id);
        self.settle(step);
    }

    fn finish_copy(&mut self, frame: u32) -> Result<(), Fault> {
        let Some(Copy { buffer, pipe: None, packed, ready }) =
            self.capture(frame).and_then(|capture| capture.copy.as_mut())
        else {
            return Ok(());
        };
        let Some(args) = ready.take() else { return Ok(()) };
        let (buffer, packed) = (Rc::clone(buffer), packed.take());
        // Where nothing came, nothing was taken.
        let packed = packed.filter(|packed| !packed.is_empty());
        let content = packed.and_then(|packed| picture::unpack(&packed, buffer.size, buffer.format).ok());
        // It takes about as long as content of that size.
        self.pacing.owe(buffer.content_bytes());
        match content.map(|content| buffer.fill(&content)) {
            Some(Ok(())) => self.emit(frame, "ready", args),
            Some(Err(_)) | None => self.emit(frame, "failed", Vec::new()),
        }
    }

    fn buffer(&self, id: u32) -> Option<Rc<Buffer>> {
        match &self.objects.of(id)?.data {
            Data::Buffer(buffer) => Some(Rc::clone(buffer)),
            _ => None,
        }
    }

    fn capture(&mut self, frame: u32) -> Option<&mut Capture> {
        self.objects.of_mut(frame).and_then(Object::begin_own::<Capture>)
    }
}

impl Buffer {
    /// Puts a content of its size and format there.
    fn fill(&self, content: &Content) -> Result<(), ReadError> {
        let (layout, width) = (self.layout(), self.size.width());
        (0..self.size.height()).try_for_each(|y| self.write(layout.row(y), content.row(y, 0, width)))
    }
}

/// Frames of one program that are copied at once; more fail.
pub(crate) const MAX_COPIES: usize = 4;

const FRAME: &str = "zwlr_screencopy_frame_v1";

/// `zwlr_screencopy_frame_v1.error`.
const ALREADY_USED: u32 = 0;
const INVALID_BUFFER: u32 = 1;

/// Nanoseconds in a second.
const NANOS: u64 = 1_000_000_000;
