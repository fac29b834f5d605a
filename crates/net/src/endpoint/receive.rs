//! The receiving side of a stream.
//!
//! It reads in batches, as each read takes a lock, and keeps what was not asked for yet; but piece by piece where noq
//! may have merged so many that a batch would be long. Invariant: what arrived before an end, of the stream or the
//! connection, is given before the end is told; and what is kept is at most 512 KiB, or one batch of packets.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use noq::{ReadError, RecvStream, ResetError, UnorderedRecvStream, VarInt};

use super::Failure;
use super::link::Link;
use super::readers::Reader;

/// A stream to receive on. Dropped before its end, it is stopped with code 0.
#[derive(Debug)]
pub struct ReceiveStream {
    stream: Stream,
    link: Arc<Link>,
    id: u64,
    /// Says how far it was read, while that is in order.
    reader: Option<Reader>,
    early: bool,
    /// It may have been opened before the peer took early data, or did not.
    doubtful: bool,
    /// Bytes at the beginning that are not the application's.
    skipped: u64,
    /// The application's bytes that were given out in order.
    given: u64,
    /// Read, but not given out; in reverse.
    kept: Vec<Bytes>,
    reset: Option<u64>,
    /// Whether the end was told.
    ended: bool,
}

#[derive(Debug)]
pub(super) enum Stream {
    Ordered(RecvStream),
    Unordered(UnorderedRecvStream),
    Stopped,
}

impl Stream {
    /// Whether it went with the early data that the peer did not take. Ask only after a stop.
    pub(super) fn is_refused(&mut self) -> bool {
        let noop = &mut Context::from_waker(Waker::noop());
        let polled = match self {
            Self::Ordered(stream) => pin!(stream.received_reset()).poll(noop),
            Self::Unordered(stream) => pin!(stream.received_reset()).poll(noop),
            Self::Stopped => return false,
        };
        matches!(polled, Poll::Ready(Err(ResetError::ZeroRttRejected)))
    }
}

impl ReceiveStream {
    pub(super) fn new(stream: RecvStream, link: Arc<Link>, skipped: u64, doubtful: bool) -> Self {
        let id = VarInt::from(stream.id()).into_inner();
        let mut made = Self {
            id,
            reader: None,
            early: stream.is_0rtt() && !doubtful,
            doubtful,
            stream: Stream::Ordered(stream),
            link,
            skipped,
            given: 0,
            kept: Vec::new(),
            reset: None,
            ended: false,
        };
        made.find_reader();
        made
    }

    /// Puts what has arrived, at most `max_bytes` (not 0), at the end of `chunks`, and gives the count of bytes: 0 at
    /// the end of the stream.
    ///
    /// # Errors
    /// [`Failure::Reset`], [`Failure::StreamGone`] after a stop or an unordered read, [`Failure::EarlyDataRejected`],
    /// or the connection's end, when all that came before it was read.
    pub fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        chunks: &mut Vec<Bytes>,
        max_bytes: usize,
    ) -> Poll<Result<usize, Failure>> {
        let polled = self.poll_ordered(cx, chunks, max_bytes);
        if let Poll::Ready(Ok(taken)) = &polled {
            self.given += *taken as u64;
        }
        polled
    }

    /// The next piece that has arrived, even if some is missing before it, and its place in the stream; `None` when all
    /// were given. From the first such read on there are no others.
    ///
    /// # Errors
    /// As for [`ReceiveStream::poll_read`].
    pub fn poll_read_unordered(
        &mut self,
        cx: &mut Context<'_>,
        max_bytes: usize,
    ) -> Poll<Result<Option<(u64, Bytes)>, Failure>> {
        if let Some(piece) = self.take_kept_piece(max_bytes) {
            return Poll::Ready(Ok(Some(piece)));
        }
        if let Some(code) = self.reset {
            return Poll::Ready(Err(Failure::Reset(code)));
        }
        if matches!(self.stream, Stream::Ordered(_))
            && let Stream::Ordered(stream) = std::mem::replace(&mut self.stream, Stream::Stopped)
        {
            self.stream = Stream::Unordered(stream.into_unordered());
        }
        self.find_reader();
        if let Some(reader) = &self.reader {
            reader.leave_order();
        }
        let Stream::Unordered(stream) = &mut self.stream else {
            return Poll::Ready(Err(Failure::StreamGone));
        };
        let polled = pin!(stream.read_chunk(max_bytes)).poll(cx);
        match ready!(polled) {
            Ok(piece) => {
                let skipped = self.skipped;
                Poll::Ready(Ok(piece.map(|piece| (piece.offset.saturating_sub(skipped), piece.bytes))))
            }
            Err(error) => Poll::Ready(Err(self.fail(error))),
        }
    }

    /// Wants no more, and tells the peer with `code`. Does nothing at the end of the stream.
    pub fn stop(&mut self, code: u64) {
        if self.ended {
            self.stream = Stream::Stopped;
            return;
        }
        let code = self.link.code_out(code);
        // It may be over by now.
        let _ = match &mut self.stream {
            Stream::Ordered(stream) => stream.stop(code),
            Stream::Unordered(stream) => stream.stop(code),
            Stream::Stopped => Ok(()),
        };
        let stream = std::mem::replace(&mut self.stream, Stream::Stopped);
        if self.doubtful {
            self.link.refused().keep(stream);
        }
        self.kept = Vec::new();
        self.reset = None;
        self.reader = None;
    }

    /// Gives the stream away, if it is read in order, with what was read and not given out; for this one it is as if it
    /// had been stopped.
    pub(super) fn take(&mut self) -> Option<(RecvStream, Vec<Bytes>)> {
        match std::mem::replace(&mut self.stream, Stream::Stopped) {
            Stream::Ordered(stream) => {
                let mut kept = std::mem::take(&mut self.kept);
                kept.reverse();
                self.reader = None;
                Some((stream, kept))
            }
            other => {
                self.stream = other;
                None
            }
        }
    }

    /// QUIC's number of the stream (RFC 9000 §2.1).
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Whether it came as early data, which somebody on the path may have sent again.
    pub fn is_early(&self) -> bool {
        self.early
    }

    fn poll_ordered(
        &mut self,
        cx: &mut Context<'_>,
        chunks: &mut Vec<Bytes>,
        max_bytes: usize,
    ) -> Poll<Result<usize, Failure>> {
        self.find_reader();
        let mut taken = self.take_kept(chunks, max_bytes);
        let mut is_dry = false;
        while taken < max_bytes && !is_dry {
            let is_short = self.reader.as_ref().is_some_and(|reader| reader.merged() <= KEPT_MAX);
            let polled = if is_short {
                self.poll_batch(cx, chunks, max_bytes - taken)
            } else {
                self.poll_chunk(cx, chunks, max_bytes - taken)
            };
            match polled {
                Poll::Ready(Ok((count, was_last))) => (taken, is_dry) = (taken + count, was_last),
                // Told next time.
                _ if taken > 0 => break,
                Poll::Ready(Err(failure)) => return Poll::Ready(Err(failure)),
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(Ok(taken))
    }

    /// Puts the next piece, or a part of it, at the end of `chunks`, and gives its length, and whether nothing is
    /// behind it for now.
    fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
        chunks: &mut Vec<Bytes>,
        max_bytes: usize,
    ) -> Poll<Result<(usize, bool), Failure>> {
        let polled = pin!(self.ordered()?.read_chunk(max_bytes)).poll(cx);
        let chunk = ready!(polled).map_err(|error| self.fail(error))?;
        self.ended = chunk.is_none();
        let length = chunk.as_ref().map_or(0, Bytes::len);
        self.has_read(length);
        chunks.extend(chunk);
        Poll::Ready(Ok((length, self.ended)))
    }

    /// The same with a batch of pieces, of which the rest is kept.
    fn poll_batch(
        &mut self,
        cx: &mut Context<'_>,
        chunks: &mut Vec<Bytes>,
        max_bytes: usize,
    ) -> Poll<Result<(usize, bool), Failure>> {
        let mut batch = [const { Bytes::new() }; BATCH];
        let polled = pin!(self.ordered()?.read_many_chunks(&mut batch)).poll(cx);
        let count = ready!(polled).map_err(|error| self.fail(error))?;
        self.ended = count.is_none();
        let count = count.unwrap_or(0);
        self.has_read(batch[..count].iter().map(Bytes::len).sum());
        let mut taken = 0;
        let mut read = batch.into_iter().take(count);
        for chunk in read.by_ref() {
            let over = (taken + chunk.len()).saturating_sub(max_bytes);
            taken += chunk.len() - over;
            if over > 0 {
                self.kept.push(chunk.slice(chunk.len() - over..));
                chunks.push(chunk.slice(..chunk.len() - over));
                break;
            }
            chunks.push(chunk);
        }
        self.kept.extend(read);
        self.kept.reverse();
        Poll::Ready(Ok((taken, count < BATCH)))
    }

    /// Says how far it was read, as soon as the handshake tells where. A stream that may have gone with early data in
    /// vain does not before that is known, as another one has its number then.
    fn find_reader(&mut self) {
        let is_here = !matches!(self.stream, Stream::Stopped);
        if is_here && self.reader.is_none() && (!self.doubtful || self.link.early.is_taken()) {
            let kept: usize = self.kept.iter().map(Bytes::len).sum();
            self.reader = self.link.reader(self.id, self.skipped + self.given + kept as u64);
        }
    }

    /// What to read from, while the stream has not ended.
    fn ordered(&mut self) -> Result<&mut RecvStream, Failure> {
        if let Some(code) = self.reset {
            return Err(Failure::Reset(code));
        }
        match &mut self.stream {
            Stream::Ordered(stream) => Ok(stream),
            _ => Err(Failure::StreamGone),
        }
    }

    fn has_read(&self, bytes: usize) {
        if let Some(reader) = &self.reader {
            reader.read(bytes as u64);
        }
    }

    /// Gives from what was kept.
    fn take_kept(&mut self, chunks: &mut Vec<Bytes>, max_bytes: usize) -> usize {
        let mut taken = 0;
        while taken < max_bytes
            && let Some(chunk) = self.kept.last_mut()
        {
            let given = if chunk.len() <= max_bytes - taken {
                self.kept.pop().unwrap_or_default()
            } else {
                chunk.split_to(max_bytes - taken)
            };
            taken += given.len();
            chunks.push(given);
        }
        taken
    }

    fn take_kept_piece(&mut self, max_bytes: usize) -> Option<(u64, Bytes)> {
        let max = self.kept.last()?.len().min(max_bytes);
        let mut piece = Vec::with_capacity(1);
        let offset = self.given;
        self.given += self.take_kept(&mut piece, max) as u64;
        piece.pop().map(|bytes| (offset, bytes))
    }

    fn fail(&mut self, error: ReadError) -> Failure {
        let failure = self.link.read_failure(error);
        if let Failure::Reset(code) = failure {
            self.reset = Some(code);
        }
        failure
    }
}

impl Drop for ReceiveStream {
    fn drop(&mut self) {
        self.stop(0);
    }
}

/// Pieces read under one lock. A piece is what one packet brought, so this is about 40 kB, where noq has merged none.
const BATCH: usize = 32;

/// Bytes that may be kept of pieces that noq has merged.
const KEPT_MAX: u64 = 512 << 10;
