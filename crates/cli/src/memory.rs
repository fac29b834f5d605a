//! What the user has said of a host, kept for the next time: a small file of TOML for each host.
//!
//! A host is what the user calls it, never what a peer says of itself. What is typed or configured goes before what is
//! remembered; a file that cannot be read or understood is as if it were not there, and is told. Invariants: a file is
//! its user's alone, no two hosts share one, and keys of other versions stay in it.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::config;
use crate::tell::notice;
use crate::user_dirs;
use wayferry_host::edge::whole_file;

/// What is remembered of one host.
#[derive(Debug)]
pub(crate) struct Memory {
    path: PathBuf,
}

/// What a file says.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Facts {
    /// Whether the host may have addresses opened here, if the user has said so for good.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) open_url: Option<Standing>,
    /// What other versions remember.
    #[serde(flatten)]
    rest: toml::Table,
}

/// An answer that holds until the user gives another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Standing {
    Always,
    Never,
}

impl Memory {
    /// Of a host as the user calls it. `None` where there is no place for a file, or the name is too long for one.
    pub(crate) fn of(host: &str) -> Option<Self> {
        let state =
            user_dirs::named("XDG_STATE_HOME").or_else(|| Some(user_dirs::home()?.join(".local/state")))?;
        Self::below(&state, host)
    }

    pub(crate) fn below(state: &Path, host: &str) -> Option<Self> {
        Some(Self { path: state.join("wayferry/hosts").join(file_name(host)?) })
    }

    /// What the file says; tells the user if that cannot be understood.
    pub(crate) fn recall(&self) -> Facts {
        self.read().unwrap_or_else(|why| {
            let path = self.path.display();
            notice(&format!("what is remembered of this host is ignored: {path}: {why}; delete that file"));
            Facts::default()
        })
    }

    /// Changes what the file says. What cannot be understood there is replaced.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Facts)) -> io::Result<()> {
        let mut facts = self.read().unwrap_or_default();
        change(&mut facts);
        let text = toml::to_string(&facts).map_err(io::Error::other)?;
        let directory = self.path.parent().unwrap_or(Path::new("/"));
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        whole_file::replace(&self.path, &text).map(drop)
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn read(&self) -> Result<Facts, String> {
        let Some(text) = config::read_text(&self.path) else { return Ok(Facts::default()) };
        toml::from_str(&text?)
            .map_err(|error| error.message().split_whitespace().collect::<Vec<_>>().join(" "))
    }
}

/// The host's file: letters, digits and a few marks stand for themselves, every other byte for its number. It is never
/// hidden and leads to no other directory.
fn file_name(host: &str) -> Option<String> {
    use std::fmt::Write;
    let mut name = String::new();
    for byte in host.bytes() {
        let plain = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'@');
        if plain || byte == b'.' && !name.is_empty() {
            name.push(char::from(byte));
        } else {
            let _ = write!(name, "%{byte:02X}");
        }
    }
    (!name.is_empty() && name.len() <= MAX_NAME).then(|| name + ".toml")
}

/// Bytes of a host's name in that of its file; a file's name has 255 on most systems.
const MAX_NAME: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use wayferry_host::edge::socket::RuntimeDir;

    #[test]
    fn what_is_said_is_remembered_of_that_host_alone_and_is_its_users() {
        let dir = RuntimeDir::private().expect("a directory");
        let memory = |host| Memory::below(dir.path(), host).expect("a name");
        assert_eq!(memory("ann@a").recall(), Facts::default());
        memory("ann@a").change(|facts| facts.open_url = Some(Standing::Always)).expect("written");
        memory("b").change(|facts| facts.open_url = Some(Standing::Never)).expect("written");
        assert_eq!(memory("ann@a").recall().open_url, Some(Standing::Always));
        assert_eq!(memory("b").recall().open_url, Some(Standing::Never));
        assert_eq!(memory("bob@a").recall().open_url, None);
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        let path = memory("b").path;
        assert_eq!((mode(&path), mode(path.parent().expect("its directory"))), (0o600, 0o700));
        assert_eq!(fs::read_dir(path.parent().expect("its directory")).expect("read").count(), 2);
    }

    #[test]
    fn keys_of_other_versions_stay() {
        let dir = RuntimeDir::private().expect("a directory");
        let memory = Memory::below(dir.path(), "a").expect("a name");
        memory.change(|_| ()).expect("made");
        fs::write(&memory.path, "later = [1, 2]\n[more]\nx = 'y'\n").expect("written");
        memory.change(|facts| facts.open_url = Some(Standing::Never)).expect("written");
        let table: toml::Table =
            toml::from_str(&fs::read_to_string(&memory.path).expect("read")).expect("TOML");
        assert_eq!(table["open-url"].as_str(), Some("never"));
        assert_eq!(table["later"].as_array().map(Vec::len), Some(2));
        assert_eq!(table["more"]["x"].as_str(), Some("y"));
    }

    #[test]
    fn what_is_wrong_is_ignored_and_replaced() {
        let dir = RuntimeDir::private().expect("a directory");
        let memory = Memory::below(dir.path(), "a").expect("a name");
        memory.change(|_| ()).expect("made");
        for wrong in ["open-url = 'sometimes'", "open-url = 1", "open-url", "\u{0}"] {
            fs::write(&memory.path, wrong).expect("written");
            assert!(memory.read().is_err(), "{wrong}");
            assert_eq!(memory.recall(), Facts::default());
        }
        memory.change(|facts| facts.open_url = Some(Standing::Always)).expect("written");
        assert_eq!(memory.read().map(|facts| facts.open_url), Ok(Some(Standing::Always)));
    }

    #[test]
    fn a_file_is_below_the_directory_and_no_two_hosts_share_one() {
        assert_eq!(file_name("ann@host.example-1").as_deref(), Some("ann@host.example-1.toml"));
        assert_eq!(file_name("../../.ssh/rc").as_deref(), Some("%2E.%2F..%2F.ssh%2Frc.toml"));
        assert_eq!(file_name("[::1]").as_deref(), Some("%5B%3A%3A1%5D.toml"));
        assert_eq!(file_name("a%2Fb").as_deref(), Some("a%252Fb.toml"));
        assert_eq!(file_name("ö\n").as_deref(), Some("%C3%B6%0A.toml"));
        assert_eq!(file_name(""), None);
        assert_eq!(file_name(&"a".repeat(MAX_NAME + 1)), None);
    }
}
