//! The receiving side of a stream.
//!
//! It reads in batches, as each read takes a lock, and keeps what was not asked for yet. Invariant: what arrived before
//! an end, of the stream or the connection, is given before the end is told; and what is kept is at most one batch.

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
        Self {
            id,
            reader: link.reader(id, skipped),
            early: stream.is_0rtt() && !doubtful,
            doubtful,
            stream: Stream::Ordered(stream),
            link,
            skipped,
            given: 0,
            kept: Vec::new(),
            reset: None,
            ended: false,
        }
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
            self.reader = None;
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
        let mut taken = self.take_kept(chunks, max_bytes);
        while taken < max_bytes {
            let mut batch = [const { Bytes::new() }; BATCH];
            let count = match self.poll_batch(cx, &mut batch) {
                Poll::Ready(Ok(count)) => count,
                // Told next time.
                _ if taken > 0 => return Poll::Ready(Ok(taken)),
                other => return other,
            };
            if count == 0 {
                break;
            }
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
            if count < BATCH {
                break;
            }
        }
        Poll::Ready(Ok(taken))
    }

    /// How many pieces were put into `batch`; 0 at the end.
    fn poll_batch(&mut self, cx: &mut Context<'_>, batch: &mut [Bytes]) -> Poll<Result<usize, Failure>> {
        if let Some(code) = self.reset {
            return Poll::Ready(Err(Failure::Reset(code)));
        }
        let Stream::Ordered(stream) = &mut self.stream else {
            return Poll::Ready(Err(Failure::StreamGone));
        };
        let polled = pin!(stream.read_many_chunks(batch)).poll(cx);
        match ready!(polled) {
            Ok(count) => {
                self.ended = count.is_none();
                let count = count.unwrap_or(0);
                if let Some(reader) = &self.reader {
                    reader.read(batch[..count].iter().map(|chunk| chunk.len() as u64).sum());
                }
                Poll::Ready(Ok(count))
            }
            Err(error) => Poll::Ready(Err(self.fail(error))),
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

/// Pieces read under one lock. A piece is what one packet brought, so this is about 40 kB.
const BATCH: usize = 32;
