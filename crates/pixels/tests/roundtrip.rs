//! A program paints into its buffers and commits; the display side gets the chunks of each update in any
//! order. After every delivery both contents equal what the program's buffer shows, no matter what was folded into
//! one update and what was encoded in between and never sent.

mod program;

use std::sync::atomic::AtomicU8;
use std::time::Duration;

use program::{Buffer, PLAIN, Paint, Picture, absorb, paint, rect, shuffle};
use proptest::prelude::*;
use wayferry_pixels::{
    Allowance, Compression, Content, Decoder, Draft, Encoder, Format, Layout, MAX_CHUNK, Opened, Rect,
    Region, Size, Wants, Watch, Workspace,
};

#[derive(Clone, Debug)]
struct Commit {
    /// What is painted, and damaged.
    painted: Vec<(Rect, Paint)>,
    /// What is damaged beyond it.
    overdamage: Vec<Rect>,
    buffer: Buffer,
    then: Then,
}

/// What happens after a commit.
#[derive(Clone, Copy, Debug)]
enum Then {
    /// Nothing: the next one is folded into it.
    Fold,
    /// The changes so far are sent, with their chunks in an order made from this number.
    Deliver(u64),
    /// An update is made, and taken back at once.
    TakeBack,
    /// An update is made, and taken back after the next commit.
    TakeBackLater,
}

#[derive(Clone, Debug)]
struct Story {
    size: Size,
    format: Format,
    compression: Compression,
    commits: Vec<Commit>,
}

fn story() -> impl Strategy<Value = Story> {
    let side = prop_oneof![1..4u32, 1..40u32, 100..300u32, 300..700u32];
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
    let then = prop_oneof![
        2 => Just(Then::Fold),
        4 => any::<u64>().prop_map(Then::Deliver),
        1 => Just(Then::TakeBack),
        1 => Just(Then::TakeBackLater),
    ];
    (
        prop::collection::vec((rect(size), paint()), 0..8),
        prop::collection::vec(rect(size), 0..4),
        (0..50u64, prop_oneof![Just(0u64), 1..70u64, 4000..5000u64]),
        then,
    )
        .prop_map(|(painted, overdamage, (offset, padding), then)| Commit {
            painted,
            overdamage,
            buffer: Buffer { offset, padding },
            then,
        })
}

/// As [`absorb`], from memory that is mapped.
fn absorb_shared(draft: &mut Draft, picture: &Picture, buffer: &Buffer, damage: &Region) -> Region {
    let (size, format) = (draft.content().size(), draft.content().format());
    let stride = draft.content().stride() as u64 + buffer.padding;
    let layout = Layout::new(buffer.offset, stride, size, format).unwrap();
    let memory: Vec<AtomicU8> = picture.memory(buffer, &layout).into_iter().map(AtomicU8::new).collect();
    draft.absorb_shared(&layout, damage, &memory, 1)
}

/// Encodes and delivers an update; gives the bytes that it took and where it was painted.
fn send(encoder: &mut Encoder, draft: &mut Draft, theirs: &mut Content, salt: u64) -> (usize, Region) {
    if draft.is_fresh() {
        *theirs = Content::new(draft.content().size(), draft.content().format());
    }
    let mut chunks = encoder.encode(draft);
    assert!(draft.changed().is_empty() && !draft.is_fresh());
    let bytes = chunks.iter().map(Vec::len).sum();
    assert!(chunks.iter().all(|chunk| chunk.len() <= MAX_CHUNK));
    shuffle(&mut chunks, salt);
    (bytes, Decoder::new().apply(theirs, &chunks).unwrap())
}

fn play(story: &Story) -> Result<(), TestCaseError> {
    let mut picture = Picture::new(story.size, story.format);
    let mut draft = Draft::new(story.size, story.format);
    // the same commits and deliveries, but nothing is ever taken back
    let mut twin = Draft::new(story.size, story.format);
    let mut third = Draft::new(story.size, story.format);
    let mut theirs = draft.content().clone();
    let mut encoder = Encoder::new(story.compression);
    // Works in the same memory, and otherwise: nothing depends on what is in it.
    let workspace = Workspace::default();
    let mut twins_own = Encoder::new(story.compression).with_workspace(workspace.clone());
    let mut other = Encoder::new(Compression::Zstd(3)).with_workspace(workspace);
    let mut later = false;
    for commit in &story.commits {
        let mut damage: Region = commit.overdamage.iter().copied().collect();
        for (rect, paint) in &commit.painted {
            picture.paint(*rect, *paint);
            damage.add(*rect);
        }
        let differs = absorb(&mut draft, &picture, &commit.buffer, &damage);
        let in_one_pass = absorb_shared(&mut twin, &picture, &commit.buffer, &damage);
        absorb_shared(&mut third, &picture, &commit.buffer, &damage);
        prop_assert!(draft.content().pixels() == picture.bytes, "content equals the buffer");
        prop_assert!(twin.content().pixels() == picture.bytes, "read either way");
        prop_assert_eq!(&in_one_pass, &differs);
        prop_assert!(differs.rects().iter().all(|rect| covers(&damage, *rect)), "inside the damage");
        if std::mem::take(&mut later) {
            prop_assert!(draft.take_back());
        }
        let changed = draft.changed().clone();
        match commit.then {
            Then::Fold => {}
            Then::Deliver(salt) => {
                let fresh = draft.is_fresh();
                let (bytes, painted) = send(&mut encoder, &mut draft, &mut theirs, salt);
                prop_assert!(theirs.pixels() == draft.content().pixels(), "both contents are equal");
                prop_assert!(painted.rects().iter().all(|rect| covers(&changed, *rect)) || !fresh);
                other.encode(&mut third);
                let twins: usize = twins_own.encode(&mut twin).iter().map(Vec::len).sum();
                prop_assert!(fresh || bytes == twins, "what was taken back leaves no trace");
            }
            Then::TakeBack => {
                let fresh = draft.is_fresh();
                encoder.encode(&mut draft);
                prop_assert!(draft.take_back() && !draft.take_back());
                prop_assert_eq!(draft.changed().area(), changed.area());
                prop_assert_eq!(draft.is_fresh(), fresh);
            }
            Then::TakeBackLater => {
                encoder.encode(&mut draft);
                later = true;
            }
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
    #![proptest_config(ProptestConfig::with_cases(200))]

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
        let mut draft = Draft::new(size, format);
        let damage = if whole { Region::full(size) } else { cell.into() };
        let changed = absorb(&mut draft, &picture, &PLAIN, &damage);
        let chunks = Encoder::new(compression).encode(&mut draft);
        let bytes: usize = chunks.iter().map(Vec::len).sum();
        prop_assert!(bytes <= 4150, "{bytes} bytes, {:?}", changed.rects());
        prop_assert_eq!(chunks.len(), 1);
    }
}

/// A draft large enough for several threads, and what the display side has.
fn large() -> impl Strategy<Value = (Draft, Content)> {
    let sides = (300..1400u32, 300..1000u32, 0..Format::ALL.len());
    sides.prop_flat_map(|(width, height, format)| {
        let (size, format) = (Size::new(width, height).unwrap(), Format::ALL[format]);
        let salts = prop_oneof![any::<u64>().prop_map(Paint::Noise), any::<u64>().prop_map(Paint::Text)];
        let painted = prop::collection::vec((rect(size), salts), 1..6);
        let scrolled = prop_oneof![Just(None), (rect(size), -90..90i32).prop_map(Some)];
        (painted, scrolled).prop_map(move |(painted, scrolled)| {
            let mut picture = Picture::new(size, format);
            let mut draft = Draft::new(size, format);
            let mut theirs = draft.content().clone();
            painted.iter().for_each(|(rect, paint)| picture.paint(*rect, *paint));
            absorb(&mut draft, &picture, &PLAIN, &Region::full(size));
            if let Some((rect, distance)) = scrolled {
                send(&mut Encoder::new(Compression::Lz4), &mut draft, &mut theirs, 3);
                picture.paint(rect, Paint::Scroll(distance));
                absorb(&mut draft, &picture, &PLAIN, &Region::full(size));
            }
            (draft, theirs)
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_number_of_threads_makes_the_same_chunks(
        (mut draft, mut theirs) in large(), threads in 2..8usize, compression in 0..3usize,
    ) {
        let compression = [Compression::None, Compression::Lz4, Compression::Zstd(1)][compression];
        let alone = Encoder::new(compression).encode(&mut draft);
        let mut together = Encoder::new(compression).with_threads(threads);
        for _ in 0..2 {
            prop_assert!(draft.take_back());
            prop_assert!(together.encode(&mut draft) == alone, "the second time with used memory");
        }
        Decoder::new().apply(&mut theirs, &alone).unwrap();
        prop_assert!(theirs.pixels() == draft.content().pixels());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// In steps, each an update of its own, the display side gets the same content, whenever the steps are made.
    #[test]
    fn steps_give_the_same_content(
        (mut draft, mut theirs) in large(), threads in 1..4usize, at_once in 1..9usize, salt in any::<u64>(),
    ) {
        let whole = Encoder::new(Compression::Lz4).encode(&mut draft);
        prop_assert!(draft.take_back());
        let mut encoder = Encoder::new(Compression::Lz4).with_threads(threads);
        encoder.begin(&mut draft);
        prop_assert!(draft.is_making() && draft.changed().is_empty() && !draft.is_fresh());
        let mut all = Vec::new();
        for step in 1.. {
            let before = draft.unmade();
            let mut chunks = match step == at_once {
                true => encoder.finish(&mut draft, None),
                false => encoder.step(&mut draft, None),
            };
            prop_assert!(step == at_once || before - draft.unmade() <= encoder.slice());
            all.extend(chunks.iter().cloned());
            shuffle(&mut chunks, salt);
            Decoder::new().apply(&mut theirs, &chunks).unwrap();
            if !draft.is_making() {
                prop_assert_eq!(draft.can_take_back(), step == 1);
                break;
            }
        }
        prop_assert!(theirs.pixels() == draft.content().pixels());
        prop_assert!(all == whole, "the same chunks, too");
        prop_assert_eq!(draft.unmade(), 0);
    }
}

/// A picture of 4K, of which a little changes, compared by several threads.
#[test]
fn any_number_of_threads_finds_the_same_changes() {
    let (size, format) = (Size::new(3840, 2160).unwrap(), Format::Xrgb8888);
    let mut picture = Picture::new(size, format);
    picture.paint(size.rect(), Paint::Text(3));
    let mut drafts = [1, 2, 3, 4, 5].map(|threads| (threads, Draft::new(size, format)));
    let memory = |picture: &Picture| picture.bytes.iter().copied().map(AtomicU8::new).collect::<Vec<_>>();
    let layout = Layout::new(0, 3840 * 4, size, format).unwrap();
    let rows = [(0, 0, 3840, 1), (3839, 0, 1, 2160), (700, 539, 9, 3), (5, 2159, 60, 1)];
    for rect in [(0, 0, 1, 1)].into_iter().chain(rows) {
        picture.paint(Rect::new(rect.0, rect.1, rect.2, rect.3), Paint::Noise(rect.0.into()));
        let memory = memory(&picture);
        let changes = drafts.each_mut().map(|(threads, draft)| {
            let changed = draft.absorb_shared(&layout, &Region::full(size), &memory, *threads);
            assert!(draft.content().pixels() == picture.bytes, "{threads} threads");
            changed
        });
        assert!(changes.iter().all(|changed| *changed == changes[0]), "{rect:?}");
    }
}

/// What changes the content while an update of it is being made gives that up: the next one says everything.
#[test]
fn an_update_is_given_up_when_the_content_changes_under_it() {
    let size = Size::new(700, 700).unwrap();
    let begun = |encoder: &mut Encoder| {
        let mut draft = drawn(size, Paint::Noise(1));
        encoder.begin(&mut draft);
        assert!(!encoder.step(&mut draft, None).is_empty() && draft.is_making() && !draft.take_back());
        assert!(encoder.improve(&mut draft, &ANY, None).is_empty() && draft.wants() == Wants::default());
        draft
    };
    let mut encoder = Encoder::new(Compression::Lz4);
    let mut picture = Picture::new(size, Format::Xrgb8888);
    picture.paint(size.rect(), Paint::Noise(1));
    picture.paint(Rect::new(9, 9, 9, 9), Paint::Solid(1));
    for change in 0..3 {
        let mut draft = begun(&mut encoder);
        match change {
            0 => drop(absorb(&mut draft, &picture, &PLAIN, &Region::from(Rect::new(9, 9, 9, 9)))),
            1 => draft.renew(),
            _ => encoder.begin(&mut draft),
        }
        assert_eq!((draft.is_fresh(), draft.is_making()), (change < 2, change == 2));
        let chunks = match change {
            2 => encoder.finish(&mut draft, None),
            _ => encoder.encode(&mut draft),
        };
        let mut theirs = Content::new(size, Format::Xrgb8888);
        Decoder::new().apply(&mut theirs, &chunks).unwrap();
        assert!(theirs.pixels() == draft.content().pixels());
    }
    let mut draft = drawn(size, Paint::Noise(1));
    encoder.begin(&mut draft);
    assert!(draft.take_back() && !draft.is_making() && draft.is_fresh(), "nothing of it was made");
}

const ANY: Allowance = Allowance { bytes: 1 << 20, quality: 50, now: Duration::from_secs(9) };

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
    for (height, sections) in [(100, 1), (1000, 5)] {
        let size = Size::new(1300, height).unwrap();
        let mut draft = drawn(size, Paint::Noise(1));
        let log = Log::default();
        let mut encoder = Encoder::new(Compression::Lz4).with_threads(3);
        let chunks = encoder.encode_watched(&mut draft, Some(&log));
        let log = log.0.into_inner().unwrap();
        assert_eq!(log.len(), sections);
        assert!(log.iter().all(|(thread, start, _)| *thread < 3 && *start < sections as u64), "{log:?}");
        assert!(sections > 1 || log[0].0 == 0, "{log:?}");
        let bytes: usize = log.iter().map(|(_, _, bytes)| bytes).sum();
        assert_eq!(bytes, chunks.iter().map(Vec::len).sum::<usize>());
    }
}

/// A draft of this picture that no display has been sent.
fn drawn(size: Size, paint: Paint) -> Draft {
    let mut picture = Picture::new(size, Format::Xrgb8888);
    picture.paint(size.rect(), paint);
    let mut draft = Draft::new(size, Format::Xrgb8888);
    absorb(&mut draft, &picture, &PLAIN, &Region::full(size));
    draft
}

/// Well compressible pixels first, so that chunks grow, then noise, so that a grown one does not fit.
#[test]
fn chunks_stay_short_when_compressibility_changes() {
    let (size, format) = (Size::new(1280, 1000).unwrap(), Format::Xrgb8888);
    for compression in [Compression::None, Compression::Lz4, Compression::Zstd(1), Compression::Zstd(100)] {
        let mut picture = Picture::new(size, format);
        picture.paint(size.rect(), Paint::Solid(7));
        picture.paint(Rect::new(200, 500, 900, 300), Paint::Noise(5));
        let mut draft = Draft::new(size, format);
        let mut theirs = draft.content().clone();
        absorb(&mut draft, &picture, &PLAIN, &Region::full(size));
        let (bytes, _) = send(&mut Encoder::new(compression), &mut draft, &mut theirs, 9);
        if compression != Compression::None {
            assert!(bytes < 900 * 300 * 4 + 50_000, "solid parts cost little: {bytes}");
        }
        assert!(theirs.pixels() == draft.content().pixels());
    }
}

#[test]
fn an_unchanged_buffer_changes_nothing() {
    let (size, format) = (Size::new(333, 77).unwrap(), Format::Rgb565);
    let mut picture = Picture::new(size, format);
    picture.paint(size.rect(), Paint::Noise(3));
    let mut draft = Draft::new(size, format);
    let buffer = Buffer { offset: 3, padding: 10 };
    assert_eq!(absorb(&mut draft, &picture, &buffer, &Region::full(size)).bounds(), Some(size.rect()));
    let mut encoder = Encoder::new(Compression::default());
    assert!(!encoder.encode(&mut draft).is_empty());
    assert!(absorb(&mut draft, &picture, &buffer, &Region::full(size)).is_empty());
    assert!(encoder.encode(&mut draft).is_empty());
    // what changes back has not changed
    for paint in [Paint::Solid(9), Paint::Noise(3)] {
        picture.paint(size.rect(), paint);
        absorb(&mut draft, &picture, &buffer, &Region::full(size));
    }
    assert_eq!(draft.changed().area(), size.rect().area());
    assert!(encoder.encode(&mut draft).is_empty());
}

#[test]
fn damage_and_changes_outside_the_surface_are_ignored() {
    let (size, format) = (Size::new(20, 20).unwrap(), Format::Xrgb8888);
    let mut picture = Picture::new(size, format);
    picture.paint(size.rect(), Paint::Solid(1));
    let mut draft = Draft::new(size, format);
    let damage = Region::from(Rect::new(10, 10, u32::MAX, u32::MAX));
    let changed = absorb(&mut draft, &picture, &PLAIN, &damage);
    assert_eq!(changed.rects(), [Rect::new(10, 10, 10, 10)]);
    assert_eq!(Encoder::new(Compression::None).encode(&mut draft).len(), 1);
}

#[test]
fn a_read_error_is_returned() {
    let (size, format) = (Size::new(20, 20).unwrap(), Format::Xrgb8888);
    let layout = Layout::new(0, 80, size, format).unwrap();
    let result = Content::new(size, format).absorb(&layout, &Region::full(size), |_, _| Err("short"));
    assert_eq!(result.unwrap_err(), "short");
    // a draft does not know then what has changed
    let mut draft = Draft::new(size, format);
    let damage = Region::from(Rect::new(3, 4, 90, 5));
    assert_eq!(draft.absorb(&layout, &damage, |_, _| Err("short")).unwrap_err(), "short");
    assert_eq!(draft.changed().rects(), [Rect::new(3, 4, 17, 5)]);
}

#[test]
fn scattered_changes_stay_separate() {
    let (size, format) = (Size::new(640, 480).unwrap(), Format::Argb8888);
    let mut picture = Picture::new(size, format);
    let spots = [Rect::new(3, 5, 9, 17), Rect::new(300, 8, 2, 16), Rect::new(20, 400, 100, 3)];
    for spot in spots {
        picture.paint(spot, Paint::Solid(200));
    }
    let changed = absorb(&mut Draft::new(size, format), &picture, &PLAIN, &Region::full(size));
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

/// A page beside a sidebar: what comes in is sent, what is there already is not.
#[test]
fn a_scrolled_page_costs_what_comes_in() {
    let (size, format) = (Size::new(700, 600).unwrap(), Format::Xrgb8888);
    let page = Rect::new(90, 50, 550, 540);
    for distance in [-170, -33, 9, 101] {
        let mut picture = Picture::new(size, format);
        picture.paint(size.rect(), Paint::Noise(5));
        let mut draft = Draft::new(size, format);
        let mut theirs = draft.content().clone();
        let mut encoder = Encoder::new(Compression::default());
        let cursor = Rect::new(300, 300, 9, 17);
        let mut bytes = 0;
        for paint in [Paint::Noise(8), Paint::Scroll(distance)] {
            picture.paint(page, paint);
            picture.paint(cursor, Paint::Solid(0x77));
            absorb(&mut draft, &picture, &PLAIN, &page.into());
            (bytes, _) = send(&mut encoder, &mut draft, &mut theirs, 4);
            assert!(theirs.pixels() == draft.content().pixels());
        }
        assert!(bytes < 1000, "{bytes} bytes for {distance} rows: only the cursor is new");
    }
}

/// Two commits that scroll become one update whose copies name what the display has.
#[test]
fn folded_scrolls_are_one_copy() {
    let (size, format) = (Size::new(640, 480).unwrap(), Format::Rgb565);
    let mut picture = Picture::new(size, format);
    picture.paint(size.rect(), Paint::Noise(2));
    let mut draft = Draft::new(size, format);
    let mut theirs = draft.content().clone();
    let mut encoder = Encoder::new(Compression::default());
    absorb(&mut draft, &picture, &PLAIN, &Region::full(size));
    send(&mut encoder, &mut draft, &mut theirs, 1);
    for _ in 0..3 {
        picture.paint(size.rect(), Paint::Scroll(-20));
        absorb(&mut draft, &picture, &PLAIN, &Region::full(size));
    }
    let (bytes, _) = send(&mut encoder, &mut draft, &mut theirs, 1);
    assert!(theirs.pixels() == draft.content().pixels());
    assert!(bytes < 200, "{bytes} bytes: the last rows stay as they are");
}

#[test]
fn a_replaced_content_is_an_update_or_a_new_beginning() {
    let size = Size::new(200, 130).unwrap();
    let mut draft = drawn(size, Paint::Text(3));
    let mut theirs = Content::new(size, Format::Xrgb8888);
    let mut encoder = Encoder::new(Compression::default());
    send(&mut encoder, &mut draft, &mut theirs, 1);
    let mut other = drawn(size, Paint::Text(3)).content().clone();
    draft.replace(other.clone());
    assert!(draft.changed().is_empty() && !draft.is_fresh());
    other = drawn(size, Paint::Text(4)).content().clone();
    draft.replace(other.clone());
    assert!(!draft.is_fresh());
    send(&mut encoder, &mut draft, &mut theirs, 1);
    assert!(theirs.pixels() == other.pixels());
    other = drawn(Size::new(20, 13).unwrap(), Paint::Text(4)).content().clone();
    draft.replace(other.clone());
    assert!(draft.is_fresh() && !draft.take_back());
    send(&mut encoder, &mut draft, &mut theirs, 1);
    assert!(theirs.pixels() == other.pixels());
}

/// An update that has been handed over cannot be taken back.
#[test]
fn a_forgotten_update_stays() {
    let mut draft = drawn(Size::new(70, 70).unwrap(), Paint::Text(3));
    assert!(!draft.take_back(), "there is none yet");
    Encoder::new(Compression::None).encode(&mut draft);
    draft.forget_last();
    assert!(!draft.take_back() && draft.changed().is_empty());
}

#[test]
fn an_opened_chunk_fits_its_surface_only() {
    let size = Size::new(70, 70).unwrap();
    let mut draft = drawn(size, Paint::Text(3));
    let chunk = Encoder::new(Compression::default()).encode(&mut draft).remove(0);
    let mut decoder = Decoder::new();
    let opened: Vec<Opened> = vec![decoder.open(size, Format::Xrgb8888, &chunk).unwrap()];
    assert!(opened[0].memory() >= 70 * 70);
    let mut target = Content::new(size, Format::Xrgb8888);
    decoder.paint(&mut target, &opened).unwrap();
    assert!(target.pixels() == draft.content().pixels());
    for (size, format) in [(Size::new(70, 71).unwrap(), Format::Xrgb8888), (size, Format::Argb8888)] {
        assert!(decoder.paint(&mut Content::new(size, format), &opened).is_err());
    }
}
