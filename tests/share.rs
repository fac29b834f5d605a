//! `wayferry share`: a link, and the page that it opens.

use std::io::{Read, Write};
use std::net::TcpStream;

use wayferry_net::Ticket;

use crate::pages::may_come;
use crate::rig::{Session, Sway};
use crate::sessions::manage;

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
    let port: u16 = host.strip_prefix("localhost:").expect("localhost").parse().expect("a port");
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
    for other in [&format!("rebound.example:{port}"), "localhost", &format!("127.0.0.1:{port}")] {
        assert!(fetch(port, "/", other).starts_with("HTTP/1.1 421 "), "{other}");
    }
    let control =
        manage(&session, &[&words[..], &["--control", "--for", "30s"]].concat()).start().first_line();
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
    for (words, code) in [(["--page-files", &file, ":nobody"], 74), (["--page-files", ".", ":nobody"], 82)] {
        let mut share = manage(&session, &[&["share"], &words[..]].concat()).start();
        assert_eq!(share.ended().code(), Some(code), "{}", share.stderr());
        assert_eq!(share.stdout(), "");
    }
}

fn fetch(port: u16, path: &str, host: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer in text");
    answer
}
