//! `wp_security_context`: tells the compositor that the session's clients are sandboxed programs.
//!
//! A connection of our own asks the compositor for a second socket, whose clients have this name and, depending on the
//! compositor, fewer rights; all of the session's connections go there. Where the compositor does not offer that,
//! nothing changes. Invariant: once the value is dropped, the compositor accepts no client on the socket.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use wayferry_wayland::wire::{Arg, InBuffer, OutBuffer, RawMessage, ReadState, Socket};

use super::socket::{self, RuntimeDir};
use crate::error::Error;

/// A socket of the compositor for programs of one name.
#[derive(Debug)]
pub struct Context {
    dir: RuntimeDir,
    /// The compositor closes the socket when this is closed.
    _open: OwnedFd,
}

impl Context {
    /// Asks the compositor at `path` for a socket whose clients are called `app_id`; `None` if it offers none.
    ///
    /// # Errors
    /// The compositor refuses, does not answer, or no socket can be made.
    pub fn new(path: &Path, app_id: &str) -> Result<Option<Self>, Error> {
        let refused = |error: io::Error| Error::Compositor(format!("no security context: {error}"));
        let mut asking = Asking::new(path).map_err(refused)?;
        let Some(global) = asking.find().map_err(refused)? else { return Ok(None) };
        let dir = RuntimeDir::private()?;
        let listener = UnixListener::bind(Self::socket_in(&dir)).map_err(refused)?;
        let (closed, open) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
            .map_err(|errno| refused(errno.into()))?;
        asking.ask(global, listener.into(), closed, app_id).map_err(refused)?;
        Ok(Some(Self { dir, _open: open }))
    }

    /// Where programs' connections go.
    pub fn socket(&self) -> PathBuf {
        Self::socket_in(&self.dir)
    }

    fn socket_in(dir: &RuntimeDir) -> PathBuf {
        dir.path().join("wayland-0")
    }
}

/// The connection that asks.
struct Asking {
    socket: Socket,
    input: InBuffer,
    output: OutBuffer,
    /// Registry name of the manager.
    manager: Option<u32>,
}

impl Asking {
    fn new(path: &Path) -> io::Result<Self> {
        let socket = Socket::new(socket::connect(path)?)?;
        Ok(Self { socket, input: InBuffer::new(), output: OutBuffer::new(OUTPUT), manager: None })
    }

    /// The registry name of the manager, if the compositor has one.
    fn find(&mut self) -> io::Result<Option<u32>> {
        self.say(DISPLAY, GET_REGISTRY, vec![Arg::NewId(REGISTRY)])?;
        self.round_trip(FIRST_CALLBACK)?;
        Ok(self.manager)
    }

    /// Has the compositor accept clients on `listener` until `closed` is hung up.
    fn ask(&mut self, global: u32, listener: OwnedFd, closed: OwnedFd, app_id: &str) -> io::Result<()> {
        let text =
            |text: &str| Arg::Str(Some(text.as_bytes().iter().copied().filter(|byte| *byte != 0).collect()));
        let bind = vec![Arg::Uint(global), text(MANAGER), Arg::Uint(1), Arg::NewId(MANAGER_ID)];
        self.say(REGISTRY, BIND, bind)?;
        let listen = vec![Arg::NewId(CONTEXT_ID), Arg::Fd(listener), Arg::Fd(closed)];
        self.say(MANAGER_ID, CREATE_LISTENER, listen)?;
        self.say(CONTEXT_ID, SET_SANDBOX_ENGINE, vec![text(ENGINE)])?;
        self.say(CONTEXT_ID, SET_APP_ID, vec![text(app_id)])?;
        self.say(CONTEXT_ID, SET_INSTANCE_ID, vec![text(&std::process::id().to_string())])?;
        self.say(CONTEXT_ID, COMMIT, Vec::new())?;
        self.round_trip(SECOND_CALLBACK)
    }

    fn say(&mut self, object: u32, opcode: u16, args: Vec<Arg>) -> io::Result<()> {
        self.output.encode(object, opcode, args).map_err(|error| io::Error::other(error.to_string()))
    }

    /// Waits until the compositor has done everything so far.
    fn round_trip(&mut self, callback: u32) -> io::Result<()> {
        self.say(DISPLAY, SYNC, vec![Arg::NewId(callback)])?;
        let deadline = std::time::Instant::now() + PATIENCE;
        loop {
            self.socket.flush(&mut self.output)?;
            let state = self.socket.read_into(&mut self.input)?;
            while let Some(event) =
                self.input.next_message().map_err(|error| io::Error::other(error.to_string()))?
            {
                match (event.object, event.opcode) {
                    (DISPLAY, ERROR) => return Err(io::Error::other(complaint(&event))),
                    (REGISTRY, GLOBAL) => self.manager = self.manager.or(manager(&event)),
                    (id, _) if id == callback => return Ok(()),
                    _ => {}
                }
            }
            let left = deadline.saturating_duration_since(std::time::Instant::now());
            match state {
                ReadState::Progress => {}
                ReadState::Closed => return Err(io::ErrorKind::ConnectionReset.into()),
                ReadState::WouldBlock if left.is_zero() => return Err(io::ErrorKind::TimedOut.into()),
                ReadState::WouldBlock => {
                    let wanted =
                        if self.output.is_empty() { PollFlags::IN } else { PollFlags::IN | PollFlags::OUT };
                    let mut set = [PollFd::from_borrowed_fd(self.socket.as_fd(), wanted)];
                    crate::edge::wait::poll(&mut set, Some(left))
                        .map_err(|error| io::Error::other(error.to_string()))?;
                }
            }
        }
    }
}

/// The registry name, if `wl_registry.global` is about the manager.
fn manager(event: &RawMessage) -> Option<u32> {
    let word = |at: usize| event.body.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes);
    let length = word(4)? as usize;
    let interface = event.body.get(8..8 + length.checked_sub(1)?)?;
    if interface == MANAGER.as_bytes() { word(0) } else { None }
}

/// What `wl_display.error` says; the text follows an object and a code.
fn complaint(event: &RawMessage) -> String {
    let text = event.body.get(12..).unwrap_or_default();
    String::from_utf8_lossy(text).trim_end_matches('\0').to_owned()
}

const MANAGER: &str = "wp_security_context_manager_v1";
/// `sandbox_engine`: names this program.
const ENGINE: &str = "wayferry";

/// Object ids, in the order in which they are allocated.
const DISPLAY: u32 = 1;
const REGISTRY: u32 = 2;
const FIRST_CALLBACK: u32 = 3;
const MANAGER_ID: u32 = 4;
const CONTEXT_ID: u32 = 5;
const SECOND_CALLBACK: u32 = 6;

/// Requests of `wl_display`, `wl_registry`, the manager and the context.
const SYNC: u16 = 0;
const GET_REGISTRY: u16 = 1;
const BIND: u16 = 0;
const CREATE_LISTENER: u16 = 1;
const SET_SANDBOX_ENGINE: u16 = 1;
const SET_APP_ID: u16 = 2;
const SET_INSTANCE_ID: u16 = 3;
const COMMIT: u16 = 4;

/// Events of `wl_display` and of `wl_registry`.
const ERROR: u16 = 0;
const GLOBAL: u16 = 0;

/// Bytes of requests at most.
const OUTPUT: usize = 16 << 10;
/// How long the compositor may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    use super::*;

    /// What a compositor got: objects and opcodes, and descriptors.
    #[derive(Default)]
    struct Got {
        requests: Vec<(u32, u16)>,
        fds: Vec<OwnedFd>,
    }

    /// A compositor that has `globals`, on a thread of its own: answers each `sync` and gives what it
    /// got. It refuses a context for `bad`.
    fn compositor(dir: &RuntimeDir, globals: &'static [&str]) -> std::thread::JoinHandle<Got> {
        let listener = UnixListener::bind(dir.path().join("wayland-1")).unwrap();
        std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let socket = Socket::new(stream.into()).unwrap();
            let (mut input, mut output) = (InBuffer::new(), OutBuffer::new(OUTPUT));
            let mut got = Got::default();
            loop {
                let mut set = [PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::IN)];
                crate::edge::wait::poll(&mut set, Some(Duration::from_secs(30))).unwrap();
                if !matches!(socket.read_into(&mut input), Ok(ReadState::Progress)) {
                    return got;
                }
                got.fds.extend(input.fds_mut().drain(..));
                while let Some(request) = input.next_message().unwrap() {
                    got.requests.push((request.object, request.opcode));
                    match (request.object, request.opcode) {
                        (DISPLAY, SYNC) => {
                            let id = u32::from_ne_bytes(request.body[..4].try_into().unwrap());
                            output.encode(id, 0, vec![Arg::Uint(0)]).unwrap();
                        }
                        (DISPLAY, GET_REGISTRY) => {
                            for (name, interface) in (7..).zip(globals) {
                                let interface = Arg::Str(Some(interface.as_bytes().to_vec()));
                                let args = vec![Arg::Uint(name), interface, Arg::Uint(1)];
                                output.encode(REGISTRY, GLOBAL, args).unwrap();
                            }
                        }
                        (CONTEXT_ID, SET_APP_ID) if request.body.windows(3).any(|part| part == b"bad") => {
                            let text = Arg::Str(Some(b"no such name".to_vec()));
                            let args = vec![Arg::Object(CONTEXT_ID), Arg::Uint(3), text];
                            output.encode(DISPLAY, ERROR, args).unwrap();
                        }
                        _ => {}
                    }
                }
                socket.flush(&mut output).unwrap();
            }
        })
    }

    #[test]
    fn programs_get_a_socket_of_their_own_that_ends_with_the_context() {
        let dir = RuntimeDir::private().unwrap();
        let compositor = compositor(&dir, &["wl_compositor", MANAGER]);
        let context = Context::new(&dir.path().join("wayland-1"), "far.host").unwrap().unwrap();
        let Got { requests, fds } = compositor.join().unwrap();
        let asked =
            [SET_SANDBOX_ENGINE, SET_APP_ID, SET_INSTANCE_ID, COMMIT].map(|opcode| (CONTEXT_ID, opcode));
        assert_eq!(
            &requests[2..],
            [&[(REGISTRY, BIND), (MANAGER_ID, CREATE_LISTENER)], &asked[..], &[(DISPLAY, SYNC)]].concat()
        );
        let [listener, closed] = &fds[..] else { panic!("{} descriptors", fds.len()) };
        let program = UnixStream::connect(context.socket()).unwrap();
        let accepted = rustix::net::accept(listener).unwrap();
        assert!(program.peer_addr().is_ok() && rustix::net::getpeername(&accepted).is_ok());
        drop(context);
        let mut closed = std::fs::File::from(closed.try_clone().unwrap());
        assert_eq!(closed.read(&mut [0]).unwrap(), 0, "hung up");
    }

    #[test]
    fn a_compositor_without_contexts_is_used_as_it_is() {
        let dir = RuntimeDir::private().unwrap();
        let compositor = compositor(&dir, &["wl_compositor"]);
        assert!(Context::new(&dir.path().join("wayland-1"), "far.host").unwrap().is_none());
        drop(compositor.join());
    }

    #[test]
    fn a_compositor_that_refuses_is_quoted() {
        let dir = RuntimeDir::private().unwrap();
        let compositor = compositor(&dir, &[MANAGER]);
        let error = Context::new(&dir.path().join("wayland-1"), "bad").unwrap_err().to_string();
        assert!(error.contains("no such name"), "{error}");
        drop(compositor.join());
    }
}
