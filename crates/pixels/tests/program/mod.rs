//! A program that paints, for tests.

use std::convert::Infallible;

use proptest::prelude::*;
use wayferry_pixels::{Draft, Format, Layout, Rect, Region, Size};

/// How the program's buffer for a commit lies in memory.
#[derive(Clone, Debug)]
pub(crate) struct Buffer {
    pub(crate) offset: u64,
    pub(crate) padding: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Paint {
    Solid(u8),
    Noise(u64),
    Stripes,
    /// Few colours, with rows that differ.
    Text(u64),
    /// Colours that change slowly.
    Photo(u64),
    /// What is there moves down by so many rows, or up; the rows that come in are as they were.
    Scroll(i32),
}

pub(crate) fn paint() -> impl Strategy<Value = Paint> {
    prop_oneof![
        any::<u8>().prop_map(Paint::Solid),
        any::<u64>().prop_map(Paint::Noise),
        Just(Paint::Stripes),
        any::<u64>().prop_map(Paint::Text),
        any::<u64>().prop_map(Paint::Photo),
        (-60..60i32).prop_map(Paint::Scroll),
        (-60..60i32).prop_map(Paint::Scroll),
    ]
}

pub(crate) fn rect(size: Size) -> impl Strategy<Value = Rect> {
    let part = (0..size.width(), 0..size.height()).prop_flat_map(move |(x, y)| {
        (1..=size.width() - x, 1..=size.height() - y)
            .prop_map(move |(width, height)| Rect::new(x, y, width, height))
    });
    prop_oneof![4 => part, 1 => Just(size.rect())]
}

/// What the program wants to show: rows without padding.
pub(crate) struct Picture {
    pub(crate) size: Size,
    pub(crate) pixel: usize,
    pub(crate) bytes: Vec<u8>,
}

impl Picture {
    pub(crate) fn new(size: Size, format: Format) -> Self {
        let pixel = format.bytes_per_pixel();
        Self { size, pixel, bytes: vec![0; size.rect().area() as usize * pixel] }
    }

    pub(crate) fn paint(&mut self, rect: Rect, paint: Paint) {
        if let Paint::Scroll(distance) = paint {
            return self.scroll(rect, distance);
        }
        let mut seed = 1;
        let mut colour = [0x80u8; 4];
        for y in rect.y..rect.bottom() {
            let start = (y * self.size.width() + rect.x) as usize * self.pixel;
            let row = &mut self.bytes[start..start + rect.width as usize * self.pixel];
            for (index, byte) in row.iter_mut().enumerate() {
                *byte = match paint {
                    Paint::Solid(value) => value,
                    Paint::Stripes => (y % 3) as u8,
                    Paint::Noise(salt) => noise(&mut seed, salt),
                    Paint::Text(salt) => [0, 0, 0, 7, 0xff][usize::from(noise(&mut seed, salt)) % 5],
                    Paint::Photo(salt) => {
                        let channel = &mut colour[index % self.pixel];
                        *channel = channel.wrapping_add(noise(&mut seed, salt) % 5).wrapping_sub(2);
                        *channel
                    }
                    Paint::Scroll(_) => *byte,
                };
            }
        }
    }

    fn scroll(&mut self, rect: Rect, distance: i32) {
        let before = self.bytes.clone();
        for y in rect.y..rect.bottom() {
            let Some(from) =
                y.checked_add_signed(-distance).filter(|from| (rect.y..rect.bottom()).contains(from))
            else {
                continue;
            };
            let place = |y: u32| (y * self.size.width() + rect.x) as usize * self.pixel;
            let (from, to, length) = (place(from), place(y), rect.width as usize * self.pixel);
            self.bytes[to..to + length].copy_from_slice(&before[from..from + length]);
        }
    }

    /// The picture in the program's memory, with garbage around it.
    pub(crate) fn memory(&self, buffer: &Buffer, layout: &Layout) -> Vec<u8> {
        let row = self.size.width() as usize * self.pixel;
        let mut memory = vec![0xa5; layout.end() as usize];
        for (y, bytes) in self.bytes.chunks_exact(row).enumerate() {
            let start = buffer.offset as usize + y * (row + buffer.padding as usize);
            memory[start..start + row].copy_from_slice(bytes);
        }
        memory
    }
}

fn noise(seed: &mut u64, salt: u64) -> u8 {
    *seed = seed.wrapping_add(salt | 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (*seed >> 56) as u8
}

pub(crate) fn shuffle<T>(items: &mut [T], salt: u64) {
    let mut seed = salt;
    for index in (1..items.len()).rev() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        items.swap(index, (seed >> 33) as usize % (index + 1));
    }
}

pub(crate) fn absorb(draft: &mut Draft, picture: &Picture, buffer: &Buffer, damage: &Region) -> Region {
    let (size, format) = (draft.content().size(), draft.content().format());
    let stride = draft.content().stride() as u64 + buffer.padding;
    let layout = Layout::new(buffer.offset, stride, size, format).unwrap();
    let memory = picture.memory(buffer, &layout);
    let read = |offset: u64, target: &mut [u8]| {
        let start = offset as usize;
        target.copy_from_slice(&memory[start..start + target.len()]);
        Ok::<(), Infallible>(())
    };
    draft.absorb(&layout, damage, read).unwrap()
}

pub(crate) const PLAIN: Buffer = Buffer { offset: 0, padding: 0 };
