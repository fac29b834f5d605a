//! The display of a session, or none: [`Succession`] decides, this performs it on links.
//!
//! While no display is there, what is sent goes nowhere. Viewers have a room of their own, `views`.
//! Invariant: after each call that may change the display, all consequences are carried out before anything else.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use wayferry_proto::admission::Stay;
use wayferry_proto::succession::{Around, End, Output, Presence, Program, Report, Rules, Succession};
use wayferry_proto::{Candidate, CloseReason, ClosedBy, Side, Time};
use wayferry_wayland::blob::Sent;

use super::{AppSide, Outcome};
use crate::control::Notice;
use crate::error::Error;
use crate::event::SessionEvent;
use crate::files::Files;
use crate::link::{Link, closed};

/// The link of the display, attached or away, or one without a peer.
pub struct Displays {
    succession: Succession<Link>,
    /// As which the admission knows the display that came last.
    stay: Option<Stay>,
    /// In place of a link while there is no display.
    absent: Link,
}

impl Displays {
    /// Only this display; the session ends with it.
    pub fn only(link: Link, now: Time) -> Self {
        Self { succession: Succession::only(link, now), stay: None, absent: Link::detached(Side::App) }
    }

    /// No display yet; displays come and go. The session ends if none has come by `expires`. Once one has come, or the
    /// programs have begun without, it ends when none has been there for `linger`.
    pub fn following(linger: Option<Duration>, expires: Option<Time>, now: Time) -> Self {
        let rules = Rules { followed: true, linger };
        Self {
            succession: Succession::new(rules, now, expires),
            stay: None,
            absent: Link::detached(Side::App),
        }
    }

    /// Whether one is there.
    pub(super) fn presence(&self) -> Presence {
        self.succession.presence().0
    }

    /// For how long that has been so.
    pub(super) fn lasts(&self, now: Time) -> Duration {
        now.since(self.succession.presence().1)
    }

    /// Whether the end of the session was decided.
    pub(super) fn is_leaving(&self) -> bool {
        self.succession.leaving().is_some()
    }

    /// The next deadline, beside the link's.
    pub(super) fn next_due(&self) -> Option<Time> {
        self.succession.next_timeout()
    }

    /// A display knows of the programs, or they begin without one.
    pub(super) fn show(&mut self) {
        self.succession.show();
    }

    /// The launcher is gone.
    pub(super) fn orphan(&mut self) {
        self.succession.orphan();
    }
}

impl Deref for Displays {
    type Target = Link;

    fn deref(&self) -> &Link {
        self.succession.display().unwrap_or(&self.absent)
    }
}

impl DerefMut for Displays {
    fn deref_mut(&mut self) -> &mut Link {
        self.succession.display_mut().unwrap_or(&mut self.absent)
    }
}

impl AsMut<Link> for Displays {
    fn as_mut(&mut self) -> &mut Link {
        self
    }
}

impl AppSide<'_> {
    /// A display was let in.
    pub(super) fn take_display(&mut self, now: Time, candidate: Candidate<Link>, stay: Option<Stay>) {
        self.hub.link.succession.enter(now, candidate);
        self.perform(now);
        self.hub.link.stay = stay;
    }

    /// The display may come back on another carrier; meanwhile it is sent nothing, and what it has not received is
    /// kept.
    pub(super) fn on_carrier_lost(&mut self, now: Time, reason: CloseReason) {
        self.forget_sound();
        self.hub.link.succession.lose_carrier(now, reason);
        self.perform(now);
    }

    /// The display's session is over.
    pub(super) fn on_display_over(&mut self, now: Time, reason: CloseReason, by: ClosedBy) {
        // Where this side ended it, the display has yet to hear why.
        self.hub.link.transmit(now);
        let around = self.around();
        self.hub.link.succession.close(now, reason, by, around);
        self.perform(now);
    }

    /// The display broke the protocol; it is told how.
    pub(super) fn refuse_display(&mut self, now: Time, reason: CloseReason) {
        self.hub.link.session.close(reason.clone());
        self.on_display_over(now, reason, ClosedBy::Us);
    }

    /// The user sends the display away, which is known no more.
    pub(super) fn send_display_away(&mut self, now: Time) {
        self.hub.link.succession.detach(now);
        self.perform(now);
    }

    /// The display came by a link that was revoked, and is known no more: it is sent away.
    pub(super) fn send_guest_away(&mut self, now: Time) {
        self.hub.link.succession.revoke(now);
        self.perform(now);
    }

    /// Does what is due.
    pub(super) fn look(&mut self, now: Time) {
        self.hub.link.succession.look(now);
        self.perform(now);
    }

    /// Whether no display will come for what is still here: the code to end with.
    pub(super) fn deserted(&mut self, now: Time) -> Option<u8> {
        let around = self.around();
        let code = self.hub.link.succession.deserted(now, around);
        self.perform(now);
        code
    }

    /// Decides that the session ends with this code. Says whether it was not decided before.
    pub(super) fn end(&mut self, now: Time, code: u8) -> bool {
        let around = self.around();
        let is_new = self.hub.link.succession.end(now, code, around);
        self.perform(now);
        is_new
    }

    /// Ends a session whose end was decided, once those who are to hear of it have, or had the time.
    pub(super) fn leave(&mut self, now: Time) {
        let around = self.around();
        self.hub.link.succession.leave(now, around);
        self.perform(now);
    }

    fn around(&self) -> Around {
        let program = match (self.own.is_none(), self.own.is_started()) {
            (true, _) => Program::Without,
            (false, true) => Program::Started,
            (false, false) => Program::Waits,
        };
        Around {
            viewers: self.views.count() > 0,
            awaited: !self.ending.stopping.is_empty(),
            program,
            connected: !self.programs.is_empty(),
        }
    }

    /// Does all that follows from what the succession was told.
    fn perform(&mut self, now: Time) {
        while let Some(output) = self.hub.link.succession.poll_output() {
            match output {
                Output::Drop(_) => {}
                Output::Dismiss(mut link) => link.transmit(now),
                Output::GiveUpCarrier => self.hub.link.lose_carrier(),
                Output::Detach => self.detach(now),
                Output::Forget => self.forget_display(),
                Output::Report(report) => self.on_report(report),
                Output::Over(end) => self.ending.over = Some(self.outcome(end)),
            }
        }
    }

    /// The programs go on without a display.
    fn detach(&mut self, now: Time) {
        self.hub.link.absent = Link::detached(Side::App);
        self.pipes.clear();
        self.urls.keep_to(None);
        self.files.iter_mut().for_each(Files::forget);
        self.forget_sound();
        self.blobs.sent = Sent::default();
        self.programs.forget_backlog();
        for program in self.programs.connections.values_mut() {
            program.core.detach(now);
        }
        if let Some(server) = &mut self.control_server {
            server.tell(&Notice::Detached);
            if let Some(stay) = self.hub.link.stay {
                server.admission().lose_stay(stay);
            }
        }
    }

    fn on_report(&mut self, report: Report) {
        let event = match report {
            Report::Attached => SessionEvent::DisplayAttached { viewer: false },
            Report::Away(reason) => SessionEvent::DisplayAway { reason: reason.to_string() },
            Report::Back => {
                self.programs.forget_backlog();
                // It may be back before its carrier was missed here, and has forgotten what it heard and recorded.
                self.forget_sound();
                SessionEvent::DisplayBack
            }
            Report::Lost(reason, by) => match closed(reason, by) {
                Err(error) => SessionEvent::DisplayLost { error },
                // It left, and is forgotten.
                Ok(_) => return,
            },
            Report::Missed => SessionEvent::DisplayMissed,
            Report::Expired => {
                let text = "the ticket expired: no display attached in time";
                return self.ending.over = Some(Err(Error::Secret(text.into())));
            }
        };
        self.hub.reporter.report(event);
    }

    fn outcome(&self, end: End) -> Result<Outcome, Error> {
        match end {
            End::Code(code) => Ok(self.exit_outcome(code)),
            End::Display(reason, by) => closed(reason, by).map(|_| Outcome::DisplayLeft),
        }
    }

    /// What was sent of sound is gone with its carrier, and nothing is wanted until the display says so again.
    fn forget_sound(&mut self) {
        self.sound.iter_mut().for_each(super::Sound::forget);
    }

    /// The display has left for good, or was sent away: it cannot come again by itself. The next one, which may have
    /// been let in by now, can.
    fn forget_display(&mut self) {
        if let (Some(stay), Some(server)) = (self.hub.link.stay.take(), &mut self.control_server) {
            server.admission().forget_stay(stay);
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;
    use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
    use std::sync::{Arc, Mutex};

    use wayferry_net::Carrier;
    use wayferry_proto::{
        Arrival, Capabilities, Config, Control, LinkState, Listen, Secret, Session, StreamId, Transmit,
    };
    use wayferry_wayland::app;
    use wayferry_wayland::snapshot::Snapshot;

    use super::*;
    use crate::app_side::AppSideConfig;
    use crate::clock::Clock;
    use crate::edge::part::Loop;
    use crate::edge::wait::Ready;
    use crate::event::Reporter;
    use crate::settings::Compress;
    use crate::sound::{Mode, SoundServer};

    /// A display that says something that is no session's, and what it is told.
    struct Babbling {
        says: Option<Arrival>,
        sent: Arc<Mutex<Vec<Transmit>>>,
        wake: OwnedFd,
    }

    impl Carrier for Babbling {
        fn transmit(&mut self, transmit: Transmit) {
            self.sent.lock().expect("one thread").push(transmit);
        }

        fn poll_arrival(&mut self) -> Option<Arrival> {
            self.says.take()
        }

        fn link(&self) -> LinkState {
            LinkState::default()
        }

        fn wake_fd(&self) -> BorrowedFd<'_> {
            self.wake.as_fd()
        }

        fn clear_wake(&self) {}
    }

    /// A descriptor on which nothing happens.
    fn never() -> OwnedFd {
        std::fs::File::open("/dev/null").expect("it is there").into()
    }

    pub(crate) fn app_side(clock: Clock, reporter: Reporter) -> AppSide<'static> {
        let core = app::Config::default();
        let config = AppSideConfig { core, compress: Compress::None, oneshot: false, stats: false };
        let displays = Displays::following(None, None, clock.now());
        AppSide::new(config, clock, displays, reporter)
    }

    fn candidate(now: Time, arrivals: Vec<Arrival>, carrier: Babbling) -> Candidate<Link> {
        let capabilities = Capabilities::RESUME;
        let mut session = Session::new(Config { capabilities, ..Config::new(Side::App) });
        arrivals.into_iter().for_each(|arrival| session.receive(now, arrival));
        let candidate = Candidate::new(Link::new(session, Box::new(carrier)));
        candidate.unwrap_or_else(|_| panic!("its hello is there"))
    }

    /// What a display says first.
    fn hello(now: Time, display: &mut Session) -> Vec<Arrival> {
        let mut lengths = BTreeMap::new();
        let said = std::iter::from_fn(|| display.poll_transmit(now));
        said.flat_map(|transmit| arrivals(transmit, &mut lengths)).collect()
    }

    /// What the other side gets of it, as far as it matters here.
    fn arrivals(transmit: Transmit, lengths: &mut BTreeMap<StreamId, u64>) -> Option<Arrival> {
        let Transmit::Data { stream, bytes, .. } = transmit else { return None };
        let length = lengths.entry(stream).or_default();
        let offset = std::mem::replace(length, *length + bytes.len() as u64);
        Some(Arrival::Data { stream, offset, bytes })
    }

    #[test]
    fn regression_a_display_that_breaks_the_protocol_is_not_told_so() {
        let clock = Clock::start();
        let mut side = app_side(clock, Reporter::new(|_| {}));
        let sent = Arc::new(Mutex::new(Vec::new()));
        // The main channel may not be given up.
        let says = Some(Arrival::Reset { stream: StreamId(0), code: 1 });
        let carrier = Babbling { says, sent: Arc::clone(&sent), wake: never() };
        let mut display = Session::new(Config::new(Side::Display));
        let hello = hello(clock.now(), &mut display);
        side.take_display(clock.now(), candidate(clock.now(), hello, carrier), None);
        let outcome = side.turn(clock.now(), &Ready::default()).expect("the session goes on");
        assert_eq!((outcome, side.hub.link.presence()), (None, Presence::Detached));
        let sent = sent.lock().expect("one thread");
        assert!(sent.iter().any(|transmit| matches!(transmit, Transmit::Close { .. })), "{sent:?}");
    }

    /// They came in one flight, and a display may have nothing more to say for a round trip.
    #[test]
    fn regression_what_a_display_says_with_its_hello_waits_for_its_next_word() {
        let clock = Clock::start();
        let now = clock.now();
        let mut side = app_side(clock, Reporter::new(|_| {}));
        let carrier = Babbling { says: None, sent: Arc::default(), wake: never() };
        let mut display = Session::new(Config::new(Side::Display));
        let snapshot = Control::Snapshot(Snapshot::default().encode().into());
        display.control(&snapshot).expect("it is short");
        let first = hello(now, &mut display);
        // As the control server's call has it done.
        side.take_display(now, candidate(now, first, carrier), None);
        side.hear_parts(now);
        assert!(side.desk.is_some(), "the programs may begin");
    }

    /// It has forgotten what it wanted to hear, and that a program records, when it lost its carrier.
    #[test]
    fn regression_a_display_that_is_back_before_it_was_missed_is_told_nothing_of_sound() {
        let clock = Clock::start();
        let now = clock.now();
        let events = Arc::new(Mutex::new(Vec::new()));
        let theirs = Arc::clone(&events);
        let reporter = Reporter::new(move |event| theirs.lock().expect("one thread").push(event));
        let side = app_side(clock, reporter);
        let mut side = side.with_sound(SoundServer::start(clock).ok(), Mode::default(), false);
        let config = || Config { resume: Some(Secret::from([7; 32])), ..Config::new(Side::Display) };
        let sent = Arc::new(Mutex::new(Vec::new()));
        let carrier = || Babbling { says: None, sent: Arc::clone(&sent), wake: never() };
        let mut display = Session::new(config());
        let first = hello(now, &mut display);
        side.take_display(now, candidate(now, first, carrier()), None);
        let listen = Listen { track: 1, rate: 96_000, target: 80, delay: 0 };
        let is_wanted = |side: &mut AppSide<'_>| side.sound.as_mut().expect("sound").wanted().is_some();
        let AppSide { sound, hub, .. } = &mut side;
        sound.as_mut().expect("sound").on_listen(listen, &mut hub.link.session);
        assert!(is_wanted(&mut side));

        // The session's hello.
        let told = sent.lock().expect("one thread").drain(..).collect::<Vec<_>>();
        let mut lengths = BTreeMap::new();
        told.into_iter().flat_map(|it| arrivals(it, &mut lengths)).for_each(|it| display.receive(now, it));
        display.suspend();
        let mut display = Session::resuming(config(), display);
        let second = hello(now, &mut display);
        side.take_display(now, candidate(now, second, carrier()), None);
        assert!(matches!(events.lock().expect("one thread").last(), Some(SessionEvent::DisplayBack)));
        assert!(!is_wanted(&mut side));
    }
}
