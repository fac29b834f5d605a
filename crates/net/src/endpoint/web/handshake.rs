//! How a session comes about: settings both ways, a request and its answer (RFC 9220; draft-ietf-webtrans-http3 §3).
//!
//! The caller bounds the time. Invariant: a connection that does not become a session is closed, in HTTP/3's words.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use noq::{RecvStream, SendStream, VarInt};
use tokio::io::AsyncReadExt;
use tokio::time::timeout;
use url::Url;
use web_transport_proto::http::StatusCode;
use web_transport_proto::{ConnectError, ConnectRequest, ConnectResponse, Settings};

use super::session::{Session, grace};
use crate::endpoint::failure::clean;
use crate::endpoint::link::{Link, Side};
use crate::endpoint::{Config, Engine, Failure, Pending};
use crate::http3::{Arrivals, Bounds, CRITICAL, Demux, MESSAGE_ERROR, NO_ERROR, SETTINGS_ERROR, Settled};

/// A connection of HTTP/3 without a session.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) link: Link,
    /// How long the peer may take for each step.
    patience: Duration,
    pub(super) arrivals: Arc<Arrivals>,
    /// Ends with this.
    pub(super) demux: Pending<()>,
    /// Has to stay open. `None`: it is the caller's.
    pub(super) control: Option<SendStream>,
}

/// A request that waits for its answer.
#[derive(Debug)]
pub(super) struct Asked {
    exchange: Exchange,
    send: SendStream,
    receive: RecvStream,
    /// What was read of it behind the request.
    early: Vec<u8>,
}

impl Exchange {
    /// Sends the settings, and begins to take the peer's streams apart; `uni` and `bi` have come already.
    pub(super) async fn begin(
        link: Link,
        config: &Config,
        uni: VecDeque<RecvStream>,
        bi: VecDeque<(SendStream, RecvStream)>,
    ) -> Result<Self, Failure> {
        let arrivals = Arc::<Arrivals>::default();
        grant(&link, config);
        if matches!(link.side, Side::Client { .. }) {
            arrivals.refuse_requests();
        }
        let patience = config.handshake_timeout;
        let demux = Demux::new(link.noq.clone(), Arc::clone(&arrivals), patience, Bounds::NONE);
        let demux = link.engine.spawn(demux.run(uni, bi));
        let opened = link.noq.open_uni().await;
        let mut control = opened.map_err(|error| link.end(&error))?;
        let mut settings = Settings::default();
        settings.enable_webtransport(1);
        let mut bytes = Vec::new();
        settings.encode(&mut bytes);
        control.write_all(&bytes).await.map_err(|error| link.write_failure(error))?;
        Ok(Self { link, patience, arrivals, demux, control: Some(control) })
    }

    /// Beside a caller who has exchanged settings and has the request, and keeps the streams of HTTP/3 itself.
    pub(super) fn beside(link: Link, config: &Config) -> Self {
        let arrivals = Arc::<Arrivals>::default();
        arrivals.refuse_requests();
        grant(&link, config);
        let patience = config.handshake_timeout;
        let demux = Demux::new(link.noq.clone(), Arc::clone(&arrivals), patience, Bounds::NONE);
        let demux = link.engine.spawn(demux.without_control().run(VecDeque::new(), VecDeque::new()));
        Self { link, patience, arrivals, demux, control: None }
    }

    /// The server's side: the client's request.
    pub(super) async fn request(self) -> Result<(ConnectRequest, Asked), Failure> {
        self.settings().await?;
        let requested = self.arrivals.request().await;
        let (send, mut receive, read) = requested.map_err(|error| self.link.end(&error))?;
        let request = ConnectRequest::read(&mut read.as_slice().chain(&mut receive)).await;
        let asked = Asked::new(self, send, receive, Vec::new());
        match request {
            Ok(request) => Ok((request, asked)),
            Err(error) => {
                let failure = asked.exchange.broken("the request", &error);
                let engine = asked.engine();
                engine.detach(asked.refuse(StatusCode::BAD_REQUEST));
                Err(failure)
            }
        }
    }

    /// The client's side: asks for a session.
    pub(super) async fn ask(self, url: Url) -> Result<Link, Failure> {
        if !self.settings().await? {
            return Err(self.give_up(Failure::Protocol("the server does not do WebTransport".into())));
        }
        let opened = self.link.noq.open_bi().await;
        let (mut send, mut receive) = opened.map_err(|error| self.link.end(&error))?;
        let mut bytes = Vec::new();
        if let Err(error) = ConnectRequest::new(url).encode(&mut bytes) {
            return Err(self.give_up(Failure::Config(error.to_string())));
        }
        send.write_all(&bytes).await.map_err(|error| self.link.write_failure(error))?;
        match ConnectResponse::read(&mut receive).await {
            Ok(_) => Ok(Session::start(self, send, receive, Vec::new())),
            Err(ConnectError::WrongStatus(Some(status))) => {
                Err(self.give_up(Failure::Rejected { status: status.as_u16() }))
            }
            Err(error) => {
                let failure = self.broken("the answer", &error);
                Err(self.give_up(failure))
            }
        }
    }

    /// Whether the peer does WebTransport.
    async fn settings(&self) -> Result<bool, Failure> {
        match self.arrivals.settings().await {
            Ok(Settled::Does(does)) => Ok(does),
            Ok(Settled::Broken(text)) => {
                self.link.noq.close(SETTINGS_ERROR, b"");
                Err(Failure::Protocol(clean(&format!("the peer's settings cannot be read: {text}"))))
            }
            Err(error) => Err(self.link.end(&error)),
        }
    }

    /// Something of HTTP/3 could not be read; perhaps only because the connection is over.
    fn broken(&self, what: &str, error: &ConnectError) -> Failure {
        match self.link.noq.close_reason() {
            Some(error) => self.link.end(&error),
            None => Failure::Protocol(clean(&format!("{what} cannot be read: {error}"))),
        }
    }

    fn give_up(&self, failure: Failure) -> Failure {
        let code = match failure {
            Failure::Protocol(_) => MESSAGE_ERROR,
            _ => NO_ERROR.into(),
        };
        self.link.noq.close(code, b"");
        failure
    }
}

impl Asked {
    pub(super) fn new(exchange: Exchange, send: SendStream, receive: RecvStream, early: Vec<u8>) -> Self {
        Self { exchange, send, receive, early }
    }

    pub(super) fn engine(&self) -> Engine {
        self.exchange.link.engine.clone()
    }

    /// Lets the client in.
    pub(super) async fn accept(mut self) -> Result<Link, Failure> {
        let patience = self.exchange.patience;
        // A client that permits no byte of the answer would be waited for as long as it likes.
        let answered = timeout(patience, self.answer(StatusCode::OK)).await;
        match answered.unwrap_or_else(|_| Err(Failure::no_answer(patience))) {
            Ok(()) => Ok(Session::start(self.exchange, self.send, self.receive, self.early)),
            Err(failure) => Err(self.exchange.give_up(failure)),
        }
    }

    /// Does not let it in, and waits a little until it has gone.
    pub(super) async fn refuse(mut self, status: StatusCode) {
        let patience = grace(&self.exchange.link.noq);
        let _ = timeout(patience, async {
            if self.answer(status).await.is_ok() && self.send.finish().is_ok() {
                self.exchange.link.noq.closed().await;
            }
        })
        .await;
        self.exchange.link.noq.close(NO_ERROR.into(), b"");
    }

    async fn answer(&mut self, status: StatusCode) -> Result<(), Failure> {
        let mut bytes = Vec::new();
        let encoded = ConnectResponse::new(status).encode(&mut bytes);
        encoded.map_err(|error| Failure::Protocol(error.to_string()))?;
        let link = &self.exchange.link;
        self.send.write_all(&bytes).await.map_err(|error| link.write_failure(error))
    }
}

/// Lets the peer open as many streams as the application may have; those of HTTP/3 are not its to count.
fn grant(link: &Link, config: &Config) {
    link.noq.set_max_concurrent_uni_streams(fit(config.uni_streams, CRITICAL));
    if matches!(link.side, Side::Server { .. }) {
        link.noq.set_max_concurrent_bi_streams(fit(config.bi_streams, 1));
    }
}

fn fit(streams: u32, more: u32) -> VarInt {
    VarInt::from_u64(u64::from(streams) + u64::from(more)).unwrap_or(VarInt::MAX)
}
