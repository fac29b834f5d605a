//! What programs say, kept for the fuzz target of the two halves: messages and the sizes of files, no pixels.
//!
//! One file per connection, in that target's language: what the program sent, then how long it was silent while
//! everything was answered. Invariant: the core gets every byte and every descriptor as without a recording.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::Path;

use wayferry_proto::{ConnectionId, Time};
use wayferry_wayland::wire::InBuffer;

/// Operations of the fuzz target.
const PROGRAM_SENDS: u8 = 0;
const EVERYTHING_ARRIVES: u8 = 1;

/// Bytes after which a recording is long enough.
const MAX_RECORDING: usize = 256 << 10;

/// Bytes of messages in one operation.
const MAX_PART: usize = 16 << 10;

/// A recording of one connection.
#[derive(Debug)]
pub(crate) struct Recorder {
    file: File,
    written: usize,
    last: Time,
    /// What has been read and is not a whole message yet.
    pub(crate) buffer: InBuffer,
}

impl Recorder {
    /// Records to a new file in `directory`.
    pub(crate) fn new(directory: &Path, connection: ConnectionId) -> std::io::Result<Self> {
        let name = format!("{}-{}", std::process::id(), connection.0);
        let file = File::create(directory.join(name))?;
        Ok(Self { file, written: 0, last: Time::ZERO, buffer: InBuffer::new() })
    }

    /// Notes the whole messages in the buffer and passes them on.
    pub(crate) fn pass_on(&mut self, now: Time, core: &mut InBuffer) {
        let mut bytes = Vec::new();
        let mut fds: Vec<OwnedFd> = self.buffer.fds_mut().drain(..).collect();
        while let Ok(Some(raw)) = self.buffer.next_message() {
            // The length counts the header of two words.
            let length = (raw.body.len() + 8) as u32;
            bytes.extend(raw.object.to_ne_bytes());
            bytes.extend((length << 16 | u32::from(raw.opcode)).to_ne_bytes());
            bytes.extend(raw.body);
            if bytes.len() > MAX_PART {
                self.part(now, &bytes, &mut fds, core);
                bytes.clear();
            }
        }
        self.part(now, &bytes, &mut fds, core);
    }

    fn part(&mut self, now: Time, bytes: &[u8], fds: &mut Vec<OwnedFd>, core: &mut InBuffer) {
        self.note(now, bytes, fds);
        // What does not fit here would not have fitted there.
        let _ = core.push(bytes, fds.drain(..));
    }

    fn note(&mut self, now: Time, bytes: &[u8], fds: &[OwnedFd]) {
        if bytes.is_empty() || self.written > MAX_RECORDING {
            return;
        }
        let mut record = Vec::new();
        if self.last != Time::ZERO {
            let silence = u16::try_from(now.since(self.last).as_millis()).unwrap_or(u16::MAX);
            record.push(EVERYTHING_ARRIVES);
            record.extend(silence.to_le_bytes());
        }
        self.last = now;
        record.push(PROGRAM_SENDS);
        record.extend((bytes.len() as u16).to_le_bytes());
        record.push(fds.len() as u8);
        for fd in fds {
            let size = rustix::fs::fstat(fd).map_or(0, |stat| u32::try_from(stat.st_size).unwrap_or(0));
            record.extend(size.to_le_bytes());
        }
        record.extend(bytes);
        self.written += record.len();
        // A recording that breaks off is still one.
        let _ = self.file.write_all(&record);
    }
}
