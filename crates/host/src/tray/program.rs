//! One icon of a program on the session's bus.
//!
//! It has a thread of its own, which reads what it is and tells the program what the user does: a program that does not
//! answer holds up itself alone. When it is read is the loop's matter. Invariant: one call of it is open at a time.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};

use wayferry_proto::tray::{MAX_DEPTH, MAX_ENTRY};
use wayferry_proto::{TrayAct, TrayCategory, TrayIcon, TrayItem, TrayMenu, TrayPicture, TrayStatus};
use zbus::message::{Flags, Message};
use zbus::{Connection, Variant};

use super::file;
use super::layout::{Node, PROPERTIES};
use super::names::{ITEM, MENU, NO_MENU};
use super::said::Said;
use super::teller::Teller;
use super::value::Value;
use crate::notes::markup;

/// What is done with an icon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Order {
    /// Its state is read.
    Read,
    /// Its menu is read.
    ReadMenu,
    /// The program is told what the user does.
    Act(TrayAct),
}

/// Where an icon is, as its thread and the one that hears signals know it.
#[derive(Debug)]
pub(super) struct Place {
    /// Names it to the loop.
    pub(super) id: u32,
    /// The name that the program gave, or the one of its connection.
    pub(super) name: String,
    /// Its object.
    pub(super) path: String,
    /// Whose signals are its own: the name of the connection, and the object of its menu.
    pub(super) from: Mutex<(Option<String>, Option<String>)>,
    /// The loop knows that it has changed.
    pub(super) is_told: AtomicBool,
    /// The loop knows that its menu has.
    pub(super) is_menu_told: AtomicBool,
}

impl Place {
    pub(super) fn new(id: u32, name: String, path: String) -> Self {
        let from = Mutex::new((None, None));
        Self { id, name, path, from, is_told: AtomicBool::new(true), is_menu_told: AtomicBool::new(true) }
    }

    /// Where its signals come from.
    pub(super) fn from(&self) -> (Option<String>, Option<String>) {
        self.from.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The connection that has it.
    fn owner(&self) -> String {
        self.from().0.unwrap_or_default()
    }

    /// It has changed; the loop is told once until it has it read.
    pub(super) fn changed(&self, teller: &Teller<Said>) -> Option<()> {
        if self.is_told.swap(true, Ordering::AcqRel) {
            return Some(());
        }
        teller.say(Said::Changed(self.id))
    }

    /// Its menu has changed, in the same way.
    pub(super) fn menu_changed(&self, teller: &Teller<Said>) -> Option<()> {
        if self.is_menu_told.swap(true, Ordering::AcqRel) {
            return Some(());
        }
        teller.say(Said::MenuChanged(self.id))
    }
}

/// The thread: until the icon is gone, or the loop.
pub(super) fn work(
    connection: &Connection,
    place: &Arc<Place>,
    orders: &Receiver<Order>,
    teller: &Teller<Said>,
) {
    let is_there = zbus::block_on(find(connection, place)).is_some();
    if is_there && teller.say(Said::New(place.id)).is_some() {
        let mut tries = 0;
        while let Ok(order) = orders.recv() {
            let done = zbus::block_on(perform(connection, place, order, teller));
            match done {
                Ok(None) => return,
                Ok(Some(())) => tries = 0,
                Err(_) if tries == MAX_TRIES => break,
                Err(_) => tries += 1,
            }
        }
    }
    teller.say(Said::Gone(place.id));
}

/// Finds whose the name is.
async fn find(connection: &Connection, place: &Place) -> Option<()> {
    let owner = match place.name.starts_with(':') {
        true => place.name.clone(),
        false => {
            let (bus, object) = ("org.freedesktop.DBus", "/org/freedesktop/DBus");
            let reply =
                connection.call_method(Some(bus), object, Some(bus), "GetNameOwner", &place.name).await;
            reply.ok()?.body().deserialize().ok()?
        }
    };
    place.from.lock().unwrap_or_else(PoisonError::into_inner).0 = Some(owner);
    Some(())
}

/// Does one thing; `None` once the loop is gone. What cannot be read is told to have changed, so that it is tried
/// again.
async fn perform(
    connection: &Connection,
    place: &Place,
    order: Order,
    teller: &Teller<Said>,
) -> zbus::Result<Option<()>> {
    match order {
        Order::Read => {
            place.is_told.store(false, Ordering::Release);
            match read(connection, place).await {
                Ok(item) => Ok(teller.say(Said::Item(Box::new(item)))),
                Err(error) => place.changed(teller).map_or(Ok(None), |()| Err(error)),
            }
        }
        Order::ReadMenu => {
            place.is_menu_told.store(false, Ordering::Release);
            let Some(path) = place.from().1 else { return Ok(Some(())) };
            match read_menu(connection, place, &path).await {
                Ok(menu) => Ok(teller.say(Said::Menu(menu))),
                Err(error) => place.menu_changed(teller).map_or(Ok(None), |()| Err(error)),
            }
        }
        Order::Act(TrayAct::Open(entry)) => {
            let Some(path) = place.from().1 else { return Ok(Some(())) };
            let Ok(entry) = i32::try_from(entry) else { return Ok(Some(())) };
            let owner = place.owner();
            // A program need not know that call.
            let reply = connection
                .call_method(Some(owner.as_str()), path.as_str(), Some(MENU), "AboutToShow", &entry)
                .await;
            let is_new = reply.and_then(|reply| reply.body().deserialize::<bool>()).unwrap_or(false);
            Ok(if is_new { place.menu_changed(teller) } else { Some(()) })
        }
        Order::Act(act) => {
            // A program that does nothing with it is left alone.
            let _ = tell(connection, place, act).await;
            Ok(Some(()))
        }
    }
}

/// Tells the program what the user does; its answer is not waited for.
async fn tell(connection: &Connection, place: &Place, act: TrayAct) -> zbus::Result<()> {
    let owner = place.owner();
    let item = |member: &'static str| {
        let call = Message::method_call(place.path.as_str(), member).destination(owner.as_str());
        call.interface(ITEM).with_flags(Flags::NO_REPLY_EXPECTED)
    };
    let message = match act {
        TrayAct::Activate => item("Activate").build(&(0, 0))?,
        TrayAct::Secondary => item("SecondaryActivate").build(&(0, 0))?,
        TrayAct::Menu => item("ContextMenu").build(&(0, 0))?,
        TrayAct::Scroll { delta, is_sideways } => {
            let way = if is_sideways { "horizontal" } else { "vertical" };
            item("Scroll").build(&(delta, way))?
        }
        TrayAct::Token(token) => item("ProvideXdgActivationToken").build(&token)?,
        TrayAct::Choose(entry) | TrayAct::Open(entry) => {
            let Some(path) = place.from().1.filter(|_| (1..=MAX_ENTRY).contains(&entry)) else {
                return Ok(());
            };
            let call = Message::method_call(path.as_str(), "Event").destination(owner.as_str());
            let call = call.interface(MENU).with_flags(Flags::NO_REPLY_EXPECTED);
            call.build(&(entry.cast_signed(), "clicked", Variant::from(0), 0u32))?
        }
    };
    connection.send(&message).await
}

async fn read(connection: &Connection, place: &Place) -> zbus::Result<TrayItem> {
    let (owner, path) = (place.owner(), place.path.as_str());
    let properties = Some("org.freedesktop.DBus.Properties");
    let reply = connection.call_method(Some(owner.as_str()), path, properties, "GetAll", &ITEM).await?;
    let body = reply.body();
    let (item, menu) = understand(place.id, body.deserialize()?);
    place.from.lock().unwrap_or_else(PoisonError::into_inner).1 = menu;
    Ok(item)
}

/// What a program says of its icon, and the object of its menu.
fn understand(id: u32, mut told: HashMap<&str, Value<'_>>) -> (TrayItem, Option<String>) {
    let word =
        |told: &HashMap<&str, Value<'_>>, name: &str| told.get(name).map_or("", Value::word).to_owned();
    let directory = word(&told, "IconThemePath");
    let icon = |told: &mut HashMap<&str, Value<'_>>, name: &str, picture: &str| {
        let name = word(told, name);
        let picture: Option<TrayPicture> = match told.remove(picture) {
            Some(Value::Picture(picture)) => Some(picture),
            _ => file::picture(&name, &directory),
        };
        TrayIcon { name, picture }
    };
    let menu = word(&told, "Menu");
    let menu = Some(menu).filter(|path| path.len() > 1 && path != NO_MENU);
    let (tip, tip_text) = match told.get("ToolTip") {
        Some(Value::Tip(title, text)) => (markup::plain(title), markup::plain(text)),
        _ => (String::new(), String::new()),
    };
    let in_a_row = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let item = TrayItem {
        id,
        name: word(&told, "Id"),
        title: word(&told, "Title"),
        category: match &*word(&told, "Category") {
            "Communications" => TrayCategory::Communications,
            "SystemServices" => TrayCategory::System,
            "Hardware" => TrayCategory::Hardware,
            _ => TrayCategory::Program,
        },
        status: match &*word(&told, "Status") {
            "Passive" => TrayStatus::Passive,
            "NeedsAttention" => TrayStatus::Attention,
            _ => TrayStatus::Active,
        },
        icon: icon(&mut told, "IconName", "IconPixmap"),
        overlay: icon(&mut told, "OverlayIconName", "OverlayIconPixmap"),
        attention: icon(&mut told, "AttentionIconName", "AttentionIconPixmap"),
        tip: in_a_row(&tip),
        tip_text: in_a_row(&tip_text),
        // A program that does not say has nothing but its menu: those with more do say.
        is_menu: menu.is_some() && told.get("ItemIsMenu") != Some(&Value::Flag(false)),
        has_menu: menu.is_some(),
    };
    (item.fit(), menu)
}

async fn read_menu(connection: &Connection, place: &Place, path: &str) -> zbus::Result<TrayMenu> {
    let words = (0, i32::from(MAX_DEPTH), &PROPERTIES[..]);
    let owner = place.owner();
    let reply = connection.call_method(Some(owner.as_str()), path, Some(MENU), "GetLayout", &words).await?;
    let (_revision, node): (u32, Node) = reply.body().deserialize()?;
    Ok(node.menu(place.id))
}

/// How often what a program does not tell is asked for again; then its icon is gone.
const MAX_TRIES: u32 = 10;
