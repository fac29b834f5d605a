//! Views beside a program that draws for ten minutes of virtual time, whose displays answer nothing, late, or wrong.
//!
//! What is asserted is counted: bytes that are held for a view, entries and bytes that one turn handles. The carrier
//! takes everything at once, so nothing but what the displays say holds anything back.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard};

use rustix::fs::{MemfdFlags, memfd_create};
use wayferry_audio::Position;
use wayferry_net::Carrier;
use wayferry_proto::{Arrival, Candidate, LinkState, Listen, Secret, Session, Side, StreamId, Transmit};
use wayferry_sound::{Codec, Content};
use wayferry_wayland::app::{Connection, Turn};
use wayferry_wayland::message::{Request, ToApp, ToDisplay, WireArg, WireId};
use wayferry_wayland::snapshot::Global;
use wayferry_wayland::tables;
use wayferry_wayland::wire::{Arg, InBuffer, OutBuffer, Socket, decode};

use super::*;
use crate::edge::part::alone;

/// Between two pictures of the program.
const FRAME: Duration = Duration::from_millis(100);
/// Pictures in ten minutes.
const FRAMES: u64 = 6_000;
/// Bytes of one picture: it does not compress.
const PICTURE: usize = 32 * 32 * 4;

/// What a carrier was given, and what it has for the session.
#[derive(Default)]
struct Wire {
    given: VecDeque<Transmit>,
    arrivals: VecDeque<Arrival>,
    /// Bytes given and arrivals taken since somebody asked.
    bytes: usize,
    taken: usize,
}

/// One end of it.
struct End(Arc<Mutex<Wire>>, OwnedFd);

impl Carrier for End {
    fn transmit(&mut self, transmit: Transmit) {
        let mut wire = self.0.lock().expect("one thread");
        if let Transmit::Data { bytes, .. } = &transmit {
            wire.bytes += bytes.len();
        }
        wire.given.push_back(transmit);
    }

    fn poll_arrival(&mut self) -> Option<Arrival> {
        let mut wire = self.0.lock().expect("one thread");
        let arrival = wire.arrivals.pop_front();
        wire.taken += usize::from(arrival.is_some());
        arrival
    }

    fn link(&self) -> LinkState {
        let link = LinkState { window: 1 << 20, rate: Some(12 << 20), ..LinkState::default() };
        LinkState { rtt: Duration::from_millis(100), payload: Some(1200), datagram: 1200, ..link }
    }

    fn wake_fd(&self) -> BorrowedFd<'_> {
        self.1.as_fd()
    }

    fn clear_wake(&self) {}
}

/// A viewer, as its session sees it.
struct Display {
    session: Session,
    wire: Arc<Mutex<Wire>>,
    /// What has come and was not looked at.
    withheld: VecDeque<Arrival>,
    lengths: BTreeMap<StreamId, u64>,
    our_lengths: BTreeMap<StreamId, u64>,
    program: Option<ChannelId>,
    windows: usize,
}

/// What it hears of what comes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hears {
    All,
    /// The main channel: it answers pings, and says to have nothing.
    Pings,
    Nothing,
}

impl Display {
    /// One that is let in.
    fn come(views: &mut Views, now: Time, incarnation: u8) -> Self {
        let mut session = Session::new(display_config(now, incarnation));
        session.control(&Control::Snapshot(snapshot().encode().into())).expect("a snapshot");
        Self::meet(views, now, session)
    }

    /// It lost its carrier, and comes over another.
    fn come_again(mut self, views: &mut Views, now: Time, incarnation: u8) -> Self {
        self.session.suspend();
        Self::meet(views, now, Session::resuming(display_config(now, incarnation), self.session))
    }

    fn meet(views: &mut Views, now: Time, session: Session) -> Self {
        let wire = Arc::new(Mutex::new(Wire::default()));
        let (never, _) = UnixStream::pair().expect("a descriptor");
        let mut display = Self {
            session,
            wire: Arc::clone(&wire),
            withheld: VecDeque::new(),
            lengths: BTreeMap::new(),
            our_lengths: BTreeMap::new(),
            program: None,
            windows: 0,
        };
        let capabilities = Capabilities::RESUME.with(Capabilities::VIEW).with(Capabilities::SOUND);
        let capabilities = capabilities.with(Capabilities::SHARED_SOUND);
        let app =
            wayferry_proto::Config { start: now, capabilities, ..wayferry_proto::Config::new(Side::App) };
        let mut link = Link::new(Session::new(app), Box::new(End(wire, never.into())));
        while !matches!(link.poll_event(), Some(Event::Ready { .. })) {
            link.transmit(now);
            display.turn(now, Hears::All);
            link.receive(now);
        }
        views.take(now, Candidate::new(link).unwrap_or_else(|_| panic!("its hello is there")), None);
        display
    }

    fn wire(&self) -> MutexGuard<'_, Wire> {
        self.wire.lock().expect("one thread")
    }

    /// Hears what has come, and says what its session has to say.
    fn turn(&mut self, now: Time, hears: Hears) {
        let given: Vec<Transmit> = self.wire().given.drain(..).collect();
        for transmit in given {
            for arrival in arrivals(transmit, &mut self.lengths) {
                let main =
                    matches!(arrival, Arrival::Data { stream: StreamId(0), .. } | Arrival::Closed { .. });
                if hears == Hears::All || (hears == Hears::Pings && main) {
                    self.session.receive(now, arrival);
                } else {
                    self.withheld.push_back(arrival);
                }
            }
        }
        if hears == Hears::Nothing {
            return;
        }
        self.session.on_timeout(now);
        while let Some(event) = self.session.poll_event() {
            self.on_event(event);
        }
        while let Some(transmit) = self.session.poll_transmit(now) {
            let arrivals = arrivals(transmit, &mut self.our_lengths);
            self.wire().arrivals.extend(arrivals);
        }
    }

    /// Windows are configured and units applied, so that more of them come.
    fn on_event(&mut self, event: Event) {
        match event {
            // The session knows nothing of it any more: it says again what its compositor is like.
            Event::Declined => {
                let snapshot = Control::Snapshot(snapshot().encode().into());
                self.session.control(&snapshot).expect("a snapshot");
            }
            Event::Opened { header: Header::Wayland { connection }, .. } => {
                self.program = Some(self.session.open(Header::Events { connection }));
            }
            Event::Message { header: Header::Wayland { .. }, bytes, .. } => {
                let Ok(message) = ToDisplay::decode(&bytes) else { panic!("no message") };
                match message {
                    ToDisplay::Request(request) => {
                        let Some(xdg) = new_window(&request) else { return };
                        self.windows += 1;
                        let configure = Request { object: xdg, opcode: 0, args: vec![WireArg::Uint(7)] };
                        self.say(&ToApp::Event(configure));
                    }
                    ToDisplay::Unit(unit) => {
                        let (surface, unit) = (unit.surface, unit.number);
                        self.say(&ToApp::Applied { surface, unit });
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }

    fn say(&mut self, message: &ToApp) {
        let program = self.program.expect("a program");
        self.session.send(program, &message.encode()).expect("a short message");
    }

    /// Hears at last what it did not look at.
    fn wakes(&mut self, now: Time) {
        for arrival in std::mem::take(&mut self.withheld) {
            self.session.receive(now, arrival);
        }
        self.turn(now, Hears::All);
    }
}

fn display_config(now: Time, incarnation: u8) -> wayferry_proto::Config {
    wayferry_proto::Config {
        start: now,
        resume: Some(Secret::from([incarnation; 32])),
        capabilities: Capabilities::VIEW.with(Capabilities::SOUND).with(Capabilities::SHARED_SOUND),
        ..wayferry_proto::Config::new(Side::Display)
    }
}

/// What the peer gets of what a session hands over.
fn arrivals(transmit: Transmit, lengths: &mut BTreeMap<StreamId, u64>) -> Vec<Arrival> {
    match transmit {
        Transmit::Data { stream, bytes, finish } => {
            let length = lengths.entry(stream).or_default();
            let offset = *length;
            *length += bytes.len() as u64;
            let end = finish.then_some(Arrival::Finished { stream, length: *length });
            [Arrival::Data { stream, offset, bytes }].into_iter().chain(end).collect()
        }
        Transmit::Reset { stream, code } => vec![Arrival::Reset { stream, code }],
        Transmit::Stop { stream, code } => vec![Arrival::Stopped { stream, code }],
        Transmit::Close { code, reason } => {
            vec![Arrival::Closed { reason: CloseReason::from_wire(code, &reason) }]
        }
        Transmit::Datagram { bytes } => vec![Arrival::Datagram { bytes }],
        Transmit::Open { .. } | Transmit::Prioritise { .. } => Vec::new(),
    }
}

/// The `xdg_surface` that a request makes.
fn new_window(request: &Request) -> Option<WireId> {
    let opcode = tables::request_opcode(tables::interface("xdg_wm_base")?, "get_xdg_surface")?;
    match request.args[..] {
        [WireArg::NewId(xdg), WireArg::Object(_)] if request.opcode == opcode => Some(xdg),
        _ => None,
    }
}

fn snapshot() -> Snapshot {
    let names = ["wl_compositor", "wl_subcompositor", "xdg_wm_base"];
    let globals = (1..).zip(names).map(|(name, interface)| Global {
        name,
        interface: interface.to_owned(),
        version: tables::version_cap(interface).min(4),
    });
    Snapshot { globals: globals.collect(), formats: vec![0, 1], ..Snapshot::default() }
}

/// A program with one window, and the active display that shows it.
struct Program {
    socket: Socket,
    connection: ProgramConnection,
    pixels: OwnedFd,
    pictures: u64,
}

/// The program's objects.
const REGISTRY: u32 = 2;
const COMPOSITOR: u32 = 3;
const SHM: u32 = 4;
const BASE: u32 = 5;
const SURFACE: u32 = 6;
const XDG: u32 = 7;
const TOPLEVEL: u32 = 8;
const POOL: u32 = 9;
const BUFFER: u32 = 10;

impl Program {
    fn start(now: Time) -> Self {
        let (ours, theirs) = UnixStream::pair().expect("two sockets");
        let desk = Rc::new(Desk { snapshot: snapshot(), ..Desk::default() });
        let core = Connection::new(Config::default(), &desk);
        let connection = ProgramConnection {
            number: 1,
            socket: Socket::new(theirs.into()).expect("a socket"),
            core,
            channel: ChannelId(0),
            handed: 0,
            recorder: None,
            is_bridge: false,
            held: false,
        };
        let pixels = memfd_create("pixels", MemfdFlags::CLOEXEC).expect("a file");
        rustix::fs::ftruncate(&pixels, 2 * PICTURE as u64).expect("its length");
        let socket = Socket::new(ours.into()).expect("a socket");
        let mut program = Self { socket, connection, pixels, pictures: 0 };
        program.open_window(now);
        program
    }

    fn open_window(&mut self, now: Time) {
        self.ask(now, 1, ("wl_display", "get_registry"), vec![Arg::NewId(REGISTRY)]);
        let globals = self.globals();
        for (object, interface) in [(COMPOSITOR, "wl_compositor"), (SHM, "wl_shm"), (BASE, "xdg_wm_base")] {
            let interface = interface.as_bytes().to_vec();
            let args = vec![
                Arg::Uint(globals[&interface]),
                Arg::Str(Some(interface)),
                Arg::Uint(1),
                Arg::NewId(object),
            ];
            self.ask(now, REGISTRY, ("wl_registry", "bind"), args);
        }
        self.ask(now, COMPOSITOR, ("wl_compositor", "create_surface"), vec![Arg::NewId(SURFACE)]);
        let of_surface = vec![Arg::NewId(XDG), Arg::Object(SURFACE)];
        self.ask(now, BASE, ("xdg_wm_base", "get_xdg_surface"), of_surface);
        self.ask(now, XDG, ("xdg_surface", "get_toplevel"), vec![Arg::NewId(TOPLEVEL)]);
        self.ask(now, SURFACE, ("wl_surface", "commit"), vec![]);
        self.show(now);
        self.ask(now, XDG, ("xdg_surface", "ack_configure"), vec![Arg::Uint(7)]);
        let pixels = self.pixels.try_clone().expect("a descriptor");
        let pool = vec![Arg::NewId(POOL), Arg::Fd(pixels), Arg::Int(2 * PICTURE as i32)];
        self.ask(now, SHM, ("wl_shm", "create_pool"), pool);
        for half in 0..2_u32 {
            let place = [half as i32 * PICTURE as i32, 32, 32, 32 * 4].map(Arg::Int);
            let args = [Arg::NewId(BUFFER + half)].into_iter().chain(place).chain([Arg::Uint(1)]);
            self.ask(now, POOL, ("wl_shm_pool", "create_buffer"), args.collect());
        }
    }

    /// The registry's names of all globals, as the program is told them.
    fn globals(&mut self) -> BTreeMap<Vec<u8>, u32> {
        self.connection.write();
        let mut events = InBuffer::new();
        let _ = self.socket.read_into(&mut events).expect("events");
        let registry = tables::interface("wl_registry").expect("an interface");
        let mut globals = BTreeMap::new();
        while let Some(raw) = events.next_message().expect("events") {
            let desc = &registry.events[usize::from(raw.opcode)];
            let args = (raw.object == REGISTRY).then(|| decode(desc, registry, &raw, events.fds_mut()));
            if let Some([Arg::Uint(name), Arg::Str(Some(interface)), _]) =
                args.as_ref().map(|args| &args.as_ref().expect("arguments")[..])
            {
                globals.insert(interface.clone(), *name);
            }
        }
        globals
    }

    fn ask(&mut self, now: Time, object: u32, (interface, name): (&str, &str), args: Vec<Arg>) {
        let interface = tables::interface(interface).expect("an interface");
        let opcode = tables::request_opcode(interface, name).expect("a request");
        let mut out = OutBuffer::new(1 << 16);
        out.encode(object, opcode, args).expect("a request");
        assert!(self.socket.flush(&mut out).expect("a socket"));
        self.connection.read(now);
        assert_eq!(self.connection.core.end(), None);
    }

    /// Draws another picture, which the active display shows at once.
    fn draw(&mut self, now: Time) {
        self.pictures += 1;
        let mut state = self.pictures;
        let picture: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        })
        .take(PICTURE)
        .collect();
        let half = (self.pictures % 2) as u32;
        rustix::io::pwrite(&self.pixels, &picture, u64::from(half) * PICTURE as u64).expect("written");
        let buffer = vec![Arg::Object(BUFFER + half), Arg::Int(0), Arg::Int(0)];
        self.ask(now, SURFACE, ("wl_surface", "attach"), buffer);
        self.ask(now, SURFACE, ("wl_surface", "damage"), [0, 0, 32, 32].map(Arg::Int).into());
        self.ask(now, SURFACE, ("wl_surface", "commit"), vec![]);
        self.show(now);
        // Releases and the like, which no test here reads.
        self.connection.write();
        let mut events = InBuffer::new();
        let _ = self.socket.read_into(&mut events).expect("events");
    }

    /// The active display does as it is told.
    fn show(&mut self, now: Time) {
        let mut credit = Credit::ENDLESS;
        for turn in [Turn::First, Turn::Rest, Turn::Better] {
            self.connection.core.flush(now, turn, &mut credit, &mut ());
        }
        while let Some(action) = self.connection.core.poll_action() {
            let Action::Message(bytes) = action else { continue };
            let answer = match ToDisplay::decode(&bytes).expect("a message") {
                ToDisplay::Unit(unit) => ToApp::Applied { surface: unit.surface, unit: unit.number },
                ToDisplay::Request(request) => match new_window(&request) {
                    Some(object) => ToApp::Event(Request { object, opcode: 0, args: vec![WireArg::Uint(7)] }),
                    None => continue,
                },
                _ => continue,
            };
            self.connection.core.on_message(now, &answer.encode());
        }
    }
}

/// Views, the program that they look at, and the time.
struct Scenario {
    views: Views,
    program: Program,
    now: Time,
}

impl Scenario {
    fn new() -> Self {
        let now = Time::from_millis(1_000);
        let views =
            Views::new(&Config { threads: 1, ..Config::default() }, Compress::default(), Reporter::new(drop));
        Self { views, program: Program::start(now), now }
    }

    /// A turn of the run loop with a new picture.
    fn frame(&mut self) {
        self.now += FRAME;
        self.program.draw(self.now);
        self.turn();
    }

    fn turn(&mut self) {
        alone::turn(&mut self.views, self.now, &mut alone::base().0);
        self.views.show(self.now, std::iter::once(&mut self.program.connection));
    }

    /// Bytes that are held for the only view.
    fn held(&self) -> usize {
        self.views.viewers.iter().map(|viewer| viewer.link.session.retained()).sum()
    }
}

/// The display shows the window and answers, so that pictures come.
fn shown(scenario: &mut Scenario) -> Display {
    let mut display = Display::come(&mut scenario.views, scenario.now, 1);
    for _ in 0..30 {
        scenario.frame();
        display.turn(scenario.now, Hears::All);
    }
    assert_eq!((display.windows, scenario.views.count()), (1, 1));
    let (counts, _) = scenario.views.figures();
    assert!(counts.own + counts.shared > 10, "{counts:?}");
    let mut wire = display.wire();
    (wire.taken, wire.bytes) = (0, 0);
    drop(wire);
    display
}

#[test]
fn a_view_that_answers_nothing_costs_little_and_goes_after_a_minute() {
    let mut scenario = Scenario::new();
    let mut display = shown(&mut scenario);
    for frame in 0..FRAMES {
        scenario.frame();
        display.turn(scenario.now, Hears::Nothing);
        assert!(display.wire().bytes < 64 << 10, "bytes in a turn");
        display.wire().bytes = 0;
        assert!(scenario.held() <= 64 << 10, "{} bytes after {frame} pictures", scenario.held());
        assert_eq!(scenario.views.count(), usize::from(frame < 600), "after {frame} pictures");
    }
    assert_eq!(scenario.views.figures().1, 0);
}

#[test]
fn a_view_that_withholds_its_receipts_for_ten_minutes_costs_nothing_by_it() {
    let mut scenario = Scenario::new();
    let mut display = shown(&mut scenario);
    let mut taken = 0;
    for frame in 0..FRAMES {
        scenario.frame();
        display.turn(scenario.now, Hears::Pings);
        assert!(scenario.held() <= 64 << 10, "{} bytes after {frame} pictures", scenario.held());
        let mut wire = display.wire();
        taken += wire.taken;
        assert!(wire.taken <= 8 && wire.bytes < 64 << 10, "{} arrivals in a turn", wire.taken);
        (wire.taken, wire.bytes) = (0, 0);
    }
    // Nothing more is shown, so the session rests, and the display asks at last each ten seconds.
    assert!((60..80).contains(&taken), "{taken} pings");
    assert_eq!(scenario.views.count(), 1);
    // It says at last what it has, and goes on where the program is now.
    display.wakes(scenario.now);
    for _ in 0..60 {
        scenario.frame();
        display.turn(scenario.now, Hears::All);
        assert!(display.wire().taken <= 64);
        display.wire().taken = 0;
    }
    let before = scenario.views.figures().0;
    scenario.frame();
    let after = scenario.views.figures().0;
    assert_eq!((after.own + after.shared, scenario.views.count()), (before.own + before.shared + 1, 1));
    assert!(scenario.held() <= 64 << 10);
}

#[test]
fn a_view_that_answers_wrong_harms_itself_alone() {
    let wrong: [&dyn Fn(u64) -> ToApp; 4] = [
        &|number| ToApp::Applied { surface: WireId(number), unit: number },
        &|number| ToApp::Refresh { surface: WireId(number) },
        &|number| ToApp::Event(Request { object: WireId(number), opcode: 0, args: vec![WireArg::Uint(1)] }),
        &|number| ToApp::Visible { surface: WireId(number), visible: number % 2 == 0 },
    ];
    let mut scenario = Scenario::new();
    let mut display = shown(&mut scenario);
    for frame in 0..FRAMES {
        if frame % 10 == 0 {
            for number in 0..40 {
                display.say(&wrong[(frame / 10) as usize % wrong.len()](number));
            }
        }
        scenario.frame();
        display.turn(scenario.now, Hears::Pings);
        assert!(scenario.held() <= 64 << 10, "{} bytes after {frame} pictures", scenario.held());
    }
    assert_eq!(scenario.views.count(), 1, "it broke no rule");
    // What cannot be is the end of it, and of nothing else.
    display.say(&ToApp::Consumed { bytes: 1 << 60 });
    display.turn(scenario.now, Hears::Pings);
    scenario.turn();
    assert_eq!((scenario.views.count(), scenario.program.connection.core.end()), (0, None));
}

#[test]
fn who_comes_again_takes_its_own_place_and_no_other() {
    let mut scenario = Scenario::new();
    let first = Display::come(&mut scenario.views, scenario.now, 1);
    let _other = Display::come(&mut scenario.views, scenario.now, 2);
    assert_eq!(scenario.views.count(), 2);
    let mut again = first.come_again(&mut scenario.views, scenario.now, 1);
    assert_eq!(scenario.views.count(), 2);
    for _ in 0..30 {
        scenario.frame();
        again.turn(scenario.now, Hears::All);
    }
    assert_eq!(again.windows, 1, "it is told everything anew");
}

#[test]
fn regression_a_viewer_hears_copies_of_sound_only_with_the_next_frame() {
    let mut scenario = Scenario::new();
    scenario.views.share_sound(Mode::default());
    let now = scenario.now;
    let mut viewer = Display::come(&mut scenario.views, now, 1);
    let listen = Listen { track: 1, rate: 96_000, target: 80, delay: 0 };
    assert!(viewer.session.listen(listen));
    viewer.turn(now, Hears::All);
    scenario.turn();
    let content = Content::Frame { start: true, payload: vec![0; 241] };
    let captured = Captured { codec: Codec::Opus, capture: Position::default(), content };
    scenario.views.send_sound(now, &captured);
    let copies = |viewer: &Display| {
        let is_copy = |transmit: &&Transmit| matches!(transmit, Transmit::Datagram { .. });
        viewer.wire().given.iter().filter(is_copy).count()
    };
    assert_eq!(copies(&viewer), 0);
    let mut due = now;
    while due < now + Duration::from_millis(9) {
        // What the link itself repeats comes first.
        due = scenario.views.next_timeout(due).expect("a copy is due");
        let link = &mut scenario.views.viewers[0].link;
        link.session.on_timeout(due);
        link.transmit(due);
    }
    assert_eq!(due.since(now), Duration::from_millis(9));
    scenario.views.repeat_sound(due);
    assert_eq!(copies(&viewer), 1);
}
