use super::*;
use crate::packet::Flags;
use crate::pcm::{self, Pcm};
use crate::sample::{Position, from_i16};

/// The `index`th packet of 20 ms: a tone of 200 Hz with a little of another.
fn packet(index: u32) -> Packet {
    Packet {
        sequence: index,
        capture: Position(48_000 + u64::from(index) * 960),
        flags: Flags { start: index == 0, ..Flags::default() },
        payload: pcm::encode(&sound(index)),
        ..Packet::default()
    }
}

fn sound(index: u32) -> Vec<f32> {
    let sample = |at: u32| {
        // Both tones have whole periods in 100 ms.
        let phase = std::f32::consts::TAU * (index % 5 * 960 + at) as f32 / 48_000.0;
        from_i16((9000.0 * (phase * 200.0).sin() + 3000.0 * (phase * 1310.0).sin()) as i16)
    };
    (0..960).flat_map(|at| [sample(at), -sample(at)]).collect()
}

/// Plays 10 ms at each of these times, in ms; a packet arrives 5 ms after its index times 20 ms, if `arrives` says so.
fn play(player: &mut Player<Pcm>, times: std::ops::Range<u64>, arrives: impl Fn(u32) -> bool) -> Vec<f32> {
    let mut played = Vec::new();
    for now in times.step_by(5) {
        let index = (now / 20) as u32;
        if now % 20 == 5 && arrives(index) {
            player.receive(Time::from_millis(now), packet(index));
        }
        if now % 10 == 0 {
            let mut out = [7.0; 480 * CHANNELS];
            player.play(Time::from_millis(now), &mut out, Duration::from_millis(10));
            played.extend(out);
        }
    }
    played
}

fn steepest(samples: &[f32]) -> f32 {
    let pairs = samples.windows(CHANNELS + 1);
    pairs.map(|window| (window[CHANNELS] - window[0]).abs()).fold(0.0, f32::max)
}

#[test]
fn near_the_target_all_is_played_bit_by_bit() {
    let mut player = Player::new(Pcm::new());
    let played = play(&mut player, 0..4000, |_| true);
    let begin = played.iter().position(|sample| *sample != 0.0).unwrap() / CHANNELS - 1;
    let played = &played[begin * CHANNELS..];
    let original: Vec<f32> = (0..200).flat_map(sound).collect();
    assert!(played.len() > 180 * 960 * CHANNELS);
    assert!(played == &original[..played.len()], "changed");
    let figures = player.figures();
    assert_eq!((figures.concealed, figures.tempo, figures.cuts), (Duration::ZERO, 1.0, 0));
    assert_eq!(figures.dropped, Dropped::default());
    assert!(begin <= (80 + 15) * 48, "begins {begin} frames late");
}

#[test]
fn a_missing_packet_makes_no_click_and_no_shift() {
    let mut player = Player::new(Pcm::new());
    let played = play(&mut player, 0..2000, |index| index != 40);
    let begin = played.iter().position(|sample| *sample != 0.0).unwrap() / CHANNELS - 1;
    let played = &played[begin * CHANNELS..];
    let original: Vec<f32> = (0..100).flat_map(sound).collect();
    let (gap, back) = (40 * 960 * CHANNELS, (41 * 960 + FADE) * CHANNELS);
    assert!(played[..gap] == original[..gap]);
    assert!(played[back..] == original[back..played.len()], "shifted");
    assert!(played[gap..back] != original[gap..back]);
    assert_eq!(player.figures().concealed, Duration::from_millis(20));
    assert!(steepest(played) <= 1.2 * steepest(&original), "{} {}", steepest(played), steepest(&original));
}

#[test]
fn an_outage_fades_and_ends_with_what_is_new() {
    let mut player = Player::new(Pcm::new());
    let mut played = play(&mut player, 0..2000, |_| true);
    // For 3 s nothing comes; then all of it at once, and on it goes.
    played.extend(play(&mut player, 2000..5000, |_| false));
    for index in 100..250 {
        player.receive(Time::from_millis(5000), packet(index));
    }
    let after = play(&mut player, 5000..7000, |_| true);
    let begin = after.iter().position(|sample| *sample != 0.0).unwrap() / CHANNELS;
    assert!(begin <= (80 + 25) * 48, "{begin} frames without sound after contact");
    let figures = player.figures();
    assert!(figures.latency <= Duration::from_millis(150), "{:?}", figures.latency);
    played.extend(&after);
    let own = steepest(&sound(0));
    assert!(steepest(&played) <= 1.2 * own, "{} {own}", steepest(&played));
    let dry = figures.silent.as_millis();
    assert!((2700..3200).contains(&dry), "{dry} ms");
}

#[test]
fn a_player_that_slept_does_not_play_the_past() {
    let mut player = Player::new(Pcm::new());
    let mut played = play(&mut player, 0..2000, |_| true);
    // The machine sleeps for an hour, and what had come before it waits in the player.
    let hour = 3_600_000;
    player.receive(Time::from_millis(2000), packet(100));
    let late = Time::from_millis(hour);
    let mut out = [0.0; 480 * CHANNELS];
    player.play(late, &mut out, Duration::ZERO);
    played.extend(out);
    for index in 101..110 {
        player.receive(late, packet(index));
    }
    let first = (hour / 20) as u32;
    let mut after = Vec::new();
    for step in 0..100u64 {
        let now = Time::from_millis(hour + step * 10);
        if step % 2 == 0 {
            player.receive(now, packet(first + (step / 2) as u32));
        }
        player.play(now, &mut out, Duration::ZERO);
        after.extend(out);
    }
    // Three packets until the new numbers are believed, and the target.
    let begin = after[480..].iter().position(|sample| *sample != 0.0).unwrap() / CHANNELS;
    assert!((60 * 48..200 * 48).contains(&begin), "{begin}");
    // Four that waited for their time, the one that came before the sleep, and nine that came behind it.
    assert_eq!(player.figures().dropped.past, 4 + 1 + 9, "{:?}", player.figures());
    // What is heard is of this hour: the level says so.
    assert!(player.figures().latency <= Duration::from_millis(250), "{:?}", player.figures().latency);
    played.extend(after);
    assert!(steepest(&played) <= 1.2 * steepest(&sound(0)));
}

#[test]
fn silence_that_was_told_is_not_concealed() {
    let mut player = Player::new(Pcm::new());
    play(&mut player, 0..1000, |_| true);
    let idle = Packet { payload: vec![], flags: Flags { idle: true, ..Flags::default() }, ..packet(50) };
    player.receive(Time::from_millis(1005), idle);
    let silence = play(&mut player, 1000..61_000, |_| false);
    assert!(silence[48_000..].iter().all(|sample| *sample == 0.0));
    assert!(player.is_idle());
    let mut start = packet(51);
    start.capture = Position(48_000 + 61_000 * 48);
    start.flags.start = true;
    player.receive(Time::from_millis(61_005), start);
    let again = play(&mut player, 61_000..61_200, |_| false);
    assert!(again.iter().any(|sample| *sample != 0.0));
    let begin = 1000 * 48;
    assert!(player.figures().concealed < Duration::from_millis(200), "{:?} {begin}", player.figures());
}

#[test]
fn nothing_that_comes_stops_it() {
    use proptest::prelude::*;
    let operations = prop::collection::vec((0u32..200, 0u64..300, 0u8..16, 0usize..500, 0u64..2000), 0..200);
    proptest!(ProptestConfig::with_cases(64), |(operations in operations)| {
        let mut player = Player::new(Pcm::new());
        let mut now = 0;
        for (sequence, capture, flags, bytes, wait) in operations {
            let jump = if wait > 1990 { 1 << 50 } else { 0 };
            let packet = Packet {
                sequence,
                capture: Position(capture * 960 + jump),
                flags: Flags { start: flags == 1, idle: flags == 2, discontinuity: flags == 3 },
                payload: vec![flags; bytes * 4 + usize::from(flags == 4)],
                ..Packet::default()
            };
            player.receive(Time::from_millis(now), packet);
            now += wait / 50;
            let mut out = [f32::NAN; 480 * CHANNELS];
            player.play(Time::from_millis(now), &mut out[..bytes.min(480) * CHANNELS], Duration::from_millis(wait));
            prop_assert!(out[..bytes.min(480) * CHANNELS].iter().all(|sample| sample.abs() <= 1.5));
            prop_assert!(player.buffer.len() <= crate::MAX_AHEAD && player.tape.frames() <= 4 * 960);
        }
    });
}

#[test]
fn a_device_that_pulls_in_bursts_changes_nothing() {
    let mut player = Player::new(Pcm::new());
    let mut played = Vec::new();
    for now in (0..8000u64).step_by(5) {
        if now % 20 == 5 {
            player.receive(Time::from_millis(now), packet((now / 20) as u32));
        }
        // Four buffers every 40 ms: the queue is empty at the first, and 30 ms long at the last.
        for buffer in (0..4).filter(|_| now % 40 == 0) {
            let mut out = [0.0; 480 * CHANNELS];
            player.play(Time::from_millis(now), &mut out, Duration::from_millis(buffer * 10));
            played.extend(out);
        }
    }
    let begin = played.iter().position(|sample| *sample != 0.0).unwrap() / CHANNELS - 1;
    let original: Vec<f32> = (0..400).flat_map(sound).collect();
    // While it learns what is usual, and comes down from 80 ms, it may have spliced.
    let figures = player.figures();
    assert_eq!((figures.tempo, figures.cuts, figures.concealed), (1.0, 0, Duration::ZERO), "{figures:?}");
    let last = &played[played.len() - 4800 * CHANNELS..];
    let found = original
        .windows(last.len())
        .step_by(CHANNELS)
        .any(|window| window[..64] == last[..64] && window == last);
    assert!(found && begin <= 130 * 48, "{begin}");
}

/// A second each: in how many of its pulls of 2.5 ms something was heard. From the fourth on, packets come 5 ms later:
/// not when all of the one before has been played.
fn heard(player: &mut Player<Pcm>, seconds: u32, arriving: impl Fn(u32) -> Vec<Packet>) -> Vec<usize> {
    let mut heard = vec![0; seconds as usize];
    for pull in 0..seconds as usize * 400 {
        let now = Time::from_micros(pull as u64 * 2500);
        if pull % 8 == if pull < 3 * 400 { 3 } else { 5 } {
            arriving(pull as u32 / 8).into_iter().for_each(|packet| player.receive(now, packet));
        }
        let mut out = [0.0; 120 * CHANNELS];
        player.play(now, &mut out, Duration::ZERO);
        heard[pull / 400] += usize::from(out.iter().any(|sample| *sample != 0.0));
        assert!(player.tape.frames() <= 4 * 960, "{} frames at {now:?}", player.tape.frames());
    }
    heard
}

#[test]
fn regression_a_payload_of_2_ms_does_not_end_all_sound() {
    let mut player = Player::new(Pcm::new());
    let heard = heard(&mut player, 4, |index| {
        let mut packet = packet(index);
        packet.payload.truncate(if index == 50 { 100 * 4 } else { usize::MAX });
        vec![packet]
    });
    assert!(heard[2..] == [400; 2], "{heard:?} {:?}", player.figures());
}

#[test]
fn regression_sound_with_copies_is_back_after_an_outage() {
    for copies in 1..=2 {
        let mut player = Player::new(Pcm::new());
        let heard = heard(&mut player, 8, |index| {
            let there = !(100..250).contains(&index);
            let numbers = (0..=copies.min(index)).map(|copy| packet(index - copy));
            if there { numbers.collect() } else { Vec::new() }
        });
        assert_eq!((heard[1], heard[3], heard[7]), (400, 0, 400), "{heard:?} {:?}", player.figures());
    }
}

#[test]
fn regression_another_clock_is_heard_at_once_also_after_quiet() {
    for (old, new) in [(1 << 33, 0), (0, 1 << 33)] {
        let mut player = Player::new(Pcm::new());
        let heard = heard(&mut player, 6, |index| {
            let mut packet = packet(index);
            packet.capture.0 += if index < 150 { old } else { new };
            packet.flags.discontinuity = index == 150;
            if (100..150).contains(&index) {
                packet.payload.fill(0);
            }
            vec![packet]
        });
        assert!(heard[3] >= 300 && heard[4..] == [400; 2], "{heard:?} {:?}", player.figures());
    }
}
