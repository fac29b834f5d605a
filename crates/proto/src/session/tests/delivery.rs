//! What is sent arrives, in order, whole, once; no matter what the link does.

use proptest::prelude::*;

use super::*;

/// What one side said, by channel.
#[derive(Debug, Default, PartialEq)]
struct Said {
    messages: BTreeMap<Header, Vec<Bytes>>,
    pipes: BTreeMap<Header, Vec<u8>>,
    updates: BTreeMap<UpdateHeader, Vec<Bytes>>,
    blobs: BTreeMap<u128, Bytes>,
}

impl Said {
    /// How much it is, for a person to read.
    fn lengths(&self) -> Vec<(Header, usize)> {
        let messages = self.messages.iter().map(|(header, all)| (*header, all.len()));
        let pipes = self.pipes.iter().map(|(header, bytes)| (*header, bytes.len()));
        let updates = self.updates.iter().map(|(header, chunks)| (Header::Update(*header), chunks.len()));
        messages.chain(pipes).chain(updates).collect()
    }

    fn heard_by(end: &End) -> Self {
        let blobs = end.events.iter().filter_map(|event| match event {
            Event::Blob { hash, bytes } => Some((*hash, bytes.clone())),
            _ => None,
        });
        let blobs = blobs.collect();
        Self { messages: end.messages(), pipes: end.pipes(), updates: end.updates(), blobs }
    }
}

/// Talks at random for a while.
fn talk(pair: &mut Pair, at: usize, rng: &mut Dice) -> Said {
    let mut said = Said::default();
    let mut channels: Vec<(ChannelId, Header)> = Vec::new();
    for n in 0..60 {
        let session = &mut pair.ends[at].session;
        match rng.below(12) {
            0..=1 => {
                let header = if at == APP { wayland(n) } else { events(n) };
                channels.push((session.open(header), header));
            }
            2 => {
                let header = pipe(n.into());
                channels.push((session.open(header), header));
            }
            3 if at == APP => {
                let chunks = (0..rng.below(6)).map(|_| {
                    let length = 1 + [10, 3000, 60_000][rng.below(3)];
                    rng.bytes(length)
                });
                let chunks: Vec<_> = chunks.collect();
                let header = update(rng.below(3) as u64, u64::from(n) + 1);
                session.send_update(header, chunks.clone()).unwrap();
                said.updates.insert(header, chunks.into_iter().map(Bytes::from).collect());
            }
            4 => {
                let length = [0, 50, 70_000][rng.below(3)];
                let bytes = Bytes::from(rng.bytes(length));
                session.send_blob(n.into(), bytes.clone()).unwrap();
                said.blobs.insert(n.into(), bytes);
            }
            5 if !channels.is_empty() => {
                let (channel, _) = channels.swap_remove(rng.below(channels.len()));
                session.finish(channel);
            }
            6 => pair.run(Duration::from_millis(rng.below(40) as u64)),
            _ if !channels.is_empty() => {
                let (channel, header) = channels[rng.below(channels.len())];
                let length = [0, 30, 5_000, 65_536][rng.below(4)];
                let bytes = rng.bytes(length);
                match header.kind() {
                    Kind::Pipe => {
                        session.write(channel, Bytes::copy_from_slice(&bytes));
                        if length > 0 {
                            said.pipes.entry(header).or_default().extend(bytes);
                        }
                    }
                    _ => {
                        session.send(channel, &bytes).unwrap();
                        said.messages.entry(header).or_default().push(bytes.into());
                    }
                }
            }
            _ => {}
        }
    }
    said
}

/// Both talk, and each hears what the other said.
pub(super) fn everything_is_heard(pair: &mut Pair, seed: u64) {
    let mut rng = Dice(seed);
    // Before the hellos too: what is said then waits for them.
    let by_app = talk(pair, APP, &mut rng);
    let by_display = talk(pair, DISPLAY, &mut rng);
    pair.run(Duration::from_secs(30));
    assert_eq!(pair.ends[APP].closed(), []);
    for (at, said) in [(DISPLAY, by_app), (APP, by_display)] {
        let heard = Said::heard_by(&pair.ends[at]);
        assert_eq!(heard.lengths(), said.lengths());
        assert_eq!(heard, said);
    }
}

fn everything_arrives(plan: LinkPlan, main_only: [Kinds; 2], seed: u64) {
    let [app, display] = [(Side::App, main_only[0]), (Side::Display, main_only[1])]
        .map(|(side, main_only)| Config { main_only, ..Config::new(side) });
    let mut pair = Pair::new(app, display, plan, seed);
    everything_is_heard(&mut pair, seed);
    for end in &pair.ends {
        assert_eq!(end.warnings(), usize::from(plan.open_failures > 0 && end.opens() > 3));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn everything_arrives_over_a_rough_link(seed: u64, payload in 1_usize..3000) {
        // Tiny packets make many arrivals of 65 KiB messages: keep the test short.
        let payload = if payload < 300 { payload + 300 } else { payload };
        everything_arrives(LinkPlan { payload, ..LinkPlan::ROUGH }, [Kinds::EMPTY; 2], seed);
    }

    #[test]
    fn everything_arrives_by_any_route(seed: u64, app in 0_u64..128, display in 0_u64..128) {
        everything_arrives(LinkPlan::ROUGH, [Kinds::from_bits(app), Kinds::from_bits(display)], seed);
    }

    #[test]
    fn everything_arrives_though_streams_fail_to_open(seed: u64, open_failures in 1_u64..4) {
        everything_arrives(LinkPlan { open_failures, ..LinkPlan::ROUGH }, [Kinds::EMPTY; 2], seed);
    }
}

/// Streams of every kind that an app side opens, with what they mean alone.
fn streams(rng: &mut Dice) -> Vec<Vec<u8>> {
    let mut messages = |header| {
        let messages: Vec<_> = (0..rng.below(20)).map(|_| rng.below(400)).collect();
        let bytes: Vec<_> = messages.into_iter().map(|length| rng.bytes(length)).collect();
        stream(header, |writer| {
            bytes.iter().for_each(|message| {
                writer.bytes(message);
            })
        })
    };
    let mut streams = vec![messages(wayland(1)), messages(wayland(2))];
    for seq in 1..4 {
        let chunks: Vec<_> = (0..rng.below(4)).map(|_| rng.below(300)).collect();
        let chunks: Vec<_> = chunks.into_iter().map(|length| rng.bytes(length + 1)).collect();
        streams.push(stream(Header::Update(update(7, seq)), |writer| {
            writer.varint(chunks.len() as u64);
            chunks.iter().for_each(|chunk| {
                writer.varint(chunk.len() as u64);
            });
            chunks.iter().for_each(|chunk| {
                writer.raw(chunk);
            });
        }));
    }
    let (bytes, blob) = (rng.bytes(900), rng.bytes(500));
    streams.push(stream(pipe(4), |writer| {
        writer.raw(&bytes);
    }));
    streams.push(stream(Header::Blob { hash: 5, length: 500 }, |writer| {
        writer.raw(&blob);
    }));
    streams
}

/// What the events say of each channel, however they are mixed.
fn meaning(events: &[Event]) -> BTreeMap<String, Vec<Vec<u8>>> {
    let mut meaning: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
    for event in events {
        let (key, parts) = match event {
            Event::Message { header, bytes, .. } => (format!("{header:?}"), vec![bytes.to_vec()]),
            Event::Data { header, bytes, .. } => {
                let all = meaning.entry(format!("{header:?}")).or_insert_with(|| vec![vec![]]);
                all[0].extend_from_slice(bytes);
                continue;
            }
            Event::Update { header, chunks } => {
                (format!("{header:?}"), chunks.iter().map(|chunk| chunk.to_vec()).collect())
            }
            Event::Blob { hash, bytes } => (format!("blob {hash}"), vec![bytes.to_vec()]),
            Event::Opened { header, .. } => (format!("{header:?} opened"), vec![vec![]]),
            Event::Finished { header, .. } => (format!("{header:?} finished"), vec![vec![]]),
            Event::Closed { reason, .. } => panic!("closed: {reason}"),
            _ => continue,
        };
        meaning.entry(key).or_default().extend(parts);
    }
    meaning
}

proptest! {
    #[test]
    fn splitting_and_interleaving_change_nothing(seed: u64, early in 0_usize..100) {
        let mut rng = Dice(seed);
        let streams = streams(&mut rng);
        let mut alone = BTreeMap::new();
        for bytes in &streams {
            let mut session = Alone::ready(Side::Display);
            session.data(5, 0, bytes);
            session.finished(5, bytes.len());
            alone.extend(meaning(&session.events()));
        }
        let mut pieces = Vec::new();
        for (n, bytes) in streams.iter().enumerate() {
            let mut at = 0;
            while at < bytes.len() {
                // Some pieces reach into the next one: overlaps; some come twice.
                let length = 1 + rng.below(150);
                let reach = length + rng.below(2) * rng.below(100);
                for _ in 0..1 + rng.below(4) / 3 {
                    pieces.push((n as u64 + 1, at, &bytes[at..(at + reach).min(bytes.len())]));
                }
                at += length;
            }
            pieces.push((n as u64 + 1, bytes.len(), &[]));
        }
        for n in (1..pieces.len()).rev() {
            pieces.swap(n, rng.below(n + 1));
        }
        // The hello may come in the midst of them.
        let mut mixed = Alone::new(Config::new(Side::Display));
        for (n, (stream, offset, bytes)) in pieces.iter().enumerate() {
            if n == early.min(pieces.len() - 1) {
                prop_assert!(mixed.events().is_empty());
                mixed.data(0, 0, &hello_stream(&hello_of(Side::App)));
            }
            match bytes.len() {
                0 => mixed.finished(*stream, *offset),
                _ => mixed.data(*stream, *offset as u64, bytes),
            }
        }
        prop_assert_eq!(meaning(&mixed.events()), alone);
        prop_assert_eq!(mixed.session.incoming.buffered(), 0);
    }
}

#[test]
fn ten_thousand_streams_leave_nothing_behind() {
    let mut pair = Pair::ready();
    let idle = [pair.ends[APP].session.footprint(), pair.ends[DISPLAY].session.footprint()];
    for n in 1..=2_000_u32 {
        let channel = pair.app().open(wayland(n));
        pair.app().send(channel, b"message").unwrap();
        pair.app().finish(channel);
        let channel = pair.display().open(events(n));
        pair.display().send(channel, b"message").unwrap();
        pair.display().reset(channel, STREAM_CANCELLED);
        let channel = pair.app().open(pipe(n.into()));
        pair.app().write(channel, Bytes::from_static(b"clipboard"));
        pair.app().finish(channel);
        pair.app().send_update(update(1, n.into()), vec![vec![1; 900]]).unwrap();
        pair.display().send_blob(n.into(), Bytes::from_static(b"keymap")).unwrap();
        if n % 50 == 0 {
            pair.run(Duration::from_millis(110));
            let now = [pair.ends[APP].session.footprint(), pair.ends[DISPLAY].session.footprint()];
            assert_eq!(now, idle);
            pair.ends.iter().for_each(|end| assert_eq!(end.closed(), []));
        }
    }
    assert!(pair.ends[APP].opens() == 6_000 && pair.ends[DISPLAY].opens() >= 2_000);
    assert_eq!(pair.ends[DISPLAY].updates().len(), 2_000);
}

#[test]
fn a_slow_reader_of_a_pipe_costs_one_window() {
    let mut pair = Pair::ready();
    pair.ends[DISPLAY].consume = false;
    let channel = pair.app().open(pipe(2));
    assert_eq!(pair.app().pipe_room(channel), PIPE_WINDOW);
    for _ in 0..10 {
        pair.app().write(channel, Bytes::from(vec![7; 100_000]));
    }
    assert_eq!(pair.app().pipe_room(channel), 0);
    pair.app().finish(channel);
    pair.run(Duration::from_secs(2));
    let got = |pair: &Pair| pair.ends[DISPLAY].pipes().get(&pipe(2)).map_or(0, Vec::len);
    assert_eq!(got(&pair), 64 << 10, "the head, until the reader has taken it");
    let remote = pair.ends[DISPLAY].events.iter().find_map(|event| match event {
        Event::Opened { channel, .. } => Some(*channel),
        _ => None,
    });
    pair.display().consumed(remote.unwrap(), 64 << 10);
    pair.run(Duration::from_secs(2));
    assert_eq!(got(&pair), (64 << 10) + PIPE_WINDOW);
    // A caller that claims more than it was given is not believed.
    pair.display().consumed(remote.unwrap(), 10 << 20);
    pair.ends[DISPLAY].consume = true;
    pair.run(Duration::from_secs(5));
    assert_eq!(got(&pair), 1_000_000);
    assert!(pair.ends[DISPLAY].events.iter().any(|event| matches!(event, Event::Finished { .. })));
    assert_eq!(pair.ends[APP].closed(), []);
}

#[test]
fn a_pipe_beyond_its_head_gets_turns_before_content() {
    let mut pair = Pair::ready();
    let channel = pair.app().open(pipe(2));
    pair.app().write(channel, Bytes::from(vec![7; 200_000]));
    pair.run(Duration::from_secs(1));
    let classes = pair.ends[APP].transmits.iter().filter_map(|transmit| match transmit {
        Transmit::Open { priority, .. } | Transmit::Prioritise { priority, .. } => Some(priority.class()),
        _ => None,
    });
    let classes: Vec<_> = classes.collect();
    assert_eq!(classes[..4], [Class::Wayland, Class::Pipe, Class::SmallContent, Class::Pipe]);
    assert!((16..=22).contains(&classes.len()), "{} changes in a second", classes.len());
    pair.app().finish(channel);
    pair.run(Duration::from_secs(1));
    pair.forget();
    pair.run(Duration::from_secs(3));
    assert!(!pair.ends[APP].transmits.iter().any(|transmit| matches!(transmit, Transmit::Prioritise { .. })));
}

#[test]
fn small_messages_travel_as_one_piece() {
    let mut pair = Pair::ready();
    let channel = pair.app().open(wayland(1));
    for n in 0..100_u8 {
        pair.app().send(channel, &[n; 20]).unwrap();
    }
    pair.settle();
    let [Transmit::Open { .. }, Transmit::Data { bytes, finish: false, .. }] = &pair.ends[APP].transmits[..]
    else {
        panic!("{:?}", pair.ends[APP].transmits);
    };
    assert_eq!(bytes.len(), 4 + 100 * 21);
}

#[test]
fn a_stopped_channel_is_reset_and_reported_once() {
    let mut pair = Pair::ready();
    let ours = pair.app().open(pipe(2));
    pair.app().write(ours, Bytes::from(vec![7; 300_000]));
    pair.run(Duration::from_millis(60));
    let opened = pair.ends[DISPLAY].events.iter().find_map(|event| match event {
        Event::Opened { channel, .. } => Some(*channel),
        _ => None,
    });
    pair.display().stop(opened.unwrap(), 9);
    let before = pair.ends[DISPLAY].pipes()[&pipe(2)].len();
    pair.run(Duration::from_secs(1));
    let stopped = Event::Stopped { channel: ours, header: pipe(2), code: 9 };
    assert_eq!(pair.ends[APP].events, [stopped]);
    assert_eq!(pair.ends[DISPLAY].pipes()[&pipe(2)].len(), before);
    let resets = pair.ends[APP].transmits.iter().filter(|t| matches!(t, Transmit::Reset { code: 9, .. }));
    assert_eq!(resets.count(), 1);
    assert_eq!(pair.app().pipe_room(ours), 0);
    pair.app().write(ours, Bytes::from_static(b"too late"));
    pair.settle();
    assert_eq!(pair.ends[APP].session.footprint(), pair.ends[DISPLAY].session.footprint());
}

#[test]
fn the_budget_is_what_the_link_takes_soon_less_what_waits() {
    let mut pair = Pair::ready();
    let link = LinkState { window: 100_000, unsent: 30_000, ..LinkState::default() };
    assert_eq!(pair.app().content_budget(&link), 70_000);
    let queued = pair.app().send_update(update(1, 1), vec![vec![1; 50_000]]).unwrap();
    assert!(queued > 50_000);
    assert_eq!(pair.app().content_budget(&link), 70_000 - queued);
    pair.settle();
    assert_eq!(pair.app().content_budget(&link), 70_000);
    assert_eq!(pair.app().content_budget(&LinkState { window: 10, ..link }), 65_536 - 30_000);
    assert_eq!(pair.app().content_budget(&LinkState { unsent: 1 << 40, ..link }), 0);
    let slow = LinkState { rate: Some(1_250_000), ..link };
    assert_eq!(pair.app().content_budget(&slow), 50_000 - 30_000, "40 ms of its rate");
}

/// An app side with this much room in its carrier, 40 ms of its link.
fn with_room(bytes: u64) -> Alone {
    let mut alone = Alone::ready(Side::App);
    alone.session.set_link(Time::ZERO, &room(bytes));
    alone
}

fn room(bytes: u64) -> LinkState {
    LinkState { window: 1 << 20, rate: Some(25 * bytes), ..LinkState::default() }
}

/// The bytes of each stream that were handed over.
fn handed(transmits: &[Transmit]) -> BTreeMap<StreamId, usize> {
    let mut handed = BTreeMap::new();
    for transmit in transmits {
        if let Transmit::Data { stream, bytes, .. } = transmit {
            *handed.entry(*stream).or_default() += bytes.len();
        }
    }
    handed
}

#[test]
fn large_content_waits_here_while_the_carrier_has_enough() {
    let mut app = with_room(20_000);
    let length = app.session.send_update(update(1, 1), vec![vec![1; 50_000]]).unwrap() as usize;
    let first = app.transmits();
    assert_eq!(handed(&first).values().sum::<usize>(), 20_000);
    // What is small or urgent does not wait.
    let channel = app.session.open(wayland(1));
    app.session.send(channel, b"urgent").unwrap();
    app.session.send_update(update(2, 1), vec![vec![2; 1000]]).unwrap();
    assert_eq!(handed(&app.transmits()).len(), 2);
    assert_eq!(app.transmits(), []);
    app.session.set_link(Time::ZERO, &LinkState { unsent: 15_000, ..room(20_000) });
    assert_eq!(handed(&app.transmits()).values().sum::<usize>(), 5_000);
    let mut rest = 25_000;
    while rest < length {
        app.session.set_link(Time::ZERO, &room(20_000));
        rest += handed(&app.transmits()).values().sum::<usize>();
    }
    let header = labelled(Header::Update(update(1, 1)), 1).len();
    assert_eq!((rest, app.session.content_budget(&room(20_000))), (header + length, 20_000));
}

/// The last bytes of the updates that were handed over as a whole.
fn whole(transmits: &[Transmit]) -> Vec<u8> {
    let last = |transmit: &Transmit| match transmit {
        Transmit::Data { bytes, finish: true, .. } => bytes.last().copied(),
        _ => None,
    };
    transmits.iter().filter_map(last).collect()
}

#[test]
fn refinement_may_wait_for_eight_milliseconds_only() {
    let app = with_room(20_000);
    let link = LinkState { rate: Some(1_000_000), window: 1 << 20, ..LinkState::default() };
    assert_eq!(app.session.refinement_budget(&link), 8_000);
    assert_eq!(app.session.refinement_budget(&LinkState { unsent: 7_000, ..link }), 1_000);
    assert_eq!(app.session.refinement_budget(&LinkState { rate: Some(1000), ..link }), 1_200);
}

#[test]
fn an_update_of_which_nothing_has_left_is_taken_back_and_its_successor_goes_in_its_place() {
    let mut app = with_room(20_000);
    let (connection, surface) = (ConnectionId(1), SurfaceId(1));
    for (header, fill) in [(update(1, 1), 1), (update(1, 2), 2), (update(2, 1), 3)] {
        app.session.send_update(header, vec![vec![fill; 30_000]]).unwrap();
    }
    let mut sent = app.transmits();
    assert_eq!(app.session.take_back(connection, surface, UpdateSeq(1)), None, "its beginning has left");
    let length = app.session.take_back(connection, surface, UpdateSeq(2));
    assert!(length.is_some_and(|length| length > 30_000));
    assert_eq!(app.session.take_back(connection, surface, UpdateSeq(2)), None, "it is gone");
    app.session.send_update(update(1, 3), vec![vec![4; 30_000]]).unwrap();
    for _ in 0..6 {
        app.session.set_link(Time::ZERO, &room(20_000));
        sent.extend(app.transmits());
    }
    assert_eq!(whole(&sent), [1, 4, 3]);
    assert_eq!(app.session.content_budget(&room(20_000)), 20_000, "nothing is queued");
}

/// A pipe to the peer that has taken the head, with more than its window to come.
fn with_pipe(app: &mut Alone) -> StreamId {
    let (connection, pipe) = (ConnectionId(1), 1);
    let channel = app.session.open(Header::Pipe { connection, pipe });
    app.session.write(channel, Bytes::from(vec![7; 300_000]));
    let head = app.transmits();
    let taken = 65_536;
    let at = hello_stream(&hello_of(Side::Display)).len() as u64;
    app.data(0, at, &control_frame(&Control::PipeCredit { connection, pipe, consumed: taken }));
    let Some(Transmit::Open { stream, .. }) = head.first() else { panic!("{head:?}") };
    *stream
}

/// What waits in the carrier is half the pipe's at most, so that content can be encoded and handed over at any time.
#[test]
fn a_large_paste_leaves_room_for_content() {
    let mut app = with_room(20_000);
    let pipe = with_pipe(&mut app);
    let mut unsent = 0;
    for _ in 0..10 {
        app.session.set_link(Time::ZERO, &LinkState { unsent, ..room(20_000) });
        unsent += handed(&app.transmits()).values().sum::<usize>() as u64;
    }
    assert_eq!(unsent, 10_000);
    let link = LinkState { unsent, ..room(20_000) };
    assert_eq!(app.session.content_budget(&link), 10_000);
    assert_eq!(app.session.refinement_budget(&link), link.aside(), "what is shown becomes better meanwhile");
    app.session.send_update(update(1, 1), vec![vec![1; 50_000]]).unwrap();
    app.session.set_link(Time::ZERO, &link);
    let content = handed(&app.transmits());
    assert_eq!((content.len(), content.get(&pipe)), (1, None));
}

/// While content never ends, a pipe has a turn ten times a second.
#[test]
fn content_without_end_does_not_starve_a_paste() {
    let mut app = with_room(20_000);
    let pipe = with_pipe(&mut app);
    let mut pasted = 0;
    let mut now = Time::ZERO;
    for seq in 1..=100 {
        app.session.send_update(update(1, seq), vec![vec![1; 50_000]]).unwrap();
        now += Duration::from_millis(10);
        app.session.on_timeout(now);
        // The link takes 40 ms worth in the meantime, so it is never full, and always has content.
        app.session.set_link(now, &room(20_000));
        pasted += handed(&app.transmits()).get(&pipe).copied().unwrap_or_default();
    }
    assert!((20_000..100_000).contains(&pasted), "{pasted} of two megabytes");
}
