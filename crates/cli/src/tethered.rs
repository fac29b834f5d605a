//! A program that ends with the process that started it, even if that is killed.
//!
//! This program is started in its place, asks the kernel for a signal at the end of its parent, and becomes it.
//! Invariant: what it becomes has no other parent than the process that asked for it.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Signal, getppid, set_parent_process_death_signal};

use crate::error::{Error, SessionError};

/// What this process starts to have such a program; its own arguments may follow. It has to be started by a thread that
/// lasts, for the kernel takes that for the parent.
pub(crate) fn words(program: &str) -> Vec<OsString> {
    // The program itself, also when another one has been installed in its place.
    let own = std::process::id().to_string();
    vec!["/proc/self/exe".into(), "tethered".into(), own.into(), program.into()]
}

/// Becomes the program; returns if it cannot.
pub(crate) fn run(parent: u32, command: &[OsString]) -> Result<u8, Error> {
    let Some((program, arguments)) = command.split_first() else { return Ok(0) };
    let _ = set_parent_process_death_signal(Some(Signal::TERM));
    // It may have ended before that.
    if getppid().is_none_or(|pid| pid.as_raw_nonzero().get().unsigned_abs() != parent) {
        return Ok(0);
    }
    let source = Command::new(program).args(arguments).exec();
    Err(SessionError::Program { program: program.display().to_string(), source }.into())
}
