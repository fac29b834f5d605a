//! `wayferry share`: a link, and the page that it opens.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use serde_json::Value;
use wayferry_host::display_side::Outcome;
use wayferry_host::error::Error;
use wayferry_net::Ticket;
use wayferry_proto::Capabilities;

use crate::pages::{Display, may_come};
use crate::rig::{Compositor, Program, Session, Sshd, Sway, until};
use crate::sessions::{attach_here, manage, through_ssh};

#[test]
fn a_shared_session_has_a_link_and_the_page_is_served_to_this_machine_until_the_end() {
    let sway = Sway::start();
    let mut session = Session::start(&sway);
    std::fs::create_dir_all(session.home().file("page")).expect("a directory");
    let files =
        [("index.html", "text/html"), ("page.js", "text/javascript"), ("viewer.wasm", "application/wasm")];
    for (name, _) in files {
        session.home().write(&format!("page/{name}"), name);
    }
    session.home().write("secret", "not for the page");
    let folder = session.home().file("page").display().to_string();
    let words = ["share", "--page-files", &folder];
    let mut share = manage(&session, &words).start();
    let link = share.first_line();
    let (origin, ticket) = link.split_once("/#").expect("a link with its ticket behind the `#`");
    let ticket: Ticket = ticket.parse().expect("a ticket");
    assert!(may_come(&ticket, origin) && !may_come(&ticket, "http://localhost:1"), "{link}");
    let host = origin.strip_prefix("http://").expect("http");
    let (name, port) = host.split_once(".localhost:").expect("a name below `localhost`");
    let port: u16 = port.parse().expect("a port");
    for (name, kind) in files {
        let answer = fetch(port, &format!("/{name}"), host);
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with(&format!("\r\n\r\n{name}")));
        assert!(answer.contains(&format!("\r\nContent-Type: {kind}")), "{answer}");
        assert!(answer.contains("\r\nContent-Security-Policy: default-src 'none'; "), "{answer}");
    }
    assert!(fetch(port, "/", host).ends_with("\r\n\r\nindex.html"));
    for path in ["/secret", "/../secret", "/page/", "/%2e%2e/secret", "//etc/passwd"] {
        assert!(fetch(port, path, host).starts_with("HTTP/1.1 404 "), "{path}");
    }
    for other in ["rebound.example", "localhost", "other.localhost", "127.0.0.1"] {
        let answer = fetch(port, "/", &format!("{other}:{port}"));
        assert!(answer.starts_with("HTTP/1.1 421 ") && !answer.contains(name), "{other}: {answer}");
    }
    let control =
        manage(&session, &[&words[..], &["--control", "--for", "30s"]].concat()).start().first_line();
    assert!(!control.contains(name), "each run has a name of its own: {control}");
    let (_, ticket) = control.split_once("/#control,").expect("a link that says what it is for");
    assert!(ticket.parse::<Ticket>().is_ok(), "{control}");
    share.terminate();
    share.ended();
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err(), "{}", share.stderr());
    session.must_run();
}

#[test]
fn what_cannot_be_shared_says_so() {
    let sway = Sway::start();
    let session = Session::start(&sway);
    let file = session.home().write("page-file", "no directory").display().to_string();
    for (words, code) in [(["--page-files", &file, ":missing"], 74), (["--page-files", ".", ":missing"], 82)]
    {
        let mut share = manage(&session, &[&["share"], &words[..]].concat()).start();
        assert_eq!(share.ended().code(), Some(code), "{}", share.stderr());
        assert_eq!(share.stdout(), "");
    }
}

#[test]
fn guests_elsewhere_fetch_the_page_over_https_and_only_so() {
    let sway = Sway::start();
    let mut session = Session::start(&sway);
    let [cert, key] = certificate(&session, "guests", &["*.wayferry.test", "localhost"], 4000);
    std::fs::create_dir_all(session.home().file("page")).expect("a directory");
    session.home().write("page/index.html", "the page");
    let folder = session.home().file("page").display().to_string();
    let words = ["share", "--page-files", &folder, "--https", &cert, &key, "--port", "0"];
    let mut share = manage(&session, &words).start();
    let link = share.first_line();
    let (origin, ticket) = link.split_once("/#").expect("a link with its ticket behind the `#`");
    let host = origin.strip_prefix("https://").expect("https");
    let port: u16 = host.strip_prefix("localhost:").expect("the first name").parse().expect("a port");
    assert!(may_come(&ticket.parse().expect("a ticket"), origin), "{link}");
    for address in ["127.0.0.1", "127.0.0.2"] {
        let to = format!("{host}:{address}");
        let words = ["--silent", "--include", "--http1.1", "--cacert", &cert, "--resolve", &to, origin];
        let answer = session.home().launch("curl").args(words).run();
        let answer = String::from_utf8(answer).expect("text");
        assert!(
            answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\nthe page"),
            "{answer}"
        );
        assert!(!answer.contains("Strict-Transport-Security"), "{answer}");
    }
    let other = ["--silent", "--cacert", &cert, "--header", "Host: rebound.example", origin];
    let answer = session.home().launch("curl").args(other).run();
    assert!(String::from_utf8_lossy(&answer).starts_with("This page has another name"), "{answer:?}");
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    stream.write_all(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes()).expect("it reads");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(!String::from_utf8_lossy(&answer).contains("HTTP"), "{answer:?}");
    let what = "all goes by way of it";
    until(what, || share.stderr().contains(what).then_some(()));
    let told = share.stderr();
    assert!(!told.contains("browsers will refuse"), "{told}");
    share.terminate();
    share.ended();
    session.must_run();
}

#[test]
fn a_page_for_guests_that_cannot_be_served_says_why() {
    let sway = Sway::start();
    let session = Session::start(&sway);
    let [cert, key] = certificate(&session, "good", &["localhost"], 4000);
    let [wild, wild_key] = certificate(&session, "wild", &["*.wayferry.test"], 4000);
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port().to_string();
    let share = |words: &[&str]| {
        let mut share =
            manage(&session, &[&["share", "--page-files", ".", "--https"], words].concat()).start();
        let code = share.ended().code();
        (code, share.stdout(), share.stderr())
    };
    for (words, code, error, hint) in [
        (&["/no/where", &key][..], 74, "certificate file not found", "certbot"),
        (&[&key, &key], 74, "holds no certificate in PEM", "--https CERT KEY"),
        (&[&cert, &wild_key], 74, "the private key is not the certificate's", "the certificate's own key"),
        (&[&wild, &wild_key], 64, "no DNS name without a wildcard", "`--name page.example.org`"),
        (&[&cert, &key, "--name", "a:1"], 64, "`a:1` is no name", "`--port`"),
        (&[&cert, &key, "--open"], 64, "`--open`", "leave `--open` out"),
        (&[&cert, &key, "--port", &port], 73, "cannot listen on `", "`--port 8443`"),
    ] {
        let (ended, out, told) = share(words);
        assert_eq!((ended, out), (Some(code), String::new()), "{told}");
        let lines: Vec<_> = told.lines().collect();
        let [first, .., last] = &lines[..] else { panic!("{told}") };
        assert!(first.starts_with("error: ") && first.contains(error), "{told}");
        assert!(last.starts_with("hint: ") && last.contains(hint), "{told}");
    }
    let [old, old_key] = certificate(&session, "old", &["wayferry.test"], 2021);
    let words =
        ["share", "--page-files", ".", "--https", &old, &old_key, "--name", "localhost", "--port", "0"];
    let mut share = manage(&session, &words).start();
    assert!(share.first_line().starts_with("https://localhost:"), "it is served all the same");
    let told = share.stderr();
    assert!(told.contains(" has expired") && told.contains(" is for another name"), "{told}");
}

#[test]
fn eight_view_by_one_link_and_leave_when_it_is_revoked() {
    let (sway, looking) = (Sway::start(), Sway::with_output(1600, 900));
    let mut session = Session::start(&sway);
    let mut foot = session.launch("foot").args(["-a", "foot", "cat"]).start();
    sway.window("foot", |_| true);
    let (first, second) = (Link::make(&session, &[]), Link::make(&session, &[]));
    let hostile = first.open(&sway, Capabilities::default());
    refused(hostile, "a page that does not say that it only views");
    let mut viewers: Vec<_> = (0..8).map(|_| first.open(&looking, Capabilities::VIEW)).collect();
    until("eight views", || (session_document(&session)["views"] == 8).then_some(()));
    refused(first.open(&looking, Capabilities::VIEW), "the ninth by a link for eight");
    let full = second.open(&looking, Capabilities::VIEW).end();
    assert!(full.is_err_and(|error| !matches!(error, Error::Secret(_))), "the ninth by a good link");
    let document = session_document(&session);
    let listed = document["viewers"].as_array().expect("viewers");
    for viewer in listed {
        assert!(viewer["link"] == 1 && viewer["from"].is_string() && viewer["software"].is_string());
    }
    let list = text(&session, &["list"]);
    assert!(list.contains("view 8 from 127.0.0.1:") && list.contains(" by link 1 (wayferry "), "{list}");
    assert_eq!(links(&session), ["1: view, 0 left, 8 there", "2: view, 8 left, 0 there"]);

    manage(&session, &["detach", "--viewer", "3"]).run();
    until("seven views", || (session_document(&session)["views"] == 7).then_some(()));
    let again = manage(&session, &["detach", "--viewer", "3"]).start().ended();
    assert_eq!(again.code(), Some(82), "it is not there any more");
    refused(first.open(&looking, Capabilities::VIEW), "by a link that is used up, with a free place");
    let other = second.open(&looking, Capabilities::VIEW);
    until("another view", || (session_document(&session)["views"] == 8).then_some(()));

    manage(&session, &["share", "--revoke", "1"]).run();
    let ends: Vec<_> = viewers.drain(..).map(Display::end).collect();
    let sent_away = ends.iter().filter(|end| matches!(end, Ok(Outcome::HostLeft))).count();
    let revoked = ends.iter().filter(|end| matches!(end, Err(Error::Secret(_)))).count();
    assert_eq!((sent_away, revoked), (1, 7), "each hears why: {ends:?}");
    assert_eq!(links(&session), ["2: view, 7 left, 1 there"]);
    assert_eq!(session_document(&session)["views"], 1);
    let none = manage(&session, &["share", "--revoke", "1"]).start().ended();
    assert_eq!(none.code(), Some(82), "there is no such link");
    manage(&session, &["share", "--revoke", "all"]).run();
    refused(other, "its link was taken back, too");
    refused(second.open(&looking, Capabilities::VIEW), "a link that was taken back before it was used up");
    assert_eq!(text(&session, &["share", "--list"]), "no links\n");
    foot.must_run();
    session.must_run();
}

#[test]
fn one_has_the_session_by_a_link_for_control_until_its_owner_attaches_or_takes_it_back() {
    let (sway, desk) = (Sway::start(), Sway::with_output(1600, 900));
    let mut session = Session::start(&sway);
    let mut foot = session.launch("foot").args(["-a", "foot", "cat"]).start();
    sway.window("foot", |_| true);
    let first = Link::make(&session, &["--control"]);
    let guest = first.open(&desk, Capabilities::default());
    assert_eq!(session.attach.ended().code(), Some(0), "{}", session.attach.stderr());
    desk.window("foot at the guest", |_| true);
    let list = text(&session, &["list"]);
    assert!(list.contains("attached by link 1 (wayferry "), "{list}");
    assert_eq!(links(&session), ["1: control, 0 left, 1 there"]);
    refused(first.open(&desk, Capabilities::default()), "the second by a link for one");

    let mut owner = attach_here(&session, &sway).start();
    sway.window("foot at its owner", |_| true);
    let end = guest.end();
    assert!(matches!(end, Ok(Outcome::Stopped)), "it hears that another has the session: {end:?}");
    assert_eq!(text(&session, &["share", "--list"]), "no links\n");
    assert!(!text(&session, &["list"]).contains("by link"));

    let guest = Link::make(&session, &["--control"]).open(&desk, Capabilities::default());
    assert_eq!(owner.ended().code(), Some(0), "{}", owner.stderr());
    desk.window("foot at another guest", |_| true);
    manage(&session, &["share", "--revoke", "2"]).run();
    refused(guest, "the link was taken back by which it has the session");
    assert_eq!(session_document(&session)["state"], "detached");
    foot.must_run();
    session.host.must_run();
}

#[test]
fn a_link_is_good_for_as_long_as_was_said_and_no_longer_than_it_may() {
    let sway = Sway::start();
    let session = Session::start(&sway);
    let short = Link::make(&session, &["--for", "1s"]);
    until("its end", || (text(&session, &["share", "--list"]) == "no links\n").then_some(()));
    refused(short.open(&sway, Capabilities::VIEW), "a link that has expired");
    for words in [["--for", "25h"], ["--control", "--for=2h"]] {
        let mut share = manage(&session, &[&["share", "--page-files", "."], &words[..]].concat()).start();
        assert_eq!(share.ended().code(), Some(82), "{}", share.stderr());
    }
}

/// Another user who had its port next could have been told its ticket.
#[test]
fn regression_a_link_is_good_when_its_page_is_served_no_more() {
    let (sway, looking) = (Sway::start(), Sway::with_output(1600, 900));
    let session = Session::start(&sway);
    let mut link = Link::make(&session, &[]);
    let viewer = link.open(&looking, Capabilities::VIEW);
    until("a view", || (session_document(&session)["views"] == 1).then_some(()));
    link.share.terminate();
    link.share.ended();
    let told = link.share.stderr();
    assert!(told.contains("link 1 lets no more guests in"), "{told}");
    refused(link.open(&looking, Capabilities::VIEW), "a link whose page is served no more");
    assert_eq!(links(&session), ["1: view, 0 left, 1 there"]);
    viewer.leave();
}

#[test]
fn a_session_of_another_machine_is_shared_through_ssh_and_its_links_are_listed_and_revoked() {
    let (sway, sshd, looking) = (Sway::start(), Sshd::start(), Sway::with_output(1600, 900));
    let binary = sshd.home().wayferry().words()[0].clone();
    let remote = ["--remote-bin", binary.as_str()];
    let ferry = sshd.wayferry(sway.home(), &remote, &["foot", "cat"]);
    let mut ferry = ferry.env("WAYLAND_DISPLAY", sway.display()).start();
    sway.window("foot", |window| window.app_id == "foot");
    let order = |words: &[&str]| through_ssh(&sshd, &sway, &remote, words);
    let link = Link::told(order(&["share", "--json", "--page-files", ".", "ferry-host:foot"]).start());
    let viewer = link.open(&looking, Capabilities::VIEW);
    looking.window("foot at the viewer", |window| window.app_id == "foot");
    let listed = order(&["share", "--list", "ferry-host:foot"]).run();
    let listed = String::from_utf8(listed).expect("text");
    assert!(listed.contains("1     view  ") && listed.contains("127.0.0.1:"), "{listed}");
    let list = String::from_utf8(order(&["list", "ferry-host"]).run()).expect("text");
    assert!(list.contains("view 1 from 127.0.0.1:") && list.contains(" by link 1 "), "{list}");
    order(&["share", "--revoke", "1", "ferry-host:foot"]).run();
    refused(viewer, "its link was taken back");
    ferry.must_run();
}

/// Files with a certificate for these names, valid until that year, and its key.
fn certificate(session: &Session, file: &str, names: &[&str], until: i32) -> [String; 2] {
    let key = rcgen::KeyPair::generate().expect("a key");
    let names: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
    let mut params = rcgen::CertificateParams::new(names).expect("names");
    params.not_after = rcgen::date_time_ymd(until, 1, 1);
    let certificate = params.self_signed(&key).expect("a certificate").pem();
    let files = [("cert", certificate), ("key", key.serialize_pem())];
    files.map(|(kind, pem)| session.home().write(&format!("{file}-{kind}.pem"), pem).display().to_string())
}

/// A link, and who serves its page.
pub(crate) struct Link {
    pub(crate) origin: String,
    pub(crate) ticket: Ticket,
    share: Program,
}

impl Link {
    pub(crate) fn make(session: &Session, options: &[&str]) -> Self {
        let words = [&["share", "--json", "--page-files", "."], options].concat();
        Self::told(manage(session, &words).start())
    }

    fn told(mut share: Program) -> Self {
        let told: Value = serde_json::from_str(&share.first_line()).expect("a document");
        let (origin, ticket) = told["link"].as_str().and_then(|link| link.split_once("/#")).expect("a link");
        let ticket = ticket.strip_prefix("control,").unwrap_or(ticket).parse().expect("a ticket");
        Self { origin: origin.to_owned(), ticket, share }
    }

    pub(crate) fn open(&self, sway: &Sway, capabilities: Capabilities) -> Display {
        Display::by_link(sway, (&self.origin, &self.ticket), capabilities)
    }
}

fn refused(display: Display, who: &str) {
    let end = display.end();
    assert!(matches!(end, Err(Error::Secret(_))), "{who}: {end:?}");
}

/// The session as `list` tells of it.
pub(crate) fn session_document(session: &Session) -> Value {
    let printed = manage(session, &["list", "--json"]).run();
    serde_json::from_slice::<Value>(&printed).expect("a document")[0].take()
}

/// The session's links in words.
pub(crate) fn links(session: &Session) -> Vec<String> {
    let printed = manage(session, &["share", "--list", "--json"]).run();
    let links: Vec<Value> = serde_json::from_slice(&printed).expect("an array");
    let told = links.iter().map(|link| {
        let (role, there) = (link["role"].as_str().expect("a role"), link["there"].as_array().map(Vec::len));
        format!("{}: {role}, {} left, {} there", link["id"], link["uses"], there.expect("an array"))
    });
    told.collect()
}

fn text(session: &Session, words: &[&str]) -> String {
    String::from_utf8(manage(session, words).run()).expect("text")
}

fn fetch(port: u16, path: &str, host: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer in text");
    answer
}
