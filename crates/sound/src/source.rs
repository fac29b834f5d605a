//! What is heard: the player of the current flow, and the end of the one before.
//!
//! A flow that ends in the middle of a sound fades out within 5 ms, over the beginning of the next. Invariants: every
//! call fills its buffer; with one flow alone, what its player gives is passed on unchanged.

use std::time::Duration;

use wayferry_audio::{CHANNELS, Decoder, Error, Figures, Opus, Packet, Pcm, Player, Position, RATE};
use wayferry_proto::Time;

use crate::Codec;
use crate::playback::Heard;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Source {
    flow: Option<Flow>,
    fading: Option<Fading>,
    /// Until when sound was pulled, or could have been.
    pulled: Time,
    /// When what is pulled next is heard.
    heard: Time,
}

#[derive(Debug)]
struct Flow {
    codec: Codec,
    player: Player<Voice>,
}

/// The end of a flow.
#[derive(Debug)]
struct Fading {
    player: Player<Voice>,
    /// Frames of it that are still heard.
    left: usize,
}

/// The decoder of either codec.
#[derive(Debug)]
enum Voice {
    Opus(Opus),
    Pcm(Pcm),
}

impl Source {
    /// Another flow begins.
    ///
    /// # Errors
    /// There is no memory for its decoder: then nothing of it will be heard.
    pub(crate) fn begin(&mut self, codec: Codec) -> Result<(), String> {
        self.end();
        let voice = match codec {
            Codec::Opus => Voice::Opus(Opus::new().map_err(|error| format!("no decoder for Opus: {error}"))?),
            Codec::Pcm => Voice::Pcm(Pcm::new()),
        };
        self.flow = Some(Flow { codec, player: Player::new(voice) });
        Ok(())
    }

    /// The flow ends.
    pub(crate) fn end(&mut self) {
        if let Some(flow) = self.flow.take()
            && flow.player.position().is_some()
        {
            self.fading = Some(Fading { player: flow.player, left: FADE });
        }
    }

    /// Forgets what has come, and goes on with the flow's next packet.
    pub(crate) fn forget(&mut self) {
        let codec = self.codec();
        (self.flow, self.fading) = (None, None);
        if let Some(codec) = codec {
            // An error leaves it without a flow; that was told when the first decoder was made, if it was.
            let _ = self.begin(codec);
        }
    }

    pub(crate) fn packet(&mut self, arrived: Time, packet: Packet) {
        if let Some(flow) = &mut self.flow {
            flow.player.receive(arrived, packet);
        }
    }

    /// Whether what is played next is silent, until another packet comes.
    pub(crate) fn is_idle(&self) -> bool {
        self.fading.is_none() && self.flow.as_ref().is_none_or(|flow| flow.player.is_idle())
    }

    /// Whether a sound is under way: one that plays, or the end of one.
    pub(crate) fn is_sounding(&self) -> bool {
        self.fading.is_some() || self.position().is_some()
    }

    pub(crate) fn codec(&self) -> Option<Codec> {
        self.flow.as_ref().map(|flow| flow.codec)
    }

    /// What is pulled next, and when it is heard.
    pub(crate) fn next(&self) -> Option<Heard> {
        self.position().map(|captured| Heard { captured, at: self.heard })
    }

    pub(crate) fn position(&self) -> Option<Position> {
        self.flow.as_ref()?.player.position()
    }

    pub(crate) fn figures(&self) -> Figures {
        self.flow.as_ref().map(|flow| flow.player.figures()).unwrap_or_default()
    }

    /// Fills `out`, which will be heard after the `device_queue`.
    pub(crate) fn play(&mut self, now: Time, out: &mut [f32], device_queue: Duration) {
        self.pulled = now;
        let length = (out.len() / CHANNELS) as f64 / f64::from(RATE);
        self.heard = now + device_queue + Duration::from_secs_f64(length);
        match &mut self.flow {
            Some(flow) => flow.player.play(now, out, device_queue),
            None => out.fill(0.0),
        }
        let Some(fading) = &mut self.fading else { return };
        let mut end = vec![0.0; out.len().min(fading.left * CHANNELS)];
        fading.player.play(now, &mut end, device_queue);
        for (sample, ending) in out.chunks_exact_mut(CHANNELS).zip(end.chunks_exact(CHANNELS)) {
            fading.left -= 1;
            let gain = fading.left as f32 / FADE as f32;
            sample.iter_mut().zip(ending).for_each(|(sample, ending)| *sample += ending * gain);
        }
        if fading.left == 0 {
            self.fading = None;
        }
    }

    /// No device takes sound at the moment, and what would have been heard until `now` is not heard at all.
    pub(crate) fn pass(&mut self, now: Time) {
        if self.is_idle() || now.since(self.pulled) > LONGEST_PASS {
            // The player itself skips what is left over after so long.
            self.pulled = now;
        }
        let mut unheard = [0.0; STEP_FRAMES * CHANNELS];
        while now.since(self.pulled) >= STEP {
            let until = self.pulled + STEP;
            self.play(until, &mut unheard, Duration::ZERO);
        }
    }
}

impl Decoder for Voice {
    fn decode(&mut self, payload: &[u8], samples: &mut Vec<f32>) -> Result<(), Error> {
        match self {
            Self::Opus(opus) => opus.decode(payload, samples),
            Self::Pcm(pcm) => pcm.decode(payload, samples),
        }
    }

    fn conceal(&mut self, frames: usize, samples: &mut Vec<f32>) {
        match self {
            Self::Opus(opus) => opus.conceal(frames, samples),
            Self::Pcm(pcm) => pcm.conceal(frames, samples),
        }
    }

    fn restart(&mut self) {
        match self {
            Self::Opus(opus) => opus.restart(),
            Self::Pcm(pcm) => pcm.restart(),
        }
    }
}

/// How much sound is pulled at once where no device says it.
pub(crate) const STEP: Duration = Duration::from_millis(10);
pub(crate) const STEP_FRAMES: usize = RATE as usize / 100;

/// Frames within which a flow that ends becomes silent: 5 ms.
const FADE: usize = RATE as usize / 200;

/// More than this is not made up for: it would be work without an effect.
const LONGEST_PASS: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use wayferry_audio::encode_pcm;

    use super::*;

    /// Packets of one level, 10 ms each.
    fn packet(number: u32, level: f32) -> Packet {
        Packet {
            sequence: number,
            capture: Position(u64::from(number) * STEP_FRAMES as u64),
            payload: encode_pcm(&[level; STEP_FRAMES * CHANNELS]),
            ..Packet::default()
        }
    }

    fn at(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    /// A source that plays a level.
    fn playing(level: f32) -> Source {
        let mut source = Source::default();
        source.begin(Codec::Pcm).unwrap();
        for number in 0..30 {
            source.packet(at(u64::from(number) * 10), packet(number, level));
        }
        source.pass(at(300));
        assert!(source.is_sounding());
        source
    }

    fn play(source: &mut Source, now: Time) -> Vec<f32> {
        let mut out = vec![9.0; STEP_FRAMES * CHANNELS];
        source.play(now, &mut out, Duration::ZERO);
        out
    }

    #[test]
    fn the_end_of_a_flow_fades_out_over_the_beginning_of_the_next() {
        let mut source = playing(0.5);
        source.begin(Codec::Pcm).unwrap();
        assert!(!source.is_idle() && source.position().is_none());
        let out = play(&mut source, at(310));
        let steps = out.windows(CHANNELS + 1).map(|window| (window[CHANNELS] - window[0]).abs());
        assert!(steps.fold(0.0, f32::max) < 0.01 && (out[0] - 0.5).abs() < 0.01, "no click");
        assert!(out[FADE * CHANNELS..].iter().all(|sample| *sample == 0.0));
        assert!(source.is_idle());
    }

    #[test]
    fn a_silent_flow_ends_without_a_fade() {
        let mut source = Source::default();
        source.begin(Codec::Opus).unwrap();
        source.end();
        assert!(source.is_idle() && source.codec().is_none());
        assert_eq!(play(&mut source, at(10)), [0.0; STEP_FRAMES * CHANNELS]);
    }

    #[test]
    fn what_no_device_takes_passes() {
        let mut source = playing(0.5);
        let before = source.position().unwrap();
        (30..40).for_each(|number| source.packet(at(u64::from(number) * 10), packet(number, 0.5)));
        source.pass(at(400));
        assert_eq!(source.position(), Some(Position(before.0 + 4800)));
        source.forget();
        assert_eq!((source.is_idle(), source.codec()), (true, Some(Codec::Pcm)));
    }
}
