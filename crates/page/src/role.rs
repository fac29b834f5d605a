//! What a page is to a session.

/// A page views, or is the session's display; which of them it may be is the app side's to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Role {
    /// A viewer, without a seat.
    #[default]
    View,
    /// The display, with a pointer and a keyboard.
    Control,
}
