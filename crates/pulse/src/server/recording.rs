//! One stream that records: what its program is still to be given of the microphone.
//!
//! Invariant: a program that does not read loses the oldest, whole frames of it, and keeps at most the stream's limit.

use std::collections::VecDeque;

use pulseaudio::protocol::stream::BufferAttr;
use pulseaudio::protocol::{ChannelVolume, Props};

use super::buffering::TURN;
use super::client::ClientId;
use super::hearer::Hearer;
use super::spec::Spec;
use super::voice::Mix;

/// See the module.
#[derive(Debug)]
pub(crate) struct Recording {
    pub(crate) owner: ClientId,
    pub(crate) spec: Spec,
    pub(crate) fragments: Fragments,
    pub(crate) props: Props,
    pub(crate) volume: ChannelVolume,
    pub(crate) muted: bool,
    pub(crate) corked: bool,
    /// Whether its program may change the rate.
    pub(crate) variable_rate: bool,
    hearer: Hearer,
    waiting: VecDeque<u8>,
    /// Bytes of it that its program was given, or lost.
    given: u64,
}

/// What a program that records wants.
#[derive(Debug)]
pub(crate) struct Wish {
    pub(crate) spec: Spec,
    pub(crate) fragments: Fragments,
    pub(crate) props: Props,
    pub(crate) volume: ChannelVolume,
    pub(crate) muted: bool,
    pub(crate) corked: bool,
    pub(crate) variable_rate: bool,
}

/// How much a program is given at a time, in bytes of whole frames: `size ≤ limit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fragments {
    /// So much at once.
    pub(crate) size: usize,
    /// So much waits at most.
    pub(crate) limit: usize,
}

impl Fragments {
    /// What a program gets for what it asks; `u32::MAX` asks for what is usual.
    pub(crate) fn agreed(asked: &BufferAttr, spec: &Spec) -> Self {
        let frame = spec.frame();
        let whole = |bytes: usize| bytes / frame * frame;
        let given = |bytes: u32| (bytes != u32::MAX).then_some(whole(bytes as usize));
        let limit = given(asked.max_length).unwrap_or(LIMIT_MAX).clamp(frame, whole(LIMIT_MAX));
        let size = given(asked.fragment_size).unwrap_or(spec.bytes(USUAL));
        Self { size: size.clamp(frame, limit.min(whole(FRAGMENT_MAX))), limit }
    }

    /// As its program is told.
    pub(crate) fn told(&self) -> BufferAttr {
        let told = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX);
        BufferAttr {
            max_length: told(self.limit),
            fragment_size: told(self.size),
            target_length: 0,
            pre_buffering: 0,
            minimum_request_length: 0,
        }
    }
}

impl Recording {
    /// A new one; `None` if its samples cannot be made.
    pub(crate) fn new(owner: ClientId, wish: Wish) -> Option<Self> {
        let Wish { spec, fragments, props, volume, muted, corked, variable_rate } = wish;
        let hearer = Hearer::new(&spec, &volume, muted)?;
        Some(Self {
            owner,
            spec,
            fragments,
            props,
            volume,
            muted,
            corked,
            variable_rate,
            hearer,
            waiting: VecDeque::new(),
            given: 0,
        })
    }

    /// The next 10 ms of the microphone.
    pub(crate) fn hear(&mut self, block: &Mix, bytes: &mut Vec<u8>) {
        if self.corked {
            return;
        }
        bytes.clear();
        self.hearer.hear(&self.spec, block, bytes);
        self.waiting.extend(&*bytes);
        let excess = self.waiting.len().saturating_sub(self.fragments.limit);
        let lost = excess.next_multiple_of(self.spec.frame()).min(self.waiting.len());
        self.waiting.drain(..lost);
        self.given += lost as u64;
    }

    /// What its program is given next. Pieces shorter than a turn come together: each message costs time.
    pub(crate) fn fragment(&mut self) -> Option<Vec<u8>> {
        let piece = self.fragments.size;
        let most = self.spec.bytes(TURN).min(FRAGMENT_MAX).max(piece);
        let size = self.waiting.len().min(most) / piece * piece;
        (size > 0).then(|| {
            self.given += size as u64;
            self.waiting.drain(..size).collect()
        })
    }

    /// What was not given is forgotten.
    pub(crate) fn flush(&mut self) {
        self.given += self.waiting.len() as u64;
        self.waiting = VecDeque::new();
    }

    /// Its program wants to hear it in other pieces.
    pub(crate) fn cut(&mut self, fragments: Fragments) {
        self.fragments = fragments;
    }

    /// Volume or mute changed.
    pub(crate) fn weigh(&mut self) {
        self.hearer.weigh(&self.spec, &self.volume, self.muted);
    }

    /// Its program wants another rate.
    pub(crate) fn retune(&mut self, rate: u32) {
        self.spec.rate = rate;
        self.hearer.retune(rate);
    }

    /// Bytes that were heard, and that were given.
    pub(crate) fn places(&self) -> (i64, i64) {
        let place = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        (place(self.given + self.waiting.len() as u64), place(self.given))
    }
}

/// What a program is given at a time that does not say how much.
const USUAL: std::time::Duration = std::time::Duration::from_millis(20);

/// Bytes that a program is given at once.
const FRAGMENT_MAX: usize = 64 << 10;

/// Bytes of a stream that wait: more than a second of CD sound.
const LIMIT_MAX: usize = 512 << 10;

#[cfg(test)]
mod tests {
    use pulseaudio::protocol::SampleFormat;

    use super::super::place;
    use super::*;

    const USUALLY: u32 = u32::MAX;

    fn agreed(limit: u32, size: u32) -> (usize, usize) {
        let spec = Spec { format: SampleFormat::S16Le, rate: 48_000, places: place::usual(2) };
        let asked = BufferAttr { max_length: limit, fragment_size: size, ..BufferAttr::default() };
        let Fragments { size, limit } = Fragments::agreed(&asked, &spec);
        (limit, size)
    }

    #[test]
    fn whatever_is_asked_can_be_given() {
        assert_eq!(agreed(USUALLY, USUALLY), (512 << 10, 3840));
        assert_eq!(agreed(USUALLY, 961), (512 << 10, 960));
        assert_eq!(agreed(0, 0), (4, 4));
        assert_eq!(agreed(1000, 1 << 30), (1000, 1000));
        assert_eq!(agreed(u32::MAX - 1, u32::MAX - 1), (512 << 10, 64 << 10));
    }
}
