//! Whether the program answers pings.
//!
//! Sends nothing itself. Invariant: silence means nothing while what the program answers is not read.

use std::time::Duration;

use wayferry_proto::Time;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Ping {
    serial: u32,
    sent: Option<Time>,
    next: Option<Time>,
    hangs: bool,
    /// The program is held back: what it answers is not read.
    unread: bool,
    /// Since when it is read again.
    read_since: Time,
}

/// What time brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// The program is to be asked, with this serial.
    Ask(u32),
    /// It has not answered for too long.
    Hang,
}

impl Ping {
    /// Whether the program has left a ping unanswered for too long.
    pub(crate) fn hangs(&self) -> bool {
        self.hangs
    }

    pub(crate) fn next_timeout(&self) -> Option<Time> {
        match (self.sent, self.hangs) {
            (Some(sent), false) => Some(sent.max(self.read_since) + PING_PATIENCE),
            (Some(_), true) => None,
            (None, _) => self.next,
        }
    }

    /// The program's requests are read now, or not.
    pub(super) fn set_read(&mut self, now: Time, read: bool) {
        if read && self.unread {
            self.read_since = now;
        }
        self.unread = !read;
    }

    /// The program answers. Returns whether it was said to hang.
    pub(super) fn answer(&mut self, now: Time, serial: u32) -> bool {
        if self.sent.is_none() || serial != self.serial {
            return false;
        }
        self.sent = None;
        self.next = Some(now + PING_EVERY);
        std::mem::take(&mut self.hangs)
    }

    /// Time has passed, and there is an object to ask the program by; its requests wait if it is `stalled`.
    pub(super) fn on_timeout(&mut self, now: Time, stalled: bool) -> Option<Due> {
        if self.next.is_none() && self.sent.is_none() {
            self.next = Some(now + PING_EVERY);
        }
        if self.next_timeout().is_none_or(|due| due > now) {
            return None;
        }
        if self.unread || stalled {
            // Its answer would not be read.
            self.read_since = now;
            self.next = self.next.map(|_| now + PING_EVERY);
            return None;
        }
        if self.sent.is_some() {
            self.hangs = true;
            return Some(Due::Hang);
        }
        self.serial = self.serial.wrapping_add(1);
        (self.sent, self.next) = (Some(now), None);
        Some(Due::Ask(self.serial))
    }
}

/// How often a program with windows is asked whether it lives.
const PING_EVERY: Duration = Duration::from_secs(5);
/// How long it may take to answer; compositors allow about as much.
const PING_PATIENCE: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::from_millis(1000 * seconds)
    }

    /// A program that is asked at 5 s.
    fn asked() -> Ping {
        let mut ping = Ping::default();
        assert_eq!(ping.on_timeout(at(0), false), None);
        assert_eq!((ping.next_timeout(), ping.on_timeout(at(5), false)), (Some(at(5)), Some(Due::Ask(1))));
        ping
    }

    #[test]
    fn a_program_that_does_not_answer_hangs_until_it_does() {
        let mut ping = asked();
        assert_eq!(ping.on_timeout(at(14), false), None);
        assert_eq!(ping.on_timeout(at(15), false), Some(Due::Hang));
        assert_eq!((ping.hangs(), ping.next_timeout()), (true, None));
        assert!(!ping.answer(at(16), 7), "of another ping");
        assert!(ping.answer(at(16), 1) && !ping.hangs());
        assert!(!ping.answer(at(16), 1), "there is none to answer");
        assert_eq!(ping.next_timeout(), Some(at(21)));
    }

    #[test]
    fn silence_means_nothing_while_nothing_is_read() {
        let mut ping = asked();
        ping.set_read(at(6), false);
        assert_eq!(ping.on_timeout(at(60), false), None);
        ping.set_read(at(61), true);
        assert_eq!((ping.on_timeout(at(70), false), ping.next_timeout()), (None, Some(at(71))));
        assert_eq!(ping.on_timeout(at(71), true), None, "its requests wait here");
        assert_eq!(ping.on_timeout(at(81), false), Some(Due::Hang));
    }
}
