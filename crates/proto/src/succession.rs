//! Which display a session has: who follows whom, who may come again, and when the session ends. Sans-IO.
//!
//! A display that [admission](crate::admission) has let in goes on with the session that it had, or is told everything
//! anew in the place of the one before. One that lost its carrier is waited for, and what it is owed is kept, up to
//! [`MAX_OWED`]. The end is told to the display that is there, which gets some time to hear it. It knows no carriers,
//! no programs and no viewers: the caller holds them, hands over what happened, and performs each [`Output`]. `H` holds
//! a display's [`Session`], and what the caller keeps beside it. Invariant: at most one display is there; each that
//! leaves is handed out once; the code of the end is decided once, and nothing follows the end.
//!
//! The run loop: hand over each [`Session`] event of [`Succession::display_mut`] that says that its carrier is
//! [lost](Succession::lose_carrier) or that it is [closed](Succession::close), each display that
//! [comes](Succession::enter), and, once in each turn, [look](Succession::look) at what is due; after each of these
//! calls, [`Succession::poll_output`] until there is none.

use std::collections::VecDeque;
use std::mem;
use std::time::Duration;

use crate::{Candidate, CloseReason, ClosedBy, Config, Control, Session, Side, Time};

/// The display of a session, or the place of one. See the module.
#[derive(Debug)]
pub struct Succession<H> {
    rules: Rules,
    place: Place<H>,
    /// Since when it has been so.
    since: Time,
    course: Course,
    /// Until when the first display must have come.
    expires: Option<Time>,
    /// A display was told of the programs, or they began without one.
    shown: bool,
    /// No user is left who waits for what the session was started for.
    orphaned: bool,
    outputs: VecDeque<Output<H>>,
}

/// What a session is told once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Other displays may come; without, the session ends with its only one.
    pub followed: bool,
    /// How long another display is waited for; for ever without.
    pub linger: Option<Duration>,
}

/// A display's place.
#[derive(Debug)]
enum Place<H> {
    Empty,
    Active(H),
    /// It has lost its carrier, and may come again.
    Away(H),
}

/// How far the session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Course {
    Running,
    /// The display was told the code.
    Leaving {
        code: u8,
        until: Time,
    },
    Over,
}

/// Whether a display is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It is.
    Attached,
    /// It has lost its carrier, and may come again.
    Away,
    /// None is.
    Detached,
}

/// What is around a display, as the caller knows it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Around {
    /// Viewers are there.
    pub viewers: bool,
    /// A user has asked for the end, and waits for it.
    pub awaited: bool,
    /// The session's own program.
    pub program: Program,
    /// Programs are connected, or ask to be.
    pub connected: bool,
}

/// The program that a session was started for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Program {
    /// There is none, and will be none.
    #[default]
    Without,
    /// It has not begun.
    Waits,
    /// It has begun.
    Started,
}

/// What the caller is to do, in this order.
#[derive(Debug)]
pub enum Output<H> {
    /// To be dropped without a word: given up for another carrier, lost, or heard to the end.
    Drop(H),
    /// Its session was closed: what that has to say is to be sent, and then it is to be dropped.
    Dismiss(H),
    /// The display's carrier is to be given up; it is [away](Presence::Away) from now on.
    GiveUpCarrier,
    /// The programs go on without a display.
    Detach,
    /// The display that was there cannot come again by itself.
    Forget,
    /// To be told.
    Report(Report),
    /// The session is over.
    Over(End),
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// A display was let in, and is told everything anew.
    Attached,
    /// Its carrier is lost.
    Away(CloseReason),
    /// It goes on over another carrier.
    Back,
    /// It is gone, and not because anybody wished it.
    Lost(CloseReason, ClosedBy),
    /// No display has come back in time.
    Missed,
    /// No display has come at all in time.
    Expired,
}

/// How a session ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// As was decided here, with this code.
    Code(u8),
    /// With its only display.
    Display(CloseReason, ClosedBy),
}

impl<H: AsRef<Session> + AsMut<Session>> Succession<H> {
    /// Without a display, at `now`. If none has come when it `expires`, that is [reported](Report::Expired).
    pub fn new(rules: Rules, now: Time, expires: Option<Time>) -> Self {
        Self {
            rules,
            place: Place::Empty,
            since: now,
            course: Course::Running,
            expires,
            shown: false,
            orphaned: false,
            outputs: VecDeque::new(),
        }
    }

    /// With this display, of which nothing has been heard yet, and no other.
    pub fn only(display: H, now: Time) -> Self {
        let rules = Rules { followed: false, linger: None };
        Self { place: Place::Active(display), ..Self::new(rules, now, None) }
    }

    /// The display that is there or away.
    pub fn display(&self) -> Option<&H> {
        match &self.place {
            Place::Empty => None,
            Place::Active(display) | Place::Away(display) => Some(display),
        }
    }

    /// The display that is there or away, for what has arrived and what is to leave.
    pub fn display_mut(&mut self) -> Option<&mut H> {
        match &mut self.place {
            Place::Empty => None,
            Place::Active(display) | Place::Away(display) => Some(display),
        }
    }

    /// Whether a display is there, and since when it has been so.
    pub fn presence(&self) -> (Presence, Time) {
        let presence = match self.place {
            Place::Empty => Presence::Detached,
            Place::Active(_) => Presence::Attached,
            Place::Away(_) => Presence::Away,
        };
        (presence, self.since)
    }

    /// The code that the session ends with, once that is decided.
    pub fn leaving(&self) -> Option<u8> {
        match self.course {
            Course::Leaving { code, .. } => Some(code),
            Course::Running | Course::Over => None,
        }
    }

    /// Whether the session goes on without the display that is there.
    pub fn survives(&self) -> bool {
        self.rules.followed && self.course == Course::Running
    }

    /// What is to be done next.
    pub fn poll_output(&mut self) -> Option<Output<H>> {
        self.outputs.pop_front()
    }

    /// A display was let in. The one that is here goes on with it if it is the same; any other has to go.
    pub fn enter(&mut self, now: Time, candidate: Candidate<H>) {
        let peer = candidate.peer();
        let meets = |here: &H| {
            let (peer, session) = (peer?, here.as_ref());
            Some((session.is_late(peer), session.is_of(peer)))
        };
        let (late, same) = self.display().and_then(meets).unwrap_or_default();
        if late || self.course == Course::Over {
            // It has given this carrier up for the one that is here, and hears nothing more on it.
            return self.outputs.push_back(Output::Drop(candidate.begin(now)));
        }
        let candidate = match if same { self.resume(now, candidate) } else { Err(candidate) } {
            Ok(display) => {
                self.place = Place::Active(display);
                return self.outputs.push_back(Output::Report(Report::Back));
            }
            Err(candidate) => candidate,
        };
        self.dismiss(now, CloseReason::Gone);
        self.place = Place::Active(candidate.begin(now));
        self.since = now;
        self.expires = None;
        self.outputs.push_back(Output::Report(Report::Attached));
    }

    /// The same display has come on another carrier, and goes on; if it comes back, its session was over at this very
    /// moment.
    fn resume(&mut self, now: Time, candidate: Candidate<H>) -> Result<H, Candidate<H>> {
        let (Place::Active(mut old) | Place::Away(mut old)) = mem::replace(&mut self.place, Place::Empty)
        else {
            return Err(candidate);
        };
        let session = mem::replace(old.as_mut(), Session::new(Config::new(Side::App)));
        let display = candidate.succeed(now, session).map_err(|(candidate, _)| candidate);
        self.since = now;
        self.outputs.push_back(Output::Drop(old));
        if display.is_err() {
            self.outputs.push_back(Output::Detach);
        }
        display
    }

    /// The display's session has lost its carrier ([`Event::Suspended`](crate::Event::Suspended)), and waits for
    /// another. Of an earlier carrier, in whose place another has come meanwhile, this says nothing.
    pub fn lose_carrier(&mut self, now: Time, reason: CloseReason) {
        match mem::replace(&mut self.place, Place::Empty) {
            Place::Active(display) if display.as_ref().is_suspended() => {
                self.place = Place::Away(display);
                self.since = now;
                self.outputs.extend([Output::Report(Report::Away(reason)), Output::GiveUpCarrier]);
            }
            place => self.place = place,
        }
    }

    /// The display's session is over ([`Event::Closed`](crate::Event::Closed)), or is to be as if it were. Where this
    /// side ended it, the caller has sent what it had to say.
    pub fn close(&mut self, now: Time, reason: CloseReason, by: ClosedBy, around: Around) {
        if matches!(self.place, Place::Empty) {
            return;
        }
        match self.course {
            Course::Running if self.rules.followed => {
                // One that is lost may come again, and is told everything anew; one that left may not.
                self.outputs.push_back(match reason {
                    CloseReason::Done => Output::Forget,
                    reason => Output::Report(Report::Lost(reason, by)),
                });
                self.lose(now, Output::Drop);
            }
            Course::Running => self.finish(End::Display(reason, by)),
            // Viewers hear of the end, too.
            Course::Leaving { .. } if around.viewers => self.empty(now, Output::Drop),
            Course::Leaving { code, .. } => self.finish(End::Code(code)),
            Course::Over => {}
        }
    }

    /// The user sends the display away. Says whether one was there or away.
    pub fn detach(&mut self, now: Time) -> bool {
        self.send_away(now, CloseReason::Done)
    }

    /// What the display came by was taken back: it is sent away, and hears that its secret is good no more. Says
    /// whether one was there or away.
    pub fn revoke(&mut self, now: Time) -> bool {
        self.send_away(now, CloseReason::BadSecret)
    }

    fn send_away(&mut self, now: Time, why: CloseReason) -> bool {
        if self.course == Course::Over {
            return false;
        }
        let was_there = self.dismiss(now, why);
        self.outputs.push_back(Output::Forget);
        was_there
    }

    /// A display was told of the programs, or they begin without one.
    pub fn show(&mut self) {
        self.shown = true;
    }

    /// The user who started the session has left: what it was started for is waited for no more.
    pub fn orphan(&mut self) {
        self.orphaned = true;
    }

    /// Does what is due at `now`, and what is due because more is owed to a display that is away.
    pub fn look(&mut self, now: Time) {
        if self.course == Course::Over {
            return;
        }
        if self.course == Course::Running && self.expires.is_some_and(|at| at <= now) {
            self.expires = None;
            self.outputs.push_back(Output::Report(Report::Expired));
        }
        if let Place::Away(display) = &self.place
            && display.as_ref().retained() > MAX_OWED
        {
            self.lose(now, Output::Drop);
        }
    }

    /// Whether no display will come for what is still here: with which code the session is to [end](Succession::end).
    pub fn deserted(&mut self, now: Time, around: Around) -> Option<u8> {
        if self.course != Course::Running {
            return None;
        }
        if self.lingers_until().is_some_and(|at| at <= now) {
            self.outputs.push_back(Output::Report(Report::Missed));
            return Some(0);
        }
        // Of a shell that hung up with its terminal, the programs are left; of a session without any, nothing.
        let left = around.program == Program::Without && !around.connected;
        // The user who wanted it left before any display came.
        let unwanted = !self.shown && around.program != Program::Started;
        (self.orphaned && self.rules.followed && (left || unwanted)).then_some(0)
    }

    /// Decides with which code the session ends. The display hears it, as soon as what its session has to say is sent.
    /// Says whether it was not decided before.
    pub fn end(&mut self, now: Time, code: u8, around: Around) -> bool {
        if self.course != Course::Running {
            return false;
        }
        if let Some(display) = self.display_mut() {
            // Cannot fail: the message is small and ours to send.
            let _ = display.as_mut().control(&Control::Exit { code: code.into() });
        }
        let patience = match &self.place {
            _ if around.viewers => EXIT_PATIENCE,
            Place::Active(_) => EXIT_PATIENCE,
            Place::Away(_) if !around.awaited => AWAY_PATIENCE,
            Place::Away(_) | Place::Empty => Duration::ZERO,
        };
        self.course = Course::Leaving { code, until: now + patience };
        self.expires = None;
        true
    }

    /// Ends a session whose end was decided, once no display is left that could hear of it, or each has had the time.
    pub fn leave(&mut self, now: Time, around: Around) {
        let Course::Leaving { code, until } = self.course else { return };
        let alone = matches!(self.place, Place::Empty) && !around.viewers;
        if now >= until || alone {
            self.empty(now, |mut display| {
                display.as_mut().close(CloseReason::Done);
                Output::Dismiss(display)
            });
            self.finish(End::Code(code));
        }
    }

    /// When [`Succession::look`], [`Succession::deserted`] and [`Succession::leave`] are to be called, at the latest.
    pub fn next_timeout(&self) -> Option<Time> {
        let leaves = match self.course {
            Course::Leaving { until, .. } => Some(until),
            Course::Running => self.lingers_until(),
            Course::Over => return None,
        };
        [leaves, self.expires].into_iter().flatten().min()
    }

    /// When a display that is not there was waited for long enough.
    fn lingers_until(&self) -> Option<Time> {
        let waits = self.shown && self.course == Course::Running && !matches!(self.place, Place::Active(_));
        self.rules.linger.filter(|_| waits).map(|linger| self.since + linger)
    }

    /// Ends the connection to a display, which hears why. Says whether there was one.
    fn dismiss(&mut self, now: Time, why: CloseReason) -> bool {
        let is_there = !matches!(self.place, Place::Empty);
        if is_there {
            self.lose(now, |mut display| {
                display.as_mut().close(why);
                Output::Dismiss(display)
            });
        }
        is_there
    }

    /// The programs go on without the display.
    fn lose(&mut self, now: Time, hand_out: impl FnOnce(H) -> Output<H>) {
        self.empty(now, hand_out);
        self.outputs.push_back(Output::Detach);
    }

    fn empty(&mut self, now: Time, hand_out: impl FnOnce(H) -> Output<H>) {
        if let Place::Active(display) | Place::Away(display) = mem::replace(&mut self.place, Place::Empty) {
            self.since = now;
            self.outputs.push_back(hand_out(display));
        }
    }

    fn finish(&mut self, end: End) {
        self.course = Course::Over;
        self.outputs.push_back(Output::Over(end));
    }
}

/// Bytes that are kept for a display that is away.
pub const MAX_OWED: usize = 16 << 20;
/// How long a display may take to answer the end.
pub const EXIT_PATIENCE: Duration = Duration::from_secs(3);
/// How long a display that is away may take to come and hear of the end.
pub const AWAY_PATIENCE: Duration = Duration::from_secs(30);
