//! A page as the display: WebTransport by hand, with the display side of this program behind it.

#[path = "../crates/net/tests/page/mod.rs"]
pub(crate) mod page;

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use wayferry_host::clock::Clock;
use wayferry_host::display_side::{Compositor as Shown, DisplaySide, Outcome, Watched};
use wayferry_host::edge::handle::Handle;
use wayferry_host::edge::socket::random_bytes;
use wayferry_host::error::Error;
use wayferry_host::event::Reporter;
use wayferry_host::link::Link;
use wayferry_net::{Carrier, Ticket};
use wayferry_proto::{Arrival, Capabilities, Config, LinkState, Secret, Session as Protocol, Side, Transmit};

use crate::programs::{FOOT, direct, pose};
use crate::rig::{Compositor, Session, Sway, until};
use crate::sessions::manage;
use crate::sound::{Ear, Hosted};
use page::{Browser, Page};

#[test]
fn a_page_with_a_ticket_shows_what_a_display_shows_and_takes_its_place() {
    let sway = Sway::start();
    let mut pointer = sway.pointer();
    let (desk, expected) = direct(&FOOT, &sway, &mut pointer);
    let mut session = Session::start(&sway);
    let mut foot = session.join((FOOT.prepare)(session.home())).start();
    pose(&FOOT, &sway, &desk, &mut pointer);
    sway.shows("foot at a display", &expected);
    let ticket = ticket(&session, &["--page", ORIGIN]);
    let display = Display::attach(&sway, &ticket, Capabilities::default());
    assert_eq!(session.attach.ended().code(), Some(0), "{}", session.attach.stderr());
    sway.shows("foot at a page", &expected);
    let again = Display::attach(&sway, &ticket, Capabilities::default());
    assert!(matches!(again.end(), Err(Error::Secret(_))), "a ticket works once");
    sway.shows("foot at the first page", &expected);
    foot.must_run();
    session.host.must_run();
    display.leave();
    sway.empty();
    foot.must_run();
}

#[test]
fn what_is_typed_at_a_page_arrives_and_a_page_for_viewing_types_nothing() {
    let (sway, looking) = (Sway::start(), Sway::with_output(1600, 900));
    let mut session = Session::start(&sway);
    let shell = ["-a", "foot", "sh", "-c", "head -n 2 > heard; exec cat"];
    let mut foot = session.launch("foot").args(shell).start();
    sway.window("foot", |window| window.app_id == "foot" && window.focused);
    let view = ticket(&session, &["--view", "--page", ORIGIN]);
    let view = Display::attach(&looking, &view, Capabilities::VIEW);
    looking.window("foot at the view", |window| window.app_id == "foot" && window.focused);
    session.attach.must_run();
    type_line(&looking, "intruder");
    looking.settled();
    let active = Display::attach(&sway, &ticket(&session, &["--page", ORIGIN]), Capabilities::default());
    session.attach.ended();
    sway.window("foot at the page", |window| window.app_id == "foot" && window.focused);
    type_line(&sway, "first");
    type_line(&sway, "second");
    session.home().read_when("heard", |text| text == b"first\nsecond\n");
    foot.must_run();
    manage(&session, &["detach", "--views"]).run();
    let end = view.end();
    assert!(matches!(end, Ok(Outcome::HostLeft)), "{end:?}");
    looking.empty();
    active.leave();
}

#[test]
fn a_page_from_elsewhere_and_one_without_a_ticket_are_turned_away() {
    let sway = Sway::start();
    let mut session = Session::start(&sway);
    let ticket = ticket(&session, &["--page", ORIGIN]);
    assert_eq!(browser(&ticket).page("http://localhost:8001").err(), Some(404));
    let stranger = Display::with_secret(&sway, &ticket, Capabilities::default(), Secret::from([7; 32]));
    let end = stranger.end();
    assert!(matches!(end, Err(Error::Secret(_))), "{end:?}");
    session.must_run();
}

#[test]
fn regression_a_page_that_views_was_offered_sound_that_is_not_shared() {
    for (options, is_shared) in [(&[][..], false), (&["--share-audio"], true)] {
        let hosted = Hosted::start(options);
        let ear = Ear::start(&[], &[&hosted.ticket]);
        let mut session = hosted.heard_by(ear);
        let ticket: Ticket = session.ticket(&["--view", "--page", ORIGIN]).parse().expect("a ticket");
        let page = browser(&ticket).page(ORIGIN).unwrap_or_else(|status| panic!("status {status}"));
        let offered = Capabilities::VIEW.with(Capabilities::SOUND).with(Capabilities::SHARED_SOUND);
        let config = Config {
            session: ticket.session,
            secret: Some(ticket.secret),
            capabilities: offered,
            ..Config::new(Side::Display)
        };
        let (clock, mut link) = (Clock::start(), Link::new(Protocol::new(config), Box::new(page)));
        until("a welcome", || {
            let now = clock.now();
            link.receive(now);
            while link.poll_event().is_some() {}
            link.transmit(now);
            link.session.is_welcome().then_some(())
        });
        assert_eq!(link.session.may_sound(), is_shared, "{options:?}");
        session.must_run();
    }
}

/// The display side of a page, on a thread of its own.
pub(crate) struct Display {
    handle: Handle,
    /// It reads nothing while this is set.
    is_stalled: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Outcome, Error>>>,
}

impl Display {
    fn attach(sway: &Sway, ticket: &Ticket, capabilities: Capabilities) -> Self {
        Self::with_secret(sway, ticket, capabilities, ticket.secret)
    }

    fn with_secret(sway: &Sway, ticket: &Ticket, capabilities: Capabilities, secret: Secret) -> Self {
        Self::come(sway, (ORIGIN, ticket), capabilities, secret)
    }

    /// By a link to a page of this origin.
    pub(crate) fn by_link(sway: &Sway, link: (&str, &Ticket), capabilities: Capabilities) -> Self {
        Self::come(sway, link, capabilities, link.1.secret)
    }

    fn come(
        sway: &Sway,
        (origin, ticket): (&str, &Ticket),
        capabilities: Capabilities,
        secret: Secret,
    ) -> Self {
        let handle = Handle::new().expect("a descriptor");
        let theirs = handle.clone();
        let socket = sway.home().runtime().join(sway.display());
        let page = browser(ticket).page(origin).unwrap_or_else(|status| panic!("status {status}"));
        let session = ticket.session;
        let is_stalled = Arc::<AtomicBool>::default();
        let page = Stalling { page, is_stalled: Arc::clone(&is_stalled), unsaid: Vec::new() };
        let run = move || {
            let clock = Clock::start();
            let watched = Watched::new(Shown::At(socket), clock, None)?;
            let resume = Some(Secret::from(random_bytes()));
            let is_view = capabilities.has(Capabilities::VIEW);
            let config =
                Config { session, secret: Some(secret), resume, capabilities, ..Config::new(Side::Display) };
            let link = Link::new(Protocol::new(config), Box::new(page));
            let reporter = Reporter::new(drop);
            let side = DisplaySide::new(watched, clock, link, false, reporter);
            side.with_handle(theirs).with_view_only(is_view).run()
        };
        Self { handle, is_stalled, thread: Some(std::thread::spawn(run)) }
    }

    /// Stops reading what comes, or goes on.
    pub(crate) fn stall(&self, whether: bool) {
        self.is_stalled.store(whether, Ordering::Release);
    }

    pub(crate) fn leave(self) {
        self.handle.stop();
        let end = self.end();
        assert!(matches!(end, Ok(Outcome::Stopped)), "{end:?}");
    }

    /// How it ends by itself.
    pub(crate) fn end(mut self) -> Result<Outcome, Error> {
        self.thread.take().expect("it runs").join().expect("no panic")
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        self.handle.stop();
    }
}

/// A page that may stop reading, as a tab whose worker is busy or stopped.
struct Stalling {
    page: Page,
    is_stalled: Arc<AtomicBool>,
    /// What it has not said meanwhile.
    unsaid: Vec<Transmit>,
}

impl Carrier for Stalling {
    fn transmit(&mut self, transmit: Transmit) {
        self.unsaid.push(transmit);
        if !self.is_stalled.load(Ordering::Acquire) {
            self.unsaid.drain(..).for_each(|transmit| self.page.transmit(transmit));
        }
    }

    fn poll_arrival(&mut self) -> Option<Arrival> {
        if self.is_stalled.load(Ordering::Acquire) {
            return None;
        }
        self.unsaid.drain(..).for_each(|transmit| self.page.transmit(transmit));
        self.page.poll_arrival()
    }

    fn link(&self) -> LinkState {
        self.page.link()
    }

    fn wake_fd(&self) -> BorrowedFd<'_> {
        self.page.wake_fd()
    }

    fn clear_wake(&self) {
        self.page.clear_wake();
    }
}

/// Whether a page from there is listened to.
pub(crate) fn may_come(ticket: &Ticket, origin: &str) -> bool {
    browser(ticket).page(origin).is_ok()
}

fn browser(ticket: &Ticket) -> Browser {
    Browser::connect(ticket.addresses[0], ticket.fingerprint).expect("it answers")
}

fn ticket(session: &Session, options: &[&str]) -> Ticket {
    let printed = manage(session, &[&["ticket"], options].concat()).run();
    String::from_utf8(printed).expect("text").trim().parse().expect("a ticket")
}

fn type_line(sway: &Sway, text: &str) {
    sway.type_text(text);
    sway.keys(&["-k", "Return"]);
}

const ORIGIN: &str = "http://localhost:8000";
