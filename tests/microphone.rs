//! The desk's microphone in a session: programs record it if the user lets them.

use std::time::Duration;

use wayferry_stage::{Link, LinkConfig, Loss};

use crate::rig::{Compositor, Program, Sway, attach_to, free_address, until};
use crate::sound::{BLOCK, Ear, Heard, Hosted, TRIES, find, longest_loud, noise, wav};

/// A sound server at a desk. What is played there is what its microphone hears.
fn sound_server(sway: &Sway) -> Program {
    let socket = sway.home().runtime().join("pulse/native");
    let directory = socket.parent().expect("a directory");
    std::fs::create_dir(directory).expect("a directory");
    sway.home().give(directory);
    let native = format!("module-native-protocol-unix socket={} auth-anonymous=1", socket.display());
    let sink = "module-null-sink sink_name=null0 format=s16le rate=48000";
    let quiet = ["-n", "--daemonize=no", "--exit-idle-time=-1", "--use-pid-file=no"];
    let server = sway.home().launch("pulseaudio").args(quiet).args(["-L", &native, "-L", sink]).start();
    until("the sound server", || std::os::unix::net::UnixStream::connect(&socket).ok());
    server
}

/// A session at a desk with a microphone, which programs may record if the options say so.
struct Spoken {
    session: Heard,
    _server: Program,
}

impl Spoken {
    fn start(options: &[&str]) -> Self {
        Self::from(Hosted::start(&[]), options, &[])
    }

    fn from(hosted: Hosted, options: &[&str], arguments: &[&str]) -> Self {
        let sway = Sway::start();
        let server = sound_server(&sway);
        let arguments = [&[hosted.ticket.as_str()], arguments].concat();
        let attach = attach_to(&sway, options, &arguments);
        Self { session: hosted.heard_by(Ear { attach, sway }), _server: server }
    }

    /// A program that records until it is dropped.
    fn recorder(&self) -> Program {
        let path = self.session.home.file("recorded.raw").display().to_string();
        let format = ["--raw", "--format=s16le", "--rate=48000", "--channels=2", "--latency-msec=20"];
        self.session.launch("parec").args(format).arg(path).start()
    }

    fn recorded(&self) -> Vec<u8> {
        std::fs::read(self.session.home.file("recorded.raw")).unwrap_or_default()
    }

    /// What programs find to record from.
    fn sources(&self) -> String {
        let listed = self.session.launch("pactl").args(["list", "short", "sources"]).run();
        String::from_utf8_lossy(&listed).into_owned()
    }

    /// Something is said at the desk.
    fn say(&self, sound: &[u8]) {
        let home = self.session.ear.sway.home();
        let file = home.write("said.wav", wav(sound));
        home.launch("paplay").arg("--latency-msec=20").arg(file.to_str().expect("a plain path")).run();
    }

    /// A tone is hummed at the desk for a minute.
    fn hum(&self) -> Program {
        let words = ["-q", "-n", "-t", "pulseaudio", "default", "synth", "60", "sine", "440", "gain", "-6"];
        self.session.ear.sway.home().launch("sox").args(words).start()
    }

    /// Waits until a second more of it was recorded, each hundredth of it loud.
    fn records_a_tone(&self) {
        let before = self.recorded().len() / BLOCK * BLOCK;
        until("a second of the tone", || (longest_loud(self.recorded().get(before..)?) >= 100).then_some(()));
    }

    fn count(&self, event: &str) -> usize {
        self.session.ear.attach.count(event)
    }
}

#[test]
fn what_is_said_is_recorded_bit_for_bit_while_a_program_records() {
    let mut spoken = Spoken::start(&["--microphone", "--audio", "pcm"]);
    assert!(until("a source", || Some(spoken.sources()).filter(|all| !all.is_empty())).contains("wayferry"));
    assert_eq!(spoken.count("microphone-open"), 0, "before a program records");

    let recorder = spoken.recorder();
    spoken.session.ear.attach.happens("microphone-open");
    // A machine that stops for longer than sound is held back has some of it made up.
    let exact = (0..TRIES).any(|seed| {
        let said = noise(seed, 48_000);
        spoken.say(&said);
        let end = spoken.recorded().len() + 48_000 * 4;
        until("what comes after it", || (spoken.recorded().len() > end).then_some(()));
        // The server has passed on as silence what its sink plays in the first hundredths.
        find(&spoken.recorded(), &said[2 * BLOCK..]).is_some()
    });
    assert!(exact, "in {TRIES} tries");

    assert_eq!(spoken.count("microphone-closed"), 0);
    drop(recorder);
    spoken.session.ear.attach.happens("microphone-closed");
    let _again = spoken.recorder();
    until("the microphone again", || (spoken.count("microphone-open") == 2).then_some(()));
    spoken.session.must_run();
}

#[test]
fn the_microphone_goes_on_over_a_bad_link_and_when_it_is_back() {
    let address = free_address();
    let hosted = Hosted::at(&["--silence", "1"], &address.to_string());
    let one_way_delay = Duration::from_millis(50);
    let config = LinkConfig { one_way_delay, loss: Loss::Independent(0.03), ..LinkConfig::default() };
    let link = Link::start(config, address).expect("an emulated link");
    let via = link.local_addr().to_string();
    let mut spoken = Spoken::from(hosted, &["--silence", "1", "--microphone"], &["--via", &via]);
    until("a source", || (!spoken.sources().is_empty()).then_some(()));
    let _recorder = spoken.recorder();
    let _hum = spoken.hum();
    spoken.records_a_tone();
    link.set_down(true);
    spoken.session.ear.attach.happens("connection-lost");
    link.set_down(false);
    spoken.session.ear.attach.happens("back");
    spoken.records_a_tone();
    spoken.session.must_run();
}

#[test]
fn the_user_is_told_that_the_microphone_closes_with_the_session() {
    let mut spoken = Spoken::start(&["--microphone"]);
    until("a source", || (!spoken.sources().is_empty()).then_some(()));
    let _recorder = spoken.recorder();
    spoken.session.ear.attach.happens("microphone-open");
    spoken.session.home.wayferry().arg("detach").run();
    spoken.session.ear.attach.ended();
    assert_eq!(spoken.count("microphone-closed"), 1);
}

#[test]
fn without_the_users_word_there_is_no_microphone() {
    let mut spoken = Spoken::start(&[]);
    let mut recorder = spoken.recorder();
    recorder.ended();
    assert_eq!(spoken.sources(), "");
    assert_eq!((spoken.recorded().len(), spoken.count("microphone-open")), (0, 0));
    spoken.session.must_run();
}

#[test]
fn the_microphone_goes_with_the_display_that_allowed_it() {
    let mut spoken = Spoken::start(&["--microphone"]);
    until("a source", || (!spoken.sources().is_empty()).then_some(()));
    let mut recorder = spoken.recorder();
    spoken.session.ear.attach.happens("microphone-open");
    // A viewer has no say, in neither sense of the word.
    let viewer = Ear::start(&["--microphone"], &[&spoken.session.ticket(&["--view"]), "--view"]);
    let other = Ear::start(&[], &[&spoken.session.ticket(&[])]);
    spoken.session.ear.attach.ended();
    recorder.ended();
    assert_eq!(spoken.sources(), "");
    assert_eq!((viewer.attach.count("microphone-open"), other.attach.count("microphone-open")), (0, 0));
}
