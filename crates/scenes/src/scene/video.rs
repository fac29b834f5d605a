//! A video in a window: a camera that moves and zooms over a picture, and grain that is new in each frame.
//!
//! Places in the picture are in 65536ths of a pixel. The video is damaged whole, the rest of the window never.

use super::{Commit, Program};
use crate::canvas::{Canvas, Color, Rect};
use crate::picture::clean;
use crate::random::Random;

#[derive(Debug)]
pub(super) struct Video {
    picture: Canvas,
    random: Random,
    frames: u32,
}

impl Video {
    pub(super) fn new(canvas: &mut Canvas, random: &Random) -> Self {
        canvas.fill(canvas.rect(), Color(20, 20, 20));
        let mut video =
            Self { picture: clean(1680, 945, &random.fork(13)), random: random.fork(14), frames: 0 };
        video.paint(canvas);
        video
    }

    /// Where the camera is: the corner, and how far its pixels are apart.
    fn camera(&self) -> (u32, u32, u32) {
        // Zooms in and out while it moves to and fro, each at its own pace.
        let zoom = swing(self.frames * 3, 160);
        let step = (1 << 16) - zoom * 100;
        let room = |side: u32, shown: u32| (side - 2) * (1 << 16) - shown * step;
        let (right, down) =
            (room(self.picture.width(), VIDEO.width), room(self.picture.height(), VIDEO.height));
        let part = |room: u32, share: u32| (u64::from(room) * u64::from(share) / 400) as u32;
        (part(right, swing(self.frames * 5, 400)), part(down, swing(self.frames * 2, 400)), step)
    }
}

impl Program for Video {
    fn paint(&mut self, canvas: &mut Canvas) -> Commit {
        let (left, top, step) = self.camera();
        self.frames += 1;
        let width = canvas.width() as usize;
        for row in 0..VIDEO.height {
            let y = top + row * step;
            let start = (VIDEO.y + row) as usize * width + VIDEO.x as usize;
            let target = &mut canvas.pixels_mut()[start..start + VIDEO.width as usize];
            for (column, pixel) in (0..).zip(target) {
                let clean = sample(&self.picture, left + column * step, y);
                *pixel = grain(clean, self.random.bits());
            }
        }
        Commit::of([VIDEO])
    }
}

/// To and fro between 0 and `most`.
fn swing(time: u32, most: u32) -> u32 {
    let time = time % (2 * most);
    time.min(2 * most - time)
}

/// The picture between four pixels.
fn sample(picture: &Canvas, x: u32, y: u32) -> [u8; 4] {
    let width = picture.width() as usize;
    let index = (y >> 16) as usize * width + (x >> 16) as usize;
    let (right, down) = ((x >> 8) & 0xff, (y >> 8) & 0xff);
    let pixels = picture.pixels();
    let corners = [pixels[index], pixels[index + 1], pixels[index + width], pixels[index + width + 1]];
    std::array::from_fn(|byte| {
        let [one, two, three, four] = corners.map(|corner| u32::from(corner[byte]));
        let (above, below) = (one * (256 - right) + two * right, three * (256 - right) + four * right);
        ((above * (256 - down) + below * down + (1 << 15)) >> 16) as u8
    })
}

/// Adds what the video's material adds: up to three levels to all colours alike, up to two to each.
fn grain(pixel: [u8; 4], bits: u64) -> [u8; 4] {
    let of =
        |shift: u32, levels: u64| ((((bits >> shift) & 0xffff) * levels) >> 16) as i16 - (levels / 2) as i16;
    let shared = of(0, 7);
    let add = |byte: u8, own: i16| (i16::from(byte) + shared + own).clamp(0, 255) as u8;
    [add(pixel[0], of(16, 5)), add(pixel[1], 0), add(pixel[2], of(32, 5)), pixel[3]]
}

/// Where the video is.
const VIDEO: Rect = Rect::new(320, 160, 1280, 720);
