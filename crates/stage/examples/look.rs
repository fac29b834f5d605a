//! Runs a program on a stage and writes what it shows: `look OUT.png SECONDS [--type TEXT] PROGRAM [ARGUMENT…]`.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use wayferry_stage::{Config, Format, Stage, StageEvent};

fn main() {
    let mut arguments: Vec<String> = env::args().skip(1).collect();
    assert!(arguments.len() >= 3, "look OUT.png SECONDS [--type TEXT] PROGRAM [ARGUMENT…]");
    let out = arguments.remove(0);
    let seconds: u64 = arguments.remove(0).parse().expect("SECONDS is a number");
    let text = (arguments[0] == "--type").then(|| {
        arguments.remove(0);
        arguments.remove(0)
    });
    let directory = PathBuf::from(env::var("XDG_RUNTIME_DIR").unwrap_or_else(|_| "/tmp".to_owned()));
    let socket = directory.join(format!("stage-{}", std::process::id()));
    let config = Config { socket: Some(socket.clone()), formats: Format::ALL.to_vec(), ..Config::default() };
    let stage = Stage::start(config).expect("the stage starts");
    let mut program = Command::new(&arguments[0])
        .args(&arguments[1..])
        .env("WAYLAND_DISPLAY", &socket)
        .env_remove("DISPLAY")
        .spawn()
        .expect("the program starts");
    let mut watch = stage.watch();
    let appeared = watch.until(|event| matches!(event, StageEvent::FirstAttach { .. }));
    println!("{appeared:?}");
    stage.pointer_motion(200.0, 150.0);
    if let Some(text) = text {
        stage.type_text(&text);
    }
    thread::sleep(Duration::from_secs(seconds));
    stage.screenshot_output().write_png(Path::new(&out)).expect("the picture is written");
    println!("{:?}", stage.windows());
    let events = watch.drain();
    let commits = events.iter().filter(|it| matches!(it.event, StageEvent::Commit(_))).count();
    for stamped in events.iter().filter(|it| !matches!(it.event, StageEvent::Commit(_))).take(60) {
        println!("{:?}", stamped.event);
    }
    println!("{commits} commits");
    let _ = program.kill();
    let _ = program.wait();
}
