//! A decoded picture, as rows of pixels.
//!
//! It lies wherever its decoder has it. Invariant: the view has all rows of the size.

use crate::color::Order;
use crate::elsewhere::Layout;
use crate::planes::View;
use crate::size::Size;

/// A decoded picture, for as long as its decoder lends it.
#[derive(Debug)]
pub struct Picture<'a> {
    size: Size,
    view: View<'a>,
}

impl<'a> Picture<'a> {
    pub(crate) fn new(size: Size, view: View<'a>) -> Self {
        Self { size, view }
    }

    /// Its size.
    pub fn size(&self) -> Size {
        self.size
    }

    /// Hands every row to `paint`, from the top: its number and its pixels, 4 bytes each, the last of which is `fill`.
    pub fn rows(&self, order: Order, fill: u8, mut paint: impl FnMut(u32, &[u8])) {
        let mut row = vec![0; self.size.row()];
        for y in 0..self.size.height() {
            self.view.row(y as usize, order, fill, &mut row);
            paint(y, &row);
        }
    }

    /// What it is made of, as [`Decoded`](crate::Decoded) takes it: what tests have in place of a browser.
    pub fn planes(&self, layout: Layout) -> Vec<u8> {
        let (width, height) = self.size.coded();
        let View { y, u, v, luma_stride, chroma_stride } = self.view;
        let rows = |plane: &[u8], stride: usize, width: usize, height: usize| {
            plane.chunks(stride).take(height).flat_map(|row| &row[..width]).copied().collect::<Vec<u8>>()
        };
        let [u, v] = [u, v].map(|plane| rows(plane, chroma_stride, width / 2, height / 2));
        let chroma = match layout {
            Layout::I420 => [u, v].concat(),
            Layout::Nv12 => u.into_iter().zip(v).flat_map(|(u, v)| [u, v]).collect(),
        };
        [rows(y, luma_stride, width, height), chroma].concat()
    }
}
