//! What a video costs on this machine: processor time of the thread per frame, there and back, and bytes.
//!
//! `ffmpeg -i VIDEO -t 10 -vf scale=1280:720 -pix_fmt bgr0 -f rawvideo video.bgr0`, then `cargo run --release -p
//! wayferry-video --example cost -- video.bgr0 1280 720 [BITS_PER_SECOND [QUALITY [OUT.bgr0]]]`; 30 frames per second
//! are taken for granted. What comes back is written to OUT.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use wayferry_video::{Decoder, Encoder, Order, Quality, Rate, Size};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: u32| {
        arguments.get(at).map_or(default, |text| text.parse().expect("arguments 2 to 5 are numbers"))
    };
    let path = arguments.first().expect("a file of bgr0 frames");
    let size = Size::new(number(1, 1280), number(2, 720)).expect("a size");
    let rate = Rate { bits_per_second: number(3, 4_000_000).into(), interval: Duration::from_secs(1) / 30 };
    let quality = Quality::new(number(4, 80) as u8);
    let mut video = BufReader::new(File::open(path).expect("the file can be read"));
    let mut out =
        arguments.get(5).map(|path| BufWriter::new(File::create(path).expect("the file can be written")));
    let (mut encoder, mut decoder) = (Encoder::new(size, quality), Decoder::new(size));
    let stride = size.width() as usize * 4;
    let mut pixels = vec![0; stride * size.height() as usize];
    let mut back = pixels.clone();
    let mut costs = Vec::new();
    while read(&mut video, &mut pixels) {
        let start = processor_time();
        let row = |y: u32| &pixels[y as usize * stride..][..stride];
        let frame = encoder.encode(Order::Bgrx, row, rate, false).expect("sound").expect("not left out");
        let middle = processor_time();
        let picture = decoder.decode(costs.len() as u64, &frame.data).expect("sound");
        let decoded = processor_time();
        picture.rows(Order::Bgrx, 255, |y, row| back[y as usize * stride..][..stride].copy_from_slice(row));
        let (encode, decode, paint) = (middle - start, decoded - middle, processor_time() - decoded);
        costs.push(Cost {
            encode,
            decode,
            paint,
            bytes: frame.data.len(),
            key: frame.key,
            psnr: psnr(&pixels, &back),
        });
        if let Some(out) = &mut out {
            out.write_all(&back).expect("the file can be written");
        }
    }
    report(&costs);
}

struct Cost {
    encode: Duration,
    decode: Duration,
    paint: Duration,
    bytes: usize,
    key: bool,
    psnr: f64,
}

fn report(costs: &[Cost]) {
    let mean = |of: fn(&Cost) -> f64| costs.iter().map(of).sum::<f64>() / costs.len() as f64;
    println!(
        "{} frames, {} of them key; encode {:.2} ms, decode {:.2} ms and paint {:.2} ms; {:.0} bytes, {:.2} Mbit/s, \
         most {} bytes; PSNR {:.2} dB",
        costs.len(),
        costs.iter().filter(|cost| cost.key).count(),
        mean(|cost| millis(cost.encode)),
        mean(|cost| millis(cost.decode)),
        mean(|cost| millis(cost.paint)),
        mean(|cost| cost.bytes as f64),
        mean(|cost| cost.bytes as f64) * 8.0 * 30.0 / 1e6,
        costs.iter().map(|cost| cost.bytes).max().unwrap_or(0),
        mean(|cost| cost.psnr),
    );
}

fn read(video: &mut impl Read, frame: &mut [u8]) -> bool {
    match video.read_exact(frame) {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => false,
        Err(error) => panic!("the file cannot be read: {error}"),
    }
}

/// Of the three colours together.
fn psnr(one: &[u8], other: &[u8]) -> f64 {
    let (one, other) = (one.as_chunks::<4>().0, other.as_chunks::<4>().0);
    let square = |one: &[u8; 4], other: &[u8; 4]| {
        (0..3).map(|at| u64::from(one[at].abs_diff(other[at])).pow(2)).sum::<u64>()
    };
    let sum: u64 = one.iter().zip(other).map(|(one, other)| square(one, other)).sum();
    10.0 * (255.0_f64.powi(2) * one.len() as f64 * 3.0 / sum.max(1) as f64).log10()
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
