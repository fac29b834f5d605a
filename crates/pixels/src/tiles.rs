//! Rows of tiles of a content as they were: copy on write.
//!
//! Before a row of a tile is overwritten for the first time, it is kept here; what is kept together with the
//! content is then the content of before. It does not know what overwrites them.
//!
//! The one invariant: a row of a tile is kept at most once, whole, and as it was before any of it changed.

use crate::content::Content;
use crate::geometry::{Rect, Size};

/// Side of a tile, in pixels.
pub(crate) const TILE: u32 = 64;

/// Old rows of the tiles of a content of one size and format.
#[derive(Default)]
pub(crate) struct Tiles {
    /// By row of tiles, then by column; empty until the first row is kept.
    tiles: Vec<Tile>,
    columns: u32,
    count: usize,
    /// Memory for tiles.
    spare: Vec<Vec<u8>>,
}

/// Old rows of a tile.
#[derive(Default)]
struct Tile {
    /// A bit for each row that is kept, the lowest for the uppermost.
    rows: u64,
    /// Empty, or as long as the whole tile.
    bytes: Vec<u8>,
}

impl Tiles {
    /// How many tiles have a row that is kept.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Keeps row `y` of a column of tiles of `content`, unless it is kept already.
    pub(crate) fn keep(&mut self, content: &Content, column: u32, y: u32) {
        if self.tiles.is_empty() {
            let size = content.size();
            self.columns = columns(size);
            self.tiles.resize_with((self.columns * rows(size)) as usize, Tile::default);
        }
        let tile = &mut self.tiles[(y / TILE * self.columns + column) as usize];
        let bit = 1 << (y % TILE);
        if tile.rows & bit != 0 {
            return;
        }
        let old = piece(content, column, y);
        if tile.rows == 0 {
            self.count += 1;
            tile.bytes = self.spare.pop().unwrap_or_default();
            tile.bytes.resize(old.len() * TILE as usize, 0);
        }
        tile.rows |= bit;
        tile.bytes[(y % TILE) as usize * old.len()..][..old.len()].copy_from_slice(old);
    }

    /// Which rows of a tile are kept: a bit for each, the lowest for the uppermost. The others have not changed.
    pub(crate) fn kept(&self, column: u32, row: u32) -> u64 {
        self.tiles.get((row * self.columns + column) as usize).map_or(0, |tile| tile.rows)
    }

    /// Forgets everything, and leaves its memory to `next`.
    pub(crate) fn recycle(self, next: &mut Self) {
        next.spare = self.spare;
        let used = self.tiles.into_iter().map(|tile| tile.bytes).filter(|bytes| !bytes.is_empty());
        next.spare.extend(used.take(MAX_SPARE.saturating_sub(next.spare.len())));
    }

    /// Lets the rows of an earlier time take the place of these.
    pub(crate) fn put_below(&mut self, older: Self) {
        if self.tiles.is_empty() {
            *self = older;
            return;
        }
        for (tile, older) in self.tiles.iter_mut().zip(older.tiles) {
            if tile.rows == 0 {
                self.count += usize::from(older.rows != 0);
                *tile = older;
                continue;
            }
            let length = tile.bytes.len() / TILE as usize;
            for row in (0..TILE as usize).filter(|row| older.rows >> row & 1 == 1) {
                let bytes = row * length..(row + 1) * length;
                tile.bytes[bytes.clone()].copy_from_slice(&older.bytes[bytes]);
            }
            tile.rows |= older.rows;
        }
    }

    /// Row `y` of a column of tiles, if it is kept.
    fn old(&self, column: u32, y: u32) -> Option<&[u8]> {
        let tile = self.tiles.get((y / TILE * self.columns + column) as usize)?;
        let length = tile.bytes.len() / TILE as usize;
        (tile.rows >> (y % TILE) & 1 == 1).then(|| &tile.bytes[(y % TILE) as usize * length..][..length])
    }
}

/// Tiles whose memory is kept for the next ones, 4 MiB at most: that of fresh pages costs more time than what
/// is written to it.
const MAX_SPARE: usize = 256;

/// The content of before: what is kept of it, and the present where nothing is.
#[derive(Clone, Copy)]
pub(crate) struct Past<'a> {
    pub(crate) content: &'a Content,
    pub(crate) tiles: &'a Tiles,
}

impl<'a> Past<'a> {
    /// Row `y` of a column of tiles.
    pub(crate) fn piece(&self, column: u32, y: u32) -> &'a [u8] {
        self.tiles.old(column, y).unwrap_or_else(|| piece(self.content, column, y))
    }

    /// Whether row `y` of a column of tiles may have changed.
    pub(crate) fn changed(&self, column: u32, y: u32) -> bool {
        self.tiles.kept(column, y / TILE) >> (y % TILE) & 1 == 1
    }
}

/// Row `y` of a column of tiles.
pub(crate) fn piece(content: &Content, column: u32, y: u32) -> &[u8] {
    content.row(y, column * TILE, tile_width(content.size(), column))
}

/// Columns of tiles.
pub(crate) fn columns(size: Size) -> u32 {
    size.width.div_ceil(TILE)
}

/// Rows of tiles.
pub(crate) fn rows(size: Size) -> u32 {
    size.height.div_ceil(TILE)
}

/// The pixels of a tile.
pub(crate) fn tile(size: Size, column: u32, row: u32) -> Rect {
    let (x, y) = (column * TILE, row * TILE);
    Rect::new(x, y, tile_width(size, column), TILE.min(size.height - y))
}

fn tile_width(size: Size, column: u32) -> u32 {
    TILE.min(size.width - column * TILE)
}
