//! Wayferry between a program and a compositor, in the two ways in which a test wants it: the bare halves around one
//! program, and a whole session.

use std::net::{SocketAddr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::Path;

use wayferry_stage::{Link, LinkConfig};

use super::{Compositor, Home, Launch, Program, poll, until};

/// The two halves (`wayferry conn`) with a socket between them, around one program.
pub(crate) struct Pair {
    pub(crate) program: Program,
    pub(crate) app: Program,
    pub(crate) display: Program,
    // Last, so that the programs end before their directory goes.
    home: Home,
}

impl Pair {
    /// Starts a program whose only way to the compositor is through the halves.
    pub(crate) fn start(compositor: &impl Compositor, prepare: impl Fn(&Home) -> Launch) -> Self {
        let home = Home::new();
        let (ours, theirs) = sockets();
        let Halves { app, display } = Halves::start(compositor, &home, ours);
        let program = prepare(&home).descriptor("WAYLAND_SOCKET", theirs).start();
        Self { program, app, display, home }
    }

    /// Where the program runs.
    pub(crate) fn home(&self) -> &Home {
        &self.home
    }
}

/// The two halves alone, with the program's end of the app's socket in the test's hand.
pub(crate) struct Halves {
    pub(crate) app: Program,
    pub(crate) display: Program,
}

impl Halves {
    pub(crate) fn start(compositor: &impl Compositor, home: &Home, app_socket: UnixStream) -> Self {
        let (app_link, display_link) = sockets();
        let app = home
            .wayferry()
            .args(["conn", "--role", "app"])
            .descriptor("WAYFERRY_APP_FD", app_socket)
            .descriptor("WAYFERRY_LINK_FD", app_link)
            .start();
        Self { app, display: Self::display(compositor, display_link) }
    }

    /// The display half alone, on this link.
    pub(crate) fn display(compositor: &impl Compositor, link: UnixStream) -> Program {
        let socket = compositor.home().runtime().join(compositor.display());
        compositor
            .home()
            .wayferry()
            .args(["conn", "--role", "display"])
            .descriptor("WAYLAND_SOCKET", UnixStream::connect(socket).expect("the compositor's socket"))
            .descriptor("WAYFERRY_LINK_FD", link)
            .start()
    }
}

/// `wayferry host` and `wayferry attach` over QUIC on the loopback device. Programs are launched on it as on a
/// compositor; they see a home of their own, so the way through Wayferry is the only one.
pub(crate) struct Session {
    pub(crate) host: Program,
    pub(crate) attach: Program,
    /// The emulated link between the two, where there is one.
    pub(crate) link: Option<Link>,
    // Last, so that the programs end before their directory goes.
    home: Home,
    display: String,
}

impl Session {
    pub(crate) fn start(compositor: &impl Compositor) -> Self {
        Self::start_with(compositor, &[])
    }

    /// Each of both commands gets those of these options that mean something to it.
    pub(crate) fn start_with(compositor: &impl Compositor, options: &[&str]) -> Self {
        Self::meet(compositor, options, None)
    }

    /// The two sides are this far apart.
    pub(crate) fn start_over(compositor: &impl Compositor, config: LinkConfig, options: &[&str]) -> Self {
        Self::meet(compositor, options, Some(config))
    }

    fn meet(compositor: &impl Compositor, options: &[&str], config: Option<LinkConfig>) -> Self {
        let home = Home::new();
        let address = free_address();
        let mut host = host_at(&home, &without(options, OF_DISPLAY), &address.to_string(), WAIT_FOR_EVER);
        let options = &without(options, OF_HOST)[..];
        let ticket = host.first_line();
        let link = config.map(|config| Link::start(config, address).expect("an emulated link"));
        let mut attach = match &link {
            None => attach(compositor, options, &ticket),
            Some(link) => attach_to(compositor, options, &[&ticket, "--via", &link.local_addr().to_string()]),
        };
        let display = until("the session's program", || {
            host.must_run();
            attach.must_run();
            let name = std::fs::read_to_string(home.file("display")).ok()?;
            name.ends_with('\n').then(|| name.trim().to_owned())
        });
        Self { host, attach, link, home, display }
    }

    pub(crate) fn home(&self) -> &Home {
        &self.home
    }

    /// Prepares a program of the session.
    pub(crate) fn launch(&self, program: &str) -> Launch {
        self.join(self.home.launch(program))
    }

    /// Makes a program that was prepared elsewhere one of the session.
    pub(crate) fn join(&self, launch: Launch) -> Launch {
        launch.env("WAYLAND_DISPLAY", &self.display)
    }

    /// Where programs connect to.
    pub(crate) fn socket(&self) -> UnixStream {
        let path = Path::new(&self.home.runtime()).join(&self.display);
        poll(super::PATIENCE, || UnixStream::connect(&path).ok()).expect("the session's socket")
    }

    /// Fails the test unless both sides live.
    pub(crate) fn must_run(&mut self) {
        self.host.must_run();
        self.attach.must_run();
    }
}

/// Starts `wayferry host` with a program, on a free port of the loopback device.
pub(crate) fn host(home: &Home, options: &[&str], words: &[&str]) -> Program {
    host_at(home, options, "127.0.0.1:0", words)
}

fn host_at(home: &Home, options: &[&str], listen: &str, words: &[&str]) -> Program {
    let launch = home.wayferry().args(options.iter().copied()).args(["host", "--listen", listen, "--"]);
    launch.args(words.iter().copied()).start()
}

/// Starts `wayferry attach` on a compositor.
pub(crate) fn attach(compositor: &impl Compositor, options: &[&str], ticket: &str) -> Program {
    attach_to(compositor, options, &[ticket])
}

/// Starts `wayferry attach` on a compositor, with these arguments.
pub(crate) fn attach_to(compositor: &impl Compositor, options: &[&str], arguments: &[&str]) -> Program {
    let launch = compositor.home().wayferry().env("WAYLAND_DISPLAY", compositor.display());
    // A ticket's windows have its address before their titles.
    let bare = (!options.contains(&"--title-prefix")).then_some("--title-prefix=");
    launch.args(bare).args(options.iter().copied()).arg("attach").args(arguments.iter().copied()).start()
}

/// Options without some, and without their values.
fn without<'a>(options: &[&'a str], left_out: &[&str]) -> Vec<&'a str> {
    let mut is_left_out = false;
    let keeps = |word: &&&str| {
        is_left_out = if word.starts_with("--") { left_out.contains(word) } else { is_left_out };
        !is_left_out
    };
    options.iter().filter(keeps).copied().collect()
}

/// A UDP address of the loopback device that no program uses.
pub(crate) fn free_address() -> SocketAddr {
    UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a free port")
}

/// Two ends of a socket.
pub(crate) fn sockets() -> (UnixStream, UnixStream) {
    UnixStream::pair().expect("a pair of sockets")
}

/// Options that mean nothing to a display, and to a host.
const OF_HOST: &[&str] = &["--gpu", "--lossless"];
const OF_DISPLAY: &[&str] = &["--title-prefix"];

/// A session's program that only tells where others connect to.
const WAIT_FOR_EVER: &[&str] = &["sh", "-c", "echo $WAYLAND_DISPLAY > display; exec tail -f /dev/null"];
