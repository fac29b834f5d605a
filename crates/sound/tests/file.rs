//! Playback into a file, by a clock that the test moves.

mod support;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use support::{SECOND, Sender, noise, until};
use wayferry_audio::Packet;
use wayferry_proto::Time;
use wayferry_sound::{Codec, DeviceState, Notice, Output, Playback};

/// A playback with its clock.
struct Played {
    playback: Playback,
    clock: Arc<AtomicU64>,
    path: PathBuf,
}

impl Played {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("wayferry-sound-{}-{name}", std::process::id()));
        Self::at(path)
    }

    fn at(path: PathBuf) -> Self {
        let clock = Arc::new(AtomicU64::new(1000));
        let millis = Arc::clone(&clock);
        let now = move || Time::from_millis(millis.load(Ordering::SeqCst));
        let playback = Playback::start(Output::File(path.clone()), now).unwrap();
        playback.begin(Codec::Pcm);
        Self { playback, clock, path }
    }

    fn now(&self) -> Time {
        Time::from_millis(self.clock.load(Ordering::SeqCst))
    }

    /// Lets so many milliseconds pass, and the thread see them.
    fn pass(&self, millis: u64) {
        for _ in 0..millis / 10 {
            let played = self.playback.report().figures.played;
            self.clock.fetch_add(10, Ordering::SeqCst);
            if self.playback.report().device == DeviceState::Playing {
                until("a pull", || {
                    let report = self.playback.report();
                    report.figures.played > played || report.device != DeviceState::Playing
                });
            }
        }
    }

    /// Hands the packets over at the pace at which they were captured, then some time passes.
    fn play(&self, packets: Vec<Packet>) {
        for packet in packets {
            let before = self.playback.report().wakes;
            self.playback.packet(self.now(), packet);
            if self.playback.report().device != DeviceState::Playing {
                until("the thread to take it", || self.playback.report().wakes > before);
            }
            self.pass(20);
        }
        self.pass(200);
    }

    /// The samples in the file, its header checked.
    fn samples(&self) -> Vec<u8> {
        let bytes = std::fs::read(&self.path).unwrap();
        if self.path.extension().is_none() {
            return bytes;
        }
        let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
        assert_eq!(
            (&bytes[..4], &bytes[8..16], &bytes[36..40]),
            (&b"RIFF"[..], &b"WAVEfmt "[..], &b"data"[..])
        );
        assert!(number(40) + 44 <= bytes.len() && number(4) == number(40) + 36);
        assert!(bytes.len() - number(40) - 44 <= SECOND, "the header is at most a second behind");
        bytes[44..44 + number(40)].to_vec()
    }
}

impl Drop for Played {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

#[test]
fn a_file_has_each_sound_exactly_and_no_silence_between() {
    for name in ["exact.wav", "exact"] {
        let (played, mut sender) = (Played::new(name), Sender::default());
        let (first, second) = (noise(1, 60), noise(2, 40));
        played.pass(500);
        assert!(!played.path.exists(), "nothing is opened until sound comes");
        played.play(sender.sound(&first));
        until("silence", || played.playback.report().device == DeviceState::Corked);
        let after_first = played.samples().len();
        assert!(played.samples().starts_with(&first), "from the first frame on");
        assert!(played.samples()[first.len()..].iter().all(|byte| *byte == 0), "once");
        played.pass(5000);
        // What `play` let pass after the last packet was captured too.
        sender.captured += 48 * 5200;
        played.play(sender.sound(&second));
        until("silence", || played.playback.report().device == DeviceState::Corked);
        let samples = played.samples();
        assert!(samples[after_first..].starts_with(&second), "the silence between is not written");
        assert_eq!(played.playback.poll_notice(), None);
        assert_eq!(played.playback.report().concealed(), 0.0);
    }
}

#[test]
fn a_header_is_right_while_the_file_grows_and_when_it_ends() {
    let (mut played, mut sender) = (Played::new("grows.wav"), Sender::default());
    let sound = noise(3, 150);
    let mut packets = sender.sound(&sound);
    packets.truncate(150);
    played.play(packets);
    assert!(played.samples().len() >= 2 * SECOND, "each second, while it plays");
    let path = std::mem::take(&mut played.path);
    drop(played);
    let file = std::fs::read(&path).unwrap();
    let told = u32::from_le_bytes(file[40..44].try_into().unwrap()) as usize;
    assert_eq!(told + 44, file.len(), "at the end, to the byte");
    assert!(file[44..].starts_with(&sound));
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_full_disk_is_told_once_and_ends_the_file_alone() {
    let (played, mut sender) = (Played::at("/dev/full".into()), Sender::default());
    played.play(sender.sound(&noise(4, 20)));
    until("the notice", || played.playback.report().device == DeviceState::Failed);
    let notice = played.playback.poll_notice();
    assert!(matches!(&notice, Some(Notice::Lost { why }) if why.contains("/dev/full")), "{notice:?}");
    let before = played.playback.report().wakes;
    played.playback.packet(played.now(), sender.sound(&noise(5, 1)).remove(0));
    until("the packet to be dropped", || played.playback.report().wakes > before);
    assert_eq!(played.playback.poll_notice(), None);
    // The test must not remove the device.
    std::mem::forget(played);
}

#[test]
fn standard_output_is_no_file() {
    let refused = Playback::start(Output::File("-".into()), || Time::ZERO);
    assert_eq!(refused.unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
}
