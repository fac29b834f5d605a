//! The watcher on the session's bus, with which programs register their icons.
//!
//! It says what there is to the loop as `Said`; what is read, and when, is the loop's matter. Programs find that a
//! tray is there while the loop says so. Invariant: a flood of what programs say waits at the bus.

use std::future::poll_fn;
use std::io;
use std::num::NonZeroUsize;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
#[cfg(test)]
use std::sync::mpsc::SyncSender;
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::task::Poll;
use std::time::Duration;

use futures_core::Stream;
use rustix::event::{EventfdFlags, eventfd};
use wayferry_proto::TrayAct;
use zbus::connection::Builder;
use zbus::message::Type;
use zbus::{Connection, MatchRule, MessageStream};

use self::icons::Icons;
use self::server::Server;
use super::names::{ITEM, MENU, WATCHER, WATCHER_PATH};
use super::program::Order;
pub(crate) use super::said::Said;
use super::teller::Teller;

mod icons;
mod server;

/// See the module.
#[derive(Debug)]
pub struct Watcher {
    said: Receiver<Said>,
    wake: Arc<OwnedFd>,
    icons: Arc<Icons>,
    /// Of the thread that tells programs whether there is a tray.
    there: Sender<bool>,
    ready: Receiver<Result<(), String>>,
}

impl Watcher {
    /// Begins to serve programs on the bus at this address.
    ///
    /// # Errors
    /// The system has no descriptors or threads left.
    pub fn start(address: String) -> io::Result<Self> {
        let (say, said) = sync_channel(MAX_SAID);
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let icons = Arc::new(Icons::default());
        let (there, told) = channel();
        let (is_ready, ready) = channel();
        let server = Server { icons: Arc::clone(&icons), teller: Teller::new(say, Arc::clone(&wake)) };
        let thread = std::thread::Builder::new().name("tray".into());
        thread.spawn(move || work(&address, server, &is_ready, &told))?;
        Ok(Self { said, wake, icons, there, ready })
    }

    /// Waits until programs find it.
    ///
    /// # Errors
    /// Why they cannot, in words.
    pub fn there(self) -> Result<Self, String> {
        let ready = self.ready.recv_timeout(PATIENCE);
        ready.unwrap_or_else(|_| Err("the session's bus does not answer".into())).map(|()| self)
    }

    /// The next thing that is to be known.
    pub(crate) fn poll(&self) -> Option<Said> {
        self.said.try_recv().ok()
    }

    /// Ready when there is something to be known.
    pub(crate) fn wake(&self) -> &OwnedFd {
        &self.wake
    }

    /// Looks again what there is.
    pub(crate) fn clear_wake(&self) {
        let _ = rustix::io::read(&*self.wake, &mut [0u8; 8]);
    }

    /// Has an icon read. Says whether it will be: its thread may have much to do.
    pub(crate) fn read(&self, id: u32) -> bool {
        self.icons.order(id, Order::Read)
    }

    /// Has its menu read, in the same way.
    pub(crate) fn read_menu(&self, id: u32) -> bool {
        self.icons.order(id, Order::ReadMenu)
    }

    /// Tells its program what the user does; not if much has not been told yet.
    pub(crate) fn act(&self, id: u32, act: TrayAct) {
        self.icons.order(id, Order::Act(act));
    }

    /// Tells programs whether there is a tray.
    pub(crate) fn set_there(&self, is_there: bool) {
        if self.icons.is_there.swap(is_there, Ordering::AcqRel) != is_there {
            let _ = self.there.send(is_there);
        }
    }
}

#[cfg(test)]
impl Watcher {
    /// Without threads; what comes from programs is the test's, and so is what they are told of each of these icons.
    pub(crate) fn alone(ids: &[u32]) -> (Self, SyncSender<Said>, Vec<Receiver<Order>>) {
        let (say, said) = sync_channel(MAX_SAID);
        let wake = Arc::new(eventfd(0, EventfdFlags::NONBLOCK).expect("a descriptor"));
        let registered = Arc::new(Icons::default());
        let orders = ids.iter().map(|id| {
            let (orders, ordered) = sync_channel(icons::MAX_ORDERS);
            let place = Arc::new(super::program::Place::new(*id, String::new(), String::new()));
            registered.lock().places.push((place, orders));
            ordered
        });
        let orders = orders.collect();
        let ((there, _), (_, ready)) = (channel(), channel());
        (Self { said, wake, icons: registered, there, ready }, say, orders)
    }

    /// Whether programs find a tray.
    pub(crate) fn is_there(&self) -> bool {
        self.icons.is_there.load(Ordering::Acquire)
    }
}

/// The thread: until the loop is gone.
fn work(address: &str, server: Server, ready: &Sender<Result<(), String>>, there: &Receiver<bool>) {
    let (icons, teller) = (Arc::clone(&server.icons), server.teller.clone());
    let connection = zbus::block_on(async {
        let connection = connect(address, server).await?;
        let signals = listen(&connection).await?;
        let thread = std::thread::Builder::new().name("tray-heard".into());
        thread.spawn(move || hear(signals, &icons, &teller)).map_err(zbus::Error::from)?;
        zbus::Result::Ok(connection)
    });
    let connection = match connection {
        Ok(connection) => connection,
        Err(error) => return drop(ready.send(Err(error.to_string()))),
    };
    if ready.send(Ok(())).is_err() {
        return;
    }
    while let Ok(is_there) = there.recv() {
        let name = if is_there { "StatusNotifierHostRegistered" } else { "StatusNotifierHostUnregistered" };
        let to = None::<&str>;
        // Without a bus there is no program to tell.
        let _ = zbus::block_on(connection.emit_signal(to, WATCHER_PATH, WATCHER, name, &()));
    }
}

async fn connect(address: &str, server: Server) -> zbus::Result<Connection> {
    let builder = Builder::address(address).method_timeout(PATIENCE).max_queued(MAX_QUEUED);
    builder.serve_at(WATCHER_PATH, server).name(WATCHER).build().await
}

/// What programs signal of icons and menus, and that they have ended.
async fn listen(connection: &Connection) -> zbus::Result<Vec<MessageStream>> {
    let rule = || MatchRule::builder().msg_type(Type::Signal);
    let bus = "org.freedesktop.DBus";
    let ends = rule().sender(bus).interface(bus).member("NameOwnerChanged").arg(2, "").build()?;
    let mut streams = Vec::new();
    for rule in [ends, rule().interface(ITEM).build()?, rule().interface(MENU).build()?] {
        streams.push(MessageStream::for_match_rule(rule, connection, Some(MAX_QUEUED)).await?);
    }
    Ok(streams)
}

/// The thread that hears programs, until the bus or the loop is gone.
fn hear(mut streams: Vec<MessageStream>, icons: &Icons, teller: &Teller<Said>) {
    let mut next = || {
        zbus::block_on(poll_fn(|context| {
            for stream in &mut streams {
                if let Poll::Ready(message) = Pin::new(stream).poll_next(context) {
                    return Poll::Ready(message);
                }
            }
            Poll::Pending
        }))
    };
    while let Some(message) = next() {
        if message.is_ok_and(|message| icons.hear(&message, teller).is_none()) {
            break;
        }
    }
    icons.remove(|_| true);
}

/// How long a program or the bus may take for anything.
const PATIENCE: Duration = Duration::from_secs(3);
/// What the loop has not looked at; then programs wait.
const MAX_SAID: usize = 16;
/// Messages of the bus that wait here; the daemon keeps those behind them.
const MAX_QUEUED: NonZeroUsize = NonZeroUsize::new(4).expect("it is not 0");

#[cfg(test)]
mod tests;
