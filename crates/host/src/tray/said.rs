//! What the loop hears of the icons that programs have.

use wayferry_proto::{TrayItem, TrayMenu};

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Said {
    /// One is there, and has not been read.
    New(u32),
    /// One has changed since it was read.
    Changed(u32),
    /// Its menu has.
    MenuChanged(u32),
    /// One has been read.
    Item(Box<TrayItem>),
    /// Its menu has.
    Menu(TrayMenu),
    /// One is gone.
    Gone(u32),
}
