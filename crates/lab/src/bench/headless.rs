//! sway without a monitor, with one terminal on its screen.
//!
//! It must not run as root, so it has a user of its own, which needs root. Invariant: processes and the user's
//! directory go with the value.

use std::fs;
use std::io;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use wayferry_host::edge::signals::Signals;
use wayferry_stage::now;

use super::processes::{Process, system};
use super::rig;
use crate::error::{Error, SessionError};

/// Whether sway can have a user of its own: in a namespace of another user's there is none but root.
pub(super) fn is_possible() -> bool {
    let map = fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let count = map.split_whitespace().nth(2).and_then(|count| count.parse::<u32>().ok());
    count.is_some_and(|count| count > USER)
}

/// See the module.
pub(super) struct Screen {
    // In the order in which they end.
    _sway: Process,
    place: Place,
}

/// The user's directory.
struct Place(PathBuf);

impl Screen {
    /// Starts it where `spawn` does: `terminal` is the command of a terminal, up to what it is to run, and that is the
    /// script.
    pub(super) fn start(
        [terminal, script]: [&str; 2],
        signals: &Signals,
        spawn: impl FnOnce(Command) -> io::Result<Child>,
    ) -> Result<Self, Error> {
        let place = Place(std::env::temp_dir().join(format!("wayferry-screen-{}", std::process::id())));
        let making = system("making a directory for a screen's user");
        fs::create_dir(&place.0).map_err(&making)?;
        let [config, script_file] = ["config", "script"].map(|name| place.0.join(name));
        fs::write(&script_file, script).map_err(&making)?;
        fs::write(&config, format!("{CONFIG}exec {terminal} sh {}\n", script_file.display()))
            .map_err(&making)?;
        chown(&place.0, Some(USER), Some(USER)).map_err(&making)?;
        let mut sway = place.command("sway");
        sway.arg("-c").arg(config);
        sway.envs([
            ("WLR_BACKENDS", "headless"),
            ("WLR_RENDERER", "pixman"),
            ("WLR_LIBINPUT_NO_DEVICES", "1"),
        ]);
        let sway = Process::new(spawn(sway).map_err(system("starting sway, which needs root"))?);
        let until = now() + PATIENCE;
        while !place.socket().exists() {
            if now() > until {
                return Err(SessionError::Lost("sway gave no screen; it is started as root".into()).into());
            }
            rig::pass(signals, MOMENT)?;
        }
        Ok(Self { _sway: sway, place })
    }

    /// A program of the same user's, on that screen.
    pub(super) fn command(&self, program: &str) -> Command {
        let mut command = self.place.command(program);
        command.env("WAYLAND_DISPLAY", self.socket());
        command
    }

    /// Where its compositor listens.
    pub(super) fn socket(&self) -> PathBuf {
        self.place.socket()
    }

    /// Its user's directory.
    pub(super) fn runtime_dir(&self) -> &Path {
        &self.place.0
    }
}

impl Place {
    fn socket(&self) -> PathBuf {
        self.0.join("wayland-1")
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new("setpriv");
        command.args([format!("--reuid={USER}"), format!("--regid={USER}")]);
        command.args(["--clear-groups", program]);
        command.env("XDG_RUNTIME_DIR", &self.0).env("HOME", &self.0);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Its only output.
pub(super) const OUTPUT: &str = "HEADLESS-1";

/// No window decorations, and nothing that moves.
const CONFIG: &str = "output HEADLESS-1 resolution 800x600\ndefault_border none\nxwayland disable\n\
                      output * bg #336699 solid_color\n";

/// The user and group that Linux has for programs that own nothing.
const USER: u32 = 65534;

const PATIENCE: Duration = Duration::from_secs(10);
const MOMENT: Duration = Duration::from_millis(50);
