//! What an update costs: bytes, processor time of this thread, and how soon how much of it is there.
//!
//! Nothing waits for anything: when bytes arrive on a link is calculated from their number. Invariant: comparing and
//! counting for the report lies outside what is timed.

use rustix::time::{ClockId, clock_gettime};
use wayferry_scenes::codec::{Codec, CodecError};
use wayferry_scenes::{Frame, Scene, Sequence, changed};

/// One codec over one sequence.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) sequence: Sequence,
    pub(super) codec: &'static str,
    /// Of each update.
    pub(super) bytes: Vec<f64>,
    pub(super) encode_ms: Vec<f64>,
    pub(super) decode_ms: Vec<f64>,
    /// Bytes of memory that an encoder must touch for each update.
    pub(super) touched: Vec<f64>,
    /// Of each update that changed something.
    pub(super) arrivals: Vec<Arrival>,
    /// Why the first update that went wrong did.
    pub(super) failure: Option<String>,
}

/// Bytes that must have arrived for this much of an update.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Arrival {
    /// For its first message.
    pub(super) first: f64,
    /// For nine tenths of the pixels that it changes.
    pub(super) readable: f64,
    /// For all.
    pub(super) whole: f64,
}

/// Plays a sequence to all codecs, telling after each update how many there were. What the first picture costs is not
/// counted.
pub(super) fn play(
    sequence: Sequence,
    seed: u64,
    frames: usize,
    codecs: Vec<Box<dyn Codec>>,
    mut tell: impl FnMut(usize),
) -> Vec<Run> {
    let mut scene = Scene::new(sequence, seed);
    let mut old = vec![[0; 4]; scene.frame().pixels.len()];
    let mut lanes: Vec<(Box<dyn Codec>, Run)> = codecs
        .into_iter()
        .map(|codec| {
            let run = Run::new(sequence, codec.name());
            (codec, run)
        })
        .collect();
    for number in 0..=frames {
        let frame = scene.frame();
        for (codec, run) in &mut lanes {
            run.update(&mut **codec, &old, &frame, number > 0);
        }
        old.copy_from_slice(frame.pixels);
        tell(number);
        scene.step();
    }
    lanes.into_iter().map(|(_, run)| run).collect()
}

impl Run {
    fn new(sequence: Sequence, codec: &'static str) -> Self {
        let none = Vec::new;
        let (bytes, encode_ms, decode_ms, touched) = (none(), none(), none(), none());
        Self { sequence, codec, bytes, encode_ms, decode_ms, touched, arrivals: Vec::new(), failure: None }
    }

    fn update(&mut self, codec: &mut dyn Codec, old: &[[u8; 4]], frame: &Frame<'_>, counts: bool) {
        codec.draw(frame);
        let began = cpu_time();
        let messages = codec.encode(frame);
        let encode = cpu_time() - began;
        let total: u64 = frame.damage.iter().map(|rect| changed(frame.width, old, frame.pixels, *rect)).sum();
        let arrived = apply(codec, &messages, old, frame, total);
        if self.failure.is_none() {
            self.failure = match &arrived {
                Err(error) => Some(error.to_string()),
                Ok(_) if codec.shown() != frame.pixels.as_flattened() => {
                    Some("other pixels came out".to_owned())
                }
                Ok(_) => None,
            };
        }
        let Ok((decode, arrival)) = arrived else { return };
        if counts {
            let damaged: u64 = frame.damage.iter().map(|rect| rect.area()).sum();
            self.bytes.push(messages.iter().map(Vec::len).sum::<usize>() as f64);
            self.encode_ms.push(encode * 1e3);
            self.decode_ms.push(decode * 1e3);
            // It reads the damage and what was there before, and keeps what changed.
            self.touched.push((4 * (2 * damaged + total)) as f64);
            self.arrivals.extend((total > 0).then_some(arrival));
        }
    }
}

/// Applies the messages of a frame that changes `total` pixels; gives the time that it took and what arrived when.
fn apply(
    codec: &mut dyn Codec,
    messages: &[Vec<u8>],
    old: &[[u8; 4]],
    frame: &Frame<'_>,
    total: u64,
) -> Result<(f64, Arrival), CodecError> {
    let (mut time, mut seen, mut arrival) = (0.0, 0, Arrival::default());
    for message in messages {
        let began = cpu_time();
        let rects = codec.decode(message)?;
        time += cpu_time() - began;
        arrival.whole += message.len() as f64;
        if arrival.first == 0.0 {
            arrival.first = arrival.whole;
        }
        if arrival.readable == 0.0 && messages.len() > 1 {
            seen += rects.iter().map(|rect| changed(frame.width, old, frame.pixels, *rect)).sum::<u64>();
            if seen * 10 >= total * 9 {
                arrival.readable = arrival.whole;
            }
        }
    }
    if arrival.readable == 0.0 {
        arrival.readable = arrival.whole;
    }
    let began = cpu_time();
    codec.finish()?;
    Ok((time + cpu_time() - began, arrival))
}

/// Seconds that this thread has had a processor.
pub(crate) fn cpu_time() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Bytes per second that this thread reads and writes when it copies what is larger than the caches: the best of a few
/// tries, because others use the memory too.
pub(super) fn memory_bandwidth() -> f64 {
    let source = vec![1_u8; COPIED];
    let mut target = vec![0_u8; COPIED];
    let mut try_once = || {
        let began = cpu_time();
        target.copy_from_slice(&source);
        std::hint::black_box(&mut target);
        2.0 * COPIED as f64 / (cpu_time() - began).max(1e-9)
    };
    (0..TRIES).map(|_| try_once()).fold(0.0, f64::max)
}

const COPIED: usize = 64 << 20;
const TRIES: usize = 8;

#[cfg(test)]
mod tests {
    use wayferry_scenes::Rect;

    use super::*;

    /// Sends one row per message, the last ones first, and may lie.
    struct Rows {
        shown: Vec<u8>,
        lies: bool,
    }

    impl Codec for Rows {
        fn name(&self) -> &'static str {
            "rows"
        }

        fn encode(&mut self, frame: &Frame<'_>) -> Vec<Vec<u8>> {
            let row = |y: usize| {
                let mut message = vec![y as u8];
                message.extend(frame.pixels[y * 4..y * 4 + 4].as_flattened());
                message
            };
            (0..10).rev().map(row).collect()
        }

        fn decode(&mut self, message: &[u8]) -> Result<Vec<Rect>, CodecError> {
            let (y, row) = (usize::from(message[0]), &message[1..]);
            self.shown[y * 16..y * 16 + 16].copy_from_slice(row);
            self.shown[0] ^= u8::from(self.lies);
            Ok(vec![Rect::new(0, y as u32, 4, 1)])
        }

        fn shown(&self) -> &[u8] {
            &self.shown
        }
    }

    fn update(lies: bool) -> Run {
        let (old, new) = ([[0; 4]; 40], [[7; 4]; 40]);
        let damage = [Rect::new(0, 0, 4, 10)];
        let frame = Frame { width: 4, height: 10, pixels: &new, damage: &damage, scroll: None };
        let mut run = Run::new(Sequence::Type, "rows");
        run.update(&mut Rows { shown: vec![0; 160], lies }, &old, &frame, true);
        run
    }

    #[test]
    fn an_update_arrives_message_by_message() {
        let run = update(false);
        assert_eq!(run.arrivals, [Arrival { first: 17.0, readable: 9.0 * 17.0, whole: 170.0 }]);
        assert_eq!((run.bytes, run.touched, run.failure), (vec![170.0], vec![480.0], None));
    }

    #[test]
    fn a_codec_that_is_not_exact_is_found_out() {
        assert_eq!(update(true).failure.as_deref(), Some("other pixels came out"));
    }
}
