//! wtransport: a WebTransport server that echoes, and a client that plays a scenario.
//!
//!     wtransport-peer web-serve '{"cert": …, "key": …}'
//!     wtransport-peer web-call '{"roots": …, "port": …, "scenario": "echo"}'
//!
//! Its own side ends a session by closing the connection, with the session's code as the connection's.

use std::future::ready;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::process::ExitCode;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;
use tokio::time::timeout;
use wayferry_peers::{Options, Outcome, SERVER_NAME, Unable, command, echo, expect, send_back};
use wtransport::config::{DnsLookupFuture, DnsResolver};
use wtransport::endpoint::IncomingSession;
use wtransport::error::{ConnectingError, ConnectionError};
use wtransport::tls::WEBTRANSPORT_ALPN;
use wtransport::{ClientConfig, Connection, Endpoint, RecvStream, SendStream, ServerConfig, VarInt};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    wayferry_peers::run(["web-serve", "web-call"], serve, call).await
}

async fn serve(options: &Options) -> Outcome {
    let config = ServerConfig::builder()
        .with_bind_address(options.address())
        .with_custom_tls(options.server_tls(WEBTRANSPORT_ALPN)?)
        .build();
    let endpoint = Endpoint::server(config)?;
    println!("{}", endpoint.local_addr()?.port());
    let mut clients = JoinSet::new();
    loop {
        clients.spawn(answer(endpoint.accept().await));
    }
}

async fn answer(incoming: IncomingSession) -> Outcome {
    let request = incoming.await?;
    if request.path() != "/echo" {
        request.not_found().await;
        return Ok(());
    }
    obey(request.accept().await?).await
}

/// Does what a client says on its streams, until it leaves, as it likes.
async fn obey(session: Connection) -> Outcome {
    let mut streams = JoinSet::new();
    loop {
        tokio::select! {
            stream = session.accept_bi() => {
                let (send, receive) = stream?;
                streams.spawn(obey_stream(session.clone(), send, receive));
            }
            stream = session.accept_uni() => {
                streams.spawn(return_stream(session.clone(), stream?));
            }
            datagram = session.receive_datagram() => session.send_datagram(datagram?.payload())?,
        }
    }
}

async fn obey_stream(session: Connection, mut send: SendStream, mut receive: RecvStream) -> Outcome {
    match command(&mut receive).await? {
        (word, code) if word == "close" => session.close(VarInt::try_from_u64(code)?, b"as told"),
        _ => send_back(&mut receive, &mut send).await?,
    }
    Ok(())
}

async fn return_stream(session: Connection, mut receive: RecvStream) -> Outcome {
    send_back(&mut receive, &mut session.open_uni().await?.await?).await
}

/// Plays a scenario, and says what it saw.
async fn call(options: &Options) -> Outcome<Value> {
    let config = ClientConfig::builder()
        .with_bind_address((Ipv4Addr::LOCALHOST, 0).into())
        .with_custom_tls(options.client_tls(WEBTRANSPORT_ALPN)?)
        .dns_resolver(Known(options.address()))
        .build();
    let endpoint = Endpoint::client(config)?;
    let url = format!("https://{SERVER_NAME}:{}", options.address().port());
    if options.scenario() == "reject" {
        return match endpoint.connect(format!("{url}/nowhere")).await {
            Err(ConnectingError::SessionRejected) => {
                Err(Unable("wtransport does not tell with which status a session is rejected").into())
            }
            Err(error) => Err(error.into()),
            Ok(_) => Err("the session is not rejected".into()),
        };
    }
    let session = endpoint.connect(format!("{url}/echo")).await?;
    let seen = match options.scenario() {
        "echo" => echo_everything(&session).await?,
        "close" => see_the_close(&session).await?,
        other => return Err(format!("there is no scenario `{other}`").into()),
    };
    session.close(VarInt::from_u32(0), b"");
    endpoint.wait_idle().await;
    Ok(seen)
}

async fn echo_everything(session: &Connection) -> Outcome<Value> {
    let (mut send, mut receive) = session.open_bi().await?.await?;
    send.write_all(b"echo\n").await?;
    echo(&mut receive, &mut send, &[b'x'; 100_000]).await?;
    let mut send = session.open_uni().await?.await?;
    send.write_all(b"one way").await?;
    send.shutdown().await?;
    let mut back = Vec::new();
    session.accept_uni().await?.read_to_end(&mut back).await?;
    expect(back == b"one way", "another answer")?;
    loop {
        session.send_datagram(b"datagram")?;
        if let Ok(datagram) = timeout(AGAIN, session.receive_datagram()).await {
            expect(datagram?.payload() == b"datagram"[..], "another datagram")?;
            return Ok(json!({ "ok": true }));
        }
    }
}

async fn see_the_close(session: &Connection) -> Outcome<Value> {
    let (mut send, _receive) = session.open_bi().await?.await?;
    send.write_all(b"close 1234\n").await?;
    match session.accept_bi().await {
        Err(ConnectionError::ApplicationClosed(close)) => Ok(json!({
            "code": close.code().into_inner(),
            "reason": String::from_utf8_lossy(close.reason()),
        })),
        Err(error) => Err(error.into()),
        Ok(_) => Err("a stream instead of the close".into()),
    }
}

/// Knows one address.
#[derive(Debug)]
struct Known(SocketAddr);

impl DnsResolver for Known {
    fn resolve(&self, _: &str) -> Pin<Box<dyn DnsLookupFuture>> {
        Box::pin(ready(Ok(Some(self.0))))
    }
}

const AGAIN: Duration = Duration::from_millis(100);
