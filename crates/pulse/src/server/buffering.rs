//! How much of a stream waits here: what its program asks, and what it gets.
//!
//! Sizes are bytes, of whole frames. Invariants: a stream holds at least two turns of the mixer, so that one can be
//! played while its program is asked for the next; `request ≤ target ≤ limit ≤` [`LIMIT_MAX`].

use std::time::Duration;

use pulseaudio::protocol::stream::BufferAttr;

use super::spec::Spec;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Buffering {
    /// What is kept at most.
    pub(crate) limit: usize,
    /// What its program is asked to keep filled.
    pub(crate) target: usize,
    /// What must be there before it begins; 0 if its program begins it.
    pub(crate) before: usize,
    /// What its program is asked for at least.
    pub(crate) request: usize,
}

impl Buffering {
    /// What a program gets for what it asks; `u32::MAX` asks for what is usual.
    pub(crate) fn agreed(asked: &BufferAttr, spec: &Spec) -> Self {
        let frame = spec.frame();
        let whole = |bytes: usize| bytes / frame * frame;
        let given = |bytes: u32| (bytes != u32::MAX).then_some(whole(bytes as usize));
        let least = spec.bytes(2 * TURN).max(2 * frame);
        let limit = given(asked.max_length).unwrap_or(LIMIT_MAX).clamp(least, whole(LIMIT_MAX));
        let target = given(asked.target_length).unwrap_or(spec.bytes(TARGET)).clamp(least, limit);
        let usual = spec.bytes(REQUEST).min(whole(target / 4));
        let request = given(asked.minimum_request_length).unwrap_or(usual).max(frame);
        // A request waits until so much is missing: what is left must last until it is answered.
        let target = target.max(request.saturating_mul(2)).min(limit);
        let request = request.min(whole(target / 2));
        let most = target + frame - request;
        let before = given(asked.pre_buffering).unwrap_or(most).min(most);
        Self { limit, target, before, request }
    }

    /// As its program is told.
    pub(crate) fn told(&self) -> BufferAttr {
        let told = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX);
        BufferAttr {
            max_length: told(self.limit),
            target_length: told(self.target),
            pre_buffering: told(self.before),
            minimum_request_length: told(self.request),
            fragment_size: 0,
        }
    }
}

/// What is mixed at a time.
pub(crate) const TURN: Duration = Duration::from_millis(10);

/// What is kept of a program that does not say how much.
const TARGET: Duration = Duration::from_secs(2);

/// What such a program is asked for at a time.
const REQUEST: Duration = Duration::from_millis(20);

/// Bytes of a stream: ten seconds of CD sound; as many as PulseAudio keeps.
const LIMIT_MAX: usize = 4 << 20;

#[cfg(test)]
mod tests {
    use pulseaudio::protocol::{ChannelPosition, SampleFormat};

    use super::*;

    fn spec() -> Spec {
        let places = vec![ChannelPosition::FrontLeft, ChannelPosition::FrontRight];
        Spec { format: SampleFormat::S16Le, rate: 48_000, places }
    }

    fn agreed(limit: u32, target: u32, before: u32, request: u32) -> [usize; 4] {
        let asked = BufferAttr {
            max_length: limit,
            target_length: target,
            pre_buffering: before,
            minimum_request_length: request,
            fragment_size: 0,
        };
        let agreed = Buffering::agreed(&asked, &spec());
        [agreed.limit, agreed.target, agreed.before, agreed.request]
    }

    /// 192 bytes are a millisecond.
    const MS: u32 = 192;
    const USUAL: u32 = u32::MAX;

    #[test]
    fn a_program_that_asks_nothing_gets_two_seconds() {
        assert_eq!(agreed(USUAL, USUAL, USUAL, USUAL), [4 << 20, 384_000, 384_004 - 3840, 3840]);
    }

    #[test]
    fn a_program_gets_what_it_asks_if_that_can_be() {
        let milliseconds = |ms: u32| (ms * MS) as usize;
        assert_eq!(agreed(200 * MS, 40 * MS, 0, 10 * MS), [200, 40, 0, 10].map(milliseconds));
        assert_eq!(agreed(USUAL, 5 * MS, 0, USUAL)[1..], [20, 0, 5].map(milliseconds), "two turns");
        assert_eq!(
            agreed(USUAL, 40 * MS, 0, 40 * MS)[1..],
            [80, 0, 40].map(milliseconds),
            "twice the request"
        );
        assert_eq!(agreed(1, 1, 1, 1)[..2], [20, 20].map(milliseconds));
    }

    #[test]
    fn whatever_is_asked_can_be_played() {
        let sizes =
            [0, 1, 3, 4, 191, 1920, 3840, 3841, 100_000, 4 << 20, (4 << 20) + 1, u32::MAX - 1, u32::MAX];
        for limit in sizes {
            for target in sizes {
                for before in sizes {
                    for request in sizes {
                        let got = agreed(limit, target, before, request);
                        let [limit, target, before, request] = got;
                        assert!(got.iter().all(|size| size % 4 == 0), "{got:?}");
                        assert!(target <= limit && limit <= LIMIT_MAX && target >= 3840, "{got:?}");
                        assert!((4..=target / 2).contains(&request), "{got:?}");
                        // Requests alone bring as much as must be there to begin.
                        assert!(before <= target - request + 4, "{got:?}");
                    }
                }
            }
        }
    }
}
