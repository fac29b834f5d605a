//! Icons that programs of the session have in the tray, on their way to the display.
//!
//! They are read when the display may be told of them, and sent if they are not as it knows them: what changes while
//! none is there costs nothing. The display's side decides how they are shown, and whether. Invariant: programs find a
//! tray only while a display has said that its desk has one, and only that display is believed.

use std::collections::BTreeMap;

use wayferry_proto::{Control, Secret, Session, Time, TrayAct, TrayIcon, TrayItem, TrayMenu};

use crate::edge::part::{Hub, Part};
use crate::edge::wait::{Interests, Ready};
use crate::error::Error;
use crate::tray::watcher::{Said, Watcher};
use crate::tray::{Budget, Paced};

/// See the module.
#[derive(Debug)]
pub(super) struct Tray {
    watcher: Watcher,
    icons: BTreeMap<u32, Icon>,
    /// What the display shows, and some of it may be gone.
    shown: BTreeMap<u32, Shown>,
    budget: Budget,
    /// Which display has a tray.
    display: Option<Secret>,
    /// It has one.
    is_there: bool,
    /// It can be told something.
    is_open: bool,
}

/// What is to be read of a program's icon.
#[derive(Debug, Default)]
struct Icon {
    item: Paced<()>,
    menu: Paced<()>,
}

/// What the display knows of an icon.
#[derive(Debug)]
struct Shown {
    item: TrayItem,
    menu: Option<TrayMenu>,
}

impl Tray {
    pub(super) fn new(watcher: Watcher) -> Self {
        Self {
            watcher,
            icons: BTreeMap::new(),
            shown: BTreeMap::new(),
            budget: Budget::default(),
            display: None,
            is_there: false,
            is_open: false,
        }
    }

    /// Sends what may be sent now; `is_open` says whether the display can be told of any.
    pub(super) fn pass(&mut self, now: Time, is_open: bool, session: &mut Session) {
        self.is_open = is_open && self.is_there;
        while let Some(said) = self.watcher.poll() {
            self.on_said(now, said, session);
        }
        if self.is_open {
            self.send_gone(session);
            self.read(now);
        }
    }

    fn on_said(&mut self, now: Time, said: Said, session: &mut Session) {
        match said {
            Said::New(id) | Said::Changed(id) => self.icons.entry(id).or_default().item.set(()),
            Said::MenuChanged(id) => self.icons.entry(id).or_default().menu.set(()),
            Said::Item(item) => self.on_item(now, *item, session),
            Said::Menu(menu) => self.on_menu(now, menu, session),
            Said::Gone(id) => drop(self.icons.remove(&id)),
        }
    }

    fn on_item(&mut self, now: Time, item: TrayItem, session: &mut Session) {
        let Some(icon) = self.icons.get_mut(&item.id) else { return };
        if !self.is_open {
            return icon.item.set(());
        }
        let known = self.shown.get_mut(&item.id);
        if known.as_ref().is_some_and(|shown| shown.item == item) {
            return;
        }
        if item.has_menu && known.as_ref().is_none_or(|shown| !shown.item.has_menu) {
            icon.menu.set(());
        }
        match known {
            Some(shown) => shown.item = item.clone(),
            None => drop(self.shown.insert(item.id, Shown { item: item.clone(), menu: None })),
        }
        self.budget.spend(now, size(&item));
        let _ = session.control(&Control::TrayItem(item));
    }

    fn on_menu(&mut self, now: Time, menu: TrayMenu, session: &mut Session) {
        let Some(icon) = self.icons.get_mut(&menu.item) else { return };
        let Some(shown) = self.shown.get_mut(&menu.item).filter(|_| self.is_open) else {
            return icon.menu.set(());
        };
        if shown.menu.as_ref() != Some(&menu) {
            shown.menu = Some(menu.clone());
            self.budget.spend(now, menu.entries.iter().map(|entry| 10 + entry.label.len()).sum());
            let _ = session.control(&Control::TrayMenu(menu));
        }
    }

    fn send_gone(&mut self, session: &mut Session) {
        self.shown.retain(|id, _| {
            let is_there = self.icons.contains_key(id);
            if !is_there {
                let _ = session.control(&Control::TrayGone { id: *id });
            }
            is_there
        });
    }

    fn read(&mut self, now: Time) {
        if now < self.budget.opens() {
            return;
        }
        for (id, icon) in &mut self.icons {
            if icon.item.poll(now).is_some() && !self.watcher.read(*id) {
                icon.item.set(());
            }
            // What its menu is comes with it first.
            if self.shown.contains_key(id) && icon.menu.poll(now).is_some() && !self.watcher.read_menu(*id) {
                icon.menu.set(());
            }
        }
    }

    /// The display says whether its desk has a tray; it has forgotten all icons.
    pub(super) fn on_tray(&mut self, is_there: bool) {
        self.is_there = is_there;
        self.shown.clear();
        for icon in self.icons.values_mut() {
            icon.item.set(());
        }
        self.watcher.set_there(is_there);
    }

    /// The user does something with an icon that the display shows.
    pub(super) fn on_act(&self, id: u32, act: Option<TrayAct>) {
        if let Some(act) = act.filter(|_| self.shown.contains_key(&id)) {
            self.watcher.act(id, act);
        }
    }

    /// This display shows the session now: what another one has said is void.
    pub(super) fn keep_to(&mut self, display: Option<Secret>) {
        if display.is_none() || self.display != display {
            self.display = display;
            self.on_tray(false);
        }
    }
}

impl Part for Tray {
    fn interests<'a>(&'a mut self, _now: Time, _hub: &'a Hub<'_>, interests: &mut Interests<'a>) {
        interests.read(self.watcher.wake());
        if self.is_open {
            let shown = &self.shown;
            let times = self.icons.iter().flat_map(|(id, icon)| {
                let menu = icon.menu.next_timeout().filter(|_| shown.contains_key(id));
                [icon.item.next_timeout(), menu]
            });
            let next = times.flatten().min();
            interests.until(next.map(|next| next.max(self.budget.opens())));
        }
    }

    fn turn(&mut self, _now: Time, _hub: &mut Hub<'_>, _ready: &Ready) -> Result<(), Error> {
        self.watcher.clear_wake();
        Ok(())
    }
}

/// About how many bytes it takes.
fn size(item: &TrayItem) -> usize {
    let bytes = |icon: &TrayIcon| icon.picture.as_ref().map_or(0, |picture| picture.argb().len());
    100 + bytes(&item.icon) + bytes(&item.overlay) + bytes(&item.attention)
}

#[cfg(test)]
mod tests;
