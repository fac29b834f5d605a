//! A trunk ([`wayferry_proto::trunk`]) between descriptors, on a thread of its own.
//!
//! At one side is what ssh gives a command as stdin and stdout, at the other a descriptor for each strand: a pipe for
//! each of the program's three, a socket for each meeting. The thread never blocks on any of them. It ends when ssh's
//! stream is over and what came there has been passed on, or when it is told to finish. Invariant: a strand's
//! descriptor is closed, or a meeting's direction to it, when and only when nothing more comes for it.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;
use wayferry_proto::trunk::{self, MAX_PIECE, MEETING, NOTES, STDERR, STDIN, STDOUT, TrunkError};

use super::peer;

/// The handle of an end.
#[derive(Debug)]
pub struct Trunk {
    orders: Sender<Order>,
    kick: UnixStream,
    sign: UnixStream,
    spoken: Arc<OnceLock<bool>>,
    over: UnixStream,
}

/// What the thread is told.
#[derive(Debug)]
enum Order {
    /// Read the user's stdin here.
    Stdin(OwnedFd),
    /// Have the other end bring what is at the other end of this to the display.
    Open(OwnedFd),
    /// End when all that the program writes has been passed on.
    Finish,
    /// The same of what it has written by now.
    Leave,
}

impl Trunk {
    /// The display's end. `link` is ssh's stdin and stdout; later meetings are brought to the socket at `standby`.
    ///
    /// # Errors
    /// The system has no thread or descriptor left.
    pub fn near(link: OwnedFd, meeting: OwnedFd, output: [OwnedFd; 2], standby: &Path) -> io::Result<Self> {
        let [stdout, stderr] = output;
        let notes = stderr.try_clone()?;
        let ends = [
            (STDIN, Ends::default()),
            (STDOUT, Ends::to(stdout)?),
            (STDERR, Ends::to(stderr)?),
            (NOTES, Ends::to(notes)?),
            (MEETING, Ends::both(meeting)?),
        ];
        Self::start(trunk::End::Near, link.try_clone()?, link, ends.into(), Some(standby.to_owned()))
    }

    /// The end beside the program, on stdin and stdout, which has said its mark; `stdio` are the session's ends of the
    /// program's pipes, and where its notes come from.
    ///
    /// # Errors
    /// The system has no thread or descriptor left.
    pub fn far(from: OwnedFd, to: OwnedFd, meeting: OwnedFd, stdio: [OwnedFd; 4]) -> io::Result<Self> {
        let [stdin, stdout, stderr, notes] = stdio;
        let ends = [
            (STDIN, Ends::to(stdin)?),
            (STDOUT, Ends::from(stdout)),
            (STDERR, Ends::from(stderr)),
            (NOTES, Ends::from(notes)),
            (MEETING, Ends::both(meeting)?),
        ];
        Self::start(trunk::End::Far, from, to, ends.into(), None)
    }

    fn start(
        end: trunk::End,
        from: OwnedFd,
        to: OwnedFd,
        ends: BTreeMap<u32, Ends>,
        standby: Option<PathBuf>,
    ) -> io::Result<Self> {
        let (orders, told) = channel();
        let ((kick, kicked), (sign, unheard), (over, running)) =
            (UnixStream::pair()?, UnixStream::pair()?, UnixStream::pair()?);
        let spoken = Arc::new(OnceLock::new());
        for end in [&kick, &kicked] {
            end.set_nonblocking(true)?;
        }
        let work = Work {
            trunk: trunk::Trunk::new(end),
            from: Some(from),
            to: Some(NonBlocking::new(to)?),
            out: Vec::new(),
            ends,
            standby,
            orders: told,
            kicked: Some(kicked),
            unheard: Some(unheard),
            spoken: Arc::clone(&spoken),
            finishes: false,
            leaves: false,
        };
        std::thread::Builder::new().name("trunk".into()).spawn(move || {
            work.run();
            drop(running);
        })?;
        Ok(Self { orders, kick, sign, spoken, over })
    }

    /// Whether the other end has spoken; `None` while that may be yet to come.
    pub fn has_spoken(&self) -> Option<bool> {
        self.spoken.get().copied()
    }

    /// Readable when [`Trunk::has_spoken`] knows.
    pub fn sign(&self) -> BorrowedFd<'_> {
        self.sign.as_fd()
    }

    /// Readable when this end is over, and all that came has been passed on.
    pub fn over(&self) -> BorrowedFd<'_> {
        self.over.as_fd()
    }

    /// At the near end: what the program reads comes from here. Not before the other end has spoken.
    pub fn read_stdin(&self, stdin: OwnedFd) {
        self.tell(Order::Stdin(stdin));
    }

    /// At the far end: another meeting. Its end says when there is none.
    ///
    /// # Errors
    /// The system has no descriptor left.
    pub fn open(&self) -> io::Result<UnixStream> {
        let (ours, theirs) = UnixStream::pair()?;
        self.tell(Order::Open(theirs.into()));
        Ok(ours)
    }

    /// It ends when the program's output is over and has been passed on.
    pub fn finish(&self) {
        self.tell(Order::Finish);
    }

    /// It ends when what the program has written by now has been passed on, however long its reader takes.
    pub fn leave(&self) {
        self.tell(Order::Leave);
    }

    fn tell(&self, order: Order) {
        // A thread that is over closes what it is told of.
        let _ = self.orders.send(order);
        let _ = rustix::io::write(&self.kick, &[0]);
    }
}

/// A strand's descriptors here.
#[derive(Debug, Default)]
struct Ends {
    read: Option<OwnedFd>,
    write: Option<OwnedFd>,
}

impl Ends {
    fn from(read: OwnedFd) -> Self {
        Self { read: Some(read), write: None }
    }

    fn to(write: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&write, true)?;
        Ok(Self { read: None, write: Some(write) })
    }

    fn both(socket: OwnedFd) -> io::Result<Self> {
        let read = socket.try_clone()?;
        Ok(Self { read: Some(read), ..Self::to(socket)? })
    }

    fn end_write(&mut self, strand: u32) {
        let write = self.write.take();
        // What a meeting reads still holds its socket, which must be told.
        if let Some(write) = write.filter(|_| strand >= MEETING) {
            let _ = rustix::net::shutdown(&write, rustix::net::Shutdown::Write);
        }
    }
}

/// A descriptor that does not block, which gets its old flags back: its user may share it with other processes.
#[derive(Debug)]
struct NonBlocking {
    fd: OwnedFd,
    flags: OFlags,
}

impl NonBlocking {
    fn new(fd: OwnedFd) -> io::Result<Self> {
        let flags = rustix::fs::fcntl_getfl(&fd)?;
        rustix::fs::fcntl_setfl(&fd, flags | OFlags::NONBLOCK)?;
        Ok(Self { fd, flags })
    }
}

impl Drop for NonBlocking {
    fn drop(&mut self) {
        let _ = rustix::fs::fcntl_setfl(&self.fd, self.flags);
    }
}

/// The thread's state.
struct Work {
    trunk: trunk::Trunk,
    from: Option<OwnedFd>,
    to: Option<NonBlocking>,
    out: Vec<u8>,
    ends: BTreeMap<u32, Ends>,
    standby: Option<PathBuf>,
    orders: Receiver<Order>,
    /// Until the handle is gone.
    kicked: Option<UnixStream>,
    /// Closed when the next is known.
    unheard: Option<UnixStream>,
    spoken: Arc<OnceLock<bool>>,
    finishes: bool,
    leaves: bool,
}

/// What poll(2) is asked about.
#[derive(Clone, Copy)]
enum What {
    Kick,
    FromLink,
    ToLink,
    Read(u32),
    Write(u32),
}

impl Work {
    fn run(mut self) {
        let mut buffer = vec![0; BUFFER];
        loop {
            self.obey();
            self.bring();
            self.settle();
            if self.from.is_none() && self.ends.is_empty() {
                return;
            }
            let is_last = self.finishes && !self.is_read_from() || self.leaves && !self.is_held_up();
            let last = is_last && self.out.is_empty();
            let ready = self.wait(last);
            if last && ready.is_empty() {
                return;
            }
            for what in ready {
                self.handle(what, &mut buffer);
            }
        }
    }

    /// Does what the handle asks for.
    fn obey(&mut self) {
        while let Ok(order) = self.orders.try_recv() {
            match order {
                Order::Stdin(read) => drop(self.ends.insert(STDIN, Ends::from(read))),
                Order::Open(socket) => {
                    let ends = Ends::both(socket).ok().filter(|_| self.from.is_some());
                    if let Some((ends, strand)) = ends.and_then(|ends| Some((ends, self.trunk.open()?))) {
                        self.ends.insert(strand, ends);
                    }
                }
                Order::Finish => self.finishes = true,
                Order::Leave => self.leaves = true,
            }
        }
    }

    /// Brings meetings that the other end has opened to the display.
    fn bring(&mut self) {
        while let Some(strand) = self.trunk.take_opened() {
            let socket = self.standby.as_ref().and_then(|path| peer::connect_at_once(path).ok());
            match socket.and_then(|socket| Ends::both(socket).ok()) {
                Some(ends) => drop(self.ends.insert(strand, ends)),
                None => {
                    self.trunk.end(strand);
                    self.trunk.discard(strand);
                }
            }
        }
    }

    /// Says what the peer has to know, and closes what is over.
    fn settle(&mut self) {
        if self.out.len() < ENOUGH {
            self.trunk.answer(&mut self.out);
        }
        if self.to.is_none() {
            self.out.clear();
        }
        for (strand, ends) in &mut self.ends {
            if !self.trunk.is_open(*strand) {
                ends.read = None;
            }
            if self.trunk.is_heard(*strand) {
                ends.end_write(*strand);
            }
        }
        let trunk = &self.trunk;
        self.ends.retain(|&strand, ends| {
            // The user's stdin may be yet to come.
            ends.read.is_some() || ends.write.is_some() || (strand == STDIN && trunk.is_open(strand))
        });
    }

    /// Whether something may come from the program.
    fn is_read_from(&self) -> bool {
        self.to.is_some() && self.outputs().next().is_some()
    }

    /// Whether something that the program has written may wait for room: its reader at the display is slow.
    fn is_held_up(&self) -> bool {
        self.to.is_some() && self.outputs().any(|strand| !self.reads(strand))
    }

    /// The strands of what the program may yet write.
    fn outputs(&self) -> impl Iterator<Item = u32> {
        let is_read = |strand: &u32| self.ends.get(strand).is_some_and(|ends| ends.read.is_some());
        [STDOUT, STDERR, NOTES].into_iter().filter(is_read)
    }

    /// What is ready: meetings before what the program writes.
    fn wait(&self, at_once: bool) -> Vec<What> {
        let kicked = self.kicked.iter();
        let mut asked: Vec<_> = kicked.map(|kicked| (What::Kick, kicked.as_fd(), PollFlags::IN)).collect();
        let from = self.from.as_ref().filter(|_| self.trunk.takes());
        asked.extend(from.map(|from| (What::FromLink, from.as_fd(), PollFlags::IN)));
        let to = self.to.as_ref().filter(|_| !self.out.is_empty());
        asked.extend(to.map(|to| (What::ToLink, to.fd.as_fd(), PollFlags::OUT)));
        for (&strand, ends) in self.ends.iter().rev() {
            let read = ends.read.as_ref().filter(|_| self.reads(strand));
            asked.extend(read.map(|read| (What::Read(strand), read.as_fd(), PollFlags::IN)));
            let write = ends.write.as_ref().filter(|_| !self.trunk.waiting(strand).is_empty());
            asked.extend(write.map(|write| (What::Write(strand), write.as_fd(), PollFlags::OUT)));
        }
        let mut set: Vec<_> =
            asked.iter().map(|(_, fd, flags)| PollFd::from_borrowed_fd(*fd, *flags)).collect();
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        if poll(&mut set, at_once.then_some(&now)).is_err() {
            // Interrupted: all are asked again.
            return vec![What::Kick];
        }
        let ready = asked.iter().zip(&set).filter(|(_, fd)| !fd.revents().is_empty());
        ready.map(|((what, ..), _)| *what).collect()
    }

    /// Whether a strand is read from now.
    fn reads(&self, strand: u32) -> bool {
        self.out.len() < ENOUGH && self.trunk.room(strand) > 0
    }

    fn handle(&mut self, what: What, buffer: &mut [u8]) {
        match what {
            What::Kick => {
                let kicked = self.kicked.as_ref();
                if kicked.is_some_and(|kicked| rustix::io::read(kicked, &mut *buffer) == Ok(0)) {
                    self.kicked = None;
                }
            }
            What::FromLink => self.receive(buffer),
            What::ToLink => self.send(),
            What::Read(strand) => self.read(strand, buffer),
            What::Write(strand) => self.write(strand),
        }
    }

    fn receive(&mut self, buffer: &mut [u8]) {
        let Some(from) = &self.from else { return };
        let heard = match rustix::io::read(from, &mut *buffer) {
            Err(error) if is_transient(error) => return,
            Ok(count @ 1..) => match self.trunk.receive(&buffer[..count]) {
                Ok(()) => true,
                Err(error) => {
                    self.complain(error);
                    false
                }
            },
            Ok(0) | Err(_) => false,
        };
        if !heard {
            (self.from, self.to) = (None, None);
            self.trunk.end_of_stream();
        }
        if !heard || self.trunk.is_met() {
            // The first word counts.
            let _ = self.spoken.set(heard);
            self.unheard = None;
        }
    }

    /// At the display: says why nothing comes any more. No reader is waited for.
    fn complain(&self, error: TrunkError) {
        let stderr = self.ends.get(&STDERR).and_then(|ends| ends.write.as_ref());
        let line = format!(
            "note: something on the other machine writes into ssh's output ({error}): what the program reads and \
             writes is lost from here on; does a login leave something running?\n"
        );
        let _ = stderr.map(|stderr| rustix::io::write(stderr, line.as_bytes()));
    }

    fn send(&mut self) {
        let Some(to) = &self.to else { return };
        match rustix::io::write(&to.fd, &self.out) {
            Ok(count) => drop(self.out.drain(..count)),
            Err(error) if is_transient(error) => {}
            // The peer's last words may still wait in the other direction; its end follows there.
            Err(_) => self.to = None,
        }
    }

    fn read(&mut self, strand: u32, buffer: &mut [u8]) {
        let room = self.trunk.room(strand);
        let read = self.ends.get(&strand).and_then(|ends| ends.read.as_ref());
        let Some(read) = read.filter(|_| self.reads(strand)) else { return };
        match rustix::io::read(read, &mut buffer[..room]) {
            Err(error) if is_transient(error) => {}
            Ok(count @ 1..) => self.trunk.send(strand, &buffer[..count], &mut self.out),
            Ok(0) | Err(_) => self.trunk.end(strand),
        }
    }

    fn write(&mut self, strand: u32) {
        let write = self.ends.get(&strand).and_then(|ends| ends.write.as_ref());
        let Some(write) = write else { return };
        match rustix::io::write(write, self.trunk.waiting(strand)) {
            Ok(count) => self.trunk.take(strand, count),
            Err(error) if is_transient(error) => {}
            Err(_) => {
                self.trunk.discard(strand);
                self.ends.get_mut(&strand).into_iter().for_each(|ends| ends.write = None);
            }
        }
    }
}

fn is_transient(error: Errno) -> bool {
    error == Errno::AGAIN || error == Errno::INTR
}

/// Bytes to be written with which no more are made.
const ENOUGH: usize = 2 * MAX_PIECE;
/// Bytes of a read.
const BUFFER: usize = 4 * MAX_PIECE;

#[cfg(test)]
mod tests;
