//! A page as its browser would be: WebTransport by hand on a QUIC connection, and a carrier on that.
//!
//! It shares nothing with the listener: HTTP/3 is written byte by byte. It reads streams in order, as scripts do, and
//! can say what no browser would.

#![allow(dead_code, reason = "each test binary compiles all of it and uses a part")]

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes};
use wayferry_net::endpoint::{
    ClientTls, Config, Connection, Engine, Failure, Ready, ReceiveStream, SendStream, ServerTrust, Target,
    connect,
};
use wayferry_net::{Carrier, Fingerprint};
use wayferry_proto::{Arrival, CloseReason, LinkState, StreamId, Transmit};

/// A test that waits longer for one thing than this has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// The settings of a browser that does WebTransport, behind the stream's type.
pub(crate) const SETTINGS: &[u8] =
    &[0x00, 0x04, 0x0e, 0x08, 0x01, 0x33, 0x01, 0xab, 0x60, 0x37, 0x42, 0x01, 0xab, 0x60, 0x37, 0x43, 0x01];

/// What a stream of the session begins with; the session's number is 0.
pub(crate) const STREAM: &[u8] = &[0x40, 0x54, 0x00];

/// Where the session is asked for.
pub(crate) const PATH: &str = "/wayferry/1";

/// A connection of HTTP/3 on which nothing was said yet.
pub(crate) struct Browser {
    pub(crate) connection: Connection,
    ready: Arc<Ready>,
    waker: Waker,
    /// The stream of settings, which has to stay open.
    control: Option<SendStream>,
}

impl Browser {
    /// Connects to a host that is to show this certificate.
    pub(crate) fn connect(to: SocketAddr, pinned: Fingerprint) -> Result<Self, Failure> {
        static ENGINE: OnceLock<Engine> = OnceLock::new();
        let engine = ENGINE.get_or_init(|| Engine::start().expect("a thread"));
        let tls = ClientTls {
            trust: ServerTrust::Pins(vec![pinned]),
            identity: None,
            alpn: vec![b"h3".to_vec()],
            tickets: None,
            server_name: None,
        };
        let target =
            Target { addresses: vec![to], server_name: "localhost".into(), local: None, early_data: false };
        let ready = Ready::new().expect("a descriptor");
        let waker = ready.waker(ready.token());
        let mut connecting = Box::pin(connect(engine, target, tls, Config::default()));
        let connection = wait(&ready, &waker, |cx| connecting.as_mut().poll(cx))?;
        Ok(Self { connection, ready, waker, control: None })
    }

    /// Polls until there is something.
    pub(crate) fn until<T>(
        &mut self,
        mut poll: impl FnMut(&mut Connection, &mut Context<'_>) -> Poll<T>,
    ) -> T {
        let Self { connection, ready, waker, .. } = self;
        wait(ready, waker, |cx| poll(connection, cx))
    }

    pub(crate) fn write(&mut self, stream: &mut SendStream, bytes: &[u8]) -> Result<(), Failure> {
        let mut chunks = VecDeque::from([Bytes::copy_from_slice(bytes)]);
        while !chunks.is_empty() {
            self.until(|_, cx| stream.poll_write_chunks(cx, &mut chunks))?;
        }
        Ok(())
    }

    /// All up to the stream's end.
    pub(crate) fn read(&mut self, stream: &mut ReceiveStream) -> Result<Vec<u8>, Failure> {
        let mut chunks = Vec::new();
        while self.until(|_, cx| stream.poll_read(cx, &mut chunks, 65536))? > 0 {}
        Ok(chunks.concat())
    }

    /// A stream to send on that begins with this.
    pub(crate) fn say(&mut self, bytes: &[u8]) -> SendStream {
        let mut stream = self.until(|connection, cx| connection.poll_open_uni(cx)).expect("it may be opened");
        // It may be refused meanwhile.
        let _ = self.write(&mut stream, bytes);
        stream
    }

    /// Says that it does WebTransport.
    pub(crate) fn settle(&mut self) {
        self.control = Some(self.say(SETTINGS));
    }

    /// Asks for something of HTTP/3, in these bytes.
    pub(crate) fn ask(&mut self, bytes: &[u8]) -> (SendStream, ReceiveStream) {
        let opened = self.until(|connection, cx| connection.poll_open_bi(cx));
        let (mut send, receive) = opened.expect("it may be opened");
        let _ = self.write(&mut send, bytes);
        (send, receive)
    }

    /// The status of the answer.
    pub(crate) fn status(&mut self, receive: &mut ReceiveStream) -> u16 {
        let mut chunks = Vec::new();
        while self.until(|_, cx| receive.poll_read(cx, &mut chunks, 1)).expect("an answer") > 0 {
            // A frame of headers (RFC 9114 §7.2.2); the first is a status of QPACK's static table (RFC 9204 §A).
            match chunks.concat()[..] {
                [0x01, _, 0, 0, 0xd9, ..] => return 200,
                [0x01, _, 0, 0, 0xdb, ..] => return 404,
                [0x01, _, 0, 0, 0xff, 0x04, ..] => return 400,
                _ => {}
            }
        }
        panic!("no status in {:?}", chunks.concat());
    }

    /// Why the connection is over.
    pub(crate) fn end(&mut self) -> Failure {
        self.until(|connection, cx| connection.poll_closed(cx))
    }

    /// A page from `origin` asks for the session: the session, or the status that it was refused with.
    pub(crate) fn page(mut self, origin: &str) -> Result<Page, u16> {
        self.settle();
        let (request, mut answers) = self.ask(&request(PATH, &[origin]));
        match self.status(&mut answers) {
            200 => Ok(Page::new(self, request, answers)),
            status => Err(status),
        }
    }
}

/// A page's request at `path`, with these origins: names and values of QPACK's static table (RFC 9204 §4.5, §A) where
/// it has them.
pub(crate) fn request(path: &str, origins: &[&str]) -> Vec<u8> {
    let value = |text: &str| [&[u8::try_from(text.len()).expect("it is short")], text.as_bytes()].concat();
    // `:method` CONNECT, `:scheme` https, `:authority`, `:path`; `:protocol` is in no table.
    let mut fields = [&[0, 0, 0xcf, 0xd7, 0x50][..], &value("localhost"), &[0x51], &value(path)].concat();
    fields.extend([&[0x27, 0x02][..], b":protocol", &value("webtransport")].concat());
    for origin in origins {
        fields.extend([&[0x5f, 0x4b][..], &value(origin)].concat());
    }
    frame(0x01, &fields)
}

/// A frame of HTTP/3 (RFC 9114 §7.1), or a capsule (RFC 9297 §3.2), with a length of two bytes.
fn frame(kind: u8, bytes: &[u8]) -> Vec<u8> {
    let length = 0x4000 | u16::try_from(bytes.len()).expect("it is short");
    [&[kind][..], &length.to_be_bytes(), bytes].concat()
}

/// A session that a page has, as a carrier.
pub(crate) struct Page {
    pub(crate) browser: Browser,
    request: SendStream,
    answers: ReceiveStream,
    outgoing: BTreeMap<StreamId, Outgoing>,
    incoming: BTreeMap<StreamId, Incoming>,
    /// Of the stream with the answer.
    capsules: Vec<u8>,
    arrivals: VecDeque<Arrival>,
    over: bool,
}

/// A stream of ours that has not ended.
#[derive(Default)]
struct Outgoing {
    stream: Option<SendStream>,
    queue: VecDeque<Bytes>,
    finish: bool,
}

/// A stream of the host's that has not ended.
struct Incoming {
    stream: ReceiveStream,
    /// What it begins with, until that is known.
    head: Option<Vec<u8>>,
    offset: u64,
}

impl Page {
    fn new(browser: Browser, request: SendStream, answers: ReceiveStream) -> Self {
        Self {
            browser,
            request,
            answers,
            outgoing: BTreeMap::new(),
            incoming: BTreeMap::new(),
            capsules: Vec::new(),
            arrivals: VecDeque::new(),
            over: false,
        }
    }

    /// Does all that can be done without waiting.
    fn turn(&mut self) {
        let waker = self.browser.waker.clone();
        let cx = &mut Context::from_waker(&waker);
        self.accept(cx);
        self.send(cx);
        let mut incoming = std::mem::take(&mut self.incoming);
        incoming.retain(|id, stream| stream.turn(*id, cx, &mut self.arrivals));
        self.incoming = incoming;
        while let Poll::Ready(Ok(mut datagram)) = self.browser.connection.poll_datagram(cx) {
            assert_eq!(datagram.first(), Some(&0), "a datagram of the session");
            datagram.advance(1);
            self.arrivals.push_back(Arrival::Datagram { bytes: datagram });
        }
        self.hear_end(cx);
    }

    fn accept(&mut self, cx: &mut Context<'_>) {
        while let Poll::Ready(Ok(stream)) = self.browser.connection.poll_accept_uni(cx) {
            let id = StreamId(stream.id() / 4);
            self.incoming.insert(id, Incoming { stream, head: Some(Vec::new()), offset: 0 });
        }
    }

    fn send(&mut self, cx: &mut Context<'_>) {
        let mut over = Vec::new();
        for (id, outgoing) in &mut self.outgoing {
            if outgoing.stream.is_none()
                && let Poll::Ready(Ok(stream)) = self.browser.connection.poll_open_uni(cx)
            {
                outgoing.queue.push_front(Bytes::from_static(STREAM));
                outgoing.stream = Some(stream);
            }
            let Some(stream) = &mut outgoing.stream else { break };
            if let Poll::Ready(Ok(Some(code))) = stream.poll_stopped(cx) {
                self.arrivals.push_back(Arrival::Stopped { stream: *id, code: code_in(code) });
                stream.reset(code_out(code_in(code)));
                over.push(*id);
                continue;
            }
            while !outgoing.queue.is_empty() {
                let Poll::Ready(Ok(_)) = stream.poll_write_chunks(cx, &mut outgoing.queue) else { break };
            }
            if outgoing.queue.is_empty() && outgoing.finish {
                let _ = stream.finish();
                over.push(*id);
            }
        }
        over.iter().for_each(|id| drop(self.outgoing.remove(id)));
    }

    fn hear_end(&mut self, cx: &mut Context<'_>) {
        let mut chunks = Vec::new();
        while let Poll::Ready(Ok(1..)) = self.answers.poll_read(cx, &mut chunks, 4096) {}
        self.capsules.extend(chunks.concat());
        let said = capsule(&self.capsules);
        if !self.over && (said.is_some() || self.browser.connection.poll_closed(cx).is_ready()) {
            self.over = true;
            let lost = || CloseReason::LinkLost("the host has gone".into());
            let reason = said.map_or_else(lost, |(code, text)| CloseReason::from_wire(code, &text));
            self.arrivals.push_back(Arrival::Closed { reason });
            // As a browser does.
            let _ = self.request.finish();
        }
    }
}

impl Incoming {
    /// Whether it goes on.
    fn turn(&mut self, id: StreamId, cx: &mut Context<'_>, arrivals: &mut VecDeque<Arrival>) -> bool {
        loop {
            let mut chunks = Vec::new();
            match self.stream.poll_read(cx, &mut chunks, 65536) {
                Poll::Pending => return true,
                Poll::Ready(Ok(0)) => {
                    arrivals.push_back(Arrival::Finished { stream: id, length: self.offset });
                    return false;
                }
                Poll::Ready(Ok(_)) => self.take(id, chunks.concat(), arrivals),
                Poll::Ready(Err(Failure::Reset(code))) => {
                    arrivals.push_back(Arrival::Reset { stream: id, code: code_in(code) });
                    return false;
                }
                Poll::Ready(Err(_)) => return false,
            }
        }
    }

    fn take(&mut self, id: StreamId, bytes: Vec<u8>, arrivals: &mut VecDeque<Arrival>) {
        let mut bytes = Bytes::from(bytes);
        if let Some(head) = &mut self.head {
            head.extend(&bytes);
            match head[..] {
                // HTTP/3's own control stream.
                [0, ..] => return,
                _ if head.len() < STREAM.len() => return,
                _ => assert_eq!(head[..STREAM.len()], *STREAM, "a stream of the session"),
            }
            bytes = Bytes::from(head.split_off(STREAM.len()));
            self.head = None;
        }
        let offset = self.offset;
        self.offset += bytes.len() as u64;
        arrivals.push_back(Arrival::Data { stream: id, offset, bytes });
    }
}

impl Carrier for Page {
    fn transmit(&mut self, transmit: Transmit) {
        match transmit {
            Transmit::Open { stream, .. } => drop(self.outgoing.insert(stream, Outgoing::default())),
            Transmit::Data { stream, bytes, finish } => {
                if let Some(outgoing) = self.outgoing.get_mut(&stream) {
                    outgoing.queue.extend(Some(bytes).filter(|bytes| !bytes.is_empty()));
                    outgoing.finish = finish;
                }
            }
            Transmit::Prioritise { .. } => {}
            Transmit::Reset { stream, code } => {
                if let Some(Outgoing { stream: Some(mut stream), .. }) = self.outgoing.remove(&stream) {
                    stream.reset(code_out(code));
                }
            }
            Transmit::Stop { stream, code } => {
                if let Some(mut incoming) = self.incoming.remove(&stream) {
                    incoming.stream.stop(code_out(code));
                }
            }
            Transmit::Datagram { bytes } => {
                let framed = Bytes::from([&[0][..], &bytes].concat());
                let _ = self.browser.connection.try_send_datagram(framed);
            }
            Transmit::Close { code, reason } => self.close(code, &reason),
        }
        self.turn();
    }

    fn poll_arrival(&mut self) -> Option<Arrival> {
        if self.arrivals.is_empty() {
            self.turn();
        }
        self.arrivals.pop_front()
    }

    fn link(&self) -> LinkState {
        LinkState { window: 1 << 20, idle: self.outgoing.is_empty(), ..LinkState::default() }
    }

    fn wake_fd(&self) -> BorrowedFd<'_> {
        self.browser.ready.as_fd()
    }

    fn clear_wake(&self) {
        self.browser.ready.drain(&mut Vec::new());
    }
}

impl Page {
    /// Ends the session in a capsule.
    pub(crate) fn close(&mut self, code: u32, reason: &str) {
        let length = 0x4000 | u16::try_from(4 + reason.len()).expect("it is short");
        let capsule = [CLOSE, &length.to_be_bytes(), &code.to_be_bytes(), reason.as_bytes()].concat();
        if self.browser.write(&mut self.request, &frame(0x00, &capsule)).is_ok()
            && self.request.finish().is_ok()
        {
            self.browser.end();
        }
    }
}

/// What a capsule that ends the session says, if it is there.
fn capsule(bytes: &[u8]) -> Option<(u32, String)> {
    let place = bytes.windows(CLOSE.len()).position(|kind| kind == CLOSE)?;
    let rest = &bytes[place + CLOSE.len()..];
    let (length, rest) = match *rest.first()? {
        short @ ..0x40 => (usize::from(short), &rest[1..]),
        long => (usize::from(long & 0x3f) << 8 | usize::from(*rest.get(1)?), &rest[2..]),
    };
    let (code, reason) = rest.get(..length)?.split_first_chunk()?;
    Some((u32::from_be_bytes(*code), String::from_utf8_lossy(reason).into_owned()))
}

/// A stream's code on the wire (draft-ietf-webtrans-http3 §4.3).
fn code_out(code: u32) -> u64 {
    let code = u64::from(code);
    FIRST_CODE + code + code / 0x1e
}

fn code_in(code: u64) -> u32 {
    let shifted = code.checked_sub(FIRST_CODE).expect("a code of WebTransport's");
    u32::try_from(shifted - shifted / 0x1f).expect("a code of WebTransport's")
}

const FIRST_CODE: u64 = 0x52e4_a40f_a8db;

/// The kind of the capsule that ends a session (draft-ietf-webtrans-http3 §9.6).
const CLOSE: &[u8] = &[0x68, 0x43];

fn wait<T>(ready: &Ready, waker: &Waker, mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Poll::Ready(output) = poll(&mut Context::from_waker(waker)) {
            return output;
        }
        let left = PATIENCE.checked_sub(begin.elapsed()).expect("woken in time");
        ready.wait(Some(left));
        ready.drain(&mut Vec::new());
    }
}
