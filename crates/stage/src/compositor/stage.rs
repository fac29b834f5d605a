//! The handle of a running stage.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use rustix::pipe::{PipeFlags, pipe_with};
use wayland_server::{Display, Resource};

use super::config::Config;
use super::data::Origin;
use super::event::{ClientNumber, Clipboard, Stamped, SurfaceId};
use super::geometry::Rect;
use super::look::Look;
use super::pipe::{self, Bundle};
use super::primary::PrimaryOrigin;
use super::run::{self, Command};
use super::state::State;
use super::watch::Watch;
use crate::clock;
use crate::image::Image;
use crate::keys;

/// A running compositor; it ends, with all of its connections, when this is dropped.
pub struct Stage {
    config: Config,
    commands: Option<Sender<Command>>,
    wake: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

/// A mapped window.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// Its surface, which names it.
    pub surface: SurfaceId,
    /// Whose it is.
    pub client: ClientNumber,
    /// Its title.
    pub title: String,
    /// Its application id.
    pub app_id: String,
    /// Its parent window.
    pub parent: Option<SurfaceId>,
    /// Its window geometry on the output, logical pixels.
    pub place: Rect,
}

impl Stage {
    /// Starts a stage; when this returns, clients can connect.
    ///
    /// # Errors
    /// The socket cannot be made (in use, path too long, no such directory), or the system is out of threads or
    /// descriptors.
    pub fn start(config: Config) -> io::Result<Stage> {
        let listener = run::listen(&config)?;
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let (commands, receiver) = channel();
        let display = Display::new().map_err(io::Error::other)?;
        let (settings, bell) = (config.clone(), wake.clone());
        let thread = thread::Builder::new()
            .name("stage".to_owned())
            .spawn(move || run::run(display, settings, listener.as_ref(), &receiver, &bell))?;
        Ok(Stage { config, commands: Some(commands), wake, thread: Some(thread) })
    }

    /// What it was started with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The events from the oldest that is kept (16 384 are) on.
    pub fn events(&self) -> Receiver<Stamped> {
        self.ask(|state| state.log.subscribe(true))
    }

    /// The events from now on.
    pub fn events_from_now(&self) -> Receiver<Stamped> {
        self.ask(|state| state.log.subscribe(false))
    }

    /// A [`Watch`] over [`Stage::events`].
    pub fn watch(&self) -> Watch {
        Watch::new(self.events())
    }

    /// A new connection to the stage without its socket: the client's end.
    ///
    /// # Errors
    /// The system is out of descriptors.
    pub fn connect(&self) -> io::Result<UnixStream> {
        let (ours, theirs) = UnixStream::pair()?;
        self.adopt(ours)?;
        Ok(theirs)
    }

    /// Serves a client at the other end of a connected socket.
    ///
    /// # Errors
    /// The socket cannot be made non-blocking or watched.
    pub fn adopt(&self, stream: UnixStream) -> io::Result<ClientNumber> {
        self.ask(|state| state.add_client(stream))
    }

    /// The mapped windows from the bottom to the top.
    pub fn windows(&self) -> Vec<Window> {
        self.ask(|state| state.windows.iter().filter_map(|id| window(state, *id)).collect())
    }

    /// The topmost window with this title.
    pub fn window(&self, title: &str) -> Option<Window> {
        self.windows().into_iter().rev().find(|window| window.title == title)
    }

    /// The content of one surface in buffer pixels, as last shown.
    pub fn screenshot(&self, surface: SurfaceId) -> Option<Image> {
        self.ask(move |state| Some(state.surface(surface)?.shown.as_ref()?.image.clone()))
    }

    /// A window or popup with its subsurfaces, cut to its window geometry, at the output's scale.
    pub fn screenshot_window(&self, surface: SurfaceId) -> Option<Image> {
        self.ask(move |state| state.compose_window(surface))
    }

    /// The whole output: windows, subsurfaces, popups, drag icon; not the pointer.
    pub fn screenshot_output(&self) -> Image {
        self.ask(|state| state.compose_output())
    }

    /// The pointer's picture and hot spot, when a client has set one.
    pub fn screenshot_cursor(&self) -> Option<(Image, (i32, i32))> {
        self.ask(|state| {
            let (id, hotspot) = state.seat.cursor?;
            Some((state.surface(id)?.shown.as_ref()?.image.clone(), hotspot))
        })
    }

    /// Looks at a part of a window, with its subsurfaces: in logical pixels from the corner of its window geometry.
    pub fn look(&self, window: SurfaceId, part: Rect) -> Look {
        self.ask(move |state| state.look(window, part))
    }

    /// Presses or releases a key, by its evdev code; the serial of the event.
    pub fn key(&self, code: u32, pressed: bool) -> u32 {
        self.ask(move |state| state.key(code, pressed))
    }

    /// Types a text, with Shift where needed; characters that the keymap (US) lacks are left out. Gives the time right
    /// before that, on [`crate::now`]'s clock.
    pub fn type_text(&self, text: &str) -> Duration {
        let keys: Vec<_> = text.chars().filter_map(keys::key_of).collect();
        self.ask(move |state| {
            let before = clock::now();
            for (code, shifted) in keys {
                if shifted {
                    state.key(keys::SHIFTS[0], true);
                }
                state.key(code, true);
                state.key(code, false);
                if shifted {
                    state.key(keys::SHIFTS[0], false);
                }
            }
            before
        })
    }

    /// Commits a text by input method to the focused client; how many of its text inputs wanted one.
    pub fn commit_text(&self, text: &str) -> usize {
        let text = text.to_owned();
        self.ask(move |state| state.commit_text(&text))
    }

    /// Moves the pointer on the output, in logical pixels.
    pub fn pointer_motion(&self, x: f64, y: f64) {
        self.ask(move |state| state.motion(x, y));
    }

    /// Presses or releases a button, by its evdev code (0x110 is the left one); the serial of the event.
    pub fn pointer_button(&self, code: u32, pressed: bool) -> u32 {
        self.ask(move |state| state.button(code, pressed))
    }

    /// Turns the wheel by so many steps; down and right are positive.
    pub fn pointer_axis(&self, horizontal: bool, steps: i32) {
        self.ask(move |state| state.axis(horizontal, steps));
    }

    /// Moves the keyboard focus to a surface, or nowhere.
    pub fn set_focus(&self, surface: Option<SurfaceId>) {
        self.ask(move |state| state.focus(surface));
    }

    /// Asks a window to be of this size (logical pixels, 0 lets it choose); the serial, `None` if it is no window.
    pub fn configure(&self, window: SurfaceId, width: i32, height: i32) -> Option<u32> {
        self.ask(move |state| state.configure_window(window, Some((width, height))))
    }

    /// Asks a window to close.
    pub fn close(&self, window: SurfaceId) {
        self.ask(move |state| {
            if let Some(toplevel) = state.toplevel_mut(window) {
                toplevel.resource.close();
            }
        });
    }

    /// Sends a popup, and those above it, away.
    pub fn dismiss_popup(&self, popup: SurfaceId) {
        self.ask(move |state| state.dismiss(popup));
    }

    /// A hidden surface gets no frame callbacks until it is shown again.
    pub fn set_hidden(&self, surface: SurfaceId, hidden: bool) {
        self.ask(move |state| {
            if let Some(surface) = state.surfaces.get_mut(&surface) {
                surface.hidden = hidden;
            }
        });
    }

    /// Changes size (its own pixels) and scale of the output.
    pub fn change_output(&self, width: u32, height: u32, scale: u32) {
        self.ask(move |state| state.change_output(width, height, scale));
    }

    /// Pings every client that has an `xdg_wm_base`; the serial.
    pub fn ping(&self) -> u32 {
        self.ask(|state| {
            let serial = state.next_serial();
            for base in state.wm_bases.iter().filter(|base| base.resource.is_alive()) {
                base.resource.ping(serial);
            }
            serial
        })
    }

    /// Ends a client's connection.
    pub fn disconnect(&self, client: ClientNumber) {
        self.ask(move |state| state.disconnect(client));
    }

    /// One frame of the output, beside those of the clock if it runs.
    pub fn tick(&self) {
        self.ask(|state| state.tick(clock::now()));
    }

    /// Puts data of the stage's own on a clipboard: types and their bytes. Empty clears it.
    pub fn set_clipboard(&self, clipboard: Clipboard, data: Vec<(String, Vec<u8>)>) {
        let bundle = (!data.is_empty()).then(|| Bundle::new(data));
        self.ask(move |state| match clipboard {
            Clipboard::Regular => state.set_clipboard(bundle.map(Origin::Stage)),
            Clipboard::Primary => state.set_primary(bundle.map(PrimaryOrigin::Stage)),
        });
    }

    /// Asks for a clipboard's content of one type, which a client's program then writes. The receiver gets all of
    /// it at its end; it ends without a value when there is nothing to read.
    pub fn clipboard(&self, clipboard: Clipboard, mime_type: &str) -> Receiver<Vec<u8>> {
        self.read_clipboard(clipboard, mime_type).map_or_else(|| channel().1, pipe::read)
    }

    /// As [`Stage::clipboard`], but gives the reading end of the pipe: for readers that stop early.
    pub fn read_clipboard(&self, clipboard: Clipboard, mime_type: &str) -> Option<OwnedFd> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).ok()?;
        let name = mime_type.to_owned();
        let sent = self.ask(move |state| match clipboard {
            Clipboard::Regular => match &state.data.selection {
                Some(Origin::Client(source)) => {
                    source.send(name, writer.as_fd());
                    true
                }
                Some(Origin::Stage(bundle)) => {
                    pipe::write(bundle.clone(), name, writer);
                    true
                }
                None => false,
            },
            Clipboard::Primary => match &state.primary.selection {
                Some(PrimaryOrigin::Client(source)) => {
                    source.send(name, writer.as_fd());
                    true
                }
                Some(PrimaryOrigin::Stage(bundle)) => {
                    pipe::write(bundle.clone(), name, writer);
                    true
                }
                None => false,
            },
        });
        sent.then_some(reader)
    }

    /// Time between two frames of the output.
    pub fn period(&self) -> Duration {
        self.ask(|state| state.period())
    }

    /// Runs something on the compositor's thread and gives its answer.
    fn ask<T: Send + 'static>(&self, question: impl FnOnce(&mut State) -> T + Send + 'static) -> T {
        let (sender, receiver) = channel();
        let command: Command = Box::new(move |state| {
            let _ = sender.send(question(state));
        });
        let commands = self.commands.as_ref().expect("it is there until the drop");
        commands.send(command).expect("the stage's thread lives as long as its handle");
        self.ring();
        receiver.recv().expect("the stage's thread answers")
    }

    fn ring(&self) {
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.commands = None;
        self.ring();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        run::unlink(&self.config);
    }
}

fn window(state: &State, id: SurfaceId) -> Option<Window> {
    let surface = state.surface(id)?;
    let toplevel = surface.xdg.as_ref()?.toplevel()?;
    let geometry = state.geometry(id);
    let (x, y) = toplevel.position;
    Some(Window {
        surface: id,
        client: surface.client,
        title: toplevel.title.clone(),
        app_id: toplevel.app_id.clone(),
        parent: toplevel.parent,
        place: Rect::new(x, y, geometry.width, geometry.height),
    })
}
