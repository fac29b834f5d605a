//! `wayferry share --https`: the page for browsers elsewhere.
//!
//! The user brings a certificate; what browsers would object to is told and hinders nothing, for what they trust is
//! not known here. Where guests reach the session it says itself, and of a session of this machine the name tells one
//! more address. Invariant: no link for guests leads them to their own machine if it leads anywhere else.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use wayferry_net::quic::PageOrigin;
use wayferry_net::site::{Tls, TlsFault};
use wayferry_net::{Identity, PemFault, Ticket};

use super::HTTPS_PORT;
use crate::error::Error;
use crate::flags::ShareFlags;
use crate::tell::notice;

/// How guests find the page.
pub(super) struct Guests {
    pub(super) tls: Tls,
    /// As they call this machine.
    name: String,
}

impl Guests {
    /// Those that these options want, if any. Says what their browsers would object to.
    ///
    /// # Errors
    /// A file cannot be used, or there is no name; or the link is to be opened here.
    pub(super) fn wanted(flags: &ShareFlags) -> Result<Option<Self>, Error> {
        let Some([chain, key]) = flags.https.as_deref() else { return Ok(None) };
        if flags.open {
            let hint = "leave `--open` out, and open the link that is printed".to_owned();
            return Err(Error::Usage { what: "`--open` is not for `--https`".to_owned(), hint: Some(hint) });
        }
        let tls = load(chain, key)?;
        let name = name(&tls, chain, flags.https_name.as_deref())?;
        for objection in tls.objections(&name) {
            let chain = chain.display();
            notice(&format!(
                "browsers will refuse the page as `{name}`: the certificate `{chain}` {objection}"
            ));
        }
        Ok(Some(Self { tls, name }))
    }

    /// Where the page is.
    ///
    /// # Errors
    /// The name is none that a browser can call a machine.
    pub(super) fn origin(&self, port: u16) -> Result<PageOrigin, Error> {
        origin(&self.name, port)
    }

    /// The address that the name stands for: behind a router that passes ports on this machine does not know it. Of
    /// several one of IPv4, which is where that is done. `None` also where it is not found in time.
    pub(super) fn address(&self) -> Option<IpAddr> {
        let (name, (found, address)) = (self.name.clone(), mpsc::channel());
        // The system's own patience is longer than a user's, and cannot be cut short.
        std::thread::spawn(move || {
            let all = (name, 0).to_socket_addrs().map(Iterator::collect::<Vec<_>>).unwrap_or_default();
            let _ = found.send(best(all.iter().map(SocketAddr::ip)));
        });
        address.recv_timeout(LOOKUP_PATIENCE).ok().flatten()
    }
}

fn best(found: impl Iterator<Item = IpAddr>) -> Option<IpAddr> {
    let mut fit: Vec<IpAddr> = found.filter(|ip| !ip.is_loopback() && !ip.is_unspecified()).collect();
    // Those of a kind stay in the order of the system.
    fit.sort_by_key(IpAddr::is_ipv6);
    fit.into_iter().next()
}

fn load(chain: &Path, key: &Path) -> Result<Tls, Error> {
    let identity = Identity::load(chain, key).map_err(|error| {
        let hint = match &error.fault {
            PemFault::Read(_) => {
                "check that the file exists and may be read by you; certbot's are root's alone"
            }
            PemFault::NothingThere => "give two files in PEM, `--https CERT KEY`",
        };
        Error::PageCertificate { what: error.to_string(), hint }
    })?;
    Tls::new(&identity).map_err(|fault| {
        let (chain, key) = (chain.display(), key.display());
        let what = match fault {
            TlsFault::NoCertificate => format!("cannot use `{chain}`: {fault}"),
            TlsFault::Key(_) => format!("cannot use `{key}` with `{chain}`: {fault}"),
        };
        let hint = "give the certificate's own key, and in CERT that certificate before all others";
        Error::PageCertificate { what, hint }
    })
}

/// What guests call this machine: the word of the user, or the certificate.
fn name(tls: &Tls, chain: &Path, wanted: Option<&str>) -> Result<String, Error> {
    if let Some(name) = wanted {
        // It has to be one before a port is taken and a link is made.
        return origin(name, HTTPS_PORT).map(|_| name.to_owned());
    }
    let names = tls.names();
    let is_usable = |name: &&String| origin(name, HTTPS_PORT).is_ok();
    if let Some(name) = names.iter().find(is_usable) {
        return Ok(name.clone());
    }
    let what = match names.is_empty() {
        true => format!("the certificate `{}` has no DNS name", chain.display()),
        false => format!("the certificate `{}` has no DNS name without a wildcard", chain.display()),
    };
    let hint = "say what browsers call this machine, as with `--name page.example.org`".to_owned();
    Err(Error::Usage { what, hint: Some(hint) })
}

fn origin(name: &str, port: u16) -> Result<PageOrigin, Error> {
    let is_host = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte));
    let text = match port {
        HTTPS_PORT => format!("https://{name}"),
        _ => format!("https://{name}:{port}"),
    };
    let wrong = || Error::Usage {
        what: format!("`{name}` is no name that browsers call a machine"),
        hint: Some(
            "give a host name in small letters, without a port: that is what `--port` is for".to_owned(),
        ),
    };
    if is_host(name) { text.parse().map_err(|_| wrong()) } else { Err(wrong()) }
}

/// The ticket for guests: at the loopback device's addresses they would find their own machines.
pub(super) fn ticket(ticket: &Ticket) -> Ticket {
    let far = ticket.addresses.iter().filter(|address| !address.ip().is_loopback());
    let addresses: Vec<_> = far.copied().collect();
    let mut ticket = ticket.clone();
    if !addresses.is_empty() {
        ticket.addresses = addresses;
    }
    ticket
}

/// What guests have to reach.
pub(super) fn way(ticket: &Ticket, port: u16) -> String {
    let far = ticket.addresses.iter().find(|address| !address.ip().is_loopback());
    match far {
        Some(address) => format!(
            "guests need TCP port {port} of this machine, and better UDP port {} of the session's, too: without, all \
             goes by way of this machine",
            address.port()
        ),
        None => format!(
            "guests need TCP port {port} of this machine, and all goes by way of it: the session is at no address but \
             this machine's own"
        ),
    }
}

/// How long a name is looked up.
const LOOKUP_PATIENCE: Duration = Duration::from_secs(3);

#[cfg(test)]
mod tests {
    use wayferry_net::Fingerprint;
    use wayferry_proto::{Secret, SessionId};

    use super::*;

    fn tls(names: &[&str]) -> Tls {
        let names: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
        let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
        let (chain, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let identity = Identity::from_pem(chain.as_bytes(), key.as_bytes()).expect("PEM");
        Tls::new(&identity).expect("they fit")
    }

    #[test]
    fn the_name_is_the_users_or_the_certificates_first_without_a_wildcard() {
        let named = |names: &[&str], wanted| {
            name(&tls(names), Path::new("c.pem"), wanted).map_err(|error| (error.code(), error.to_string()))
        };
        assert_eq!(named(&["*.a.test", "b.test", "c.test"], None), Ok("b.test".into()));
        assert_eq!(named(&["*.a.test"], Some("x.a.test")), Ok("x.a.test".into()));
        let wild = "the certificate `c.pem` has no DNS name without a wildcard";
        assert_eq!(named(&["*.a.test"], None), Err((64, wild.into())));
        let none = "the certificate `c.pem` has no DNS name";
        assert_eq!(named(&["192.0.2.1"], None), Err((64, none.into())));
        for text in ["", "A.test", "a.test:8443", "a.test/x", "*.a.test", "u@a.test", "a b", "[::1]", "a#b"] {
            assert!(named(&["b.test"], Some(text)).is_err_and(|(code, _)| code == 64), "{text}");
        }
    }

    #[test]
    fn the_origin_is_as_browsers_write_it() {
        let text = |name, port| origin(name, port).map(|origin| origin.to_string()).ok();
        assert_eq!(text("page.test", 443).as_deref(), Some("https://page.test"));
        assert_eq!(text("page.test", 8443).as_deref(), Some("https://page.test:8443"));
        assert_eq!(text("192.0.2.1", 443).as_deref(), Some("https://192.0.2.1"));
    }

    #[test]
    fn guests_are_not_led_to_their_own_machines() {
        let ticket_at = |addresses: &[&str]| Ticket {
            addresses: addresses.iter().map(|text| text.parse().expect("an address")).collect(),
            fingerprint: Fingerprint([1; 32]),
            secret: Secret::from([2; 32]),
            session: SessionId([3; 16]),
        };
        let all = ticket_at(&["192.0.2.1:9", "[2001:db8::1]:9", "127.0.0.1:9", "[::1]:9"]);
        assert_eq!(ticket(&all), ticket_at(&["192.0.2.1:9", "[2001:db8::1]:9"]));
        let told = way(&ticket(&all), 443);
        assert!(
            told.starts_with("guests need TCP port 443 of this machine, and better UDP port 9 "),
            "{told}"
        );
        let here = ticket_at(&["127.0.0.1:9"]);
        assert_eq!(ticket(&here), here, "for a browser of this machine");
        assert!(way(&here, 443).contains("all goes by way of it: the session is at no address but this"));
    }

    #[test]
    fn the_address_of_a_name_is_one_that_others_can_reach() {
        let best = |ips: &[&str]| best(ips.iter().map(|ip| ip.parse().expect("an address")));
        let v4: Option<IpAddr> = "192.0.2.1".parse().ok();
        assert_eq!(best(&["127.0.1.1", "2001:db8::1", "192.0.2.1", "192.0.2.2"]), v4);
        assert_eq!(best(&["::1", "2001:db8::1"]), "2001:db8::1".parse().ok());
        assert_eq!(best(&["127.0.0.1", "0.0.0.0"]), None);
    }
}
