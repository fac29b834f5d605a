//! What the lossless path costs on this machine: processor time of the thread per step, and bytes, for
//! a few plain cases; then what more threads change about encoding.
//!
//! `cargo run --release -p wayferry-pixels --example cost`; with `-- threads` only the latter

use std::convert::Infallible;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use wayferry_pixels::{Compression, Content, Decoder, Draft, Encoder, Format, Layout, Rect, Region, Size};

const ROUNDS: u32 = 30;

fn main() {
    if std::env::args().nth(1).is_none_or(|part| part != "threads") {
        steps();
    }
    threads();
}

fn steps() {
    println!("{:34} {:>10} {:>10} {:>10} {:>12}", "case", "absorb", "encode", "apply", "bytes");
    let (hd, uhd) = (size(1920, 1080), size(3840, 2160));
    let glyph = Rect::new(804, 411, 9, 17);
    for scene in [
        Scene::new("1080p unchanged, full damage", hd, Rect::default(), text),
        Scene::new("4K unchanged, full damage", uhd, Rect::default(), text),
        Scene::new("1080p one glyph, full damage", hd, glyph, text),
        Scene::new("1080p text, all new", hd, hd.rect(), text),
        Scene::new("4K text, all new", uhd, uhd.rect(), text),
        Scene::new("1080p text, scrolled", hd, hd.rect(), scrolled),
        Scene::new("1080p photograph, all new", hd, hd.rect(), photograph),
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

/// Wall time and processor time of all threads for encoding a whole content.
fn threads() {
    println!("{:34} {:>7} {:>10} {:>10} {:>12}", "encode", "threads", "wall", "processor", "bytes");
    let scenes = [
        ("1080p text", size(1920, 1080), text as fn(u32, u32, u32) -> u32),
        ("4K text", size(3840, 2160), text),
        ("1080p noise", size(1920, 1080), noise),
    ];
    for (name, size, paint) in scenes {
        let content = painted(size, paint);
        for (method, compression) in [("zstd", Compression::Zstd(1)), ("lz4", Compression::Lz4)] {
            for threads in [1, 2, 4] {
                let mut encoder = Encoder::new(compression).with_threads(threads);
                let (mut wall, mut cpu, mut bytes) = (Duration::MAX, Duration::MAX, 0);
                for _ in 0..ROUNDS / 3 {
                    let mut draft = Draft::new(size, Format::Xrgb8888);
                    draft.replace(content.clone());
                    let (began, busy) = (Instant::now(), time_of(ClockId::ProcessCPUTime));
                    let chunks = encoder.encode(&mut draft);
                    wall = wall.min(began.elapsed());
                    cpu = cpu.min(time_of(ClockId::ProcessCPUTime) - busy);
                    bytes = chunks.iter().map(Vec::len).sum();
                }
                let (wall, cpu) = (millis(wall), millis(cpu));
                println!("{name:28} {method:>5} {threads:>7} {wall:>7.3} ms {cpu:>7.3} ms {bytes:>12}");
            }
        }
    }
}

fn painted(size: Size, paint: fn(u32, u32, u32) -> u32) -> Content {
    let mut content = Content::new(size, Format::Xrgb8888);
    let layout = Layout::new(0, content.stride() as u64, size, Format::Xrgb8888).expect("a plain layout");
    let mut buffer = vec![0; layout.end() as usize];
    Scene { name: "", size, rect: size.rect(), paint }.draw(&mut buffer, 0);
    let read = |offset: u64, target: &mut [u8]| {
        target.copy_from_slice(&buffer[offset as usize..offset as usize + target.len()]);
        Ok::<(), Infallible>(())
    };
    content.absorb(&layout, &Region::full(size), read).expect("memory can be read");
    content
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
    let mut draft = Draft::new(size, format);
    let mut shown = draft.content().clone();
    let layout = Layout::new(0, shown.stride() as u64, size, format).expect("a plain layout");
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
        draft.absorb(&layout, &Region::full(size), read).expect("memory can be read");
        let absorbed = processor_time();
        let chunks = encoder.encode(&mut draft);
        draft.forget_last();
        let encoded = processor_time();
        decoder.apply(&mut shown, &chunks).expect("our own chunks");
        if round == 0 {
            continue; // brings the first picture over
        }
        cost.apply = cost.apply.min(processor_time() - encoded);
        cost.encode = cost.encode.min(encoded - absorbed);
        cost.absorb = cost.absorb.min(absorbed - start);
        cost.bytes = chunks.iter().map(Vec::len).sum();
    }
    assert!(shown.pixels() == draft.content().pixels() && draft.content().pixels() == buffer);
    cost
}

/// Something like anti-aliased glyphs in cells of 9 × 17 on a plain ground.
fn text(x: u32, y: u32, round: u32) -> u32 {
    let cell = hash(x / 9, y / 17, round) % 60;
    let shade = hash(cell, x % 9, y % 17);
    let level = if cell < 20 || shade.is_multiple_of(3) { 0 } else { shade % 16 };
    0xff00_0000 | ((15 - level) * 0x0011_1111)
}

/// [`text`] that moves up by 34 rows a time, but for 60 rows on top and 300 columns on the left.
fn scrolled(x: u32, y: u32, round: u32) -> u32 {
    if x < 300 || y < 60 { text(x, y, 0) } else { text(x, y + 34 * round, 0) }
}

/// Waves of several lengths with some grain.
fn photograph(x: u32, y: u32, round: u32) -> u32 {
    let (x, y) = (x as f32 + 700.0 * round as f32, y as f32);
    let wave = |length: f32, angle: f32| ((x * angle.cos() + y * angle.sin()) / length).sin();
    let light =
        110.0 + 40.0 * wave(97.0, 0.4) + 30.0 * wave(31.0, 1.3) * wave(211.0, 2.2) + 9.0 * wave(7.0, 2.9);
    let grain = hash(x as u32, y as u32, round);
    let channel = |tint: f32, bit: u32| (light * tint + (grain >> bit & 1) as f32).clamp(0.0, 255.0) as u32;
    0xff00_0000 | channel(1.1, 0) << 16 | channel(1.0, 7) << 8 | channel(0.8, 13)
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
    time_of(ClockId::ThreadCPUTime)
}

fn time_of(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
