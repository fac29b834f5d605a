//! A site of few files over HTTP/1.1: the page that a browser needs before it can show a session.
//!
//! [`Site`] says what is answered, [`Server`] does it, in the clear or in [`Tls`]: one request for each connection,
//! then its end. There are exact paths and nothing behind them: no folders, no queries, no ranges, and nothing that a
//! caller sends is kept. A site may have [`Sockets`]: what its page says there goes on to a session, once it has shown
//! that it was opened by a link. A request that names another host is refused, so that no other page gets at the site
//! by a name of its own (DNS rebinding). Invariant: what is served was given at the start; nothing of the file system
//! can be asked for.

mod answer;
mod caller;
mod listen;
mod place;
mod relay;
mod request;
mod server;
mod socket;
mod tls;
mod wire;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use self::answer::Answer;
pub use self::listen::{BindError, bind, bind_everywhere};
use self::request::{Method, Request};
pub use self::server::Server;
use self::socket::accept;
pub use self::socket::{Caller, Road, Sockets};
pub use self::tls::{Objection, Tls, TlsFault};
use crate::quic::PageOrigin;

/// A file of a site.
#[derive(Debug, Clone)]
pub struct File {
    /// Its name, which is its path behind the first slash.
    pub name: String,
    /// What it holds.
    pub bytes: Cow<'static, [u8]>,
    /// It is packed with gzip, and told to be (RFC 9110 §8.4.1.3): every browser unpacks that.
    pub packed: bool,
}

/// What is served, and where.
#[derive(Debug)]
pub struct Site {
    origin: PageOrigin,
    files: BTreeMap<String, File>,
    /// Leads to the place behind it, once.
    door: Mutex<Option<Door>>,
    sockets: Option<Sockets>,
}

/// What is done with a request.
enum Reply<'a> {
    /// It has this answer.
    Answer(Answer<'a>),
    /// It goes on as a WebSocket, behind this.
    Socket(Vec<u8>, &'a Sockets),
}

#[derive(Debug)]
struct Door {
    path: String,
    place: String,
}

impl Site {
    /// These files at `origin`; `index.html` is the one without a name.
    pub fn new(origin: PageOrigin, files: impl IntoIterator<Item = File>) -> Self {
        let files = files.into_iter().map(|file| (file.name.clone(), file));
        Self { origin, files: files.collect(), door: Mutex::default(), sockets: None }
    }

    /// Its page may have a WebSocket, too.
    #[must_use]
    pub fn with_sockets(self, sockets: Sockets) -> Self {
        Self { sockets: Some(sockets), ..self }
    }

    /// Where it is.
    pub fn origin(&self) -> &PageOrigin {
        &self.origin
    }

    /// The first program of this user that asks for `path`, which begins with a slash, is sent on to `place`, and no
    /// other. It replaces an earlier one. So a place with a secret in it need not stand on a command line.
    pub fn open_once(&self, path: String, place: String) {
        *self.door.lock().unwrap_or_else(PoisonError::into_inner) = Some(Door { path, place });
    }

    /// As [`Self::answer`], for a request that may go on as a WebSocket. All that is asked in vain is answered alike.
    fn reply(&self, request: &Request, is_own: impl FnOnce() -> bool) -> Reply<'_> {
        let here = self.authority();
        let is_here = |request: &&Request| {
            request.method == Method::Get && request.path == PLACE && request.host.eq_ignore_ascii_case(here)
        };
        let upgrade = Some(request).filter(is_here).and_then(|request| request.upgrade.as_ref());
        match (upgrade.filter(|it| it.origin == self.origin.as_str()), &self.sockets) {
            (Some(upgrade), Some(sockets)) => Reply::Socket(Answer::switched(&accept(&upgrade.key)), sockets),
            _ => Reply::Answer(self.answer(request, is_own)),
        }
    }

    /// `is_own` says whether the caller is a program of this user.
    fn answer(&self, request: &Request, is_own: impl FnOnce() -> bool) -> Answer<'_> {
        if !request.host.eq_ignore_ascii_case(self.authority()) {
            return Answer::elsewhere();
        }
        if request.method == Method::Other {
            return Answer::wrong_method();
        }
        if request.method == Method::Get
            && let Some(place) = self.pass(&request.path, is_own)
        {
            return Answer::moved(&place);
        }
        let name = request.path.strip_prefix('/').unwrap_or_default();
        let name = if name.is_empty() { "index.html" } else { name };
        self.files.get(name).map_or_else(Answer::nothing, Answer::file)
    }

    /// The place behind the door, which is closed then.
    fn pass(&self, path: &str, is_own: impl FnOnce() -> bool) -> Option<String> {
        let mut door = self.door.lock().unwrap_or_else(PoisonError::into_inner);
        door.take_if(|door| door.path == path && is_own()).map(|door| door.place)
    }

    /// The origin without its scheme, as a browser names it in `Host`.
    fn authority(&self) -> &str {
        let origin = self.origin.as_str();
        origin.split_once("://").map_or(origin, |(_, authority)| authority)
    }
}

/// Where a page has its WebSocket; the same as on WebTransport.
const PLACE: &str = "/wayferry/1";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn site() -> Site {
        let file = |name: &str, packed| File { name: name.into(), bytes: Cow::Borrowed(b"content"), packed };
        let origin = "http://localhost:8000".parse().expect("an origin");
        Site::new(origin, [file("index.html", true), file("viewer.wasm", false)])
    }

    fn ask(site: &Site, line: &str, host: &str) -> String {
        ask_as(site, line, host, true)
    }

    fn ask_as(site: &Site, line: &str, host: &str, is_own: bool) -> String {
        let text = format!("{line} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let request::Read::Whole(request) = request::read(text.as_bytes()) else { panic!("{text}") };
        let answer = site.answer(&request, || is_own).bytes(request.method);
        String::from_utf8(answer).expect("text")
    }

    #[test]
    fn files_have_their_kinds_and_all_answers_the_same_fences() {
        let site = site();
        let index = ask(&site, "GET /", "localhost:8000");
        assert!(index.starts_with("HTTP/1.1 200 OK\r\n") && index.ends_with("\r\n\r\ncontent"), "{index}");
        assert!(index.contains("\r\nContent-Encoding: gzip\r\n") && index.contains(": text/html"), "{index}");
        let viewer = ask(&site, "GET /viewer.wasm", "LocalHost:8000");
        assert!(viewer.contains("application/wasm") && !viewer.contains("Encoding"), "{viewer}");
        let head = ask(&site, "HEAD /", "localhost:8000");
        assert!(head.contains("\r\nContent-Length: 7\r\n") && head.ends_with("\r\n\r\n"), "{head}");
        let others =
            [("GET /nothing", "localhost:8000"), ("GET /", "else:8000"), ("POST /", "localhost:8000")];
        for answer in [index, head].into_iter().chain(others.map(|(line, host)| ask(&site, line, host))) {
            for field in [
                "Cache-Control: no-store",
                "X-Content-Type-Options: nosniff",
                "Cross-Origin-Opener-Policy: same-origin",
                "Cross-Origin-Resource-Policy: same-origin",
                "Content-Security-Policy: default-src 'none';",
                "Connection: close",
            ] {
                assert!(answer.contains(&format!("\r\n{field}")), "{field}: {answer}");
            }
        }
    }

    #[test]
    fn there_are_exact_paths_and_one_host() {
        let site = site();
        for path in ["/page.js", "/index.html/", "//", "/?", "/index.html?x", "/../index.html", "/INDEX.HTML"]
        {
            assert!(ask(&site, &format!("GET {path}"), "localhost:8000").contains(" 404 "), "{path}");
        }
        for host in
            ["localhost", "localhost:8001", "evil.example:8000", "127.0.0.1:8000", "", "a@localhost:8000"]
        {
            let answer = ask(&site, "GET /", host);
            assert!(answer.contains(" 421 ") && !answer.contains("content"), "{host}: {answer}");
            assert!(!answer.contains("localhost"), "its name is not told: {answer}");
        }
        let answer = ask(&site, "PUT /", "localhost:8000");
        assert!(answer.contains(" 405 ") && answer.contains("\r\nAllow: GET, HEAD\r\n"), "{answer}");
    }

    #[test]
    fn a_door_opens_once_and_only_for_this_user() {
        let site = site();
        site.open_once("/open-abc".into(), "/#wf1:x".into());
        assert!(ask(&site, "GET /open-abd", "localhost:8000").contains(" 404 "));
        assert!(ask(&site, "GET /open-abc", "else").contains(" 421 "), "and not for others");
        assert!(ask_as(&site, "GET /open-abc", "localhost:8000", false).contains(" 404 "), "another user");
        assert!(ask(&site, "HEAD /open-abc", "localhost:8000").contains(" 404 "));
        let answer = ask(&site, "GET /open-abc", "localhost:8000");
        assert!(answer.contains(" 303 ") && answer.contains("\r\nLocation: /#wf1:x\r\n"), "{answer}");
        assert!(ask(&site, "GET /open-abc", "localhost:8000").contains(" 404 "));
    }

    // Here, because the fuzz target of the parser loads its file.
    proptest! {
        #[test]
        fn any_head_is_read_alike_in_any_pieces(
            bytes in prop::collection::vec(prop_oneof![Just(b'\r'), Just(b'\n'), Just(b' '), any::<u8>()], 0..300),
            at in any::<prop::sample::Index>(),
        ) {
            let bytes = [&b"GET / HTTP/1.1\r\nHost: a"[..], &bytes, b"\r\n\r\n"].concat();
            let before = request::read(&bytes[..at.index(bytes.len())]);
            prop_assert!(before == request::Read::Part || before == request::read(&bytes));
        }
    }
}
