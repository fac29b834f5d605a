use std::sync::mpsc::{Receiver, SyncSender};
use std::time::Duration;

use wayferry_proto::TrayPicture;

use super::*;
use crate::edge::part::alone;
use crate::tray::Order;

const OPEN: bool = true;
const SHUT: bool = false;

fn at(millis: u64) -> Time {
    Time::new(Duration::from_secs(1000) + Duration::from_millis(millis))
}

fn item(id: u32, title: &str) -> TrayItem {
    TrayItem { id, title: title.into(), has_menu: true, ..TrayItem::default() }
}

/// A session with these icons, and what is said and ordered of them.
fn tray(ids: &[u32]) -> (Tray, SyncSender<Said>, Vec<Receiver<Order>>) {
    let (watcher, say, orders) = Watcher::alone(ids);
    ids.iter().for_each(|id| say.send(Said::New(*id)).expect("room"));
    (Tray::new(watcher), say, orders)
}

fn ordered(orders: &Receiver<Order>) -> Vec<Order> {
    orders.try_iter().collect()
}

#[test]
fn what_no_display_shows_is_not_read() {
    let (mut tray, _say, orders) = tray(&[1]);
    let (mut base, _) = alone::base();
    let session = &mut base.link.session;
    tray.keep_to(Some([1; 32].into()));
    tray.pass(at(0), OPEN, session);
    assert!(ordered(&orders[0]).is_empty() && !tray.watcher.is_there(), "its desk has no tray");
    tray.on_tray(true);
    tray.pass(at(0), SHUT, session);
    assert!(ordered(&orders[0]).is_empty() && tray.watcher.is_there(), "it is away");
    tray.pass(at(0), OPEN, session);
    assert_eq!(ordered(&orders[0]), [Order::Read]);
    tray.on_tray(false);
    assert!(!tray.watcher.is_there());
}

#[test]
fn an_icon_is_read_twice_a_second_and_sent_if_it_is_new() {
    let (mut tray, say, orders) = tray(&[1]);
    let (mut base, _) = alone::base();
    let session = &mut base.link.session;
    tray.on_tray(true);
    tray.pass(at(0), OPEN, session);
    assert_eq!(ordered(&orders[0]), [Order::Read]);
    say.send(Said::Item(Box::new(item(1, "a")))).expect("room");
    tray.pass(at(0), OPEN, session);
    assert_eq!(ordered(&orders[0]), [Order::ReadMenu], "its menu comes behind it");
    (0..9).for_each(|_| say.send(Said::Changed(1)).expect("room"));
    tray.pass(at(0), OPEN, session);
    tray.pass(at(499), OPEN, session);
    assert_eq!(ordered(&orders[0]), []);
    tray.pass(at(500), OPEN, session);
    assert_eq!(ordered(&orders[0]), [Order::Read]);
    let spent = tray.budget.opens();
    say.send(Said::Item(Box::new(item(1, "a")))).expect("room");
    tray.pass(at(500), OPEN, session);
    assert_eq!(tray.budget.opens(), spent, "it is as the display knows it");
    say.send(Said::Item(Box::new(item(1, "b")))).expect("room");
    tray.pass(at(500), OPEN, session);
    assert!(tray.budget.opens() > spent);
}

#[test]
fn icons_that_went_while_the_display_was_away_go_when_it_is_back() {
    let (mut tray, say, _orders) = tray(&[1, 2]);
    let (mut base, _) = alone::base();
    let session = &mut base.link.session;
    tray.on_tray(true);
    [1, 2].into_iter().for_each(|id| say.send(Said::Item(Box::new(item(id, "a")))).expect("room"));
    tray.pass(at(0), OPEN, session);
    assert_eq!(tray.shown.len(), 2);
    say.send(Said::Gone(2)).expect("room");
    tray.pass(at(0), SHUT, session);
    assert_eq!(tray.shown.len(), 2);
    // Read before, it is read again when the display is there.
    say.send(Said::Item(Box::new(item(1, "b")))).expect("room");
    tray.pass(at(0), SHUT, session);
    assert!(tray.icons[&1].item.next_timeout().is_some() && tray.shown[&1].item.title == "a");
    tray.pass(at(0), OPEN, session);
    assert_eq!(tray.shown.keys().collect::<Vec<_>>(), [&1]);
}

#[test]
fn only_the_display_that_shows_an_icon_is_believed() {
    let (mut tray, say, orders) = tray(&[1]);
    let (mut base, _) = alone::base();
    let session = &mut base.link.session;
    tray.keep_to(Some([1; 32].into()));
    tray.on_tray(true);
    let act = |tray: &Tray, id| tray.on_act(id, Some(TrayAct::Activate));
    act(&tray, 1);
    say.send(Said::Item(Box::new(item(1, "a")))).expect("room");
    tray.pass(at(0), OPEN, session);
    let _ = ordered(&orders[0]);
    act(&tray, 9);
    tray.on_act(1, None);
    assert_eq!(ordered(&orders[0]), []);
    act(&tray, 1);
    assert_eq!(ordered(&orders[0]), [Order::Act(TrayAct::Activate)]);
    // The same display on another carrier goes on; another one has to say that it has a tray.
    tray.keep_to(Some([1; 32].into()));
    assert!(tray.watcher.is_there() && tray.shown.len() == 1);
    tray.keep_to(Some([2; 32].into()));
    act(&tray, 1);
    assert!(ordered(&orders[0]).is_empty() && !tray.watcher.is_there() && tray.shown.is_empty());
}

#[test]
fn pictures_leave_room_for_what_else_crosses() {
    let ids: Vec<u32> = (1..=8).collect();
    let (mut tray, say, orders) = tray(&ids);
    let (mut base, _) = alone::base();
    let session = &mut base.link.session;
    tray.on_tray(true);
    tray.pass(at(0), OPEN, session);
    assert!(orders.iter().all(|orders| ordered(orders) == [Order::Read]));
    let picture = TrayPicture::new(64, 64, vec![9; 64 * 64 * 4]);
    for id in ids {
        let icon = TrayIcon { name: String::new(), picture: picture.clone() };
        say.send(Said::Item(Box::new(TrayItem { icon, ..item(id, "") }))).expect("room");
        say.send(Said::Changed(id)).expect("room");
        tray.pass(at(0), OPEN, session);
    }
    let _ = orders.iter().map(ordered).count();
    tray.pass(at(1000), OPEN, session);
    assert!(orders.iter().all(|orders| ordered(orders).is_empty()), "128 KiB take four seconds");
    tray.pass(at(4000), OPEN, session);
    assert!(orders.iter().all(|orders| ordered(orders).contains(&Order::Read)));
}

#[test]
fn a_program_with_much_to_do_is_read_later() {
    let (mut tray, say, orders) = tray(&[1]);
    let (mut base, _) = alone::base();
    let session = &mut base.link.session;
    tray.on_tray(true);
    say.send(Said::Item(Box::new(item(1, "a")))).expect("room");
    tray.pass(at(0), SHUT, session);
    tray.pass(at(0), OPEN, session);
    say.send(Said::Item(Box::new(item(1, "a")))).expect("room");
    tray.pass(at(0), OPEN, session);
    let _ = ordered(&orders[0]);
    (0..100).for_each(|_| tray.on_act(1, Some(TrayAct::Activate)));
    say.send(Said::Changed(1)).expect("room");
    tray.pass(at(1000), OPEN, session);
    assert_eq!(ordered(&orders[0]), vec![Order::Act(TrayAct::Activate); 16]);
    tray.pass(at(2000), OPEN, session);
    assert_eq!(ordered(&orders[0]), [Order::Read]);
}
