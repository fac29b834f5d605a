//! Playback through libasound, where no sound server is. Its plugin `file`, with `null` in place of a card, writes what
//! is played to a named pipe: so the card takes samples as the test reads them, and the clock goes on with that.

#![cfg(feature = "alsa")]

mod support;

use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::io::ioctl_fionread;
use rustix::pipe::fcntl_setpipe_size;
use support::{FRAMES, PATIENCE, SECOND, Sender, noise, until};
use wayferry_audio::CHANNELS;
use wayferry_proto::Time;
use wayferry_sound::{Codec, DeviceState, Notice, Output, Playback, Surroundings};

/// A playback with its clock.
struct Played {
    playback: Playback,
    clock: Arc<AtomicU64>,
}

impl Played {
    fn new() -> Self {
        let clock = Arc::new(AtomicU64::new(1000));
        let millis = Arc::clone(&clock);
        let now = move || Time::from_millis(millis.load(Ordering::SeqCst));
        let surroundings = Surroundings { has_cards: true, ..Surroundings::default() };
        let output = Output::Desk { name: "test".into() };
        let playback = Playback::start_in(surroundings, output, now).unwrap();
        playback.begin(Codec::Pcm);
        Self { playback, clock }
    }

    fn now(&self) -> Time {
        Time::from_millis(self.clock.load(Ordering::SeqCst))
    }

    fn state(&self) -> DeviceState {
        self.playback.report().device
    }

    /// One sound, until the card is closed, and what it took.
    fn sound(&self, card: &mut File, sender: &mut Sender, samples: &[u8]) -> Vec<u8> {
        let mut taken = Vec::new();
        sender.captured = self.clock.load(Ordering::SeqCst) * 48;
        let mut packets = sender.sound(samples).into_iter();
        self.playback.packet(self.now(), packets.next().unwrap());
        soon("the card to be open", || {
            // It is opened when the one before has said all that it had.
            if ioctl_fionread(&*card).unwrap() > 0 {
                let _ = card.read(&mut [0; 2 * PAGE]).unwrap();
            }
            self.state() == DeviceState::Playing
        });
        soon("the pipe to be full", || ioctl_fionread(&*card).unwrap() as usize == PIPE);
        // The ring is filled again meanwhile.
        let played = || self.playback.report().figures.played;
        let mut before = played();
        until("the ring to be full", || std::mem::replace(&mut before, played()) == before);
        while self.state() == DeviceState::Playing {
            let before = played();
            let mut piece = [0; PACKET];
            card.read_exact(&mut piece).unwrap();
            taken.extend(piece);
            self.clock.fetch_add(20, Ordering::SeqCst);
            if let Some(packet) = packets.next() {
                self.playback.packet(self.now(), packet);
            }
            soon("as much to be pulled", || {
                played().saturating_sub(before).as_millis() >= 20 || self.state() != DeviceState::Playing
            });
        }
        taken
    }
}

/// Looks as often as it can until it is so: the other threads do it at once.
fn soon(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        std::thread::yield_now();
    }
}

/// Runs a test in a process of its own, whose ALSA has only this device: libasound takes its configuration from the
/// environment. What that process wrote to stderr; in it, `body` is run, and it writes nothing.
fn alone(name: &str, device: &str, body: impl Fn(&Path)) -> String {
    if let Some(folder) = std::env::var_os(ALONE) {
        body(&PathBuf::from(folder));
        return String::new();
    }
    let folder = std::env::temp_dir().join(format!("wayferry-card-{}-{name}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let configuration = folder.join("asound.conf");
    fs::write(&configuration, device.replace("PIPE", folder.join("pipe").to_str().unwrap())).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([name, "--exact", "--nocapture"]);
    let ended = command.env(ALONE, &folder).env("ALSA_CONFIG_PATH", configuration).output().unwrap();
    fs::remove_dir_all(folder).unwrap();
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(ended.status.success(), "{}{said}", String::from_utf8_lossy(&ended.stdout));
    said
}

/// The pipe that stands for the card.
fn pipe(folder: &Path) -> PathBuf {
    let path = folder.join("pipe");
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    path
}

#[test]
fn alsas_default_plays_exactly_what_is_played() {
    alone("alsas_default_plays_exactly_what_is_played", TO_PIPE, |folder| {
        // Also for writing, so that it has no end when a card is closed.
        let mut card = OpenOptions::new().read(true).write(true).open(pipe(folder)).unwrap();
        fcntl_setpipe_size(&card, 2 * PAGE).unwrap();
        let (played, mut sender) = (Played::new(), Sender::default());
        assert_eq!(played.state(), DeviceState::Closed);
        for seed in 1..3 {
            let sound = noise(seed, 50);
            let taken = played.sound(&mut card, &mut sender, &sound);
            let first = (0..taken.len()).step_by(4).find(|at| taken[*at..][..4] != [0; 4]).unwrap();
            assert!(taken[first..].starts_with(&sound), "every sample");
            let after = &taken[first + sound.len()..];
            assert!(after.iter().all(|byte| *byte == 0), "once");
            // The sender's second of silence, the desk's, and what was on its way.
            assert!(after.len() < 5 * SECOND / 2, "{}", after.len());
            assert_eq!(played.state(), DeviceState::Closed);
        }
        assert_eq!(played.playback.poll_notice(), None);
        assert_eq!(played.playback.report().concealed(), 0.0);
    });
}

#[test]
fn without_a_card_both_are_named_and_libasound_is_silent() {
    let said = alone("without_a_card_both_are_named_and_libasound_is_silent", "", |_| {
        let played = Played::new();
        played.playback.packet(played.now(), Sender::default().packet(noise(1, 1)));
        let mut notice = None;
        until("the notice", || {
            notice = notice.take().or_else(|| played.playback.poll_notice());
            notice.is_some()
        });
        let Some(Notice::NoServer { tried }) = notice else { panic!("{notice:?}") };
        assert!(tried.starts_with("`PULSE_SERVER`: ") && tried.contains("; ALSA's `default`: "), "{tried}");
    });
    assert!(!said.contains("ALSA lib"), "{said}");
}

#[test]
fn a_card_that_opens_for_ever_holds_up_neither_the_caller_nor_the_end() {
    // No one reads the pipe, so it cannot be opened.
    alone("a_card_that_opens_for_ever_holds_up_neither_the_caller_nor_the_end", TO_PIPE, |folder| {
        pipe(folder);
        let (played, mut sender) = (Played::new(), Sender::default());
        played.playback.packet(played.now(), sender.packet(noise(1, 1)));
        until("the card to be opened", || played.state() == DeviceState::Opening);
        let before = played.playback.report().wakes;
        played.playback.packet(played.now(), sender.packet(noise(2, 1)));
        until("the packet to be taken", || played.playback.report().wakes > before);
        assert_eq!((played.state(), played.playback.poll_notice()), (DeviceState::Opening, None));
        drop(played);
    });
}

#[test]
fn regression_alsa_that_never_answers_is_asked_again_and_again() {
    alone("regression_alsa_that_never_answers_is_asked_again_and_again", TO_PIPE, |folder| {
        let path = pipe(folder);
        let (played, mut sender) = (Played::new(), Sender::default());
        let mut packet = |after: u64| {
            played.clock.fetch_add(after, Ordering::SeqCst);
            let wakes = played.playback.report().wakes;
            played.playback.packet(played.now(), sender.packet(noise(1, 1)));
            // It wakes up for the packet, and for what becomes of the card.
            wakes + 1
        };
        packet(0);
        until("the card to be opened", || played.state() == DeviceState::Opening);
        packet(40_000);
        until("the card to be given up", || played.state() == DeviceState::Waiting);
        let notice = played.playback.poll_notice();
        assert!(
            matches!(&notice, Some(Notice::NoServer { tried }) if tried.ends_with("does not answer")),
            "{notice:?}"
        );
        for _ in 0..3 {
            let wakes = packet(5000);
            until("another try", || {
                played.playback.report().wakes > wakes && played.state() == DeviceState::Waiting
            });
            assert_eq!(card_threads(), 1);
        }
        let _card = OpenOptions::new().read(true).write(true).open(path).unwrap();
        until("ALSA to answer", || card_threads() == 0);
        packet(5000);
        until("the card to be open", || played.state() == DeviceState::Playing);
    });
}

/// How many threads of this process have a card open, or open one.
fn card_threads() -> usize {
    let names = fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path().join("comm"));
    // One that has just ended has no name.
    names.filter(|name| fs::read_to_string(name).is_ok_and(|name| name == "wayferry-card\n")).count()
}

/// A card's periods were those that it has at any rate. So ALSA's mixer could not be opened, nor what is like it here:
/// the plugin `a52` has one period alone.
#[test]
fn regression_a_card_with_one_period_alone_cannot_be_opened() {
    alone("regression_a_card_with_one_period_alone_cannot_be_opened", TO_PIPE_BY_A52, |folder| {
        let mut card = OpenOptions::new().read(true).write(true).open(pipe(folder)).unwrap();
        let (played, mut sender) = (Played::new(), Sender::default());
        played.playback.packet(played.now(), sender.packet(noise(1, 1)));
        until("the card to be tried", || {
            !matches!(played.state(), DeviceState::Closed | DeviceState::Opening)
        });
        assert_eq!((played.playback.poll_notice(), played.state()), (None, DeviceState::Playing));
        card.read_exact(&mut [0; PAGE]).unwrap();
    });
}

/// ALSA's `default`, which writes what it plays to the pipe.
const TO_PIPE: &str = r#"
pcm.!default {
    type plug
    slave.pcm {
        type file
        file "PIPE"
        format "raw"
        slave.pcm { type null }
    }
}
"#;

/// The same, as Dolby Digital.
const TO_PIPE_BY_A52: &str = r#"
pcm.pipe {
    type file
    file "PIPE"
    format "raw"
    slave.pcm { type null }
}
pcm.!default {
    type plug
    slave.pcm {
        type a52
        channels 2
        bitrate 256
        format S16_LE
        slavepcm "pipe"
    }
}
"#;

/// Where the child finds its folder.
const ALONE: &str = "WAYFERRY_TEST_ALONE";

/// Bytes of 20 ms: two periods of the card, which share a page of the pipe.
const PACKET: usize = FRAMES * CHANNELS * 2;
const PAGE: usize = 4096;

/// The pipe has two pages, and takes no more than this.
const PIPE: usize = 2 * PACKET;
