//! Handshakes: what fails, in whose words; retry, early data, certificates that change.

mod certificates;
mod rig;

use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, mpsc};
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;

use certificates::{Authority, Kind, NAME};
use rig::gate::Gate;
use rig::*;
use wayferry_net::endpoint::{
    Admission, By, ClientTls, Clients, Config, Connection, Failure, Listener, Ready, Retry, ServerTls,
    ServerTrust, Target, TicketStore, connect,
};
use wayferry_net::{Fingerprint, Identity, Roots};

fn try_connect(address: SocketAddr, tls: ClientTls, config: Config) -> Result<Connection, Failure> {
    wait(connect(engine(), target(address), tls, config))
}

fn tls_failure(result: Result<Connection, Failure>) -> (Option<u8>, String) {
    match result {
        Err(Failure::Tls { alert, text }) => (alert, text),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_certificate_that_is_not_pinned_is_refused_by_name() {
    let tls = server_tls();
    let listener = listener(&tls, Config::default(), Admission::default());
    let other = ClientTls { trust: ServerTrust::Pins(vec![Fingerprint([7; 32])]), ..client_tls(&tls) };
    let (alert, text) = tls_failure(try_connect(listener.local_address(), other, Config::default()));
    assert_eq!((alert, text.contains("pinned")), (Some(49), true), "{text}");
    assert!(text.starts_with("access_denied: "), "{text}");
    // Who pins nothing takes anyone.
    let insecure = ClientTls { trust: ServerTrust::Insecure, ..client_tls(&tls) };
    try_connect(listener.local_address(), insecure, Config::default()).unwrap();
    let pins = vec![Fingerprint([7; 32]), tls.identity.fingerprint()];
    let several = ClientTls { trust: ServerTrust::Pins(pins), ..client_tls(&tls) };
    try_connect(listener.local_address(), several, Config::default()).unwrap();
}

#[test]
fn protocols_that_do_not_match_are_named() {
    let tls = server_tls();
    let listener = listener(&tls, Config::default(), Admission::default());
    let other = ClientTls { alpn: vec![b"other".to_vec()], ..client_tls(&tls) };
    let (alert, text) = tls_failure(try_connect(listener.local_address(), other, Config::default()));
    assert_eq!(
        (alert, text.as_str()),
        (Some(120), "no_application_protocol: says the peer: peer doesn't support any known protocol")
    );
    let failures = listener.stats().failures;
    assert!(failures[0].contains("no_application_protocol"), "{failures:?}");
}

#[test]
fn faults_of_certificates_are_named() {
    let authority = Authority::new();
    let roots = Roots::from_pem(&std::fs::read(authority.ca()).unwrap()).unwrap();
    for (kind, alert, word) in [
        (Kind::Expired, 45, "has expired"),
        (Kind::NotYetValid, 45, "not valid yet"),
        (Kind::SelfSigned, 0, "self-signed"),
        (Kind::OtherAuthority, 48, "not trusted"),
        (Kind::OtherName, 42, "is not for `host.test`"),
    ] {
        let tls = ServerTls { identity: Arc::new(authority.identity(kind)), ..server_tls() };
        let listener = listener(&tls, Config::default(), Admission::default());
        let client = ClientTls {
            trust: ServerTrust::Roots(roots.clone()),
            server_name: Some(NAME.into()),
            ..client_tls(&tls)
        };
        let (said, text) = tls_failure(try_connect(listener.local_address(), client, Config::default()));
        assert!(text.contains(word), "{kind:?}: {text}");
        assert!(alert == 0 || said == Some(alert), "{kind:?}: {said:?}");
    }
    let tls = ServerTls { identity: Arc::new(authority.identity(Kind::Good)), ..server_tls() };
    let mut listener = listener(&tls, Config::default(), Admission::default());
    let client =
        ClientTls { trust: ServerTrust::Roots(roots), server_name: Some(NAME.into()), ..client_tls(&tls) };
    let client = try_connect(listener.local_address(), client, Config::default()).unwrap();
    assert_eq!(accept(&mut listener).server_name().as_deref(), Some(NAME));
    assert_eq!(client.peer_certificates().len(), 1);
}

#[test]
fn clients_show_a_certificate_where_one_is_wanted() {
    let identity = Arc::new(Identity::ephemeral().unwrap());
    let tls = ServerTls { clients: Clients::Pins(vec![identity.fingerprint()]), ..server_tls() };
    let mut listener = listener(&tls, Config::default(), Admission::default());
    let address = listener.local_address();
    let known = ClientTls { identity: Some(identity), ..client_tls(&tls) };
    try_connect(address, known, Config::default()).unwrap();
    assert_eq!(accept(&mut listener).peer_certificates().len(), 1);
    // In TLS 1.3 a client hears it only after its own part is done.
    let end = |tls| match try_connect(address, tls, Config::default()) {
        Ok(mut connection) => until(|cx| connection.poll_closed(cx)),
        Err(failure) => failure,
    };
    let none = end(client_tls(&tls));
    assert!(matches!(none, Failure::Tls { alert: Some(116), .. }), "{none:?}");
    let stranger = Some(Arc::new(Identity::ephemeral().unwrap()));
    let other = end(ClientTls { identity: stranger, ..client_tls(&tls) });
    assert!(matches!(other, Failure::Tls { alert: Some(49), .. }), "{other:?}");
    assert!(listener.poll_accept(&mut Context::from_waker(Waker::noop())).is_pending());
}

#[test]
fn clients_may_be_known_by_their_authority() {
    let authority = Authority::new();
    let roots = Roots::load(Some(&authority.ca())).unwrap();
    let tls = ServerTls { clients: Clients::Roots(roots), ..server_tls() };
    let mut listener = listener(&tls, Config::default(), Admission::default());
    let identity = Some(Arc::new(authority.identity(Kind::Good)));
    let client = ClientTls { identity, ..client_tls(&tls) };
    try_connect(listener.local_address(), client, Config::default()).unwrap();
    assert_eq!(accept(&mut listener).peer_certificates().len(), 1);
}

#[test]
fn a_closed_port_refuses() {
    let socket = UdpSocket::bind(loopback()).unwrap();
    let address = socket.local_addr().unwrap();
    drop(socket);
    let failure = try_connect(address, client_tls(&server_tls()), Config::default()).unwrap_err();
    let Failure::Closed { code: 0, reason, by: By::Refused } = failure else { panic!("{failure:?}") };
    assert!(reason.contains(&address.port().to_string()), "{reason}");
}

#[test]
fn a_silent_port_times_out() {
    let silent = UdpSocket::bind(loopback()).unwrap();
    let config = Config { handshake_timeout: Duration::from_millis(300), ..Config::default() };
    let failure = try_connect(silent.local_addr().unwrap(), client_tls(&server_tls()), config).unwrap_err();
    assert!(matches!(failure, Failure::Closed { code: 0, by: By::Timeout, .. }), "{failure:?}");
}

#[test]
fn silence_ends_a_connection() {
    let tls = server_tls();
    let mut listener = listener(&tls, Config::default(), Admission::default());
    let gate = Gate::before(listener.local_address());
    let config = Config { idle_timeout: Some(Duration::from_millis(500)), ..Config::default() };
    let mut client = try_connect(gate.address(), client_tls(&tls), config).unwrap();
    let mut server = accept(&mut listener);
    // The one that gives up later would be told so by the other.
    gate.shut();
    for connection in [&mut client, &mut server] {
        let end = until(|cx| connection.poll_closed(cx));
        assert!(matches!(end, Failure::Closed { code: 0, by: By::Timeout, .. }), "{end:?}");
    }
}

#[test]
fn what_cannot_be_asked_for_is_refused_at_once() {
    let tls = client_tls(&server_tls());
    let nowhere = Target { addresses: Vec::new(), ..target(loopback()) };
    let failure = wait(connect(engine(), nowhere, tls.clone(), Config::default()));
    assert!(matches!(failure, Err(Failure::Config(_))));
    let nameless = Target { server_name: "two words".into(), ..target(([127, 0, 0, 1], 9).into()) };
    let failure = wait(connect(engine(), nameless, tls.clone(), Config::default()));
    assert!(matches!(failure, Err(Failure::Config(text)) if text.contains("two words")));
    let config = Config { stream_window: 0, ..Config::default() };
    assert!(matches!(try_connect(loopback(), tls, config), Err(Failure::Config(_))));
    let taken = UdpSocket::bind(loopback()).unwrap().local_addr().unwrap();
    let first = Listener::bind(engine(), taken, &server_tls(), Config::default(), Admission::default());
    let second = Listener::bind(engine(), taken, &server_tls(), Config::default(), Admission::default());
    assert!(first.is_ok() && matches!(second, Err(Failure::Io(_))));
}

#[test]
fn the_next_address_is_tried_when_one_does_not_answer() {
    let tls = server_tls();
    let listener = listener(&tls, Config::default(), Admission::default());
    let silent = UdpSocket::bind(loopback()).unwrap();
    let addresses = vec![silent.local_addr().unwrap(), listener.local_address()];
    let both = Target { addresses, ..target(loopback()) };
    let connection = wait(connect(engine(), both, client_tls(&tls), Config::default())).unwrap();
    assert_eq!(connection.remote_address(), listener.local_address());
}

#[test]
fn addresses_are_validated_where_that_is_wanted() {
    let tls = server_tls();
    let admission = Admission { retry: Retry::Always, ..Admission::default() };
    let mut listener = listener(&tls, Config::default(), admission);
    try_connect(listener.local_address(), client_tls(&tls), Config::default()).unwrap();
    accept(&mut listener);
    let stats = listener.stats();
    assert_eq!((stats.accepted, stats.retried, stats.failed), (1, 1, 0));
}

/// A client whose handshake does not come to its end.
fn stick(listener: &Listener, tls: &ServerTls) -> (Gate, impl Sized + use<>) {
    eventually(|| listener.stats().half_open == 0);
    let gate = Gate::before(listener.local_address());
    gate.shut();
    let connecting = connect(engine(), target(gate.address()), client_tls(tls), Config::default());
    eventually(|| listener.stats().half_open > 0);
    (gate, connecting)
}

#[test]
fn under_load_addresses_are_validated() {
    let tls = server_tls();
    let config = Config { half_open: 4, ..Config::default() };
    let listener = listener(&tls, config, Admission::default());
    try_connect(listener.local_address(), client_tls(&tls), Config::default()).unwrap();
    assert_eq!(listener.stats().retried, 0);
    let _stuck = stick(&listener, &tls);
    try_connect(listener.local_address(), client_tls(&tls), Config::default()).unwrap();
    assert_eq!(listener.stats().retried, 1);
}

#[test]
fn too_many_handshakes_are_refused_and_stuck_ones_given_up() {
    let tls = server_tls();
    let handshake_timeout = Duration::from_millis(500);
    let config = Config { half_open: 1, handshake_timeout, ..Config::default() };
    let admission = Admission { retry: Retry::Never, ..Admission::default() };
    let listener = listener(&tls, config, admission);
    let _stuck = stick(&listener, &tls);
    let failure = try_connect(listener.local_address(), client_tls(&tls), Config::default()).unwrap_err();
    // CONNECTION_REFUSED
    assert!(matches!(failure, Failure::Closed { code: 2, by: By::Transport, .. }), "{failure:?}");
    // Anybody could have said so, so it is tried again.
    assert_eq!(listener.stats().refused, 4);
    eventually(|| listener.stats().failed > 0);
    let failures = listener.stats().failures;
    assert!(failures[0].contains("no handshake"), "{failures:?}");
}

/// A server that takes early data, a relay, and a client that has tickets.
struct Early {
    tls: ServerTls,
    listener: Listener,
    gate: Gate,
    tickets: TicketStore,
}

impl Early {
    fn new() -> Self {
        let tls = ServerTls { early_data: true, ..server_tls() };
        let mut listener = listener(&tls, Config::default(), Admission::default());
        let gate = Gate::before(listener.local_address());
        let tickets = TicketStore::new(10);
        let target = Target { early_data: true, ..target(gate.address()) };
        let client = ClientTls { tickets: Some(tickets.clone()), ..client_tls(&tls) };
        let first = wait(connect(engine(), target, client, Config::default())).unwrap();
        assert!(!first.is_early() && !until(|cx| first.poll_early_data_accepted(cx)).unwrap());
        accept(&mut listener);
        eventually(|| tickets.len() == 2);
        Self { tls, listener, gate, tickets }
    }

    /// A connection whose handshake waits for the gate to open.
    fn come_back(&self) -> Connection {
        self.gate.shut();
        let target = Target { early_data: true, ..target(self.gate.address()) };
        // Made again, as programs do.
        let client = ClientTls { tickets: Some(self.tickets.clone()), ..client_tls(&self.tls) };
        let connection = wait(connect(engine(), target, client, Config::default())).unwrap();
        assert!(connection.is_early());
        connection
    }
}

#[test]
fn early_data_arrives_before_the_handshake_is_complete() {
    let mut early = Early::new();
    let mut client = early.come_back();
    assert_eq!(early.tickets.len(), 1);
    say(&mut open_uni(&mut client), b"early");
    assert!(client.try_send_datagram(bytes::Bytes::from_static(b"bird")).unwrap());
    let (mut send, mut receive) = open_bi(&mut client);
    say(&mut send, b"question");
    let mut server = accept(&mut early.listener);
    assert!(server.is_early());
    let mut stream = accept_uni(&mut server);
    assert!(stream.is_early());
    assert_eq!(read_to_end(&mut stream).unwrap(), b"early");
    assert_eq!(until(|cx| server.poll_datagram(cx)).unwrap(), &b"bird"[..]);
    let (mut answer, mut question) = accept_bi(&mut server);
    assert!(question.is_early());
    assert_eq!(read_to_end(&mut question).unwrap(), b"question");
    say(&mut answer, b"answer");
    let noop = &mut Context::from_waker(Waker::noop());
    assert!(client.poll_early_data_accepted(noop).is_pending());
    early.gate.open();
    for _ in 0..2 {
        assert!(until(|cx| client.poll_early_data_accepted(cx)).unwrap());
    }
    assert_eq!(read_to_end(&mut receive).unwrap(), b"answer");
    assert!(!client.is_early());
    // What comes now is not early.
    say(&mut open_uni(&mut client), b"late");
    until(|cx| server.poll_early_data_accepted(cx)).unwrap();
    assert!(!accept_uni(&mut server).is_early());
}

#[test]
fn regression_a_ticket_of_another_connection_was_taken_for_its_own() {
    let early = Early::new();
    let client = early.come_back();
    let tls = ClientTls { tickets: Some(early.tickets.clone()), ..client_tls(&early.tls) };
    let other = try_connect(early.listener.local_address(), tls, Config::default()).unwrap();
    wait(other.ticket());
    assert!(other.has_ticket() && !client.has_ticket());
    early.gate.open();
    wait(client.ticket());
    assert!(client.has_ticket());
    // Until it is over, and at once where there is no store.
    let last = early.come_back();
    last.close(0, b"");
    wait(last.ticket());
    let address = early.listener.local_address();
    let bare = try_connect(address, client_tls(&early.tls), Config::default()).unwrap();
    wait(bare.ticket());
    assert!(!last.has_ticket() && !bare.has_ticket());
}

/// A server gives two tickets: who heard of the first held a lock that the engine needed for the second, and waited for
/// one that the engine held.
#[test]
fn regression_a_task_that_heard_of_a_ticket_and_the_engine_waited_for_each_other() {
    let (done, is_done) = mpsc::channel();
    thread::spawn(move || {
        let (engine, tls) = (fresh_engine(), ServerTls { early_data: true, ..server_tls() });
        let listener =
            Listener::bind(&engine, loopback(), &tls, Config::default(), Admission::default()).unwrap();
        for _ in 0..300 {
            let tls = ClientTls { tickets: Some(TicketStore::new(2)), ..client_tls(&tls) };
            let connecting = connect(&engine, target(listener.local_address()), tls, Config::default());
            let client = wait(connecting).unwrap();
            // Again and again, so that one is asked for while the second ticket comes.
            (0..100).for_each(|_| wait(client.ticket()));
        }
        done.send(()).unwrap();
    });
    is_done.recv_timeout(LIMIT).expect("neither waits for the other");
}

#[test]
fn early_data_that_is_not_taken_is_announced() {
    let mut early = Early::new();
    // The listener forgets its tickets.
    early.listener.reload_tls(&early.tls).unwrap();
    let mut client = early.come_back();
    let mut send = open_uni(&mut client);
    write(&mut send, b"early").unwrap();
    early.gate.open();
    for _ in 0..2 {
        assert!(!until(|cx| client.poll_early_data_accepted(cx)).unwrap());
    }
    assert!(matches!(write(&mut send, b"more"), Err(Failure::EarlyDataRejected)));
    assert!(matches!(until(|cx| send.poll_stopped(cx)), Err(Failure::EarlyDataRejected)));
    say(&mut open_uni(&mut client), b"again");
    let mut server = accept(&mut early.listener);
    assert_eq!(read_to_end(&mut accept_uni(&mut server)).unwrap(), b"again");
}

/// Streams of early data that was not taken, and the new ones that have their numbers.
#[test]
fn regression_a_stream_that_was_refused_harms_none_with_its_number() {
    let mut early = Early::new();
    early.listener.reload_tls(&early.tls).unwrap();
    let mut client = early.come_back();
    let (mut old_send, old_receive) = open_bi(&mut client);
    let mut old_uni = open_uni(&mut client);
    write(&mut old_send, b"early").unwrap();
    write(&mut old_uni, b"early").unwrap();
    early.gate.open();
    assert!(!until(|cx| client.poll_early_data_accepted(cx)).unwrap());
    let (mut send, mut receive) = open_bi(&mut client);
    let mut uni = open_uni(&mut client);
    assert_eq!((send.id(), uni.id()), (old_send.id(), old_uni.id()));
    write(&mut send, b"first half, ").unwrap();
    write(&mut uni, b"first half, ").unwrap();
    assert!(matches!(old_uni.finish(), Err(Failure::EarlyDataRejected)));
    assert!(matches!(old_send.set_priority(1), Err(Failure::EarlyDataRejected)));
    assert!(matches!(old_send.finish(), Err(Failure::EarlyDataRejected)));
    // One that waits is still woken when an old one is dropped.
    let ready = Ready::new().unwrap();
    let waker = ready.waker(ready.token());
    assert!(receive.poll_read(&mut Context::from_waker(&waker), &mut Vec::new(), 10).is_pending());
    drop((old_send, old_receive, old_uni));
    say(&mut send, b"second half");
    say(&mut uni, b"second half");
    let mut server = accept(&mut early.listener);
    assert_eq!(read_to_end(&mut accept_uni(&mut server)).unwrap(), b"first half, second half");
    let (mut back, mut there) = accept_bi(&mut server);
    assert_eq!(read_to_end(&mut there).unwrap(), b"first half, second half");
    say(&mut back, b"answer");
    assert!(ready.wait(Some(LIMIT)), "no reader is woken");
    assert_eq!(read_to_end(&mut receive).unwrap(), b"answer");
}

#[test]
fn a_handshake_that_fails_after_early_data_is_told_again_and_again() {
    let early = Early::new();
    early.gate.shut();
    let target = Target { early_data: true, ..target(early.gate.address()) };
    let client = ClientTls { tickets: Some(early.tickets.clone()), ..client_tls(&early.tls) };
    let config = Config { handshake_timeout: Duration::from_millis(200), ..Config::default() };
    let mut client = wait(connect(engine(), target, client, config)).unwrap();
    for _ in 0..2 {
        let failure = until(|cx| client.poll_early_data_accepted(cx)).unwrap_err();
        assert!(matches!(failure, Failure::Closed { by: By::Timeout, .. }), "{failure:?}");
    }
    let end = until(|cx| client.poll_closed(cx));
    assert!(matches!(end, Failure::Closed { by: By::Timeout, .. }), "{end:?}");
    assert!(matches!(until(|cx| client.poll_open_uni(cx)), Err(Failure::Closed { by: By::Timeout, .. })));
}

#[test]
fn certificates_change_for_those_who_come_later() {
    let (old, new) = (server_tls(), server_tls());
    let mut listener = listener(&old, Config::default(), Admission::default());
    let address = listener.local_address();
    let mut before = try_connect(address, client_tls(&old), Config::default()).unwrap();
    let mut server = accept(&mut listener);
    listener.reload_tls(&new).unwrap();
    try_connect(address, client_tls(&new), Config::default()).unwrap();
    tls_failure(try_connect(address, client_tls(&old), Config::default()));
    say(&mut open_uni(&mut before), b"still here");
    assert_eq!(read_to_end(&mut accept_uni(&mut server)).unwrap(), b"still here");
}

#[test]
fn a_listener_that_closes_ends_its_connections() {
    let mut pair = pair();
    pair.listener.close(6, b"closing time");
    pair.listener.close(7, b"again");
    assert!(until(|cx| pair.listener.poll_accept(cx)).is_none());
    let ours = until(|cx| pair.server.poll_closed(cx));
    assert!(matches!(ours, Failure::Closed { code: 6, by: By::Local, .. }), "{ours:?}");
    let theirs = until(|cx| pair.client.poll_closed(cx));
    assert!(matches!(theirs, Failure::Closed { code: 6, by: By::Peer, .. }), "{theirs:?}");
    wait(pair.listener.idle());
}

#[test]
fn a_listener_that_stops_or_goes_leaves_its_connections() {
    let tls = server_tls();
    let mut listener = listener(&tls, Config::default(), Admission::default());
    let address = listener.local_address();
    let mut client = try_connect(address, client_tls(&tls), Config::default()).unwrap();
    let mut server = accept(&mut listener);
    listener.stop();
    assert!(until(|cx| listener.poll_accept(cx)).is_none());
    let short = Config { handshake_timeout: Duration::from_millis(300), ..Config::default() };
    try_connect(address, client_tls(&tls), short).unwrap_err();
    drop(listener);
    say(&mut open_uni(&mut client), b"still here");
    assert_eq!(read_to_end(&mut accept_uni(&mut server)).unwrap(), b"still here");
}

/// A panic under a lock of noq's would end the process.
#[test]
fn regression_a_listener_that_stops_while_clients_arrive_harms_no_later_connection() {
    let tls = server_tls();
    for round in 0..6 {
        let retry = [Retry::Never, Retry::Always][round % 2];
        let admission = Admission { retry, ..Admission::default() };
        let listener = listener(&tls, Config::default(), admission);
        let short = Config { handshake_timeout: Duration::from_millis(500), ..Config::default() };
        let connect =
            |_| connect(engine(), target(listener.local_address()), client_tls(&tls), short.clone());
        let mut clients: Vec<_> = (0..60).map(connect).collect();
        eventually(|| listener.stats().open > 0 || listener.stats().retried > 0);
        match round % 3 {
            0 => listener.stop(),
            1 => listener.close(0, b""),
            _ => drop(listener),
        }
        // Their next packets come meanwhile.
        clients.drain(..).for_each(|client| drop(wait(client)));
    }
    pair();
}

/// The socket closed when no connection was left, and a handshake that had only just begun was none yet.
#[test]
fn regression_a_handshake_that_has_begun_outlives_the_listener_that_stops() {
    let tls = server_tls();
    for _ in 0..150 {
        let listener =
            listener(&tls, Config::default(), Admission { retry: Retry::Never, ..Admission::default() });
        let client = connect(engine(), target(listener.local_address()), client_tls(&tls), Config::default());
        let begun = || listener.stats().half_open > 0 || listener.stats().accepted > 0;
        eventually(begun);
        listener.stop();
        wait(client).unwrap();
    }
}

#[test]
fn secrets_and_events_are_written_where_that_is_wanted() {
    let directory = std::env::temp_dir().join(format!("wayferry-endpoint-{}", std::process::id()));
    std::fs::create_dir(&directory).unwrap();
    let keylog = directory.join("keys");
    let qlog = cfg!(feature = "qlog").then(|| directory.join("qlog"));
    let config = Config { keylog: Some(keylog.clone()), qlog: qlog.clone(), ..Config::default() };
    let mut pair = pair_with(config.clone(), config);
    say(&mut open_uni(&mut pair.client), b"x");
    read_to_end(&mut accept_uni(&mut pair.server)).unwrap();
    let keys = std::fs::read_to_string(&keylog).unwrap();
    let secrets = |label: &str| keys.lines().filter(|line| line.starts_with(label)).count();
    assert_eq!((secrets("CLIENT_TRAFFIC_SECRET_0 "), secrets("EXPORTER_SECRET ")), (2, 2), "{keys}");
    if let Some(qlog) = qlog {
        assert_eq!(std::fs::read_dir(qlog).unwrap().count(), 2);
    } else {
        let wanted = Config { qlog: Some(directory.clone()), ..Config::default() };
        assert!(matches!(wanted.check(), Err(Failure::Config(_))));
    }
    std::fs::remove_dir_all(directory).unwrap();
}

#[cfg(feature = "qlog")]
#[test]
fn of_two_clients_on_one_socket_only_that_which_asks_writes_qlog() {
    let directory = std::env::temp_dir().join(format!("wayferry-endpoint-qlog-{}", std::process::id()));
    let tls = server_tls();
    let mut listener = listener(&tls, Config::default(), Admission::default());
    let engine = fresh_engine();
    let mut join = |config| {
        let connecting = connect(&engine, target(listener.local_address()), client_tls(&tls), config);
        let server = accept(&mut listener);
        (wait(connecting).unwrap(), server)
    };
    let mut both =
        [join(Config { qlog: Some(directory.clone()), ..Config::default() }), join(Config::default())];
    assert_eq!(both[0].0.local_address(), both[1].0.local_address());
    for (client, server) in &mut both {
        say(&mut open_uni(client), b"x");
        assert_eq!(read_to_end(&mut accept_uni(server)).unwrap(), b"x");
    }
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 1);
    std::fs::remove_dir_all(directory).unwrap();
}
