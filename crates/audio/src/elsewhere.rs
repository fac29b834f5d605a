//! Sound that something else decodes, later than it is asked to: a browser.
//!
//! A player is handed packets that carry a number in place of their sound. The sound waits here until it was decoded;
//! what was not when its turn comes is concealed, as what has not come is. The decoder gets the sound in its order, as
//! soon as the packets before it were given out, or else when it must: one that waits has then been missed already.
//!
//! Invariants: the decoder is asked for at most [`MAX_DECODING`] payloads at once, each has a number that no later one
//! has, in another flow neither, and what it answers belongs to the one that it names; sound is kept for the packets
//! that wait in the player alone.

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
    /// What the decoder was asked, the first one first.
    asked: VecDeque<Asked>,
    /// The number of the last question.
    count: u32,
    /// The last packet whose sound was asked for.
    last: Option<u32>,
    /// Makes up what is missing.
    pcm: Pcm,
}

/// A question to the decoder.
#[derive(Clone, Copy, Debug)]
struct Asked {
    number: u32,
    /// Whose sound it is about; `None` if that is not wanted any more.
    packet: Option<u32>,
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
        let asked = self.asked.iter().map(|asked| Asked { packet: None, ..*asked }).collect();
        Self { asked, count: self.count, ..Self::default() }
    }

    /// The decoder has given the samples of the payload with this number, and will give none of those before it. They
    /// are not played if they are more than 20 ms, or no whole frames; what it was not asked is passed over.
    pub fn decoded(&mut self, number: u32, samples: &[f32]) {
        let Some(place) = self.asked.iter().position(|asked| asked.number == number) else { return };
        let is_frame =
            !samples.is_empty() && samples.len() <= LONGEST && samples.len().is_multiple_of(CHANNELS);
        let asked = self.asked.drain(..=place).next_back().filter(|_| is_frame);
        let packet = asked.and_then(|asked| asked.packet);
        if let Some(sound) = packet.and_then(|packet| self.sounds.get_mut(&packet)) {
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

    /// The next payload that is to be decoded now, and its number, from 1: the answer is [`Elsewhere::decoded`].
    pub fn poll_encoded(&mut self) -> Option<(u32, Vec<u8>)> {
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
        let packet = (goes_on || is_due).then_some(next.sequence)?;
        let decoder = self.decoder_mut();
        decoder.last = Some(packet);
        decoder.count = decoder.count.checked_add(1).unwrap_or(1);
        let number = decoder.count;
        decoder.asked.push_back(Asked { number, packet: Some(packet) });
        match decoder.sounds.insert(packet, Sound::Asked) {
            Some(Sound::Encoded(payload)) => Some((number, payload)),
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
        std::iter::from_fn(|| player.poll_encoded()).map(|(_, payload)| payload[0]).collect()
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
            player.decoder_mut().decoded(number + 1, &[number as f32 / 64.0; 480 * CHANNELS]);
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
            let polled: Vec<_> = std::iter::from_fn(|| player.poll_encoded()).collect();
            let decoder = player.decoder_mut();
            polled.iter().for_each(|(number, _)| decoder.decoded(*number, &[0.5; 480 * CHANNELS]));
            given.push(polled.into_iter().map(|(_, payload)| payload[0]).collect::<Vec<_>>());
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
        decoder.decoded(1, &[0.25; 480 * CHANNELS]);
        decoder.decoded(2, &[0.5; 480 * CHANNELS + 1]);
        decoder.decoded(3, &[0.5; LONGEST + 2]);
        decoder.decoded(4, &[2.0, f32::NAN]);
        decoder.decoded(5, &[0.5; 2]);
        let mut samples = Vec::new();
        assert!([0u32, 1].iter().all(|number| decoder.decode(&number.to_be_bytes(), &mut samples).is_err()));
        decoder.decode(&2u32.to_be_bytes(), &mut samples).unwrap();
        assert_eq!(samples, [1.0, 0.0]);
    }

    #[test]
    fn regression_a_payload_for_which_nothing_was_given_shifted_all_sound_after_it() {
        let mut player = Player::new(Elsewhere::default());
        (0..4).for_each(|number| player.receive_encoded(at(0), packet(number)));
        let numbers: Vec<_> =
            std::iter::from_fn(|| player.poll_encoded()).map(|(number, _)| number).collect();
        assert_eq!(numbers, [1, 2, 3, 4]);
        let decoder = player.decoder_mut();
        decoder.decoded(1, &[0.25; 2]);
        decoder.decoded(3, &[0.5; 2]);
        // Late, twice, and never asked.
        [2, 3, 1, 0, 5, u32::MAX].iter().for_each(|number| decoder.decoded(*number, &[0.75; 2]));
        decoder.decoded(4, &[1.0; 2]);
        let heard = [0u32, 1, 2, 3].map(|packet| {
            let mut samples = Vec::new();
            decoder.decode(&packet.to_be_bytes(), &mut samples).is_ok().then(|| samples[0])
        });
        assert_eq!(heard, [Some(0.25), None, Some(0.5), Some(1.0)]);
        assert_eq!(decoder.asked.len(), 0);
        decoder.count = u32::MAX;
        player.receive_encoded(at(0), packet(4));
        assert_eq!(player.poll_encoded(), Some((1, vec![4])), "0 is no number");
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
