//! Asks the user at this desk something, by a notification with answers to choose from.
//!
//! For where there is no terminal to ask on. The caller waits, so this is for threads that may. Invariant: without the
//! user's own choice there is no answer, and a question that is not waited for any more is taken away.

use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::mpsc::channel;
use std::time::Duration;

use futures_core::Stream;
use zbus::{Connection, MessageStream, Variant};

use super::desk::{Heard, Server, understand};
use super::{NAME, PATH, markup};

/// What is asked. Its texts are shown as they are; each answer is a key and what the user reads.
#[derive(Debug, Clone)]
pub struct Question<'a> {
    /// One line.
    pub summary: String,
    /// Below it.
    pub body: String,
    /// What the user can choose.
    pub answers: &'a [(&'a str, &'a str)],
}

impl Question<'_> {
    /// The key of what the user has chosen within `patience`; `None` if nothing, or if the user cannot be asked so.
    pub fn ask(&self, patience: Duration) -> Option<String> {
        zbus::block_on(self.show())
            .ok()?
            .answer(patience)
            .filter(|key| self.answers.iter().any(|it| it.0 == key))
    }

    async fn show(&self) -> zbus::Result<Shown> {
        let Server { connection, signals, reads_markup, has_actions } = Server::find().await?;
        if !has_actions {
            return Err(zbus::Error::Failure("the desk's notifications have no answers".into()));
        }
        let body = if reads_markup { markup::escape(&self.body) } else { self.body.clone() };
        let answers: Vec<&str> = self.answers.iter().flat_map(|(key, label)| [*key, *label]).collect();
        // Until the user has seen it.
        let hints = HashMap::from([("urgency", Variant::from(CRITICAL))]);
        let words = ("wayferry", 0_u32, "", &self.summary, body, answers, hints, 0_i32);
        let reply = connection.call_method(Some(NAME), PATH, Some(NAME), "Notify", &words).await?;
        Ok(Shown { number: reply.body().deserialize()?, connection, signals })
    }
}

/// A question that is shown.
struct Shown {
    number: u32,
    connection: Connection,
    signals: MessageStream,
}

impl Shown {
    fn answer(self, patience: Duration) -> Option<String> {
        let Self { number, connection, mut signals } = self;
        let (tell, told) = channel();
        // Ends with the notification, or with the bus.
        let listen = move || {
            zbus::block_on(async {
                while let Some(message) = poll_fn(|context| Pin::new(&mut signals).poll_next(context)).await {
                    let heard = message.ok().and_then(|message| understand(&message));
                    let answer = match heard.filter(|heard| heard.0 == number) {
                        Some((_, Heard::Action(key))) => Some(key),
                        Some((_, Heard::Closed(_))) => None,
                        _ => continue,
                    };
                    let _ = tell.send(answer);
                    return;
                }
            });
        };
        std::thread::Builder::new().name("question".into()).spawn(listen).ok()?;
        let answer = told.recv_timeout(patience).ok().flatten();
        let close = connection.call_method(Some(NAME), PATH, Some(NAME), "CloseNotification", &number);
        // One that the user has answered may be gone.
        let _ = zbus::block_on(close);
        answer
    }
}

/// The specification's urgency of what the user should not miss.
const CRITICAL: u8 = 2;
