//! One side of `python/benches/bench.py` in plain noq, without Python: what the Python package is measured against.
//!
//!     endpoint_bench SETUP.json
//!
//! It obeys lines of JSON on its standard input and answers each with one line, like `python/benches/peer.py`, whose
//! verbs these are: one at a time, and what the peer opens is served beside. Everything runs on one thread, the way of
//! noq that needs the least CPU, with the windows and the controller of `wayferry_net::endpoint`'s defaults. It checks
//! every byte; it does no WebTransport.

use std::error::Error;
use std::future::Future;
use std::io::{BufRead, Write};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use noq::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use noq::{
    ClientConfig, Connection, Endpoint, RecvStream, SendStream, ServerConfig, TransportConfig, VarInt,
};
use rustix::net::sockopt;
use rustix::time::{ClockId, clock_gettime};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::sleep;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Outcome<()> {
    let path = std::env::args().nth(1).ok_or("the setup's path is missing")?;
    let setup: Value = serde_json::from_slice(&std::fs::read(path)?)?;
    let (orders, mut heard) = mpsc::channel(1);
    std::thread::spawn(move || {
        let lines = std::io::stdin().lock().lines();
        lines.map_while(Result::ok).try_for_each(|line| orders.blocking_send(line))
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut peer = Peer::new(&setup)?;
    runtime.block_on(async {
        while let Some(line) = heard.recv().await {
            let answer = match peer.obey(&serde_json::from_str(&line)?).await {
                Ok(answer) => answer,
                Err(error) => json!({ "error": error.to_string() }),
            };
            writeln!(std::io::stdout(), "{answer}")?;
        }
        Ok(())
    })
}

/// The verbs.
struct Peer {
    client: ClientConfig,
    server: ServerConfig,
    pattern: Pattern,
    tally: Arc<Tally>,
    endpoint: Option<Endpoint>,
    link: Option<Connection>,
}

impl Peer {
    fn new(setup: &Value) -> Outcome<Self> {
        let file = |name: &str| setup[name].as_str().ok_or("the setup lacks a file");
        let cert = CertificateDer::from_pem_file(file("cert")?)?;
        let key = PrivateKeyDer::from_pem_file(file("key")?)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(cert.clone())?;
        let mut client = rustls::ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut server = rustls::ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_no_client_auth()
            .with_single_cert(vec![cert], key)?;
        client.alpn_protocols = vec![b"bench".to_vec()];
        server.alpn_protocols = vec![b"bench".to_vec()];
        let transport = Arc::new(transport());
        let mut client = ClientConfig::new(Arc::new(QuicClientConfig::try_from(client)?));
        client.transport_config(transport.clone());
        let mut server = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(server)?));
        server.transport_config(transport);
        let pattern = Pattern::read(file("pattern")?)?;
        Ok(Self { client, server, pattern, tally: Arc::default(), endpoint: None, link: None })
    }

    async fn obey(&mut self, order: &Value) -> Outcome<Value> {
        let seconds = order["seconds"].as_f64().unwrap_or_default();
        let answer = match order["do"].as_str().unwrap_or_default() {
            "listen" => self.listen(port(order)),
            "connect" => self.connect(port(order)).await,
            "accepted" => self.accepted().await,
            "mark" => Ok(self.mark()),
            "slow" => Ok(self.slow(order)),
            "send" => self.send(whole(order, "size"), seconds, whole(order, "streams")).await,
            "press" => self.press(whole(order, "size"), seconds, whole(order, "most")).await,
            "received" => self.received(whole(order, "streams")).await,
            "count" => Ok(self.tally.answer()),
            "ping" => self.ping(whole(order, "size"), seconds).await,
            "handshakes" => self.handshakes(port(order), seconds, whole(order, "parallel")).await,
            "cycle" => self.cycle(seconds, whole(order, "parallel"), whole(order, "most")).await,
            "churn" => self.churn(whole(order, "size"), seconds).await,
            "datagrams" => self.datagrams(whole(order, "size"), seconds, order["rate"].as_f64()).await,
            "arrived" => self.arrived(whole(order, "most")).await,
            other => Err(format!("no verb `{other}`").into()),
        }?;
        self.tally.fault()?;
        Ok(answer)
    }

    fn listen(&mut self, port: u16) -> Outcome<Value> {
        let endpoint = endpoint(port, Some(self.server.clone()))?;
        let (tally, pattern, accepting) = (self.tally.clone(), self.pattern.clone(), endpoint.clone());
        tokio::spawn(async move {
            while let Some(incoming) = accepting.accept().await {
                let (tally, pattern) = (tally.clone(), pattern.clone());
                tokio::spawn(async move {
                    if let Ok(connection) = incoming.await {
                        *tally.accepted.lock().unwrap() = Some(connection.clone());
                        serve(&connection, &tally, &pattern);
                    }
                });
            }
        });
        self.endpoint = Some(endpoint);
        Ok(json!({}))
    }

    async fn connect(&mut self, port: u16) -> Outcome<Value> {
        let endpoint = endpoint(0, None)?;
        let to = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let connection = endpoint.connect_with(self.client.clone(), to, "localhost")?.await?;
        serve(&connection, &self.tally, &self.pattern);
        (self.endpoint, self.link) = (Some(endpoint), Some(connection));
        Ok(json!({}))
    }

    async fn accepted(&mut self) -> Outcome<Value> {
        while self.link.is_none() {
            sleep(POLL).await;
            self.link.clone_from(&self.tally.accepted.lock().unwrap());
        }
        Ok(json!({}))
    }

    fn mark(&self) -> Value {
        self.tally.clear();
        let peak = resident("VmHWM:");
        let _ = std::fs::write("/proc/self/clear_refs", "5");
        let cpu = seconds(ClockId::ProcessCPUTime);
        json!({ "cpu": cpu, "rss": resident("VmRSS:"), "peak": peak, "at": seconds(ClockId::Monotonic) })
    }

    /// Seconds of work for each 64 KiB that come.
    fn slow(&self, order: &Value) -> Value {
        let work = Duration::from_secs_f64(order["work"].as_f64().unwrap_or_default());
        self.tally.work_us.store(u64::try_from(work.as_micros()).unwrap_or_default(), Relaxed);
        json!({})
    }

    async fn send(&self, size: usize, length: f64, streams: usize) -> Outcome<Value> {
        let (link, start) = (self.link()?, seconds(ClockId::Monotonic));
        let mut writing = JoinSet::new();
        for _ in 0..streams {
            writing.spawn(pump(link.open_uni().await?, self.pattern.clone(), size, start + length));
        }
        let mut bytes = 0;
        while let Some(done) = writing.join_next().await {
            bytes += done??;
        }
        Ok(json!({ "bytes": bytes, "start": start }))
    }

    async fn press(&self, size: usize, length: f64, most: usize) -> Outcome<Value> {
        let before = resident("VmRSS:");
        let mut stream = self.link()?.open_uni().await?;
        let mut taken = 0;
        let _ = tokio::time::timeout(Duration::from_secs_f64(length), async {
            while taken < most {
                stream.write_chunk(self.pattern.piece(taken, size)).await?;
                taken += size;
            }
            Outcome::Ok(())
        })
        .await;
        let growth = resident("VmHWM:").saturating_sub(before);
        Ok(json!({ "bytes": taken, "growth": growth }))
    }

    async fn received(&self, streams: usize) -> Outcome<Value> {
        while self.tally.ended.load(Relaxed) < streams as u64 {
            self.tally.fault()?;
            sleep(POLL).await;
        }
        Ok(self.tally.answer())
    }

    async fn ping(&self, size: usize, length: f64) -> Outcome<Value> {
        let message = self.pattern.piece(0, size);
        let (mut writer, mut reader) = self.link()?.open_bi().await?;
        let (mut samples, mut got) = (Vec::new(), BytesMut::with_capacity(size));
        let end = seconds(ClockId::Monotonic) + length;
        while samples.is_empty() || seconds(ClockId::Monotonic) < end {
            let start = nanoseconds();
            got.clear();
            writer.write_chunk(message.clone()).await?;
            while got.len() < size {
                got.extend_from_slice(&reader.read_chunk(READ).await?.ok_or("the echo ended")?);
            }
            samples.push(nanoseconds() - start);
            if got != message {
                return Err("the echo differs".into());
            }
        }
        writer.finish()?;
        if reader.read_chunk(READ).await?.is_some() {
            return Err("the echo goes on".into());
        }
        let (count, sum) = (samples.len(), samples.iter().sum::<u64>());
        Ok(merged(json!({ "count": count, "seconds": sum as f64 / 1e9 }), latency(samples)))
    }

    async fn handshakes(&mut self, port: u16, length: f64, parallel: usize) -> Outcome<Value> {
        let endpoint = endpoint(0, None)?;
        let to = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let start = seconds(ClockId::Monotonic);
        let count = together(parallel, async || {
            let mut count = 0;
            while seconds(ClockId::Monotonic) < start + length {
                let connection = endpoint.connect_with(self.client.clone(), to, "localhost")?.await?;
                connection.close(VarInt::from_u32(0), b"");
                count += 1;
            }
            Ok(count)
        })
        .await?;
        Ok(json!({ "count": count, "seconds": seconds(ClockId::Monotonic) - start }))
    }

    async fn cycle(&self, length: f64, parallel: usize, most: usize) -> Outcome<Value> {
        let (link, share, start) = (self.link()?, most / parallel.max(1), seconds(ClockId::Monotonic));
        let more =
            |count| if share > 0 { count < share } else { seconds(ClockId::Monotonic) < start + length };
        let count = together(parallel, async || {
            let mut count = 0;
            while more(count) {
                let (mut writer, mut reader) = link.open_bi().await?;
                writer.write_chunk(BYTE).await?;
                writer.finish()?;
                if reader.read_chunk(READ).await? != Some(BYTE) || reader.read_chunk(READ).await?.is_some() {
                    return Err("the echo differs".into());
                }
                count += 1;
            }
            Ok(count)
        })
        .await?;
        Ok(json!({ "count": count, "seconds": seconds(ClockId::Monotonic) - start }))
    }

    async fn churn(&self, size: usize, length: f64) -> Outcome<Value> {
        let (link, message, start) = (self.link()?, self.pattern.piece(0, size), seconds(ClockId::Monotonic));
        let mut count = 0;
        while seconds(ClockId::Monotonic) < start + length {
            let mut stream = link.open_uni().await?;
            stream.write_chunk(message.clone()).await?;
            stream.finish()?;
            count += 1;
        }
        Ok(json!({ "count": count, "start": start }))
    }

    async fn datagrams(&self, size: usize, length: f64, rate: Option<f64>) -> Outcome<Value> {
        let (link, start) = (self.link()?, seconds(ClockId::Monotonic));
        let mut number = 0u64;
        loop {
            let now = seconds(ClockId::Monotonic);
            if now >= start + length {
                break;
            }
            link.send_datagram_wait(self.pattern.datagram(number, size)).await?;
            number += 1;
            if let Some(rate) = rate {
                sleep(Duration::from_secs_f64((start + number as f64 / rate - now).max(0.0))).await;
            }
        }
        Ok(json!({ "count": number, "bytes": number * size as u64, "start": start }))
    }

    async fn arrived(&self, most: usize) -> Outcome<Value> {
        let mut seen = u64::MAX;
        loop {
            let now = self.tally.datagrams.load(Relaxed);
            if now >= most as u64 || now == seen {
                break;
            }
            seen = now;
            sleep(QUIET).await;
        }
        let samples = std::mem::take(&mut *self.tally.latencies.lock().unwrap());
        let answer = merged(self.tally.answer(), json!({ "count": self.tally.datagrams.load(Relaxed) }));
        Ok(if samples.is_empty() { answer } else { merged(answer, latency(samples)) })
    }

    fn link(&self) -> Outcome<&Connection> {
        self.link.as_ref().ok_or_else(|| "not connected".into())
    }
}

/// Several of the same at once, on this task; the sum of what they count.
async fn together<'a, F: Future<Output = Outcome<usize>> + 'a>(
    many: usize,
    make: impl Fn() -> F,
) -> Outcome<usize> {
    let mut running: Vec<Pin<Box<F>>> = (0..many).map(|_| Box::pin(make())).collect();
    let mut sum = 0;
    std::future::poll_fn(|context| {
        let mut failed = None;
        running.retain_mut(|future| match future.as_mut().poll(context) {
            std::task::Poll::Pending => true,
            std::task::Poll::Ready(Ok(count)) => {
                sum += count;
                false
            }
            std::task::Poll::Ready(Err(error)) => {
                failed = Some(error);
                false
            }
        });
        match failed {
            Some(error) => std::task::Poll::Ready(Err(error)),
            None if running.is_empty() => std::task::Poll::Ready(Ok(())),
            None => std::task::Poll::Pending,
        }
    })
    .await?;
    Ok(sum)
}

async fn pump(mut stream: SendStream, pattern: Pattern, size: usize, end: f64) -> Outcome<usize> {
    let mut sent = 0;
    while seconds(ClockId::Monotonic) < end {
        for _ in 0..LOOK {
            stream.write_chunk(pattern.piece(sent, size)).await?;
            sent += size;
        }
    }
    stream.finish()?;
    Ok(sent)
}

/// One-way streams and datagrams are checked and counted, two-way streams are echoed.
fn serve(connection: &Connection, tally: &Arc<Tally>, pattern: &Pattern) {
    let parts = || (connection.clone(), tally.clone(), pattern.clone());
    let (link, counted, known) = parts();
    tokio::spawn(async move {
        while let Ok(stream) = link.accept_uni().await {
            let (tally, pattern) = (counted.clone(), known.clone());
            tokio::spawn(async move { tally.keep(sink(stream, &tally, &pattern).await) });
        }
    });
    let (link, counted, _) = parts();
    tokio::spawn(async move {
        while let Ok((writer, reader)) = link.accept_bi().await {
            let tally = counted.clone();
            tokio::spawn(async move { tally.keep(echo(writer, reader).await) });
        }
    });
    let (link, counted, known) = parts();
    tokio::spawn(async move {
        while let Ok(data) = link.read_datagram().await {
            counted.keep(counted.datagram(&known, &data));
        }
    });
}

async fn sink(mut stream: RecvStream, tally: &Tally, pattern: &Pattern) -> Outcome<()> {
    let (mut offset, mut owed) = (0, 0);
    let mut chunks = vec![Bytes::new(); CHUNKS];
    while let Some(count) = stream.read_many_chunks(&mut chunks).await? {
        for chunk in &chunks[..count] {
            if !pattern.fits(offset, chunk) {
                return Err(format!("{} bytes at {offset} are not what was sent", chunk.len()).into());
            }
            offset += chunk.len();
            owed += chunk.len();
            tally.bytes.fetch_add(chunk.len() as u64, Relaxed);
        }
        let work = tally.work_us.load(Relaxed);
        while work > 0 && owed >= SLOW_BYTES {
            owed -= SLOW_BYTES;
            sleep(Duration::from_micros(work)).await;
        }
    }
    tally.last_ns.store(nanoseconds(), Relaxed);
    tally.ended.fetch_add(1, Relaxed);
    Ok(())
}

async fn echo(mut writer: SendStream, mut reader: RecvStream) -> Outcome<()> {
    while let Some(chunk) = reader.read_chunk(READ).await? {
        writer.write_chunk(chunk).await?;
    }
    writer.finish()?;
    Ok(())
}

/// What came since the last mark.
#[derive(Default)]
struct Tally {
    bytes: AtomicU64,
    ended: AtomicU64,
    datagrams: AtomicU64,
    last_ns: AtomicU64,
    work_us: AtomicU64,
    latencies: Mutex<Vec<u64>>,
    fault: Mutex<Option<String>>,
    accepted: Mutex<Option<Connection>>,
}

impl Tally {
    fn clear(&self) {
        for counter in [&self.bytes, &self.ended, &self.datagrams, &self.last_ns] {
            counter.store(0, Relaxed);
        }
        self.latencies.lock().unwrap().clear();
    }

    fn datagram(&self, pattern: &Pattern, data: &[u8]) -> Outcome<()> {
        let now = nanoseconds();
        let (number, rest) = data.split_first_chunk().ok_or("a short datagram")?;
        let (sent, body) = rest.split_first_chunk().ok_or("a short datagram")?;
        let number = usize::try_from(u64::from_le_bytes(*number))?;
        if !pattern.fits(number * STRIDE, body) {
            return Err(format!("datagram {number} is not what was sent").into());
        }
        self.bytes.fetch_add(data.len() as u64, Relaxed);
        self.datagrams.fetch_add(1, Relaxed);
        self.last_ns.store(now, Relaxed);
        let mut latencies = self.latencies.lock().unwrap();
        if latencies.len() < LATENCIES {
            latencies.push(now.saturating_sub(u64::from_le_bytes(*sent)));
        }
        Ok(())
    }

    fn answer(&self) -> Value {
        let last = self.last_ns.load(Relaxed) as f64 / 1e9;
        json!({ "bytes": self.bytes.load(Relaxed), "ended": self.ended.load(Relaxed), "last": last })
    }

    /// Remembers the first thing that went wrong.
    fn keep(&self, outcome: Outcome<()>) {
        if let Err(error) = outcome {
            self.fault.lock().unwrap().get_or_insert(error.to_string());
        }
    }

    fn fault(&self) -> Outcome<()> {
        self.fault.lock().unwrap().take().map_or(Ok(()), |fault| Err(fault.into()))
    }
}

/// The bytes of every stream, held twice so that a piece from any offset is one slice.
#[derive(Clone)]
struct Pattern(Bytes);

impl Pattern {
    fn read(path: &str) -> Outcome<Self> {
        let once = std::fs::read(path)?;
        if once.len() != PERIOD {
            return Err(format!("`{path}` has {} bytes", once.len()).into());
        }
        Ok(Self([once.as_slice(), once.as_slice()].concat().into()))
    }

    fn piece(&self, offset: usize, size: usize) -> Bytes {
        let at = offset % PERIOD;
        self.0.slice(at..at + size)
    }

    fn fits(&self, offset: usize, data: &[u8]) -> bool {
        let at = offset % PERIOD;
        data.len() <= PERIOD && self.0[at..at + data.len()] == *data
    }

    fn datagram(&self, number: u64, size: usize) -> Bytes {
        let mut made = BytesMut::with_capacity(size);
        made.put_u64_le(number);
        made.put_u64_le(nanoseconds());
        let rest = size - made.len();
        made.put(self.piece(usize::try_from(number).unwrap_or_default() * STRIDE, rest));
        made.freeze()
    }
}

/// The defaults of `wayferry_net::endpoint::Config`.
fn transport() -> TransportConfig {
    let mut config = TransportConfig::default();
    config.stream_receive_window(VarInt::from_u32(1 << 20));
    config.receive_window(VarInt::from_u32(16 << 20));
    config.send_window(8 << 20);
    config.datagram_receive_buffer_size(Some(1 << 20));
    config.datagram_send_buffer_size(1 << 20);
    config
}

fn endpoint(port: u16, server: Option<ServerConfig>) -> Outcome<Endpoint> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, port))?;
    sockopt::set_socket_recv_buffer_size(&socket, UDP_BUFFER)?;
    sockopt::set_socket_send_buffer_size(&socket, UDP_BUFFER)?;
    let runtime = noq::default_runtime().ok_or("no runtime")?;
    Ok(Endpoint::new(noq::EndpointConfig::default(), server, socket, runtime)?)
}

fn latency(mut samples: Vec<u64>) -> Value {
    samples.sort_unstable();
    let part =
        |hundredths: usize| samples[(samples.len() * hundredths / 100).min(samples.len() - 1)] as f64 / 1e3;
    json!({ "p50_us": part(50), "p99_us": part(99) })
}

fn merged(mut one: Value, other: Value) -> Value {
    if let (Some(into), Value::Object(from)) = (one.as_object_mut(), other) {
        into.extend(from);
    }
    one
}

fn whole(order: &Value, name: &str) -> usize {
    order[name].as_u64().and_then(|value| value.try_into().ok()).unwrap_or_default()
}

fn port(order: &Value) -> u16 {
    whole(order, "port").try_into().unwrap_or_default()
}

fn seconds(clock: ClockId) -> f64 {
    let now = clock_gettime(clock);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

fn nanoseconds() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

/// Bytes of this process's memory, by the name of a line in its status.
fn resident(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or_default() * 1024
}

/// As in `python/benches/payload.py`.
const PERIOD: usize = 1 << 20;
const STRIDE: usize = 4099;
const SLOW_BYTES: usize = 64 * 1024;
const LATENCIES: usize = 200_000;
/// Bytes of one read, pieces of one read, writes between looks at the clock.
const READ: usize = 65536;
const CHUNKS: usize = 32;
const LOOK: usize = 16;
const BYTE: Bytes = Bytes::from_static(b"\x2a");
const POLL: Duration = Duration::from_millis(5);
const QUIET: Duration = Duration::from_millis(300);
const UDP_BUFFER: usize = 2 << 20;
