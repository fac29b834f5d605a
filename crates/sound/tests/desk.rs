//! Playback through real sound servers: PulseAudio, and PipeWire in PulseAudio's place. Their null sinks run on timers,
//! and the sinks' monitors are recorded.

mod server;
mod support;

use std::time::{Duration, Instant};

use rustix::process::Signal;
use server::Server;
use support::{FRAMES, PATIENCE, SECOND, Sender, noise, until};
use wayferry_audio::{Packet, encode_pcm};
use wayferry_proto::Time;
use wayferry_sound::{Codec, DeviceState, Notice, Output, Playback, Surroundings};

/// A playback with the clock that it has, and a thread that hands it packets.
struct Played {
    playback: Playback,
    began: Instant,
    sender: Sender,
}

impl Played {
    fn new(surroundings: Surroundings) -> Self {
        let began = Instant::now();
        let now = move || Time::new(began.elapsed());
        let output = Output::Desk { name: NAME.into() };
        let playback = Playback::start_in(surroundings, output, now).unwrap();
        playback.begin(Codec::Pcm);
        Self { playback, began, sender: Sender::default() }
    }

    /// Hands a sound over at its pace. Its packets have arrived exactly when they should have.
    fn play(&mut self, packets: Vec<Packet>) {
        for packet in packets {
            let arrived = Duration::from_micros(packet.capture.0 * 1000 / 48) + Duration::from_millis(5);
            std::thread::sleep(arrived.saturating_sub(self.began.elapsed()));
            self.playback.packet(Time::new(arrived), packet);
        }
    }

    /// One whole sound that begins now.
    fn sound(&mut self, samples: &[u8]) {
        self.sender.captured = self.began.elapsed().as_millis() as u64 * 48;
        let packets = self.sender.sound(samples);
        self.play(packets);
    }

    /// Hands over noise at its pace until it is so; the packets that were sent meanwhile.
    fn play_until(&mut self, what: &str, mut is_so: impl FnMut(&Self) -> bool) -> Vec<Packet> {
        let deadline = Instant::now() + PATIENCE;
        let mut sent = Vec::new();
        while !is_so(self) {
            assert!(Instant::now() < deadline, "waited in vain: {what}: {:?}", self.playback.report());
            self.sender.captured =
                self.sender.captured.max((self.began.elapsed().as_millis() as u64 * 48).saturating_sub(4800));
            let packet = self.sender.packet(noise(self.sender.sequence + 100, 1));
            self.play(vec![packet.clone()]);
            sent.push(packet);
        }
        sent
    }

    fn state(&self) -> DeviceState {
        self.playback.report().device
    }

    /// The next notice, which was there or came while noise was played.
    fn notice(&mut self, what: &str) -> (Notice, Vec<Packet>) {
        let mut notice = None;
        let sent = self.play_until(what, |played| {
            notice = played.playback.poll_notice();
            notice.is_some()
        });
        (notice.unwrap(), sent)
    }

    fn notices(&self) -> Vec<Notice> {
        std::iter::from_fn(|| self.playback.poll_notice()).collect()
    }
}

fn is_exact(server: &Server) {
    let mut played = Played::new(server.surroundings());
    let recording = server.record();
    // Where the machine stops for longer than the sink's queue, there is a gap: so some tries are allowed, and one
    // sound before and one after a pause must be exact. After 5 s the player trusts a good link and plays earlier,
    // which is a splice: so the first sound and its silence are longer than that.
    let mut exact = 0;
    for seed in 1..8 {
        let sound = noise(seed, if seed == 1 { 200 } else { 100 });
        played.sound(&sound);
        until("the stream to be corked", || played.state() == DeviceState::Corked);
        let pause = recording.samples().len();
        until("all of it to be recorded", || recording.samples().len() > pause + SECOND / 2);
        assert!(recording.count(&sound[..400]) <= 1, "once at most");
        exact += u32::from(recording.has(&sound));
        if exact == 2 {
            break;
        }
    }
    assert_eq!(exact, 2, "{:?}", played.playback.report());
    assert!(server.list("sink-inputs").contains(NAME), "the mixer shows it");
    assert_eq!(played.notices(), []);
}

#[test]
fn pipewire_plays_exactly_what_is_played() {
    is_exact(&Server::pipewire());
}

#[test]
fn pulseaudio_plays_exactly_what_is_played() {
    is_exact(&Server::pulseaudio());
}

#[test]
fn a_device_of_44_1_khz_plays_at_the_right_pitch() {
    let server = Server::pulseaudio_at(44_100);
    let mut played = Played::new(server.surroundings());
    let recording = server.record();
    let tone = |at: usize| (440.0 * std::f32::consts::TAU * at as f32 / 48_000.0).sin() * 0.5;
    let tone: Vec<f32> = (0..100 * FRAMES).flat_map(|at| [tone(at); 2]).collect();
    played.sound(&encode_pcm(&tone));
    until("the stream to be corked", || played.state() == DeviceState::Corked);
    let samples = recording.samples();
    let left: Vec<i16> =
        samples.chunks_exact(4).map(|frame| i16::from_le_bytes([frame[0], frame[1]])).collect();
    let rising = left.windows(2).enumerate().filter(|(_, pair)| pair[0] < 0 && pair[1] >= 0);
    let rising: Vec<usize> = rising.map(|(at, _)| at).collect();
    let mut tenths: Vec<usize> = rising.windows(45).map(|window| window[44] - window[0]).collect();
    tenths.sort_unstable();
    assert!(tenths[tenths.len() / 2].abs_diff(4410) < 10, "44 cycles take a tenth of a second: {tenths:?}");
    assert_eq!(played.notices(), []);
}

#[test]
fn a_server_that_is_killed_and_comes_back_is_told_of_once_each() {
    for mut server in [Server::pulseaudio(), Server::pipewire()] {
        let mut played = Played::new(server.surroundings());
        played.play_until("to play", |played| played.playback.report().next.is_some());
        server.kill();
        let (lost, mut sent) = played.notice("to be lost");
        assert!(matches!(&lost, Notice::Lost { .. }), "{lost:?}");
        sent.clear();
        let first = played.sender.sequence;
        server.restart();
        let recording = server.record();
        sent.extend(played.notice("to be back").1);
        let began = Instant::now();
        sent.extend(played.play_until("a second", |_| began.elapsed() > Duration::from_secs(1)));
        until("sound in the recording", || recording.packets(&sent).len() > 50);
        assert_eq!(played.notices(), []);
        let heard = recording.packets(&sent);
        assert!(heard.iter().all(|sequence| *sequence >= first), "never the past");
        assert!(heard.is_sorted(), "each once, in order: {heard:?}");
    }
}

#[test]
fn without_a_server_there_is_one_notice_and_sound_once_there_is_one() {
    let mut server = Server::none();
    let mut played = Played::new(server.surroundings());
    let (none, _) = played.notice("the notice");
    assert!(matches!(&none, Notice::NoServer { tried } if tried.contains("pulse/native")), "{none:?}");
    let began = Instant::now();
    played.play_until("another try", |_| began.elapsed() > Duration::from_secs(6));
    assert_eq!(played.notices(), []);
    server.restart();
    assert_eq!(played.notice("sound").0, Notice::Back);
}

#[test]
fn a_server_that_stands_still_blocks_neither_the_caller_nor_the_end() {
    let server = Server::pulseaudio();
    let mut played = Played::new(server.surroundings());
    played.play_until("to play", |played| played.playback.report().next.is_some());
    server.signal(Signal::STOP);
    let (lost, _) = played.notice("to be given up");
    assert!(matches!(&lost, Notice::Lost { why } if why.contains("does not answer")), "{lost:?}");
    played.play_until("another try", |played| played.state() == DeviceState::Opening);
    let playback = played.playback;
    let ending = std::thread::spawn(move || drop(playback));
    until("the thread to end", || ending.is_finished());
}

#[test]
fn a_thread_that_is_silent_sleeps() {
    let server = Server::pulseaudio();
    let mut played = Played::new(server.surroundings());
    let recording = server.record();
    played.sound(&noise(1, 20));
    until("the stream to be corked", || played.state() == DeviceState::Corked);
    // The answer to that is the last that comes.
    let recorded = recording.samples().len();
    until("a quarter of a second", || recording.samples().len() > recorded + SECOND / 4);
    let (before, recorded) = (played.playback.report().wakes, recording.samples().len());
    until("two seconds", || recording.samples().len() > recorded + 2 * SECOND);
    assert_eq!(played.playback.report().wakes, before);
    let sent = played.play_until("to play again", |played| played.playback.report().next.is_some());
    until("sound in the recording", || !recording.packets(&sent).is_empty());
}

#[test]
fn a_flow_that_ends_leaves_the_mixer() {
    let server = Server::pulseaudio();
    let mut played = Played::new(server.surroundings());
    played.play_until("to play", |played| played.playback.report().next.is_some());
    assert!(server.list("sink-inputs").contains(NAME));
    played.playback.end();
    until("the connection to be closed", || played.state() == DeviceState::Closed);
    until("the stream to go", || !server.list("sink-inputs").contains(NAME));
    assert!(!server.list("clients").contains(NAME));
    played.playback.begin(Codec::Pcm);
    played.play_until("to play again", |played| played.playback.report().next.is_some());
    assert_eq!(played.notices(), []);
}

#[test]
fn a_device_that_is_unplugged_is_told_of_and_another_one_used() {
    let server = Server::pulseaudio();
    let mut played = Played::new(server.surroundings());
    played.play_until("to play", |played| played.playback.report().next.is_some());
    server.pactl(&["unload-module", "module-null-sink"]);
    let (lost, _) = played.notice("to be lost");
    assert!(matches!(&lost, Notice::Lost { .. }), "{lost:?}");
    server.pactl(&["load-module", "module-null-sink", "sink_name=null0", "rate=48000"]);
    assert_eq!(played.notice("to be back").0, Notice::Back);
    // With two of them, the server moves the stream by itself.
    server.pactl(&["load-module", "module-null-sink", "sink_name=other", "rate=48000"]);
    server.pactl(&["move-sink-input", server.stream().as_str(), "other"]);
    let began = Instant::now();
    played.play_until("a second", |_| began.elapsed() > Duration::from_secs(1));
    assert_eq!((played.notices(), played.state()), (vec![], DeviceState::Playing));
}

#[test]
fn a_server_on_tcp_takes_the_cookie() {
    let server = Server::pulseaudio();
    let (port, cookie) = server.listen();
    let played = |surroundings: Surroundings| Played::new(surroundings);
    let servers = format!("unix:/nowhere {{another}}unix:/b tcp:127.0.0.1:{port}");
    let mut with = played(Surroundings {
        server: Some(servers.clone()),
        cookie: Some(cookie),
        ..Surroundings::default()
    });
    with.play_until("to play", |played| played.playback.report().next.is_some());
    assert_eq!(with.notices(), []);
    let mut without = played(Surroundings { server: Some(servers), ..Surroundings::default() });
    let (none, _) = without.notice("to be refused");
    let why = format!("`tcp:127.0.0.1:{port}`: the sound server refused: Access failure");
    assert_eq!(none, Notice::NoServer { tried: why });
}

/// What mixers show.
const NAME: &str = "Wayferry: work @ example";
