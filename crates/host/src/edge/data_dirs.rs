//! Where data of programs is that are installed here (XDG Base Directory Specification).
//!
//! Looks at no disk. Invariant: the user's own directory comes first.

use std::path::PathBuf;

/// These directories, best first; they need not exist.
pub(crate) fn data_directories() -> impl Iterator<Item = PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let home = variable("HOME").map(|home| PathBuf::from(home).join(".local/share"));
    let own = variable("XDG_DATA_HOME").map(PathBuf::from).or(home);
    let all = variable("XDG_DATA_DIRS").unwrap_or_else(|| "/usr/local/share:/usr/share".into());
    let all: Vec<PathBuf> = std::env::split_paths(&all).collect();
    own.into_iter().chain(all)
}
