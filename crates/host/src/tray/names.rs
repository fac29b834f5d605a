//! What an icon, a menu and a watcher are called on a bus, and how many icons there may be.
//!
//! The names are those of the StatusNotifierItem specification, as KDE's are, and of `com.canonical.dbusmenu`.

/// Icons of a session at a time.
pub(super) const MAX_ITEMS: usize = 8;

/// The interface of a watcher, and the name that has it.
pub(super) const WATCHER: &str = "org.kde.StatusNotifierWatcher";
/// The object that has it.
pub(super) const WATCHER_PATH: &str = "/StatusNotifierWatcher";
/// The interface of an icon, and the first part of the names that have it.
pub(super) const ITEM: &str = "org.kde.StatusNotifierItem";
/// The object that has it.
pub(super) const ITEM_PATH: &str = "/StatusNotifierItem";
/// The interface of a menu.
pub(super) const MENU: &str = "com.canonical.dbusmenu";
/// The object that has it, at the desk.
pub(super) const MENU_PATH: &str = "/MenuBar";
/// What is told instead of the object of a menu where there is none.
pub(super) const NO_MENU: &str = "/NO_DBUSMENU";
