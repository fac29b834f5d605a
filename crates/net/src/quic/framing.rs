//! How a session's streams and datagrams lie on a connection: as they are, or inside WebTransport.
//!
//! It moves nothing. Invariant: a session sees the same streams, codes and ends on both.

use std::sync::Arc;

use bytes::Bytes;
use noq::{Connection, ConnectionError, RecvStream, VarInt};
use wayferry_proto::CloseReason;

use super::error::{GIVEN_UP, close_reason};
use super::page::Session;
use crate::http3;

/// See the module.
#[derive(Clone)]
pub(super) enum Framing {
    /// A stream of the session is a stream of QUIC.
    Plain,
    /// It is one of a WebTransport session.
    Page(Arc<Session>),
}

impl Framing {
    /// What a stream of ours begins with.
    pub(super) fn stream_header(&self) -> Bytes {
        match self {
            Self::Plain => Bytes::new(),
            Self::Page(session) => Bytes::copy_from_slice(&session.stream_header),
        }
    }

    /// QUIC's number of the session's first stream: HTTP/3's control stream is before it.
    pub(super) fn first(&self) -> u64 {
        match self {
            Self::Plain => 0,
            Self::Page(_) => 1,
        }
    }

    /// The peer's next stream, and how many bytes of it are not the session's.
    pub(super) async fn accept(&self, connection: &Connection) -> Result<(RecvStream, u64), ConnectionError> {
        match self {
            Self::Plain => Ok((connection.accept_uni().await?, 0)),
            Self::Page(session) => session.arrivals.next_uni().await,
        }
    }

    /// A stream's code as it goes on the wire.
    pub(super) fn code_out(&self, code: u32) -> VarInt {
        match self {
            Self::Plain => VarInt::from_u32(code),
            Self::Page(_) => http3::code_out(code.into()),
        }
    }

    /// A stream's code as it came.
    pub(super) fn code_in(&self, code: VarInt) -> u32 {
        let code = match self {
            Self::Plain => code.into_inner(),
            Self::Page(_) => http3::code_in(code),
        };
        u32::try_from(code).unwrap_or(u32::MAX)
    }

    /// A datagram as it goes on the wire.
    pub(super) fn wrap(&self, bytes: Bytes) -> Bytes {
        match self {
            Self::Plain => bytes,
            Self::Page(session) => [&session.datagram_header[..], &bytes].concat().into(),
        }
    }

    /// A datagram as the session knows it; none if it is not for the session.
    pub(super) fn unwrap(&self, bytes: Bytes) -> Option<Bytes> {
        match self {
            Self::Plain => Some(bytes),
            Self::Page(session) => http3::strip_datagram(bytes, &session.datagram_header),
        }
    }

    /// Most bytes of a datagram now.
    pub(super) fn datagram_max(&self, connection: &Connection) -> u16 {
        let header = match self {
            Self::Plain => 0,
            Self::Page(session) => session.datagram_header.len(),
        };
        let most = connection.max_datagram_size().map_or(0, |size| size.saturating_sub(header));
        u16::try_from(most).unwrap_or(u16::MAX)
    }

    /// Whether the peer can read streams out of order. No script can, so rows on streams would be in vain.
    pub(super) fn is_read_in_any_order(&self) -> bool {
        matches!(self, Self::Plain)
    }

    /// Ends the connection with what the session says.
    pub(super) async fn close(&self, connection: &Connection, code: u32, text: &str) {
        match self {
            Self::Plain => connection.close(VarInt::from_u32(code), text.as_bytes()),
            Self::Page(session) => session.end(connection, code, text).await,
        }
    }

    /// Ends the connection with nothing said by the session: the peer may come again.
    pub(super) fn give_up(&self, connection: &Connection, text: &str) {
        let code = match self {
            Self::Plain => GIVEN_UP,
            Self::Page(_) => http3::NO_ERROR,
        };
        connection.close(VarInt::from_u32(code), text.as_bytes());
    }

    /// Why a connection that had come about is over; see [`close_reason`].
    pub(super) async fn close_reason(
        &self,
        error: &ConnectionError,
        ours: Option<CloseReason>,
        proven: bool,
    ) -> CloseReason {
        let Self::Page(session) = self else { return close_reason(error, ours, proven) };
        let said = session.said().await;
        match (ours.or(said), error) {
            (Some(reason), _) => reason,
            // These are HTTP/3's words, not the session's.
            (None, ConnectionError::ApplicationClosed(_)) => {
                CloseReason::LinkLost("the page has gone, or was loaded again".into())
            }
            (None, error) => close_reason(error, None, proven),
        }
    }
}
