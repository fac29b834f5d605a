//! The two halves in lock-step: what leaves one waits here until it is delivered to the other.
//!
//! The program and the order of arrival are the caller's. Checked on the way: neither half accuses the other, and every
//! unit that is applied shows what the app half's content was when it made the unit.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use wayferry_gpu::fake::Reader;
use wayferry_gpu::{Fourcc, Modifier, Offer};
use wayferry_pixels::{Compression, Content, Decoder};
use wayferry_proto::{ConnectionId, SurfaceId, Time, UpdateHeader, UpdateSeq};
use wayferry_wayland::message::{Request, ToApp, ToDisplay, Unit, UnitContent, WireArg, WireId};
use wayferry_wayland::wire::{InBuffer, OutBuffer};
use wayferry_wayland::{Action, End, Update, app, blob, display, tables};

use crate::compositor::{self, Compositor, KEYMAP, picture};

/// More messages under way than the halves may ever have of an honest caller.
const MAX_QUEUED: usize = 1 << 16;

/// Memory of content that is opened and painted in a turn.
const SLICE: usize = 1 << 18;

pub(crate) struct Rig {
    pub(crate) app: app::Connection,
    pub(crate) display: display::Connection,
    pub(crate) compositor: Compositor,
    /// What the program has been sent and has not read.
    pub(crate) events: InBuffer,
    pub(crate) now: Time,
    unread: VecDeque<u8>,
    to_display: VecDeque<Vec<u8>>,
    to_app: VecDeque<Vec<u8>>,
    updates: Updates,
    blobs: VecDeque<(bool, u128, Vec<u8>)>,
    sent_blobs: BTreeSet<(bool, u128)>,
    decoder: Decoder,
    contents: HashMap<SurfaceId, Content>,
    /// What they were before the last update.
    before: HashMap<SurfaceId, Content>,
    /// What each unit that left is to show, and whether it has been applied.
    pub(crate) units: BTreeMap<(WireId, u64), (Option<u128>, bool)>,
    /// Which unit names an update.
    named: BTreeMap<(WireId, UpdateSeq), u64>,
    /// Units whose update was taken back: never committed by themselves.
    pub(crate) folded: BTreeSet<(WireId, u64)>,
    /// Units that need not be committed by themselves, for an outage took their updates; surfaces and the first of
    /// those.
    given_up: BTreeSet<(WireId, u64)>,
    outages: BTreeSet<(WireId, UpdateSeq)>,
    /// See [`Self::break_off`].
    lost: Option<(u64, bool)>,
    /// Units that updates have told, none of which need be committed where a later one is.
    told: BTreeSet<(WireId, u64)>,
    /// Updates cover those before them, where they can.
    cover: bool,
    /// Updates that cover some.
    pub(crate) covering: usize,
    /// Updates that were spoiled on their way, and those that begin anew.
    spoiled: BTreeSet<(WireId, UpdateSeq)>,
    fresh: BTreeSet<(WireId, UpdateSeq)>,
    /// Surfaces in the order of their creation.
    surfaces: Vec<WireId>,
    destroyed: BTreeSet<WireId>,
    interfaces: HashMap<WireId, &'static str>,
    hung_up: Option<()>,
    /// Keys that the app half was told of, and the last that it said to be late.
    keys: u64,
    late: u64,
    /// Reads GPU buffers, all of which are memory files.
    reader: Reader,
}

type Updates = VecDeque<(UpdateHeader, Vec<Bytes>)>;

fn bytes(chunks: &[Bytes]) -> u64 {
    chunks.iter().map(|chunk| chunk.len() as u64).sum()
}

/// What has been handed over.
struct Queue<'a> {
    updates: &'a mut Updates,
    outages: &'a mut BTreeSet<(WireId, UpdateSeq)>,
    /// It can still be had back.
    taking: bool,
    /// See [`Rig::break_off`].
    lost: Option<(u64, bool)>,
}

impl app::Handed for Queue<'_> {
    fn take_back(&mut self, surface: SurfaceId, update: UpdateSeq) -> Option<u64> {
        let is_it = |(header, _): &(UpdateHeader, _)| (header.surface, header.seq) == (surface, update);
        let place = self.updates.iter().position(is_it).filter(|_| self.taking)?;
        let (_, chunks) = self.updates.remove(place)?;
        Some(bytes(&chunks))
    }

    fn give_up(&mut self, surface: SurfaceId) -> Option<(UpdateSeq, u64)> {
        let (more, comes) = self.lost.expect("there was an outage");
        let lost = self.updates.iter().filter(|(header, _)| header.surface == surface);
        let length = lost.clone().map(|(_, chunks)| bytes(chunks)).sum();
        let first = lost.map(|(header, _)| header.seq.0).min()?;
        let first = UpdateSeq(first.saturating_sub(more).max(1));
        self.updates.retain(|(header, _)| comes || header.surface != surface);
        self.outages.insert((WireId(surface.0), first));
        Some((first, length))
    }
}

fn gpu() -> Offer {
    let pairs = [(Fourcc::new(*b"XR24"), Modifier::LINEAR), (Fourcc::new(*b"AR24"), Modifier::INVALID)];
    Offer::that_takes(|_| true, Some(1), pairs).expect("memory")
}

impl Rig {
    pub(crate) fn new() -> Self {
        Self::covering(true)
    }

    /// Updates may cover those before them, or not.
    pub(crate) fn covering(cover: bool) -> Self {
        let desk = app::Desk { snapshot: compositor::snapshot(), cover, echo: true, ..Default::default() };
        let config = display::Config { cursor_theme: "no such theme".to_owned(), ..Default::default() };
        let mut rig = Self {
            app: app::Connection::new(
                app::Config { gpu: Some(Rc::new(gpu())), lossy: Some(75), ..Default::default() },
                &Rc::new(desk),
            ),
            display: display::Connection::new(config),
            compositor: Compositor::new(),
            events: InBuffer::new(),
            now: Time::from_millis(1000),
            unread: VecDeque::new(),
            to_display: VecDeque::new(),
            to_app: VecDeque::new(),
            updates: VecDeque::new(),
            blobs: VecDeque::new(),
            sent_blobs: BTreeSet::new(),
            decoder: Decoder::new(),
            contents: HashMap::new(),
            before: HashMap::new(),
            units: BTreeMap::new(),
            named: BTreeMap::new(),
            folded: BTreeSet::new(),
            given_up: BTreeSet::new(),
            outages: BTreeSet::new(),
            lost: None,
            told: BTreeSet::new(),
            cover,
            covering: 0,
            spoiled: BTreeSet::new(),
            fresh: BTreeSet::new(),
            surfaces: Vec::new(),
            destroyed: BTreeSet::new(),
            interfaces: HashMap::new(),
            hung_up: None,
            keys: 0,
            late: 0,
            reader: Reader::default(),
        };
        rig.blobs.push_back((false, blob::hash(KEYMAP), KEYMAP.to_vec()));
        rig
    }

    /// The display is gone, with everything that was on its way.
    pub(crate) fn detach(&mut self) {
        self.app.detach(self.now);
        assert!(self.app.poll_action().is_none(), "there is no display to act for");
        let config = display::Config { cursor_theme: "no such theme".to_owned(), ..Default::default() };
        (self.display, self.compositor) = (display::Connection::new(config), Compositor::new());
        self.to_display.clear();
        self.to_app.clear();
        self.updates.clear();
        self.blobs.clear();
        self.sent_blobs.clear();
        self.contents.clear();
        self.before.clear();
        self.units.clear();
        self.named.clear();
        self.folded.clear();
        self.given_up.clear();
        self.outages.clear();
        self.told.clear();
        self.spoiled.clear();
        self.fresh.clear();
        self.surfaces.clear();
        self.destroyed.clear();
        self.interfaces.clear();
        (self.keys, self.late) = (0, 0);
        self.feed();
    }

    /// Another display is there.
    pub(crate) fn attach(&mut self) {
        let desk = app::Desk {
            snapshot: compositor::snapshot(),
            cover: self.cover,
            echo: true,
            ..Default::default()
        };
        self.app.attach(self.now, &Rc::new(desk), Compression::default());
        self.blobs.push_back((false, blob::hash(KEYMAP), KEYMAP.to_vec()));
        self.feed();
    }

    /// The program sends; what the app half is not ready for waits as in a socket.
    pub(crate) fn program(&mut self, bytes: &[u8], fds: Vec<OwnedFd>) {
        if self.app.end().is_none() {
            self.unread.extend(bytes);
            self.app.input().fds_mut().extend(fds);
            self.feed();
        }
    }

    fn feed(&mut self) {
        loop {
            let before = self.app.input().len();
            if self.app.end().is_some() || self.app.stalled() {
                break;
            }
            let room = if self.app.input().has_room() { 1 << 12 } else { 0 };
            let part: Vec<u8> = self.unread.drain(..self.unread.len().min(room)).collect();
            if self.app.input().push(&part, []).is_err() {
                // What the run loop does with a socket that misbehaves.
                self.app.on_hang_up();
            }
            self.app.process(self.now);
            if part.is_empty() && self.app.input().len() == before {
                break;
            }
        }
        self.collect_app();
    }

    /// The program sends what is queued there.
    pub(crate) fn program_sends(&mut self, out: &mut OutBuffer) {
        let (bytes, fds) = out.take();
        self.program(&bytes, fds);
    }

    /// Delivers up to `count` messages to the display half.
    pub(crate) fn deliver_down(&mut self, count: usize) {
        for _ in 0..count {
            let Some(message) = self.to_display.pop_front() else { break };
            self.display.on_message(self.now, &message);
            self.collect_display();
        }
    }

    /// Delivers up to `count` messages to the app half.
    pub(crate) fn deliver_up(&mut self, count: usize) {
        for _ in 0..count {
            let Some(message) = self.to_app.pop_front() else { break };
            self.keys += u64::from(self.is_press(&message));
            self.app.on_message(self.now, &message);
            self.feed();
        }
    }

    fn is_press(&self, message: &[u8]) -> bool {
        let Ok(ToApp::Event(Request { object, args, .. })) = ToApp::decode(message) else { return false };
        let is_down = matches!(args[..], [_, _, WireArg::Uint(_), WireArg::Uint(1..)]);
        is_down && self.interfaces.get(&object) == Some(&"wl_keyboard")
    }

    /// Delivers one of the updates under way.
    pub(crate) fn update(&mut self, which: usize) {
        if self.updates.is_empty() {
            return;
        }
        let which = which % self.updates.len();
        if let Some((header, chunks)) = self.updates.remove(which) {
            self.display.on_update(self.now, &header, chunks);
            self.collect_display();
        }
    }

    /// Spoils one of the updates under way: nothing in it can be read.
    pub(crate) fn spoil(&mut self, which: usize) {
        let count = self.updates.len();
        if let Some((header, chunks)) = self.updates.get_mut(which.checked_rem(count).unwrap_or_default()) {
            *chunks = vec![Bytes::from_static(&[9; 9])];
            self.spoiled.insert((WireId(header.surface.0), header.seq));
        }
    }

    /// Delivers one of the blobs under way.
    pub(crate) fn blob(&mut self, which: usize) {
        if self.blobs.is_empty() {
            return;
        }
        let which = which % self.blobs.len();
        match self.blobs.remove(which) {
            Some((true, hash, bytes)) => {
                self.display.on_blob(self.now, hash, &Rc::from(bytes));
                self.collect_display();
            }
            Some((false, hash, bytes)) => {
                self.app.on_blob(self.now, hash, &Rc::from(bytes));
                self.collect_app();
            }
            None => {}
        }
    }

    /// How many messages are under way to the display half and to the app half.
    pub(crate) fn messages_under_way(&self) -> (usize, usize) {
        (self.to_display.len(), self.to_app.len())
    }

    /// The updates under way.
    pub(crate) fn updates_under_way(&self) -> impl Iterator<Item = (SurfaceId, UpdateSeq)> {
        self.updates.iter().map(|(header, _)| (header.surface, header.seq))
    }

    /// How many blobs are under way.
    pub(crate) fn blobs_under_way(&self) -> usize {
        self.blobs.len()
    }

    /// Lets time pass.
    pub(crate) fn pass(&mut self, time: Duration) {
        self.now += time;
        self.read();
        if self.app.next_timeout().is_some_and(|due| due <= self.now) {
            self.app.on_timeout(self.now);
            self.collect_app();
        }
        if self.display.next_timeout().is_some_and(|due| due <= self.now) {
            self.work(SLICE);
            self.display.on_timeout(self.now);
            self.collect_display();
        }
    }

    /// GPU buffers are read as asked.
    fn read(&mut self) {
        while let Some(ask) = self.app.poll_ask() {
            self.reader.ask(ask);
        }
        while let Some(answer) = self.reader.answer() {
            self.app.on_answer(self.now, answer);
            self.collect_app();
        }
    }

    /// The display half opens and paints some of the content that is there.
    pub(crate) fn work(&mut self, room: usize) {
        self.display
            .work(self.now, &mut display::Room { paint: room, open: room, ..display::Room::default() });
        self.collect_display();
    }

    /// Lets content go while the budget lasts. Whether updates that have not arrived can still be taken back.
    pub(crate) fn flush(&mut self, budget: u64, taking: bool) {
        let rtt = Duration::from_millis(100);
        // Something is heard all the time once the link was gone, so that commits keep no distance.
        let heard = self.lost.map(|_| self.now);
        let mut credit = app::Credit { content: budget, rtt, heard, loses: true, ..app::Credit::default() };
        let Self { app, updates, outages, lost, .. } = self;
        app.flush(
            self.now,
            app::Turn::Rest,
            &mut credit,
            &mut Queue { updates, outages, taking, lost: *lost },
        );
        self.feed();
    }

    /// Nothing is heard for a while, and then the display half again: what is under way, and `more` before that which
    /// the app half does not know to have arrived, may be given up. It may come nevertheless.
    pub(crate) fn break_off(&mut self, more: u64, comes: bool) {
        // The link's rate is known: what is lossy would take a bit for a pixel.
        let mut credit = app::Credit { rate: Some(1 << 20), ..Default::default() };
        for heard in [Some(self.now), Some(self.now + Duration::from_secs(2)), None] {
            credit.heard = heard;
            self.app.flush(self.now, app::Turn::First, &mut credit, &mut ());
            self.feed();
        }
        self.lost = Some((more, comes));
    }

    /// Lets the commit that is being encoded leave.
    pub(crate) fn make(&mut self) {
        while self.app.is_making() && self.app.end().is_none() {
            self.flush(u64::MAX, false);
        }
    }

    /// The compositor reads and answers.
    pub(crate) fn compositor(&mut self) {
        if self.display.end().is_some() {
            return;
        }
        let (bytes, fds) = self.compositor.output.take();
        self.display.input().fds_mut().extend(fds);
        for part in bytes.chunks(1 << 12) {
            if self.display.end().is_some() {
                break;
            }
            self.display.input().push(part, []).expect("events fit");
            self.display.process(self.now);
        }
        self.collect_display();
    }

    /// Delivers everything, in order, until nothing happens any more.
    pub(crate) fn settle(&mut self) {
        for _ in 0..200 {
            let quiet = self.to_display.is_empty()
                && self.to_app.is_empty()
                && self.updates.is_empty()
                && self.blobs.is_empty()
                && self.compositor.output.is_empty();
            if quiet {
                return;
            }
            self.deliver_down(usize::MAX);
            while !self.updates.is_empty() && self.display.end().is_none() {
                self.update(0);
            }
            self.work(usize::MAX);
            self.updates.retain(|_| self.display.end().is_none());
            while !self.blobs.is_empty() {
                self.blob(0);
            }
            self.compositor();
            self.deliver_up(usize::MAX);
            if self.display.end().is_some() {
                self.compositor.output.take();
            }
        }
        panic!("the halves never come to rest");
    }

    /// Everything arrives, the compositor shows and gives back everything, time passes: what is still not applied then
    /// is stuck.
    pub(crate) fn finish(&mut self) {
        // About five commits are shown until the compositor gives buffers back; with an outage more are on the way.
        for _ in 0..if self.lost.is_some() { 40 } else { 12 } {
            self.settle();
            self.compositor.release(usize::MAX);
            self.compositor.tick();
            self.compositor();
            self.settle();
            self.pass(Duration::from_millis(100));
            self.flush(u64::MAX, false);
            self.make();
        }
        self.settle();
        if self.app.end().is_some() || self.display.end().is_some() {
            return;
        }
        for ((surface, unit), (_, applied)) in &self.units {
            assert!(
                *applied
                    || self.destroyed.contains(surface)
                    || self.folded.contains(&(*surface, *unit))
                    || self.given_up.contains(&(*surface, *unit))
                    || self.is_made_up_for(*surface, *unit),
                "unit {unit} of surface {} is stuck",
                surface.0
            );
        }
    }

    /// Whether an update has told the unit, and a later one was applied.
    fn is_made_up_for(&self, surface: WireId, unit: u64) -> bool {
        let mut later = self.units.range((surface, unit + 1)..=(surface, u64::MAX));
        self.told.contains(&(surface, unit)) && later.any(|(_, (_, applied))| *applied)
    }

    fn collect_app(&mut self) {
        while let Some(action) = self.app.poll_action() {
            match action {
                Action::Message(bytes) => {
                    let message = ToDisplay::decode(&bytes).expect("what a half sends can be read");
                    self.look(&message);
                    self.to_display.push_back(bytes);
                }
                Action::Update(update) => self.take_update(update),
                Action::Blob { hash, bytes } => {
                    if self.sent_blobs.insert((true, hash)) {
                        self.blobs.push_back((true, hash, bytes));
                    }
                }
                Action::PipeOut { .. }
                | Action::PipeIn { .. }
                | Action::Collect { .. }
                | Action::Drag { .. } => {}
            }
        }
        let (bytes, fds) = self.app.output().take();
        drop(fds);
        // The reader takes everything; the descriptors are of no interest.
        if self.events.push(&bytes, []).is_err() {
            self.events = InBuffer::new();
        }
        assert!(self.to_display.len() < MAX_QUEUED);
        match self.app.end() {
            Some(End::PeerViolation(what)) => panic!("the app half accuses the display half: {what}"),
            Some(_) => self.display.on_hang_up(),
            None => {}
        }
    }

    fn take_update(&mut self, update: Update) {
        let header = update.header(ConnectionId(1));
        let Update { surface, seq, size, format, fresh, covers, unit, chunks, .. } = update;
        self.covering += usize::from(covers > 0);
        if let Some(content) = self.contents.get(&surface) {
            self.before.insert(surface, content.clone());
        }
        if fresh {
            self.fresh.insert((WireId(surface.0), seq));
            self.contents.insert(surface, Content::new(size, format));
        }
        let content = self.contents.get_mut(&surface).expect("the first update is fresh");
        self.decoder.apply(content, &chunks).expect("what a half encodes can be applied");
        if let Some(unit) = unit {
            let (surface, number, content) = (WireId(surface.0), unit.number, UnitContent::Update(seq));
            let (state, children) = (Vec::new(), Vec::new());
            let (offset, feedback, answered) = ((0, 0), false, unit.answered);
            self.expect(&Unit { surface, number, state, content, offset, feedback, answered, children });
            self.told.insert((surface, number));
        }
        self.updates.push_back((header, chunks.into_iter().map(Bytes::from).collect()));
    }

    /// Notes what a message for the display half will do.
    fn look(&mut self, message: &ToDisplay) {
        match message {
            ToDisplay::Bind { interface, id, .. } => {
                let name = tables::interface(interface).expect("a global").name;
                self.interfaces.insert(*id, name);
            }
            ToDisplay::Request(request) => {
                let Some(name) = self.interfaces.get(&request.object).copied() else { return };
                let desc = &tables::interface(name).expect("known").requests[usize::from(request.opcode)];
                for arg in &request.args {
                    if let (WireArg::NewId(id), Some(child)) = (arg, desc.child_interface) {
                        self.interfaces.insert(*id, child.name);
                        if child.name == "wl_surface" {
                            self.surfaces.push(*id);
                        }
                    }
                }
                if (name, desc.name) == ("wl_surface", "destroy") {
                    self.destroyed.insert(request.object);
                    self.contents.remove(&SurfaceId(request.object.0));
                }
            }
            ToDisplay::Unit(unit) => self.expect(unit),
            ToDisplay::Superseded { surface, update, by } => {
                assert!(by > update);
                if self.outages.contains(&(*surface, *update)) {
                    let named = self.named.range((*surface, *update)..(*surface, *by));
                    self.given_up.extend(named.map(|(_, unit)| (*surface, *unit)));
                    return;
                }
                let unit = self.named.remove(&(*surface, *update)).expect("an update that a unit named");
                assert!(self.folded.insert((*surface, unit)), "superseded twice");
                // What comes next builds on what was there before.
                if let Some(before) = self.before.remove(&SurfaceId(surface.0)) {
                    self.contents.insert(SurfaceId(surface.0), before);
                }
            }
            ToDisplay::Late { key } => {
                assert!(*key > self.late && *key <= self.keys, "{key} after {} of {}", self.late, self.keys);
                self.late = *key;
            }
            _ => {}
        }
    }

    fn expect(&mut self, unit: &Unit) {
        assert!(unit.answered <= Some(self.keys), "{:?} of {}", unit.answered, self.keys);
        if self.told.contains(&(unit.surface, unit.number)) {
            assert!(unit.children.is_empty() && unit.state.is_empty(), "it was told");
            return;
        }
        unit.children.iter().for_each(|child| self.expect(child));
        let surface = SurfaceId(unit.surface.0);
        if unit.content == UnitContent::None {
            self.contents.remove(&surface);
        }
        if let UnitContent::Update(seq) = unit.content {
            self.named.insert((unit.surface, seq), unit.number);
        }
        let content = self.contents.get(&surface);
        let shown = content.map(|content| {
            let size = (content.size().width() as i32, content.size().height() as i32);
            picture(size, content.pixels())
        });
        self.units.insert((unit.surface, unit.number), (shown, false));
    }

    fn collect_display(&mut self) {
        let (bytes, fds) = self.display.output().take();
        if self.display.end().is_none() || !bytes.is_empty() {
            self.compositor.input.fds_mut().extend(fds);
            for part in bytes.chunks(1 << 12) {
                self.compositor.input.push(part, []).expect("requests fit");
                self.compositor.process();
            }
        }
        while let Some(action) = self.display.poll_action() {
            match action {
                Action::Message(bytes) => {
                    if let ToApp::Applied { surface, unit } = ToApp::decode(&bytes).expect("sound") {
                        self.check_applied(surface, unit);
                    }
                    self.to_app.push_back(bytes);
                }
                Action::Blob { hash, bytes } => {
                    if self.sent_blobs.insert((false, hash)) {
                        self.blobs.push_back((false, hash, bytes));
                    }
                }
                Action::PipeOut { .. }
                | Action::PipeIn { .. }
                | Action::Collect { .. }
                | Action::Drag { .. } => {}
                Action::Update(_) => panic!("the display half sends no pixels"),
            }
        }
        assert!(self.to_app.len() < MAX_QUEUED);
        match self.display.end() {
            Some(End::PeerViolation(what)) => panic!("the display half accuses the app half: {what}"),
            // The run loop closes the channel once everything in it has been said.
            Some(_) if self.hung_up.replace(()).is_none() => {
                self.deliver_up(usize::MAX);
                self.app.on_hang_up();
            }
            _ => {}
        }
    }

    /// The compositor shows what the unit was made from.
    fn check_applied(&mut self, surface: WireId, unit: u64) {
        let (_, applied) = self.units.get_mut(&(surface, unit)).expect("only units that left");
        assert!(!std::mem::replace(applied, true), "applied twice");
        assert!(!self.folded.contains(&(surface, unit)), "committed without its content");
        let index = self.surfaces.iter().position(|wire| *wire == surface).expect("a surface");
        // One `Applied` per commit, so the place of this one in the log follows from those before.
        let place =
            self.units.range((surface, 0)..=(surface, unit)).filter(|(_, (_, applied))| *applied).count();
        let shown = self.compositor.logs[index][place - 1];
        let (expected, _) = self.units[&(surface, unit)];
        let torn = shown != expected && !self.builds_on_what_was_spoiled(surface, unit);
        assert!(!torn, "unit {unit} of surface {} is torn", surface.0);
    }

    /// Whether an update of a surface was ever spoiled; the surface by its place in the order of creation.
    pub(crate) fn was_spoiled(&self, surface: usize) -> bool {
        self.spoiled.iter().any(|(spoiled, _)| *spoiled == self.surfaces[surface])
    }

    /// Whether the unit comes after one whose update was spoiled, and before one with a whole content.
    fn builds_on_what_was_spoiled(&self, surface: WireId, unit: u64) -> bool {
        // A unit names the last of its updates.
        let made = |update: &(WireId, UpdateSeq)| {
            let names = self.named.range(*update..=(surface, UpdateSeq(u64::MAX)));
            names.map(|(_, unit)| *unit).next()
        };
        let of_surface = |set: &BTreeSet<_>, after| -> Vec<u64> {
            set.range((surface, after)..=(surface, UpdateSeq(u64::MAX))).filter_map(made).collect()
        };
        self.spoiled.iter().filter(|(spoiled, _)| *spoiled == surface).any(|update| {
            let renewed = of_surface(&self.fresh, UpdateSeq(update.1.0 + 1)).into_iter().min();
            made(update).is_some_and(|from| from <= unit) && renewed.is_none_or(|until| unit < until)
        })
    }
}
