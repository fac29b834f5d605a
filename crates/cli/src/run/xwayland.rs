//! X11 programs, through xwayland-satellite.
//!
//! The satellite is one more Wayland program of the session that is an X server to others; it is started before the
//! session's own program, which finds it in DISPLAY. Nothing here knows X11. Invariant: the satellite ends with the session.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use super::programs::{Environment, Launch, Place, Program};
use crate::error::Error;

/// A satellite to be started.
#[derive(Debug, Clone)]
pub(crate) struct Satellite {
    number: u32,
    binary: PathBuf,
}

impl Satellite {
    /// Looks for the program and a free display number.
    ///
    /// # Errors
    /// [`Error::Program`] when it is not installed.
    pub(crate) fn find() -> Result<Self, Error> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let binary = std::env::split_paths(&path)
            .map(|dir| dir.join(NAME))
            .find(|file| rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok());
        let missing = || Error::Program { program: NAME.into(), source: io::ErrorKind::NotFound.into() };
        Ok(Self { binary: binary.ok_or_else(missing)?, number: free_number() })
    }

    /// What programs find in DISPLAY.
    pub(crate) fn display(&self) -> OsString {
        format!(":{}", self.number).into()
    }

    /// Starts it with the session's environment.
    pub(crate) fn start(&self, environment: &Environment) -> Result<Program, Error> {
        let words = vec![self.binary.clone().into_os_string(), self.display()];
        let mut environment = environment.clone();
        environment.set.retain(|(name, _)| name != "DISPLAY");
        environment.unset.push("DISPLAY".into());
        Program::start(&Launch::Command(words), &environment, Place::OwnGroup, None)
    }

    /// Whether X11 programs can connect.
    pub(crate) fn is_ready(&self) -> bool {
        socket(self.number).exists()
    }
}

/// The lowest number that no X server uses; small ones are left to login managers.
fn free_number() -> u32 {
    let free =
        |number: &u32| !socket(*number).exists() && !Path::new(&format!("/tmp/.X{number}-lock")).exists();
    (10..1000).find(free).unwrap_or(1000)
}

fn socket(number: u32) -> PathBuf {
    format!("/tmp/.X11-unix/X{number}").into()
}

const NAME: &str = "xwayland-satellite";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_in_use_is_not_taken() {
        let number = free_number();
        assert!(!socket(number).exists());
    }
}
