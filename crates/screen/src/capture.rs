//! Frames of the screen on their way into the window.
//!
//! What is decided is [`crate::frames`]'; here are the objects. Invariant: the object of a frame is destroyed before
//! the next is made.

use std::time::Instant;

use wayland_client::WEnum;
use wayland_client::protocol::wl_shm::Format;
use wayland_protocols_wlr::screencopy::v1::client::zwlr_screencopy_frame_v1::{
    self, Flags, ZwlrScreencopyFrameV1,
};

use crate::damage::Rect;
use crate::error::Error;
use crate::frames::{Frames, Step};
use crate::inbox::BufferId;
use crate::pool::{Layout, Pool};
use crate::there::There;
use crate::window::Window;

/// The frame under way, and the buffers.
#[derive(Debug, Default)]
pub(crate) struct Capture {
    pub(crate) frames: Frames,
    frame: Option<ZwlrScreencopyFrameV1>,
    /// What the compositor says that the frame's buffer must be like.
    layout: Option<Layout>,
    /// Its first row is the lowest.
    is_inverted: bool,
    pool: Option<Pool>,
}

impl Capture {
    /// A compositor does not use this buffer any more.
    pub(crate) fn released(&mut self, id: BufferId) {
        if let Some(buffer) = self.pool.as_ref().and_then(|pool| pool.given_back(id)) {
            self.frames.released(buffer);
        }
    }

    /// The screen gets another size: the frame under way would be one of the old.
    pub(crate) fn cancel(&mut self) {
        if let Some(frame) = self.frame.take() {
            frame.destroy();
        }
        if self.frames.is_under_way() {
            self.frames.cancelled();
        }
    }

    /// Asks for frames, has them copied, and shows them.
    pub(crate) fn step(&mut self, now: Instant, there: &There, window: &mut Window) {
        while let Some(step) = self.frames.step(now) {
            match step {
                Step::Ask => {
                    // Without the pointer's picture: the user's own pointer is there at once.
                    let frame = there.screencopy.capture_output(0, &there.output, &there.queue, ());
                    self.frame = Some(frame);
                }
                Step::Copy(buffer) => {
                    if let (Some(frame), Some(pool)) = (&self.frame, &self.pool) {
                        frame.copy_with_damage(pool.there(buffer));
                    }
                }
                Step::Show(buffer, damage) => {
                    if let Some(pool) = &self.pool {
                        let buffer = pool.session(buffer);
                        window.show(buffer, pool.layout, &damage, there.transform, self.is_inverted);
                    }
                }
            }
        }
    }

    /// What the frame under way says; `formats` are those that the session takes.
    ///
    /// # Errors
    /// No such frame can be shown.
    pub(crate) fn hear(
        &mut self,
        frame: &ZwlrScreencopyFrameV1,
        event: &zwlr_screencopy_frame_v1::Event,
        (there, window): (&There, &Window),
        formats: &[Format],
    ) -> Result<(), Error> {
        use zwlr_screencopy_frame_v1::Event;
        if self.frame.as_ref() != Some(frame) {
            return Ok(());
        }
        match *event {
            Event::Buffer { format, width, height, stride } => {
                self.layout = Some(Layout::new(format, width, height, stride)?);
            }
            Event::BufferDone => self.described(there, window, formats)?,
            Event::Flags { flags } => {
                self.is_inverted = matches!(flags, WEnum::Value(flags) if flags.contains(Flags::YInvert));
            }
            Event::Damage { x, y, width, height } => {
                let at = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
                self.frames.damaged(Rect { x: at(x), y: at(y), width: at(width), height: at(height) });
            }
            Event::Ready { .. } => {
                self.frames.copied();
                self.frame = None;
                frame.destroy();
            }
            Event::Failed => {
                self.frames.failed(Instant::now());
                self.frame = None;
                frame.destroy();
            }
            _ => {}
        }
        Ok(())
    }

    /// The compositor has said all about the frame's buffer.
    fn described(&mut self, there: &There, window: &Window, formats: &[Format]) -> Result<(), Error> {
        let Some(layout) = self.layout.take() else { return Ok(()) };
        let is_new = self.pool.as_ref().is_none_or(|pool| pool.layout != layout);
        if is_new {
            if !formats.contains(&layout.format) {
                return Err(Error::Format(layout.format.into()));
            }
            let ends = [(&there.shm, &there.queue), (&window.shm, &window.queue)];
            self.pool = Some(Pool::new(layout, ends)?);
        }
        self.frames.described(is_new);
        Ok(())
    }
}
