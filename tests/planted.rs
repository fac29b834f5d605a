//! A page of `wayferry share` in a browser that was at `localhost` before, where any user of the machine may have had
//! the port: of what that one has left in the browser nothing gets at the page.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use serde_json::json;

use crate::browser::state;
use crate::open_url::stub;
use crate::rig::{Chromium, Compositor, Session, Sway, until};
use crate::sessions::manage;
use crate::sockets::page;

/// His service worker answered for the page, and was told the ticket.
#[test]
fn regression_who_had_the_port_before_is_told_the_ticket() {
    let sway = Sway::start();
    let mut session = Session::start(&sway);
    let mut foot = session.launch("foot").args(["-a", "foot", "cat"]).start();
    sway.window("foot", |_| true);
    let expected = sway.settled();
    let other = Other::serve();
    let port = other.port.to_string();
    let mut chromium = Chromium::open(session.home(), &other.address());
    is_planted(&mut chromium);
    chromium.go("about:blank");
    other.leave();
    let page = page(session.home(), "");
    let mut share = manage(&session, &["share", "--page-files", &page, "--port", &port]).start();
    chromium.go(&share.first_line());
    state(&mut chromium, "shown");
    until("the display's pixels", || (chromium.canvas()? == expected).then_some(()));
    assert_eq!(chromium.evaluate("isSecureContext"), json!(true));
    foot.must_run();
    share.must_run();
    session.must_run();
}

/// Browsers send them to all ports of a name: each request was longer than one may be.
#[test]
fn regression_cookies_from_another_port_shut_the_page_out() {
    let sway = Sway::start();
    let mut session = Session::start(&sway);
    let mut foot = session.launch("foot").args(["-a", "foot", "cat"]).start();
    sway.window("foot", |_| true);
    let other = Other::serve();
    let mut chromium = Chromium::open(session.home(), &other.address());
    is_planted(&mut chromium);
    let page = page(session.home(), "");
    let opener = stub(session.home(), "bin/xdg-open", "opened");
    let bin = opener.parent().expect("its directory").display();
    let path = format!("{bin}:{}", std::env::var("PATH").unwrap_or_default());
    let mut share =
        manage(&session, &["share", "--control", "--open", "--page-files", &page]).env("PATH", path).start();
    let link = share.first_line();
    let opened = session.home().read_when("opened", |opened| opened.ends_with(b"\n"));
    let opened = String::from_utf8(opened).expect("text");
    let origin = link.split_once("/#").expect("a link").0;
    assert!(opened.starts_with(&format!("{origin}/open-")), "{opened}");
    chromium.go(opened.trim());
    state(&mut chromium, "shown");
    other.leave();
    foot.must_run();
    share.must_run();
    session.host.must_run();
}

/// A server at `localhost` that is somebody else's.
struct Other {
    port: u16,
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Other {
    fn serve() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let is_over = Arc::<AtomicBool>::default();
        let told = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if told.load(Ordering::Acquire) {
                    break;
                }
                // A browser opens some on which it says nothing.
                std::thread::spawn(move || answer(&stream));
            }
        });
        Self { port, is_over, thread }
    }

    fn address(&self) -> String {
        format!("http://localhost:{}/", self.port)
    }

    /// Has its port free.
    fn leave(self) {
        self.is_over.store(true, Ordering::Release);
        drop(TcpStream::connect(("127.0.0.1", self.port)));
        self.thread.join().expect("it ends");
    }
}

fn answer(mut stream: &TcpStream) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream).lines();
    let asked = lines.next().transpose()?.unwrap_or_default();
    while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
    let (kind, body) = match asked.starts_with("GET /worker.js ") {
        true => ("text/javascript", WORKER.replace("PAGE", &json!(PAGE).to_string())),
        false => ("text/html", PAGE.to_owned()),
    };
    let cookie = |name| format!("Set-Cookie: {name}={}; Path=/; Max-Age=31536000\r\n", "x".repeat(3500));
    let cookies: String = ["a", "b", "c"].map(cookie).concat();
    let length = body.len();
    let fields =
        format!("Content-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n{cookies}");
    stream.write_all(format!("HTTP/1.1 200 OK\r\n{fields}\r\n{body}").as_bytes())
}

/// Waits until the browser keeps what it was given there.
fn is_planted(chromium: &mut Chromium) {
    until("a service worker", || (chromium.evaluate("document.title") == json!("planted")).then_some(()));
    let cookies = chromium.evaluate("document.cookie.length");
    assert!(cookies.as_u64().is_some_and(|length| length > 8 << 10), "{cookies}");
}

/// Has a service worker; and says so when it is told what stands behind the `#`.
const PAGE: &str = "<!doctype html><title>a page</title><script>\
    if (location.hash) { document.documentElement.dataset.state = 'told the ticket'; } \
    else { navigator.serviceWorker.register('/worker.js').then(() => navigator.serviceWorker.ready) \
    .then(() => { document.title = 'planted'; }); }</script>";

/// Answers with that page in place of each.
const WORKER: &str = "addEventListener('fetch', (event) => { if (event.request.mode === 'navigate') { \
    event.respondWith(new Response(PAGE, { headers: { 'Content-Type': 'text/html' } })); } });";
