//! WebTransport over HTTP/3 (draft-ietf-webtrans-http3): one session per connection.

use std::net::SocketAddr;

use super::{ClientTls, Config, Connection, Engine, Failure, Pending, Target};

/// Connects to `url`, `https://host:port/path`; `target` has its host and addresses. The application protocol is `h3`, whatever
/// `tls` says; early data is not used.
pub fn connect(
    engine: &Engine,
    target: Target,
    url: &str,
    tls: ClientTls,
    config: Config,
) -> Pending<Result<Connection, Failure>> {
    let _ = (engine, target, url, tls, config);
    unimplemented!()
}

/// A client that asks for a session. Dropped, it is rejected with status 404.
#[derive(Debug)]
pub struct Request {}

impl Request {
    /// The path that was asked for, with its query.
    pub fn path(&self) -> &str {
        unimplemented!()
    }

    /// The host, and the port if one was named.
    pub fn authority(&self) -> &str {
        unimplemented!()
    }

    /// The other fields of the request; names are in lower case.
    pub fn headers(&self) -> &[(String, String)] {
        unimplemented!()
    }

    /// Where the client is.
    pub fn remote_address(&self) -> SocketAddr {
        unimplemented!()
    }

    /// Lets the client in.
    pub fn accept(self) -> Pending<Result<Connection, Failure>> {
        unimplemented!()
    }

    /// Tells the client that there is no session for it, with a status of HTTP from 400 to 599, and lets it go.
    ///
    /// # Errors
    /// [`Failure::Config`] for another status; the client gets 404.
    pub fn reject(self, status: u16) -> Result<(), Failure> {
        let _ = status;
        unimplemented!()
    }
}

/// The session of a connection.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) arrivals: Arrivals,
}

#[derive(Debug)]
pub(super) struct Arrivals {}

impl Arrivals {
    pub(super) async fn next_uni(&self) -> Result<(noq::RecvStream, u64), noq::ConnectionError> {
        unimplemented!()
    }

    pub(super) async fn next_bi(
        &self,
    ) -> Result<(noq::SendStream, noq::RecvStream, u64), noq::ConnectionError> {
        unimplemented!()
    }
}

impl Session {
    pub(super) fn close(&self, _engine: &Engine, _code: u64, _reason: &[u8]) {}

    pub(super) fn stream_header(&self, _both_ways: bool) -> &[u8] {
        &[]
    }

    pub(super) fn datagram_header(&self) -> &[u8] {
        &[]
    }
}

pub(super) fn end(error: &noq::ConnectionError, ours: Option<&Failure>) -> Failure {
    Failure::of(error, ours)
}

pub(super) fn code_out(_code: u64) -> noq::VarInt {
    unimplemented!()
}

pub(super) fn code_in(_code: noq::VarInt) -> u64 {
    unimplemented!()
}

pub(super) fn strip_datagram(_data: bytes::Bytes, _header: &[u8]) -> Option<bytes::Bytes> {
    unimplemented!()
}

pub(super) fn is_asked_for(_link: &super::link::Link) -> bool {
    false
}

pub(super) async fn receive(_link: super::link::Link, _config: &Config) -> Result<Request, Failure> {
    unimplemented!()
}
