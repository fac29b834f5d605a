//! Real programs over a link that takes 5 Mbit/s, where what does not fit may be lossy: at rest every pixel is as it is
//! without Wayferry. That something is lossy on its way, the scenario `lossy` of crates/cli shows.

use std::time::Duration;

use wayferry_stage::LinkConfig;

use crate::info::info;
use crate::programs::{
    Scene, WIDGETS, direct, firefox, keeps_changing, nothing, page_is_there, pose, through,
};
use crate::rig::{Compositor, Home, Launch, Session, Sway, until};

#[test]
fn a_log_that_scrolls_in_foot_is_exact_at_rest() {
    let prepare = |home: &Home| home.launch("foot").args(["sh", "-c", "seq -s ' ' 1 20000; exec cat"]);
    is_exact_at_rest(&Sway::start(), &Scene { name: "foot", prepare, act: nothing });
}

#[test]
fn widgets_are_exact_at_rest() {
    is_exact_at_rest(&Sway::with_output(1600, 900), &WIDGETS);
}

#[test]
fn a_picture_in_mpv_is_exact_at_rest() {
    // Every pixel has neighbours of other colours: nothing of it fits.
    let prepare = |home: &Home| {
        let clip = home.file("still.png").display().to_string();
        let source = "mandelbrot=size=800x600,noise=alls=12:all_seed=1";
        let make = ["-loglevel", "error", "-f", "lavfi", "-i", source, "-frames:v", "1", &clip];
        home.launch("ffmpeg").args(make).run();
        let options = ["--no-config", "--vo=wlshm", "--no-osc", "--osd-level=0", "--cursor-autohide=always"];
        home.launch("mpv").args(options).args(["--image-display-duration=inf", &clip])
    };
    is_exact_at_rest(&Sway::start(), &Scene { name: "mpv", prepare, act: nothing });
}

#[test]
fn a_video_in_mpv_is_exact_when_it_stops() {
    let sway = Sway::with_output(1600, 900);
    let mut pointer = sway.pointer();
    let mut scene = Scene { name: "mpv", prepare: mpv_to_its_end, act: |sway, _| keeps_changing(sway) };
    let (desk, expected) = direct(&scene, &sway, &mut pointer);
    let mut session = Session::start_over(&sway, narrow(), &[]);
    let mut program = session.join(mpv_to_its_end(session.home())).start();
    until("a video", || {
        let sides = info(session.home());
        sides[0]["surfaces"].as_array()?.iter().any(|surface| surface["videos"] == 1).then_some(())
    });
    scene.act = nothing;
    pose(&scene, &sway, &desk, &mut pointer);
    sway.shows("mpv through a session", &expected);
    program.must_run();
    session.must_run();
}

#[test]
#[ignore = "heavy: `make test-full` installs and runs it"]
fn a_page_that_scrolls_in_firefox_is_exact_at_rest() {
    // Without its bar, whose corners are not always the same.
    let prepare = |home: &Home| {
        let page = "<title>page</title><style>html{scroll-behavior:smooth;scrollbar-width:none}div{height:300px;margin:40px;\
                    background:conic-gradient(red,yellow,lime,aqua,blue,magenta,red)}</style>\
                    <script>for(i=0;i<40;i++)document.write('<p>line '+i+' of text</p>',i%5?'':'<div></div>');\
                    onload=()=>scrollTo(0,2500)</script>";
        firefox(home, page)
    };
    is_exact_at_rest(&Sway::start(), &Scene { name: "firefox", prepare, act: |sway, _| page_is_there(sway) });
}

fn is_exact_at_rest(sway: &Sway, scene: &Scene) {
    let mut pointer = sway.pointer();
    let (desk, expected) = direct(scene, sway, &mut pointer);
    through(Session::start_over(sway, narrow(), &[]), scene, sway, &desk, &mut pointer, &expected);
}

/// A video that plays to its end, and stays there; of its last second all frames are alike, for mpv may leave some out.
/// Each is coded by itself: frames that are coded as changes become a little better for a while.
pub(crate) fn mpv_to_its_end(home: &Home) -> Launch {
    let clip = home.file("video.mkv").display().to_string();
    let source = "mandelbrot=size=1280x720:rate=30,noise=alls=6:allf=t:all_seed=1,trim=end=6,\
                  tpad=stop_mode=clone:stop_duration=1";
    let make = ["-loglevel", "error", "-f", "lavfi", "-i", source];
    home.launch("ffmpeg").args(make).args(["-c:v", "mpeg4", "-g", "1", "-q:v", "3", &clip]).run();
    let options = ["--no-config", "--vo=wlshm", "--no-osc", "--osd-level=0", "--cursor-autohide=always"];
    home.launch("mpv").args(options).args(["--ao=null", "--keep-open=yes", &clip])
}

pub(crate) fn narrow() -> LinkConfig {
    LinkConfig {
        rate: Some(5_000_000),
        one_way_delay: Duration::from_millis(25),
        queue_bytes: 64_000,
        ..LinkConfig::default()
    }
}
