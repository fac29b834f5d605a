//! Sending from the caller's thread.

mod rig;

use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;
use rig::*;
use wayferry_net::endpoint::{By, Config, Connection, Cork, Engine, Failure, connect, promptly};

/// A client on an engine of its own, and the server's side of its connection.
fn pair_of_engines() -> (Engine, Connection, Connection) {
    let tls = server_tls();
    let mut listener = listener(&tls, Config::default(), Default::default());
    let engine = Engine::start().unwrap();
    let connecting = connect(&engine, target(listener.local_address()), client_tls(&tls), Config::default());
    let server = accept(&mut listener);
    (engine, wait(connecting).unwrap(), server)
}

#[test]
fn what_is_sent_promptly_does_not_wait_for_the_engine() {
    let (engine, mut client, mut server) = pair_of_engines();
    let mut send = open_uni(&mut client);
    write(&mut send, b"first").unwrap();
    let mut receive = accept_uni(&mut server);
    assert_eq!(read(&mut receive, 5).unwrap(), b"first");
    let (blocked, free) = block(&engine);
    promptly(|| write(&mut send, b"second").unwrap());
    assert_eq!(read(&mut receive, 6).unwrap(), b"second");
    assert!(promptly(|| client.try_send_datagram(Bytes::from_static(b"third"))).unwrap());
    assert_eq!(until(|cx| server.poll_datagram(cx)).unwrap(), b"third"[..]);
    drop(free);
    wait(blocked);
    say(&mut send, b"last");
    assert_eq!(read_to_end(&mut receive).unwrap(), b"last");
}

#[test]
fn a_close_leaves_before_it_returns() {
    let (engine, client, mut server) = pair_of_engines();
    let (_blocked, _free) = block(&engine);
    client.close(7, b"enough");
    let Failure::Closed { code: 7, by: By::Peer, .. } = until(|cx| server.poll_closed(cx)) else { panic!() };
}

#[test]
fn regression_one_within_another_loses_no_wake_up() {
    let (_engine, mut client, mut server) = pair_of_engines();
    let (_other_engine, mut other, _other_server) = pair_of_engines();
    let (mut send, mut beside) = (open_uni(&mut client), open_uni(&mut other));
    promptly(|| {
        write(&mut send, b"outer").unwrap();
        promptly(|| write(&mut beside, b"inner").unwrap());
    });
    assert_eq!(read(&mut accept_uni(&mut server), 5).unwrap(), b"outer");
}

#[test]
fn a_closure_that_panics_takes_no_wake_up_with_it() {
    let (_engine, mut client, mut server) = pair_of_engines();
    let mut send = open_uni(&mut client);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        promptly(|| {
            write(&mut send, b"written").unwrap();
            panic!("on purpose");
        })
    }));
    panicked.unwrap_err();
    assert_eq!(read(&mut accept_uni(&mut server), 7).unwrap(), b"written");
}

#[test]
fn threads_that_drive_one_connection_at_once_lose_nothing() {
    let mut pair = pair();
    let streams: Vec<_> = (0..4).map(|_| open_uni(&mut pair.client)).collect();
    std::thread::scope(|scope| {
        for (index, mut send) in streams.into_iter().enumerate() {
            scope.spawn(move || {
                let data = pattern(200_000 + index);
                for piece in data.chunks(100) {
                    promptly(|| write(&mut send, piece).unwrap());
                }
                send.finish().unwrap();
                assert_eq!(until(|cx| send.poll_stopped(cx)).unwrap(), None);
            });
        }
        let mut lengths: Vec<_> = (0..4)
            .map(|_| {
                let data = read_to_end(&mut accept_uni(&mut pair.server)).unwrap();
                assert!(data == pattern(data.len()));
                data.len()
            })
            .collect();
        lengths.sort_unstable();
        assert_eq!(lengths, [200_000, 200_001, 200_002, 200_003]);
    });
}

#[test]
fn what_a_cork_holds_back_leaves_on_the_thread_that_releases_it() {
    let (engine, mut client, mut server) = pair_of_engines();
    let mut send = open_uni(&mut client);
    let (blocked, free) = block(&engine);
    let cork = Cork::default();
    cork.hold();
    for piece in [b"one", b"two"] {
        write(&mut send, piece).unwrap();
    }
    cork.release(true);
    let mut receive = accept_uni(&mut server);
    assert_eq!(read(&mut receive, 6).unwrap(), b"onetwo");
    cork.release(true);
    // It holds nothing back any more: the engine is asked, which does not answer.
    write(&mut send, b"three").unwrap();
    cork.release(true);
    drop(free);
    wait(blocked);
    assert_eq!(read(&mut receive, 5).unwrap(), b"three");
}

#[test]
fn what_is_sent_promptly_is_not_held_back() {
    let (engine, mut client, mut server) = pair_of_engines();
    let mut send = open_uni(&mut client);
    let (_blocked, _free) = block(&engine);
    let cork = Cork::default();
    cork.hold();
    promptly(|| write(&mut send, b"now").unwrap());
    assert_eq!(read(&mut accept_uni(&mut server), 3).unwrap(), b"now");
}

#[test]
fn all_connections_in_a_cork_are_driven_however_it_goes() {
    type Way = fn(Cork);
    let ways: [Way; 4] = [
        |cork| cork.release(true),
        |cork| cork.release(false),
        drop,
        |cork| std::thread::spawn(move || cork.release(true)).join().unwrap(),
    ];
    let mut pairs = [pair_of_engines(), pair_of_engines(), pair_of_engines()];
    for way in ways {
        let cork = Cork::default();
        cork.hold();
        for (_, client, _) in &mut pairs {
            let mut send = open_uni(client);
            write(&mut send, b"held").unwrap();
            send.finish().unwrap();
        }
        way(cork);
        for (_, _, server) in &mut pairs {
            assert_eq!(read_to_end(&mut accept_uni(server)).unwrap(), b"held");
        }
    }
}

#[test]
fn a_second_cork_of_a_thread_loses_nothing_of_the_first() {
    let (_engine, mut client, mut server) = pair_of_engines();
    let (_other_engine, mut other, mut other_server) = pair_of_engines();
    let (mut send, mut beside) = (open_uni(&mut client), open_uni(&mut other));
    let (first, second) = (Cork::default(), Cork::default());
    first.hold();
    write(&mut send, b"first").unwrap();
    second.hold();
    write(&mut beside, b"second").unwrap();
    second.release(false);
    assert_eq!(read(&mut accept_uni(&mut other_server), 6).unwrap(), b"second");
    first.release(false);
    assert_eq!(read(&mut accept_uni(&mut server), 5).unwrap(), b"first");
}
