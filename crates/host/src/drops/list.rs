//! Lists of addresses that are dragged (`text/uri-list`): which of them are files of this machine, and the same list
//! with the places where those were put on the other.
//!
//! Touches no disk. Invariants: a list without files of this machine comes out as it went in; what comes out of
//! [`UriList::with`] names none of this machine; an address of any other kind is never changed.

use std::ffi::OsString;
use std::fmt::Write;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// A list as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UriList {
    lines: Vec<Line>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Line {
    File(PathBuf),
    /// An address elsewhere, or a comment.
    Other(Vec<u8>),
}

impl UriList {
    /// Reads a list that was made on the machine of this name.
    pub(super) fn parse(text: &[u8], machine: &str) -> Self {
        // RFC 2483 §5: lines end with CRLF. Not all programs keep to that, and some end the list as C ends a string.
        let lines = text.split(|byte| *byte == b'\n').map(trimmed);
        let lines = lines.filter(|line| !line.is_empty()).map(|line| match local(line, machine) {
            Some(path) => Line::File(path),
            None => Line::Other(line.to_vec()),
        });
        Self { lines: lines.collect() }
    }

    /// The files of this machine, in their order.
    pub(super) fn files(&self) -> impl Iterator<Item = &PathBuf> {
        self.lines.iter().filter_map(|line| match line {
            Line::File(path) => Some(path),
            Line::Other(_) => None,
        })
    }

    /// The same list for the other machine, where each file has this path; one that is not there is left out.
    pub(super) fn with<'a>(&self, places: impl IntoIterator<Item = Option<&'a [u8]>>) -> Vec<u8> {
        let mut places = places.into_iter();
        let mut text = Vec::new();
        for line in &self.lines {
            let line = match line {
                Line::Other(line) => Some(line.clone()),
                Line::File(_) => places.next().flatten().map(|path| address(path).into_bytes()),
            };
            if let Some(line) = line {
                text.extend(line);
                text.extend(b"\r\n");
            }
        }
        text
    }
}

/// The path that an address names, if that is a file of the machine of this name. What stands in it as it is counts as
/// part of the path, also `?` and `#`: no other file is ever taken for the one that was meant.
fn local(line: &[u8], machine: &str) -> Option<PathBuf> {
    let (scheme, rest) = line.split_at_checked(b"file:".len())?;
    if !scheme.eq_ignore_ascii_case(b"file:") {
        return None;
    }
    // RFC 8089 §2: with an authority, or without.
    let path = match rest.strip_prefix(b"//") {
        None => rest,
        Some(rest) => {
            let (host, path) = rest.split_at(rest.iter().position(|byte| *byte == b'/')?);
            let is_here =
                ["", "localhost", machine].iter().any(|it| host.eq_ignore_ascii_case(it.as_bytes()));
            is_here.then_some(path)?
        }
    };
    path.starts_with(b"/").then(|| PathBuf::from(OsString::from_vec(decoded(path))))
}

/// Without the octets that stand for others; a `%` before no two digits stands for itself.
fn decoded(path: &[u8]) -> Vec<u8> {
    let digit = |at: usize| path.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    let (mut plain, mut at) = (Vec::with_capacity(path.len()), 0);
    while let Some(byte) = path.get(at) {
        match (byte, digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                // Two digits are a byte.
                plain.push((high << 4 | low) as u8);
                at += 3;
            }
            _ => {
                plain.push(*byte);
                at += 1;
            }
        }
    }
    plain
}

/// The address of a file, in letters that stand for themselves in any address (RFC 3986 §2.3).
fn address(path: &[u8]) -> String {
    let mut text = String::from("file://");
    for byte in path {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                text.push(char::from(*byte));
            }
            _ => drop(write!(text, "%{byte:02X}")),
        }
    }
    text
}

fn trimmed(mut line: &[u8]) -> &[u8] {
    while let [rest @ .., b'\r' | 0] = line {
        line = rest;
    }
    line
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn files(text: &str) -> Vec<String> {
        let list = UriList::parse(text.as_bytes(), "desk");
        list.files().map(|path| path.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn files_of_this_machine_are_told_from_all_else() {
        for (line, path) in [
            ("file:///home/ann/a%20b.txt", Some("/home/ann/a b.txt")),
            ("file://localhost/a", Some("/a")),
            ("FILE://DESK/a", Some("/a")),
            ("file:/a", Some("/a")),
            ("file:///a%", Some("/a%")),
            ("file:///a%2", Some("/a%2")),
            ("file:///50%zz", Some("/50%zz")),
            ("file:///what?#1", Some("/what?#1")),
            ("file:///gr%C3%B6%c3%9fe", Some("/größe")),
            ("file://elsewhere/a", None),
            ("file://desk", None),
            ("file:a", None),
            ("fil", None),
            ("https://desk/a", None),
            ("# file:///a", None),
            (" file:///a", None),
        ] {
            assert_eq!(files(line), Vec::from_iter(path.map(str::to_owned)), "{line}");
        }
        assert_eq!(files("file:///a\r\nhttp://x/\nfile:///b\r\n\0"), ["/a", "/b"]);
    }

    #[test]
    fn files_are_named_where_they_are_and_left_out_where_they_are_not() {
        let text = b"# two\r\nfile:///a\r\nhttp://x/%7e\r\nfile:///b\r\n";
        let list = UriList::parse(text, "desk");
        let rewritten = list.with([Some("/there/ä b".as_bytes()), None]);
        assert_eq!(rewritten, b"# two\r\nfile:///there/%C3%A4%20b\r\nhttp://x/%7e\r\n");
        // The other side's word makes no further line.
        let rewritten = list.with([Some(&b"/x\r\nfile:///etc/passwd\0"[..]), None]);
        assert_eq!(rewritten.iter().filter(|byte| **byte == b'\n').count(), 3);
        assert_eq!(UriList::parse(b"file:///a", "desk").with([None]), b"");
    }

    proptest! {
        #[test]
        fn a_path_is_the_same_after_it_was_an_address(path in proptest::collection::vec(any::<u8>(), 0..40)) {
            let path = [b"/", &path[..]].concat();
            let address = address(&path);
            prop_assert!(address.is_ascii() && !address.contains(char::is_control));
            let list = UriList::parse(address.as_bytes(), "desk");
            let files: Vec<_> = list.files().cloned().collect();
            prop_assert_eq!(files, [PathBuf::from(OsString::from_vec(path))]);
        }

        #[test]
        fn what_is_no_file_of_this_machine_is_not_changed(
            lines in proptest::collection::vec("(http|ftp|file|FILE|x)?:?/{0,3}[ -~]{0,20}", 0..8),
        ) {
            let text = lines.join("\r\n") + "\r\n";
            let list = UriList::parse(text.as_bytes(), "desk");
            let kept = list.with(list.files().map(|_| None));
            let others: Vec<&str> = lines
                .iter()
                .map(String::as_str)
                .filter(|line| !line.is_empty() && local(line.as_bytes(), "desk").is_none())
                .collect();
            let kept = String::from_utf8(kept).expect("as it was");
            prop_assert_eq!(kept.lines().collect::<Vec<_>>(), others);
            prop_assert_eq!(UriList::parse(kept.as_bytes(), "desk").files().count(), 0);
        }

        #[test]
        fn any_bytes_are_a_list(text in proptest::collection::vec(any::<u8>(), 0..200)) {
            let list = UriList::parse(&text, "desk");
            let rewritten = list.with(list.files().map(|_| Some(&b"/there"[..])));
            prop_assert!(rewritten.len() <= text.len() + 20 * list.lines.len());
        }
    }
}
