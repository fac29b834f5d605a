//! A browser that decodes as natively, and a video that it decodes.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use wayferry_message::WireId;
use wayferry_page::{Page, Task};
use wayferry_pixels::video::Frame;
use wayferry_pixels::{Rect, Video};
use wayferry_proto::Time;
use wayferry_video::{Decoder, Encoder, Layout, Order, Quality, Rate, Size};

use crate::view::PROGRAM;

/// The side of a window, and where videos are in it.
pub(crate) const SIDE: u32 = 96;
pub(crate) const HERE: Rect = Rect::new(5, 6, 50, 75);

/// See the module.
pub(crate) struct Browser {
    layout: Layout,
    decoders: BTreeMap<u32, (Decoder, u64)>,
    pub(crate) begun: Vec<u32>,
    pub(crate) ended: Vec<u32>,
    /// Frames that were given out at once, at the most.
    pub(crate) most: usize,
}

impl Browser {
    pub(crate) fn new(layout: Layout) -> Self {
        Self { layout, decoders: BTreeMap::new(), begun: Vec::new(), ended: Vec::new(), most: 0 }
    }

    /// Does what there is to be done, until nothing is.
    pub(crate) fn work(&mut self, page: &mut Page) {
        loop {
            let (answers, _) = self.take(page);
            if answers.is_empty() {
                return;
            }
            self.give(page, answers);
        }
    }

    /// Decodes what there is; gives the planes by the numbers of frames, and these.
    pub(crate) fn take(&mut self, page: &mut Page) -> (Vec<(u32, Vec<u8>)>, Vec<u32>) {
        let mut answers = Vec::new();
        while let Some(task) = page.poll_task() {
            match task {
                Task::Decode { decoder, number, is_key, data } => {
                    let (begun, size) = (&mut self.begun, || size_of_stream(&data));
                    let (codec, count) = self.decoders.entry(decoder).or_insert_with(|| {
                        assert!(is_key, "a stream begins with a key frame");
                        begun.push(decoder);
                        (Decoder::new(size()), 0)
                    });
                    *count += 1;
                    let planes = codec.decode(*count, &data).map(|picture| picture.planes(self.layout));
                    answers.push((number, planes.unwrap_or_default()));
                }
                Task::End { decoder } => {
                    assert!(self.decoders.remove(&decoder).is_some(), "decoder {decoder} ends twice");
                    self.ended.push(decoder);
                }
            }
        }
        self.most = self.most.max(answers.len());
        let numbers = answers.iter().map(|(number, _)| *number).collect();
        (answers, numbers)
    }

    pub(crate) fn give(&self, page: &mut Page, answers: Vec<(u32, Vec<u8>)>) {
        for (number, planes) in answers {
            page.on_decoded(Time::ZERO, number, self.layout, planes);
        }
    }
}

/// Any of the tests' that has as many blocks: the parameters tell no more.
fn size_of_stream(data: &[u8]) -> Size {
    let sizes = [(HERE.width, HERE.height), (30, 90), (50, 50)];
    let sizes = sizes.map(|(width, height)| Size::new(width, height).expect("a size"));
    let fits = |size: &Size| Decoder::new(*size).decode(1, data).is_ok();
    sizes.into_iter().find(fits).expect("a size of these tests")
}

/// A video that is encoded, and what a native display shows of it.
pub(crate) struct Film {
    video: Video,
    encoder: Encoder,
    decoder: Decoder,
    count: u64,
    shown: Vec<u8>,
}

impl Film {
    pub(crate) fn new(stream: u8, rect: Rect) -> Self {
        let size = Size::new(rect.width, rect.height).expect("a size");
        Self {
            video: Video { stream, rect, key: true },
            encoder: Encoder::new(size, Quality::new(80)),
            decoder: Decoder::new(size),
            count: 0,
            shown: Vec::new(),
        }
    }

    /// The next frame: some grey with a slope, so that no two rows are alike.
    pub(crate) fn next(&mut self, level: u8) -> Frame {
        let Rect { width, height, .. } = self.video.rect;
        let pixel = |at: u32| {
            let slope = (at / width + at % width / 4) as u8;
            [level.saturating_sub(slope / 64), level, level.saturating_add(slope / 64), 9]
        };
        let picture: Vec<u8> = (0..width * height).flat_map(pixel).collect();
        let row = |y: u32| &picture[(y * width) as usize * 4..][..width as usize * 4];
        let rate = Rate { bits_per_second: 2_000_000, interval: Duration::from_millis(33) };
        let frame = self.encoder.encode(Order::Bgrx, row, rate, false).expect("sound").expect("a frame");
        self.count += 1;
        let (mut shown, fourth) = (Vec::new(), 77);
        let decoded = self.decoder.decode(self.count, &frame.data).expect("sound");
        decoded.rows(Order::Bgrx, fourth, |_, row| shown.extend_from_slice(row));
        self.shown = shown;
        let video = Video { key: self.count == 1, ..self.video };
        Frame { video, fourth, data: frame.data }
    }

    /// Whether a surface shows the last frame, each pixel as it is natively.
    pub(crate) fn is_shown(&self, page: &Page, surface: u64) -> bool {
        let program = page.programs().find(|(id, _)| *id == PROGRAM).expect("a program").1;
        let Some(content) = program.content(WireId(surface)) else { return false };
        let Rect { x, y, width, height } = self.video.rect;
        let rows = (y..y + height).flat_map(|y| content.row(y, x, width));
        rows.eq(&self.shown)
    }
}

/// The blue of a pixel of a surface.
pub(crate) fn at(page: &Page, surface: u64, x: u32, y: u32) -> u8 {
    let program = page.programs().find(|(id, _)| *id == PROGRAM).expect("a program").1;
    program.content(WireId(surface)).expect("content").row(y, x, 1)[0]
}

pub(crate) fn near(level: u8, wanted: u8) -> bool {
    level.abs_diff(wanted) <= 3
}

pub(crate) fn bytes_of(frame: &Frame) -> Vec<Bytes> {
    let mut chunks = Vec::new();
    frame.write(&mut chunks);
    chunks.into_iter().map(Bytes::from).collect()
}
