//! Tests of WebSockets at a site, as browsers have them.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, channel};

use tungstenite::protocol::{Role, WebSocket};
use tungstenite::{Error, Message};

use super::super::{Road, bind};
use super::guests::guests_of;
use super::tests::site;
use super::*;
use crate::identity::sha256;

const TICKET: &str = "wf1:abc";
const NONCE: [u8; 32] = [5; 32];

/// Sessions that pages were brought to: this end of the way, and where the browser is.
type Roads = Receiver<(UnixStream, SocketAddr)>;

/// A site whose page may have WebSockets.
fn with_sockets(origin: &str) -> (Arc<Site>, Roads) {
    let (tell, roads) = channel();
    let sockets = Sockets::new(TICKET.to_owned(), move |caller| {
        let (ours, theirs) = UnixStream::pair()?;
        tell.send((ours, caller.address())).map_err(io::Error::other)?;
        Ok(Road { socket: OwnedFd::from(theirs), keeper: Box::new(()) })
    });
    let site = Arc::into_inner(site(origin)).expect("it is not served yet");
    (Arc::new(site.with_sockets(sockets)), roads)
}

fn server() -> (Server, u16, Roads) {
    let (listeners, port) = bind(0).expect("a port");
    let (site, roads) = with_sockets(&format!("http://localhost:{port}"));
    (Server::start(listeners, site, None).expect("threads"), port, roads)
}

/// What asks for a WebSocket.
fn wish(origin: &str) -> String {
    let host = origin.split_once("://").expect("an origin").1;
    format!(
        "GET /wayferry/1 HTTP/1.1\r\nHost: {host}\r\nOrigin: {origin}\r\nUpgrade: websocket\r\n\
         Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
}

/// The head of the answer.
fn head(stream: &mut impl Read) -> String {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).expect("an answer") == 1 {
        head.push(byte[0]);
    }
    String::from_utf8(head).expect("text")
}

/// A WebSocket on which nothing was said.
fn open<S: Read + Write>(mut stream: S, origin: &str) -> WebSocket<S> {
    stream.write_all(wish(origin).as_bytes()).expect("it reads");
    let head = head(&mut stream);
    assert!(head.starts_with("HTTP/1.1 101 ") && head.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{head}");
    WebSocket::from_raw_socket(stream, Role::Client, None)
}

fn browser(port: u16) -> WebSocket<TcpStream> {
    let stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    open(stream, &format!("http://localhost:{port}"))
}

fn shown() -> Message {
    let proof = sha256(format!("wayferry socket 1 page\n{TICKET}").as_bytes());
    Message::Binary([proof, NONCE].concat().into())
}

fn answer() -> Message {
    let said = [b"wayferry socket 1 server\n", &NONCE[..], TICKET.as_bytes()].concat();
    Message::Binary(sha256(&said).to_vec().into())
}

/// Whether the socket is over, in the way in which all are that were refused.
fn is_refused<S: Read + Write>(socket: &mut WebSocket<S>) -> bool {
    match socket.read() {
        Ok(Message::Close(Some(frame))) => u16::from(frame.code) == 1008 && frame.reason.is_empty(),
        // What it still said reset the connection.
        Err(Error::Io(error)) => error.kind() == io::ErrorKind::ConnectionReset,
        _ => false,
    }
}

fn exchange<S: Read + Write>(mut socket: WebSocket<S>, roads: &Roads) {
    socket.send(shown()).expect("it reads");
    assert_eq!(socket.read().expect("an answer"), answer());
    let (mut session, from) = roads.recv().expect("a way");
    assert!(from.ip().is_loopback(), "{from}");
    let said: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
    let expected = said.clone();
    let other = std::thread::spawn(move || {
        let mut heard = vec![0; expected.len()];
        session.read_exact(&mut heard).expect("what the page said");
        assert!(heard == expected);
        session.write_all(&expected).expect("it reads");
    });
    for piece in said.chunks(50_000) {
        socket.send(Message::Binary(piece.to_vec().into())).expect("it reads");
    }
    let mut heard = Vec::new();
    while heard.len() < said.len() {
        match socket.read().expect("what the session said") {
            Message::Binary(bytes) => heard.extend_from_slice(&bytes),
            other => panic!("{other:?}"),
        }
    }
    assert!(heard == said);
    other.join().expect("it heard all");
    assert!(matches!(socket.read(), Ok(Message::Close(None))), "the session is over");
}

#[test]
fn what_a_page_with_the_link_and_its_session_say_arrives() {
    let (_server, port, roads) = server();
    exchange(browser(port), &roads);
}

#[test]
fn a_guests_page_has_one_in_tls() {
    let (tell, roads) = channel();
    let guests = guests_of(|origin| {
        let (site, roads) = with_sockets(origin);
        tell.send(roads).expect("it listens");
        site
    });
    let origin = format!("https://page.test:{}", guests.port);
    exchange(open(guests.browser(&[b"http/1.1"]), &origin), &roads.recv().expect("ways"));
}

#[test]
fn what_is_said_with_the_request_is_not_lost() {
    let (_server, port, roads) = server();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    // A frame of 64 bytes, masked with nothing.
    let Message::Binary(shown) = shown() else { unreachable!() };
    let frame = [&[0x82, 0x80 | 64, 0, 0, 0, 0][..], &shown].concat();
    stream.write_all(&[wish(&format!("http://localhost:{port}")).as_bytes(), &frame].concat()).expect("room");
    assert!(head(&mut stream).starts_with("HTTP/1.1 101 "));
    let mut socket = WebSocket::from_raw_socket(stream, Role::Client, None);
    assert_eq!(socket.read().expect("an answer"), answer());
    drop(roads);
}

#[test]
fn who_asks_for_one_otherwise_is_answered_as_if_there_were_none() {
    let (_server, port, roads) = server();
    let right = wish(&format!("http://localhost:{port}"));
    let nothing = "HTTP/1.1 404 ";
    for (asked, expected) in [
        (
            wish("http://localhost:1")
                .replace("localhost:1\r\nOrigin", &format!("localhost:{port}\r\nOrigin")),
            nothing,
        ),
        (right.replace("Origin: http", "Origin: https"), nothing),
        (right.replace("Origin:", "Other:"), nothing),
        (right.replace("/wayferry/1", "/wayferry/1/"), nothing),
        (right.replace("/wayferry/1", "/wayferry/1?"), nothing),
        (right.replace("Version: 13", "Version: 8"), nothing),
        (right.replace("Upgrade: websocket", "Upgrade: h2c"), nothing),
        (right.replace("GET ", "HEAD "), nothing),
        (right.replace("GET ", "POST "), "HTTP/1.1 405 "),
        (right.replace("Host: localhost", "Host: rebound"), "HTTP/1.1 421 "),
    ] {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
        stream.write_all(asked.as_bytes()).expect("it reads");
        let head = head(&mut stream);
        assert!(head.starts_with(expected), "{asked}: {head}");
    }
    assert!(roads.try_recv().is_err());
}

#[test]
fn a_site_without_sockets_has_none() {
    let (listeners, port) = bind(0).expect("a port");
    let origin = format!("http://localhost:{port}");
    let _server = Server::start(listeners, site(&origin), None).expect("threads");
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    stream.write_all(wish(&origin).as_bytes()).expect("it reads");
    assert!(head(&mut stream).starts_with("HTTP/1.1 404 "));
}

#[test]
fn who_cannot_show_the_ticket_sees_the_same_end_and_nothing_is_opened() {
    let (_server, port, roads) = server();
    let Message::Binary(right) = shown() else { unreachable!() };
    let mut wrong = right.to_vec();
    wrong[0] ^= 1;
    for said in [
        Message::Binary(wrong.into()),
        Message::Binary(right.slice(..32)),
        Message::Binary(sha256(TICKET.as_bytes()).to_vec().into()),
        Message::Binary(vec![0; 70_000].into()),
        Message::Text("let me in".into()),
        Message::Binary(Vec::new().into()),
    ] {
        let mut socket = browser(port);
        // It may be over before all was taken.
        let _ = socket.send(said.clone());
        assert!(is_refused(&mut socket), "{said:?}");
    }
    let mut socket = browser(port);
    // RFC 6455 §5.1: what a browser says is masked.
    socket.get_mut().write_all(&[&[0x82, 64][..], &right].concat()).expect("it reads");
    assert!(is_refused(&mut socket), "a frame that is not masked");
    assert!(roads.try_recv().is_err(), "nothing was opened for any of them");
}

#[test]
fn who_shows_nothing_has_the_time_of_a_request() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let stream = TcpStream::connect(listener.local_addr().expect("an address")).expect("it listens");
    let (ours, _) = listener.accept().expect("it was called");
    let sockets = Sockets::new(TICKET.to_owned(), |_| panic!("nothing is opened"));
    let over = Timed::new(ours, Instant::now());
    let _ = socket::serve(over, Vec::new(), &sockets, || panic!("it has no place"));
    let mut socket = WebSocket::from_raw_socket(stream, Role::Client, None);
    assert!(is_refused(&mut socket));
}

#[test]
fn sixteen_have_places_that_are_not_those_of_requests() {
    let (server, port, roads) = server();
    let enter = || {
        let mut socket = browser(port);
        socket.send(shown()).expect("it reads");
        socket
    };
    let mut all: Vec<_> = (0..SOCKETS_MAX).map(|_| enter()).collect();
    for socket in &mut all {
        assert_eq!(socket.read().expect("an answer"), answer());
    }
    assert!(is_refused(&mut enter()), "the seventeenth");
    let mut sessions: Vec<_> = roads.try_iter().collect();
    assert_eq!(sessions.len(), SOCKETS_MAX);
    // Those that are idle have to go for others, and none of these.
    let idle: Vec<_> = (0..2 * CONNECTIONS_MAX)
        .map(|_| TcpStream::connect(("127.0.0.1", port)).expect("it listens"))
        .collect();
    let mut last = browser(port);
    last.send(shown()).expect("it reads");
    assert!(is_refused(&mut last), "there is still no place");
    sessions[0].0.write_all(b"x").expect("it reads");
    let from = sessions[0].1;
    let first = all.iter_mut().find(|it| it.get_ref().local_addr().ok() == Some(from)).expect("its browser");
    assert_eq!(first.read().expect("a word"), Message::Binary(b"x".to_vec().into()));
    // One leaves, and another has its place.
    drop(sessions.remove(0));
    assert!(matches!(first.read(), Ok(Message::Close(None))));
    let _ = first.close(None);
    while server.shared.lock().sockets.len() == SOCKETS_MAX {
        std::thread::yield_now();
    }
    assert_eq!(
        {
            let mut socket = enter();
            socket.read().expect("an answer")
        },
        answer()
    );
    drop((idle, server));
    let mut end = Vec::new();
    sessions[0].0.read_to_end(&mut end).expect("its end");
    assert!(end.is_empty(), "sockets end with the server");
}

#[test]
fn the_last_words_of_a_page_reach_its_session() {
    let (_server, port, roads) = server();
    let mut socket = browser(port);
    socket.send(shown()).expect("it reads");
    assert_eq!(socket.read().expect("an answer"), answer());
    socket.write(Message::Binary(b"good".to_vec().into())).expect("room");
    socket.write(Message::Binary(b"bye".to_vec().into())).expect("room");
    socket.close(None).expect("it reads");
    let (mut session, _) = roads.recv().expect("a way");
    let mut heard = Vec::new();
    session.read_to_end(&mut heard).expect("its end");
    assert_eq!(heard, b"goodbye");
}

#[test]
fn a_session_that_cannot_be_reached_is_over_at_once() {
    let (listeners, port) = bind(0).expect("a port");
    let origin = format!("http://localhost:{port}");
    let sockets = Sockets::new(TICKET.to_owned(), |_| Err(io::ErrorKind::NotFound.into()));
    let site = Arc::into_inner(site(&origin)).expect("it is not served yet");
    let _server = Server::start(listeners, Arc::new(site.with_sockets(sockets)), None).expect("threads");
    let mut socket = browser(port);
    socket.send(shown()).expect("it reads");
    assert!(matches!(socket.read(), Ok(Message::Close(None))), "and no answer");
}

/// A site whose ways to the session are never there: each is looked for until its browser goes, which is told here.
fn without_end() -> (Server, u16, Receiver<SocketAddr>, Receiver<SocketAddr>) {
    let (listeners, port) = bind(0).expect("a port");
    let origin = format!("http://localhost:{port}");
    let ((began, begun), (ended, ends)) = (channel(), channel());
    let sockets = Sockets::new(TICKET.to_owned(), move |caller| {
        assert!(!caller.is_gone());
        // It may go from now on.
        began.send(caller.address()).map_err(io::Error::other)?;
        let mut fds = [rustix::event::PollFd::new(caller, rustix::event::PollFlags::IN)];
        rustix::event::poll(&mut fds, None)?;
        assert!(caller.is_gone());
        ended.send(caller.address()).map_err(io::Error::other)?;
        Err(io::ErrorKind::NotConnected.into())
    });
    let site = Arc::into_inner(site(&origin)).expect("it is not served yet");
    let server = Server::start(listeners, Arc::new(site.with_sockets(sockets)), None).expect("threads");
    (server, port, begun, ends)
}

#[test]
fn regression_a_browser_that_goes_while_its_way_is_opened_keeps_no_place() {
    let (server, port, begun, ends) = without_end();
    for leave in
        [|_: &mut WebSocket<TcpStream>| (), |it: &mut _| WebSocket::close(it, None).expect("it reads")]
    {
        let mut socket = browser(port);
        socket.send(shown()).expect("it reads");
        let from = begun.recv().expect("it is brought to its session");
        assert_eq!(server.shared.lock().sockets.len(), 1);
        leave(&mut socket);
        drop(socket);
        assert_eq!(ends.recv(), Ok(from));
        while server.shared.lock().running > 0 {
            std::thread::yield_now();
        }
        assert_eq!(server.shared.lock().sockets.len(), 0);
    }
}

#[test]
fn regression_what_opens_a_way_has_ended_when_the_server_has() {
    let (server, port, begun, ends) = without_end();
    let mut socket = browser(port);
    socket.send(shown()).expect("it reads");
    let from = begun.recv().expect("it is brought to its session");
    drop(server);
    assert_eq!(ends.try_recv(), Ok(from));
}

#[test]
fn regression_a_guest_with_many_sockets_leaves_room_for_others() {
    let [one, other, here] = ["192.0.2.1", "192.0.2.2", "127.0.0.1"].map(place_of);
    let room = |one_has, others_have, from| {
        let staying = std::iter::repeat_n(one, one_has).chain(std::iter::repeat_n(here, others_have));
        has_room(staying, from)
    };
    assert!(room(PLACE_SOCKETS_MAX - 1, 0, one));
    assert!(!room(PLACE_SOCKETS_MAX, 0, one));
    assert!(room(PLACE_SOCKETS_MAX, 0, other));
    assert!(room(0, SOCKETS_MAX - 1, here), "browsers of this machine share a place");
    assert!(!room(0, SOCKETS_MAX, other));
}

fn place_of(address: &str) -> IpAddr {
    place(address.parse().expect("an address"))
}

/// Browsers take the address of IPv6 for `localhost` where there is one.
#[test]
fn regression_browsers_of_this_machine_had_four_places_by_ipv6() {
    for address in ["127.0.0.1", "127.0.0.2", "::1", "::ffff:127.0.0.1"] {
        let here = place_of(address);
        assert!(has_room(std::iter::repeat_n(here, SOCKETS_MAX - 1), here), "{address}");
        assert_eq!(here, place_of("127.0.0.1"), "{address}");
    }
}
