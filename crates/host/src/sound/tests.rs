//! Both ends of a flow, over sessions that hand each other everything at once.

use std::collections::BTreeMap;
use std::time::Duration;

use wayferry_audio::{Ear, Figures, Mode, Packet, Packets, Position};
use wayferry_proto::{
    Arrival, Capabilities, CloseReason, Config, Control, Event, LinkState, Listen, Session, Side, StreamId,
    Time, Transmit,
};
use wayferry_sound::{Captured, Codec, Content};

use super::{Audio, Flow, Hearing, Output, Sending};
use crate::clock::Clock;

/// An app side and a display side, past their hellos.
struct Pair {
    app: Session,
    display: Session,
    lengths: [BTreeMap<StreamId, u64>; 2],
    heard: Vec<Packet>,
    resets: usize,
}

impl Pair {
    fn new() -> Self {
        let session = |side| {
            let capabilities = Capabilities::SOUND;
            Session::new(Config { capabilities, ..Config::new(side) })
        };
        let (app, display) = (session(Side::App), session(Side::Display));
        let mut pair = Self { app, display, lengths: Default::default(), heard: Vec::new(), resets: 0 };
        pair.pass(&mut Sending::new(Mode::Hybrid));
        pair
    }

    /// Lets all that waits arrive, and both sides hear it.
    fn pass(&mut self, sending: &mut Sending) {
        loop {
            let mut passed = false;
            for (side, lengths) in self.lengths.iter_mut().enumerate() {
                let (from, to) = match side {
                    0 => (&mut self.app, &mut self.display),
                    _ => (&mut self.display, &mut self.app),
                };
                while let Some(transmit) = from.poll_transmit(Time::ZERO) {
                    passed = true;
                    self.resets += usize::from(matches!(transmit, Transmit::Reset { .. }));
                    arrivals(transmit, lengths)
                        .into_iter()
                        .for_each(|arrival| to.receive(Time::ZERO, arrival));
                }
            }
            while let Some(event) = self.app.poll_event() {
                if let Event::Control(Control::Listen(listen)) = event {
                    sending.on_listen(listen, &mut self.app);
                }
            }
            while let Some(event) = self.display.poll_event() {
                match event {
                    Event::Sound { bytes } => self.heard.push(Packet::parse(&bytes).expect("a packet")),
                    Event::Datagram { bytes } => {
                        self.heard.extend(Packets::new(&bytes).map(|packet| packet.expect("a packet")));
                    }
                    _ => {}
                }
            }
            if !passed {
                return;
            }
        }
    }

    /// Lets all that the app side says arrive, and gives what the display is told to send.
    fn pass_to_display(&mut self) -> Vec<Listen> {
        while let Some(transmit) = self.app.poll_transmit(Time::ZERO) {
            let arrivals = arrivals(transmit, &mut self.lengths[0]);
            arrivals.into_iter().for_each(|arrival| self.display.receive(Time::ZERO, arrival));
        }
        let events = std::iter::from_fn(|| self.display.poll_event());
        let told = events.filter_map(|event| match event {
            Event::Control(Control::Listen(listen)) => Some(listen),
            _ => None,
        });
        told.collect()
    }

    fn send(&mut self, sending: &mut Sending, at: u64, codec: Codec) {
        let link = LinkState { rtt: Duration::from_millis(100), datagram: 1200, ..LinkState::default() };
        let content = Content::Frame { start: at == 0, payload: vec![at as u8; 200] };
        let captured = Captured { codec, capture: Position(at * 960), content };
        sending.send(Time::from_millis(at * 20), &mut self.app, &link, &captured);
        self.pass(sending);
    }
}

fn arrivals(transmit: Transmit, lengths: &mut BTreeMap<StreamId, u64>) -> Vec<Arrival> {
    match transmit {
        Transmit::Data { stream, bytes, finish } => {
            let length = lengths.entry(stream).or_default();
            let offset = *length;
            *length += bytes.len() as u64;
            let end = finish.then_some(Arrival::Finished { stream, length: *length });
            [Arrival::Data { stream, offset, bytes }].into_iter().chain(end).collect()
        }
        Transmit::Datagram { bytes } => vec![Arrival::Datagram { bytes }],
        Transmit::Reset { stream, code } => vec![Arrival::Reset { stream, code }],
        _ => Vec::new(),
    }
}

fn listen(track: u8) -> Listen {
    Listen { track, rate: 96_000, target: 80, delay: 90 }
}

/// Sequence numbers of what was heard, without copies.
fn sequences(heard: &[Packet]) -> Vec<u32> {
    let mut sequences: Vec<u32> = heard.iter().map(|packet| packet.sequence).collect();
    sequences.sort_unstable();
    sequences.dedup();
    sequences
}

#[test]
fn nothing_is_sent_that_was_not_asked_for() {
    let (mut pair, mut sending) = (Pair::new(), Sending::new(Mode::Hybrid));
    assert_eq!(sending.wanted(Duration::ZERO), None);
    pair.send(&mut sending, 0, Codec::Opus);
    assert!(pair.heard.is_empty());
    assert!(pair.display.listen(listen(1)));
    pair.pass(&mut sending);
    let wanted = sending.wanted(Duration::from_millis(100)).expect("it listens");
    assert_eq!((wanted.codec, wanted.rate), (Codec::Opus, 96_000));
    (0..30).for_each(|at| pair.send(&mut sending, at, Codec::Opus));
    assert_eq!(sequences(&pair.heard), (0..30).collect::<Vec<_>>());
    assert!(pair.heard.iter().all(|packet| packet.track == 1));
    assert!(pair.heard.len() > 50, "on a long way each frame rides again");

    pair.heard.clear();
    assert!(pair.display.listen(listen(0)));
    pair.pass(&mut sending);
    assert_eq!(sending.wanted(Duration::ZERO), None);
    pair.send(&mut sending, 30, Codec::Opus);
    assert!(pair.heard.is_empty() && pair.resets > 0, "what was under way is given up");
}

/// A copy is due after its frame: by then the receiver may be gone.
#[test]
fn a_copy_is_sent_to_who_still_listens() {
    let link = LinkState { rtt: Duration::from_millis(100), datagram: 1200, ..LinkState::default() };
    for goes in [false, true] {
        let (mut pair, mut sending) = (Pair::new(), Sending::new(Mode::Hybrid));
        assert!(pair.display.listen(listen(1)));
        pair.pass(&mut sending);
        pair.send(&mut sending, 0, Codec::Opus);
        let due = sending.next_timeout(Time::ZERO).expect("a copy");
        if goes {
            sending.forget();
            assert_eq!(sending.next_timeout(Time::ZERO), None);
        }
        sending.on_timeout(due, &mut pair.app, &link);
        pair.pass(&mut sending);
        assert_eq!(pair.heard.len(), if goes { 1 } else { 2 });
    }
}

#[test]
fn a_receiver_that_comes_again_hears_that_a_flow_begins_anew() {
    let (mut pair, mut sending) = (Pair::new(), Sending::new(Mode::Stream));
    pair.display.listen(listen(2));
    pair.pass(&mut sending);
    (0..5).for_each(|at| pair.send(&mut sending, at, Codec::Pcm));
    sending.forget();
    pair.send(&mut sending, 5, Codec::Pcm);
    assert_eq!(pair.heard.len(), 5, "its carrier is gone");
    let mut again = Pair::new();
    again.display.listen(listen(2));
    again.pass(&mut sending);
    again.send(&mut sending, 6, Codec::Pcm);
    let first = again.heard.first().expect("a packet");
    assert!(first.flags.discontinuity && first.sequence == 5, "{first:?}");
    assert_eq!(again.resets, 0, "channels of the other session are not this one's");
}

#[test]
fn a_viewer_hears_what_is_captured_for_the_display() {
    let (mut pair, mut sending) = (Pair::new(), Sending::new(Mode::Hybrid));
    pair.display.listen(listen(1));
    pair.pass(&mut sending);
    pair.send(&mut sending, 0, Codec::Pcm);
    pair.send(&mut sending, 1, Codec::Opus);
    let tracks: Vec<u8> = pair.heard.iter().map(|packet| packet.track).collect();
    assert_eq!(tracks, [2, 1]);
}

#[test]
fn what_a_receiver_says_is_bounded() {
    let (mut pair, mut sending) = (Pair::new(), Sending::new(Mode::Hybrid));
    for listen in [
        Listen { track: 1, rate: u32::MAX, target: u32::MAX, delay: u32::MAX },
        Listen { track: 1, rate: 0, target: 0, delay: 0 },
    ] {
        sending.on_listen(listen, &mut pair.app);
        let wanted = sending.wanted(Duration::MAX).expect("it listens");
        assert!((16_000..=510_000).contains(&wanted.rate) && sending.delay() <= Duration::from_secs(5));
        pair.send(&mut sending, 0, Codec::Opus);
    }
    sending.on_listen(Listen { track: 99, ..listen(1) }, &mut pair.app);
    assert_eq!(sending.wanted(Duration::ZERO), None, "a track that is not known is none");
}

#[test]
fn what_is_typed_is_what_is_wanted() {
    let wanted = |text: &str| text.parse::<Audio>().map(Audio::wanted);
    assert_eq!(wanted("auto"), Ok(Some((Codec::Opus, 96_000))));
    assert_eq!((wanted("off"), wanted("pcm")), (Ok(None), Ok(Some((Codec::Pcm, 0)))));
    assert_eq!((wanted("64k"), wanted("64000")), (wanted("64000"), Ok(Some((Codec::Opus, 64_000)))));
    for wrong in ["", "k", "15999", "511k", "-1", "5000000k", "loud"] {
        assert!(wanted(wrong).is_err(), "{wrong}");
    }
}

/// Each would cost a new player.
#[test]
fn regression_a_host_changes_the_codec_with_every_packet() {
    let file = std::env::temp_dir().join(format!("wayferry-hearing-{}", std::process::id()));
    let hearing = Hearing::new(Audio::Pcm, Output::File(file.clone()), Clock::start());
    let mut hearing = hearing.expect("a thread").expect("it hears");
    let mut codecs = Vec::new();
    for at in 0..200u64 {
        let track = 1 + (at % 2) as u8;
        let packet = Packet { track, sequence: at as u32, payload: vec![0; 40], ..Packet::default() };
        hearing.on_packet(Time::from_millis(at * 20), &packet.to_vec());
        codecs.push(hearing.document()["codec"].clone());
    }
    let changes = codecs.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert!((3..=4).contains(&changes), "{changes} in four seconds");
    drop(hearing);
    let _ = std::fs::remove_file(file);
}

/// The microphone: the app side listens while a program records, and says once that none does any more.
#[test]
fn a_display_is_told_when_a_program_records_and_once_when_none_does() {
    let mut pair = Pair::new();
    let mut flow = Flow::new((Codec::Opus, 96_000));
    let figures = Figures::default();
    let told =
        |pair: &mut Pair| pair.pass_to_display().into_iter().map(|listen| listen.track).collect::<Vec<u8>>();
    flow.tell_nothing(Time::ZERO, &mut pair.app);
    assert_eq!(told(&mut pair), [0; 0], "it was not told otherwise");
    flow.tell(Time::ZERO, &mut pair.app, &figures);
    flow.tell(Time::from_millis(10), &mut pair.app, &figures);
    assert_eq!(told(&mut pair), [1]);
    flow.tell_nothing(Time::from_millis(20), &mut pair.app);
    flow.tell_nothing(Time::from_millis(30), &mut pair.app);
    assert_eq!(told(&mut pair), [0]);
    flow.tell(Time::from_millis(40), &mut pair.app, &figures);
    assert_eq!(told(&mut pair), [1], "at once, when one records again");
    flow.tell_again();
    flow.tell(Time::from_millis(50), &mut pair.app, &figures);
    assert_eq!(told(&mut pair), [1], "another carrier");
}

struct Deaf;

impl Ear for Deaf {
    fn begin(&mut self, _codec: Codec) {}

    fn packet(&mut self, _arrived: Time, _packet: Packet) {}
}

/// A run loop that is to wait until a time that is past does not wait at all.
#[test]
fn regression_the_run_loop_spins_when_a_program_stops_recording() {
    let (mut pair, mut flow) = (Pair::new(), Flow::new((Codec::Opus, 96_000)));
    let tell = |millis, flow: &mut Flow, session: &mut Session| {
        let now = Time::from_millis(millis);
        flow.tell_nothing(now, session);
        flow.next_timeout(now).filter(|at| *at <= now)
    };
    flow.tell(Time::ZERO, &mut pair.app, &Figures::default());
    let packet = Packet { track: 1, payload: vec![0; 40], ..Packet::default() };
    flow.on_packet(Time::from_millis(900), &packet.to_vec(), &mut Deaf);
    assert_eq!(tell(1000, &mut flow, &mut pair.app), None);
    assert_eq!(tell(2500, &mut flow, &mut pair.app), None, "nothing is to be told");
}

#[test]
fn regression_the_run_loop_spins_while_a_session_closes() {
    let (mut pair, mut flow) = (Pair::new(), Flow::new((Codec::Opus, 96_000)));
    flow.tell(Time::ZERO, &mut pair.app, &Figures::default());
    let packet = Packet { track: 1, payload: vec![0; 40], ..Packet::default() };
    flow.on_packet(Time::from_millis(900), &packet.to_vec(), &mut Deaf);
    pair.app.close(CloseReason::Done);
    let now = Time::from_millis(1500);
    flow.tell(now, &mut pair.app, &Figures::default());
    assert_eq!(flow.next_timeout(now).filter(|at| *at <= now), None, "it can be told nothing");
}
