//! Programs that speak to the sound server.
//!
//! Input: steps. A byte says which of four programs and what it does: it sends bytes as they are, a command (with its
//! header made right) or sound; it reads; it is lost, and another one comes; or time passes, and 10 ms are mixed
//! and recorded.

use std::time::Duration;

use wayferry_proto::Time;
use wayferry_pulse::{ClientId, Server};

use crate::Input;

/// What is mixed can be heard, what is answered can be read, and nothing that a program leaves unread grows.
///
/// # Panics
/// When that is not so.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let mut room = Room { server: Server::new(), now: Time::ZERO, clients: Vec::new(), whole: [true; 4] };
    room.server.set_microphone(true);
    room.clients = (0..4).map(|_| room.comes()).collect();
    for _ in 0..MOST_STEPS {
        if input.is_empty() {
            break;
        }
        let step = input.u8();
        let client = usize::from(step % 4);
        match step / 4 % 8 {
            0 => {
                let length = input.u8();
                room.whole[client] = false;
                room.send(client, input.take(length.into()));
            }
            1 | 2 => {
                let length = input.u8();
                room.command(client, input.take(length.into()));
            }
            3 | 4 => room.sound(client, &mut input),
            5 => room.read(client, usize::from(input.u8()) * 64),
            6 => {
                room.server.disconnect(room.clients[client]);
                room.clients[client] = room.comes();
                room.whole[client] = true;
            }
            _ => room.passes(input.u8()),
        }
        room.check();
    }
}

struct Room {
    server: Server,
    now: Time,
    clients: Vec<ClientId>,
    /// Whether a program has sent whole frames only.
    whole: [bool; 4],
}

impl Room {
    /// A program that has said hello.
    fn comes(&mut self) -> ClientId {
        let id = self.server.connect().expect("there are few");
        self.server.receive(self.now, id, &framed(HELLO));
        id
    }

    fn send(&mut self, client: usize, bytes: &[u8]) {
        self.server.receive(self.now, self.clients[client], bytes);
    }

    /// It is answered, unless the program leaves too much unread, or sent something else before.
    fn command(&mut self, client: usize, command: &[u8]) {
        let id = self.clients[client];
        let (before, was_read) = (self.server.unwritten(id).len(), self.server.is_read(id));
        self.send(client, &framed(command));
        let is_question =
            command.len() >= 10 && command[0] == b'L' && command[5] == b'L' && command[..5] != DRAIN;
        if is_question && was_read && self.whole[client] {
            assert!(self.server.unwritten(id).len() > before, "it is not answered");
        }
    }

    fn sound(&mut self, client: usize, input: &mut Input<'_>) {
        let (channel, from, offset, length) = (input.u8(), input.u8(), input.u16(), input.u16());
        // Near, far, and beyond all bounds.
        let offset = i64::from(offset.cast_signed()) << (from / 4 % 16 * 4);
        let mut bytes: Vec<u8> =
            [u32::from(length), channel.into()].iter().flat_map(|word| word.to_be_bytes()).collect();
        bytes.extend(offset.to_be_bytes());
        bytes.extend(u32::from(from % 4).to_be_bytes());
        bytes.extend((0..length).map(|at| (at as u8).wrapping_mul(37)));
        self.send(client, &bytes);
    }

    fn read(&mut self, client: usize, most: usize) {
        let id = self.clients[client];
        let bytes = self.server.unwritten(id).len().min(most);
        self.server.written(id, bytes);
    }

    fn passes(&mut self, turns: u8) {
        // The microphone goes, and comes again.
        self.server.set_microphone(turns < 252);
        self.server.set_microphone(true);
        for _ in 0..turns % 8 {
            let mut mix = [f32::NAN; 960];
            self.server.mix(self.now, &mut mix);
            assert!(mix.iter().all(|sample| sample.abs() <= 1.0), "louder than anything");
            self.server.record(self.now, &mix);
            self.now += Duration::from_millis(10);
        }
        self.now += Duration::from_millis(u64::from(turns) << (turns / 16));
        self.server.is_playing();
    }

    fn check(&self) {
        for &id in &self.clients {
            assert!(self.server.unwritten(id).len() < MOST_UNREAD, "leaves too much unread");
        }
    }
}

fn framed(command: &[u8]) -> Vec<u8> {
    let mut bytes = (command.len() as u32).to_be_bytes().to_vec();
    bytes.extend([255; 4]);
    bytes.extend([0; 12]);
    bytes.extend(command);
    bytes
}

const HELLO: &[u8] = &[b'L', 0, 0, 0, 8, b'L', 0, 0, 0, 0, b'L', 0, 0, 0, 35, b'x', 0, 0, 0, 0];
const DRAIN: [u8; 5] = [b'L', 0, 0, 0, 12];

/// An input has no more steps than this, for the sake of time.
const MOST_STEPS: usize = 512;

/// What lies unread, and an answer more.
const MOST_UNREAD: usize = 600 << 10;
