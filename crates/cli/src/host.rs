//! `wayferry host`: the app side of a session.
//!
//! With `--listen` it prints a ticket and waits for the display that comes with it; with `--bootstrap` it was started by
//! `wayferry ssh` and meets its display through ssh (see [`crate::bootstrap`]). Either way the programs start when the
//! display is there. Invariant: sockets, directories and processes are gone when it returns.

use std::ffi::OsString;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::event::PollFlags;
use wayferry_net::quic::Listener as QuicListener;
use wayferry_net::{Peers, Ticket};
use wayferry_proto::{Secret, Session, SessionId, Side};

use crate::bootstrap::{Choice, Line, hear, say};
use crate::door::Door;
use crate::error::Error;
use crate::flags::{HostFlags, OwnFlags};
use crate::notice::notice;
use crate::quic;
use crate::run::Clock;
use crate::run::app_side::{AppSide, AppSideConfig, Outcome, Start};
use crate::run::link::Link;
use crate::run::offer::Offer;
use crate::run::programs::{Environment, Launch, Place};
use crate::run::signals::Signals;
use crate::run::socket::{self, Listener, RuntimeDir, random_bytes};
use crate::run::wait::Interests;
use crate::run::xwayland::Satellite;
use crate::session::{app_core, session_config, trace_file};
use crate::trace::Half;

/// Runs a host; gives the exit code.
pub(crate) fn run(own: &OwnFlags, host: &HostFlags) -> Result<u8, Error> {
    let launch = launch(own, host);
    match (&host.bootstrap, host.listen) {
        (Some(socket), _) => bootstrapped(own, socket, launch),
        (None, Some(address)) => listening(own, host, address, launch),
        (None, None) => Err(Error::Usage("`--listen ADDR:PORT` is missing".into())),
    }
}

fn launch(own: &OwnFlags, host: &HostFlags) -> Launch {
    match (&host.shell_line, host.command.is_empty()) {
        (Some(line), _) => Launch::ShellLine(line.clone()),
        (None, false) => Launch::Command(host.command.clone()),
        (None, true) => Launch::Shell { login: own.login_shell },
    }
}

/// With a ticket.
fn listening(own: &OwnFlags, host: &HostFlags, address: SocketAddr, launch: Launch) -> Result<u8, Error> {
    let signals = Signals::new()?;
    let clock = Clock::start();
    let trace = trace_file(own, Some(Half::App))?;
    let dir = RuntimeDir::new()?;
    let programs = Listener::new(&dir, own.display.as_deref())?;
    let start = start(own, launch, &programs, &dir, Place::OwnGroup)?;
    let identity = quic::identity()?;
    let listener = quic::listen(own, address, &identity, Peers::Secret)?;
    let ticket = Ticket {
        addresses: reachable(listener.local_addr()),
        fingerprint: identity.fingerprint(),
        secret: Secret::from(random_bytes::<32>()),
        session: SessionId(random_bytes()),
    };
    print_line(&ticket.to_string())?;
    let mut config = session_config(Side::App, own, &clock);
    config.accepted_secrets = vec![ticket.secret];
    config.session = ticket.session;
    let mut door = Door::new(listener, config);
    let expires = host.expire.map(|patience| clock.now() + patience);
    let link = door.admit(&clock, expires, &signals)?;
    door.close();
    let side = app_side(own, clock, link)
        .with_trace(trace)
        .with_signals(&signals)
        .with_listener(programs)
        .with_offer(Offer::new(Side::App))
        .with_door(door);
    finish(&side.with_program(start).run()?)
}

/// Through ssh.
fn bootstrapped(own: &OwnFlags, path: &Path, launch: Launch) -> Result<u8, Error> {
    let signals = Signals::new()?;
    let clock = Clock::start();
    let trace = trace_file(own, Some(Half::App))?;
    let reached = socket::connect(path);
    // sshd leaves the file behind.
    let _ = std::fs::remove_file(path);
    let bootstrap = reached.map_err(|error| {
        Error::Bootstrap(format!("ssh forwarded no socket to `{}`: {error}", path.display()))
    })?;
    let dir = RuntimeDir::new()?;
    let programs = Listener::new(&dir, own.display.as_deref())?;
    let start = start(own, launch, &programs, &dir, Place::Foreground)?;
    let secret = Secret::from(random_bytes::<32>());
    let mut config = session_config(Side::App, own, &clock);
    config.accepted_secrets = vec![secret];
    config.session = SessionId(random_bytes());
    let carrier = meet(own, &clock, &signals, &bootstrap, secret, config.session)?;
    config.start = clock.now();
    let link = Link::new(Session::new(config), carrier);
    finish(
        &app_side(own, clock, link)
            .with_trace(trace)
            .with_signals(&signals)
            .with_listener(programs)
            .with_offer(Offer::new(Side::App))
            .with_program(start)
            .run()?,
    )
}

/// Exchanges fingerprints with the display and takes the carrier on which both agree.
fn meet(
    own: &OwnFlags,
    clock: &Clock,
    signals: &Signals,
    bootstrap: &OwnedFd,
    secret: Secret,
    session: SessionId,
) -> Result<Box<dyn wayferry_net::Carrier>, Error> {
    let heard = hear(bootstrap, clock, clock.now() + MEET_PATIENCE, signals)?;
    let Line::Greeting(fingerprint) = heard else { return Err(unexpected(&heard)) };
    let pinned = fingerprint.parse().map_err(|error| Error::Bootstrap(format!("{error}")))?;
    let identity = quic::identity()?;
    let address = SocketAddr::new(ssh_server_address(), 0);
    let mut listener = match quic::listen(own, address, &identity, Peers::Pinned(pinned)) {
        Ok(listener) => Some(listener),
        Err(error) => {
            notice(&format!("no QUIC: {error}"));
            None
        }
    };
    let addresses = match &listener {
        Some(listener) => reachable(listener.local_addr()),
        // Nobody answers at port 0: the display goes through ssh.
        None => vec![SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0)],
    };
    let ticket = Ticket { addresses, fingerprint: identity.fingerprint(), secret, session };
    say(bootstrap, &Line::Ticket(ticket.to_string()))?;
    match (hear(bootstrap, clock, clock.now() + MEET_PATIENCE, signals)?, &mut listener) {
        (Line::Choice(Choice::Quic), Some(listener)) => accept(listener, clock, signals),
        (Line::Choice(Choice::Stream), _) => {
            let socket = bootstrap.try_clone().map_err(|source| Error::System { doing: "dup", source })?;
            quic::byte_stream(socket)
        }
        (other, _) => Err(unexpected(&other)),
    }
}

fn unexpected(line: &Line) -> Error {
    Error::Bootstrap(format!("unexpected line `{}`", line.encode().trim_end()))
}

/// The connection of which the display has just said that it stands.
fn accept(
    listener: &mut QuicListener,
    clock: &Clock,
    signals: &Signals,
) -> Result<Box<dyn wayferry_net::Carrier>, Error> {
    let deadline = clock.now() + MEET_PATIENCE;
    loop {
        listener.clear_wake();
        if let Some(connected) = listener.poll_accept() {
            return Ok(connected.carrier);
        }
        let now = clock.now();
        if now >= deadline {
            return Err(Error::Lost("the display's connection did not arrive".into()));
        }
        let mut interests = Interests::new();
        interests.add(listener.wake_fd(), PollFlags::IN, ());
        interests.add(signals.as_fd(), PollFlags::IN, ());
        interests.wait(now, Some(deadline))?;
        signals.check()?;
    }
}

fn app_side<'a>(own: &OwnFlags, clock: Clock, link: Link) -> AppSide<'a> {
    let config = AppSideConfig {
        core: app_core(own, &clock),
        compress: own.compress.unwrap_or_default(),
        oneshot: own.oneshot,
        stats: own.stats,
    };
    AppSide::new(config, clock, link).with_recordings(own.record.clone())
}

fn start(
    own: &OwnFlags,
    launch: Launch,
    programs: &Listener,
    dir: &RuntimeDir,
    place: Place,
) -> Result<Start, Error> {
    let satellite = if own.xwayland { Some(Satellite::find()?) } else { None };
    let mut environment = environment(programs, dir);
    if let Some(satellite) = &satellite {
        environment.unset.retain(|name| *name != "DISPLAY");
        environment.set.push(("DISPLAY".into(), satellite.display()));
    }
    Ok(Start { launch, environment, place, satellite })
}

/// What programs of the session find in their environment.
pub(crate) fn environment(programs: &Listener, dir: &RuntimeDir) -> Environment {
    let mut set: Vec<(OsString, OsString)> = vec![
        ("WAYLAND_DISPLAY".into(), programs.name().clone()),
        // Under ssh it says `tty`, and toolkits then look for an X server.
        ("XDG_SESSION_TYPE".into(), "wayland".into()),
    ];
    if dir.is_private() {
        set.push(("XDG_RUNTIME_DIR".into(), dir.path().into()));
    }
    // An X server of this machine is not the one that the user looks at.
    Environment { set, unset: vec!["WAYLAND_SOCKET", "DISPLAY"] }
}

fn finish(outcome: &Outcome) -> Result<u8, Error> {
    match outcome {
        Outcome::Exit(code) => Ok(*code),
        Outcome::DisplayLeft => {
            notice("the display ended the session");
            Ok(0)
        }
        Outcome::ConnectionEnded(_) => Ok(0),
    }
}

fn print_line(text: &str) -> Result<(), Error> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}")
        .and_then(|()| out.flush())
        .map_err(|source| Error::System { doing: "writing to stdout", source })
}

/// Where a socket bound to `bound` can be reached from elsewhere.
fn reachable(bound: SocketAddr) -> Vec<SocketAddr> {
    if !bound.ip().is_unspecified() {
        return vec![bound];
    }
    // Connecting a UDP socket sends nothing but shows the address that the system would send from. The far addresses
    // are those set aside for documentation (RFC 5737, RFC 3849), so they are routed like any other.
    let far4 = (Ipv4Addr::UNSPECIFIED.into(), SocketAddr::from(([192, 0, 2, 1], 9)));
    let far6 = (Ipv6Addr::UNSPECIFIED.into(), SocketAddr::from(([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1], 9)));
    let mut addresses = Vec::new();
    for (any, far) in [far4, far6] {
        let any: IpAddr = any;
        if any.is_ipv6() && bound.is_ipv4() {
            continue;
        }
        let found = UdpSocket::bind((any, 0)).and_then(|socket| {
            socket.connect(far)?;
            socket.local_addr()
        });
        if let Ok(found) = found
            && !found.ip().is_unspecified()
        {
            addresses.push(SocketAddr::new(found.ip(), bound.port()));
        }
    }
    let loopback: IpAddr =
        if bound.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() };
    addresses.push(SocketAddr::new(loopback, bound.port()));
    addresses.dedup();
    addresses
}

/// The address at which ssh reached this machine, so that QUIC is answered from the same one.
fn ssh_server_address() -> IpAddr {
    let connection = std::env::var("SSH_CONNECTION").unwrap_or_default();
    // "client-address client-port server-address server-port"
    let server = connection.split(' ').nth(2).and_then(|address| address.parse().ok());
    server.unwrap_or(Ipv4Addr::UNSPECIFIED.into())
}

/// How long the display may take for each step of the meeting; its attempt at QUIC is one.
const MEET_PATIENCE: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_address_is_where_it_is_reached() {
        let bound = SocketAddr::from(([127, 0, 0, 1], 4433));
        assert_eq!(reachable(bound), [bound]);
    }

    #[test]
    fn an_unspecified_address_is_reached_at_real_ones() {
        let found = reachable(SocketAddr::from(([0, 0, 0, 0], 4433)));
        assert!(found.contains(&SocketAddr::from(([127, 0, 0, 1], 4433))), "{found:?}");
        assert!(
            found.iter().all(|address| !address.ip().is_unspecified() && address.port() == 4433),
            "{found:?}"
        );
    }
}
