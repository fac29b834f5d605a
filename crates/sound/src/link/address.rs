//! Where the desk's sound server is, as its own clients would find it.
//!
//! `$PULSE_SERVER` names servers, to be tried in order; without it there is one in `$XDG_RUNTIME_DIR`. A server that
//! cannot be understood, or is another machine's, is kept with the reason, so that the user can be told. Invariant:
//! parsing touches neither the network nor the file system.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// What says where the sound server is: a part of the environment; and what else may play.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// `$PULSE_SERVER`.
    pub server: Option<String>,
    /// `$XDG_RUNTIME_DIR`.
    pub runtime: Option<PathBuf>,
    /// `$PULSE_COOKIE`.
    pub cookie: Option<PathBuf>,
    /// `$XDG_CONFIG_HOME`.
    pub config: Option<PathBuf>,
    /// `$HOME`.
    pub home: Option<PathBuf>,
    /// Whether to play to a sound card where no server is. It takes the feature `alsa`.
    pub has_cards: bool,
}

/// One server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Address {
    Unix(PathBuf),
    Tcp(SocketAddr),
    /// What it was called, and why it is not tried.
    Unusable(String, &'static str),
}

impl Surroundings {
    /// Those of this process.
    pub fn current() -> Self {
        let path = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let server = std::env::var_os("PULSE_SERVER").map(OsString::into_string);
        Self {
            // What is no text names no server that could be reached, and is shown as far as it is text.
            server: server.map(|server| server.unwrap_or_else(|raw| raw.to_string_lossy().into_owned())),
            runtime: path("XDG_RUNTIME_DIR"),
            cookie: path("PULSE_COOKIE"),
            config: path("XDG_CONFIG_HOME"),
            home: path("HOME"),
            has_cards: cfg!(feature = "alsa"),
        }
    }

    /// The servers to try, in order. `machine` is the name that libpulse prefixes to those of one machine.
    pub(super) fn addresses(&self, machine: &str) -> Vec<Address> {
        match &self.server {
            Some(server) if !server.trim().is_empty() => {
                server.split_whitespace().map(|server| parse(server, machine)).collect()
            }
            _ => match &self.runtime {
                Some(runtime) => vec![Address::Unix(runtime.join("pulse/native"))],
                None => {
                    let unset = "neither it nor `XDG_RUNTIME_DIR` is set";
                    vec![Address::Unusable("PULSE_SERVER".into(), unset)]
                }
            },
        }
    }

    /// What proves to the server that we are its user; zeros if there is none, as servers that ask for none want too.
    pub(super) fn cookie(&self) -> [u8; COOKIE] {
        let config = self.config.clone().or_else(|| Some(self.home.as_ref()?.join(".config")));
        let places = [
            self.cookie.clone(),
            config.map(|config| config.join("pulse/cookie")),
            self.home.as_ref().map(|home| home.join(".pulse-cookie")),
        ];
        let mut cookie = [0; COOKIE];
        for place in places.into_iter().flatten() {
            let read = File::open(place).and_then(|mut file| file.read_exact(&mut cookie));
            if read.is_ok() {
                return cookie;
            }
            cookie = [0; COOKIE];
        }
        cookie
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "`{}`", path.display()),
            Self::Tcp(address) => write!(f, "`tcp:{address}`"),
            Self::Unusable(name, _) => write!(f, "`{name}`"),
        }
    }
}

/// One server of `$PULSE_SERVER`: `[{MACHINE}](unix:PATH | /PATH | tcp:HOST[:PORT] | tcp4: | tcp6: | HOST[:PORT])`.
fn parse(server: &str, machine: &str) -> Address {
    let unusable = |why| Address::Unusable(server.into(), why);
    let mut rest = server;
    if let Some((named, after)) = server.strip_prefix('{').and_then(|rest| rest.split_once('}')) {
        if named != machine {
            return unusable("it is another machine's");
        }
        rest = after;
    }
    if let Some(path) = rest.strip_prefix("unix:") {
        return Address::Unix(path.into());
    }
    if rest.starts_with('/') {
        return Address::Unix(rest.into());
    }
    let host = ["tcp:", "tcp4:", "tcp6:"].iter().find_map(|scheme| rest.strip_prefix(scheme)).unwrap_or(rest);
    match numeric(host) {
        Some(address) => Address::Tcp(address),
        // Looking up a name can take a minute, and cannot be stopped: the thread could not end with its handle.
        None => unusable("its address is not a number"),
    }
}

/// `HOST[:PORT]` of an address, or `localhost`.
fn numeric(host: &str) -> Option<SocketAddr> {
    if let Ok(address) = host.parse::<SocketAddr>() {
        return Some(address);
    }
    if let Ok(address) = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        return Some(SocketAddr::new(address, PORT));
    }
    let (name, port) = host.split_once(':').map_or((host, None), |(name, port)| (name, Some(port)));
    let port = port.map_or(Ok(PORT), str::parse).ok()?;
    (name == "localhost").then_some(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port))
}

/// Bytes of a cookie: servers want exactly so many.
pub(crate) const COOKIE: usize = 256;

/// PulseAudio's.
const PORT: u16 = 4713;

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(server: &str) -> Vec<Address> {
        Surroundings { server: Some(server.into()), ..Surroundings::default() }.addresses("me")
    }

    #[test]
    fn servers_are_named_as_libpulse_understands_them() {
        let unix = |path: &str| vec![Address::Unix(path.into())];
        let tcp = |address: &str| vec![Address::Tcp(address.parse().unwrap())];
        assert_eq!(parsed("unix:/a/b"), unix("/a/b"));
        assert_eq!(parsed("/a/b"), unix("/a/b"));
        assert_eq!(parsed("{me}unix:/a/b"), unix("/a/b"));
        assert_eq!(parsed("tcp:10.0.0.1"), tcp("10.0.0.1:4713"));
        assert_eq!(parsed("tcp:10.0.0.1:99"), tcp("10.0.0.1:99"));
        assert_eq!(parsed("tcp6:[::1]:99"), tcp("[::1]:99"));
        assert_eq!(parsed("tcp6:[::1]"), tcp("[::1]:4713"));
        assert_eq!(parsed("localhost"), tcp("127.0.0.1:4713"));
        assert_eq!(parsed("tcp4:localhost:5"), tcp("127.0.0.1:5"));
        assert_eq!(parsed(" {me}/a  tcp:1.2.3.4 "), [unix("/a"), tcp("1.2.3.4:4713")].concat());
    }

    #[test]
    fn what_cannot_be_reached_is_named_with_the_reason() {
        for (server, why) in [
            ("{other}unix:/a", "it is another machine's"),
            ("tcp:desk.example", "its address is not a number"),
            ("tcp:localhost:99999", "its address is not a number"),
            ("nonsense", "its address is not a number"),
        ] {
            assert_eq!(parsed(server), [Address::Unusable(server.into(), why)]);
        }
    }

    #[test]
    fn without_a_name_it_is_the_sessions() {
        let runtime = Surroundings { runtime: Some("/run/me".into()), ..Surroundings::default() };
        assert_eq!(runtime.addresses(""), [Address::Unix("/run/me/pulse/native".into())]);
        let empty = Surroundings { server: Some(" ".into()), ..runtime.clone() };
        assert_eq!(empty.addresses(""), runtime.addresses(""), "as if it were unset");
        assert!(matches!(Surroundings::default().addresses("")[..], [Address::Unusable(..)]));
    }

    #[test]
    fn the_first_whole_cookie_counts() {
        let home = std::env::temp_dir().join(format!("wayferry-cookie-{}", std::process::id()));
        std::fs::create_dir_all(home.join(".config/pulse")).unwrap();
        let surroundings = Surroundings { home: Some(home.clone()), ..Surroundings::default() };
        assert_eq!(surroundings.cookie(), [0; COOKIE]);
        std::fs::write(home.join(".pulse-cookie"), [7; COOKIE]).unwrap();
        std::fs::write(home.join(".config/pulse/cookie"), [8; 10]).unwrap();
        assert_eq!(surroundings.cookie(), [7; COOKIE], "the other is too short");
        std::fs::write(home.join(".config/pulse/cookie"), [8; COOKIE]).unwrap();
        assert_eq!(surroundings.cookie(), [8; COOKIE]);
        std::fs::write(home.join("own"), [9; COOKIE]).unwrap();
        let own = Surroundings { cookie: Some(home.join("own")), ..surroundings };
        assert_eq!(own.cookie(), [9; COOKIE]);
        std::fs::remove_dir_all(home).unwrap();
    }
}
