//! What a connection and its streams share.
//!
//! Invariant: it is here that noq's errors become [`Failure`]s, so that everybody tells the same end of a connection.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use noq::crypto::rustls::HandshakeData;
use noq::{
    ConnectionError, Endpoint, PathId, ReadError, SendDatagramError, StoppedError, VarInt, WriteError,
    ZeroRttAccepted,
};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::arrived::Arrived;
use super::cutting::Told;
use super::drain::Finished;
use super::early::{Early, Verdict};
use super::readers::{Reader, Readers};
use super::receive::Stream;
use super::runtime::{PromptRuntime, promptly};
use super::sockets::Lane;
use super::stash::Stash;
use super::web::Session;
use super::{By, Config, Engine, Failure};

/// One connection.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) noq: noq::Connection,
    pub(super) engine: Engine,
    pub(super) endpoint: Endpoint,
    pub(super) side: Side,
    /// Bytes of datagrams that may wait here; 0 when this side does not do them. noq sends none then, and does not say
    /// so.
    pub(super) datagram_buffer: usize,
    /// Why it is over, if that was decided on this side, or by WebTransport.
    pub(super) ended: Arc<OnceLock<Failure>>,
    pub(super) finished: Arc<Finished>,
    pub(super) early: Arc<Early>,
    /// Whether the server has given a ticket on it. `None`: there is no store for one.
    pub(super) ticket: Option<watch::Receiver<bool>>,
    pub(super) stash: Stash,
    pub(super) arrived: Mutex<Arrived>,
    refused: Mutex<Refused>,
    readers: OnceLock<Arc<Readers>>,
    /// Where the peer was at first.
    remote: SocketAddr,
    pub(super) session: Option<Arc<Session>>,
}

/// Who began.
#[derive(Debug)]
pub(super) enum Side {
    /// This side.
    Client {
        /// Of the sockets, in bytes.
        udp_buffer: usize,
        /// On an endpoint that others share: its own way.
        lane: Option<Arc<Lane>>,
        runtime: Arc<PromptRuntime>,
    },
    /// The peer.
    Server {
        /// Why the listener closed all its connections.
        closed: Arc<OnceLock<Failure>>,
    },
}

/// Streams that went with the early data that the peer did not take. Their numbers are given out again, and a drop of
/// an old one would make noq forget who waits for the new one; so they are dropped last. They are as many as the peer
/// once permitted.
#[derive(Debug, Default)]
pub(super) struct Refused {
    pub(super) send: Vec<noq::SendStream>,
    receive: Vec<Stream>,
}

impl Refused {
    /// Keeps one that was just stopped, if it is one of them.
    pub(super) fn keep(&mut self, mut stream: Stream) {
        if stream.is_refused() {
            self.receive.push(stream);
        }
    }
}

impl Link {
    pub(super) fn new(
        noq: noq::Connection,
        engine: Engine,
        endpoint: Endpoint,
        side: Side,
        config: &Config,
    ) -> Self {
        let remote = noq.path(PathId::ZERO).and_then(|path| path.remote_address().ok());
        Self {
            remote: canonical(remote.unwrap_or_else(|| ([0, 0, 0, 0], 0).into())),
            noq,
            engine,
            endpoint,
            side,
            datagram_buffer: if config.datagrams { config.datagram_buffer } else { 0 },
            ended: Arc::default(),
            finished: Arc::default(),
            early: Arc::new(Early::none()),
            ticket: None,
            stash: Stash::default(),
            arrived: Mutex::default(),
            refused: Mutex::default(),
            readers: OnceLock::new(),
            session: None,
        }
    }

    /// The same connection for a session on it, which has streams and datagrams to itself from now on. `None` on the
    /// side that connected.
    pub(super) fn for_session(&self, config: &Config) -> Option<Self> {
        let Side::Server { closed } = &self.side else { return None };
        let side = Side::Server { closed: Arc::clone(closed) };
        Some(Self::new(self.noq.clone(), self.engine.clone(), self.endpoint.clone(), side, config))
    }

    /// The handshake is still going on: says what becomes of the early data, and gives up when it takes longer than
    /// `patience`.
    pub(super) fn watch_handshake(&mut self, accepted: ZeroRttAccepted, patience: Duration) {
        let early = Arc::new(Early::open());
        self.early = Arc::clone(&early);
        let (weak, ended) = (self.noq.weak_handle(), Arc::clone(&self.ended));
        self.engine.detach(async move {
            let taken = timeout(patience, accepted).await;
            let connection = weak.upgrade();
            let over = connection.as_ref().is_none_or(|connection| connection.close_reason().is_some());
            early.settle(match taken {
                Ok(true) => Verdict::Taken,
                Ok(false) if !over => Verdict::Refused,
                Ok(false) => Verdict::Failed,
                Err(_) => {
                    let _ = ended.set(Failure::no_answer(patience));
                    if let Some(connection) = connection {
                        connection.close(VarInt::from_u32(0), b"no handshake");
                    }
                    Verdict::Failed
                }
            });
        });
    }

    /// Whether a stream that is opened now may go with early data that the peer does not take. Ask before it is opened.
    pub(super) fn opens_early(&self) -> bool {
        matches!(self.side, Side::Client { .. }) && self.early.is_open()
    }

    pub(super) fn refused(&self) -> MutexGuard<'_, Refused> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why it is over, if it is.
    pub(super) fn failure(&self) -> Option<Failure> {
        match self.noq.close_reason() {
            Some(error) => Some(self.end(&error)),
            None if self.is_web() => self.ended.get().cloned(),
            None => None,
        }
    }

    /// Why it is over, as noq tells it.
    pub(super) fn end(&self, error: &ConnectionError) -> Failure {
        let mut ours = self.ended.get();
        if let Side::Server { closed } = &self.side {
            ours = ours.or_else(|| closed.get());
        }
        if self.is_web() {
            return super::web::end(error, ours);
        }
        Failure::of(error, ours)
    }

    /// A WebTransport session ends before its connection does, which still has to say so.
    pub(super) fn check(&self) -> Result<(), Failure> {
        match self.ended.get() {
            Some(failure) if self.is_web() => Err(failure.clone()),
            _ => Ok(()),
        }
    }

    pub(super) fn close(&self, code: u64, reason: &[u8]) {
        if let Some(session) = &self.session {
            return session.close(&self.engine, code, reason);
        }
        if self.noq.close_reason().is_none() {
            let code = saturate(code);
            let text = super::failure::clean(&String::from_utf8_lossy(reason));
            let _ = self.ended.set(Failure::closed(By::Local, code.into_inner(), text));
            // The process may end before another thread would have woken up to say it.
            promptly(|| self.noq.close(code, reason));
        }
    }

    pub(super) fn write_failure(&self, error: WriteError) -> Failure {
        match error {
            WriteError::Stopped(code) => Failure::Stopped(self.code_in(code)),
            WriteError::ConnectionLost(error) => self.end(&error),
            WriteError::ClosedStream => Failure::StreamGone,
            WriteError::ZeroRttRejected => Failure::EarlyDataRejected,
        }
    }

    pub(super) fn stopped_failure(&self, error: &StoppedError) -> Failure {
        match error {
            StoppedError::ConnectionLost(error) => self.end(error),
            StoppedError::ZeroRttRejected => Failure::EarlyDataRejected,
        }
    }

    pub(super) fn read_failure(&self, error: ReadError) -> Failure {
        match error {
            ReadError::Reset(code) => Failure::Reset(self.code_in(code)),
            ReadError::ConnectionLost(error) => self.end(&error),
            ReadError::ClosedStream => Failure::StreamGone,
            ReadError::ZeroRttRejected => Failure::EarlyDataRejected,
        }
    }

    pub(super) fn datagram_failure(&self, error: SendDatagramError, size: usize) -> Failure {
        match error {
            SendDatagramError::UnsupportedByPeer | SendDatagramError::Disabled => Failure::NoDatagrams,
            SendDatagramError::TooLarge => {
                Failure::TooLarge { size, max: self.max_datagram_size().unwrap_or(0) }
            }
            SendDatagramError::ConnectionLost(error) => self.end(&error),
        }
    }

    /// A stream's code as it goes on the wire.
    pub(super) fn code_out(&self, code: u64) -> VarInt {
        if self.is_web() {
            return crate::http3::code_out(code);
        }
        saturate(code)
    }

    /// A stream's code as it came from the wire.
    pub(super) fn code_in(&self, code: VarInt) -> u64 {
        if self.is_web() {
            return crate::http3::code_in(code);
        }
        code.into_inner()
    }

    pub(super) fn is_web(&self) -> bool {
        self.session.is_some()
    }

    pub(super) fn remote_address(&self) -> SocketAddr {
        let path = self.noq.path(PathId::ZERO).and_then(|path| path.remote_address().ok());
        path.map_or(self.remote, canonical)
    }

    pub(super) fn local_address(&self) -> SocketAddr {
        let moved = match &self.side {
            Side::Client { lane: Some(lane), .. } => lane.address(),
            _ => None,
        };
        let bound = moved.map_or_else(|| self.endpoint.local_addr(), Ok);
        let bound = bound.unwrap_or_else(|_| ([0, 0, 0, 0], 0).into());
        let path = self.noq.path(PathId::ZERO).and_then(|path| path.local_ip().ok().flatten());
        match path {
            Some(ip) if bound.ip().is_unspecified() => canonical(SocketAddr::new(ip, bound.port())),
            _ => canonical(bound),
        }
    }

    /// Closes what `lane` was moved to when late packets cannot come any more, three timeouts after the connection's
    /// end (RFC 9000 §10.2).
    pub(super) fn close_at_end(&self, lane: &Arc<Lane>) {
        let (lane, closed) = (Arc::clone(lane), self.noq.on_closed());
        self.engine.detach(async move {
            let rtt = closed.await.path_stats.iter().map(|(_, path)| path.rtt).max().unwrap_or_default();
            sleep(3 * (3 * rtt + ACK_DELAY)).await;
            lane.close();
        });
    }

    pub(super) fn handshake_data(&self) -> Option<Box<HandshakeData>> {
        handshake_data(&self.noq)
    }

    /// Says from now on how far stream `id` was read, of which `read` bytes were; not before the handshake tells where.
    pub(super) fn reader(&self, id: u64, read: u64) -> Option<Reader> {
        if self.readers.get().is_none() {
            let _ = self.readers.set(told(&self.noq)?.readers);
        }
        Some(self.readers.get()?.add(id, read))
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if let Some(session) = &self.session {
            session.close(&self.engine, 0, b"");
        }
    }
}

pub(super) fn handshake_data(connection: &noq::Connection) -> Option<Box<HandshakeData>> {
    told(connection)?.data.downcast().ok()
}

fn told(connection: &noq::Connection) -> Option<Box<Told>> {
    connection.handshake_data()?.downcast().ok()
}

/// A code that fits.
pub(super) fn saturate(code: u64) -> VarInt {
    VarInt::from_u64(code).unwrap_or(VarInt::MAX)
}

/// An IPv4 address as such, no matter what kind of socket it came through.
pub(super) fn canonical(address: SocketAddr) -> SocketAddr {
    match address {
        // With its zone.
        SocketAddr::V6(v6) if v6.ip().to_ipv4_mapped().is_none() => address,
        _ => SocketAddr::new(address.ip().to_canonical(), address.port()),
    }
}

/// What a peer waits at most before it acknowledges (RFC 9000 §18.2).
const ACK_DELAY: Duration = Duration::from_millis(25);
