//! The menu of a program, as `com.canonical.dbusmenu` tells it.
//!
//! It becomes entries in a row; what the user does with them is not its matter. Invariant: of what an entry is told to
//! be no more is kept than what crosses.

use std::collections::HashMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use wayferry_proto::tray::{MAX_DEPTH, MAX_ENTRIES};
use wayferry_proto::{TrayEntry, TrayMenu, TrayToggle};
use zbus::wire::{Signature, Type};

use super::value::Value;

/// An entry and what is below it; the menu itself is one, too.
#[derive(Debug, Deserialize)]
pub(super) struct Node(i32, Look, Children);

impl Type for Node {
    const SIGNATURE: &'static Signature = <(i32, HashMap<&str, Value<'_>>, Vec<Value<'_>>)>::SIGNATURE;
}

impl Node {
    /// The menu of this icon.
    pub(super) fn menu(self, item: u32) -> TrayMenu {
        let mut entries = Vec::new();
        self.2.put(0, &mut entries);
        TrayMenu { item, entries }.fit()
    }
}

#[derive(Debug)]
struct Children(Vec<Node>);

impl Children {
    fn put(self, depth: u8, entries: &mut Vec<TrayEntry>) {
        for Node(id, Look(look), children) in self.0 {
            if let Ok(id) = u32::try_from(id)
                && depth < MAX_DEPTH
                && entries.len() < MAX_ENTRIES
            {
                entries.push(TrayEntry { id, depth, ..look });
                children.put(depth + 1, entries);
            }
        }
    }
}

impl<'de> Deserialize<'de> for Children {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(ChildrenVisitor)
    }
}

struct ChildrenVisitor;

impl<'de> Visitor<'de> for ChildrenVisitor {
    type Value = Children;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("entries")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Children, A::Error> {
        let mut children = Vec::new();
        while children.len() < MAX_ENTRIES {
            match entries.next_element::<Child>()? {
                Some(Child(child)) => children.extend(child),
                None => return Ok(Children(children)),
            }
        }
        while entries.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Children(children))
    }
}

/// A variant with an entry in it, or with something else.
struct Child(Option<Node>);

impl<'de> Deserialize<'de> for Child {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ChildVisitor)
    }
}

struct ChildVisitor;

impl<'de> Visitor<'de> for ChildVisitor {
    type Value = Child;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a variant")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut variant: A) -> Result<Child, A::Error> {
        match variant.next_element::<&str>()?.unwrap_or_default() {
            "(ia{sv}av)" => Ok(Child(variant.next_element()?)),
            _ => variant.next_element::<IgnoredAny>().map(|_| Child(None)),
        }
    }
}

/// An entry without its number and its place.
#[derive(Debug)]
struct Look(TrayEntry);

impl<'de> Deserialize<'de> for Look {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let told = HashMap::<&str, Value<'_>>::deserialize(deserializer)?;
        let word = |name: &str| told.get(name).map_or("", Value::word);
        let is = |name: &str| told.get(name) != Some(&Value::Flag(false));
        let is_on = told.get("toggle-state") == Some(&Value::Number(1));
        let toggle = match word("toggle-type") {
            "checkmark" if is_on => TrayToggle::On,
            "checkmark" => TrayToggle::Off,
            "radio" if is_on => TrayToggle::RadioOn,
            "radio" => TrayToggle::RadioOff,
            _ => TrayToggle::None,
        };
        let look = TrayEntry {
            label: word("label").to_owned(),
            icon: word("icon-name").to_owned(),
            is_separator: word("type") == "separator",
            is_enabled: is("enabled"),
            is_visible: is("visible"),
            is_submenu: word("children-display") == "submenu",
            toggle,
            ..TrayEntry::default()
        };
        Ok(Self(look.fit()))
    }
}

/// What is asked of each entry.
pub(super) const PROPERTIES: [&str; 8] =
    ["type", "label", "icon-name", "enabled", "visible", "children-display", "toggle-type", "toggle-state"];

#[cfg(test)]
mod tests {
    use zbus::Variant;
    use zbus::wire::serialized::Context;
    use zbus::wire::{LE, to_bytes};

    use super::*;

    type Told = (i32, HashMap<&'static str, Variant<'static>>, Vec<Variant<'static>>);

    fn told(id: i32, look: &[(&'static str, Variant<'static>)], below: Vec<Variant<'static>>) -> Told {
        let look = look.iter().map(|(name, value)| (*name, value.try_clone().expect("no descriptor")));
        (id, look.collect(), below)
    }

    /// As it would come from a program.
    fn menu(below: Vec<Variant<'static>>) -> TrayMenu {
        let bytes = to_bytes(Context::new(LE, 0), &told(0, &[], below)).expect("it can be written");
        let node: Node = bytes.deserialize().expect("it can be read").0;
        node.menu(7)
    }

    #[test]
    fn a_menu_becomes_its_entries_in_a_row() {
        let usual = TrayEntry { is_enabled: true, is_visible: true, ..TrayEntry::default() };
        let inbox = told(3, &[("label", "Inbox\u{7}".into()), ("visible", false.into())], vec![]);
        let folders = [("label", "_Folders".into()), ("children-display", "submenu".into())];
        let quiet =
            [("toggle-type", "checkmark".into()), ("toggle-state", 1.into()), ("enabled", false.into())];
        let below = vec![
            told(2, &folders, vec![inbox.into()]).into(),
            told(4, &quiet, vec![]).into(),
            told(5, &[("toggle-type", "radio".into()), ("toggle-state", 0.into())], vec![]).into(),
            told(6, &[("type", "separator".into()), ("icon-name", "/etc/passwd".into())], vec![]).into(),
        ];
        let entries = vec![
            TrayEntry { id: 2, label: "_Folders".into(), is_submenu: true, ..usual.clone() },
            TrayEntry { id: 3, depth: 1, label: "Inbox·".into(), is_visible: false, ..usual.clone() },
            TrayEntry { id: 4, is_enabled: false, toggle: TrayToggle::On, ..usual.clone() },
            TrayEntry { id: 5, toggle: TrayToggle::RadioOff, ..usual.clone() },
            TrayEntry { id: 6, is_separator: true, ..usual },
        ];
        assert_eq!(menu(below), TrayMenu { item: 7, entries });
    }

    #[test]
    fn a_menu_without_end_is_cut_and_garbage_in_it_passed_over() {
        let wrong = [("label", 7u64.into()), ("enabled", "no".into()), ("icon-data", vec![7u8; 9000].into())];
        let first = told(1, &wrong, vec!["nothing".into(), told(-5, &[], vec![]).into()]);
        let many = (2..2000).map(|id| told(id, &[], vec![]).into());
        let below = [Variant::from(first)].into_iter().chain(many).collect();
        let found = menu(below);
        assert_eq!((found.entries.len(), found.entries[0].label.as_str()), (MAX_ENTRIES, ""));
        let deep = (1..=9).rev().fold(Vec::new(), |below, id| vec![Variant::from(told(id, &[], below))]);
        assert_eq!(menu(deep).entries.last().map(|entry| (entry.id, entry.depth)), Some((6, 5)));
    }
}
