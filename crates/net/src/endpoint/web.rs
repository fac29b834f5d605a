//! WebTransport over HTTP/3 (draft-ietf-webtrans-http3): one session per connection.
//!
//! `web-transport-proto` writes and reads the settings and the request; the rest of the wire is `http3`'s. What is here
//! makes and ends sessions, so that the other side learns why. There is no other HTTP in it, but a caller that speaks
//! HTTP/3 on a connection may hand over a request for a session. Invariant: a session is a [`Connection`] like any
//! other.

mod end;
mod handshake;
mod session;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use noq::RecvStream;
use url::Url;
use web_transport_proto::http::StatusCode;

pub(super) use self::end::end;
use self::handshake::{Asked, Exchange};
pub(super) use self::session::Session;
use super::connect::connect_link;
use super::link::Link;
use super::{ClientTls, Config, Connection, Engine, Failure, Pending, ReceiveStream, SendStream, Target};
use crate::http3::H3;

/// Connects to `url`, `https://host:port/path`; `target` has its host and addresses. The application protocol is `h3`,
/// not what `tls` says; early data is not used.
///
/// # Errors
/// [`Failure::Rejected`] when the server does not want it, besides those of [`connect`](super::connect).
pub fn connect(
    engine: &Engine,
    mut target: Target,
    url: &str,
    mut tls: ClientTls,
    config: Config,
) -> Pending<Result<Connection, Failure>> {
    let (inside, url) = (engine.clone(), parse(url));
    engine.spawn(async move {
        let url = url?;
        tls.alpn = vec![H3.to_vec()];
        target.early_data = false;
        let link = connect_link(inside, target, &tls, &config).await?;
        let patience = config.handshake_timeout;
        let asked = tokio::time::timeout(patience, ask(link, url, &config)).await;
        asked.unwrap_or_else(|_| Err(Failure::no_answer(patience)))
    })
}

/// A client that asks for a session. Dropped, it is rejected with status 404.
#[derive(Debug)]
pub struct Request {
    path: String,
    authority: String,
    headers: Vec<(String, String)>,
    remote: SocketAddr,
    /// `None` only once it was answered.
    asked: Option<Asked>,
}

/// What a request for a session says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// See [`Request::path`].
    pub path: String,
    /// See [`Request::authority`].
    pub authority: String,
    /// See [`Request::headers`].
    pub headers: Vec<(String, String)>,
}

impl Request {
    /// A request that came on one of the streams of `connection`, on which the caller speaks HTTP/3: it has read
    /// `head`, and `early` behind it. From now on the connection is the session's: what the peer opens is looked at
    /// here, and further requests are rejected. The streams of HTTP/3 itself stay with the caller, who keeps them open.
    ///
    /// # Errors
    /// [`Failure::Config`] on the side that connected, [`Failure::StreamGone`] when the stream is over.
    pub fn on(
        connection: &Connection,
        (send, receive): (&mut SendStream, &mut ReceiveStream),
        head: Head,
        early: &[u8],
        config: &Config,
    ) -> Result<Self, Failure> {
        let link = connection.link.for_session(config);
        let link = link.ok_or_else(|| Failure::Config("only the side that listens is asked".into()))?;
        let remote = link.remote_address();
        let (receive, kept) = receive.take().ok_or(Failure::StreamGone)?;
        let send = send.take().ok_or(Failure::StreamGone)?;
        let early = [early, &kept.concat()].concat();
        let asked = Asked::new(Exchange::beside(link, config), send, receive, early);
        let Head { path, authority, headers } = head;
        Ok(Self { path, authority, headers, remote, asked: Some(asked) })
    }

    /// The path that was asked for, with its query.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The host, and the port if one was named.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// The other fields of the request; names are in lower case.
    pub fn headers(&self) -> &[(String, String)] {
        &self.headers
    }

    /// Where the client is.
    pub fn remote_address(&self) -> SocketAddr {
        self.remote
    }

    /// Lets the client in.
    pub fn accept(mut self) -> Pending<Result<Connection, Failure>> {
        // There is one until this, or `reject`.
        let asked = self.asked.take();
        let engine = asked.as_ref().map(Asked::engine);
        let answered = async move {
            let asked = asked.ok_or(Failure::StreamGone)?;
            Ok(Connection::new(Arc::new(asked.accept().await?)))
        };
        match engine {
            Some(engine) => engine.spawn(answered),
            None => unreachable!("a request is answered once"),
        }
    }

    /// Tells the client that there is no session for it, with a status of HTTP from 400 to 599, and lets it go.
    ///
    /// # Errors
    /// [`Failure::Config`] for another status; the client gets 404.
    pub fn reject(mut self, status: u16) -> Result<(), Failure> {
        let fitting = StatusCode::from_u16(status).ok().filter(|_| (400..600).contains(&status));
        self.refuse(fitting.unwrap_or(StatusCode::NOT_FOUND));
        match fitting {
            Some(_) => Ok(()),
            None => Err(Failure::Config(format!("{status} is not a status of a rejection"))),
        }
    }

    fn refuse(&mut self, status: StatusCode) {
        if let Some(asked) = self.asked.take() {
            let engine = asked.engine();
            engine.detach(asked.refuse(status));
        }
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        self.refuse(StatusCode::NOT_FOUND);
    }
}

/// Whether the application protocol is WebTransport's.
pub(super) fn is_asked_for(link: &Link) -> bool {
    link.handshake_data().and_then(|data| data.protocol).is_some_and(|protocol| protocol == H3)
}

/// The request of a client whose QUIC handshake is done; with the streams that it has opened.
pub(super) async fn receive(
    link: Link,
    config: &Config,
    uni: VecDeque<RecvStream>,
    bi: VecDeque<(noq::SendStream, RecvStream)>,
) -> Result<Request, Failure> {
    let remote = link.remote_address();
    let exchange = Exchange::begin(link, config, uni, bi).await?;
    let (request, asked) = exchange.request().await?;
    let headers = request.headers.iter();
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    Ok(Request {
        path: match request.url.query() {
            Some(query) => format!("{}?{query}", request.url.path()),
            None => request.url.path().into(),
        },
        authority: request.url.authority().into(),
        headers: headers.map(|(name, value)| (name.as_str().into(), text(value.as_bytes()))).collect(),
        remote,
        asked: Some(asked),
    })
}

async fn ask(link: Link, url: Url, config: &Config) -> Result<Connection, Failure> {
    let exchange = Exchange::begin(link, config, VecDeque::new(), VecDeque::new()).await?;
    Ok(Connection::new(Arc::new(exchange.ask(url).await?)))
}

fn parse(url: &str) -> Result<Url, Failure> {
    let wrong = |why: &str| Failure::Config(format!("`{url}` is not the URL of a session: {why}"));
    let parsed = Url::parse(url).map_err(|error| wrong(&error.to_string()))?;
    if parsed.scheme() != "https" || parsed.host_str().is_none() {
        return Err(wrong("expected `https://host…`"));
    }
    if !parsed.username().is_empty() || parsed.password().is_some() || parsed.fragment().is_some() {
        return Err(wrong("it has a user or a fragment"));
    }
    Ok(parsed)
}
