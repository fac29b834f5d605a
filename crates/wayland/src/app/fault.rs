//! Why a connection ends, and by whose fault.
//!
//! Says nothing to anybody: that is the connection's to do.

/// Who is at fault, and what to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The program; it gets a `wl_display.error` about this object with this code of the object's interface: one of
    /// [`error_code`] goes with object 1 or a registry.
    App { object: u32, code: u32, message: String },
    /// The display side.
    Peer(String),
    /// A limit.
    TooMuch(&'static str),
}

impl Fault {
    pub(crate) fn app(object: u32, code: u32, message: impl Into<String>) -> Self {
        Self::App { object, code, message: message.into() }
    }

    /// As [`Self::app`], with a code of [`error_code`].
    pub(crate) fn display(code: u32, message: impl Into<String>) -> Self {
        Self::app(DISPLAY, code, message)
    }
}

/// `wl_display.error` codes.
pub(crate) mod error_code {
    pub(crate) const INVALID_OBJECT: u32 = 0;
    pub(crate) const INVALID_METHOD: u32 = 1;
    pub(crate) const NO_MEMORY: u32 = 2;
    pub(crate) const IMPLEMENTATION: u32 = 3;
}

/// The program's `wl_display`.
const DISPLAY: u32 = 1;
