//! What a case of `wayferry bench windows` runs on: a stage, a session to it over an emulated link, programs.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use wayferry_stage::{
    Client, ClientError, Config, Endpoint, LinkConfig, Loss, Program, Stage, StageEvent, Stamped, SurfaceId,
};

use super::Setting;
use crate::emulated::{Emulated, Plan, Sound, Way};
use crate::error::{Error, SessionError};
use crate::flags::OwnFlags;
use wayferry_host::edge::signals::Signals;
use wayferry_host::edge::socket::RuntimeDir;

/// A session on a stage.
pub(crate) struct Rig<'a> {
    pub(crate) stage: Stage,
    pub(crate) session: Emulated,
    signals: &'a Signals,
    dir: RuntimeDir,
}

impl<'a> Rig<'a> {
    /// A new one with this link.
    pub(crate) fn new(own: &OwnFlags, setting: Setting, signals: &'a Signals) -> Result<Self, Error> {
        let (up, down) = setting.links();
        Self::over(own, Way::relay(up, down), None, signals)
    }

    /// The same by another way, and with sound.
    pub(crate) fn over(
        own: &OwnFlags,
        way: Way,
        sound: Option<Sound>,
        signals: &'a Signals,
    ) -> Result<Self, Error> {
        let dir = RuntimeDir::private()?;
        let socket = dir.path().join(STAGE);
        let config = Config { socket: Some(socket.clone()), ..Config::default() };
        let stage = Stage::start(config)
            .map_err(|source| SessionError::System { doing: "starting the stage", source })?;
        let plan = Plan { own, compositor: socket, way, program: None, tap: None, sound, predicts: false };
        let session = Emulated::start(plan, signals)?;
        Ok(Self { stage, session, signals, dir })
    }

    /// Starts a scripted program in the session.
    pub(crate) fn program(
        &self,
        script: impl FnOnce(&mut Client) -> Result<(), ClientError> + Send + 'static,
    ) -> Result<Program, SessionError> {
        Program::start(Endpoint::Socket(self.session.socket().to_owned()), script)
            .map_err(|source| SessionError::System { doing: "starting a program", source })
    }

    /// Starts a scripted program on the stage itself.
    pub(crate) fn direct(
        &self,
        script: impl FnOnce(&mut Client) -> Result<(), ClientError> + Send + 'static,
    ) -> Result<Program, SessionError> {
        let socket = self.dir.path().join(STAGE);
        Program::start(Endpoint::Socket(socket), script)
            .map_err(|source| SessionError::System { doing: "starting a program", source })
    }

    /// Waits for the first content of the window with this title; gives the window and when that was.
    pub(crate) fn window(&self, title: &str) -> Result<(SurfaceId, Duration), SessionError> {
        let mut watch = self.stage.watch().patience(PATIENCE);
        watch
            .find(|stamped| match &stamped.event {
                StageEvent::FirstAttach { surface, title: Some(found), .. } if found == title => {
                    Some((*surface, stamped.time))
                }
                _ => None,
            })
            .map_err(|_| SessionError::Lost(format!("the window `{title}` did not appear on the stage")))
    }

    /// Lets time pass.
    pub(crate) fn pass(&self, time: Duration) -> Result<(), Error> {
        pass(self.signals, time)
    }

    /// Types `count` keys into `window`, `period` apart, and waits for the last to be shown.
    pub(crate) fn type_keys(&self, window: SurfaceId, count: usize, period: Duration) -> Result<(), Error> {
        self.stage.set_focus(Some(window));
        self.pass(period)?;
        for key in "the quick brown fox ".chars().cycle().take(count) {
            self.stage.type_text(&key.to_string());
            self.pass(period)?;
        }
        self.pass(SETTLE)
    }

    /// The stage's log so far.
    pub(crate) fn events(&self) -> Vec<Stamped> {
        self.stage.events().try_iter().collect()
    }

    /// Bytes that the link has carried towards the display, with the headers of UDP and IP.
    pub(crate) fn wire_bytes(&self) -> u64 {
        let down = self.session.link_stats().down;
        down.offered_bytes + down.offered * HEADERS
    }
}

/// Lets time pass.
///
/// # Errors
/// A signal came meanwhile.
pub(super) fn pass(signals: &Signals, time: Duration) -> Result<(), Error> {
    let end = wayferry_stage::now() + time;
    loop {
        let left = end.saturating_sub(wayferry_stage::now());
        if left.is_zero() {
            return Ok(());
        }
        signals.wait_readable(&[], Some(left))?;
    }
}

/// A program that plays a tone until it is dropped.
pub(crate) struct Tone(Child);

impl Tone {
    /// To the session's sound server.
    pub(crate) fn start(session: &Emulated) -> Result<Self, SessionError> {
        let socket = session.sound_socket().ok_or_else(|| SessionError::Lost("no sound server".into()))?;
        let mut sox = Command::new("sox");
        sox.args(["-q", "-n", "-t", "pulseaudio", "default", "synth", "sine", "440", "gain", "-12"]);
        sox.env("PULSE_SERVER", format!("unix:{}", socket.display()));
        let child = sox.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        child.map(Self).map_err(|source| SessionError::System { doing: "starting `sox`", source })
    }
}

impl Drop for Tone {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Setting {
    pub(crate) fn links(self) -> (LinkConfig, LinkConfig) {
        let rate = self.rate_mbps.map(|rate| u64::from(rate) * 1_000_000);
        let rtt = Duration::from_millis(self.rtt_ms.into());
        let product = rate.map_or(1 << 20, |rate| (rate as f64 / 8.0 * rtt.as_secs_f64()) as u64);
        let link = LinkConfig {
            rate,
            one_way_delay: rtt / 2,
            // One product of rate and delay, the usual advice for a router.
            queue_bytes: product.max(64_000),
            loss: match (self.loss_percent / 100.0, self.loss_burst) {
                (0.0, _) => Loss::None,
                (share, burst) if burst > 1.0 => Loss::bursts(share, burst),
                (share, _) => Loss::Independent(share),
            },
            ..LinkConfig::default()
        };
        (link.clone(), LinkConfig { seed: link.seed ^ 0xff, ..link })
    }
}

/// The name of the stage's socket.
const STAGE: &str = "stage";
/// How long a window may take to appear.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long the last key may take to be shown.
const SETTLE: Duration = Duration::from_millis(1500);
/// Bytes of IPv4 and UDP headers.
const HEADERS: u64 = 28;
