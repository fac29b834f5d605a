//! Sound packets from a peer.
//!
//! Input: 0 and a datagram; or 1 and what a player meets: a byte of time (ms, doubled from 128 on each), a byte of
//! length, a packet.

use std::time::Duration;

use wayferry_audio::{CHANNELS, Packets, Pcm, Player, datagram};
use wayferry_proto::Time;

use crate::Input;

/// What was read is written as it was meant; a player takes any packets at any time, and plays no more than is loud.
///
/// # Panics
/// When that is not so.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    if input.u8() % 2 == 0 { packets(input.0) } else { player(&mut input) }
}

fn packets(bytes: &[u8]) {
    let read: Vec<_> = Packets::new(bytes).collect();
    let sound: Vec<_> = read.iter().flatten().cloned().collect();
    let again: Vec<_> =
        Packets::new(&datagram(&sound)).map(|packet| packet.expect("it was read before")).collect();
    assert_eq!(again, sound, "read differently");
    assert!(read.iter().filter(|packet| packet.is_err()).count() <= 1, "goes on behind an error");
}

fn player(input: &mut Input<'_>) {
    let mut player = Player::new(Pcm::new());
    let mut now = Time::ZERO;
    for _ in 0..MOST_PACKETS {
        if input.is_empty() {
            break;
        }
        let wait = input.u8();
        // Up to 500 years in one step.
        now += Duration::from_millis(u64::from(wait) << (wait.saturating_sub(128) / 4));
        let length = input.u8().into();
        let _ = player.receive_bytes(now, input.take(length));
        let mut out = [f32::NAN; 480 * CHANNELS];
        player.play(now, &mut out, Duration::from_millis(wait.into()));
        assert!(out.iter().all(|sample| sample.abs() <= 2.0), "louder than anything");
        let figures = player.figures();
        assert!(figures.target <= wayferry_audio::TARGET_MAX, "waits too long");
        assert!((0.97..=1.03).contains(&figures.tempo), "too fast or too slow");
    }
}

/// An input has no more packets than this, for the sake of time.
const MOST_PACKETS: usize = 256;
