//! Random talk over a carrier that is cut at random points, against a model of what has to come of it.
//!
//! A cut loses what was on its way from some moment on, another one for each direction, and tells each side or not.
//! What a caller gives up or stops may be cut short; all else has to come whole, in order, once.

use proptest::prelude::*;

use super::*;

/// What became of a channel at its opener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Open,
    Finished,
    /// Reset by its opener with this code.
    Reset(u32),
    /// Stopped by its reader: nothing has to come, and no end is told.
    Stopped,
}

/// A long-lived channel.
#[derive(Debug)]
struct Sent {
    id: ChannelId,
    fate: Fate,
    messages: Vec<Bytes>,
    bytes: Vec<u8>,
}

/// What one side said.
#[derive(Debug, Default)]
struct Said {
    channels: BTreeMap<Header, Sent>,
    updates: BTreeMap<UpdateHeader, Vec<Bytes>>,
    /// Updates that were given up: they may come.
    given_up: BTreeMap<UpdateHeader, Vec<Bytes>>,
    blobs: BTreeMap<u128, Bytes>,
    controls: Vec<Control>,
    seq: u64,
}

struct Model {
    pair: Pair,
    said: [Said; 2],
    dice: Dice,
    counter: u32,
}

impl Model {
    fn session(&mut self, at: usize) -> &mut Session {
        if at == APP { self.pair.app() } else { self.pair.display() }
    }

    fn step(&mut self) {
        let at = self.dice.below(2);
        match self.dice.below(21) {
            0..=1 => self.open(at),
            2..=7 => self.say(at),
            8 => self.end(at),
            9 => self.stop(at),
            10..=11 if at == APP => self.update(),
            12 => self.take_back(),
            13 => self.blob(at),
            14 => self.control(at),
            15 => self.give_up(),
            _ => {
                let time = self.dice.below(60) as u64;
                self.pair.run(Duration::from_millis(time));
            }
        }
    }

    fn open(&mut self, at: usize) {
        self.counter += 1;
        let n = self.counter;
        let header = match self.dice.below(2) {
            0 => pipe(n.into()),
            _ if at == APP => wayland(n),
            _ => events(n),
        };
        let id = self.session(at).open(header);
        let sent = Sent { id, fate: Fate::Open, messages: vec![], bytes: vec![] };
        self.said[at].channels.insert(header, sent);
    }

    fn pick(&mut self, at: usize) -> Option<Header> {
        let open = self.said[at].channels.iter().filter(|(_, sent)| sent.fate == Fate::Open);
        let open: Vec<Header> = open.map(|(header, _)| *header).collect();
        (!open.is_empty()).then(|| open[self.dice.below(open.len())])
    }

    fn say(&mut self, at: usize) {
        let Some(header) = self.pick(at) else { return };
        let length = [0, 9, 900, 20_000, 65_536][self.dice.below(5)];
        let bytes = Bytes::from(self.dice.bytes(length));
        let Some(sent) = self.said[at].channels.get_mut(&header) else { return };
        let id = sent.id;
        if header.kind() == Kind::Pipe {
            sent.bytes.extend_from_slice(&bytes);
            self.session(at).write(id, bytes);
        } else {
            sent.messages.push(bytes.clone());
            self.session(at).send(id, &bytes).unwrap();
        }
    }

    fn end(&mut self, at: usize) {
        let Some(header) = self.pick(at) else { return };
        let code = self.dice.below(9) as u32;
        let finish = self.dice.below(2) == 0;
        let sent = self.said[at].channels.get_mut(&header).expect("it was picked");
        sent.fate = if finish { Fate::Finished } else { Fate::Reset(code) };
        let id = sent.id;
        match finish {
            true => self.session(at).finish(id),
            false => self.session(at).reset(id, code),
        }
    }

    /// The reader does not want a channel that it knows.
    fn stop(&mut self, at: usize) {
        let over = |header: &Header, events: &[Event]| {
            events.iter().any(|event| {
                matches!(event, Event::Finished { header: other, .. } | Event::Reset { header: other, .. }
                    if other == header)
            })
        };
        let events = &self.pair.ends[at].events;
        let known: Vec<_> = events
            .iter()
            .filter_map(|event| match event {
                Event::Opened { channel, header } if !over(header, events) => Some((*channel, *header)),
                _ => None,
            })
            .collect();
        if known.is_empty() {
            return;
        }
        let (channel, header) = known[self.dice.below(known.len())];
        self.session(at).stop(channel, 3);
        self.said[1 - at].channels.get_mut(&header).expect("it was opened").fate = Fate::Stopped;
    }

    fn update(&mut self) {
        let count = self.dice.below(4);
        let chunks: Vec<Vec<u8>> = (0..count)
            .map(|_| {
                let length = 1 + [10, 3000, 40_000][self.dice.below(3)];
                self.dice.bytes(length)
            })
            .collect();
        self.said[APP].seq += 1;
        let header = update(1, self.said[APP].seq);
        self.session(APP).send_update(header, chunks.clone()).unwrap();
        self.said[APP].updates.insert(header, chunks.into_iter().map(Bytes::from).collect());
    }

    fn take_back(&mut self) {
        let Some((header, _)) = self.said[APP].updates.last_key_value() else { return };
        let header = *header;
        let taken = self.session(APP).take_back(header.connection, header.surface, header.seq);
        if taken.is_some() {
            self.said[APP].updates.remove(&header);
        }
    }

    fn give_up(&mut self) {
        let Some((header, _)) = self.said[APP].updates.last_key_value() else { return };
        let header = *header;
        if let Some((first, _)) = self.session(APP).give_up(header.connection, header.surface) {
            let said = &mut self.said[APP];
            said.given_up.extend(said.updates.extract_if(.., |header, _| header.seq >= first));
        }
    }

    fn blob(&mut self, at: usize) {
        let length = [0, 50, 70_000][self.dice.below(3)];
        let bytes = Bytes::from(self.dice.bytes(length));
        self.counter += 1;
        let hash = self.counter.into();
        self.session(at).send_blob(hash, bytes.clone()).unwrap();
        self.said[at].blobs.insert(hash, bytes);
    }

    fn control(&mut self, at: usize) {
        self.counter += 1;
        let message = match at {
            APP => Control::AppClosed { connection: ConnectionId(self.counter), error: None },
            _ => Control::Snapshot(self.dice.bytes(200).into()),
        };
        self.session(at).control(&message).unwrap();
        self.said[at].controls.push(message);
    }

    /// The carrier ends: what was to arrive until some moment still does, and each side hears of it or not.
    fn cut(&mut self) {
        self.pair.settle();
        let now = self.pair.now;
        let mut until = [0, 0].map(|_| now + Duration::from_millis(self.dice.below(250) as u64));
        self.pair.dead = true;
        for ((at, _), (to, arrival)) in std::mem::take(&mut self.pair.flying) {
            if at <= until[to] {
                self.pair.arrive(to, arrival);
                self.pair.settle();
            } else if self.dice.below(4) > 0 {
                // Streams of their own may be luckier.
                until[to] = Time::ZERO;
            }
        }
        for at in [APP, DISPLAY] {
            if self.dice.below(2) == 0 {
                let reason = CloseReason::LinkLost("cable".into());
                self.pair.ends[at].session.receive(now, Arrival::Closed { reason });
            }
        }
    }

    fn reconnect(&mut self) {
        // Perhaps not for the first time.
        while self.dice.below(3) == 0 {
            self.pair.reconnect();
            let time = self.dice.below(250) as u64;
            self.pair.run(Duration::from_millis(time));
            self.cut();
        }
        self.pair.reconnect();
        if self.dice.below(2) == 0 {
            self.pair.run(Duration::from_millis(400));
        }
    }

    fn check(&self) {
        for at in [APP, DISPLAY] {
            let (said, end) = (&self.said[at], &self.pair.ends[1 - at]);
            let (messages, pipes) = (end.messages(), end.pipes());
            for (header, sent) in &said.channels {
                let got = messages.get(header).map(Vec::as_slice).unwrap_or_default();
                let bytes = pipes.get(header).map(Vec::as_slice).unwrap_or_default();
                assert!(sent.messages.starts_with(got), "{header:?}: {} other messages", got.len());
                assert!(sent.bytes.starts_with(bytes), "{header:?}: other bytes");
                if matches!(sent.fate, Fate::Open | Fate::Finished) {
                    assert_eq!(
                        (got.len(), bytes.len()),
                        (sent.messages.len(), sent.bytes.len()),
                        "{header:?}"
                    );
                }
                check_ends(*header, sent.fate, &end.events);
            }
            let mut updates = end.updates();
            updates.retain(|header, chunks| said.given_up.get(header) != Some(chunks));
            assert!(updates == said.updates, "{:?}", updates.keys());
            let blobs = end.events.iter().filter_map(|event| match event {
                Event::Blob { hash, bytes } => Some((*hash, bytes.clone())),
                _ => None,
            });
            let blobs: Vec<_> = blobs.collect();
            assert_eq!(blobs.len(), said.blobs.len());
            assert!(blobs.into_iter().collect::<BTreeMap<_, _>>() == said.blobs);
            let controls = end.events.iter().filter_map(|event| match event {
                Event::Control(message) => Some(message.clone()),
                _ => None,
            });
            assert_eq!(controls.collect::<Vec<_>>(), said.controls);
            assert_eq!(end.session.retained(), 0);
        }
    }
}

/// A channel is told to be open once, and its end once, as it was.
fn check_ends(header: Header, fate: Fate, events: &[Event]) {
    let mut seen = (0, vec![]);
    for event in events {
        match event {
            Event::Opened { header: other, .. } if *other == header => seen.0 += 1,
            Event::Finished { header: other, .. } if *other == header => seen.1.push(None),
            Event::Reset { header: other, code, .. } if *other == header => seen.1.push(Some(*code)),
            _ => {}
        }
    }
    let (opened, ends) = seen;
    match fate {
        Fate::Open => assert_eq!((opened, ends), (1, vec![]), "{header:?}"),
        Fate::Finished => assert_eq!((opened, ends), (1, vec![None]), "{header:?}"),
        // The peer may never have heard of it.
        Fate::Reset(code) => {
            assert!(
                (opened, &ends) == (1, &vec![Some(code)]) || (opened, &ends) == (0, &vec![]),
                "{header:?}"
            );
        }
        Fate::Stopped => assert_eq!((opened, ends), (1, vec![]), "{header:?}"),
    }
}

/// Sides with these kinds inside the main channel, over this link.
fn talk(plan: LinkPlan, main_only: [Kinds; 2], seed: u64) {
    let mut configs = resumable_configs();
    for (config, main_only) in configs.iter_mut().zip(main_only) {
        config.main_only = main_only;
    }
    let [app, display] = configs;
    go_on(Pair::new(app, display, plan, seed), seed);
}

/// A page, over a link that loses packets.
fn talk_with_a_page(loss: usize, seed: u64) {
    let plan = LinkPlan { loss, script: true, payload: 1000, ..LinkPlan::ROUGH };
    let [app, display] = resumable_configs().map(|config| Config {
        capabilities: config.capabilities.with(Capabilities::DATAGRAM_REPAIR),
        ..config
    });
    let mut pair = Pair::new(app, display, plan, seed);
    pair.links = datagrams::links().map(Some);
    go_on(pair, seed);
}

fn go_on(mut pair: Pair, seed: u64) {
    pair.run(Duration::from_millis(700));
    let entries = |end: &End| end.session.incoming.entries() + end.session.outgoing.entries();
    let idle = pair.ends.each_ref().map(entries);
    let mut model = Model { pair, said: Default::default(), dice: Dice(seed), counter: 0 };
    for _ in 0..5 {
        for _ in 0..model.dice.below(40) {
            model.step();
        }
        model.cut();
        for _ in 0..model.dice.below(15) {
            model.step();
        }
        model.reconnect();
    }
    model.pair.run(Duration::from_secs(30));
    model.check();
    // Ends what is open: nothing is left then but the main channel.
    for at in [APP, DISPLAY] {
        let open = model.said[at].channels.values().filter(|sent| sent.fate == Fate::Open);
        for id in open.map(|sent| sent.id).collect::<Vec<_>>() {
            model.session(at).finish(id);
        }
    }
    model.pair.run(Duration::from_secs(5));
    let left = model.pair.ends.each_ref().map(entries);
    // A stream that could not be opened leaves a word behind, until the carrier goes.
    let plan = &model.pair.plan;
    assert!(left == idle || plan.open_failures > 0, "{left:?} instead of {idle:?}");
    // A ping may have overtaken another message.
    assert!(model.pair.ends.iter().all(|end| end.session.incoming.buffered() < 200));
    assert_eq!(model.pair.display().content_budget(&LinkState::default()), 64 << 10);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn nothing_is_lost_and_nothing_comes_twice(seed: u64) {
        talk(LinkPlan::ROUGH, [Kinds::EMPTY; 2], seed);
    }

    #[test]
    fn nor_inside_the_main_channel(seed: u64, app in 0_u64..128, display in 0_u64..128) {
        talk(LinkPlan::ROUGH, [Kinds::from_bits(app), Kinds::from_bits(display)], seed);
    }

    #[test]
    fn nor_where_a_page_is_told_rows_of_repair_in_datagrams(seed: u64, loss in 0_usize..200) {
        talk_with_a_page(loss, seed);
    }

    #[test]
    fn nor_where_streams_fail_to_open(seed: u64, open_failures in 1_u64..4) {
        talk(LinkPlan { open_failures, ..LinkPlan::ROUGH }, [Kinds::EMPTY; 2], seed);
    }
}
