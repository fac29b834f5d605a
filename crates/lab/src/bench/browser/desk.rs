//! A terminal beyond the link, and the browser that shows it here.
//!
//! Invariant: processes and devices go with the value.

use std::process::{Command, Stdio};
use std::time::Duration;

use wayferry_host::edge::signals::Signals;
use wayferry_host::edge::socket::RuntimeDir;
use wayferry_stage::LinkConfig;

use super::Viewer;
use super::chromium::Chromium;
use crate::bench::processes::{Process, Session, first_line, system, wayferry};
use crate::bench::rig;
use crate::error::{Error, SessionError};
use crate::tunnel::Beyond;

/// See the module.
pub(super) struct Desk<'a> {
    signals: &'a Signals,
    // In the order in which they end.
    chromium: Chromium,
    _processes: Vec<Process>,
    _session: Option<Session>,
    beyond: Beyond,
    _dir: RuntimeDir,
}

impl<'a> Desk<'a> {
    /// Starts all of it.
    pub(super) fn start(
        viewer: Viewer,
        [up, down]: [LinkConfig; 2],
        signals: &'a Signals,
    ) -> Result<Self, Error> {
        let beyond = Beyond::open(up, down, true).map_err(system("making a TUN device (/dev/net/tun)"))?;
        let dir = RuntimeDir::private()?;
        let (address, processes, session) = match viewer {
            Viewer::Wayferry => share(&dir, &beyond)?,
            Viewer::NoVnc => vnc(&dir, &beyond, signals)?,
        };
        let chromium = Chromium::open(dir.path(), &address)?;
        Ok(Self { signals, chromium, _processes: processes, _session: session, beyond, _dir: dir })
    }

    /// Waits for the first picture; gives milliseconds from opening the page.
    pub(super) fn first_picture(&mut self) -> Result<f64, Error> {
        let first = self.chromium.evaluate(FIRST_PICTURE)?;
        // Until the terminal has its size, and the page the focus.
        rig::pass(self.signals, SETTLE)?;
        self.chromium.evaluate("document.querySelector('canvas').focus()")?;
        self.chromium.evaluate(include_str!("watch.js"))?;
        first.as_f64().ok_or_else(|| SessionError::Lost("the page shows nothing".into()).into())
    }

    /// Types so many letters; gives how late each was seen in milliseconds, of those that were.
    pub(super) fn type_letters(&mut self, count: u32) -> Result<Vec<f64>, Error> {
        let mut delays = Vec::new();
        for (at, letter) in LETTERS.chars().cycle().take(count as usize).enumerate() {
            self.chromium.evaluate("ready()")?;
            self.chromium.press(letter)?;
            let answer = self.chromium.evaluate("answer")?.as_f64().filter(|delay| *delay >= 0.0);
            delays.extend(answer);
            // No multiple of a frame, and never the same.
            rig::pass(self.signals, Duration::from_millis(60 + (at as u64 * 37) % 83))?;
        }
        Ok(delays)
    }

    /// Bytes that came from beyond.
    pub(super) fn bytes(&self) -> u64 {
        self.beyond.stats().down.offered_bytes
    }
}

type Started = (String, Vec<Process>, Option<Session>);

/// Wayferry's host beyond, and what serves its page here.
fn share(dir: &RuntimeDir, beyond: &Beyond) -> Result<Started, Error> {
    let address = format!("{}:{PORT}", Beyond::ADDRESS);
    let terminal = "exec foot --override=font=monospace:size=10 sh -c 'stty -icanon; exec cat > /dev/null'";
    let words =
        ["--audio", "off", "--name", "bench", "host", "--listen", &address, "--", "sh", "-c", terminal];
    let mut command = wayferry(dir, &words);
    command.stdout(Stdio::piped());
    let started = beyond.run(move || command.spawn()).and_then(|child| child);
    let mut host = started.map_err(system("starting a host"))?;
    // It is there.
    first_line(&mut host)?;
    let session = Session::new(host);
    let mut command = wayferry(dir, &["share", "--control", ":bench"]);
    command.stdout(Stdio::piped());
    let mut share = command.spawn().map_err(system("starting `wayferry share`"))?;
    let link = first_line(&mut share)?;
    Ok((link, vec![Process::new(share)], Some(session)))
}

/// A VNC server beyond with a terminal, and noVNC before it.
fn vnc(dir: &RuntimeDir, beyond: &Beyond, signals: &Signals) -> Result<Started, Error> {
    let start = |program: &str, words: &[&str]| -> Result<Process, Error> {
        let mut command = Command::new(program);
        command.args(words).env("DISPLAY", DISPLAY).env("HOME", dir.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let started = beyond.run(move || command.spawn()).and_then(|child| child);
        Ok(Process::new(started.map_err(system("starting TigerVNC, noVNC or xterm"))?))
    };
    let address = Beyond::ADDRESS.to_string();
    let server = start(
        "Xtigervnc",
        &[
            DISPLAY,
            "-SecurityTypes",
            "None",
            "-interface",
            &address,
            "-rfbport",
            "5971",
            "-geometry",
            "800x600",
        ],
    )?;
    let (from, to) = (format!("{address}:{PORT}"), format!("{address}:5971"));
    let bridge = start("websockify", &["--web", "/usr/share/novnc", &from, &to])?;
    // Until its socket is there.
    rig::pass(signals, SETTLE)?;
    let terminal = start("xterm", &["-geometry", "100x30+0+0", "-e", "stty -icanon; exec cat > /dev/null"])?;
    rig::pass(signals, SETTLE)?;
    let page = format!("http://{address}:{PORT}/vnc_lite.html?scale=false&path=websockify");
    Ok((page, vec![terminal, bridge, server], None))
}

/// Milliseconds from the page's beginning to a canvas that shows more than one colour.
const FIRST_PICTURE: &str = r#"new Promise((resolve) => {
    const end = performance.now() + 20000;
    const look = () => {
        const canvas = [...document.querySelectorAll("canvas")].find((one) => one.width * one.height > 10000);
        if (canvas !== undefined) {
            const copy = new OffscreenCanvas(canvas.width, canvas.height);
            const context = copy.getContext("2d", { willReadFrequently: true });
            context.drawImage(canvas, 0, 0);
            const words = new Uint32Array(context.getImageData(0, 0, canvas.width, canvas.height).data.buffer);
            if (words.some((word) => word !== words[0])) {
                return resolve(performance.now());
            }
        }
        if (performance.now() > end) {
            resolve(null);
        } else {
            requestAnimationFrame(look);
        }
    };
    look();
})"#;

const LETTERS: &str = "thequickbrownfoxjumpsoverthelazydog";

const PORT: u16 = 7000;
const DISPLAY: &str = ":71";
/// Until a window has its last size.
const SETTLE: Duration = Duration::from_secs(1);
