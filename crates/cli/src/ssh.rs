//! `wayferry ssh`: a remote program's windows here, with ssh as the bootstrap.
//!
//! ssh runs `wayferry host --bootstrap` on the other machine with the user's command behind it and keeps its stdio and
//! terminal for that command; how the two sides meet is in [`wayferry_host::bootstrap`]. The session begins on ssh, and
//! moves to QUIC when that answers at the addresses that ssh itself used. Invariant: ssh is reaped, and no socket of
//! ours is left, before this returns.

pub(crate) mod args;
pub(crate) mod failure;
pub(crate) mod far_half;
mod install;
mod quote;

use std::ffi::{OsStr, OsString};
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::error::{Error, SessionError};
use crate::flags::{OwnFlags, SshFlags, Switch};
use crate::leaving::Leaving;
use crate::remote::{self, BROKEN, MISSING};
use crate::tell::{OwnEvent, notice, tell};
use crate::viewer::{Lookup, Meeting, Viewer};
use wayferry_host::clock::Clock;
use wayferry_host::display_side::Outcome;
use wayferry_host::edge::programs::{Place, Program, exit_code};
use wayferry_host::edge::signals::Signals;
use wayferry_host::edge::socket::{Listener, RuntimeDir, random_name};
use wayferry_host::edge::xwayland::How;
use wayferry_host::reconnect::Other;
use wayferry_host::settings::Compress;
use wayferry_host::sound::Audio;

use args::SshArgs;
use far_half::FarHalf;
pub(crate) use quote::quote;

/// Runs `wayferry ssh`; gives the exit code.
pub(crate) fn run(own: &OwnFlags, flags: &SshFlags) -> Result<u8, Error> {
    let (args, install) = (SshArgs::parse(&flags.words)?, flags.install_remote);
    let signals = Signals::new()?;
    if own.begin.detached && args.command.is_empty() {
        return Err(Error::usage("`--detached` needs a command: a shell needs a user"));
    }
    if own.begin.detached {
        return detached(own, &args, install, &signals);
    }
    // The compositor first: without one there is no reason to ask for a password.
    let viewer = Viewer::new(own, &signals)?.of(&args.destination.to_string_lossy()).without_terminal();
    let dir = RuntimeDir::private()?;
    let listener = Listener::unlocked(dir.path().join("ssh"))?;
    let far_half = FarHalf::new(own)?;
    let begin = Begin { own, args: &args, far_half: far_half.as_ref() };
    let (mut ssh, met) = reach(&begin, install, &listener, &signals)?;
    let lookup = lookup(own, &args);
    let result = met.and_then(|met| match met {
        Met::Socket(socket) => {
            let leaving = Leaving::new(&args.options, &args.destination);
            let again = |name: String| {
                let place = leaving.met(&name, args.session_name(own).as_deref());
                let again = ssh_again(own, &args.options, &args.destination, &name, false);
                (Other::Command(again), Some(place))
            };
            let meeting = Meeting { socket, login: false, quic: Some(lookup), standby: Some(listener) };
            let outcome = viewer.meet(meeting, again);
            leaving.tell(&outcome);
            let finished = finish(&mut ssh, outcome, &signals);
            if let Some(half) = &far_half {
                half.fetch(own, &args.options, &args.destination);
            }
            finished
        }
        Met::SshEnded(status) => before_meeting(own, &args, status),
    });
    if result.is_err() {
        ssh.end(SSH_PATIENCE);
    }
    result
}

/// What a session begins with.
struct Begin<'a> {
    own: &'a OwnFlags,
    args: &'a SshArgs,
    /// Of the trace, if there is to be one.
    far_half: Option<&'a FarHalf>,
}

/// Starts ssh, a second time if this program has to be copied first, and waits for the other side.
fn reach(
    begin: &Begin<'_>,
    install: bool,
    listener: &Listener,
    signals: &Signals,
) -> Result<(Program, Result<Met, Error>), Error> {
    let remote_socket = format!("/tmp/wayferry-{}.sock", random_name());
    let attempt = || {
        let mut ssh = start_ssh(begin, listener, &remote_socket)?;
        let met = meet(&mut ssh, listener, signals);
        Ok((ssh, met))
    };
    let first: (Program, Result<Met, Error>) = attempt()?;
    if !install || !matches!(first.1, Ok(Met::SshEnded(MISSING))) {
        return Ok(first);
    }
    install::install(begin.own, &begin.args.options, &begin.args.destination)?;
    attempt()
}

/// Starts a session without a display; ssh prints its name.
fn detached(own: &OwnFlags, args: &SshArgs, install: bool, signals: &Signals) -> Result<u8, Error> {
    let attempt = || -> Result<u8, SessionError> {
        let mut command = Command::new(own.reach.ssh());
        command
            .args(&args.options)
            .arg("--")
            .arg(&args.destination)
            .arg(remote_command(own, args, None, None));
        let program = own.reach.ssh().to_string_lossy().into_owned();
        let child = command.spawn().map_err(|source| SessionError::Program { program, source })?;
        let mut ssh = Program::watch(child, Place::Foreground)?;
        signals.wait_readable(&[ssh.as_fd()], None)?;
        Ok(ssh.status().map_or(255, exit_code))
    };
    let mut status: u8 = attempt()?;
    if install && status == MISSING {
        install::install(own, &args.options, &args.destination)?;
        status = attempt()?;
    }
    if status == 0 { Ok(0) } else { before_meeting(own, args, status) }
}

/// What the end of the session means.
fn finish(ssh: &mut Program, outcome: Result<Outcome, SessionError>, signals: &Signals) -> Result<u8, Error> {
    match outcome {
        Ok(Outcome::Exit(code)) => {
            // What the program has written last may still be on its way through ssh.
            ended_soon(ssh, signals)?;
            Ok(code)
        }
        Ok(Outcome::HostLeft) => {
            tell(&OwnEvent::SessionLeft);
            Ok(0)
        }
        Ok(Outcome::Stopped) => Ok(0),
        Ok(Outcome::ConnectionEnded(end)) => Err(SessionError::Compositor(end.to_string()).into()),
        // Most likely the other wayferry failed and has said why on stderr, which ssh has passed on.
        Err(error @ SessionError::Bootstrap(_)) => match ended_soon(ssh, signals)? {
            Some(status) if status != 255 && status != 0 => Ok(status),
            _ => Err(error.into()),
        },
        // The program may have ended while nothing else came through: its launcher says so by its own end.
        Err(error @ (SessionError::NoSession(_) | SessionError::Lost(_))) => {
            match ended_soon(ssh, signals)? {
                Some(status) if status != 255 => Ok(status),
                _ => Err(error.into()),
            }
        }
        Err(error) => Err(error.into()),
    }
}

/// How the wait for the other side ended.
enum Met {
    /// It is there, behind this socket.
    Socket(OwnedFd),
    /// ssh ended instead, with this status.
    SshEnded(u8),
}

fn start_ssh(begin: &Begin<'_>, listener: &Listener, remote_socket: &str) -> Result<Program, SessionError> {
    let Begin { own, args, far_half } = begin;
    let mut command = Command::new(own.reach.ssh());
    let mut forward = OsString::from(format!("{remote_socket}:"));
    forward.push(listener.path());
    command.args(&args.options).arg("-R").arg(forward);
    let shell = args.command.is_empty();
    if shell && args.force_tty == 0 && !args.no_tty && std::io::IsTerminal::is_terminal(&std::io::stdin()) {
        // ssh gives a shell a terminal by itself, but for ssh we are a command.
        command.arg("-t");
    }
    command.arg("--").arg(&args.destination).arg(remote_command(own, args, Some(remote_socket), *far_half));
    let program = own.reach.ssh().to_string_lossy().into_owned();
    let child = command.spawn().map_err(|source| SessionError::Program { program, source })?;
    Program::watch(child, Place::Foreground)
}

/// What ssh runs on the other machine.
fn remote_command(
    own: &OwnFlags,
    args: &SshArgs,
    remote_socket: Option<&str>,
    far_half: Option<&FarHalf>,
) -> String {
    let mut words = remote_options(own);
    words.extend(far_half.map(FarHalf::option));
    words.push(match args.command_line() {
        Some(line) => format!("--shell-line={line}"),
        None => "--login-shell".into(),
    });
    remote::host_line(own, remote_socket, &words)
}

/// The own options that concern the other side.
pub(crate) fn remote_options(own: &OwnFlags) -> Vec<String> {
    let mut words = Vec::new();
    if let Some(name) = &own.begin.name {
        words.push(format!("--name={name}"));
    }
    if own.begin.detached {
        words.push("--detached".into());
    }
    if let Some(linger) = own.begin.linger {
        words.push(format!("--linger={}", linger.as_secs_f64()));
    }
    if let Some(display) = &own.begin.display {
        words.push(format!("--display={display}"));
    }
    words.extend(own.side.allow.iter().map(|name| format!("--allow={name}")));
    words.extend(own.begin.deny.iter().map(|name| format!("--deny={name}")));
    match own.begin.pixels.compress {
        Some(Compress::None) => words.push("--compress=none".into()),
        Some(Compress::Lz4) => words.push("--compress=lz4".into()),
        Some(Compress::Zstd(level)) => words.push(format!("--compress=zstd={level}")),
        None => {}
    }
    if own.begin.pixels.lossless {
        words.push("--lossless".into());
    }
    if let Some(quality) = own.begin.pixels.quality {
        words.push(format!("--quality={quality}"));
    }
    if let Some(threads) = own.begin.pixels.threads {
        words.push(format!("--threads={threads}"));
    }
    if let Some(ports) = &own.begin.port {
        words.push(format!("--port={}-{}", ports.start(), ports.end()));
    }
    if let Some(silence) = own.side.silence {
        words.push(format!("--silence={}", silence.as_secs_f64()));
    }
    if own.side.files == Some(Switch::Off) {
        words.push("--files=off".into());
    }
    // Programs record through the same sound server.
    if own.side.audio == Some(Audio::Off) && !own.show.microphone {
        words.push("--audio=off".into());
    }
    if let Some(mode) = own.side.audio_mode {
        words.push(format!("--audio-mode={}", mode.name()));
    }
    if own.side.notifications == Some(Switch::Off) {
        words.push("--notifications=off".into());
    }
    if own.side.tray == Some(Switch::Off) {
        words.push("--tray=off".into());
    }
    if own.begin.share_audio {
        words.push("--share-audio".into());
    }
    if let Some(encoder) = &own.begin.pixels.encoder {
        words.push(format!("--encoder={encoder}"));
    }
    if let Some(gpu) = &own.begin.pixels.gpu {
        words.push(format!("--gpu={gpu}"));
    }
    if own.begin.oneshot {
        words.push("--oneshot".into());
    }
    match own.begin.xwayland {
        // As it was called when there was one way.
        Some(How::Satellite) => words.push("--xwayland".into()),
        Some(how @ How::Rootful) => words.push(format!("--xwayland={how}")),
        None => {}
    }
    words
}

/// Waits until the other side has come through ssh, as long as ssh takes: it may be asking for a password.
fn meet(ssh: &mut Program, listener: &Listener, signals: &Signals) -> Result<Met, Error> {
    let (clock, mut tell_at) = (Clock::start(), FIRST_WAIT);
    loop {
        let accepted = listener
            .accept()
            .map_err(|source| SessionError::System { doing: "accepting ssh's connection", source })?;
        if let Some(socket) = accepted {
            return Ok(Met::Socket(socket));
        }
        if let Some(status) = ssh.status() {
            return Ok(Met::SshEnded(exit_code(status)));
        }
        let waited = clock.now().since_start();
        if waited >= tell_at {
            tell_at *= 2;
            if !is_asking() {
                notice(&format!("still waiting for ssh ({} s)", waited.as_secs()));
            }
        }
        signals.wait_readable(&[listener.as_fd(), ssh.as_fd()], Some(tell_at.saturating_sub(waited)))?;
    }
}

/// Whether ssh is asking the user for a secret: it has turned the terminal's echo off, and whom it keeps waiting is the
/// user.
fn is_asking() -> bool {
    let terminal = std::fs::File::open("/dev/tty").ok();
    let modes = terminal.and_then(|terminal| rustix::termios::tcgetattr(terminal).ok());
    modes.is_some_and(|modes| !modes.local_modes.contains(rustix::termios::LocalModes::ECHO))
}

/// ssh ended before the two sides met.
fn before_meeting(own: &OwnFlags, args: &SshArgs, status: u8) -> Result<u8, Error> {
    match status {
        MISSING => {
            let destination = args.destination.to_string_lossy();
            Err(remote::missing(own, &destination, &args.again()))
        }
        BROKEN => Err(remote::broken(own, &args.destination.to_string_lossy())),
        64 => {
            let version = format!("wayferry version {}", args.destination.to_string_lossy());
            notice(&format!("the wayferry there may be of another version; `{version}` tells"));
            Ok(status)
        }
        // The other wayferry has said on stderr what is wrong.
        65..=127 => Ok(status),
        status => Err(Error::Ssh { status }),
    }
}

/// The ssh that meets a session again: it must not ask anybody for anything.
pub(crate) fn ssh_again(
    own: &OwnFlags,
    options: &[OsString],
    host: &OsStr,
    name: &str,
    view: bool,
) -> Vec<OsString> {
    let mut words = vec![own.reach.ssh(), "-oBatchMode=yes".into()];
    words.extend(options.iter().cloned());
    let mut meet = vec!["meet".to_owned()];
    meet.extend(view.then(|| "--view".to_owned()));
    meet.push(name.to_owned());
    let line = remote::plain_line(own, &meet);
    words.extend(["-T".into(), "--".into(), host.to_owned(), line.into()]);
    words
}

/// Looks up where the host's port may be reached as ssh resolves its name.
fn lookup(own: &OwnFlags, args: &SshArgs) -> Lookup {
    let command = configuration(own, &args.options, &args.destination);
    Box::new(move |port| addresses(command, port))
}

/// The command that prints what ssh's configuration files say of a host.
pub(crate) fn configuration(own: &OwnFlags, options: &[OsString], host: &OsStr) -> Command {
    let mut command = Command::new(own.reach.ssh());
    command.arg("-G").args(options).arg("--").arg(host);
    command
}

/// Where ssh would reach a port of the host of this [`configuration`]; it waits for ssh and for name servers.
pub(crate) fn addresses(configuration: Command, port: u16) -> Vec<SocketAddr> {
    let Some(name) = ssh_host_name(configuration) else { return Vec::new() };
    (name.as_str(), port).to_socket_addrs().map(Iterator::collect).unwrap_or_default()
}

/// The name that ssh connects to, after its configuration files; none when it goes through a jump host or a proxy,
/// whose far end our UDP cannot use.
fn ssh_host_name(mut command: Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    host_name(&String::from_utf8_lossy(&output.stdout))
}

fn host_name(configuration: &str) -> Option<String> {
    let value = |key: &str| {
        configuration.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')).map(str::trim)
    };
    let direct = |key: &str| value(key).is_none_or(|value| value == "none");
    (direct("proxyjump") && direct("proxycommand")).then(|| value("hostname").map(str::to_owned))?
}

/// ssh's status if it ends within a moment.
fn ended_soon(ssh: &mut Program, signals: &Signals) -> Result<Option<u8>, Error> {
    signals.wait_readable(&[ssh.as_fd()], Some(SSH_PATIENCE))?;
    Ok(ssh.status().map(exit_code))
}

/// When a user is told first that ssh has not come through yet; each time after that is twice the one before.
const FIRST_WAIT: Duration = Duration::from_secs(5);
/// How long ssh may take to end when it has no more to do.
const SSH_PATIENCE: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_name_is_ssh_s_unless_there_is_a_proxy() {
        assert_eq!(host_name("user u\nhostname h.example\nport 22\n").as_deref(), Some("h.example"));
        assert_eq!(host_name("hostname h\nproxyjump none\n").as_deref(), Some("h"));
        assert_eq!(host_name("hostname h\nproxyjump gate\n"), None);
        assert_eq!(host_name("hostname h\nproxycommand nc %h %p\n"), None);
        assert_eq!(host_name(""), None);
    }

    #[test]
    fn a_missing_program_is_not_a_missing_wayferry() {
        let own = OwnFlags::default();
        let args = SshArgs::parse(&["host".into()]).expect("parses");
        assert_eq!(before_meeting(&own, &args, MISSING).expect_err("missing").code(), 72);
        assert_eq!(before_meeting(&own, &args, 127).expect("its own words are said"), 127);
    }
}
