use std::collections::HashMap;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use rustix::fs::{Mode, OFlags};
use rustix::pipe::{PipeFlags, pipe_with};
use wayferry_proto::{Arrival, Config, Event, PIPE_WINDOW, Side, StreamId, Transmit};

use super::*;

const KEY: PipeKey = (ConnectionId(1), 2);

/// Two sides with a perfect link between them.
struct Pair {
    app: (Session, Pipes),
    display: (Session, Pipes),
    offsets: HashMap<(bool, StreamId), u64>,
}

impl Pair {
    fn new() -> Self {
        let side = |side| (Session::new(Config::new(side)), Pipes::default());
        let mut pair = Self { app: side(Side::App), display: side(Side::Display), offsets: HashMap::new() };
        pair.turn();
        pair
    }

    /// Moves everything that can move without waiting.
    fn turn(&mut self) {
        loop {
            let mut moved = false;
            for to_display in [true, false] {
                let (from, to) = match to_display {
                    true => (&mut self.app, &mut self.display),
                    false => (&mut self.display, &mut self.app),
                };
                while let Some(transmit) = from.0.poll_transmit(Time::ZERO) {
                    moved = true;
                    carry(&mut self.offsets, to_display, transmit, &mut to.0);
                }
                while let Some(event) = to.0.poll_event() {
                    take(to, event);
                }
                moved |= ready(to);
            }
            if !moved {
                return;
            }
        }
    }
}

fn carry(offsets: &mut HashMap<(bool, StreamId), u64>, way: bool, transmit: Transmit, to: &mut Session) {
    match transmit {
        Transmit::Data { stream, bytes, finish } => {
            let offset = offsets.entry((way, stream)).or_default();
            let arrival = Arrival::Data { stream, offset: *offset, bytes: bytes.clone() };
            *offset += bytes.len() as u64;
            let length = *offset;
            to.receive(Time::ZERO, arrival);
            if finish {
                to.receive(Time::ZERO, Arrival::Finished { stream, length });
            }
        }
        Transmit::Reset { stream, code } => to.receive(Time::ZERO, Arrival::Reset { stream, code }),
        Transmit::Stop { stream, code } => to.receive(Time::ZERO, Arrival::Stopped { stream, code }),
        _ => {}
    }
}

fn take((session, pipes): &mut (Session, Pipes), event: Event) {
    match event {
        Event::Opened { channel, header: Header::Pipe { connection, pipe } } => {
            pipes.on_opened(session, Time::ZERO, channel, (connection, pipe));
        }
        Event::Data { header: Header::Pipe { connection, pipe }, bytes, .. } => {
            pipes.on_data(session, (connection, pipe), bytes);
        }
        Event::Finished { header: Header::Pipe { connection, pipe }, .. } => {
            pipes.on_finished(session, (connection, pipe));
        }
        Event::Reset { header: Header::Pipe { connection, pipe }, .. } => pipes.on_reset((connection, pipe)),
        Event::Stopped { header: Header::Pipe { connection, pipe }, .. } => {
            pipes.on_stopped(session, (connection, pipe))
        }
        Event::Closed { reason, .. } => panic!("the session ended: {reason}"),
        _ => {}
    }
}

/// Serves the descriptors that are ready now; says whether there were any.
fn ready((session, pipes): &mut (Session, Pipes)) -> bool {
    let found: Vec<(PipeToken, PollFlags)> = pipes
        .polled(session)
        .filter_map(|(fd, flags, token)| {
            let mut set = [rustix::event::PollFd::from_borrowed_fd(fd, flags)];
            crate::edge::wait::poll(&mut set, Some(Duration::ZERO)).expect("poll");
            (!set[0].revents().is_empty()).then(|| (token, set[0].revents()))
        })
        .collect();
    for (token, flags) in &found {
        pipes.on_ready(session, *token, *flags);
    }
    !found.is_empty()
}

fn fifo() -> (OwnedFd, OwnedFd) {
    pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).expect("a pipe")
}

fn text(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index * 31 % 251) as u8).collect()
}

/// Writes as much as goes, and says how much that was.
fn fill(fd: &OwnedFd, bytes: &[u8]) -> usize {
    let mut written = 0;
    while written < bytes.len() {
        match rustix::io::write(fd, &bytes[written..]) {
            Ok(count) => written += count,
            Err(_) => break,
        }
    }
    written
}

fn drain(fd: &OwnedFd) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    while let Ok(count @ 1..) = rustix::io::read(fd, &mut piece) {
        bytes.extend(&piece[..count]);
    }
    bytes
}

/// Waits until every copy of the other end is closed. A process that another test starts holds copies of all
/// our descriptors until it runs its program, so `drop` alone does not end a pipe.
fn alone(fd: impl AsFd) {
    let closed = PollFlags::HUP | PollFlags::ERR;
    let mut set = [rustix::event::PollFd::new(&fd, PollFlags::empty())];
    crate::edge::wait::poll(&mut set, Some(Duration::from_secs(10))).expect("poll");
    assert!(set[0].revents().intersects(closed), "somebody still holds the other end");
}

/// The program shares its descriptor's description with us, but not the one that is written to.
#[test]
fn a_fifo_that_a_program_makes_block_again_does_not_block() {
    let mut pair = Pair::new();
    let ((source, writer), (_reader, target)) = (fifo(), fifo());
    let theirs = target.try_clone().expect("a copy");
    pair.app.1.send_from(&mut pair.app.0, KEY, source);
    pair.display.1.receive_into(&mut pair.display.0, KEY, target);
    fill(&theirs, &text(1 << 20));
    rustix::fs::fcntl_setfl(&theirs, OFlags::empty()).expect("blocking again");
    assert_eq!(fill(&writer, b"x"), 1);
    // Would wait here for ever.
    pair.turn();
}

#[test]
fn regression_one_pipe_too_many_is_empty() {
    crate::edge::descriptors::raise();
    let mut pair = Pair::new();
    let ((busy, holds), (source, writer), (reader, target)) = (fifo(), fifo(), fifo());
    for pipe in 0..MAX_PIPES as u64 {
        let fd = busy.try_clone().expect("a descriptor");
        pair.app.1.send_from(&mut pair.app.0, (KEY.0, 10 + pipe), fd);
    }
    pair.app.1.send_from(&mut pair.app.0, KEY, source);
    pair.display.1.receive_into(&mut pair.display.0, KEY, target);
    fill(&writer, b"pasted");
    drop(writer);
    pair.turn();
    assert_eq!((drain(&reader), pair.display.1.len()), (Vec::new(), 1), "it waits");
    drop((busy, holds));
    while pair.app.1.len() > 0 {
        pair.turn();
    }
    pair.turn();
    assert_eq!(drain(&reader), b"pasted");
}

#[test]
fn a_transfer_under_way_outlives_its_connection() {
    let mut pair = Pair::new();
    let ((source, writer), (reader, target)) = (fifo(), fifo());
    pair.display.1.receive_into(&mut pair.display.0, KEY, target);
    pair.display.1.on_connection_end(&mut pair.display.0, Time::ZERO, KEY.0);
    pair.app.1.send_from(&mut pair.app.0, KEY, source);
    fill(&writer, b"first");
    pair.turn();
    assert_eq!(pair.display.1.next_timeout(), None);
    pair.display.1.on_timeout(&mut pair.display.0, Time::ZERO + 2 * GRACE);
    fill(&writer, b" and last");
    pair.turn();
    assert_eq!(drain(&reader), b"first and last");
}

#[test]
fn a_megabyte_crosses_and_a_slow_reader_costs_no_more_than_the_window() {
    let mut pair = Pair::new();
    let ((source, writer), (reader, target)) = (fifo(), fifo());
    pair.app.1.send_from(&mut pair.app.0, KEY, source);
    pair.display.1.receive_into(&mut pair.display.0, KEY, target);
    let (sent, mut written, mut read) = (text(1 << 20), 0, Vec::new());
    loop {
        let count = fill(&writer, &sent[written..]);
        written += count;
        pair.turn();
        if count == 0 {
            break;
        }
    }
    // Nothing was read: what is on the way is the window and the two pipes' own buffers.
    assert!(written <= PIPE_WINDOW + 3 * 64 * 1024, "{written} bytes were taken from the writer");
    while written < sent.len() {
        read.extend(drain(&reader));
        pair.turn();
        written += fill(&writer, &sent[written..]);
        pair.turn();
    }
    drop(writer);
    alone(&pair.app.1.outgoing[&KEY].end.fd);
    for _ in 0..64 {
        pair.turn();
        read.extend(drain(&reader));
    }
    assert!(read == sent, "{} of {} bytes", read.len(), sent.len());
    assert!(pair.app.1.outgoing.is_empty() && pair.display.1.incoming.is_empty());
}

#[test]
fn a_reader_that_stops_early_ends_the_writer() {
    let mut pair = Pair::new();
    let ((source, writer), (reader, target)) = (fifo(), fifo());
    pair.app.1.send_from(&mut pair.app.0, KEY, source);
    pair.display.1.receive_into(&mut pair.display.0, KEY, target);
    fill(&writer, b"first");
    pair.turn();
    assert_eq!(drain(&reader), b"first");
    drop(reader);
    alone(&pair.display.1.incoming[&KEY].end.as_ref().expect("a descriptor").fd);
    // Nothing more was written, yet the writer is told.
    pair.turn();
    alone(&writer);
    assert_eq!(rustix::io::write(&writer, b"more"), Err(Errno::PIPE));
    assert!(pair.app.1.outgoing.is_empty() && pair.display.1.incoming.is_empty());
}

#[test]
fn either_half_may_come_first() {
    for reader_first in [true, false] {
        let mut pair = Pair::new();
        let ((source, writer), (reader, target)) = (fifo(), fifo());
        fill(&writer, b"text");
        drop(writer);
        alone(&source);
        let mut target = Some(target);
        if reader_first {
            pair.display.1.receive_into(&mut pair.display.0, KEY, target.take().expect("once"));
        }
        pair.app.1.send_from(&mut pair.app.0, KEY, source);
        pair.turn();
        if let Some(target) = target {
            pair.display.1.receive_into(&mut pair.display.0, KEY, target);
        }
        pair.turn();
        assert_eq!(drain(&reader), b"text");
        alone(&reader);
        assert_eq!(rustix::io::read(&reader, &mut [0; 1]), Ok(0), "the end is passed on");
    }
}

/// The offer may have been lost with a link that was away.
#[test]
fn regression_a_file_whose_offer_is_late_never_comes() {
    let mut pair = Pair::new();
    let ((source, writer), (reader, target), key) = (fifo(), fifo(), (FILES, 1));
    fill(&writer, b"text");
    drop(writer);
    pair.app.1.send_from(&mut pair.app.0, key, source);
    pair.turn();
    pair.display.1.on_timeout(&mut pair.display.0, Time::ZERO + 2 * GRACE);
    pair.turn();
    pair.display.1.receive_into(&mut pair.display.0, key, target);
    pair.turn();
    assert_eq!(drain(&reader), b"text");
    assert!(pair.display.1.incoming.is_empty() && pair.app.1.outgoing.is_empty());
}

#[test]
fn regression_files_that_are_never_offered_fill_the_memory() {
    let mut pair = Pair::new();
    let (count, (reader, target)) = (MAX_FILES_AHEAD as u64 + 4, fifo());
    let writers: Vec<OwnedFd> = (0..count)
        .map(|file| {
            let (source, writer) = fifo();
            fill(&writer, b"text");
            pair.app.1.send_from(&mut pair.app.0, (FILES, file), source);
            writer
        })
        .collect();
    pair.turn();
    let held: usize = pair.display.1.incoming.values().map(|pipe| pipe.queue.len()).sum();
    assert_eq!((pair.display.1.files_ahead(), held), (MAX_FILES_AHEAD, MAX_FILES_AHEAD));
    assert_eq!(pair.app.1.outgoing.len(), MAX_FILES_AHEAD, "the others are told");
    writers[MAX_FILES_AHEAD..].iter().for_each(alone);
    // Their offers are late, and hear the same.
    let late = (FILES, count - 1);
    assert!(pair.display.1.was_turned_away(late) && !pair.display.1.was_turned_away((FILES, 0)));
    pair.display.1.refuse(&mut pair.display.0, late);
    assert!(!pair.display.1.incoming.contains_key(&late));
    // Those that are wanted leave room for others.
    pair.display.1.receive_into(&mut pair.display.0, (FILES, 0), target);
    assert_eq!(drain(&reader), b"text");
    let (source, _writer) = fifo();
    pair.app.1.send_from(&mut pair.app.0, (FILES, count), source);
    pair.turn();
    assert!(!pair.display.1.was_turned_away((FILES, count)));
}

#[test]
fn a_pipe_that_is_refused_ends_its_writer_and_leaves_nothing() {
    for refused_first in [true, false] {
        let mut pair = Pair::new();
        let ((source, writer), key) = (fifo(), (FILES, 1));
        fill(&writer, b"text");
        if refused_first {
            pair.display.1.refuse(&mut pair.display.0, key);
        }
        pair.app.1.send_from(&mut pair.app.0, key, source);
        pair.turn();
        if !refused_first {
            pair.display.1.refuse(&mut pair.display.0, key);
            pair.turn();
        }
        alone(&writer);
        assert!(pair.display.1.incoming.is_empty() && pair.app.1.outgoing.is_empty());
    }
}

#[test]
fn sockets_and_files_are_pipes_too() {
    let mut pair = Pair::new();
    let (mut ours, source) = UnixStream::pair().expect("sockets");
    ours.write_all(&text(100_000)).expect("fits");
    let path = std::env::temp_dir().join(format!("wayferry-pipes-{}", std::process::id()));
    let file = std::fs::File::create(&path).expect("a file");
    pair.app.1.send_from(&mut pair.app.0, KEY, source.into());
    pair.display.1.receive_into(&mut pair.display.0, KEY, file.into());
    drop(ours);
    alone(&pair.app.1.outgoing[&KEY].end.fd);
    pair.turn();
    let written = std::fs::read(&path).expect("the file");
    assert!(written == text(100_000), "{} bytes", written.len());
    // And back: from a file into a socket.
    let (mut ours, target) = UnixStream::pair().expect("sockets");
    let key = (ConnectionId(1), 3);
    pair.display.1.send_from(&mut pair.display.0, key, std::fs::File::open(&path).expect("open").into());
    pair.app.1.receive_into(&mut pair.app.0, key, target.into());
    pair.turn();
    let mut read = Vec::new();
    ours.read_to_end(&mut read).expect("the end is passed on");
    assert!(read == text(100_000), "{} bytes", read.len());
    let _ = std::fs::remove_file(&path);
}

/// What has been collected, if it is whole.
fn whole(pipes: &mut Pipes) -> Option<Vec<u8>> {
    let mut all = Vec::new();
    let mut ends = Vec::new();
    for (key, piece) in pipes.take_collected() {
        assert_eq!((key, ends.len()), (KEY, 0), "nothing comes behind the end");
        match piece {
            Piece::Bytes(bytes) => all.extend(bytes),
            end => ends.push(end),
        }
    }
    (ends == [Piece::Whole]).then_some(all)
}

/// A file of a megabyte is more than the window; what is reset, or too much, is broken.
#[test]
fn what_is_collected_comes_whole_or_is_broken() {
    for collected_first in [true, false] {
        let mut pair = Pair::new();
        let bytes = text(1 << 20);
        let file = rustix::fs::memfd_create("test", rustix::fs::MemfdFlags::CLOEXEC).expect("memory");
        assert_eq!(rustix::io::pwrite(&file, &bytes, 0), Ok(bytes.len()));
        let collect = |pair: &mut Pair| pair.app.1.collect(&mut pair.app.0, KEY);
        if collected_first {
            collect(&mut pair);
        }
        pair.display.1.send_from(&mut pair.display.0, KEY, file);
        pair.turn();
        if !collected_first {
            assert!(pair.app.1.take_collected().is_empty());
            collect(&mut pair);
            pair.turn();
        }
        assert!(whole(&mut pair.app.1) == Some(bytes));
        assert!(pair.app.1.incoming.is_empty() && pair.app.1.take_collected().is_empty());
    }
    let mut pair = Pair::new();
    pair.app.1.collect(&mut pair.app.0, KEY);
    pair.app.1.on_reset(KEY);
    assert_eq!(pair.app.1.take_collected(), [(KEY, Piece::Broken)]);
    pair.app.1.collect(&mut pair.app.0, KEY);
    let too_much = rustix::fs::memfd_create("test", rustix::fs::MemfdFlags::CLOEXEC).expect("memory");
    rustix::fs::ftruncate(&too_much, MAX_COLLECTED as u64 + 1).expect("room");
    pair.display.1.send_from(&mut pair.display.0, KEY, too_much);
    pair.turn();
    assert_eq!(pair.app.1.take_collected().last(), Some(&(KEY, Piece::Broken)));
    assert!(pair.app.1.incoming.is_empty() && pair.display.1.outgoing.is_empty());
}

/// No program is there for it.
#[test]
fn what_is_collected_ends_with_its_connection() {
    for is_open in [true, false] {
        let mut pair = Pair::new();
        pair.app.1.collect(&mut pair.app.0, KEY);
        let (read, write) = fifo();
        if is_open {
            fill(&write, b"some");
            pair.display.1.send_from(&mut pair.display.0, KEY, read);
            pair.turn();
            pair.app.1.on_connection_end(&mut pair.app.0, Time::ZERO, KEY.0);
        } else {
            pair.app.1.on_connection_end(&mut pair.app.0, Time::ZERO, KEY.0);
            fill(&write, b"some");
            pair.display.1.send_from(&mut pair.display.0, KEY, read);
        }
        pair.turn();
        assert!(pair.app.1.incoming.is_empty() && pair.display.1.outgoing.is_empty(), "{is_open}");
    }
}

#[test]
fn a_terminal_is_a_pipe_whose_end_is_an_error() {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let mut pair = Pair::new();
    let source = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&source).expect("granted");
    unlockpt(&source).expect("unlocked");
    let name = ptsname(&source, Vec::new()).expect("its name");
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let writer = rustix::fs::open(name, flags, Mode::empty()).expect("its other end");
    let (reader, target) = fifo();
    pair.app.1.send_from(&mut pair.app.0, KEY, source);
    pair.display.1.receive_into(&mut pair.display.0, KEY, target);
    fill(&writer, b"line\n");
    pair.turn();
    assert_eq!(drain(&reader), b"line\r\n");
    drop(writer);
    alone(&pair.app.1.outgoing[&KEY].end.fd);
    pair.turn();
    alone(&reader);
    assert_eq!(rustix::io::read(&reader, &mut [0; 1]), Ok(0), "the end is passed on");
}

#[test]
fn a_half_whose_other_half_never_comes_is_forgotten() {
    let mut pair = Pair::new();
    let (reader, target) = fifo();
    pair.display.1.receive_into(&mut pair.display.0, KEY, target);
    pair.display.1.on_connection_end(&mut pair.display.0, Time::ZERO, KEY.0);
    let due = pair.display.1.next_timeout().expect("a deadline");
    pair.display.1.on_timeout(&mut pair.display.0, due);
    alone(&reader);
    assert_eq!(rustix::io::read(&reader, &mut [0; 1]), Ok(0), "the descriptor is closed");
    assert_eq!(pair.display.1.next_timeout(), None);
}
