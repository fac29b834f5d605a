//! Appends the secrets of TLS to a file, for programs that decrypt captures.
//!
//! The format is the one of `SSLKEYLOGFILE` (draft-ietf-tls-keylogfile). Invariant: lines of several connections do not mix,
//! and a file that is made here can be read by its owner only.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustls::KeyLog;

/// An open file.
#[derive(Debug)]
pub(super) struct KeyLogTo(File);

impl KeyLogTo {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(OpenOptions::new().append(true).create(true).mode(0o600).open(path)?))
    }
}

impl KeyLog for KeyLogTo {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let mut line = label.to_owned();
        for bytes in [client_random, secret] {
            line.push(' ');
            for byte in bytes {
                let _ = write!(line, "{byte:02x}");
            }
        }
        line.push('\n');
        // One write to a file opened to append is one line. A full disk must not end a connection.
        let _ = (&self.0).write_all(line.as_bytes());
    }
}
