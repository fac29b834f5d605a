//! A session of two processes with a link between their networks: the host beyond it, the display on a stage here.
//!
//! Invariant: processes, devices and the stage go with the value.

use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use wayferry_stage::{Beyond, Config, LinkConfig, Stage, SurfaceId};

use crate::bench::processes::{Process, Session, first_line, system, wayferry};
use crate::bench::rig;
use crate::error::{Error, SessionError};
use wayferry_host::edge::signals::Signals;
use wayferry_host::edge::socket::RuntimeDir;

/// See the module.
pub(super) struct Site<'a> {
    signals: &'a Signals,
    // In the order in which they end.
    _display: Process,
    _host: Session,
    pub(super) stage: Stage,
    pub(super) beyond: Beyond,
    dir: RuntimeDir,
}

impl<'a> Site<'a> {
    /// Starts the session of a script of `sh`, shown with these options; `dir` is for what belongs to it.
    pub(super) fn start(
        dir: RuntimeDir,
        [up, down]: [LinkConfig; 2],
        script: &str,
        options: &[&str],
        signals: &'a Signals,
    ) -> Result<Self, Error> {
        let beyond = Beyond::open(up, down, true).map_err(system("making a TUN device (/dev/net/tun)"))?;
        let socket = dir.path().join("stage");
        let config = Config { socket: Some(socket.clone()), ..Config::default() };
        let stage = Stage::start(config).map_err(system("starting the stage"))?;
        let address = format!("{}:{PORT}", Beyond::ADDRESS);
        let words =
            ["--audio", "off", "--name", "bench", "host", "--listen", &address, "--", "sh", "-c", script];
        let mut command = wayferry(&dir, &words);
        command.stdout(Stdio::piped());
        let started = beyond.run(move || command.spawn()).and_then(|child| child);
        let mut host = started.map_err(system("starting a host"))?;
        let ticket = first_line(&mut host)?;
        let host = Session::new(host);
        let words = [&["--audio", "off", "--title-prefix=", "attach"], options, &[&ticket]].concat();
        let mut command = wayferry(&dir, &words);
        let display =
            command.env("WAYLAND_DISPLAY", &socket).spawn().map_err(system("starting a display"))?;
        let display = Process::new(display);
        Ok(Self { signals, _display: display, _host: host, stage, beyond, dir })
    }

    /// Waits for a window; gives its size too.
    pub(super) fn window(&self, title: &str) -> Result<(SurfaceId, (u32, u32)), Error> {
        let mut watch = self.stage.watch().patience(PATIENCE);
        let shown = watch.commit(|commit| commit.attached && commit.title.as_deref() == Some(title));
        let shown = shown
            .map_err(|_| SessionError::Lost(format!("the window `{title}` did not appear on the stage")))?;
        Ok((shown.surface, shown.size.unwrap_or_default()))
    }

    /// Lets time pass.
    pub(super) fn pass(&self, time: Duration) -> Result<(), Error> {
        rig::pass(self.signals, time)
    }

    /// What the sides of the session tell of themselves.
    pub(super) fn info(&self) -> Result<Vec<Value>, Error> {
        let mut command = wayferry(&self.dir, &["info", "--json"]);
        command.stdout(Stdio::piped());
        let output = command.output().map_err(system("asking the sides"))?;
        let documents: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        Ok(documents.as_array().cloned().unwrap_or_default())
    }
}

/// Of the host.
const PORT: u16 = 7000;
/// How long a window may take to appear.
const PATIENCE: Duration = Duration::from_secs(30);
