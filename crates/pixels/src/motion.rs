//! Which parts of a surface are videos: pictures that change all the time.
//!
//! Of each tile (of 64 × 64 pixels) it remembers in which of the last updates it has changed, whether it was a picture
//! then, and where in it. Every few updates neighbouring tiles that mostly were become a video, which stays as it is
//! while it moves. It sees no pixels and has no clock, and knows nothing of codecs.
//!
//! The one invariant: videos are at most [`MAX_VIDEOS`], inside the surface, and no two share a pixel.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::geometry::{Rect, Size};
use crate::tiles::{self, TILE};

/// Most videos of a surface.
pub const MAX_VIDEOS: usize = 4;

/// What moves on a surface.
#[derive(Default)]
pub(crate) struct Motion {
    /// By row of tiles, then by column; empty before the first update.
    tiles: Vec<Tile>,
    /// Updates since videos were chosen.
    updates: u32,
    videos: [Option<Live>; MAX_VIDEOS],
}

/// A video, and what is to become of it in one update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Video {
    /// Its number, below [`MAX_VIDEOS`]; free for another one when it is over.
    pub stream: u8,
    /// Where it is.
    pub rect: Rect,
    /// It begins: nothing has been told of it.
    pub key: bool,
}

#[derive(Clone, Copy, Default)]
struct Tile {
    /// A bit for each update, the lowest for the last: it changed, and it was a picture then.
    changed: u16,
    pictures: u16,
    /// Around what changed since videos were chosen.
    bounds: Option<Rect>,
}

/// A video that goes on.
#[derive(Clone, Copy)]
struct Live {
    rect: Rect,
    begun: bool,
    /// Updates in succession in which it has not moved.
    quiet: u32,
    /// Updates of any kind since its last frame.
    age: u32,
    /// When it moved last.
    moved: Duration,
}

/// What an update changes: around the changed pixels of each tile that has any, and whether they are a picture.
type Touched = BTreeMap<usize, (Rect, bool)>;

impl Motion {
    /// Takes in an update that changes `rects`, and gives the videos that are to get a frame with it. One begins only
    /// when more pixels of pictures change than are `affordable`.
    pub(crate) fn update(
        &mut self,
        size: Size,
        rects: &[Rect],
        affordable: u64,
        now: Duration,
        is_picture: impl FnMut(Rect) -> bool,
    ) -> Vec<Video> {
        let touched = self.look(size, rects, affordable, is_picture);
        self.note(size, &touched);
        self.updates += 1;
        if self.updates == PERIOD {
            let pictures = touched.values().filter(|(_, picture)| *picture).map(|(rect, _)| rect.area());
            self.choose(size, pictures.sum::<u64>() > affordable, now);
            self.updates = 0;
        }
        self.videos
            .iter_mut()
            .zip(0..)
            .filter_map(|(video, stream)| go_on(video, stream, rects, &touched, now))
            .collect()
    }

    /// A video has got its frame.
    pub(crate) fn got_frame(&mut self, stream: u8) {
        if let Some(Some(video)) = self.videos.get_mut(usize::from(stream)) {
            (video.begun, video.age) = (true, 0);
        }
    }

    /// A video is over.
    pub(crate) fn end(&mut self, stream: u8) {
        if let Some(video) = self.videos.get_mut(usize::from(stream)) {
            *video = None;
        }
    }

    /// An update without frames has left.
    pub(crate) fn pass(&mut self, now: Duration) {
        for video in &mut self.videos {
            video.iter_mut().for_each(|video| video.age += 1);
            video.take_if(|video| video.is_over(now));
        }
    }

    /// When the next video is over if none gets another frame.
    pub(crate) fn ends_at(&self) -> Option<Duration> {
        self.videos.iter().flatten().map(|video| video.moved + LONGEST_PAUSE).min()
    }

    /// Ends the videos that have paused for too long.
    pub(crate) fn end_paused(&mut self, now: Duration) {
        for video in &mut self.videos {
            video.take_if(|video| video.is_over(now));
        }
    }

    /// Whether the video of this number goes on.
    pub(crate) fn has(&self, stream: u8) -> bool {
        matches!(self.videos.get(usize::from(stream)), Some(Some(_)))
    }

    /// How many videos there are.
    pub(crate) fn count(&self) -> usize {
        self.videos.iter().flatten().count()
    }

    /// What is touched is looked at only where a video may begin, or be.
    fn look(
        &self,
        size: Size,
        rects: &[Rect],
        affordable: u64,
        mut is_picture: impl FnMut(Rect) -> bool,
    ) -> Touched {
        let columns = tiles::columns(size);
        let mut touched = Touched::new();
        for rect in rects.iter().filter(|rect| !rect.is_empty()) {
            for row in rect.y / TILE..rect.bottom().div_ceil(TILE) {
                for column in rect.x / TILE..rect.right().div_ceil(TILE) {
                    let Some(part) = rect.intersection(tiles::tile(size, column, row)) else { continue };
                    let (all, _) = touched.entry((row * columns + column) as usize).or_insert((part, false));
                    *all = all.bounding(part);
                }
            }
        }
        let area: u64 = rects.iter().map(|rect| rect.area()).sum();
        let enough = area > affordable && area >= u64::from(LEAST_SIDE * LEAST_SIDE);
        if enough || self.count() > 0 {
            touched.values_mut().for_each(|(rect, picture)| *picture = is_picture(*rect));
        }
        touched
    }

    fn note(&mut self, size: Size, touched: &Touched) {
        self.tiles.resize((tiles::columns(size) * tiles::rows(size)) as usize, Tile::default());
        for tile in &mut self.tiles {
            tile.changed <<= 1;
            tile.pictures <<= 1;
        }
        if self.tiles.iter().all(|tile| tile.pictures == 0) {
            // All that moves begins now.
            self.updates = 0;
            self.tiles.iter_mut().for_each(|tile| tile.bounds = None);
        }
        for (index, (rect, picture)) in touched {
            let tile = &mut self.tiles[*index];
            tile.changed |= 1;
            tile.pictures |= u16::from(*picture);
            tile.bounds = Some(tile.bounds.map_or(*rect, |bounds| bounds.bounding(*rect)));
        }
    }

    /// Ends videos that are not where pictures move any more, and begins others if they are worth it.
    fn choose(&mut self, size: Size, scarce: bool, now: Duration) {
        for rect in self.clusters(size) {
            let over: Vec<usize> = (0..MAX_VIDEOS)
                .filter(|slot| self.videos[*slot].is_some_and(|video| video.rect.intersects(rect)))
                .collect();
            if let [slot] = over[..]
                && self.videos[slot].is_some_and(|video| video.suits(rect))
            {
                continue;
            }
            over.into_iter().for_each(|slot| self.videos[slot] = None);
            let free = self.videos.iter_mut().find(|video| video.is_none());
            if let Some(free) = free.filter(|_| scarce) {
                *free = Some(Live { rect, begun: false, quiet: 0, age: 0, moved: now });
            }
        }
        self.tiles.iter_mut().for_each(|tile| tile.bounds = None);
    }

    /// Rectangles of which most changes most of the time, as a picture. Disjoint, the largest first.
    fn clusters(&self, size: Size) -> Vec<Rect> {
        let mut seen = vec![false; self.tiles.len()];
        let mut found: Vec<Rect> = Vec::new();
        for first in 0..self.tiles.len() {
            let (mut bounds, mut area): (Option<Rect>, u64) = (None, 0);
            let mut open = vec![first];
            while let Some(index) = open.pop() {
                if std::mem::replace(&mut seen[index], true) || !often(self.tiles[index].pictures) {
                    continue;
                }
                if let Some(own) = self.tiles[index].bounds {
                    area += own.area();
                    bounds = Some(bounds.map_or(own, |bounds| bounds.bounding(own)));
                }
                open.extend(neighbours(index, size));
            }
            let solid = bounds.filter(|rect| area * FILLED.1 >= rect.area() * FILLED.0);
            found.extend(solid.map(|rect| self.with_slivers(rect)).filter(|rect| is_video(*rect)));
        }
        found.sort_by_key(|rect| std::cmp::Reverse(rect.area()));
        let mut disjoint: Vec<Rect> = Vec::new();
        for rect in found {
            if !disjoint.iter().any(|other| other.intersects(rect)) {
                disjoint.push(rect);
            }
        }
        disjoint
    }

    /// The rectangle with what changes as often right beside it, in tiles of which the video has too few columns or
    /// rows to be a picture in them.
    fn with_slivers(&self, mut rect: Rect) -> Rect {
        loop {
            let near = Rect::between(
                rect.x.saturating_sub(1),
                rect.y.saturating_sub(1),
                rect.right() + 1,
                rect.bottom() + 1,
            );
            let thin = |bounds: Rect| {
                let all = rect.bounding(bounds);
                all != rect && all.width - rect.width <= SLIVER && all.height - rect.height <= SLIVER
            };
            let mut beside =
                self.tiles.iter().filter(|tile| often(tile.changed)).filter_map(|tile| tile.bounds);
            match beside.find(|bounds| near.intersects(*bounds) && thin(*bounds)) {
                Some(bounds) => rect = rect.bounding(bounds),
                None => return rect,
            }
        }
    }
}

impl Live {
    /// Whether it can stay where this rectangle moves.
    fn suits(&self, rect: Rect) -> bool {
        self.rect.contains(rect) && self.rect.area() <= 2 * rect.area()
    }

    fn is_over(&self, now: Duration) -> bool {
        self.quiet >= MOST_QUIET || self.age >= MOST_AGE || now.saturating_sub(self.moved) >= LONGEST_PAUSE
    }

    /// Whether an update changes enough of it, mostly as pictures: little is better told exactly.
    fn moves(&self, rects: &[Rect], touched: &Touched) -> bool {
        let changed: u64 = rects.iter().filter_map(|rect| rect.intersection(self.rect)).map(Rect::area).sum();
        let here = || touched.values().filter(|(rect, _)| rect.intersects(self.rect));
        let pictures = here().filter(|(_, picture)| *picture).count();
        changed * LEAST_SHARE >= self.rect.area() && 2 * pictures >= here().count()
    }
}

/// What an update means for a video.
fn go_on(
    slot: &mut Option<Live>,
    stream: u8,
    rects: &[Rect],
    touched: &Touched,
    now: Duration,
) -> Option<Video> {
    slot.take_if(|video| video.is_over(now));
    let video = slot.as_mut()?;
    video.age += 1;
    if video.moves(rects, touched) {
        (video.quiet, video.moved) = (0, now);
        return Some(Video { stream, rect: video.rect, key: !video.begun });
    }
    video.quiet += 1;
    slot.take_if(|video| video.is_over(now));
    None
}

/// Whether at least 8 of the last 15 updates are in a history.
fn often(history: u16) -> bool {
    (history & 0x7fff).count_ones() >= 8
}

/// The tiles beside, above and below a tile.
fn neighbours(index: usize, size: Size) -> impl Iterator<Item = usize> {
    let (columns, rows) = (tiles::columns(size) as usize, tiles::rows(size) as usize);
    let (column, row) = (index % columns, index / columns);
    let beside = [(column > 0).then(|| index - 1), (column + 1 < columns).then_some(index + 1)];
    let other = [(row > 0).then(|| index - columns), (row + 1 < rows).then_some(index + columns)];
    beside.into_iter().chain(other).flatten()
}

fn is_video(rect: Rect) -> bool {
    let sides = LEAST_SIDE..=MOST_SIDE;
    sides.contains(&rect.width) && sides.contains(&rect.height) && rect.area() <= MOST_PIXELS
}

/// Updates from one choice of videos to the next: as many as a tile must change in, so that what begins is found at
/// once.
const PERIOD: u32 = 8;

/// Sides of videos, and how many pixels: a codec needs about 12 ns for each, and all else that is to be done waits
/// meanwhile.
const LEAST_SIDE: u32 = 128;
const MOST_SIDE: u32 = 3840;
const MOST_PIXELS: u64 = 1920 * 1088;

/// The share of a video's rectangle that must move for it to begin.
const FILLED: (u64, u64) = (3, 4);

/// The share of a video, one part in so many, that gets a frame when it changes.
const LEAST_SHARE: u64 = 8;

/// Columns or rows beside a video that are too few to be looked at as a picture.
const SLIVER: u32 = 16;

/// A video is over after so many updates of what changes in which it did not move, after so many of any kind without a
/// frame (the display side forgets it after 64), or after so long a pause. A slow link may take a second for a first
/// frame.
const MOST_QUIET: u32 = 10;
const MOST_AGE: u32 = 48;
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STEP: Duration = Duration::from_millis(33);

    struct Screen {
        motion: Motion,
        size: Size,
        now: Duration,
    }

    impl Screen {
        fn new() -> Self {
            Self { motion: Motion::default(), size: Size::new(1000, 800).expect("a size"), now: STEP }
        }

        /// An update in which pictures and text change.
        fn show(&mut self, pictures: &[Rect], text: &[Rect]) -> Vec<Video> {
            self.now += STEP;
            let rects = [pictures, text].concat();
            let is_picture = |rect: Rect| rect.area() > 1000 && pictures.iter().any(|it| it.intersects(rect));
            let videos = self.motion.update(self.size, &rects, 0, self.now, is_picture);
            videos.iter().for_each(|video| self.motion.got_frame(video.stream));
            videos
        }

        /// The videos of the last of so many equal updates.
        fn often(&mut self, count: usize, pictures: &[Rect], text: &[Rect]) -> Vec<Video> {
            (0..count).map(|_| self.show(pictures, text)).last().unwrap_or_default()
        }
    }

    const HERE: Rect = Rect::new(100, 70, 300, 200);

    #[test]
    fn what_changes_eight_times_becomes_a_video_with_its_slivers() {
        let mut screen = Screen::new();
        assert!(screen.often(7, &[HERE], &[]).is_empty());
        assert_eq!(screen.show(&[HERE], &[]), [Video { stream: 0, rect: HERE, key: true }]);
        assert_eq!(screen.show(&[HERE], &[]), [Video { stream: 0, rect: HERE, key: false }]);
    }

    #[test]
    fn text_small_pictures_and_what_is_affordable_are_no_videos() {
        let mut screen = Screen::new();
        let small = Rect::new(500, 500, 127, 300);
        assert!(screen.often(40, &[small], &[HERE]).is_empty());
        let mut screen = Screen::new();
        for _ in 0..40 {
            let videos = screen.motion.update(screen.size, &[HERE], HERE.area(), screen.now, |_| true);
            assert!(videos.is_empty());
        }
    }

    #[test]
    fn a_video_pauses_and_ends() {
        let mut screen = Screen::new();
        screen.often(8, &[HERE], &[]);
        let little = [Rect::new(0, 0, 10, 10)];
        assert!(screen.often(8, &[], &little).is_empty());
        assert!(!screen.often(1, &[HERE], &[])[0].key, "the pause was short");
        screen.now += LONGEST_PAUSE;
        assert!(screen.often(1, &[HERE], &[]).is_empty(), "the pause was long");
        let mut screen = Screen::new();
        screen.often(8, &[HERE], &[]);
        screen.now -= 9 * STEP;
        screen.often(10, &[], &little);
        assert_eq!(screen.motion.count(), 0, "ten updates without it");
    }

    #[test]
    fn a_video_that_grows_or_shrinks_is_chosen_anew() {
        let mut screen = Screen::new();
        screen.often(8, &[HERE], &[]);
        let large = Rect::new(90, 60, 600, 400);
        let videos = screen.often(16, &[large], &[]);
        assert_eq!(videos.iter().map(|video| video.rect).collect::<Vec<_>>(), [large]);
        let videos = screen.often(24, &[HERE], &[]);
        assert_eq!(videos.iter().map(|video| video.rect).collect::<Vec<_>>(), [HERE]);
    }

    #[test]
    fn what_becomes_text_is_no_video_any_more() {
        let mut screen = Screen::new();
        screen.often(8, &[HERE], &[]);
        assert!(screen.show(&[], &[HERE]).is_empty());
        screen.often(10, &[], &[HERE]);
        assert_eq!(screen.motion.count(), 0);
    }

    #[test]
    fn a_video_without_frames_for_many_updates_ends() {
        let mut screen = Screen::new();
        screen.often(8, &[HERE], &[]);
        (0..MOST_AGE - 1).for_each(|_| screen.motion.pass(screen.now));
        assert!(screen.motion.has(0));
        screen.motion.pass(screen.now);
        assert!(!screen.motion.has(0));
    }

    proptest! {
        #[test]
        fn videos_are_few_disjoint_and_inside(
            updates in prop::collection::vec(
                (0..4usize, prop::collection::vec((0..900u32, 0..700u32, 1..100u32, 1..100u32), 0..4)), 1..80),
            scenes in prop::collection::vec(
                prop::collection::vec((0..850u32, 0..650u32, 100..150u32, 100..150u32), 1..7), 4),
        ) {
            let mut screen = Screen::new();
            let rect = |&(x, y, width, height): &(u32, u32, u32, u32)| Rect::new(x, y, width, height);
            let mut known = [None; MAX_VIDEOS];
            for (scene, text) in updates {
                let pictures: Vec<Rect> = scenes[scene].iter().map(rect).collect();
                let videos = screen.show(&pictures, &text.iter().map(rect).collect::<Vec<_>>());
                for (index, video) in videos.iter().enumerate() {
                    prop_assert!(screen.size.rect().contains(video.rect) && is_video(video.rect));
                    prop_assert!(videos[index + 1..].iter().all(|other| !other.rect.intersects(video.rect)));
                    let last = known[usize::from(video.stream)].replace(video.rect);
                    prop_assert!(video.key || last == Some(video.rect), "it stays where it begins");
                }
            }
        }
    }
}
