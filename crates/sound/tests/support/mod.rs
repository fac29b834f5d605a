//! What the tests of playback share: noise, packets of it, and waiting.

use std::time::{Duration, Instant};

use wayferry_audio::{CHANNELS, Flags, Packet, Position, encode_pcm, from_i16};

/// Frames of a packet.
pub(crate) const FRAMES: usize = 960;

/// Bytes of a second of 16-bit samples.
pub(crate) const SECOND: usize = 48_000 * CHANNELS * 2;

/// 16-bit noise that resembles itself nowhere, and is never silent.
pub(crate) fn noise(seed: u32, packets: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let sample = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        from_i16(((state >> 17) as i16 - 16_384) | 1)
    });
    encode_pcm(&sample.take(packets * FRAMES * CHANNELS).collect::<Vec<f32>>())
}

/// Packets of a sender that has captured so many before.
#[derive(Debug, Default)]
pub(crate) struct Sender {
    pub(crate) sequence: u32,
    pub(crate) captured: u64,
}

impl Sender {
    /// The packets of one sound, a second of silence, and the announcement that silence is not sent.
    pub(crate) fn sound(&mut self, samples: &[u8]) -> Vec<Packet> {
        let mut payloads: Vec<Vec<u8>> = samples.chunks(FRAMES * CHANNELS * 2).map(Vec::from).collect();
        payloads.extend(std::iter::repeat_n(vec![0; FRAMES * CHANNELS * 2], 50));
        let mut packets: Vec<Packet> = payloads.into_iter().map(|payload| self.packet(payload)).collect();
        packets[0].flags.start = true;
        let mut idle = self.packet(Vec::new());
        idle.flags.idle = true;
        packets.push(idle);
        packets
    }

    pub(crate) fn packet(&mut self, payload: Vec<u8>) -> Packet {
        let packet = Packet {
            sequence: self.sequence,
            capture: Position(self.captured),
            flags: Flags::default(),
            payload,
            ..Packet::default()
        };
        self.sequence += 1;
        self.captured += FRAMES as u64;
        packet
    }
}

/// Looks until it is so.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Nothing on the busiest machine takes longer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
