//! Copy, paste, drag and drop.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::pipe::{PipeFlags, pipe_with};
use wayland_client::protocol::wl_data_device_manager::DndAction;

use super::connection::Client;
use super::error::ClientError;
use super::inner::{Copied, Pane};
use crate::compositor::Clipboard;

impl Client {
    /// Copies: offers types and their bytes, with the serial of the last key, button or keyboard enter.
    ///
    /// # Errors
    /// No such clipboard, or no seat.
    pub fn copy(&mut self, clipboard: Clipboard, data: Vec<(String, Vec<u8>)>) -> Result<(), ClientError> {
        let queue = self.queue.handle();
        let serial = self.inner.serial;
        let copied: Copied = Arc::new(data);
        let types: Vec<_> = copied.iter().map(|(name, _)| name.clone()).collect();
        match clipboard {
            Clipboard::Regular => {
                let globals = (&self.bound.data_manager, &self.bound.data_device);
                let (Some(manager), Some(device)) = globals else {
                    return Err(ClientError::Missing("wl_data_device_manager"));
                };
                let source = manager.create_data_source(&queue, copied);
                types.into_iter().for_each(|name| source.offer(name));
                device.set_selection(Some(&source), serial);
            }
            Clipboard::Primary => {
                let globals = (&self.bound.primary_manager, &self.bound.primary_device);
                let (Some(manager), Some(device)) = globals else {
                    return Err(ClientError::Missing("zwp_primary_selection_device_manager_v1"));
                };
                let source = manager.create_source(&queue, copied);
                types.into_iter().for_each(|name| source.offer(name));
                device.set_selection(Some(&source), serial);
            }
        }
        self.flush()
    }

    /// Asks for what was copied; the reading end of the pipe, or `None` when nothing is offered.
    ///
    /// # Errors
    /// No pipe could be made, or the connection is lost.
    pub fn receive(&mut self, clipboard: Clipboard, mime_type: &str) -> Result<Option<OwnedFd>, ClientError> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        let name = mime_type.to_owned();
        match clipboard {
            Clipboard::Regular => {
                let Some(offer) = &self.inner.selection else { return Ok(None) };
                offer.receive(name, writer.as_fd());
            }
            Clipboard::Primary => {
                let Some(offer) = &self.inner.primary else { return Ok(None) };
                offer.receive(name, writer.as_fd());
            }
        }
        self.flush()?;
        Ok(Some(reader))
    }

    /// Pastes: all bytes of one type, or `None` when nothing is offered. Serves other requests meanwhile, so a
    /// client may paste what it copied itself.
    ///
    /// # Errors
    /// As [`Client::receive`], or the writer takes too long.
    pub fn paste(&mut self, clipboard: Clipboard, mime_type: &str) -> Result<Option<Vec<u8>>, ClientError> {
        match self.receive(clipboard, mime_type)? {
            Some(pipe) => self.read_all(pipe).map(Some),
            None => Ok(None),
        }
    }

    /// Starts a drag from a surface on which a button is down.
    ///
    /// # Errors
    /// No data devices, or the connection is lost.
    pub fn start_drag(
        &mut self,
        origin: Pane,
        icon: Option<Pane>,
        data: Vec<(String, Vec<u8>)>,
    ) -> Result<(), ClientError> {
        let queue = self.queue.handle();
        let globals = (&self.bound.data_manager, &self.bound.data_device);
        let (Some(manager), Some(device)) = globals else {
            return Err(ClientError::Missing("wl_data_device_manager"));
        };
        let copied: Copied = Arc::new(data);
        let source = manager.create_data_source(&queue, copied.clone());
        copied.iter().for_each(|(name, _)| source.offer(name.clone()));
        source.set_actions(DndAction::Copy);
        let icon = icon.map(|icon| self.surface(icon));
        device.start_drag(Some(&source), self.surface(origin), icon, self.inner.serial);
        self.inner.drag_source = Some(source);
        self.flush()
    }

    /// Asks for what is dragged over the client, before it is dropped; the reading end of the pipe, or `None` when
    /// nothing is.
    ///
    /// # Errors
    /// As [`Client::receive`].
    pub fn receive_drag(&mut self, mime_type: &str) -> Result<Option<OwnedFd>, ClientError> {
        let Some(offer) = &self.inner.drag else { return Ok(None) };
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        offer.receive(mime_type.to_owned(), writer.as_fd());
        self.flush()?;
        Ok(Some(reader))
    }

    /// Takes what was dropped, after [`super::Input::Drop`].
    ///
    /// # Errors
    /// As [`Client::paste`].
    pub fn take_drop(&mut self, mime_type: &str) -> Result<Option<Vec<u8>>, ClientError> {
        let Some(offer) = self.inner.dropped.take() else { return Ok(None) };
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        offer.receive(mime_type.to_owned(), writer.as_fd());
        drop(writer);
        self.flush()?;
        let bytes = self.read_all(reader)?;
        offer.finish();
        offer.destroy();
        self.inner.offers.remove(&offer);
        self.flush()?;
        Ok(Some(bytes))
    }

    fn read_all(&mut self, pipe: OwnedFd) -> Result<Vec<u8>, ClientError> {
        let reader = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            File::from(pipe).read_to_end(&mut bytes).map(|_| bytes)
        });
        self.wait("the end of a pipe", |_| reader.is_finished())?;
        reader.join().expect("reading does not panic").map_err(ClientError::File)
    }
}
