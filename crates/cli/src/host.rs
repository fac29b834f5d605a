//! `wayferry host`: the app side of a session.
//!
//! With `--listen` it prints a ticket, or writes it to a file, and waits for the display that comes with it. What
//! `wayferry ssh` and `wayferry through` start on the other machine is a *launcher* ([`crate::launcher`]) that starts
//! the session as a process of its own, which outlives the launcher. Either way the programs start when a display is
//! there, and displays may come and go until the session is over. Invariant: sockets, directories and processes are
//! gone when it returns.

use std::ffi::OsString;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::OFlags;
use wayferry_net::{Admitted, Peers};
use wayferry_proto::admission::Role;
use wayferry_proto::{Capabilities, Config, Secret, SessionId, Side, Time};
use wayferry_wayland::snapshot::{Mode, Output, Snapshot};

use crate::error::{Error, SessionError};
use crate::flags::{Gpu, HostFlags, OwnFlags, Switch};
use crate::launcher;
use crate::open_url;
use crate::screen;
use crate::session::{options, settings, trace_file};
use crate::session_bus;
use crate::tell::{self, notice};
use crate::ticket_file::TicketFile;
use crate::transfer;
use crate::trust;
use crate::user_dirs;
use wayferry_host::GpuHow;
use wayferry_host::admission::Admission;
use wayferry_host::app_side::{AppSide, AppSideConfig, Displays, Outcome, Start, environment};
use wayferry_host::carriers;
use wayferry_host::clock::Clock;
use wayferry_host::control::Notice;
use wayferry_host::control_server::{ControlServer, TICKET_LIFE};
use wayferry_host::edge::offer::Offer;
use wayferry_host::edge::outlets::Outlets;
use wayferry_host::edge::programs::{Environment, Launch, Place};
use wayferry_host::edge::signals::Signals;
use wayferry_host::edge::socket::{Listener, RuntimeDir, random_bytes};
use wayferry_host::edge::xwayland::Bridge;
use wayferry_host::event::SessionEvent;
use wayferry_host::files::Files;
use wayferry_host::notes::bus::Bus;
use wayferry_host::sessions::{self, Named};
use wayferry_host::sound::{Audio, SoundServer};
use wayferry_host::trace::Half;
use wayferry_host::tray::watcher::Watcher;
use wayferry_wayland::encoder;

/// Runs a host; gives the exit code.
pub(crate) fn run(own: &OwnFlags, host: &HostFlags) -> Result<u8, Error> {
    match (&host.bootstrap, host.listen) {
        (Some(socket), _) => launcher::bootstrapped(own, host, socket),
        (None, _) if host.trunk => launcher::on_trunk(own, host),
        (None, _) if host.stdio => launcher::on_stdio(own, host),
        (None, _) if host.serve => serving(own, host),
        (None, Some(address)) => listening(own, host, address),
        (None, None) => Err(Error::usage("`--listen ADDR:PORT` is missing")),
    }
}

/// What the session's program is.
pub(crate) fn launch(own: &OwnFlags, host: &HostFlags) -> Launch {
    if own.begin.screen {
        return screen::launch(host);
    }
    match (&host.shell_line, host.command.is_empty()) {
        (Some(line), _) => Launch::ShellLine(line.clone()),
        (None, false) => Launch::Command(host.command.clone()),
        (None, true) => Launch::Shell { login: host.login_shell },
    }
}

fn name(own: &OwnFlags, host: &HostFlags) -> Result<Named, SessionError> {
    if let Some(name) = &own.begin.name {
        return Named::claim(name, true);
    }
    let none = || own.begin.screen.then(|| OsString::from(sessions::SCREEN));
    let program =
        host.shell_line.as_ref().map(OsString::from).or_else(|| host.command.first().cloned()).or_else(none);
    Named::claim(&sessions::name_of(program.as_deref()), false)
}

/// With a ticket.
fn listening(own: &OwnFlags, host: &HostFlags, address: SocketAddr) -> Result<u8, Error> {
    let (signals, reporter) = (Signals::new()?, tell::reporter());
    let clock = Clock::start();
    let trace = trace_file(own, Some(Half::App))?;
    let dir = RuntimeDir::new()?;
    let programs = Listener::new(&dir, own.begin.display.as_deref())?;
    let mut named = name(own, host)?;
    let mut start = start(own, launch(own, host), &programs, &dir, &mut named)?;
    let sound = sound(own, &clock, &mut start.environment);
    let bus = bus(own, &start.environment);
    let identity = trust::host_identity(host)?;
    let listener = carriers::listen(
        &options(own),
        address,
        own.begin.port.clone(),
        &identity,
        Peers::Secret,
        &reporter,
    )?;
    let mut admission = Admission::new(
        Some(listener),
        identity.fingerprint(),
        config(own, &clock, Switch::Off),
        reporter.clone(),
    );
    let expires = host.expire.map(|patience| clock.now() + patience);
    let until = host.good_for.map(|life| clock.now() + life).or(expires);
    let until = until.unwrap_or(clock.now() + TICKET_LIFE);
    let ticket = admission.ticket(Role::Active, Secret::from(random_bytes::<32>()), until);
    if address.ip().is_unspecified() && ticket.addresses.iter().all(|address| address.ip().is_loopback()) {
        notice(
            "the ticket names this machine's loopback device alone, for no other network is up; with another way here, `attach --via HOST:PORT` takes it",
        );
    }
    let _file = match &host.ticket_file {
        Some(path) => Some(TicketFile::write(path, &ticket.to_string())?),
        None => print_line(&ticket.to_string()).map(|()| None)?,
    };
    let files = files(own, named.name(), Switch::Off);
    let bus = offer_bus(bus, &mut start.environment);
    let tray = tray(own, bus.as_ref());
    let side = app_side(own, clock, expires)
        .with_files(files)
        .with_notifications(bus)
        .with_tray(tray)
        .with_sound(sound, own.side.audio_mode.unwrap_or_default(), own.begin.share_audio)
        .with_trace(trace)
        .with_signals(&signals)
        .with_listener(programs)
        .with_offer(Offer::new(Side::App, &reporter))
        .with_control_server(ControlServer::new(named, admission, reporter.clone()));
    finish(&begin(side.with_program(start), own).run()?)
}

/// For a launcher, which is the other end of stdin, and for displays that come later.
fn serving(own: &OwnFlags, host: &HostFlags) -> Result<u8, Error> {
    // The launcher's terminal may go; its signals are not ours any more. Fails where that is so already.
    let _ = rustix::process::setsid();
    let system = |doing| move |source| SessionError::System { doing, source };
    let owner = std::io::stdin().as_fd().try_clone_to_owned().map_err(system("dup"))?;
    let (signals, reporter) = (Signals::new()?, tell::reporter());
    let clock = Clock::start();
    let trace = trace_file(own, Some(Half::App))?;
    let mut named = name(own, host)?;
    let dir = RuntimeDir::new()?;
    let programs = match &own.begin.display {
        Some(name) => Listener::new(&dir, Some(name))?,
        // XDG_RUNTIME_DIR goes when its user logs out.
        None => Listener::unlocked(named.wayland())?,
    };
    let mut start = start(own, launch(own, host), &programs, &dir, &mut named)?;
    offer_agent(&named, &mut start.environment);
    let sound = sound(own, &clock, &mut start.environment);
    let bus = bus(own, &start.environment);
    let identity = carriers::identity()?;
    let any: IpAddr = if ssh_server_address().is_ipv6() {
        Ipv6Addr::UNSPECIFIED.into()
    } else {
        Ipv4Addr::UNSPECIFIED.into()
    };
    let admitted = Admitted::new();
    let peers = Peers::Listed(admitted.clone());
    let listener = match carriers::listen(
        &options(own),
        SocketAddr::new(any, 0),
        own.begin.port.clone(),
        &identity,
        peers,
        &reporter,
    ) {
        Ok(listener) => Some(listener),
        Err(error) => {
            reporter.report(SessionEvent::NoQuic { reason: error.to_string() });
            None
        }
    };
    let files = files(own, named.name(), Switch::On);
    let admission =
        Admission::new(listener, identity.fingerprint(), config(own, &clock, Switch::On), reporter.clone())
            .with_list(admitted);
    let bus = offer_bus(bus, &mut start.environment);
    let tray = tray(own, bus.as_ref());
    let ready = ready(named.name(), &start.environment)?;
    let (stdio, ends, outlets) = Outlets::new().map_err(system("making pipes"))?;
    let notes = launcher::hand_over(&owner, &ready, &ends)?;
    leave_stdio(&notes).map_err(system("leaving the terminal"))?;
    drop(ends);
    let side = app_side(own, clock, None)
        .with_files(files)
        .with_notifications(bus)
        .with_tray(tray)
        .with_sound(sound, own.side.audio_mode.unwrap_or_default(), own.begin.share_audio)
        .with_trace(trace)
        .with_signals(&signals)
        .with_listener(programs)
        .with_offer(Offer::new(Side::App, &reporter))
        .with_control_server(ControlServer::new(named, admission, reporter.clone()).with_owner(owner))
        .with_outlets(outlets);
    let side = begin(side, own);
    if host.terminal {
        return finish(&side.run()?);
    }
    start.stdio = Some(stdio);
    finish(&side.with_program(start).run()?)
}

/// Has programs open addresses at the display; a session does without where that cannot be.
fn offer_urls(named: &mut Named, environment: &mut Environment) {
    if let Err(error) = open_url::offer(named, environment) {
        notice(&format!("programs open addresses on this machine: {error}"));
    }
}

/// What keeps the display's files here, and gives it those that it asks for, if the user lets them cross; a session
/// does without where that cannot be.
fn files(own: &OwnFlags, session: &str, usual: Switch) -> Option<Files> {
    let place = transfer::place(session).filter(|_| own.side.files.unwrap_or(usual) == Switch::On)?;
    Files::new(place, user_dirs::home()).ok()
}

/// Has programs find the ssh agent that came with the latest display at a place that stays, if one has come with this.
fn offer_agent(named: &Named, environment: &mut Environment) {
    let Some(agent) = std::env::var_os(AGENT) else { return };
    if named.point_agent(Path::new(&agent)).is_ok() {
        environment.set.push((AGENT.into(), named.agent().into()));
    }
}

/// Where programs look for an ssh agent.
pub(crate) const AGENT: &str = "SSH_AUTH_SOCK";

/// Does not wait for a display if there is none to be.
fn begin<'a>(side: AppSide<'a>, own: &OwnFlags) -> AppSide<'a> {
    if own.begin.detached { side.with_desk(bare_desk()) } else { side }
}

/// What programs see before there has been any display.
fn bare_desk() -> Snapshot {
    let mode = Mode { flags: 3, width: 1920, height: 1080, refresh: 60_000 };
    let output = Output {
        global: 1,
        scale: 1,
        logical: (0, 0, 1920, 1080),
        name: "wayferry".into(),
        modes: vec![mode],
        ..Output::default()
    };
    Snapshot { outputs: vec![output], ..Snapshot::default() }
}

/// The session's sound server, unless none is wanted. Without one, programs do what they do where there is none.
fn sound(own: &OwnFlags, clock: &Clock, environment: &mut Environment) -> Option<SoundServer> {
    if own.side.audio == Some(Audio::Off) {
        return None;
    }
    let server = SoundServer::start(*clock).inspect_err(|error| {
        tell::reporter().report(SessionEvent::NoSound { reason: error.to_string() });
    });
    let server = server.ok()?;
    server.announce(environment);
    Some(server)
}

/// Begins to start the session's bus, unless none is wanted; what the bus starts finds this environment.
fn bus(own: &OwnFlags, environment: &Environment) -> Option<Bus> {
    if own.side.notifications == Some(Switch::Off) {
        return None;
    }
    let bus =
        session_bus::command().map(|command| Bus::start(command, environment).map_err(|it| it.to_string()));
    without(bus?)
}

/// Has programs find the bus once it is there. Where it cannot be, they find what they would have found without.
fn offer_bus(bus: Option<Bus>, environment: &mut Environment) -> Option<Bus> {
    let bus = without(bus?.there())?;
    bus.announce(environment);
    Some(bus)
}

/// Has programs find a tray on that bus, unless none is wanted.
fn tray(own: &OwnFlags, bus: Option<&Bus>) -> Option<Watcher> {
    let bus = bus.filter(|_| own.side.tray != Some(Switch::Off))?;
    let watcher = Watcher::start(bus.address()).map_err(|error| error.to_string()).and_then(Watcher::there);
    watcher
        .inspect_err(|reason| tell::reporter().report(SessionEvent::NoTray { reason: reason.clone() }))
        .ok()
}

/// Programs can do without a bus.
fn without(bus: Result<Bus, String>) -> Option<Bus> {
    bus.inspect_err(|reason| {
        tell::reporter().report(SessionEvent::NoNotifications { reason: reason.clone() })
    })
    .ok()
}

/// What this side says of itself; whether files cross where the user has not said it is `files`.
fn config(own: &OwnFlags, clock: &Clock, files: Switch) -> Config {
    let mut config = settings(own).session(Side::App, clock);
    config.capabilities = config.capabilities.with(Capabilities::RESUME).with(Capabilities::VIEW);
    config.capabilities = config.capabilities.with(Capabilities::OPEN_URL).with(Capabilities::ECHO);
    if own.side.files.unwrap_or(files) == Switch::On {
        config.capabilities = config.capabilities.with(Capabilities::FILES).with(Capabilities::FILE_PLACES);
    }
    if own.side.notifications != Some(Switch::Off) {
        config.capabilities = config.capabilities.with(Capabilities::NOTIFY);
    }
    if own.side.tray != Some(Switch::Off) {
        config.capabilities = config.capabilities.with(Capabilities::TRAY);
    }
    if own.side.audio != Some(Audio::Off) {
        config.capabilities = config.capabilities.with(Capabilities::SOUND).with(Capabilities::MICROPHONE);
        if own.begin.share_audio {
            config.capabilities = config.capabilities.with(Capabilities::SHARED_SOUND);
        }
    }
    config.session = SessionId(random_bytes());
    config
}

/// What the launcher is told of a session that is there.
fn ready(name: &str, environment: &Environment) -> Result<Vec<Notice>, Error> {
    let text = |value: &OsString| {
        let text = value.to_str().filter(|text| !text.contains('\n'));
        text.map(str::to_owned).ok_or_else(|| Error::usage(format!("cannot use the name {value:?}")))
    };
    let set = environment.set.iter().map(|(name, value)| Ok(Notice::Set(text(name)?, text(value)?)));
    let mut notices = set.collect::<Result<Vec<_>, Error>>()?;
    let unset = environment.unset.iter().map(|name| Ok(Notice::Unset(text(name)?)));
    notices.extend(unset.collect::<Result<Vec<_>, Error>>()?);
    notices.push(Notice::Ready(name.to_owned()));
    Ok(notices)
}

/// Lets go of the launcher's terminal or pipes; what is to be told to the user goes to `notes`.
fn leave_stdio(notes: &OwnedFd) -> std::io::Result<()> {
    let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, rustix::fs::Mode::empty())?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(notes)?;
    Ok(())
}

fn app_side<'a>(own: &OwnFlags, clock: Clock, expires: Option<Time>) -> AppSide<'a> {
    let config = AppSideConfig {
        core: settings(own).programs(&clock),
        compress: own.begin.pixels.compress.unwrap_or_default(),
        oneshot: own.begin.oneshot,
        stats: own.side.stats,
    };
    let displays = Displays::following(own.begin.linger, expires, clock.now());
    let gpu = own.begin.pixels.gpu.clone().unwrap_or(Gpu(Some(GpuHow::Auto)));
    let reader = gpu.0.as_ref().and_then(GpuHow::command);
    AppSide::new(config, clock, displays, tell::reporter())
        .with_recordings(own.begin.record.clone())
        .with_gpu(reader, matches!(gpu.0, Some(GpuHow::Node(_))))
}

fn start(
    own: &OwnFlags,
    launch: Launch,
    programs: &Listener,
    dir: &RuntimeDir,
    named: &mut Named,
) -> Result<Start, Error> {
    let bridge = own.begin.xwayland.map(Bridge::find).transpose()?;
    let mut environment = environment(programs, dir);
    offer_urls(named, &mut environment);
    launch.check(&environment)?;
    if !encoder::choose(own.begin.pixels.encoder.as_deref()) {
        let name = own.begin.pixels.encoder.as_deref().unwrap_or_default();
        return Err(Error::usage(format!("no encoder is called {name} in this build")));
    }
    if let Some(bridge) = &bridge {
        let note = bridge.note().into_iter();
        note.for_each(|reason| tell::reporter().report(SessionEvent::Xwayland { reason }));
        environment.unset.retain(|name| name != "DISPLAY");
        environment.set.push(("DISPLAY".into(), bridge.display()));
    }
    Ok(Start { launch, environment, place: Place::OwnGroup, stdio: None, bridge })
}

fn finish(outcome: &Outcome) -> Result<u8, Error> {
    match outcome {
        Outcome::Exit(code) => Ok(*code),
        Outcome::DisplayLeft => {
            tell::reporter().report(SessionEvent::DisplayEnded);
            Ok(0)
        }
        Outcome::ConnectionEnded(_) => Ok(0),
    }
}

fn print_line(text: &str) -> Result<(), SessionError> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).map_err(tell::no_room_in_stdout)
}

/// The address at which ssh reached this machine.
pub(crate) fn ssh_server_address() -> IpAddr {
    let connection = std::env::var("SSH_CONNECTION").unwrap_or_default();
    // "client-address client-port server-address server-port"
    let server = connection.split(' ').nth(2).and_then(|address| address.parse().ok());
    server.unwrap_or(Ipv4Addr::UNSPECIFIED.into())
}
