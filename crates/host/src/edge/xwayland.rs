//! X11 programs, through xwayland-satellite.
//!
//! The satellite is one more Wayland program of the session that is an X server to others; it is started before the
//! session's own program, which finds it in DISPLAY. Nothing here knows X11. Invariant: the satellite ends with the
//! session.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use super::programs::{Environment, Launch, Place, Program, exit_code};
use crate::error::Error;

/// A satellite to be started.
#[derive(Debug, Clone)]
pub struct Satellite {
    number: u32,
    binary: PathBuf,
}

impl Satellite {
    /// Looks for the program, for the X server that it starts, and for a free display number.
    ///
    /// # Errors
    /// [`Error::Program`] when one of the two is not installed.
    pub fn find() -> Result<Self, Error> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let installed = |name: &str| {
            let mut files = std::env::split_paths(&path).map(|dir| dir.join(name));
            let found = files.find(|file| rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok());
            found.ok_or_else(|| Error::Program {
                program: name.into(),
                source: io::ErrorKind::NotFound.into(),
            })
        };
        let binary = installed(NAME)?;
        installed(SERVER)?;
        Ok(Self { binary, number: free_number() })
    }

    /// What programs find in DISPLAY.
    pub fn display(&self) -> OsString {
        format!(":{}", self.number).into()
    }

    /// Starts it with the session's environment.
    pub fn start(&self, environment: &Environment) -> Result<Running, Error> {
        let words = vec![self.binary.clone().into_os_string(), self.display()];
        let mut environment = environment.clone();
        environment.set.retain(|(name, _)| name != "DISPLAY");
        environment.unset.push("DISPLAY".into());
        let program = Program::start(&Launch::Command(words), &environment, Place::OwnGroup, None)?;
        Ok(Running { number: self.number, program, over: false })
    }
}

/// A satellite that was started.
#[derive(Debug)]
pub struct Running {
    number: u32,
    program: Program,
    /// Its end was told.
    over: bool,
}

impl Running {
    /// Whether X11 programs can connect.
    pub fn is_ready(&self) -> bool {
        socket(self.number).exists()
    }

    /// What the user should know, once: that it has ended, and so no X11 program is shown any more.
    pub fn take_end(&mut self) -> Option<String> {
        let status = self.program.status().filter(|_| !self.over)?;
        self.over = true;
        let code = exit_code(status);
        Some(format!("`{NAME}` ended with status {code}: X11 programs cannot be shown, others can"))
    }

    /// What the user should know if X11 programs still cannot connect.
    pub fn unready(&self) -> Option<String> {
        let late = !self.over && !self.is_ready();
        late.then(|| format!("`{NAME}` does not accept X11 programs on display :{} yet", self.number))
    }

    /// Its process.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Whether it has ended.
    pub fn is_over(&self) -> bool {
        self.over
    }
}

impl AsFd for Running {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.program.as_fd()
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
const SERVER: &str = "Xwayland";

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_number_in_use_is_not_taken() {
        let number = free_number();
        assert!(!socket(number).exists());
    }

    #[test]
    fn regression_a_satellite_that_refuses_is_told_of_once() {
        let satellite = Satellite { number: free_number(), binary: "/bin/false".into() };
        let mut running = satellite.start(&Environment::default()).unwrap();
        assert!(running.unready().is_some_and(|told| told.contains(&format!(":{}", satellite.number))));
        let mut set = [rustix::event::PollFd::new(&running, rustix::event::PollFlags::IN)];
        crate::edge::wait::poll(&mut set, Some(Duration::from_secs(30))).unwrap();
        let told = running.take_end().unwrap();
        assert!(told.contains("`xwayland-satellite` ended with status 1"), "{told}");
        assert!(running.is_over() && running.take_end().is_none() && running.unready().is_none());
    }
}
