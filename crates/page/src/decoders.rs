//! Decoders of videos, which the script has: what they are to do, and what they owe.
//!
//! The script takes [`Task`]s in their order, and answers frames by their numbers, in any order. Invariants: a decoder
//! is given the frames of one stream, in their order, and is ended once; what it owes when it fails will not come, and
//! what it says after that is passed over; all that is under way has its room until it is answered.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use wayferry_proto::Time;
use wayferry_video::{Decoded, Kind, Layout, Size};

use crate::end::End;
use crate::share::{Lease, Share};

/// Bytes of decoders, as far as can be known: a dozen of 1920 × 1080 pixels.
const MAX_DECODERS: usize = 512 << 20;
/// Bytes of frames that are being decoded, and of their pictures until they are painted.
const MAX_PICTURES: usize = 128 << 20;

/// What a decoder may take: in bytes per pixel of its pictures, which are larger than the video by so many pixels in
/// each direction, and in bytes for any size.
const DECODER_COST: usize = 16;
const MARGIN: u32 = 80;
const LEAST_DECODER: usize = 4 << 20;

/// What a frame counts for at the least: a browser keeps more of it than its bytes.
const LEAST_PICTURE: usize = 1 << 20;

/// A decoder that owes a frame for so long has failed.
const PATIENCE: Duration = Duration::from_secs(1);

/// What the script's decoders are to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Task {
    /// A frame is to be decoded: [`Page::on_decoded`](crate::Page::on_decoded) takes its planes, or
    /// [`Page::on_undecodable`](crate::Page::on_undecodable) is called.
    Decode {
        /// Which decoder has all frames of its stream. One that is new is made.
        decoder: u32,
        /// Counts up over all decoders.
        number: u32,
        /// It needs none before it.
        is_key: bool,
        /// H.264 of constrained baseline profile, in the byte stream format, with its parameters before a key frame.
        data: Vec<u8>,
    },
    /// This decoder has no more to do.
    End {
        /// Which one.
        decoder: u32,
    },
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Decoders {
    room: Rc<Share>,
    pictures: Rc<Share>,
    inner: RefCell<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    tasks: VecDeque<Task>,
    /// By their numbers. Those that have failed are there no more.
    decoders: BTreeMap<u32, Decoder>,
    /// By the numbers of frames, the one first that was asked first.
    asked: BTreeMap<u32, Asked>,
    last_decoder: u32,
    last_frame: u32,
}

#[derive(Debug)]
struct Decoder {
    owes: usize,
    /// The script has heard of it.
    is_known: bool,
    /// Its stream is over.
    is_left: bool,
    _room: Lease,
}

#[derive(Debug)]
struct Asked {
    decoder: u32,
    since: Time,
    size: Size,
    picture: Rc<Picture>,
    room: Lease,
}

/// A stream's decoder, until it is dropped.
#[derive(Debug)]
pub(crate) struct Handle {
    decoder: u32,
    size: Size,
    decoders: Rc<Decoders>,
}

/// What becomes of a frame.
#[derive(Debug)]
pub(crate) struct Picture(RefCell<State>);

#[derive(Debug)]
enum State {
    Asked,
    Decoded(Decoded, #[expect(dead_code, reason = "it is given back with the picture")] Lease),
    Failed,
}

impl Picture {
    fn new(state: State) -> Rc<Self> {
        Rc::new(Self(RefCell::new(state)))
    }

    /// Whether it is still to come.
    pub(crate) fn is_awaited(&self) -> bool {
        matches!(*self.0.borrow(), State::Asked)
    }

    /// Shows it to `look`; `None` if there is none.
    pub(crate) fn with<T>(&self, look: impl FnOnce(&Decoded) -> T) -> Option<T> {
        match &*self.0.borrow() {
            State::Decoded(decoded, _) => Some(look(decoded)),
            State::Asked | State::Failed => None,
        }
    }
}

impl Decoders {
    pub(crate) fn new() -> Rc<Self> {
        Rc::new(Self {
            room: Share::new("bytes of decoders", MAX_DECODERS),
            pictures: Share::new("bytes of frames that are decoded", MAX_PICTURES),
            inner: RefCell::default(),
        })
    }

    /// One for a stream of this size.
    ///
    /// # Errors
    /// There is no room for one more.
    pub(crate) fn begin(self: &Rc<Self>, size: Size) -> Result<Handle, End> {
        let pixels = (size.width() + MARGIN) as usize * (size.height() + MARGIN) as usize;
        let room = self.room.lease(LEAST_DECODER + pixels * DECODER_COST)?;
        let mut inner = self.inner.borrow_mut();
        // A decoder lives long; of so many none is left.
        inner.last_decoder = inner.last_decoder.wrapping_add(1);
        let decoder = inner.last_decoder;
        inner.decoders.insert(decoder, Decoder { owes: 0, is_known: false, is_left: false, _room: room });
        Ok(Handle { decoder, size, decoders: Rc::clone(self) })
    }

    /// Whether so much is under way that nothing is to be decoded before it must.
    pub(crate) fn are_busy(&self) -> bool {
        self.pictures.taken() > MAX_PICTURES / 2
    }

    /// Bytes that all take.
    pub(crate) fn taken(&self) -> usize {
        self.room.taken() + self.pictures.taken()
    }

    pub(crate) fn poll(&self) -> Option<Task> {
        let mut inner = self.inner.borrow_mut();
        let task = inner.tasks.pop_front();
        if let Some(Task::Decode { decoder, .. }) = task
            && let Some(decoder) = inner.decoders.get_mut(&decoder)
        {
            decoder.is_known = true;
        }
        task
    }

    /// The planes of a frame; one that is not asked for is passed over.
    pub(crate) fn on_decoded(&self, number: u32, layout: Layout, planes: Vec<u8>) {
        let mut inner = self.inner.borrow_mut();
        let size = inner.asked.get(&number).map(|asked| asked.size);
        match size.and_then(|size| Decoded::new(size, layout, planes)) {
            Some(decoded) => inner.answer(number, decoded),
            None => inner.fail_frame(number),
        }
    }

    /// A frame was not decoded, so its decoder has failed.
    pub(crate) fn on_undecodable(&self, number: u32) {
        self.inner.borrow_mut().fail_frame(number);
    }

    pub(crate) fn next_timeout(&self) -> Option<Time> {
        self.inner.borrow().asked.values().next().map(|asked| asked.since + PATIENCE)
    }

    /// Decoders that have owed something for too long have failed. Says whether there are any.
    pub(crate) fn on_timeout(&self, now: Time) -> bool {
        let mut inner = self.inner.borrow_mut();
        let mut any = false;
        while let Some((_, asked)) = inner.asked.first_key_value()
            && asked.since + PATIENCE <= now
        {
            let decoder = asked.decoder;
            inner.fail(decoder);
            any = true;
        }
        any
    }

    /// All programs are gone: nothing more is wanted of any decoder.
    pub(crate) fn end_all(&self) {
        let mut inner = self.inner.borrow_mut();
        let decoders: Vec<u32> = inner.decoders.keys().copied().collect();
        decoders.into_iter().for_each(|decoder| inner.fail(decoder));
    }
}

impl Inner {
    fn answer(&mut self, number: u32, decoded: Decoded) {
        let Some(Asked { decoder, picture, room, .. }) = self.asked.remove(&number) else { return };
        picture.0.replace(State::Decoded(decoded, room));
        if let Some(it) = self.decoders.get_mut(&decoder) {
            it.owes -= 1;
            if it.is_left && it.owes == 0 {
                self.end(decoder);
            }
        }
    }

    fn fail_frame(&mut self, number: u32) {
        if let Some(decoder) = self.asked.get(&number).map(|asked| asked.decoder) {
            self.fail(decoder);
        }
    }

    /// Nothing comes of a decoder any more.
    fn fail(&mut self, decoder: u32) {
        self.end(decoder);
        let owed = self.asked.extract_if(.., |_, asked| asked.decoder == decoder);
        owed.for_each(|(_, asked)| drop(asked.picture.0.replace(State::Failed)));
    }

    fn end(&mut self, decoder: u32) {
        let Some(Decoder { is_known, .. }) = self.decoders.remove(&decoder) else { return };
        // What the script has not taken it need not do.
        self.tasks.retain(|task| !matches!(task, Task::Decode { decoder: of, .. } if *of == decoder));
        if is_known {
            self.tasks.push_back(Task::End { decoder });
        }
    }
}

impl Handle {
    /// Has the next frame decoded. There is no picture if the decoder has failed, or there is no room.
    pub(crate) fn decode(&self, now: Time, kind: Kind, data: &[u8]) -> Rc<Picture> {
        let bytes = (Decoded::length(self.size) + data.len()).max(LEAST_PICTURE);
        let mut inner = self.decoders.inner.borrow_mut();
        let Some(decoder) = inner.decoders.get_mut(&self.decoder) else { return Picture::new(State::Failed) };
        let Ok(room) = self.decoders.pictures.lease(bytes) else {
            // What follows builds on it.
            inner.fail(self.decoder);
            return Picture::new(State::Failed);
        };
        decoder.owes += 1;
        inner.last_frame = inner.last_frame.checked_add(1).unwrap_or(1);
        let (number, picture) = (inner.last_frame, Picture::new(State::Asked));
        let asked =
            Asked { decoder: self.decoder, since: now, size: self.size, picture: Rc::clone(&picture), room };
        inner.asked.insert(number, asked);
        let (decoder, is_key) = (self.decoder, kind == Kind::Key);
        inner.tasks.push_back(Task::Decode { decoder, number, is_key, data: data.to_vec() });
        picture
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let mut inner = self.decoders.inner.borrow_mut();
        if let Some(decoder) = inner.decoders.get_mut(&self.decoder) {
            decoder.is_left = true;
            if decoder.owes == 0 {
                inner.end(self.decoder);
            }
        }
    }
}
