//! Shows at this desk what programs of the session notify the user of.
//!
//! It exists where the user wants that. The desk's server is asked by threads of its own ([`super::desk`]); here is
//! what waits for its turn, and what the host is told. Invariant: the session never waits for the desk, and trouble
//! with it is told once until it is over.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};

use rustix::event::{EventfdFlags, eventfd};
use wayferry_proto::{Control, Note, NoteEnd, Session, Time};

use super::Queue;
use super::desk::{self, Ask, Said, Teller};
use crate::edge::part::{Hub, Part};
use crate::edge::wait::{Interests, Ready};
use crate::error::Error;
use crate::event::{Reporter, SessionEvent};

/// See the module.
#[derive(Debug)]
pub struct Showing {
    queue: Queue,
    asks: SyncSender<Ask>,
    said: Receiver<Said>,
    wake: Arc<OwnedFd>,
    /// The user knows that nothing can be shown.
    is_told: bool,
    /// There is no terminal on which the user reads of the session; and whether it was told here that nothing is heard.
    is_only_way: bool,
    is_stale: bool,
}

impl Showing {
    /// Prepares to show what programs of `host` say; the user reads this name with each.
    ///
    /// # Errors
    /// The system has no thread or no descriptors left.
    pub fn start(host: String) -> io::Result<Self> {
        Self::start_with(move |asks, again, teller| desk::work(&host, &asks, &again, &teller))
    }

    /// The user is also told here when nothing is heard of the host, as there is no terminal for that.
    #[must_use]
    pub fn instead_of_terminal(mut self, is_only_way: bool) -> Self {
        self.is_only_way = is_only_way;
        self
    }

    /// Nothing is heard of the host any more, or something is again.
    pub(crate) fn on_contact(
        &mut self,
        now: Time,
        is_stale: bool,
        session: &mut Session,
        reporter: &Reporter,
    ) {
        if !self.is_only_way || std::mem::replace(&mut self.is_stale, is_stale) == is_stale {
            return;
        }
        let (summary, body) = match is_stale {
            true => {
                ("no contact", "Its windows stand still. What you type arrives when the network is back.")
            }
            false => ("contact again", ""),
        };
        let note = Note { id: OWN, app: "wayferry".into(), ..Note::default() };
        let _ = self.queue.add(Note { summary: summary.into(), body: body.into(), ..note }, true);
        self.pass(now, session, reporter);
    }

    fn start_with(
        work: impl FnOnce(Receiver<Ask>, SyncSender<Ask>, Teller) + Send + 'static,
    ) -> io::Result<Self> {
        let (asks, asked) = sync_channel(MAX_ASKS);
        let (tell, said) = channel();
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let (again, teller) = (asks.clone(), Teller { said: tell, wake: Arc::clone(&wake) });
        let thread = std::thread::Builder::new().name("notes".into());
        thread.spawn(move || work(asked, again, teller))?;
        Ok(Self {
            queue: Queue::default(),
            asks,
            said,
            wake,
            is_told: false,
            is_only_way: false,
            is_stale: false,
        })
    }

    /// A program of the session notifies the user, or takes that back.
    pub(crate) fn on_message(
        &mut self,
        now: Time,
        message: Control,
        session: &mut Session,
        reporter: &Reporter,
    ) {
        match message {
            Control::Notify(note) => self.on_note(now, note, session, reporter),
            Control::CloseNotification { id } => self.on_close(id, session),
            _ => {}
        }
    }

    fn on_note(&mut self, now: Time, note: Note, session: &mut Session, reporter: &Reporter) {
        if note.id == OWN {
            return;
        }
        if let Some(id) = self.queue.add(note, true) {
            closed(id, NoteEnd::Undefined, session);
        }
        self.pass(now, session, reporter);
    }

    fn on_close(&mut self, id: u32, session: &mut Session) {
        if id == OWN {
            return;
        }
        if self.queue.remove(id) {
            return closed(id, NoteEnd::Closed, session);
        }
        // While the desk does not answer, the notification stays.
        let _ = self.asks.try_send(Ask::Close(id));
    }

    /// Gives the desk what may be shown now.
    fn pass(&mut self, now: Time, session: &mut Session, reporter: &Reporter) {
        while let Some(note) = self.queue.poll(now) {
            let id = note.id;
            if self.asks.try_send(Ask::Show(note)).is_err() {
                self.fail(id, "it does not answer".into(), session, reporter);
            }
        }
    }

    fn fail(&mut self, id: u32, reason: String, session: &mut Session, reporter: &Reporter) {
        // What cannot be shown so is on stderr all the same.
        if id == OWN {
            return;
        }
        if !std::mem::replace(&mut self.is_told, true) {
            reporter.report(SessionEvent::NoNotifications { reason });
        }
        closed(id, NoteEnd::Undefined, session);
    }
}

impl Drop for Showing {
    fn drop(&mut self) {
        // A full queue has something in it that the thread has to say, and finds out by that.
        let _ = self.asks.try_send(Ask::End);
    }
}

impl Part for Showing {
    fn interests<'a>(&'a mut self, _now: Time, _hub: &'a Hub<'_>, interests: &mut Interests<'a>) {
        interests.read(&*self.wake);
        interests.until(self.queue.next_timeout());
    }

    fn turn(&mut self, now: Time, hub: &mut Hub<'_>, _ready: &Ready) -> Result<(), Error> {
        let _ = rustix::io::read(&*self.wake, &mut [0u8; 8]);
        let (session, reporter) = (&mut hub.link.session, hub.reporter);
        while let Ok(said) = self.said.try_recv() {
            match said {
                Said::Shown => self.is_told = false,
                Said::Failed(id, reason) => self.fail(id, reason, session, reporter),
                Said::Closed(id, end) => closed(id, end, session),
                Said::Action { id: OWN, .. } => {}
                Said::Action { id, key, token } => {
                    let _ = session.control(&Control::NotificationAction { id, key, token });
                }
            }
        }
        self.pass(now, session, reporter);
        Ok(())
    }
}

/// Tells the host. While the carrier is away this is kept, as all that must arrive once.
fn closed(id: u32, end: NoteEnd, session: &mut Session) {
    if id == OWN {
        return;
    }
    let _ = session.control(&Control::NotificationClosed { id, end });
}

/// The id of what this side itself tells; D-Bus gives programs none such.
const OWN: u32 = 0;
/// What the desk is asked and has not begun to do.
const MAX_ASKS: usize = 8;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::edge::part::{Base, alone};

    fn note(id: u32, app: &str) -> Note {
        Note { id, app: app.into(), ..Note::default() }
    }

    fn at(seconds: u64) -> Time {
        Time::new(Duration::from_secs(1000 + seconds))
    }

    /// A desk that does as `answer` says, and what it was asked.
    fn with_desk(answer: impl Fn(&Ask) -> Option<Said> + Send + 'static) -> (Showing, Receiver<Ask>) {
        let (tell, heard) = channel();
        let work = move |asks: Receiver<Ask>, _again, teller: Teller| {
            while let Ok(ask) = asks.recv() {
                let said = answer(&ask);
                let _ = tell.send(ask);
                said.into_iter().for_each(|said| {
                    let _ = teller.say(said);
                });
            }
        };
        (Showing::start_with(work).expect("a thread"), heard)
    }

    #[test]
    fn a_lost_host_is_told_of_where_there_is_no_terminal_and_no_host_can_say_that() {
        for is_only_way in [true, false] {
            let (showing, asks) = with_desk(|_| None);
            let mut showing = showing.instead_of_terminal(is_only_way);
            let mut base = alone::base().0;
            let reporter = base.reporter.clone();
            for is_stale in [false, true, true, false] {
                showing.on_contact(at(0), is_stale, &mut base.link.session, &reporter);
            }
            add(&mut showing, at(0), note(OWN, "no host's"), &mut base);
            add(&mut showing, at(0), note(1, "a program's"), &mut base);
            drop(showing);
            let asked: Vec<String> = asks
                .iter()
                .take_while(|ask| *ask != Ask::End)
                .filter_map(|ask| match ask {
                    Ask::Show(note) if note.id == OWN => Some(note.summary),
                    Ask::Show(note) => Some(note.app),
                    _ => None,
                })
                .collect();
            let own: &[&str] = if is_only_way { &["no contact", "contact again"] } else { &[] };
            assert_eq!(asked, [own, &["a program's"]].concat());
        }
    }

    fn add(showing: &mut Showing, now: Time, note: Note, base: &mut Base) {
        let reporter = base.reporter.clone();
        showing.on_note(now, note, &mut base.link.session, &reporter);
    }

    #[test]
    fn a_host_that_keeps_to_no_pace_is_held_back() {
        let (mut showing, heard) = with_desk(|_| None);
        let (mut base, events) = alone::base();
        for id in 1..=200 {
            add(&mut showing, at(0), note(id, "flood"), &mut base);
        }
        let shown: Vec<Ask> = (0..5).map(|_| heard.recv().expect("a desk")).collect();
        assert_eq!(shown.last(), Some(&Ask::Show(note(5, "flood"))));
        alone::turn(&mut showing, at(0), &mut base);
        assert_eq!(heard.try_recv().ok(), None);
        alone::turn(&mut showing, at(1), &mut base);
        assert_eq!(heard.recv(), Ok(Ask::Show(note(200, "flood"))));
        assert!(events.try_iter().next().is_none());
    }

    #[test]
    fn trouble_with_the_desk_is_told_once_until_it_is_over() {
        let fails = |ask: &Ask| match ask {
            Ask::Show(note) if note.id % 10 != 0 => Some(Said::Failed(note.id, "no bus".into())),
            _ => Some(Said::Shown),
        };
        let (mut showing, heard) = with_desk(fails);
        let (mut base, events) = alone::base();
        let mut told = Vec::new();
        for id in [1, 2, 10, 11, 12] {
            add(&mut showing, at(id.into()), note(id, ""), &mut base);
            heard.recv().expect("a desk");
            // The desk's word follows.
            while rustix::event::poll(
                &mut [rustix::event::PollFd::new(&*showing.wake, rustix::event::PollFlags::IN)],
                None,
            ) != Ok(1)
            {}
            alone::turn(&mut showing, at(id.into()), &mut base);
            told.push(events.try_iter().count());
        }
        assert_eq!(told, [1, 0, 0, 1, 0]);
    }

    #[test]
    fn a_desk_that_never_answers_holds_up_nobody() {
        let (release, held) = channel::<()>();
        let work = move |_asks: Receiver<Ask>, _again, _teller| {
            let _ = held.recv();
        };
        let mut showing = Showing::start_with(work).expect("a thread");
        let (mut base, events) = alone::base();
        for id in 1..=100 {
            add(&mut showing, at(u64::from(id)), note(id, ""), &mut base);
            showing.on_close(id, &mut base.link.session);
        }
        let told: Vec<SessionEvent> = events.try_iter().collect();
        assert!(matches!(&told[..], [SessionEvent::NoNotifications { .. }]), "{told:?}");
        drop(release);
    }
}
