//! What sound's thread and a card exchange: samples, and what became of the card.
//!
//! The card's callback must not wait. It shares a lock with one thread, which holds that lock only to move samples and
//! numbers, as long as a copy of 10 ms takes. It wakes that thread by an eventfd. Invariants: there are never more
//! samples than the ring has room for; once the card is open, a callback allocates nothing; the first failure is kept.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use wayferry_audio::{CHANNELS, RATE, to_i16};

use crate::source::STEP_FRAMES;

/// See the module.
#[derive(Debug)]
pub(super) struct Ring {
    inner: Mutex<Inner>,
    /// Readable when the thread has something to look at.
    wake: OwnedFd,
}

#[derive(Debug, Default)]
struct Inner {
    /// 16 bits, as sound servers get them.
    samples: VecDeque<i16>,
    /// Frames that it may hold; none before the card is open.
    capacity: usize,
    behind: Option<Duration>,
    /// Errors since the card took samples last.
    errors: u32,
    failure: Option<String>,
}

/// What the thread finds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Level {
    pub(super) is_open: bool,
    /// Frames that it holds, and for how many more there is room.
    pub(super) queued: usize,
    pub(super) room: usize,
    /// How long the card's own queue is, if the card was opened or took samples since the last look.
    pub(super) behind: Option<Duration>,
}

impl Ring {
    pub(super) fn new() -> io::Result<Self> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { inner: Mutex::default(), wake })
    }

    /// Readable when there is something to look at.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// The card is open, and will take so many frames at a time.
    pub(super) fn open(&self, period: usize) {
        let mut inner = self.lock();
        // What the card takes at once, and 10 ms for a thread that is late.
        inner.capacity = period + STEP_FRAMES;
        let samples = inner.capacity * CHANNELS;
        inner.samples.reserve_exact(samples);
        // The card is about to fill its two periods with what comes first.
        inner.behind = Some(time_of(2 * period));
        self.signal();
    }

    /// The card is no more, or could not be opened.
    pub(super) fn fail(&self, why: &str) {
        self.lock().failure.get_or_insert_with(|| why.into());
        self.signal();
    }

    /// The card erred, and may take samples all the same; it has failed when it errs many times in a row.
    pub(super) fn stumble(&self, why: &str) {
        let mut inner = self.lock();
        inner.errors += 1;
        let has_failed = inner.errors >= MAX_ERRORS;
        drop(inner);
        if has_failed {
            self.fail(why);
        }
    }

    /// The card takes samples, which are heard after what it has already. Where there are too few, silence follows.
    pub(super) fn take<T>(&self, out: &mut [T], queue: Duration, convert: impl Fn(i16) -> T) {
        let mut inner = self.lock();
        let there = out.len().min(inner.samples.len());
        out.iter_mut().zip(inner.samples.drain(..there)).for_each(|(out, sample)| *out = convert(sample));
        out[there..].iter_mut().for_each(|out| *out = convert(0));
        inner.behind = Some(queue + time_of(out.len() / CHANNELS));
        inner.errors = 0;
        self.signal();
    }

    /// Whether the card was opened, or failed.
    pub(super) fn has_answered(&self) -> bool {
        let inner = self.lock();
        inner.capacity > 0 || inner.failure.is_some()
    }

    /// What happened since the last look; the failure, if there is one.
    pub(super) fn look(&self) -> Result<Level, String> {
        // Before looking: what happens after it is seen the next time.
        let _ = rustix::io::read(&self.wake, &mut [0; 8]);
        let mut inner = self.lock();
        if let Some(why) = &inner.failure {
            return Err(why.clone());
        }
        let queued = inner.samples.len() / CHANNELS;
        let (is_open, room) = (inner.capacity > 0, inner.capacity.saturating_sub(queued));
        Ok(Level { is_open, queued, room, behind: inner.behind.take() })
    }

    /// Adds samples; those for which there is no room are dropped.
    pub(super) fn put(&self, samples: &[f32]) {
        let mut inner = self.lock();
        let room = (inner.capacity * CHANNELS).saturating_sub(inner.samples.len());
        inner.samples.extend(samples.iter().take(room).map(|sample| to_i16(*sample)));
    }

    /// A panic of either side leaves whole data behind: what is changed are samples and numbers.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It fails only when the eventfd is readable already.
    fn signal(&self) {
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }
}

/// How long so many frames take.
pub(super) fn time_of(frames: usize) -> Duration {
    Duration::from_nanos(frames as u64 * 1_000_000_000 / u64::from(RATE))
}

/// Errors in a row until a card is given up: half a second, at one in 10 ms.
const MAX_ERRORS: u32 = 50;

#[cfg(test)]
mod tests {
    use wayferry_audio::from_i16;

    use super::*;

    fn opened() -> Ring {
        let ring = Ring::new().unwrap();
        ring.open(STEP_FRAMES);
        ring.look().unwrap();
        ring
    }

    #[test]
    fn samples_come_out_in_order_and_silence_after_them() {
        let ring = opened();
        ring.put(&[0.25, -0.25, 0.5, -0.5]);
        let mut out = [7; 6];
        ring.take(&mut out, Duration::from_millis(3), |sample| sample);
        assert_eq!(out, [0x2000, -0x2000, 0x4000, -0x4000, 0, 0]);
        let level = ring.look().unwrap();
        assert_eq!(level.behind, Some(Duration::from_millis(3) + time_of(3)));
        assert_eq!((level.queued, ring.look().unwrap().behind), (0, None), "once");
        ring.put(&[0.25; 2]);
        let mut out = [7.0; 4];
        ring.take(&mut out, Duration::ZERO, from_i16);
        assert_eq!(out, [0.25, 0.25, 0.0, 0.0]);
    }

    #[test]
    fn what_has_no_room_is_dropped_and_a_card_that_is_not_open_takes_nothing() {
        let ring = Ring::new().unwrap();
        ring.put(&[0.5; 2]);
        let level = ring.look().unwrap();
        assert_eq!((level.is_open, level.queued, level.room), (false, 0, 0));
        let ring = opened();
        let room = ring.look().unwrap().room;
        assert_eq!(room, 2 * STEP_FRAMES);
        ring.put(&vec![0.5; (room + 1) * CHANNELS]);
        let level = ring.look().unwrap();
        assert_eq!((level.is_open, level.queued, level.room), (true, room, 0));
    }

    #[test]
    fn a_callback_allocates_nothing() {
        let ring = opened();
        let allocated = ring.lock().samples.capacity();
        for _ in 0..10 {
            ring.put(&[0.5; 2 * STEP_FRAMES * CHANNELS]);
            ring.take(&mut [0; STEP_FRAMES * CHANNELS], Duration::ZERO, |sample| sample);
        }
        assert_eq!(ring.lock().samples.capacity(), allocated);
    }

    #[test]
    fn the_first_failure_is_kept() {
        let ring = opened();
        ring.fail("unplugged");
        ring.fail("closed");
        assert_eq!(ring.look().unwrap_err(), "unplugged");
    }

    #[test]
    fn a_card_that_errs_is_given_up_only_when_it_takes_nothing_between() {
        let ring = opened();
        for _ in 0..3 {
            (1..MAX_ERRORS).for_each(|_| ring.stumble("dry"));
            ring.take(&mut [0; 2], Duration::ZERO, |sample| sample);
        }
        assert!(ring.look().is_ok());
        (0..MAX_ERRORS).for_each(|_| ring.stumble("dry"));
        assert_eq!(ring.look().unwrap_err(), "dry");
    }
}
