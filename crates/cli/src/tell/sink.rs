//! Where `--events` writes: one JSON object a line, to a descriptor of the caller's or to stdout.
//!
//! The reader may be slow, and a run loop must not wait for it: a line that has no room is dropped, and the next one that has
//! says how many were. Invariant: a line is written whole or not at all.

use std::os::fd::{AsFd, OwnedFd};
use std::time::SystemTime;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;
use serde_json::{Value, json};

use crate::error::SessionError;

/// See the module.
#[derive(Debug)]
pub(crate) struct Sink {
    to: OwnedFd,
    dropped: u64,
}

impl Sink {
    /// Writes to `to`, in whatever mode it is.
    pub(crate) fn new(to: OwnedFd) -> Self {
        Self { to, dropped: 0 }
    }

    /// Writes to stdout.
    ///
    /// # Errors
    /// It cannot be opened once more.
    pub(crate) fn stdout() -> Result<Self, SessionError> {
        let to = std::io::stdout().as_fd().try_clone_to_owned();
        to.map(Self::new).map_err(|source| SessionError::System { doing: "dup", source })
    }

    /// Writes an event with the time at which it happened.
    pub(crate) fn write(&mut self, event: &impl Serialize) {
        let Ok(mut event) = serde_json::to_value(event) else { return };
        shorten(&mut event);
        let lost = std::mem::take(&mut self.dropped);
        if lost > 0 && !self.put(&json!({ "event": "dropped", "count": lost })) {
            self.dropped = lost + 1;
        } else if !self.put(&event) {
            self.dropped = 1;
        }
    }

    fn put(&self, event: &Value) -> bool {
        let mut event = event.clone();
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        event["time"] = json!(since.as_millis() as u64);
        let line = format!("{event}\n");
        // So much is written at once or not at all where a pipe is ready (pipe(7)).
        line.len() <= rustix::pipe::PIPE_BUF
            && self.has_room()
            && rustix::io::write(&self.to, line.as_bytes()).is_ok()
    }

    fn has_room(&self) -> bool {
        let mut fds = [PollFd::new(&self.to, PollFlags::OUT)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut fds, Some(&now)).is_ok() && fds[0].revents().contains(PollFlags::OUT)
    }
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
}
