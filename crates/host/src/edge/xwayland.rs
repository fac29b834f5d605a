//! X11 programs: through xwayland-satellite, or inside one window with an X server and a window manager.
//!
//! Either is a *bridge*: one more Wayland program of the session that is an X server to others. It is started before
//! the session's own program, which finds it in DISPLAY. Nothing here speaks X11. Invariant: what was started here ends
//! with the session.

mod clients;
pub mod failure;
mod manager;
mod server;
pub mod version;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use wayferry_proto::Time;

use self::failure::Failure;
use self::manager::{Manager, Managing};
use self::server::Server;
use super::path;
use super::programs::{Environment, Launch, Place, Program, exit_code};
use crate::error::Error;

/// How X11 programs are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// Each window is a window of the desktop.
    Satellite,
    /// All of them are inside one window.
    Rootful,
}

impl FromStr for How {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "satellite" => Ok(Self::Satellite),
            "rootful" => Ok(Self::Rootful),
            _ => Err(()),
        }
    }
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Satellite => "satellite",
            Self::Rootful => "rootful",
        })
    }
}

/// A bridge to be started.
#[derive(Debug)]
pub struct Bridge {
    number: u32,
    /// Keeps other sessions from taking the number before the X server does.
    claim: Option<UnixDatagram>,
    how: How,
    words: Vec<OsString>,
    manager: Option<Manager>,
}

impl Bridge {
    /// Looks for the programs that it takes, and for a free display number.
    ///
    /// # Errors
    /// [`Error::X11`] when one is not installed, or too old.
    pub fn find(how: How) -> Result<Self, Error> {
        Self::find_in(how, &path::own()).map_err(Error::X11)
    }

    fn find_in(how: How, path: &OsStr) -> Result<Self, Failure> {
        let (number, claim) = free_number();
        let display = OsString::from(format!(":{number}"));
        match how {
            How::Satellite => {
                let satellite = path::find(SATELLITE, path).map_err(|_| Failure::NoSatellite)?;
                let server = Server::find(path)?;
                if let Some(version) = server.version().filter(|version| *version < version::FOR_SATELLITE) {
                    return Err(Failure::OldServer(version));
                }
                Ok(Self { number, claim, how, words: vec![satellite.into(), display], manager: None })
            }
            How::Rootful => {
                let server = Server::find(path)?;
                let words = server.words_of_one_window(display);
                Ok(Self { number, claim, how, words, manager: Manager::find(path) })
            }
        }
    }

    /// What programs find in DISPLAY.
    pub fn display(&self) -> OsString {
        format!(":{}", self.number).into()
    }

    /// What the user should know before it is started.
    pub fn note(&self) -> Option<String> {
        let bare = self.how == How::Rootful && self.manager.is_none();
        bare.then(|| {
            let names = manager::KNOWN.map(|name| format!("`{name}`")).join(", ");
            format!(
                "no window manager was found: X11 windows have no title and stay where they are ({names})"
            )
        })
    }

    /// Starts it with the session's environment.
    ///
    /// # Errors
    /// The system refuses.
    pub fn start(&self, environment: &Environment) -> Result<Running, Error> {
        let mut own = environment.clone();
        own.set.retain(|(name, _)| name != "DISPLAY");
        own.unset.push("DISPLAY".into());
        if self.how == How::Satellite && std::env::var_os(LOG).is_none() {
            // It tells of each of its steps otherwise.
            own.set.push((LOG.into(), "error".into()));
        }
        // Xwayland tells of each start that it draws in software, and of each keyboard what X11 lacks for it.
        let stdio = if self.how == How::Rootful { silence() } else { None };
        let server = Program::start(&Launch::Command(self.words.clone()), &own, Place::OwnGroup, stdio)?;
        let name = match self.how {
            How::Satellite => SATELLITE,
            How::Rootful => server::NAME,
        };
        let manager = self.manager.as_ref().map(|manager| Managing::new(manager, environment));
        let server = Watched { name, program: server, over: false };
        let claim = self.claim.as_ref().and_then(|claim| claim.try_clone().ok());
        Ok(Running { number: self.number, how: self.how, manager, server, _claim: claim })
    }
}

/// A bridge that was started.
#[derive(Debug)]
pub struct Running {
    number: u32,
    how: How,
    // Ended in this order.
    manager: Option<Managing>,
    server: Watched,
    _claim: Option<UnixDatagram>,
}

impl Running {
    /// Whether the session's own program is to wait for it; to be asked again after a moment.
    pub fn is_awaited(&mut self, now: Time) -> bool {
        let number = self.number;
        if self.is_over() || !self.is_ready() {
            return !self.is_over();
        }
        let manager = self.manager.as_mut();
        manager.is_some_and(|manager| manager.is_awaited(now, &self.server, || clients::count(number) > 0))
    }

    /// Whether X11 programs can connect. A socket of another user's would not be ours.
    fn is_ready(&self) -> bool {
        let found = socket(self.number).symlink_metadata();
        found.is_ok_and(|found| found.uid() == rustix::process::geteuid().as_raw())
    }

    /// Starts what is to come after the server, once that is ready; gives what the user should know.
    pub fn go_on(&mut self) -> Option<String> {
        let ready = !self.is_over() && self.is_ready();
        let manager = self.manager.as_mut().filter(|manager| ready && manager.is_to_start())?;
        manager.start()
    }

    /// What the user should know, once: that something of it has ended, and what follows from that.
    pub fn take_ends(&mut self) -> Vec<String> {
        let mut told = Vec::new();
        if let Some(code) = self.server.take_end() {
            let name = self.server.name;
            told.push(format!("`{name}` ended with status {code}: X11 programs cannot be shown, others can"));
        }
        // It cannot go on without the server.
        let silent = self.server.over;
        if let Some(ended) = self.manager.as_mut().and_then(Managing::take_end).filter(|_| !silent) {
            told.push(ended);
        }
        told
    }

    /// What the user should know if X11 programs still cannot connect.
    pub fn unready(&self) -> Option<String> {
        let late = !self.is_over() && !self.is_ready();
        let name = self.server.name;
        late.then(|| format!("`{name}` does not accept X11 programs on display :{} yet", self.number))
    }

    /// Whether programs are connected to it, besides its own.
    pub fn has_clients(&self) -> bool {
        let own = usize::from(self.manager.as_ref().is_some_and(|manager| !manager.is_over()));
        !self.is_over() && clients::count(self.number) > own
    }

    /// Whether the windows that it has on the desktop are there for as long as it is.
    pub fn is_one_window(&self) -> bool {
        self.how == How::Rootful
    }

    /// Its programs that have not ended, for poll(2).
    pub fn programs(&self) -> impl Iterator<Item = &Program> {
        let manager = self.manager.as_ref().and_then(Managing::program);
        [Some(&self.server), manager].into_iter().flatten().filter(|it| !it.over).map(|it| &it.program)
    }

    /// The one that connects to the session.
    pub fn program(&self) -> &Program {
        &self.server.program
    }

    /// Whether it has ended.
    pub fn is_over(&self) -> bool {
        self.server.over
    }
}

/// A program whose end is told once.
#[derive(Debug)]
struct Watched {
    name: &'static str,
    program: Program,
    over: bool,
}

impl Watched {
    /// Its exit code, once it has ended and if that was not taken.
    fn take_end(&mut self) -> Option<u8> {
        let status = self.program.status().filter(|_| !self.over)?;
        self.over = true;
        Some(exit_code(status))
    }
}

/// The lowest number that no X server uses and no other session has claimed; small ones are left to login managers.
fn free_number() -> (u32, Option<UnixDatagram>) {
    let mut free = (10..1000)
        .filter(|number| !socket(*number).exists() && !Path::new(&format!("/tmp/.X{number}-lock")).exists());
    let claimed = free.clone().find_map(|number| Some((number, Some(claim(number)?))));
    // Another user may have claimed all of them.
    claimed.unwrap_or_else(|| (free.next().unwrap_or(1000), None))
}

/// Names that are no files go with their process.
fn claim(number: u32) -> Option<UnixDatagram> {
    let name = SocketAddr::from_abstract_name(format!("wayferry-x11-{number}")).ok()?;
    UnixDatagram::bind_addr(&name).ok()
}

fn socket(number: u32) -> PathBuf {
    format!("/tmp/.X11-unix/X{number}").into()
}

/// No input, and no output; none where the system refuses that.
fn silence() -> Option<[OwnedFd; 3]> {
    let null = File::options().read(true).write(true).open("/dev/null").ok()?;
    Some([null.try_clone().ok()?.into(), null.try_clone().ok()?.into(), null.into()])
}

const SATELLITE: &str = "xwayland-satellite";
/// Where it finds how much to tell.
const LOG: &str = "RUST_LOG";

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::time::Duration;

    use super::*;
    use crate::edge::wait;

    /// A directory in which these names lead to a program that does nothing.
    struct Tools(PathBuf);

    impl Tools {
        fn new(names: &[&str]) -> Self {
            let unique = names.join("-").replace(SATELLITE, "s");
            let directory = std::env::temp_dir().join(format!("wf-x11-{}-{unique}", std::process::id()));
            std::fs::create_dir_all(&directory).expect("a directory");
            for name in names {
                symlink("/bin/true", directory.join(name)).expect("a link");
            }
            Self(directory)
        }

        fn find(&self, how: How) -> Result<Bridge, Failure> {
            Bridge::find_in(how, self.0.as_os_str())
        }
    }

    impl Drop for Tools {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn bridge(how: How, server: &str, manager: Option<&str>) -> Bridge {
        let manager = manager.map(|program| Manager { name: "twm", binary: program.into() });
        let (number, claim) = free_number();
        Bridge { number, claim, how, words: vec![server.into()], manager }
    }

    /// What is told once a program of it has ended.
    fn ends(running: &mut Running) -> Vec<String> {
        let mut set: Vec<_> = running
            .programs()
            .map(|it| rustix::event::PollFd::new(it, rustix::event::PollFlags::IN))
            .collect();
        wait::poll(&mut set, Some(Duration::from_secs(30))).expect("poll");
        drop(set);
        running.take_ends()
    }

    #[test]
    fn a_number_in_use_is_not_taken() {
        let (number, _claim) = free_number();
        assert!(!socket(number).exists());
    }

    #[test]
    fn regression_sessions_that_begin_at_once_take_different_numbers() {
        let (first, claim) = free_number();
        let claim = claim.expect("there are many");
        let (second, other) = free_number();
        assert_ne!(first, second);
        drop(other);
        let kept = claim.try_clone().expect("another descriptor");
        drop(claim);
        assert!(super::claim(first).is_none(), "it is held as long as one of them is");
        drop(kept);
    }

    #[test]
    fn what_is_missing_is_named() {
        let failure =
            |names: &[&str], how| Tools::new(names).find(how).map(|_| ()).expect_err("it is missing");
        assert_eq!(failure(&["Xwayland", "openbox"], How::Satellite), Failure::NoSatellite);
        assert_eq!(failure(&[SATELLITE], How::Satellite), Failure::NoServer);
        assert_eq!(failure(&[SATELLITE, "twm"], How::Rootful), Failure::NoServer);
        // A server that does not tell its version is believed.
        assert!(Tools::new(&[SATELLITE, "Xwayland"]).find(How::Satellite).is_ok());
    }

    #[test]
    fn one_window_takes_the_first_manager_and_goes_without() {
        let tools = Tools::new(&["Xwayland", "twm", "icewm"]);
        let bridge = tools.find(How::Rootful).expect("all that it takes");
        assert_eq!((bridge.manager.as_ref().map(|it| it.name), bridge.note()), (Some("icewm"), None));
        let bare = Tools::new(&["Xwayland"]).find(How::Rootful).expect("all that it takes");
        assert!(
            bare.manager.is_none() && bare.note().is_some_and(|note| note.contains("`openbox`, `icewm`"))
        );
        assert!(
            Tools::new(&["Xwayland", SATELLITE]).find(How::Satellite).is_ok_and(|it| it.note().is_none())
        );
    }

    #[test]
    fn regression_a_bridge_that_refuses_is_told_of_once() {
        for (how, name) in [(How::Satellite, SATELLITE), (How::Rootful, "Xwayland")] {
            let bridge = bridge(how, "/bin/false", None);
            let mut running = bridge.start(&Environment::default()).expect("it starts");
            assert!(running.unready().is_some_and(|told| told.contains(&format!(":{}", bridge.number))));
            let told = ends(&mut running).join(", ");
            assert!(told.starts_with(&format!("`{name}` ended with status 1")), "{told}");
            assert!(running.is_over() && !running.is_awaited(Time::ZERO) && running.unready().is_none());
            assert!(running.take_ends().is_empty() && running.programs().next().is_none());
        }
    }

    #[test]
    fn a_window_managers_end_is_told_while_the_server_runs() {
        let mut bridge = bridge(How::Rootful, "/bin/sleep", Some("/bin/false"));
        bridge.words.push("1000".into());
        let mut running = bridge.start(&Environment::default()).expect("it starts");
        assert_eq!(running.go_on(), None, "the server is not ready");
        let manager = running.manager.as_mut().expect("it is to run");
        assert_eq!(manager.start(), None);
        let told = ends(&mut running).join(", ");
        assert!(told.contains("`twm` ended with status 1"), "{told}");
        assert!(!running.is_over() && running.take_ends().is_empty());
    }
}
