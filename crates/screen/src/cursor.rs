//! How the screen's pointer looks, so that the user's own can look like it.
//!
//! Where the compositor tells that (`ext-image-copy-capture-v1`), the own pointer has its picture and is where it is at
//! once; elsewhere it is an arrow. Invariant: a picture is shown with the hotspot that was told with it.

use std::time::Instant;

use wayland_client::WEnum;
use wayland_client::protocol::wl_shm::Format;
use wayland_client::protocol::wl_surface::WlSurface;
use wayland_protocols::ext::image_copy_capture::v1::client::ext_image_copy_capture_cursor_session_v1::{
    self, ExtImageCopyCaptureCursorSessionV1,
};
use wayland_protocols::ext::image_copy_capture::v1::client::ext_image_copy_capture_frame_v1::{
    self, ExtImageCopyCaptureFrameV1,
};
use wayland_protocols::ext::image_copy_capture::v1::client::ext_image_copy_capture_session_v1::{
    self, ExtImageCopyCaptureSessionV1,
};

use crate::error::Error;
use crate::frames::{Frames, Step};
use crate::inbox::{BufferId, Owner};
use crate::pool::{Layout, Pool};
use crate::there::There;
use crate::window::Window;

/// The picture of the screen's pointer.
#[derive(Debug, Default)]
pub(crate) struct Cursor {
    session: Option<Session>,
    frames: Frames,
    frame: Option<ExtImageCopyCaptureFrameV1>,
    size: Option<(u32, u32)>,
    /// A format that both ends have.
    has_format: bool,
    pool: Option<Pool>,
    /// Where it points, in pixels of the picture.
    hotspot: (i32, i32),
    /// Pixels of a length of one.
    scale: i32,
    /// The pointer is on the shown screen, so it has a picture.
    is_there: bool,
}

/// What the pictures come from, and what they are shown on.
#[derive(Debug)]
struct Session {
    cursor: ExtImageCopyCaptureCursorSessionV1,
    pictures: ExtImageCopyCaptureSessionV1,
    surface: WlSurface,
}

impl Cursor {
    /// The screen has a pointer now.
    pub(crate) fn begin(&mut self, there: &There, window: &Window) {
        let Some((manager, sources)) = &there.cursors else { return };
        if self.session.is_some() {
            return;
        }
        let pointer = there.seat.get_pointer(&there.queue, Owner::There);
        let source = sources.create_source(&there.output, &there.queue, ());
        let cursor = manager.create_pointer_cursor_session(&source, &pointer, &there.queue, ());
        let pictures = cursor.get_capture_session(&there.queue, ());
        let surface = window.compositor.create_surface(&window.queue, ());
        self.session = Some(Session { cursor, pictures, surface });
        self.frames.want();
    }

    /// The picture, and where in it the pointer points; else it looks as a pointer does everywhere.
    pub(crate) fn shown(&self) -> Option<(&WlSurface, (i32, i32))> {
        let session = self.session.as_ref().filter(|_| self.is_there && self.scale > 0)?;
        Some((&session.surface, (self.hotspot.0 / self.scale, self.hotspot.1 / self.scale)))
    }

    /// What is said of the pointer; whether it may look otherwise now.
    pub(crate) fn hear(&mut self, event: &ext_image_copy_capture_cursor_session_v1::Event) -> bool {
        use ext_image_copy_capture_cursor_session_v1::Event;
        let before = (self.is_there, self.hotspot);
        match *event {
            Event::Enter => self.is_there = true,
            Event::Leave => self.is_there = false,
            Event::Hotspot { x, y } => self.hotspot = (x, y),
            _ => {}
        }
        before != (self.is_there, self.hotspot)
    }

    /// What is said of its pictures; `formats` are those that the session takes.
    pub(crate) fn hear_pictures(
        &mut self,
        event: &ext_image_copy_capture_session_v1::Event,
        (there, window): (&There, &Window),
        formats: &[Format],
    ) -> Result<(), Error> {
        use ext_image_copy_capture_session_v1::Event;
        match *event {
            Event::BufferSize { width, height } => {
                (self.size, self.has_format) = (Some((width, height)), false)
            }
            Event::ShmFormat { format: WEnum::Value(FORMAT) } => self.has_format = formats.contains(&FORMAT),
            Event::Done => {
                let layout = self.size.filter(|_| self.has_format).and_then(|(width, height)| {
                    Layout::new(WEnum::Value(FORMAT), width, height, width.checked_mul(4)?).ok()
                });
                if layout != self.pool.as_ref().map(|pool| pool.layout) {
                    self.cancel();
                    let ends = [(&there.shm, &there.queue), (&window.shm, &window.queue)];
                    self.pool = layout.map(|layout| Pool::new(layout, ends)).transpose()?;
                    self.frames.renewed();
                }
            }
            Event::Stopped => self.stop(),
            _ => {}
        }
        Ok(())
    }

    /// What the frame under way says.
    pub(crate) fn hear_frame(
        &mut self,
        frame: &ExtImageCopyCaptureFrameV1,
        event: &ext_image_copy_capture_frame_v1::Event,
    ) {
        use ext_image_copy_capture_frame_v1::Event;
        if self.frame.as_ref() != Some(frame) {
            return;
        }
        match event {
            Event::Ready => self.frames.copied(),
            Event::Failed { .. } => self.frames.failed(Instant::now()),
            _ => return,
        }
        self.frame = None;
        frame.destroy();
    }

    /// A compositor does not use this buffer any more.
    pub(crate) fn released(&mut self, id: BufferId) {
        if let Some(buffer) = self.pool.as_ref().and_then(|pool| pool.given_back(id)) {
            self.frames.released(buffer);
        }
    }

    /// Asks for pictures and shows them; whether there is another one.
    pub(crate) fn step(&mut self, now: Instant, there: &There, window: &Window) -> bool {
        let (Some(session), Some(pool)) = (&self.session, &self.pool) else { return false };
        let mut is_new = false;
        while let Some(step) = self.frames.step(now) {
            match step {
                Step::Ask => {
                    self.frame = Some(session.pictures.create_frame(&there.queue, ()));
                    self.frames.described(false);
                }
                Step::Copy(buffer) => {
                    if let Some(frame) = &self.frame {
                        frame.attach_buffer(pool.there(buffer));
                        frame.damage_buffer(0, 0, pool.layout.width, pool.layout.height);
                        frame.capture();
                    }
                }
                Step::Show(buffer, _) => {
                    let Layout { width, height, .. } = pool.layout;
                    let is_whole = |scale: &i32| width % scale == 0 && height % scale == 0;
                    self.scale = window.whole_scale().filter(is_whole).unwrap_or(1);
                    session.surface.set_buffer_scale(self.scale);
                    session.surface.attach(Some(pool.session(buffer)), 0, 0);
                    session.surface.damage_buffer(0, 0, i32::MAX, i32::MAX);
                    session.surface.commit();
                    is_new = true;
                    self.frames.want();
                }
            }
        }
        is_new
    }

    /// When [`Cursor::step`] has something to do without an event.
    pub(crate) fn timeout(&self) -> Option<Instant> {
        self.frames.timeout().filter(|_| self.session.is_some() && self.pool.is_some())
    }

    fn cancel(&mut self) {
        if let Some(frame) = self.frame.take() {
            frame.destroy();
        }
        // A picture that was copied is in a buffer that goes.
        self.frames.cancelled();
    }

    fn stop(&mut self) {
        self.cancel();
        (self.pool, self.is_there) = (None, false);
        if let Some(Session { cursor, pictures, surface }) = self.session.take() {
            pictures.destroy();
            cursor.destroy();
            surface.destroy();
        }
    }
}

/// The format in which pointers have pictures, as all have an alpha channel.
const FORMAT: Format = Format::Argb8888;
