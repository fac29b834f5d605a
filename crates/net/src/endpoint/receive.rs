//! The receiving side of a stream.

use std::task::{Context, Poll};

use bytes::Bytes;

use super::Failure;

/// A stream to receive on. Dropped before its end, it is stopped with code 0.
#[derive(Debug)]
pub struct ReceiveStream {}

impl ReceiveStream {
    /// Puts what has arrived, at most `max_bytes`, at the end of `chunks`, and gives the count of bytes: 0 at the end of the
    /// stream.
    ///
    /// # Errors
    /// [`Failure::Reset`], [`Failure::StreamGone`] after a stop or an unordered read, [`Failure::EarlyDataRejected`], or
    /// the connection's end, when all that came before it was read.
    pub fn poll_read(
        &mut self,
        _cx: &mut Context<'_>,
        _chunks: &mut Vec<Bytes>,
        _max_bytes: usize,
    ) -> Poll<Result<usize, Failure>> {
        unimplemented!()
    }

    /// The next piece that has arrived, whatever is missing before it, and its place in the stream; `None` when all were
    /// given. From the first such read on there are no others.
    ///
    /// # Errors
    /// As for [`ReceiveStream::poll_read`].
    pub fn poll_read_unordered(
        &mut self,
        _cx: &mut Context<'_>,
        _max_bytes: usize,
    ) -> Poll<Result<Option<(u64, Bytes)>, Failure>> {
        unimplemented!()
    }

    /// Wants no more, and tells the peer with `code`. Does nothing at the end of the stream.
    pub fn stop(&mut self, code: u64) {
        let _ = code;
        unimplemented!()
    }

    /// QUIC's number of the stream (RFC 9000 §2.1).
    pub fn id(&self) -> u64 {
        unimplemented!()
    }

    /// Whether it came as early data, which somebody on the path may have sent again.
    pub fn is_early(&self) -> bool {
        unimplemented!()
    }
}
