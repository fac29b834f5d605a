use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, sync_channel};

use rustix::event::{EventfdFlags, eventfd};
use wayferry_proto::TrayItem;

use super::*;
use crate::tray::desk::Said;
use crate::tray::teller::Teller;

fn entry(id: u32, depth: u8, label: &str) -> TrayEntry {
    TrayEntry { id, depth, label: label.into(), is_enabled: true, is_visible: true, ..TrayEntry::default() }
}

fn shown(item: &TrayItem, entries: Vec<TrayEntry>) -> (MenuObject, Receiver<Said>) {
    let (say, said) = sync_channel(16);
    let wake: OwnedFd = eventfd(0, EventfdFlags::NONBLOCK).expect("a descriptor");
    let state = Arc::new(State::new("the_host", item, &Teller::new(say, Arc::new(wake))));
    state.with(|shown| shown.menu = TrayMenu { item: item.id, entries });
    (MenuObject(state), said)
}

/// An entry's number, and those below it.
fn outline(id: i32, below: &[Variant<'_>]) -> String {
    let below = below.iter().map(|variant| {
        let variant = if let Variant::Variant(inner) = variant { inner } else { variant };
        let Variant::Structure(structure) = variant else { panic!("an entry: {variant:?}") };
        let [Variant::I32(id), _, Variant::Array(below)] = structure.fields() else {
            panic!("{structure:?}")
        };
        outline(*id, below)
    });
    let below: Vec<String> = below.collect();
    if below.is_empty() { id.to_string() } else { format!("{id}({})", below.join(" ")) }
}

#[test]
fn a_menu_begins_with_the_name_of_its_host() {
    let entries =
        vec![entry(1, 0, "a"), entry(2, 1, "b"), entry(3, 2, "c"), entry(4, 1, "d"), entry(5, 0, "e")];
    let (menu, _said) = shown(&TrayItem::default(), entries);
    let layout = |parent, depth| {
        menu.get_layout(parent, depth, vec![]).map(|(_, node)| outline(node.0, &node.2)).unwrap_or_default()
    };
    let (name, line) = (MAX_ENTRY + 1, MAX_ENTRY + 2);
    assert_eq!(layout(0, -1), format!("0({name} {line} 1(2(3) 4) 5)"));
    assert_eq!(layout(0, 1), format!("0({name} {line} 1 5)"));
    assert_eq!((layout(1, -1), layout(1, 0), layout(9, -1)), ("1(2(3) 4)".into(), "1".into(), String::new()));
    let look = menu.get_group_properties(vec![name.cast_signed()], vec![]).remove(0).1;
    assert_eq!(look["label"], Variant::from("the__host"), "no letter of it is underlined");
    assert_eq!(look["enabled"], Variant::from(false));
}

#[test]
fn nothing_is_chosen_that_is_not_there_or_cannot_be() {
    let grey = TrayEntry { is_enabled: false, ..entry(2, 0, "b") };
    let line = TrayEntry { is_separator: true, ..entry(3, 0, "") };
    let (menu, said) = shown(&TrayItem { id: 7, ..TrayItem::default() }, vec![entry(1, 0, "a"), grey, line]);
    for id in [0, -1, 2, 3, 4, i32::MAX, (MAX_ENTRY + 1).cast_signed()] {
        menu.choose(id, "clicked");
        menu.open(-1);
    }
    menu.choose(1, "hovered");
    assert_eq!(said.try_iter().count(), 0);
    menu.choose(1, "clicked");
    assert!(menu.open(0) && menu.open(1) && !menu.open(9));
    let acts = [TrayAct::Choose(1), TrayAct::Open(0), TrayAct::Open(1)];
    assert_eq!(said.try_iter().collect::<Vec<_>>(), acts.map(|act| Said::Act(7, act)));
    let none =
        menu.event_group(vec![(1, "clicked", Variant::from(0), 0), (8, "clicked", Variant::from(0), 0)]);
    assert_eq!(none, [8], "the desk is told which are gone");
}

#[test]
fn a_user_who_clicks_faster_than_the_session_hears_waits_for_nothing() {
    let (menu, said) = shown(&TrayItem::default(), vec![entry(1, 0, "a")]);
    assert!((0..1000).all(|_| menu.choose(1, "clicked")));
    assert_eq!(said.try_iter().count(), 16);
}

#[test]
fn a_title_stands_behind_the_name_of_its_host_and_there_is_always_one() {
    let title = |title: &str, tip: &str, name: &str| {
        let item =
            TrayItem { title: title.into(), tip: tip.into(), name: name.into(), ..TrayItem::default() };
        shown(&item, vec![]).0.0.title()
    };
    assert_eq!(title("Mail", "tip", "name"), "the_host: Mail");
    assert_eq!(title("", "tip", "name"), "the_host: tip");
    assert_eq!(title("", "", "name"), "the_host: name");
    assert_eq!(title("", "", ""), "the_host");
}
