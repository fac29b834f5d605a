//! The bus of a session: dbus-daemon, which ends with the session even if that is killed.
//!
//! Nothing here speaks D-Bus. Invariant: the daemon has no other parent than the session.

use std::ffi::OsString;

use wayferry_host::edge::path;

use crate::tell;
use crate::tethered;

/// What becomes the daemon, without the path of its configuration; `None` where none is installed.
pub(crate) fn command() -> Option<Vec<OsString>> {
    if path::find(DAEMON, &path::own()).is_err() {
        tell::step(
            "no `dbus-daemon` is installed here: notifications of programs are not shown at the display",
        );
        return None;
    }
    let mut words = tethered::words(DAEMON);
    // The session waits for its address at stdout.
    words.extend(["--nofork", "--nopidfile", "--print-address=1", "--config-file"].map(OsString::from));
    Some(words)
}

const DAEMON: &str = "dbus-daemon";
