//! Sound of a session: programs play over there, and it is heard here.

use std::net::SocketAddr;

use wayferry_stage::{Link, LinkConfig};

use crate::rig::{Compositor, Home, Launch, Program, Sway, attach_to, free_address, until};
use crate::suspended::{go_on, stop};

/// A session and the display that hears it.
pub(crate) struct Heard {
    pub(crate) host: Program,
    pub(crate) ear: Ear,
    // Last, so that the programs end before their directory goes.
    pub(crate) home: Home,
}

/// A display that writes what it hears to a file.
pub(crate) struct Ear {
    pub(crate) attach: Program,
    pub(crate) sway: Sway,
}

/// A session whose program says where its sound goes.
pub(crate) struct Hosted {
    host: Program,
    pub(crate) ticket: String,
    home: Home,
}

impl Hosted {
    pub(crate) fn start(options: &[&str]) -> Self {
        Self::at(options, "127.0.0.1:0")
    }

    pub(crate) fn at(options: &[&str], listen: &str) -> Self {
        let home = Home::new();
        let script = "echo \"${PULSE_SERVER-none}\" > server; exec tail -f /dev/null";
        let launch = home.wayferry().args(options.iter().copied()).args(["host", "--listen", listen, "--"]);
        let mut host = launch.args(["sh", "-c", script]).start();
        let ticket = host.first_line();
        Self { host, ticket, home }
    }

    /// Heard by a display that writes a trace.
    fn trace_to(self, path: &str) -> Heard {
        let ear = Ear::start(&["--trace", path], &[&self.ticket]);
        self.heard_by(ear)
    }

    pub(crate) fn heard_by(self, ear: Ear) -> Heard {
        let Self { host, home, .. } = self;
        let heard = Heard { host, ear, home };
        heard.server();
        heard
    }
}

impl Ear {
    pub(crate) fn start(options: &[&str], arguments: &[&str]) -> Self {
        let sway = Sway::start();
        let sink = format!("--audio-sink=file:{}", sway.home().file("heard.raw").display());
        let attach = attach_to(&sway, &[&[sink.as_str()], options].concat(), arguments);
        Self { attach, sway }
    }

    /// What has been heard so far.
    fn heard(&self) -> Vec<u8> {
        std::fs::read(self.sway.home().file("heard.raw")).unwrap_or_default()
    }

    /// Whether all of `sound` is heard, at once and unchanged, before the silence after it.
    fn hears(&self, sound: &[u8]) -> bool {
        let mut last = 0;
        until("the end of the sound", || {
            let heard = self.heard();
            let whole = find(&heard, sound);
            let silent = heard.ends_with(&[0; 50 * BLOCK]) && heard.len() == last;
            last = heard.len();
            (whole.is_some() || silent).then_some(whole.is_some())
        })
    }

    /// Waits until a second more of a tone was heard, each hundredth of it loud.
    pub(crate) fn hears_a_tone(&self) {
        let before = self.heard().len() / BLOCK * BLOCK;
        until("a second of the tone", || {
            let heard = self.heard();
            (longest_loud(heard.get(before..)?) >= 100).then_some(())
        });
    }

    /// Periods in a second of the tone that was heard first, once two seconds of it were.
    pub(crate) fn pitch(&self) -> usize {
        let heard = self.heard();
        let left: Vec<i16> = samples(&heard).step_by(2).collect();
        let loud = left.iter().position(|sample| *sample > 3000).expect("a tone") + 9_600;
        left[loud..loud + 48_000].windows(2).filter(|pair| pair[0] < 0 && pair[1] >= 0).count()
    }
}

impl Heard {
    fn start(options: &[&str]) -> Self {
        let hosted = Hosted::start(&[]);
        let ear = Ear::start(options, &[&hosted.ticket]);
        hosted.heard_by(ear)
    }

    /// Where programs of the session play to.
    fn server(&self) -> String {
        let server = self.home.read_when("server", |text| text.ends_with(b"\n"));
        String::from_utf8(server).expect("a path").trim_end().to_owned()
    }

    /// A program that plays in the session.
    pub(crate) fn launch(&self, program: &str) -> Launch {
        self.home.launch(program).env("PULSE_SERVER", self.server())
    }

    /// A program that plays a tone of 440 Hz for a minute.
    pub(crate) fn tone(&self) -> Program {
        let words = ["-q", "-n", "-t", "pulseaudio", "default", "synth", "60", "sine", "440", "gain", "-6"];
        self.launch("sox").args(words).start()
    }

    /// Another ticket.
    pub(crate) fn ticket(&self, options: &[&str]) -> String {
        let ticket = self.home.wayferry().arg("ticket").args(options.iter().copied()).run();
        String::from_utf8(ticket).expect("a ticket").trim_end().to_owned()
    }

    pub(crate) fn must_run(&mut self) {
        self.host.must_run();
        self.ear.attach.must_run();
    }
}

#[test]
fn what_programs_play_is_heard_bit_for_bit() {
    let mut session = Heard::start(&["--audio", "pcm"]);
    let path = session.home.file("noise.wav").display().to_string();
    // The last ends when it has written its last, not when that was heard: it has more than is looked for.
    let programs: [(&str, &[&str], &[&str], usize); 3] = [
        ("paplay", &[], &[], 48_000),
        ("sox", &["-q"], &["-t", "pulseaudio", "default"], 48_000),
        ("ffplay", &["-nodisp", "-autoexit", "-loglevel", "error"], &[], 96_000),
    ];
    for (number, (program, before, after, frames)) in (1..).zip(programs) {
        // A machine that stops for longer than sound is held back has some of it made up, and a player that begins to
        // trust the link plays earlier, once: so each may play again.
        let heard = (0..TRIES).any(|again| {
            let sound = noise(10 * number + again, frames);
            std::fs::write(&path, wav(&sound)).expect("a file");
            let launch = session.launch(program).env("SDL_VIDEODRIVER", "dummy");
            launch.args(before.iter().copied()).arg(&path).args(after.iter().copied()).run();
            session.ear.hears(&sound[..48_000 * 4])
        });
        assert!(heard, "{program}, in {TRIES} tries");
    }
    session.must_run();
}

#[test]
fn opus_keeps_the_tone() {
    let mut session = Heard::start(&[]);
    let _tone = session.tone();
    session.ear.hears_a_tone();
    session.ear.hears_a_tone();
    let pitch = session.ear.pitch();
    assert!((438..=442).contains(&pitch), "{pitch} periods in a second");
    session.must_run();
}

#[test]
fn a_trace_shows_when_each_packet_was_heard() {
    let traces = Home::new();
    let [ours, theirs] = ["app", "display"].map(|name| traces.file(name).display().to_string());
    let hosted = Hosted::start(&["--trace", &ours]);
    let mut session = hosted.trace_to(&theirs);
    let tone = session.tone();
    session.ear.hears_a_tone();
    drop(tone);
    session.home.wayferry().arg("detach").run();
    session.ear.attach.ended();
    let table = || traces.wayferry().args(["trace", &ours, &theirs]).run();
    // The other side writes what it knows once a second.
    until("a second of both sides' trace", || {
        let table = String::from_utf8(table()).expect("text");
        let count = |stage: &str| {
            let line = table.lines().find_map(|line| line.strip_prefix(stage))?;
            line.split_whitespace().next()?.parse::<u32>().ok()
        };
        let counts = ["sound capture", "sound wire", "sound hear"].map(|stage| count(stage).unwrap_or(0));
        counts.iter().all(|count| *count >= 90).then_some(())
    });
}

#[test]
fn sound_goes_on_at_another_display() {
    let mut session = Heard::start(&[]);
    let _tone = session.tone();
    session.ear.hears_a_tone();
    session.home.wayferry().arg("detach").run();
    session.ear.attach.ended();
    session.ear = Ear::start(&[], &[&session.ticket(&[])]);
    session.ear.hears_a_tone();
    session.must_run();
}

#[test]
fn sound_goes_on_when_the_link_is_back() {
    let address: SocketAddr = free_address();
    let hosted = Hosted::at(&["--silence", "1"], &address.to_string());
    let link = Link::start(LinkConfig::default(), address).expect("an emulated link");
    let ear = Ear::start(&["--silence", "1"], &[&hosted.ticket, "--via", &link.local_addr().to_string()]);
    let mut session = hosted.heard_by(ear);
    let _tone = session.tone();
    session.ear.hears_a_tone();
    link.set_down(true);
    session.ear.attach.happens("connection-lost");
    link.set_down(false);
    session.ear.attach.happens("back");
    session.ear.hears_a_tone();
    session.must_run();
}

/// What was played while the display stood still is not played afterwards.
#[test]
fn a_suspended_display_hears_what_plays_now_and_not_what_played() {
    let hosted = Hosted::start(&["--silence", "1"]);
    let ear = Ear::start(&["--silence", "1", "--audio", "pcm"], &[&hosted.ticket]);
    let mut session = hosted.heard_by(ear);
    let tone = session.tone();
    session.ear.hears_a_tone();
    drop(tone);
    stop(session.ear.attach.pid());
    // The first second of it is sent: the other side does not know yet.
    let missed = noise(1, 96_000);
    let file = session.home.write("missed.wav", wav(&missed)).display().to_string();
    session.launch("paplay").arg(file).run();
    session.host.happens("display-away");
    let _tone = session.tone();
    go_on(session.ear.attach.pid());
    session.ear.attach.happens("back");
    session.ear.hears_a_tone();
    let heard = session.ear.heard();
    let first = missed.chunks_exact(BLOCK).position(|block| find(&heard, block).is_some());
    assert_eq!(first, None, "a hundredth of what was missed");
    session.must_run();
}

#[test]
#[ignore = "a hundred displays take a minute: `make test-full` runs it"]
fn a_hundred_displays_leave_no_descriptor_behind() {
    let hosted = Hosted::start(&[]);
    let ear = Ear::start(&[], &[&hosted.ticket]);
    let mut session = hosted.heard_by(ear);
    let _tone = session.tone();
    session.ear.hears_a_tone();
    let pid = session.host.pid().as_raw_nonzero();
    let mut left = Vec::new();
    for _ in 0..100 {
        session.home.wayferry().arg("detach").run();
        session.ear.attach.ended();
        let count = |what: &str| std::fs::read_dir(format!("/proc/{pid}/{what}")).expect("it runs").count();
        left.push((count("fd"), count("task")));
        let sink = format!("--audio-sink=file:{}", session.ear.sway.home().file("heard.raw").display());
        std::fs::remove_file(session.ear.sway.home().file("heard.raw")).expect("something was heard");
        session.ear.attach = attach_to(&session.ear.sway, &[&sink], &[&session.ticket(&[])]);
        until("the sound", || (longest_loud(&session.ear.heard()) >= 5).then_some(()));
    }
    let most = |of: &[(usize, usize)]| (of.iter().map(|it| it.0).max(), of.iter().map(|it| it.1).max());
    let (first, all) = (most(&left[..10]), most(&left));
    assert!(all.0 <= first.0 && all.1 <= first.1, "{left:?}");
    session.must_run();
}

#[test]
fn a_viewer_hears_what_is_shared_if_it_wants_to() {
    let hosted = Hosted::start(&["--share-audio"]);
    let ear = Ear::start(&["--audio", "off"], &[&hosted.ticket]);
    let mut session = hosted.heard_by(ear);
    let view = |options: &[&str]| Ear::start(options, &[&session.ticket(&["--view"]), "--view"]);
    let (hears, deaf) = (view(&["--audio", "auto"]), view(&[]));
    let _tone = session.tone();
    hears.hears_a_tone();
    assert_eq!((deaf.heard().len(), session.ear.heard().len()), (0, 0));
    session.must_run();
}

#[test]
fn a_viewer_of_a_session_that_is_not_shared_hears_nothing() {
    let mut session = Heard::start(&[]);
    let view = Ear::start(&["--audio", "auto"], &[&session.ticket(&["--view"]), "--view"]);
    until("the viewer", || (session.host.count("display-attached") == 2).then_some(()));
    let _tone = session.tone();
    session.ear.hears_a_tone();
    session.ear.hears_a_tone();
    assert_eq!(view.heard().len(), 0);
    session.must_run();
}

#[test]
fn a_session_without_sound_has_no_server() {
    let hosted = Hosted::start(&["--audio", "off"]);
    let ear = Ear::start(&[], &[&hosted.ticket]);
    let mut session = hosted.heard_by(ear);
    assert_eq!(session.server(), "none");
    session.must_run();
}

#[test]
fn a_desk_without_a_sound_server_is_told_so_once() {
    let hosted = Hosted::start(&[]);
    let sway = Sway::start();
    let attach = attach_to(&sway, &[], &[&hosted.ticket]);
    let mut session = hosted.heard_by(Ear { attach, sway });
    let _tone = session.tone();
    session.ear.attach.happens("no-sound");
    session.must_run();
    assert_eq!(session.ear.attach.count("no-sound"), 1, "{}", session.ear.attach.stderr());
}

/// How often a program may play until what is heard is exact.
pub(crate) const TRIES: u64 = 5;

/// Bytes of a hundredth of a second.
pub(crate) const BLOCK: usize = 480 * 4;

/// The most hundredths of a second that are loud, one after the other.
pub(crate) fn longest_loud(sound: &[u8]) -> usize {
    let (mut run, mut longest) = (0, 0);
    for block in sound.chunks_exact(BLOCK) {
        run = if samples(block).max() > Some(3000) { run + 1 } else { 0 };
        longest = run.max(longest);
    }
    longest
}

pub(crate) fn samples(bytes: &[u8]) -> impl Iterator<Item = i16> {
    bytes.as_chunks::<2>().0.iter().map(|sample| i16::from_le_bytes(*sample))
}

pub(crate) fn find(all: &[u8], sound: &[u8]) -> Option<usize> {
    (0..all.len()).step_by(4).find(|at| all[*at..].starts_with(sound))
}

/// Frames of 16-bit stereo, no two seeds the same, none of them silent.
pub(crate) fn noise(seed: u64, frames: usize) -> Vec<u8> {
    let mut state = seed;
    let mut sample = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 48) as u16 | 1).to_le_bytes()
    };
    (0..2 * frames).flat_map(|_| sample()).collect()
}

/// The same as a WAV file.
pub(crate) fn wav(samples: &[u8]) -> Vec<u8> {
    let length = u32::try_from(samples.len()).expect("short");
    let parts: [&[u8]; 8] = [
        b"RIFF",
        &(length + 36).to_le_bytes(),
        b"WAVEfmt \x10\0\0\0\x01\0\x02\0",
        &48_000_u32.to_le_bytes(),
        &192_000_u32.to_le_bytes(),
        b"\x04\0\x10\0data",
        &length.to_le_bytes(),
        samples,
    ];
    parts.concat()
}
