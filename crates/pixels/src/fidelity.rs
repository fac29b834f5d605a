//! How well the display side knows what it shows: exactly, as a lossy picture, or by a preview only.
//!
//! One bit for each row of each column of tiles (of 64 pixels), as with the rows that a draft keeps. It knows no pixels
//! and has no clock: it is given the time.
//!
//! The one invariant: where no bit is set, what the display side shows after the last update is the content of
//! then, bit for bit.

use std::time::Duration;

use crate::chunk::Copy;
use crate::geometry::{Rect, Size};
use crate::tiles::{self, TILE};

/// How well rows of tiles are known.
#[derive(Clone, Default)]
pub(crate) struct Fidelity {
    /// By row of tiles, then by column; empty while everything is exact.
    tiles: Vec<Tile>,
    /// When anything became lossy last, and how long after the time before if that was not long.
    lost: Option<Duration>,
    beat: Duration,
}

#[derive(Clone, Copy, Default)]
struct Tile {
    /// A bit for each row that is not exact, the lowest for the uppermost.
    lossy: u64,
    /// Those of them of which there is but a preview.
    coarse: u64,
    /// Found to be a picture since it became coarse.
    picture: bool,
    /// When pixels in it became lossy last.
    since: Duration,
}

/// How well lossy pixels are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grade {
    /// As a picture in full size.
    Detail,
    /// As a picture of a quarter of the size.
    Preview,
}

/// Rows of a tile that could be known better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    /// From the first such row to the last, as wide as the tile.
    pub(crate) rect: Rect,
    /// When pixels in it became lossy last.
    pub(crate) since: Duration,
    /// It is known to be a picture.
    pub(crate) picture: bool,
    index: usize,
}

impl Fidelity {
    /// Whether all is exact.
    pub(crate) fn is_exact(&self) -> bool {
        self.tiles.is_empty()
    }

    /// Since when lossy pixels wait to become exact: those that have waited longest.
    ///
    /// Where there are previews, they become better first.
    pub(crate) fn lossy_since(&self) -> Option<Duration> {
        let settled = self.tiles.iter().filter(|tile| tile.lossy != 0 && tile.coarse == 0);
        settled.map(|tile| tile.since).min()
    }

    /// Since when previews wait to become better: those that have waited longest, of those that are known to be
    /// pictures or of the others.
    pub(crate) fn coarse_since(&self, picture: bool) -> Option<Duration> {
        let coarse = self.tiles.iter().filter(|tile| tile.coarse != 0 && tile.picture == picture);
        coarse.map(|tile| tile.since).min()
    }

    /// How long pixels must not have become lossy before it pays to make them better: at least `least`, and longer than
    /// the pauses of what changes all the time.
    pub(crate) fn calm(&self, least: Duration) -> Duration {
        least.max(2 * self.beat)
    }

    /// Something becomes lossy now.
    pub(crate) fn beat(&mut self, now: Duration) {
        let pause = self.lost.replace(now).map(|before| now.saturating_sub(before));
        self.beat = pause.filter(|pause| *pause <= LONGEST_BEAT).unwrap_or_default();
    }

    /// About how many pixels are not exact: never fewer than there are.
    pub(crate) fn lossy_area(&self) -> u64 {
        self.tiles.iter().map(|tile| u64::from(tile.lossy.count_ones() * TILE)).sum()
    }

    /// Rows that are lossy, of tiles of which there is no mere preview.
    pub(crate) fn detailed(&self, size: Size) -> impl Iterator<Item = Spot> {
        self.spots(size, |tile| if tile.coarse == 0 { tile.lossy } else { 0 })
    }

    /// Rows that are lossy.
    pub(crate) fn lossy(&self, size: Size) -> impl Iterator<Item = Spot> {
        self.spots(size, |tile| tile.lossy)
    }

    /// Rows of which there is a preview only.
    pub(crate) fn coarse(&self, size: Size) -> impl Iterator<Item = Spot> {
        self.spots(size, |tile| tile.coarse)
    }

    fn spots(&self, size: Size, rows: impl Fn(&Tile) -> u64) -> impl Iterator<Item = Spot> {
        let columns = tiles::columns(size);
        self.tiles.iter().enumerate().filter_map(move |(index, tile)| {
            let rows = rows(tile);
            let whole = tiles::tile(size, index as u32 % columns, index as u32 / columns);
            let (top, bottom) = (rows.trailing_zeros(), u64::BITS - rows.leading_zeros());
            let rect = Rect::between(whole.x, whole.y + top, whole.right(), whole.y + bottom.max(top));
            (rows != 0).then_some(Spot { rect, since: tile.since, picture: tile.picture, index })
        })
    }

    /// A coarse spot is no text.
    pub(crate) fn is_picture(&mut self, spot: Spot) {
        if let Some(tile) = self.tiles.get_mut(spot.index) {
            tile.picture = true;
        }
    }

    /// The display side has copied, all from what was there before.
    pub(crate) fn copied(&mut self, size: Size, copies: &[Copy], now: Duration) {
        if self.is_exact() || copies.is_empty() {
            return;
        }
        let before = self.tiles.clone();
        let columns = tiles::columns(size);
        for Copy { rect, x, y } in copies {
            // Sideways by other than whole tiles, rows of several tiles come together.
            let reach = |column: u32| {
                let left = x + (column * TILE).max(rect.x) - rect.x;
                let right = x + ((column + 1) * TILE).min(rect.right()) - rect.x;
                left / TILE..right.div_ceil(TILE)
            };
            for column in rect.x / TILE..rect.right().div_ceil(TILE) {
                let whole = covers(size, *rect, column);
                for row in 0..rect.height {
                    let source = y + row;
                    let bit = |rows: u64| rows >> (source % TILE) & 1 == 1;
                    let sources =
                        || reach(column).map(|column| before[(source / TILE * columns + column) as usize]);
                    let (lossy, coarse) =
                        (sources().any(|tile| bit(tile.lossy)), sources().any(|tile| bit(tile.coarse)));
                    let target = rect.y + row;
                    let tile = &mut self.tiles[(target / TILE * columns + column) as usize];
                    tile.take(1 << (target % TILE), lossy, coarse, whole, now);
                }
            }
        }
        self.tidy();
    }

    /// The display side was given exact pixels.
    pub(crate) fn exact(&mut self, size: Size, rect: Rect) {
        if self.is_exact() {
            return;
        }
        let columns = tiles::columns(size);
        for column in rect.x / TILE..rect.right().div_ceil(TILE) {
            if !covers(size, rect, column) {
                continue;
            }
            for (row, rows) in rows(rect) {
                let tile = &mut self.tiles[(row * columns + column) as usize];
                tile.lossy &= !rows;
                tile.coarse &= !rows;
            }
        }
    }

    /// The display side was given lossy pixels.
    pub(crate) fn lost(&mut self, size: Size, rect: Rect, grade: Grade, now: Duration) {
        let columns = tiles::columns(size);
        if self.is_exact() {
            self.tiles.resize((columns * tiles::rows(size)) as usize, Tile::default());
        }
        for column in rect.x / TILE..rect.right().div_ceil(TILE) {
            for (row, rows) in rows(rect) {
                let tile = &mut self.tiles[(row * columns + column) as usize];
                tile.lossy |= rows;
                tile.since = now;
                match grade {
                    Grade::Preview => (tile.coarse, tile.picture) = (tile.coarse | rows, false),
                    // Of rows that are not covered as a whole some pixels may still be coarse.
                    Grade::Detail if covers(size, rect, column) => tile.coarse &= !rows,
                    Grade::Detail => {}
                }
            }
        }
    }

    /// Frees what is not needed when everything is exact again.
    pub(crate) fn tidy(&mut self) {
        if self.tiles.iter().all(|tile| tile.lossy == 0) {
            self.tiles = Vec::new();
        }
    }
}

/// A longer pause ends what changed all the time.
const LONGEST_BEAT: Duration = Duration::from_millis(250);

impl Tile {
    /// A row becomes as another one was; in part only, unless it is `whole`.
    fn take(&mut self, bit: u64, lossy: bool, coarse: bool, whole: bool, now: Duration) {
        if whole {
            self.lossy &= !bit;
            self.coarse &= !bit;
        }
        if lossy {
            self.lossy |= bit;
            self.since = now;
        }
        if coarse {
            self.coarse |= bit;
            self.picture = false;
        }
    }
}

/// Whether a rectangle has all pixels that a column of tiles has in its rows.
fn covers(size: Size, rect: Rect, column: u32) -> bool {
    let tile = tiles::tile(size, column, 0);
    rect.x <= tile.x && tile.right() <= rect.right()
}

/// The rows of tiles that a rectangle reaches, and which rows inside each.
fn rows(rect: Rect) -> impl Iterator<Item = (u32, u64)> {
    (rect.y / TILE..rect.bottom().div_ceil(TILE)).map(move |row| {
        let first = rect.y.max(row * TILE) % TILE;
        let count = rect.bottom().min((row + 1) * TILE) - rect.y.max(row * TILE);
        (row, (u64::MAX >> (u64::BITS - count)) << first)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size() -> Size {
        Size::new(200, 150).expect("a size")
    }

    const NOW: Duration = Duration::from_millis(5);

    fn lossy(fidelity: &Fidelity) -> Vec<Rect> {
        fidelity.lossy(size()).map(|spot| spot.rect).collect()
    }

    #[test]
    fn lossy_pixels_become_exact_by_whole_rows_of_tiles() {
        let mut fidelity = Fidelity::default();
        fidelity.lost(size(), Rect::new(60, 60, 10, 10), Grade::Detail, NOW);
        let four = [
            Rect::new(0, 60, 64, 4),
            Rect::new(64, 60, 64, 4),
            Rect::new(0, 64, 64, 6),
            Rect::new(64, 64, 64, 6),
        ];
        assert_eq!(lossy(&fidelity), four);
        fidelity.exact(size(), Rect::new(60, 60, 10, 10));
        assert_eq!(lossy(&fidelity), four, "the tiles' other pixels may be lossy");
        fidelity.exact(size(), Rect::new(0, 60, 128, 9));
        assert_eq!(lossy(&fidelity), [Rect::new(0, 69, 64, 1), Rect::new(64, 69, 64, 1)]);
        fidelity.exact(size(), Rect::new(0, 0, 200, 150));
        fidelity.tidy();
        assert!(fidelity.is_exact());
    }

    #[test]
    fn the_last_column_is_covered_by_what_there_is_of_it() {
        let mut fidelity = Fidelity::default();
        fidelity.lost(size(), Rect::new(192, 0, 8, 1), Grade::Detail, NOW);
        fidelity.exact(size(), Rect::new(192, 0, 8, 1));
        fidelity.tidy();
        assert!(fidelity.is_exact());
    }

    #[test]
    fn details_leave_no_preview_where_they_cover_it() {
        let mut fidelity = Fidelity::default();
        fidelity.lost(size(), size().rect(), Grade::Preview, NOW);
        fidelity.lost(size(), Rect::new(0, 0, 100, 64), Grade::Detail, NOW);
        let coarse: Vec<Rect> = fidelity.coarse(size()).map(|spot| spot.rect).collect();
        assert!(!coarse.contains(&Rect::new(0, 0, 64, 64)));
        assert!(coarse.contains(&Rect::new(64, 0, 64, 64)), "36 pixels of each row are covered");
        assert_eq!(fidelity.lossy_since(), Some(NOW));
    }

    #[test]
    fn copies_bring_what_was_there_before() {
        let mut fidelity = Fidelity::default();
        fidelity.lost(size(), Rect::new(0, 0, 64, 2), Grade::Preview, NOW);
        let down = Copy { rect: Rect::new(0, 1, 64, 2), x: 0, y: 0 };
        let exact = Copy { rect: Rect::new(0, 0, 64, 1), x: 0, y: 100 };
        fidelity.copied(size(), &[down, exact], NOW);
        assert_eq!(lossy(&fidelity), [Rect::new(0, 1, 64, 2)]);
        let sideways = Copy { rect: Rect::new(130, 2, 4, 1), x: 62, y: 2 };
        fidelity.copied(size(), &[sideways], NOW);
        assert_eq!(lossy(&fidelity), [Rect::new(0, 1, 64, 2), Rect::new(128, 2, 64, 1)]);
    }

    #[test]
    fn what_changes_all_the_time_is_not_calm_in_between() {
        let (least, ms) = (Duration::from_millis(50), Duration::from_millis);
        let mut fidelity = Fidelity::default();
        fidelity.beat(ms(1000));
        assert_eq!(fidelity.calm(least), least, "once is not all the time");
        fidelity.beat(ms(1080));
        assert_eq!(fidelity.calm(least), ms(160));
        fidelity.beat(ms(1090));
        assert_eq!(fidelity.calm(least), least);
        fidelity.beat(ms(2000));
        assert_eq!(fidelity.calm(least), least, "it had rested");
    }

    #[test]
    fn a_spot_is_asked_once_whether_it_is_text() {
        let mut fidelity = Fidelity::default();
        fidelity.lost(size(), Rect::new(0, 0, 64, 64), Grade::Preview, NOW);
        let spot = fidelity.coarse(size()).next().expect("a spot");
        fidelity.is_picture(spot);
        assert!(fidelity.coarse(size()).all(|spot| spot.picture));
        fidelity.lost(size(), Rect::new(0, 0, 1, 1), Grade::Preview, NOW);
        assert!(fidelity.coarse(size()).all(|spot| !spot.picture));
    }
}
