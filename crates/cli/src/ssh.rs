//! `wayferry ssh`: a remote program's windows here, with ssh as the bootstrap.
//!
//! ssh runs `wayferry host` on the other machine with the user's command behind it. Its stdin and stdout carry the
//! bytes on which the two sides meet and what the command reads and writes, side by side ([`wayferry_proto::trunk`]).
//! Where the command may have a terminal, it keeps ssh's stdio, and ssh forwards a socket for the meeting. How the two
//! sides meet is in [`wayferry_host::bootstrap`]. The session begins on ssh, and moves to QUIC when that answers at the
//! addresses that ssh itself used. Invariant: ssh is reaped, and no socket of ours is left, before this returns.

pub(crate) mod args;
pub(crate) mod configuration;
pub(crate) mod failure;
pub(crate) mod far_half;
mod install;
mod quote;
mod reach;
mod stdio;

use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::process::Command;
use std::time::Duration;

use crate::error::{Error, SessionError};
use crate::flags::{OwnFlags, SshFlags, Switch};
use crate::leaving::Leaving;
use crate::remote::{self, BROKEN, MISSING, Road};
use crate::tell::{OwnEvent, notice, tell};
use crate::viewer::{Lookup, Meeting, Viewer};
use wayferry_host::display_side::Outcome;
use wayferry_host::edge::programs::{Place, Program, exit_code};
use wayferry_host::edge::signals::Signals;
use wayferry_host::edge::socket::{Listener, RuntimeDir};
use wayferry_host::edge::xwayland::How;
use wayferry_host::reconnect::Other;
use wayferry_host::settings::Compress;
use wayferry_host::sound::Audio;

use args::SshArgs;
use configuration::Asked;
use far_half::FarHalf;
pub(crate) use quote::quote;
use reach::{Begin, Met, reach};
use stdio::Output;

/// Runs `wayferry ssh`; gives the exit code.
pub(crate) fn run(own: &OwnFlags, flags: &SshFlags) -> Result<u8, Error> {
    let (mut args, install) = (SshArgs::parse(&flags.words)?, flags.install_remote);
    if own.begin.screen {
        args.need_no_shell();
    }
    let signals = Signals::new()?;
    if own.begin.detached && args.command.is_empty() && !own.begin.screen {
        return Err(Error::usage("`--detached` needs a command: a shell needs a user"));
    }
    if own.begin.detached {
        return detached(own, &args, install, &signals);
    }
    let asked = Asked::begin(configuration::question(own, &args.options, &args.destination));
    // The compositor first: without one there is no reason to ask for a password.
    let mut viewer = Viewer::new(own, &signals)?.of(&args.destination.to_string_lossy()).without_terminal();
    let dir = RuntimeDir::private()?;
    let listener = Listener::unlocked(dir.path().join("ssh"))?;
    let far_half = FarHalf::new(own)?;
    let configuration = asked.hear(&signals)?;
    let output = if configuration.keeps_stdio(&args) { None } else { Some(Output::new()?) };
    let mut begin = Begin {
        own,
        args: &args,
        far_half: far_half.as_ref(),
        listener: &listener,
        output: output.as_ref(),
        viewer: &mut viewer,
    };
    let (mut ssh, met) = reach(&mut begin, install, &signals)?;
    let result = met.and_then(|met| match met {
        Met::Socket(socket, begun) => {
            let leaving = Leaving::new(&args.options, &args.destination);
            let again = |name: String| {
                let place = leaving.met(&name, args.session_name(own).as_deref());
                let again = ssh_again(own, &args.options, &args.destination, &name, false);
                (Other::Command(again), Some(place))
            };
            let question = configuration::question(own, &args.options, &args.destination);
            let lookup: Lookup = Box::new(move |port| configuration.or_ask(question).addresses(port));
            let begun = begun.map(|begun| *begun);
            let meeting =
                Meeting { socket, begun, login: false, quic: Some(lookup), standby: Some(listener) };
            let outcome = viewer.meet(meeting, again);
            leaving.tell(&outcome);
            let finished = finish(&mut ssh, outcome, output.as_ref(), &signals);
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
    if let Some(output) = output.filter(|_| ssh.status().is_some()) {
        output.finish(&signals);
    }
    result
}

/// Starts a session without a display; ssh prints its name.
fn detached(own: &OwnFlags, args: &SshArgs, install: bool, signals: &Signals) -> Result<u8, Error> {
    let attempt = || -> Result<u8, SessionError> {
        let remote = remote_command(own, args, Road::Stdio, None);
        let mut command = Command::new(own.reach.ssh());
        command.args(&args.options).arg("--").arg(&args.destination).arg(remote);
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
fn finish(
    ssh: &mut Program,
    outcome: Result<Outcome, SessionError>,
    output: Option<&Output>,
    signals: &Signals,
) -> Result<u8, Error> {
    match outcome {
        Ok(Outcome::Exit(code)) => {
            // What the program has written last may still be on its way through ssh.
            ended_soon(ssh, output, signals)?;
            Ok(code)
        }
        Ok(Outcome::HostLeft) => {
            tell(&OwnEvent::SessionLeft);
            Ok(0)
        }
        Ok(Outcome::Stopped) => Ok(0),
        Ok(Outcome::ConnectionEnded(end)) => Err(SessionError::Compositor(end.to_string()).into()),
        // Most likely the other wayferry failed and has said why on stderr, which ssh has passed on.
        Err(error @ SessionError::Bootstrap(_)) => match ended_soon(ssh, output, signals)? {
            Some(status) if status != 255 && status != 0 => Ok(status),
            _ => Err(error.into()),
        },
        // The program may have ended while nothing else came through: its launcher says so by its own end.
        Err(error @ (SessionError::NoSession(_) | SessionError::Lost(_))) => {
            match ended_soon(ssh, output, signals)? {
                Some(status) if status != 255 => Ok(status),
                _ => Err(error.into()),
            }
        }
        Err(error) => Err(error.into()),
    }
}

/// What ssh runs on the other machine.
fn remote_command(own: &OwnFlags, args: &SshArgs, road: Road<'_>, far_half: Option<&FarHalf>) -> String {
    let mut words = remote_options(own);
    words.extend(far_half.map(FarHalf::option));
    words.push(match args.command_line() {
        Some(line) => format!("--shell-line={line}"),
        None => "--login-shell".into(),
    });
    remote::host_line(own, road, &words)
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
    if own.begin.screen {
        words.push("--screen".into());
    }
    match own.begin.xwayland {
        // As it was called when there was one way.
        Some(How::Satellite) => words.push("--xwayland".into()),
        Some(how @ How::Rootful) => words.push(format!("--xwayland={how}")),
        None => {}
    }
    words
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

/// ssh's status if it ends within a moment, or once it has brought what the program has written.
fn ended_soon(ssh: &mut Program, output: Option<&Output>, signals: &Signals) -> Result<Option<u8>, Error> {
    loop {
        let before = output.map(Output::beat);
        signals.wait_readable(&[ssh.as_fd()], Some(SSH_PATIENCE))?;
        let status = ssh.status().map(exit_code);
        let goes_on = output.zip(before).is_some_and(|(output, before)| output.goes_on(before));
        if status.is_some() || !goes_on {
            return Ok(status);
        }
    }
}

/// How long ssh may take to end when it has no more to do.
const SSH_PATIENCE: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_not_a_missing_wayferry() {
        let own = OwnFlags::default();
        let args = SshArgs::parse(&["host".into()]).expect("parses");
        assert_eq!(before_meeting(&own, &args, MISSING).expect_err("missing").code(), 72);
        assert_eq!(before_meeting(&own, &args, 127).expect("its own words are said"), 127);
    }
}
