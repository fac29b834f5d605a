//! Browsers that do what none should: tabs that come by the hundred, guess, or stop reading.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use wayferry_host::clock::Clock;
use wayferry_host::link::Link as Carried;
use wayferry_proto::{
    Capabilities, CloseReason, Config, Event, Secret, Session as Protocol, SessionId, Side,
};

use crate::pages::page::{Browser, Page};
use crate::programs::{keeps_changing, mpv};
use crate::rig::{Program, Session, Sway, until};
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
    let guesses = Crowd::come(&guessed, Secret::from([7; 32]));
    guesses.sent_away(100);
    guesses.close();
    assert_eq!(links(&session)[1], "2: view, 8 left, 0 there", "a guess uses nothing up");
    drop(guessed);

    let mut rest = Vec::new();
    for word in ["first", "second"] {
        let link = Link::make(&session, &[]);
        let tabs = Crowd::come(&link, link.ticket.secret);
        // Eight may view, and one does already.
        tabs.sent_away(93);
        until("eight views", || (session_document(&session)["views"] == 8).then_some(()));
        sway.type_text(word);
        sway.keys(&["-k", "Return"]);
        same(&sway, &looking);
        tabs.sent_away(93);
        tabs.close();
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

#[test]
fn a_tab_that_stops_reading_costs_the_host_little_and_other_tabs_nothing_and_catches_up() {
    let (sway, looking, behind) =
        (Sway::start(), Sway::with_output(2000, 1200), Sway::with_output(2000, 1200));
    let mut session = Session::start(&sway);
    let mut video = session.join(mpv(session.home()).arg("--loop")).start();
    sway.window("mpv", |window| window.app_id == "mpv");
    let (good, bad) = (Link::make(&session, &[]), Link::make(&session, &[]));
    let viewer = good.open(&looking, Capabilities::VIEW);
    looking.window("mpv at the viewer", |window| window.app_id == "mpv");
    let tab = bad.open(&behind, Capabilities::VIEW);
    behind.window("mpv at the tab", |window| window.app_id == "mpv");
    // Until the host has all that it needs.
    for _ in 0..10 {
        keeps_changing(&behind);
    }
    let before = memory(&session.host);
    tab.stall(true);
    for _ in 0..10 {
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

/// A hundred tabs that came at once.
struct Crowd {
    /// What those have heard that were sent away.
    told: Arc<Mutex<Vec<CloseReason>>>,
    is_over: Arc<AtomicBool>,
    tabs: Vec<JoinHandle<()>>,
}

impl Crowd {
    /// They come by a link, each with this secret.
    fn come(link: &Link, secret: Secret) -> Self {
        let (told, is_over) = (Arc::<Mutex<Vec<_>>>::default(), Arc::<AtomicBool>::default());
        let tabs = (0..100).map(|_| {
            let (told, is_over) = (Arc::clone(&told), Arc::clone(&is_over));
            let (origin, ticket) = (link.origin.clone(), link.ticket.clone());
            std::thread::spawn(move || {
                let page = Browser::connect(ticket.addresses[0], ticket.fingerprint).expect("it answers");
                let page = page.page(&origin).unwrap_or_else(|status| panic!("status {status}"));
                if let Some(reason) = view(page, ticket.session, secret, &is_over) {
                    told.lock().expect("no panic").push(reason);
                }
            })
        });
        let tabs = tabs.collect();
        Self { told, is_over, tabs }
    }

    /// Waits until so many were sent away, each with a word of why.
    fn sent_away(&self, count: usize) {
        until("a word for each tab that is sent away", || {
            (self.told.lock().expect("no panic").len() >= count).then_some(())
        });
        let told = self.told.lock().expect("no panic");
        // A link that is used up or has no such secret, and a session that is full.
        let is_why =
            |reason: &CloseReason| matches!(reason, CloseReason::BadSecret | CloseReason::TooMuch(_));
        assert!(told.len() == count && told.iter().all(is_why), "{} were told: {told:?}", told.len());
    }

    /// All that are there are closed, as tabs are.
    fn close(self) {
        self.is_over.store(true, Ordering::Release);
        self.tabs.into_iter().for_each(|tab| tab.join().expect("no panic"));
    }
}

/// A tab that views until it is over, or says why it was sent away.
fn view(page: Page, session: SessionId, secret: Secret, is_over: &AtomicBool) -> Option<CloseReason> {
    let capabilities = Capabilities::VIEW;
    let config = Config { session, secret: Some(secret), capabilities, ..Config::new(Side::Display) };
    let (clock, mut tab) = (Clock::start(), Carried::new(Protocol::new(config), Box::new(page)));
    while !is_over.load(Ordering::Acquire) {
        let now = clock.now();
        tab.receive(now);
        while let Some(event) = tab.poll_event() {
            if let Event::Closed { reason, .. } = event {
                return Some(reason);
            }
        }
        tab.transmit(now);
        std::thread::park_timeout(Duration::from_millis(20));
    }
    None
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
