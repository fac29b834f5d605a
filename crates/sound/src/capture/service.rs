//! The thread: sockets, the clock, and the order of a turn.
//!
//! Invariants: it never blocks but in `poll`; a turn reads a bounded amount of each program.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use wayferry_audio::{CHANNELS, FrameSize};
use wayferry_proto::Time;
use wayferry_pulse::{ClientId, Server};

use super::beat::Beat;
use super::spoken::Order;
use super::{Door, Shared};
use crate::encoding::Encoding;
use crate::source::Source;

/// See the module.
pub(super) struct Service {
    shared: Arc<Shared>,
    door: Box<dyn Door>,
    now: Box<dyn Fn() -> Time + Send>,
    server: Server,
    clients: BTreeMap<ClientId, OwnedFd>,
    beat: Beat,
    encoding: Option<Encoding>,
    /// What programs record.
    microphone: Source,
    /// No descriptors are left: until then the door stays shut.
    shut_until: Option<Time>,
}

impl Service {
    pub(super) fn new(shared: Arc<Shared>, door: Box<dyn Door>, now: Box<dyn Fn() -> Time + Send>) -> Self {
        Self {
            shared,
            door,
            now,
            server: Server::new(),
            clients: BTreeMap::new(),
            beat: Beat::default(),
            encoding: None,
            microphone: Source::default(),
            shut_until: None,
        }
    }

    /// Until the handle is dropped.
    pub(super) fn run(mut self) {
        while self.take_orders() {
            let now = (self.now)();
            self.mix(now);
            self.write();
            let ready = self.wait(now);
            let now = (self.now)();
            self.accept(now, ready.door);
            for client in ready.readable {
                self.read(now, client);
            }
            self.write();
            self.close_ended();
        }
    }

    /// Says whether to go on.
    fn take_orders(&mut self) -> bool {
        let Some(wanted) = self.shared.outbox.take_orders() else { return false };
        self.server.set_latency(*self.shared.latency.lock().unwrap_or_else(PoisonError::into_inner));
        let adapts = match (&mut self.encoding, wanted) {
            (Some(encoding), Some(wanted)) => encoding.adapts(wanted),
            (encoding, None) => encoding.is_none(),
            (None, Some(_)) => false,
        };
        if !adapts {
            let within = self.server.is_playing();
            self.encoding = wanted.and_then(|wanted| Encoding::new(wanted, within));
        }
        self.take_spoken();
        true
    }

    fn take_spoken(&mut self) {
        let spoken = self.shared.spoken.take();
        self.server.set_microphone(spoken.is_there);
        self.server.set_microphone_latency(spoken.latency);
        for order in spoken.orders {
            match order {
                // Without memory for a decoder silence is recorded.
                Order::Begin(codec) => drop(self.microphone.begin(codec)),
                Order::Packet(arrived, packet) => self.microphone.packet(arrived, packet),
            }
        }
    }

    /// Mixes and records the blocks that are due. Silence after sound is mixed too, until it has been told.
    fn mix(&mut self, now: Time) {
        if self.is_busy() {
            self.beat.start(now);
        }
        while let Some(capture) = self.beat.due(now) {
            let mut block = [0.0; FrameSize::Ms10.frames() * CHANNELS];
            self.server.mix(now, &mut block);
            if let Some(encoding) = &mut self.encoding
                && let Some(captured) = encoding.block(capture, &block)
            {
                self.shared.outbox.give(captured);
            }
            if self.server.is_recording() {
                // A block that is late is one of its own time: else the tempo would seem to change.
                let at = Time::ZERO + Duration::from_micros(capture.0 * 1000 / 48);
                self.microphone.play(at, &mut block, Duration::ZERO);
                self.server.record(now, &block);
            }
            if !self.is_busy() {
                self.beat.stop();
            }
        }
        self.tell_recorded();
    }

    fn is_busy(&self) -> bool {
        let speaks = self.encoding.as_ref().is_some_and(|encoding| !encoding.is_idle());
        speaks || self.server.is_playing() || self.server.is_recording()
    }

    /// What was spoken while no program recorded is not recorded later.
    fn tell_recorded(&mut self) {
        let is_recorded = self.server.is_recording();
        if self.shared.spoken.tell(is_recorded, self.microphone.figures()) {
            self.shared.outbox.wake();
            if !is_recorded {
                self.microphone.forget();
            }
        }
    }

    fn wait(&mut self, now: Time) -> Ready {
        let open = self.shut_until.is_none_or(|until| until <= now);
        let timeouts = [self.beat.next_timeout(), self.shut_until.filter(|_| !open)];
        let timeout = timeouts.into_iter().flatten().min().map(|at| {
            let left = at.since(now);
            Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) }
        });
        let interest = |flag, on| if on { flag } else { PollFlags::empty() };
        let mut polled = vec![
            PollFd::from_borrowed_fd(self.shared.outbox.orders(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.door.as_fd(), interest(PollFlags::IN, open)),
        ];
        for (client, socket) in &self.clients {
            let flags = interest(PollFlags::IN, self.server.is_read(*client))
                | interest(PollFlags::OUT, !self.server.unwritten(*client).is_empty());
            polled.push(PollFd::from_borrowed_fd(socket.as_fd(), flags));
        }
        if poll(&mut polled, timeout.as_ref()).is_err() {
            return Ready::default();
        }
        let gone = PollFlags::HUP | PollFlags::ERR;
        let readable = self.clients.keys().zip(&polled[2..]);
        let readable = readable.filter(|(_, polled)| polled.revents().intersects(PollFlags::IN | gone));
        Ready {
            door: polled[1].revents().contains(PollFlags::IN),
            readable: readable.map(|(client, _)| *client).collect(),
        }
    }

    fn accept(&mut self, now: Time, ready: bool) {
        self.shut_until = self.shut_until.filter(|until| *until > now);
        if !ready {
            return;
        }
        for _ in 0..ACCEPTED_IN_A_TURN {
            match self.door.accept() {
                Ok(Some(socket)) => {
                    let client =
                        rustix::io::ioctl_fionbio(&socket, true).ok().and_then(|()| self.server.connect());
                    // One too many finds its connection closed.
                    client.map(|client| self.clients.insert(client, socket));
                }
                Ok(None) => return,
                Err(_) => {
                    self.shut_until = Some(now + PAUSE);
                    return;
                }
            }
        }
    }

    /// Reads once: what is left is read in the next turn, after what others have to say.
    fn read(&mut self, now: Time, client: ClientId) {
        let Some(socket) = self.clients.get(&client) else { return };
        let mut bytes = [0; READ_IN_A_TURN];
        match rustix::io::read(socket, &mut bytes[..]) {
            Ok(0) => self.close(client),
            Ok(count) => self.server.receive(now, client, &bytes[..count]),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.close(client),
        }
    }

    fn write(&mut self) {
        let mut broken = Vec::new();
        for (client, socket) in &self.clients {
            while !self.server.unwritten(*client).is_empty() {
                match send(socket, self.server.unwritten(*client)) {
                    Ok(count) => self.server.written(*client, count),
                    Err(Errno::INTR) => {}
                    Err(Errno::AGAIN) => break,
                    Err(_) => {
                        broken.push(*client);
                        break;
                    }
                }
            }
        }
        broken.into_iter().for_each(|client| self.close(client));
    }

    fn close_ended(&mut self) {
        let ended = self.clients.keys().filter(|client| self.server.end(**client).is_some());
        let ended: Vec<ClientId> = ended.copied().collect();
        ended.into_iter().for_each(|client| self.close(client));
    }

    fn close(&mut self, client: ClientId) {
        self.server.disconnect(client);
        self.clients.remove(&client);
    }
}

/// What there is to do.
#[derive(Default)]
struct Ready {
    door: bool,
    readable: Vec<ClientId>,
}

/// Writes without a signal if the program is gone.
fn send(socket: &OwnedFd, bytes: &[u8]) -> Result<usize, Errno> {
    rustix::net::send(socket, bytes, rustix::net::SendFlags::NOSIGNAL)
}

/// Programs accepted in one turn.
const ACCEPTED_IN_A_TURN: usize = 16;

/// Bytes read of one program in one turn.
const READ_IN_A_TURN: usize = 64 << 10;

/// How long the door stays shut when the system has no descriptors left.
const PAUSE: Duration = Duration::from_millis(100);
