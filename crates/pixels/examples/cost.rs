//! What the lossless path costs on this machine: processor time of the thread per step, and bytes, for
//! a few plain cases.
//!
//! `cargo run --release -p wayferry-pixels --example cost`

use std::convert::Infallible;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use wayferry_pixels::{Compression, Content, Decoder, Encoder, Format, Layout, Rect, Region, Size};

const ROUNDS: u32 = 30;

fn main() {
    println!("{:34} {:>10} {:>10} {:>10} {:>12}", "case", "absorb", "encode", "apply", "bytes");
    let (hd, uhd) = (size(1920, 1080), size(3840, 2160));
    let glyph = Rect::new(804, 411, 9, 17);
    for scene in [
        Scene::new("1080p unchanged, full damage", hd, Rect::default(), text),
        Scene::new("4K unchanged, full damage", uhd, Rect::default(), text),
        Scene::new("1080p one glyph, full damage", hd, glyph, text),
        Scene::new("1080p text, all new", hd, hd.rect(), text),
        Scene::new("4K text, all new", uhd, uhd.rect(), text),
        Scene::new("720p noise, all new", size(1280, 720), size(1280, 720).rect(), noise),
    ] {
        for (name, compression) in
            [("zstd", Compression::Zstd(1)), ("lz4", Compression::Lz4), ("none", Compression::None)]
        {
            let cost = measure(&scene, compression);
            println!(
                "{:28} {name:>5} {:>7.3} ms {:>7.3} ms {:>7.3} ms {:>12}",
                scene.name,
                millis(cost.absorb),
                millis(cost.encode),
                millis(cost.apply),
                cost.bytes
            );
        }
    }
}

/// What the program paints before each commit.
struct Scene {
    name: &'static str,
    size: Size,
    rect: Rect,
    paint: fn(u32, u32, u32) -> u32,
}

impl Scene {
    fn new(name: &'static str, size: Size, rect: Rect, paint: fn(u32, u32, u32) -> u32) -> Self {
        Self { name, size, rect, paint }
    }

    fn draw(&self, buffer: &mut [u8], round: u32) {
        for y in self.rect.y..self.rect.bottom() {
            for x in self.rect.x..self.rect.right() {
                let at = (y * self.size.width() + x) as usize * 4;
                buffer[at..at + 4].copy_from_slice(&(self.paint)(x, y, round).to_le_bytes());
            }
        }
    }
}

/// The best of all rounds, per step.
struct Cost {
    absorb: Duration,
    encode: Duration,
    apply: Duration,
    bytes: usize,
}

fn measure(scene: &Scene, compression: Compression) -> Cost {
    let size = scene.size;
    let format = Format::Xrgb8888;
    let mut content = Content::new(size, format);
    let mut shown = content.clone();
    let layout = Layout::new(0, content.stride() as u64, size, format).expect("a plain layout");
    // pages of zeros that were never written would all be the same one, and in the cache
    let mut buffer = vec![0; layout.end() as usize];
    Scene { rect: size.rect(), ..*scene }.draw(&mut buffer, ROUNDS);
    let (mut encoder, mut decoder) = (Encoder::new(compression), Decoder::new());
    let mut cost = Cost { absorb: Duration::MAX, encode: Duration::MAX, apply: Duration::MAX, bytes: 0 };
    for round in 0..ROUNDS {
        scene.draw(&mut buffer, round);
        let start = processor_time();
        let read = |offset: u64, target: &mut [u8]| {
            target.copy_from_slice(&buffer[offset as usize..offset as usize + target.len()]);
            Ok::<(), Infallible>(())
        };
        let changed = content.absorb(&layout, &Region::full(size), read).expect("memory can be read");
        let absorbed = processor_time();
        let chunks = encoder.encode(&content, &changed);
        let encoded = processor_time();
        for chunk in &chunks {
            decoder.apply(&mut shown, chunk).expect("our own chunk");
        }
        if round == 0 {
            continue; // brings the first picture over
        }
        cost.apply = cost.apply.min(processor_time() - encoded);
        cost.encode = cost.encode.min(encoded - absorbed);
        cost.absorb = cost.absorb.min(absorbed - start);
        cost.bytes = chunks.iter().map(Vec::len).sum();
    }
    assert!(shown.pixels() == content.pixels() && content.pixels() == buffer);
    cost
}

/// Something like anti-aliased glyphs in cells of 9 × 17 on a plain ground.
fn text(x: u32, y: u32, round: u32) -> u32 {
    let cell = hash(x / 9, y / 17, round) % 60;
    let shade = hash(cell, x % 9, y % 17);
    let level = if cell < 20 || shade.is_multiple_of(3) { 0 } else { shade % 16 };
    0xff00_0000 | ((15 - level) * 0x0011_1111)
}

fn noise(x: u32, y: u32, round: u32) -> u32 {
    hash(x, y, round)
}

fn hash(a: u32, b: u32, c: u32) -> u32 {
    let mut value = (a ^ b.rotate_left(11) ^ c.rotate_left(22)).wrapping_add(0x9e37_79b9);
    for _ in 0..2 {
        value = (value ^ value >> 16).wrapping_mul(0x045d_9f3b);
    }
    value ^ value >> 16
}

fn size(width: u32, height: u32) -> Size {
    Size::new(width, height).expect("a usual size")
}

/// Wall time would count the other programs of a busy machine.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
