//! The object that programs call: `org.freedesktop.Notifications`, Desktop Notifications Specification 1.2.
//!
//! It numbers notifications and makes them fit; all else is the loop's. Invariant: of hints it keeps no more than a
//! number and a word, no matter what pictures are among them.

use std::collections::HashMap;
use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use wayferry_proto::{Note, NoteAction, Urgency};
use zbus::wire::{Signature, Type};

use super::Asked;
use crate::notes::markup;

/// See the module.
pub(super) struct Server {
    ask: SyncSender<Asked>,
    wake: Arc<OwnedFd>,
    /// The number of the latest notification.
    last: u32,
}

impl Server {
    pub(super) fn new(ask: SyncSender<Asked>, wake: Arc<OwnedFd>) -> Self {
        Self { ask, wake, last: 0 }
    }

    /// Waits while the loop has much to look at, and so do programs.
    fn ask(&self, asked: Asked) -> zbus::fdo::Result<()> {
        let gone = |_| zbus::fdo::Error::Failed("the session ends".into());
        self.ask.send(asked).map_err(gone)?;
        let _ = rustix::io::write(&*self.wake, &1u64.to_ne_bytes());
        Ok(())
    }
}

#[zbus::interface(name = "org.freedesktop.Notifications", spawn = false, introspection_docs = false)]
impl Server {
    #[zbus(name = "GetCapabilities")]
    fn capabilities(&self) -> Vec<&'static str> {
        vec!["actions", "body", "persistence"]
    }

    #[zbus(name = "GetServerInformation", out_args("name", "vendor", "version", "spec_version"))]
    fn information(&self) -> (&'static str, &'static str, &'static str, &'static str) {
        ("Wayferry", "Wayferry", env!("CARGO_PKG_VERSION"), "1.2")
    }

    #[expect(clippy::too_many_arguments, reason = "they are the specification's")]
    #[expect(clippy::needless_pass_by_value, reason = "what is deserialised is given by value")]
    fn notify(
        &mut self,
        app_name: &str,
        replaces_id: u32,
        app_icon: &str,
        summary: &str,
        body: &str,
        actions: Vec<&str>,
        hints: HashMap<&str, Hint<'_>>,
        expire_timeout: i32,
    ) -> zbus::fdo::Result<u32> {
        if replaces_id == 0 {
            self.last = self.last.checked_add(1).unwrap_or(1);
        }
        let id = if replaces_id == 0 { self.last } else { replaces_id };
        let word = |name: &str| match hints.get(name) {
            Some(Hint::Word(word)) => *word,
            _ => "",
        };
        let or = |first: &str, second: &str| if first.is_empty() { second } else { first }.to_owned();
        let urgency = match hints.get("urgency") {
            Some(Hint::Number(number)) => Urgency::from_code(*number),
            _ => Urgency::Normal,
        };
        let actions = actions.chunks_exact(2);
        let actions = actions.map(|pair| NoteAction { key: pair[0].into(), label: pair[1].into() }).collect();
        let note = Note {
            id,
            app: or(app_name, word("desktop-entry")),
            icon: or(app_icon, word("image-path")),
            summary: summary.to_owned(),
            body: markup::plain(body),
            urgency,
            stays: u64::try_from(expire_timeout).ok().map(Duration::from_millis),
            actions,
        };
        self.ask(Asked::Note(note.fit()))?;
        Ok(id)
    }

    fn close_notification(&self, id: u32) -> zbus::fdo::Result<()> {
        self.ask(Asked::Close(id))
    }

    #[zbus(signal)]
    async fn notification_closed(
        emitter: &zbus::object_server::SignalEmitter<'_>,
        id: u32,
        reason: u32,
    ) -> zbus::Result<()>;

    #[zbus(signal)]
    async fn action_invoked(
        emitter: &zbus::object_server::SignalEmitter<'_>,
        id: u32,
        action_key: &str,
    ) -> zbus::Result<()>;

    #[zbus(signal)]
    async fn activation_token(
        emitter: &zbus::object_server::SignalEmitter<'_>,
        id: u32,
        activation_token: &str,
    ) -> zbus::Result<()>;
}

/// The value of a hint, as far as it matters. What else it may be is passed over without being kept: a picture would
/// take a hundred times its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hint<'a> {
    Number(u8),
    Word(&'a str),
    Other,
}

impl Type for Hint<'_> {
    const SIGNATURE: &'static Signature = &Signature::Variant;
}

impl<'de: 'a, 'a> Deserialize<'de> for Hint<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(HintVisitor)
    }
}

struct HintVisitor;

impl<'de> Visitor<'de> for HintVisitor {
    type Value = Hint<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a variant")
    }

    /// A variant is its signature and its value.
    fn visit_seq<A: SeqAccess<'de>>(self, mut variant: A) -> Result<Hint<'de>, A::Error> {
        let signature = variant.next_element::<&str>()?.unwrap_or_default();
        let hint = match signature {
            "y" => variant.next_element()?.map(Hint::Number),
            "s" => variant.next_element()?.map(Hint::Word),
            _ => variant.next_element::<IgnoredAny>()?.map(|_| Hint::Other),
        };
        Ok(hint.unwrap_or(Hint::Other))
    }
}
