//! A page's session: WebTransport on a connection that a [`Listener`](super::Listener) accepted.
//!
//! Everybody is answered in HTTP/3's words: who asks for the session at [`PATH`] from a page whose origin may come gets
//! it, all others the same status, no matter what was wrong. Whether the page is let in is the session's to say. What a
//! stranger may send is bounded here and in [`standing`](super::standing). Invariant: nothing that is read before the
//! answer, and nothing that HTTP/3 keeps open beside the session, grows with what the peer sends.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use noq::{Connection, PathId, ReadError, RecvStream, SendStream, VarInt};
use tokio::io::AsyncReadExt;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use wayferry_proto::CloseReason;
use web_transport_proto::http::{StatusCode, header};
use web_transport_proto::{ConnectError, ConnectRequest, ConnectResponse, Settings, VarInt as ProtoVarInt};

use super::intake::may_read;
use super::pages::Pages;
use super::shared::Shared;
use crate::http3::{
    self, Arrivals, Bounds, Capsules, Close, Demux, MESSAGE_ERROR, NO_ERROR, SETTINGS_ERROR, Settled,
};

/// The session of a connection.
pub(super) struct Session {
    /// Its streams.
    pub(super) arrivals: Arc<Arrivals>,
    /// What each of our streams begins with.
    pub(super) stream_header: Vec<u8>,
    /// What each datagram begins with.
    pub(super) datagram_header: Vec<u8>,
    /// The request's, for our end of the session.
    request: Mutex<Option<SendStream>>,
    /// We have ended it, or are about to.
    has_ended: Arc<AtomicBool>,
    /// Gives the peer's end.
    said: Mutex<Option<JoinHandle<Option<CloseReason>>>>,
    /// Has to stay open.
    _control: SendStream,
}

impl Session {
    /// Answers what is asked on a connection whose handshake is complete; gives the session if it is a page that may
    /// come. The caller bounds the time.
    pub(super) async fn meet(connection: &Connection, pages: &Pages, shared: &Arc<Shared>) -> Option<Self> {
        let arrivals = Arc::<Arrivals>::default();
        let bounds = Bounds { critical: CRITICAL_MAX, refused: REFUSED_MAX };
        let demux = Demux::new(connection.clone(), Arc::clone(&arrivals), HEADER_PATIENCE, bounds);
        tokio::spawn(demux.run(Default::default(), Default::default()));
        let control = say_settings(connection).await?;
        if let Settled::Broken(_) = arrivals.settings().await.ok()? {
            connection.close(SETTINGS_ERROR, b"");
            return None;
        }
        let (mut send, mut receive, read) = arrivals.request().await.ok()?;
        let mut asked = read.as_slice().chain(&mut receive).take(REQUEST_MAX);
        let status = judge(&ConnectRequest::read(&mut asked).await, pages);
        answer(&mut send, status).await?;
        if status != StatusCode::OK {
            refuse(connection, send).await;
            return None;
        }
        let number = VarInt::from(send.id()).into_inner();
        arrivals.begin(number);
        let id = ProtoVarInt::from_u64(number).unwrap_or_default();
        let has_ended = Arc::<AtomicBool>::default();
        let said = read_end(receive, connection.clone(), Arc::clone(shared), Arc::clone(&has_ended));
        Some(Self {
            arrivals,
            stream_header: http3::stream_header(id, false),
            datagram_header: http3::datagram_header(id),
            request: Mutex::new(Some(send)),
            has_ended,
            said: Mutex::new(Some(tokio::spawn(said))),
            _control: control,
        })
    }

    /// How the peer ended it, if it did; call when the connection is over.
    pub(super) async fn said(&self) -> Option<CloseReason> {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        said.await.ok().flatten()
    }

    /// Ends it with this code and text, and the connection when the peer has heard that, or soon.
    pub(super) async fn end(&self, connection: &Connection, code: u32, text: &str) {
        self.has_ended.store(true, Ordering::Release);
        let request = self.request.lock().unwrap_or_else(PoisonError::into_inner).take();
        let told = async {
            if let Some(mut request) = request
                && request.write_all(&http3::close(code, text)).await.is_ok()
                && request.finish().is_ok()
            {
                connection.closed().await;
            }
        };
        let _ = timeout(grace(connection), told).await;
        connection.close(NO_ERROR.into(), b"");
    }
}

async fn say_settings(connection: &Connection) -> Option<SendStream> {
    let mut control = connection.open_uni().await.ok()?;
    let (mut settings, mut bytes) = (Settings::default(), Vec::new());
    settings.enable_webtransport(1);
    settings.encode(&mut bytes);
    control.write_all(&bytes).await.ok()?;
    Some(control)
}

/// One answer for all that was asked in vain, so that it tells nothing of what would be granted.
fn judge(asked: &Result<ConnectRequest, ConnectError>, pages: &Pages) -> StatusCode {
    match asked {
        Ok(request) if is_welcome(request, pages) => StatusCode::OK,
        // Other methods and protocols of HTTP.
        Ok(_)
        | Err(
            ConnectError::WrongMethod(_)
            | ConnectError::InvalidMethod
            | ConnectError::WrongProtocol(_)
            | ConnectError::WrongScheme(_)
            | ConnectError::WrongPath,
        ) => StatusCode::NOT_FOUND,
        Err(_) => StatusCode::BAD_REQUEST,
    }
}

fn is_welcome(request: &ConnectRequest, pages: &Pages) -> bool {
    let mut origins = request.headers.get_all(header::ORIGIN).into_iter();
    // What is no browser may say any; what it shows to the session decides then, too.
    let (Some(origin), None) = (origins.next(), origins.next()) else { return false };
    let listed = origin.to_str().is_ok_and(|origin| pages.contains(origin));
    listed && request.url.path() == PATH && request.url.query().is_none()
}

async fn answer(send: &mut SendStream, status: StatusCode) -> Option<()> {
    let mut bytes = Vec::new();
    ConnectResponse::new(status).encode(&mut bytes).ok()?;
    send.write_all(&bytes).await.ok()
}

/// Waits a little until the peer has its answer.
async fn refuse(connection: &Connection, mut send: SendStream) {
    if send.finish().is_ok() {
        let _ = timeout(grace(connection), connection.closed()).await;
    }
    connection.close(NO_ERROR.into(), b"");
}

/// Waits for the peer's end of the session, and ends the connection, unless that is its answer to ours: a browser gives
/// it before its page has heard why the session ends, and if the connection is closed by then, never tells it.
async fn read_end(
    mut receive: RecvStream,
    connection: Connection,
    shared: Arc<Shared>,
    has_ended: Arc<AtomicBool>,
) -> Option<CloseReason> {
    let (said, code) = match read_close(&mut receive, &connection, &shared).await {
        Ok(Some(Close { code, reason })) => (CloseReason::from_wire(code, &reason), NO_ERROR.into()),
        Ok(None) => (CloseReason::LinkLost("the page's last words cannot be read".into()), MESSAGE_ERROR),
        // It gives its session up (draft-ietf-webtrans-http3 §6), unless the connection is over.
        Err(ReadError::Reset(_)) if connection.close_reason().is_none() => {
            (CloseReason::LinkLost("the page gave the session up".into()), NO_ERROR.into())
        }
        Err(_) => return None,
    };
    if !has_ended.load(Ordering::Acquire) {
        connection.close(code, b"");
    }
    Some(said)
}

/// What the peer says in the end; nothing if that is malformed. An end without words counts as one with code 0
/// (draft-ietf-webtrans-http3 §6).
async fn read_close(
    receive: &mut RecvStream,
    connection: &Connection,
    shared: &Shared,
) -> Result<Option<Close>, ReadError> {
    let mut capsules = Capsules::default();
    loop {
        may_read(connection, shared).await;
        let Some(chunk) = receive.read_chunk(usize::MAX).await? else { break };
        shared.standing.hear(chunk.len());
        match capsules.read(&chunk) {
            Ok(None) => {}
            Ok(Some(close)) => return Ok(Some(close)),
            Err(_) => return Ok(None),
        }
    }
    Ok(capsules.end().ok().map(|()| Close { code: 0, reason: String::new() }))
}

/// How long the peer may take to hear the end.
fn grace(connection: &Connection) -> Duration {
    (3 * connection.rtt(PathId::ZERO).unwrap_or_default()).clamp(GRACE_MIN, GRACE_MAX)
}

/// Where pages ask for the session.
const PATH: &str = "/wayferry/1";

/// At least so long, as the round-trip time is an estimate, and a browser has other things to do: one that has not read
/// the end when the connection is closed knows only that its link was lost.
const GRACE_MIN: Duration = Duration::from_secs(1);

/// At most so long, as the round-trip time is what the peer makes it.
const GRACE_MAX: Duration = Duration::from_secs(3);

/// How long the first bytes of a stream may take that say whose it is.
const HEADER_PATIENCE: Duration = Duration::from_secs(5);

/// Bytes of a request, with all that may come before it on its stream.
const REQUEST_MAX: u64 = 8 << 10;

/// Bytes on each of HTTP/3's own streams; browsers send some 100 of settings.
const CRITICAL_MAX: u64 = 4 << 10;

/// Streams that are refused; browsers may open one or two of reserved kinds (RFC 9114 §6.2.3).
const REFUSED_MAX: u32 = 16;
