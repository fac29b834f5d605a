//! The reader of GPU buffers: its process, what programs ask it, and when what draws on their buffers has ended.
//!
//! What is asked, and what becomes of it when a reader ends, is [`wayferry_gpu::Client`]'s. Invariant: nothing that a
//! reader does or does not do holds up a turn.

use std::ffi::OsString;
use std::os::fd::BorrowedFd;
use std::process::Child;
use std::rc::Rc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use serde_json::{Value, json};
use wayferry_gpu::{Answer, Ask, Client, Due, Figures, Offer, Received, Route};
use wayferry_proto::{ConnectionId, Time};
use wayferry_wayland::app::GpuSurface;

use crate::edge::part::{Hub, Part};
use crate::edge::reader::Reader;
use crate::edge::wait::{Interests, Ready, poll};
use crate::error::Error;
use crate::event::SessionEvent;
use crate::info::rounded;
use crate::sanitize::sanitize;

/// See the module.
#[derive(Debug)]
pub(super) struct Gpu {
    command: Vec<OsString>,
    client: Client,
    reader: Option<Reader>,
    /// Readers that were ended and have not gone.
    ended: Vec<Child>,
    /// When the first reader is not waited for any longer.
    waits_until: Time,
    /// The user is to be told if there can be none.
    tells: bool,
}

impl Gpu {
    /// With readers that this command starts; the user is told if it cannot, where one `was_asked_for`.
    pub(super) fn new(now: Time, command: Vec<OsString>, was_asked_for: bool) -> Self {
        let (client, waits_until) = (Client::default(), now + FIRST_READER);
        Self { command, client, reader: None, ended: Vec::new(), waits_until, tells: was_asked_for }
    }

    /// What a program that begins now is offered.
    pub(super) fn offer(&self) -> Option<Rc<Offer>> {
        self.client.offer().cloned()
    }

    /// Whether a program that begins now should wait for what it will be offered.
    pub(super) fn is_awaited(&self, now: Time) -> bool {
        now < self.waits_until && self.client.offer().is_none() && self.client.unable().is_none()
    }

    /// A program asks something.
    pub(super) fn ask(&mut self, now: Time, program: ConnectionId, ask: Ask) {
        self.client.ask(now.since_start(), program.0.into(), ask);
    }

    /// The next answer, and for whom.
    pub(super) fn poll_answer(&mut self) -> Option<(ConnectionId, Answer)> {
        let (owner, answer) = self.client.poll_answer()?;
        // Owners are connections.
        Some((ConnectionId(owner as u32), answer))
    }

    /// A program is gone.
    pub(super) fn part(&mut self, program: ConnectionId) {
        self.client.part(program.0.into());
    }

    /// What readers do, and for which surfaces of programs, for `wayferry info`.
    pub(super) fn document(
        &self,
        now: Time,
        surfaces: impl Iterator<Item = (ConnectionId, GpuSurface)>,
    ) -> Value {
        let surfaces =
            surfaces.take(MAX_SURFACES).map(|(program, surface)| self.surface(now, program, surface));
        let Figures { readers, read, unread, bytes, took } = self.client.figures();
        json!({
            "reader": self.client.means().map(|means| sanitize(&means.name)),
            "unable": self.client.unable().map(sanitize),
            "readers": readers,
            "read": read,
            "unread": unread,
            "read_bytes": bytes,
            "read_ms_mean": mean_ms(took, read),
            "surfaces": surfaces.collect::<Vec<Value>>(),
        })
    }

    fn surface(&self, now: Time, program: ConnectionId, of: GpuSurface) -> Value {
        let waits_for =
            |job| if self.client.is_undrawn(program.0.into(), job) { "program" } else { "reader" };
        let since = |since: Time| rounded(now.since(since).as_secs_f64() * 1000.0, 1);
        json!({
            "program": program.0,
            "surface": of.surface.0,
            "path": of.route.map(Route::name),
            "read": of.read,
            "read_bytes": of.bytes,
            "read_ms_mean": mean_ms(of.took, of.read),
            "waits_for": of.waits.map(|(job, _)| waits_for(job)),
            "waits_ms": of.waits.map(|(_, asked)| since(asked)),
        })
    }

    /// Asks the reader what it can be asked now.
    pub(super) fn send(&mut self, now: Time) {
        self.look_what_is_drawn(now);
        while let Some((reader, packet)) = self.reader.as_ref().zip(self.client.output()) {
            match reader.link().send(&packet.bytes, &packet.fds()) {
                Ok(()) => self.client.sent(),
                Err(Errno::AGAIN) => break,
                Err(_) => self.end(now),
            }
        }
    }

    fn look_what_is_drawn(&mut self, now: Time) {
        let drawn = self.client.undrawn().filter(|(_, fds)| first_undrawn(fds).is_none());
        for name in drawn.map(|(name, _)| name).collect::<Vec<_>>() {
            self.client.on_drawn(now.since_start(), name);
        }
    }

    fn start(&mut self, now: Time) {
        match Reader::start(&self.command) {
            Ok(reader) => self.reader = Some(reader),
            Err(_) => self.client.on_end(now.since_start()),
        }
    }

    fn end(&mut self, now: Time) {
        self.ended.extend(self.reader.take().map(Reader::kill));
        self.client.on_end(now.since_start());
    }

    fn receive(&mut self, now: Time) {
        while let Some(reader) = &self.reader {
            match reader.receive() {
                Received::Packet(packet, _) => {
                    if self.client.on_packet(now.since_start(), &packet).is_err() {
                        self.end(now);
                    }
                }
                Received::Nothing => return,
                Received::End => self.end(now),
            }
        }
    }
}

impl Part for Gpu {
    fn interests<'a>(&'a mut self, now: Time, _hub: &'a Hub<'_>, interests: &mut Interests<'a>) {
        interests.until(self.client.next_timeout().map(Time::new));
        interests.until(self.is_awaited(now).then_some(self.waits_until));
        if let Some(reader) = &self.reader {
            let blocked = self.client.output().is_some();
            let flags = if blocked { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
            interests.add(reader, flags);
        }
        // One of each buffer: others that are ready would wake it again and again.
        for fd in self.client.undrawn().filter_map(|(_, fds)| first_undrawn(&fds)) {
            interests.add_borrowed(fd, PollFlags::IN);
        }
    }

    fn turn(&mut self, now: Time, hub: &mut Hub<'_>, _: &Ready) -> Result<(), Error> {
        self.ended.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        self.receive(now);
        match self.client.on_timeout(now.since_start()) {
            Some(Due::Start) => self.start(now),
            Some(Due::Kill) => self.end(now),
            None => {}
        }
        self.send(now);
        if let Some(why) = self.client.unable().filter(|_| self.tells) {
            hub.reporter.report(SessionEvent::NoGpu { reason: why.to_owned() });
            self.tells = false;
        }
        Ok(())
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        self.ended.extend(self.reader.take().map(Reader::kill));
        // One that hangs in a driver is init's.
        self.ended.iter_mut().for_each(|child| drop(child.try_wait()));
    }
}

/// A descriptor that is not ready yet; a dmabuf is when no device writes to it (the kernel's `dma-buf.c`, poll).
fn first_undrawn<'a>(fds: &[BorrowedFd<'a>]) -> Option<BorrowedFd<'a>> {
    let is_drawn = |fd: &BorrowedFd<'a>| {
        let mut set = [PollFd::from_borrowed_fd(*fd, PollFlags::IN)];
        poll(&mut set, Some(Duration::ZERO)).is_ok() && !set[0].revents().is_empty()
    };
    fds.iter().copied().find(|fd| !is_drawn(fd))
}

fn mean_ms(took: Duration, count: u64) -> Option<f64> {
    let mean = took.checked_div(u32::try_from(count).unwrap_or(u32::MAX))?;
    Some(rounded(mean.as_secs_f64() * 1000.0, 2))
}

/// Surfaces listed in the document.
const MAX_SURFACES: usize = 100;
/// The session's first program waits for the first reader no longer than this.
const FIRST_READER: Duration = Duration::from_secs(5);
