//! Where `--events` writes: one JSON object a line, to a descriptor of the caller's or to stdout.
//!
//! The reader may be slow, and a run loop must not wait for it: a line that has no room is dropped, and the next one
//! that has says how many were. What happens in a session is a peer's to cause, so only so much of it is written, or a
//! file would grow as fast as the link. Invariant: a line is written whole before the next one begins.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{Duration, Instant, SystemTime};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::SendFlags;
use serde::Serialize;
use serde_json::{Value, json};

use super::limit::Limit;
use crate::error::SessionError;

/// See the module.
#[derive(Debug)]
pub(crate) struct Sink {
    to: OwnedFd,
    is_socket: bool,
    /// What a terminal did not take of the last line.
    rest: Vec<u8>,
    dropped: u64,
    since: Instant,
    limit: Limit,
}

impl Sink {
    /// Writes to `to`, in blocking mode or not.
    pub(crate) fn new(to: OwnedFd) -> Self {
        let kind = file_type(&to);
        let waits = matches!(kind, Some(FileType::Fifo | FileType::CharacterDevice));
        let own = if waits { reopened(&to).ok() } else { None };
        Self {
            to: own.unwrap_or(to),
            is_socket: kind == Some(FileType::Socket),
            rest: Vec::new(),
            dropped: 0,
            since: Instant::now(),
            limit: Limit::new(BURST, STEP),
        }
    }

    /// Writes to stdout.
    ///
    /// # Errors
    /// It cannot be opened once more.
    pub(crate) fn stdout() -> Result<Self, SessionError> {
        let to = std::io::stdout().as_fd().try_clone_to_owned();
        to.map(Self::new).map_err(|source| SessionError::System { doing: "dup", source })
    }

    /// Writes what happened in a session, unless too much has.
    pub(crate) fn report(&mut self, event: &impl Serialize) {
        self.report_at(self.since.elapsed(), event);
    }

    fn report_at(&mut self, now: Duration, event: &impl Serialize) {
        match self.limit.take(now) {
            Some(_) => self.write(event),
            None => self.dropped += 1,
        }
    }

    /// Writes an event with the time at which it happened.
    pub(crate) fn write(&mut self, event: &impl Serialize) {
        let Ok(mut event) = serde_json::to_value(event) else { return };
        shorten(&mut event);
        let lost = std::mem::take(&mut self.dropped);
        if lost > 0 && !self.put(json!({ "event": "dropped", "count": lost })) {
            self.dropped = lost + 1;
        } else if !self.put(event) {
            self.dropped = 1;
        }
    }

    fn put(&mut self, mut event: Value) -> bool {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        event["time"] = json!(since.as_millis() as u64);
        let line = format!("{event}\n").into_bytes();
        // So much is written at once or not at all where a pipe is ready (pipe(7)).
        if line.len() > rustix::pipe::PIPE_BUF || !self.finish_line() {
            return false;
        }
        match self.write_some(&line) {
            0 => false,
            written => {
                self.rest = line[written..].to_vec();
                true
            }
        }
    }

    /// Writes what is left of a line; says whether that was all.
    fn finish_line(&mut self) -> bool {
        let written = if self.rest.is_empty() { 0 } else { self.write_some(&self.rest) };
        self.rest.drain(..written);
        self.rest.is_empty()
    }

    fn write_some(&self, bytes: &[u8]) -> usize {
        let written = match self.is_socket {
            true => rustix::net::send(&self.to, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL),
            false if has_room(&self.to) => rustix::io::write(&self.to, bytes),
            false => Ok(0),
        };
        written.unwrap_or(0)
    }
}

/// Whether a pipe or a terminal takes something now.
pub(super) fn has_room(to: &impl AsFd) -> bool {
    let mut fds = [PollFd::new(to, PollFlags::OUT)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut fds, Some(&now)).is_ok() && fds[0].revents().contains(PollFlags::OUT)
}

fn file_type(fd: &OwnedFd) -> Option<FileType> {
    rustix::fs::fstat(fd).ok().map(|stat| FileType::from_raw_mode(stat.st_mode))
}

/// The same pipe or terminal, opened anew without waiting: others share the mode of the one that was given.
fn reopened(fd: &OwnedFd) -> Result<OwnedFd, Errno> {
    let access = rustix::fs::fcntl_getfl(fd)? & OFlags::RWMODE;
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    rustix::fs::open(path, access | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())
}

/// Cuts texts, which may be a peer's, so that an event fits into a line.
fn shorten(event: &mut Value) {
    let texts = event.as_object_mut().into_iter().flat_map(|fields| fields.values_mut());
    for text in texts {
        if let Value::String(text) = text {
            let end = text.char_indices().map(|(at, _)| at).find(|at| *at >= MAX_TEXT);
            text.truncate(end.unwrap_or(text.len()));
        }
    }
}

/// Bytes of a text, about. Three of them fit into a line, however they are written.
const MAX_TEXT: usize = 200;
/// Events of a session at once, and the time that earns another: a file of them grows by some 13 KiB a second at most.
const BURST: u32 = 1000;
const STEP: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn a_reader_that_is_slow_is_told_how_much_it_missed() {
        let (mut reader, writer) = std::io::pipe().expect("a pipe");
        let mut sink = Sink::new(writer.into());
        let event = json!({ "event": "warning", "text": "x".repeat(10_000) });
        (0..10_000).for_each(|_| sink.write(&event));
        let mut first = vec![0; 1 << 20];
        let count = reader.read(&mut first).expect("what fits");
        sink.write(&event);
        drop(sink);
        let mut rest = String::new();
        reader.read_to_string(&mut rest).expect("the rest");
        let all = String::from_utf8(first[..count].to_vec()).expect("text") + &rest;
        let events: Vec<Value> = all.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let dropped: u64 = events.iter().filter_map(|event| event["count"].as_u64()).sum();
        let written = events.iter().filter(|event| event["event"] == "warning").count() as u64;
        assert!(dropped > 0 && written + dropped == 10_001, "{written} written, {dropped} dropped");
    }

    #[test]
    fn texts_of_peers_are_cut_and_made_safe() {
        let (mut reader, writer) = std::io::pipe().expect("a pipe");
        let mut sink = Sink::new(writer.into());
        let text = "\u{1b}]0;ä\n\"".repeat(1000);
        sink.write(&json!({ "event": "error", "code": 72, "text": text, "hint": text }));
        drop(sink);
        let mut all = String::new();
        reader.read_to_string(&mut all).expect("a line");
        assert!(all.ends_with('\n') && all.lines().count() == 1 && !all.contains('\u{1b}'), "{all}");
        let event: Value = serde_json::from_str(&all).expect("JSON");
        assert!(event["time"].as_u64() > Some(0) && event["code"] == 72);
    }

    /// A terminal says that it takes something when it takes a byte.
    #[test]
    fn regression_a_terminal_that_is_not_read_holds_up_the_reporter() {
        use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
        let reader = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&reader).expect("granted");
        unlockpt(&reader).expect("unlocked");
        let path = ptsname(&reader, Vec::new()).expect("its name").into_string().expect("text");
        let terminal = std::fs::OpenOptions::new().read(true).write(true).open(path).expect("its other end");
        let (done, is_done) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let mut sink = Sink::new(terminal.into());
            let event = |length| json!({ "event": "warning", "text": "x".repeat(length) });
            (0..10_000).for_each(|n| sink.write(&event(n % MAX_TEXT)));
            done.send(sink).expect("somebody waits");
        });
        let mut sink = is_done.recv_timeout(Duration::from_secs(10)).expect("it waits for a reader");
        let mut reader = std::fs::File::from(reader);
        let mut all = vec![0; 1 << 20];
        let mut length = 0;
        // What was left of a line comes before the next one.
        while !all[..length].windows(10).any(|bytes| bytes == b"\"dropped\",") {
            length += reader.read(&mut all[length..]).expect("what it took");
            sink.write(&json!({ "event": "back" }));
        }
        let text = std::str::from_utf8(&all[..length]).expect("text");
        let whole = text.rsplit_once('\n').expect("lines").0;
        let events = whole.lines().map(|line| serde_json::from_str::<Value>(line).expect("a whole line"));
        assert!(events.count() > 100);
    }

    /// A peer can have things happen as fast as the link lets it, and a file takes them all.
    #[test]
    fn regression_a_peer_fills_a_file_with_events() {
        let (mut reader, writer) = std::io::pipe().expect("a pipe");
        let mut sink = Sink::new(writer.into());
        let event = json!({ "event": "warning", "text": "x" });
        (0..BURST + 70).for_each(|_| sink.report_at(Duration::ZERO, &event));
        sink.report_at(STEP, &event);
        sink.report_at(STEP, &event);
        // What this program says by itself is never too much.
        sink.write(&json!({ "event": "error" }));
        drop(sink);
        let mut all = String::new();
        reader.read_to_string(&mut all).expect("lines");
        let events: Vec<Value> = all.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let named = |name: &str| events.iter().filter(|event| event["event"] == name).count() as u32;
        let dropped: Vec<u64> = events.iter().filter_map(|event| event["count"].as_u64()).collect();
        assert_eq!((named("warning"), named("error"), dropped), (BURST + 1, 1, vec![70, 1]));
    }
}
