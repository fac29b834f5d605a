//! What [`Holds`](super::hold::Holds) keeps of the app side's messages.

use crate::message::{Request, Unit};

/// Something that is held.
#[derive(Debug)]
pub(super) enum Waiting {
    /// A request.
    Request(Request),
    /// A unit with its children.
    Unit(Unit),
    /// A unit whose content was superseded: its state goes into the commit of the unit that brings the later content.
    Folded(Unit),
}
