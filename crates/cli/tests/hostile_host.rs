//! A host that keeps to no limit, made by hand: what it can make a desk hold, and what it can do with its files.

#[allow(dead_code, reason = "several test programs share it")]
mod rig;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wayferry_net::quic::{Listener, Options};
use wayferry_net::{Carrier, Identity, Peers, Ticket};
use wayferry_pixels::{Compression, Content, Draft, Encoder, Format, Size};
use wayferry_proto::{
    Capabilities, ChannelId, Config, ConnectionId, Control, Event, FILES, FileFate, FileOffer, Header,
    Secret, Session, SessionId, Side, SurfaceId, Time, Transmit, UpdateHeader, UpdateSeq,
};
use wayferry_stage::{Config as StageConfig, Frames};
use wayferry_wayland::message::{Request, ToDisplay, Unit, UnitContent, WireArg, WireId};
use wayferry_wayland::snapshot::Snapshot;
use wayferry_wayland::tables;

use rig::{OnStage, Process, Site, stage};

const COMPOSITOR: WireId = WireId(4);
const SURFACE: WireId = WireId(6);

/// An app side that says what it likes.
struct Host {
    session: Session,
    carrier: Box<dyn Carrier>,
    start: Instant,
    /// The registry's name of `wl_compositor`, and its version.
    compositor: Option<(u32, u32)>,
    /// Programs that the display would not have.
    refused: BTreeSet<ChannelId>,
    /// What became of files, as the display says.
    files: BTreeMap<u64, FileFate>,
    /// Why the display gave the session up.
    closed: Option<String>,
    programs: Vec<ChannelId>,
    /// The last byte of each update is left out, and the update never ends.
    withholds: bool,
    _listener: Listener,
}

/// A desk with a session of such a host.
struct Scene {
    host: Host,
    attach: Process,
    site: Site,
    _stage: OnStage,
}

impl Scene {
    fn new() -> Self {
        // A compositor that shows nothing.
        let config = StageConfig { frames: Frames::Manual, ..StageConfig::default() };
        let (site, stage) = (Site::new(), stage(&config));
        let identity = Identity::ephemeral().expect("an identity");
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut listener =
            Listener::bind(address, None, &identity, Peers::Secret, &Options::default()).expect("a port");
        let (secret, id) = (Secret::from([7; 32]), SessionId([9; 16]));
        let ticket = Ticket {
            addresses: vec![listener.local_addr()],
            fingerprint: identity.fingerprint(),
            secret,
            session: id,
        };
        let attach = site.attach(&stage, &[], &ticket.to_string());
        let carrier = listener.accept(PATIENCE).expect("the display").carrier;
        let capabilities = Capabilities::FILES.with(Capabilities::FILE_PLACES);
        let config =
            Config { session: id, accepted_secrets: vec![secret], capabilities, ..Config::new(Side::App) };
        let host = Host {
            session: Session::new(config),
            carrier,
            start: Instant::now(),
            compositor: None,
            refused: BTreeSet::new(),
            files: BTreeMap::new(),
            closed: None,
            programs: Vec::new(),
            withholds: false,
            _listener: listener,
        };
        let mut scene = Self { host, attach, site, _stage: stage };
        scene.until("the display", |scene| scene.host.compositor.is_some());
        scene
    }

    /// Both sides go on until it is so.
    fn until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        while !is_so(self) {
            assert!(begun.elapsed() < PATIENCE, "waited in vain for {what}: {}", self.shares());
            assert_eq!(self.host.closed, None, "the display gave the session up");
            self.host.turn();
        }
    }

    /// What the desk says that the host takes of it.
    fn shares(&self) -> serde_json::Value {
        let socket =
            self.site.path().join("wayferry").join(format!("display-{}", self.attach.pid().as_raw_nonzero()));
        let mut text = String::new();
        let mut socket = UnixStream::connect(socket).expect("it answers");
        socket.read_to_string(&mut text).expect("a document");
        let document: serde_json::Value = serde_json::from_str(&text).expect("a document");
        document["shares"].clone()
    }

    fn share(&self, name: &str) -> u64 {
        self.shares()[name].as_u64().expect("a number")
    }

    fn descriptors(&self) -> usize {
        descriptors(&format!("/proc/{}/fd", self.attach.pid().as_raw_nonzero()))
    }

    /// Bytes of memory that the display side has.
    fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.attach.pid().as_raw_nonzero()));
        let status = status.expect("of our own");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("memory");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
    }
}

impl Host {
    /// Hears and says what there is.
    fn turn(&mut self) {
        let mut fds = [PollFd::from_borrowed_fd(self.carrier.wake_fd(), PollFlags::IN)];
        let _ = poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 5_000_000 }));
        let now = Time::new(self.start.elapsed());
        self.carrier.clear_wake();
        while let Some(arrival) = self.carrier.poll_arrival() {
            self.session.receive(now, arrival);
        }
        self.session.on_timeout(now);
        while let Some(event) = self.session.poll_event() {
            match event {
                Event::Control(Control::Snapshot(bytes)) => {
                    let snapshot = Snapshot::decode(&bytes).expect("a snapshot");
                    let found = snapshot.globals.iter().find(|global| global.interface == "wl_compositor");
                    self.compositor = found.map(|global| (global.name, global.version));
                }
                Event::Stopped { channel, header: Header::Wayland { .. }, .. } => {
                    self.refused.insert(channel);
                }
                Event::Control(Control::FileDone { id, fate, place: None }) => {
                    self.files.insert(id, fate);
                }
                Event::Closed { reason, .. } => self.closed = Some(reason.to_string()),
                _ => {}
            }
        }
        self.session.set_link(now, &self.carrier.link());
        while let Some(mut transmit) = self.session.poll_transmit(now) {
            if let Transmit::Data { bytes, finish, .. } = &mut transmit
                && self.withholds
                && *finish
            {
                bytes.truncate(bytes.len().saturating_sub(1));
                *finish = false;
            }
            self.carrier.transmit(transmit);
        }
    }

    /// Shows so many more programs, each with a surface.
    fn start_programs(&mut self, count: u32) {
        for _ in 0..count {
            let connection = ConnectionId(u32::try_from(self.programs.len()).expect("some") + 1);
            let channel = self.session.open(Header::Wayland { connection });
            let (global, version) = self.compositor.expect("a compositor");
            let interface = "wl_compositor".to_owned();
            self.say(channel, &ToDisplay::Bind { global, interface, version, id: COMPOSITOR });
            let table = tables::interface("wl_compositor").expect("an interface");
            let opcode = tables::request_opcode(table, "create_surface").expect("a request");
            let args = vec![WireArg::NewId(SURFACE)];
            self.say(channel, &ToDisplay::Request(Request { object: COMPOSITOR, opcode, args }));
            self.programs.push(channel);
        }
    }

    fn say(&mut self, channel: ChannelId, message: &ToDisplay) {
        self.session.send(channel, &message.encode()).expect("a short message");
    }

    /// Another surface of that program.
    fn make_surface(&mut self, program: u32, surface: WireId) {
        let table = tables::interface("wl_compositor").expect("an interface");
        let opcode = tables::request_opcode(table, "create_surface").expect("a request");
        let args = vec![WireArg::NewId(surface)];
        let channel = self.programs[program as usize];
        self.say(channel, &ToDisplay::Request(Request { object: COMPOSITOR, opcode, args }));
    }

    /// Sends a file of one byte.
    fn send_file(&mut self, id: u64, answers: Option<u64>, name: &str) {
        let offer = FileOffer { id, answers, size: 1, name: name.to_owned() };
        self.session.control(&Control::File(offer)).expect("a short message");
        let pipe = self.session.open(Header::Pipe { connection: FILES, pipe: id });
        self.session.write(pipe, b"x"[..].into());
        self.session.finish(pipe);
    }

    /// An update of the surface of that program; no unit names it.
    fn update(&mut self, program: u32, seq: u64, content: &Content) {
        self.update_on(program, SURFACE, seq, content);
    }

    fn update_on(&mut self, program: u32, surface: WireId, seq: u64, content: &Content) {
        let (size, format) = (content.size(), content.format());
        let mut draft = Draft::new(size, format);
        draft.replace(content.clone());
        let chunks = Encoder::new(Compression::Lz4).encode(&mut draft);
        let header = UpdateHeader {
            connection: ConnectionId(program + 1),
            surface: SurfaceId(surface.0),
            seq: UpdateSeq(seq),
            size: (size.width(), size.height()),
            format: format.code(),
            fresh: true,
            covers: 0,
            unit: None,
        };
        self.session.send_update(header, chunks).expect("an update");
    }

    /// Has the update shown on the surface, which is no window.
    fn commit(&mut self, program: u32, seq: u64) {
        self.commit_on(program, SURFACE, seq);
    }

    fn commit_on(&mut self, program: u32, surface: WireId, seq: u64) {
        let unit = Unit {
            surface,
            number: 1,
            state: Vec::new(),
            content: UnitContent::Update(UpdateSeq(seq)),
            offset: (0, 0),
            feedback: false,
            answered: None,
            children: Vec::new(),
        };
        self.say(self.programs[program as usize], &ToDisplay::Unit(unit));
    }
}

fn descriptors(directory: &str) -> usize {
    std::fs::read_dir(directory).expect("of our own").count()
}

/// A picture that no compression makes smaller.
fn noise(width: u32, height: u32) -> Content {
    let mut content = Content::new(Size::new(width, height).expect("a size"), Format::Xrgb8888);
    let mut state = 1_u64;
    for y in 0..height {
        let row: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        })
        .take(width as usize * 4)
        .collect();
        content.write_row(y, 0, &row);
    }
    content
}

#[test]
fn a_hostile_host_is_shown_a_hundred_programs_and_no_more() {
    let mut scene = Scene::new();
    let (desk, compositor) = (scene.descriptors(), descriptors("/proc/self/fd"));
    scene.host.start_programs(900);
    scene.until("the others to be refused", |scene| scene.host.refused.len() == 800);
    scene.until("the first to be there", |scene| scene.share("programs") == 100);
    assert!(scene.descriptors() <= desk + 128, "{} descriptors", scene.descriptors());
    let compositor = descriptors("/proc/self/fd") - compositor;
    assert!(compositor <= 256, "{compositor} descriptors of the compositor");
    // Those that are over make room.
    let over = scene.host.programs[..10].to_vec();
    over.into_iter().for_each(|channel| scene.host.session.finish(channel));
    scene.until("ten to go", |scene| scene.share("programs") == 90);
    scene.host.start_programs(20);
    scene.until("ten to come", |scene| scene.host.refused.len() == 810);
    assert_eq!(scene.share("programs"), 100);
}

#[test]
fn a_hostile_host_makes_a_desk_hold_64_megabytes_beyond_what_is_shown() {
    let mut scene = Scene::new();
    scene.host.start_programs(100);
    scene.until("all programs", |scene| scene.share("programs") == 100);
    let before = scene.memory();
    // Updates that no unit ever names: 200 MB.
    let picture = noise(512, 512);
    for seq in 1..=2 {
        for program in 0..100 {
            scene.host.update(program, seq, &picture);
            scene.host.turn();
        }
    }
    scene.until("all of them to leave", |scene| scene.host.session.retained() == 0);
    for _ in 0..100 {
        scene.host.turn();
        let beyond = scene.share("beyond_shown_bytes");
        assert!(beyond <= 64 << 20, "{beyond} bytes");
    }
    let waiting = scene.memory() - before;
    assert!(waiting <= 64 << 20, "{waiting} bytes of memory for what waits");
    // Some hundred bytes each that become 16 MB of pixels: 320 MB that no compositor shows.
    let mut plain = Content::new(Size::new(2048, 2048).expect("a size"), Format::Xrgb8888);
    plain.fill(&[1, 2, 3, 255]);
    for program in 0..20 {
        scene.host.update(program, 3, &plain);
        scene.host.commit(program, 3);
    }
    scene.until("pixels", |scene| scene.share("content_bytes") > 100 << 20);
    scene.until("less of them", |scene| scene.share("content_bytes") <= 64 << 20);
    let beyond = scene.share("beyond_shown_bytes");
    assert!(beyond <= 64 << 20, "{beyond} bytes");
    assert_eq!(scene.share("programs"), 100, "no program was ended");
}

#[test]
fn regression_incomplete_updates_take_half_a_gigabyte() {
    let mut scene = Scene::new();
    scene.host.start_programs(1);
    scene.until("the program", |scene| scene.share("programs") == 1);
    let before = scene.memory();
    scene.host.withholds = true;
    // Each is there but for its last byte: 200 MB, as long as the link takes them.
    let picture = noise(512, 512);
    let mut most = 0;
    for turn in 1..=1000 {
        if scene.host.carrier.link().unsent < 4 << 20 && turn <= 200 {
            scene.host.update(0, turn, &picture);
        }
        scene.host.turn();
        most = most.max(scene.memory() - before);
        assert!(most <= 64 << 20, "{most} bytes of memory for what is incomplete");
    }
    assert!(scene.host.carrier.link().unsent > 0, "the desk has taken everything, in {most} bytes");
    let beyond = scene.share("beyond_shown_bytes");
    assert!((16 << 20..64 << 20).contains(&beyond), "{beyond} bytes");
    assert_eq!(scene.share("programs"), 1, "the program was not ended");
}

#[test]
fn regression_each_buffer_takes_a_descriptor() {
    let mut scene = Scene::new();
    let desk = scene.descriptors();
    // As an honest program with many windows would: each has content of its own.
    scene.host.start_programs(100);
    let picture = noise(16, 16);
    for number in 0..1000 {
        let surface = WireId(SURFACE.0 + 2 + 2 * number);
        scene.host.make_surface(0, surface);
        scene.host.update_on(0, surface, 1, &picture);
        scene.host.commit_on(0, surface, 1);
    }
    for program in 1..100 {
        scene.host.update(program, 1, &picture);
        scene.host.commit(program, 1);
    }
    let bytes = 4096 * (1000 + 99);
    scene.until("all buffers", |scene| scene.share("buffer_bytes") == bytes);
    assert!(scene.descriptors() <= 256, "{} descriptors, {desk} of them before", scene.descriptors());
    assert_eq!((scene.share("programs"), scene.share("descriptors")), (100, 200));
}

/// Each file below a directory, by its path from there on.
fn files_below(directory: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let paths = entries.flat_map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => {
            let name = entry.file_name().to_string_lossy().into_owned();
            files_below(&entry.path()).into_iter().map(|path| format!("{name}/{path}")).collect::<Vec<_>>()
        }
        _ => vec![entry.file_name().to_string_lossy().into_owned()],
    });
    paths.collect()
}

#[test]
fn a_hostile_host_gets_no_file_of_the_desk_and_leads_none_of_its_own_elsewhere() {
    let mut scene = Scene::new();
    let home = scene.site.path().to_owned();
    std::fs::write(home.join("secret"), "x").expect("written");
    let before = files_below(&home);
    // None of them was dropped, and nothing was asked for.
    for (id, path) in [(1, "secret"), (2, "/etc/passwd"), (3, "../../etc/passwd"), (4, "")] {
        let fetch = Control::FetchFile { id, path: path.to_owned() };
        scene.host.session.control(&fetch).expect("a short message");
        let done = Control::FileDone { id, fate: FileFate::Kept, place: Some(b"/etc/passwd".to_vec()) };
        scene.host.session.control(&done).expect("a short message");
        scene.host.send_file(10 + id, Some(id), "answer");
    }
    let long = "x".repeat(255);
    let names = [
        ("../../.bashrc", "_bashrc"),
        ("/etc/passwd", "passwd"),
        ("a/b\u{1b}[2J\n", "b_[2J_"),
        ("..", "_."),
        ("", "file"),
        ("-rf", "_rf"),
        ("photo\u{202e}gpj.exe", "photo_gpj.exe"),
        (&long, &long[..200]),
    ];
    for (id, (name, _)) in (20..).zip(names) {
        scene.host.send_file(id, None, name);
    }
    scene.until("all answers", |scene| scene.host.files.len() == 4 + names.len());
    for (id, fate) in &scene.host.files {
        // A desk is never asked for a file: it does not even say no.
        assert!(*id >= 10, "{id}");
        assert_eq!(*fate, if *id < 20 { FileFate::Refused } else { FileFate::Kept }, "{id}");
    }
    let expected = names.map(|(_, kept)| format!("Downloads/wayferry/by ticket/{kept}"));
    let after = files_below(&home);
    assert_eq!(after.difference(&before).cloned().collect::<BTreeSet<_>>(), expected.clone().into());
    assert!(before.is_subset(&after) && scene.share("programs") == 0);
    // A name that no message may hold breaks the protocol.
    scene.host.send_file(40, None, &"x".repeat(300));
    scene.until("the display to end", |scene| scene.host.closed.is_some());
    assert_ne!(scene.attach.code(), 0);
    assert!(files_below(&home).iter().all(|path| before.contains(path) || expected.contains(path)));
    assert!(!scene.attach.stderr().contains('\u{1b}'), "{}", scene.attach.stderr());
}

/// Far more than anything takes on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(60);
