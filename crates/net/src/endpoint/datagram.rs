//! Datagrams of a connection (RFC 9221).
//!
//! Invariant: one that had to wait is sent once, or not at all if it was given up; one that came is given out once, or
//! counted as dropped.

use std::pin::pin;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

use super::arrived::Arrived;
use super::link::Link;
use super::{Connection, Failure};

impl Connection {
    /// The next datagram. Those that came before the connection's end are still given.
    pub fn poll_datagram(&mut self, cx: &mut Context<'_>) -> Poll<Result<Bytes, Failure>> {
        let link = &self.link;
        // What waits may have been taken from noq after noq woke it.
        let waited = link.arrived().pop();
        match waited {
            Some(data) => Poll::Ready(Ok(data)),
            None => self.datagram.poll(cx, || receive(Arc::clone(link))),
        }
    }

    /// The datagrams that have come, at most `most`, at the end of `into`; waits until there is one. Otherwise as
    /// [`Connection::poll_datagram`].
    pub fn poll_datagrams(
        &mut self,
        cx: &mut Context<'_>,
        into: &mut Vec<Bytes>,
        most: usize,
    ) -> Poll<Result<(), Failure>> {
        let first = std::task::ready!(self.poll_datagram(cx))?;
        into.push(first);
        let more = most.saturating_sub(1);
        let mut arrived = self.link.arrived();
        let missing = more.saturating_sub(arrived.len());
        arrived.take(&self.link.noq, missing, |data| self.link.unframed(data));
        into.extend(std::iter::from_fn(|| arrived.pop()).take(more));
        Poll::Ready(Ok(()))
    }

    /// Sends the datagram in `data`, which is empty afterwards. While this is pending the datagram is kept here too:
    /// poll again with it, or [`Connection::cancel_send_datagram`].
    ///
    /// # Errors
    /// [`Failure::TooLarge`], [`Failure::NoDatagrams`], or the connection's end.
    pub fn poll_send_datagram(
        &mut self,
        cx: &mut Context<'_>,
        data: &mut Option<Bytes>,
    ) -> Poll<Result<(), Failure>> {
        let polled = match self.send_datagram.poll_kept(cx) {
            Some(polled) => polled,
            None => match data.as_ref() {
                None => Poll::Ready(Ok(())),
                Some(datagram) => match self.try_send_datagram(datagram.clone()) {
                    Ok(true) => Poll::Ready(Ok(())),
                    Ok(false) => {
                        let waiting = send(Arc::clone(&self.link), datagram.clone());
                        self.send_datagram.keep(cx, waiting)
                    }
                    Err(failure) => Poll::Ready(Err(failure)),
                },
            },
        };
        if polled.is_ready() {
            *data = None;
        }
        polled
    }

    /// Gives up the datagram that [`Connection::poll_send_datagram`] waits with.
    pub fn cancel_send_datagram(&mut self) {
        self.send_datagram.clear();
    }

    /// Sends a datagram if there is room for it now; whether there was.
    ///
    /// # Errors
    /// As for [`Connection::poll_send_datagram`].
    pub fn try_send_datagram(&self, data: Bytes) -> Result<bool, Failure> {
        self.link.check()?;
        let size = data.len();
        let data = self.link.framed(data);
        // Forgets that it waited, which no caller does.
        let sent = pin!(self.link.noq.send_datagram_wait(data));
        match sent.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(())) => Ok(true),
            Poll::Ready(Err(error)) => Err(self.link.datagram_failure(error, size)),
            Poll::Pending => Ok(false),
        }
    }

    /// Bytes that a datagram may have now. `None`: one of the sides does not do them.
    pub fn max_datagram_size(&self) -> Option<usize> {
        self.link.max_datagram_size()
    }
}

impl Link {
    pub(super) fn max_datagram_size(&self) -> Option<usize> {
        let max = self.noq.max_datagram_size()?.min(self.datagram_buffer);
        if max == 0 {
            return None;
        }
        if let Some(session) = &self.session {
            return max.checked_sub(session.datagram_header().len());
        }
        Some(max)
    }

    /// As it goes on the wire.
    fn framed(&self, data: Bytes) -> Bytes {
        if let Some(session) = &self.session {
            return [session.datagram_header(), &data].concat().into();
        }
        data
    }

    /// As it came from the wire; `None` when it is not for this session.
    fn unframed(&self, data: Bytes) -> Option<Bytes> {
        if let Some(session) = &self.session {
            return crate::http3::strip_datagram(data, session.datagram_header());
        }
        Some(data)
    }
}

async fn receive(link: Arc<Link>) -> Result<Bytes, Failure> {
    loop {
        let data = link.noq.read_datagram().await.map_err(|error| link.end(&error))?;
        link.arrived().note_taken();
        if let Some(data) = link.unframed(data) {
            return Ok(data);
        }
    }
}

async fn send(link: Arc<Link>, data: Bytes) -> Result<(), Failure> {
    let size = data.len();
    let data = link.framed(data);
    link.noq.send_datagram_wait(data).await.map_err(|error| link.datagram_failure(error, size))
}

impl Link {
    pub(super) fn arrived(&self) -> MutexGuard<'_, Arrived> {
        self.arrived.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Datagrams that came and that no caller was given, because too many waited. noq does not count them: they are
    /// those which came, less those which it has given out once it has none left. Some of the last moment may be
    /// missing.
    pub(super) fn dropped_datagrams(&self) -> u64 {
        let came = self.noq.stats().frame_rx.datagram;
        let mut arrived = self.arrived();
        arrived.count(&self.noq, came, |data| self.unframed(data));
        arrived.bound(self.datagram_buffer);
        arrived.dropped()
    }
}
