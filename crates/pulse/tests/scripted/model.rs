//! Random sequences of what a program does with a stream, beside a model of its bytes.

use std::collections::BTreeMap;

use proptest::prelude::*;
use pulseaudio::protocol::{Command, CorkStreamParams};

use crate::script::{Desk, Program, attr};

#[derive(Clone, Debug)]
enum Step {
    /// So many frames, where the last write ended or so far from there, or from what is played; cut after so many
    /// bytes on their way.
    Write {
        frames: usize,
        seek: Option<(u32, i64)>,
        cut: usize,
    },
    Turn(usize),
    Cork(bool),
    Flush,
    Trigger,
    Prebuf,
    Drain,
}

fn step() -> impl Strategy<Value = Step> {
    let near = (0..3u32, -2000..2000i64).prop_map(|(from, frames)| ([0, 2, 3][from as usize], frames * 4));
    let write = (1..3000usize, prop::option::weighted(0.3, near), 0..2000usize);
    prop_oneof![
        6 => write.prop_map(|(frames, seek, cut)| Step::Write { frames, seek, cut }),
        6 => (1..5usize).prop_map(Step::Turn),
        1 => any::<bool>().prop_map(Step::Cork),
        1 => Just(Step::Flush),
        1 => Just(Step::Trigger),
        1 => Just(Step::Prebuf),
        1 => Just(Step::Drain),
    ]
}

/// The frames that were written, each with a number, by their places; and where is played and written.
#[derive(Default)]
struct Model {
    frames: BTreeMap<i64, u32>,
    read: i64,
    write: i64,
    next: u32,
}

/// What a stream keeps, in frames.
const LIMIT: i64 = 5000;
/// What it must have to begin.
const BEFORE: u32 = 960;

impl Model {
    /// The numbers of the frames to be written.
    fn write(&mut self, frames: usize, seek: Option<(u32, i64)>) -> Vec<u32> {
        let numbers: Vec<u32> = (0..frames as u32).map(|at| self.next + at).collect();
        self.next += frames as u32;
        if let Some((from, bytes)) = seek {
            let end = self.frames.last_key_value().map_or(self.read, |(last, _)| last + 1);
            let to = bytes / 4 + [self.write, 0, self.read, end.max(self.read)][from as usize];
            if to - self.read > LIMIT {
                return numbers;
            }
            self.write = to;
        }
        for number in &numbers {
            if self.write - self.read >= LIMIT {
                break;
            }
            if self.write >= self.read {
                self.frames.insert(self.write, *number);
            }
            self.write += 1;
        }
        numbers
    }

    /// The next frame is played: its number, 0 for silence between frames.
    fn play(&mut self) -> u32 {
        let number = self.frames.remove(&self.read).unwrap_or(0);
        self.read += 1;
        number
    }
}

/// As a frame of two samples: 30 bits, and in each sample one that makes it heard.
fn sound(number: u32) -> [u8; 4] {
    let [low, high] = [(number & 0x7fff) as u16, (number >> 15) as u16];
    let [a, b] = (low << 1 | 1).to_le_bytes();
    let [c, d] = (high << 1 | 1).to_le_bytes();
    [a, b, c, d]
}

fn number(frame: &[i16]) -> u32 {
    let [low, high] = [frame[0].cast_unsigned() >> 1, frame[1].cast_unsigned() >> 1];
    u32::from(high) << 15 | u32::from(low)
}

/// All that is heard, and what is silent between: as the model plays it. A frame is played at its place or never.
fn check(desk: &mut Desk, model: &mut Model, turns: usize) -> Result<(), TestCaseError> {
    for _ in 0..turns {
        for frame in desk.turn().chunks(2) {
            if frame == [0, 0] {
                continue;
            }
            let heard = number(frame);
            // Silence that was heard before it was played, or nothing was.
            let played = loop {
                prop_assert!(model.read < model.write, "{heard} is heard, and nothing was written");
                match model.play() {
                    0 => {}
                    played => break played,
                }
            };
            prop_assert_eq!(heard, played);
        }
    }
    Ok(())
}

fn run(steps: Vec<Step>) -> Result<(), TestCaseError> {
    let mut desk = Desk::new();
    let program = &mut desk.program();
    let channel = desk.stream(program, attr(LIMIT as u32 * 4, 4800 * 4, BEFORE * 4)).channel;
    let mut model = Model { next: 1, ..Model::default() };
    for step in steps {
        match step {
            Step::Write { frames, seek, cut } => {
                let bytes: Vec<u8> = model.write(frames, seek).into_iter().flat_map(sound).collect();
                let (from, offset) = seek.unwrap_or((0, 0));
                write(&mut desk, program, channel, (from, offset), &bytes, cut);
            }
            Step::Turn(turns) => check(&mut desk, &mut model, turns)?,
            Step::Cork(cork) => {
                desk.order(program, &Command::CorkPlaybackStream(CorkStreamParams { channel, cork }))
                    .unwrap();
            }
            Step::Flush => {
                desk.order(program, &Command::FlushPlaybackStream(channel)).unwrap();
                // Silence at the end may have been played without being heard.
                model.read = read_at(&mut desk, program, channel)?;
                model.frames.clear();
                model.write = model.read;
            }
            Step::Trigger => desk.order(program, &Command::TriggerPlaybackStream(channel)).unwrap(),
            Step::Prebuf => desk.order(program, &Command::PrebufPlaybackStream(channel)).unwrap(),
            Step::Drain => drop(desk.send(program, &Command::DrainPlaybackStream(channel))),
        }
        let read = read_at(&mut desk, program, channel)?;
        prop_assert!(model.frames.range(..read).next().is_none(), "lost before {read}");
        model.read = model.read.max(read);
    }
    desk.order(program, &Command::CorkPlaybackStream(CorkStreamParams { channel, cork: false })).unwrap();
    desk.send(program, &Command::DrainPlaybackStream(channel));
    check(&mut desk, &mut model, 20)?;
    prop_assert!(model.frames.range(..model.write).next().is_none(), "not all is heard");
    prop_assert!(!desk.server.is_playing());
    Ok(())
}

/// In two pieces, as sockets give it.
fn write(
    desk: &mut Desk,
    program: &mut Program,
    channel: u32,
    (from, offset): (u32, i64),
    bytes: &[u8],
    cut: usize,
) {
    let mut frame: Vec<u8> =
        [bytes.len() as u32, channel].iter().flat_map(|word| word.to_be_bytes()).collect();
    frame.extend(offset.to_be_bytes());
    frame.extend(from.to_be_bytes());
    frame.extend(bytes);
    let (first, second) = frame.split_at(cut.min(frame.len()));
    desk.server.receive(desk.now, program.id, first);
    desk.server.receive(desk.now, program.id, second);
    desk.read(program);
}

fn read_at(desk: &mut Desk, program: &mut Program, channel: u32) -> Result<i64, TestCaseError> {
    let now = std::time::UNIX_EPOCH;
    let ask = pulseaudio::protocol::LatencyParams { channel, now };
    let latency: pulseaudio::protocol::PlaybackLatency = desk
        .ask(program, &Command::GetPlaybackLatency(ask))
        .map_err(|error| TestCaseError::fail(error.to_string()))?;
    prop_assert_eq!(latency.read_offset % 4, 0);
    Ok(latency.read_offset / 4)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_byte_is_lost_doubled_or_moved(steps in prop::collection::vec(step(), 1..60)) {
        run(steps)?;
    }
}
