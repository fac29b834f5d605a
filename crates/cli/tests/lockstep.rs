//! Both halves of the Wayland proxy against each other in one process, without a session between them: a scripted
//! client on one end, the stage on the other, and a link that delivers messages in order but late, and updates and
//! blobs later still and in any order.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wayferry_proto::{ConnectionId, Time, UpdateHeader};
use wayferry_stage::{
    Client, Clipboard, Commit, Config, Format, Image, Input, Menu, Pane, Rect, Role, Stage, StageEvent, Strip,
};
use wayferry_wayland::wire::{InBuffer, OutBuffer, ReadState, Socket};
use wayferry_wayland::{Action, app, display};

/// How late things arrive.
#[derive(Clone, Copy)]
struct Late {
    /// Messages, each way, at most.
    messages: Duration,
    /// Updates and blobs, at most.
    updates: Duration,
    seed: u64,
}

const AT_ONCE: Late = Late { messages: Duration::ZERO, updates: Duration::ZERO, seed: 1 };
const FAR: Late =
    Late { messages: Duration::from_millis(10), updates: Duration::from_millis(60), seed: 0x5eed };

enum Parcel {
    ToDisplay(Vec<u8>),
    ToApp(Vec<u8>),
    Update(UpdateHeader, Vec<Bytes>),
    BlobToDisplay(u128, Vec<u8>),
    BlobToApp(u128, Vec<u8>),
}

/// Everything between a client's socket and the compositor's.
struct Ferry {
    late: Late,
    start: Instant,
    app: app::Connection,
    display: display::Connection,
    program: Socket,
    compositor: Socket,
    parcels: Vec<(Time, u64, Parcel)>,
    last: [Time; 2],
    count: u64,
    pipes: HashMap<u64, OwnedFd>,
    stop: Arc<AtomicBool>,
}

/// A ferry on a thread; it ends when this is dropped.
struct Crossing {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<(Option<String>, Option<String>)>>,
}

impl Crossing {
    /// A client of the stage with both halves in between.
    fn board(stage: &Stage, late: Late) -> (Self, UnixStream) {
        let (client, program) = UnixStream::pair().expect("sockets");
        let (watched, compositor) = (stage.connect().expect("a stage"), stage.connect().expect("a stage"));
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let thread = std::thread::spawn(move || Ferry::new(watched, program, compositor, late, flag).run());
        (Self { stop, thread: Some(thread) }, client)
    }

    /// How the two halves ended, if they did; both must not have ended by anybody's fault.
    fn land(mut self) -> (Option<String>, Option<String>) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().expect("once").join().expect("no half panics")
    }
}

impl Drop for Crossing {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Of use only when a test fails: who ended it?
        if let Some(Ok(ends)) = self.thread.take().map(JoinHandle::join) {
            eprintln!("app half and display half: {ends:?}");
        }
    }
}

impl Ferry {
    fn new(
        watched: UnixStream,
        program: UnixStream,
        compositor: UnixStream,
        late: Late,
        stop: Arc<AtomicBool>,
    ) -> Self {
        let (snapshot, blobs) = watch(&Socket::new(watched.into()).expect("a socket"));
        let desk = Rc::new(app::Desk { snapshot, ..app::Desk::default() });
        let mut app = app::Connection::new(app::Config::default(), &desk);
        for (hash, bytes) in blobs {
            app.on_blob(Time::ZERO, hash, &bytes.into());
        }
        Self {
            late,
            start: Instant::now(),
            app,
            display: display::Connection::new(display::Config::default()),
            program: Socket::new(program.into()).expect("a socket"),
            compositor: Socket::new(compositor.into()).expect("a socket"),
            parcels: Vec::new(),
            last: [Time::ZERO; 2],
            count: 0,
            pipes: HashMap::new(),
            stop,
        }
    }

    fn run(mut self) -> (Option<String>, Option<String>) {
        while !self.stop.load(Ordering::Relaxed) {
            let now = Time::new(self.start.elapsed());
            let gone = self.read(now);
            self.app.flush(now, app::Turn::Rest, &mut app::Credit::ENDLESS.clone(), &mut ());
            self.app.on_timeout(now);
            self.display.on_timeout(now);
            self.display.work(now, &mut display::Room::default());
            self.take_actions(now);
            self.deliver(now);
            self.take_actions(now);
            let _ = self.program.flush(self.app.output());
            let _ = self.compositor.flush(self.display.output());
            if gone || self.app.end().is_some() || self.display.end().is_some() {
                break;
            }
            self.wait(now);
        }
        let (app, display) =
            (self.app.end().map(ToString::to_string), self.display.end().map(ToString::to_string));
        (app, display)
    }

    /// Reads from both sockets; says whether one is closed.
    fn read(&mut self, now: Time) -> bool {
        loop {
            let program = fill(&self.program, self.app.input());
            self.app.process(now);
            let compositor = fill(&self.compositor, self.display.input());
            self.display.process(now);
            match (program, compositor) {
                (ReadState::Closed, _) | (_, ReadState::Closed) => return true,
                (ReadState::WouldBlock, ReadState::WouldBlock) => return false,
                _ => {}
            }
        }
    }

    fn take_actions(&mut self, now: Time) {
        while let Some(action) = self.app.poll_action() {
            match action {
                Action::Message(bytes) => self.post(now, Parcel::ToDisplay(bytes)),
                Action::Update(update) => {
                    let header = update.header(ConnectionId(1));
                    let chunks = update.chunks.into_iter().map(Bytes::from).collect();
                    self.post(now, Parcel::Update(header, chunks));
                }
                Action::Blob { hash, bytes } => self.post(now, Parcel::BlobToDisplay(hash, bytes)),
                Action::PipeOut { pipe, fd } => self.join_pipe(pipe, fd, true),
                Action::PipeIn { pipe, fd } => self.join_pipe(pipe, fd, false),
                Action::Collect { .. } | Action::Drag { .. } => {}
            }
        }
        while let Some(action) = self.display.poll_action() {
            match action {
                Action::Message(bytes) => self.post(now, Parcel::ToApp(bytes)),
                Action::Blob { hash, bytes } => self.post(now, Parcel::BlobToApp(hash, bytes)),
                Action::PipeOut { pipe, fd } => self.join_pipe(pipe, fd, true),
                Action::PipeIn { pipe, fd } => self.join_pipe(pipe, fd, false),
                Action::Collect { .. } | Action::Drag { .. } => {}
                Action::Update(_) => panic!("the display side sends no pixels"),
            }
        }
    }

    /// Copies from the end that is read to the end that is written, once both are known.
    fn join_pipe(&mut self, pipe: u64, fd: OwnedFd, is_source: bool) {
        let Some(other) = self.pipes.remove(&pipe) else {
            self.pipes.insert(pipe, fd);
            return;
        };
        let (source, sink) = if is_source { (fd, other) } else { (other, fd) };
        std::thread::spawn(move || {
            std::io::copy(&mut std::fs::File::from(source), &mut std::fs::File::from(sink))
        });
    }

    fn post(&mut self, now: Time, parcel: Parcel) {
        let lane = match parcel {
            Parcel::ToDisplay(_) => Some(0),
            Parcel::ToApp(_) => Some(1),
            _ => None,
        };
        let most = if lane.is_some() { self.late.messages } else { self.late.updates };
        let mut due = now + self.random(most);
        if let Some(lane) = lane {
            due = due.max(self.last[lane]);
            self.last[lane] = due;
        }
        self.count += 1;
        self.parcels.push((due, self.count, parcel));
    }

    fn deliver(&mut self, now: Time) {
        let (mut due, rest): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.parcels).into_iter().partition(|(due, ..)| *due <= now);
        self.parcels = rest;
        due.sort_by_key(|(due, count, _)| (*due, *count));
        for (_, _, parcel) in due {
            match parcel {
                Parcel::ToDisplay(bytes) => self.display.on_message(now, &bytes),
                Parcel::ToApp(bytes) => self.app.on_message(now, &bytes),
                Parcel::Update(header, chunks) => self.display.on_update(now, &header, chunks),
                Parcel::BlobToDisplay(hash, bytes) => self.display.on_blob(now, hash, &bytes.into()),
                Parcel::BlobToApp(hash, bytes) => self.app.on_blob(now, hash, &bytes.into()),
            }
        }
    }

    fn wait(&mut self, now: Time) {
        let due = self.parcels.iter().map(|(due, ..)| *due);
        let due = due.chain(self.app.next_timeout()).chain(self.display.next_timeout()).min();
        // The stop flag is looked at now and then.
        let wait = due.map_or(Duration::from_millis(20), |due| due.since(now)).min(Duration::from_millis(20));
        let wait = Timespec { tv_sec: 0, tv_nsec: wait.as_nanos() as _ };
        let mut fds =
            [PollFd::new(&self.program, PollFlags::IN), PollFd::new(&self.compositor, PollFlags::IN)];
        let _ = poll(&mut fds, Some(&wait));
    }

    fn random(&mut self, most: Duration) -> Duration {
        self.late.seed ^= self.late.seed << 13;
        self.late.seed ^= self.late.seed >> 7;
        self.late.seed ^= self.late.seed << 17;
        let most = most.as_micros() as u64;
        Duration::from_micros(if most == 0 { 0 } else { self.late.seed % most })
    }
}

/// Reads what is there.
fn fill(socket: &Socket, buffer: &mut InBuffer) -> ReadState {
    socket.read_into(buffer).expect("a socket")
}

/// The stage's state, and the blobs that it names.
fn watch(socket: &Socket) -> (wayferry_wayland::snapshot::Snapshot, Vec<(u128, Vec<u8>)>) {
    let mut watcher = display::Watcher::new();
    let snapshot = loop {
        write(socket, watcher.output());
        let _ = poll(&mut [PollFd::new(socket, PollFlags::IN)], None);
        fill(socket, watcher.input());
        if let Some(snapshot) = watcher.process(Time::ZERO) {
            break snapshot;
        }
        assert_eq!(watcher.end(), None);
    };
    let blobs = std::iter::from_fn(|| watcher.poll_action()).map(|action| match action {
        Action::Blob { hash, bytes } => (hash, bytes),
        other => panic!("{other:?}"),
    });
    let blobs = blobs.collect();
    (snapshot, blobs)
}

fn write(socket: &Socket, buffer: &mut OutBuffer) {
    assert!(socket.flush(buffer).expect("a socket"), "a few requests fit");
}

fn stage() -> Stage {
    Stage::start(Config::default()).expect("a stage")
}

fn client(stage: &Stage, late: Late) -> (Crossing, Client) {
    let (crossing, stream) = Crossing::board(stage, late);
    (crossing, Client::from_stream(stream).expect("the client starts"))
}

fn land(crossing: Crossing) {
    assert_eq!(crossing.land(), (None, None));
}

/// A picture that can be told from every other one by its strip, and is different everywhere.
fn frame(number: u64, width: u32, height: u32) -> Image {
    let mut image =
        Image::new(width, height, 0xff00_0000 | (number as u32).wrapping_mul(0x0012_3457) & 0xff_ffff);
    for y in 0..height {
        for x in (0..width).step_by(7) {
            image.set(x, y, 0xff00_0000 | (x * 31 + y * 17 + number as u32 * 101) & 0xff_ffff);
        }
    }
    Strip { frame: number, drawn: Duration::ZERO, value: 0 }.draw(&mut image);
    image
}

fn commit_of(stage: &Stage, wanted: impl Fn(&Commit) -> bool) -> Commit {
    stage.watch().commit(wanted).expect("the commit comes")
}

#[test]
fn a_window_looks_as_it_does_directly() {
    let stage = stage();
    for late in [AT_ONCE, FAR] {
        let (crossing, mut client) = client(&stage, late);
        let title = format!("window {}", late.seed);
        let window = client.window(&title, 300, 200).expect("a window");
        for number in 1..=6 {
            let image = frame(number, 300, 200);
            client.draw(window, &image).expect("drawn");
            client.wait_frame(window).expect("a frame callback");
        }
        let wanted = frame(6, 300, 200).checksum();
        commit_of(&stage, |commit| commit.title.as_deref() == Some(&title) && commit.checksum == wanted);
        land(crossing);
    }
}

#[test]
fn every_commit_shows_a_whole_frame_whatever_the_order_of_arrival() {
    let stage = stage();
    let (crossing, mut client) = client(&stage, FAR);
    let window = client.window("busy", 320, 120).expect("a window");
    client.set_buffers(window, 3);
    let mut sums = vec![0];
    for number in 1..=40 {
        let mut image = frame(1, 320, 120);
        Strip { frame: number, drawn: Duration::ZERO, value: 0 }.draw(&mut image);
        image.fill_rect(number as i32 * 5, 40, 60, 60, 0xff00_ff00 | number as u32);
        sums.push(image.checksum());
        client.draw(window, &image).expect("drawn");
        client.wait_frame(window).expect("a frame callback");
    }
    let last = *sums.last().expect("some");
    let mut shown = Vec::new();
    let mut watch = stage.watch();
    watch
        .commit(|commit| commit.title.as_deref() == Some("busy") && commit.checksum == last)
        .expect("the last frame comes");
    let mut watch = stage.watch();
    let _ = watch.commit(|commit| {
        if commit.title.as_deref() == Some("busy") {
            return commit.checksum == last || !sums.contains(&commit.checksum);
        }
        false
    });
    for stamped in stage.watch().drain() {
        if let StageEvent::Commit(commit) = stamped.event
            && commit.title.as_deref() == Some("busy")
        {
            let place = sums.iter().position(|sum| *sum == commit.checksum);
            shown.push(place.unwrap_or_else(|| panic!("a torn frame in commit {}", commit.number)));
        }
    }
    assert!(shown.is_sorted(), "{shown:?}");
    land(crossing);
}

#[test]
fn synchronised_children_never_run_ahead_of_their_parent() {
    let stage = stage();
    let (crossing, mut client) = client(&stage, FAR);
    let window = client.window("parent", 300, 100).expect("a window");
    let child = client.subsurface(window, 10, 20).expect("a subsurface");
    for number in 1..=12 {
        client.draw(child, &frame(number, 240, 40)).expect("drawn");
        client.draw(window, &frame(number, 300, 100)).expect("drawn");
        client.wait_frame(window).expect("a frame callback");
    }
    let wanted = frame(12, 300, 100).checksum();
    commit_of(&stage, |commit| commit.checksum == wanted);
    // The child's content takes effect with the parent's: at every applied child, the parent's newest frame is the
    // same or the one that follows in the same turn.
    let (mut applied, mut parent) = (0, 0);
    for stamped in stage.watch().drain() {
        match stamped.event {
            StageEvent::Commit(commit) if commit.role == Some(Role::Toplevel) => {
                if let Some(strip) = commit.strip {
                    parent = strip.frame;
                }
            }
            StageEvent::Applied { checksum, .. } => {
                let number = (1..=12).find(|n| frame(*n, 240, 40).checksum() == checksum);
                let number = number.expect("a whole frame of the child");
                assert!(number == parent || number == parent + 1, "child {number}, parent {parent}");
                applied += 1;
            }
            _ => {}
        }
    }
    assert!(applied > 0);
    land(crossing);
}

#[test]
fn menus_over_a_busy_window_open_nested_and_close_from_outside() {
    let stage = stage();
    let (crossing, mut client) = client(&stage, FAR);
    let window = client.window("owner", 400, 300).expect("a window");
    client.draw(window, &frame(1, 400, 300)).expect("drawn");
    let owner =
        commit_of(&stage, |commit| commit.title.as_deref() == Some("owner") && commit.attached).surface;
    client.wait_frame(window).expect("a frame callback");
    stage.pointer_motion(50.0, 50.0);
    stage.pointer_button(0x110, true);
    stage.pointer_button(0x110, false);
    let serial = loop {
        if let Input::Button { serial, pressed: true, .. } = client.next_input().expect("input") {
            break serial;
        }
    };
    // The window is redrawn while its menus open.
    client.draw(window, &frame(2, 400, 300)).expect("drawn");
    let menu = Menu { anchor: Rect::new(5, 5, 20, 10), size: (240, 60), grab: Some(serial) };
    let first = client.popup(window, menu).expect("a popup");
    client.draw(first, &frame(3, 240, 60)).expect("drawn");
    let nested = Menu { anchor: Rect::new(1, 1, 20, 10), size: (240, 40), grab: None };
    let second = client.popup(first, nested).expect("a popup");
    client.draw(second, &frame(4, 240, 40)).expect("drawn");
    let wanted = frame(4, 240, 40).checksum();
    let inner = commit_of(&stage, |commit| commit.role == Some(Role::Popup) && commit.checksum == wanted);
    stage.dismiss_popup(inner.surface);
    client
        .wait_input(|input| matches!(input, Input::PopupDone { pane } if *pane == second))
        .expect("popup_done");
    client.destroy(second);
    client.destroy(first);
    client.draw(window, &frame(5, 400, 300)).expect("drawn");
    let wanted = frame(5, 400, 300).checksum();
    commit_of(&stage, |commit| commit.surface == owner && commit.checksum == wanted);
    land(crossing);
}

#[test]
fn keys_reach_the_focused_window_in_order() {
    let stage = stage();
    let (crossing, mut client) = client(&stage, FAR);
    let window = client.window("typing", 300, 100).expect("a window");
    client.draw(window, &frame(1, 300, 100)).expect("drawn");
    client.wait_input(|input| matches!(input, Input::KeyboardEnter { .. })).expect("focus");
    assert!(client.keymap().is_some_and(|keymap| keymap.contains("xkb_keymap")));
    for code in [30, 31, 32] {
        stage.key(code, true);
        stage.key(code, false);
    }
    let mut codes = Vec::new();
    while codes.len() < 6 {
        if let Input::Key { code, pressed, .. } = client.next_input().expect("input") {
            codes.push((code, pressed));
        }
    }
    assert_eq!(codes, [(30, true), (30, false), (31, true), (31, false), (32, true), (32, false)]);
    land(crossing);
}

#[test]
fn the_clipboard_goes_both_ways() {
    let stage = stage();
    let (crossing, mut client) = client(&stage, FAR);
    let window = client.window("clipboard", 300, 100).expect("a window");
    client.draw(window, &frame(1, 300, 100)).expect("drawn");
    client.wait_input(|input| matches!(input, Input::KeyboardEnter { .. })).expect("focus");
    let large: Vec<u8> = (0..1_000_000u32).map(|n| (n * 7) as u8).collect();
    for clipboard in [Clipboard::Regular, Clipboard::Primary] {
        let data = vec![("text/plain".to_owned(), large.clone())];
        stage.set_clipboard(clipboard, data);
        let pasted = loop {
            client.dispatch(Duration::from_millis(50)).expect("alive");
            if let Some(pasted) = client.paste(clipboard, "text/plain").expect("pasted")
                && !pasted.is_empty()
            {
                break pasted;
            }
        };
        assert!(pasted == large, "{} bytes", pasted.len());
        client.copy(clipboard, vec![("text/html".to_owned(), b"copied".to_vec())]).expect("copied");
        let mut watch = stage.watch();
        watch
            .until(|event| {
                matches!(event, StageEvent::SetSelection { clipboard: c, types, accepted: true, .. }
                    if *c == clipboard && types.iter().any(|name| name == "text/html"))
            })
            .expect("the selection is set");
        let reader = stage.clipboard(clipboard, "text/html");
        let copied = loop {
            client.dispatch(Duration::from_millis(10)).expect("alive");
            if let Ok(copied) = reader.try_recv() {
                break copied;
            }
        };
        assert_eq!(copied, b"copied");
    }
    land(crossing);
}

#[test]
fn a_cursor_is_shown_with_its_pixels() {
    let stage = stage();
    let (crossing, mut client) = client(&stage, FAR);
    let window = client.window("pointer", 300, 200).expect("a window");
    client.draw(window, &frame(1, 300, 200)).expect("drawn");
    client.wait_frame(window).expect("shown");
    stage.pointer_motion(100.0, 100.0);
    client.wait_input(|input| matches!(input, Input::PointerEnter { .. })).expect("the pointer");
    let cursor = client.bare();
    let mut image = Image::new(24, 24, 0xffff_0000);
    image.fill_rect(4, 4, 8, 8, 0xff00_00ff);
    client.draw(cursor, &image).expect("drawn");
    client.set_cursor(Some(cursor), (3, 4));
    client.flush().expect("flushed");
    let wanted = image.checksum();
    commit_of(&stage, |commit| commit.checksum == wanted);
    stage
        .watch()
        .until(|event| {
            matches!(event, StageEvent::SetCursor { surface: Some(_), hotspot: (3, 4), accepted: true, .. })
        })
        .expect("the cursor is set");
    client.round_trip().expect("alive");
    land(crossing);
}

#[test]
fn windows_come_and_go_while_their_pixels_are_under_way() {
    let stage = stage();
    let (crossing, mut client) = client(&stage, FAR);
    for round in 0..12 {
        let title = format!("round {round}");
        let window = client.window(&title, 300, 100).expect("a window");
        client.draw(window, &frame(1, 300, 100)).expect("drawn");
        client.draw(window, &frame(2, 300, 100)).expect("drawn");
        if round % 3 == 0 {
            client.attach_none(window);
            client.commit(window);
        }
        client.destroy(window);
    }
    client.round_trip().expect("alive");
    let last = client.window("last", 300, 100).expect("a window");
    client.draw(last, &frame(9, 300, 100)).expect("drawn");
    let wanted = frame(9, 300, 100).checksum();
    commit_of(&stage, |commit| commit.title.as_deref() == Some("last") && commit.checksum == wanted);
    assert_eq!(stage.windows().len(), 1);
    land(crossing);
}

#[test]
fn formats_and_resizes_keep_their_pixels() {
    let stage = Stage::start(Config { formats: vec![Format::Rgb565], ..Config::default() }).expect("a stage");
    let (crossing, mut client) = client(&stage, FAR);
    let window = client.window("sizes", 300, 100).expect("a window");
    for (number, (width, height)) in [(300, 100), (400, 150), (260, 40), (400, 150)].into_iter().enumerate() {
        let image = frame(number as u64 + 1, width, height);
        client.draw(window, &image).expect("drawn");
        client.wait_frame(window).expect("a frame callback");
        let wanted = image.checksum();
        commit_of(&stage, |commit| commit.checksum == wanted && commit.size == Some((width, height)));
    }
    let pane: Pane = window;
    client.attach_none(pane);
    client.commit(pane);
    client.flush().expect("flushed");
    stage.watch().until(|event| matches!(event, StageEvent::Unmapped { .. })).expect("unmapped");
    land(crossing);
}

#[test]
fn a_program_that_breaks_the_protocol_ends_alone() {
    let stage = stage();
    let (bad, mut stream) = Crossing::board(&stage, AT_ONCE);
    let (good, mut client) = client(&stage, AT_ONCE);
    stream.write_all(&[1, 0, 0, 0, 9, 0, 12, 0, 0, 0, 0, 0]).expect("written");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("closed");
    assert!(!answer.is_empty(), "the program is told");
    let (app, _) = bad.land();
    assert!(app.is_some_and(|end| end.contains("broke the Wayland protocol")));
    client.round_trip().expect("the other one lives");
    land(good);
}
