//! WebTransport: sessions between our own two sides, and peers that do not behave.

mod rig;

use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use rig::*;
use wayferry_net::endpoint::{
    Accepted, Admission, By, ClientTls, Config, Connection, Failure, Listener, Retry, ServerTls, connect, web,
};
use web_transport_proto::{ConnectRequest, ConnectResponse};

const WEB: Admission = Admission { retry: Retry::Auto, web: true };

struct Site {
    tls: ServerTls,
    listener: Listener,
}

impl Site {
    fn new() -> Self {
        Self::with(Config::default())
    }

    fn with(config: Config) -> Self {
        let tls = server_tls();
        Self { listener: listener(&tls, config, WEB), tls }
    }

    fn url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.listener.local_address().port())
    }

    fn connect(&self, path: &str) -> impl Future<Output = Result<Connection, Failure>> + use<> {
        let target = target(self.listener.local_address());
        web::connect(engine(), target, &self.url(path), client_tls(&self.tls), Config::default())
    }

    fn request(&mut self) -> web::Request {
        match until(|cx| self.listener.poll_accept(cx)) {
            Some(Accepted::Web(request)) => request,
            other => panic!("{other:?}"),
        }
    }

    fn session(&mut self) -> (Connection, Connection) {
        let connecting = self.connect("/room");
        let server = wait(self.request().accept()).unwrap();
        (wait(connecting).unwrap(), server)
    }

    /// A client that speaks HTTP/3 by hand.
    fn raw(&self) -> Connection {
        let tls = ClientTls { alpn: vec![b"h3".to_vec()], ..client_tls(&self.tls) };
        wait(connect(engine(), target(self.listener.local_address()), tls, Config::default())).unwrap()
    }
}

/// The settings of a client that does WebTransport, behind the stream's type.
const SETTINGS: &[u8] =
    &[0x00, 0x04, 0x0e, 0x08, 0x01, 0x33, 0x01, 0xab, 0x60, 0x37, 0x42, 0x01, 0xab, 0x60, 0x37, 0x43, 0x01];

#[test]
fn streams_and_datagrams_go_both_ways() {
    let mut site = Site::new();
    let connecting = site.connect("/room?seat=4");
    let request = site.request();
    assert_eq!(request.path(), "/room?seat=4");
    assert_eq!(request.authority(), format!("localhost:{}", site.listener.local_address().port()));
    assert!(request.remote_address().ip().is_loopback());
    let mut server = wait(request.accept()).unwrap();
    let mut client = wait(connecting).unwrap();
    assert!(client.is_web() && server.is_web());
    assert_eq!(client.alpn().as_deref(), Some(&b"h3"[..]));

    let data = pattern(300_000);
    let (mut send, mut receive) = open_bi(&mut client);
    let sent = data.clone();
    let writer = std::thread::spawn(move || say(&mut send, &sent));
    let (mut back, mut there) = accept_bi(&mut server);
    assert!(read_to_end(&mut there).unwrap() == data);
    writer.join().unwrap();
    say(&mut back, b"thanks");
    assert_eq!(read_to_end(&mut receive).unwrap(), b"thanks");

    let mut send = open_uni(&mut server);
    say(&mut send, &data[..5000]);
    let mut receive = accept_uni(&mut client);
    let (mut got, mut count) = (vec![0; 5000], 0);
    while let Some((offset, piece)) = until(|cx| receive.poll_read_unordered(cx, 1000)).unwrap() {
        got[offset as usize..][..piece.len()].copy_from_slice(&piece);
        count += piece.len();
    }
    assert_eq!((count, &got[..]), (5000, &data[..5000]));

    let max = client.max_datagram_size().unwrap();
    assert!(client.try_send_datagram(Bytes::from(pattern(max))).unwrap());
    assert_eq!(until(|cx| server.poll_datagram(cx)).unwrap(), pattern(max));
    let large = client.try_send_datagram(Bytes::from(pattern(max + 1)));
    assert!(matches!(large, Err(Failure::TooLarge { size, max: most }) if size == max + 1 && most == max));
}

#[test]
fn codes_of_streams_have_32_bits() {
    let mut site = Site::new();
    let (mut client, mut server) = site.session();
    let mut send = open_uni(&mut client);
    write(&mut send, b"begun").unwrap();
    let mut receive = accept_uni(&mut server);
    assert_eq!(read(&mut receive, 100).unwrap(), b"begun");
    send.reset(1 << 40);
    assert!(matches!(read(&mut receive, 100), Err(Failure::Reset(code)) if code == u64::from(u32::MAX)));
    let mut send = open_uni(&mut client);
    write(&mut send, b"begun").unwrap();
    accept_uni(&mut server).stop(77);
    assert_eq!(until(|cx| send.poll_stopped(cx)).unwrap(), Some(77));
    let mut send = open_uni(&mut client);
    write(&mut send, b"begun").unwrap();
    let mut receive = accept_uni(&mut server);
    drop(send);
    loop {
        match read(&mut receive, 100) {
            Ok(_) => {}
            Err(failure) => break assert!(matches!(failure, Failure::Reset(0)), "{failure:?}"),
        }
    }
}

#[test]
fn the_peer_learns_code_and_reason_and_keeps_what_arrived() {
    for client_closes in [true, false] {
        let mut site = Site::new();
        let (client, server) = site.session();
        let (mut one, mut other) = if client_closes { (client, server) } else { (server, client) };
        say(&mut open_uni(&mut one), b"unread");
        let (mut send, _receive) = open_bi(&mut one);
        say(&mut send, &pattern(20_000));
        assert!(one.try_send_datagram(Bytes::from_static(b"unread, too")).unwrap());
        wait(one.drain());
        one.close(70_000, "done: ä".as_bytes());
        assert!(matches!(one.try_send_datagram(Bytes::new()), Err(Failure::Closed { by: By::Local, .. })));
        assert!(matches!(write(&mut send, b"late"), Err(Failure::StreamGone)));
        let end = until(|cx| other.poll_closed(cx));
        let Failure::Closed { code: 70_000, reason, by: By::Peer } = end else { panic!("{end:?}") };
        assert_eq!(reason, "done: ä");
        assert_eq!(read_to_end(&mut accept_uni(&mut other)).unwrap(), b"unread");
        assert_eq!(read_to_end(&mut accept_bi(&mut other).1).unwrap(), pattern(20_000));
        assert_eq!(until(|cx| other.poll_datagram(cx)).unwrap(), &b"unread, too"[..]);
        let over = until(|cx| other.poll_accept_bi(cx)).unwrap_err();
        assert!(matches!(over, Failure::Closed { code: 70_000, by: By::Peer, .. }), "{over:?}");
        let ours = until(|cx| one.poll_closed(cx));
        assert!(matches!(ours, Failure::Closed { code: 70_000, by: By::Local, .. }), "{ours:?}");
    }
}

#[test]
fn every_poll_that_waits_ends_with_the_session() {
    let mut site = Site::with(Config { uni_streams: 0, bi_streams: 0, ..Config::default() });
    let (mut client, _server) = site.session();
    let noop = &mut Context::from_waker(Waker::noop());
    // Those that HTTP/3 would need for QPACK are left over.
    let mut spare = Vec::new();
    while let Poll::Ready(opened) = client.poll_open_uni(noop) {
        spare.push(opened.unwrap());
    }
    assert_eq!(spare.len(), 2);
    assert!(client.poll_accept_uni(noop).is_pending());
    let closer = client.clone();
    closer.close(3, b"");
    let local = |failure| assert!(matches!(failure, Failure::Closed { code: 3, by: By::Local, .. }));
    local(until(|cx| client.poll_open_uni(cx)).unwrap_err());
    local(until(|cx| client.poll_open_bi(cx)).unwrap_err());
    local(until(|cx| client.poll_accept_uni(cx)).unwrap_err());
    local(until(|cx| client.poll_accept_bi(cx)).unwrap_err());
    local(until(|cx| client.poll_datagram(cx)).unwrap_err());
    local(until(|cx| client.poll_closed(cx)));
}

#[test]
fn the_last_one_dropped_ends_the_session() {
    let mut site = Site::new();
    let (client, mut server) = site.session();
    drop(client);
    let end = until(|cx| server.poll_closed(cx));
    assert!(matches!(end, Failure::Closed { code: 0, by: By::Peer, .. }), "{end:?}");
}

#[test]
fn rejected_clients_are_told_the_status() {
    let mut site = Site::new();
    let connecting = site.connect("/nowhere");
    site.request().reject(403).unwrap();
    assert!(matches!(wait(connecting), Err(Failure::Rejected { status: 403 })));
    let connecting = site.connect("/nowhere");
    drop(site.request());
    assert!(matches!(wait(connecting), Err(Failure::Rejected { status: 404 })));
    let connecting = site.connect("/nowhere");
    assert!(matches!(site.request().reject(200), Err(Failure::Config(_))));
    assert!(matches!(wait(connecting), Err(Failure::Rejected { status: 404 })));
}

#[test]
fn one_port_serves_both_and_sessions_can_be_switched() {
    let mut site = Site::new();
    let raw =
        connect(engine(), target(site.listener.local_address()), client_tls(&site.tls), Config::default());
    assert!(!accept(&mut site.listener).is_web());
    wait(raw).unwrap();
    site.session();
    site.listener.set_web(false).unwrap();
    let refused = wait(site.connect("/")).unwrap_err();
    assert!(matches!(refused, Failure::Tls { alert: Some(120), .. }), "{refused:?}");
    // One that offers `h3` by itself gets it raw.
    let tls = ServerTls { alpn: vec![b"h3".to_vec()], ..site.tls.clone() };
    site.listener.reload_tls(&tls).unwrap();
    let client = site.raw();
    assert!(!accept(&mut site.listener).is_web());
    drop(client);
    site.listener.set_web(true).unwrap();
    site.session();
}

#[test]
fn urls_that_are_not_of_sessions_are_refused() {
    let site = Site::new();
    for url in ["http://localhost/", "https:///", "room", "https://user@localhost/", "https://localhost/#a"] {
        let target = target(site.listener.local_address());
        let failure = wait(web::connect(engine(), target, url, client_tls(&site.tls), Config::default()));
        assert!(matches!(failure, Err(Failure::Config(_))), "{url}: {failure:?}");
    }
}

#[test]
fn a_server_without_sessions_is_told_apart() {
    let tls = ServerTls { alpn: vec![b"h3".to_vec()], ..server_tls() };
    let mut listener = listener(&tls, Config::default(), Admission::default());
    let target = target(listener.local_address());
    let connecting =
        web::connect(engine(), target, "https://localhost/", client_tls(&tls), Config::default());
    let mut server = accept(&mut listener);
    // A control stream with empty settings.
    let mut control = open_uni(&mut server);
    write(&mut control, &[0x00, 0x04, 0x00]).unwrap();
    assert!(matches!(wait(connecting), Err(Failure::Protocol(_))));
}

/// A failed request ends the connection, and is counted.
fn fails(request: &[u8]) -> Failure {
    let mut site = Site::new();
    let mut client = site.raw();
    let mut control = open_uni(&mut client);
    write(&mut control, SETTINGS).unwrap();
    let (mut send, _receive) = open_bi(&mut client);
    say(&mut send, request);
    let end = until(|cx| client.poll_closed(cx));
    assert!(site.listener.poll_accept(&mut Context::from_waker(Waker::noop())).is_pending());
    let failures = site.listener.stats().failures;
    assert!(failures.len() == 1 && failures[0].contains("request"), "{failures:?}");
    end
}

#[test]
fn bad_headers_end_the_attempt_and_nothing_else() {
    // A frame of headers that are not QPACK; a frame that is too long; one that ends early.
    for request in [&[0x01, 0x03, 0xff, 0xff, 0xff][..], &[0x01, 0xbf, 0xff, 0xff, 0xff], &[0x01, 0x05, 0x00]]
    {
        let end = fails(request);
        assert!(matches!(end, Failure::Closed { by: By::Peer, .. }), "{request:?}: {end:?}");
    }
}

#[test]
fn bad_settings_end_the_attempt() {
    let site = Site::new();
    let mut client = site.raw();
    let mut control = open_uni(&mut client);
    // The frame of settings has half a setting in it.
    write(&mut control, &[0x00, 0x04, 0x01, 0x08]).unwrap();
    let end = until(|cx| client.poll_closed(cx));
    assert!(matches!(end, Failure::Closed { code: 0x109, by: By::Peer, .. }), "{end:?}");
}

#[test]
fn streams_of_other_kinds_and_sessions_are_refused_and_harm_no_session() {
    let mut site = Site::new();
    let mut client = site.raw();
    let mut control = open_uni(&mut client);
    write(&mut control, SETTINGS).unwrap();
    // Streams of the session may come before its request; those of others, too.
    let mut open = |header: &[u8]| {
        let mut send = open_uni(&mut client);
        write(&mut send, header).unwrap();
        send
    };
    let mut ours = open(b"\x40\x54\x00ours");
    let mut others = [open(&[0x01]), open(&[0x00]), open(&[0x40, 0x54, 0x08])];
    let half = open(&[0x40]);
    let (mut send, mut receive) = open_bi(&mut client);
    let (mut again, _receive) = open_bi(&mut client);
    let mut request = Vec::new();
    ConnectRequest::new(site.url("/room").parse::<url::Url>().unwrap()).encode(&mut request).unwrap();
    write(&mut send, &request).unwrap();
    write(&mut again, &request).unwrap();
    let mut server = wait(site.request().accept()).unwrap();
    let answer = read(&mut receive, 1000).unwrap();
    assert!(ConnectResponse::decode(&mut &answer[..]).is_ok());
    let mut theirs = accept_uni(&mut server);
    assert_eq!(read(&mut theirs, 100).unwrap(), b"ours");
    for send in others.iter_mut().chain([&mut again]) {
        assert!(until(|cx| send.poll_stopped(cx)).unwrap().is_some());
    }
    // One whose header is not there yet may still become ours.
    let mut half = half;
    write(&mut half, b"\x54\x00late").unwrap();
    assert_eq!(read(&mut accept_uni(&mut server), 100).unwrap(), b"late");
    write(&mut ours, b" still").unwrap();
    assert_eq!(read(&mut theirs, 100).unwrap(), b" still");
    // Datagrams of other sessions are not given out.
    assert!(client.try_send_datagram(Bytes::from_static(&[9, 1])).unwrap());
    assert!(client.try_send_datagram(Bytes::from_static(&[0, 2])).unwrap());
    assert_eq!(until(|cx| server.poll_datagram(cx)).unwrap(), &[2][..]);
    // The end of the request's stream is the session's.
    send.finish().unwrap();
    let end = until(|cx| server.poll_closed(cx));
    assert!(matches!(end, Failure::Closed { code: 0, by: By::Peer, .. }), "{end:?}");
}
