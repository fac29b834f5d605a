//! What the objects of an icon answer the desk from.
//!
//! What the user does goes to the loop. Invariant: a title begins with the name of its host.

use std::sync::{Mutex, PoisonError};

use wayferry_proto::{TrayAct, TrayItem, TrayMenu};

use super::said::Said;
use crate::tray::teller::Teller;

/// See the module.
pub(super) struct State {
    pub(super) host: String,
    pub(super) shown: Mutex<Shown>,
    id: u32,
    teller: Teller<Said>,
}

/// What is shown now.
pub(super) struct Shown {
    pub(super) item: TrayItem,
    pub(super) menu: TrayMenu,
    /// Of the menu: counts its changes.
    pub(super) revision: u32,
}

impl State {
    pub(super) fn new(host: &str, item: &TrayItem, teller: &Teller<Said>) -> Self {
        let shown = Shown { item: item.clone(), menu: TrayMenu::default(), revision: 1 };
        Self { host: host.to_owned(), shown: Mutex::new(shown), id: item.id, teller: teller.clone() }
    }

    /// Looks at what is shown.
    pub(super) fn with<T>(&self, look: impl FnOnce(&mut Shown) -> T) -> T {
        look(&mut self.shown.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The user does this.
    pub(super) fn act(&self, act: TrayAct) {
        self.teller.try_say(Said::Act(self.id, act));
    }

    /// What the user reads: the host says no word in front of its name.
    pub(super) fn title(&self) -> String {
        self.with(|shown| {
            let item = &shown.item;
            let title = [&item.title, &item.tip, &item.name].into_iter().find(|text| !text.is_empty());
            title.map_or_else(|| self.host.clone(), |title| format!("{}: {title}", self.host))
        })
    }
}
