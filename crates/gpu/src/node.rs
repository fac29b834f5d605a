//! The GPUs of this machine that anybody may draw with.

use std::ffi::OsStr;
use std::path::PathBuf;

/// Their render nodes, by number.
pub(crate) fn nodes() -> Vec<PathBuf> {
    let entries = std::fs::read_dir("/dev/dri").into_iter().flatten().flatten();
    let is_node = |name: &OsStr| name.to_string_lossy().starts_with("renderD");
    let mut nodes: Vec<PathBuf> =
        entries.filter(|entry| is_node(&entry.file_name())).map(|entry| entry.path()).collect();
    nodes.sort_unstable();
    nodes
}
