//! `wayferry share`: a session in a browser. Serves the page from this machine and prints a link to it.
//!
//! The link's ticket is made by the session, over its control socket or through ssh; the browser that opens it goes to
//! the session by itself. What is served here is the page, the same for all; where the browser has no way of its own,
//! its bytes pass through this process, which looks into none of them. Which links there are, and who came by them, the
//! session knows. Invariant: the ticket is in the link's fragment and nowhere else, not on a command line either.

mod gate;
mod guests;
mod list;
mod page;
mod socket;

use std::net::IpAddr;
use std::process::{Command, Stdio};
use std::sync::Arc;

use serde_json::json;
use wayferry_host::control::{self, Answer, LinkRole, NewLink, Request, Share, Word};
use wayferry_host::edge::signals::Signals;
use wayferry_host::edge::socket::random_name;
use wayferry_host::sanitize;
use wayferry_host::sessions;
use wayferry_net::Ticket;
use wayferry_net::quic::PageOrigin;
use wayferry_net::site::{self, Server, Site};

use self::guests::Guests;
use crate::error::{Error, SessionError};
use crate::flags::{Links, OwnFlags, ShareFlags, Which};
use crate::host::ssh_server_address;
use crate::manage::{self, span};
use crate::tell::{notice, print};

/// Shares a session, tells of its links, or takes them back; gives the exit code.
pub(crate) fn run(own: &OwnFlags, flags: &ShareFlags) -> Result<u8, Error> {
    let which = flags.which.which.clone().unwrap_or(Which::Here(None));
    if let Some(id) = flags.close {
        return manage::order(own, Some(which), &Request::CloseLink(id));
    }
    match (flags.revoke, &flags.origin) {
        (Some(Links(links)), _) => manage::order(own, Some(which), &Request::RevokeLinks(links)),
        (None, _) if flags.list => list::list(own, &which, flags.json),
        (None, Some(page)) => answer(own, flags, page.clone(), &which),
        (None, None) => serve(own, flags, &which),
    }
}

/// Prints the answer of a session of this machine to who asks for a link through ssh.
fn answer(own: &OwnFlags, flags: &ShareFlags, page: PageOrigin, which: &Which) -> Result<u8, Error> {
    let reached = flags.reached.or_else(|| Some(ssh_server_address()).filter(|ip| !ip.is_unspecified()));
    match make(own, flags, page, reached, which)? {
        Ok((link, which)) => print(format!("{}\n{}", Answer::Link(link).encode(), called(&which)).as_bytes()),
        Err(code) => Ok(code),
    }
}

/// Serves the page until a signal comes.
fn serve(own: &OwnFlags, flags: &ShareFlags, which: &Which) -> Result<u8, Error> {
    let signals = Signals::new()?;
    let files = page::files(flags.page_files.as_deref())?;
    let guests = Guests::wanted(flags)?;
    let (listeners, port) = match &guests {
        None => site::bind(flags.serve_port.unwrap_or(0)),
        Some(_) => site::bind_everywhere(flags.serve_port.unwrap_or(HTTPS_PORT)),
    }
    .map_err(Error::PagePort)?;
    let origin = match &guests {
        None => origin(&random_name(), port),
        Some(guests) => guests.origin(port),
    }?;
    let here = matches!(which, Which::Here(_));
    let reached = guests.as_ref().filter(|_| here).and_then(Guests::address);
    // Others may come while it is shared.
    let (mut link, which) = match make(own, flags, origin.clone(), reached, which)? {
        Ok(made) => made,
        Err(code) => return Ok(code),
    };
    let which = &which;
    if guests.is_some() {
        link.ticket = guests::ticket(&ticket(&link)?).to_string();
    }
    let place = place(&link)?;
    let files = files.into_iter().chain([page::links(&link.ticket)]);
    let sockets = socket::sockets(own, which, &link.ticket);
    let site = Arc::new(Site::new(origin.clone(), files).with_sockets(sockets));
    let failed = |source| SessionError::System { doing: "serving the page", source };
    let tls = guests.as_ref().map(|guests| guests.tls.clone());
    let _server = Server::start(listeners, Arc::clone(&site), tls).map_err(failed)?;
    print(told(&format!("{origin}{place}"), &link, flags.json).as_bytes())?;
    notice(&meaning(&link, which));
    if guests.is_some() {
        notice(&guests::way(&ticket(&link)?, port));
    }
    if flags.open {
        open(&site, place);
    }
    let ended = signals.wait_readable(&[], None);
    // Before the port is free: any user of this machine may have it then, and who opens the link again tells him the
    // ticket.
    let closed = manage::order(own, Some(which.clone()), &Request::CloseLink(link.id));
    notice(&parting(&link, which, matches!(closed, Ok(0))));
    ended?;
    Ok(0)
}

/// What the user should know of a link whose page is served no more.
fn parting(link: &NewLink, which: &Which, closed: bool) -> String {
    let NewLink { id, .. } = link;
    match closed {
        true => {
            format!(
                "the page is served no more, and link {id} lets no more guests in; who came by it may stay"
            )
        }
        false => format!(
            "the page is served no more, but the session was not told: link {id} may be good still. Do not open it \
             again: another user of this machine could read it then. `{}` takes it back",
            revoking(link, which)
        ),
    }
}

/// What takes this link back.
fn revoking(link: &NewLink, which: &Which) -> String {
    let which = if *which == Which::Here(None) { String::new() } else { format!(" {which}") };
    format!("wayferry share --revoke {}{which}", link.id)
}

/// What the session of a link is called, for who has asked through ssh: a line behind the link's.
fn called(which: &Which) -> String {
    match which {
        Which::Here(Some(name)) => format!("{SESSION}{name}\n"),
        _ => String::new(),
    }
}

/// The name in such a line; one of an older version says none.
fn name_in(printed: &[u8]) -> Option<String> {
    let name = std::str::from_utf8(printed).ok()?.lines().next()?.strip_prefix(SESSION)?;
    sessions::check(name).is_ok().then(|| name.to_owned())
}

/// The session by its name, if that is known.
fn named(which: &Which, name: Option<String>) -> Which {
    match which {
        Which::Here(None) => Which::Here(name),
        Which::There { host, session: None } => Which::There { host: host.clone(), session: name },
        which => which.clone(),
    }
}

/// A link for pages from there, and its session by name; or the exit code of what has failed on the other machine and
/// has said so.
fn make(
    own: &OwnFlags,
    flags: &ShareFlags,
    page: PageOrigin,
    reached: Option<IpAddr>,
    which: &Which,
) -> Result<Result<(NewLink, Which), u8>, Error> {
    let ShareFlags { control, good_for, .. } = *flags;
    let request = Request::Share(Share { control, good_for, page, reached });
    let read = |mut printed| {
        let answer = control::take(&mut printed).ok().flatten()?;
        Some((name_in(&printed), answer))
    };
    match manage::ask_session(own, which, &request, read)? {
        Ok((name, Answer::Link(link))) if link.control == control => Ok(Ok((link, named(which, name)))),
        Ok(_) => Err(SessionError::PeerViolation("what it said is no such link".into()).into()),
        Err(code) => Ok(Err(code)),
    }
}

/// Where the page is, as a browser of this machine calls it: by `name`, which is to be new in each run. All users of
/// the machine can have been at `localhost` with this port before, and a browser keeps what it was given there: a page,
/// or a service worker, would be told the ticket. Cookies are kept for a name with all of its ports.
fn origin(name: &str, port: u16) -> Result<PageOrigin, Error> {
    let host = format!("http://{name}.localhost");
    let text = if port == HTTP_PORT { host } else { format!("{host}:{port}") };
    text.parse().map_err(|_| Error::usage(format!("`{text}` is no place of a page")))
}

/// The ticket in this link.
///
/// # Errors
/// It has none: what is printed and opened here has no other words in it.
fn ticket(link: &NewLink) -> Result<Ticket, Error> {
    let none = || SessionError::PeerViolation("what it said is no ticket".into());
    Ok(link.ticket.parse().map_err(|_| none())?)
}

/// What follows the origin in this link.
fn place(link: &NewLink) -> Result<String, Error> {
    ticket(link)?;
    let control = if link.control { "control," } else { "" };
    Ok(format!("/#{control}{}", link.ticket))
}

/// The link as a line, or as JSON on one.
fn told(address: &str, link: &NewLink, as_json: bool) -> String {
    if !as_json {
        return format!("{address}\n");
    }
    let role = if link.control { LinkRole::Control } else { LinkRole::View };
    let (id, seconds, uses) = (u32::from(link.id), link.seconds, link.uses);
    let document = json!({ "link": address, "id": id, "role": role, "seconds": seconds, "uses": uses });
    sanitize::json(&document, false)
}

/// What the user should know of a link.
fn meaning(link: &NewLink, which: &Which) -> String {
    let NewLink { id, control, seconds, uses, .. } = link;
    let who = match control {
        true => "who opens it first has the session".to_owned(),
        false => format!("up to {uses} may view the session by it"),
    };
    let within = span(*seconds);
    let revoking = revoking(link, which);
    format!("link {id}: {who}, within {within}; `{revoking}` ends that, and Ctrl-C lets no more guests in")
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

/// What goes before a session's name in the answer to who has asked through ssh.
const SESSION: &str = "session ";
/// Of `http` (RFC 9110 §4.2.1).
const HTTP_PORT: u16 = 80;
/// Of `https` (RFC 9110 §4.2.2).
const HTTPS_PORT: u16 = 443;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_below_localhost_as_browsers_write_it() {
        let origin = |name: &str, port| origin(name, port).ok().map(|origin| origin.to_string());
        assert_eq!(origin("a", 8000).as_deref(), Some("http://a.localhost:8000"));
        assert_eq!(origin("a", 80).as_deref(), Some("http://a.localhost"), "without the scheme's own port");
        for _ in 0..100 {
            assert!(origin(&random_name(), 8000).is_some(), "each name is one of a host");
        }
    }

    fn link(control: bool, ticket: &str) -> NewLink {
        let id = "3".parse().expect("an id");
        NewLink { id, control, seconds: 600, uses: if control { 1 } else { 8 }, ticket: ticket.to_owned() }
    }

    #[test]
    fn only_a_ticket_becomes_a_link() {
        for text in ["", "wf1:x", "wf1:\u{1b}[2J", "javascript:x", "wf1:x y"] {
            assert_eq!(place(&link(false, text)).map_err(|error| error.code()), Err(76), "{text}");
        }
    }

    #[test]
    fn what_a_link_means_is_said_with_what_ends_it() {
        assert_eq!(
            meaning(&link(true, "x"), &Which::Here(None)),
            "link 3: who opens it first has the session, within 10 min; `wayferry share --revoke 3` ends that, \
             and Ctrl-C lets no more guests in"
        );
        let there = "user@host:foot".parse().expect("a session");
        let told = meaning(&link(false, "x"), &there);
        assert!(told.contains("up to 8 may view the session by it, within"), "{told}");
        assert!(told.contains("`wayferry share --revoke 3 user@host:foot`"), "{told}");
    }

    #[test]
    fn regression_a_session_that_was_not_named_is_kept_by_its_name() {
        let here = named(&Which::Here(None), Some("foot".to_owned()));
        assert_eq!(here, Which::Here(Some("foot".to_owned())));
        let there = |text: &str| text.parse::<Which>().expect("a session");
        let printed = called(&here);
        assert_eq!(named(&there("host"), name_in(printed.as_bytes())), there("host:foot"));
        assert_eq!(named(&there("host:bar"), Some("foot".to_owned())), there("host:bar"));
        for printed in ["", "foot\n", "session \n", "session a b\n", "session ../x\n", "session \u{1b}[2J\n"]
        {
            assert_eq!(named(&there("host"), name_in(printed.as_bytes())), there("host"), "{printed}");
        }
    }

    #[test]
    fn what_becomes_of_a_link_at_the_end_is_said() {
        let there = "user@host:foot".parse().expect("a session");
        let told = parting(&link(false, "x"), &there, true);
        assert!(told.contains("link 3 lets no more guests in"), "{told}");
        let told = parting(&link(false, "x"), &there, false);
        assert!(
            told.contains("Do not open it again") && told.contains("--revoke 3 user@host:foot`"),
            "{told}"
        );
    }

    #[test]
    fn a_link_is_told_as_json_on_one_line() {
        assert_eq!(told("http://x/#y", &link(true, "x"), false), "http://x/#y\n");
        let document = told("http://x/#y", &link(true, "x"), true);
        let document: serde_json::Value = serde_json::from_str(&document).expect("a document");
        let expected =
            json!({ "link": "http://x/#y", "id": 3, "role": "control", "seconds": 600, "uses": 1 });
        assert_eq!(document, expected);
    }
}
