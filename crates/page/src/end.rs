//! Why a program is not shown any more.

/// Why a page has ended a program's connection; the session and the other programs go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The app side sent something malformed, or what a view is never told.
    Violation(String),
    /// It made the page keep more than this limit allows.
    TooMuch(&'static str),
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Violation(what) => write!(f, "the other side broke a rule: {what}"),
            Self::TooMuch(limit) => write!(f, "limit exceeded: {limit}"),
        }
    }
}

impl std::error::Error for End {}

/// The app side broke a rule.
pub(crate) fn wrong(what: impl Into<String>) -> End {
    End::Violation(what.into())
}
