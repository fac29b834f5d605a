//! Two endpoints on loopback, and polls that may not hang.
#![allow(dead_code, reason = "each test binary compiles all of it and uses a part")]

pub(crate) mod gate;

use std::collections::VecDeque;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use bytes::Bytes;
use wayferry_net::Identity;
use wayferry_net::endpoint::{
    Accepted, Admission, ClientTls, Clients, Config, Connection, Engine, Failure, Listener, Pending,
    ReceiveStream, SendStream, ServerTls, ServerTrust, Target, connect,
};

/// A hang is a failure.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Polls until there is something; a wake-up that does not come is a failure.
pub(crate) fn until<T>(mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> T {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let begin = Instant::now();
    loop {
        if let Poll::Ready(output) = poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        let left = LIMIT.checked_sub(begin.elapsed()).expect("woken in time");
        thread::park_timeout(left);
    }
}

/// Waits for what wakes no caller.
pub(crate) fn eventually(mut is: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is() {
        assert!(begin.elapsed() < LIMIT, "it does not happen");
        thread::yield_now();
    }
}

/// Waits for a future.
pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    until(|cx| future.as_mut().poll(cx))
}

pub(crate) fn engine() -> &'static Engine {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    ENGINE.get_or_init(|| Engine::start().unwrap())
}

/// One of its own: connections of one engine share a socket, and a burst of another test's could cost this one a
/// datagram. It is kept, as it could not say that a connection is closed after its own end.
pub(crate) fn fresh_engine() -> Engine {
    static KEPT: Mutex<Vec<Engine>> = Mutex::new(Vec::new());
    let engine = Engine::start().unwrap();
    KEPT.lock().unwrap().push(engine.clone());
    engine
}

/// Keeps the engine's thread from doing anything until the sender is dropped.
pub(crate) fn block(engine: &Engine) -> (Pending<()>, mpsc::Sender<()>) {
    let (free, freed) = mpsc::channel::<()>();
    let (begin, begun) = mpsc::channel();
    let blocked = engine.spawn(async move {
        begin.send(()).unwrap();
        let _ = freed.recv();
    });
    begun.recv_timeout(LIMIT).unwrap();
    (blocked, free)
}

pub(crate) fn loopback() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

pub(crate) const ALPN: &[u8] = b"rig";

pub(crate) fn server_tls() -> ServerTls {
    ServerTls {
        identity: Arc::new(Identity::ephemeral().unwrap()),
        clients: Clients::Anyone,
        alpn: vec![ALPN.to_vec()],
        early_data: false,
    }
}

pub(crate) fn client_tls(server: &ServerTls) -> ClientTls {
    ClientTls {
        trust: ServerTrust::Pins(vec![server.identity.fingerprint()]),
        identity: None,
        alpn: vec![ALPN.to_vec()],
        tickets: None,
        server_name: None,
    }
}

pub(crate) fn listener(tls: &ServerTls, config: Config, admission: Admission) -> Listener {
    Listener::bind(engine(), loopback(), tls, config, admission).unwrap()
}

pub(crate) fn target(address: SocketAddr) -> Target {
    Target { addresses: vec![address], server_name: "localhost".into(), local: None, early_data: false }
}

pub(crate) fn accept(listener: &mut Listener) -> Connection {
    match until(|cx| listener.poll_accept(cx)) {
        Some(Accepted::Raw(connection)) => connection,
        other => panic!("{other:?}"),
    }
}

/// A client, a server and the listener.
pub(crate) struct Pair {
    pub(crate) client: Connection,
    pub(crate) server: Connection,
    pub(crate) listener: Listener,
}

pub(crate) fn pair() -> Pair {
    pair_with(Config::default(), Config::default())
}

pub(crate) fn pair_with(client: Config, server: Config) -> Pair {
    let tls = server_tls();
    let mut listener = listener(&tls, server, Admission::default());
    let engine = fresh_engine();
    let connecting = connect(&engine, target(listener.local_address()), client_tls(&tls), client);
    let server = accept(&mut listener);
    Pair { client: wait(connecting).unwrap(), server, listener }
}

pub(crate) fn write(stream: &mut SendStream, data: &[u8]) -> Result<(), Failure> {
    let mut chunks = VecDeque::from([Bytes::copy_from_slice(data)]);
    while !chunks.is_empty() {
        until(|cx| stream.poll_write_chunks(cx, &mut chunks))?;
    }
    Ok(())
}

pub(crate) fn read(stream: &mut ReceiveStream, max_bytes: usize) -> Result<Vec<u8>, Failure> {
    let mut chunks = Vec::new();
    let count = until(|cx| stream.poll_read(cx, &mut chunks, max_bytes))?;
    let data = chunks.concat();
    assert_eq!(count, data.len());
    assert!(count <= max_bytes);
    Ok(data)
}

pub(crate) fn read_to_end(stream: &mut ReceiveStream) -> Result<Vec<u8>, Failure> {
    let mut data = Vec::new();
    loop {
        let more = read(stream, 65536)?;
        if more.is_empty() {
            return Ok(data);
        }
        data.extend(more);
    }
}

pub(crate) fn say(stream: &mut SendStream, data: &[u8]) {
    write(stream, data).unwrap();
    stream.finish().unwrap();
}

pub(crate) fn open_uni(connection: &mut Connection) -> SendStream {
    until(|cx| connection.poll_open_uni(cx)).unwrap()
}

pub(crate) fn open_bi(connection: &mut Connection) -> (SendStream, ReceiveStream) {
    until(|cx| connection.poll_open_bi(cx)).unwrap()
}

pub(crate) fn accept_uni(connection: &mut Connection) -> ReceiveStream {
    until(|cx| connection.poll_accept_uni(cx)).unwrap()
}

pub(crate) fn accept_bi(connection: &mut Connection) -> (SendStream, ReceiveStream) {
    until(|cx| connection.poll_accept_bi(cx)).unwrap()
}

pub(crate) fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index * 7 % 251) as u8).collect()
}
