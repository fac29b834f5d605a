//! A file that takes what is played, by the caller's clock.
//!
//! The file is created when sound comes. While a sound is under way, 10 ms are pulled and written every 10 ms; the
//! silence between sounds is left out. The header of a `.wav` is put right at least each second, and at the end. An
//! error ends it for good. Invariant: the file is, but for its header, exactly what the player gave.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::time::Duration;

use rustix::fs::OFlags;
use wayferry_audio::{CHANNELS, RATE, encode_pcm};
use wayferry_proto::Time;

use super::{DeviceState, Notice};
use crate::source::{STEP, STEP_FRAMES, Source};

/// See the module.
#[derive(Debug)]
pub(super) struct Recorder {
    path: PathBuf,
    state: State,
    /// Bytes of sound in the file.
    written: u64,
    /// Of those, how many the header tells of.
    told: u64,
}

#[derive(Debug)]
enum State {
    /// No sound has come.
    Unopened,
    /// No sound is under way.
    Silent(File),
    /// The next 10 ms are pulled then. `heard` when one of this sound was heard already.
    Playing {
        file: File,
        next: Time,
        heard: bool,
    },
    Failed,
}

impl Recorder {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, state: State::Unopened, written: 0, told: 0 }
    }

    /// Does what is due.
    pub(super) fn turn(&mut self, now: Time, source: &mut Source) -> Option<Notice> {
        let result = self.advance(now, source);
        let error = result.err()?;
        self.state = State::Failed;
        source.forget();
        Some(Notice::Lost { why: format!("`{}`: {error}", self.path.display()) })
    }

    /// When it wants its next turn.
    pub(super) fn wake_at(&self) -> Option<Time> {
        match &self.state {
            State::Playing { next, .. } => Some(*next),
            _ => None,
        }
    }

    /// Whether packets are of no use.
    pub(super) fn is_deaf(&self) -> bool {
        matches!(self.state, State::Failed)
    }

    pub(super) fn state(&self) -> DeviceState {
        match self.state {
            State::Unopened => DeviceState::Closed,
            State::Silent(_) => DeviceState::Corked,
            State::Playing { .. } => DeviceState::Playing,
            State::Failed => DeviceState::Failed,
        }
    }

    fn advance(&mut self, now: Time, source: &mut Source) -> io::Result<()> {
        if matches!(self.state, State::Unopened | State::Silent(_)) && !source.is_idle() {
            let file = match std::mem::replace(&mut self.state, State::Failed) {
                State::Silent(file) => file,
                _ => self.open()?,
            };
            self.state = State::Playing { file, next: now + STEP, heard: false };
        }
        let State::Playing { next, .. } = &mut self.state else { return Ok(()) };
        if now.since(*next) > LONGEST_PAUSE {
            // The machine slept. The player skips what was not heard meanwhile.
            *next = now;
        }
        while self.wake_at().is_some_and(|next| next <= now) {
            self.step(source)?;
        }
        Ok(())
    }

    /// Pulls 10 ms.
    fn step(&mut self, source: &mut Source) -> io::Result<()> {
        let State::Playing { file, next, heard } = &mut self.state else { return Ok(()) };
        let mut samples = [0.0; STEP_FRAMES * CHANNELS];
        source.play(*next, &mut samples, Duration::ZERO);
        *next += STEP;
        // A sound begins with a pull, never within one. Before that there is silence, which is not written.
        *heard |= source.is_sounding();
        if *heard {
            let bytes = encode_pcm(&samples);
            file.write_all(&bytes)?;
            self.written += bytes.len() as u64;
        }
        if self.written - self.told >= HEADER_EVERY {
            self.tell()?;
        }
        if source.is_idle() {
            self.tell()?;
            if let State::Playing { file, .. } = std::mem::replace(&mut self.state, State::Failed) {
                self.state = State::Silent(file);
            }
        }
        Ok(())
    }

    fn open(&mut self) -> io::Result<File> {
        // A named pipe without a reader would block.
        let flags = OFlags::NONBLOCK.bits() as i32;
        let mut options = OpenOptions::new();
        let mut file =
            options.write(true).create(true).truncate(true).custom_flags(flags).open(&self.path)?;
        if self.is_wav() {
            file.write_all(&header(0))?;
        }
        Ok(file)
    }

    fn is_wav(&self) -> bool {
        self.path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("wav"))
    }

    /// Puts the header right.
    fn tell(&mut self) -> io::Result<()> {
        self.told = self.written;
        match &self.state {
            State::Playing { file, .. } if self.is_wav() => file.write_all_at(&header(self.written), 0),
            _ => Ok(()),
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // No caller is left who could be told.
        let _ = self.tell();
    }
}

/// RIFF WAVE, of so many bytes of 16-bit samples. Beyond 4 GiB it tells of as much as it can.
fn header(bytes: u64) -> [u8; 44] {
    let bytes = u32::try_from(bytes).unwrap_or(u32::MAX - 36);
    let frame = 2 * CHANNELS as u16;
    let parts: [&[u8]; 13] = [
        b"RIFF",
        &bytes.saturating_add(36).to_le_bytes(),
        b"WAVE",
        b"fmt ",
        &16u32.to_le_bytes(),
        &1u16.to_le_bytes(),
        &(CHANNELS as u16).to_le_bytes(),
        &RATE.to_le_bytes(),
        &(RATE * u32::from(frame)).to_le_bytes(),
        &frame.to_le_bytes(),
        &16u16.to_le_bytes(),
        b"data",
        &bytes.to_le_bytes(),
    ];
    let mut header = [0; 44];
    let mut at = 0;
    for part in parts {
        header[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    }
    header
}

/// The header is put right after so many bytes: those of a second.
const HEADER_EVERY: u64 = RATE as u64 * CHANNELS as u64 * 2;

/// After a longer pause than this, the sound of it is not written.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
