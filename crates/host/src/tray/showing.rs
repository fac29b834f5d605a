//! Shows in this desk's tray what programs of the session have in theirs.
//!
//! It exists where the user wants that. The desk's watcher is spoken to by threads of its own ([`super::desk`]); here
//! is what waits for its turn, and what the host is told. Invariant: the session never waits for the desk, and the host
//! shows no more than [`MAX_ITEMS`] icons, and changes each no more than twice a second.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};

use rustix::event::{EventfdFlags, eventfd};
use wayferry_proto::{Capabilities, Control, Session, Time, TrayItem, TrayMenu};

use super::desk::{self, Board, Said};
use super::names::MAX_ITEMS;
use super::paced::Paced;
use super::teller::Teller;
use crate::edge::part::{Hub, Part};
use crate::edge::wait::{Interests, Ready};
use crate::error::Error;
use crate::event::SessionEvent;

/// See the module.
#[derive(Debug)]
pub struct Showing {
    places: [Place; MAX_ITEMS],
    board: Arc<Board>,
    said: Receiver<Said>,
    wake: Arc<OwnedFd>,
    /// The desk has a tray.
    is_there: bool,
    /// The host is to be told, and shows all again.
    is_due: bool,
}

/// Where an icon may be. Its pace is the place's: another icon that takes it is no faster.
#[derive(Debug, Default)]
struct Place {
    id: Option<u32>,
    item: Paced<TrayItem>,
    menu: Paced<TrayMenu>,
}

impl Place {
    fn clear(&mut self) {
        self.id = None;
        self.item.clear();
        self.menu.clear();
    }
}

impl Showing {
    /// Prepares to show icons of `host`; the user reads this name with each.
    ///
    /// # Errors
    /// The system has no thread or no descriptors left.
    pub fn start(host: String) -> io::Result<Self> {
        Self::start_with(move |board, teller| desk::work(&host, &board, &teller))
    }

    fn start_with(work: impl FnOnce(Arc<Board>, Teller<Said>) + Send + 'static) -> io::Result<Self> {
        let board = Arc::new(Board::default());
        let (say, said) = sync_channel(MAX_SAID);
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let (for_thread, teller) = (Arc::clone(&board), Teller::new(say, Arc::clone(&wake)));
        let thread = std::thread::Builder::new().name("tray".into());
        thread.spawn(move || work(for_thread, teller))?;
        let places = std::array::from_fn(|_| Place::default());
        Ok(Self { places, board, said, wake, is_there: false, is_due: false })
    }

    /// A program of the session shows an icon, or takes it away.
    pub(crate) fn on_message(&mut self, now: Time, message: Control) {
        match message {
            Control::TrayItem(item) => {
                let free = || self.places.iter().position(|place| place.id.is_none());
                let at = self.place(item.id).or_else(free);
                // A host that keeps to the limit shows no more.
                let Some(at) = at else { return };
                self.places[at].id = Some(item.id);
                self.places[at].item.set(item);
            }
            Control::TrayMenu(menu) => {
                let Some(at) = self.place(menu.item) else { return };
                self.places[at].menu.set(menu);
            }
            Control::TrayGone { id } => {
                let Some(at) = self.place(id) else { return };
                self.places[at].clear();
                self.board.clear(at);
            }
            _ => {}
        }
        self.pass(now);
    }

    fn place(&self, id: u32) -> Option<usize> {
        self.places.iter().position(|place| place.id == Some(id))
    }

    /// Gives the desk what may be shown now.
    fn pass(&mut self, now: Time) {
        for (at, place) in self.places.iter_mut().enumerate() {
            if let Some(item) = place.item.poll(now) {
                self.board.put(at, item);
            }
            if let Some(menu) = place.menu.poll(now) {
                self.board.put_menu(at, menu);
            }
        }
    }

    /// The host does not know any more what was told to it: it has begun anew.
    pub(crate) fn tell_again(&mut self) {
        self.is_due |= self.is_there;
        self.forget();
    }

    /// Tells the host whether there is a tray, once it can hear it.
    fn tell(&mut self, session: &mut Session) {
        if self.is_due && session.capabilities().has(Capabilities::TRAY) {
            self.is_due = false;
            let _ = session.control(&Control::Tray { is_there: self.is_there });
        }
    }

    fn forget(&mut self) {
        for (at, place) in self.places.iter_mut().enumerate() {
            place.clear();
            self.board.clear(at);
        }
    }
}

impl Drop for Showing {
    fn drop(&mut self) {
        self.board.end();
    }
}

impl Part for Showing {
    fn interests<'a>(&'a mut self, _now: Time, _hub: &'a Hub<'_>, interests: &mut Interests<'a>) {
        interests.read(&*self.wake);
        let times =
            self.places.iter().flat_map(|place| [place.item.next_timeout(), place.menu.next_timeout()]);
        interests.until(times.flatten().min());
    }

    fn turn(&mut self, now: Time, hub: &mut Hub<'_>, _ready: &Ready) -> Result<(), Error> {
        let _ = rustix::io::read(&*self.wake, &mut [0u8; 8]);
        let session = &mut hub.link.session;
        while let Ok(said) = self.said.try_recv() {
            match said {
                Said::There(is_there) => {
                    (self.is_there, self.is_due) = (is_there, true);
                    self.forget();
                }
                Said::Nothing(reason) => hub.reporter.report(SessionEvent::NoTray { reason }),
                Said::Act(id, act) if self.place(id).is_some() => {
                    let _ = session.control(&Control::TrayAct { id, act: Some(act) });
                }
                Said::Act(..) => {}
            }
        }
        self.tell(session);
        self.pass(now);
        Ok(())
    }
}

/// What the desk has said and the loop has not looked at; what its user does meanwhile with icons is lost.
const MAX_SAID: usize = 64;

#[cfg(test)]
mod tests;
