//! `wayferry demo` and `wayferry bench`: the laboratory, a program of its own beside this one.
//!
//! It has emulated links, generated screens and plots, which no session needs. Invariant: it gets the command line as
//! it was given.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use crate::error::Error;
use crate::flags::OwnFlags;

/// Becomes the laboratory. Returns only if there is none.
pub(crate) fn run(own: &OwnFlags) -> Result<u8, Error> {
    if own.common.events.is_some() {
        return Err(Error::usage("`demo` and `bench` have no `--events`"));
    }
    let program = beside().unwrap_or_else(|| PROGRAM.into());
    let failed = Command::new(&program).args(std::env::args_os().skip(1)).exec();
    Err(Error::NoLaboratory { source: failed })
}

/// Where it is installed, or was built, together with this program.
fn beside() -> Option<PathBuf> {
    let path = std::env::current_exe().ok()?.with_file_name(PROGRAM);
    path.exists().then_some(path)
}

const PROGRAM: &str = "wayferry-lab";
