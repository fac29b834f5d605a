//! An update that is being made: what of it is left to encode, cut into pieces.
//!
//! The draft holds it from when the update begins until its last chunk is there; what the draft's content was then must
//! not change meanwhile. It borrows nothing, and encodes nothing itself.
//!
//! The one invariant: the pieces have every part once, and those that copy come first and leave together: copies name
//! the content before the update that brings them.

use std::ops::Range;
use std::time::Duration;

use crate::chunk::{Copy, MAX_CHUNK_COPIES};
use crate::geometry::Rect;
use crate::motion::Video;
use crate::triage::{Parts, Picture};
use crate::video::{Begun, Frame};

/// What is left of an update.
#[derive(Debug)]
pub(crate) struct Making {
    copies: Vec<Copy>,
    exact: Vec<Rect>,
    lossy: Vec<Picture>,
    frames: Vec<Begun>,
    pieces: Vec<Piece>,
    /// Pieces that copy.
    copying: usize,
    /// The first piece that no thread has taken.
    next: usize,
    /// What is left.
    pixels: u64,
    /// Pixels of a step, at least.
    least: u64,
    /// When it began.
    pub(crate) began: Duration,
}

/// A piece of work, by its place in the lists.
#[derive(Clone, Debug)]
enum Piece {
    Exact(Range<usize>, Range<usize>),
    Lossy(usize),
}

/// A piece of work.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Work<'a> {
    Exact(Section<'a>),
    Lossy(&'a Picture),
}

/// A part of an update, which is encoded without regard to the others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Section<'a> {
    pub(crate) copies: &'a [Copy],
    pub(crate) cells: &'a [Rect],
}

impl Making {
    /// All of an update, what is exact in sections of about so many pixels.
    pub(crate) fn new(copies: Vec<Copy>, parts: Parts, section: u64, began: Duration) -> Self {
        let Parts { exact, lossy, frames, .. } = parts;
        let mut pieces = sections(copies.len(), &exact, section);
        let copying = pieces.iter().filter(|piece| piece.copies()).count();
        // What is lossy is what the user waits for.
        pieces.splice(copying..copying, (0..lossy.len()).map(Piece::Lossy));
        let mut making =
            Self { copies, exact, lossy, frames, pieces, copying, next: 0, pixels: 0, least: 0, began };
        making.pixels = making.pieces.iter().map(|piece| making.area(piece)).sum();
        let most = if making.frames.is_empty() { MAX_STEPS } else { MAX_STEPS_OF_VIDEOS };
        making.least = making.pixels / most;
        making
    }

    /// Whether a step has been taken.
    pub(crate) fn is_under_way(&self) -> bool {
        self.next > 0
    }

    /// Whether nothing is left.
    pub(crate) fn is_done(&self) -> bool {
        self.frames.is_empty() && self.next >= self.pieces.len()
    }

    /// How many pixels are left.
    pub(crate) fn pixels(&self) -> u64 {
        self.pixels
    }

    /// Whether all that is left is being made elsewhere.
    pub(crate) fn waits(&self) -> bool {
        !self.frames.is_empty() && self.next >= self.pieces.len()
    }

    /// The frames of videos that are made by now, or all, if `wait`; or which video has none and is over. They go with
    /// the last step.
    pub(crate) fn take_frames(&mut self, wait: bool) -> Vec<Result<Frame, Video>> {
        let mut taken = Vec::new();
        self.frames.retain(|begun| match begun.take(wait) {
            Ok(None) => true,
            Ok(Some(frame)) => {
                taken.push(Ok(frame));
                false
            }
            Err(video) => {
                taken.push(Err(video));
                false
            }
        });
        taken
    }

    /// The next pieces, of about `room` pixels; more where otherwise the update would have too many steps, or its
    /// copies two.
    pub(crate) fn take(&mut self, room: u64) -> Vec<Work<'_>> {
        let room = room.max(self.least);
        let rest = &self.pieces[self.next..];
        let count = fitting(rest, |piece| self.area(piece), room);
        let end = (self.next + count).max(self.copying);
        let taken = std::mem::replace(&mut self.next, end)..end;
        self.pixels -= self.pieces[taken.clone()].iter().map(|piece| self.area(piece)).sum::<u64>();
        self.pieces[taken].iter().map(|piece| self.work(piece)).collect()
    }

    fn work(&self, piece: &Piece) -> Work<'_> {
        match piece {
            Piece::Exact(copies, cells) => Work::Exact(Section {
                copies: &self.copies[copies.clone()],
                cells: &self.exact[cells.clone()],
            }),
            Piece::Lossy(index) => Work::Lossy(&self.lossy[*index]),
        }
    }

    fn area(&self, piece: &Piece) -> u64 {
        match self.work(piece) {
            Work::Exact(section) => section.cells.iter().map(|cell| cell.area()).sum(),
            Work::Lossy(picture) => picture.rect.area(),
        }
    }
}

impl Piece {
    fn copies(&self) -> bool {
        matches!(self, Self::Exact(copies, _) if !copies.is_empty())
    }
}

/// Cuts an update into sections of about `section` pixels. Copies go to the front, with the first cells.
fn sections(copies: usize, cells: &[Rect], section: u64) -> Vec<Piece> {
    let mut sections = Vec::new();
    let (mut copied, mut taken) = (0, 0);
    while copied < copies || taken < cells.len() {
        let own = copied..copies.min(copied + MAX_CHUNK_COPIES);
        let room = if own.end == copies { section } else { 0 };
        let end = taken + fitting(&cells[taken..], |cell| cell.area(), room);
        copied = own.end;
        sections.push(Piece::Exact(own, taken..end));
        taken = end;
    }
    sections
}

/// How many items weigh at most `room`: at least one if there is any room.
pub(crate) fn fitting<T>(items: &[T], weigh: impl Fn(&T) -> u64, room: u64) -> usize {
    let mut weight = 0;
    let fits = |item: &&T| {
        let before = weight;
        weight += weigh(item);
        before < room && (before == 0 || weight <= room)
    };
    items.iter().take_while(fits).count()
}

/// Steps of an update, about, at most: however large it is, it must not become too many.
const MAX_STEPS: u64 = 256;

/// With videos even fewer: each is an update, and a video is over after some dozen without a frame.
const MAX_STEPS_OF_VIDEOS: u64 = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk;
    use crate::fidelity::Grade;

    const SECTION: u64 = 128 << 10;

    fn making(copies: usize, rect: Rect, lossy: usize) -> Making {
        let copy = Copy { rect: Rect::new(0, 0, 1, 1), x: 1, y: 1 };
        let mut parts = Parts::exact(&[rect]);
        let picture =
            Picture { rect: Rect::new(0, 0, 64, 64), grade: Grade::Detail, fourth: 255, quality: 50 };
        parts.lossy = vec![picture; lossy];
        Making::new(vec![copy; copies], parts, SECTION, Duration::ZERO)
    }

    /// For each step: copies, cells, pictures.
    fn steps(mut making: Making, room: u64) -> Vec<(usize, usize, usize)> {
        let mut steps = Vec::new();
        while !making.is_done() {
            let before = making.pixels();
            let (mut step, mut area) = ((0, 0, 0), 0);
            for work in making.take(room) {
                match work {
                    Work::Exact(Section { copies, cells }) => {
                        step = (step.0 + copies.len(), step.1 + cells.len(), step.2);
                        area += cells.iter().map(|cell| cell.area()).sum::<u64>();
                    }
                    Work::Lossy(picture) => {
                        step.2 += 1;
                        area += picture.rect.area();
                    }
                }
            }
            assert_eq!(before - making.pixels(), area);
            steps.push(step);
        }
        assert_eq!(making.pixels(), 0);
        steps
    }

    #[test]
    fn copies_are_in_the_first_step_and_pictures_before_the_rest() {
        let rect = Rect::new(0, 0, 1024, 512);
        let cells = chunk::cells(rect).count();
        let taken = steps(making(3 * MAX_CHUNK_COPIES - 1, rect, 3), SECTION);
        assert_eq!((taken[0].0, taken[0].2), (3 * MAX_CHUNK_COPIES - 1, 0));
        assert_eq!((taken[1].1, taken[1].2), (0, 3));
        assert_eq!(taken.iter().map(|step| step.1).sum::<usize>(), cells);
        assert_eq!(taken.len(), 5, "{taken:?}");
        let [first, second, ..] = steps(making(0, rect, 3), 2 * 64 * 64)[..] else { panic!("few steps") };
        assert_eq!((first, second.2), ((0, 0, 2), 1));
    }

    #[test]
    fn however_large_an_update_is_its_steps_are_few() {
        let steps = steps(making(0, Rect::new(0, 0, 16384, 16384), 0), 1).len() as u64;
        assert!((MAX_STEPS..MAX_STEPS + MAX_STEPS / 8).contains(&steps), "{steps}");
        assert!(making(0, Rect::new(0, 0, 0, 0), 0).is_done());
    }
}
