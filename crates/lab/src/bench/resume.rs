//! `wayferry bench resume`: how soon a picture drawn after the contact is seen again.
//!
//! Host and displays are processes of their own, as users run them, on the stage and over an emulated link. *Contact*
//! is the moment when the link works again, the address has changed, or the new display is started. Invariant: the
//! times are the stage's, which stamps each commit that it sees.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use wayferry_net::Ticket;
use wayferry_stage::{BigCommit, Config, Endpoint, Link, LinkConfig, Program, Stage, StageEvent, Watch, now};

use super::processes::{Process, Session, first_line, system, wayferry};
use super::{Figures, Row, Setting, Target, rig, write_json};
use crate::error::{Error, SessionError};
use crate::flags::BenchFlags;
use wayferry_host::edge::signals::Signals;
use wayferry_host::edge::socket::RuntimeDir;

/// Runs the cases; gives the exit code.
pub(crate) fn run(flags: &BenchFlags) -> Result<u8, Error> {
    let signals = Signals::new()?;
    let mut rows = Vec::new();
    for (name, case) in CASES {
        if flags.only.as_ref().is_some_and(|only| !name.contains(only.as_str())) {
            continue;
        }
        for rtt_ms in [20, 200] {
            let bench = Bench { signals: &signals, rtt_ms, quick: flags.quick };
            let row = case(&bench)?;
            println!("{}", row.line());
            rows.push(row);
        }
    }
    if let Some(path) = &flags.json {
        write_json(path, &rows)?;
    }
    Ok(0)
}

struct Bench<'a> {
    signals: &'a Signals,
    rtt_ms: u32,
    quick: bool,
}

type Case = fn(&Bench<'_>) -> Result<Row, Error>;

const CASES: &[(&str, Case)] = &[
    ("address-change", address_change),
    ("outage-3s", outage_3s),
    ("outage-60s", outage_60s),
    ("viewer-restart", viewer_restart),
    ("new-compositor", new_compositor),
];

/// The router forgets the display; its first packet from the new address tells the session.
fn address_change(bench: &Bench<'_>) -> Result<Row, Error> {
    let rig = Rig::new(bench)?;
    let times = bench.rounds(10, |_| {
        rig.pass(Duration::from_secs(1))?;
        let watch = rig.watch();
        let contact = now();
        rig.link.move_clients();
        fresh(watch, contact)
    })?;
    Ok(bench.row("address-change", &times, 1.0, 100.0))
}

fn outage_3s(bench: &Bench<'_>) -> Result<Row, Error> {
    outage(bench, "outage-3s", Duration::from_secs(3), 5, 100.0)
}

fn outage_60s(bench: &Bench<'_>) -> Result<Row, Error> {
    outage(bench, "outage-60s", Duration::from_secs(60), 2, 500.0)
}

fn outage(
    bench: &Bench<'_>,
    case: &'static str,
    away: Duration,
    rounds: usize,
    slack: f64,
) -> Result<Row, Error> {
    let rig = Rig::new(bench)?;
    let times = bench.rounds(rounds, |_| {
        rig.pass(Duration::from_secs(2))?;
        rig.link.set_down(true);
        rig.pass(away)?;
        let watch = rig.watch();
        let contact = now();
        rig.link.set_down(false);
        fresh(watch, contact)
    })?;
    Ok(bench.row(case, &times, 1.0, slack))
}

/// The display is killed, and started again a second later.
fn viewer_restart(bench: &Bench<'_>) -> Result<Row, Error> {
    let mut rig = Rig::new(bench)?;
    let times = bench.rounds(10, |_| {
        rig.display.kill();
        rig.pass(Duration::from_secs(1))?;
        let ticket = rig.ticket()?;
        let watch = rig.watch();
        let contact = now();
        rig.display = rig.attach(&rig.socket(0), &ticket)?;
        fresh(watch, contact)
    })?;
    Ok(bench.row("viewer-restart", &times, 3.0, 300.0))
}

/// Another display is started on a compositor with another output, while the first is still there.
fn new_compositor(bench: &Bench<'_>) -> Result<Row, Error> {
    let mut rig = Rig::new(bench)?;
    let times = bench.rounds(10, |round| {
        let ticket = rig.ticket()?;
        rig.on = (round + 1) % rig.stages.len();
        let watch = rig.watch();
        let contact = now();
        let next = rig.attach(&rig.socket(rig.on), &ticket)?;
        let time = fresh(watch, contact)?;
        rig.display = next;
        rig.pass(Duration::from_secs(1))?;
        Ok(time)
    })?;
    Ok(bench.row("new-compositor", &times, 3.0, 300.0))
}

/// From the contact to the first commit of content that was drawn after it.
fn fresh(watch: Watch, contact: Duration) -> Result<f64, Error> {
    let mut watch = watch.patience(PATIENCE);
    let found = watch.find(|stamped| match &stamped.event {
        StageEvent::Commit(commit) => (commit.strip?.drawn >= contact).then_some(stamped.time),
        _ => None,
    });
    let time = found.map_err(|_| SessionError::Lost("no new picture after the contact".into()))?;
    Ok((time - contact).as_secs_f64() * 1e3)
}

impl Bench<'_> {
    fn rounds(
        &self,
        count: usize,
        mut round: impl FnMut(usize) -> Result<f64, Error>,
    ) -> Result<Vec<f64>, Error> {
        let count = if self.quick { 1 } else { count };
        (0..count).map(&mut round).collect()
    }

    /// The target is so many round trips and so many milliseconds.
    fn row(&self, case: &'static str, times: &[f64], round_trips: f64, slack: f64) -> Row {
        Row {
            case,
            setting: Setting { rtt_ms: self.rtt_ms, rate_mbps: Some(RATE), ..Setting::default() },
            buffers: Some(2),
            metric: "from contact to a fresh picture",
            unit: "ms",
            figures: Figures::of(times),
            target: Some(Target::MedianAtMost(round_trips * f64::from(self.rtt_ms) + slack)),
        }
    }
}

/// A session with a program, seen on a stage over a link.
struct Rig<'a> {
    signals: &'a Signals,
    // In the order in which they end.
    _program: Program,
    display: Process,
    _host: Session,
    link: Link,
    stages: Vec<Stage>,
    /// Which of the stages is looked at.
    on: usize,
    dir: RuntimeDir,
}

impl<'a> Rig<'a> {
    fn new(bench: &Bench<'a>) -> Result<Self, Error> {
        let dir = RuntimeDir::private()?;
        let stages = [(1920, 1080, 1), (1280, 800, 2)].into_iter().enumerate().map(
            |(number, (width, height, scale))| {
                let socket = Some(dir.path().join(format!("stage-{number}")));
                let stage = Stage::start(Config { socket, ..Config::default() })
                    .map_err(system("starting the stage"))?;
                stage.change_output(width, height, scale);
                Ok(stage)
            },
        );
        let stages = stages.collect::<Result<Vec<_>, Error>>()?;
        let script = "echo \"$WAYLAND_DISPLAY\" > \"$TMPDIR/display.new\"; mv \"$TMPDIR/display.new\" \"$TMPDIR/display\"; exec tail -f /dev/null > /dev/null";
        let mut host =
            wayferry(&dir, &["--name", NAME, "host", "--listen", "127.0.0.1:0", "--", "sh", "-c", script])
                .stdout(Stdio::piped())
                .spawn()
                .map_err(system("starting a host"))?;
        let first = first_line(&mut host)?;
        let host = Session::new(host);
        let ticket: Ticket = first.parse().map_err(|error| Error::Ticket(format!("{error}")))?;
        let address = *ticket.addresses.first().ok_or_else(|| Error::Ticket("no address".into()))?;
        let link = Link::start(link_config(bench.rtt_ms), address).map_err(system("starting the link"))?;
        let display = attach(&dir, &dir.path().join("stage-0"), &first, &link)?;
        let program = program(&dir, bench.signals)?;
        let rig = Self {
            signals: bench.signals,
            _program: program,
            display,
            _host: host,
            link,
            stages,
            on: 0,
            dir,
        };
        fresh(rig.watch(), now())?;
        Ok(rig)
    }

    fn socket(&self, stage: usize) -> PathBuf {
        self.dir.path().join(format!("stage-{stage}"))
    }

    fn attach(&self, socket: &std::path::Path, ticket: &str) -> Result<Process, SessionError> {
        attach(&self.dir, socket, ticket, &self.link)
    }

    /// Another ticket of the same session.
    fn ticket(&self) -> Result<String, Error> {
        let mut child =
            wayferry(&self.dir, &["ticket"]).stdout(Stdio::piped()).spawn().map_err(system("asking"))?;
        let line = first_line(&mut child)?;
        drop(Process::new(child));
        Ok(line)
    }

    /// What the stage that is looked at shows from now on.
    fn watch(&self) -> Watch {
        Watch::new(self.stages[self.on].events_from_now())
    }

    fn pass(&self, time: Duration) -> Result<(), Error> {
        rig::pass(self.signals, time)
    }
}

fn attach(
    dir: &RuntimeDir,
    socket: &std::path::Path,
    ticket: &str,
    link: &Link,
) -> Result<Process, SessionError> {
    let via = link.local_addr().to_string();
    let mut command = wayferry(dir, &["attach", ticket, "--via", &via]);
    command.env("WAYLAND_DISPLAY", socket).spawn().map(Process::new).map_err(system("starting a display"))
}

/// A program that draws a little with each frame callback, in a window of 640 × 480.
fn program(dir: &RuntimeDir, signals: &Signals) -> Result<Program, SessionError> {
    let end = now() + PATIENCE;
    let name = loop {
        match fs::read_to_string(dir.path().join("display")) {
            Ok(name) => break name,
            Err(_) if now() < end => drop(signals.wait_readable(&[], Some(Duration::from_millis(5)))?),
            Err(source) => return Err(SessionError::File { path: dir.path().join("display"), source }),
        }
    };
    let scene = BigCommit { title: "resume".into(), width: 640, height: 480, ..BigCommit::default() };
    let socket = dir.path().join(name.trim());
    Program::start(Endpoint::Socket(socket), move |client| scene.run(client))
        .map_err(system("starting a program"))
}

fn link_config(rtt_ms: u32) -> LinkConfig {
    let rate = u64::from(RATE) * 1_000_000;
    let rtt = Duration::from_millis(rtt_ms.into());
    let product = (rate as f64 / 8.0 * rtt.as_secs_f64()) as u64;
    LinkConfig {
        rate: Some(rate),
        one_way_delay: rtt / 2,
        queue_bytes: product.max(64_000),
        ..LinkConfig::default()
    }
}

/// The session's name.
const NAME: &str = "bench";
/// Mbit/s of the link.
const RATE: u32 = 50;
/// How long a picture may take before the bench fails.
const PATIENCE: Duration = Duration::from_secs(30);
