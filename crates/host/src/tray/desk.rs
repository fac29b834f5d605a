//! The desk's own tray, as a client of its watcher.
//!
//! A thread of its own speaks to it, for it may take seconds to answer; another hears when a watcher comes or goes.
//! What is to be shown is on a [`Board`], where the newest of each place stands. Invariant: what the desk shows says
//! which host it is from.

use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_core::Stream;
use zbus::connection::Builder;
use zbus::message::Type;
use zbus::{Connection, MatchRule, MessageStream, Variant};

pub(super) use self::board::Board;
use self::board::Change;
use self::icon::Icon;
pub(super) use self::said::Said;
use super::names::{MAX_ITEMS, WATCHER, WATCHER_PATH};
use super::teller::Teller;

mod board;
mod icon;
mod item;
mod menu;
mod said;
mod state;

/// The thread: shows icons of `host` until the display is over.
pub(super) fn work(host: &str, board: &Arc<Board>, teller: &Teller<Said>) {
    let mut desk = Desk { host, board, teller, bus: None, watcher: None, is_told: false };
    let mut shown: [Option<Icon>; MAX_ITEMS] = std::array::from_fn(|_| None);
    let mut is_moved = true;
    loop {
        if is_moved && desk.look(&mut shown).is_none() {
            return;
        }
        let work = board.wait(AGAIN);
        if work.is_over {
            return;
        }
        for (icon, change) in shown.iter_mut().zip(work.changes) {
            desk.show(icon, change);
        }
        is_moved = work.is_moved || desk.bus.is_none();
    }
}

/// What is known of the desk.
struct Desk<'a> {
    host: &'a str,
    board: &'a Arc<Board>,
    teller: &'a Teller<Said>,
    bus: Option<Connection>,
    /// The connection of the watcher that has a tray.
    watcher: Option<String>,
    /// The loop knows that there is none.
    is_told: bool,
}

impl Desk<'_> {
    /// Looks whether there is a tray; with another watcher all begins anew. `None` once the loop is gone.
    fn look(&mut self, shown: &mut [Option<Icon>]) -> Option<()> {
        let (watcher, reason) = match zbus::block_on(self.find()) {
            Ok(watcher) => (watcher, "the desk has none".to_owned()),
            Err(error) => (None, error.to_string()),
        };
        let was_there = self.watcher.is_some();
        let is_same = self.watcher == watcher;
        self.watcher = watcher;
        if self.watcher.is_none() && !std::mem::replace(&mut self.is_told, true) {
            self.teller.say(Said::Nothing(reason))?;
        }
        if is_same {
            return Some(());
        }
        shown.fill_with(|| None);
        if was_there {
            self.teller.say(Said::There(false))?;
        }
        if self.watcher.is_some() {
            self.teller.say(Said::There(true))?;
        }
        Some(())
    }

    /// The watcher that has a tray, if there is one.
    async fn find(&mut self) -> zbus::Result<Option<String>> {
        let bus = match self.bus.take().filter(|bus| !bus.is_closed()) {
            Some(bus) => bus,
            None => join(self.board).await?,
        };
        // One that does not answer has none. When that changes is heard.
        Ok(tray_of(self.bus.insert(bus)).await.unwrap_or(None))
    }

    /// Brings a place to its newest state. What cannot be shown is left out.
    fn show(&self, shown: &mut Option<Icon>, change: Change) {
        if change.is_cleared {
            *shown = None;
        }
        if self.watcher.is_none() {
            return;
        }
        if let Some(item) = change.item {
            let is_same = shown.as_ref().is_some_and(|icon| icon.is_same(&item));
            if !is_same {
                // The one before goes first: they are one to the user.
                *shown = None;
                *shown = zbus::block_on(Icon::new(self.host, &item, self.teller)).ok();
            } else if let Some(icon) = shown {
                let _ = zbus::block_on(icon.update(item));
            }
        }
        if let (Some(menu), Some(icon)) = (change.menu, shown) {
            let _ = zbus::block_on(icon.update_menu(menu));
        }
    }
}

/// The connection of the watcher on this bus, if it has a tray.
async fn tray_of(bus: &Connection) -> zbus::Result<Option<String>> {
    let (name, object) = ("org.freedesktop.DBus", "/org/freedesktop/DBus");
    // A watcher that could be started is none: it would have no tray.
    let reply = bus.call_method(Some(name), object, Some(name), "GetNameOwner", &WATCHER).await?;
    let owner: String = reply.body().deserialize()?;
    let words = (WATCHER, "IsStatusNotifierHostRegistered");
    let properties = Some("org.freedesktop.DBus.Properties");
    let reply = bus.call_method(Some(owner.as_str()), WATCHER_PATH, properties, "Get", &words).await?;
    let is_there = reply.body().deserialize::<Variant<'_>>()? == Variant::Bool(true);
    Ok(is_there.then_some(owner))
}

/// Connects to the desk's bus, where another thread hears of watchers.
async fn join(board: &Arc<Board>) -> zbus::Result<Connection> {
    let connection = Builder::session().method_timeout(PATIENCE).build().await?;
    let bus = "org.freedesktop.DBus";
    let rule = || MatchRule::builder().msg_type(Type::Signal);
    let owners = rule().sender(bus).interface(bus).member("NameOwnerChanged").arg(0, WATCHER).build()?;
    let hosts = |member: &'static str| rule().interface(WATCHER).member(member).build();
    let mut streams = Vec::new();
    for rule in [owners, hosts("StatusNotifierHostRegistered")?, hosts("StatusNotifierHostUnregistered")?] {
        streams.push(MessageStream::for_match_rule(rule, &connection, Some(MAX_HEARD)).await?);
    }
    let board = Arc::clone(board);
    let thread = std::thread::Builder::new().name("tray-heard".into());
    thread.spawn(move || hear(streams, &board)).map_err(zbus::Error::from)?;
    Ok(connection)
}

/// The thread that hears of watchers, until the bus is gone.
fn hear(mut streams: Vec<MessageStream>, board: &Board) {
    let mut next = || {
        zbus::block_on(std::future::poll_fn(|context| {
            for stream in &mut streams {
                if let Poll::Ready(message) = Pin::new(stream).poll_next(context) {
                    return Poll::Ready(message);
                }
            }
            Poll::Pending
        }))
    };
    while next().is_some() {
        board.moved();
    }
    board.moved();
}

/// How long the desk's bus, or a watcher, may take for an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long until a bus that is not there is looked for again.
const AGAIN: Duration = Duration::from_secs(30);
/// Signals of watchers that are not looked at.
const MAX_HEARD: NonZeroUsize = NonZeroUsize::new(64).expect("it is not 0");
