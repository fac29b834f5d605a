//! A compositor that says what a real one must not: its keymap is the end of a pipe.
//!
//! It answers just enough for a client to ask for the keymap, one client, one request after the other.

use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, poll};
use wayferry_wayland::wire::{Arg, InBuffer, OutBuffer, RawMessage, ReadState, Socket};

/// A listening compositor; its thread ends with its client.
pub(crate) struct Compositor {
    socket: PathBuf,
}

impl Compositor {
    /// Listens.
    pub(crate) fn start(socket: PathBuf) -> Self {
        let listener = UnixListener::bind(&socket).expect("a socket");
        std::thread::spawn(move || {
            let (stream, _) = listener.accept().expect("a client");
            serve(&Socket::new(stream.into()).expect("a socket"));
        });
        Self { socket }
    }

    /// Where it listens.
    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }
}

impl Drop for Compositor {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.socket);
    }
}

fn serve(socket: &Socket) {
    let (mut input, mut output) = (InBuffer::new(), OutBuffer::new(1 << 16));
    let (mut registry, mut seat) = (0, 0);
    loop {
        let mut set = [PollFd::new(socket, PollFlags::IN)];
        let _ = poll(&mut set, None);
        if !matches!(socket.read_into(&mut input), Ok(ReadState::Progress)) {
            return;
        }
        while let Ok(Some(request)) = input.next_message() {
            let last = word(&request, request.body.len() / 4 - 1);
            match (request.object, request.opcode) {
                (1, 0) => say(&mut output, last, 0, vec![Arg::Uint(1)]),
                (1, 1) => {
                    registry = last;
                    for (name, (interface, version)) in (1..).zip(GLOBALS) {
                        let interface = Arg::Str(Some(interface.as_bytes().to_vec()));
                        say(&mut output, registry, 0, vec![Arg::Uint(name), interface, Arg::Uint(version)]);
                    }
                }
                (object, 0) if object == registry && word(&request, 0) == SEAT => {
                    seat = last;
                    say(&mut output, seat, 0, vec![Arg::Uint(2)]);
                }
                (object, 1) if object == seat => {
                    let (end, _other) = rustix::pipe::pipe().expect("a pipe");
                    say(&mut output, last, 0, vec![Arg::Uint(1), Arg::Fd(end), Arg::Uint(1000)]);
                }
                _ => {}
            }
        }
        let _ = socket.flush(&mut output);
    }
}

fn say(output: &mut OutBuffer, object: u32, opcode: u16, args: Vec<Arg>) {
    output.encode(object, opcode, args).expect("fits");
}

fn word(request: &RawMessage, index: usize) -> u32 {
    let bytes = request.body.get(index * 4..index * 4 + 4).unwrap_or(&[0; 4]);
    u32::from_ne_bytes(bytes.try_into().expect("four"))
}

const GLOBALS: [(&str, u32); 6] = [
    ("wl_compositor", 4),
    ("wl_subcompositor", 1),
    ("wl_shm", 1),
    ("wl_data_device_manager", 3),
    ("xdg_wm_base", 2),
    ("wl_seat", 7),
];

/// Registry name of the seat.
const SEAT: u32 = 6;
