//! Sound that something else decodes, later than it is asked to: a browser.
//!
//! A player is handed packets that carry a number in place of their sound. The sound waits here until it was decoded;
//! what was not when its turn comes is concealed, as what has not come is. The decoder gets the sound in its order, as
//! soon as the packets before it were given out, or else when it must: one that waits has then been missed already.
//!
//! Invariants: the decoder is asked for at most [`MAX_DECODING`] payloads at once, and answers in the order in which
//! it was asked; sound is kept for the packets that wait in the player alone.

use std::collections::{BTreeMap, VecDeque};

use wayferry_proto::Time;

use crate::conceal::Decoder;
use crate::error::Error;
use crate::packet::Packet;
use crate::pcm::Pcm;
use crate::player::Player;
use crate::sample::{CHANNELS, FrameSize, MS};

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Elsewhere {
    /// By the numbers of their packets.
    sounds: BTreeMap<u32, Sound>,
    /// Whose sound is asked for, the first one first; `None` if it is not wanted any more.
    asked: VecDeque<Option<u32>>,
    /// The last packet whose sound was asked for.
    last: Option<u32>,
    /// Makes up what is missing.
    pcm: Pcm,
}

/// The sound of a packet.
#[derive(Clone, Debug)]
enum Sound {
    Encoded(Vec<u8>),
    Asked,
    Decoded(Vec<f32>),
}

impl Elsewhere {
    /// One that goes on with the same decoder, for another flow.
    #[must_use]
    pub fn next_flow(&self) -> Self {
        Self { asked: vec![None; self.asked.len()].into(), ..Self::default() }
    }

    /// The decoder has given the samples of the payload that it was asked for first, of those that are left: they are
    /// not played if they are more than 20 ms, or no whole frames.
    pub fn decoded(&mut self, samples: &[f32]) {
        let is_frame =
            !samples.is_empty() && samples.len() <= LONGEST && samples.len().is_multiple_of(CHANNELS);
        let asked = self.asked.pop_front().flatten().filter(|_| is_frame);
        if let Some(sound) = asked.and_then(|number| self.sounds.get_mut(&number)) {
            // A browser's own may be louder than anything that can be played.
            let bounded = |sample: &f32| if sample.is_finite() { sample.clamp(-1.0, 1.0) } else { 0.0 };
            *sound = Sound::Decoded(samples.iter().map(bounded).collect());
        }
    }

    /// The decoder will not answer what it was asked.
    pub fn failed(&mut self) {
        self.asked.clear();
    }
}

impl Player<Elsewhere> {
    /// A packet arrived whose sound has to be decoded elsewhere: [`poll_encoded`](Self::poll_encoded) gives it out.
    pub fn receive_encoded(&mut self, now: Time, mut packet: Packet) {
        let payload = std::mem::take(&mut packet.payload);
        self.receive_sound(now, packet, Sound::Encoded(payload));
    }

    /// A packet of plain samples arrived.
    pub fn receive_samples(&mut self, now: Time, mut packet: Packet) {
        let mut samples = Vec::new();
        // What are no samples is refused when its turn has come.
        let _ = Pcm::new().decode(&std::mem::take(&mut packet.payload), &mut samples);
        self.receive_sound(now, packet, Sound::Decoded(samples));
    }

    fn receive_sound(&mut self, now: Time, mut packet: Packet, sound: Sound) {
        let number = packet.sequence;
        packet.payload = number.to_be_bytes().to_vec();
        self.receive(now, packet);
        let waiting: Vec<u32> = self.waiting().map(|packet| packet.sequence).collect();
        let sounds = &mut self.decoder_mut().sounds;
        sounds.retain(|number, _| waiting.contains(number));
        // The first copy counts. What says that there will be silence is never decoded.
        if waiting.contains(&number) {
            sounds.entry(number).or_insert(sound);
        }
    }

    /// The next payload that is to be decoded now, in its place: the answers are [`Elsewhere::decoded`].
    pub fn poll_encoded(&mut self) -> Option<Vec<u8>> {
        let played = self.position();
        let Elsewhere { sounds, asked, last, .. } = self.decoder();
        if asked.len() >= MAX_DECODING {
            return None;
        }
        let is_encoded = |packet: &&Packet| {
            !packet.flags.idle && matches!(sounds.get(&packet.sequence), Some(Sound::Encoded(_)))
        };
        let next = self.waiting().find(is_encoded)?;
        let goes_on = last.is_none_or(|last| next.sequence.wrapping_sub(last).cast_signed() <= 1);
        let is_due = played.is_none_or(|played| next.capture.frames() < played.frames() + AHEAD);
        let number = (goes_on || is_due).then_some(next.sequence)?;
        let decoder = self.decoder_mut();
        decoder.last = Some(number);
        decoder.asked.push_back(Some(number));
        match decoder.sounds.insert(number, Sound::Asked) {
            Some(Sound::Encoded(payload)) => Some(payload),
            _ => None,
        }
    }
}

impl Decoder for Elsewhere {
    fn decode(&mut self, payload: &[u8], samples: &mut Vec<f32>) -> Result<(), Error> {
        let sound =
            payload.try_into().ok().and_then(|number| self.sounds.remove(&u32::from_be_bytes(number)));
        match sound {
            Some(Sound::Decoded(decoded)) if !decoded.is_empty() => {
                self.pcm.remember(&decoded);
                samples.extend_from_slice(&decoded);
                Ok(())
            }
            _ => Err(Error::Payload { expected: "sound that was decoded in time", length: payload.len() }),
        }
    }

    fn conceal(&mut self, frames: usize, samples: &mut Vec<f32>) {
        self.pcm.conceal(frames, samples);
    }

    fn restart(&mut self) {
        self.pcm.restart();
    }
}

/// Payloads that the decoder has at a time; it is asked for no more before it has answered.
pub(crate) const MAX_DECODING: usize = 32;

/// Samples of a frame at most.
const LONGEST: usize = FrameSize::Ms20.frames() * CHANNELS;

/// A packet that is played so soon is decoded although one before it is missing: 10 ms to play, 10 to decode. That one
/// was due before: frames are no shorter than 10 ms.
const AHEAD: i64 = 20 * MS;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::packet::Flags;
    use crate::sample::Position;

    /// A packet of 10 ms, whose payload is its number.
    fn packet(number: u32) -> Packet {
        Packet {
            sequence: number,
            capture: Position(u64::from(number) * 480),
            flags: Flags { start: number == 0, ..Flags::default() },
            payload: vec![number as u8],
            ..Packet::default()
        }
    }

    fn at(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    fn polled(player: &mut Player<Elsewhere>) -> Vec<u8> {
        std::iter::from_fn(|| player.poll_encoded()).map(|payload| payload[0]).collect()
    }

    /// Plays 10 ms, and gives the first sample.
    fn play(player: &mut Player<Elsewhere>, now: Time) -> f32 {
        let mut out = [0.0; 480 * CHANNELS];
        player.play(now, &mut out, Duration::ZERO);
        out[0]
    }

    #[test]
    fn sound_that_is_decoded_in_time_is_played_as_it_is() {
        let mut player = Player::new(Elsewhere::default());
        let mut heard = Vec::new();
        for number in 0..40 {
            let now = at(u64::from(number) * 10);
            player.receive_encoded(now, packet(number));
            player.receive_encoded(now, Packet { payload: vec![99], ..packet(number) });
            assert_eq!(polled(&mut player), [number as u8], "the first copy, once");
            heard.push(play(&mut player, now));
            player.decoder_mut().decoded(&[number as f32 / 64.0; 480 * CHANNELS]);
        }
        let loud: Vec<f32> = heard.into_iter().skip_while(|sample| *sample == 0.0).collect();
        assert_eq!(loud[..], (1..).map(|number| number as f32 / 64.0).take(loud.len()).collect::<Vec<_>>());
        assert!(loud.len() >= 30 && player.figures().concealed == Duration::ZERO);
        assert!(player.decoder_mut().sounds.len() <= 9);
    }

    #[test]
    fn what_follows_a_gap_waits_until_it_must_be_decoded() {
        let mut player = Player::new(Elsewhere::default());
        let mut given = Vec::new();
        for number in 0..40 {
            let now = at(u64::from(number) * 10);
            if number != 20 {
                player.receive_encoded(now, packet(number));
            }
            let polled = polled(&mut player);
            polled.iter().for_each(|_| player.decoder_mut().decoded(&[0.5; 480 * CHANNELS]));
            given.push(polled);
            play(&mut player, now);
        }
        let when = given.iter().position(|polled| polled.contains(&21)).unwrap();
        let waited = player.figures().target.as_millis() / 10;
        assert!((24..22 + waited as usize).contains(&when), "{when} {waited}");
        assert_eq!(given.concat(), (0..40).filter(|number| *number != 20).collect::<Vec<u8>>());
        assert_eq!(player.figures().concealed, Duration::from_millis(10), "the gap alone");
    }

    #[test]
    fn what_is_not_decoded_is_made_up_and_a_decoder_that_is_stuck_is_asked_no_more() {
        let mut player = Player::new(Elsewhere::default());
        let mut asked = 0;
        for number in 0..200 {
            player.receive_encoded(at(u64::from(number) * 10), packet(number));
            asked += polled(&mut player).len();
            play(&mut player, at(u64::from(number) * 10));
            assert!(player.decoder_mut().sounds.len() <= crate::MAX_AHEAD);
        }
        assert_eq!(asked, MAX_DECODING);
        assert!(player.figures().dropped.refused >= 100);
        player.decoder_mut().failed();
        assert!(!polled(&mut player).is_empty(), "another decoder");
    }

    #[test]
    fn answers_for_a_flow_before_or_of_another_size_are_not_played() {
        let mut player = Player::new(Elsewhere::default());
        player.receive_encoded(at(0), packet(0));
        assert_eq!(polled(&mut player), [0]);
        let mut player = Player::new(player.decoder_mut().next_flow());
        player.receive_encoded(at(0), packet(0));
        player.receive_encoded(at(0), packet(1));
        player.receive_encoded(at(0), packet(2));
        assert_eq!(polled(&mut player), [0, 1, 2]);
        let decoder = player.decoder_mut();
        decoder.decoded(&[0.25; 480 * CHANNELS]);
        decoder.decoded(&[0.5; 480 * CHANNELS + 1]);
        decoder.decoded(&[0.5; LONGEST + 2]);
        decoder.decoded(&[2.0, f32::NAN]);
        decoder.decoded(&[0.5; 2]);
        let mut samples = Vec::new();
        assert!([0u32, 1].iter().all(|number| decoder.decode(&number.to_be_bytes(), &mut samples).is_err()));
        decoder.decode(&2u32.to_be_bytes(), &mut samples).unwrap();
        assert_eq!(samples, [1.0, 0.0]);
    }

    #[test]
    fn plain_samples_need_no_decoder() {
        let mut player = Player::new(Elsewhere::default());
        for number in 0..30u32 {
            let payload = crate::encode_pcm(&[number as f32 / 64.0; 480 * CHANNELS]);
            player.receive_samples(at(u64::from(number) * 10), Packet { payload, ..packet(number) });
            assert_eq!(player.poll_encoded(), None);
            play(&mut player, at(u64::from(number) * 10));
        }
        assert_eq!(player.figures().concealed, Duration::ZERO);
        assert!(player.position().is_some());
    }
}
