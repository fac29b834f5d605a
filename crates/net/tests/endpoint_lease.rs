//! Loops that read the sockets of their endpoints themselves.

mod rig;

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use rig::*;
use wayferry_net::endpoint::{
    Config, Connection, Engine, Failure, Listener, Ready, ReceiveStream, SendStream, Target, Token, connect,
};

/// A loop, its end of a stream, and the far one, on an engine that is never kept from anything.
struct Loop {
    ear: Ear,
    engine: Engine,
    client: Connection,
    send: SendStream,
    far: Far,
}

/// What the loop turns for.
struct Ear {
    ready: Arc<Ready>,
    token: Token,
    waker: Waker,
    receive: ReceiveStream,
}

struct Far {
    send: SendStream,
    receive: ReceiveStream,
    _server: Connection,
    _listener: Listener,
}

impl Ear {
    /// Turns until something of at most `max` bytes has been read. `None`: `patience` is over.
    fn hear(&mut self, max: usize, patience: Duration) -> Option<Result<Vec<u8>, Failure>> {
        let (mut chunks, mut tokens) = (Vec::new(), Vec::new());
        loop {
            let polled = self.receive.poll_read(&mut Context::from_waker(&self.waker), &mut chunks, max);
            if let std::task::Poll::Ready(read) = polled {
                return Some(read.map(|_| chunks.concat()));
            }
            tokens.clear();
            while tokens.is_empty() {
                if !self.ready.wait(Some(patience)) {
                    return None;
                }
                self.ready.drain(&mut tokens);
            }
            assert_eq!(tokens, [self.token]);
        }
    }
}

impl Loop {
    fn new() -> Self {
        Self::on(fresh_engine())
    }

    /// A connection from `engine`, which belongs to this loop.
    fn on(engine: Engine) -> Self {
        Self::with(engine, Ready::new().unwrap(), None)
    }

    /// The same, from an address.
    fn with(engine: Engine, ready: Arc<Ready>, local: Option<SocketAddr>) -> Self {
        let token = ready.token();
        let waker = ready.waker(token);
        let tls = server_tls();
        let mut listener = listener(&tls, Config::default(), Default::default());
        let target = Target { local, ..target(listener.local_address()) };
        let connecting = connect(&engine, target, client_tls(&tls), Config::default());
        let mut server = accept(&mut listener);
        let mut client = wait(connecting).unwrap();
        client.belong_to(&ready);
        let (mut send, receive) = open_bi(&mut client);
        write(&mut send, b"0").unwrap();
        let (far_send, mut far_receive) = accept_bi(&mut server);
        assert_eq!(read(&mut far_receive, 1).unwrap(), b"0");
        let far = Far { send: far_send, receive: far_receive, _server: server, _listener: listener };
        Self { ear: Ear { ready, token, waker, receive }, engine, client, send, far }
    }

    /// A byte there and back, as often as it takes for the loop to be trusted with its socket.
    fn chat(&mut self) {
        for _ in 0..8 {
            write(&mut self.send, b"?").unwrap();
            assert_eq!(read(&mut self.far.receive, 1).unwrap(), b"?");
            write(&mut self.far.send, b"!").unwrap();
            assert_eq!(self.ear.hear(1, LIMIT).unwrap().unwrap(), b"!");
        }
    }

    /// Whether a byte from the far side is heard although the engine of this side does nothing.
    fn hears_alone(&mut self) -> bool {
        let (blocked, free) = block(&self.engine);
        write(&mut self.far.send, b"!").unwrap();
        let heard = self.ear.hear(1, MOMENT);
        drop(free);
        wait(blocked);
        let alone = heard.is_some();
        assert_eq!(heard.or_else(|| self.ear.hear(1, LIMIT)).unwrap().unwrap(), b"!");
        alone
    }

    /// Has it trusted. On a busy machine it may come back too late.
    fn is_trusted(&mut self) -> bool {
        (0..TRIES).any(|_| {
            self.chat();
            self.hears_alone()
        })
    }
}

#[test]
fn a_loop_with_little_to_do_needs_no_engine_to_hear() {
    let mut it = Loop::new();
    assert!(it.is_trusted());
    assert!(!it.ear.ready.wait(Some(Duration::ZERO)), "what was heard is told again");
}

#[test]
fn a_loop_that_does_not_come_back_has_its_engine_hear_for_it() {
    let mut it = Loop::new();
    assert!(it.is_trusted());
    it.chat();
    // No drain from here on.
    say(&mut it.far.send, b"are you there");
    assert_eq!(read_to_end(&mut it.ear.receive).unwrap(), b"are you there");
    let mut tokens = Vec::new();
    it.ear.ready.drain(&mut tokens);
}

#[test]
fn a_list_that_was_closed_leaves_the_socket_to_the_engine() {
    let mut it = Loop::new();
    assert!(it.is_trusted());
    it.chat();
    it.ear.ready.close();
    say(&mut it.far.send, b"still here");
    assert_eq!(read_to_end(&mut it.ear.receive).unwrap(), b"still here");
}

#[test]
fn what_is_much_arrives_whole_and_little_after_it() {
    let mut it = Loop::new();
    for round in 0..4 {
        assert!(it.is_trusted(), "in round {round}");
        let much = pattern(3 << 20);
        let mut heard = Vec::new();
        std::thread::scope(|scope| {
            scope.spawn(|| write(&mut it.far.send, &much).unwrap());
            while heard.len() < much.len() {
                heard.extend(it.ear.hear(1 << 20, LIMIT).expect("all of it").unwrap());
            }
        });
        assert_eq!(heard, much);
    }
}

#[test]
fn a_connection_that_moves_is_heard_where_it_went() {
    let mut it = Loop::new();
    assert!(it.is_trusted());
    for _ in 0..3 {
        it.chat();
        it.client.rebind(loopback()).unwrap();
        it.chat();
        assert!(it.is_trusted());
    }
}

#[test]
fn regression_what_was_new_or_had_moved_while_a_loop_read_was_left_to_the_engine() {
    let new = |it: &Loop| Loop::with(it.engine.clone(), Arc::clone(&it.ear.ready), Some(loopback()));
    let is_heard = |change: &dyn Fn(&mut Loop)| {
        // Where the machine is busy, the lease ends meanwhile.
        (0..20).any(|_| {
            let mut it = Loop::new();
            assert!(it.is_trusted());
            change(&mut it);
            it.chat();
            it.hears_alone()
        })
    };
    assert!(is_heard(&|it| *it = new(it)));
    assert!(is_heard(&|it| it.client.rebind(loopback()).unwrap()));
}

#[test]
fn regression_the_lease_of_an_engine_that_ended_was_never_looked_after_again() {
    let ready = Ready::new().unwrap();
    for round in 0..3 {
        let engine = Engine::start().unwrap();
        let mut it = Loop::with(engine, Arc::clone(&ready), None);
        assert!(it.is_trusted());
        it.chat();
        if round < 2 {
            // Its lease is held when it ends, as a rule.
            continue;
        }
        // No drain from here on.
        say(&mut it.far.send, b"are you there");
        assert_eq!(read_to_end(&mut it.ear.receive).unwrap(), b"are you there");
    }
}

#[test]
fn no_loop_reads_for_another() {
    let engine = fresh_engine();
    let (mut one, mut other) = (Loop::on(engine.clone()), Loop::on(engine));
    assert_eq!(one.client.local_address(), other.client.local_address());
    for _ in 0..3 {
        one.chat();
        assert!(!one.hears_alone());
        other.chat();
        assert!(!other.hears_alone());
    }
}

#[test]
fn a_loop_whose_endpoint_ended_rests() {
    let mut it = Loop::new();
    assert!(it.is_trusted());
    let place = it.client.local_address();
    it.client.close(0, b"");
    drop((it.send, it.ear.receive, it.client));
    // Its port is free again once nothing is left of it.
    eventually(|| UdpSocket::bind(place).is_ok());
    it.ear.ready.drain(&mut Vec::new());
    assert!(!it.ear.ready.wait(Some(Duration::ZERO)));
}

/// Long for what only needs a thread that is ready.
const MOMENT: Duration = Duration::from_millis(50);
const TRIES: usize = 200;
