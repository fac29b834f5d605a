//! Appends the secrets of TLS to a file, for programs that decrypt captures.
//!
//! The format is the one of `SSLKEYLOGFILE` (draft-ietf-tls-keylogfile). Invariant: lines of several connections do not
//! mix, and a file that is made here can be read by its owner only.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustls::KeyLog;

/// An open file.
#[derive(Debug)]
pub(crate) struct KeyLogTo(File);

impl KeyLogTo {
    /// The file that `SSLKEYLOGFILE` names, if it names one.
    pub(crate) fn from_environment() -> io::Result<Option<Self>> {
        let path = std::env::var_os("SSLKEYLOGFILE").filter(|path| !path.is_empty());
        path.map(|path| Self::open(path.as_ref())).transpose()
    }

    pub(crate) fn open(path: &Path) -> io::Result<Self> {
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_key_log_can_be_read_by_its_owner_only() {
        let path = std::env::temp_dir().join(format!("wayferry-keylog-{}", std::process::id()));
        let log = KeyLogTo::open(&path).expect("a file");
        log.log("LABEL", &[1, 2], &[0xab]);
        let (mode, text) =
            (std::fs::metadata(&path).map(|file| file.permissions().mode()), std::fs::read_to_string(&path));
        std::fs::remove_file(&path).expect("it is there");
        assert_eq!(mode.expect("its mode") & 0o777, 0o600);
        assert_eq!(text.expect("its text"), "LABEL 0102 ab\n");
    }
}
