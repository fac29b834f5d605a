//! The bytes of a stream that wait to be played, and the two places in them: where is played and where is written.
//!
//! Places count bytes since the stream began. Invariants: no byte that was accepted is lost, doubled or moved unless it
//! is written over, flushed or comes too late; never more than the limit is kept.

use std::collections::VecDeque;

use super::frame::{From, Seek};

/// See the module.
#[derive(Debug)]
pub(crate) struct Queue {
    /// From `read` on.
    bytes: VecDeque<u8>,
    read: i64,
    write: i64,
    limit: usize,
    /// Bytes of a frame of samples.
    frame: usize,
    silence: u8,
}

impl Queue {
    /// For sound whose frames have so many bytes; between what is written there is `silence`.
    pub(crate) fn new(frame: usize, silence: u8) -> Self {
        Self { bytes: VecDeque::new(), read: 0, write: 0, limit: 0, frame, silence }
    }

    /// From now on keeps so many bytes, whole frames; what is there already stays.
    pub(crate) fn limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// How many bytes lie between what is played and what is written next.
    pub(crate) fn level(&self) -> usize {
        usize::try_from(self.write - self.read).unwrap_or(0)
    }

    /// How many whole frames can be played.
    pub(crate) fn frames(&self) -> usize {
        self.level().min(self.bytes.len()) / self.frame
    }

    /// How many bytes are kept.
    pub(crate) fn kept(&self) -> usize {
        self.bytes.len()
    }

    /// Where is played.
    pub(crate) fn read_at(&self) -> i64 {
        self.read
    }

    /// Where is written.
    pub(crate) fn write_at(&self) -> i64 {
        self.write
    }

    /// Goes where the next bytes belong; `false` if that is too far ahead.
    pub(crate) fn seek(&mut self, seek: Seek) -> bool {
        let end = self.read.saturating_add_unsigned(self.bytes.len() as u64);
        let from = match seek.from {
            From::Write => self.write,
            From::Start => 0,
            From::Read => self.read,
            From::End => end,
        };
        let to = from.saturating_add(seek.offset).max(-FAR);
        let ahead = to.saturating_sub(self.read.max(end));
        if ahead > GAP_MAX as i64 || to.saturating_sub(self.read) > self.limit as i64 {
            return false;
        }
        self.write = to;
        true
    }

    /// Takes as many bytes as fit, and keeps at most `room` more than before; how many it took, those that come too
    /// late to be played among them.
    pub(crate) fn push(&mut self, bytes: &[u8], room: usize) -> usize {
        let behind = usize::try_from(self.read - self.write).unwrap_or(0);
        let late = bytes.len().min(behind);
        self.write += late as i64;
        let bytes = &bytes[late..];
        if bytes.is_empty() {
            return late;
        }
        let at = self.level();
        let most = self.limit.min(self.bytes.len().saturating_add(room));
        let (bytes, _) = bytes.split_at(bytes.len().min(most.saturating_sub(at)));
        if bytes.is_empty() {
            return late;
        }
        if at > self.bytes.len() {
            self.bytes.resize(at, self.silence);
        }
        let (over, new) = bytes.split_at(bytes.len().min(self.bytes.len() - at));
        self.bytes.range_mut(at..at + over.len()).zip(over).for_each(|(to, from)| *to = *from);
        self.bytes.extend(new);
        self.write += bytes.len() as i64;
        late + bytes.len()
    }

    /// What follows does not continue what was written: goes back to the last whole frame.
    pub(crate) fn align(&mut self) {
        let excess = self.write.rem_euclid(self.frame as i64);
        self.write -= excess;
    }

    /// Moves up to so many whole frames into `out`; how many.
    pub(crate) fn pull(&mut self, frames: usize, out: &mut Vec<u8>) -> usize {
        let frames = frames.min(self.frames());
        let bytes = frames * self.frame;
        let (first, second) = self.bytes.as_slices();
        let split = bytes.min(first.len());
        out.extend_from_slice(&first[..split]);
        out.extend_from_slice(&second[..bytes - split]);
        self.skip(frames);
        frames
    }

    /// Plays so many frames, whether they are there or not.
    pub(crate) fn skip(&mut self, frames: usize) {
        let bytes = frames * self.frame;
        self.bytes.drain(..bytes.min(self.bytes.len()));
        self.read = self.read.saturating_add_unsigned(bytes as u64);
        if self.bytes.capacity() > SPARE && self.bytes.capacity() / 4 > self.bytes.len() {
            self.bytes.shrink_to(self.bytes.len() * 2);
        }
    }

    /// Forgets what was not played.
    pub(crate) fn flush(&mut self) {
        self.bytes = VecDeque::new();
        self.write = self.read;
    }
}

/// A place so far from all others that sums with it do not overflow.
const FAR: i64 = i64::MAX / 4;

/// Bytes of silence that a client can leave before what it writes: two seconds of CD sound. They are filled in, which
/// costs it only a header.
const GAP_MAX: usize = 512 << 10;

/// Room that a queue may keep for nothing.
const SPARE: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(limit: usize) -> Queue {
        let mut queue = Queue::new(2, 0);
        queue.limit(limit);
        queue
    }

    fn pulled(queue: &mut Queue, frames: usize) -> Vec<u8> {
        let mut out = Vec::new();
        queue.pull(frames, &mut out);
        out
    }

    fn seek(queue: &mut Queue, from: From, offset: i64) -> bool {
        queue.seek(Seek { from, offset })
    }

    #[test]
    fn gives_what_it_took_in_order_and_whole_frames() {
        let mut queue = queue(8);
        assert_eq!(queue.push(&[1, 2, 3, 4, 5], usize::MAX), 5);
        assert_eq!(pulled(&mut queue, 9), [1, 2, 3, 4]);
        assert_eq!(queue.push(&[6, 7, 8], usize::MAX), 3);
        assert_eq!(pulled(&mut queue, 9), [5, 6, 7, 8]);
        assert_eq!((queue.read_at(), queue.write_at()), (8, 8));
    }

    #[test]
    fn takes_no_more_than_its_limit_or_the_room() {
        let mut queue = queue(4);
        assert_eq!(queue.push(&[1, 2, 3, 4, 5, 6], 3), 3);
        queue.align();
        assert_eq!(queue.push(&[7, 8, 9], usize::MAX), 2);
        assert_eq!(pulled(&mut queue, 9), [1, 2, 7, 8]);
    }

    #[test]
    fn writes_over_and_leaves_silence() {
        let mut queue = queue(100);
        queue.push(&[1, 2, 3, 4, 5, 6], usize::MAX);
        assert!(seek(&mut queue, From::Read, 2));
        queue.push(&[7, 8], usize::MAX);
        assert_eq!(queue.level(), 4, "the rest waits behind");
        assert!(seek(&mut queue, From::End, 2));
        queue.push(&[9, 9], usize::MAX);
        assert_eq!(pulled(&mut queue, 9), [1, 2, 7, 8, 5, 6, 0, 0, 9, 9]);
        assert!(seek(&mut queue, From::Start, 8));
        assert_eq!(queue.push(&[1, 1, 5, 5], usize::MAX), 4, "two are too late");
        assert_eq!(pulled(&mut queue, 9), [5, 5]);
    }

    #[test]
    fn goes_nowhere_out_of_bounds() {
        let mut queue = queue(1 << 22);
        for from in [From::Write, From::Start, From::Read, From::End] {
            assert!(!seek(&mut queue, from, i64::MAX));
            assert!(!seek(&mut queue, from, GAP_MAX as i64 + 1));
        }
        assert!(seek(&mut queue, From::Write, i64::MIN));
        assert_eq!(queue.push(&[1; 100], usize::MAX), 100, "all too late");
        assert_eq!((queue.level(), queue.kept()), (0, 0));
        assert!(seek(&mut queue, From::End, 0));
        queue.push(&[1, 2], usize::MAX);
        assert_eq!(pulled(&mut queue, 9), [1, 2]);
    }

    #[test]
    fn keeps_no_room_for_what_was_played() {
        let mut queue = queue(4 << 20);
        queue.push(&vec![1; 4 << 20], usize::MAX);
        queue.skip((4 << 20) / 2 - 1);
        assert!(queue.bytes.capacity() <= SPARE, "{}", queue.bytes.capacity());
        assert_eq!(queue.kept(), 2);
    }
}
