//! A connection, as it is handed out.
//!
//! It has a slot for each kind of thing that may have to wait; what they share is in `link`. Invariant: each clone
//! waits for itself, and what one gets no other gets.

use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use noq::{ConnectionError, PathId};
use rustls::pki_types::CertificateDer;

use super::early::Verdict;
use super::link::{Link, Side};
use super::slots::Slot;
use super::{Drain, Failure, PathInfo, Ready, ReceiveStream, SendStream, Stats};
use crate::quic::socket;
use crate::udp::Receiver;

/// A QUIC connection, or the one WebTransport session of one. Clones share it, but each waits for itself. It is closed
/// with code 0 when the last clone and the last of its streams is dropped.
///
/// What waits is woken by the waker of the last poll of its kind on this clone.
pub struct Connection {
    pub(super) link: Arc<Link>,
    open_uni: Slot<Result<SendStream, Failure>>,
    open_bi: Slot<Result<(SendStream, ReceiveStream), Failure>>,
    accept_uni: Slot<Result<ReceiveStream, Failure>>,
    accept_bi: Slot<Result<(SendStream, ReceiveStream), Failure>>,
    pub(super) datagram: Slot<Result<Bytes, Failure>>,
    pub(super) send_datagram: Slot<Result<(), Failure>>,
    closed: Slot<ConnectionError>,
}

impl Clone for Connection {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.link))
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("remote", &self.remote_address()).finish_non_exhaustive()
    }
}

impl Connection {
    pub(super) fn new(link: Arc<Link>) -> Self {
        Self {
            link,
            open_uni: Slot::new(),
            open_bi: Slot::new(),
            accept_uni: Slot::new(),
            accept_bi: Slot::new(),
            datagram: Slot::new(),
            send_datagram: Slot::new(),
            closed: Slot::new(),
        }
    }

    /// Opens a stream to send on. Waits until the peer permits one more.
    pub fn poll_open_uni(&mut self, cx: &mut Context<'_>) -> Poll<Result<SendStream, Failure>> {
        let link = &self.link;
        if link.is_web() {
            return self.open_uni.poll_once(cx, || open_uni(Arc::clone(link)));
        }
        self.open_uni.poll(cx, || open_uni(Arc::clone(link)))
    }

    /// Opens a stream both ways. Waits until the peer permits one more.
    pub fn poll_open_bi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(SendStream, ReceiveStream), Failure>> {
        let link = &self.link;
        if link.is_web() {
            return self.open_bi.poll_once(cx, || open_bi(Arc::clone(link)));
        }
        self.open_bi.poll(cx, || open_bi(Arc::clone(link)))
    }

    /// The next stream that the peer opened to send on. Those that came before the connection's end are still given.
    pub fn poll_accept_uni(&mut self, cx: &mut Context<'_>) -> Poll<Result<ReceiveStream, Failure>> {
        let link = &self.link;
        self.accept_uni.poll(cx, || accept_uni(Arc::clone(link)))
    }

    /// The next stream that the peer opened both ways. Those that came before the connection's end are still given.
    pub fn poll_accept_bi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(SendStream, ReceiveStream), Failure>> {
        let link = &self.link;
        self.accept_bi.poll(cx, || accept_bi(Arc::clone(link)))
    }

    /// Whether the peer took the early data; known when the handshake is over. Without early data it is `false`. May be
    /// polled again, also after a failure.
    pub fn poll_early_data_accepted(&self, cx: &mut Context<'_>) -> Poll<Result<bool, Failure>> {
        self.link.early.poll(cx).map(|verdict| match verdict {
            Verdict::Taken => Ok(true),
            Verdict::Refused => Ok(false),
            Verdict::Failed => Err(self.link.failure().unwrap_or(Failure::EarlyDataRejected)),
        })
    }

    /// Whether the handshake is still going on.
    pub fn is_early(&self) -> bool {
        self.link.early.is_open()
    }

    /// Whether the server has given a ticket on it, which is in the [`TicketStore`](super::TicketStore) that it was
    /// made with, unless another connection has taken it.
    pub fn has_ticket(&self) -> bool {
        self.link.ticket.as_ref().is_some_and(|ticket| *ticket.borrow())
    }

    /// Completes when the server has given a ticket on it, or when none will come: it is over, or has no store.
    pub fn ticket(&self) -> impl Future<Output = ()> + Send + use<> {
        let (ticket, over) = (self.link.ticket.clone(), self.link.noq.on_closed());
        async move {
            let Some(mut ticket) = ticket else { return };
            // What `wait_for` returns is a lock, which the engine wants while it has the connection's; and that one is
            // taken when `over` is dropped.
            let came = async { drop(ticket.wait_for(|came| *came).await) };
            tokio::select! {
                () = came => {}
                _ = over => {}
            }
        }
    }

    /// Why the connection is over, as soon as it is. May be polled again.
    pub fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<Failure> {
        let link = &self.link;
        let closed = self.closed.poll(cx, || {
            let noq = link.noq.clone();
            async move { noq.closed().await }
        });
        closed.map(|error| self.link.end(&error))
    }

    /// Why the connection is over, if it is.
    pub fn close_reason(&self) -> Option<Failure> {
        self.link.failure()
    }

    /// Closes the connection; what was not acknowledged may be lost. A second close changes nothing.
    ///
    /// `code` is at most 2^62 − 1 (WebTransport: 2^32 − 1); a larger one counts as that.
    pub fn close(&self, code: u64, reason: &[u8]) {
        self.link.close(code, reason);
    }

    /// Completes when the peer has acknowledged everything of the streams that were finished before.
    pub fn drain(&self) -> Drain {
        Drain(Arc::clone(&self.link.finished))
    }

    /// What it has done so far.
    pub fn stats(&self) -> Stats {
        Stats::of(&self.link)
    }

    /// Its network paths; one, as multipath is not used.
    pub fn paths(&self) -> Vec<PathInfo> {
        PathInfo::of(&self.link).into_iter().collect()
    }

    /// Goes on from another local address (RFC 9000 §9). The side that connected may do that.
    ///
    /// # Errors
    /// [`Failure::Config`] on the other side, and for an address of another family, [`Failure::Io`] when the address
    /// cannot be had; or the connection's end.
    pub fn rebind(&self, address: SocketAddr) -> Result<(), Failure> {
        if let Some(failure) = self.link.failure() {
            return Err(failure);
        }
        let Side::Client { udp_buffer, lane, .. } = &self.link.side else {
            return Err(Failure::Config("only the side that connected can move".into()));
        };
        if self.link.endpoint.local_addr()?.is_ipv6() != address.is_ipv6() {
            return Err(Failure::Config("a connection cannot move between IPv4 and IPv6".into()));
        }
        let (socket, _) = socket::bind(address, *udp_buffer)?;
        let _inside = self.link.engine.enter();
        match lane {
            Some(lane) if !self.link.engine.clients().is_alone(lane) => {
                if lane.address().is_none() {
                    self.link.close_at_end(lane);
                }
                lane.move_to(Receiver::new(socket)?)?;
                // noq tells all connections of an endpoint, or none.
                self.link.endpoint.handle_network_change(None);
            }
            lane => {
                self.link.endpoint.rebind(socket)?;
                lane.iter().for_each(|lane| lane.forget());
            }
        }
        Ok(())
    }

    /// It belongs to the loop that drains `ready`, which reads the socket itself while it has little to do. On the side
    /// that listens that is the listener's.
    pub fn belong_to(&self, ready: &Arc<Ready>) {
        if let Side::Client { runtime, .. } = &self.link.side {
            runtime.belong_to(ready.lease());
        }
    }

    /// Goes on under another of the connection IDs that the peer has given (RFC 9000 §5.1.1), if there is one. Other
    /// connections on the endpoint do the same: noq tells all or none. The side that connected may do that.
    ///
    /// # Errors
    /// [`Failure::Config`] on the other side.
    pub fn change_id(&self) -> Result<(), Failure> {
        let Side::Client { .. } = self.link.side else {
            return Err(Failure::Config("only the side that connected can change the connection ID".into()));
        };
        self.link.endpoint.handle_network_change(None);
        Ok(())
    }

    /// Changes the keys of what is sent (RFC 9001 §6). Nothing happens while an earlier change is under way.
    pub fn update_keys(&self) {
        self.link.noq.force_key_update();
    }

    /// Sends something that the peer has to acknowledge (RFC 9000 §19.2). Nothing happens when the connection is over.
    pub fn ping(&self) {
        if let Some(path) = self.link.noq.path(PathId::ZERO) {
            let _ = path.ping();
        }
    }

    /// Bytes that both sides, and no others, derive from the handshake (RFC 8446 §7.5).
    ///
    /// # Errors
    /// [`Failure::Config`] before the handshake is complete, and for more bytes than there are.
    pub fn export_keying_material(
        &self,
        label: &[u8],
        context: &[u8],
        length: usize,
    ) -> Result<Vec<u8>, Failure> {
        if length > EXPORT_MAX {
            return Err(Failure::Config(format!("at most {EXPORT_MAX} bytes can be exported")));
        }
        let mut output = vec![0; length];
        match self.link.noq.export_keying_material(&mut output, label, context) {
            Ok(()) => Ok(output),
            Err(_) => Err(Failure::Config("the handshake is not complete".into())),
        }
    }

    /// Where the peer is, or was last.
    pub fn remote_address(&self) -> SocketAddr {
        self.link.remote_address()
    }

    /// Where this side is: the bound address, as exactly as it is known.
    pub fn local_address(&self) -> SocketAddr {
        self.link.local_address()
    }

    /// The peer's certificates in DER, its own first. Empty when it has shown none.
    pub fn peer_certificates(&self) -> Vec<Vec<u8>> {
        let identity = self
            .link
            .noq
            .peer_identity()
            .and_then(|identity| identity.downcast::<Vec<CertificateDer<'static>>>().ok());
        identity.map_or_else(Vec::new, |chain| chain.iter().map(|der| der.to_vec()).collect())
    }

    /// The application protocol that was agreed on.
    pub fn alpn(&self) -> Option<Vec<u8>> {
        self.link.handshake_data()?.protocol
    }

    /// On the side that listens: the name that the client asked for.
    pub fn server_name(&self) -> Option<String> {
        self.link.handshake_data()?.server_name
    }

    /// Whether it is a WebTransport session.
    pub fn is_web(&self) -> bool {
        self.link.is_web()
    }
}

async fn open_uni(link: Arc<Link>) -> Result<SendStream, Failure> {
    link.check()?;
    let early = link.opens_early();
    let opened = link.noq.open_uni().await;
    let mut stream = opened.map_err(|error| link.end(&error))?;
    begin(&link, &mut stream, false).await?;
    Ok(SendStream::new(stream, link, early))
}

async fn open_bi(link: Arc<Link>) -> Result<(SendStream, ReceiveStream), Failure> {
    link.check()?;
    let early = link.opens_early();
    let opened = link.noq.open_bi().await;
    let (mut send, receive) = opened.map_err(|error| link.end(&error))?;
    begin(&link, &mut send, true).await?;
    Ok((SendStream::new(send, Arc::clone(&link), early), ReceiveStream::new(receive, link, 0, early)))
}

/// Says to which session a stream belongs, if there are sessions.
async fn begin(link: &Link, stream: &mut noq::SendStream, both_ways: bool) -> Result<(), Failure> {
    if let Some(session) = &link.session {
        let header = session.stream_header(both_ways);
        return stream.write_all(header).await.map_err(|error| link.write_failure(error));
    }
    Ok(())
}

async fn accept_uni(link: Arc<Link>) -> Result<ReceiveStream, Failure> {
    if let Some(session) = &link.session {
        let (stream, skipped) = session.arrivals.next_uni().await.map_err(|error| link.end(&error))?;
        return Ok(ReceiveStream::new(stream, link, skipped, false));
    }
    if let Some(stream) = link.stash.uni() {
        return Ok(ReceiveStream::new(stream, link, 0, false));
    }
    let stream = link.noq.accept_uni().await.map_err(|error| link.end(&error))?;
    Ok(ReceiveStream::new(stream, link, 0, false))
}

async fn accept_bi(link: Arc<Link>) -> Result<(SendStream, ReceiveStream), Failure> {
    if let Some(session) = &link.session {
        let (send, receive, skipped) = session.arrivals.next_bi().await.map_err(|error| link.end(&error))?;
        return Ok((
            SendStream::new(send, Arc::clone(&link), false),
            ReceiveStream::new(receive, link, skipped, false),
        ));
    }
    let (send, receive) = match link.stash.bi() {
        Some(stream) => stream,
        None => link.noq.accept_bi().await.map_err(|error| link.end(&error))?,
    };
    Ok((SendStream::new(send, Arc::clone(&link), false), ReceiveStream::new(receive, link, 0, false)))
}

/// Bytes that one call exports: what SHA-256 can expand to (RFC 5869 §2.3).
const EXPORT_MAX: usize = 255 * 32;
