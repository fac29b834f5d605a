//! The session that `doctor` starts on another machine, as far as a display has to do with it before a window opens.
//!
//! Certificates are told through ssh, then QUIC is tried at every address where `wayferry ssh` would. Invariant: the
//! display leaves before the session's program begins.

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use wayferry_net::quic::Options;
use wayferry_net::{Identity, Ticket};
use wayferry_proto::Secret;

use super::check::Check;
use crate::error::{self, Error, SessionError};
use crate::flags::OwnFlags;
use crate::ssh::configuration::{self, Configuration};
use crate::viewer::further;
use wayferry_host::bootstrap::{Line, hear, hear_past, say};
use wayferry_host::carriers;
use wayferry_host::clock::Clock;
use wayferry_host::edge::signals::Signals;
use wayferry_host::edge::socket::random_bytes;
use wayferry_host::event::Reporter;

/// Meets the session behind `socket`, if one came, and tries QUIC.
///
/// # Errors
/// A signal.
pub(super) fn hold(
    own: &OwnFlags,
    host: &str,
    socket: Option<OwnedFd>,
    signals: &Signals,
) -> Result<Vec<Check>, Error> {
    const NAME: &str = "session";
    let hint =
        "`wayferry -vv ssh HOST true` tells each step; `wayferry through ssh HOST -- true` goes another way";
    let Some(socket) = socket else {
        return Ok(vec![Check::fail(NAME, "nothing came through the socket that ssh forwards", hint)]);
    };
    let identity = carriers::identity()?;
    let ticket = match introduce(&socket, &identity, signals) {
        Err(error @ SessionError::Signal(_)) => return Err(error.into()),
        Err(error) => {
            let hint = if error.code() == 78 { hint } else { error::hint(&error) };
            return Ok(vec![Check::fail(NAME, error.to_string(), hint)]);
        }
        Ok(ticket) => ticket,
    };
    let met = Check::ok(NAME, "begins, and both sides understand each other");
    Ok(vec![met, udp(own, host, &ticket, &identity, &socket, signals)?])
}

fn introduce(socket: &OwnedFd, identity: &Identity, signals: &Signals) -> Result<Ticket, SessionError> {
    let clock = Clock::start();
    let secret = Secret::from(random_bytes::<32>());
    say(socket, &Line::Greeting { fingerprint: identity.fingerprint(), secret })?;
    let deadline = clock.now() + PATIENCE;
    match hear_past(socket, &clock, deadline, Some(signals))? {
        Line::Ticket { ticket, .. } => {
            ticket.parse().map_err(|error| SessionError::Bootstrap(format!("{error}")))
        }
        other => Err(other.is_no_ticket()),
    }
}

/// Whether packets get there and back.
fn udp(
    own: &OwnFlags,
    host: &str,
    ticket: &Ticket,
    identity: &std::sync::Arc<Identity>,
    socket: &OwnedFd,
    signals: &Signals,
) -> Result<Check, Error> {
    const NAME: &str = "UDP";
    const MEANS: &str = "sessions go through ssh, which is slower on a bad network";
    let port = ticket.addresses.first().map_or(0, SocketAddr::port);
    if port == 0 {
        let hint = "choose ports that are free there with `--port LOW-HIGH`";
        return Ok(Check::warn(NAME, format!("no UDP port can be opened there: {MEANS}"), hint));
    }
    let looked_up = looked_up(own, host, port);
    let is_direct = !looked_up.is_empty();
    let more = further(&ticket.addresses, looked_up);
    let addresses = [&ticket.addresses[..], &more].concat();
    let (began, quiet) = (Instant::now(), Reporter::new(|_| {}));
    let pin = ticket.fingerprint;
    let answer = carriers::connect(&Options::default(), &addresses, identity, pin, QUIC, signals, &quiet);
    let (why, open) = match answer {
        Ok((carrier, reconnect)) => {
            let took = began.elapsed();
            // Known once a packet of this side was acknowledged.
            while carrier.link().acked_packets == 0 && began.elapsed() < QUIC {
                signals.wait_readable(&[], Some(LOOK_AGAIN))?;
            }
            let rtt = Some(carrier.link()).filter(|link| link.acked_packets > 0).map(|link| link.base_rtt);
            let rtt = rtt.map_or("unknown".into(), milliseconds);
            let place = reconnect.addresses().first().map(ToString::to_string).unwrap_or_default();
            let text = format!("QUIC at {place}: handshake {}, round trip {rtt}", milliseconds(took));
            return Ok(Check::ok(NAME, text));
        }
        Err(SessionError::Refused { reason, .. }) => (reason, Open::Unknown),
        Err(SessionError::NothingAnswered { tried, waited }) => {
            let open = Open::after(attempts(socket, signals)?);
            let tried: Vec<String> = tried.iter().map(|address| address.ip().to_string()).collect();
            (open.words(&tried.join(", "), waited), open)
        }
        Err(error @ SessionError::Signal(_)) => return Err(error.into()),
        Err(error) => return Ok(Check::fail(NAME, error.to_string(), error::hint(&error))),
    };
    let hint = if is_direct || open == Open::There { open.hint(host, port) } else { PROXY.to_owned() };
    Ok(Check::warn(NAME, format!("port {port}: {why}: {MEANS}"), hint))
}

/// How many handshakes have been begun at the session's port; `None` where it does not tell, as older ones do not.
///
/// # Errors
/// A signal.
fn attempts(socket: &OwnedFd, signals: &Signals) -> Result<Option<u64>, SessionError> {
    let clock = Clock::start();
    if say(socket, &Line::AskAttempts).is_err() {
        return Ok(None);
    }
    match hear(socket, &clock, clock.now() + PATIENCE, Some(signals)) {
        Ok(Line::Attempts(count)) => Ok(Some(count)),
        Err(error @ SessionError::Signal(_)) => Err(error),
        _ => Ok(None),
    }
}

/// Which ways are open to UDP where nothing came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    /// The way there, so the one back is closed.
    There,
    /// The way there is closed. Nothing is known of the one back.
    NotThere,
    Unknown,
}

impl Open {
    /// No other than this session's display knows its port: what came there were that one's attempts.
    fn after(attempts: Option<u64>) -> Self {
        match attempts {
            None => Self::Unknown,
            Some(0) => Self::NotThere,
            Some(_) => Self::There,
        }
    }

    fn words(self, tried: &str, waited: Duration) -> String {
        let waited = waited.as_secs();
        match self {
            Self::There => {
                format!("what is sent gets there, and nothing comes back within {waited} s from {tried}")
            }
            Self::NotThere => format!(
                "what is sent to {tried} does not get there, in {waited} s; whether an answer would come back is \
                 not known, for there was nothing to answer"
            ),
            Self::Unknown => format!(
                "nothing comes back within {waited} s from {tried}; whether what is sent gets there is not known"
            ),
        }
    }

    fn hint(self, host: &str, port: u16) -> String {
        let way = match self {
            Self::There => format!("from port {port} of `{host}` pass, to the ports that ask there"),
            Self::NotThere | Self::Unknown => {
                format!("to port {port} of `{host}` pass, and its answers, then ask again")
            }
        };
        let ports = "`--port 60000-61000` chooses ports that can be named there";
        format!("have each firewall on the way let UDP {way}; {ports}")
    }
}

/// The addresses of ssh's own way, if they are found in time.
fn looked_up(own: &OwnFlags, host: &str, port: u16) -> Vec<SocketAddr> {
    let question = configuration::question(own, &own.reach.ssh_options, OsStr::new(host));
    let (found, hears) = channel();
    // A name server may take longer than a user: its thread ends with this process.
    let look = move || drop(found.send(Configuration::ask(question).addresses(port)));
    let thread = std::thread::Builder::new().name("names".into()).spawn(look);
    thread.ok().and_then(|_| hears.recv_timeout(NAMES).ok()).unwrap_or_default()
}

/// What can be done where ssh's own way is none for UDP.
const PROXY: &str = "ssh gets there through another machine (ProxyJump, ProxyCommand), or its name was not found: UDP \
    needs a way of its own, such as a VPN, and `wayferry host --listen` with a ticket uses one";

fn milliseconds(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

/// How long the other side may take for its line, once it is there.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long QUIC may take.
const QUIC: Duration = Duration::from_secs(5);
/// How long to wait before a figure is looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// How long the look-up of a name may take.
const NAMES: Duration = Duration::from_secs(5);
