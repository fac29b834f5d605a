//! A display side whose address changes under it, in network namespaces of its own: an app side at the other end of a
//! pair of virtual links, and `ip` that takes addresses away.
//!
//! Each test runs this very program again, once per side. Needs `unshare` and `ip`, and a kernel that gives a user
//! namespaces.

mod common;

use std::io::{BufRead, BufReader, Lines, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use common::*;
use wayferry_net::quic::{Connected, Listener, Options, connect};
use wayferry_net::{Fingerprint, Identity, Peers};
use wayferry_proto::{Arrival, Class, StreamId};

#[test]
fn an_address_change_in_the_middle_of_a_transfer_loses_nothing() {
    in_namespaces("an_address_change_in_the_middle_of_a_transfer_loses_nothing", |far| {
        let mut display = far.connect();
        far.tell("bulk");
        let mut streams = Streams::default();
        streams.take(next(&mut *display.carrier));
        ip("address delete 10.9.0.2/24 dev near");
        ip("address add 10.9.0.3/24 dev near");
        while streams.whole.is_empty() {
            streams.take(next(&mut *display.carrier));
        }
        assert_eq!(streams.whole[&0], bulk());
    });
}

/// Neither side has anything to say when it happens: the app side could not know where to send what it says next.
#[test]
fn regression_a_display_that_is_quiet_while_its_address_changes_is_found() {
    in_namespaces("regression_a_display_that_is_quiet_while_its_address_changes_is_found", |far| {
        let mut display = far.connect();
        ip("address delete 10.9.0.2/24 dev near");
        ip("address add 10.9.0.3/24 dev near");
        far.tell("word");
        assert_eq!(Streams::receive(&mut *display.carrier, 1).whole[&0], b"word");
    });
}

#[test]
fn each_change_of_address_is_followed_and_the_way_back_too() {
    in_namespaces("each_change_of_address_is_followed_and_the_way_back_too", |far| {
        let mut display = far.connect();
        for (round, [from, to]) in [[2, 3], [3, 4], [4, 2]].into_iter().enumerate() {
            ip(&format!("address delete 10.9.0.{from}/24 dev near"));
            ip(&format!("address add 10.9.0.{to}/24 dev near"));
            far.tell("word");
            let Arrival::Data { stream: StreamId(stream), .. } = next(&mut *display.carrier) else {
                panic!("no word");
            };
            assert_eq!(stream, round as u64);
            assert!(matches!(next(&mut *display.carrier), Arrival::Finished { .. }));
        }
    });
}

#[test]
fn a_link_that_was_away_carries_on() {
    in_namespaces("a_link_that_was_away_carries_on", |far| {
        let mut display = far.connect();
        ip("link set near down");
        far.tell("word");
        ip("link set near up");
        assert_eq!(Streams::receive(&mut *display.carrier, 1).whole[&0], b"word");
    });
}

/// What the display's side of a test knows of the app's.
struct Far {
    child: Child,
    orders: ChildStdin,
    words: Lines<BufReader<ChildStdout>>,
    address: SocketAddr,
    fingerprint: Fingerprint,
}

impl Far {
    /// Starts the app side in a namespace of its own and lays a link there.
    fn start(test: &str) -> Self {
        ip("link set lo up");
        let mut child = again(&["unshare", "--net"], test, "app");
        let orders = child.stdin.take().unwrap();
        let words = BufReader::new(child.stdout.take().unwrap()).lines();
        let (address, fingerprint) = (([0, 0, 0, 0], 0).into(), Fingerprint([0; 32]));
        let mut far = Self { child, orders, words, address, fingerprint };
        far.hear("away");
        ip(&format!("link add near type veth peer name far netns {}", far.child.id()));
        ip("address add 10.9.0.2/24 dev near");
        ip("link set near up");
        far.tell("linked");
        far.address = far.hear("address").parse().unwrap();
        far.fingerprint = far.hear("fingerprint").parse().unwrap();
        far
    }

    fn connect(&mut self) -> Connected {
        let identity = Identity::ephemeral().unwrap();
        let options = quiet();
        let (connected, _) =
            connect(&[self.address], &identity, self.fingerprint, PATIENCE, &options).unwrap();
        self.hear("accepted");
        connected
    }

    fn tell(&mut self, order: &str) {
        writeln!(self.orders, "{order}").unwrap();
    }

    /// The rest of the next line that begins so; the test harness prints lines of its own.
    fn hear(&mut self, word: &str) -> String {
        let found = self.words.by_ref().map(Result::unwrap).find_map(|line| {
            let (_, rest) = line.split_once(MARK)?;
            Some(rest.strip_prefix(word).expect("what was expected").trim().to_owned())
        });
        found.expect("the app side speaks")
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The app side: does what it is told until its orders end.
fn app_side() {
    let say = |text: String| println!("\n{MARK}{text}");
    let mut orders = std::io::stdin().lines().map(Result::unwrap);
    say("away".into());
    assert_eq!(orders.next().as_deref(), Some("linked"));
    ip("address add 10.9.0.1/24 dev far");
    ip("link set far up");
    let identity = Identity::ephemeral().unwrap();
    let address = ([10, 9, 0, 1], 0).into();
    let mut listener = Listener::bind(address, None, &identity, Peers::Secret, &quiet()).unwrap();
    say(format!("address {}", listener.local_addr()));
    say(format!("fingerprint {}", identity.fingerprint()));
    let mut display = listener.accept(PATIENCE).unwrap().carrier;
    display.welcome();
    say("accepted".into());
    for (stream, order) in orders.enumerate() {
        match order.as_str() {
            "bulk" => send_all(&mut *display, stream as u64, Class::Pipe, bulk()),
            _ => send_all(&mut *display, stream as u64, Class::Events, order.into_bytes()),
        }
    }
}

/// Runs a test's display side in a new process and namespace, or, in that process, `display` itself.
fn in_namespaces(test: &str, display: impl FnOnce(&mut Far)) {
    match std::env::var(ROLE).as_deref() {
        Ok("app") => app_side(),
        Ok(_) => display(&mut Far::start(test)),
        Err(_) => {
            let output = again(&["unshare", "--user", "--map-root-user", "--net"], test, "display");
            let output = output.wait_with_output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
        }
    }
}

/// One test of this program, under another one.
fn again(under: &[&str], test: &str, role: &str) -> Child {
    let mut command = Command::new(under[0]);
    command.args(&under[1..]).arg(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(ROLE, role);
    if role == "display" {
        command.stdin(Stdio::null()).stderr(Stdio::piped());
    } else {
        command.stdin(Stdio::piped());
    }
    command.stdout(Stdio::piped()).spawn().expect("`unshare` of util-linux")
}

fn ip(arguments: &str) {
    let status = Command::new("ip").args(arguments.split(' ')).status().expect("`ip` of iproute2");
    assert!(status.success(), "ip {arguments}");
}

/// No packet that the test did not cause.
fn quiet() -> Options {
    Options { keep_alive: Duration::from_secs(3600), ..Options::default() }
}

fn bulk() -> Vec<u8> {
    (0..24_000_000u32).map(|at| ((at * 7) >> 3) as u8).collect()
}

const PATIENCE: Duration = Duration::from_secs(20);

/// Says which side a process is.
const ROLE: &str = "WAYFERRY_TEST_ROLE";

/// Before each line from one side to the other.
const MARK: &str = "wayferry-test: ";
