//! s2n-quic: a server that obeys commands, and a client that plays a scenario.
//!
//!     s2n-quic-peer serve '{"cert": …, "key": …, "retry": false}'
//!     s2n-quic-peer call '{"roots": …, "port": …, "scenario": "bulk"}'
//!
//! It knows no early data, sends no tickets, and changes keys only by itself.

use std::future::poll_fn;
use std::process::ExitCode;

use bytes::Bytes;
use s2n_quic::application::Error as Code;
use s2n_quic::client::Connect;
use s2n_quic::connection::{self, Connection, Handle};
use s2n_quic::provider::datagram::default as datagrams;
use s2n_quic::provider::endpoint_limits::{self, ConnectionAttempt, Limiter};
use s2n_quic::provider::tls::rustls;
use s2n_quic::stream::{self, BidirectionalStream, ReceiveStream, SendStream};
use s2n_quic::{Client, Server};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;
use wayferry_peers::{
    ALPN, BULK, CODES, LARGEST_CODE, MANY, Options, Outcome, SERVER_NAME, Unable, command, echo, expect,
    send_back,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    wayferry_peers::run(["serve", "call"], serve, call).await
}

async fn serve(options: &Options) -> Outcome {
    options.leave_versions(ONE_VERSION)?;
    let tls = rustls::Server::builder()
        .with_certificate(options.path("cert")?, options.path("key")?)?
        .with_application_protocols([ALPN].iter())?
        .build()?;
    let mut server = Server::builder()
        .with_tls(tls)?
        .with_io(options.address())?
        .with_datagram(queues()?)?
        .with_endpoint_limits(Attempts { retry: options.retry() })?
        .start()?;
    println!("{}", server.local_addr()?.port());
    let mut clients = JoinSet::new();
    while let Some(connection) = server.accept().await {
        clients.spawn(obey(connection));
    }
    Ok(())
}

fn queues() -> Outcome<datagrams::Endpoint> {
    Ok(datagrams::Endpoint::builder().with_send_capacity(QUEUE)?.with_recv_capacity(QUEUE)?.build()?)
}

/// Whether clients must prove their address.
struct Attempts {
    retry: bool,
}

impl Limiter for Attempts {
    fn on_connection_attempt(&mut self, _: &ConnectionAttempt<'_>) -> endpoint_limits::Outcome {
        if self.retry { endpoint_limits::Outcome::retry() } else { endpoint_limits::Outcome::allow() }
    }
}

/// Does what a client says on its streams, until it leaves, as it likes.
async fn obey(connection: Connection) -> Outcome {
    let (handle, acceptor) = connection.split();
    let (mut both, mut one_way) = acceptor.split();
    let mut streams = JoinSet::new();
    loop {
        tokio::select! {
            stream = both.accept_bidirectional_stream() => match stream? {
                Some(stream) => drop(streams.spawn(obey_stream(handle.clone(), stream))),
                None => return Ok(()),
            },
            stream = one_way.accept_receive_stream() => match stream? {
                Some(stream) => drop(streams.spawn(return_stream(handle.clone(), stream))),
                None => return Ok(()),
            },
            datagram = receive_datagram(&handle) => send_datagram(&handle, datagram?)?,
        }
    }
}

async fn obey_stream(connection: Handle, stream: BidirectionalStream) -> Outcome {
    let (mut receive, mut send) = stream.split();
    let (word, code) = command(&mut receive).await?;
    let code = Code::new(code)?;
    match word.as_str() {
        "reset" => send.reset(code)?,
        "stop" => receive.stop_sending(code)?,
        "close" => connection.close(code),
        _ => send_back(&mut receive, &mut send).await?,
    }
    Ok(())
}

async fn return_stream(mut connection: Handle, mut receive: ReceiveStream) -> Outcome {
    send_back(&mut receive, &mut connection.open_send_stream().await?).await
}

fn send_datagram(connection: &Handle, datagram: Bytes) -> Outcome {
    let sent = connection.datagram_mut(|sender: &mut datagrams::Sender| sender.send_datagram(datagram))?;
    sent.map_err(|error| error.to_string().into())
}

async fn receive_datagram(connection: &Handle) -> Outcome<Bytes> {
    let received = poll_fn(|context| {
        let poll = |receiver: &mut datagrams::Receiver| receiver.poll_recv_datagram(context);
        match connection.datagram_mut(poll) {
            Ok(poll) => poll.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()).into(),
        }
    });
    Ok(received.await?)
}

/// Plays a scenario, and says what it saw.
async fn call(options: &Options) -> Outcome<Value> {
    options.leave_versions(ONE_VERSION)?;
    match options.scenario() {
        "update" => return Err(Unable("s2n-quic cannot be told to change keys").into()),
        "resume" => return Err(Unable("s2n-quic knows no early data").into()),
        _ => {}
    }
    let tls = rustls::Client::builder()
        .with_certificate(options.path("roots")?)?
        .with_application_protocols([ALPN].iter())?
        .build()?;
    let mut client =
        Client::builder().with_tls(tls)?.with_io("127.0.0.1:0")?.with_datagram(queues()?)?.start()?;
    let connection = client.connect(Connect::new(options.address()).with_server_name(SERVER_NAME)).await?;
    let mut caller = Caller(connection.handle());
    let seen = json!({ "ok": true });
    match options.scenario() {
        "handshake" => caller.echo(b"hello").await?,
        "bulk" => caller.echo(&[b'x'; BULK]).await?,
        "many" => caller.many().await?,
        "uni" => caller.uni(connection).await?,
        "codes" => caller.codes().await?,
        "datagrams" => caller.datagrams().await?,
        "close" => {
            caller.see_the_close(connection).await?;
            // After a close of the peer's `wait_idle` now and then does not return.
            return Ok(seen);
        }
        other => return Err(format!("there is no scenario `{other}`").into()),
    }
    caller.0.close(Code::UNKNOWN);
    client.wait_idle().await?;
    Ok(seen)
}

/// Gives the commands.
#[derive(Clone)]
struct Caller(Handle);

impl Caller {
    async fn open(&mut self, command: &str) -> Outcome<(ReceiveStream, SendStream)> {
        let (receive, mut send) = self.0.open_bidirectional_stream().await?.split();
        send.write_all(format!("{command}\n").as_bytes()).await?;
        Ok((receive, send))
    }

    async fn echo(&mut self, data: &[u8]) -> Outcome {
        let (mut receive, mut send) = self.open("echo").await?;
        echo(&mut receive, &mut send, data).await
    }

    async fn many(&self) -> Outcome {
        let mut echoes = JoinSet::new();
        for number in 0..MANY {
            let mut caller = self.clone();
            echoes.spawn(async move { caller.echo(number.to_string().repeat(100).as_bytes()).await });
        }
        while let Some(echo) = echoes.join_next().await {
            echo??;
        }
        Ok(())
    }

    async fn uni(&mut self, mut connection: Connection) -> Outcome {
        let mut send = self.0.open_send_stream().await?;
        send.write_all(b"one way").await?;
        send.finish()?;
        let mut receive = connection.accept_receive_stream().await?.ok_or("there is no answer")?;
        expect(read_to_end(&mut receive).await? == b"one way", "another answer")
    }

    async fn codes(&mut self) -> Outcome {
        for code in CODES {
            let error = Code::new(code)?;
            let (mut receive, _send) = self.open(&format!("reset {code}")).await?;
            expect(is_reset(receive.receive().await, code), "another code of a reset")?;
            let (_receive, send) = self.open(&format!("stop {code}")).await?;
            expect(is_reset(write_until_an_error(send).await, code), "another code of a stop")?;
            let (mut receive, mut send) = self.open("watch").await?;
            receive.read_u8().await?;
            send.reset(error)?;
            let seen = read_to_end(&mut receive).await?;
            expect(seen == format!("reset {code}").as_bytes(), "it saw another reset")?;
            let (mut receive, _send) = self.open("watch").await?;
            receive.read_u8().await?;
            receive.stop_sending(error)?;
            self.echo(b"").await?;
        }
        Ok(())
    }

    async fn see_the_close(&mut self, mut connection: Connection) -> Outcome {
        let (_receive, _send) = self.open(&format!("close {LARGEST_CODE}")).await?;
        match connection.accept().await {
            Err(connection::Error::Application { error, .. }) => {
                expect(*error == LARGEST_CODE, "another code of the close")
            }
            other => Err(format!("instead of the close it saw {other:?}").into()),
        }
    }

    async fn datagrams(&mut self) -> Outcome {
        self.echo(b"").await?;
        send_datagram(&self.0, Bytes::from_static(b"datagram"))?;
        expect(receive_datagram(&self.0).await? == b"datagram"[..], "another datagram")
    }
}

async fn read_to_end(receive: &mut ReceiveStream) -> Outcome<Vec<u8>> {
    let mut data = Vec::new();
    receive.read_to_end(&mut data).await?;
    Ok(data)
}

/// That a stream was stopped is told to a task that writes to it.
async fn write_until_an_error(mut send: SendStream) -> stream::Result<()> {
    loop {
        send.send(Bytes::from_static(b"more")).await?;
        send.flush().await?;
    }
}

fn is_reset<T>(result: stream::Result<T>, code: u64) -> bool {
    matches!(result, Err(stream::Error::StreamReset { error, .. }) if *error == code)
}

const ONE_VERSION: &str = "s2n-quic speaks version 1 only";
const QUEUE: usize = 100;
