use std::sync::mpsc::channel;
use std::time::Duration;

use wayferry_proto::{TrayAct, TrayEntry};

use super::*;
use crate::edge::part::alone;

fn at(millis: u64) -> Time {
    Time::new(Duration::from_secs(1000) + Duration::from_millis(millis))
}

fn item(id: u32, title: &str) -> Control {
    Control::TrayItem(TrayItem { id, title: title.into(), ..TrayItem::default() })
}

fn menu(item: u32) -> Control {
    let entries = vec![TrayEntry { id: 1, ..TrayEntry::default() }];
    Control::TrayMenu(TrayMenu { item, entries })
}

/// A desk that never does anything by itself, and what it may say.
fn quiet() -> (Showing, Teller<Said>) {
    let (tell, told) = channel();
    let showing = Showing::start_with(move |_, teller| drop(tell.send(teller))).expect("a thread");
    (showing, told.recv().expect("a thread"))
}

/// The titles that are on the board now, by their places.
fn titles(showing: &Showing) -> Vec<(usize, String)> {
    let changes = showing.board.take().into_iter().enumerate();
    changes.filter_map(|(at, change)| change.item.map(|item| (at, item.title))).collect()
}

#[test]
fn a_host_that_changes_an_icon_without_end_is_held_back() {
    let (mut showing, _teller) = quiet();
    let (mut base, _) = alone::base();
    for number in 0..100 {
        showing.on_message(at(0), item(1, &number.to_string()));
    }
    assert_eq!(titles(&showing), [(0, "0".into())]);
    alone::turn(&mut showing, at(499), &mut base);
    assert_eq!(titles(&showing), []);
    alone::turn(&mut showing, at(500), &mut base);
    assert_eq!(titles(&showing), [(0, "99".into())]);
}

#[test]
fn a_host_shows_eight_icons_and_new_ones_are_no_faster() {
    let (mut showing, _teller) = quiet();
    (1..=20).for_each(|id| showing.on_message(at(0), item(id, "first")));
    assert_eq!(titles(&showing).len(), MAX_ITEMS);
    // Others in their places wait as long.
    for id in 1..1000 {
        showing.on_message(at(100), Control::TrayGone { id });
        showing.on_message(at(100), item(id + 1000, "second"));
    }
    let changes = showing.board.take();
    assert!(changes.iter().all(|change| change.is_cleared && change.item.is_none()));
    let (mut base, _) = alone::base();
    alone::turn(&mut showing, at(500), &mut base);
    assert_eq!(titles(&showing).len(), MAX_ITEMS);
}

#[test]
fn a_menu_belongs_to_an_icon_that_is_there() {
    let (mut showing, _teller) = quiet();
    showing.on_message(at(0), menu(1));
    showing.on_message(at(0), item(1, "one"));
    assert!(showing.board.take().iter().all(|change| change.menu.is_none()));
    showing.on_message(at(0), menu(1));
    showing.on_message(at(0), Control::TrayGone { id: 1 });
    showing.on_message(at(0), menu(1));
    let changes = showing.board.take();
    assert!(changes[0].is_cleared && changes[0].menu.is_none(), "it went with its icon");
}

#[test]
fn another_tray_is_given_nothing_of_the_one_before() {
    let (mut showing, teller) = quiet();
    let (mut base, events) = alone::base();
    teller.say(Said::There(true));
    alone::turn(&mut showing, at(0), &mut base);
    showing.on_message(at(0), item(1, "one"));
    showing.on_message(at(0), item(1, "two"));
    teller.say(Said::There(false));
    teller.say(Said::There(true));
    alone::turn(&mut showing, at(1000), &mut base);
    assert!(showing.is_due && showing.is_there, "it is told once the host can hear it");
    let changes = showing.board.take();
    assert!(changes.iter().all(|change| change.is_cleared && change.item.is_none()));
    teller.say(Said::Act(1, TrayAct::Activate));
    teller.say(Said::Nothing("no bus".into()));
    alone::turn(&mut showing, at(1000), &mut base);
    let events: Vec<SessionEvent> = events.try_iter().collect();
    assert!(matches!(&events[..], [SessionEvent::NoTray { .. }]), "{events:?}");
}

#[test]
fn a_desk_that_never_does_anything_holds_up_nobody() {
    let (mut showing, _teller) = quiet();
    let (mut base, _) = alone::base();
    for id in 0..1000 {
        showing.on_message(at(u64::from(id) * 1000), item(id % 4, "title"));
        showing.on_message(at(u64::from(id) * 1000), menu(id % 4));
        alone::turn(&mut showing, at(u64::from(id) * 1000), &mut base);
    }
    assert_eq!(titles(&showing).len(), 4);
}
