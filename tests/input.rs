//! Keys, pointer and window management through Wayferry.

use crate::rig::{Compositor, Home, Pair, Session, Sway, until};

#[test]
fn typing_reaches_the_program() {
    let sway = Sway::start();
    let mut pair =
        Pair::start(&sway, |home| home.launch("foot").args(["sh", "-c", "head -n 2 > heard; exec cat"]));
    sway.window("foot", |window| window.focused);
    sway.settled();
    // Each of these comes from a keyboard of its own, with a keymap of its own.
    sway.type_text("hello äß€");
    sway.keys(&["-k", "Return"]);
    sway.type_text("YZ");
    sway.keys(&["-k", "BackSpace", "-k", "Return"]);
    let heard =
        pair.home().read_when("heard", |text| text.iter().filter(|&&byte| byte == b'\n').count() == 2);
    assert_eq!(String::from_utf8_lossy(&heard), "hello äß€\nY\n");
    pair.program.must_run();
}

#[test]
fn clicks_and_wheel_reach_the_program() {
    let sway = Sway::start();
    let mut pointer = sway.pointer();
    let session = Session::start(&sway);
    let _foot = session.launch("foot").args(["sh", "-c", crate::direct::MOUSE_REPORT]).start();
    sway.window("foot", |window| window.focused);
    until("the terminal to listen", || session.home().file("listens").exists().then_some(()));
    pointer.click(200, 200);
    // A press of the first button, and its release.
    session.home().read_when("clicks", |report| holds(report, b"\x1b[<0;") && report.ends_with(b"m"));
    pointer.scroll(15.0);
    session.home().read_when("clicks", |report| holds(report, b"\x1b[<65;"));
}

#[test]
fn a_window_is_resized_and_closed_from_outside() {
    let sway = Sway::start();
    let mut session = Session::start(&sway);
    let mut foot = session.launch("foot").args(["sh", "-c", WINDOW_SIZE_REPORT]).start();
    let window = sway.window("foot", |window| window.focused);
    sway.settled();
    let (width, height) = sway.size();
    let (rows, columns) = until("the terminal's first size", || terminal_size(session.home()));
    let (cell_width, cell_height) = (i64::from(width) / columns, i64::from(height) / rows);
    sway.message(&[&format!("[con_id={}] floating enable", window.id)]);
    for (width, height) in [(640, 400), (333, 222), (800, 600)] {
        until(&format!("a terminal of {width} x {height}"), || {
            sway.resize(window.id, (width, height)).then_some(())?;
            // Whole cells, and a little room around them.
            let (rows, columns) = terminal_size(session.home())?;
            let near = |cells: i64, pixels: i64| (pixels - 1..=pixels).contains(&cells);
            (near(columns, width / cell_width) && near(rows, height / cell_height)).then_some(())
        });
    }
    sway.message(&[&format!("[con_id={}] kill", window.id)]);
    sway.empty();
    foot.ended();
    session.must_run();
}

#[test]
fn titles_and_identity_pass() {
    let sway = Sway::start();
    let session = Session::start_with(&sway, &["--title-prefix", "far: "]);
    let _foot = session.launch("foot").args(["-a", "identity", "-T", "näme", "cat"]).start();
    sway.window("its title", |window| window.app_id == "identity" && window.title == "far: näme");
}

/// Rows and columns that the terminal reported last.
fn terminal_size(home: &Home) -> Option<(i64, i64)> {
    let sizes = std::fs::read_to_string(home.file("sizes")).ok()?;
    let (rows, columns) = sizes.lines().last()?.split_once(' ')?;
    Some((rows.parse().ok()?, columns.parse().ok()?))
}

fn holds(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// A shell script that writes the terminal's size in cells whenever it changes.
const WINDOW_SIZE_REPORT: &str =
    "trap 'stty size >> sizes' WINCH; stty size >> sizes; while :; do sleep 60 & wait; done";
