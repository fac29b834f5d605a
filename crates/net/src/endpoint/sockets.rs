//! UDP sockets that end with the last connection on them.
//!
//! noq keeps its sockets for as long as anybody refers to a connection, and if that was closed long ago: a program that
//! holds on to such would run out of descriptors, and its ports would stay taken. So everything that noq has of a
//! socket is a cover of this module's, which can be emptied. Invariant: after [`Sockets::close`] none is open, and none
//! will be.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};

use noq::udp::{RecvMeta, Transmit};
use noq::{AsyncUdpSocket, Endpoint, UdpSender};

use super::Engine;

/// The sockets of one endpoint: one, and for a while two when it moves.
#[derive(Clone, Debug, Default)]
pub(super) struct Sockets(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    closed: bool,
    open: Vec<Weak<Parts>>,
}

impl Sockets {
    /// Puts `socket` under cover.
    ///
    /// # Errors
    /// They are closed.
    pub(super) fn cover(&self, socket: Box<dyn AsyncUdpSocket>) -> io::Result<Box<dyn AsyncUdpSocket>> {
        let mut state = lock(&self.0);
        if state.closed {
            return Err(io::ErrorKind::NotConnected.into());
        }
        let cover = Socket {
            address: socket.local_addr()?,
            may_fragment: socket.may_fragment(),
            segments: socket.max_receive_segments(),
            parts: Arc::new(Parts { receiver: Mutex::new(Some(socket)), senders: Mutex::default() }),
        };
        state.open.retain(|parts| parts.strong_count() > 0);
        state.open.push(Arc::downgrade(&cover.parts));
        Ok(Box::new(cover))
    }

    /// Closes them when no connection of `endpoint` is left. None may begin any more.
    pub(super) fn close_when_idle(&self, engine: &Engine, endpoint: &Endpoint) {
        let (sockets, endpoint) = (self.clone(), endpoint.clone());
        engine.detach(async move {
            endpoint.wait_idle().await;
            sockets.close();
        });
    }

    /// Nothing is sent or received any more.
    fn close(&self) {
        let open = {
            let mut state = lock(&self.0);
            state.closed = true;
            std::mem::take(&mut state.open)
        };
        for parts in open.iter().filter_map(Weak::upgrade) {
            parts.close();
        }
    }
}

/// All that there is of one socket; `None` where it was closed.
#[derive(Debug)]
struct Parts {
    receiver: Mutex<Option<Box<dyn AsyncUdpSocket>>>,
    /// One for each connection.
    senders: Mutex<Vec<Weak<Sending>>>,
}

impl Parts {
    fn close(&self) {
        drop(lock(&self.receiver).take());
        for sender in lock(&self.senders).drain(..).filter_map(|sender| sender.upgrade()) {
            drop(lock(&sender).take());
        }
    }
}

type Sending = Mutex<Option<Pin<Box<dyn UdpSender>>>>;

#[derive(Debug)]
struct Socket {
    address: SocketAddr,
    may_fragment: bool,
    segments: NonZeroUsize,
    parts: Arc<Parts>,
}

/// noq 1.4.0 drops it when its endpoint has moved to another, and keeps a sender.
impl Drop for Socket {
    fn drop(&mut self) {
        self.parts.close();
    }
}

impl AsyncUdpSocket for Socket {
    fn create_sender(&self) -> Pin<Box<dyn UdpSender>> {
        // Under the lock that closing takes first: what is made is known to it.
        let receiver = lock(&self.parts.receiver);
        let sender = receiver.as_ref().map(|socket| socket.create_sender());
        let sending = Arc::new(Mutex::new(sender));
        let mut senders = lock(&self.parts.senders);
        if senders.len() == senders.capacity() {
            senders.retain(|sender| sender.strong_count() > 0);
        }
        senders.push(Arc::downgrade(&sending));
        Box::pin(Sender(sending))
    }

    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        match &mut *lock(&self.parts.receiver) {
            Some(socket) => socket.poll_recv(cx, bufs, meta),
            None => Poll::Pending,
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }

    fn max_receive_segments(&self) -> NonZeroUsize {
        self.segments
    }

    fn may_fragment(&self) -> bool {
        self.may_fragment
    }
}

#[derive(Debug)]
struct Sender(Arc<Sending>);

impl UdpSender for Sender {
    fn poll_send(
        self: Pin<&mut Self>,
        transmit: &Transmit<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut *lock(&self.0) {
            Some(sender) => sender.as_mut().poll_send(transmit, cx),
            None => Poll::Ready(Ok(())),
        }
    }

    /// It changes, when the system turns out not to do segmentation.
    fn max_transmit_segments(&self) -> NonZeroUsize {
        lock(&self.0).as_ref().map_or(NonZeroUsize::MIN, |sender| sender.max_transmit_segments())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
