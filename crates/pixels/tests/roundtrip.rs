//! A program paints into its buffers and commits; the display side gets chunks in any order. After
//! every delivery both contents equal what the program's buffer shows.

use std::convert::Infallible;

use proptest::prelude::*;
use wayferry_pixels::{
    Compression, Content, Decoder, Encoder, Format, Layout, MAX_CHUNK, Rect, Region, Size, Watch,
};

/// How the program's buffer for a commit lies in memory.
#[derive(Clone, Debug)]
struct Buffer {
    offset: u64,
    padding: u64,
}

#[derive(Clone, Copy, Debug)]
enum Paint {
    Solid(u8),
    Noise(u64),
    Stripes,
}

#[derive(Clone, Debug)]
struct Commit {
    /// What is painted, and damaged.
    painted: Vec<(Rect, Paint)>,
    /// What is damaged beyond it.
    overdamage: Vec<Rect>,
    buffer: Buffer,
    /// Whether the changes so far are sent after this commit, and how their chunks are shuffled.
    deliver: Option<u64>,
}

#[derive(Clone, Debug)]
struct Story {
    size: Size,
    format: Format,
    compression: Compression,
    commits: Vec<Commit>,
}

fn story() -> impl Strategy<Value = Story> {
    let side = prop_oneof![1..4u32, 1..40u32, 100..300u32];
    (side.clone(), side, 0..Format::ALL.len(), 0..3usize).prop_flat_map(
        |(width, height, format, compression)| {
            let size = Size::new(width, height).unwrap();
            prop::collection::vec(commit(size), 1..6).prop_map(move |commits| Story {
                size,
                format: Format::ALL[format],
                compression: [Compression::None, Compression::Lz4, Compression::Zstd(1)][compression],
                commits,
            })
        },
    )
}

fn commit(size: Size) -> impl Strategy<Value = Commit> {
    let paint = prop_oneof![
        any::<u8>().prop_map(Paint::Solid),
        any::<u64>().prop_map(Paint::Noise),
        Just(Paint::Stripes)
    ];
    (
        prop::collection::vec((rect(size), paint), 0..8),
        prop::collection::vec(rect(size), 0..4),
        (0..50u64, prop_oneof![Just(0u64), 1..70u64, 4000..5000u64]),
        any::<Option<u64>>(),
    )
        .prop_map(|(painted, overdamage, (offset, padding), deliver)| Commit {
            painted,
            overdamage,
            buffer: Buffer { offset, padding },
            deliver,
        })
}

fn rect(size: Size) -> impl Strategy<Value = Rect> {
    (0..size.width(), 0..size.height()).prop_flat_map(move |(x, y)| {
        (1..=size.width() - x, 1..=size.height() - y)
            .prop_map(move |(width, height)| Rect::new(x, y, width, height))
    })
}

/// What the program wants to show: rows without padding.
struct Picture {
    size: Size,
    pixel: usize,
    bytes: Vec<u8>,
}

impl Picture {
    fn new(size: Size, format: Format) -> Self {
        let pixel = format.bytes_per_pixel();
        Self { size, pixel, bytes: vec![0; size.rect().area() as usize * pixel] }
    }

    fn paint(&mut self, rect: Rect, paint: Paint) {
        let mut seed = 1;
        for y in rect.y..rect.bottom() {
            let start = (y * self.size.width() + rect.x) as usize * self.pixel;
            for byte in &mut self.bytes[start..start + rect.width as usize * self.pixel] {
                *byte = match paint {
                    Paint::Solid(value) => value,
                    Paint::Stripes => (y % 3) as u8,
                    Paint::Noise(salt) => noise(&mut seed, salt),
                };
            }
        }
    }

    /// The picture in the program's memory, with garbage around it.
    fn memory(&self, buffer: &Buffer, layout: &Layout) -> Vec<u8> {
        let row = self.size.width() as usize * self.pixel;
        let mut memory = vec![0xa5; layout.end() as usize];
        for (y, bytes) in self.bytes.chunks_exact(row).enumerate() {
            let start = buffer.offset as usize + y * (row + buffer.padding as usize);
            memory[start..start + row].copy_from_slice(bytes);
        }
        memory
    }
}

fn noise(seed: &mut u64, salt: u64) -> u8 {
    *seed = seed.wrapping_add(salt | 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (*seed >> 56) as u8
}

fn shuffle<T>(items: &mut [T], salt: u64) {
    let mut seed = salt;
    for index in (1..items.len()).rev() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        items.swap(index, (seed >> 33) as usize % (index + 1));
    }
}

fn absorb(content: &mut Content, picture: &Picture, buffer: &Buffer, damage: &Region) -> Region {
    let stride = content.stride() as u64 + buffer.padding;
    let layout = Layout::new(buffer.offset, stride, content.size(), content.format()).unwrap();
    let memory = picture.memory(buffer, &layout);
    let read = |offset: u64, target: &mut [u8]| {
        let start = offset as usize;
        target.copy_from_slice(&memory[start..start + target.len()]);
        Ok::<(), Infallible>(())
    };
    content.absorb(&layout, damage, read).unwrap()
}

fn deliver(target: &mut Content, mut chunks: Vec<Vec<u8>>, salt: u64) -> Region {
    shuffle(&mut chunks, salt);
    let mut decoder = Decoder::new();
    let mut painted = Region::new();
    for chunk in &chunks {
        assert!(chunk.len() <= MAX_CHUNK);
        painted.union(&decoder.apply(target, chunk).unwrap());
    }
    painted
}

fn play(story: &Story) -> Result<(), TestCaseError> {
    let mut picture = Picture::new(story.size, story.format);
    let mut ours = Content::new(story.size, story.format);
    let mut theirs = ours.clone();
    let mut encoder = Encoder::new(story.compression);
    let mut changed = Region::new();
    for commit in &story.commits {
        let mut damage: Region = commit.overdamage.iter().copied().collect();
        for (rect, paint) in &commit.painted {
            picture.paint(*rect, *paint);
            damage.add(*rect);
        }
        let differs = absorb(&mut ours, &picture, &commit.buffer, &damage);
        prop_assert!(ours.pixels() == picture.bytes, "content equals the buffer");
        prop_assert!(differs.rects().iter().all(|rect| covers(&damage, *rect)), "inside the damage");
        changed.union(&differs);
        if let Some(salt) = commit.deliver {
            let painted = deliver(&mut theirs, encoder.encode(&ours, &changed), salt);
            prop_assert_eq!(painted.area(), changed.area());
            prop_assert!(theirs.pixels() == ours.pixels(), "both contents are equal");
            changed.clear();
        }
    }
    Ok(())
}

fn covers(region: &Region, rect: Rect) -> bool {
    let inside: u64 =
        region.rects().iter().filter_map(|own| own.intersection(rect)).map(|part| part.area()).sum();
    inside == rect.area()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_order_of_chunks_gives_the_content(story in story()) {
        play(&story)?;
    }

    /// What W5 asks of this crate: a cell of 4096 new bytes costs hardly more than these.
    #[test]
    fn a_new_cell_costs_little_more_than_its_pixels(
        x in 0..1248u32, y in 0..688u32, salt: u64, compression in 0..3usize, whole: bool,
    ) {
        let (size, format) = (Size::new(1280, 720).unwrap(), Format::Argb8888);
        let compression = [Compression::None, Compression::Lz4, Compression::Zstd(1)][compression];
        let cell = Rect::new(x, y, 32, 32);
        let mut picture = Picture::new(size, format);
        picture.paint(cell, Paint::Noise(salt));
        let mut content = Content::new(size, format);
        let damage = if whole { Region::full(size) } else { cell.into() };
        let changed = absorb(&mut content, &picture, &Buffer { offset: 0, padding: 0 }, &damage);
        let chunks = Encoder::new(compression).encode(&content, &changed);
        let bytes: usize = chunks.iter().map(Vec::len).sum();
        prop_assert!(bytes <= 4150, "{bytes} bytes, {:?}", changed.rects());
        prop_assert_eq!(chunks.len(), 1);
    }
}

/// A content large enough for several threads, and what of it is to be sent.
fn large() -> impl Strategy<Value = (Content, Region)> {
    let sides = (300..1400u32, 300..1000u32, 0..Format::ALL.len());
    sides.prop_flat_map(|(width, height, format)| {
        let (size, format) = (Size::new(width, height).unwrap(), Format::ALL[format]);
        let painted = prop::collection::vec((rect(size), any::<u64>()), 1..6);
        let changed = prop_oneof![
            Just(Region::full(size)),
            prop::collection::vec(rect(size), 1..6).prop_map(|rects| rects.into_iter().collect())
        ];
        (painted, changed).prop_map(move |(painted, changed)| {
            let mut picture = Picture::new(size, format);
            painted.iter().for_each(|(rect, salt)| picture.paint(*rect, Paint::Noise(*salt)));
            let mut content = Content::new(size, format);
            absorb(&mut content, &picture, &Buffer { offset: 0, padding: 0 }, &Region::full(size));
            (content, changed)
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_number_of_threads_makes_the_same_chunks(
        (content, changed) in large(), threads in 2..8usize, compression in 0..3usize,
    ) {
        let compression = [Compression::None, Compression::Lz4, Compression::Zstd(1)][compression];
        let alone = Encoder::new(compression).encode(&content, &changed);
        let mut together = Encoder::new(compression).with_threads(threads);
        prop_assert!(together.encode(&content, &changed) == alone);
        prop_assert!(together.encode(&content, &changed) == alone, "again, with used memory");
        let mut target = Content::new(content.size(), content.format());
        let painted = deliver(&mut target, alone, 7);
        prop_assert_eq!(painted.area(), changed.area());
        for rect in changed.rects() {
            for y in rect.y..rect.bottom() {
                prop_assert!(target.row(y, rect.x, rect.width) == content.row(y, rect.x, rect.width));
            }
        }
    }
}

/// A watcher sees every byte, small updates stay on the caller's thread, and large ones need not.
#[test]
fn a_watcher_is_told_of_all_work() {
    #[derive(Default)]
    struct Log(std::sync::Mutex<Vec<(usize, u64, usize)>>, std::sync::atomic::AtomicU64);
    impl Watch for Log {
        fn now(&self) -> u64 {
            self.1.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
        }
        fn encoded(&self, thread: usize, start: u64, bytes: usize) {
            self.0.lock().unwrap().push((thread, start, bytes));
        }
    }
    for (height, sections) in [(100, 1), (1000, 10)] {
        let size = Size::new(1300, height).unwrap();
        let content = Content::new(size, Format::Xrgb8888);
        let log = Log::default();
        let mut encoder = Encoder::new(Compression::Lz4).with_threads(3);
        let chunks = encoder.encode_watched(&content, &Region::full(size), Some(&log));
        let log = log.0.into_inner().unwrap();
        assert_eq!(log.len(), sections);
        assert!(log.iter().all(|(thread, start, _)| *thread < 3 && *start < sections as u64), "{log:?}");
        assert!(sections > 1 || log[0].0 == 0, "{log:?}");
        let bytes: usize = log.iter().map(|(_, _, bytes)| bytes).sum();
        assert_eq!(bytes, chunks.iter().map(Vec::len).sum::<usize>());
    }
}

/// Well compressible pixels first, so that chunks grow, then noise, so that a grown one does not fit.
#[test]
fn chunks_stay_short_when_compressibility_changes() {
    let (size, format) = (Size::new(1280, 1000).unwrap(), Format::Xrgb8888);
    for compression in [Compression::None, Compression::Lz4, Compression::Zstd(1), Compression::Zstd(100)] {
        let mut picture = Picture::new(size, format);
        picture.paint(size.rect(), Paint::Solid(7));
        picture.paint(Rect::new(200, 500, 900, 300), Paint::Noise(5));
        let mut ours = Content::new(size, format);
        let mut theirs = ours.clone();
        let changed = absorb(&mut ours, &picture, &Buffer { offset: 0, padding: 0 }, &Region::full(size));
        let chunks = Encoder::new(compression).encode(&ours, &changed);
        if compression != Compression::None {
            let bytes: usize = chunks.iter().map(Vec::len).sum();
            assert!(bytes < 900 * 300 * 4 + 400_000, "solid parts cost little: {bytes}");
        }
        deliver(&mut theirs, chunks, 9);
        assert!(theirs.pixels() == ours.pixels());
    }
}

#[test]
fn an_unchanged_buffer_changes_nothing() {
    let (size, format) = (Size::new(333, 77).unwrap(), Format::Rgb565);
    let mut picture = Picture::new(size, format);
    picture.paint(size.rect(), Paint::Noise(3));
    let mut content = Content::new(size, format);
    let buffer = Buffer { offset: 3, padding: 10 };
    assert_eq!(absorb(&mut content, &picture, &buffer, &Region::full(size)).bounds(), Some(size.rect()));
    assert!(absorb(&mut content, &picture, &buffer, &Region::full(size)).is_empty());
    assert!(Encoder::new(Compression::default()).encode(&content, &Region::new()).is_empty());
}

#[test]
fn damage_and_changes_outside_the_surface_are_ignored() {
    let (size, format) = (Size::new(20, 20).unwrap(), Format::Xrgb8888);
    let mut picture = Picture::new(size, format);
    picture.paint(size.rect(), Paint::Solid(1));
    let mut content = Content::new(size, format);
    let damage = Region::from(Rect::new(10, 10, u32::MAX, u32::MAX));
    let changed = absorb(&mut content, &picture, &Buffer { offset: 0, padding: 0 }, &damage);
    assert_eq!(changed.rects(), [Rect::new(10, 10, 10, 10)]);
    assert_eq!(Encoder::new(Compression::None).encode(&content, &damage).len(), 1);
}

#[test]
fn a_read_error_is_returned() {
    let (size, format) = (Size::new(20, 20).unwrap(), Format::Xrgb8888);
    let layout = Layout::new(0, 80, size, format).unwrap();
    let result = Content::new(size, format).absorb(&layout, &Region::full(size), |_, _| Err("short"));
    assert_eq!(result.unwrap_err(), "short");
}

#[test]
fn scattered_changes_stay_separate() {
    let (size, format) = (Size::new(640, 480).unwrap(), Format::Argb8888);
    let mut picture = Picture::new(size, format);
    let spots = [Rect::new(3, 5, 9, 17), Rect::new(300, 8, 2, 16), Rect::new(20, 400, 100, 3)];
    for spot in spots {
        picture.paint(spot, Paint::Solid(200));
    }
    let mut content = Content::new(size, format);
    let changed = absorb(&mut content, &picture, &Buffer { offset: 0, padding: 0 }, &Region::full(size));
    let mut rects = changed.rects().to_vec();
    rects.sort_by_key(|rect| (rect.y, rect.x));
    assert_eq!(rects, spots);
}

#[test]
fn a_fill_is_one_colour_everywhere() {
    let mut content = Content::new(Size::new(3, 2).unwrap(), Format::Rgb565);
    content.fill(&[1, 2]);
    assert_eq!(content.pixels(), [1, 2].repeat(6));
    assert_eq!(content.row(1, 1, 2), [1, 2, 1, 2]);
}

#[test]
fn layouts_are_checked() {
    let (size, format) = (Size::new(10, 3).unwrap(), Format::Xrgb8888);
    assert_eq!(Layout::new(8, 48, size, format).unwrap().end(), 8 + 2 * 48 + 40);
    assert!(Layout::new(0, 39, size, format).is_err());
    assert!(Layout::new(u64::MAX - 100, 48, size, format).is_err());
    assert!(Layout::new(0, u64::MAX / 2, size, format).is_err());
}
