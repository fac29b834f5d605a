//! Serves a [`Site`]: a thread for each listener and for each connection.
//!
//! A connection has one request and one answer, but for those that go on as WebSockets. Who is slow holds up no other:
//! each has a time for its request, the handshake of TLS before it included, and one for its answer; and of too many
//! one is closed, the oldest of the place that has most. Invariant: no connection outlives the server by more than it
//! takes to notice, for which its end waits a while.

use std::io;
use std::net::{IpAddr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::answer::Answer;
use super::place::place;
use super::request::{self, Method, Read};
use super::socket::{self, Sockets};
use super::tls::Tls;
use super::wire::{Timed, Wire};
use super::{Reply, Site};

/// A site that is served until this is dropped.
pub struct Server {
    shared: Arc<Shared>,
    listeners: Vec<(TcpListener, JoinHandle<()>)>,
}

struct Shared {
    site: Arc<Site>,
    tls: Option<Tls>,
    connections: Mutex<Connections>,
    /// One has gone, and its thread has nothing left to do.
    gone: Condvar,
    is_over: AtomicBool,
}

/// Those that are open, the oldest first.
#[derive(Default)]
struct Connections {
    open: Vec<Connection>,
    /// Of pages that have shown a link: they stay.
    sockets: Vec<Connection>,
    count: u64,
    /// Threads that run, also those of connections that were closed.
    running: usize,
}

struct Connection {
    number: u64,
    /// Where it comes from, see [`place()`].
    from: IpAddr,
    stream: TcpStream,
}

impl Server {
    /// Serves `site` at these listeners, in TLS if there is any. There no caller is taken for a program of this user.
    ///
    /// # Errors
    /// The system has no thread or no descriptor for it.
    pub fn start(listeners: Vec<TcpListener>, site: Arc<Site>, tls: Option<Tls>) -> io::Result<Self> {
        let (connections, gone, is_over) = Default::default();
        let shared = Arc::new(Shared { site, tls, connections, gone, is_over });
        let mut server = Self { shared, listeners: Vec::new() };
        for listener in listeners {
            let (kept, shared) = (listener.try_clone()?, Arc::clone(&server.shared));
            let thread = std::thread::Builder::new().name("site".into());
            server.listeners.push((kept, thread.spawn(move || accept(&listener, &shared))?));
        }
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::SeqCst);
        for (listener, thread) in self.listeners.drain(..) {
            // On Linux this wakes the thread that accepts.
            let _ = rustix::net::shutdown(&listener, rustix::net::Shutdown::Both);
            let _ = thread.join();
        }
        let mut connections = self.shared.lock();
        let Connections { open, sockets, .. } = &mut *connections;
        for connection in open.drain(..).chain(sockets.drain(..)) {
            let _ = connection.stream.shutdown(Shutdown::Both);
        }
        // They end what they have started, which the end of the process would not.
        let running = |connections: &mut Connections| connections.running > 0;
        drop(self.shared.gone.wait_timeout_while(connections, END_PATIENCE, running));
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Connections> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another connection from there; one may have to go for it. Gives its number.
    fn enter(&self, stream: &TcpStream, from: IpAddr) -> io::Result<u64> {
        let stream = stream.try_clone()?;
        let most = if self.tls.is_some() { GUESTS_MAX } else { CONNECTIONS_MAX };
        let mut connections = self.lock();
        if connections.open.len() >= most
            && let Some(gone) = connections.take_one()
        {
            let _ = gone.stream.shutdown(Shutdown::Both);
        }
        connections.count += 1;
        connections.running += 1;
        let number = connections.count;
        connections.open.push(Connection { number, from: place(from), stream });
        Ok(number)
    }

    /// This one stays, and has to go for no other. `false` if it had to already, or too many stay, in all or of its
    /// place.
    fn stay(&self, number: u64) -> bool {
        let mut connections = self.lock();
        let Some(index) = connections.open.iter().position(|other| other.number == number) else {
            return false;
        };
        let staying = connections.sockets.iter().map(|other| other.from);
        if !has_room(staying, connections.open[index].from) {
            return false;
        }
        let it = connections.open.remove(index);
        connections.sockets.push(it);
        true
    }

    fn leave(&self, number: u64) {
        let mut connections = self.lock();
        let Connections { open, sockets, .. } = &mut *connections;
        [open, sockets].into_iter().for_each(|those| those.retain(|other| other.number != number));
        connections.running -= 1;
        self.gone.notify_all();
    }
}

impl Connections {
    /// The oldest of the place that has most of them, so that who opens many closes his own.
    fn take_one(&mut self) -> Option<Connection> {
        let count = |from| self.open.iter().filter(|other| other.from == from).count();
        let most = self.open.iter().map(|it| count(it.from)).max()?;
        let index = self.open.iter().position(|it| count(it.from) == most)?;
        Some(self.open.remove(index))
    }
}

/// Whether one more WebSocket may stay whose browser is at `from`, where there are these. All browsers of this machine
/// are in one place, which has no share of its own.
fn has_room(staying: impl Iterator<Item = IpAddr>, from: IpAddr) -> bool {
    let (mut all, mut of_it) = (0, 0);
    for other in staying {
        all += 1;
        of_it += usize::from(other == from);
    }
    all < SOCKETS_MAX && (of_it < PLACE_SOCKETS_MAX || from.is_loopback())
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    while !shared.is_over.load(Ordering::SeqCst) {
        let Ok((stream, from)) = listener.accept() else {
            if !shared.is_over.load(Ordering::SeqCst) {
                // Most likely no descriptors are left; callers wait in the queue.
                std::thread::sleep(REST);
            }
            continue;
        };
        let Ok(number) = shared.enter(&stream, from.ip()) else { continue };
        let theirs = Arc::clone(shared);
        let serve = move || {
            // A caller that went away, or was too slow, is none of the site's trouble.
            let _ = serve(stream, number, &theirs);
            theirs.leave(number);
        };
        if std::thread::Builder::new().name("site".into()).spawn(serve).is_err() {
            shared.leave(number);
        }
    }
}

fn serve(stream: TcpStream, number: u64, shared: &Shared) -> io::Result<()> {
    let timed = Timed::new(stream, Instant::now() + REQUEST_PATIENCE);
    match &shared.tls {
        None => serve_on(timed, number, shared),
        Some(tls) => serve_on(tls.accept(timed)?, number, shared),
    }
}

fn serve_on(mut wire: impl Wire, number: u64, shared: &Shared) -> io::Result<()> {
    match hear(&mut wire, &shared.site)? {
        Heard::Answer(answer) => {
            wire.timed_mut().until = Instant::now() + ANSWER_PATIENCE;
            wire.write_all(&answer)?;
            wire.end()
        }
        Heard::Socket { answer, sockets, rest } => {
            wire.write_all(&answer)?;
            wire.flush()?;
            socket::serve(wire, rest, sockets, || shared.stay(number))
        }
    }
}

/// What becomes of a caller.
enum Heard<'a> {
    /// It is answered, and that is all.
    Answer(Vec<u8>),
    /// It goes on, and has said the rest already.
    Socket { answer: Vec<u8>, sockets: &'a Sockets, rest: Vec<u8> },
}

/// What a caller wants.
fn hear<'a>(caller: &mut impl Wire, site: &'a Site) -> io::Result<Heard<'a>> {
    let (mut heard, mut piece) = (Vec::new(), [0; 1024]);
    loop {
        match request::read(&heard) {
            Read::Whole(request) => {
                return Ok(match site.reply(&request, || caller.is_own()) {
                    Reply::Answer(answer) => Heard::Answer(answer.bytes(request.method)),
                    Reply::Socket(answer, sockets) => {
                        Heard::Socket { answer, sockets, rest: request::behind(&heard).to_vec() }
                    }
                });
            }
            Read::Wrong(fault) => return Ok(Heard::Answer(Answer::to(fault).bytes(Method::Get))),
            Read::Part => {}
        }
        match caller.read(&mut piece)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => heard.extend_from_slice(&piece[..count]),
        }
    }
}

/// Connections at once to a site of this machine's browsers. One opens six.
const CONNECTIONS_MAX: usize = 16;
/// The same in TLS: eight browsers elsewhere may come at once.
const GUESTS_MAX: usize = 64;
/// WebSockets at once: two for each that may view, for a guest that comes again may not have left.
const SOCKETS_MAX: usize = 16;
/// The same of one place elsewhere, so that a guest leaves room for others.
const PLACE_SOCKETS_MAX: usize = 4;
/// How long a caller may take for its request; and for what shows that its page has a link, where that follows.
const REQUEST_PATIENCE: Duration = Duration::from_secs(10);
/// How long an answer may take: half a megabyte over a slow line.
const ANSWER_PATIENCE: Duration = Duration::from_secs(120);
/// How long the end waits for connections that were closed: a program that brings one to its session has two seconds.
const END_PATIENCE: Duration = Duration::from_secs(4);
/// How long callers wait when no descriptors are left.
const REST: Duration = Duration::from_millis(100);

#[cfg(test)]
mod guests;
#[cfg(test)]
mod sockets;

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::io::{Read, Write};

    use super::super::{File, bind};
    use super::*;

    /// The server, and its port.
    fn server() -> (Server, u16) {
        let (listeners, port) = bind(0).expect("a port");
        let site = site(&format!("http://localhost:{port}"));
        (Server::start(listeners, site, None).expect("threads"), port)
    }

    pub(super) fn site(origin: &str) -> Arc<Site> {
        let file = File { name: "index.html".into(), bytes: Cow::Owned(vec![b'x'; 300_000]), packed: false };
        Arc::new(Site::new(origin.parse().expect("an origin"), [file]))
    }

    fn connect(port: u16) -> TcpStream {
        TcpStream::connect(("127.0.0.1", port)).expect("it listens")
    }

    fn request(port: u16) -> String {
        format!("GET / HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n")
    }

    fn all(mut stream: impl Read) -> String {
        let mut heard = Vec::new();
        stream.read_to_end(&mut heard).expect("its end");
        String::from_utf8(heard).expect("text")
    }

    #[test]
    fn a_file_arrives_whole_in_whichever_pieces_it_was_asked_for() {
        let (_server, port) = server();
        let mut stream = connect(port);
        request(port).bytes().for_each(|byte| stream.write_all(&[byte]).expect("it reads"));
        let answer = all(&stream);
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with('x'), "{}", &answer[..300]);
        assert_eq!(answer.split_once("\r\n\r\n").map(|(_, body)| body.len()), Some(300_000));
    }

    #[test]
    fn idle_callers_hold_up_nobody_and_the_oldest_has_to_go() {
        let (_server, port) = server();
        let idle: Vec<_> = (0..3 * CONNECTIONS_MAX).map(|_| connect(port)).collect();
        let mut stream = connect(port);
        stream.write_all(request(port).as_bytes()).expect("it reads");
        assert!(all(&stream).starts_with("HTTP/1.1 200 OK\r\n"));
        assert_eq!(all(&idle[0]), "", "it was closed");
    }

    #[test]
    fn a_head_without_end_is_answered_and_nothing_is_served_after_the_end() {
        let (server, port) = server();
        let mut stream = connect(port);
        let _ = stream.write_all(&[b'x'; request::HEAD_MAX]);
        assert!(all(&stream).starts_with("HTTP/1.1 431 "));
        let idle = connect(port);
        drop(server);
        // Its connection was taken, or is refused with the listener.
        let mut rest = Vec::new();
        let _ = (&idle).read_to_end(&mut rest);
        assert!(rest.is_empty());
        assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
    }

    #[test]
    fn the_port_is_the_same_at_both_addresses_and_taken_means_taken() {
        let (listeners, port) = bind(0).expect("a port");
        let addresses: Vec<_> = listeners.iter().map(|it| it.local_addr().expect("an address")).collect();
        assert!(addresses.iter().all(|address| address.port() == port && address.ip().is_loopback()));
        assert!(bind(port).is_err());
    }
}
