//! How far a film's sound is from its picture: mpv plays a clip with a flash and a beep each second.
//!
//! The flash is seen where the compositor shows it, the beep where the player writes what is heard. The program keeps
//! both together by what the session's sound server tells it; nothing here corrects anything.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use wayferry_host::edge::signals::Signals;
use wayferry_host::edge::socket::RuntimeDir;
use wayferry_stage::{SurfaceId, now};

use super::ear::Ear;
use crate::bench::Setting;
use crate::bench::rig::Rig;
use crate::emulated::{Sound, Way};
use crate::error::{Error, SessionError};
use crate::flags::OwnFlags;

/// How a film was heard and seen.
pub(super) struct Film {
    /// Sound after picture, for each flash, in milliseconds: negative if it was before.
    pub(super) apart: Vec<f64>,
    /// Of its sound, in per cent.
    pub(super) concealed: f64,
}

pub(super) fn measure(
    own: &OwnFlags,
    setting: Setting,
    time: Duration,
    signals: &Signals,
) -> Result<Film, Error> {
    let (up, down) = setting.links();
    let sound = Sound { mode: Default::default(), listening: None };
    let rig = Rig::over(own, Way::relay(up, down), Some(sound), signals)?;
    let dir = RuntimeDir::private()?;
    let clip = dir.path().join("clip.mkv");
    make(&clip, WARM_UP + time)?;
    let _mpv = Mpv::start(&rig, &clip, dir.path())?;
    let (window, _) = rig.window(TITLE)?;
    let lost = |_| SessionError::Lost("nothing is heard".into());
    let heard = rig.session.heard_file().ok_or_else(|| lost(()))?;
    let mut watch = Watch::new(window);
    let end = now() + WARM_UP + time;
    let begin = now() + WARM_UP;
    while now() < end {
        rig.pass(LOOK)?;
        watch.look(&rig, heard);
    }
    let heard = rig.session.heard().ok_or_else(|| lost(()))?.report();
    Ok(Film { apart: apart(&watch.flashes, &watch.ear.beeps, begin), concealed: heard.concealed() * 100.0 })
}

/// A flash and a beep, each of a tenth of a second, in each second.
fn make(clip: &Path, time: Duration) -> Result<(), SessionError> {
    let seconds = time.as_secs() + 5;
    let picture = format!(
        "color=black:s=320x240:r=50:d={seconds},drawbox=color=white:t=fill:enable='lt(mod(t,1),0.1)'"
    );
    let sound = format!("aevalsrc='if(lt(mod(t,1),0.1),0.5*sin(2*PI*1000*t),0)':s=48000:d={seconds}");
    let mut ffmpeg = Command::new("ffmpeg");
    ffmpeg.args([
        "-nostdin",
        "-loglevel",
        "error",
        "-f",
        "lavfi",
        "-i",
        &picture,
        "-f",
        "lavfi",
        "-i",
        &sound,
    ]);
    ffmpeg.args(["-c:v", "mpeg4", "-q:v", "3", "-c:a", "pcm_s16le", "-ac", "2"]).arg(clip);
    let system = |source| SessionError::System { doing: "making a clip with `ffmpeg`", source };
    match ffmpeg.stdin(Stdio::null()).status().map_err(system)?.success() {
        true => Ok(()),
        false => Err(system(std::io::Error::other("it failed"))),
    }
}

/// A player that is ended with this value.
struct Mpv(Child);

impl Mpv {
    fn start(rig: &Rig<'_>, clip: &Path, home: &Path) -> Result<Self, SessionError> {
        let mut mpv = Command::new("mpv");
        mpv.args(["--no-config", "--really-quiet", "--vo=wlshm", "--ao=pulse", "--no-osc", "--osd-level=0"]);
        mpv.arg(format!("--title={TITLE}")).arg(clip);
        mpv.env("WAYLAND_DISPLAY", rig.session.socket()).env("XDG_RUNTIME_DIR", home).env("HOME", home);
        if let Some(socket) = rig.session.sound_socket() {
            mpv.env("PULSE_SERVER", format!("unix:{}", socket.display()));
        }
        let child = mpv.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        child.map(Self).map_err(|source| SessionError::System { doing: "starting `mpv`", source })
    }
}

impl Drop for Mpv {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// When flashes were seen, and what is heard.
struct Watch {
    window: SurfaceId,
    is_bright: bool,
    flashes: Vec<Duration>,
    ear: Ear,
}

impl Watch {
    fn new(window: SurfaceId) -> Self {
        Self { window, is_bright: false, flashes: Vec::new(), ear: Ear::default() }
    }

    fn look(&mut self, rig: &Rig<'_>, heard: &Path) {
        let image = rig.stage.screenshot(self.window);
        let at = now();
        let middle = image.and_then(|image| image.pixel(image.width() / 2, image.height() / 2));
        let is_bright = middle.is_some_and(|pixel| pixel & 0xff > 0x80);
        if is_bright && !std::mem::replace(&mut self.is_bright, is_bright) {
            self.flashes.push(at);
        }
        self.is_bright = is_bright;
        self.ear.look(heard);
    }
}

/// Each flash since `begin` with the beep that is next to it.
fn apart(flashes: &[Duration], beeps: &[Duration], begin: Duration) -> Vec<f64> {
    let apart = |flash: Duration, beep: &Duration| (beep.as_secs_f64() - flash.as_secs_f64()) * 1e3;
    let nearest = |flash: Duration| {
        let all = beeps.iter().map(|beep| apart(flash, beep));
        all.min_by(|a, b| a.abs().total_cmp(&b.abs())).filter(|apart| apart.abs() < 500.0)
    };
    flashes.iter().filter(|flash| **flash >= begin).filter_map(|flash| nearest(*flash)).collect()
}

const TITLE: &str = "lips";

/// Until the player trusts the link, and the program what it is told.
const WARM_UP: Duration = Duration::from_secs(8);

/// Between two looks.
const LOOK: Duration = Duration::from_millis(3);

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(times: &[u64]) -> Vec<Duration> {
        times.iter().copied().map(Duration::from_millis).collect()
    }

    #[test]
    fn each_flash_has_the_beep_next_to_it() {
        let apart =
            apart(&ms(&[500, 1500, 2500, 9000]), &ms(&[520, 1470, 2510]), Duration::from_millis(1000));
        assert_eq!(apart.iter().map(|ms| ms.round()).collect::<Vec<_>>(), [-30.0, 10.0]);
    }
}
