//! Directories of the user, as the environment names them.
//!
//! Makes none. Invariant: a path from here is absolute; the XDG Base Directory Specification has others ignored.

use std::path::PathBuf;

/// What this variable names.
pub(crate) fn named(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// The user's home.
pub(crate) fn home() -> Option<PathBuf> {
    named("HOME")
}
