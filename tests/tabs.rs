//! Browsers that do what none should: tabs that come by the hundred, guess, or stop reading.

use std::fs;

use wayferry_host::clock::Clock;
use wayferry_host::link::Link as Carried;
use wayferry_proto::{Capabilities, CloseReason, Config, Event, Secret, Session as Protocol, Side};

use crate::pages::page::Browser;
use crate::programs::{keeps_changing, mpv};
use crate::rig::{PATIENCE, Program, Session, Sway, poll, until};
use crate::sessions::memory;
use crate::share::{Link, links, session_document};
use crate::views::same;

#[test]
fn of_a_hundred_tabs_at_one_link_as_many_are_let_in_as_may_be_and_all_hear_why() {
    let (sway, looking) = (Sway::start(), Sway::with_output(1600, 900));
    let mut session = Session::start(&sway);
    let shell = ["-a", "foot", "sh", "-c", "head -n 2 > heard; exec cat"];
    let mut foot = session.launch("foot").args(shell).start();
    sway.window("foot", |window| window.app_id == "foot" && window.focused);
    let other = Link::make(&session, &[]);
    let viewer = other.open(&looking, Capabilities::VIEW);
    looking.window("foot at the viewer", |window| window.app_id == "foot");
    let guessed = Link::make(&session, &[]);
    let guesses = crowd(&guessed, Secret::from([7; 32]));
    assert_eq!(guesses.len(), 0, "nobody comes in by a guess");
    assert_eq!(links(&session)[1], "2: view, 8 left, 0 there", "a guess uses nothing up");
    drop(guessed);

    let mut rest = Vec::new();
    for word in ["first", "second"] {
        let link = Link::make(&session, &[]);
        let tabs = crowd(&link, link.ticket.secret);
        // Eight may view, and one does already.
        assert_eq!(tabs.len(), 7, "{:?}", links(&session));
        until("eight views", || (session_document(&session)["views"] == 8).then_some(()));
        sway.type_text(word);
        sway.keys(&["-k", "Return"]);
        same(&sway, &looking);
        // As tabs that are closed.
        drop(tabs);
        until("one view", || (session_document(&session)["views"] == 1).then_some(()));
        rest.push(Rest::of(&session.host));
    }
    session.home().read_when("heard", |text| text == b"first\nsecond\n");
    until("descriptors that are closed again", || {
        (Rest::of(&session.host).descriptors <= rest[0].descriptors).then_some(())
    });
    assert!(rest[1].memory < rest[0].memory + (4 << 10), "a hundred more leave nothing behind: {rest:?}");
    viewer.leave();
    foot.must_run();
    session.must_run();
}

/// Its tab stops reading while a video plays, which 16 MiB are nothing to.
#[test]
fn a_tab_that_stops_reading_costs_the_host_little_and_nobody_else_anything_and_catches_up() {
    let (sway, looking) = (Sway::start(), Sway::with_output(1600, 900));
    let mut session = Session::start(&sway);
    let mut video = session.join(mpv(session.home()).arg("--loop")).start();
    sway.window("mpv", |window| window.app_id == "mpv");
    let (good, bad) = (Link::make(&session, &[]), Link::make(&session, &[]));
    let viewer = good.open(&looking, Capabilities::VIEW);
    looking.window("mpv at the viewer", |window| window.app_id == "mpv");
    let behind = Sway::with_output(1600, 900);
    let tab = bad.open(&behind, Capabilities::VIEW);
    behind.window("mpv at the tab", |window| window.app_id == "mpv");
    keeps_changing(&behind);
    let before = memory(&session.host);
    tab.stall(true);
    for _ in 0..8 {
        keeps_changing(&sway);
        keeps_changing(&looking);
    }
    let after = memory(&session.host);
    assert!(after < before + (16 << 10), "memory grew from {before} kB to {after} kB");
    video.kill();
    sway.empty();
    let mut foot = session.launch("foot").args(["-a", "foot", "cat"]).start();
    sway.window("foot", |window| window.app_id == "foot");
    same(&sway, &looking);
    tab.stall(false);
    same(&sway, &behind);
    assert_eq!(session_document(&session)["views"], 2);
    tab.leave();
    viewer.leave();
    foot.must_run();
    session.must_run();
}

/// A hundred tabs that come at once by a link, each with this secret; gives those that were let in. They read nothing
/// from then on.
fn crowd(link: &Link, secret: Secret) -> Vec<Carried> {
    let come = || come(link, secret);
    let ends: Vec<_> = std::thread::scope(|scope| {
        let tabs: Vec<_> = (0..100).map(|_| scope.spawn(come)).collect();
        tabs.into_iter().map(|tab| tab.join().expect("it hears what becomes of it")).collect()
    });
    let mut inside = Vec::new();
    for end in ends {
        match end {
            Ok(tab) => inside.push(tab),
            // Of a link that is used up, or has no such secret, and of a session that is full.
            Err(CloseReason::BadSecret | CloseReason::TooMuch(_)) => {}
            Err(other) => panic!("a tab was told: {other}"),
        }
    }
    inside
}

/// A tab comes, until it is let in or told why not.
fn come(link: &Link, secret: Secret) -> Result<Carried, CloseReason> {
    let ticket = &link.ticket;
    let page = Browser::connect(ticket.addresses[0], ticket.fingerprint).expect("it answers");
    let page = page.page(&link.origin).unwrap_or_else(|status| panic!("status {status}"));
    let config = Config {
        session: ticket.session,
        secret: Some(secret),
        capabilities: Capabilities::VIEW,
        ..Config::new(Side::Display)
    };
    let (clock, mut tab) = (Clock::start(), Carried::new(Protocol::new(config), Box::new(page)));
    let end = poll(PATIENCE, || {
        let now = clock.now();
        tab.receive(now);
        let mut end = tab.session.is_welcome().then_some(Ok(()));
        while let Some(event) = tab.poll_event() {
            if let Event::Closed { reason, .. } = event {
                end = Some(Err(reason));
            }
        }
        tab.transmit(now);
        end
    });
    end.expect("a word of the host's").map(|()| tab)
}

/// What the host holds while nothing happens.
#[derive(Debug)]
struct Rest {
    /// In kB.
    memory: usize,
    descriptors: usize,
}

impl Rest {
    fn of(host: &Program) -> Self {
        let open = fs::read_dir(format!("/proc/{}/fd", host.pid().as_raw_nonzero())).expect("of our own");
        Self { memory: memory(host), descriptors: open.count() }
    }
}
