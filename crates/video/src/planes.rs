//! Pictures as the codec takes and gives them: brightness for each pixel, two colour differences for each 2 × 2.
//!
//! [`Planes`] are filled from rows of pixels and made as large as whole blocks: what is beyond the right and lower edge
//! repeats the edge, which costs the fewest bits. [`View`] is a picture wherever it lies, and gives rows of pixels.

use crate::color::{self, Order};
use crate::error::Error;
use crate::size::Size;

/// A picture of a region, in memory of its own.
#[derive(Debug)]
pub(crate) struct Planes {
    y: Vec<u8>,
    u: Vec<u8>,
    v: Vec<u8>,
    size: Size,
}

/// A picture somewhere. Strides are in bytes; the last row may be shorter than its stride.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a> {
    pub(crate) y: &'a [u8],
    pub(crate) u: &'a [u8],
    pub(crate) v: &'a [u8],
    pub(crate) luma_stride: usize,
    pub(crate) chroma_stride: usize,
}

impl Planes {
    pub(crate) fn new(size: Size) -> Self {
        let (width, height) = size.coded();
        let chroma = vec![0; width * height / 4];
        Self { y: vec![0; width * height], u: chroma.clone(), v: chroma, size }
    }

    pub(crate) fn size(&self) -> Size {
        self.size
    }

    pub(crate) fn view(&self) -> View<'_> {
        let (width, _) = self.size.coded();
        View { y: &self.y, u: &self.u, v: &self.v, luma_stride: width, chroma_stride: width / 2 }
    }

    /// Takes a picture, whose rows `row` gives.
    ///
    /// # Errors
    /// [`Error::Row`] when a row is too short; the picture is then partly the new one.
    pub(crate) fn fill<'a>(&mut self, order: Order, row: impl Fn(u32) -> &'a [u8]) -> Result<(), Error> {
        let (size, (width, height)) = (self.size, self.size.coded());
        let luma = self.y.chunks_exact_mut(2 * width);
        let chroma = self.u.chunks_exact_mut(width / 2).zip(self.v.chunks_exact_mut(width / 2));
        let filled = size.height().div_ceil(2);
        for (y, (luma, (u, v))) in (0..filled).zip(luma.zip(chroma)) {
            let upper = whole(row(2 * y), size)?;
            let lower = whole(row((2 * y + 1).min(size.height() - 1)), size)?;
            let (first, second) = luma.split_at_mut(width);
            color::luma(order, upper, first);
            color::luma(order, lower, second);
            color::chroma(order, upper, lower, u, v);
            let columns = size.width() as usize;
            for (row, columns) in
                [(first, columns), (second, columns), (u, columns.div_ceil(2)), (v, columns.div_ceil(2))]
            {
                repeat_last(row, columns);
            }
        }
        repeat_rows(&mut self.y, width, 2 * filled as usize, height);
        repeat_rows(&mut self.u, width / 2, filled as usize, height / 2);
        repeat_rows(&mut self.v, width / 2, filled as usize, height / 2);
        Ok(())
    }
}

impl View<'_> {
    /// Writes row `y` as pixels whose unused byte is `fill`, as many as `target` takes.
    pub(crate) fn row(&self, y: usize, order: Order, fill: u8, target: &mut [u8]) {
        let luma = &self.y[y * self.luma_stride..];
        let (u, v) = (&self.u[y / 2 * self.chroma_stride..], &self.v[y / 2 * self.chroma_stride..]);
        color::pixels(order, luma, u, v, fill, target);
    }
}

fn whole(row: &[u8], size: Size) -> Result<&[u8], Error> {
    row.get(..size.row()).ok_or(Error::Row { length: row.len(), least: size.row() })
}

fn repeat_last(row: &mut [u8], filled: usize) {
    let last = row[filled - 1];
    row[filled..].fill(last);
}

fn repeat_rows(plane: &mut [u8], width: usize, filled: usize, height: usize) {
    let last = (filled - 1) * width;
    for row in filled..height {
        plane.copy_within(last..last + width, row * width);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_edge_goes_on() {
        let size = Size::new(3, 3).unwrap();
        let grey = |level: u8| [level, level, level, 0];
        let rows: Vec<Vec<u8>> =
            [[0, 100, 200], [50, 100, 150], [255, 255, 0]].map(|row| row.map(grey).concat()).into();
        let mut planes = Planes::new(size);
        planes.fill(Order::Bgrx, |y| &rows[y as usize]).unwrap();
        assert_eq!(planes.y[..5], [16, 102, 188, 188, 188]);
        assert_eq!(planes.y[16..21], [59, 102, 145, 145, 145]);
        assert_eq!(planes.y[15 * 16..], planes.y[2 * 16..3 * 16]);
        assert_eq!((planes.y[2 * 16], planes.y[2 * 16 + 15]), (235, 16));
        assert!(planes.u.iter().chain(&planes.v).all(|&chroma| chroma == 128), "grey has no colour");
    }

    #[test]
    fn short_rows_are_refused() {
        let mut planes = Planes::new(Size::new(5, 2).unwrap());
        let result = planes.fill(Order::Bgrx, |_| &[0; 19]);
        assert_eq!(result, Err(Error::Row { length: 19, least: 20 }));
    }
}
