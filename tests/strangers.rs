//! Strangers at the port of `host --listen`: they come as fast as they can and have no secret.

use std::time::{Duration, Instant};

use wayferry_net::quic::{Options, connect};
use wayferry_net::{Identity, Ticket};

use crate::rig::{Session, Sway};
use crate::sessions::{manage, memory};

#[test]
fn a_right_ticket_gets_in_among_strangers_and_the_session_goes_on() {
    among_strangers(300);
}

#[test]
#[ignore = "ten seconds of 200 strangers each: `make test-full`"]
fn a_right_ticket_gets_in_among_strangers_for_long() {
    among_strangers(2000);
}

fn among_strangers(count: u32) {
    let (sway, other) = (Sway::start(), Sway::start());
    let mut session = Session::start(&sway);
    let mut foot =
        session.launch("foot").args(["-a", "foot", "sh", "-c", "head -n 1 > heard; exec cat"]).start();
    sway.window("foot", |window| window.app_id == "foot" && window.focused);
    let tickets: Vec<String> = (0..2)
        .map(|_| {
            String::from_utf8(manage(&session, &["ticket", "--view"]).run()).expect("text").trim().into()
        })
        .collect();
    let ticket: Ticket = tickets[0].parse().expect("a ticket");
    let before = memory(&session.host);
    let strangers = std::thread::spawn(move || flood(&ticket, count));
    // One comes in the middle of it, the other where it has been going on.
    let mut view = crate::rig::attach_to(&other, &[], &["--view", &tickets[0]]);
    other.window("foot at the view", |window| window.app_id == "foot");
    sway.type_text("alive");
    sway.keys(&["-k", "Return"]);
    session.home().read_when("heard", |text| text == b"alive\n");
    let mut most = 0;
    while !strangers.is_finished() {
        most = most.max(memory(&session.host));
        std::thread::park_timeout(Duration::from_millis(20));
    }
    let (met, rate) = strangers.join().expect("they came");
    assert!(met >= count / 2, "only {met} of {count} strangers met the host");
    view.must_run();
    view.kill();
    other.empty();
    let mut view = crate::rig::attach_to(&other, &[], &["--view", &tickets[1]]);
    other.window("foot at the second view", |window| window.app_id == "foot");
    println!(
        "{met} of {count} strangers, {rate:.0} a second: the host has {} MB more",
        most.saturating_sub(before) >> 10
    );
    assert!(most < before + (32 << 10), "{before} kB before, {most} kB among strangers");
    view.must_run();
    foot.must_run();
    session.must_run();
}

/// At most 200 in a second, each with a certificate of its own, that say nothing; gives how many met the host, and how
/// many came in a second.
fn flood(ticket: &Ticket, count: u32) -> (u32, f64) {
    let start = Instant::now();
    let met = std::thread::scope(|scope| {
        let numbers = |first| (first..count).step_by(CROWDS as usize);
        let crowds: Vec<_> =
            (0..CROWDS).map(|first| scope.spawn(move || crowd(ticket, start, numbers(first)))).collect();
        crowds.into_iter().map(|crowd| crowd.join().expect("they came")).sum()
    });
    (met, f64::from(count) / start.elapsed().as_secs_f64())
}

fn crowd(ticket: &Ticket, start: Instant, numbers: impl Iterator<Item = u32>) -> u32 {
    let mut those = std::collections::VecDeque::new();
    let mut met = 0;
    for number in numbers {
        let due = Duration::from_millis(5) * number;
        std::thread::park_timeout(due.saturating_sub(start.elapsed()));
        let identity = Identity::ephemeral().expect("an identity");
        let patience = Duration::from_secs(5);
        let connected =
            connect(&ticket.addresses, &identity, ticket.fingerprint, patience, &Options::default());
        // They stay for as long as the host lets them, and this process has descriptors.
        met += u32::from(connected.is_ok());
        those.extend(connected.map(|(connected, _)| connected.carrier));
        if those.len() > 12 {
            those.pop_front();
        }
    }
    met
}

/// Threads that strangers come from.
const CROWDS: u32 = 6;
