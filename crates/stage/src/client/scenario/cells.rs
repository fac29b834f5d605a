//! A window of which each frame changes one cell of 32 × 32 pixels: 4096 bytes.

use super::Pace;
use super::busy::noise;
use crate::client::{Client, ClientError};
use crate::compositor::Rect;
use crate::image::Image;
use crate::random::Random;

/// A window that changes one cell of noise in each frame, from left to right and top to bottom. It has no strip:
/// the cell is all that changes.
#[derive(Clone, Debug)]
pub struct Cells {
    /// Title of the window.
    pub title: String,
    /// Cells in a row.
    pub columns: u32,
    /// Rows of cells.
    pub rows: u32,
    /// Buffers drawn into in turn.
    pub buffers: usize,
    /// When the next frame is drawn.
    pub pace: Pace,
    /// How many frames after the first, which is the plain window; `None` goes on until it is stopped.
    pub frames: Option<u64>,
    /// Decides the noise.
    pub seed: u64,
}

impl Default for Cells {
    fn default() -> Cells {
        Cells {
            title: "cells".to_owned(),
            columns: 20,
            rows: 15,
            buffers: 2,
            pace: Pace::Callbacks,
            frames: None,
            seed: 1,
        }
    }
}

impl Cells {
    /// Side of a cell in pixels.
    pub const SIDE: u32 = 32;

    /// Runs until its frames are drawn, its window is closed or it is stopped.
    ///
    /// # Errors
    /// As [`Client::draw_part`].
    pub fn run(self, client: &mut Client) -> Result<(), ClientError> {
        let (width, height) = (self.columns * Cells::SIDE, self.rows * Cells::SIDE);
        let window = client.window(&self.title, width, height)?;
        client.set_buffers(window, self.buffers);
        let mut image = Image::new(width, height, 0xff40_4850);
        let mut cell = Image::new(Cells::SIDE, Cells::SIDE, 0);
        let mut random = Random::new(self.seed);
        let mut began = crate::now();
        self.pace.prepare(client, window);
        client.draw(window, &image)?;
        let mut frame = 0;
        while !client.closed(window) && self.frames.is_none_or(|frames| frame < frames) {
            self.pace.wait(client, window, began)?;
            client.take_inputs();
            began = crate::now();
            let index = (frame % u64::from(self.columns * self.rows)) as u32;
            let (x, y) = (index % self.columns * Cells::SIDE, index / self.columns * Cells::SIDE);
            noise(&mut cell, &mut random);
            image.blend(&cell, x as i32, y as i32);
            let damage = Rect::new(x as i32, y as i32, Cells::SIDE as i32, Cells::SIDE as i32);
            self.pace.prepare(client, window);
            client.draw_part(window, &image, &[damage])?;
            frame += 1;
        }
        Ok(())
    }
}
