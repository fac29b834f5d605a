//! The object of an icon at the desk: `org.kde.StatusNotifierItem`.
//!
//! It answers from what is shown now, and passes on what the user does. Invariant: no text of the host's is read as
//! markup, and none stands without the host's name.

use std::sync::Arc;

use wayferry_proto::note::MAX_TOKEN;
use wayferry_proto::{TrayAct, TrayCategory, TrayIcon, TrayStatus};
use zbus::fdo;
use zbus::wire::ObjectPath;

use super::state::{Shown, State};
use crate::notes::markup;
use crate::tray::names::{MENU_PATH, NO_MENU};

/// See the module.
pub(super) struct ItemObject(pub(super) Arc<State>);

/// Pictures: width, height, and pixels of alpha, red, green and blue.
type Pictures = Vec<(i32, i32, Vec<u8>)>;

impl ItemObject {
    fn name(&self, icon: impl FnOnce(&Shown) -> &TrayIcon) -> String {
        self.0.with(|shown| icon(shown).name.clone())
    }

    fn pictures(&self, icon: impl FnOnce(&Shown) -> &TrayIcon) -> Pictures {
        let of = |(width, height): (u8, u8), argb: &[u8]| (width.into(), height.into(), argb.to_vec());
        self.0.with(|shown| {
            icon(shown).picture.iter().map(|picture| of(picture.size(), picture.argb())).collect()
        })
    }
}

#[zbus::interface(name = "org.kde.StatusNotifierItem", spawn = false, introspection_docs = false)]
impl ItemObject {
    #[zbus(property(emits_changed_signal = "false"))]
    fn category(&self) -> &'static str {
        match self.0.with(|shown| shown.item.category) {
            TrayCategory::Program => "ApplicationStatus",
            TrayCategory::Communications => "Communications",
            TrayCategory::System => "SystemServices",
            TrayCategory::Hardware => "Hardware",
        }
    }

    /// By which a desk remembers what its user has chosen for it.
    #[zbus(property(emits_changed_signal = "false"))]
    fn id(&self) -> String {
        let name = self.0.with(|shown| shown.item.name.clone());
        format!("wayferry: {}: {name}", self.0.host)
    }

    #[zbus(property(emits_changed_signal = "false"))]
    fn title(&self) -> String {
        self.0.title()
    }

    #[zbus(property(emits_changed_signal = "false"))]
    fn status(&self) -> &'static str {
        status(self.0.with(|shown| shown.item.status))
    }

    #[zbus(property(emits_changed_signal = "false"))]
    fn window_id(&self) -> i32 {
        0
    }

    #[zbus(property(emits_changed_signal = "false"))]
    fn icon_theme_path(&self) -> &'static str {
        ""
    }

    #[zbus(property(emits_changed_signal = "false"))]
    fn icon_name(&self) -> String {
        self.name(|shown| &shown.item.icon)
    }

    #[zbus(property(emits_changed_signal = "false"))]
    fn icon_pixmap(&self) -> Pictures {
        self.pictures(|shown| &shown.item.icon)
    }

    #[zbus(property(emits_changed_signal = "false"))]
    fn overlay_icon_name(&self) -> String {
        self.name(|shown| &shown.item.overlay)
    }

    #[zbus(property(emits_changed_signal = "false"))]
    fn overlay_icon_pixmap(&self) -> Pictures {
        self.pictures(|shown| &shown.item.overlay)
    }

    #[zbus(property(emits_changed_signal = "false"))]
    fn attention_icon_name(&self) -> String {
        self.name(|shown| &shown.item.attention)
    }

    #[zbus(property(emits_changed_signal = "false"))]
    fn attention_icon_pixmap(&self) -> Pictures {
        self.pictures(|shown| &shown.item.attention)
    }

    #[zbus(property(emits_changed_signal = "false"))]
    fn attention_movie_name(&self) -> &'static str {
        ""
    }

    #[zbus(property(emits_changed_signal = "false"))]
    fn tool_tip(&self) -> (String, Pictures, String, String) {
        let (tip, text) = self.0.with(|shown| (shown.item.tip.clone(), shown.item.tip_text.clone()));
        let tip = if tip.is_empty() { self.0.title() } else { format!("{}: {tip}", self.0.host) };
        (String::new(), Vec::new(), markup::escape(&tip), markup::escape(&text))
    }

    #[zbus(property(emits_changed_signal = "false"))]
    fn item_is_menu(&self) -> bool {
        self.0.with(|shown| shown.item.is_menu)
    }

    #[zbus(property(emits_changed_signal = "false"))]
    fn menu(&self) -> ObjectPath<'static> {
        let path = if self.0.with(|shown| shown.item.has_menu) { MENU_PATH } else { NO_MENU };
        ObjectPath::from_static_str(path).expect("it is a path")
    }

    /// A desk shows the menu instead where a program has nothing else.
    fn activate(&self, _x: i32, _y: i32) -> fdo::Result<()> {
        if self.0.with(|shown| shown.item.is_menu) {
            return Err(fdo::Error::NotSupported("it has a menu only".into()));
        }
        self.0.act(TrayAct::Activate);
        Ok(())
    }

    fn secondary_activate(&self, _x: i32, _y: i32) {
        self.0.act(TrayAct::Secondary);
    }

    /// As [`ItemObject::activate`].
    fn context_menu(&self, _x: i32, _y: i32) -> fdo::Result<()> {
        if self.0.with(|shown| shown.item.has_menu) {
            return Err(fdo::Error::NotSupported("it has a menu".into()));
        }
        self.0.act(TrayAct::Menu);
        Ok(())
    }

    fn scroll(&self, delta: i32, orientation: &str) {
        self.0.act(TrayAct::Scroll { delta, is_sideways: orientation.eq_ignore_ascii_case("horizontal") });
    }

    fn provide_xdg_activation_token(&self, token: &str) {
        if token.len() <= MAX_TOKEN {
            self.0.act(TrayAct::Token(token.to_owned()));
        }
    }
}

/// As desks call it.
pub(super) fn status(status: TrayStatus) -> &'static str {
    match status {
        TrayStatus::Passive => "Passive",
        TrayStatus::Active => "Active",
        TrayStatus::Attention => "NeedsAttention",
    }
}
