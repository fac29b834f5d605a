//! A program paints, and what it shows leaves over a link that takes little at once. What the draft does not count as
//! lossy is exact on the display side, no matter what was painted, scrolled, taken back and told better in between; and
//! at rest all is.

mod program;

use std::collections::BTreeMap;
use std::time::Duration;

use program::{PLAIN, Paint, Picture, absorb, paint, rect, shuffle};
use proptest::prelude::*;
use wayferry_pixels::video::{self, Coming, Frame, Videos};
use wayferry_pixels::{
    Allowance, Compression, Content, Decoder, Draft, Encoder, Format, MAX_VIDEOS, Rect, Region, Size, Video,
};

/// One thing that happens.
#[derive(Clone, Debug)]
enum Step {
    Paint(Rect, Paint),
    /// The changes so far are sent; so many bytes are allowed, and the chunks come in some order.
    Send(u64, u64),
    /// A picture there changes so many times, and each is sent.
    Video(Rect, u64),
    /// They are sent, and taken back before anybody got them.
    TakeBack(u64),
    Improve(u64),
    Refine(u64),
    /// So many milliseconds pass.
    Wait(u64),
}

#[derive(Clone, Debug)]
struct Story {
    size: Size,
    format: Format,
    threads: usize,
    steps: Vec<Step>,
}

fn story() -> impl Strategy<Value = Story> {
    let side = prop_oneof![1..40u32, 100..300u32, 300..500u32];
    (side.clone(), side, 0..5usize, 1..3usize).prop_flat_map(|(width, height, format, threads)| {
        let size = Size::new(width, height).unwrap();
        prop::collection::vec(step(size), 1..14).prop_map(move |steps| Story {
            size,
            format: Format::ALL[format],
            threads,
            steps,
        })
    })
}

fn step(size: Size) -> impl Strategy<Value = Step> {
    let bytes = prop_oneof![0..2000u64, 2000..100_000u64];
    prop_oneof![
        6 => (rect(size), paint()).prop_map(|(rect, paint)| Step::Paint(rect, paint)),
        4 => (bytes.clone(), any::<u64>()).prop_map(|(bytes, salt)| Step::Send(bytes, salt)),
        1 => (rect(size), 1..20u64).prop_map(|(rect, times)| Step::Video(rect, times)),
        1 => bytes.clone().prop_map(Step::TakeBack),
        2 => bytes.clone().prop_map(Step::Improve),
        2 => bytes.prop_map(Step::Refine),
        2 => (0..200u64).prop_map(Step::Wait),
    ]
}

/// The display side forgets a video after 64 updates without a frame, and every step may be one.
#[test]
fn a_video_ends_when_many_steps_have_no_frame_of_it() {
    let size = Size::new(2048, 1536).unwrap();
    let (mut pair, mut picture) = shown(size, Paint::Solid(5));
    pair.send(u64::MAX, 0);
    let (here, beside) = (Rect::new(0, 0, 256, 256), Rect::new(0, 256, 2048, 1280));
    for time in 0..9 {
        picture.paint(here, Paint::Photo(2 * time));
        absorb(&mut pair.draft, &picture, &PLAIN, &Region::from(here));
        pair.now += Duration::from_millis(33);
        pair.send(16_000, time);
    }
    let mut steps = 0;
    for time in 0..6 {
        picture.paint(beside, Paint::Solid(time as u8));
        absorb(&mut pair.draft, &picture, &PLAIN, &Region::from(beside));
        let allowance = pair.allow(u64::MAX);
        pair.encoder.begin_within(&mut pair.draft, &allowance, Some(&mut pair.codec));
        while pair.draft.is_making() {
            assert!(pair.draft.has_video(0) || steps > 40, "after {steps} steps");
            pair.encoder.step(&mut pair.draft, None);
            steps += 1;
        }
        assert!(!pair.draft.has_video(0) || steps < 64, "after {steps} steps");
    }
    assert!(steps > 64);
}

/// Both sides.
struct Pair {
    encoder: Encoder,
    draft: Draft,
    theirs: Content,
    codec: Codec,
    videos: BTreeMap<u8, Rect>,
    near: Option<(u32, u32)>,
    now: Duration,
}

/// Frames that say nothing of what they show; some cannot be made.
#[derive(Default)]
struct Codec {
    made: u64,
}

impl Videos for Codec {
    fn frame(&mut self, _: &Content, _: Video) -> Option<Coming> {
        self.made += 1;
        let bytes = vec![self.made as u8; 900 * self.made as usize];
        if self.made.is_multiple_of(37) {
            // Its maker dies.
            return Some(Coming::new(std::sync::mpsc::channel().1, 900));
        }
        (!self.made.is_multiple_of(50)).then(|| Coming::ready(bytes))
    }
}

impl Pair {
    fn new(size: Size, format: Format, threads: usize) -> Self {
        Self {
            encoder: Encoder::new(Compression::Zstd(1)).with_threads(threads),
            draft: Draft::new(size, format),
            theirs: Content::new(size, format),
            codec: Codec::default(),
            videos: BTreeMap::new(),
            near: None,
            now: Duration::from_secs(1),
        }
    }

    fn allow(&self, bytes: u64) -> Allowance {
        Allowance { bytes, quality: 50, now: self.now }
    }

    fn send(&mut self, bytes: u64, salt: u64) -> usize {
        let allowance = self.allow(bytes);
        let chunks = self.encoder.encode_within(&mut self.draft, &allowance, Some(&mut self.codec), None);
        self.deliver(chunks, salt)
    }

    /// As [`Self::send`], but in updates of a step each, or several.
    fn send_in_steps(&mut self, bytes: u64, salt: u64) {
        let allowance = self.allow(bytes);
        self.encoder.begin_within(&mut self.draft, &allowance, Some(&mut self.codec));
        let mut gathered = Vec::new();
        for turn in 0.. {
            gathered.extend(match salt.rotate_right(turn) % 8 {
                0 => self.encoder.finish(&mut self.draft, None),
                _ => self.encoder.step(&mut self.draft, None),
            });
            let last = !self.draft.is_making();
            if last || salt.rotate_left(turn) % 4 > 0 {
                self.deliver(std::mem::take(&mut gathered), salt);
            }
            if last {
                break;
            }
        }
    }

    fn improve(&mut self, bytes: u64) -> usize {
        let allowance = self.allow(bytes);
        let chunks = self.encoder.improve(&mut self.draft, &allowance, self.near);
        self.deliver(chunks, bytes)
    }

    fn refine(&mut self, bytes: u64) -> usize {
        let allowance = self.allow(bytes);
        let chunks = self.encoder.refine(&mut self.draft, &allowance);
        self.deliver(chunks, bytes)
    }

    fn deliver(&mut self, mut chunks: Vec<Vec<u8>>, salt: u64) -> usize {
        let (frames, others) = video::split(&chunks, self.theirs.size()).unwrap();
        let mut others: Vec<Vec<u8>> = others.into_iter().cloned().collect();
        shuffle(&mut others, salt);
        Decoder::new().apply(&mut self.theirs, &others).unwrap();
        for Frame { video: Video { stream, rect, key }, data, .. } in frames {
            assert!(usize::from(stream) < MAX_VIDEOS && self.draft.has_video(stream));
            let before = self.videos.insert(stream, rect);
            assert!(key || before == Some(rect), "it stays where it begins");
            for y in rect.y..rect.bottom() {
                let row = vec![data.first().copied().unwrap_or_default(); rect.width as usize * 4];
                self.theirs.write_row(y, rect.x, &row);
            }
        }
        chunks.drain(..).map(|chunk| chunk.len()).sum()
    }

    /// Whether pixels are not as they were when the last update was made where they are taken for exact.
    fn errs(&self, sent: &[u8]) -> bool {
        let (size, pixel) = (self.theirs.size(), self.theirs.format().bytes_per_pixel());
        let lossy: Vec<Rect> = self.draft.lossy().collect();
        let counted = |x: u32, y: u32| lossy.iter().any(|rect| rect.contains(Rect::new(x, y, 1, 1)));
        let rows = (0..size.height()).zip(sent.chunks(size.width() as usize * pixel));
        rows.filter(|(y, ours)| self.theirs.row(*y, 0, size.width()) != *ours).any(|(y, ours)| {
            let theirs = self.theirs.row(y, 0, size.width()).chunks(pixel);
            (0..)
                .zip(theirs.zip(ours.chunks(pixel)))
                .any(|(x, (theirs, ours))| theirs != ours && !counted(x, y))
        })
    }

    /// Pixels that are not as they were when the last update was made.
    fn wrong(&self, sent: &[u8]) -> u64 {
        let pixel = self.draft.content().format().bytes_per_pixel();
        let pairs = self.theirs.pixels().chunks(pixel).zip(sent.chunks(pixel));
        pairs.filter(|(theirs, ours)| theirs != ours).count() as u64
    }
}

fn play(story: &Story) -> Result<(), TestCaseError> {
    let mut picture = Picture::new(story.size, story.format);
    let mut pair = Pair::new(story.size, story.format, story.threads);
    let mut sent = picture.bytes.clone();
    for step in &story.steps {
        match *step {
            Step::Paint(rect, paint) => {
                picture.paint(rect, paint);
                absorb(&mut pair.draft, &picture, &PLAIN, &Region::from(rect));
            }
            Step::Send(bytes, salt) => {
                pair.send_in_steps(bytes, salt);
                sent.clone_from(&picture.bytes);
            }
            Step::Video(rect, times) => {
                for time in 0..times {
                    picture.paint(rect, Paint::Photo(2 * time));
                    absorb(&mut pair.draft, &picture, &PLAIN, &Region::from(rect));
                    pair.now += Duration::from_millis(33);
                    pair.send(2000, time);
                }
                sent.clone_from(&picture.bytes);
            }
            Step::TakeBack(bytes) => {
                let allowance = pair.allow(bytes);
                let Pair { encoder, draft, codec, .. } = &mut pair;
                let chunks = encoder.encode_within(draft, &allowance, Some(codec), None);
                let videos = video::split(&chunks, story.size).unwrap().0.len();
                prop_assert_eq!(draft.can_take_back(), videos == 0, "frames build upon each other");
                if !draft.take_back() {
                    pair.deliver(chunks, 0);
                    sent.clone_from(&picture.bytes);
                }
            }
            Step::Improve(bytes) => drop(pair.improve(bytes)),
            Step::Refine(bytes) => drop(pair.refine(bytes)),
            Step::Wait(ms) => pair.now += Duration::from_millis(ms),
        }
        prop_assert!(!pair.errs(&sent), "pixels are wrong that are taken for exact");
        prop_assert!(pair.wrong(&sent) <= pair.draft.lossy_area());
        prop_assert_eq!(pair.draft.is_exact(), pair.draft.lossy_area() == 0);
    }
    pair.send(1000, 1);
    let mut steps = 0;
    while !pair.draft.is_exact() {
        pair.now += Duration::from_millis(500);
        let wants = pair.draft.wants();
        let due = wants.better.into_iter().chain(wants.exact).min();
        prop_assert!(due.is_some_and(|at| at <= pair.now + Duration::from_secs(1)), "{wants:?}");
        pair.improve(4000);
        pair.refine(4000);
        steps += 1;
        prop_assert!(steps < 1000, "no progress");
    }
    prop_assert_eq!(pair.wrong(&picture.bytes), 0);
    prop_assert_eq!(pair.improve(4000) + pair.refine(4000), 0);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn what_is_not_counted_as_lossy_is_exact(story in story()) {
        play(&story)?;
    }
}

/// A display that shows nothing yet of what a program has painted.
fn shown(size: Size, paint: Paint) -> (Pair, Picture) {
    let mut picture = Picture::new(size, Format::Xrgb8888);
    let mut pair = Pair::new(size, Format::Xrgb8888, 1);
    pair.send(u64::MAX, 0);
    picture.paint(size.rect(), paint);
    if let Paint::Text(_) = paint {
        // Of few colours.
        picture.bytes.as_chunks_mut::<4>().0.iter_mut().for_each(|pixel| *pixel = [pixel[0]; 4]);
    }
    absorb(&mut pair.draft, &picture, &PLAIN, &Region::full(size));
    (pair, picture)
}

fn screen() -> Size {
    Size::new(800, 600).unwrap()
}

#[test]
fn what_is_allowed_is_exact() {
    let (mut pair, picture) = shown(screen(), Paint::Photo(3));
    pair.send(4 * 800 * 600, 0);
    assert!(pair.draft.is_exact());
    assert_eq!(pair.wrong(&picture.bytes), 0);
    assert_eq!(pair.draft.wants(), wayferry_pixels::Wants::default());
}

#[test]
fn a_photograph_is_shown_small_then_whole_then_exact() {
    let (mut pair, picture) = shown(screen(), Paint::Photo(3));
    let first = pair.send(20_000, 0);
    assert!(first < 20_000, "the preview takes {first} bytes");
    assert_eq!(pair.draft.wants().better, Some(pair.now));
    while pair.improve(20_000) > 0 {}
    assert!(pair.draft.wants().better.is_some(), "pictures may change at once");
    pair.now += Duration::from_millis(60);
    let (mut pieces, mut detail) = (0, 0);
    while pair.draft.wants().better.is_some() {
        detail += pair.improve(20_000);
        pieces += 1;
        assert!(pieces < 100);
    }
    assert!(detail > first && pieces > 1, "{pieces} pieces, {detail} bytes");
    assert_eq!(pair.refine(20_000), 0, "it may still change");
    pair.now += Duration::from_millis(90);
    while pair.draft.wants().exact.is_some() {
        let piece = pair.refine(20_000);
        assert!(piece > 0 && piece < 40_000, "a piece of {piece} bytes");
    }
    assert_eq!(pair.wrong(&picture.bytes), 0);
}

#[test]
fn text_is_exact_unless_all_is_too_much() {
    let (mut pair, picture) = shown(screen(), Paint::Text(5));
    pair.send(60_000, 0);
    assert_eq!(pair.wrong(&picture.bytes), 0);
    let (mut pair, picture) = shown(screen(), Paint::Text(5));
    pair.send(2_000, 0);
    assert!(pair.wrong(&picture.bytes) > 0);
    let mut bytes = 0;
    while pair.draft.wants().better.is_some() {
        bytes += pair.improve(10_000);
        assert!(bytes < 1 << 20);
    }
    assert_eq!(pair.wrong(&picture.bytes), 0, "it needs no rest");
}

#[test]
fn news_come_before_what_is_told_better() {
    let (mut pair, mut picture) = shown(screen(), Paint::Photo(3));
    pair.send(20_000, 0);
    picture.paint(Rect::new(0, 0, 10, 10), Paint::Solid(9));
    absorb(&mut pair.draft, &picture, &PLAIN, &Region::full(screen()));
    pair.now += Duration::from_secs(1);
    assert_eq!(pair.improve(20_000) + pair.refine(20_000), 0);
    assert_eq!(pair.draft.wants(), wayferry_pixels::Wants::default());
    pair.send(20_000, 0);
    assert!(pair.improve(20_000) > 0);
}

#[test]
fn what_scrolls_takes_its_grade_along() {
    let (mut pair, mut picture) = shown(screen(), Paint::Photo(3));
    pair.send(20_000, 0);
    let before = pair.draft.lossy_area();
    picture.paint(screen().rect(), Paint::Scroll(40));
    absorb(&mut pair.draft, &picture, &PLAIN, &Region::full(screen()));
    let bytes = pair.send(1 << 20, 0);
    assert!(bytes < 100_000, "{bytes} bytes");
    assert!(pair.draft.lossy_area() <= before);
    assert!(pair.wrong(&picture.bytes) > 0, "what was copied is no better than it was");
}

/// The next picture of a video, and a line of text that changes with it.
fn show_moment(pair: &mut Pair, picture: &mut Picture, here: Rect, text: Rect, time: u64) {
    picture.paint(here, Paint::Photo(2 * time));
    picture.paint(text, Paint::Solid(time as u8));
    absorb(&mut pair.draft, picture, &PLAIN, &Region::full(screen()));
    pair.now += Duration::from_millis(33);
    pair.send(16_000, time);
}

#[test]
fn a_picture_that_changes_all_the_time_becomes_a_video() {
    let (mut pair, mut picture) = shown(screen(), Paint::Text(5));
    pair.send(u64::MAX, 0);
    let (here, text) = (Rect::new(70, 70, 256, 256), Rect::new(600, 400, 100, 20));
    for time in 0..20 {
        show_moment(&mut pair, &mut picture, here, text, time);
        assert_eq!((pair.codec.made > 0, pair.draft.videos()), (time >= 7, usize::from(time >= 7)), "{time}");
        assert_eq!(pair.draft.can_take_back(), time < 7, "frames build upon each other");
        assert!(pair.wrong(&picture.bytes) <= here.area(), "what is beside it is exact");
    }
    pair.now += Duration::from_millis(100);
    while pair.refine(100_000) > 0 {}
    assert_eq!(pair.wrong(&picture.bytes), 0);
    pair.draft.renew();
    assert_eq!(pair.draft.videos(), 0);
}

#[test]
fn text_beside_a_video_that_takes_all_that_is_allowed_is_exact() {
    let (mut pair, mut picture) = shown(screen(), Paint::Text(5));
    pair.send(u64::MAX, 0);
    let (here, text) = (Rect::new(0, 0, 400, 300), Rect::new(448, 400, 320, 60));
    pair.codec.made = 18;
    for time in 0..20 {
        show_moment(&mut pair, &mut picture, here, text, time);
        if pair.draft.videos() > 0 {
            assert!(pair.wrong(&picture.bytes) <= here.area());
        }
    }
    assert_eq!(pair.draft.videos(), 1);
    let lossy: Vec<Rect> = pair.draft.lossy().collect();
    assert!(!lossy.is_empty() && !lossy.iter().any(|rect| rect.intersects(text)), "{lossy:?}");
}

#[test]
fn text_near_the_pointer_comes_first() {
    let (mut pair, picture) = shown(screen(), Paint::Text(5));
    pair.send(2_000, 0);
    let row = |content: &Content, x: u32| content.row(500, x, 8).to_vec();
    let wanted = |x: usize| picture.bytes[(500 * 800 + x) * 4..][..32].to_vec();
    assert_ne!(row(&pair.theirs, 700), wanted(700), "a preview");
    pair.near = Some((703, 500));
    assert!(pair.improve(1_000) > 0);
    assert_eq!(row(&pair.theirs, 700), wanted(700));
    assert_ne!(row(&pair.theirs, 4), wanted(4), "this is far away");
}

/// Makes frames whose bytes come when the test sends them.
struct Slow {
    frames: Vec<std::sync::mpsc::Sender<Vec<u8>>>,
}

impl Videos for Slow {
    fn frame(&mut self, _: &Content, _: Video) -> Option<Coming> {
        let (sender, bytes) = std::sync::mpsc::channel();
        self.frames.push(sender);
        Some(Coming::new(bytes, 900))
    }
}

#[test]
fn a_video_survives_however_often_its_frame_is_looked_for() {
    let (mut pair, mut picture) = shown(screen(), Paint::Text(5));
    pair.send(u64::MAX, 0);
    let (here, text) = (Rect::new(70, 70, 256, 256), Rect::new(600, 400, 100, 20));
    for time in 0..8 {
        show_moment(&mut pair, &mut picture, here, text, time);
    }
    picture.paint(here, Paint::Photo(99));
    picture.paint(text, Paint::Solid(99));
    absorb(&mut pair.draft, &picture, &PLAIN, &Region::full(screen()));
    pair.now += Duration::from_millis(33);
    let (mut slow, allowance) = (Slow { frames: Vec::new() }, pair.allow(16_000));
    pair.encoder.begin_within(&mut pair.draft, &allowance, Some(&mut slow));
    assert!(!pair.encoder.step(&mut pair.draft, None).is_empty(), "the text");
    for _ in 0..200 {
        assert!(pair.encoder.step(&mut pair.draft, None).is_empty() && pair.draft.awaits_frames());
    }
    slow.frames[0].send(vec![7; 900]).unwrap();
    let chunks = pair.encoder.step(&mut pair.draft, None);
    assert_eq!(video::split(&chunks, screen()).unwrap().0.len(), 1);
    assert!(!pair.draft.is_making() && pair.draft.videos() == 1);
}
