//! The limit of open descriptors: raised as far as the system allows, since each program's windows and pipes take some.
//! Programs that this process starts get the original limit, as some cannot handle more.

use std::io;
use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The original limit.
static BEFORE: OnceLock<Rlimit> = OnceLock::new();

/// Raises the limit; if that fails, the original one stays.
pub(crate) fn raise() {
    BEFORE.get_or_init(|| {
        let before = getrlimit(Resource::Nofile);
        let most = before.maximum.map_or(MAX_OPEN, |maximum| maximum.min(MAX_OPEN));
        if before.current.is_some_and(|current| current < most) {
            let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum: before.maximum });
        }
        before
    });
}

/// Whether another program may be accepted: some descriptors are kept for those that are connected.
pub(crate) fn has_room() -> bool {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(MAX_OPEN);
    let Ok(open) = std::fs::read_dir("/proc/self/fd") else { return true };
    open.count() as u64 + (limit / SHARE).min(MAX_RESERVE) < limit
}

/// Runs `start` with the original limit.
pub(crate) fn with_limit_found<T>(mut start: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let raised = getrlimit(Resource::Nofile);
    let lowered = BEFORE.get().is_some_and(|before| setrlimit(Resource::Nofile, *before).is_ok());
    let outcome = start();
    if lowered {
        let _ = setrlimit(Resource::Nofile, raised);
    }
    match outcome {
        // More than the original limit are open here, so the program can only start with the raised one.
        Err(error) if lowered && error.raw_os_error() == Some(rustix::io::Errno::MFILE.raw_os_error()) => {
            start()
        }
        outcome => outcome,
    }
}

/// One in this many descriptors is kept for connected programs, up to [`MAX_RESERVE`].
const SHARE: u64 = 4;
/// Descriptors that are kept for them at most.
const MAX_RESERVE: u64 = 1024;
/// Descriptors that are open at most: far more than all programs of a session need.
const MAX_OPEN: u64 = 1 << 16;
