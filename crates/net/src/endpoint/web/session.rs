//! A session, and how it ends.
//!
//! The side that ends it says so in a capsule on the stream of the request (draft-ietf-webtrans-http3 §6), and closes
//! the connection when the other has heard it, or soon: there is only this session. Invariant: the first end counts,
//! and what arrived before it stays to be read.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use noq::{Connection, PathId, ReadError, RecvStream, SendStream, VarInt};
use tokio::time::timeout;
use web_transport_proto::VarInt as ProtoVarInt;

use super::handshake::Exchange;
use crate::endpoint::failure::clean;
use crate::endpoint::link::Link;
use crate::endpoint::{By, Engine, Failure, Pending};
use crate::http3::{self, Arrivals, Capsules, Close, MESSAGE_ERROR, Malformed, NO_ERROR};

/// The session of a connection.
#[derive(Debug)]
pub(in crate::endpoint) struct Session {
    connection: Connection,
    pub(in crate::endpoint) arrivals: Arc<Arrivals>,
    /// Only ever a [`Failure::Closed`].
    ended: Arc<OnceLock<Failure>>,
    uni_header: Vec<u8>,
    bi_header: Vec<u8>,
    datagram_header: Vec<u8>,
    /// The request's, for the capsule.
    request: Mutex<Option<SendStream>>,
    _control: Option<SendStream>,
    _demux: Pending<()>,
    _reader: Pending<()>,
}

impl Session {
    /// The request was accepted: from now on the connection is a session. `early`: what was read of `receive` behind
    /// the request.
    pub(super) fn start(exchange: Exchange, send: SendStream, receive: RecvStream, early: Vec<u8>) -> Link {
        let Exchange { mut link, arrivals, demux, control, .. } = exchange;
        let number = VarInt::from(send.id()).into_inner();
        let id = ProtoVarInt::from_u64(number).unwrap_or_default();
        arrivals.begin(number);
        let reader = read_capsules(receive, early, link.noq.clone(), Arc::clone(&link.ended));
        link.session = Some(Arc::new(Self {
            connection: link.noq.clone(),
            arrivals,
            ended: Arc::clone(&link.ended),
            uni_header: http3::stream_header(id, false),
            bi_header: http3::stream_header(id, true),
            datagram_header: http3::datagram_header(id),
            request: Mutex::new(Some(send)),
            _control: control,
            _demux: demux,
            _reader: link.engine.spawn(reader),
        }));
        link
    }

    /// What a stream begins with.
    pub(in crate::endpoint) fn stream_header(&self, both_ways: bool) -> &[u8] {
        if both_ways { &self.bi_header } else { &self.uni_header }
    }

    /// What a datagram begins with.
    pub(in crate::endpoint) fn datagram_header(&self) -> &[u8] {
        &self.datagram_header
    }

    /// Ends the session; the connection follows when the peer has heard it.
    pub(in crate::endpoint) fn close(self: &Arc<Self>, engine: &Engine, code: u64, reason: &[u8]) {
        if self.connection.close_reason().is_some() {
            return;
        }
        let code = u32::try_from(code).unwrap_or(u32::MAX);
        let reason = String::from_utf8_lossy(reason);
        if self.ended.set(Failure::closed(By::Local, code.into(), clean(&reason))).is_err() {
            return;
        }
        let capsule = http3::close(code, &reason);
        let request = self.request.lock().unwrap_or_else(PoisonError::into_inner).take();
        let session = Arc::clone(self);
        engine.detach(async move {
            let told = async {
                if let Some(mut request) = request
                    && request.write_all(&capsule).await.is_ok()
                    && request.finish().is_ok()
                {
                    session.connection.closed().await;
                }
            };
            let _ = timeout(grace(&session.connection), told).await;
            session.connection.close(NO_ERROR.into(), b"");
        });
    }
}

/// How long the peer may take to hear the end.
pub(super) fn grace(connection: &Connection) -> Duration {
    GRACE_MIN.max(3 * connection.rtt(PathId::ZERO).unwrap_or_default())
}

/// Waits for the peer's end of the session.
async fn read_capsules(
    mut receive: RecvStream,
    early: Vec<u8>,
    connection: Connection,
    ended: Arc<OnceLock<Failure>>,
) {
    let (end, code) = match read_end(&mut receive, &early).await {
        Ok(Ok(Close { code, reason })) => {
            (Failure::closed(By::Peer, code.into(), clean(&reason)), NO_ERROR.into())
        }
        Ok(Err(malformed)) => (of_malformed(malformed), MESSAGE_ERROR),
        // The peer gives its session up (draft-ietf-webtrans-http3 §6), unless it has closed the connection, too, which
        // tells more.
        Err(ReadError::Reset(_)) if connection.close_reason().is_none() => {
            (Failure::closed(By::Peer, 0, "the request's stream was reset".into()), NO_ERROR.into())
        }
        // Not the stream's end, but the connection's.
        Err(_) => return,
    };
    // Otherwise this is the answer to our own end, and the peer may have more to do before the connection closes.
    if ended.set(end).is_ok() {
        connection.close(code, b"");
    }
}

/// What the peer says in the end. An end without words counts as one with code 0 (draft-ietf-webtrans-http3 §6).
async fn read_end(receive: &mut RecvStream, early: &[u8]) -> Result<Result<Close, Malformed>, ReadError> {
    let mut capsules = Capsules::default();
    if let Some(end) = capsules.read(early).transpose() {
        return Ok(end);
    }
    while let Some(chunk) = receive.read_chunk(usize::MAX).await? {
        if let Some(end) = capsules.read(&chunk).transpose() {
            return Ok(end);
        }
    }
    Ok(capsules.end().map(|()| Close { code: 0, reason: String::new() }))
}

fn of_malformed(malformed: Malformed) -> Failure {
    let reason = format!("the session's end cannot be read: {malformed}");
    Failure::closed(By::Transport, MESSAGE_ERROR.into_inner(), reason)
}

/// At least so long, as the round-trip time is an estimate.
const GRACE_MIN: Duration = Duration::from_millis(250);
