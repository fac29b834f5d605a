//! What the loop hears of the desk.

use wayferry_proto::TrayAct;

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::tray) enum Said {
    /// It has a tray, and shows nothing yet; or it has none.
    There(bool),
    /// It has none, for this reason. Said once.
    Nothing(String),
    /// Its user does something with an icon.
    Act(u32, TrayAct),
}
