//! The session's own bus, and the server of notifications on it.
//!
//! The bus is dbus-daemon's, where that is installed; programs find it in DBUS_SESSION_BUS_ADDRESS. What they notify
//! the user of comes to the loop as `Asked`, and what the desk says of it goes back as `Told`. Whether anything is
//! shown is not decided here. Invariant: the daemon ends with this value, and only this user reaches it.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{Mode, OFlags};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::Pid;
use wayferry_proto::{Note, NoteEnd};
use zbus::Connection;
use zbus::connection::Builder;

use super::{NAME, PATH};
use crate::edge::data_dirs::data_directories;
use crate::edge::programs::{Environment, Launch, Place, Program};
use crate::edge::socket::RuntimeDir;
use crate::error::Error;

mod server;

use self::server::Server;

/// What a program wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Asked {
    /// To notify the user.
    Note(Note),
    /// To take that back.
    Close(u32),
}

/// What a program is told of its notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Told {
    /// It is not shown any more.
    Closed(u32, NoteEnd),
    /// The user chose this action; with the token the program may come to the front.
    Action { id: u32, key: String, token: Option<String> },
}

/// See the module.
#[derive(Debug)]
pub struct Bus {
    daemon: Program,
    address: OsString,
    asked: Receiver<Asked>,
    told: SyncSender<Told>,
    wake: Arc<OwnedFd>,
    ready: Receiver<Result<(), String>>,
    // Dropped after the daemon, whose files are in it.
    _directory: RuntimeDir,
}

impl Bus {
    /// Starts the daemon with these words in front of the path of its configuration; what it starts by itself finds
    /// this environment. Programs may not use it before [`Bus::there`].
    ///
    /// # Errors
    /// There is no such program, or the system has no descriptors or threads left.
    pub fn start(mut command: Vec<OsString>, environment: &Environment) -> Result<Self, Error> {
        let fail = |source| Error::System { doing: "preparing a bus", source };
        let directory = RuntimeDir::private()?;
        let address = address(&directory.path().join("bus"));
        let configuration = directory.path().join("bus.conf");
        fs::write(&configuration, configure(&address, &services())).map_err(fail)?;
        command.push(configuration.into());
        let null = || rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
        let (reads, writes) = pipe_with(PipeFlags::CLOEXEC).map_err(|error| fail(error.into()))?;
        let stdio = [null(), Ok(writes), null()].map(|fd| fd.map_err(|error| fail(error.into())));
        let [stdin, stdout, stderr] = stdio;
        let (launch, own) = (Launch::Command(command), without_display(environment));
        let daemon = Program::start(&launch, &own, Place::OwnGroup, Some([stdin?, stdout?, stderr?]))?;
        let (ask, asked) = sync_channel(MAX_ASKED);
        let (told, tell) = sync_channel(MAX_TOLD);
        let (is_ready, ready) = channel();
        let eventfd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let wake = Arc::new(eventfd.map_err(|error| fail(error.into()))?);
        let server = Server::new(ask, Arc::clone(&wake));
        let display = environment.set.iter().find(|(name, _)| name == DISPLAY).cloned();
        let at = address.clone();
        let thread = std::thread::Builder::new().name("notes".into());
        let work = move || work(reads, &at, display, server, &is_ready, &tell);
        thread.spawn(work).map_err(fail)?;
        let address = address.into();
        Ok(Self { daemon, address, asked, told, wake, ready, _directory: directory })
    }

    /// Waits until programs may use it.
    ///
    /// # Errors
    /// Why they cannot, in words.
    pub fn there(self) -> Result<Self, String> {
        let ready = self.ready.recv_timeout(PATIENCE);
        ready.unwrap_or_else(|_| Err("the session's bus does not answer".into())).map(|()| self)
    }

    /// Tells programs where it is.
    pub fn announce(&self, environment: &mut Environment) {
        environment.set.push(("DBUS_SESSION_BUS_ADDRESS".into(), self.address.clone()));
    }

    /// Where it is, as programs read it.
    pub fn address(&self) -> String {
        self.address.to_string_lossy().into_owned()
    }

    /// The next thing that a program wants.
    pub(crate) fn poll(&self) -> Option<Asked> {
        self.asked.try_recv().ok()
    }

    /// Tells a program of its notification; not if many have not been told yet.
    pub(crate) fn tell(&self, told: Told) {
        let _ = self.told.try_send(told);
    }

    /// Ready when a program wants something.
    pub(crate) fn wake(&self) -> &OwnedFd {
        &self.wake
    }

    /// Looks again what there is.
    pub(crate) fn clear_wake(&self) {
        let _ = rustix::io::read(&*self.wake, &mut [0u8; 8]);
    }

    /// The daemon's process group, in which what it starts is too.
    pub(crate) fn group(&self) -> Option<Pid> {
        self.daemon.group()
    }

    /// The daemon's process.
    pub(crate) fn daemon(&mut self) -> &mut Program {
        &mut self.daemon
    }
}

#[cfg(test)]
impl Bus {
    /// Without a thread; what comes from programs and what they are told is the test's.
    pub(crate) fn alone() -> (Self, SyncSender<Asked>, Receiver<Told>) {
        let (ask, asked) = sync_channel(MAX_ASKED);
        let (told, tell) = sync_channel(MAX_TOLD);
        let launch = Launch::Command(vec!["sleep".into(), "1000".into()]);
        let daemon =
            Program::start(&launch, &Environment::default(), Place::OwnGroup, None).expect("a process");
        let wake = Arc::new(eventfd(0, EventfdFlags::NONBLOCK).expect("a descriptor"));
        let (_, ready) = channel();
        let directory = RuntimeDir::private().expect("a directory");
        let bus = Self { daemon, address: OsString::new(), asked, told, wake, ready, _directory: directory };
        (bus, ask, tell)
    }
}

/// Ready when the daemon has ended.
impl AsFd for Bus {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.daemon.as_fd()
    }
}

/// The thread: until the loop is gone.
fn work(
    address_pipe: OwnedFd,
    address: &str,
    display: Option<(OsString, OsString)>,
    server: Server,
    ready: &Sender<Result<(), String>>,
    tell: &Receiver<Told>,
) {
    // It says where it listens once it does.
    let mut line = String::new();
    let said = BufReader::new(File::from(address_pipe)).read_line(&mut line);
    if !said.is_ok_and(|length| length > 0) {
        return drop(ready.send(Err("the session's bus has ended".into())));
    }
    let connection = match zbus::block_on(connect(address, display, server)) {
        Ok(connection) => connection,
        Err(error) => return drop(ready.send(Err(error.to_string()))),
    };
    if ready.send(Ok(())).is_err() {
        return;
    }
    while let Ok(told) = tell.recv() {
        // Without a bus there is no program to tell.
        let _ = zbus::block_on(signal(&connection, told));
    }
}

/// Becomes the bus's server of notifications, and lets what the daemon starts find the session's display.
async fn connect(
    address: &str,
    display: Option<(OsString, OsString)>,
    server: Server,
) -> zbus::Result<Connection> {
    let connection = Builder::address(address)
        .method_timeout(PATIENCE)
        .max_queued(MAX_QUEUED)
        .serve_at(PATH, server)
        .name(NAME)
        .build()
        .await?;
    if let Some((name, value)) = &display
        && let (Some(name), Some(value)) = (name.to_str(), value.to_str())
    {
        let set = HashMap::from([(name, value)]);
        let (bus, object) = ("org.freedesktop.DBus", "/org/freedesktop/DBus");
        connection.call_method(Some(bus), object, Some(bus), "UpdateActivationEnvironment", &set).await?;
    }
    Ok(connection)
}

/// Tells programs of a notification; the one whose it is knows its number.
async fn signal(connection: &Connection, told: Told) -> zbus::Result<()> {
    let to = None::<&str>;
    match told {
        Told::Closed(id, end) => {
            connection.emit_signal(to, PATH, NAME, "NotificationClosed", &(id, end as u32)).await
        }
        Told::Action { id, key, token } => {
            if let Some(token) = token {
                connection.emit_signal(to, PATH, NAME, "ActivationToken", &(id, token)).await?;
            }
            connection.emit_signal(to, PATH, NAME, "ActionInvoked", &(id, key)).await
        }
    }
}

/// For the daemon itself: a process with the session's display is taken for one that may still show something.
fn without_display(environment: &Environment) -> Environment {
    let mut own = environment.clone();
    own.set.retain(|(name, _)| name != DISPLAY);
    own.unset.push(DISPLAY.into());
    own
}

/// The address of a socket (D-Bus Specification, "Server Addresses").
fn address(socket: &Path) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_/.\\*".contains(&byte);
    let escape = |byte: &u8| match is_plain(*byte) {
        true => char::from(*byte).to_string(),
        false => format!("%{byte:02x}"),
    };
    let path: String = socket.as_os_str().as_bytes().iter().map(escape).collect();
    format!("unix:path={path}")
}

/// Where services are described that the daemon may start: as its own list for sessions (dbus-daemon(1)), but for the
/// directory of a login, which it would make.
fn services() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    for directory in data_directories().chain(["/usr/share".into()]) {
        let directory = directory.join("dbus-1/services");
        if directory.is_absolute() && !found.contains(&directory) {
            found.push(directory);
        }
    }
    found
}

/// The daemon's configuration: as its own for sessions, but that it listens in one place, and keeps less.
fn configure(address: &str, services: &[PathBuf]) -> String {
    let address = super::markup::escape(address);
    let services = services.iter().filter_map(|path| path.to_str()).map(super::markup::escape);
    let services: String = services.map(|path| format!("<servicedir>{path}</servicedir>\n")).collect();
    let limits: String =
        LIMITS.map(|(name, most)| format!("<limit name=\"{name}\">{most}</limit>\n")).concat();
    format!(
        "<!DOCTYPE busconfig PUBLIC \"-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN\" \
         \"http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd\">\n\
         <busconfig>\n<type>session</type>\n<keep_umask/>\n<listen>{address}</listen>\n<auth>EXTERNAL</auth>\n\
         {services}<policy context=\"default\">\n<allow send_destination=\"*\" eavesdrop=\"true\"/>\n\
         <allow eavesdrop=\"true\"/>\n<allow own=\"*\"/>\n</policy>\n{limits}</busconfig>\n"
    )
}

const DISPLAY: &str = "WAYLAND_DISPLAY";
/// How long the daemon may take for anything.
const PATIENCE: Duration = Duration::from_secs(3);
/// What programs want and the loop has not looked at; then they wait.
const MAX_ASKED: usize = 16;
/// What programs have not been told; more is not told.
const MAX_TOLD: usize = 64;
/// Messages of the bus that wait here; the daemon keeps those behind them.
const MAX_QUEUED: NonZeroUsize = NonZeroUsize::new(4).expect("it is not 0");
/// The daemon's limits. The two of bytes hold programs back; who sends a longer message is disconnected, as by any bus.
const LIMITS: [(&str, u32); 9] = [
    ("max_incoming_bytes", 64 << 20),
    ("max_outgoing_bytes", 64 << 20),
    ("max_message_size", 16 << 20),
    ("service_start_timeout", 120_000),
    ("auth_timeout", 30_000),
    ("max_connections_per_user", 2048),
    ("max_match_rules_per_connection", 50_000),
    ("max_names_per_connection", 1000),
    ("max_replies_per_connection", 50_000),
];

#[cfg(test)]
mod tests;
