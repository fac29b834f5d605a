//! UDP sockets that end with the last connection on them.
//!
//! noq keeps its sockets for as long as anybody refers to a connection, and if that was closed long ago: a program that
//! holds on to such would run out of descriptors, and its ports would stay taken. So everything that noq has of a
//! socket is a cover of this module's, which can be emptied. A cover also lets one connection of several go on through
//! another socket, which noq cannot: its [`Lane`]. Invariant: after [`Sockets::close`] none is open, and none will be.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};

use noq::udp::{RecvMeta, Transmit};
use noq::{AsyncUdpSocket, Endpoint, UdpSender};

use crate::udp::Receiver;

/// The sockets of one endpoint: one, and for a while two when it moves.
#[derive(Clone, Debug, Default)]
pub(super) struct Sockets {
    state: Arc<Mutex<State>>,
    /// Bytes received and sent; it wraps around.
    moved: Arc<AtomicU64>,
    /// There is one that was not there when this was last asked.
    fresh: Arc<AtomicBool>,
}

#[derive(Debug, Default)]
struct State {
    closed: bool,
    open: Vec<Weak<Parts>>,
    /// What was made last to send with.
    made: Option<Weak<Sending>>,
}

impl Sockets {
    /// Puts `socket` under cover.
    ///
    /// # Errors
    /// They are closed.
    pub(super) fn cover(&self, socket: Receiver) -> io::Result<Box<dyn AsyncUdpSocket>> {
        let mut state = lock(&self.state);
        if state.closed {
            return Err(io::ErrorKind::NotConnected.into());
        }
        let cover = Socket {
            address: socket.local_addr()?,
            may_fragment: socket.may_fragment(),
            segments: socket.max_receive_segments(),
            parts: Arc::new(Parts { receiver: Mutex::new(Some(socket)), ..Parts::default() }),
            sockets: Arc::downgrade(&self.state),
            moved: Arc::clone(&self.moved),
            turn: 0,
        };
        state.open.retain(|parts| parts.strong_count() > 0);
        state.open.push(Arc::downgrade(&cover.parts));
        self.fresh.store(true, Ordering::Release);
        Ok(Box::new(cover))
    }

    /// Closes them when no connection of `endpoint` is left. None may begin any more.
    pub(super) async fn close_when_idle(self, endpoint: Endpoint) {
        endpoint.wait_idle().await;
        self.close();
    }

    /// What `begin` gives, which makes a connection, and that one's way out. Not for two at a time.
    pub(super) fn lane<T>(&self, begin: impl FnOnce() -> T) -> (T, Option<Lane>) {
        lock(&self.state).made = None;
        let output = begin();
        let sending = lock(&self.state).made.take();
        (output, sending.map(|sending| Lane { sockets: self.clone(), sending, address: Mutex::default() }))
    }

    /// Bytes that were received and sent so far; it wraps around.
    pub(super) fn moved(&self) -> u64 {
        self.moved.load(Ordering::Relaxed)
    }

    /// Whether there is one that was not there when this was asked before.
    pub(super) fn has_fresh(&self) -> bool {
        self.fresh.load(Ordering::Relaxed) && self.fresh.swap(false, Ordering::AcqRel)
    }

    /// Those that all connections share.
    pub(super) fn each_receiver(&self, mut f: impl FnMut(&mut Receiver)) {
        let open: Vec<_> = lock(&self.state).open.iter().filter_map(Weak::upgrade).collect();
        for parts in open {
            lock(&parts.receiver).iter_mut().for_each(&mut f);
        }
    }

    /// What comes to those that all connections share is not received any more.
    pub(super) fn stop_receiving(&self) {
        let open: Vec<_> = lock(&self.state).open.iter().filter_map(Weak::upgrade).collect();
        open.iter().for_each(|parts| drop(lock(&parts.receiver).take()));
    }

    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.state, &other.state)
    }

    /// Nothing is sent or received any more.
    pub(super) fn close(&self) {
        let open = {
            let mut state = lock(&self.state);
            state.closed = true;
            std::mem::take(&mut state.open)
        };
        for parts in open.iter().filter_map(Weak::upgrade) {
            parts.close();
        }
    }
}

/// The way out of one connection of several on an endpoint.
#[derive(Debug)]
pub(super) struct Lane {
    sockets: Sockets,
    sending: Weak<Sending>,
    /// Where it goes since it was moved.
    address: Mutex<Option<SocketAddr>>,
}

impl Lane {
    /// Has the connection send through `socket` from now on, and receive what comes there; what is still on the way to
    /// the place before comes, too. Tell its endpoint of it.
    ///
    /// # Errors
    /// All sockets are closed.
    pub(super) fn move_to(&self, socket: Receiver) -> io::Result<()> {
        let gone = || io::Error::from(io::ErrorKind::NotConnected);
        let sending = self.sending.upgrade().ok_or_else(gone)?;
        let address = socket.local_addr()?;
        let sender = socket.create_sender();
        let main = lock(&self.sockets.state).open.iter().find_map(Weak::upgrade);
        let parts = main.ok_or_else(gone)?;
        let mut aside = lock(&parts.aside);
        aside.retain(|other| other.sending.strong_count() > 0);
        let own: Vec<_> = (0..aside.len()).filter(|index| aside[*index].is_of(&self.sending)).collect();
        // All but the one before.
        for index in own.iter().rev().skip(1) {
            aside.remove(*index);
        }
        aside.push(Aside { sending: self.sending.clone(), socket });
        *lock(&sending) = Some(sender);
        *lock(&self.address) = Some(address);
        Ok(())
    }

    pub(super) fn is_of(&self, sockets: &Sockets) -> bool {
        self.sockets.is(sockets)
    }

    /// Its endpoint has moved, and it with that.
    pub(super) fn forget(&self) {
        *lock(&self.address) = None;
    }

    /// The connection is over: what it was moved to is closed.
    pub(super) fn close(&self) {
        let parts: Vec<_> = lock(&self.sockets.state).open.iter().filter_map(Weak::upgrade).collect();
        for parts in parts {
            lock(&parts.aside).retain(|other| !other.is_of(&self.sending));
        }
        if let Some(sending) = self.sending.upgrade().filter(|_| self.address().is_some()) {
            drop(lock(&sending).take());
        }
    }

    /// Where it sends from, if it was moved.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        *lock(&self.address)
    }
}

/// All that there is of one socket; `None` where it was closed.
#[derive(Debug, Default)]
struct Parts {
    receiver: Mutex<Option<Receiver>>,
    /// Other sockets, to which connections on this one were moved.
    aside: Mutex<Vec<Aside>>,
    /// One for each connection.
    senders: Mutex<Vec<Weak<Sending>>>,
}

/// A socket that only one connection sends through.
#[derive(Debug)]
struct Aside {
    sending: Weak<Sending>,
    socket: Receiver,
}

impl Aside {
    fn is_of(&self, sending: &Weak<Sending>) -> bool {
        self.sending.ptr_eq(sending)
    }
}

impl Parts {
    fn sending(&self) -> Arc<Sending> {
        // Under the lock that closing takes first: what is made is known to it.
        let receiver = lock(&self.receiver);
        let sender = receiver.as_ref().map(|socket| socket.create_sender());
        let sending = Arc::new(Mutex::new(sender));
        let mut senders = lock(&self.senders);
        if senders.len() == senders.capacity() {
            senders.retain(|sender| sender.strong_count() > 0);
        }
        senders.push(Arc::downgrade(&sending));
        sending
    }

    fn close(&self) {
        drop(lock(&self.receiver).take());
        lock(&self.aside).clear();
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
    sockets: Weak<Mutex<State>>,
    moved: Arc<AtomicU64>,
    /// Which of the sockets is asked first, by turns.
    turn: usize,
}

/// noq 1.4.0 drops it when its endpoint has moved to another, and keeps a sender.
impl Drop for Socket {
    fn drop(&mut self) {
        self.parts.close();
    }
}

impl Socket {
    fn poll_main(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        match &mut *lock(&self.parts.receiver) {
            Some(socket) => socket.poll_recv(cx, bufs, meta),
            None => Poll::Pending,
        }
    }

    /// Of one of the sockets.
    fn poll_any(
        &mut self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let mut aside = lock(&self.parts.aside);
        if aside.is_empty() {
            return self.poll_main(cx, bufs, meta);
        }
        self.turn = self.turn.wrapping_add(1);
        let count = aside.len() + 1;
        for index in (0..count).map(|index| (index + self.turn) % count) {
            let polled = match aside.get_mut(index) {
                Some(aside) => aside.socket.poll_recv(cx, bufs, meta),
                None => self.poll_main(cx, bufs, meta),
            };
            match polled {
                Poll::Ready(Ok(count)) => return Poll::Ready(Ok(count)),
                // That of one connection must not end the others: it is left to its timeout.
                Poll::Ready(Err(error)) if index == aside.len() => return Poll::Ready(Err(error)),
                Poll::Ready(Err(_)) | Poll::Pending => {}
            }
        }
        Poll::Pending
    }
}

impl AsyncUdpSocket for Socket {
    fn create_sender(&self) -> Pin<Box<dyn UdpSender>> {
        let sending = self.parts.sending();
        if let Some(sockets) = self.sockets.upgrade() {
            lock(&sockets).made = Some(Arc::downgrade(&sending));
        }
        Box::pin(Sender { sending, moved: Arc::clone(&self.moved) })
    }

    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let polled = self.poll_any(cx, bufs, meta);
        if let Poll::Ready(Ok(count)) = polled {
            let bytes: usize = meta[..count].iter().map(|meta| meta.len).sum();
            self.moved.fetch_add(bytes as u64, Ordering::Relaxed);
        }
        polled
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
struct Sender {
    sending: Arc<Sending>,
    moved: Arc<AtomicU64>,
}

impl UdpSender for Sender {
    fn poll_send(
        self: Pin<&mut Self>,
        transmit: &Transmit<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        // The socket's own address or the route decides where it comes from: what noq saw last may be the address that
        // the connection has just left.
        let transmit = &Transmit { src_ip: None, ..transmit.clone() };
        self.moved.fetch_add(transmit.contents.len() as u64, Ordering::Relaxed);
        match &mut *lock(&self.sending) {
            Some(sender) => sender.as_mut().poll_send(transmit, cx),
            None => Poll::Ready(Ok(())),
        }
    }

    /// It changes, when the system turns out not to do segmentation.
    fn max_transmit_segments(&self) -> NonZeroUsize {
        lock(&self.sending).as_ref().map_or(NonZeroUsize::MIN, |sender| sender.max_transmit_segments())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
