//! The sending side of a stream.

use std::collections::VecDeque;
use std::task::{Context, Poll};

use bytes::Bytes;

use super::Failure;

/// A stream to send on. Dropped before it was finished, it is reset with code 0.
#[derive(Debug)]
pub struct SendStream {}

impl SendStream {
    /// Hands over as much as there is room for, from the front of `chunks`, which keeps the rest; gives the bytes taken.
    /// Pending only when nothing was taken.
    ///
    /// # Errors
    /// [`Failure::Stopped`], [`Failure::StreamGone`], [`Failure::EarlyDataRejected`], or the connection's end.
    pub fn poll_write_chunks(
        &mut self,
        _cx: &mut Context<'_>,
        _chunks: &mut VecDeque<Bytes>,
    ) -> Poll<Result<usize, Failure>> {
        unimplemented!()
    }

    /// Says that nothing more comes.
    ///
    /// # Errors
    /// [`Failure::StreamGone`] when it was said before, or the stream was reset.
    pub fn finish(&mut self) -> Result<(), Failure> {
        unimplemented!()
    }

    /// Gives the stream up: what was not acknowledged is not sent again. Wakes a poll that waits. Does nothing on a stream
    /// that was reset before.
    pub fn reset(&mut self, code: u64) {
        let _ = code;
        unimplemented!()
    }

    /// Streams with a higher priority send first; 0 at the beginning.
    ///
    /// # Errors
    /// [`Failure::StreamGone`] when everything was acknowledged.
    pub fn set_priority(&self, priority: i32) -> Result<(), Failure> {
        let _ = priority;
        unimplemented!()
    }

    /// What was set last.
    ///
    /// # Errors
    /// [`Failure::StreamGone`] when everything was acknowledged.
    pub fn priority(&self) -> Result<i32, Failure> {
        unimplemented!()
    }

    /// The code with which the peer stopped the stream, or `None` when it was finished and everything was acknowledged. May
    /// be polled again.
    ///
    /// # Errors
    /// [`Failure::StreamGone`] after a reset, [`Failure::EarlyDataRejected`], or the connection's end.
    pub fn poll_stopped(&mut self, _cx: &mut Context<'_>) -> Poll<Result<Option<u64>, Failure>> {
        unimplemented!()
    }

    /// QUIC's number of the stream (RFC 9000 §2.1).
    pub fn id(&self) -> u64 {
        unimplemented!()
    }
}
