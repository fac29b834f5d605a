//! Hosts that the user may mean: those that ssh's own files name.
//!
//! `Host` lines of ~/.ssh/config and /etc/ssh/ssh_config with what they include, and known hosts whose names are not
//! hashed. Conditions are not looked at, and nothing is asked of the network. Invariant: files, bytes and names are
//! bounded, and a name that is offered means nothing to a shell.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::config::matches;
use crate::user_dirs;

/// Their names, sorted; such that ssh, and Wayferry, take them for a host.
pub(super) fn known() -> BTreeSet<String> {
    let home = user_dirs::home();
    let mut hosts = Hosts { home: home.clone(), names: BTreeSet::new(), files: 0 };
    let own = home.map(|home| home.join(".ssh"));
    for directory in own.iter().map(PathBuf::as_path).chain([Path::new("/etc/ssh")]) {
        let is_own = own.as_deref() == Some(directory);
        hosts.configuration(&directory.join(if is_own { "config" } else { "ssh_config" }), directory, 0);
        hosts.known_hosts(&directory.join(if is_own { "known_hosts" } else { "ssh_known_hosts" }));
    }
    hosts.names
}

struct Hosts {
    home: Option<PathBuf>,
    names: BTreeSet<String>,
    /// So many were read.
    files: usize,
}

impl Hosts {
    /// Takes the names of a file of ssh_config(5); what it includes is below `directory`.
    fn configuration(&mut self, path: &Path, directory: &Path, depth: usize) {
        let Some(text) = self.text(path) else { return };
        for line in text.lines() {
            let (key, values) = key_and_values(line);
            if key.eq_ignore_ascii_case("host") {
                values.iter().for_each(|name| self.add(name));
            } else if key.eq_ignore_ascii_case("include") && depth < MAX_DEPTH {
                for value in &values {
                    for file in self.included(value, directory) {
                        self.configuration(&file, directory, depth + 1);
                    }
                }
            }
        }
    }

    /// The files that an `Include` means; a pattern may be in the last part of its path.
    fn included(&self, value: &str, directory: &Path) -> Vec<PathBuf> {
        let path = match (value.strip_prefix("~/"), &self.home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => directory.join(value),
        };
        let pattern = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !pattern.contains(['*', '?']) {
            return vec![path];
        }
        let entries = fs::read_dir(path.parent().unwrap_or(directory)).into_iter().flatten().flatten();
        let fits = |entry: &fs::DirEntry| {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            !name.starts_with('.') && matches(pattern.as_bytes(), name.as_bytes())
        };
        entries.filter(fits).take(MAX_FILES).map(|entry| entry.path()).collect()
    }

    /// Takes the names of a file of known hosts (sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT").
    fn known_hosts(&mut self, path: &Path) {
        let Some(text) = self.text(path) else { return };
        for line in text.lines() {
            if line.starts_with("@revoked") {
                continue;
            }
            let mut words = line.split_whitespace().filter(|word| !word.starts_with('@'));
            let names = words.next().filter(|names| !names.starts_with(['#', '|'])).unwrap_or_default();
            for name in names.split(',') {
                match name.strip_prefix('[').and_then(|name| name.split_once("]:")) {
                    Some((name, port)) if is_plain(name) && port.parse::<u16>().is_ok() => {
                        self.insert(format!("ssh://{name}:{port}"));
                    }
                    _ => self.add(name),
                }
            }
        }
    }

    fn add(&mut self, name: &str) {
        if is_plain(name) {
            self.insert(name.to_owned());
        }
    }

    fn insert(&mut self, name: String) {
        if self.names.len() < MAX_NAMES {
            self.names.insert(name);
        }
    }

    /// The beginning of a regular file.
    fn text(&mut self, path: &Path) -> Option<String> {
        self.files += 1;
        if self.files > MAX_FILES || !fs::metadata(path).is_ok_and(|found| found.is_file()) {
            return None;
        }
        let mut bytes = Vec::new();
        fs::File::open(path).ok()?.take(MAX_TEXT).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// A line of ssh_config(5).
fn key_and_values(line: &str) -> (&str, Vec<&str>) {
    let line = line.trim();
    let end = line.find(|letter: char| letter.is_whitespace() || letter == '=').unwrap_or(line.len());
    let (key, rest) = line.split_at(end);
    let rest = rest.trim_start().strip_prefix('=').unwrap_or(rest);
    let values = rest.split_whitespace().map(|value| value.trim_matches('"'));
    (key, values.take_while(|value| !value.starts_with('#')).collect())
}

/// Whether it is a name, or an address of IPv4: no pattern, and nothing that a shell reads otherwise.
fn is_plain(name: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    (1..=MAX_NAME).contains(&name.len()) && !name.starts_with('-') && name.chars().all(is_plain)
}

/// Files that are read, and bytes of each.
const MAX_FILES: usize = 64;
const MAX_TEXT: u64 = 1 << 20;
/// Files that include each other, as in ssh.
const MAX_DEPTH: usize = 16;
/// Names, and letters of one (RFC 1035 §2.3.4).
const MAX_NAMES: usize = 4096;
const MAX_NAME: usize = 255;

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType, Mode};
    use wayferry_host::edge::socket::RuntimeDir;

    fn hosts(home: &Path) -> Hosts {
        Hosts { home: Some(home.to_owned()), names: BTreeSet::new(), files: 0 }
    }

    #[test]
    fn hosts_are_those_that_sshs_files_name() {
        let dir = RuntimeDir::private().expect("a directory");
        let ssh = dir.path().join(".ssh");
        fs::create_dir_all(ssh.join("more.d")).expect("a directory");
        let config = "Host one two *.example.org !three # four\n\thost=\"five\"\nInclude more.d/*.conf ~/six missing\n\
            HostName hidden\nHost -oProxyCommand=x a;b $(c) `d`\nInclude config\n";
        fs::write(ssh.join("config"), config).expect("a file");
        fs::write(ssh.join("more.d/a.conf"), "HOST seven\n").expect("a file");
        fs::write(ssh.join("more.d/b.txt"), "Host eight\n").expect("a file");
        fs::write(dir.path().join("six"), "Host six\n").expect("a file");
        let mut found = hosts(dir.path());
        found.configuration(&ssh.join("config"), &ssh, 0);
        assert_eq!(found.names.iter().collect::<Vec<_>>(), ["five", "one", "seven", "six", "two"]);
    }

    #[test]
    fn known_hosts_that_are_hashed_or_marked_are_told_apart() {
        let dir = RuntimeDir::private().expect("a directory");
        let path = dir.path().join("known_hosts");
        let text = "# comment\n|1|abc=|def= ssh-ed25519 AAAA\nnine,192.0.2.7 ssh-ed25519 AAAA\n\
            [ten]:2222,[2001:db8::1]:22 ssh-rsa AAAA\n@cert-authority *.example.org ssh-rsa AAAA\n\
            @revoked eleven ssh-rsa AAAA\n[x;y]:1 ssh-rsa A\n";
        fs::write(&path, text).expect("a file");
        let mut found = hosts(dir.path());
        found.known_hosts(&path);
        let expected = ["192.0.2.7", "nine", "ssh://ten:2222"];
        assert_eq!(found.names.iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_pipe_and_a_circle_hold_up_no_shell() {
        let dir = RuntimeDir::private().expect("a directory");
        let path = dir.path().join("config");
        let pipe = dir.path().join("pipe");
        rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR, 0).expect("a pipe");
        fs::write(&path, format!("Include {0} {0} pipe\nHost a\n", path.display())).expect("a file");
        let mut found = hosts(dir.path());
        found.configuration(&path, dir.path(), 0);
        assert_eq!(found.names.iter().collect::<Vec<_>>(), ["a"]);
    }
}
