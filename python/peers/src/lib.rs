//! What the peers share: how they are started, and what they do on streams, with any library.
//!
//!     PEER ROLE JSON
//!
//! A server prints its port and serves until its input ends. A client plays a scenario and prints what it saw.
//! What both do is in `python/tests/peers.py`. The exit status is 3 where the library cannot do it.

mod options;

use std::error::Error;
use std::fmt::{self, Display};
use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

pub use options::Options;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

pub type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

/// Plays the role that the command line names.
pub async fn run(
    [server, client]: [&str; 2],
    serve: impl AsyncFnOnce(&Options) -> Outcome,
    call: impl AsyncFnOnce(&Options) -> Outcome<Value>,
) -> ExitCode {
    let outcome = async {
        let (role, options) = Options::of_the_command_line()?;
        if role == server {
            std::thread::spawn(end_with_the_input);
            serve(&options).await
        } else if role == client {
            println!("{}", timeout(LIMIT, pin!(call(&options))).await??);
            Ok(())
        } else {
            Err(format!("`{role}` is neither {server} nor {client}").into())
        }
    };
    match outcome.await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            if error.is::<Unable>() { ExitCode::from(3) } else { ExitCode::FAILURE }
        }
    }
}

fn end_with_the_input() {
    let ended = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
    std::process::exit(i32::from(ended.is_err()));
}

/// What the library cannot do.
#[derive(Debug)]
pub struct Unable(pub &'static str);

impl Display for Unable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0)
    }
}

impl Error for Unable {}

/// The first line of a stream: a word, and a code or 0.
pub async fn command(receive: &mut (impl AsyncRead + Unpin)) -> Outcome<(String, u64)> {
    let mut line = Vec::new();
    while line.last() != Some(&b'\n') {
        line.push(receive.read_u8().await?);
    }
    let line = String::from_utf8(line)?;
    let mut words = line.split_whitespace();
    let word = words.next().unwrap_or_default();
    Ok((word.into(), words.next().unwrap_or("0").parse()?))
}

/// Sends all that comes.
pub async fn send_back(
    receive: &mut (impl AsyncRead + Unpin),
    send: &mut (impl AsyncWrite + Unpin),
) -> Outcome {
    tokio::io::copy(receive, send).await?;
    Ok(send.shutdown().await?)
}

/// Sends data to the end of a stream; the same must come.
pub async fn echo(
    receive: &mut (impl AsyncRead + Unpin),
    send: &mut (impl AsyncWrite + Unpin),
    data: &[u8],
) -> Outcome {
    let mut back = Vec::new();
    tokio::try_join!(
        async {
            send.write_all(data).await?;
            send.shutdown().await
        },
        receive.read_to_end(&mut back)
    )?;
    expect(back == data, "the echo is not what was sent")
}

pub fn expect(is: bool, otherwise: &str) -> Outcome {
    if is { Ok(()) } else { Err(otherwise.into()) }
}

pub const ALPN: &[u8] = b"test";
pub const SERVER_NAME: &str = "localhost";
pub const BULK: usize = 10 << 20;
pub const MANY: usize = 200;
pub const CODES: [u64; 3] = [0, 7, LARGEST_CODE];
pub const LARGEST_CODE: u64 = (1 << 62) - 1;
const LIMIT: Duration = Duration::from_secs(60);
