//! Videos in chunks: frames of a codec that is not known here.
//!
//! ```text
//! u8 3     number stream, number x, y, width − 1, height − 1, u8 flags (1: the stream begins), u8 value of the fourth
//!          channel, length of the frame, its bytes as far as they fit
//! u8 4     number stream, more bytes; right behind the chunk that they continue
//! ```
//! A frame is painted when everything else of its update is, over what that has left there. This module knows
//! neither what is in a frame nor what came before it.
//!
//! The one invariant: the frames of an update lie inside the surface, share no pixel, and are of different streams.

use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};

use crate::chunk::{self, MAX_CHUNK, Reader};
use crate::content::Content;
use crate::error::Error;
use crate::geometry::{Rect, Size};
use crate::motion::{MAX_VIDEOS, Video};

/// Makes the frames of videos: a caller that has a codec.
pub trait Videos {
    /// Begins the next frame of a video, whose pixels are in `content`; of a video that begins a first frame. `None` if
    /// there is none to be had: the video is over then.
    fn frame(&mut self, content: &Content, video: Video) -> Option<Coming>;
}

/// The bytes of a frame that is being made, by another thread perhaps.
#[derive(Debug)]
pub struct Coming {
    bytes: Receiver<Vec<u8>>,
    expected: usize,
}

impl Coming {
    /// Bytes that somebody will send, about so many. Who drops the sender instead has none, and the video is over.
    pub fn new(bytes: Receiver<Vec<u8>>, expected: usize) -> Self {
        Self { bytes, expected }
    }

    /// Bytes that are there.
    pub fn ready(bytes: Vec<u8>) -> Self {
        let (sender, receiver) = sync_channel(1);
        let expected = bytes.len();
        // There is room for one.
        let _ = sender.send(bytes);
        Self::new(receiver, expected)
    }

    /// Waits for them; `None` when there are none.
    pub fn wait(self) -> Option<Vec<u8>> {
        self.bytes.recv().ok()
    }
}

/// A frame whose bytes are still to come.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) video: Video,
    pub(crate) fourth: u8,
    pub(crate) coming: Coming,
}

impl Begun {
    /// About how many bytes it will have.
    pub(crate) fn expected(&self) -> usize {
        self.coming.expected
    }

    /// Waits for its bytes, if `wait`. `Ok(None)` when there are none yet.
    ///
    /// # Errors
    /// There will be none; the video is over.
    pub(crate) fn take(&self, wait: bool) -> Result<Option<Frame>, Video> {
        let bytes = &self.coming.bytes;
        let data = match if wait { bytes.recv().map_err(TryRecvError::from) } else { bytes.try_recv() } {
            Ok(data) => data,
            Err(TryRecvError::Empty) => return Ok(None),
            Err(TryRecvError::Disconnected) => return Err(self.video),
        };
        Ok(Some(Frame { video: self.video, fourth: self.fourth, data }))
    }
}

/// A frame of a video.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Of which video, and whether that begins.
    pub video: Video,
    /// The fourth channel of all its pixels.
    pub fourth: u8,
    /// What the codec has made.
    pub data: Vec<u8>,
}

impl Frame {
    /// Adds the chunks of the frame.
    pub fn write(&self, chunks: &mut Vec<Vec<u8>>) {
        let mut chunk = vec![FRAME];
        chunk::write_number(&mut chunk, self.video.stream.into());
        chunk::write_rect(&mut chunk, self.video.rect);
        chunk.extend([u8::from(self.video.key) * BEGINS, self.fourth]);
        chunk::write_length(&mut chunk, self.data.len());
        let mut rest = &self.data[..];
        loop {
            let (now, later) = rest.split_at(rest.len().min(MAX_CHUNK - chunk.len()));
            chunk.extend_from_slice(now);
            chunks.push(chunk);
            if later.is_empty() {
                return;
            }
            rest = later;
            chunk = vec![MORE];
            chunk::write_number(&mut chunk, self.video.stream.into());
        }
    }

    /// The frame that begins in a chunk, and how long it is to become.
    fn begin(chunk: &[u8], size: Size) -> Result<(Self, usize), Error> {
        let mut reader = Reader::new(chunk);
        reader.byte()?;
        let stream = stream(&mut reader)?;
        let rect = reader.rect(size)?;
        let (flags, fourth) = (reader.byte()?, reader.byte()?);
        let length = reader.length()?;
        let data = reader.rest().to_vec();
        if flags & !BEGINS != 0 {
            return Err(Error::ChunkField);
        }
        let video = Video { stream, rect, key: flags & BEGINS != 0 };
        Ok((Self { video, fourth, data }, length))
    }

    /// Takes more of it from a chunk.
    fn go_on(&mut self, chunk: &[u8]) -> Result<(), Error> {
        let mut reader = Reader::new(chunk);
        let code = reader.byte()?;
        if code != MORE {
            return Err(Error::ChunkTruncated);
        }
        if stream(&mut reader)? != self.video.stream {
            return Err(Error::ChunkField);
        }
        self.data.extend_from_slice(reader.rest());
        Ok(())
    }
}

/// The frames among the chunks of an update, given in their order, and all other chunks.
///
/// # Errors
/// What is wrong with a frame's chunks.
pub fn split<C: AsRef<[u8]>>(chunks: &[C], size: Size) -> Result<(Vec<Frame>, Vec<&C>), Error> {
    let (mut frames, mut others): (Vec<Frame>, _) = (Vec::new(), Vec::new());
    let mut chunks = chunks.iter();
    while let Some(chunk) = chunks.next() {
        match chunk.as_ref().first() {
            Some(&FRAME) => {
                let (mut frame, length) = Frame::begin(chunk.as_ref(), size)?;
                while frame.data.len() < length {
                    frame.go_on(chunks.next().ok_or(Error::ChunkTruncated)?.as_ref())?;
                }
                let bytes = frame.data.len() - length;
                if bytes > 0 {
                    return Err(Error::ChunkRest { bytes });
                }
                let Video { stream, rect, .. } = frame.video;
                if frames.iter().any(|it| it.video.stream == stream || it.video.rect.intersects(rect)) {
                    return Err(Error::VideoOverlap { rect });
                }
                frames.push(frame);
            }
            Some(&MORE) => return Err(Error::ChunkField),
            _ => others.push(chunk),
        }
    }
    Ok((frames, others))
}

/// What is outside of all these frames.
pub(crate) fn outside(rects: &[Rect], frames: &[Begun]) -> Vec<Rect> {
    let mut rects = rects.to_vec();
    for frame in frames {
        rects = rects.into_iter().flat_map(|rect| rect.without(frame.video.rect)).collect();
    }
    rects
}

fn stream(reader: &mut Reader<'_>) -> Result<u8, Error> {
    let number = reader.number()?;
    u8::try_from(number).ok().filter(|number| usize::from(*number) < MAX_VIDEOS).ok_or(Error::ChunkField)
}

/// How such chunks begin, where others say how they are compressed.
const FRAME: u8 = 3;
const MORE: u8 = 4;

/// The flag of a stream that begins.
const BEGINS: u8 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    fn size() -> Size {
        Size::new(400, 300).expect("a size")
    }

    fn frame(stream: u8, rect: Rect, length: usize) -> Frame {
        Frame { video: Video { stream, rect, key: stream == 0 }, fourth: 9, data: vec![7; length] }
    }

    fn chunks(frames: &[Frame]) -> Vec<Vec<u8>> {
        let mut chunks = Vec::new();
        frames.iter().for_each(|frame| frame.write(&mut chunks));
        chunks
    }

    #[test]
    fn frames_come_back_from_among_other_chunks() {
        let frames = [frame(0, Rect::new(0, 0, 200, 300), 150_000), frame(3, Rect::new(200, 0, 200, 300), 0)];
        let mut all = chunks(&frames);
        assert!(all.len() == 4 && all.iter().all(|chunk| chunk.len() <= MAX_CHUNK));
        all.insert(0, vec![2, 9]);
        all.push(vec![0]);
        let (read, others) = split(&all, size()).unwrap();
        assert_eq!(read, frames);
        assert_eq!(others, [&[2, 9][..], &[0]]);
    }

    #[test]
    fn wrong_frames_are_refused() {
        let here = Rect::new(10, 10, 200, 200);
        let whole = chunks(&[frame(1, here, 100_000)]);
        let one = |change: &dyn Fn(&mut Vec<Vec<u8>>)| {
            let mut chunks = whole.clone();
            change(&mut chunks);
            split(&chunks, size()).map(drop)
        };
        assert_eq!(one(&|_| {}), Ok(()));
        assert_eq!(one(&|chunks| drop(chunks.pop())), Err(Error::ChunkTruncated));
        assert_eq!(one(&|chunks| chunks[1] = vec![2, 0]), Err(Error::ChunkTruncated), "another in between");
        assert_eq!(one(&|chunks| chunks.swap(0, 1)), Err(Error::ChunkField), "it begins with the rest");
        assert_eq!(one(&|chunks| chunks[1][1] = 2), Err(Error::ChunkField), "the rest of another");
        assert_eq!(one(&|chunks| chunks[1].push(0)), Err(Error::ChunkRest { bytes: 1 }));
        assert_eq!(one(&|chunks| chunks[0][1] = MAX_VIDEOS as u8), Err(Error::ChunkField));
        assert_eq!(one(&|chunks| chunks.extend(whole.clone())), Err(Error::VideoOverlap { rect: here }));
        let outside = chunks(&[frame(1, Rect::new(300, 0, 200, 200), 4)]);
        assert!(matches!(split(&outside, size()), Err(Error::ChunkOutside { .. })));
        let apart = [frame(1, here, 4), frame(2, Rect::new(209, 0, 50, 50), 4)];
        assert!(matches!(split(&chunks(&apart), size()), Err(Error::VideoOverlap { .. })));
        for length in 0..12 {
            assert!(split(&[&whole[0][..length]], size()).is_err() == (length > 0), "{length}");
        }
        for flags in 2..=255 {
            let mut chunk = chunks(&[frame(1, Rect::new(0, 0, 10, 10), 4)]).remove(0);
            chunk[6] = flags;
            assert_eq!(split(&[chunk], size()), Err(Error::ChunkField));
        }
    }
}
