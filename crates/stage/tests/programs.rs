//! The programs of benches and of the demo.

mod common;

use wayferry_stage::{
    BigCommit, Busy, Cells, ClientError, Config, Demo, Endpoint, Frames, Pace, Program, Stage, Strip, Typing,
    commits_per_second, freshness, key_latencies,
};

fn stage() -> (Stage, Endpoint) {
    let stage = Stage::start(Config { refresh_mhz: 1_000_000, ..Config::default() }).unwrap();
    let endpoint = Endpoint::Stream(stage.connect().unwrap());
    (stage, endpoint)
}

#[test]
fn busy_shows_every_frame_whole() {
    for pace in [Pace::Callbacks, Pace::FreeRunning] {
        let (stage, endpoint) = stage();
        let mut watch = stage.watch();
        let busy = Busy { width: 256, height: 128, frames: Some(20), pace, ..Busy::default() };
        let program = Program::start(endpoint, move |client| busy.run(client)).unwrap();
        let mut checksums = Vec::new();
        for frame in 1..=20 {
            let commit = watch.commit(|commit| commit.attached).unwrap();
            assert_eq!(commit.strip.map(|strip| strip.frame), Some(frame));
            checksums.push(commit.checksum);
        }
        let counts = program.join().unwrap();
        assert_eq!(counts.frames, 20);
        assert!(counts.fps() > 0.0);
        checksums.dedup();
        assert_eq!(checksums.len(), 20);
        let events: Vec<_> = stage.events().try_iter().collect();
        let surface = events.iter().find_map(|it| match &it.event {
            wayferry_stage::StageEvent::Commit(commit) => Some(commit.surface),
            _ => None,
        });
        assert_eq!(freshness(&events, surface.unwrap()).len(), 20);
        assert!(commits_per_second(&events, surface.unwrap()) > 0.0);
    }
}

#[test]
fn cells_change_one_cell_a_frame() {
    for buffers in [2, 3] {
        let (stage, endpoint) = stage();
        let mut watch = stage.watch();
        let cells = Cells { columns: 4, rows: 3, buffers, frames: Some(14), ..Cells::default() };
        let program = Program::start(endpoint, move |client| cells.run(client)).unwrap();
        let mut before = None;
        for frame in 0..15 {
            let commit = watch.commit(|commit| commit.attached).unwrap();
            if frame > 0 {
                assert_eq!((commit.damage.width, commit.damage.height), (32, 32));
                let picture = commit.checksum;
                assert_ne!(before.replace(picture), Some(picture));
            }
        }
        program.join().unwrap();
    }
}

#[test]
fn typing_answers_each_key() {
    let (stage, endpoint) = stage();
    let events = stage.events();
    let program = Program::start(endpoint, |client| Typing::default().run(client)).unwrap();
    let mut watch = stage.watch();
    let surface = watch.commit(|commit| commit.attached).unwrap().surface;
    watch.until(|it| matches!(it, wayferry_stage::StageEvent::KeyboardFocus { surface: Some(_) })).ok();
    stage.type_text("typed");
    watch.commit(|commit| commit.strip.is_some_and(|strip| strip.value == 5)).unwrap();
    let events: Vec<_> = events.try_iter().collect();
    assert_eq!(key_latencies(&events, surface).len(), 5);
    assert_eq!(program.stop().unwrap().key_presses, 5);
}

#[test]
fn a_big_commit_changes_its_strip_only() {
    let stage = Stage::start(Config { frames: Frames::RealTime, ..Config::default() }).unwrap();
    let endpoint = Endpoint::Stream(stage.connect().unwrap());
    let big = BigCommit { width: 1000, height: 600, frames: Some(4), ..BigCommit::default() };
    let program = Program::start(endpoint, move |client| big.run(client)).unwrap();
    let mut watch = stage.watch();
    let mut pictures = Vec::new();
    for frame in 1..=4 {
        let commit = watch.commit(|commit| commit.attached).unwrap();
        assert_eq!((commit.damage.width, commit.damage.height), (1000, 600));
        assert!(commit.strip.is_some_and(|strip| strip.frame == frame));
        pictures.extend(stage.screenshot(commit.surface));
    }
    program.join().unwrap();
    let below = |image: &wayferry_stage::Image| image.crop(0, Strip::HEIGHT as i32, 1000, 500);
    assert!(pictures.windows(2).all(|pair| below(&pair[0]).difference(&below(&pair[1])).is_none()));
}

#[test]
fn the_demo_draws_and_listens() {
    let (stage, endpoint) = stage();
    let mut watch = stage.watch();
    let program = Program::start(endpoint, |client| Demo::default().run(client)).unwrap();
    let surface = watch.commit(|commit| commit.attached).unwrap().surface;
    stage.type_text("hi");
    watch.commit(|commit| commit.strip.is_some_and(|strip| strip.value == 2)).unwrap();
    assert_eq!(stage.screenshot(surface).unwrap().width(), Demo::WIDTH);
    stage.close(surface);
    program.join().unwrap();
}

#[test]
fn a_program_can_be_stopped_while_it_waits() {
    let stage = Stage::start(Config { frames: Frames::Manual, ..Config::default() }).unwrap();
    let endpoint = Endpoint::Stream(stage.connect().unwrap());
    let program = Program::start(endpoint, |client| Busy::default().run(client)).unwrap();
    stage.watch().commit(|commit| commit.attached).unwrap();
    assert_eq!(program.stop().unwrap().frames, 1);
}

#[test]
fn a_program_tells_what_it_met() {
    let socket = std::env::temp_dir().join("there-is-no-such-socket");
    let program = Program::start(Endpoint::Socket(socket), |_| Ok(())).unwrap();
    assert!(matches!(program.join(), Err(ClientError::Connect(_))));
}
