//! A 4K window that declares all of itself damaged and changes almost nothing.

use super::Pace;
use super::busy::noise;
use crate::client::{Client, ClientError};
use crate::compositor::Rect;
use crate::image::Image;
use crate::random::Random;
use crate::strip::Strip;

/// A large window with full damage and a tiny change (the [`Strip`]) in each frame.
#[derive(Clone, Debug)]
pub struct BigCommit {
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
}

impl Default for BigCommit {
    fn default() -> BigCommit {
        BigCommit {
            title: "big".to_owned(),
            width: 3840,
            height: 2160,
            buffers: 2,
            pace: Pace::Callbacks,
            frames: None,
        }
    }
}

impl BigCommit {
    /// Runs until its frames are drawn, its window is closed or it is stopped.
    ///
    /// # Errors
    /// As [`Client::attach`].
    pub fn run(self, client: &mut Client) -> Result<(), ClientError> {
        let window = client.window(&self.title, self.width, self.height)?;
        client.set_buffers(window, self.buffers);
        let mut image = page(self.width, self.height);
        let whole = Rect::new(0, 0, self.width as i32, self.height as i32);
        let mut changed = whole;
        let mut frame = 0;
        while !client.closed(window) && self.frames.is_none_or(|frames| frame < frames) {
            frame += 1;
            let drawn = crate::now();
            Strip { frame, drawn, value: client.counts().key_presses }.draw(&mut image);
            self.pace.prepare(client, window);
            client.attach(window, &image, &[changed])?;
            client.damage(window, &[whole]);
            client.commit(window);
            client.flush()?;
            changed = Rect::new(0, 0, Strip::WIDTH as i32, Strip::HEIGHT as i32);
            self.pace.wait(client, window, drawn)?;
            client.take_inputs();
        }
        Ok(())
    }
}

/// Something like a page: plain areas, edges and a little noise.
fn page(width: u32, height: u32) -> Image {
    let mut image = Image::new(width, height, 0xfff4_f4f0);
    for line in 0..height / 24 {
        let length = (line * 7919 % 100) as i32 * width as i32 / 110;
        image.fill_rect(40, line as i32 * 24 + 20, length, 10, 0xff20_2830);
    }
    let mut picture = Image::new((width / 4).max(1), (height / 4).max(1), 0);
    noise(&mut picture, &mut Random::new(9));
    image.blend(&picture, width as i32 / 2, height as i32 / 2);
    image
}
