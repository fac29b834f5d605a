//! Real programs, unmodified: shown elsewhere after their display was killed, they look as if they had been there
//! always.

use crate::programs::{
    FIREFOX, FOOT, GTK4_DEMO, MPV_PAUSED, QTERMINAL, Scene, WESTON_TERMINAL, WIDGETS, direct, keeps_changing,
    mpv, pose,
};
use crate::rig::{Compositor, Session, Sway, until};
use crate::sessions::attach_here;

#[test]
fn foot_is_shown_elsewhere() {
    is_shown_elsewhere(&FOOT);
}

#[test]
fn weston_terminal_is_shown_elsewhere() {
    is_shown_elsewhere(&WESTON_TERMINAL);
}

#[test]
fn gtk4_demo_is_shown_elsewhere() {
    is_shown_elsewhere(&GTK4_DEMO);
}

#[test]
fn gtk4_widget_factory_is_shown_elsewhere() {
    is_shown_on(&Sway::with_output(1600, 900), &Sway::with_output(1700, 1000), &WIDGETS);
}

#[test]
fn qterminal_is_shown_elsewhere() {
    is_shown_elsewhere(&QTERMINAL);
}

#[test]
fn mpv_paused_is_shown_elsewhere() {
    is_shown_elsewhere(&MPV_PAUSED);
}

#[test]
#[ignore = "heavy: `make test-full` installs and runs it"]
fn firefox_is_shown_elsewhere() {
    is_shown_elsewhere(&FIREFOX);
}

/// Not on weston: mpv's pictures are black there without Wayferry, too.
#[test]
fn mpv_plays_on_elsewhere() {
    let (first, second) = (Sway::start(), Sway::with_output(900, 700));
    let mut session = Session::start(&first);
    let mut program = session.join(mpv(session.home()).arg("--loop")).start();
    first.window("mpv", |window| window.app_id == "mpv");
    keeps_changing(&first);
    session.attach.kill();
    let mut other = attach_here(&session, &second).start();
    second.window("mpv elsewhere", |window| window.app_id == "mpv");
    keeps_changing(&second);
    program.must_run();
    other.must_run();
}

/// From one output to another one of another size and scale.
fn is_shown_elsewhere(scene: &Scene) {
    is_shown_on(&Sway::start(), &Sway::with_output(1000, 800), scene);
}

fn is_shown_on(first: &Sway, second: &Sway, scene: &Scene) {
    let (mut here, mut there) = (first.pointer(), second.pointer());
    let (_, expected) = direct(scene, second, &mut there);
    let desk = first.settled();
    let mut session = Session::start(first);
    let mut program = session.join((scene.prepare)(session.home())).start();
    pose(scene, first, &desk, &mut here);
    session.attach.kill();
    first.empty();
    let desk = second.settled();
    session.attach = attach_here(&session, second).start();
    let (width, height) = second.size();
    second.window(scene.name, |window| window.focused);
    until("something to see", || (second.screenshot() != desk).then_some(()));
    second.settled();
    there.move_to(width - 40, height - 40);
    there.move_to(width - 2, height - 2);
    second.shows(&format!("{} elsewhere", scene.name), &expected);
    program.must_run();
    session.must_run();
}
