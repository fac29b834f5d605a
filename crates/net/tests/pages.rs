//! Pages at a listener: what a session sees of them, and what those cost who are none, or are not let in.

mod common;
mod page;

use std::net::{Ipv4Addr, SocketAddr};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use common::*;
use page::{Browser, PATH, Page, SETTINGS, STREAM, request};
use wayferry_net::endpoint::{By, Failure};
use wayferry_net::quic::{Listener, Options, connect};
use wayferry_net::{Carrier, Fingerprint, Identity, Peers};
use wayferry_proto::{Arrival, Class, CloseReason, StreamId, Transmit};

const LOCAL: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
const ORIGIN: &str = "http://localhost:8000";

/// RFC 9114 §8.1.
const NO_ERROR: u64 = 0x100;
const EXCESSIVE_LOAD: u64 = 0x107;
const SETTINGS_ERROR: u64 = 0x109;

/// A listener that pages may come to, with what they have to pin.
struct Site {
    listener: Listener,
    pinned: Fingerprint,
}

impl Site {
    fn new() -> Self {
        Self::of(Peers::Secret)
    }

    fn of(peers: Peers) -> Self {
        let host = Identity::ephemeral().unwrap();
        let listener = Listener::bind(LOCAL, None, &host, peers, &Options::default()).unwrap();
        let pinned = listener.page_certificate().unwrap();
        listener.admit_pages(vec![ORIGIN.parse().unwrap()]);
        Self { listener, pinned }
    }

    fn browser(&self) -> Browser {
        Browser::connect(self.listener.local_addr(), self.pinned).unwrap()
    }

    /// A browser that has said its settings.
    fn settled(&self) -> Browser {
        let mut browser = self.browser();
        browser.settle();
        browser
    }

    /// Both sides of a session that was not let in.
    fn stranger(&mut self) -> (Page, Box<dyn Carrier>) {
        let page = self.browser().page(ORIGIN).unwrap_or_else(|status| panic!("{status}"));
        let accepted = self.listener.accept(page::PATIENCE).unwrap();
        assert_eq!((accepted.peer, accepted.address.ip()), (None, LOCAL.ip()));
        (page, accepted.carrier)
    }

    fn pair(&mut self) -> (Page, Box<dyn Carrier>) {
        let (page, app) = self.stranger();
        app.welcome();
        (page, app)
    }
}

fn closed_by_peer(failure: &Failure) -> Option<u64> {
    match failure {
        Failure::Closed { code, by: By::Peer, .. } => Some(*code),
        _ => None,
    }
}

#[test]
fn a_page_has_streams_datagrams_and_codes_as_a_display_has() {
    let mut site = Site::new();
    let (mut page, mut app) = site.pair();
    let big: Vec<u8> = (0..3_000_000u32).map(|at| (at * 7) as u8).collect();
    send_all(&mut *app, 0, Class::Content, big.clone());
    send_all(&mut *app, 1, Class::Wayland, &b""[..]);
    send_all(&mut page, 0, Class::Events, &b"key"[..]);
    send_all(&mut page, 1, Class::Pipe, big.clone());
    let to_app: Vec<_> = Streams::receive(&mut *app, 2).whole.into_values().collect();
    assert!(to_app.contains(&b"key".to_vec()) && to_app.contains(&big));
    let to_page: Vec<_> = Streams::receive(&mut page, 2).whole.into_values().collect();
    assert_eq!(to_page, [big, Vec::new()]);
    wait_sent(&*app);
    let link = app.link();
    assert!(link.in_order && link.payload.is_some(), "no script reads a stream out of order");
    assert!(link.rate.is_some() && link.sent_packets > 2000);

    let most = usize::from(link.datagram);
    assert!((1000..1452).contains(&most), "{most}");
    for length in [most + 1, most, 1] {
        app.transmit(Transmit::Datagram { bytes: vec![7; length].into() });
    }
    page.transmit(Transmit::Datagram { bytes: vec![8; 900].into() });
    let lengths = [(); 2].map(|()| match next(&mut page) {
        Arrival::Datagram { bytes } => bytes.len(),
        other => panic!("{other:?}"),
    });
    assert_eq!(lengths, [most, 1], "what is too large is lost");
    assert!(matches!(next(&mut *app), Arrival::Datagram { bytes } if *bytes == [8; 900]));

    for carrier in [&mut page as &mut dyn Carrier, &mut *app] {
        open(carrier, 2, Class::Pipe);
        send(carrier, 2, &b"begun"[..], false);
    }
    let Arrival::Data { stream: of_app, .. } = next(&mut page) else { panic!("a stream of the app's") };
    let Arrival::Data { stream: of_page, .. } = next(&mut *app) else { panic!("a stream of the page's") };
    page.transmit(Transmit::Reset { stream: StreamId(2), code: 77 });
    page.transmit(Transmit::Stop { stream: of_app, code: 1000 });
    let mut heard = [next(&mut *app), next(&mut *app)];
    heard.sort_by_key(|arrival| matches!(arrival, Arrival::Stopped { .. }));
    let expected =
        [Arrival::Reset { stream: of_page, code: 77 }, Arrival::Stopped { stream: StreamId(2), code: 1000 }];
    assert_eq!(format!("{heard:?}"), format!("{expected:?}"));
}

#[test]
fn ten_thousand_streams_of_a_page_that_was_let_in_are_read() {
    let mut site = Site::new();
    let (mut page, mut app) = site.pair();
    let (mut at_page, mut at_app) = (Streams::default(), Streams::default());
    for stream in 0..10_000u64 {
        send_all(&mut page, stream, Class::Pipe, stream.to_be_bytes().to_vec());
        send_all(&mut *app, stream, Class::Wayland, stream.to_be_bytes().to_vec());
        take_turns((&mut page, &mut at_page), (&mut *app, &mut at_app));
    }
    while at_page.whole.len() < 10_000 || at_app.whole.len() < 10_000 {
        wait_any(&[page.wake_fd(), app.wake_fd()]);
        page.clear_wake();
        app.clear_wake();
        take_turns((&mut page, &mut at_page), (&mut *app, &mut at_app));
    }
    for streams in [at_page, at_app] {
        let numbers = streams.whole.values().map(|bytes| u64::from_be_bytes(bytes[..].try_into().unwrap()));
        let mut numbers: Vec<_> = numbers.collect();
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..10_000));
    }
}

/// Each takes what has come.
fn take_turns(
    (page, at_page): (&mut dyn Carrier, &mut Streams),
    (app, at_app): (&mut dyn Carrier, &mut Streams),
) {
    std::iter::from_fn(|| page.poll_arrival()).for_each(|arrival| at_page.take(arrival));
    std::iter::from_fn(|| app.poll_arrival()).for_each(|arrival| at_app.take(arrival));
}

#[test]
fn each_side_hears_why_the_other_ended_the_session() {
    let mut site = Site::new();
    let (mut page, mut app) = site.pair();
    close(&mut *app, &CloseReason::Gone);
    assert_eq!(closed(&mut page), CloseReason::Gone);
    assert_eq!(closed(&mut *app), CloseReason::Gone);

    let (mut page, mut app) = site.pair();
    close(&mut page, &CloseReason::Done);
    assert_eq!(closed(&mut *app), CloseReason::Done);

    // A tab that is closed, or loaded again, may come back.
    let (page, mut app) = site.pair();
    page.browser.connection.close(NO_ERROR, b"");
    assert!(matches!(closed(&mut *app), CloseReason::LinkLost(_)));

    let (mut page, app) = site.pair();
    drop(app);
    assert!(matches!(closed(&mut page), CloseReason::LinkLost(_)));
}

#[test]
fn regression_a_browser_that_answers_the_end_at_once_told_its_page_that_the_link_was_lost() {
    let mut site = Site::new();
    let (mut page, mut app) = site.pair();
    close(&mut *app, &CloseReason::Done);
    // With that its side of the request is finished, too.
    assert_eq!(closed(&mut page), CloseReason::Done);
    let answered = Instant::now();
    page.browser.end();
    assert!(answered.elapsed() > Duration::from_millis(100), "it has a second to tell its page");
}

#[test]
fn all_that_is_asked_in_vain_is_answered_alike() {
    let mut site = Site::new();
    // GET, as any browser would ask for a page.
    let get = [&[1, 16, 0, 0, 0xd1, 0xd7, 0x50, 9][..], b"localhost", &[0xc1]].concat();
    for asked in [
        request("/", &[ORIGIN]),
        request("/wayferry/1?more", &[ORIGIN]),
        request(PATH, &[]),
        request(PATH, &["http://localhost:8001"]),
        request(PATH, &["null"]),
        request(PATH, &[ORIGIN, "http://localhost:8001"]),
        get,
    ] {
        let mut browser = site.settled();
        let (_send, mut answer) = browser.ask(&asked);
        assert_eq!(browser.status(&mut answer), 404, "{asked:?}");
        assert_eq!(closed_by_peer(&browser.end()), Some(NO_ERROR));
    }
    // Headers that are not QPACK; a frame that is too long.
    for asked in [&[0x01, 0x03, 0xff, 0xff, 0xff][..], &[0x01, 0xbf, 0xff, 0xff, 0xff]] {
        let mut browser = site.settled();
        let (_send, mut answer) = browser.ask(asked);
        assert_eq!(browser.status(&mut answer), 400, "{asked:?}");
    }
    assert!(site.listener.poll_accept().is_none(), "none of them has come");
}

#[test]
fn a_listener_that_no_page_may_come_to_speaks_no_http() {
    let host = Identity::ephemeral().unwrap();
    let listener = Listener::bind(LOCAL, None, &host, Peers::Secret, &Options::default()).unwrap();
    let refused = Browser::connect(listener.local_addr(), host.fingerprint()).err();
    assert!(matches!(refused, Some(Failure::Tls { alert: Some(120), .. })), "{refused:?}");
}

#[test]
fn displays_come_in_by_their_certificates_as_before_while_pages_may_come() {
    let (right, wrong) = (Identity::ephemeral().unwrap(), Identity::ephemeral().unwrap());
    let mut site = Site::of(Peers::Pinned(right.fingerprint()));
    let address = [site.listener.local_addr()];
    let come = |site: &Site, who| {
        connect(&address, who, site.listener.fingerprint(), page::PATIENCE, &Options::default())
    };
    let refused = come(&site, &wrong).map(|(connected, _)| connected.carrier);
    assert!(!matches!(refused.map(|mut carrier| closed(&mut *carrier)), Ok(CloseReason::Done)));
    assert!(site.listener.poll_accept().is_none());
    let _display = come(&site, &right).unwrap();
    assert_eq!(site.listener.accept(page::PATIENCE).unwrap().peer, Some(right.fingerprint()));
    let (page, app) = site.stranger();
    drop((page, app));
}

#[test]
fn a_page_that_was_not_let_in_has_one_stream_and_little_is_taken_of_it() {
    let mut site = Site::new();
    let (mut page, mut app) = site.stranger();
    const SAID: usize = 1 << 20;
    for stream in 0..3 {
        send_all(&mut page, stream, Class::Control, vec![7; SAID]);
    }
    page.transmit(Transmit::Datagram { bytes: vec![8; 900].into() });
    let (mut heard, mut streams) = (0, std::collections::BTreeSet::new());
    let mut hear = |app: &mut dyn Carrier, page: &mut Page| {
        assert!(page.poll_arrival().is_none_or(|arrival| !matches!(arrival, Arrival::Closed { .. })));
        while let Some(arrival) = app.poll_arrival() {
            match arrival {
                Arrival::Data { stream, bytes, .. } => {
                    heard += bytes.len();
                    streams.insert(stream);
                }
                Arrival::Finished { .. } => {}
                other => panic!("{other:?} of a stranger"),
            }
        }
        (heard, streams.len())
    };
    // What is on its way arrives in so many round trips, if anything does.
    for round in 0..20 {
        send_all(&mut *app, round, Class::Events, &b"round"[..]);
        assert_eq!(Streams::receive(&mut page, 1).whole.len(), 1);
        hear(&mut *app, &mut page);
    }
    let (before, count) = hear(&mut *app, &mut page);
    assert!((1000..32 << 10).contains(&before), "{before} bytes of a stranger");
    assert_eq!(count, 1, "streams of a stranger");
    app.welcome();
    while hear(&mut *app, &mut page) != (3 * SAID, 3) {
        wait_any(&[page.wake_fd(), app.wake_fd()]);
        app.clear_wake();
        page.clear_wake();
    }
}

#[test]
fn settings_that_cannot_be_read_or_have_no_end_end_the_attempt() {
    let mut site = Site::new();
    // Half a setting; a frame that is longer than any may be; frames of a reserved kind without end.
    let endless = [&[0x00][..], &[0x21, 0x02, 9, 9].repeat(50_000)].concat();
    for settings in [&[0x00, 0x04, 0x01, 0x08][..], &[0x00, 0x04, 0xbf, 0xff, 0xff, 0xff], &endless] {
        let mut browser = site.browser();
        let _control = browser.say(settings);
        assert_eq!(closed_by_peer(&browser.end()), Some(SETTINGS_ERROR));
    }
    // What follows good ones has an end, too, also on QPACK's streams.
    for first in [SETTINGS, &[0x02], &[0x03]] {
        let mut browser = site.browser();
        let _control = browser.say(&[first, &[0x21, 0x02, 9, 9].repeat(50_000)].concat());
        assert_eq!(closed_by_peer(&browser.end()), Some(EXCESSIVE_LOAD), "{first:?}");
    }
    assert!(site.listener.poll_accept().is_none());
}

#[test]
fn headers_without_end_are_answered_before_that() {
    let site = Site::new();
    let mut browser = site.settled();
    // Frames of a reserved kind, then nothing; the answer does not wait for it.
    let (_send, mut answer) = browser.ask(&[0x21, 0x02, 9, 9].repeat(50_000));
    assert_eq!(browser.status(&mut answer), 400);
    assert_eq!(closed_by_peer(&browser.end()), Some(NO_ERROR));
}

#[test]
fn there_is_one_session_in_a_connection() {
    let mut site = Site::new();
    let (mut page, mut app) = site.pair();
    let cx = &mut Context::from_waker(Waker::noop());
    assert!(page.browser.connection.poll_open_bi(cx).is_pending(), "a second request");
    // Streams of another session are refused, and this one goes on.
    let mut other = page.browser.say(&[0x40, 0x54, 0x08, 1, 2, 3]);
    assert!(page.browser.until(|_, cx| other.poll_stopped(cx)).unwrap().is_some());
    send_all(&mut page, 0, Class::Events, &b"key"[..]);
    assert!(Streams::receive(&mut *app, 1).whole.values().eq([b"key"]));
    // Not for ever.
    for _ in 0..40 {
        if page.browser.connection.close_reason().is_some() {
            break;
        }
        let mut other = page.browser.say(&[0x40, 0x54, 0x08]);
        let _ = page.browser.until(|_, cx| other.poll_stopped(cx));
    }
    assert!(matches!(closed(&mut *app), CloseReason::LinkLost(_)));
}

/// Browsers have streams of HTTP/3 on which they say nothing for as long as they need no tables of headers; a later
/// stream opens those before it (RFC 9000 §3.2).
#[test]
fn regression_a_stream_that_says_nothing_yet_ended_the_session_after_five_seconds() {
    let mut site = Site::new();
    let (mut page, mut app) = site.pair();
    let opened = page.browser.until(|connection, cx| connection.poll_open_uni(cx));
    let mut silent = opened.expect("it may be opened");
    // The half of a header: this one is late, and stopped.
    let mut late = page.browser.say(&[0x40]);
    assert!(page.browser.until(|_, cx| late.poll_stopped(cx)).unwrap().is_some());
    assert!(silent.poll_stopped(&mut Context::from_waker(Waker::noop())).is_pending());
    page.browser.write(&mut silent, &[STREAM, b"after all"].concat()).unwrap();
    silent.finish().unwrap();
    assert!(Streams::receive(&mut *app, 1).whole.values().eq([b"after all"]));
}

#[test]
fn streams_that_come_before_the_request_are_kept_for_it() {
    let mut site = Site::new();
    let mut browser = site.settled();
    let mut early = browser.say(&[STREAM, b"hello"].concat());
    early.finish().unwrap();
    let (_send, mut answer) = browser.ask(&request(PATH, &[ORIGIN]));
    assert_eq!(browser.status(&mut answer), 200);
    let mut app = site.listener.accept(page::PATIENCE).unwrap().carrier;
    assert!(Streams::receive(&mut *app, 1).whole.values().eq([b"hello"]));
}

#[test]
fn ten_thousand_streams_of_a_stranger_end_the_connection() {
    let mut site = Site::new();
    let mut browser = site.settled();
    let mut opened = 0;
    while opened < 10_000 {
        let stream = browser.until(|connection, cx| connection.poll_open_uni(cx));
        let Ok(mut stream) = stream else { break };
        opened += 1;
        // Of a kind that HTTP/3 does not have.
        let _ = browser.write(&mut stream, &[0x3f, 1, 2, 3]);
        let _ = stream.finish();
    }
    assert_eq!(closed_by_peer(&browser.end()), Some(EXCESSIVE_LOAD));
    assert!(opened < 100, "{opened} streams were taken");
    assert!(site.listener.poll_accept().is_none());
    // Others come in as before.
    site.pair();
}
