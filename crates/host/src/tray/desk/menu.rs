//! The object of an icon's menu at the desk: `com.canonical.dbusmenu`.
//!
//! It answers from the menu that is shown now, and passes on what the user chooses. Invariant: the first entry names
//! the host, so that the user knows whose menu it is, and nothing is chosen that is not there.

use std::collections::HashMap;
use std::sync::Arc;

use wayferry_proto::tray::MAX_ENTRY;
use wayferry_proto::{TrayAct, TrayEntry, TrayMenu, TrayToggle};
use zbus::{Variant, fdo};

use super::state::State;

/// See the module.
pub(super) struct MenuObject(pub(super) Arc<State>);

/// What an entry is told to be.
type Look = HashMap<&'static str, Variant<'static>>;
/// An entry with its number, and what is below it.
type Node = (i32, Look, Vec<Variant<'static>>);

/// What of a menu is there for the desk: the host's entries behind those that name it.
fn entries(host: &str, menu: &TrayMenu) -> Vec<TrayEntry> {
    let own = |id: u32| TrayEntry { id: MAX_ENTRY + id, is_visible: true, ..TrayEntry::default() };
    // A letter is chosen by `_` in front of it.
    let name = TrayEntry { label: host.replace('_', "__"), ..own(1) };
    let line = TrayEntry { is_separator: true, ..own(2) };
    [name, line].into_iter().chain(menu.entries.iter().cloned()).collect()
}

/// The number of an entry on the bus.
fn number(entry: &TrayEntry) -> i32 {
    i32::try_from(entry.id).unwrap_or(i32::MAX)
}

/// Those right below the one at `at`, or below the menu, with what is below them down to a depth.
fn children(entries: &[TrayEntry], at: Option<usize>, depth: i32) -> Vec<Variant<'static>> {
    let level = at.map_or(0, |at| entries[at].depth + 1);
    let begin = at.map_or(0, |at| at + 1);
    let below = entries.iter().enumerate().skip(begin).take_while(|(_, entry)| entry.depth >= level);
    let own = below.filter(|(_, entry)| entry.depth == level);
    own.map(|(at, _)| Variant::from(node(entries, Some(at), depth))).collect()
}

/// An entry, or the menu; -1 is any depth.
fn node(entries: &[TrayEntry], at: Option<usize>, depth: i32) -> Node {
    let below = if depth == 0 { Vec::new() } else { children(entries, at, depth.saturating_sub(1).max(-1)) };
    match at {
        Some(at) => (number(&entries[at]), look(&entries[at]), below),
        None => (0, HashMap::from([("children-display", Variant::from("submenu"))]), below),
    }
}

/// What it is told to be, but for what is usual.
fn look(entry: &TrayEntry) -> Look {
    let mut look = Look::new();
    if entry.is_separator {
        look.insert("type", "separator".into());
    } else {
        look.insert("label", entry.label.clone().into());
    }
    if !entry.icon.is_empty() {
        look.insert("icon-name", entry.icon.clone().into());
    }
    if !entry.is_enabled {
        look.insert("enabled", false.into());
    }
    if !entry.is_visible {
        look.insert("visible", false.into());
    }
    if entry.is_submenu {
        look.insert("children-display", "submenu".into());
    }
    let toggle = match entry.toggle {
        TrayToggle::None => None,
        TrayToggle::Off => Some(("checkmark", 0)),
        TrayToggle::On => Some(("checkmark", 1)),
        TrayToggle::RadioOff => Some(("radio", 0)),
        TrayToggle::RadioOn => Some(("radio", 1)),
    };
    if let Some((kind, state)) = toggle {
        look.insert("toggle-type", kind.into());
        look.insert("toggle-state", state.into());
    }
    look
}

impl MenuObject {
    /// The entries now, and how often they have changed.
    fn entries(&self) -> (u32, Vec<TrayEntry>) {
        self.0.with(|shown| (shown.revision, entries(&self.0.host, &shown.menu)))
    }

    /// The user chooses an entry, if it is one of the host's that can be.
    fn choose(&self, id: i32, event: &str) -> bool {
        let is_there = |entry: &&TrayEntry| i32::try_from(entry.id) == Ok(id);
        let found = self.0.with(|shown| shown.menu.entries.iter().find(is_there).cloned());
        let Some(entry) = found else { return false };
        if event == "clicked" && entry.is_enabled && !entry.is_separator {
            self.0.act(TrayAct::Choose(entry.id));
        }
        true
    }

    /// The user will see what is below an entry.
    fn open(&self, id: i32) -> bool {
        let is_known = id == 0 || self.entries().1.iter().any(|entry| number(entry) == id);
        if let Ok(id) = u32::try_from(id)
            && is_known
            && id <= MAX_ENTRY
        {
            self.0.act(TrayAct::Open(id));
        }
        is_known
    }
}

#[zbus::interface(name = "com.canonical.dbusmenu", spawn = false, introspection_docs = false)]
impl MenuObject {
    #[zbus(property(emits_changed_signal = "const"))]
    fn version(&self) -> u32 {
        3
    }

    #[zbus(property(emits_changed_signal = "const"))]
    fn text_direction(&self) -> &'static str {
        "ltr"
    }

    #[zbus(property(emits_changed_signal = "false"))]
    fn status(&self) -> &'static str {
        "normal"
    }

    #[zbus(property(emits_changed_signal = "const"))]
    fn icon_theme_path(&self) -> Vec<String> {
        Vec::new()
    }

    /// All properties are told, those too that were not asked for.
    #[zbus(out_args("revision", "layout"))]
    fn get_layout(
        &self,
        parent_id: i32,
        recursion_depth: i32,
        _property_names: Vec<&str>,
    ) -> fdo::Result<(u32, Node)> {
        let (revision, entries) = self.entries();
        let at = entries.iter().position(|entry| number(entry) == parent_id);
        if at.is_none() && parent_id != 0 {
            return Err(fdo::Error::InvalidArgs("there is no such entry".into()));
        }
        Ok((revision, node(&entries, at, recursion_depth)))
    }

    #[expect(clippy::needless_pass_by_value, reason = "what is deserialised is given by value")]
    fn get_group_properties(&self, ids: Vec<i32>, _property_names: Vec<&str>) -> Vec<(i32, Look)> {
        let entries = self.entries().1;
        let wanted = |entry: &&TrayEntry| ids.is_empty() || ids.contains(&number(entry));
        entries.iter().filter(wanted).map(|entry| (number(entry), look(entry))).collect()
    }

    fn get_property(&self, id: i32, name: &str) -> fdo::Result<Variant<'static>> {
        let entries = self.entries().1;
        let found = entries.iter().find(|entry| number(entry) == id);
        let value = found.and_then(|entry| look(entry).remove(name));
        value.ok_or_else(|| fdo::Error::InvalidArgs("there is no such property".into()))
    }

    fn event(&self, id: i32, event_id: &str, _data: Variant<'_>, _timestamp: u32) {
        self.choose(id, event_id);
    }

    /// Gives those that are not there.
    #[expect(clippy::needless_pass_by_value, reason = "what is deserialised is given by value")]
    fn event_group(&self, events: Vec<(i32, &str, Variant<'_>, u32)>) -> Vec<i32> {
        events.iter().filter(|(id, event, ..)| !self.choose(*id, event)).map(|event| event.0).collect()
    }

    /// What is new comes later, with a signal.
    fn about_to_show(&self, id: i32) -> bool {
        self.open(id);
        false
    }

    #[zbus(out_args("updates_needed", "id_errors"))]
    fn about_to_show_group(&self, ids: Vec<i32>) -> (Vec<i32>, Vec<i32>) {
        (Vec::new(), ids.into_iter().filter(|id| !self.open(*id)).collect())
    }

    #[zbus(signal)]
    async fn layout_updated(
        emitter: &zbus::object_server::SignalEmitter<'_>,
        revision: u32,
        parent: i32,
    ) -> zbus::Result<()>;

    #[zbus(signal)]
    async fn items_properties_updated(
        emitter: &zbus::object_server::SignalEmitter<'_>,
        updated: Vec<(i32, HashMap<String, Variant<'_>>)>,
        removed: Vec<(i32, Vec<String>)>,
    ) -> zbus::Result<()>;
}

#[cfg(test)]
mod tests;
