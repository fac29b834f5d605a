//! Values of options, from their text.
//!
//! Invariant: what a parser refuses it says what it expected.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::ValueEnum;
use wayferry_host::GpuHow;
use wayferry_host::edge::xwayland::How;
use wayferry_proto::admission::LinkId;

/// Where events are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Events {
    /// To stdout.
    Stdout,
    /// To a descriptor that the caller has opened, which is none of the standard three.
    Descriptor(i32),
}

/// Which half of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Role {
    /// Beside the program.
    App,
    /// Beside the compositor.
    Display,
}

/// Whether programs of a session may open addresses here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OpenUrl {
    /// They are opened where the programs run.
    Never,
    /// When the user has allowed it to this host.
    #[default]
    Ask,
    /// Without a question.
    Always,
}

/// Whether something that crosses by itself does so.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    /// It does.
    #[default]
    On,
    /// It does not.
    Off,
}

/// How GPU buffers of programs are read, if they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Gpu(pub(crate) Option<GpuHow>);

impl FromStr for Gpu {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "off" => Ok(Self(None)),
            how => match how.parse() {
                Ok(how) => Ok(Self(Some(how))),
                Err(_) => Err("expected auto, off, memory or the path of a render node".to_owned()),
            },
        }
    }
}

impl fmt::Display for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(how) => how.fmt(f),
            None => f.write_str("off"),
        }
    }
}

/// Which links are meant: one, or all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Links(pub(crate) Option<LinkId>);

impl FromStr for Links {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "all" {
            return Ok(Self(None));
        }
        let id = text.parse().map(|id| Self(Some(id)));
        id.map_err(|_| "expected the number of a link, as `share --list` shows it, or `all`".to_owned())
    }
}

pub(super) fn parse_ports(text: &str) -> Result<RangeInclusive<u16>, String> {
    let (low, high) = text.split_once(['-', ':']).unwrap_or((text, text));
    match (low.parse::<u16>(), high.parse::<u16>()) {
        (Ok(low), Ok(high)) if low <= high && (low > 0 || high == 0) => Ok(low..=high),
        _ => Err("expected a port or LOW-HIGH".into()),
    }
}

/// An address of this machine and a port; a port alone is that of every address, IPv6 too, where there is IPv6.
pub(super) fn parse_listen(text: &str) -> Result<SocketAddr, String> {
    let expected = "expected ADDRESS:PORT, NAME:PORT, or a port";
    if let Ok(port) = text.parse::<u16>() {
        let any: IpAddr = Ipv6Addr::UNSPECIFIED.into();
        let any = if UdpSocket::bind((any, 0)).is_ok() { any } else { Ipv4Addr::UNSPECIFIED.into() };
        return Ok(SocketAddr::new(any, port));
    }
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    if !text.rsplit_once(':').is_some_and(|(name, port)| !name.is_empty() && port.parse::<u16>().is_ok()) {
        return Err(expected.into());
    }
    let found: Vec<SocketAddr> = text.to_socket_addrs().map_err(|error| error.to_string())?.collect();
    let ours = found.iter().find(|address| UdpSocket::bind((address.ip(), 0)).is_ok());
    ours.copied().ok_or_else(|| "it is no address of this machine".into())
}

pub(super) fn parse_sink(text: &str) -> Result<PathBuf, String> {
    let path = text.strip_prefix("file:").filter(|path| !path.is_empty() && *path != "-");
    path.map(PathBuf::from).ok_or("expected file:PATH".into())
}

pub(super) fn parse_xwayland(text: &str) -> Result<How, String> {
    text.parse().map_err(|()| "expected satellite or rootful".into())
}

pub(super) fn parse_name(text: &str) -> Result<String, String> {
    wayferry_host::sessions::check(text).map(|()| text.to_owned())
}

pub(super) fn parse_instant(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=1e9).contains(&seconds) => Ok(seconds),
        _ => Err("expected a number of seconds".into()),
    }
}

/// A number of seconds, or of what the letter behind it says.
pub(super) fn parse_duration(text: &str) -> Result<Duration, String> {
    let units = [('s', 1.0), ('m', 60.0), ('h', 3_600.0), ('d', 86_400.0)];
    let unit = units.iter().find_map(|(letter, unit)| Some((text.strip_suffix(*letter)?, *unit)));
    let (number, unit) = unit.unwrap_or((text, 1.0));
    match number.parse::<f64>().map(|number| number * unit) {
        Ok(seconds) if (1.0..=1e9).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("expected seconds, or a number with s, m, h or d behind it".into()),
    }
}

pub(super) fn parse_events(text: &str) -> Result<Events, String> {
    let number = text.parse().ok().filter(|number| *number >= 3).map(Events::Descriptor);
    let expected = "expected `-`, or the number of a descriptor from 3 on, as in `--events 3 3>FILE`";
    if text == "-" { Ok(Events::Stdout) } else { number.ok_or_else(|| expected.to_owned()) }
}

pub(super) fn parse_number<const MOST: u8>(text: &str) -> Result<u8, String> {
    let number = text.parse().ok().filter(|number| (1..=MOST).contains(number));
    number.ok_or_else(|| format!("expected a number from 1 to {MOST}"))
}

pub(super) fn parse_seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= 1e9 => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("expected a positive number of seconds".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wayferry_host::settings::Compress;

    #[test]
    fn where_to_listen_may_be_a_name() {
        let port = |text: &str| parse_listen(text).map(|address| address.port());
        assert_eq!(parse_listen("192.0.2.7:9"), Ok(([192, 0, 2, 7], 9).into()));
        assert_eq!(parse_listen("[::1]:9").map(|address| address.ip().is_loopback()), Ok(true));
        assert_eq!(parse_listen("localhost:9").map(|address| address.ip().is_loopback()), Ok(true));
        assert_eq!(
            (port("4433"), parse_listen("0").map(|any| any.ip().is_unspecified())),
            (Ok(4433), Ok(true))
        );
        for text in ["", "nonsense", ":9", "localhost", "localhost:", "localhost:99999", "192.0.2.7"] {
            assert!(parse_listen(text).is_err(), "{text}");
        }
    }

    #[test]
    fn durations_may_have_a_unit() {
        let seconds = |text: &str| parse_duration(text).map(|time| time.as_secs_f64());
        let texts = ["90", "1.5m", "2h", "1d", "30s"];
        assert_eq!(texts.map(|text| seconds(text).expect(text)), [90.0, 90.0, 7_200.0, 86_400.0, 30.0]);
        for text in ["", "h", "0", "0.5", "-1", "1w", "1e99", "nan", "infd", "1hh"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn compression_methods() {
        assert_eq!("none".parse(), Ok(Compress::None));
        assert_eq!("zstd".parse(), Ok(Compress::Zstd(1)));
        assert_eq!("zstd=7".parse(), Ok(Compress::Zstd(7)));
        assert!("lz4=1".parse::<Compress>().is_err());
    }
}
