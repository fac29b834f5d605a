//! A peer that lies about what it has, or resumes what it must not.

use super::*;
use crate::Resume;

/// A session whose peer, made of bytes, can resume.
struct Talk {
    alone: Alone,
    /// Bytes of the peer's control stream.
    at: u64,
}

impl Talk {
    /// The peer greets with this hello.
    fn with(session: Session, hello: &Hello) -> Self {
        let mut alone = Alone { session };
        let bytes = hello_stream(hello);
        alone.data(0, 0, &bytes);
        Self { alone, at: bytes.len() as u64 }
    }

    fn new(side: Side) -> Self {
        let [app, display] = resumable_configs();
        let (ours, theirs) = if side == Side::App { (app, display) } else { (display, app) };
        let mut talk = Self::with(Session::new(ours), &theirs.hello(0, 0));
        assert!(matches!(talk.alone.events()[..], [Event::Ready { .. }]));
        talk.alone.transmits();
        talk
    }

    /// An app's candidate for a display that says to resume.
    fn candidate() -> Self {
        let [app, display] = resumable_configs();
        let mut talk = Self::with(Session::new(app), &display.hello(1, 0));
        assert!(matches!(talk.alone.events()[..], [Event::Ready { .. }]));
        talk
    }

    /// A side that knows one channel of the peer's, `wayland(1)` as number 1 with two bytes of a message that is not
    /// whole, and comes over another carrier.
    fn half_way() -> Self {
        let mut talk = Self::new(Side::Display);
        let bytes = labelled(wayland(1), 1, None, &[9, 1]);
        talk.alone.data(1, 0, &bytes);
        talk.lose();
        let [app, display] = resumable_configs();
        let old = std::mem::replace(&mut talk.alone.session, Session::new(display.clone()));
        let mut talk = Self::with(Session::resuming(display, old), &app.hello(0, 0));
        talk.say(&Control::Resume(Resume::default()));
        assert!(matches!(
            talk.alone.events()[..],
            [Event::Opened { .. }, Event::Suspended { .. }, Event::Ready { .. }, Event::Resumed]
        ));
        talk.alone.transmits();
        talk
    }

    fn say(&mut self, message: &Control) {
        let frame = control_frame(message);
        self.alone.data(0, self.at, &frame);
        self.at += frame.len() as u64;
    }

    fn received(&mut self, receipt: Receipt) {
        self.say(&Control::Received(receipt));
    }

    fn lose(&mut self) {
        let reason = CloseReason::LinkLost("cable".into());
        self.alone.session.receive(Time::ZERO, Arrival::Closed { reason });
    }

    #[track_caller]
    fn violated(&mut self, what: &str) {
        let reason = self.alone.closed();
        let CloseReason::ProtocolViolation(text) = &reason else { panic!("{reason}") };
        assert!(text.contains(what), "{text}");
    }
}

fn labelled(header: Header, number: u64, from: Option<u64>, body: &[u8]) -> Vec<u8> {
    let mut writer = Writer::new();
    header.encode_labelled(Some(Label { number, from }), &mut writer);
    writer.raw(body);
    writer.into_vec()
}

fn done(numbers: std::ops::RangeInclusive<u64>) -> Receipt {
    Receipt { done: vec![numbers], ..Receipt::default() }
}

fn open(number: u64, offset: u64) -> Receipt {
    Receipt { open: vec![Delivered { number, offset }], ..Receipt::default() }
}

fn resume(receipt: Receipt) -> Control {
    Control::Resume(Resume { receipt, stopped: vec![] })
}

/// An app side that has sent five bytes and more on channel 1, and an update as channel 2.
fn sender() -> Talk {
    let mut talk = Talk::new(Side::App);
    let channel = talk.alone.session.open(wayland(1));
    talk.alone.session.send(channel, b"four").unwrap();
    talk.alone.transmits();
    talk.alone.session.send_update(update(1, 1), vec![vec![1; 100]]).unwrap();
    talk.alone.transmits();
    talk
}

#[test]
fn what_was_never_sent_cannot_have_come() {
    let cases = [
        (done(1..=3), "the number of a channel"),
        (done(1..=crate::wire::VARINT_MAX), "the number of a channel"),
        (open(3, 0), "the number of a channel"),
        (open(1, 6), "bytes of a channel"),
        (open(2, 0), "an update or a blob"),
        (Receipt { lasting: 1, ..Receipt::default() }, "messages received"),
    ];
    for (receipt, what) in cases {
        let mut talk = sender();
        talk.received(receipt.clone());
        talk.violated(what);
        // The same of a display that comes again.
        let mut talk = sender();
        talk.lose();
        let mut candidate = Talk::candidate();
        candidate.alone.session.succeed(Time::ZERO, talk.alone.session).unwrap();
        candidate.alone.events();
        candidate.say(&resume(receipt));
        candidate.violated(what);
    }
    let mut talk = sender();
    talk.received(open(1, 5));
    talk.received(open(1, 2));
    talk.received(done(2..=2));
    talk.received(done(1..=2));
    assert_eq!((talk.alone.session.retained(), talk.alone.events()), (0, vec![]));
}

#[test]
fn what_has_come_cannot_be_missing_later() {
    for receipt in [open(1, 2), Receipt::default()] {
        let mut talk = sender();
        talk.received(open(1, 3));
        talk.lose();
        let mut candidate = Talk::candidate();
        candidate.say(&resume(receipt));
        assert!(candidate.alone.events().is_empty(), "the caller has not decided");
        candidate.alone.session.succeed(Time::ZERO, talk.alone.session).unwrap();
        let mut events = candidate.alone.events();
        assert!(matches!(events.remove(0), Event::Suspended { .. }));
        let [Event::Closed { reason: CloseReason::ProtocolViolation(text), .. }] = &events[..] else {
            panic!("{events:?}");
        };
        assert!(text.contains("what was received before"), "{text}");
    }
}

#[test]
fn resumption_has_its_turn() {
    let mut talk = Talk::new(Side::Display);
    talk.say(&resume(Receipt::default()));
    talk.violated("nobody asked for");
    let mut talk = Talk::new(Side::Display);
    talk.say(&Control::Declined);
    talk.violated("nobody asked for");
    let mut talk = Talk::new(Side::App);
    talk.say(&resume(Receipt::default()));
    talk.violated("nobody asked for");
    let mut talk = Talk::candidate();
    talk.say(&resume(Receipt::default()));
    talk.say(&resume(Receipt::default()));
    talk.violated("a second one");
    for early in
        [Control::Exit { code: 0 }, Control::GivenUp { number: 1, code: 0 }, Control::Received(done(1..=1))]
    {
        let mut talk = Talk::candidate();
        talk.say(&early);
        talk.violated("before it");
    }
    let mut talk = Talk::half_way();
    talk.say(&resume(Receipt::default()));
    talk.violated("nobody asked for");
}

#[test]
fn without_the_ability_there_is_none_of_it() {
    let messages = [Control::Received(Receipt::default()), Control::GivenUp { number: 1, code: 0 }];
    for message in messages {
        let mut alone = Alone::ready(Side::Display);
        let at = hello_stream(&hello_of(Side::App)).len() as u64;
        alone.data(0, at, &control_frame(&message));
        let CloseReason::ProtocolViolation(text) = alone.closed() else { panic!("another reason") };
        assert!(text.contains("cannot resume"), "{text}");
    }
    for attempt in [0, 1] {
        let hello = resumable_configs()[1].hello(attempt, 0);
        let mut talk = Talk::with(Session::new(Config::new(Side::App)), &hello);
        talk.alone.events();
        talk.say(&resume(Receipt::default()));
        if hello.resuming {
            assert!(!talk.alone.session.is_closed(), "it may not have known");
        } else {
            talk.violated("nobody asked for");
        }
    }
}

#[test]
fn numbers_are_right() {
    let mut talk = Talk::new(Side::Display);
    talk.alone.data(1, 0, &stream(wayland(1), |_| {}));
    talk.violated("channels with numbers");
    let mut talk = Talk::new(Side::Display);
    talk.alone.data(1, 0, &labelled(wayland(1), 4, None, &[]));
    talk.alone.data(2, 0, &labelled(wayland(2), 4, None, &[]));
    talk.violated("number once");
    let mut talk = Talk::new(Side::Display);
    talk.alone.data(1, 0, &labelled(wayland(1), 4, Some(0), &[]));
    talk.violated("told to be open");
    let cases = [
        (labelled(wayland(1), 1, None, &[]), "number once"),
        (labelled(wayland(1), 1, Some(1), &[]), "where it was left"),
        (labelled(wayland(1), 1, Some(3), &[]), "where it was left"),
        (labelled(wayland(2), 1, Some(2), &[]), "where it was left"),
        (labelled(wayland(1), 2, None, &[]), "long-lived channel once"),
        (labelled(wayland(1), 2, Some(2), &[]), "told to be open"),
    ];
    for (bytes, what) in cases {
        let mut talk = Talk::half_way();
        talk.alone.data(1, 0, &bytes);
        talk.violated(what);
    }
    let mut talk = Talk::half_way();
    talk.alone.data(1, 0, &labelled(wayland(1), 1, Some(2), &[2, 3, 4, 5, 6, 7, 8, 9]));
    assert!(matches!(&talk.alone.events()[..], [Event::Message { bytes, .. }] if bytes.len() == 9));
    talk.alone.data(2, 0, &labelled(wayland(1), 1, Some(10), &[]));
    talk.violated("told to be open");
}

#[test]
fn what_is_over_is_stopped_without_a_word() {
    let mut talk = Talk::new(Side::Display);
    talk.say(&Control::GivenUp { number: 4, code: 9 });
    talk.say(&Control::GivenUp { number: 4, code: 9 });
    talk.alone.data(1, 0, &labelled(wayland(1), 4, None, &[1, 1]));
    assert_eq!(talk.alone.events(), []);
    assert_eq!(talk.alone.transmits(), [Transmit::Stop { stream: StreamId(1), code: STREAM_CANCELLED }]);
}

#[test]
fn a_peer_that_acknowledges_nothing_is_given_up() {
    let [app, display] = resumable_configs();
    let limits = Limits { unacknowledged: 100_000, ..Limits::default() };
    let mut talk = Talk::with(Session::new(Config { limits, ..app }), &display.hello(0, 0));
    talk.alone.events();
    let channel = talk.alone.session.open(wayland(1));
    for n in 0..30_u64 {
        talk.alone.session.send(channel, &[1; 5_000]).unwrap();
        talk.alone.transmits();
        talk.say(&Control::Ping { token: n, sent: HostTime(0) });
        if talk.alone.session.is_closed() {
            assert_eq!(n, 19);
            break;
        }
    }
    let CloseReason::TooMuch(limit) = talk.alone.closed() else { panic!("another reason") };
    assert!(limit.contains("acknowledged"));
}

#[test]
fn what_comes_before_the_decision_is_bounded() {
    let [app, display] = resumable_configs();
    let limits = Limits { buffered_before_hello: 10_000, ..Limits::default() };
    let mut talk = Talk::with(Session::new(Config { limits, ..app }), &display.hello(1, 0));
    talk.alone.events();
    talk.alone.data(1, 0, &labelled(events(1), 1, None, &[0; 9_000]));
    assert!(!talk.alone.session.is_closed() && talk.alone.events().is_empty());
    talk.alone.data(1, 9_000, &[0; 9_000]);
    assert_eq!(talk.alone.closed(), CloseReason::TooMuch("bytes before the hello".into()));
}

#[test]
fn stopping_without_end_is_bounded() {
    let mut talk = Talk::new(Side::Display);
    for number in 1..=2_000 {
        talk.alone.data(number, 0, &labelled(pipe(number), number, None, &[]));
        let events = talk.alone.events();
        let [Event::Opened { channel, .. }] = events[..] else { panic!("{events:?}") };
        talk.alone.session.stop(channel, 5);
    }
    talk.lose();
    let resume = talk.alone.session.incoming.resume();
    assert_eq!((resume.stopped.len(), resume.receipt.done), (crate::MAX_STOPPED, vec![1..=2_000]));
}

/// Channels that a receipt cannot tell of are given up, and it fits a message.
#[test]
fn too_many_open_channels_are_not_all_resumed() {
    let mut talk = Talk::new(Side::Display);
    for number in 1..=2_100 {
        talk.alone.data(number, 0, &labelled(pipe(number << 40), number << 40, None, &[]));
    }
    talk.alone.events();
    talk.lose();
    let display = resumable_configs()[1].clone();
    let old = std::mem::replace(&mut talk.alone.session, Session::new(display.clone()));
    let session = Session::resuming(display, old);
    let mut alone = Alone { session };
    let Some(Transmit::Data { bytes, .. }) = alone.transmits().pop() else { panic!("nothing") };
    assert!(bytes.len() < crate::MAX_CONTROL);
    alone.data(0, 0, &hello_stream(&resumable_configs()[0].hello(0, 0)));
    let resets = alone.events().into_iter().filter(|event| matches!(event, Event::Reset { .. }));
    assert_eq!(resets.count(), 2_100 - 2_048);
}

/// Sends updates of a hundred bytes, which the peer gets.
fn send_updates(talk: &mut Talk, seqs: std::ops::RangeInclusive<u64>) {
    for seq in seqs {
        talk.alone.session.send_update(update(1, seq), vec![vec![1; 100]]).unwrap();
        talk.alone.transmits();
    }
}

#[test]
fn regression_a_receipt_that_was_withheld_is_walked_for_each_number() {
    let count = 4_000;
    let mut talk = Talk::new(Side::App);
    send_updates(&mut talk, 1..=count);
    assert!(talk.alone.session.retained() > 0);
    let before = talk.alone.session.outgoing.touched();
    talk.received(done(1..=count));
    assert_eq!((talk.alone.session.retained(), talk.alone.events()), (0, vec![]));
    let touched = talk.alone.session.outgoing.touched() - before;
    assert!(touched <= count as usize, "{touched} entries for {count} numbers");
}

/// What leaves for a peer that is never resumed is not kept, whether it acknowledges at once, late, or never.
#[test]
fn nothing_is_kept_for_a_peer_that_is_not_resumed() {
    let mut talk = Talk::new(Side::App);
    talk.alone.session.control(&Control::Snapshot(Bytes::from_static(b"kept"))).unwrap();
    send_updates(&mut talk, 1..=10);
    talk.alone.session.forgo(Time::ZERO);
    let channel = talk.alone.session.open(wayland(1));
    let cost = |talk: &Talk| talk.alone.session.footprint();
    talk.alone.session.send(channel, b"four").unwrap();
    talk.alone.transmits();
    let before = cost(&talk);
    for seq in 11..=1_000 {
        send_updates(&mut talk, seq..=seq);
        talk.alone.session.control(&Control::AppClosed { connection: ConnectionId(7), error: None }).unwrap();
        talk.alone.session.send(channel, b"four").unwrap();
        talk.alone.transmits();
    }
    assert_eq!((talk.alone.session.retained(), cost(&talk)), (0, before));
    // At last it says something of them: it got them all.
    talk.received(Receipt { lasting: 991, done: vec![1..=10, 12..=1_001], open: vec![] });
    talk.received(open(11, 5));
    assert_eq!((talk.alone.events(), cost(&talk)), (vec![], before));
    talk.lose();
    let lost = CloseReason::LinkLost("cable".into());
    assert_eq!(talk.alone.events(), [Event::Closed { reason: lost, by: ClosedBy::Link }]);
    // But not what was never sent.
    for lie in [done(1..=3), Receipt { lasting: 1, ..Receipt::default() }] {
        let mut talk = Talk::new(Side::App);
        talk.alone.session.forgo(Time::ZERO);
        talk.received(lie);
        assert!(matches!(talk.alone.closed(), CloseReason::ProtocolViolation(_)));
    }
}

/// Its hello and what it has are two messages, and the answer may be ready after the first.
#[test]
fn regression_a_display_is_declined_before_it_has_said_what_it_has() {
    for forgo in [false, true] {
        let mut talk = Talk::candidate();
        if forgo {
            talk.alone.session.forgo(Time::ZERO);
        } else {
            talk.alone.session.decline(Time::ZERO);
        }
        talk.say(&resume(open(1, 5)));
        assert_eq!((talk.alone.events(), talk.alone.session.is_closed()), (vec![], false));
        talk.say(&resume(Receipt::default()));
        talk.violated("nobody asked for");
    }
}

#[test]
fn a_session_takes_less_once_it_knows_its_peer() {
    let mut talk = Talk::new(Side::App);
    let tight = Limits { buffered: 10_000, buffered_per_channel: 1_000, ..Limits::default() };
    talk.alone.session.restrict(tight);
    talk.alone.data(1, 0, &labelled(events(1), 1, None, &[]));
    talk.alone.data(1, 500, &[0; 900]);
    assert!(!talk.alone.session.is_closed());
    talk.alone.data(1, 1_500, &[0; 900]);
    talk.alone.events();
    assert!(talk.alone.session.is_closed());
}
