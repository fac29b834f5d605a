//! Keys that must not stay down when the link falls silent.
//!
//! While a key is held, the display side says so ten times a second. When that stops, the program's own key repeat
//! would run away; so the keys are released here, and their real releases are swallowed later. Invariant: towards
//! the program every key goes down and up alternately.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use wayferry_proto::Time;

/// Silence after which held keys are released, at the least.
const SILENCE: Duration = Duration::from_millis(250);

/// Silence after which held keys are released. A lost packet alone silences the channel for a retransmission, about
/// one and a half round trips: at 200 ms and 2 % loss, 250 ms of silence released held keys once in two holds of 4 s.
pub(crate) fn patience(rtt: Duration) -> Duration {
    SILENCE + rtt * 3 / 2
}

/// Messages about held keys that come closer to each other than this were held up; they are sent twice as far apart.
const STEP: Duration = Duration::from_millis(50);
/// So many that are not prove that keys are held now.
const STEADY: u32 = 3;
/// Keys that a keyboard can hold at once and that are tracked; more are forwarded untracked.
const MAX_KEYS: usize = 64;

/// One `wl_keyboard` of the program.
#[derive(Debug)]
pub(crate) struct Keyboard {
    /// Registry name of its seat towards the program.
    pub(crate) seat: u32,
    /// The keymap that the program has.
    pub(crate) keymap: Option<u128>,
    /// Rate and delay of key repeat that the program has.
    pub(crate) repeat: Option<(i32, i32)>,
    pressed: BTreeSet<u32>,
    /// Released here; the real releases are still to come.
    swallow: BTreeSet<u32>,
    heard: Option<Time>,
    /// Messages in succession that keys are held, as far apart as they were sent.
    beats: u32,
    serial: u32,
}

impl Keyboard {
    pub(crate) fn new(seat: u32) -> Self {
        Self {
            seat,
            keymap: None,
            repeat: None,
            pressed: BTreeSet::new(),
            swallow: BTreeSet::new(),
            heard: None,
            beats: 0,
            serial: 0,
        }
    }

    /// The display side said something about this keyboard.
    pub(crate) fn heard(&mut self, now: Time) {
        self.heard = Some(now);
    }

    /// The display side says that keys are held: gives those to press again that silence has released, with the serial
    /// to use. What a link brings at once after a silence may be old, and the releases be right behind it: a press of
    /// such a key would be one more than the user made. So the messages have to come in the rhythm in which they are
    /// sent.
    pub(crate) fn held(&mut self, now: Time) -> (u32, Vec<u32>) {
        let in_step = self.heard.is_some_and(|before| now.since(before) >= STEP);
        self.beats = if in_step { self.beats.saturating_add(1) } else { 0 };
        self.heard(now);
        if self.beats < STEADY {
            return (self.serial, Vec::new());
        }
        let keys = std::mem::take(&mut self.swallow);
        self.pressed.extend(&keys);
        (self.serial, keys.into_iter().collect())
    }

    /// A key event arrives; returns whether the program gets it.
    pub(crate) fn key(&mut self, now: Time, serial: u32, key: u32, pressed: bool) -> bool {
        self.heard(now);
        self.serial = serial;
        if pressed {
            self.swallow.remove(&key);
            if self.pressed.len() < MAX_KEYS {
                self.pressed.insert(key);
            }
            return true;
        }
        self.pressed.remove(&key);
        !self.swallow.remove(&key)
    }

    /// The focus comes or goes: no key is held any more as far as the program knows.
    pub(crate) fn focus_changed(&mut self, now: Time) {
        self.heard(now);
        self.pressed.clear();
        self.swallow.clear();
    }

    /// The display is gone: the keys to release, with the serial to use.
    pub(crate) fn part(&mut self) -> (u32, Vec<u32>) {
        let keys = std::mem::take(&mut self.pressed);
        self.swallow.clear();
        self.heard = None;
        (self.serial, keys.into_iter().collect())
    }

    pub(crate) fn next_timeout(&self, patience: Duration) -> Option<Time> {
        if self.pressed.is_empty() { None } else { self.heard.map(|heard| heard + patience) }
    }

    /// The keys to release now, with the serial to use.
    pub(crate) fn on_timeout(&mut self, now: Time, patience: Duration) -> (u32, Vec<u32>) {
        if self.next_timeout(patience).is_none_or(|due| due > now) {
            return (self.serial, Vec::new());
        }
        let keys = std::mem::take(&mut self.pressed);
        self.swallow.extend(&keys);
        self.beats = 0;
        (self.serial, keys.into_iter().collect())
    }
}

/// A read-only memory file of exactly these bytes, as a compositor would pass a keymap.
pub(crate) fn sealed_memfd(bytes: &[u8]) -> io::Result<OwnedFd> {
    let fd = memfd_create("wayferry-blob", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    let mut file = std::fs::File::from(fd);
    io::Write::write_all(&mut file, bytes)?;
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE | SealFlags::SEAL)?;
    // Before Linux 6.7 a descriptor that could write must not be mapped shared where writing is sealed. Without /proc
    // it stays as it is: sealed all the same.
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let reader = std::fs::File::open(path);
    Ok(reader.unwrap_or(file).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    #[test]
    fn silence_releases_and_swallows_the_real_release() {
        let mut keyboard = Keyboard::new(0);
        assert!(keyboard.key(at(0), 5, 30, true));
        assert_eq!(keyboard.on_timeout(at(249), SILENCE), (5, vec![]));
        assert_eq!(keyboard.on_timeout(at(250), SILENCE), (5, vec![30]));
        assert_eq!(keyboard.next_timeout(SILENCE), None);
        assert!(!keyboard.key(at(3000), 6, 30, false), "the program has seen the release already");
        assert!(keyboard.key(at(3100), 7, 30, true));
        assert!(keyboard.key(at(3200), 8, 30, false));
    }

    /// The user has never let go.
    #[test]
    fn keys_that_silence_has_released_are_pressed_again_if_they_are_still_held() {
        let mut keyboard = Keyboard::new(0);
        keyboard.key(at(0), 5, 30, true);
        keyboard.key(at(0), 6, 31, true);
        assert_eq!(keyboard.on_timeout(at(250), SILENCE).1, [30, 31]);
        assert!(!keyboard.key(at(900), 7, 31, false));
        let held: Vec<_> = [901, 1001, 1101, 1201].map(|now| keyboard.held(at(now)).1).to_vec();
        assert_eq!(held, [vec![], vec![], vec![], vec![30]]);
        assert_eq!(keyboard.held(at(1301)).1, []);
        assert!(keyboard.key(at(1400), 8, 30, false), "the program sees the release");
    }

    #[test]
    fn old_news_of_held_keys_presses_nothing() {
        let mut keyboard = Keyboard::new(0);
        keyboard.key(at(0), 5, 30, true);
        assert_eq!(keyboard.on_timeout(at(250), SILENCE).1, [30]);
        // All that was said during three seconds without a link, at once.
        for _ in 0..30 {
            assert_eq!(keyboard.held(at(3_250)).1, []);
        }
        assert!(!keyboard.key(at(3_251), 6, 30, false), "the program has seen its end already");
    }

    #[test]
    fn a_retransmission_is_no_silence() {
        let patience = patience(Duration::from_millis(200));
        let mut keyboard = Keyboard::new(0);
        keyboard.key(at(0), 5, 30, true);
        assert!(keyboard.on_timeout(at(549), patience).1.is_empty());
        assert_eq!(keyboard.on_timeout(at(550), patience).1, [30]);
    }

    #[test]
    fn heartbeats_keep_keys_down() {
        let mut keyboard = Keyboard::new(0);
        keyboard.key(at(0), 5, 30, true);
        for ms in (100..1000).step_by(100) {
            keyboard.heard(at(ms));
            assert!(keyboard.on_timeout(at(ms + 100), SILENCE).1.is_empty());
        }
    }

    #[test]
    fn a_new_focus_starts_clean() {
        let mut keyboard = Keyboard::new(0);
        keyboard.key(at(0), 5, 30, true);
        keyboard.on_timeout(at(300), SILENCE);
        keyboard.focus_changed(at(400));
        assert!(
            keyboard.key(at(500), 9, 30, false),
            "a release after a new focus is the compositor's business"
        );
    }

    #[test]
    fn sealed_files_hold_the_bytes() {
        let file = std::fs::File::from(sealed_memfd(b"keymap\0").unwrap());
        assert_eq!(file.metadata().unwrap().len(), 7);
        assert!(io::Write::write_all(&mut &file, b"x").is_err());
        let mode = rustix::fs::fcntl_getfl(&file).unwrap() & rustix::fs::OFlags::RWMODE;
        assert_eq!(mode, rustix::fs::OFlags::RDONLY, "or it cannot be mapped shared before Linux 6.7");
    }
}
