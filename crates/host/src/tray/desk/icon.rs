//! One icon in the desk's tray: a connection to the desk's bus with a name of its own.
//!
//! Its objects answer the desk from what is kept here. Invariant: its title begins with the name of its host.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use wayferry_proto::{TrayItem, TrayMenu};
use zbus::Connection;
use zbus::connection::Builder;

use super::item::ItemObject;
use super::menu::MenuObject;
use super::said::Said;
use super::state::State;
use crate::tray::names::{ITEM, ITEM_PATH, MENU, MENU_PATH, WATCHER, WATCHER_PATH};
use crate::tray::teller::Teller;

/// See the module.
pub(super) struct Icon {
    connection: Connection,
    state: Arc<State>,
}

impl Icon {
    /// Registers it with the desk's watcher.
    pub(super) async fn new(host: &str, item: &TrayItem, teller: &Teller<Said>) -> zbus::Result<Self> {
        let state = Arc::new(State::new(host, item, teller));
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        let name = format!("{ITEM}-{}-{number}", std::process::id());
        let builder = Builder::session().method_timeout(PATIENCE);
        let builder = builder.serve_at(ITEM_PATH, ItemObject(Arc::clone(&state)));
        let builder = builder.serve_at(MENU_PATH, MenuObject(Arc::clone(&state)));
        let connection = builder.name(name.clone()).build().await?;
        let words = (WATCHER, WATCHER_PATH, "RegisterStatusNotifierItem");
        connection.call_method(Some(words.0), words.1, Some(WATCHER), words.2, &name).await?;
        Ok(Self { connection, state })
    }

    /// Whether it may become this one: desks do not look again what kind it is.
    pub(super) fn is_same(&self, item: &TrayItem) -> bool {
        let kind = |item: &TrayItem| (item.id, item.category, item.is_menu, item.has_menu);
        self.state.with(|shown| kind(&shown.item) == kind(item))
    }

    pub(super) async fn update(&self, item: TrayItem) -> zbus::Result<()> {
        let before = self.state.with(|shown| std::mem::replace(&mut shown.item, item.clone()));
        let words = |item: &TrayItem| [item.title.clone(), item.tip.clone(), item.name.clone()];
        let is_new = [
            ("NewTitle", words(&before) != words(&item)),
            ("NewIcon", before.icon != item.icon),
            ("NewOverlayIcon", before.overlay != item.overlay),
            ("NewAttentionIcon", before.attention != item.attention),
            ("NewToolTip", (words(&before), before.tip_text) != (words(&item), item.tip_text)),
        ];
        let to = None::<&str>;
        for (name, _) in is_new.into_iter().filter(|(_, is_new)| *is_new) {
            self.connection.emit_signal(to, ITEM_PATH, ITEM, name, &()).await?;
        }
        if before.status != item.status {
            let status = super::item::status(item.status);
            self.connection.emit_signal(to, ITEM_PATH, ITEM, "NewStatus", &status).await?;
        }
        Ok(())
    }

    pub(super) async fn update_menu(&self, menu: TrayMenu) -> zbus::Result<()> {
        let revision = self.state.with(|shown| {
            shown.menu = menu;
            shown.revision = shown.revision.wrapping_add(1);
            shown.revision
        });
        let to = None::<&str>;
        self.connection.emit_signal(to, MENU_PATH, MENU, "LayoutUpdated", &(revision, 0)).await
    }
}

/// Icons that this process has shown: their names differ.
static LAST: AtomicU32 = AtomicU32::new(1);

/// How long the desk may take for an answer.
const PATIENCE: Duration = Duration::from_secs(10);
