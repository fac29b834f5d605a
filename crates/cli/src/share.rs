//! `wayferry share`: a session in a browser. Serves the page from this machine and prints a link to it.
//!
//! The link's ticket is made by the session, over its control socket or through ssh; the browser that opens it goes to
//! the session by itself. What is served here is the page, the same for all, so nothing of a session passes through
//! this process. Invariant: the ticket is in the link's fragment and nowhere else, not on a command line either.

mod page;

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use wayferry_host::edge::signals::Signals;
use wayferry_host::edge::socket::random_name;
use wayferry_net::Ticket;
use wayferry_net::quic::PageOrigin;
use wayferry_net::site::{self, Server, Site};

use crate::error::{Error, SessionError};
use crate::flags::{OwnFlags, ShareFlags, Which};
use crate::manage::{self, span};
use crate::tell::{notice, print};

/// Serves the page until a signal comes; gives the exit code.
pub(crate) fn run(own: &OwnFlags, flags: &ShareFlags) -> Result<u8, Error> {
    let signals = Signals::new()?;
    let files = page::files(flags.page_files.as_deref())?;
    let (listeners, port) = site::bind(flags.serve_port.unwrap_or(0))
        .map_err(|error| SessionError::Bind { address: error.address.to_string(), source: error.source })?;
    let origin = origin(port)?;
    let site = Arc::new(Site::new(origin.clone(), files));
    let failed = |source| SessionError::System { doing: "serving the page", source };
    let _server = Server::start(listeners, Arc::clone(&site)).map_err(failed)?;
    let which = flags.which.which.clone().unwrap_or(Which::Here(None));
    let good_for = flags.good_for.unwrap_or(if flags.control { CONTROL } else { VIEW });
    let ticket = match manage::page_ticket(own, &which, origin.clone(), !flags.control, good_for)? {
        Ok(ticket) => ticket,
        Err(code) => return Ok(code),
    };
    let place = place(&ticket, flags.control)?;
    print(format!("{origin}{place}\n").as_bytes())?;
    notice(&meaning(flags.control, good_for));
    if flags.open {
        open(&site, place);
    }
    signals.wait_readable(&[], None)?;
    Ok(0)
}

/// Where the page is, as a browser of this machine calls it.
fn origin(port: u16) -> Result<PageOrigin, Error> {
    let usual = port == 80;
    let text = if usual { "http://localhost".to_owned() } else { format!("http://localhost:{port}") };
    text.parse().map_err(|_| Error::usage(format!("`{text}` is no place of a page")))
}

/// What follows the origin in a link with this ticket.
///
/// # Errors
/// It is none: what is printed and opened here has no other words in it.
fn place(ticket: &str, control: bool) -> Result<String, Error> {
    if ticket.parse::<Ticket>().is_err() {
        return Err(SessionError::PeerViolation("what it said is no ticket".into()).into());
    }
    let control = if control { "control," } else { "" };
    Ok(format!("/#{control}{ticket}"))
}

/// What the user should know of a link.
fn meaning(control: bool, good_for: Duration) -> String {
    let what = if control { "has" } else { "views" };
    let within = span(good_for.as_secs());
    format!("who opens the link first, within {within}, {what} the session; Ctrl-C ends the page")
}

/// Has the desk's browser open the link, by an address that is good once: others can see its command line.
fn open(site: &Site, place: String) {
    let path = format!("/open-{}", random_name());
    let once = format!("{}{path}", site.origin());
    site.open_once(path, place);
    let opener = Command::new("xdg-open").arg(once).stdin(Stdio::null()).stdout(Stdio::null()).spawn();
    match opener {
        // It may stay as long as the browser.
        Ok(mut opener) => drop(std::thread::spawn(move || opener.wait())),
        Err(error) => notice(&format!("the link is not opened: cannot run `xdg-open`: {error}")),
    }
}

/// How long a link to a session's windows is good, unless the user says otherwise.
const VIEW: Duration = Duration::from_secs(60 * 60);
/// The same where it takes the session over.
const CONTROL: Duration = Duration::from_secs(10 * 60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_at_localhost_as_browsers_write_it() {
        let origin = |port| origin(port).ok().map(|origin| origin.to_string());
        assert_eq!(origin(8000).as_deref(), Some("http://localhost:8000"));
        assert_eq!(origin(80).as_deref(), Some("http://localhost"), "without the scheme's own port");
    }

    #[test]
    fn only_a_ticket_becomes_a_link() {
        for text in ["", "wf1:x", "wf1:\u{1b}[2J", "javascript:x", "wf1:x y"] {
            assert_eq!(place(text, false).map_err(|error| error.code()), Err(76), "{text}");
        }
    }

    #[test]
    fn what_a_link_means_is_said_with_its_end() {
        let told = meaning(true, CONTROL);
        assert_eq!(told, "who opens the link first, within 10 min, has the session; Ctrl-C ends the page");
        assert!(meaning(false, VIEW).contains("within 1 h 0 min, views the session"));
    }
}
