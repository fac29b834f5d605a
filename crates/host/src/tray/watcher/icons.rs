//! The icons that programs have registered.
//!
//! Each has a thread; here is what reaches it. Invariant: at most [`MAX_ITEMS`] are registered.

use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use zbus::message::Message;

use crate::tray::names::{ITEM, MAX_ITEMS, MENU};
use crate::tray::program::{Order, Place};
use crate::tray::said::Said;
use crate::tray::teller::Teller;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Icons {
    listed: Mutex<Listed>,
    /// There is a tray.
    pub(super) is_there: AtomicBool,
}

#[derive(Debug, Default)]
pub(super) struct Listed {
    last: u32,
    pub(super) places: Vec<(Arc<Place>, SyncSender<Order>)>,
}

/// What has become of one that a program registers.
pub(super) enum Added {
    New(Arc<Place>, Receiver<Order>),
    /// It is there.
    Before,
    TooMany,
}

impl Icons {
    pub(super) fn lock(&self) -> MutexGuard<'_, Listed> {
        self.listed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn order(&self, id: u32, order: Order) -> bool {
        let listed = self.lock();
        let orders = listed.places.iter().find(|(place, _)| place.id == id).map(|(_, orders)| orders);
        orders.is_some_and(|orders| orders.try_send(order).is_ok())
    }

    /// A new place and its orders.
    pub(super) fn add(&self, name: &str, path: &str) -> Added {
        let mut listed = self.lock();
        if listed.places.iter().any(|(place, _)| place.name == name && place.path == path) {
            return Added::Before;
        }
        if listed.places.len() >= MAX_ITEMS {
            return Added::TooMany;
        }
        listed.last = listed.last.wrapping_add(1);
        let (orders, ordered) = sync_channel(MAX_ORDERS);
        let place = Arc::new(Place::new(listed.last, name.to_owned(), path.to_owned()));
        listed.places.push((Arc::clone(&place), orders));
        Added::New(place, ordered)
    }

    /// Ends the threads of those icons of which this says so.
    pub(super) fn remove(&self, is_gone: impl Fn(&Place) -> bool) {
        self.lock().places.retain(|(place, _)| !is_gone(place));
    }

    pub(super) fn places(&self) -> Vec<Arc<Place>> {
        self.lock().places.iter().map(|(place, _)| Arc::clone(place)).collect()
    }

    /// Takes what a program signals, or that it has ended; `None` once the loop is gone.
    pub(super) fn hear(&self, message: &Message, teller: &Teller<Said>) -> Option<()> {
        let header = message.header();
        let (Some(member), Some(interface)) = (header.member(), header.interface()) else {
            return Some(());
        };
        if member.as_str() == "NameOwnerChanged" {
            let body = message.body();
            if let Ok((name, _, "")) = body.deserialize::<(&str, &str, &str)>() {
                self.remove(|place| place.name == name || place.from().0.as_deref() == Some(name));
            }
            return Some(());
        }
        let (sender, path) =
            (header.sender().map(|name| name.as_str()), header.path().map(|path| path.as_str()));
        for place in self.places() {
            let (from, menu) = place.from();
            let told = match interface.as_str() {
                _ if from.as_deref() != sender => continue,
                ITEM if Some(place.path.as_str()) == path => place.changed(teller),
                MENU if menu.as_deref() == path => place.menu_changed(teller),
                _ => continue,
            };
            told?;
        }
        Some(())
    }
}

/// What an icon's program has not been told, or asked; more is not.
pub(super) const MAX_ORDERS: usize = 16;
