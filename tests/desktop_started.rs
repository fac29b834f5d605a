//! Sound and video of programs on a screen that was started for its session.

use crate::desktop::APP_ID;
use crate::info::info;
use crate::rig::{Compositor, Home, Picture, Session, Sway, until};
use crate::slow_link::{mpv_to_its_end, narrow};
use crate::sound::Ear;

/// A compositor that `wayferry screen` has started: the only one of this runtime directory.
struct Started {
    home: Home,
}

impl Compositor for Started {
    fn home(&self) -> &Home {
        &self.home
    }

    fn display(&self) -> &str {
        "wayland-1"
    }

    fn screenshot(&self) -> Picture {
        Picture::from_ppm(&self.launch("grim").args(["-t", "ppm", "-"]).run())
    }
}

#[test]
fn a_tone_of_a_program_on_a_screen_that_was_started_is_heard_here() {
    let (desk, far) = (Sway::start(), Home::new());
    let sink = format!("--audio-sink=file:{}", desk.home().file("heard.raw").display());
    let ferry = desk.home().wayferry();
    let binary = ferry.words()[0].clone();
    let runtime = format!("XDG_RUNTIME_DIR={}", far.runtime().display());
    let way =
        [sink.as_str(), "--title-prefix=", "desktop", "through", "--remote-bin", &binary, "env", &runtime];
    let tone = ["-q", "-n", "-t", "pulseaudio", "default", "synth", "60", "sine", "440", "gain", "-6"];
    let launch = ferry.env("WAYLAND_DISPLAY", desk.display()).args(way).args(["--", "sox"]).args(tone);
    let mut ear = Ear { attach: launch.start(), sway: desk };
    ear.sway.window("the screen", |window| window.app_id == APP_ID);
    ear.hears_a_tone();
    ear.hears_a_tone();
    let pitch = ear.pitch();
    assert!((438..=442).contains(&pitch), "{pitch} periods in a second");
    ear.attach.must_run();
}

#[test]
fn a_video_on_a_screen_that_was_started_crosses_as_one_and_is_exact_when_it_stops() {
    let (desk, there) = (Sway::with_output(1600, 900), Started { home: Home::new() });
    let mut session = Session::start_over(&desk, narrow(), &[]);
    let runtime = there.home().runtime().display().to_string();
    let screen = session.home().wayferry().args(["screen", "--runtime-dir", &runtime]);
    let mut screen = session.join(screen).start();
    desk.window("the screen", |window| window.app_id == APP_ID && window.focused);
    until("the screen to have the window's size", || {
        (there.screenshot().size() == desk.size()).then_some(())
    });
    // Over what sway has around windows by itself: a bar with a clock that never rests.
    let player = mpv_to_its_end(there.home()).arg("--fullscreen");
    let mut player = player.env("WAYLAND_DISPLAY", there.display()).start();
    until("a video", || {
        let sides = info(session.home());
        sides[0]["surfaces"].as_array()?.iter().any(|surface| surface["videos"] == 1).then_some(())
    });
    let expected = there.settled();
    desk.shows("a video on a screen", &expected);
    assert!(expected.colours() > 1000, "it is the video");
    player.must_run();
    screen.must_run();
    session.must_run();
}
