//! A window full of noise: nothing of it can be compressed, and every frame is new.

use super::Pace;
use crate::client::{Client, ClientError};
use crate::image::Image;
use crate::random::Random;
use crate::strip::Strip;

/// A window whose every pixel changes in every frame; the [`Strip`], a large one if there is room, tells which frame it
/// is.
#[derive(Clone, Debug)]
pub struct Busy {
    /// Title of the window.
    pub title: String,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// Buffers drawn into in turn.
    pub buffers: usize,
    /// When the next frame is drawn.
    pub pace: Pace,
    /// How many frames; `None` goes on until it is stopped.
    pub frames: Option<u64>,
    /// Decides the noise.
    pub seed: u64,
}

impl Default for Busy {
    fn default() -> Busy {
        Busy {
            title: "busy".to_owned(),
            width: 1280,
            height: 720,
            buffers: 2,
            pace: Pace::Callbacks,
            frames: None,
            seed: 1,
        }
    }
}

impl Busy {
    /// Runs until its frames are drawn, its window is closed or it is stopped.
    ///
    /// # Errors
    /// As [`Client::draw_part`].
    pub fn run(self, client: &mut Client) -> Result<(), ClientError> {
        let window = client.window(&self.title, self.width, self.height)?;
        client.set_buffers(window, self.buffers);
        let mut image = Image::new(self.width, self.height, 0);
        let mut random = Random::new(self.seed);
        let mut frame = 0;
        while !client.closed(window) && self.frames.is_none_or(|frames| frame < frames) {
            frame += 1;
            let drawn = crate::now();
            noise(&mut image, &mut random);
            let strip = Strip { frame, drawn, value: client.counts().key_presses };
            // On a slow link the picture is lossy. A small window has no room for the large strip.
            if !strip.draw_large(&mut image) {
                strip.draw(&mut image);
            }
            self.pace.prepare(client, window);
            client.draw(window, &image)?;
            self.pace.wait(client, window, drawn)?;
            client.take_inputs();
        }
        Ok(())
    }
}

/// Fills a picture with noise.
pub(crate) fn noise(image: &mut Image, random: &mut Random) {
    for y in 0..image.height() {
        let (pairs, last) = image.row_mut(y).as_chunks_mut::<2>();
        for pair in pairs {
            let bits = random.next();
            *pair = [bits as u32 | OPAQUE, (bits >> 32) as u32 | OPAQUE];
        }
        for pixel in last {
            *pixel = random.next() as u32 | OPAQUE;
        }
    }
}

const OPAQUE: u32 = 0xff00_0000;
