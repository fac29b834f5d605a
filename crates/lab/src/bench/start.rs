//! `wayferry bench start`: from Enter to the first window, beside what ssh itself needs to connect.
//!
//! A real ssh server runs in a network of its own behind an emulated link; the window of a real program is awaited on
//! the stage. What ssh needs is the time of `ssh HOST true` to its end, measured in turn with the other. Invariant:
//! every program that was started has ended when a case is over, by its number.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use wayferry_stage::{Beyond, Config, LinkConfig, Role, Stage, StageEvent, now};

use super::{Figures, Row, Setting, Target, write_json};
use crate::error::{Error, SessionError};
use crate::flags::StartFlags;
use crate::tunnel;
use wayferry_host::edge::socket::RuntimeDir;

/// Measures; gives the exit code, which is 1 if a goal is missed.
pub(crate) fn run(flags: &StartFlags) -> Result<u8, Error> {
    if let Some(code) = tunnel::enter()? {
        return Ok(code);
    }
    let mut rows = Vec::new();
    for rtt_ms in [20, 100] {
        for udp in [true, false] {
            for row in case(rtt_ms, udp, flags.runs)? {
                println!("{}", row.line());
                rows.push(row);
            }
        }
    }
    if let Some(path) = &flags.json {
        write_json(path, &rows)?;
    }
    Ok(u8::from(rows.iter().any(|row| row.target.is_some_and(|target| !target.met(row.figures)))))
}

fn case(rtt_ms: u32, udp: bool, runs: u16) -> Result<Vec<Row>, Error> {
    let delay = Duration::from_millis(rtt_ms.into()) / 2;
    let config = LinkConfig { one_way_delay: delay, ..LinkConfig::default() };
    let beyond = Beyond::open(config.clone(), LinkConfig { seed: 2, ..config }, udp)
        .map_err(|source| SessionError::System { doing: "making a TUN device (/dev/net/tun)", source })?;
    let dir = RuntimeDir::private()?;
    let server = Server::start(dir.path(), &beyond)?;
    let (mut plain, mut windows, mut beyond_ssh) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..runs {
        let ssh = server.plain()?;
        let window = server.window()?;
        plain.push(ms(ssh));
        windows.push(ms(window));
        beyond_ssh.push(ms(window) - ms(ssh));
    }
    let case = if udp { "start" } else { "start, UDP blocked" };
    let setting = Setting { rtt_ms, ..Setting::default() };
    let goal = Target::MedianAtMost(f64::from(rtt_ms) * 1.5 + 60.0);
    let row = |metric, values: &[f64], target| {
        let figures = Figures::of(values);
        Row { case, setting, buffers: None, metric, unit: "ms", figures, target }
    };
    Ok(vec![
        row("ssh HOST true", &plain, None),
        row("wayferry ssh HOST foot: window", &windows, None),
        row("window after ssh's own time", &beyond_ssh, Some(goal)),
    ])
}

/// An ssh server beyond the link, and its callers.
struct Server {
    child: Child,
    dir: PathBuf,
}

impl Server {
    fn start(dir: &Path, beyond: &Beyond) -> Result<Self, SessionError> {
        let failed = |doing| move |source| SessionError::System { doing, source };
        for key in ["host", "user"] {
            let path = dir.join(key);
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f"])
                .arg(path)
                .status()
                .map_err(failed("starting `ssh-keygen`"))?;
            if !made.success() {
                return Err(SessionError::Lost("`ssh-keygen` made no key".into()));
            }
        }
        let (place, address) = (dir.display(), Beyond::ADDRESS);
        // Where the server puts the part of itself that talks to strangers.
        fs::create_dir_all("/run/sshd").map_err(failed("making sshd's directory"))?;
        let server = format!(
            "ListenAddress {address}\nPort {PORT}\nHostKey {place}/host\nAuthorizedKeysFile {place}/user.pub\nPidFile none\n\
             UsePAM no\nStrictModes no\nPermitRootLogin yes\nPasswordAuthentication no\n\
             SetEnv TMPDIR={place} HOME={place} PATH=/usr/local/bin:/usr/bin:/bin\n"
        );
        let client = format!(
            "Host there\nHostName {address}\nPort {PORT}\nIdentityFile {place}/user\nIdentitiesOnly yes\nBatchMode yes\n\
             StrictHostKeyChecking no\nUserKnownHostsFile {place}/known\nLogLevel ERROR\n"
        );
        fs::write(dir.join("server"), server).map_err(failed("writing sshd's configuration"))?;
        fs::write(dir.join("client"), client).map_err(failed("writing ssh's configuration"))?;
        let mut command = Command::new("/usr/sbin/sshd");
        command.args(["-D", "-e", "-f"]).arg(dir.join("server"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = beyond.run(move || command.spawn()).and_then(|child| child);
        let server = Self { child: child.map_err(failed("starting `sshd`"))?, dir: dir.to_owned() };
        server.answers()?;
        Ok(server)
    }

    /// Waits until it answers, and knows its key from then on.
    fn answers(&self) -> Result<(), SessionError> {
        let patience = now() + PATIENCE;
        while now() < patience {
            if self.ssh().arg("there").arg("true").status().is_ok_and(|status| status.success()) {
                return Ok(());
            }
        }
        Err(SessionError::Lost("the ssh server does not answer".into()))
    }

    fn ssh(&self) -> Command {
        let mut command = Command::new("ssh");
        command.arg("-F").arg(self.dir.join("client")).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// How long ssh needs to run a program that ends at once.
    fn plain(&self) -> Result<Duration, SessionError> {
        let start = now();
        let status = self.ssh().arg("there").arg("true").status();
        match status.map_err(|source| SessionError::System { doing: "starting `ssh`", source })?.success() {
            true => Ok(now() - start),
            false => Err(SessionError::Lost("`ssh` failed".into())),
        }
    }

    /// How long it takes until the first window is there.
    fn window(&self) -> Result<Duration, SessionError> {
        let failed = |doing| move |source| SessionError::System { doing, source };
        let wayferry =
            std::env::current_exe().map_err(failed("finding this program"))?.with_file_name("wayferry");
        let socket = self.dir.join("stage");
        let config = Config { socket: Some(socket.clone()), ..Config::default() };
        let stage = Stage::start(config).map_err(failed("starting the stage"))?;
        let mut watch = stage.watch().patience(PATIENCE);
        let mut command = Command::new(&wayferry);
        command.arg("--remote-bin").arg(&wayferry).args(["--audio", "off", "--port", PORTS, "ssh", "-F"]);
        command.arg(self.dir.join("client")).args(["there", "foot", "cat"]);
        command
            .env("WAYLAND_DISPLAY", &socket)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(self.dir.join("said")).map_err(failed("making a file"))?);
        let start = now();
        let mut child = command.spawn().map_err(failed("starting `wayferry`"))?;
        let shown = watch.find(|stamped| match &stamped.event {
            StageEvent::FirstAttach { role: Some(Role::Toplevel), .. } => Some(stamped.time),
            _ => None,
        });
        end(&mut child).map_err(failed("ending `wayferry`"))?;
        // It goes on without a display, and would disturb the next.
        let mut stop = Command::new(&wayferry);
        stop.arg("stop").env("TMPDIR", &self.dir).stdout(Stdio::null()).stderr(Stdio::null());
        stop.status().map_err(failed("starting `wayferry`"))?;
        let said = fs::read_to_string(self.dir.join("said")).unwrap_or_default();
        let none =
            |_| SessionError::Lost(format!("no window appeared on the stage; ssh and wayferry said: {said}"));
        Ok(shown.map_err(none)? - start)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// As Ctrl-C would.
fn end(child: &mut Child) -> io::Result<()> {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        kill_process(pid, Signal::INT)?;
    }
    child.wait().map(drop)
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Of the server.
const PORT: u16 = 7022;
/// Of sessions.
const PORTS: &str = "7100-7199";
/// How long a window may take to appear.
const PATIENCE: Duration = Duration::from_secs(30);
