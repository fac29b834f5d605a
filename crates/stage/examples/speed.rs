//! What the stage and its programs do alone: `speed [busy|cells|big] [SECONDS]`, free running.

use std::env;
use std::thread;
use std::time::Duration;

use wayferry_stage::{BigCommit, Busy, Cells, Config, Endpoint, Pace, Program, Stage, freshness, percentile};

fn main() {
    let mut arguments = env::args().skip(1);
    let name = arguments.next().unwrap_or_else(|| "busy".to_owned());
    let seconds: u64 = arguments.next().map_or(3, |it| it.parse().expect("SECONDS is a number"));
    let stage = Stage::start(Config::default()).expect("the stage starts");
    let events = stage.events();
    let endpoint = Endpoint::Stream(stage.connect().expect("a connection"));
    let program = Program::start(endpoint, move |client| match name.as_str() {
        "cells" => Cells { pace: Pace::FreeRunning, ..Cells::default() }.run(client),
        "big" => BigCommit { pace: Pace::FreeRunning, ..BigCommit::default() }.run(client),
        _ => Busy { pace: Pace::FreeRunning, ..Busy::default() }.run(client),
    });
    let program = program.expect("the program starts");
    thread::sleep(Duration::from_secs(seconds));
    let window = stage.windows()[0].surface;
    let counts = program.stop().expect("it ran well");
    let events: Vec<_> = events.try_iter().collect();
    let fresh = freshness(&events, window);
    println!("{counts:?} {:.0} fps, fresh p50 {:?}", counts.fps(), percentile(&fresh, 0.5));
}
