//! What programs of the session notify the user of, on its way to the display.
//!
//! The display's side decides how it is shown, and whether. While none is there that shows any, the newest wait for the
//! next. Invariant: a program is told the end of each of its notifications once at most, and only the display that
//! shows one is believed.

use std::collections::VecDeque;

use rustix::process::Pid;
use wayferry_proto::{Control, NoteEnd, Secret, Session, Time};

use crate::edge::part::{Hub, Part};
use crate::edge::wait::{Interests, Ready};
use crate::error::Error;
use crate::event::SessionEvent;
use crate::notes::Queue;
use crate::notes::bus::{Asked, Bus, Told};

/// See the module.
#[derive(Debug)]
pub(super) struct Notes {
    bus: Bus,
    queue: Queue,
    /// What the display was sent and has not ended.
    shown: VecDeque<u32>,
    /// Which one that is.
    display: Option<Secret>,
    /// It shows some.
    is_open: bool,
    /// The bus is gone.
    is_over: bool,
}

impl Notes {
    pub(super) fn new(bus: Bus) -> Self {
        Self {
            bus,
            queue: Queue::default(),
            shown: VecDeque::new(),
            display: None,
            is_open: false,
            is_over: false,
        }
    }

    /// The process group of the bus, and of the servers that it has started.
    pub(super) fn group(&self) -> Option<Pid> {
        self.bus.group()
    }

    /// Sends what may be sent now; `is_open` says whether the display shows any.
    pub(super) fn pass(&mut self, now: Time, is_open: bool, session: &mut Session) {
        self.is_open = is_open;
        self.send(now, session);
        while let Some(asked) = self.bus.poll() {
            match asked {
                Asked::Note(note) => {
                    let given_up = self.queue.add(note, is_open);
                    given_up.into_iter().for_each(|id| self.bus.tell(Told::Closed(id, NoteEnd::Undefined)));
                    self.send(now, session);
                }
                Asked::Close(id) => self.close(id, session),
            }
        }
    }

    fn send(&mut self, now: Time, session: &mut Session) {
        while let Some(note) = self.is_open.then(|| self.queue.poll(now)).flatten() {
            self.shown.retain(|shown| *shown != note.id);
            self.shown.push_back(note.id);
            if self.shown.len() > MAX_SHOWN {
                self.shown.pop_front();
            }
            // Its program is not told if it cannot be sent: the session is over then.
            let _ = session.control(&Control::Notify(note));
        }
    }

    /// A program takes one back.
    fn close(&mut self, id: u32, session: &mut Session) {
        let was_waiting = self.queue.remove(id);
        let is_shown = self.shown.contains(&id);
        if is_shown && self.is_open {
            let _ = session.control(&Control::CloseNotification { id });
        } else if is_shown || was_waiting {
            self.shown.retain(|shown| *shown != id);
            self.bus.tell(Told::Closed(id, NoteEnd::Closed));
        }
    }

    /// The display says that one is not shown any more.
    pub(super) fn on_closed(&mut self, id: u32, end: NoteEnd) {
        let Some(at) = self.shown.iter().position(|shown| *shown == id) else { return };
        self.shown.remove(at);
        self.bus.tell(Told::Closed(id, end));
    }

    /// The user has chosen an action.
    pub(super) fn on_action(&mut self, id: u32, key: String, token: Option<String>) {
        if self.shown.contains(&id) {
            self.bus.tell(Told::Action { id, key, token });
        }
    }

    /// This display shows the session now: another one does not know what was shown.
    pub(super) fn keep_to(&mut self, display: Option<Secret>) {
        if display.is_none() || self.display != display {
            self.display = display;
            self.shown.drain(..).for_each(|id| self.bus.tell(Told::Closed(id, NoteEnd::Undefined)));
        }
    }
}

impl Part for Notes {
    fn interests<'a>(&'a mut self, _now: Time, _hub: &'a Hub<'_>, interests: &mut Interests<'a>) {
        interests.until(self.queue.next_timeout().filter(|_| self.is_open));
        interests.read(self.bus.wake());
        if !self.is_over {
            interests.read(&self.bus);
        }
    }

    fn turn(&mut self, _now: Time, hub: &mut Hub<'_>, ready: &Ready) -> Result<(), Error> {
        self.bus.clear_wake();
        if !self.is_over && ready.has(&self.bus) && self.bus.daemon().status().is_some() {
            self.is_over = true;
            let reason = "the session's bus has ended".to_owned();
            hub.reporter.report(SessionEvent::NoNotifications { reason });
        }
        Ok(())
    }
}

/// Notifications whose end the display may tell; that of older ones is not passed on.
const MAX_SHOWN: usize = 64;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use wayferry_proto::Note;

    use super::*;
    use crate::edge::part::alone;

    const OPEN: bool = true;
    const SHUT: bool = false;

    fn at(seconds: u64) -> Time {
        Time::new(Duration::from_secs(1000 + seconds))
    }

    fn note(id: u32) -> Asked {
        Asked::Note(Note { id, app: "one".into(), ..Note::default() })
    }

    #[test]
    fn what_no_display_shows_waits_and_who_takes_it_back_is_told() {
        let (bus, ask, told) = Bus::alone();
        let (mut base, _) = alone::base();
        let (mut notes, session) = (Notes::new(bus), &mut base.link.session);
        [note(1), note(2), Asked::Close(2), Asked::Close(7)]
            .into_iter()
            .for_each(|it| ask.send(it).expect("room"));
        notes.pass(at(0), SHUT, session);
        assert!(notes.shown.is_empty() && alone::turn(&mut notes, at(0), &mut base) == 2);
        assert_eq!(told.try_iter().collect::<Vec<_>>(), [Told::Closed(2, NoteEnd::Closed)]);
        notes.pass(at(0), OPEN, &mut base.link.session);
        assert_eq!(notes.shown, [1]);
        // The display is away: it cannot answer.
        ask.send(Asked::Close(1)).expect("room");
        notes.pass(at(0), SHUT, &mut base.link.session);
        assert_eq!(told.try_iter().collect::<Vec<_>>(), [Told::Closed(1, NoteEnd::Closed)]);
    }

    #[test]
    fn an_end_is_told_once_and_only_of_what_the_display_shows() {
        let (bus, ask, told) = Bus::alone();
        let (mut base, _) = alone::base();
        let mut notes = Notes::new(bus);
        notes.keep_to(Some([1; 32].into()));
        (1..=3).for_each(|id| ask.send(note(id)).expect("room"));
        notes.pass(at(0), OPEN, &mut base.link.session);
        notes.on_action(9, "default".into(), None);
        notes.on_closed(9, NoteEnd::Dismissed);
        assert_eq!(told.try_iter().count(), 0, "a display that makes numbers up");
        notes.on_action(1, "default".into(), None);
        notes.on_closed(1, NoteEnd::Dismissed);
        notes.on_closed(1, NoteEnd::Expired);
        let action = Told::Action { id: 1, key: "default".into(), token: None };
        assert_eq!(told.try_iter().collect::<Vec<_>>(), [action, Told::Closed(1, NoteEnd::Dismissed)]);
        // The same display on another carrier goes on; another one does not know what was shown.
        notes.keep_to(Some([1; 32].into()));
        assert_eq!(told.try_iter().count(), 0);
        notes.keep_to(Some([2; 32].into()));
        let gone = [2, 3].map(|id| Told::Closed(id, NoteEnd::Undefined));
        assert_eq!(told.try_iter().collect::<Vec<_>>(), gone);
    }

    #[test]
    fn a_bus_that_has_ended_is_told_of_once() {
        let (mut bus, _ask, _told) = Bus::alone();
        let (mut base, events) = alone::base();
        bus.daemon().end(Duration::ZERO);
        let mut notes = Notes::new(bus);
        assert_eq!(alone::turn(&mut notes, at(0), &mut base), 1);
        alone::turn(&mut notes, at(0), &mut base);
        assert!(matches!(&events.try_iter().collect::<Vec<_>>()[..], [SessionEvent::NoNotifications { .. }]));
    }
}
