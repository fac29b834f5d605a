//! A packet byte by byte, and what a player makes of packets that come late, twice or never, sample by sample.

use std::collections::BTreeMap;
use std::time::Duration;

use wayferry_audio::{CHANNELS, Dropped, Flags, Packet, Pcm, Player, Position, encode_pcm, from_i16, to_i16};
use wayferry_proto::Time;

/// Names, and what is checked.
pub(crate) const CHECKS: &[(&str, fn())] =
    &[("a packet of sound is the documented bytes", packet), ("a player plays the same samples", player)];

fn packet() {
    let flags = Flags { start: true, ..Flags::default() };
    let packet = Packet { track: 2, sequence: 7, capture: Position(960), flags, payload: vec![1, 2, 3, 4] };
    let bytes = packet.to_vec();
    assert_eq!(bytes, [0x21, 7, 0, 0, 0, 0x43, 0xc0, 1, 2, 3, 4]);
    assert_eq!(Packet::parse(&bytes), Ok(packet));
}

/// Four seconds of a saw tooth in packets of 20 ms, of which some are late, some come twice and one in sixteen never.
fn player() {
    let mut coming = BTreeMap::new();
    let mut dice = 1_u32;
    for sequence in 0..200_u32 {
        dice = dice.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let flags = Flags { start: sequence == 0, ..Flags::default() };
        let capture = Position(u64::from(sequence) * FRAMES as u64);
        let packet = Packet { track: 0, sequence, capture, flags, payload: saw_tooth(sequence) };
        let delay = 20 + (dice >> 16) % 64 + if dice >> 28 == 1 { 120 } else { 0 };
        let at = sequence * 20 + delay;
        if dice >> 28 != 2 {
            coming.insert((at, sequence), packet.clone());
        }
        if dice >> 28 == 3 {
            coming.insert((at + 5, sequence), packet);
        }
    }
    let mut player = Player::new(Pcm::new());
    let mut out = [0.0; 10 * 48 * CHANNELS];
    let (mut hash, mut peak) = (0xcbf2_9ce4_8422_2325_u64, 0);
    for now in (0..4200).step_by(10) {
        while let Some(next) = coming.first_entry().filter(|next| next.key().0 <= now) {
            let (at, _) = *next.key();
            player.receive_bytes(millis(at), &next.remove().to_vec()).expect("a packet");
        }
        player.play(millis(now), &mut out, Duration::from_millis(10));
        for sample in out.map(to_i16) {
            peak = peak.max(sample.unsigned_abs());
            hash = (hash ^ u64::from(sample.cast_unsigned())).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    let figures = player.figures();
    assert_eq!(figures.played, Duration::from_millis(4200));
    let dropped = Dropped { late: 2, duplicate: 11, past: 1, ..Dropped::default() };
    assert_eq!(figures.dropped, dropped);
    assert_eq!((figures.target, figures.concealed), (millis_of(210), millis_of(280)));
    assert_eq!((hash, peak), (0xa45e_8b18_4cd8_e89d, 10_800));
}

/// Frames of a packet.
const FRAMES: usize = 960;

fn saw_tooth(sequence: u32) -> Vec<u8> {
    let begin = sequence as usize * FRAMES;
    let sample = |at: usize| from_i16(((at % 109) as i16 - 54) * 200);
    let samples: Vec<_> = (begin..begin + FRAMES).flat_map(|at| [sample(at), sample(at + 13)]).collect();
    encode_pcm(&samples)
}

fn millis(millis: u32) -> Time {
    Time::ZERO + millis_of(millis.into())
}

fn millis_of(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
