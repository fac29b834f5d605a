//! quinn: a server that obeys commands, and a client that plays a scenario.
//!
//!     quinn-peer serve '{"cert": …, "key": …, "retry": false}'
//!     quinn-peer call '{"roots": …, "port": …, "scenario": "bulk"}'

use std::net::{Ipv4Addr, UdpSocket};
use std::process::ExitCode;
use std::sync::Arc;

use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{
    ClientConfig, Connection, ConnectionError, Endpoint, EndpointConfig, Incoming, RecvStream, SendStream,
    ServerConfig, TokioRuntime, VarInt,
};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::task::JoinSet;
use wayferry_peers::{
    ALPN, BULK, CODES, LARGEST_CODE, MANY, Options, Outcome, SERVER_NAME, command, echo, expect, send_back,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    wayferry_peers::run(["serve", "call"], serve, call).await
}

async fn serve(options: &Options) -> Outcome {
    let mut tls = options.server_tls(ALPN)?;
    tls.max_early_data_size = u32::MAX;
    let config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    let mut endpoint = EndpointConfig::default();
    if let Some(versions) = options.versions() {
        endpoint.supported_versions(versions);
    }
    let socket = UdpSocket::bind(options.address())?;
    let endpoint = Endpoint::new(endpoint, Some(config), socket, Arc::new(TokioRuntime))?;
    println!("{}", endpoint.local_addr()?.port());
    let mut clients = JoinSet::new();
    while let Some(incoming) = endpoint.accept().await {
        if options.retry() && !incoming.remote_address_validated() {
            incoming.retry()?;
        } else {
            clients.spawn(obey(incoming));
        }
    }
    Ok(())
}

/// Does what a client says on its streams, until it leaves, as it likes.
async fn obey(incoming: Incoming) -> Outcome {
    let connection = match incoming.accept()?.into_0rtt() {
        Ok((connection, _)) => connection,
        Err(connecting) => connecting.await?,
    };
    let mut streams = JoinSet::new();
    loop {
        tokio::select! {
            stream = connection.accept_bi() => {
                let (send, receive) = stream?;
                streams.spawn(obey_stream(connection.clone(), send, receive));
            }
            stream = connection.accept_uni() => {
                streams.spawn(return_stream(connection.clone(), stream?));
            }
            datagram = connection.read_datagram() => connection.send_datagram(datagram?)?,
        }
    }
}

async fn obey_stream(connection: Connection, mut send: SendStream, mut receive: RecvStream) -> Outcome {
    let (word, code) = command(&mut receive).await?;
    let code = VarInt::from_u64(code)?;
    match word.as_str() {
        "reset" => send.reset(code)?,
        "stop" => receive.stop(code)?,
        "close" => connection.close(code, b"as told"),
        _ => {
            if word == "update" {
                connection.force_key_update();
            }
            send_back(&mut receive, &mut send).await?;
        }
    }
    Ok(())
}

async fn return_stream(connection: Connection, mut receive: RecvStream) -> Outcome {
    send_back(&mut receive, &mut connection.open_uni().await?).await
}

/// Plays a scenario, and says what it saw.
async fn call(options: &Options) -> Outcome<Value> {
    options.leave_versions("quinn's client begins with version 1 and follows no negotiation")?;
    let mut tls = options.client_tls(ALPN)?;
    tls.enable_early_data = true;
    let mut endpoint = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into())?;
    endpoint.set_default_client_config(ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?)));
    let caller = Caller(endpoint.connect(options.address(), SERVER_NAME)?.await?);
    let mut seen = json!({ "ok": true });
    match options.scenario() {
        "handshake" => caller.echo("echo", b"hello").await?,
        "bulk" => caller.echo("echo", &[b'x'; BULK]).await?,
        "many" => caller.many().await?,
        "uni" => caller.uni().await?,
        "codes" => caller.codes().await?,
        "close" => caller.see_the_close().await?,
        "datagrams" => caller.datagrams().await?,
        "update" => caller.update().await?,
        "resume" => {
            caller.echo("echo", b"first").await?;
            caller.leave();
            let again = endpoint.connect(options.address(), SERVER_NAME)?;
            let (connection, accepted) = again.into_0rtt().map_err(|_| "there is no ticket")?;
            let caller = Caller(connection);
            caller.echo("echo", b"second").await?;
            seen = json!({ "resumed": accepted.await });
            caller.leave();
        }
        other => return Err(format!("there is no scenario `{other}`").into()),
    }
    caller.leave();
    endpoint.wait_idle().await;
    Ok(seen)
}

/// Gives the commands.
#[derive(Clone)]
struct Caller(Connection);

impl Caller {
    async fn open(&self, command: &str) -> Outcome<(SendStream, RecvStream)> {
        let (mut send, receive) = self.0.open_bi().await?;
        send.write_all(format!("{command}\n").as_bytes()).await?;
        Ok((send, receive))
    }

    async fn echo(&self, command: &str, data: &[u8]) -> Outcome {
        let (mut send, mut receive) = self.open(command).await?;
        echo(&mut receive, &mut send, data).await
    }

    async fn many(&self) -> Outcome {
        let mut echoes = JoinSet::new();
        for number in 0..MANY {
            let caller = self.clone();
            echoes.spawn(async move { caller.echo("echo", number.to_string().repeat(100).as_bytes()).await });
        }
        while let Some(echo) = echoes.join_next().await {
            echo??;
        }
        Ok(())
    }

    async fn uni(&self) -> Outcome {
        let mut send = self.0.open_uni().await?;
        send.write_all(b"one way").await?;
        send.finish()?;
        let back = self.0.accept_uni().await?.read_to_end(100).await?;
        expect(back == b"one way", "another answer")
    }

    async fn codes(&self) -> Outcome {
        for code in CODES {
            let code = VarInt::from_u64(code)?;
            let (_send, mut receive) = self.open(&format!("reset {code}")).await?;
            expect(receive.received_reset().await? == Some(code), "another code of a reset")?;
            let (send, _receive) = self.open(&format!("stop {code}")).await?;
            expect(send.stopped().await? == Some(code), "another code of a stop")?;
            let (mut send, mut receive) = self.open("watch").await?;
            receive.read_u8().await?;
            send.reset(code)?;
            let seen = receive.read_to_end(100).await?;
            expect(seen == format!("reset {code}").as_bytes(), "it saw another reset")?;
            let (_send, mut receive) = self.open("watch").await?;
            receive.read_u8().await?;
            receive.stop(code)?;
            self.echo("echo", b"").await?;
        }
        Ok(())
    }

    async fn see_the_close(&self) -> Outcome {
        let (_send, _receive) = self.open(&format!("close {LARGEST_CODE}")).await?;
        match self.0.closed().await {
            ConnectionError::ApplicationClosed(close) => {
                expect(close.error_code.into_inner() == LARGEST_CODE, "another code of the close")
            }
            other => Err(other.into()),
        }
    }

    async fn datagrams(&self) -> Outcome {
        self.echo("echo", b"").await?;
        self.0.send_datagram(b"datagram"[..].into())?;
        expect(self.0.read_datagram().await? == b"datagram"[..], "another datagram")
    }

    async fn update(&self) -> Outcome {
        for _ in 0..2 {
            self.echo("echo", &[0; 5000]).await?;
            self.0.force_key_update();
            self.echo("update", &[0; 5000]).await?;
        }
        Ok(())
    }

    fn leave(&self) {
        self.0.close(VarInt::from_u32(0), b"");
    }
}
