//! Any sequence of what displays and users do, beside a simple account of what must become of each display.

use std::time::Duration;

use wayferry_proto::succession::{Around, End, MAX_OWED, Output, Presence, Report, Rules, Succession};
use wayferry_proto::{Candidate, CloseReason, Event, Time};

use crate::desk::{Desk, Holder, lost};

#[derive(Debug, Clone)]
pub(crate) enum Operation {
    /// This desk's display comes on another carrier, or another display does if that has ended.
    Come(usize),
    /// One of those that have come is let in.
    Enter(u8),
    /// The carrier of the display that is there is lost.
    Cut,
    /// What it and the app side have to say to each other arrives.
    Talk,
    /// It closes.
    Leave,
    /// It breaks the protocol.
    Err,
    Detach,
    /// Much waits for it.
    Owe,
    Show,
    Orphan,
    Around(Around),
    Pass(Duration),
    End(u8),
}

/// # Panics
/// When a rule does not hold.
pub(crate) fn run(followed: bool, operations: &[Operation]) {
    let mut world = World::new(followed);
    for operation in operations {
        world.step(operation);
        world.perform();
        world.turn();
        world.perform();
        world.check();
    }
}

/// Which hello a carrier brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Hello {
    carrier: u32,
    incarnation: u8,
    attempt: u64,
    /// In which attempt what it wants to go on with.
    began: u64,
    resuming: bool,
}

struct World {
    now: Time,
    succession: Succession<Holder>,
    around: Around,
    /// Each desk with how often its display has come.
    desks: [Option<(Desk, Hello)>; 3],
    incarnations: u8,
    carriers: u32,
    candidates: Vec<(Candidate<Holder>, Hello)>,
    /// The account: which display must be there.
    here: Option<Hello>,
    entered: Vec<u32>,
    handed_out: Vec<u32>,
    /// Outputs must begin with these.
    expected: Vec<&'static str>,
    code: Option<u8>,
    over: bool,
}

impl World {
    fn new(followed: bool) -> Self {
        let rules = Rules { followed, linger: Some(Duration::from_secs(100)) };
        Self {
            now: Time::ZERO,
            succession: Succession::new(rules, Time::ZERO, None),
            around: Around::default(),
            desks: [None, None, None],
            incarnations: 0,
            carriers: 0,
            candidates: Vec::new(),
            here: None,
            entered: Vec::new(),
            handed_out: Vec::new(),
            expected: Vec::new(),
            code: None,
            over: false,
        }
    }

    fn step(&mut self, operation: &Operation) {
        let now = self.now;
        match *operation {
            Operation::Come(desk) => self.come(desk),
            Operation::Enter(which) => self.enter(which),
            Operation::Cut => self.arrive(Holder::cut),
            Operation::Talk => self.talk(),
            Operation::Leave => self.close(CloseReason::Done),
            Operation::Err => self.close(CloseReason::ProtocolViolation("x".into())),
            Operation::Detach => {
                let is_there = self.succession.detach(now);
                let was_here = if self.over { None } else { self.here.take() };
                assert_eq!(is_there, was_here.is_some());
            }
            Operation::Owe => {
                if let Some(display) =
                    self.succession.display_mut().filter(|display| !display.session.is_closed())
                {
                    display.owe(MAX_OWED / 2);
                }
            }
            Operation::Show => self.succession.show(),
            Operation::Orphan => self.succession.orphan(),
            Operation::Around(around) => self.around = around,
            Operation::Pass(time) => self.now += time,
            Operation::End(code) => self.end(code),
        }
    }

    fn come(&mut self, desk: usize) {
        self.carriers += 1;
        let carrier = self.carriers;
        let (mut display, mut hello) = match self.desks[desk].take() {
            Some((mut display, hello)) if display.session.is_resumable() => {
                display.resume(carrier);
                (display, Hello { carrier, attempt: hello.attempt + 1, resuming: true, ..hello })
            }
            _ => {
                self.incarnations += 1;
                let incarnation = self.incarnations;
                (
                    Desk::new(incarnation, carrier),
                    Hello { carrier, incarnation, attempt: 0, began: 0, resuming: false },
                )
            }
        };
        let candidate = display.knock(self.now);
        (hello.resuming, hello.began) =
            candidate.peer().map(|peer| (peer.resuming, peer.began)).unwrap_or_default();
        self.desks[desk] = Some((display, hello));
        self.candidates.push((candidate, hello));
    }

    fn enter(&mut self, which: u8) {
        if self.candidates.is_empty() {
            return;
        }
        let (candidate, hello) = self.candidates.remove(usize::from(which) % self.candidates.len());
        let same = self.here.filter(|here| here.incarnation == hello.incarnation);
        let late = same.is_some_and(|here| here.attempt >= hello.attempt);
        self.entered.push(hello.carrier);
        // Whether one that the display does not know to be declined goes on is its session's matter.
        // So is whether one goes on that wants what began in a later attempt, which an earlier one has followed.
        let sure = same.is_none_or(|here| here.attempt == 0 && hello.began == 0);
        self.expected = match (self.here, same) {
            _ if self.over || late => vec!["drop"],
            (_, Some(_)) if !sure => Vec::new(),
            (_, Some(_)) if hello.resuming => vec!["drop", "back"],
            (Some(_), _) => vec!["dismiss", "detach", "attached"],
            (None, _) => vec!["attached"],
        };
        if !self.over && !late {
            self.here = Some(hello);
        }
        self.succession.enter(self.now, candidate);
    }

    /// Something of its carrier reaches the display's session, and the caller passes on what that says.
    fn arrive(&mut self, what: impl FnOnce(&mut Holder, Time)) {
        let attached = self.succession.presence().0 == Presence::Attached;
        let Some(display) = self.succession.display_mut().filter(|_| attached) else { return };
        what(display, self.now);
        self.take_events();
    }

    fn close(&mut self, reason: CloseReason) {
        self.arrive(|display, now| {
            display.session.receive(now, wayferry_proto::Arrival::Closed { reason });
        });
    }

    fn take_events(&mut self) {
        while let Some(event) = self.succession.display_mut().and_then(|display| display.session.poll_event())
        {
            match event {
                Event::Suspended { reason } => {
                    assert_eq!(reason, lost());
                    self.expected = vec!["away", "give up"];
                    self.succession.lose_carrier(self.now, reason);
                }
                Event::Closed { reason, by } => {
                    self.account_close(&reason);
                    return self.succession.close(self.now, reason, by, self.around);
                }
                _ => {}
            }
        }
    }

    fn account_close(&mut self, reason: &CloseReason) {
        if self.over {
            return;
        }
        if self.succession.survives() {
            self.expected = match reason {
                CloseReason::Done => vec!["forget", "drop", "detach"],
                _ => vec!["lost", "drop", "detach"],
            };
            self.here = None;
        } else if self.code.is_some() && self.around.viewers {
            self.expected = vec!["drop"];
            self.here = None;
        } else {
            self.expected = vec!["over"];
        }
    }

    fn talk(&mut self) {
        let now = self.now;
        let attached = self.succession.presence().0 == Presence::Attached;
        let sound = |display: &&mut Holder| attached && !display.session.is_closed();
        let Some(display) = self.succession.display_mut().filter(sound) else { return };
        let desk = self.desks.iter_mut().flatten().find(|(desk, _)| desk.carrier == display.carrier);
        if let Some((desk, _)) = desk {
            let asked = display.session.peer().is_some_and(|peer| peer.resuming);
            let known = desk.session.peer().is_some();
            let events = desk.talk(now, display);
            let answered = events.iter().any(|event| matches!(event, Event::Resumed | Event::Declined));
            let ended = events.iter().any(|event| matches!(event, Event::Closed { .. }));
            assert!(!asked || known || answered || ended, "it gets its session, or is declined: {events:?}");
        }
        self.take_events();
    }

    fn end(&mut self, code: u8) {
        let decided = self.succession.end(self.now, code, self.around);
        assert_eq!(decided, self.code.is_none() && !self.over, "once");
        if decided {
            self.code = Some(code);
        }
    }

    fn turn(&mut self) {
        self.succession.look(self.now);
        if let Some(code) = self.succession.deserted(self.now, self.around) {
            self.end(code);
        }
        self.succession.leave(self.now, self.around);
    }

    fn perform(&mut self) {
        let mut names = Vec::new();
        while let Some(output) = self.succession.poll_output() {
            names.push(self.perform_one(output));
        }
        let expected = std::mem::take(&mut self.expected);
        assert!(names.starts_with(&expected), "{names:?} instead of {expected:?}");
    }

    fn perform_one(&mut self, output: Output<Holder>) -> &'static str {
        match output {
            Output::Drop(holder) => {
                self.leave(&holder);
                "drop"
            }
            Output::Dismiss(mut holder) => {
                self.leave(&holder);
                assert!(holder.session.is_closed(), "it hears why");
                holder.close_code(self.now);
                assert!(!holder.speaks(self.now), "once");
                "dismiss"
            }
            Output::GiveUpCarrier => "give up",
            Output::Detach => "detach",
            Output::Forget => "forget",
            Output::Report(Report::Attached) => "attached",
            Output::Report(Report::Away(_)) => "away",
            Output::Report(Report::Back) => "back",
            Output::Report(Report::Lost(..)) => "lost",
            Output::Report(Report::Missed) => "missed",
            Output::Report(Report::Expired) => "expired",
            Output::Over(end) => {
                assert!(!std::mem::replace(&mut self.over, true), "once");
                if let End::Code(code) = end {
                    assert_eq!(Some(code), self.code, "as decided");
                }
                "over"
            }
        }
    }

    /// A display was handed out.
    fn leave(&mut self, holder: &Holder) {
        assert!(!self.handed_out.contains(&holder.carrier), "once");
        self.handed_out.push(holder.carrier);
        if self.here.is_some_and(|here| here.carrier == holder.carrier) {
            self.here = None;
        }
    }

    fn check(&self) {
        let here = self.succession.display().map(|display| display.carrier);
        assert_eq!(here, self.here.map(|here| here.carrier), "who is there");
        let mut all = self.handed_out.clone();
        all.extend(here);
        all.sort_unstable();
        let mut entered = self.entered.clone();
        entered.sort_unstable();
        assert_eq!(all, entered, "each display is there, or was handed out");
        if self.succession.presence().0 == Presence::Away {
            let owed = self.succession.display().map_or(0, |display| display.session.retained());
            assert!(owed <= MAX_OWED, "{owed} are owed");
        }
        if !self.over {
            assert_eq!(self.succession.leaving(), self.code, "the code does not change");
        }
    }
}
