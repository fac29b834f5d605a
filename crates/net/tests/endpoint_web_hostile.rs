//! WebTransport with peers that end a session as they should not, or do not let it begin.

mod rig;

use std::time::Duration;

use rig::*;
use wayferry_net::endpoint::{
    Accepted, Admission, By, ClientTls, Config, Connection, Failure, Listener, ReceiveStream, Retry,
    SendStream, connect, web,
};
use web_transport_proto::{ConnectRequest, ConnectResponse, Settings};

const WEB: Admission = Admission { retry: Retry::Auto, web: true };

/// The settings of a client that does WebTransport, behind the stream's type.
const SETTINGS: &[u8] =
    &[0x00, 0x04, 0x0e, 0x08, 0x01, 0x33, 0x01, 0xab, 0x60, 0x37, 0x42, 0x01, 0xab, 0x60, 0x37, 0x43, 0x01];

/// RFC 9114 §8.1.
const MESSAGE_ERROR: u64 = 0x10e;
const NO_ERROR: u64 = 0x100;

/// A client that has asked for a session, and speaks HTTP/3 by hand.
struct Client {
    connection: Connection,
    send: SendStream,
    receive: ReceiveStream,
    _control: SendStream,
    _listener: Listener,
}

fn request(client: Config, server: Config) -> (Client, web::Request) {
    let tls = server_tls();
    let mut listener = listener(&tls, server, WEB);
    let client_tls = ClientTls { alpn: vec![b"h3".to_vec()], ..client_tls(&tls) };
    let mut connection =
        wait(connect(engine(), target(listener.local_address()), client_tls, client)).unwrap();
    let mut control = open_uni(&mut connection);
    write(&mut control, SETTINGS).unwrap();
    let (mut send, receive) = open_bi(&mut connection);
    let mut request = Vec::new();
    ConnectRequest::new("https://localhost/room".parse::<url::Url>().unwrap()).encode(&mut request).unwrap();
    write(&mut send, &request).unwrap();
    let Some(Accepted::Web(request)) = until(|cx| listener.poll_accept(cx)) else { panic!("no request") };
    (Client { connection, send, receive, _control: control, _listener: listener }, request)
}

fn session() -> (Client, Connection) {
    let (mut client, request) = request(Config::default(), Config::default());
    let server = wait(request.accept()).unwrap();
    let answer = read(&mut client.receive, 1000).unwrap();
    assert!(ConnectResponse::decode(&mut &answer[..]).is_ok());
    (client, server)
}

/// The session was ended as one whose end cannot be read, and everybody is told so.
fn is_malformed(client: &mut Client, server: &mut Connection) {
    let ours = |failure| {
        assert!(
            matches!(failure, Failure::Closed { code: MESSAGE_ERROR, by: By::Transport, .. }),
            "{failure:?}"
        );
    };
    ours(until(|cx| server.poll_closed(cx)));
    ours(until(|cx| server.poll_accept_uni(cx)).unwrap_err());
    let theirs = until(|cx| client.connection.poll_closed(cx));
    assert!(matches!(theirs, Failure::Closed { code: MESSAGE_ERROR, by: By::Peer, .. }), "{theirs:?}");
}

#[test]
fn a_whole_capsule_that_is_too_short_is_not_waited_for() {
    // The last one is longer than it may be.
    for payload in [&[0x68, 0x43, 0x00][..], &[0x68, 0x43, 0x03, 1, 2, 3], &[0x68, 0x43, 0x44, 5, 0]] {
        let (mut client, mut server) = session();
        write(&mut client.send, &[&[0x00, payload.len() as u8], payload].concat()).unwrap();
        is_malformed(&mut client, &mut server);
    }
}

#[test]
fn capsules_without_end_are_skipped_without_being_kept() {
    let (mut client, mut server) = session();
    // A frame of 2^40 bytes with a capsule of nearly as many, of an unknown kind.
    write(&mut client.send, &[0x00, 0xc0, 0, 1, 0, 0, 0, 0, 0, 0x3f, 0xc0, 0, 0, 255, 0, 0, 0, 0]).unwrap();
    for _ in 0..100 {
        write(&mut client.send, &pattern(100_000)).unwrap();
    }
    // The session goes on.
    let mut uni = open_uni(&mut client.connection);
    say(&mut uni, b"\x40\x54\x00still");
    assert_eq!(read_to_end(&mut accept_uni(&mut server)).unwrap(), b"still");
}

#[test]
fn what_ends_within_a_frame_is_malformed() {
    let (mut client, mut server) = session();
    say(&mut client.send, &[0x00, 0x05, 0x68, 0x43]);
    is_malformed(&mut client, &mut server);
}

#[test]
fn a_reset_of_the_request_is_the_peers_end() {
    let (mut client, mut server) = session();
    client.send.reset(0x10c);
    let end = until(|cx| server.poll_closed(cx));
    let Failure::Closed { code: 0, by: By::Peer, reason } = end else { panic!("{end:?}") };
    assert!(reason.contains("reset"), "{reason}");
    let over = until(|cx| server.poll_accept_uni(cx)).unwrap_err();
    assert!(matches!(over, Failure::Closed { code: 0, by: By::Peer, .. }), "{over:?}");
    let theirs = until(|cx| client.connection.poll_closed(cx));
    assert!(matches!(theirs, Failure::Closed { code: NO_ERROR, by: By::Peer, .. }), "{theirs:?}");
}

#[test]
fn a_client_that_takes_no_answer_is_not_waited_for() {
    // Room for the server's settings and not for its answer, as this client reads neither.
    let mut settings = Settings::default();
    settings.enable_webtransport(1);
    let mut bytes = Vec::new();
    settings.encode(&mut bytes);
    let connection_window = bytes.len() as u32 + 1;
    let client = Config { connection_window, keep_alive: Some(Duration::from_secs(5)), ..Config::default() };
    let server = Config { handshake_timeout: Duration::from_secs(2), ..Config::default() };
    let (mut client, request) = request(client, server);
    let failure = wait(request.accept()).unwrap_err();
    let Failure::Closed { by: By::Timeout, reason, .. } = failure else { panic!("{failure:?}") };
    assert!(reason.contains("no handshake"), "{reason}");
    let theirs = until(|cx| client.connection.poll_closed(cx));
    assert!(matches!(theirs, Failure::Closed { code: NO_ERROR, by: By::Peer, .. }), "{theirs:?}");
}
