//! The socket to the desk's sound server.
//!
//! Connects, reads and writes as its [`User`] wants, and never blocks. Servers are tried in order. Invariant: the
//! socket belongs to the connection that the user wants; another one closes it.

mod address;
mod talk;

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::{set_tcp_nodelay, socket_error};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrAny, SocketAddrUnix, SocketFlags, SocketType, connect,
    recv, send, socket_with,
};
use wayferry_proto::Time;

use address::Address;
pub(crate) use address::COOKIE;
pub use address::Surroundings;
pub(crate) use talk::{Failure, Heard, Talk, malformed};

/// What needs a sound server: it decides, without any I/O.
pub(crate) trait User {
    /// Which connection there should be; another number than before is another connection.
    fn connection(&self) -> Option<u32>;

    /// The connection to `server` is there.
    fn on_connected(&mut self, now: Time, server: &str, cookie: [u8; COOKIE]);

    /// The connection could not be made, or is no more.
    fn on_failure(&mut self, now: Time, why: &str);

    /// The server sent this.
    fn on_bytes(&mut self, now: Time, bytes: &[u8]);

    /// Does what is due.
    fn turn(&mut self, now: Time);

    /// What the server is to be sent, if there is a connection; what was sent is removed.
    fn outgoing(&mut self) -> Option<&mut Vec<u8>>;
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Link {
    surroundings: Surroundings,
    open: Option<Open>,
}

/// A connection, or an attempt to make one.
#[derive(Debug)]
struct Open {
    /// Its number at the user.
    number: u32,
    fd: Option<OwnedFd>,
    /// When the current attempt began.
    began: Time,
    /// Whether it is not known yet that the server took the connection.
    is_connecting: bool,
    /// Servers that are tried next, the last first.
    next: Vec<Address>,
    /// The one that is tried now, and why those before did not do.
    current: String,
    failed: Vec<String>,
}

impl Link {
    pub(crate) fn new(surroundings: Surroundings) -> Self {
        Self { surroundings, open: None }
    }

    /// Moves bytes, lets the user decide, and makes the connection that it wants then.
    pub(crate) fn turn(&mut self, now: Time, user: &mut impl User) {
        self.finish_connecting(now, user);
        self.read(now, user);
        user.turn(now);
        if !self.is_wanted(user) {
            self.open = user.connection().map(|number| Open::new(now, number, &self.surroundings));
            self.finish_connecting(now, user);
        }
        self.write(now, user);
    }

    /// When it wants its next turn.
    pub(crate) fn wake_at(&self) -> Option<Time> {
        let open = self.open.as_ref().filter(|open| open.is_connecting)?;
        Some(open.began + CONNECTED_LATEST)
    }

    /// What to wait for.
    pub(crate) fn waits_for(&self, has_outgoing: bool) -> Option<(BorrowedFd<'_>, PollFlags)> {
        let open = self.open.as_ref()?;
        let fd = open.fd.as_ref()?.as_fd();
        let flags = match open.is_connecting {
            true => PollFlags::OUT,
            false if has_outgoing => PollFlags::IN | PollFlags::OUT,
            false => PollFlags::IN,
        };
        Some((fd, flags))
    }

    /// Goes on connecting; tells the user when that has an end.
    fn finish_connecting(&mut self, now: Time, user: &mut impl User) {
        let Some(open) = self.open.as_mut().filter(|open| open.is_connecting) else { return };
        match open.advance(now) {
            None => {}
            Some(true) => user.on_connected(now, &open.current, self.surroundings.cookie()),
            Some(false) => {
                let tried = open.failed.join("; ");
                self.fail(now, user, &tried);
            }
        }
    }

    fn read(&mut self, now: Time, user: &mut impl User) {
        let Some(fd) = self.connected() else { return };
        let mut buffer = [0; READ];
        for _ in 0..READS {
            let why = match recv(fd, &mut buffer[..], RecvFlags::DONTWAIT) {
                Ok((0, _)) => "the sound server closed the connection".into(),
                Ok((length, _)) => {
                    user.on_bytes(now, &buffer[..length]);
                    // What comes after a short read is polled for.
                    if length < READ || !self.is_wanted(user) {
                        return;
                    }
                    continue;
                }
                Err(Errno::AGAIN | Errno::INTR) => return,
                Err(error) => format!("the sound server: {error}"),
            };
            return self.fail(now, user, &why);
        }
    }

    fn write(&mut self, now: Time, user: &mut impl User) {
        let (Some(fd), Some(outgoing)) = (self.connected(), user.outgoing()) else { return };
        while !outgoing.is_empty() {
            match send(fd, outgoing, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(sent) => drop(outgoing.drain(..sent)),
                Err(Errno::AGAIN | Errno::INTR) => return,
                Err(error) => return self.fail(now, user, &format!("the sound server: {error}")),
            }
        }
    }

    /// What happens to the socket after its end is not the user's concern: that may have another device by then.
    fn fail(&mut self, now: Time, user: &mut impl User, why: &str) {
        self.open = None;
        user.on_failure(now, why);
    }

    /// Whether the socket, or that there is none, is what the user wants.
    fn is_wanted(&self, user: &impl User) -> bool {
        user.connection() == self.open.as_ref().map(|open| open.number)
    }

    fn connected(&self) -> Option<BorrowedFd<'_>> {
        let open = self.open.as_ref().filter(|open| !open.is_connecting)?;
        open.fd.as_ref().map(AsFd::as_fd)
    }
}

impl Open {
    fn new(now: Time, number: u32, surroundings: &Surroundings) -> Self {
        let mut next = surroundings.addresses(&machine());
        next.reverse();
        Self {
            number,
            fd: None,
            began: now,
            is_connecting: true,
            next,
            current: String::new(),
            failed: Vec::new(),
        }
    }

    /// Whether the connection is there; `None` when that is not known yet.
    fn advance(&mut self, now: Time) -> Option<bool> {
        loop {
            if let Some(fd) = &self.fd {
                if !is_writable(fd) && now.since(self.began) < CONNECTED_LATEST {
                    return None;
                }
                match socket_error(fd).and_then(|result| result) {
                    Ok(()) if !is_writable(fd) => self.fail("does not answer"),
                    Ok(()) => {
                        self.is_connecting = false;
                        return Some(true);
                    }
                    Err(error) => self.fail(&error.to_string()),
                }
            }
            let Some(address) = self.next.pop() else { return Some(false) };
            (self.current, self.began) = (address.to_string(), now);
            match begin(&address) {
                Ok(fd) => self.fd = Some(fd),
                Err(error) => self.fail(&error),
            }
        }
    }

    fn fail(&mut self, why: &str) {
        self.fd = None;
        self.failed.push(format!("{}: {why}", self.current));
    }
}

/// The sound server that a device in these `surroundings` would play to; it is connected to, and told nothing. Waits up
/// to two seconds for each that has to be tried.
///
/// # Errors
/// Which were tried, and why each did not do.
pub fn find_server(surroundings: &Surroundings) -> Result<String, String> {
    let began = Instant::now();
    let now = || Time::new(began.elapsed());
    let mut open = Open::new(now(), 0, surroundings);
    loop {
        match open.advance(now()) {
            Some(true) => return Ok(open.current),
            Some(false) => return Err(open.failed.join("; ")),
            None => {}
        }
        let Some(fd) = &open.fd else { continue };
        let left = (open.began + CONNECTED_LATEST).since(now());
        let _ = poll(&mut [PollFd::new(fd, PollFlags::OUT)], Timespec::try_from(left).ok().as_ref());
    }
}

/// Begins to connect.
fn begin(address: &Address) -> Result<OwnedFd, String> {
    let result = match address {
        Address::Unix(path) => {
            SocketAddrUnix::new(path).and_then(|path| begin_with(AddressFamily::UNIX, &path.into()))
        }
        Address::Tcp(address) => {
            let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
            begin_with(family, &SocketAddr::into(*address))
        }
        Address::Unusable(_, why) => return Err((*why).into()),
    };
    result.map_err(|error| error.to_string())
}

fn begin_with(family: AddressFamily, address: &SocketAddrAny) -> rustix::io::Result<OwnedFd> {
    let fd = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?;
    if family != AddressFamily::UNIX {
        // Samples are sent as they are asked for, a few milliseconds at a time.
        set_tcp_nodelay(&fd, true)?;
    }
    match connect(&fd, address) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(fd),
        Err(error) => Err(error),
    }
}

fn is_writable(fd: &OwnedFd) -> bool {
    let mut set = [PollFd::new(fd, PollFlags::OUT)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut set, Some(&at_once)).is_ok_and(|ready| ready > 0)
}

/// What libpulse calls this machine.
fn machine() -> String {
    let read = |path| -> io::Result<String> { Ok(fs::read_to_string(path)?.trim().to_owned()) };
    read("/etc/machine-id").or_else(|_| read("/var/lib/dbus/machine-id")).unwrap_or_default()
}

/// A server that has not taken the connection for so long is passed over.
const CONNECTED_LATEST: Duration = Duration::from_secs(2);

/// Bytes of one read, and how many reads there are in a turn.
const READ: usize = 16 << 10;
const READS: usize = 16;

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::Ipv4Addr;
    use std::os::unix::net::{UnixListener, UnixStream};

    use rustix::net::{bind, getsockname, listen};

    use super::*;

    /// A port whose queue of connections is full, with what fills it.
    fn full() -> (SocketAddr, Vec<OwnedFd>) {
        let listener =
            socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        bind(&listener, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
        listen(&listener, 0).unwrap();
        let address = SocketAddr::try_from(getsockname(&listener).unwrap()).unwrap();
        let mut fds = vec![listener];
        for _ in 0..4 {
            fds.push(begin(&Address::Tcp(address)).unwrap());
        }
        (address, fds)
    }

    #[test]
    fn a_server_that_is_looked_for_is_the_first_that_answers() {
        let path = std::env::temp_dir().join(format!("wayferry-find-{}", std::process::id()));
        let listener = UnixListener::bind(&path).unwrap();
        let server = format!("unix:/no/such {{other}}tcp:127.0.0.1 unix:{}", path.display());
        let surroundings = Surroundings { server: Some(server), ..Surroundings::default() };
        assert_eq!(find_server(&surroundings), Ok(format!("`{}`", path.display())));
        drop(listener);
        fs::remove_file(&path).unwrap();
        let tried = find_server(&surroundings).unwrap_err();
        assert!(tried.contains("`/no/such`: ") && tried.contains("another machine's"), "{tried}");
    }

    /// A user whose server ends in each of its turns, and which wants no other.
    #[derive(Default)]
    struct Ends {
        server: Option<UnixStream>,
        outgoing: Vec<u8>,
        reads: u32,
        /// Whether what it reads is no protocol.
        refuses: bool,
        failures: u32,
    }

    impl User for Ends {
        fn connection(&self) -> Option<u32> {
            (self.failures == 0).then_some(1)
        }

        fn on_connected(&mut self, _: Time, _: &str, _: [u8; COOKIE]) {}

        fn on_failure(&mut self, _: Time, _: &str) {
            self.failures += 1;
        }

        fn on_bytes(&mut self, now: Time, _: &[u8]) {
            self.reads += 1;
            if self.refuses {
                self.on_failure(now, "no protocol");
            }
        }

        fn turn(&mut self, _: Time) {
            self.server = None;
        }

        fn outgoing(&mut self) -> Option<&mut Vec<u8>> {
            Some(&mut self.outgoing)
        }
    }

    /// A link whose connection is there, and the server's end of that.
    fn linked(name: &str) -> (Link, Ends) {
        let path = std::env::temp_dir().join(format!("wayferry-link-{name}-{}", std::process::id()));
        let listener = UnixListener::bind(&path).unwrap();
        let server = Some(format!("unix:{}", path.display()));
        let mut link = Link::new(Surroundings { server, ..Surroundings::default() });
        let mut user = Ends::default();
        link.turn(Time::ZERO, &mut user);
        user.server = Some(listener.accept().unwrap().0);
        fs::remove_file(path).unwrap();
        (link, user)
    }

    /// Where a card is opened after the first failure, the second was taken for the card's.
    #[test]
    fn regression_a_server_that_ends_before_a_write_fails_twice() {
        let (mut link, mut user) = linked("write");
        user.outgoing = vec![0; 8];
        link.turn(Time::ZERO, &mut user);
        assert_eq!(user.failures, 1);
        link.turn(Time::ZERO, &mut user);
        assert_eq!(user.failures, 1);
    }

    /// The same, where there was more to read after what is no protocol.
    #[test]
    fn regression_a_server_that_says_too_much_fails_twice() {
        let (mut link, mut user) = linked("read");
        user.refuses = true;
        user.server.take().unwrap().write_all(&[0; READ]).unwrap();
        link.turn(Time::ZERO, &mut user);
        assert_eq!((user.reads, user.failures), (1, 1));
    }

    #[test]
    fn a_server_that_takes_no_connection_is_passed_over() {
        let path = std::env::temp_dir().join(format!("wayferry-link-{}", std::process::id()));
        let listener = UnixListener::bind(&path).unwrap();
        let (address, _fds) = full();
        let server = Some(format!("/nowhere tcp:{address} unix:{}", path.display()));
        let surroundings = Surroundings { server, ..Surroundings::default() };
        let mut open = Open::new(Time::ZERO, 1, &surroundings);
        assert_eq!(open.advance(Time::ZERO), None);
        assert_eq!(open.advance(Time::from_millis(1999)), None);
        assert_eq!(open.advance(Time::from_millis(2000)), Some(true));
        let why = [
            "`/nowhere`: No such file or directory (os error 2)".into(),
            format!("`tcp:{address}`: does not answer"),
        ];
        assert_eq!(open.failed, why);
        drop(listener);
        fs::remove_file(path).unwrap();
    }
}
