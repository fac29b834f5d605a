//! Sound by a worklet that is late at times, in virtual time.

use std::collections::VecDeque;
use std::f32::consts::TAU;
use std::time::Duration;

use proptest::prelude::*;
use wayferry_audio::{CHANNELS, Codec, Flags, Packet, Position, datagram, encode_pcm};
use wayferry_page_wasm::sound::{Ask, MAX_LEAD, Sound};
use wayferry_proto::Time;

/// Frames that a worklet plays at once.
const QUANTUM: usize = 128;

/// What plays: web/src/loudspeaker.ts does the same.
#[derive(Default)]
struct Worklet {
    held: VecDeque<f32>,
    spare: u32,
    missed: u32,
    played: usize,
    since: usize,
    waits: bool,
    heard: Vec<f32>,
    most: usize,
}

impl Worklet {
    fn play(&mut self) -> Option<Ask> {
        for _ in 0..QUANTUM {
            let left = self.held.pop_front();
            self.held.pop_front();
            self.missed += u32::from(left.is_none());
            self.heard.push(left.unwrap_or_default());
        }
        self.played += QUANTUM;
        let held = (self.held.len() / CHANNELS) as u32;
        self.spare = self.spare.min(held);
        if self.waits || self.played - self.since < 384 {
            return None;
        }
        (self.waits, self.since) = (true, self.played);
        let (spare, missed) = (std::mem::replace(&mut self.spare, held), std::mem::take(&mut self.missed));
        Some(Ask { held, spare, missed, latency: Duration::from_millis(20) })
    }

    fn take(&mut self, answer: &[f32]) {
        self.waits = false;
        self.held.extend(answer);
        self.most = self.most.max(self.held.len() / CHANNELS);
    }
}

/// A tone of 440 Hz, in packets of 10 ms.
fn packet(codec: Codec, number: u32) -> Packet {
    let payload = match codec {
        Codec::Opus => number.to_le_bytes().to_vec(),
        Codec::Pcm => encode_pcm(&tone(number)),
    };
    let capture = Position(u64::from(number) * 480);
    Packet { track: codec.track(), sequence: number, capture, payload, ..Packet::default() }
}

fn tone(number: u32) -> Vec<f32> {
    let sample = |frame: u32| 0.5 * (TAU * 440.0 * (number * 480 + frame) as f32 / 48_000.0).sin();
    (0..480).flat_map(|frame| [sample(frame); CHANNELS]).collect()
}

/// Plays for so many milliseconds; the thread has no turn while it is `busy`.
fn run(
    codec: Codec,
    millis: u64,
    busy: impl Fn(u64) -> bool,
    sends: impl Fn(u64) -> bool,
) -> (Sound, Worklet) {
    let (mut sound, mut worklet) = (Sound::default(), Worklet::default());
    sound.listen(Some(codec));
    let (mut ask, mut waiting, mut decoding) = (None, Vec::new(), VecDeque::new());
    for milli in 0..millis {
        let now = Time::from_millis(milli);
        if milli % 10 == 0 && sends(milli) {
            waiting.push(packet(codec, (milli / 10) as u32));
        }
        while worklet.played * 1000 / 48_000 < milli as usize {
            ask = worklet.play().or(ask);
        }
        if busy(milli) {
            continue;
        }
        waiting.drain(..).for_each(|packet| sound.on_packet(now, &packet.to_vec()));
        // A browser answers in a later turn.
        for (number, payload) in decoding.drain(..) {
            let payload: Vec<u8> = payload;
            let packet = u32::from_le_bytes(payload.try_into().expect("a number"));
            sound.decoder().decoded(number, &tone(packet));
        }
        if let Some(ask) = ask.take() {
            sound.ask(now, ask);
        }
        decoding.extend(std::iter::from_fn(|| sound.poll_encoded()));
        if let Some(answer) = sound.answer(now) {
            worklet.take(&answer);
        }
    }
    (sound, worklet)
}

#[test]
fn a_tone_is_heard_whole_in_either_codec_and_the_worklet_holds_30_ms() {
    for codec in [Codec::Opus, Codec::Pcm] {
        let (sound, worklet) = run(codec, 20_000, |_| false, |_| true);
        let figures = sound.player().figures();
        assert_eq!((figures.concealed, figures.cuts, worklet.missed), (Duration::ZERO, 0, 0), "{codec:?}");
        assert!(worklet.most <= 4 * 480, "{}", worklet.most);
        let last = &worklet.heard[18 * 48_000..19 * 48_000];
        let rises = last.windows(2).filter(|pair| pair[0] < 0.0 && pair[1] >= 0.0).count();
        let loudest = last.iter().fold(0.0f32, |most, sample| most.max(sample.abs()));
        assert!((439..=441).contains(&rises) && (0.49..0.51).contains(&loudest), "{rises} {loudest}");
        // 40 ms against jitter, 30 in the worklet, and its own 20.
        assert!(figures.latency <= Duration::from_millis(115), "{:?}", figures.latency);
    }
}

#[test]
fn a_thread_that_is_busy_at_times_keeps_more_in_store_and_less_when_it_is_not() {
    // 80 ms in every second, for a while.
    let busy = |milli| milli < 60_000 && milli % 1000 >= 920;
    let (_, worklet) = run(Codec::Opus, 60_000, busy, |_| true);
    let silent = |heard: &[f32]| {
        let runs = heard.split(|sample| *sample != 0.0);
        runs.map(<[f32]>::len).max().unwrap_or_default()
    };
    assert!(silent(&worklet.heard[12_000..60_000]) > 480, "at first it has too little");
    assert!(silent(&worklet.heard[4 * 48_000..]) < 2, "{}", silent(&worklet.heard[4 * 48_000..]));
    assert!(worklet.most <= MAX_LEAD * 480);
    let (_, worklet) = run(Codec::Opus, 400_000, busy, |_| true);
    assert!(worklet.held.len() / CHANNELS <= 4 * 480, "{}", worklet.held.len());
}

#[test]
fn while_it_is_silent_nothing_is_answered_and_what_is_said_then_is_played() {
    let sends = |milli| (5_000..6_000).contains(&milli) || milli >= 9_000;
    let (sound, worklet) = run(Codec::Pcm, 12_000, |_| false, sends);
    let first = worklet.heard.iter().position(|sample| *sample != 0.0).expect("sound");
    assert!((5_040 * 48..5_200 * 48).contains(&first), "{first}");
    assert!(worklet.most <= 5 * 480, "a pause is nothing to be stored against: {}", worklet.most);
    assert!(sound.player().position().is_some());
}

#[test]
fn who_does_not_listen_is_answered_nothing() {
    let mut sound = Sound::default();
    let ask = Ask { held: 0, spare: 0, missed: 0, latency: Duration::ZERO };
    sound.on_packet(Time::ZERO, &packet(Codec::Pcm, 0).to_vec());
    sound.ask(Time::ZERO, ask);
    assert_eq!((sound.answer(Time::ZERO), sound.poll_encoded()), (None, None));
    sound.listen(Some(Codec::Pcm));
    sound.on_packet(Time::ZERO, &packet(Codec::Pcm, 0).to_vec());
    sound.ask(Time::ZERO, ask);
    assert_eq!(sound.answer(Time::ZERO).map(|answer| answer.len()), Some(3 * 480 * CHANNELS));
    assert_eq!(sound.answer(Time::ZERO), None, "once");
    sound.ask(Time::ZERO, ask);
    sound.listen(None);
    assert_eq!(sound.answer(Time::ZERO), None);
    sound.ask(Time::ZERO, Ask { held: u32::MAX, spare: u32::MAX, missed: u32::MAX, latency: Duration::MAX });
}

proptest! {
    #[test]
    fn any_packets_are_borne_and_what_is_played_is_bounded(
        steps in prop::collection::vec((0u8..8, 1u8..4, 0u32..400, 0u64..500, 0usize..1200, 0u8..8), 1..300),
    ) {
        let mut sound = Sound::default();
        for (milli, (which, track, sequence, capture, length, bits)) in (0..).map(|step| step * 10).zip(steps) {
            let now = Time::from_millis(milli);
            let flags = Flags { start: bits & 1 != 0, idle: bits & 2 != 0, discontinuity: bits & 4 != 0 };
            let payload = if flags.idle { vec![] } else { vec![bits; length + 1] };
            let packet = Packet { track, sequence, capture: Position(capture * 480), flags, payload };
            match which {
                0 => sound.listen(Codec::of_track(track)),
                1 => sound.on_datagram(now, &datagram(&[packet.clone(), packet])),
                2 => sound.decoder().decoded(sequence % 40, &vec![f32::from(bits) - 4.0; length]),
                3 => sound.decoder().failed(),
                4 => sound.ask(now, Ask { held: sequence, spare: sequence, missed: length as u32, latency: now.since_start() }),
                _ => sound.on_packet(now, &packet.to_vec()),
            }
            let asked = std::iter::from_fn(|| sound.poll_encoded()).count();
            prop_assert!(asked <= 32);
            let answer = sound.answer(now).unwrap_or_default();
            prop_assert!(answer.len() <= MAX_LEAD * 480 * CHANNELS && answer.iter().all(|sample| sample.abs() <= 1.0));
        }
    }
}
