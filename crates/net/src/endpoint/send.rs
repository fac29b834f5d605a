//! The sending side of a stream.
//!
//! It keeps no bytes: noq does, up to the send window. Invariant: a stream that the peer sees end was finished on
//! purpose; one that was only dropped is reset.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use noq::{Stopped, StoppedError, StreamId, VarInt, WriteError};

use super::Failure;
use super::link::Link;

/// A stream to send on. Dropped before it was finished, it is reset with code 0.
#[derive(Debug)]
pub struct SendStream {
    /// `None` only while it is dropped, and when it was given away.
    stream: Option<noq::SendStream>,
    id: StreamId,
    link: Arc<Link>,
    /// It may have been opened before the peer took early data, or did not.
    early: bool,
    state: State,
    /// Woken by a reset.
    writer: Option<Waker>,
    stopped: Watch,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    Finished,
    Reset,
}

/// What is known of the stream's end at the other side.
#[derive(Debug)]
enum Watch {
    Unasked,
    /// The lock is never taken: it makes the future `Sync`.
    Asked(Mutex<Pin<Box<Stopped>>>),
    Known(Option<u64>),
}

impl SendStream {
    pub(super) fn new(stream: noq::SendStream, link: Arc<Link>, early: bool) -> Self {
        let (id, state, stopped) = (stream.id(), State::Open, Watch::Unasked);
        Self { stream: Some(stream), id, link, early, state, writer: None, stopped }
    }

    /// Hands over as much as there is room for, from the front of `chunks`, which keeps the rest; gives the bytes
    /// taken. Pending only when nothing was taken. Nothing is taken of no chunks, which is an error on a stream that is
    /// over, too.
    ///
    /// # Errors
    /// [`Failure::Stopped`], [`Failure::StreamGone`], [`Failure::EarlyDataRejected`], or the connection's end.
    pub fn poll_write_chunks(
        &mut self,
        cx: &mut Context<'_>,
        chunks: &mut VecDeque<Bytes>,
    ) -> Poll<Result<usize, Failure>> {
        if self.state != State::Open {
            return Poll::Ready(Err(Failure::StreamGone));
        }
        self.link.check()?;
        if let Watch::Known(Some(code)) = self.stopped {
            return Poll::Ready(Err(Failure::Stopped(code)));
        }
        while chunks.front().is_some_and(Bytes::is_empty) {
            chunks.pop_front();
        }
        if chunks.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let Some(stream) = &mut self.stream else {
            return Poll::Ready(Err(Failure::StreamGone));
        };
        let count = chunks.len();
        let mut rest = chunks.make_contiguous();
        let polled = pin!(stream.write_many_chunks(&mut rest)).poll(cx);
        let left = rest.len();
        match polled {
            Poll::Ready(Ok(taken)) => {
                chunks.drain(..count - left);
                Poll::Ready(Ok(taken))
            }
            Poll::Ready(Err(error)) => {
                let failure = self.link.write_failure(error);
                if let Failure::Stopped(code) = failure {
                    self.stopped = Watch::Known(Some(code));
                }
                Poll::Ready(Err(failure))
            }
            // noq does not look whether the stream was stopped while the send window is full, and wakes no caller for
            // it afterwards.
            Poll::Pending if self.is_stopped() => self.poll_write_chunks(cx, chunks),
            Poll::Pending => {
                if !self.writer.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
                    self.writer = Some(cx.waker().clone());
                }
                Poll::Pending
            }
        }
    }

    /// Says that nothing more comes.
    ///
    /// # Errors
    /// [`Failure::StreamGone`] when it was said before, or the stream was reset; or the connection's end.
    pub fn finish(&mut self) -> Result<(), Failure> {
        if self.state != State::Open {
            return Err(Failure::StreamGone);
        }
        self.state = State::Finished;
        self.link.check()?;
        let Some(stream) = &mut self.stream else {
            return Err(Failure::StreamGone);
        };
        // Each of these takes noq's lock, which its own task wants, too. The first knows all that can be wrong.
        let noop = &mut Context::from_waker(Waker::noop());
        let known = pin!(stream.write(&[])).poll(noop);
        match known {
            // To ask noq when everything has arrived costs memory for good where the peer has stopped the stream.
            Poll::Ready(Err(WriteError::Stopped(code))) => {
                self.stopped = Watch::Known(Some(self.link.code_in(code)));
            }
            Poll::Ready(Err(error)) => return Err(self.link.write_failure(error)),
            // Pending: the connection's window is full.
            Poll::Ready(Ok(_)) | Poll::Pending => self.link.finished.add(self.id, stream.stopped()),
        }
        stream.finish().map_err(|_| Failure::StreamGone)
    }

    /// Gives the stream up: what was not acknowledged is not sent again. Wakes a poll that waits. Does nothing on a
    /// stream that was reset before.
    pub fn reset(&mut self, code: u64) {
        if self.state != State::Reset {
            if self.state == State::Finished {
                self.link.finished.remove(self.id);
            }
            self.state = State::Reset;
            // It may have arrived whole by now.
            let _ = self.stream.as_mut().map(|stream| stream.reset(self.link.code_out(code)));
            if let Some(writer) = self.writer.take() {
                writer.wake();
            }
        }
    }

    /// Streams with a higher priority send first; 0 at the beginning.
    ///
    /// # Errors
    /// [`Failure::StreamGone`] when everything was acknowledged, [`Failure::EarlyDataRejected`].
    pub fn set_priority(&self, priority: i32) -> Result<(), Failure> {
        self.check_early()?;
        let stream = self.stream.as_ref().ok_or(Failure::StreamGone)?;
        stream.set_priority(priority).map_err(|_| Failure::StreamGone)
    }

    /// What was set last.
    ///
    /// # Errors
    /// [`Failure::StreamGone`] when everything was acknowledged, [`Failure::EarlyDataRejected`].
    pub fn priority(&self) -> Result<i32, Failure> {
        self.check_early()?;
        let stream = self.stream.as_ref().ok_or(Failure::StreamGone)?;
        stream.priority().map_err(|_| Failure::StreamGone)
    }

    /// The code with which the peer stopped the stream, or `None` when it was finished and everything was acknowledged.
    /// May be polled again.
    ///
    /// # Errors
    /// [`Failure::StreamGone`] after a reset, [`Failure::EarlyDataRejected`], or the connection's end.
    pub fn poll_stopped(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<u64>, Failure>> {
        if let Watch::Known(code) = self.stopped {
            return Poll::Ready(Ok(code));
        }
        if self.state == State::Reset {
            return Poll::Ready(Err(Failure::StreamGone));
        }
        if matches!(self.stopped, Watch::Unasked) {
            let stream = self.stream.as_ref().ok_or(Failure::StreamGone)?;
            self.stopped = Watch::Asked(Mutex::new(Box::pin(stream.stopped())));
        }
        let Watch::Asked(asked) = &mut self.stopped else {
            return Poll::Pending;
        };
        let polled = asked.get_mut().unwrap_or_else(PoisonError::into_inner).as_mut().poll(cx);
        polled.map(|stopped| match stopped {
            Ok(code) => {
                let code = code.map(|code| self.link.code_in(code));
                self.stopped = Watch::Known(code);
                Ok(code)
            }
            Err(error) => {
                self.stopped = Watch::Unasked;
                Err(self.link.stopped_failure(&error))
            }
        })
    }

    /// Gives the stream away, if it is open; for this one it is as if it had been reset.
    pub(super) fn take(&mut self) -> Option<noq::SendStream> {
        if self.state != State::Open {
            return None;
        }
        self.state = State::Reset;
        self.stream.take()
    }

    /// QUIC's number of the stream (RFC 9000 §2.1).
    pub fn id(&self) -> u64 {
        VarInt::from(self.id).into_inner()
    }

    /// Asks once; a writer that waits is woken when it changes.
    fn is_stopped(&mut self) -> bool {
        if let Some(Ok(Some(code))) = self.peek() {
            self.stopped = Watch::Known(Some(self.link.code_in(code)));
            return true;
        }
        false
    }

    /// The numbers of streams that were refused with the early data are given out again: what is done to one of them
    /// must not reach noq, which would do some of it to the new one.
    fn check_early(&self) -> Result<(), Failure> {
        if self.early && matches!(self.peek(), Some(Err(StoppedError::ZeroRttRejected))) {
            return Err(Failure::EarlyDataRejected);
        }
        Ok(())
    }

    /// What noq knows of the end at the other side.
    fn peek(&self) -> Option<Result<Option<VarInt>, StoppedError>> {
        match pin!(self.stream.as_ref()?.stopped()).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(known) => Some(known),
            Poll::Pending => None,
        }
    }
}

impl Drop for SendStream {
    fn drop(&mut self) {
        if self.state == State::Open {
            self.writer = None;
            self.reset(0);
        }
        if self.check_early().is_err() {
            self.link.refused().send.extend(self.stream.take());
        }
    }
}
