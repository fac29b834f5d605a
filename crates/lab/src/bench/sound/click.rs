//! How long a sound takes from the program to the ear: a program that asks for little latency clicks twice a second.
//!
//! `pacat` plays what it is handed in real time. Between the clicks there is a sound too soft to hear, so that nothing
//! rests. The click is heard where the player writes it.

use std::io::Write;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use wayferry_host::edge::signals::Signals;
use wayferry_stage::now;

use super::ear::Ear;
use crate::bench::Setting;
use crate::bench::rig::Rig;
use crate::emulated::{Emulated, Sound, Way};
use crate::error::{Error, SessionError};
use crate::flags::OwnFlags;

/// What was measured, in milliseconds.
pub(super) struct Clicks {
    /// From the program's hand to the ear, of each click.
    pub(super) chain: Vec<f64>,
    /// Of that, from the arrival at the display on, on average.
    pub(super) heard: f64,
}

pub(super) fn measure(
    own: &OwnFlags,
    setting: Setting,
    time: Duration,
    signals: &Signals,
) -> Result<Clicks, Error> {
    let (up, down) = setting.links();
    let sound = Sound { mode: Default::default(), listening: None };
    let rig = Rig::over(own, Way::relay(up, down), Some(sound), signals)?;
    let silent = || SessionError::Lost("nothing is heard".into());
    let begin = now() + WARM_UP;
    let clicker = Clicker::start(&rig.session, begin + time)?;
    let path = rig.session.heard_file().ok_or_else(silent)?;
    let watcher = rig.session.heard().ok_or_else(silent)?;
    let (mut ear, mut latency, mut looks) = (Ear::default(), 0.0, 0.0);
    while now() < begin + time + LATEST {
        rig.pass(LOOK)?;
        ear.look(path);
        if now() > begin && now() < begin + time {
            latency += watcher.report().figures.latency.as_secs_f64() * 1e3;
            looks += 1.0;
        }
    }
    let clicks = clicker.end()?;
    let chain = delays(&clicks, &ear.beeps, begin);
    if chain.is_empty() {
        return Err(silent().into());
    }
    Ok(Clicks { chain, heard: latency / looks })
}

/// The program, and the thread that hands it its sound.
struct Clicker {
    program: Child,
    thread: JoinHandle<Vec<Duration>>,
}

impl Clicker {
    fn start(session: &Emulated, end: Duration) -> Result<Self, SessionError> {
        let server = session.sound_socket().ok_or_else(|| SessionError::Lost("no sound server".into()))?;
        let mut pacat = Command::new("pacat");
        pacat.args(["--playback", "--raw", "--format=s16le", "--rate=48000", "--channels=2"]);
        pacat.args([&format!("--latency-msec={ASKED_MS}"), "--process-time-msec=5"]);
        pacat.env("PULSE_SERVER", format!("unix:{}", server.display()));
        let program = pacat.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let mut program =
            program.map_err(|source| SessionError::System { doing: "starting `pacat`", source })?;
        let pipe = program.stdin.take();
        let run = move || pipe.map(|pipe| click(pipe, end)).unwrap_or_default();
        match std::thread::Builder::new().name("program".into()).spawn(run) {
            Ok(thread) => Ok(Self { program, thread }),
            Err(source) => {
                let _ = program.kill();
                let _ = program.wait();
                Err(SessionError::System { doing: "starting a thread", source })
            }
        }
    }

    /// When it clicked.
    fn end(mut self) -> Result<Vec<Duration>, SessionError> {
        let clicks = self.thread.join().map_err(|_| SessionError::Lost("the clicks ended".into()));
        let _ = self.program.kill();
        let _ = self.program.wait();
        clicks
    }
}

/// Hands over 5 ms every 5 ms; gives the time of each click. It ends early if the program does. While the program has
/// not taken the last, as at its start, there is nothing new: else it would wait in the pipe for ever.
fn click(mut pipe: ChildStdin, end: Duration) -> Vec<Duration> {
    let mut clicks = Vec::new();
    let begin = now();
    for step in 0.. {
        let at = begin + STEP * step;
        std::thread::sleep(at.saturating_sub(now()));
        let clicks_now = step % CLICK_EVERY == CLICK_EVERY / 2;
        let level: i16 = if clicks_now { 0x3000 } else { 3 };
        // A tone of 1 kHz, which the codec keeps.
        let frames = (0..STEP_FRAMES).flat_map(|frame| {
            let sample = if frame % 48 < 24 { level } else { -level };
            [sample, sample].map(i16::to_le_bytes).concat()
        });
        let bytes: Vec<u8> = frames.collect();
        let waits = rustix::io::ioctl_fionread(&pipe).is_ok_and(|bytes| bytes > 0);
        if clicks_now && !waits {
            clicks.push(now());
        }
        if now() >= end || !waits && pipe.write_all(&bytes).is_err() {
            break;
        }
    }
    clicks
}

/// Each click since `begin` with the first beep after it, in milliseconds.
fn delays(clicks: &[Duration], beeps: &[Duration], begin: Duration) -> Vec<f64> {
    let delay = |click: &Duration| {
        let beep = beeps.iter().find(|beep| *beep >= click)?;
        Some((*beep - *click).as_secs_f64() * 1e3).filter(|delay| *delay < LATEST.as_secs_f64() * 1e3)
    };
    clicks.iter().filter(|click| **click >= begin).filter_map(delay).collect()
}

/// What the program asks for.
pub(super) const ASKED_MS: u32 = 20;

/// At once.
const STEP: Duration = Duration::from_millis(5);
const STEP_FRAMES: usize = 240;

/// In steps.
const CLICK_EVERY: u32 = 100;

/// Between two looks.
const LOOK: Duration = Duration::from_millis(1);

/// Until the player trusts the link.
const WARM_UP: Duration = Duration::from_secs(8);

/// A click that is not heard until then is lost.
const LATEST: Duration = Duration::from_millis(450);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_click_has_the_beep_after_it() {
        let ms = |times: &[u64]| times.iter().copied().map(Duration::from_millis).collect::<Vec<_>>();
        let delays = delays(&ms(&[500, 1500, 2500, 3500]), &ms(&[520, 1570, 3590]), ms(&[1000])[0]);
        assert_eq!(delays.iter().map(|ms| ms.round()).collect::<Vec<_>>(), [70.0, 90.0]);
    }
}
