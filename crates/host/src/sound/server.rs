//! The sound server of a session, and how its programs find it.
//!
//! Programs that speak PulseAudio's protocol find the socket in their environment. Those that know ALSA alone get a
//! configuration that leads them there, where ALSA's plugin for it is installed. Invariant: socket and configuration
//! are in a directory that only this user can enter, and go with the session.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use wayferry_sound::{Capture, Door};

use crate::clock::Clock;
use crate::edge::programs::Environment;
use crate::edge::socket::{Listener, RuntimeDir};
use crate::error::Error;

/// A session's sound server.
#[derive(Debug)]
pub struct SoundServer {
    pub(crate) capture: Capture,
    environment: Vec<(OsString, OsString)>,
    /// Goes last.
    dir: RuntimeDir,
}

impl Door for Listener {
    fn accept(&self) -> io::Result<Option<OwnedFd>> {
        Self::accept(self)
    }
}

impl SoundServer {
    /// Starts it.
    ///
    /// # Errors
    /// The directory or the thread cannot be made.
    pub fn start(clock: Clock) -> Result<Self, Error> {
        let dir = RuntimeDir::private()?;
        let listener = Listener::unlocked(dir.path().join(SOCKET))?;
        let mut environment = vec![("PULSE_SERVER".into(), prefixed("unix:", listener.path()))];
        if has_alsa_plugin() {
            let path = dir.path().join("asound.conf");
            fs::write(&path, ALSA).map_err(|source| Error::File { path: path.clone(), source })?;
            environment.push(("ALSA_CONFIG_PATH".into(), path.into()));
        }
        let capture = Capture::start(listener, move || clock.now());
        let capture =
            capture.map_err(|source| Error::System { doing: "starting the sound server", source })?;
        Ok(Self { capture, environment, dir })
    }

    /// Its socket.
    pub fn socket(&self) -> PathBuf {
        self.dir.path().join(SOCKET)
    }

    /// Tells programs where it is.
    pub fn announce(&self, environment: &mut Environment) {
        environment.set.extend(self.environment.iter().cloned());
    }
}

fn prefixed(prefix: &str, path: &Path) -> OsString {
    let mut whole = OsString::from(prefix);
    whole.push(path);
    whole
}

/// Whether ALSA can reach a sound server of this kind.
fn has_alsa_plugin() -> bool {
    let libraries = ["/usr/lib", "/usr/lib64"].map(PathBuf::from);
    let inner = fs::read_dir("/usr/lib").into_iter().flatten().flatten().map(|entry| entry.path());
    libraries
        .into_iter()
        .chain(inner)
        .any(|path| path.join("alsa-lib/libasound_module_pcm_pulse.so").exists())
}

const SOCKET: &str = "native";

/// ALSA's own configuration, and ours after it.
const ALSA: &str = "\
</usr/share/alsa/alsa.conf>
pcm.!default { type pulse hint { show on description \"Wayferry\" } }
ctl.!default { type pulse }
";
