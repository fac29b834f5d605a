//! Videos of surfaces, as H.264: between the pixels of a content and `wayferry-video`.
//!
//! It decides neither what is a video nor when a frame is due. Built without the feature `video`, `none.rs` is in its
//! place. Invariant: a decoder shows what the encoder of its stream has made, or fails.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use wayferry_pixels::video::Coming;
use wayferry_pixels::{Content, Format, Rect};
use wayferry_video::{Order, Picture, Quality, Rate, Size};

/// Whether there is a codec.
pub(crate) const IS_THERE: bool = true;

/// Who makes frames: the caller, or a thread. It ends when this is dropped.
#[derive(Debug)]
pub(crate) enum Maker {
    Asker,
    /// From the first frame on.
    Thread(Option<Sender<Job>>),
}

impl Maker {
    /// A thread of its own, if it may have one.
    pub(crate) fn new(threaded: bool) -> Self {
        if threaded { Self::Thread(None) } else { Self::Asker }
    }

    fn thread(&mut self) -> Option<&Sender<Job>> {
        if let Self::Thread(None) = self {
            // Bounded by who asks: a connection makes one content at a time, of a few videos, and waits for their
            // frames.
            let (sender, jobs) = channel();
            let thread = std::thread::Builder::new().name("videos".into()).spawn(move || work(&jobs));
            // The system may have none to give.
            *self = if thread.is_ok() { Self::Thread(Some(sender)) } else { Self::Asker };
        }
        match self {
            Self::Thread(sender) => sender.as_ref(),
            Self::Asker => None,
        }
    }
}

/// Makes frames until its [`Maker`] is dropped.
fn work(jobs: &Receiver<Job>) {
    for job in jobs {
        job.run();
    }
}

/// A frame to be made.
#[derive(Debug)]
pub(crate) struct Job {
    codec: Arc<Codec>,
    order: Order,
    rate: Rate,
    /// As wide as the video.
    pixels: Vec<u8>,
    reply: SyncSender<Vec<u8>>,
}

impl Job {
    fn run(self) {
        let row = |y: u32| {
            let stride = self.pixels.len() / self.codec.size.height() as usize;
            &self.pixels[y as usize * stride..][..stride]
        };
        if let Some(data) = self.codec.encode(self.order, row, self.rate) {
            // No video waits any more if this fails.
            let _ = self.reply.send(data);
        }
    }
}

/// Makes the frames of one video.
#[derive(Debug)]
pub(crate) struct Encoder(Arc<Codec>);

#[derive(Debug)]
struct Codec {
    size: Size,
    stream: Mutex<wayferry_video::Encoder>,
    /// Frames in succession that are far too large.
    excess: AtomicU32,
}

impl Codec {
    fn encode<'a>(&self, order: Order, row: impl Fn(u32) -> &'a [u8], rate: Rate) -> Option<Vec<u8>> {
        let frame = self.stream.lock().ok()?.encode(order, row, rate, false).ok().flatten()?;
        let told = rate.bits_per_second as f64 * rate.interval.as_secs_f64() / 8.0;
        let most = if frame.key { KEY_EXCESS } else { EXCESS };
        let fits = frame.data.len() as f64 <= most * told;
        let excess = if fits { 0 } else { self.excess.load(Ordering::Relaxed) + 1 };
        self.excess.store(excess, Ordering::Relaxed);
        Some(frame.data)
    }
}

impl Encoder {
    /// For a video there, as good as this at best; `None` if it cannot be made.
    pub(crate) fn new(rect: Rect, quality: u8) -> Option<Self> {
        let size = Size::new(rect.width, rect.height).ok()?;
        let stream = Mutex::new(wayferry_video::Encoder::new(size, Quality::new(quality)));
        Some(Self(Arc::new(Codec { size, stream, excess: AtomicU32::new(0) })))
    }

    /// The next frame, of so many bits per second when the next one comes after `interval`. `None` when the codec has
    /// none. The one before must have come.
    pub(crate) fn frame(
        &self,
        maker: &mut Maker,
        content: &Content,
        rect: Rect,
        bits_per_second: u64,
        interval: Duration,
    ) -> Option<Coming> {
        let order = order(content.format())?;
        let row = |y| content.row(rect.y + y, rect.x, rect.width);
        let rate = Rate { bits_per_second, interval };
        let Some(thread) = maker.thread() else { return self.0.encode(order, row, rate).map(Coming::ready) };
        let mut pixels = Vec::with_capacity(rect.area() as usize * 4);
        (0..rect.height).for_each(|y| pixels.extend_from_slice(row(y)));
        let (reply, bytes) = sync_channel(1);
        let codec = Arc::clone(&self.0);
        thread.send(Job { codec, order, rate, pixels, reply }).ok()?;
        let expected = bits_per_second as f64 * interval.as_secs_f64() / 8.0;
        Some(Coming::new(bytes, expected as usize))
    }

    /// Whether the codec cannot make its frames as small as it is told: noise.
    pub(crate) fn fails(&self) -> bool {
        self.0.excess.load(Ordering::Relaxed) >= MOST_EXCESS
    }
}

/// A frame of so many times the bytes that it may have is far too large, one that says everything of even more; so many
/// of them are no accident.
const EXCESS: f64 = 4.0;
const KEY_EXCESS: f64 = 16.0;
const MOST_EXCESS: u32 = 3;

/// Shows the frames of one video.
#[derive(Debug)]
pub(crate) struct Decoder {
    codec: wayferry_video::Decoder,
    frames: u64,
}

impl Decoder {
    /// For a video there.
    pub(crate) fn new(rect: Rect) -> Result<Self, String> {
        let size = Size::new(rect.width, rect.height).map_err(|error| error.to_string())?;
        Ok(Self { codec: wayferry_video::Decoder::new(size), frames: 0 })
    }

    /// Decodes the next frame.
    pub(crate) fn decode(&mut self, data: &[u8]) -> Result<DecodedFrame<'_>, String> {
        self.frames += 1;
        self.codec.decode(self.frames, data).map(DecodedFrame).map_err(|error| error.to_string())
    }
}

/// A frame that was decoded.
#[derive(Debug)]
pub(crate) struct DecodedFrame<'a>(Picture<'a>);

impl DecodedFrame<'_> {
    /// Paints it at the corner of `rect`, which is as large; the fourth channel is `fourth`.
    pub(crate) fn paint(&self, content: &mut Content, rect: Rect, fourth: u8) {
        let Some(order) = order(content.format()) else { return };
        self.0.rows(order, fourth, |y, row| content.write_row(rect.y + y, rect.x, row));
    }
}

/// Whether there are videos in contents of this format.
pub(crate) fn shows(format: Format) -> bool {
    order(format).is_some()
}

fn order(format: Format) -> Option<Order> {
    match format {
        Format::Argb8888 | Format::Xrgb8888 => Some(Order::Bgrx),
        Format::Abgr8888 | Format::Xbgr8888 => Some(Order::Rgbx),
        _ => None,
    }
}
