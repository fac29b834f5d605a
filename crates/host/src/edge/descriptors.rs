//! How many descriptors this process may have open: as many as the system allows it, since windows and pipes of all
//! programs take some each. Programs that it starts have the limit that it found, as some cannot handle more.

use std::io;
use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limit that was found.
static BEFORE: OnceLock<Rlimit> = OnceLock::new();

/// Raises the limit; where that is not allowed, things go on with what there is.
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

/// Whether another program may be taken in: those that are there may still bring files of their own.
pub(crate) fn has_room() -> bool {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(MAX_OPEN);
    let Ok(open) = std::fs::read_dir("/proc/self/fd") else { return true };
    open.count() as u64 + (limit / SHARE).min(MAX_RESERVE) < limit
}

/// Starts a program with the limit that was found.
pub(crate) fn with_limit_found<T>(mut start: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let raised = getrlimit(Resource::Nofile);
    let lowered = BEFORE.get().is_some_and(|before| setrlimit(Resource::Nofile, *before).is_ok());
    let outcome = start();
    if lowered {
        let _ = setrlimit(Resource::Nofile, raised);
    }
    match outcome {
        // More than that are open here, so it cannot be started under it.
        Err(error) if lowered && error.raw_os_error() == Some(rustix::io::Errno::MFILE.raw_os_error()) => {
            start()
        }
        outcome => outcome,
    }
}

/// One in so many descriptors is kept for programs that were taken in, up to [`MAX_RESERVE`].
const SHARE: u64 = 4;
/// Descriptors that are kept for them at most.
const MAX_RESERVE: u64 = 1024;
/// Descriptors that are open at most: far more than all programs of a session need.
const MAX_OPEN: u64 = 1 << 16;
