//! Shows the demo program: `demo OUT.png [SECONDS]` on a stage, `demo` on the compositor of `WAYLAND_DISPLAY`.

use std::env;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use wayferry_stage::{Config, Demo, Endpoint, Program, Stage, percentile};

fn main() {
    let mut arguments = env::args().skip(1);
    let Some(out) = arguments.next() else {
        let runtime = env::var("XDG_RUNTIME_DIR").expect("XDG_RUNTIME_DIR is set");
        let socket =
            PathBuf::from(runtime).join(env::var("WAYLAND_DISPLAY").expect("WAYLAND_DISPLAY is set"));
        let program = Program::start(Endpoint::Socket(socket), |client| Demo::default().run(client));
        println!("{:?}", program.expect("the program starts").join().expect("it ran well"));
        return;
    };
    let seconds: f64 = arguments.next().map_or(8.0, |it| it.parse().expect("SECONDS is a number"));
    let stage = Stage::start(Config::default()).expect("the stage starts");
    let events = stage.events();
    let stream = stage.connect().expect("a connection");
    let program = Program::start(Endpoint::Stream(stream), |client| Demo::default().run(client));
    let program = program.expect("the program starts");
    thread::sleep(Duration::from_secs_f64(seconds));
    stage.type_text("Hi!");
    thread::sleep(Duration::from_millis(300));
    let window = stage.windows()[0].surface;
    let picture = stage.screenshot_window(window).expect("it shows something");
    picture.write_png(Path::new(&out)).expect("the picture is written");
    let counts = program.stop().expect("it ran well");
    println!("{counts:?} {:.1} fps", counts.fps());
    let events: Vec<_> = events.try_iter().collect();
    println!("keys {:?}", wayferry_stage::key_latencies(&events, window));
    println!("fresh p50 {:?}", percentile(&wayferry_stage::freshness(&events, window), 0.5));
}
