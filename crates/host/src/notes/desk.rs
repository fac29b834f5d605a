//! The desk's own server of notifications, as a client of it.
//!
//! A thread of its own asks it, for it may take seconds to answer; another hears what it says of notifications later.
//! The bus is looked for when there is something to show, and again after it has failed. Invariant: what the desk shows
//! says which host it is from, and has no markup of the host's.

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::num::NonZeroUsize;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender};
use std::time::Duration;

use futures_core::Stream;
use wayferry_proto::note::{MAX_ACTION, MAX_TOKEN};
use wayferry_proto::{Note, NoteEnd, sanitise};
use zbus::connection::Builder;
use zbus::message::{Message, Type};
use zbus::{Connection, MatchRule, MessageStream, Variant};

use super::{NAME, PATH, markup};

/// What the desk is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ask {
    /// To show this.
    Show(Note),
    /// Not to show this any more.
    Close(u32),
    /// What the server has said of a notification, by the server's number.
    Heard(u32, Heard),
    /// The display is over.
    End,
}

/// What the server says of a notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Heard {
    Closed(NoteEnd),
    Token(String),
    Action(String),
}

/// What has become of a notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Said {
    Shown,
    /// It cannot be shown, for this reason.
    Failed(u32, String),
    Closed(u32, NoteEnd),
    Action {
        id: u32,
        key: String,
        token: Option<String>,
    },
}

/// Says something to the loop.
#[derive(Debug, Clone)]
pub(super) struct Teller {
    pub(super) said: Sender<Said>,
    pub(super) wake: Arc<OwnedFd>,
}

impl Teller {
    /// `None` once the loop is gone.
    pub(super) fn say(&self, said: Said) -> Option<()> {
        self.said.send(said).ok()?;
        let _ = rustix::io::write(&*self.wake, &1u64.to_ne_bytes());
        Some(())
    }
}

/// The thread: shows what programs of `host` say until the loop is gone. What the server says comes by `again`, behind
/// the answers that came before it.
pub(super) fn work(host: &str, asks: &Receiver<Ask>, again: &SyncSender<Ask>, teller: &Teller) {
    let mut desk = None;
    while let Ok(ask) = asks.recv() {
        if ask == Ask::End || pass(&mut desk, host, ask, again, teller).is_none() {
            return;
        }
    }
}

/// Does one thing; `None` once the loop is gone.
fn pass(
    desk: &mut Option<Desk>,
    host: &str,
    ask: Ask,
    again: &SyncSender<Ask>,
    teller: &Teller,
) -> Option<()> {
    match ask {
        Ask::Show(note) => {
            let id = note.id;
            let shown = zbus::block_on(async {
                if desk.is_none() {
                    *desk = Some(Desk::find(again.clone()).await?);
                }
                desk.as_mut().expect("it was found").show(host, note).await
            });
            match shown {
                Ok(()) => teller.say(Said::Shown),
                Err(error) => {
                    *desk = None;
                    teller.say(Said::Failed(id, error.to_string()))
                }
            }
        }
        Ask::Close(id) => {
            if let Some(desk) = desk {
                // What is not shown need not be closed.
                let _ = zbus::block_on(desk.close(id));
            }
            Some(())
        }
        Ask::Heard(number, heard) => match desk.as_mut().and_then(|desk| desk.shown.hear(number, heard)) {
            Some(said) => teller.say(said),
            None => Some(()),
        },
        Ask::End => None,
    }
}

/// The desk's server: what it says, and what it can do.
pub(super) struct Server {
    pub(super) connection: Connection,
    pub(super) signals: MessageStream,
    pub(super) reads_markup: bool,
    pub(super) has_actions: bool,
}

impl Server {
    pub(super) async fn find() -> zbus::Result<Self> {
        let connection = Builder::session().method_timeout(PATIENCE).build().await?;
        let rule =
            MatchRule::builder().msg_type(Type::Signal).sender(NAME).interface(NAME).path(PATH).build()?;
        let signals = MessageStream::for_match_rule(rule, &connection, Some(MAX_HEARD)).await?;
        let reply = connection.call_method(Some(NAME), PATH, Some(NAME), "GetCapabilities", &()).await?;
        let capabilities: Vec<String> = reply.body().deserialize()?;
        let has = |name: &str| capabilities.iter().any(|it| it == name);
        let (reads_markup, has_actions) = (has("body-markup"), has("actions"));
        Ok(Self { connection, signals, reads_markup, has_actions })
    }
}

/// A connection to it.
struct Desk {
    connection: Connection,
    reads_markup: bool,
    has_actions: bool,
    shown: Shown,
}

impl Desk {
    async fn find(again: SyncSender<Ask>) -> zbus::Result<Self> {
        let Server { connection, signals, reads_markup, has_actions } = Server::find().await?;
        let thread = std::thread::Builder::new().name("notes-heard".into());
        thread.spawn(move || listen(signals, &again)).map_err(zbus::Error::from)?;
        Ok(Self { connection, reads_markup, has_actions, shown: Shown::default() })
    }

    async fn show(&mut self, host: &str, note: Note) -> zbus::Result<()> {
        let Note { id, app, icon, summary, body, urgency, stays, actions } = note;
        let app = if app.is_empty() { host.to_owned() } else { format!("{app} on {host}") };
        let summary = format!("{host}: {summary}");
        let body = if self.reads_markup { markup::escape(&body) } else { body };
        let actions = if self.has_actions { actions } else { Vec::new() };
        let actions: Vec<String> =
            actions.into_iter().flat_map(|action| [action.key, action.label]).collect();
        let hints = HashMap::from([("urgency", Variant::from(urgency as u8))]);
        let stays = stays.map_or(-1, |time| i32::try_from(time.as_millis()).unwrap_or(0));
        let replaces = self.shown.number(id).unwrap_or(0);
        let words = (app, replaces, icon, summary, body, actions, hints, stays);
        let reply = self.connection.call_method(Some(NAME), PATH, Some(NAME), "Notify", &words).await?;
        self.shown.add(id, reply.body().deserialize()?);
        Ok(())
    }

    async fn close(&mut self, id: u32) -> zbus::Result<()> {
        let Some(number) = self.shown.number(id) else { return Ok(()) };
        let connection = &self.connection;
        connection.call_method(Some(NAME), PATH, Some(NAME), "CloseNotification", &number).await?;
        Ok(())
    }
}

/// What is shown: the host's number of each, the server's, and a token that came for it.
#[derive(Debug, Default)]
struct Shown(VecDeque<(u32, u32, Option<String>)>);

impl Shown {
    /// The server's number.
    fn number(&self, id: u32) -> Option<u32> {
        self.0.iter().find(|shown| shown.0 == id).map(|shown| shown.1)
    }

    /// The server shows one. A server that was started anew begins to count anew.
    fn add(&mut self, id: u32, number: u32) {
        self.0.retain(|shown| shown.0 != id && shown.1 != number);
        self.0.push_back((id, number, None));
        if self.0.len() > MAX_SHOWN {
            self.0.pop_front();
        }
    }

    /// What the server says is about all that is shown at the desk; this is about ours.
    fn hear(&mut self, number: u32, heard: Heard) -> Option<Said> {
        let at = self.0.iter().position(|shown| shown.1 == number)?;
        let (id, _, kept) = &mut self.0[at];
        match heard {
            Heard::Closed(end) => {
                let id = *id;
                self.0.remove(at);
                Some(Said::Closed(id, end))
            }
            Heard::Token(token) => {
                *kept = Some(token);
                None
            }
            Heard::Action(key) => Some(Said::Action { id: *id, key, token: kept.take() }),
        }
    }
}

/// The thread that hears what the server says, until the bus is gone.
fn listen(mut signals: MessageStream, again: &SyncSender<Ask>) {
    zbus::block_on(async {
        while let Some(message) = poll_fn(|context| Pin::new(&mut signals).poll_next(context)).await {
            let heard = message.ok().and_then(|message| understand(&message));
            if let Some((number, heard)) = heard
                && again.send(Ask::Heard(number, heard)).is_err()
            {
                return;
            }
        }
    });
}

/// What a signal says; `None` if nothing of use.
pub(super) fn understand(message: &Message) -> Option<(u32, Heard)> {
    let (header, body) = (message.header(), message.body());
    match header.member()?.as_str() {
        "NotificationClosed" => {
            let (number, reason): (u32, u32) = body.deserialize().ok()?;
            Some((number, Heard::Closed(NoteEnd::from_code(reason))))
        }
        "ActivationToken" => {
            let (number, token): (u32, &str) = body.deserialize().ok()?;
            let is_plain = token.len() <= MAX_TOKEN && sanitise(token, MAX_TOKEN) == token;
            is_plain.then(|| (number, Heard::Token(token.to_owned())))
        }
        "ActionInvoked" => {
            let (number, key): (u32, &str) = body.deserialize().ok()?;
            (key.len() <= MAX_ACTION).then(|| (number, Heard::Action(key.to_owned())))
        }
        _ => None,
    }
}

/// How long the server may take for an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// What the server says while it is waited for, of any notification at the desk. Were there more, they would be in
/// front of its answer.
const MAX_HEARD: NonZeroUsize = NonZeroUsize::new(1024).expect("it is not 0");
/// Notifications whose numbers are known; what is said of older ones is not passed on.
const MAX_SHOWN: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_says_of_others_is_not_passed_on() {
        let mut shown = Shown::default();
        shown.add(7, 100);
        assert_eq!(shown.hear(101, Heard::Closed(NoteEnd::Dismissed)), None);
        assert_eq!(shown.hear(7, Heard::Action("default".into())), None);
        assert_eq!(shown.hear(100, Heard::Token("t".into())), None);
        let chosen = Said::Action { id: 7, key: "default".into(), token: Some("t".into()) };
        assert_eq!(shown.hear(100, Heard::Action("default".into())), Some(chosen));
        let again = Said::Action { id: 7, key: "default".into(), token: None };
        assert_eq!(shown.hear(100, Heard::Action("default".into())), Some(again));
        let closed = Heard::Closed(NoteEnd::Dismissed);
        assert_eq!(shown.hear(100, closed.clone()), Some(Said::Closed(7, NoteEnd::Dismissed)));
        assert_eq!((shown.hear(100, closed), shown.number(7)), (None, None));
    }

    #[test]
    fn numbers_of_a_server_that_was_started_anew_are_not_mixed_up_and_old_ones_are_forgotten() {
        let mut shown = Shown::default();
        shown.add(1, 5);
        shown.add(2, 5);
        assert_eq!((shown.number(1), shown.number(2)), (None, Some(5)));
        (10..200).for_each(|id| shown.add(id, id));
        assert_eq!((shown.0.len(), shown.number(2), shown.number(199)), (MAX_SHOWN, None, Some(199)));
    }
}
