//! From blocks of sound to encoded frames, without those of silence.
//!
//! It sends nothing. Invariant: frames follow each other without a gap as long as blocks do.

use wayferry_audio::{CHANNELS, FrameSize, Gate, OpusEncoder, Position, Turn, encode_pcm};

use crate::Codec;
use crate::outbox::{Captured, Content, Wanted};

/// See the module.
#[derive(Debug)]
pub(crate) struct Encoding {
    wanted: Wanted,
    encoder: Encoder,
    gate: Gate,
    /// The next frame is the first after silence.
    starts: bool,
    /// The beginning of a frame, and when it was captured.
    begun: Vec<f32>,
    began: Position,
}

#[derive(Debug)]
enum Encoder {
    Pcm,
    Opus(OpusEncoder),
}

impl Encoding {
    /// `within` sound that is playing, or in silence. `None` if the codec has no memory.
    pub(crate) fn new(wanted: Wanted, within: bool) -> Option<Self> {
        let encoder = match wanted.codec {
            Codec::Pcm => Encoder::Pcm,
            Codec::Opus => Encoder::Opus(OpusEncoder::new(wanted.rate).ok()?),
        };
        let (gate, begun, began) = (Gate::default(), Vec::new(), Position::default());
        Some(Self { wanted, encoder, gate, starts: !within, begun, began })
    }

    /// Goes on in another way, if it can without a seam.
    pub(crate) fn adapts(&mut self, wanted: Wanted) -> bool {
        let fits = Wanted { frame: self.wanted.frame, ..wanted } == self.wanted;
        if fits {
            self.wanted = wanted;
        }
        fits
    }

    /// Whether silence has lasted so long that nothing is sent.
    pub(crate) fn is_idle(&self) -> bool {
        self.gate.is_idle()
    }

    /// The next block, captured then.
    pub(crate) fn block(&mut self, capture: Position, block: &[f32]) -> Option<Captured> {
        let expected = self.began.0 + (self.begun.len() / CHANNELS) as u64;
        if self.begun.is_empty() || expected != capture.0 {
            self.begun.clear();
            self.began = capture;
        }
        match self.gate.hear(block) {
            Turn::Rest => {
                self.begun.clear();
                return None;
            }
            Turn::SayIdle => {
                // What comes after has nothing to do with what was before.
                *self = Self { gate: self.gate, ..Self::new(self.wanted, false)? };
                return Some(self.captured(capture, Content::Idle));
            }
            Turn::Encode => self.begun.extend_from_slice(block),
        }
        let frames = self.begun.len() / CHANNELS;
        // Of either length, so that it may change in the middle.
        let whole = frames >= self.wanted.frame.frames() || frames >= FrameSize::Ms20.frames();
        if !whole {
            return None;
        }
        let samples = std::mem::take(&mut self.begun);
        let payload = match &mut self.encoder {
            Encoder::Pcm => encode_pcm(&samples),
            Encoder::Opus(encoder) => encoder.encode(&samples).ok()?,
        };
        let start = std::mem::take(&mut self.starts);
        Some(self.captured(self.began, Content::Frame { start, payload }))
    }

    fn captured(&self, capture: Position, content: Content) -> Captured {
        Captured { codec: self.wanted.codec, capture, content }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOUD: [f32; 960] = [0.25; 960];
    const SILENT: [f32; 960] = [0.0; 960];

    fn wanted(codec: Codec, frame: FrameSize) -> Wanted {
        Wanted { codec, rate: 96_000, frame }
    }

    fn captures(encoding: &mut Encoding, blocks: impl Iterator<Item = u64>) -> Vec<u64> {
        let mut captures = Vec::new();
        for at in blocks {
            if let Some(Captured { capture, content: Content::Frame { .. }, .. }) =
                encoding.block(Position(at * 480), &LOUD)
            {
                captures.push(capture.0 / 480);
            }
        }
        captures
    }

    #[test]
    fn a_frame_has_one_block_or_two() {
        let mut encoding = Encoding::new(wanted(Codec::Pcm, FrameSize::Ms20), false).unwrap();
        assert_eq!(captures(&mut encoding, 7..11), [7, 9]);
        assert_eq!(captures(&mut encoding, 11..12), [0; 0]);
        assert!(encoding.adapts(wanted(Codec::Pcm, FrameSize::Ms10)));
        assert_eq!(captures(&mut encoding, 12..15), [11, 13, 14], "nothing is lost when it changes");
        assert!(!encoding.adapts(wanted(Codec::Opus, FrameSize::Ms10)));
    }

    #[test]
    fn a_gap_begins_a_frame_anew() {
        let mut encoding = Encoding::new(wanted(Codec::Pcm, FrameSize::Ms20), false).unwrap();
        assert_eq!(captures(&mut encoding, [0, 1, 2, 50, 51].into_iter()), [0, 50]);
    }

    #[test]
    fn silence_is_said_once_and_sound_after_it_is_whole() {
        for codec in [Codec::Pcm, Codec::Opus] {
            let mut encoding = Encoding::new(wanted(codec, FrameSize::Ms20), false).unwrap();
            assert_eq!(encoding.block(Position(0), &SILENT), None);
            assert!(encoding.is_idle());
            assert_eq!(captures(&mut encoding, 1..3), [1]);
            let silence = (3..203).filter_map(|at| encoding.block(Position(at * 480), &SILENT));
            let idle = silence.filter(|captured| captured.content == Content::Idle).count();
            assert_eq!((idle, encoding.is_idle()), (1, true));
            assert_eq!(captures(&mut encoding, 300..304), [300, 302]);
            assert!(!encoding.starts, "it has begun");
        }
    }
}
