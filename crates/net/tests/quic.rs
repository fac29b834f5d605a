//! The QUIC carrier over loopback: what the run loop sees of streams, verdicts, trouble and the end.

mod common;

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use common::*;
use wayferry_net::quic::{ConnectError, Connected, ListenError, Listener, Options, connect};
use wayferry_net::{Admitted, Carrier, Identity, Peers};
use wayferry_proto::{Arrival, Class, CloseReason, StreamId, Transmit};

const LOCAL: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
const PATIENCE: Duration = Duration::from_secs(20);

/// Both sides of a connection; fields drop in this order.
struct Pair {
    app: Box<dyn Carrier>,
    display: Box<dyn Carrier>,
    _listener: Listener,
}

fn pair_with(app_options: &Options, display_options: &Options) -> Pair {
    let (app, display) = (Identity::ephemeral().unwrap(), Identity::ephemeral().unwrap());
    let peers = Peers::Pinned(display.fingerprint());
    let mut listener = Listener::bind(LOCAL, None, &app, peers, app_options).unwrap();
    let address = [listener.local_addr()];
    let (connected, _) = connect(&address, &display, app.fingerprint(), PATIENCE, display_options).unwrap();
    assert_eq!((connected.peer, connected.address), (Some(app.fingerprint()), listener.local_addr()));
    let accepted = listener.accept(PATIENCE).unwrap();
    accepted.carrier.welcome();
    assert_eq!(accepted.peer, Some(display.fingerprint()));
    Pair { app: accepted.carrier, display: connected.carrier, _listener: listener }
}

fn pair() -> Pair {
    pair_with(&Options::default(), &Options::default())
}

fn listener(peers: Peers) -> (Listener, Identity) {
    let app = Identity::ephemeral().unwrap();
    (Listener::bind(LOCAL, None, &app, peers, &Options::default()).unwrap(), app)
}

fn try_connect(
    addresses: &[SocketAddr],
    app: &Identity,
    patience: Duration,
) -> Result<Connected, ConnectError> {
    let display = Identity::ephemeral().unwrap();
    connect(addresses, &display, app.fingerprint(), patience, &Options::default())
        .map(|(connected, _)| connected)
}

#[test]
fn messages_cross_in_both_directions() {
    let Pair { mut app, mut display, _listener } = pair();
    let big: Vec<u8> = (0..3_000_000u32).map(|at| (at * 7) as u8).collect();
    send_all(&mut *app, 0, Class::Content, big.clone());
    send_all(&mut *display, 0, Class::Events, &b"key"[..]);
    send_all(&mut *display, 1, Class::Wayland, &b""[..]);
    let to_app = Streams::receive(&mut *app, 2).whole;
    assert_eq!((&to_app[&0][..], &to_app[&1][..]), (&b"key"[..], &b""[..]));
    assert_eq!(Streams::receive(&mut *display, 1).whole[&0], big);
    wait_sent(&*app);
    let link = app.link();
    assert!(link.rtt > Duration::ZERO && link.window > 0 && link.rate.is_some());
    assert!(link.sent_bytes > 3_000_000 && link.sent_packets > 2000 && link.received_bytes > 0);
}

#[test]
fn a_key_passes_queued_bulk() {
    let Pair { mut app, mut display, _listener } = pair();
    send_all(&mut *app, 0, Class::Pipe, vec![1; 16 << 20]);
    send_all(&mut *app, 1, Class::Events, &b"key"[..]);
    let (mut bulk, mut key) = (0, false);
    while !key {
        match next(&mut *display) {
            Arrival::Data { stream: StreamId(1), .. } => key = true,
            Arrival::Data { bytes, .. } => bulk += bytes.len(),
            _ => {}
        }
    }
    assert!(bulk < 8 << 20, "{bulk} bytes of bulk came before the key");
}

#[test]
fn datagrams_pass_queued_bulk_and_are_as_large_as_the_link_says() {
    let Pair { mut app, mut display, _listener } = pair();
    let most = usize::from(app.link().datagram);
    assert!((1000..1452).contains(&most), "{most}");
    send_all(&mut *app, 0, Class::Pipe, vec![1; 16 << 20]);
    for length in [most + 600, most, 1] {
        app.transmit(Transmit::Datagram { bytes: vec![7; length].into() });
    }
    let (mut bulk, mut lengths) = (0, Vec::new());
    while lengths.len() < 2 {
        match next(&mut *display) {
            Arrival::Datagram { bytes } => lengths.push(bytes.len()),
            Arrival::Data { bytes, .. } => bulk += bytes.len(),
            _ => {}
        }
    }
    assert_eq!(lengths, [most, 1], "what is too large is lost");
    assert!(bulk < 8 << 20, "{bulk} bytes of bulk came before them");
}

/// noq closes a connection with "too many gaps in stream buffer" when a reader pauses in the middle of a stream.
#[test]
fn regression_a_run_loop_that_lags_blocks_no_stream_and_loses_nothing() {
    let Pair { mut app, mut display, _listener } = pair();
    // More than the window of one stream and of the connection; no caller takes it yet.
    for stream in 0..4 {
        send_all(&mut *app, stream, Class::Pipe, vec![stream as u8; 20 << 20]);
    }
    send_all(&mut *display, 0, Class::Events, &b"back"[..]);
    assert_eq!(Streams::receive(&mut *app, 1).whole[&0], b"back");
    assert!(app.link().unsent > 20 << 20);
    let whole = Streams::receive(&mut *display, 4).whole;
    assert!(whole.values().all(|bytes| bytes.len() == 20 << 20));
    wait_sent(&*app);
}

#[test]
fn ten_thousand_streams_in_one_session() {
    let Pair { mut app, mut display, _listener } = pair();
    for stream in 0..10_000u64 {
        send_all(&mut *app, stream, Class::Wayland, stream.to_be_bytes().to_vec());
    }
    let whole = Streams::receive(&mut *display, 10_000).whole;
    let mut numbers: Vec<_> =
        whole.values().map(|bytes| u64::from_be_bytes(bytes[..].try_into().unwrap())).collect();
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq(0..10_000));
}

#[test]
fn long_lived_streams_keep_their_order() {
    let Pair { mut app, mut display, _listener } = pair();
    open(&mut *app, 0, Class::Wayland);
    open(&mut *app, 1, Class::Events);
    let mut expected = [Vec::new(), Vec::new()];
    for step in 0..5000usize {
        let bytes: Vec<u8> = (0..step % 97).map(|byte| (byte + step) as u8).collect();
        expected[step % 2].extend_from_slice(&bytes);
        send(&mut *app, (step % 2) as u64, bytes, step >= 4998);
    }
    let whole = Streams::receive(&mut *display, 2).whole;
    // The peer's numbers are in the order of opening, and that is by priority only when somebody had to wait.
    assert_eq!((&whole[&0], &whole[&1]), (&expected[0], &expected[1]));
}

#[test]
fn stop_leads_to_a_reset_that_saves_the_rest() {
    let Pair { mut app, mut display, _listener } = pair();
    open(&mut *app, 0, Class::Pipe);
    send(&mut *app, 0, vec![0; 12 << 20], true);
    assert!(matches!(next(&mut *display), Arrival::Data { stream: StreamId(0), .. }));
    display.transmit(Transmit::Stop { stream: StreamId(0), code: 11 });
    assert_eq!(next(&mut *app), Arrival::Stopped { stream: StreamId(0), code: 11 });
    send(&mut *app, 0, vec![0; 100], true);
    // What was queued behind it comes although 12 MiB were handed over.
    send_all(&mut *app, 1, Class::Pipe, &b"next"[..]);
    loop {
        match next(&mut *display) {
            Arrival::Data { stream: StreamId(1), bytes, .. } => break assert_eq!(&bytes[..], b"next"),
            Arrival::Data { stream: StreamId(0), .. } => {}
            other => panic!("unexpected {other:?}"),
        }
    }
    wait_sent(&*app);
}

#[test]
fn a_reset_reaches_the_session() {
    let Pair { mut app, mut display, _listener } = pair();
    open(&mut *app, 0, Class::Wayland);
    send(&mut *app, 0, &b"some"[..], false);
    assert!(matches!(next(&mut *display), Arrival::Data { .. }));
    app.transmit(Transmit::Reset { stream: StreamId(0), code: 3 });
    assert_eq!(next(&mut *display), Arrival::Reset { stream: StreamId(0), code: 3 });
}

#[test]
fn streams_that_the_peer_does_not_admit_come_back() {
    let few = Options { streams: 2, ..Options::default() };
    let hasty = Options { open_timeout: Duration::from_millis(100), ..Options::default() };
    let Pair { mut app, mut display, _listener } = pair_with(&hasty, &few);
    for stream in 0..3 {
        open(&mut *app, stream, Class::Wayland);
        send(&mut *app, stream, &b"one"[..], false);
        send(&mut *app, stream, &b"two"[..], false);
    }
    let failed = |arrival| match arrival {
        Arrival::OpenFailed { stream, bytes, finish } => (stream.0, bytes.to_vec(), finish),
        other => panic!("unexpected {other:?}"),
    };
    assert_eq!(failed(next(&mut *app)), (2, b"one".to_vec(), false));
    assert_eq!(failed(next(&mut *app)), (2, b"two".to_vec(), false));
    send(&mut *app, 2, &b"three"[..], true);
    assert_eq!(failed(next(&mut *app)), (2, b"three".to_vec(), true));
    // The others live.
    send(&mut *app, 0, &b""[..], true);
    assert_eq!(Streams::receive(&mut *display, 1).whole[&0], b"onetwo");
}

#[test]
fn close_tells_both_sides_the_reason_after_the_messages() {
    let Pair { mut app, mut display, _listener } = pair();
    send_all(&mut *app, 0, Class::Pipe, vec![0; 8 << 20]);
    open(&mut *app, 1, Class::Control);
    send(&mut *app, 1, vec![3; 100_000], false);
    let reason = CloseReason::TooMuch("surfaces".into());
    close(&mut *app, &reason);
    let mut control = 0;
    let heard = loop {
        match next(&mut *display) {
            Arrival::Data { stream: StreamId(1), bytes, .. } => control += bytes.len(),
            Arrival::Closed { reason } => break reason,
            _ => {}
        }
    };
    assert_eq!((control, heard), (100_000, reason.clone()));
    assert_eq!(closed(&mut *app), reason);
    assert_eq!(app.poll_arrival(), None);
}

#[test]
fn the_display_may_close_too() {
    let Pair { mut app, mut display, _listener } = pair();
    close(&mut *display, &CloseReason::Done);
    assert_eq!(closed(&mut *app), CloseReason::Done);
    assert_eq!(closed(&mut *display), CloseReason::Done);
}

#[test]
fn a_dropped_carrier_is_a_lost_link_for_the_peer() {
    let Pair { mut app, display, _listener } = pair();
    drop(display);
    let reason = closed(&mut *app);
    assert_eq!(reason, CloseReason::LinkLost("the peer gave the link up".into()));
}

#[test]
fn a_closed_carrier_may_be_dropped_at_once() {
    let Pair { mut app, mut display, _listener } = pair();
    send_all(&mut *display, 0, Class::Events, vec![7; 1_000_000]);
    close(&mut *display, &CloseReason::Done);
    drop(display);
    assert_eq!(Streams::receive(&mut *app, 1).whole[&0].len(), 1_000_000);
    assert_eq!(closed(&mut *app), CloseReason::Done);
}

#[test]
fn silence_ends_a_connection() {
    let hasty = Options { idle_timeout: Duration::from_millis(300), ..Options::default() };
    let (app, display) = (Identity::ephemeral().unwrap(), Identity::ephemeral().unwrap());
    let mut listener = Listener::bind(LOCAL, None, &app, Peers::Secret, &hasty).unwrap();
    let relay = Relay::start(listener.local_addr());
    let (mut display, _) = connect(&[relay.address], &display, app.fingerprint(), PATIENCE, &hasty).unwrap();
    let mut app = listener.accept(PATIENCE).unwrap();
    app.carrier.welcome();
    relay.cut();
    assert!(matches!(closed(&mut *app.carrier), CloseReason::LinkLost(_)));
    assert!(matches!(closed(&mut *display.carrier), CloseReason::LinkLost(_)));
}

/// noq 1.4.0 panicked, and took the process with it, in one of twenty links that were cut right after the handshake:
/// see the segmentation offload in `Options::transport`.
#[test]
fn regression_loss_of_the_first_packets_is_survived() {
    let hasty = Options { idle_timeout: Duration::from_millis(300), ..Options::default() };
    let (app, display) = (Identity::ephemeral().unwrap(), Identity::ephemeral().unwrap());
    let mut listener = Listener::bind(LOCAL, None, &app, Peers::Secret, &hasty).unwrap();
    let mut carriers = Vec::new();
    for _ in 0..48 {
        let relay = Relay::start(listener.local_addr());
        let (connected, _) =
            connect(&[relay.address], &display, app.fingerprint(), PATIENCE, &hasty).unwrap();
        carriers.push(connected.carrier);
        carriers.push(listener.accept(PATIENCE).unwrap().carrier);
        relay.cut();
    }
    for mut carrier in carriers {
        assert!(matches!(closed(&mut *carrier), CloseReason::LinkLost(_)));
    }
}

/// Forwards datagrams between the first that sends and a fixed address until it is cut.
struct Relay {
    address: SocketAddr,
    socket: UdpSocket,
    thread: std::thread::JoinHandle<()>,
}

impl Relay {
    fn start(target: SocketAddr) -> Self {
        let socket = UdpSocket::bind(LOCAL).unwrap();
        let (address, own) = (socket.local_addr().unwrap(), socket.try_clone().unwrap());
        let thread = std::thread::spawn(move || {
            let (mut buffer, mut client) = ([0; 65536], target);
            // An empty datagram is the cut.
            while let Ok((length @ 1.., from)) = own.recv_from(&mut buffer) {
                let to = if from == target { client } else { target };
                if from != target {
                    client = from;
                }
                let _ = own.send_to(&buffer[..length], to);
            }
        });
        Self { address, socket, thread }
    }

    fn cut(self) {
        self.socket.send_to(&[], self.address).unwrap();
        self.thread.join().unwrap();
    }
}

#[test]
fn a_wrong_server_certificate_is_final_and_immediate() {
    let ((listener, _app), expected) = (listener(Peers::Secret), Identity::ephemeral().unwrap());
    // A dead address beside it, in either order, changes nothing.
    let dead = UdpSocket::bind(LOCAL).unwrap().local_addr().unwrap();
    for addresses in [[dead, listener.local_addr()], [listener.local_addr(), dead]] {
        let error = try_connect(&addresses, &expected, PATIENCE).err().unwrap();
        assert!(
            matches!(&error, ConnectError::WrongFingerprint { address } if *address == listener.local_addr())
        );
        assert!(error.is_verdict());
    }
}

#[test]
fn a_wrong_client_certificate_is_refused_by_tls() {
    let (mut listener, app) = listener(Peers::Pinned(Identity::ephemeral().unwrap().fingerprint()));
    match try_connect(&[listener.local_addr()], &app, PATIENCE) {
        // In TLS 1.3 the client is done before the server has looked at its certificate.
        Ok(mut connected) => {
            let reason = closed(&mut *connected.carrier);
            assert!(
                matches!(&reason, CloseReason::TlsRefused(text) if text.contains("certificate")),
                "{reason}"
            );
        }
        Err(error) => assert!(error.is_verdict(), "{error}"),
    }
    assert!(listener.poll_accept().is_none());
}

#[test]
fn any_client_certificate_is_known_by_its_fingerprint_where_a_secret_decides() {
    let (mut listener, app) = listener(Peers::Secret);
    let display = Identity::ephemeral().unwrap();
    let (_connected, _) =
        connect(&[listener.local_addr()], &display, app.fingerprint(), PATIENCE, &Options::default())
            .unwrap();
    assert_eq!(listener.accept(PATIENCE).unwrap().peer, Some(display.fingerprint()));
}

#[test]
fn a_list_may_change_while_the_listener_runs() {
    let (admitted, display) = (Admitted::new(), Identity::ephemeral().unwrap());
    let (mut listener, app) = listener(Peers::Listed(admitted.clone()));
    let address = listener.local_addr();
    let try_once = || {
        connect(&[address], &display, app.fingerprint(), PATIENCE, &Options::default())
            .map(|(connected, _)| connected)
    };
    let refused = |tried: Result<Connected, ConnectError>| match tried {
        Ok(mut connected) => matches!(closed(&mut *connected.carrier), CloseReason::TlsRefused(_)),
        Err(error) => error.is_verdict(),
    };
    assert!(refused(try_once()));
    admitted.admit(display.fingerprint());
    let mut connected = try_once().unwrap();
    let mut accepted = listener.accept(PATIENCE).unwrap();
    accepted.carrier.welcome();
    assert_eq!(accepted.peer, Some(display.fingerprint()));
    assert!(admitted.dismiss(display.fingerprint()));
    assert!(refused(try_once()));
    // Who is in stays in.
    send_all(&mut *connected.carrier, 0, Class::Events, &b"still here"[..]);
    assert_eq!(Streams::receive(&mut *accepted.carrier, 1).whole[&0], b"still here");
    assert!(listener.poll_accept().is_none());
}

#[test]
fn a_silent_peer_is_a_timeout() {
    // Bound, so that no ICMP answers either; never read.
    let silent = UdpSocket::bind(LOCAL).unwrap();
    let patience = Duration::from_millis(200);
    let app = Identity::ephemeral().unwrap();
    let error = try_connect(&[silent.local_addr().unwrap()], &app, patience).err().unwrap();
    assert!(matches!(error, ConnectError::TimedOut { after } if after == patience));
    assert!(matches!(try_connect(&[], &app, patience).err().unwrap(), ConnectError::NoAddress));
}

#[test]
fn the_live_address_wins_the_race() {
    let (mut listener, app) = listener(Peers::Secret);
    let silent = UdpSocket::bind(LOCAL).unwrap();
    let six = SocketAddr::new(Ipv6Addr::LOCALHOST.into(), 9);
    let addresses = [silent.local_addr().unwrap(), six, listener.local_addr()];
    let connected = try_connect(&addresses, &app, PATIENCE).unwrap();
    assert_eq!(connected.address, listener.local_addr());
    assert!(listener.accept(PATIENCE).is_some());
}

#[test]
fn ipv6_works_where_the_host_has_it() {
    let app = Identity::ephemeral().unwrap();
    let address = SocketAddr::new(Ipv6Addr::LOCALHOST.into(), 0);
    let Ok(mut listener) = Listener::bind(address, None, &app, Peers::Secret, &Options::default()) else {
        return;
    };
    let mut connected = try_connect(&[listener.local_addr()], &app, PATIENCE).unwrap();
    let mut accepted = listener.accept(PATIENCE).unwrap();
    accepted.carrier.welcome();
    send_all(&mut *connected.carrier, 0, Class::Events, &b"six"[..]);
    assert_eq!(Streams::receive(&mut *accepted.carrier, 1).whole[&0], b"six");
}

#[test]
fn a_port_in_use_is_told_and_a_range_goes_on() {
    let (first, app) = listener(Peers::Secret);
    let taken = first.local_addr();
    let bind = |ports| Listener::bind(taken, ports, &app, Peers::Secret, &Options::default());
    let error = bind(None).err().unwrap();
    assert!(matches!(error, ListenError::PortInUse { address } if address == taken), "{error}");
    let only = taken.port()..=taken.port();
    assert!(matches!(bind(Some(only)).err().unwrap(), ListenError::NoFreePort { .. }));
    if let Some(end) = taken.port().checked_add(20) {
        let second = bind(Some(taken.port()..=end)).unwrap();
        assert!(second.local_addr().port() > taken.port());
    }
}

#[test]
fn a_dropped_listener_takes_no_more_and_keeps_what_it_has() {
    let (mut listener, app) = listener(Peers::Secret);
    let address = listener.local_addr();
    let mut connected = try_connect(&[address], &app, PATIENCE).unwrap();
    let mut accepted = listener.accept(PATIENCE).unwrap();
    accepted.carrier.welcome();
    drop(listener);
    let error = try_connect(&[address], &app, Duration::from_millis(300)).err().unwrap();
    assert!(!error.is_verdict(), "{error}");
    send_all(&mut *accepted.carrier, 0, Class::Events, &b"still here"[..]);
    assert_eq!(Streams::receive(&mut *connected.carrier, 1).whole[&0], b"still here");
}

#[test]
fn garbage_datagrams_change_nothing() {
    let (mut listener, app) = listener(Peers::Secret);
    let noise = UdpSocket::bind(LOCAL).unwrap();
    for length in 0..1400usize {
        let bytes: Vec<u8> = (0..length).map(|at| (at * length + 0xc3) as u8).collect();
        noise.send_to(&bytes, listener.local_addr()).unwrap();
    }
    assert!(try_connect(&[listener.local_addr()], &app, PATIENCE).is_ok());
    assert!(listener.accept(PATIENCE).is_some());
}

#[test]
fn qlog_files_are_written_where_asked() {
    let directory = std::env::temp_dir().join(format!("wayferry-qlog-{}", std::process::id()));
    let options = Options { qlog: Some(directory.join("deep")), ..Options::default() };
    let pair = pair_with(&options, &options);
    drop(pair);
    let files = std::fs::read_dir(directory.join("deep")).unwrap().count();
    std::fs::remove_dir_all(&directory).unwrap();
    assert_eq!(files, 2);
    let blocked = Options { qlog: Some("/proc/nowhere".into()), ..Options::default() };
    let app = Identity::ephemeral().unwrap();
    let error = Listener::bind(LOCAL, None, &app, Peers::Secret, &blocked).err().unwrap();
    assert!(error.to_string().contains("`/proc/nowhere`"), "{error}");
}
