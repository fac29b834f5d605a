//! Honest programs that have much of something: a limit holds them back, it does not end them.

use std::time::Duration;

use wayferry_wayland::wire::Arg;

use crate::honest::{Honest, Window};
use crate::rig::Rig;

const FRAME: Duration = Duration::from_micros(16_667);

/// Windows of this many pixels a side that are shown and have been painted once.
fn windows(rig: &mut Rig, program: &mut Honest, count: usize, side: i32) -> Vec<Window> {
    let mut windows: Vec<Window> = (0..count).map(|_| program.window(side)).collect();
    program.send(rig);
    rig.finish();
    program.read(rig);
    windows.iter_mut().for_each(|window| program.paint(window));
    program.send(rig);
    rig.finish();
    windows
}

/// Every window paints as often as it may.
fn spin(rig: &mut Rig, program: &mut Honest, windows: &mut [Window]) {
    program.read(rig);
    let may: Vec<bool> = windows.iter().map(|window| program.may_paint(window)).collect();
    for (window, _) in windows.iter_mut().zip(may).filter(|(_, may)| *may) {
        program.paint(window);
    }
    program.send(rig);
    rig.pass(FRAME);
    rig.flush(u64::MAX, false);
}

/// Neither half has ended, and the program is not told otherwise.
fn all_live(rig: &mut Rig, program: &mut Honest) {
    assert_eq!((rig.app.end(), rig.display.end()), (None, None));
    program.read(rig);
}

/// Their units were more together than the display side holds.
#[test]
fn regression_forty_windows_with_spinners_live_through_outages() {
    for seconds in [5, 25, 120] {
        let mut rig = Rig::new();
        let mut program = Honest::new(&mut rig);
        let mut windows = windows(&mut rig, &mut program, 40, 16);
        // Nothing is delivered.
        for _ in 0..seconds * 60 {
            spin(&mut rig, &mut program, &mut windows);
        }
        let under_way = rig.units.values().filter(|(_, applied)| !applied).count();
        assert!((40..=1024).contains(&under_way), "{under_way} units were under way after {seconds} s");
        rig.finish();
        all_live(&mut rig, &mut program);
        // They go on.
        let before = rig.compositor.log.len();
        for _ in 0..4 {
            spin(&mut rig, &mut program, &mut windows);
            rig.finish();
        }
        all_live(&mut rig, &mut program);
        assert!(rig.compositor.log.len() >= before + 40, "they spin on");
        windows.iter().for_each(|window| program.close(window));
        program.send(&mut rig);
        rig.finish();
        all_live(&mut rig, &mut program);
        assert!(rig.compositor.scene().is_empty());
    }
}

/// A parent with two thousand children, each of which has content, and all of them in another order than they came.
#[test]
fn regression_2000_subsurfaces_live() {
    const COUNT: i32 = 2000;
    let mut rig = Rig::new();
    let mut program = Honest::new(&mut rig);
    let mut windows = windows(&mut rig, &mut program, 1, 16);
    let parent = windows[0].surface;
    let factory = program.global("wl_subcompositor");
    let (_memory, buffer) = program.buffer(4, 4);
    for n in 0..COUNT {
        let child = program.surface();
        let role = program.make(factory, "get_subsurface", vec![Arg::Object(child), Arg::Object(parent)]);
        program.request(role, "set_position", [n % 40, n / 40].map(Arg::Int).into());
        program.request(role, "place_below", vec![Arg::Object(parent)]);
        program.attach(child, buffer);
        program.request(child, "commit", vec![]);
    }
    program.paint(&mut windows[0]);
    program.send(&mut rig);
    rig.finish();
    all_live(&mut rig, &mut program);
    let scene = rig.compositor.scene();
    assert_eq!(scene.len(), 1 + COUNT as usize);
    assert!(scene[1..].iter().all(|child| child.is_seen()));
    assert!(scene[COUNT as usize].is_at((COUNT - 1) % 40, (COUNT - 1) / 40));
}
