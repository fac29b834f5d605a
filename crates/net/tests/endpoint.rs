//! Raw endpoints: connections, streams and datagrams.

mod rig;

use std::collections::VecDeque;
use std::net::{SocketAddr, UdpSocket};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use rig::*;
use wayferry_net::endpoint::{By, Config, Congestion, Connection, Engine, Failure, Ready, Target, connect};

#[test]
fn bytes_come_back_whole_on_a_stream_both_ways() {
    let mut pair = pair();
    let data = pattern(3_000_000);
    let sent = data.clone();
    let (mut send, mut receive) = open_bi(&mut pair.client);
    let writer = std::thread::spawn(move || {
        say(&mut send, &sent);
        send
    });
    let (mut back, mut there) = accept_bi(&mut pair.server);
    let echo = std::thread::spawn(move || {
        loop {
            let chunk = read(&mut there, 10_000).unwrap();
            if chunk.is_empty() {
                break;
            }
            write(&mut back, &chunk).unwrap();
        }
        back.finish().unwrap();
        (there, back)
    });
    assert!(read_to_end(&mut receive).unwrap() == data);
    let mut send = writer.join().unwrap();
    assert_eq!(until(|cx| send.poll_stopped(cx)).unwrap(), None);
    assert_eq!(until(|cx| send.poll_stopped(cx)).unwrap(), None);
    drop(echo.join().unwrap());
    assert!(pair.client.stats().sent_bytes > 3_000_000);
    assert_eq!(pair.client.alpn().as_deref(), Some(ALPN));
    assert_eq!(pair.server.server_name().as_deref(), Some("localhost"));
    assert_eq!(pair.client.remote_address(), pair.listener.local_address());
    assert_eq!(pair.server.remote_address(), pair.client.local_address());
    assert_eq!(pair.client.peer_certificates().len(), 1);
    assert_eq!(pair.client.paths().len(), 1);
}

#[test]
fn every_congestion_controller_carries_data() {
    for congestion in [Congestion::Cubic, Congestion::NewReno, Congestion::Bbr3, Congestion::Copa] {
        let config = Config { congestion, ..Config::default() };
        let mut pair = pair_with(config.clone(), config);
        let mut send = open_uni(&mut pair.client);
        let data = pattern(500_000);
        let sent = data.clone();
        let writer = std::thread::spawn(move || say(&mut send, &sent));
        assert!(read_to_end(&mut accept_uni(&mut pair.server)).unwrap() == data, "{congestion:?}");
        writer.join().unwrap();
    }
}

#[test]
fn reads_give_no_more_than_was_asked_for_and_lose_nothing() {
    let mut pair = pair();
    let mut send = open_uni(&mut pair.client);
    let data = pattern(100_000);
    let sent = data.clone();
    let writer = std::thread::spawn(move || say(&mut send, &sent));
    let mut receive = accept_uni(&mut pair.server);
    let (mut got, mut size) = (Vec::new(), 1);
    loop {
        let chunk = read(&mut receive, size).unwrap();
        if chunk.is_empty() {
            break;
        }
        got.extend(chunk);
        size = size * 3 % 5003 + 1;
    }
    assert!(got == data);
    writer.join().unwrap();
}

#[test]
fn pieces_come_in_any_order_with_their_places() {
    let mut pair = pair();
    let mut send = open_uni(&mut pair.client);
    let data = pattern(200_000);
    let sent = data.clone();
    let writer = std::thread::spawn(move || say(&mut send, &sent));
    let mut receive = accept_uni(&mut pair.server);
    // Some of it in order first, so that pieces are kept.
    let first = read(&mut receive, 777).unwrap();
    assert!(first == data[..first.len()]);
    let mut got = vec![None; data.len()];
    got[..first.len()].iter_mut().zip(&first).for_each(|(got, byte)| *got = Some(*byte));
    while let Some((offset, piece)) = until(|cx| receive.poll_read_unordered(cx, 4000)).unwrap() {
        for (got, byte) in got[offset as usize..].iter_mut().zip(piece) {
            assert_eq!(got.replace(byte), None);
        }
    }
    assert!(got.into_iter().eq(data.into_iter().map(Some)));
    assert!(matches!(read(&mut receive, 1), Err(Failure::StreamGone)));
    writer.join().unwrap();
}

#[test]
fn codes_of_streams_reach_the_other_side() {
    let mut pair = pair();
    let most = (1 << 62) - 1;
    let mut send = open_uni(&mut pair.client);
    write(&mut send, b"begun").unwrap();
    let mut receive = accept_uni(&mut pair.server);
    assert_eq!(read(&mut receive, 100).unwrap(), b"begun");
    send.reset(most);
    assert!(matches!(write(&mut send, b"more"), Err(Failure::StreamGone)));
    assert!(matches!(send.finish(), Err(Failure::StreamGone)));
    assert!(matches!(read(&mut receive, 100), Err(Failure::Reset(code)) if code == most));
    assert!(matches!(read(&mut receive, 100), Err(Failure::Reset(code)) if code == most));

    let mut send = open_uni(&mut pair.client);
    write(&mut send, b"begun").unwrap();
    accept_uni(&mut pair.server).stop(5);
    assert_eq!(until(|cx| send.poll_stopped(cx)).unwrap(), Some(5));
    assert!(matches!(write(&mut send, b"more"), Err(Failure::Stopped(5))));
}

#[test]
fn streams_that_are_dropped_are_reset_and_stopped_with_code_0() {
    let mut pair = pair();
    let mut send = open_uni(&mut pair.client);
    write(&mut send, b"begun").unwrap();
    let mut receive = accept_uni(&mut pair.server);
    assert_eq!(read(&mut receive, 100).unwrap(), b"begun");
    drop(send);
    assert!(matches!(read(&mut receive, 100), Err(Failure::Reset(0))));
    let mut send = open_uni(&mut pair.client);
    write(&mut send, b"begun").unwrap();
    drop(accept_uni(&mut pair.server));
    assert_eq!(until(|cx| send.poll_stopped(cx)).unwrap(), Some(0));
    // One that was finished is not.
    let mut send = open_uni(&mut pair.client);
    say(&mut send, b"whole");
    drop(send);
    assert_eq!(read_to_end(&mut accept_uni(&mut pair.server)).unwrap(), b"whole");
}

#[test]
fn a_writer_that_waits_for_room_is_woken_by_a_reset() {
    let mut pair = pair();
    let mut send = open_uni(&mut pair.client);
    let ready = Ready::new().unwrap();
    let token = ready.token();
    let waker = ready.waker(token);
    let mut chunks = VecDeque::from([Bytes::from(vec![0; 4 << 20])]);
    let cx = &mut Context::from_waker(&waker);
    while let Poll::Ready(taken) = send.poll_write_chunks(cx, &mut chunks) {
        assert!(taken.unwrap() > 0);
    }
    assert!(!chunks.is_empty());
    let mut tokens = Vec::new();
    ready.drain(&mut tokens);
    send.reset(1);
    assert!(ready.wait(Some(LIMIT)));
    ready.drain(&mut tokens);
    assert_eq!(tokens.last(), Some(&token));
    assert!(matches!(send.poll_write_chunks(cx, &mut chunks), Poll::Ready(Err(Failure::StreamGone))));
}

#[test]
fn regression_a_writer_without_the_connections_credit_learns_that_it_was_stopped() {
    let config = Config { connection_window: 10_000, ..Config::default() };
    let mut pair = pair_with(Config::default(), config);
    let (mut full, mut send) = (open_uni(&mut pair.client), open_uni(&mut pair.client));
    write(&mut send, b"begun").unwrap();
    let mut chunks = VecDeque::from([Bytes::from(vec![0; 20_000])]);
    while full.poll_write_chunks(&mut Context::from_waker(Waker::noop()), &mut chunks).is_ready() {}
    let writer = std::thread::spawn(move || write(&mut send, b"more"));
    let _unread = accept_uni(&mut pair.server);
    accept_uni(&mut pair.server).stop(3);
    assert!(matches!(writer.join().unwrap(), Err(Failure::Stopped(3))));
}

#[test]
fn datagrams_arrive_and_too_large_ones_are_named() {
    let mut pair = pair();
    let max = pair.client.max_datagram_size().unwrap();
    let mut data = Some(Bytes::from(pattern(max)));
    until(|cx| pair.client.poll_send_datagram(cx, &mut data)).unwrap();
    assert_eq!(data, None);
    assert_eq!(until(|cx| pair.server.poll_datagram(cx)).unwrap(), pattern(max));
    assert!(pair.server.try_send_datagram(Bytes::from_static(b"back")).unwrap());
    assert_eq!(until(|cx| pair.client.poll_datagram(cx)).unwrap(), &b"back"[..]);
    let mut large = Some(Bytes::from(vec![0; 70_000]));
    let failure = until(|cx| pair.client.poll_send_datagram(cx, &mut large)).unwrap_err();
    assert!(matches!(failure, Failure::TooLarge { size: 70_000, max } if max >= 1000), "{failure:?}");
}

#[test]
fn regression_a_small_buffer_limits_datagrams_and_says_so() {
    let small = Config { datagram_buffer: 100, ..Config::default() };
    let pair = pair_with(small, Config::default());
    assert_eq!(pair.client.max_datagram_size(), Some(100));
    let failure = pair.client.try_send_datagram(Bytes::from(vec![0; 101]));
    assert!(matches!(failure, Err(Failure::TooLarge { size: 101, max: 100 })), "{failure:?}");
    assert!(pair.client.try_send_datagram(Bytes::from(vec![0; 100])).unwrap());
}

#[test]
fn a_side_without_datagrams_says_so() {
    let without = Config { datagrams: false, ..Config::default() };
    let pair = pair_with(Config::default(), without);
    assert_eq!((pair.client.max_datagram_size(), pair.server.max_datagram_size()), (None, None));
    let datagram = || Bytes::from_static(b"x");
    assert!(matches!(pair.client.try_send_datagram(datagram()), Err(Failure::NoDatagrams)));
    assert!(matches!(pair.server.try_send_datagram(datagram()), Err(Failure::NoDatagrams)));
}

#[test]
fn datagrams_that_have_no_room_wait_and_lose_nothing_on_the_way() {
    let config = Config { datagram_buffer: 5000, ..Config::default() };
    let Pair { mut client, server: _server, listener: _listener } = pair_with(config, Config::default());
    let datagram = || Bytes::from(vec![7; 1000]);
    let noop = &mut Context::from_waker(Waker::noop());
    let mut sent = 0;
    // The engine's thread may send some meanwhile, but not forever as fast as this.
    let mut data = Some(datagram());
    while client.poll_send_datagram(noop, &mut data).is_ready() {
        sent += 1;
        assert!(sent < 1_000_000, "there is always room");
        data = Some(datagram());
    }
    assert!(data.is_some());
    until(|cx| client.poll_send_datagram(cx, &mut data)).unwrap();
    assert_eq!(data, None);
    client.cancel_send_datagram();
}

/// Has datagrams arrive, each with its number, which is how many came before.
fn number(pair: &Pair, numbers: std::ops::Range<u64>) {
    let end = numbers.end;
    for number in numbers {
        assert!(pair.client.try_send_datagram(Bytes::copy_from_slice(&number.to_be_bytes())).unwrap());
    }
    eventually(|| pair.server.stats().received_datagram_frames == end);
}

fn numbers(batch: &[Bytes]) -> Vec<u64> {
    batch.iter().map(|data| u64::from_be_bytes(data[..].try_into().unwrap())).collect()
}

#[test]
fn datagrams_come_by_the_batch_in_order_and_figures_lose_none() {
    let mut pair = pair();
    number(&pair, 0..5);
    assert_eq!(pair.server.stats().dropped_datagrams, 0);
    let mut batch = Vec::new();
    until(|cx| pair.server.poll_datagrams(cx, &mut batch, 2)).unwrap();
    assert_eq!(numbers(&batch), [0, 1]);
    number(&pair, 5..8);
    assert_eq!(until(|cx| pair.server.poll_datagram(cx)).unwrap(), &2_u64.to_be_bytes()[..]);
    batch.clear();
    until(|cx| pair.server.poll_datagrams(cx, &mut batch, 100)).unwrap();
    assert_eq!(numbers(&batch), [3, 4, 5, 6, 7]);
    let noop = &mut Context::from_waker(Waker::noop());
    assert!(pair.server.poll_datagrams(noop, &mut batch, 100).is_pending());
    number(&pair, 8..9);
    assert!(pair.server.poll_datagrams(noop, &mut batch, 100).is_ready());
}

#[test]
fn datagrams_that_nobody_takes_are_counted_when_they_are_dropped() {
    // Of 8 bytes, with what each costs beside.
    let room = Config { datagram_buffer: 10 * (8 + size_of::<Bytes>()), ..Config::default() };
    let mut pair = pair_with(Config::default(), room);
    number(&pair, 0..100);
    assert_eq!(pair.server.stats().dropped_datagrams, 90);
    (100..103).for_each(|one| number(&pair, one..one + 1));
    assert_eq!(pair.server.stats().dropped_datagrams, 93);
    let mut batch = Vec::new();
    until(|cx| pair.server.poll_datagrams(cx, &mut batch, 100)).unwrap();
    assert_eq!(numbers(&batch), (93..103).collect::<Vec<_>>());
    assert_eq!(pair.server.stats().dropped_datagrams, 93);
}

#[test]
fn opening_waits_for_the_peers_permission() {
    let one = Config { uni_streams: 1, ..Config::default() };
    let mut pair = pair_with(Config::default(), one);
    let mut send = open_uni(&mut pair.client);
    assert!(pair.client.poll_open_uni(&mut Context::from_waker(Waker::noop())).is_pending());
    say(&mut send, b"done");
    assert_eq!(read_to_end(&mut accept_uni(&mut pair.server)).unwrap(), b"done");
    open_uni(&mut pair.client);
}

#[test]
fn the_end_of_a_connection_wakes_every_poll_that_waits() {
    let none = Config { uni_streams: 0, bi_streams: 1, ..Config::default() };
    let mut pair = pair_with(none.clone(), none);
    let (mut send, mut receive) = open_bi(&mut pair.client);
    let ready = Ready::new().unwrap();
    let wakers: Vec<Waker> = (0..8).map(|_| ready.waker(ready.token())).collect();
    let mut cxs = wakers.iter().map(Context::from_waker);
    let mut cx = || cxs.next().unwrap();
    assert!(pair.client.poll_open_uni(&mut cx()).is_pending());
    assert!(pair.client.poll_open_bi(&mut cx()).is_pending());
    assert!(pair.client.poll_accept_uni(&mut cx()).is_pending());
    assert!(pair.client.poll_accept_bi(&mut cx()).is_pending());
    assert!(pair.client.poll_datagram(&mut cx()).is_pending());
    assert!(pair.client.poll_closed(&mut cx()).is_pending());
    assert!(receive.poll_read(&mut cx(), &mut Vec::new(), 10).is_pending());
    assert!(send.poll_stopped(&mut cx()).is_pending());
    pair.server.close(9, b"enough\n");
    let mut tokens = Vec::new();
    while tokens.len() < 8 {
        assert!(ready.wait(Some(LIMIT)), "only {tokens:?}");
        ready.drain(&mut tokens);
    }
    tokens.sort();
    tokens.dedup();
    assert_eq!(tokens.len(), 8);
    let by_peer = |failure: Failure| match failure {
        Failure::Closed { code: 9, reason, by: By::Peer } => assert_eq!(reason, "enough·"),
        other => panic!("{other:?}"),
    };
    by_peer(until(|cx| pair.client.poll_open_uni(cx)).unwrap_err());
    by_peer(until(|cx| pair.client.poll_open_bi(cx)).unwrap_err());
    by_peer(until(|cx| pair.client.poll_accept_uni(cx)).unwrap_err());
    by_peer(until(|cx| pair.client.poll_accept_bi(cx)).unwrap_err());
    by_peer(until(|cx| pair.client.poll_datagram(cx)).unwrap_err());
    by_peer(until(|cx| pair.client.poll_closed(cx)));
    by_peer(read(&mut receive, 10).unwrap_err());
    by_peer(until(|cx| send.poll_stopped(cx)).unwrap_err());
    by_peer(write(&mut send, b"late").unwrap_err());
    by_peer(pair.client.try_send_datagram(Bytes::from_static(b"late")).unwrap_err());
    let ours = until(|cx| pair.server.poll_closed(cx));
    assert!(matches!(ours, Failure::Closed { code: 9, by: By::Local, .. }), "{ours:?}");
    assert!(matches!(pair.server.close_reason(), Some(Failure::Closed { by: By::Local, .. })));
}

#[test]
fn what_came_before_the_end_is_still_given() {
    let mut pair = pair();
    for _ in 0..3 {
        say(&mut open_uni(&mut pair.client), b"last words");
    }
    assert!(pair.client.try_send_datagram(Bytes::from_static(b"and one more")).unwrap());
    wait(pair.client.drain());
    pair.client.close(0, b"");
    until(|cx| pair.server.poll_closed(cx));
    for _ in 0..3 {
        assert_eq!(read_to_end(&mut accept_uni(&mut pair.server)).unwrap(), b"last words");
    }
    assert_eq!(until(|cx| pair.server.poll_datagram(cx)).unwrap(), &b"and one more"[..]);
    assert!(matches!(until(|cx| pair.server.poll_accept_uni(cx)), Err(Failure::Closed { code: 0, .. })));
}

#[test]
fn draining_waits_for_what_was_finished_and_several_may_drain() {
    let mut pair = pair();
    for _ in 0..200 {
        say(&mut open_uni(&mut pair.client), &pattern(3000));
        read_to_end(&mut accept_uni(&mut pair.server)).unwrap();
    }
    let mut send = open_uni(&mut pair.client);
    say(&mut send, &pattern(500_000));
    let other = pair.client.clone();
    let second = std::thread::spawn(move || wait(other.drain()));
    wait(pair.client.drain());
    second.join().unwrap();
    assert!(matches!(send.poll_stopped(&mut Context::from_waker(Waker::noop())), Poll::Ready(Ok(None))));
    // And ends with the connection.
    let mut send = open_uni(&mut pair.client);
    write(&mut send, b"x").unwrap();
    send.finish().unwrap();
    pair.client.close(0, b"");
    wait(pair.client.drain());
}

#[test]
fn regression_a_stream_that_was_reset_after_its_end_is_not_drained() {
    let mut pair = pair();
    let mut send = open_uni(&mut pair.client);
    let noop = &mut Context::from_waker(Waker::noop());
    let mut chunks = VecDeque::from([Bytes::from(vec![0; 8 << 20])]);
    while send.poll_write_chunks(noop, &mut chunks).is_ready() {}
    send.finish().unwrap();
    let other = pair.client.clone();
    let draining = std::thread::spawn(move || wait(other.drain()));
    send.reset(1);
    wait(pair.client.drain());
    draining.join().unwrap();
}

#[test]
fn the_last_one_dropped_closes_the_connection() {
    let Pair { client, mut server, listener: _listener } = pair();
    let clone = client.clone();
    drop(client);
    assert!(server.poll_closed(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(clone);
    let end = until(|cx| server.poll_closed(cx));
    assert!(matches!(end, Failure::Closed { code: 0, by: By::Peer, .. }), "{end:?}");
}

#[test]
fn keys_change_and_material_is_the_same_on_both_sides() {
    let mut pair = pair();
    pair.client.update_keys();
    say(&mut open_uni(&mut pair.client), b"under new keys");
    assert_eq!(read_to_end(&mut accept_uni(&mut pair.server)).unwrap(), b"under new keys");
    let export = |connection: &Connection, context: &[u8]| {
        connection.export_keying_material(b"label", context, 40).unwrap()
    };
    assert_eq!(export(&pair.client, b"a"), export(&pair.server, b"a"));
    assert_ne!(export(&pair.client, b"a"), export(&pair.server, b"b"));
    let much = pair.client.export_keying_material(b"label", b"", 1 << 20);
    assert!(matches!(much, Err(Failure::Config(_))));
}

#[test]
fn a_client_moves_to_another_address() {
    let mut pair = pair();
    let before = pair.client.local_address();
    pair.client.rebind(loopback()).unwrap();
    let after = pair.client.local_address();
    assert_ne!(before, after);
    let (mut send, mut receive) = open_bi(&mut pair.client);
    say(&mut send, b"from elsewhere");
    let (mut back, mut there) = accept_bi(&mut pair.server);
    assert_eq!(read_to_end(&mut there).unwrap(), b"from elsewhere");
    say(&mut back, b"seen");
    assert_eq!(read_to_end(&mut receive).unwrap(), b"seen");
    assert_eq!(pair.server.remote_address(), after);
    assert!(matches!(pair.server.rebind(loopback()), Err(Failure::Config(_))));
    let other = pair.client.rebind("[::1]:0".parse().unwrap());
    assert!(matches!(other, Err(Failure::Config(_))), "{other:?}");
}

/// Whether no socket is bound to `address`.
fn is_free(address: SocketAddr) -> bool {
    UdpSocket::bind(address).is_ok()
}

#[test]
fn sockets_are_closed_although_somebody_still_holds_the_connection() {
    let mut pair = pair();
    let stream = open_uni(&mut pair.client);
    let (ours, theirs) = (pair.client.local_address(), pair.listener.local_address());
    assert!(!is_free(ours) && !is_free(theirs));
    pair.client.close(3, b"");
    eventually(|| is_free(ours));
    assert!(matches!(until(|cx| pair.server.poll_closed(cx)), Failure::Closed { code: 3, .. }));
    assert!(!is_free(theirs), "it still listens");
    pair.listener.stop();
    eventually(|| is_free(theirs));
    assert!(matches!(pair.client.rebind(loopback()), Err(Failure::Closed { code: 3, by: By::Local, .. })));
    assert_eq!(pair.client.local_address(), ours);
    drop(stream);
}

/// Connections of an engine of their own to one listener, each with the server's side.
fn neighbours<const N: usize>() -> (Engine, [(Connection, Connection); N]) {
    let (engine, tls) = (Engine::start().unwrap(), server_tls());
    let mut listener = listener(&tls, Config::default(), Default::default());
    let pairs = std::array::from_fn(|_| {
        let to = target(listener.local_address());
        let connecting = connect(&engine, to, client_tls(&tls), Config::default());
        let server = accept(&mut listener);
        (wait(connecting).unwrap(), server)
    });
    (engine, pairs)
}

/// Passes a few bytes.
fn tell((client, server): &mut (Connection, Connection), text: &[u8]) {
    say(&mut open_uni(client), text);
    assert_eq!(read_to_end(&mut accept_uni(server)).unwrap(), text);
}

#[test]
fn a_client_that_moves_leaves_no_socket_behind() {
    let (_engine, [mut pair]) = neighbours();
    let before = pair.0.local_address();
    for text in [b"from elsewhere", b"and once more!"] {
        pair.0.rebind(loopback()).unwrap();
        assert_ne!(pair.0.local_address(), before);
        tell(&mut pair, text);
        eventually(|| is_free(before));
        assert_eq!(pair.1.remote_address(), pair.0.local_address());
    }
}

#[test]
fn clients_share_a_socket_until_the_last_has_gone() {
    let (_engine, [one, mut two]) = neighbours();
    let shared = one.0.local_address();
    assert_eq!(two.0.local_address(), shared);
    one.0.close(0, b"");
    drop(one);
    tell(&mut two, b"still here");
    assert!(!is_free(shared));
    two.0.close(0, b"");
    eventually(|| is_free(shared));
}

#[test]
fn a_client_that_moves_takes_no_other_with_it() {
    let (_engine, [mut one, mut two]) = neighbours();
    let shared = one.0.local_address();
    for text in [b"first!", b"second", b"third!"] {
        one.0.rebind(loopback()).unwrap();
        let moved = one.0.local_address();
        assert_ne!(moved, shared);
        tell(&mut one, text);
        tell(&mut two, text);
        let addresses = || (one.1.remote_address(), two.1.remote_address());
        assert_eq!((addresses(), two.0.local_address()), ((moved, shared), shared));
        assert!(!is_free(moved));
    }
    let moved = one.0.local_address();
    one.0.close(0, b"");
    eventually(|| is_free(moved));
    tell(&mut two, b"alone");
    // Once the other one's late packets cannot come any more.
    eventually(|| {
        two.0.rebind(loopback()).unwrap();
        tell(&mut two, b"moved");
        is_free(shared)
    });
}

#[test]
fn regression_a_client_that_moves_sends_from_the_address_that_it_left() {
    let (_engine, [mut one, _two]) = neighbours();
    let (mut send, data) = (open_uni(&mut one.1), pattern(16 << 20));
    let written = data.clone();
    std::thread::scope(|scope| {
        scope.spawn(move || say(&mut send, &written));
        let mut receive = accept_uni(&mut one.0);
        let first = read(&mut receive, 1 << 20).unwrap();
        // What is on its way still arrives at the old address.
        one.0.rebind("127.0.0.2:0".parse().unwrap()).unwrap();
        let rest = read_to_end(&mut receive).unwrap();
        assert!([first, rest].concat() == data);
    });
    tell(&mut one, b"from elsewhere");
    assert_eq!(one.1.remote_address(), one.0.local_address());
}

#[test]
fn a_client_that_changes_its_id_goes_on() {
    let (_engine, [mut one, mut two]) = neighbours();
    for _ in 0..3 {
        one.0.change_id().unwrap();
        tell(&mut one, b"one");
        tell(&mut two, b"two");
    }
    assert!(matches!(one.1.change_id(), Err(Failure::Config(_))));
}

#[test]
fn a_client_with_an_address_of_its_own_shares_it_with_none() {
    let (engine, [shares]) = neighbours();
    let tls = server_tls();
    let listener = listener(&tls, Config::default(), Default::default());
    let to = || Target { local: Some(loopback()), ..target(listener.local_address()) };
    let own: Vec<_> = (0..2)
        .map(|_| wait(connect(&engine, to(), client_tls(&tls), Config::default())).unwrap())
        .map(|client| client.local_address())
        .collect();
    assert_ne!(own[0], own[1]);
    assert!(!own.contains(&shares.0.local_address()));
}

#[test]
fn priorities_are_kept_until_the_stream_is_over() {
    let mut pair = pair();
    let mut send = open_uni(&mut pair.client);
    assert_eq!(send.priority().unwrap(), 0);
    send.set_priority(-3).unwrap();
    assert_eq!(send.priority().unwrap(), -3);
    assert_eq!(send.id(), 2);
    say(&mut send, b"x");
    read_to_end(&mut accept_uni(&mut pair.server)).unwrap();
    until(|cx| send.poll_stopped(cx)).unwrap();
    assert!(matches!(send.set_priority(1), Err(Failure::StreamGone)));
}

#[test]
fn empty_chunks_are_taken_and_nothing_is_said() {
    let mut pair = pair();
    let mut send = open_uni(&mut pair.client);
    write(&mut send, b"").unwrap();
    let mut chunks: VecDeque<_> = [&b"a"[..], b"", b"", b"b", b""].map(Bytes::from_static).into();
    while !chunks.is_empty() {
        until(|cx| send.poll_write_chunks(cx, &mut chunks)).unwrap();
    }
    send.finish().unwrap();
    assert_eq!(read_to_end(&mut accept_uni(&mut pair.server)).unwrap(), b"ab");
}

#[test]
fn a_cancelled_wait_loses_nothing() {
    let mut pair = pair();
    let noop = &mut Context::from_waker(Waker::noop());
    assert!(pair.server.poll_accept_uni(noop).is_pending());
    assert!(pair.server.poll_datagram(noop).is_pending());
    say(&mut open_uni(&mut pair.client), b"one");
    pair.client.try_send_datagram(Bytes::from_static(b"two")).unwrap();
    assert_eq!(read_to_end(&mut accept_uni(&mut pair.server)).unwrap(), b"one");
    assert_eq!(until(|cx| pair.server.poll_datagram(cx)).unwrap(), &b"two"[..]);
}
