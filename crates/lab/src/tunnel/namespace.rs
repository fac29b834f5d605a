//! A network namespace of our own, in which this program runs once more.

use std::process::Command;

use rustix::process::geteuid;

use crate::error::{Error, SessionError};

/// Runs this program again, with the same words, in a namespace that has no network; gives its exit code. `None` if
/// this is that run.
///
/// # Errors
/// Namespaces are not to be had.
pub(crate) fn enter() -> Result<Option<u8>, Error> {
    if std::env::var_os(MARK).is_some() {
        return Ok(None);
    }
    let system = |doing| move |source| SessionError::System { doing, source };
    let program = std::env::current_exe().map_err(system("finding this program"))?;
    let mut unshare = Command::new("unshare");
    // Another user's root may make devices in a namespace of its own.
    unshare.args(if geteuid().is_root() { &["--net"][..] } else { &["--user", "--map-root-user", "--net"] });
    let run = unshare.arg("--").arg(program).args(std::env::args_os().skip(1)).env(MARK, "1");
    let status = run.status().map_err(system("starting `unshare`"))?;
    Ok(Some(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)))
}

/// Set in the namespace.
const MARK: &str = "WAYFERRY_LAB_NAMESPACE";
