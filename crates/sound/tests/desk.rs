//! Playback through real sound servers: PulseAudio, and PipeWire in PulseAudio's place. Their null sinks run on timers,
//! and the sinks' monitors are recorded.

mod server;
mod support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use server::Server;
use support::{Sender, noise, until};
use wayferry_audio::Packet;
use wayferry_proto::Time;
use wayferry_sound::{Codec, DeviceState, Notice, Output, Playback, Surroundings};

/// A playback with the clock that it has, and a thread that hands it packets.
struct Played {
    playback: Arc<Playback>,
    began: Instant,
    sender: Sender,
}

impl Played {
    fn new(surroundings: Surroundings) -> Self {
        let began = Instant::now();
        let now = move || Time::new(began.elapsed());
        let output = Output::Desk { name: NAME.into() };
        let playback = Arc::new(Playback::start_in(surroundings, output, now).unwrap());
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

    fn state(&self) -> DeviceState {
        self.playback.report().device
    }

    fn notices(&self) -> Vec<Notice> {
        std::iter::from_fn(|| self.playback.poll_notice()).collect()
    }
}

fn is_exact(server: &Server) {
    let mut played = Played::new(server.surroundings());
    let recording = server.record();
    // After 5 s the player trusts a good link and plays earlier, which is a splice: so the first sound and its silence
    // are longer than that.
    for (seed, packets) in [(1, 200), (2, 100)] {
        let sound = noise(seed, packets);
        played.sound(&sound);
        until("the sound in the recording", || recording.has(&sound));
        assert_eq!(recording.count(&sound[..400]), 1, "once");
        until("the stream to be corked", || played.state() == DeviceState::Corked);
    }
    assert!(server.list("sink-inputs").contains(NAME), "the mixer shows it");
    assert_eq!(played.notices(), []);
    let report = played.playback.report();
    assert_eq!((report.concealed(), report.overflowed), (0.0, 0), "{report:?}");
}

#[test]
fn pulseaudio_plays_exactly_what_is_played() {
    is_exact(&Server::pulseaudio());
}

/// What mixers show.
const NAME: &str = "Wayferry: work @ example";
