//! A terminal beyond the link, and the browser that shows it here.
//!
//! Invariant: processes and devices go with the value.

use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use wayferry_host::edge::signals::Signals;
use wayferry_host::edge::socket::RuntimeDir;
use wayferry_stage::{Beyond, LinkConfig, now};

use super::Viewer;
use super::chromium::Chromium;
use crate::bench::headless::{OUTPUT, Screen};
use crate::bench::processes::{Process, Session, first_line, system, wayferry};
use crate::bench::rig;
use crate::error::{Error, SessionError};

/// What became of the letters that were typed.
#[derive(Debug, Default)]
pub(super) struct Typed {
    /// How late they were seen, in milliseconds.
    pub(super) late: Vec<f64>,
    /// How many were not within five seconds.
    pub(super) unseen: u32,
    /// How often the picture changed sooner than it could by a letter.
    pub(super) early: u32,
    /// How much later than the worker that paints the page itself had each, in milliseconds, where that was looked at.
    pub(super) later: Vec<f64>,
}

/// Who looks at what is painted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Eyes {
    /// The thread that paints.
    Painter,
    /// The page itself, too.
    Both,
}

/// See the module.
pub(super) struct Desk<'a> {
    signals: &'a Signals,
    viewer: Viewer,
    // In the order in which they end.
    chromium: Chromium,
    _processes: Vec<Process>,
    _screen: Option<Screen>,
    _session: Option<Session>,
    beyond: Beyond,
    _dir: RuntimeDir,
}

/// What runs for a page, and where that is.
struct Started {
    address: String,
    processes: Vec<Process>,
    screen: Option<Screen>,
    session: Option<Session>,
}

impl<'a> Desk<'a> {
    /// Starts all of it; the terminal runs this.
    pub(super) fn start(
        viewer: Viewer,
        terminal: &str,
        [up, down]: [LinkConfig; 2],
        signals: &'a Signals,
    ) -> Result<Self, Error> {
        let beyond = Beyond::open(up, down, true).map_err(system("making a TUN device (/dev/net/tun)"))?;
        let dir = RuntimeDir::private()?;
        let Started { address, processes, screen, session } = match viewer {
            Viewer::Wayferry => share(&dir, &beyond, terminal)?,
            Viewer::TigerVnc => tiger_vnc(&dir, &beyond, signals, terminal)?,
            Viewer::WayVnc => way_vnc(&dir, &beyond, signals, terminal)?,
        };
        let chromium = Chromium::open(dir.path(), &address, scripts(viewer))?;
        let (_processes, _screen, _session) = (processes, screen, session);
        Ok(Self { signals, viewer, chromium, _processes, _screen, _session, beyond, _dir: dir })
    }

    /// Waits for the first picture; gives milliseconds from opening the page.
    pub(super) fn first_picture(&mut self) -> Result<f64, Error> {
        let first = self.wait_for("first")?;
        if self.viewer != Viewer::Wayferry {
            // A click would do the same.
            self.chromium.evaluate("document.querySelector('canvas').focus()")?;
        }
        self.wait_for(HAS_FOCUS)?;
        first.as_f64().ok_or_else(|| lost("the page shows nothing"))
    }

    /// Waits until the terminal has its last size.
    pub(super) fn settle(&self) -> Result<(), Error> {
        rig::pass(self.signals, SETTLE)
    }

    /// The value of an expression, once it is neither undefined nor false.
    fn wait_for(&mut self, expression: &str) -> Result<Value, Error> {
        let until = now() + PATIENCE;
        while now() < until {
            // While a page is loaded its predecessor may still answer, or fail to.
            match self.chromium.evaluate(expression) {
                Ok(Value::Null | Value::Bool(false)) | Err(_) => {
                    self.signals.wait_readable(&[self.chromium.as_fd()], Some(MOMENT))?;
                    self.chromium.listen()?;
                }
                Ok(value) => return Ok(value),
            }
        }
        let shown = self.chromium.evaluate(TEXT)?;
        Err(lost(&format!("the page does not get to `{expression}`; it shows {shown}")))
    }

    /// Types so many letters; nothing can be answered sooner than `floor`.
    pub(super) fn type_letters(&mut self, count: u32, floor: Duration, eyes: Eyes) -> Result<Typed, Error> {
        let mut typed = Typed::default();
        let ready = format!("ready({}, {})", floor.as_millis(), eyes == Eyes::Both);
        for (at, letter) in LETTERS.chars().cycle().take(count as usize).enumerate() {
            self.chromium.evaluate(&ready)?;
            self.chromium.press(letter)?;
            let answers = self.chromium.evaluate("answer")?;
            let late = |at: usize| answers[at]["late"].as_f64();
            match late(0) {
                Some(late) => typed.late.push(late),
                None => {
                    self.still_shown()?;
                    typed.unseen += 1;
                }
            }
            typed.later.extend(late(1).zip(late(0)).map(|(page, painter)| page - painter));
            typed.early += answers[0]["early"].as_f64().unwrap_or_default() as u32;
            // No multiple of a frame, and never the same.
            rig::pass(self.signals, Duration::from_millis(20 + (at as u64 * 37) % 67))?;
        }
        Ok(typed)
    }

    /// Presses a key, of which nothing is measured.
    pub(super) fn press(&mut self, letter: char) -> Result<(), Error> {
        self.chromium.press(letter)
    }

    /// The value of an expression of JavaScript in the page, once it has one.
    pub(super) fn evaluate(&mut self, expression: &str) -> Result<Value, Error> {
        self.chromium.evaluate(expression)
    }

    /// When frames with other pixels were painted in so long a time, in milliseconds.
    pub(super) fn frames(&mut self, time: Duration) -> Result<Vec<f64>, Error> {
        let frames = self.chromium.evaluate(&format!("frames({})", time.as_millis()))?;
        Ok(frames.as_array().into_iter().flatten().filter_map(Value::as_f64).collect())
    }

    /// Whether a worker that paints is to look at what it has painted.
    pub(super) fn look(&mut self, whether: bool) -> Result<(), Error> {
        self.chromium.evaluate(&format!("look({whether})")).map(drop)
    }

    /// The browser's processes that have pages.
    pub(super) fn renderers(&mut self) -> Result<Vec<u64>, Error> {
        self.chromium.renderers()
    }

    /// Lets time pass.
    pub(super) fn pass(&self, time: Duration) -> Result<(), Error> {
        rig::pass(self.signals, time)
    }

    /// Refuses a page of ours that says itself that it is over.
    fn still_shown(&mut self) -> Result<(), Error> {
        match self.chromium.evaluate(STATE)?.as_str() {
            Some("shown") | None => Ok(()),
            Some(_) => Err(lost(&format!("the page shows {}", self.chromium.evaluate(TEXT)?))),
        }
    }

    /// Whether a worker paints the page, and not the page itself.
    pub(super) fn has_painter(&self) -> bool {
        self.viewer == Viewer::Wayferry
    }

    /// What the browser calls itself.
    pub(super) fn browser(&mut self) -> Result<String, Error> {
        self.chromium.name()
    }

    /// Bytes of IP packets that were sent from beyond.
    pub(super) fn bytes(&self) -> u64 {
        let down = self.beyond.stats().down;
        down.offered_bytes + down.offered * HEADERS
    }
}

/// What runs in a page before its own script, and in its workers.
fn scripts(viewer: Viewer) -> [String; 2] {
    let page = [
        &format!("const BY_WORKER = {};", viewer == Viewer::Wayferry),
        include_str!("look.js"),
        include_str!("watch.js"),
    ];
    let worker = [include_str!("look.js"), include_str!("painted.js")];
    [&page[..], &worker].map(|parts| format!("(() => {{\n{}\n}})();", parts.concat()))
}

fn lost(what: &str) -> Error {
    SessionError::Lost(what.to_owned()).into()
}

/// Wayferry's host beyond, and what serves its page here.
fn share(dir: &RuntimeDir, beyond: &Beyond, terminal: &str) -> Result<Started, Error> {
    let address = format!("{}:{PORT}", Beyond::ADDRESS);
    let session = ["--audio", "off", "--name", "bench", "host", "--listen", &address, "--"];
    let foot: Vec<&str> = FOOT.split(' ').chain(["sh", "-c", terminal]).collect();
    let words = [&session[..], &foot].concat();
    let mut command = wayferry(dir, &words);
    command.stdout(Stdio::piped());
    let started = beyond.run(move || command.spawn()).and_then(|child| child);
    let mut host = started.map_err(system("starting a host"))?;
    // It is there.
    first_line(&mut host)?;
    let session = Session::new(host);
    let mut command = wayferry(dir, &["share", "--control", ":bench"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut share = command.spawn().map_err(system("starting `wayferry share`"))?;
    let link = first_line(&mut share)?;
    if link.is_empty() {
        let output = share.wait_with_output().map_err(system("waiting for `wayferry share`"))?;
        return Err(lost(&format!("`wayferry share`: {}", String::from_utf8_lossy(&output.stderr).trim())));
    }
    Ok(Started { address: link, processes: vec![Process::new(share)], screen: None, session: Some(session) })
}

/// TigerVNC beyond with a terminal, and noVNC before it.
fn tiger_vnc(dir: &RuntimeDir, beyond: &Beyond, signals: &Signals, terminal: &str) -> Result<Started, Error> {
    let start = |words: &[&str]| {
        let mut command = quiet(dir, words);
        command.env("DISPLAY", DISPLAY);
        spawn(beyond, command, "starting TigerVNC or xterm")
    };
    let (address, port) = (Beyond::ADDRESS.to_string(), VNC_PORT.to_string());
    let listens = ["-SecurityTypes", "None", "-interface", &address, "-rfbport", &port];
    let server = start(&[&["Xtigervnc", DISPLAY, "-geometry", "800x600"][..], &listens].concat())?;
    let (page, bridge) = no_vnc(dir, beyond)?;
    // Until its socket is there.
    rig::pass(signals, SETTLE)?;
    let terminal = start(&["xterm", "-geometry", "100x30+0+0", "-e", "sh", "-c", terminal])?;
    rig::pass(signals, SETTLE)?;
    Ok(Started { address: page, processes: vec![terminal, bridge, server], screen: None, session: None })
}

/// wayvnc beyond, of sway's screen with a terminal, and noVNC before it.
fn way_vnc(dir: &RuntimeDir, beyond: &Beyond, signals: &Signals, terminal: &str) -> Result<Started, Error> {
    let screen = Screen::start([FOOT, terminal], signals, |mut sway| {
        beyond.run(move || sway.spawn()).and_then(|child| child)
    })?;
    // Until the terminal is there.
    rig::pass(signals, SETTLE)?;
    let mut command = screen.command("wayvnc");
    command.args(["-o", OUTPUT, &Beyond::ADDRESS.to_string(), &VNC_PORT.to_string()]);
    let server = spawn(beyond, command, "starting wayvnc")?;
    let (page, bridge) = no_vnc(dir, beyond)?;
    rig::pass(signals, SETTLE)?;
    Ok(Started { address: page, processes: vec![bridge, server], screen: Some(screen), session: None })
}

/// noVNC before a VNC server, and where its page is.
fn no_vnc(dir: &RuntimeDir, beyond: &Beyond) -> Result<(String, Process), Error> {
    let [from, to] = [PORT, VNC_PORT].map(|port| format!("{}:{port}", Beyond::ADDRESS));
    let command = quiet(dir, &["websockify", "--web", "/usr/share/novnc", &from, &to]);
    let bridge = spawn(beyond, command, "starting websockify")?;
    Ok((format!("http://{from}/vnc_lite.html?path=websockify"), bridge))
}

fn quiet(dir: &RuntimeDir, words: &[&str]) -> Command {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).env("HOME", dir.path());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Starts it beyond.
fn spawn(beyond: &Beyond, mut command: Command, doing: &'static str) -> Result<Process, Error> {
    let started = beyond.run(move || command.spawn()).and_then(|child| child);
    Ok(Process::new(started.map_err(system(doing))?))
}

const LETTERS: &str = "thequickbrownfoxjumpsoverthelazydog";

const TEXT: &str = "document.body.innerText";
/// Of ours: noVNC's has none.
const STATE: &str = "document.documentElement.dataset.state";
/// The page hears keys: a field of ours, the canvas of noVNC's.
const HAS_FOCUS: &str = "['TEXTAREA', 'CANVAS'].includes(document.activeElement?.tagName)";

/// Of IP and UDP, which a link does not count.
const HEADERS: u64 = 28;

/// A terminal, up to what it runs.
const FOOT: &str = "foot --override=font=monospace:size=10";

const PORT: u16 = 7000;
const VNC_PORT: u16 = 5971;
const DISPLAY: &str = ":71";
/// Until a window has its last size.
const SETTLE: Duration = Duration::from_secs(1);
/// How long a page may take to show something, and a look for it.
const PATIENCE: Duration = Duration::from_secs(30);
const MOMENT: Duration = Duration::from_millis(50);
