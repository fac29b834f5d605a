//! Whole sessions: two of them over a simulated link in virtual time, and one against bytes made by hand.

mod bursts;
mod datagrams;
mod delivery;
mod handshake;
mod hostile;
mod jointly;
mod repair;
mod resume;
mod resume_hostile;
mod resume_model;
mod routing;
mod script;
mod sound;

use std::collections::{BTreeMap, BTreeSet};

use self::script::Script;
use super::*;
use crate::wire::Writer;
use crate::{
    Class, ConnectionId, Delivered, JointHeader, Kinds, Label, Priority, Receipt, RepairHeader, Side,
    SurfaceId, UnitHead, UpdateSeq,
};

/// SplitMix64: the tests' randomness, from a seed.
#[derive(Clone, Debug)]
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    pub(super) fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.next() as u8).collect()
    }
}

/// What the link does to packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinkPlan {
    /// Most bytes of stream data in a packet.
    pub(super) payload: usize,
    pub(super) delay: Duration,
    /// Added at random: reorders.
    pub(super) jitter: Duration,
    /// Per mille.
    pub(super) loss: usize,
    /// Per mille.
    pub(super) repeats: usize,
    /// The carrier fails to open each stream whose number is divisible by this; 0: none.
    pub(super) open_failures: u64,
    /// The display is a script, see [`script`].
    pub(super) script: bool,
}

impl LinkPlan {
    pub(super) const CLEAN: Self = Self {
        payload: 1200,
        delay: Duration::from_millis(50),
        jitter: Duration::ZERO,
        loss: 0,
        repeats: 0,
        open_failures: 0,
        script: false,
    };

    pub(super) const ROUGH: Self =
        Self { jitter: Duration::from_millis(30), loss: 50, repeats: 50, ..Self::CLEAN };
}

/// Names the display side of the tests.
pub(super) const INCARNATION: [u8; 32] = [7; 32];

/// An app side and a display side that can resume.
pub(super) fn resumable_configs() -> [Config; 2] {
    let app = Config { capabilities: Capabilities::RESUME, ..Config::new(Side::App) };
    [app, Config { resume: Some(INCARNATION.into()), ..Config::new(Side::Display) }]
}

/// One side with its half of the carrier.
pub(super) struct End {
    pub(super) session: Session,
    /// Everything that came out, in order.
    pub(super) events: Vec<Event>,
    /// What was handed to the carrier.
    pub(super) transmits: Vec<Transmit>,
    /// Our stream → its number on the link, in the order of opening.
    opened: BTreeMap<StreamId, StreamId>,
    failed: BTreeSet<StreamId>,
    written: BTreeMap<StreamId, u64>,
    /// Take the bytes of pipes as they come.
    pub(super) consume: bool,
    config: Config,
    /// The app's session that a display may go on with, while a candidate stands in its place.
    pub(super) waiting: Option<Session>,
}

/// Two sessions and the link between them.
pub(super) struct Pair {
    pub(super) ends: [End; 2],
    pub(super) now: Time,
    flying: BTreeMap<(Time, u64), (usize, Arrival)>,
    count: u64,
    rng: Dice,
    plan: LinkPlan,
    /// What is sent goes nowhere.
    dead: bool,
    script: Script,
    /// What the carriers tell of the link.
    pub(super) links: [Option<LinkState>; 2],
}

pub(super) const APP: usize = 0;
pub(super) const DISPLAY: usize = 1;

impl Pair {
    pub(super) fn new(app: Config, display: Config, plan: LinkPlan, seed: u64) -> Self {
        let end = |config: Config| End {
            session: Session::new(config.clone()),
            config,
            waiting: None,
            events: Vec::new(),
            transmits: Vec::new(),
            opened: BTreeMap::new(),
            failed: BTreeSet::new(),
            written: BTreeMap::new(),
            consume: true,
        };
        let (ends, now, rng) = ([end(app), end(display)], Time::ZERO, Dice(seed));
        let (script, links) = (Script::default(), [None; 2]);
        Self { ends, now, flying: BTreeMap::new(), count: 0, rng, plan, dead: false, script, links }
    }

    /// As [`Pair::ready`], of sides that can resume.
    pub(super) fn resumable() -> Self {
        Self::resumable_over(LinkPlan::CLEAN, 0)
    }

    pub(super) fn resumable_over(plan: LinkPlan, seed: u64) -> Self {
        let [app, display] = resumable_configs();
        let mut pair = Self::new(app, display, plan, seed);
        pair.run(Duration::from_millis(200));
        pair.forget();
        pair
    }

    /// The carrier is gone, with what was on its way. Neither side is told.
    pub(super) fn cut(&mut self) {
        self.settle();
        self.dead = true;
        self.flying.clear();
    }

    /// As [`Pair::cut`], and both are told.
    pub(super) fn lose(&mut self) {
        self.cut();
        for end in &mut self.ends {
            let reason = CloseReason::LinkLost("cable".into());
            end.session.receive(self.now, Arrival::Closed { reason });
        }
        self.settle();
    }

    /// The display comes over another carrier. The app goes on with what it has when the display's hello is there.
    pub(super) fn reconnect(&mut self) {
        let end = &mut self.ends[DISPLAY];
        let config = Config { start: self.now, ..end.config.clone() };
        let old = std::mem::replace(&mut end.session, Session::new(config.clone()));
        end.session = Session::resuming(config, old);
        let end = &mut self.ends[APP];
        let config = Config { start: self.now, ..end.config.clone() };
        let old = std::mem::replace(&mut end.session, Session::new(config));
        // The session of a candidate that was not let in is not what is waited with.
        end.waiting.get_or_insert(old);
        self.flying.clear();
        self.script = Script::default();
        self.dead = false;
        for end in &mut self.ends {
            end.opened.clear();
            end.failed.clear();
            end.written.clear();
        }
    }

    /// What the app does with a candidate's event.
    fn admit(&mut self, event: &Event) {
        let end = &mut self.ends[APP];
        if let Event::Ready { peer } = event
            && let Some(old) = end.waiting.take()
        {
            assert!(old.is_of(peer));
            end.session.succeed(self.now, old).expect("a candidate");
        }
    }

    /// Both sides with defaults, ready, over a clean link.
    pub(super) fn ready() -> Self {
        let mut pair = Self::new(Config::new(Side::App), Config::new(Side::Display), LinkPlan::CLEAN, 0);
        pair.run(Duration::from_millis(200));
        pair.forget();
        pair
    }

    /// The app's session, not a candidate for its place.
    pub(super) fn app(&mut self) -> &mut Session {
        let End { session, waiting, .. } = &mut self.ends[APP];
        waiting.as_mut().unwrap_or(session)
    }

    pub(super) fn display(&mut self) -> &mut Session {
        &mut self.ends[DISPLAY].session
    }

    /// Forgets what has been seen so far.
    pub(super) fn forget(&mut self) {
        for end in &mut self.ends {
            end.events.clear();
            end.transmits.clear();
        }
    }

    /// Lets time pass.
    pub(super) fn run(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            self.settle();
            let arrival = self.flying.keys().next().map(|(at, _)| *at);
            let timers = self.ends.iter().filter_map(|end| end.session.next_timeout());
            let Some(next) = timers.chain(arrival).min().filter(|next| *next <= end) else { break };
            self.now = self.now.max(next);
            for end in &mut self.ends {
                end.session.on_timeout(self.now);
            }
            while let Some(entry) = self.flying.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let (to, arrival) = entry.remove();
                self.arrive(to, arrival);
            }
        }
        self.now = end;
    }

    /// A side's carrier tells it.
    pub(super) fn arrive(&mut self, to: usize, arrival: Arrival) {
        let arrivals = match to {
            DISPLAY if self.plan.script => self.script.hear(arrival),
            _ => vec![arrival],
        };
        for arrival in arrivals {
            self.ends[to].session.receive(self.now, arrival);
        }
    }

    /// Moves what the sessions have to say.
    pub(super) fn settle(&mut self) {
        for at in [APP, DISPLAY] {
            loop {
                while let Some(event) = self.ends[at].session.poll_event() {
                    if at == APP {
                        self.admit(&event);
                    }
                    let end = &mut self.ends[at];
                    if let (Event::Data { channel, bytes, .. }, true) = (&event, end.consume) {
                        end.session.consumed(*channel, bytes.len());
                    }
                    end.events.push(event);
                }
                if let Some(link) = &self.links[at] {
                    self.ends[at].session.set_link(self.now, link);
                }
                let Some(transmit) = self.ends[at].session.poll_transmit(self.now) else { break };
                self.carry(at, transmit);
            }
        }
    }

    fn carry(&mut self, at: usize, transmit: Transmit) {
        self.ends[at].transmits.push(transmit.clone());
        if self.dead {
            return;
        }
        let other = 1 - at;
        match transmit {
            Transmit::Open { stream, .. } => {
                let end = &mut self.ends[at];
                if stream.0 > 0 && self.plan.open_failures > 0 && stream.0 % self.plan.open_failures == 0 {
                    end.failed.insert(stream);
                }
                let number = StreamId(end.opened.len() as u64);
                assert_eq!(number, stream, "the sides count streams alike");
                assert_eq!(end.opened.insert(stream, number), None, "opened twice");
            }
            Transmit::Data { stream, bytes, finish } if self.ends[at].failed.contains(&stream) => {
                self.fly(at, &Arrival::OpenFailed { stream, bytes, finish });
            }
            Transmit::Data { stream, bytes, finish } => {
                let number = self.ends[at].opened[&stream];
                let offset = self.ends[at].written.entry(stream).or_default();
                let start = *offset;
                *offset += bytes.len() as u64;
                let length = *offset;
                if finish {
                    self.fly(other, &Arrival::Finished { stream: number, length });
                }
                let mut at_byte = 0;
                while at_byte < bytes.len() {
                    let part = bytes.slice(at_byte..(at_byte + self.plan.payload).min(bytes.len()));
                    let offset = start + at_byte as u64;
                    at_byte += part.len();
                    self.fly(other, &Arrival::Data { stream: number, offset, bytes: part });
                }
            }
            Transmit::Prioritise { stream, .. } => assert!(self.ends[at].opened.contains_key(&stream)),
            Transmit::Reset { stream, code } => {
                if let Some(number) = self.ends[at].opened.get(&stream).copied() {
                    self.fly(other, &Arrival::Reset { stream: number, code });
                }
            }
            Transmit::Stop { stream, code } => {
                let stream = match at {
                    DISPLAY if self.plan.script => self.script.stop(stream),
                    _ => stream,
                };
                let ours = self.ends[other].opened.iter().find(|(_, number)| **number == stream);
                let stream = *ours.expect("a stream of the peer").0;
                self.fly(other, &Arrival::Stopped { stream, code });
            }
            Transmit::Datagram { bytes } => self.fly(other, &Arrival::Datagram { bytes }),
            Transmit::Close { code, reason } => {
                self.fly(other, &Arrival::Closed { reason: CloseReason::from_wire(code, &reason) });
            }
        }
    }

    fn fly(&mut self, to: usize, arrival: &Arrival) {
        let local = matches!(arrival, Arrival::OpenFailed { .. });
        let is_datagram = matches!(arrival, Arrival::Datagram { .. });
        let chaotic = is_datagram || matches!(arrival, Arrival::Data { .. } | Arrival::Finished { .. });
        if is_datagram && self.rng.below(1000) < self.plan.loss {
            return;
        }
        let copies = 1 + usize::from(chaotic && self.rng.below(1000) < self.plan.repeats);
        for _ in 0..copies {
            let jitter = self.rng.below(self.plan.jitter.as_micros() as usize + 1) as u64;
            let mut at = self.now + self.plan.delay + Duration::from_micros(jitter);
            while chaotic && !is_datagram && self.rng.below(1000) < self.plan.loss {
                at += self.plan.delay * 3; // sent again
            }
            if local {
                at = self.now + Duration::from_millis(1);
            }
            self.count += 1;
            self.flying.insert((at, self.count), (to, arrival.clone()));
        }
    }
}

impl End {
    pub(super) fn warnings(&self) -> usize {
        self.events.iter().filter(|event| matches!(event, Event::Warning(_))).count()
    }

    pub(super) fn closed(&self) -> Vec<(CloseReason, ClosedBy)> {
        let closed = self.events.iter().filter_map(|event| match event {
            Event::Closed { reason, by } => Some((reason.clone(), *by)),
            _ => None,
        });
        closed.collect()
    }

    /// The messages of each channel, by its header.
    pub(super) fn messages(&self) -> BTreeMap<Header, Vec<Bytes>> {
        let mut messages: BTreeMap<Header, Vec<Bytes>> = BTreeMap::new();
        for event in &self.events {
            if let Event::Message { header, bytes, .. } = event {
                messages.entry(*header).or_default().push(bytes.clone());
            }
        }
        messages
    }

    /// The bytes of each pipe, by its header.
    pub(super) fn pipes(&self) -> BTreeMap<Header, Vec<u8>> {
        let mut pipes: BTreeMap<Header, Vec<u8>> = BTreeMap::new();
        for event in &self.events {
            if let Event::Data { header, bytes, .. } = event {
                pipes.entry(*header).or_default().extend_from_slice(bytes);
            }
        }
        pipes
    }

    pub(super) fn updates(&self) -> BTreeMap<UpdateHeader, Vec<Bytes>> {
        let mut updates = BTreeMap::new();
        for event in &self.events {
            if let Event::Update { header, chunks } = event {
                assert_eq!(updates.insert(*header, chunks.clone()), None, "an update came twice");
            }
        }
        updates
    }

    pub(super) fn opens(&self) -> usize {
        self.transmits.iter().filter(|transmit| matches!(transmit, Transmit::Open { .. })).count()
    }
}

impl Session {
    /// Entries in all tables and bytes in all buffers: 0 when nothing is going on but the main channel.
    pub(super) fn footprint(&self) -> usize {
        self.incoming.entries() + self.incoming.buffered() + self.outgoing.entries() + self.events.len()
    }
}

/// A display-side session whose peer is made of bytes.
pub(super) struct Alone {
    pub(super) session: Session,
}

impl Alone {
    /// Before the peer's hello.
    pub(super) fn new(config: Config) -> Self {
        Self { session: Session::new(config) }
    }

    /// After the peer's hello, which came on stream 0.
    pub(super) fn ready(side: Side) -> Self {
        let mut alone = Self::new(Config::new(side));
        alone.data(0, 0, &hello_stream(&hello_of(side.peer())));
        assert!(matches!(alone.events()[..], [Event::Ready { .. }]));
        while alone.session.poll_transmit(Time::ZERO).is_some() {}
        alone
    }

    /// As [`Alone::ready`], where both can resume; or on the way to that.
    pub(super) fn resumable(side: Side, resuming: bool) -> Self {
        let [app, display] = resumable_configs();
        let (ours, theirs) = if side == Side::App { (app, display) } else { (display, app) };
        let mut alone = Self::new(ours.clone());
        alone.data(0, 0, &hello_stream(&theirs.hello(u64::from(resuming && side == Side::App), 0)));
        if resuming && side == Side::Display {
            alone.session.suspend();
            let old = std::mem::replace(&mut alone.session, Session::new(ours.clone()));
            alone.session = Session::resuming(ours, old);
            alone.data(0, 0, &hello_stream(&theirs.hello(0, 0)));
        }
        alone.events();
        while alone.session.poll_transmit(Time::ZERO).is_some() {}
        alone
    }

    pub(super) fn data(&mut self, stream: u64, offset: u64, bytes: &[u8]) {
        let bytes = Bytes::copy_from_slice(bytes);
        self.session.receive(Time::ZERO, Arrival::Data { stream: StreamId(stream), offset, bytes });
    }

    pub(super) fn finished(&mut self, stream: u64, length: usize) {
        let length = length as u64;
        self.session.receive(Time::ZERO, Arrival::Finished { stream: StreamId(stream), length });
    }

    pub(super) fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.session.poll_event()).collect()
    }

    pub(super) fn transmits(&mut self) -> Vec<Transmit> {
        std::iter::from_fn(|| self.session.poll_transmit(Time::ZERO)).collect()
    }

    /// Why it closed; it must have, exactly once, as the last event.
    pub(super) fn closed(&mut self) -> CloseReason {
        let events = self.events();
        let Some((Event::Closed { reason, by: ClosedBy::Us }, before)) = events.split_last() else {
            panic!("not closed: {events:?}");
        };
        assert!(!before.iter().any(|event| matches!(event, Event::Closed { .. })));
        let (code, text) = reason.to_wire();
        assert_eq!(self.transmits(), [Transmit::Close { code, reason: text }]);
        assert_eq!((self.session.next_timeout(), self.session.footprint()), (None, 0));
        reason.clone()
    }
}

/// The hello that a session with defaults sends.
pub(super) fn hello_of(side: Side) -> Hello {
    Config::new(side).hello(0, 0)
}

/// A control stream that begins with this hello.
pub(super) fn hello_stream(hello: &Hello) -> Vec<u8> {
    let mut writer = Writer::new();
    Header::Control.encode(&mut writer);
    writer.raw(&control_frame(&Control::Hello(hello.clone())));
    writer.into_vec()
}

pub(super) fn control_frame(message: &Control) -> Vec<u8> {
    let mut frame = Writer::new();
    message.encode(&mut frame);
    let mut writer = Writer::new();
    writer.bytes(frame.as_slice());
    writer.into_vec()
}

/// A stream with this header, then `fill`.
pub(super) fn stream(header: Header, fill: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut writer = Writer::new();
    header.encode(&mut writer);
    fill(&mut writer);
    writer.into_vec()
}

pub(super) fn update(surface: u64, seq: u64) -> UpdateHeader {
    UpdateHeader {
        connection: ConnectionId(1),
        surface: SurfaceId(surface),
        seq: UpdateSeq(seq),
        size: (640, 480),
        format: 1,
        fresh: seq == 1,
        covers: 0,
        unit: None,
    }
}

/// The header of a channel with this number.
pub(super) fn labelled(header: Header, number: u64) -> Vec<u8> {
    let mut writer = Writer::new();
    header.encode_labelled(Some(Label { number, from: None }), &mut writer);
    writer.into_vec()
}

pub(super) fn wayland(connection: u32) -> Header {
    Header::Wayland { connection: ConnectionId(connection) }
}

pub(super) fn events(connection: u32) -> Header {
    Header::Events { connection: ConnectionId(connection) }
}

pub(super) fn pipe(pipe: u64) -> Header {
    Header::Pipe { connection: ConnectionId(1), pipe }
}

#[test]
fn priorities_reach_the_carrier() {
    let mut pair = Pair::ready();
    pair.app().open(wayland(1));
    pair.app().send_update(update(2, 1), vec![vec![1; 100]]).unwrap();
    pair.app().send_update(update(2, 2), vec![vec![2; 60_000]]).unwrap();
    pair.app().send_update(update(2, 3), vec![vec![3; 60_000]]).unwrap();
    let channel = pair.app().open(pipe(2));
    pair.app().write(channel, Bytes::from_static(b"clipboard"));
    pair.settle();
    let opened = pair.ends[APP].transmits.iter().filter_map(|transmit| match transmit {
        Transmit::Open { priority, .. } => Some(*priority),
        _ => None,
    });
    let opened: Vec<Priority> = opened.collect();
    let classes: Vec<_> = opened.iter().map(|priority| priority.class()).collect();
    let (large, small) = (Class::Content, Class::SmallContent);
    assert_eq!(classes, [Class::Wayland, Class::Wayland, small, large, large]);
    assert!(opened.windows(2).all(|pair| pair[0] > pair[1]), "the most urgent is handed over first");
}

/// The examples of docs/wire.md, as they stand there.
#[test]
fn the_documented_bytes_are_the_bytes() {
    let document = include_str!("../../../../../docs/wire.md");
    let check = |bytes: &[u8], lines: &[&str]| {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let shown: String = lines.concat().split_whitespace().collect();
        assert_eq!(hex, shown);
        assert!(lines.iter().all(|line| document.contains(&format!("    {line} "))), "{lines:?}");
    };
    let message = [labelled(wayland(3), 1), b"\x05hello".to_vec()].concat();
    check(&message, &["03 02 03 01", "05 68 65 6c 6c 6f"]);
    let header = UpdateHeader { size: (1280, 720), format: 1, fresh: false, ..update(8, 5) };
    let mut alone = Alone::ready(Side::App);
    alone.session.send_update(header, vec![vec![0xaa, 0xbb, 0xcc], vec![0xdd, 0xee]]).unwrap();
    let [Transmit::Open { .. }, Transmit::Data { bytes, finish: true, .. }] = &alone.transmits()[..] else {
        panic!("an update in two pieces");
    };
    check(bytes, &["0b 04 01 08 05 45 00 42 d0 01 00 01", "02  03 02  aa bb cc  dd ee"]);
    let bytes = labelled(wayland(3), 2).into();
    check(
        &control_frame(&Control::Embedded { stream: 4, offset: 0, finish: true, bytes }),
        &["08 09 04 00 01 03 02 03 02"],
    );
    let credit = Control::PipeCredit { connection: ConnectionId(1), pipe: 6, consumed: 65_536 };
    check(&control_frame(&credit), &["07 07 01 06 80 01 00 00"]);
    let unit = Some(UnitHead { number: 5, after: 17, feedback: false, answered: None });
    let covering = Header::Update(UpdateHeader { seq: UpdateSeq(9), covers: 2, unit, ..header });
    check(&labelled(covering, 3), &["0e 04 01 08 09 45 00 42 d0 01 06 02 05 11 03"]);
    let unit = unit.map(|unit| UnitHead { answered: Some(70), ..unit });
    let answering = Header::Update(UpdateHeader { seq: UpdateSeq(9), covers: 2, unit, ..header });
    check(&labelled(answering, 3), &["10 04 01 08 09 45 00 42 d0 01 16 02 05 11 40 46 03"]);
    let mut resumed = Writer::new();
    wayland(3).encode_labelled(Some(Label { number: 7, from: Some(5) }), &mut resumed);
    check(resumed.as_slice(), &["04 02 03 07 05"]);
    let (row, index) = (1424, 1);
    let header = RepairHeader { channel: 7, stream: StreamId(9), offset: 256, length: 5000, row, index };
    check(&stream(Header::Repair(header), |_| {}), &["0a 08 07 09 41 00 53 88 45 90 01"]);
    let joint = JointHeader { number: 70, first: 300, row: 1372, updates: 2 };
    check(
        &stream(Header::Joint(joint), |writer| {
            writer.varint(7).varint(9).varint(300).varint(0).varint(1).varint(1500);
        }),
        &["08 09 40 46 41 2c 45 5c 02", "07 09 41 2c 00 01 45 dc"],
    );
    let receipt = Receipt { lasting: 3, done: vec![1..=10], open: vec![] };
    check(&control_frame(&Control::Received(receipt)), &["06 0c 03 01 00 09 00"]);
    let open = vec![Delivered { number: 11, offset: 256 }];
    let (row, index) = (1424, 1);
    let header = RepairHeader { channel: 7, stream: StreamId(9), offset: 256, length: 5000, row, index };
    check(&stream(Header::Repair(header), |_| {}), &["0a 08 07 09 41 00 53 88 45 90 01"]);
    let receipt = Receipt { lasting: 3, done: vec![], open };
    check(&control_frame(&Control::Received(receipt)), &["07 0c 03 00 01 0a 41 00"]);
}
