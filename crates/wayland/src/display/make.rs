//! What the display side makes at the compositor so that a request can name it: buffers, regions, positioners, files.
//!
//! Decides nothing about requests. Invariant: what is made for one request is destroyed behind it, by whom it was asked
//! for; buffers are counted until the compositor has heard that they are gone.

use std::os::fd::OwnedFd;

use rustix::pipe::PipeFlags;
use wayferry_pixels::{Format, Size, convert};

use crate::action::End;
use crate::message::WireId;
use crate::picture;
use crate::policy::Handler;
use crate::value::{Image, Positioner, RegionOp};
use crate::wire::Arg;

use super::buffers::{Memory, Spec};
use super::connection::{Connection, no_memory, wrong};
use super::images;
use super::objects::Own;
use super::ops::{self, ints, known};
use super::shm::{Part, PoolChange};

impl Connection {
    /// Destroys a buffer that the compositor does not hold.
    pub(super) fn destroy_buffer(&mut self, id: u32) -> Result<(), End> {
        self.send(id, ops::BUFFER_DESTROY, vec![])?;
        self.objects.own_destroyed(id);
        self.shm.give_back(id, &self.config.workers);
        self.meet_memory();
        Ok(())
    }

    /// Destroys a buffer that the compositor holds, or may: it looks at it until it has heard what was said before.
    pub(super) fn abandon_buffer(&mut self, id: u32) -> Result<(), End> {
        self.send(id, ops::BUFFER_DESTROY, vec![])?;
        self.objects.own_destroyed(id);
        self.shm.leave(id);
        self.ask_for_memory()
    }

    fn ask_for_memory(&mut self) -> Result<(), End> {
        if !self.shm.ask() {
            return Ok(());
        }
        let callback = self.objects.own(known("wl_callback"), 1, Own::Memory)?;
        self.send(1, ops::DISPLAY_SYNC, vec![Arg::NewId(callback)])
    }

    /// The compositor has heard that buffers are gone.
    pub(super) fn on_memory(&mut self) -> Result<(), End> {
        self.shm.answered(&self.config.workers);
        self.meet_memory();
        self.ask_for_memory()
    }

    /// There may be room for another buffer.
    pub(super) fn meet_memory(&mut self) {
        if self.shm.has_room() {
            self.holds.meet_buffers();
        }
    }

    /// A pipe whose reading end feeds the app side; gives the writing end.
    pub(super) fn open_pipe(&mut self, pipe: u64) -> Result<OwnedFd, End> {
        let (read, write) =
            rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(|_| End::TooMuch("open file descriptors"))?;
        self.peer.pipe_out(pipe, read);
        Ok(write)
    }

    pub(super) fn blob_fd(&self, hash: u128, length: u32) -> Result<OwnedFd, End> {
        let bytes = self.intake.blobs.of(hash).ok_or_else(|| wrong("a blob that never came".to_owned()))?;
        if bytes.len() != length as usize {
            return Err(wrong(format!("a blob of {} bytes, expected {length}", bytes.len())));
        }
        let filled = Memory::new(bytes.len()).and_then(|memory| {
            memory.write(0, bytes)?;
            memory.share()
        });
        filled.map_err(no_memory)
    }

    pub(super) fn make_region(&mut self, region: &[RegionOp]) -> Result<u32, End> {
        let version = self.globals.helpers.compositor_version.min(1);
        let id = self.objects.own(known("wl_region"), version, Own::Helper)?;
        self.send(self.globals.helpers.compositor, ops::COMPOSITOR_CREATE_REGION, vec![Arg::NewId(id)])?;
        for op in region {
            let (opcode, x, y, width, height) = match *op {
                RegionOp::Add(x, y, width, height) => (ops::REGION_ADD, x, y, width, height),
                RegionOp::Subtract(x, y, width, height) => (ops::REGION_SUBTRACT, x, y, width, height),
            };
            self.send(id, opcode, ints(&[x, y, width, height]))?;
        }
        Ok(id)
    }

    /// Makes a positioner by the `xdg_wm_base` that the user's object comes from.
    pub(super) fn make_positioner(&mut self, user: WireId, positioner: &Positioner) -> Result<u32, End> {
        let shell = self.origin_of(user, Handler::WmBase);
        let found =
            shell.and_then(|shell| Some((self.objects.live(shell)?, self.objects.of(shell)?.version)));
        let Some((shell, version)) = found else {
            return Err(wrong("a positioner without an xdg_wm_base".to_owned()));
        };
        let id = self.objects.own(known("xdg_positioner"), version, Own::Helper)?;
        self.send(shell, ops::WM_BASE_CREATE_POSITIONER, vec![Arg::NewId(id)])?;
        let Positioner { size, anchor_rect, anchor, gravity, constraint_adjustment, offset, .. } =
            *positioner;
        if let Some((width, height)) = size {
            self.send(id, ops::POSITIONER_SET_SIZE, ints(&[width, height]))?;
        }
        if let Some((x, y, width, height)) = anchor_rect {
            self.send(id, ops::POSITIONER_SET_ANCHOR_RECT, ints(&[x, y, width, height]))?;
        }
        let values = [
            (ops::POSITIONER_SET_ANCHOR, anchor),
            (ops::POSITIONER_SET_GRAVITY, gravity),
            (ops::POSITIONER_SET_CONSTRAINT_ADJUSTMENT, constraint_adjustment),
        ];
        for (opcode, value) in values {
            if let Some(value) = value {
                self.send(id, opcode, vec![Arg::Uint(value)])?;
            }
        }
        if let Some((x, y)) = offset {
            self.send(id, ops::POSITIONER_SET_OFFSET, ints(&[x, y]))?;
        }
        // xdg-shell, version 3
        if version >= 3 {
            self.set_positioner_3(id, positioner)?;
        }
        Ok(id)
    }

    fn set_positioner_3(&mut self, id: u32, positioner: &Positioner) -> Result<(), End> {
        if positioner.reactive {
            self.send(id, ops::POSITIONER_SET_REACTIVE, vec![])?;
        }
        if let Some((width, height)) = positioner.parent_size {
            self.send(id, ops::POSITIONER_SET_PARENT_SIZE, ints(&[width, height]))?;
        }
        if let Some(serial) = positioner.parent_configure {
            self.send(id, ops::POSITIONER_SET_PARENT_CONFIGURE, vec![Arg::Uint(serial)])?;
        }
        Ok(())
    }

    /// The buffer of a picture for an object.
    pub(super) fn image_buffer(&mut self, object: WireId, image: &Image) -> Result<u32, End> {
        if let Some(buffer) = self.state.images.of(object, image) {
            return Ok(buffer);
        }
        let buffer = self.make_image(image)?;
        self.state.images.add(object, *image, buffer);
        let cost = images::cost(image);
        self.turn.room.icons = self.turn.room.icons.saturating_sub(cost);
        self.turn.room.paint = self.turn.room.paint.saturating_sub(cost as usize);
        Ok(buffer)
    }

    /// A buffer with the pixels of a blob.
    fn make_image(&mut self, image: &Image) -> Result<u32, End> {
        let size = Size::new(image.width, image.height).map_err(|error| wrong(error.to_string()))?;
        let Some(format) = Format::from_wl_shm(image.format) else {
            return Err(wrong(format!("pixel format {:#x} is unknown", image.format)));
        };
        let blob =
            self.intake.blobs.of(image.hash).ok_or_else(|| wrong("an image without its blob".to_owned()))?;
        let content =
            picture::unpack(blob, size, format).map_err(|error| wrong(format!("an image: {error}")))?;
        let (pixels, shown) = (content.pixels(), self.globals.shown(format));
        if shown == format {
            return self.make_static_buffer(size, shown, pixels);
        }
        let mut converted = vec![0; size.width() as usize * size.height() as usize * 4];
        convert::row(format, pixels, &mut converted);
        self.make_static_buffer(size, shown, &converted)
    }

    /// A buffer whose pixels never change.
    pub(super) fn make_static_buffer(
        &mut self,
        size: Size,
        format: Format,
        pixels: &[u8],
    ) -> Result<u32, End> {
        let stride = size.width() as usize * format.bytes_per_pixel();
        let (id, mut part) =
            self.make_buffer(Own::Helper, &Spec { size, format, length: pixels.len(), stride })?;
        part.write(0, pixels).map_err(no_memory)?;
        Ok(id)
    }

    /// A `wl_buffer`, and its part of the memory.
    pub(super) fn make_buffer(&mut self, own: Own, spec: &Spec) -> Result<(u32, Part), End> {
        let (part, change) = self.shm.take(spec.length).map_err(no_memory)?;
        // Sizes are below 2³¹: everything fits.
        match change {
            PoolChange::Nothing => {}
            PoolChange::Begins(fd, size) => {
                let pool = self.objects.own(known("wl_shm_pool"), 1, Own::Helper)?;
                self.shm.begin(&part, pool);
                let args = vec![Arg::NewId(pool), Arg::Fd(fd), Arg::Int(size as i32)];
                self.send(self.globals.helpers.shm, ops::SHM_CREATE_POOL, args)?;
            }
            PoolChange::Grows(size) => {
                self.send(self.shm.pool(&part), ops::SHM_POOL_RESIZE, ints(&[size as i32]))?;
            }
        }
        let id = self.objects.own(known("wl_buffer"), 1, own)?;
        let (pool, offset) = self.shm.name(id, &part);
        let (width, height) = (spec.size.width(), spec.size.height());
        let mut args = vec![Arg::NewId(id)];
        args.extend(ints(&[offset as i32, width as i32, height as i32, spec.stride as i32]));
        args.push(Arg::Uint(spec.format.to_wl_shm()));
        self.send(pool, ops::SHM_POOL_CREATE_BUFFER, args)?;
        Ok((id, part))
    }
}
