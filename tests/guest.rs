//! A guest at another machine, a long way off: a link opened in Chromium, over HTTPS, in a network of its own.
//!
//! Between the two networks are 100 ms there and back, and one packet in a hundred is lost, of TCP as of UDP.

use std::path::Path;
use std::time::Duration;

use serde_json::json;
use wayferry_stage::{Beyond, LinkConfig, Loss, Place};

use crate::browser::{BUTTON, LISTEN, hears, in_front, state};
use crate::rig::{Chromium, Home, Launch, Picture, Program, until};
use crate::sockets::badge;

#[test]
#[ignore = "opens Chromium more often than `make test` has time for"]
fn a_guest_far_away_types_hears_is_listed_and_is_sent_away() {
    let site = Site::start(true);
    let mut guest = site.guest_who_works("WebTransport");
    badge(&mut guest, "% lost");
    let list = site.order(&["list"]);
    assert!(list.contains("attached by link 1 (wayferry "), "{list}");
    site.order(&["share", "--revoke", "1"]);
    state(&mut guest, "revoked");
    assert!(site.order(&["list"]).contains("detached"), "the guest has gone, and the session has not");
}

#[test]
#[ignore = "opens Chromium more often than `make test` has time for"]
fn a_guest_whose_network_passes_no_udp_types_and_hears_all_the_same() {
    let site = Site::start(false);
    let mut guest = site.guest_who_works("WebSocket");
    let bar = guest.evaluate("document.getElementById('badge').textContent");
    assert!(bar.as_str().is_some_and(|bar| !bar.contains("lost")), "what TCP loses is not known: {bar}");
    site.order(&["share", "--revoke", "1"]);
    state(&mut guest, "revoked");
}

#[test]
#[ignore = "opens Chromium more often than `make test` has time for"]
fn what_a_guest_types_while_the_link_is_cut_arrives_once_it_is_not() {
    for udp in [true, false] {
        let site = Site::start(udp);
        let mut guest = site.guest();
        in_front(&mut guest);
        site.sound_is_heard(&mut guest);
        site.wan.beyond.set_down(true);
        guest.press("KeyH", "h");
        guest.press("KeyI", "i");
        state(&mut guest, "away");
        guest.press("Enter", "Enter");
        site.wan.beyond.set_down(false);
        state(&mut guest, "shown");
        assert_eq!(site.heard(), "hi\n", "UDP passes: {udp}");
        site.sound_is_heard(&mut guest);
    }
}

/// A machine far away with a session, which is shared.
struct Site {
    link: String,
    /// What the guest's browser has to be told: that name's address, and that the certificate is good.
    flags: [String; 2],
    home: Home,
    _share: Program,
    _host: Program,
    // After what runs there.
    wan: Wan,
}

impl Site {
    fn start(udp: bool) -> Self {
        let (wan, home) = (Wan::start(udp), Home::new());
        let [cert, key] = certificate(&home);
        let program = format!("sox {TONE} & exec foot sh -c 'head -n 1 > heard; exec cat'");
        let listen = format!("{}:{SESSION}", Beyond::ADDRESS);
        let words = ["host", "--name", "far", "--listen", &listen, "--", "sh", "-c", &program];
        let mut host = wan.far(home.wayferry().args(words));
        host.first_line();
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../page");
        assert!(folder.join("viewer.wasm").exists(), "there is no page: run `make page`");
        let (folder, port) = (folder.display().to_string(), PAGE.to_string());
        let words = ["share", "--control", "--page-files", &folder, "--https", &cert, &key, "--port", &port];
        let mut share = wan.far(home.wayferry().args(words).arg(":far"));
        let link = share.first_line();
        let flags = [
            format!("--host-resolver-rules=MAP {NAME} {}", Beyond::ADDRESS),
            format!("--ignore-certificate-errors-spki-list={}", fingerprint(&home, &key)),
        ];
        Self { link, flags, home, _share: share, _host: host, wan }
    }

    /// Somebody opens the link.
    fn guest(&self) -> Guest {
        let home = Home::new();
        let [first, second] = &self.flags;
        let chromium =
            Chromium::open_with(&home, &self.link, &[first, second], |launch| self.wan.near(launch));
        let mut guest = Guest { chromium, _home: home };
        state(&mut guest, "shown");
        // Before the first key, with which sound begins.
        guest.evaluate(LISTEN);
        guest
    }

    /// The same, who comes by this carrier, types a line, sees it, and hears the session.
    fn guest_who_works(&self, carrier: &str) -> Guest {
        let mut guest = self.guest();
        let before = in_front(&mut guest);
        badge(&mut guest, carrier);
        type_line(&mut guest, "ls", &before);
        assert_eq!(self.heard(), "ls\n");
        self.sound_is_heard(&mut guest);
        guest
    }

    /// What the session's owner is told by a command.
    fn order(&self, words: &[&str]) -> String {
        String::from_utf8(self.home.wayferry().args(words.iter().copied()).run()).expect("text")
    }

    fn heard(&self) -> String {
        let heard = self.home.read_when("heard", |heard| heard.ends_with(b"\n"));
        String::from_utf8(heard).expect("text")
    }

    fn sound_is_heard(&self, guest: &mut Chromium) {
        until("a session with sound", || (!guest.evaluate(BUTTON)["hidden"].as_bool()?).then_some(()));
        guest.click(300.0, 300.0);
        until("the sound to be on", || (guest.evaluate(BUTTON)["pressed"] == json!("true")).then_some(()));
        hears(guest, |heard| (438.0..=442.0).contains(&heard.pitch) && heard.loudest > 0.4);
    }
}

/// A browser, and what it keeps.
struct Guest {
    chromium: Chromium,
    _home: Home,
}

impl std::ops::Deref for Guest {
    type Target = Chromium;

    fn deref(&self) -> &Chromium {
        &self.chromium
    }
}

impl std::ops::DerefMut for Guest {
    fn deref_mut(&mut self) -> &mut Chromium {
        &mut self.chromium
    }
}

/// Two networks and the link between them.
struct Wan {
    beyond: Beyond,
    near: Place,
}

impl Wan {
    fn start(udp: bool) -> Self {
        let near = Place::open().expect("a network of its own, which needs root");
        let [up, down] = [1, 2].map(|seed| LinkConfig {
            rate: Some(20_000_000),
            one_way_delay: Duration::from_millis(50),
            queue_bytes: 250_000,
            loss: Loss::Independent(0.01),
            seed,
            ..LinkConfig::default()
        });
        let beyond = near.run(move || Beyond::open(up, down, udp)).expect("that network");
        Self { beyond: beyond.expect("a TUN device (/dev/net/tun)"), near }
    }

    fn near(&self, launch: Launch) -> Program {
        self.near.run(|| launch.start()).expect("it starts")
    }

    fn far(&self, launch: Launch) -> Program {
        self.beyond.run(|| launch.start()).expect("it starts")
    }
}

/// Types a word, sees it, and ends the line.
fn type_line(guest: &mut Chromium, word: &str, before: &Picture) {
    for letter in word.chars() {
        guest.press(&format!("Key{}", letter.to_ascii_uppercase()), &letter.to_string());
    }
    until("what was typed to be shown", || (guest.canvas()? != *before).then_some(()));
    guest.press("Enter", "Enter");
}

/// A certificate of the page's name, and its key: files.
fn certificate(home: &Home) -> [String; 2] {
    let key = rcgen::KeyPair::generate().expect("a key");
    let params = rcgen::CertificateParams::new([NAME.to_owned()]).expect("a name");
    let certificate = params.self_signed(&key).expect("a certificate").pem();
    let files = [("cert.pem", certificate), ("key.pem", key.serialize_pem())];
    files.map(|(name, pem)| home.write(name, pem).display().to_string())
}

/// By what a browser knows a key: SHA-256 of its public half, in base64.
fn fingerprint(home: &Home, key: &str) -> String {
    let script = "openssl pkey -in \"$0\" -pubout -outform der | openssl dgst -sha256 -binary | base64";
    let told = home.launch("sh").args(["-c", script, key]).run();
    String::from_utf8(told).expect("text").trim().to_owned()
}

const NAME: &str = "page.wayferry.test";
const PAGE: u16 = 8443;
const SESSION: u16 = 7000;

/// 440 Hz for some minutes.
const TONE: &str = "-q -n -t pulseaudio default synth 600 sine 440 gain -6";
