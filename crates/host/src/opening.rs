//! Opens addresses at the desk that programs of the session want opened.
//!
//! What opens them may have to ask the user, so it runs on a thread of its own; the loop only passes questions and
//! answers. It exists where the user lets a host ask at all. Invariants: what is not a [`Url`] gets no further than
//! this, and at most `MAX_WAITING` wait for the user.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use rustix::event::{EventfdFlags, eventfd};
use wayferry_proto::{Control, Session, Time, UrlFate};

use crate::edge::part::{Hub, Part};
use crate::edge::wait::{Interests, Ready};
use crate::error::Error;
use crate::event::{Reporter, SessionEvent};
use crate::url::Url;

/// Opens an address, or says why not. It may take as long as a user needs for an answer.
pub type Open = Box<dyn FnMut(&Url) -> Result<(), (UrlFate, String)> + Send>;

/// See the module.
#[derive(Debug)]
pub struct Opening {
    questions: SyncSender<(u64, Url)>,
    answers: Receiver<Answer>,
    wake: Arc<OwnedFd>,
}

/// What became of a question.
#[derive(Debug)]
struct Answer {
    id: u64,
    fate: UrlFate,
    event: SessionEvent,
}

impl Opening {
    /// Starts the thread on which `open` is called.
    ///
    /// # Errors
    /// The system has no thread or no descriptors left.
    pub fn start(open: Open) -> io::Result<Self> {
        let (questions, asked) = sync_channel(MAX_WAITING);
        let (answer, answers) = channel();
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let waker = Arc::clone(&wake);
        std::thread::Builder::new()
            .name("open-url".into())
            .spawn(move || work(open, &asked, &answer, &waker))?;
        Ok(Self { questions, answers, wake })
    }

    /// The host wants an address opened.
    pub(crate) fn on_asked(&mut self, id: u64, text: String, session: &mut Session, reporter: &Reporter) {
        let (fate, reason) = match Url::parse(&text) {
            Some(url) => match self.questions.try_send((id, url)) {
                Ok(()) => return,
                Err(_) => (UrlFate::TooMany, "but others wait for an answer"),
            },
            None => (UrlFate::Unfit, "but only http, https and mailto are opened, in plain letters"),
        };
        let event = SessionEvent::UrlRefused { url: text, reason: reason.to_owned() };
        tell(Answer { id, fate, event }, session, reporter);
    }
}

impl Part for Opening {
    fn interests<'a>(&'a mut self, _now: Time, _hub: &'a Hub<'_>, interests: &mut Interests<'a>) {
        interests.read(&*self.wake);
    }

    fn turn(&mut self, _now: Time, hub: &mut Hub<'_>, _ready: &Ready) -> Result<(), Error> {
        let _ = rustix::io::read(&*self.wake, &mut [0u8; 8]);
        while let Ok(answer) = self.answers.try_recv() {
            tell(answer, &mut hub.link.session, hub.reporter);
        }
        Ok(())
    }
}

/// Tells the user and the host.
fn tell(Answer { id, fate, event }: Answer, session: &mut Session, reporter: &Reporter) {
    reporter.report(event);
    // While the carrier is away this is kept, as all that must arrive once.
    let _ = session.control(&Control::UrlDone { id, fate });
}

/// The thread: until the loop is gone.
fn work(mut open: Open, asked: &Receiver<(u64, Url)>, answer: &Sender<Answer>, wake: &OwnedFd) {
    while let Ok((id, url)) = asked.recv() {
        let name = url.as_str().to_owned();
        let (fate, event) = match open(&url) {
            Ok(()) => (UrlFate::Open, SessionEvent::UrlOpened { url: name }),
            Err((fate, reason)) => (fate, SessionEvent::UrlRefused { url: name, reason }),
        };
        if answer.send(Answer { id, fate, event }).is_err() {
            return;
        }
        let _ = rustix::io::write(wake, &1u64.to_ne_bytes());
    }
}

/// Questions that wait while the user is asked; more are refused. An honest host never has more.
const MAX_WAITING: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edge::part::alone;

    #[test]
    fn a_flood_waits_for_nobody_and_what_is_no_address_is_never_asked() {
        let (release, held) = channel::<()>();
        let (seen, asked) = channel();
        let mut opening = Opening::start(Box::new(move |url| {
            seen.send(url.as_str().to_owned()).expect("the test listens");
            let _ = held.recv();
            Ok(())
        }))
        .expect("a thread");
        let (mut base, events) = alone::base();
        let reporter = base.reporter.clone();
        let mut ask = |id, text: &str| opening.on_asked(id, text.into(), &mut base.link.session, &reporter);
        ask(0, "file:///etc/passwd");
        ask(0, "https://example.org/\u{1b}[2J");
        ask(1, "https://example.org/first");
        assert_eq!(asked.recv().as_deref(), Ok("https://example.org/first"));
        for id in 2..100 {
            ask(id, "https://example.org/");
        }
        let refused: Vec<SessionEvent> = events.try_iter().collect();
        assert!(refused.iter().all(|event| matches!(event, SessionEvent::UrlRefused { .. })));
        assert_eq!(refused.len(), 2 + 98 - MAX_WAITING);
        drop(release);
        assert_eq!(asked.iter().take(MAX_WAITING).count(), MAX_WAITING);
    }
}
