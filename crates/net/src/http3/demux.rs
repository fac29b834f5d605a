//! Takes the peer's streams apart by their first bytes.
//!
//! One task per connection. A stream whose header has come, which is the rule, is looked at in passing; the others wait
//! in tasks of their own, as many and as long as the limits say. Invariant: no stream waits for another's header, and a
//! peer that takes more than its [`Bounds`] loses the connection.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use noq::{Connection, RecvStream, SendStream};
use tokio::io::AsyncReadExt;
use tokio::task::JoinSet;
use tokio::time::timeout;
use web_transport_proto::{Setting, Settings, VarInt};

use super::arrivals::{Arrivals, Settled};
use super::codes::{BUFFERED_STREAM_REJECTED, EXCESSIVE_LOAD, STREAM_CREATION_ERROR};
use super::wire::{self, Bi, Step, Uni};

/// The task's state.
pub(crate) struct Demux {
    connection: Connection,
    arrivals: Arc<Arrivals>,
    /// How long a header may take.
    patience: Duration,
    /// Streams whose header has not come.
    headers: JoinSet<Found>,
    /// Streams of HTTP/3 that stay open (RFC 9114 §6.2.1), and which kinds there are.
    critical: JoinSet<()>,
    kinds: Vec<Uni>,
    bounds: Bounds,
    /// Streams that were refused.
    refused: u32,
}

/// What a peer may send on one connection beside a session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Bytes on each of HTTP/3's own streams, besides its first frames, which may be as many.
    pub(crate) critical: u64,
    /// Streams that are refused.
    pub(crate) refused: u32,
}

impl Bounds {
    /// For a peer that is trusted with the connection.
    pub(crate) const NONE: Self = Self { critical: u64::MAX, refused: u32::MAX };
}

/// A stream whose header has come, and how it went.
enum Found {
    Uni(Uni, RecvStream, Vec<u8>),
    Bi(Bi, SendStream, RecvStream, Vec<u8>),
    /// It took too long.
    Late,
    /// The peer ended it before, as it may do with any.
    Gone,
}

impl Demux {
    pub(crate) fn new(
        connection: Connection,
        arrivals: Arc<Arrivals>,
        patience: Duration,
        bounds: Bounds,
    ) -> Self {
        let (headers, critical) = (JoinSet::new(), JoinSet::new());
        Self { connection, arrivals, patience, headers, critical, kinds: Vec::new(), bounds, refused: 0 }
    }

    /// The peer's settings were read elsewhere: a further control stream is refused.
    pub(crate) fn without_control(mut self) -> Self {
        self.kinds.push(Uni::Control);
        self
    }

    /// Runs until the connection is over and nothing of it is left to be taken apart.
    pub(crate) async fn run(mut self, uni: VecDeque<RecvStream>, bi: VecDeque<(SendStream, RecvStream)>) {
        uni.into_iter().for_each(|stream| self.look(look_uni(stream, self.patience)));
        bi.into_iter().for_each(|(send, receive)| self.look(look_bi(send, receive, self.patience)));
        let connection = self.connection.clone();
        let (mut uni_over, mut bi_over) = (None, None);
        while uni_over.is_none() || bi_over.is_none() {
            let room = self.headers.len() < HEADERS_MAX;
            tokio::select! {
                stream = connection.accept_uni(), if room && uni_over.is_none() => match stream {
                    Ok(stream) => self.look(look_uni(stream, self.patience)),
                    Err(error) => uni_over = Some(error),
                },
                stream = connection.accept_bi(), if room && bi_over.is_none() => match stream {
                    Ok((send, receive)) => self.look(look_bi(send, receive, self.patience)),
                    Err(error) => bi_over = Some(error),
                },
                Some(found) = self.headers.join_next() => self.sort(found.unwrap_or(Found::Gone)),
            }
        }
        // The connection is over, so what has not come does not come.
        while let Some(found) = self.headers.join_next().await {
            self.sort(found.unwrap_or(Found::Gone));
        }
        if let Some(error) = uni_over {
            self.arrivals.end(error);
        }
    }

    /// Looks at a stream at once if its header has come.
    fn look(&mut self, look: impl Future<Output = Found> + Send + 'static) {
        let mut look: Pin<Box<dyn Future<Output = _> + Send>> = Box::pin(look);
        match look.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(found) => self.sort(found),
            Poll::Pending => drop(self.headers.spawn(look)),
        }
    }

    fn sort(&mut self, found: Found) {
        if self.take(found) {
            return;
        }
        self.refused = self.refused.saturating_add(1);
        if self.refused > self.bounds.refused {
            self.connection.close(EXCESSIVE_LOAD, b"");
        }
    }

    /// Whether it was not refused.
    fn take(&mut self, found: Found) -> bool {
        match found {
            Found::Uni(Uni::Session(session), stream, header) => {
                self.arrivals.add_uni(session, stream, header.len() as u64)
            }
            Found::Bi(Bi::Session(session), send, receive, header) => {
                self.arrivals.add_bi(session, send, receive, header.len() as u64)
            }
            Found::Bi(Bi::Request, send, receive, read) => self.arrivals.add_request(send, receive, read),
            Found::Uni(kind @ (Uni::Control | Uni::Qpack(_)), stream, read)
                if !self.kinds.contains(&kind) =>
            {
                self.kinds.push(kind);
                let settings = (kind == Uni::Control).then(|| Arc::clone(&self.arrivals));
                let (connection, most) = (self.connection.clone(), self.bounds.critical);
                self.critical.spawn(keep(stream, read, settings, connection, most));
                true
            }
            Found::Uni(_, mut stream, _) => {
                let _ = stream.stop(STREAM_CREATION_ERROR);
                false
            }
            Found::Late => false,
            Found::Gone => true,
        }
    }
}

async fn look_uni(mut stream: RecvStream, patience: Duration) -> Found {
    // Browsers have streams on which they say nothing for long, and a later one opens those before it (RFC 9000 §3.2):
    // patience with a header begins with its first byte.
    let mut first = vec![0];
    if stream.read_exact(&mut first).await.is_err() {
        let _ = stream.stop(BUFFERED_STREAM_REJECTED);
        return Found::Gone;
    }
    match timeout(patience, head(&mut stream, first, wire::uni)).await {
        Ok(Some((kind, read))) => Found::Uni(kind, stream, read),
        found => {
            let _ = stream.stop(BUFFERED_STREAM_REJECTED);
            if found.is_ok() { Found::Gone } else { Found::Late }
        }
    }
}

async fn look_bi(mut send: SendStream, mut receive: RecvStream, patience: Duration) -> Found {
    match timeout(patience, head(&mut receive, Vec::new(), wire::bi)).await {
        Ok(Some((kind, read))) => Found::Bi(kind, send, receive, read),
        found => {
            let _ = receive.stop(BUFFERED_STREAM_REJECTED);
            let _ = send.reset(BUFFERED_STREAM_REJECTED);
            if found.is_ok() { Found::Gone } else { Found::Late }
        }
    }
}

/// Reads a header of which this was read, and nothing behind it.
async fn head<T>(
    stream: &mut RecvStream,
    mut read: Vec<u8>,
    parse: fn(&[u8]) -> Step<T>,
) -> Option<(T, Vec<u8>)> {
    loop {
        match parse(&read) {
            Step::Done(found) => return Some((found, read)),
            Step::More(more) => {
                let before = read.len();
                read.resize(before + more, 0);
                stream.read_exact(&mut read[before..]).await.ok()?;
            }
        }
    }
}

/// Keeps a stream open, as long as no more than `most` bytes come on it; with `settings`, says first what they are.
async fn keep(
    mut stream: RecvStream,
    read: Vec<u8>,
    settings: Option<Arc<Arrivals>>,
    connection: Connection,
    most: u64,
) {
    if let Some(arrivals) = settings {
        let mut first = read.as_slice().chain(&mut stream).take(most);
        arrivals.settle(match Settings::read(&mut first).await {
            Ok(settings) => Settled::Does(does(&settings)),
            Err(error) => Settled::Broken(error.to_string()),
        });
    }
    let mut left = most;
    while let Ok(Some(chunk)) = stream.read_chunk(usize::MAX).await {
        let Some(rest) = left.checked_sub(chunk.len() as u64) else {
            return connection.close(EXCESSIVE_LOAD, b"");
        };
        left = rest;
    }
}

/// Servers that follow later drafts than the library knows allow extended CONNECT, at least.
fn does(settings: &Settings) -> bool {
    let extended = settings.get(&Setting::ENABLE_CONNECT_PROTOCOL);
    settings.supports_webtransport() > 0 || extended == Some(&VarInt::from_u32(1))
}

/// Streams whose header may be missing, those that have said nothing among them; further ones wait with the connection.
const HEADERS_MAX: usize = 128;
