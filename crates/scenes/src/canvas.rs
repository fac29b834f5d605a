//! A buffer of XRGB8888 pixels and what paints into it.
//!
//! It knows no damage and no programs. Rectangles are clipped to the canvas, and glyphs to the clip that was set.
//! Invariant: the unused byte of a pixel is 255.

/// A rectangle in pixels; empty when a side is zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rect {
    /// First column.
    pub x: u32,
    /// First row.
    pub y: u32,
    /// Columns.
    pub width: u32,
    /// Rows.
    pub height: u32,
}

impl Rect {
    /// The rectangle with its corner at (x, y).
    pub const fn new(x: u32, y: u32, width: u32, height: u32) -> Self {
        Self { x, y, width, height }
    }

    /// First column to the right of it.
    pub const fn right(self) -> u32 {
        self.x.saturating_add(self.width)
    }

    /// First row below it.
    pub const fn bottom(self) -> u32 {
        self.y.saturating_add(self.height)
    }

    /// Pixels inside.
    pub const fn area(self) -> u64 {
        self.width as u64 * self.height as u64
    }

    /// What lies in both; empty when nothing does.
    #[must_use]
    pub fn within(self, other: Self) -> Self {
        let (x, y) = (self.x.max(other.x), self.y.max(other.y));
        let width = self.right().min(other.right()).saturating_sub(x);
        let height = self.bottom().min(other.bottom()).saturating_sub(y);
        if width == 0 || height == 0 { Self::new(x, y, 0, 0) } else { Self::new(x, y, width, height) }
    }
}

/// A colour: red, green, blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Color(pub u8, pub u8, pub u8);

impl Color {
    /// As a pixel in memory.
    pub const fn pixel(self) -> [u8; 4] {
        [self.2, self.1, self.0, 255]
    }
}

/// A picture in memory, rows from top to bottom without padding.
#[derive(Clone, PartialEq, Eq)]
pub struct Canvas {
    width: u32,
    height: u32,
    pixels: Vec<[u8; 4]>,
    clip: Rect,
}

impl Canvas {
    /// A canvas of one colour.
    pub fn new(width: u32, height: u32, color: Color) -> Self {
        let pixels = vec![color.pixel(); width as usize * height as usize];
        Self { width, height, pixels, clip: Rect::new(0, 0, width, height) }
    }

    /// Columns.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Rows.
    pub fn height(&self) -> u32 {
        self.height
    }

    /// All of it.
    pub fn rect(&self) -> Rect {
        Rect::new(0, 0, self.width, self.height)
    }

    /// All pixels: blue, green, red, unused.
    pub fn pixels(&self) -> &[[u8; 4]] {
        &self.pixels
    }

    /// All pixels, to be written.
    pub fn pixels_mut(&mut self) -> &mut [[u8; 4]] {
        &mut self.pixels
    }

    /// Keeps what is painted from now on inside `clip`.
    pub(crate) fn set_clip(&mut self, clip: Rect) {
        self.clip = clip.within(self.rect());
    }

    /// Lets everything be painted again.
    pub(crate) fn unclip(&mut self) {
        self.clip = self.rect();
    }

    /// Paints a rectangle.
    pub fn fill(&mut self, rect: Rect, color: Color) {
        let rect = rect.within(self.clip);
        for y in rect.y..rect.bottom() {
            let start = self.index(rect.x, y);
            self.pixels[start..start + rect.width as usize].fill(color.pixel());
        }
    }

    /// Paints the edge of a rectangle, one pixel wide.
    pub(crate) fn frame(&mut self, rect: Rect, color: Color) {
        let Rect { x, y, width, height } = rect;
        self.fill(Rect::new(x, y, width, 1), color);
        self.fill(Rect::new(x, rect.bottom() - 1, width, 1), color);
        self.fill(Rect::new(x, y, 1, height), color);
        self.fill(Rect::new(rect.right() - 1, y, 1, height), color);
    }

    /// Mixes `color` into a pixel, `level` parts of 255. What is outside the clip stays.
    pub(crate) fn blend(&mut self, x: i32, y: i32, color: Color, level: u8) {
        let (Ok(x), Ok(y)) = (u32::try_from(x), u32::try_from(y)) else { return };
        let clip = self.clip;
        if x < clip.x || y < clip.y || x >= clip.right() || y >= clip.bottom() {
            return;
        }
        let index = self.index(x, y);
        let under = &mut self.pixels[index];
        for (under, over) in under.iter_mut().zip(color.pixel()) {
            let (old, new, level) = (u32::from(*under), u32::from(over), u32::from(level));
            *under = ((old * (255 - level) + new * level + 127) / 255) as u8;
        }
    }

    /// Moves the content of `rect` up by `rows`; the rows at its bottom stay as they were.
    pub(crate) fn scroll_up(&mut self, rect: Rect, rows: u32) {
        let rect = rect.within(self.rect());
        for y in rect.y..rect.bottom().saturating_sub(rows) {
            let (from, to) = (self.index(rect.x, y + rows), self.index(rect.x, y));
            self.pixels.copy_within(from..from + rect.width as usize, to);
        }
    }

    /// Paints `source` with its corner at (x, y), which may lie above or left of the canvas.
    pub(crate) fn draw(&mut self, source: &Self, x: i32, y: i32) {
        for row in 0..source.height {
            let Ok(target) = u32::try_from(y.saturating_add(row as i32)) else { continue };
            let line =
                Rect::new(x.max(0) as u32, target, source.width.saturating_sub(x.min(0).unsigned_abs()), 1);
            let line = line.within(self.clip);
            if line.area() == 0 {
                continue;
            }
            let from = source.index((line.x as i32 - x) as u32, row);
            let to = self.index(line.x, line.y);
            let length = line.width as usize;
            self.pixels[to..to + length].copy_from_slice(&source.pixels[from..from + length]);
        }
    }

    fn index(&self, x: u32, y: u32) -> usize {
        y as usize * self.width as usize + x as usize
    }
}

impl std::fmt::Debug for Canvas {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Canvas")
            .field("width", &self.width)
            .field("height", &self.height)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn painting_stays_inside_the_clip() {
        let (black, white) = (Color(0, 0, 0), Color(255, 255, 255));
        let mut canvas = Canvas::new(8, 8, black);
        canvas.set_clip(Rect::new(2, 2, 3, 3));
        canvas.fill(Rect::new(0, 0, 100, 4), white);
        canvas.draw(&Canvas::new(4, 4, white), -1, 2);
        canvas.blend(4, 4, white, 128);
        canvas.blend(-1, 9, white, 255);
        let lit: Vec<usize> = (0..64).filter(|index| canvas.pixels[*index] != black.pixel()).collect();
        assert_eq!(lit, [18, 19, 20, 26, 27, 28, 34, 36]);
        assert_eq!(canvas.pixels[36], [128, 128, 128, 255]);
    }

    #[test]
    fn scrolling_moves_rows_up() {
        let mut canvas = Canvas::new(2, 4, Color(0, 0, 0));
        canvas.fill(Rect::new(0, 2, 2, 1), Color(9, 9, 9));
        canvas.scroll_up(Rect::new(1, 0, 1, 4), 2);
        let reds: Vec<u8> = canvas.pixels.iter().map(|pixel| pixel[2]).collect();
        assert_eq!(reds, [0, 9, 0, 0, 9, 9, 0, 0]);
    }
}
