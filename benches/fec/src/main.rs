//! Times the erasure code beside others: encode and decode of one block, in microseconds.
//!
//! All contestants take turns in every round, so that a busy machine slows them alike; the median of all rounds is
//! printed. Decoding begins with an empty decoder and includes handing in the source. The others know whole rows only,
//! so the misaligned losses are ours alone. Set-up that a program could keep (tables, plans) is not timed.

use std::hint::black_box;
use std::time::{Duration, Instant};

use raptorq::{EncodingPacket, ObjectTransmissionInformation, PayloadId};
use raptorq::{SourceBlockDecoder, SourceBlockEncoder, SourceBlockEncodingPlan};
use reed_solomon_erasure::galois_8::ReedSolomon;
use wayferry_fec::{Decoder, Layout, encode};

fn main() {
    println!("rows of {ROW} B; median of {ROUNDS} rounds, µs per block; copy = copying the source once\n");
    for (rows, repairs) in [(1, 1), (5, 2), (16, 2), (32, 4), (72, 6), (84, 9), (128, 13), (200, 20)] {
        let case = Case::new(rows, repairs);
        println!("k = {rows}, r = {repairs}");
        let times = race(&mut case.contestants());
        let copy = times[0].1;
        for (name, time) in times {
            let micros = time.as_secs_f64() * 1e6;
            println!("  {name:48} {micros:9.2}  {:6.1} copies", time.as_secs_f64() / copy.as_secs_f64());
        }
    }
}

/// One thing to time.
type Contestant<'a> = (&'static str, Box<dyn FnMut() + 'a>);

fn race(contestants: &mut [Contestant<'_>]) -> Vec<(&'static str, Duration)> {
    let mut times = vec![Vec::with_capacity(ROUNDS); contestants.len()];
    for round in 0..ROUNDS + WARM_UP {
        for ((_, run), times) in contestants.iter_mut().zip(&mut times) {
            let start = Instant::now();
            run();
            let time = start.elapsed();
            if round >= WARM_UP {
                times.push(time);
            }
        }
    }
    let median = |times: &mut Vec<Duration>| {
        times.sort_unstable();
        times[times.len() / 2]
    };
    contestants.iter().zip(&mut times).map(|((name, _), times)| (*name, median(times))).collect()
}

/// A block with as many losses as its repair can stand.
struct Case {
    layout: Layout,
    block: Vec<u8>,
    repair: Vec<Vec<u8>>,
    /// Where the losses of whole rows begin, and where those across rows do; each is a row long.
    whole: Vec<usize>,
    across: Vec<usize>,
}

impl Case {
    fn new(rows: usize, repairs: usize) -> Self {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let mut random = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as usize >> 8
        };
        let block: Vec<u8> = (0..rows * ROW).map(|_| random() as u8).collect();
        let layout = Layout::new(block.len(), ROW).expect("a layout within limits");
        let repair = encode(layout, &[&block], 0..repairs as u8);
        let share = rows / repairs * ROW;
        let whole = (0..repairs).map(|loss| loss * share + random() % (share / ROW) * ROW).collect();
        let across = (0..repairs).map(|loss| loss * share + random() % (share - ROW + 1)).collect();
        Self { layout, block, repair, whole, across }
    }

    fn contestants(&self) -> Vec<Contestant<'_>> {
        let mut contestants = self.ours();
        contestants.extend(self.simd());
        contestants.extend(self.erasure());
        contestants.extend(self.raptorq());
        contestants
    }

    fn ours(&self) -> Vec<Contestant<'_>> {
        let pieces: Vec<&[u8]> = self.block.chunks(10_000).collect();
        let mut copy = vec![0; self.block.len()];
        vec![
            ("copy", Box::new(move || black_box(&mut copy[..]).copy_from_slice(black_box(&self.block)))),
            (
                "encode, wayferry-fec",
                Box::new(|| drop(black_box(encode(self.layout, &[&self.block], self.repairs())))),
            ),
            (
                "encode, wayferry-fec, source in pieces of 10 kB",
                Box::new(move || drop(black_box(encode(self.layout, &pieces, self.repairs())))),
            ),
            ("decode, wayferry-fec", Box::new(|| self.decode(&self.whole, false))),
            ("decode, wayferry-fec, losses across rows", Box::new(|| self.decode(&self.across, false))),
            ("decode, the same, tried after every packet", Box::new(|| self.decode(&self.across, true))),
        ]
    }

    fn repairs(&self) -> std::ops::Range<u8> {
        0..self.repair.len() as u8
    }

    /// Hands in packets of a row each but the lost ones, then the repair, and checks one recovered byte.
    fn decode(&self, losses: &[usize], eager: bool) {
        let mut decoder = Decoder::new(self.layout);
        let mut at = 0;
        let mut recovered = Vec::new();
        for end in losses.iter().copied().chain([self.block.len()]) {
            while at < end {
                let packet = at..(at + ROW).min(end);
                decoder.source(at, &self.block[packet.clone()]).expect("a piece of the block");
                at = packet.end;
                if eager {
                    recovered.extend(decoder.recover());
                }
            }
            at = end + ROW;
        }
        for (row, bytes) in self.repair.iter().enumerate() {
            decoder.repair(row as u8, 0, bytes).expect("a repair row");
            if eager {
                recovered.extend(decoder.recover());
            }
        }
        recovered.extend(decoder.recover());
        assert!(black_box(recovered).iter().any(|(offset, bytes)| bytes[0] == self.block[*offset]));
        assert!(decoder.is_complete());
    }

    fn simd(&self) -> Vec<Contestant<'_>> {
        let (rows, repairs) = (self.layout.rows(), self.repair.len());
        let recovery = reed_solomon_simd::encode(rows, repairs, self.block.chunks(ROW)).expect("encodes");
        vec![
            (
                "encode, reed-solomon-simd",
                Box::new(move || {
                    drop(black_box(reed_solomon_simd::encode(rows, repairs, self.block.chunks(ROW))));
                }),
            ),
            (
                "decode, reed-solomon-simd",
                Box::new(move || {
                    let originals = self.kept();
                    let found =
                        reed_solomon_simd::decode(rows, repairs, originals, recovery.iter().enumerate());
                    assert_eq!(black_box(found).expect("decodes").len(), repairs);
                }),
            ),
        ]
    }

    /// The rows that are left, with their numbers.
    fn kept(&self) -> impl Iterator<Item = (usize, &[u8])> {
        let is_kept = |row: &(usize, &[u8])| !self.whole.contains(&(row.0 * ROW));
        self.block.chunks(ROW).enumerate().filter(is_kept)
    }

    fn erasure(&self) -> Vec<Contestant<'_>> {
        let codec = ReedSolomon::new(self.layout.rows(), self.repair.len()).expect("a codec");
        let other = ReedSolomon::new(self.layout.rows(), self.repair.len()).expect("a codec");
        let rows: Vec<&[u8]> = self.block.chunks(ROW).collect();
        let mut parity = self.repair.clone();
        codec.encode_sep(&rows, &mut parity).expect("encodes");
        let ready = parity.clone();
        vec![
            (
                "encode, reed-solomon-erasure",
                Box::new(move || codec.encode_sep(&rows, black_box(&mut parity)).expect("encodes")),
            ),
            (
                "decode, reed-solomon-erasure",
                Box::new(move || {
                    let mut shards = vec![None; self.layout.rows()];
                    for (row, bytes) in self.kept() {
                        shards[row] = Some(bytes.to_vec());
                    }
                    shards.extend(ready.iter().cloned().map(Some));
                    other.reconstruct_data(&mut shards).expect("decodes");
                    black_box(shards);
                }),
            ),
        ]
    }

    fn raptorq(&self) -> Vec<Contestant<'_>> {
        let config = ObjectTransmissionInformation::new(self.block.len() as u64, ROW as u16, 1, 1, 8);
        let plan = SourceBlockEncodingPlan::generate(self.layout.rows() as u16);
        let repairs = self.repair.len() as u32;
        let ready = SourceBlockEncoder::with_encoding_plan(0, &config, &self.block, &plan);
        // It sometimes needs one symbol more than was lost.
        let ready = ready.repair_packets(0, repairs + 2);
        vec![
            (
                "encode, raptorq",
                Box::new(move || {
                    let encoder = SourceBlockEncoder::with_encoding_plan(0, &config, &self.block, &plan);
                    black_box(encoder.repair_packets(0, repairs));
                }),
            ),
            (
                "decode, raptorq",
                Box::new(move || {
                    let mut decoder = SourceBlockDecoder::new(0, &config, self.block.len() as u64);
                    let packet = |(row, bytes): (usize, &[u8])| {
                        EncodingPacket::new(PayloadId::new(0, row as u32), bytes.to_vec())
                    };
                    let packets: Vec<EncodingPacket> =
                        self.kept().map(packet).chain(ready.iter().cloned()).collect();
                    assert_eq!(black_box(decoder.decode(packets)).expect("decodes").len(), self.block.len());
                }),
            ),
        ]
    }
}

/// Bytes in a row.
const ROW: usize = 1200;

/// How often everything is timed.
const ROUNDS: usize = 201;

/// Rounds before that, not counted.
const WARM_UP: usize = 20;
