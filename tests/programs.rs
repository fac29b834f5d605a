//! Real programs, unmodified: what they show through Wayferry equals what they show without, pixel for pixel.

use crate::rig::{Compositor, Home, Launch, Pair, Picture, Pointer, Session, Sway, Weston, until};

/// A program and what makes its picture one that stays.
pub(crate) struct Scene {
    pub(crate) name: &'static str,
    pub(crate) prepare: fn(&Home) -> Launch,
    pub(crate) act: fn(&Sway, &mut Pointer),
}

#[test]
fn foot_looks_the_same() {
    looks_the_same(&FOOT);
}

#[test]
fn weston_terminal_looks_the_same() {
    looks_the_same(&WESTON_TERMINAL);
}

#[test]
fn gtk4_demo_looks_the_same() {
    looks_the_same(&GTK4_DEMO);
}

#[test]
fn gtk4_widget_factory_looks_the_same() {
    looks_the_same_on(&Sway::with_output(1600, 900), &WIDGETS);
}

#[test]
fn qterminal_looks_the_same() {
    looks_the_same(&QTERMINAL);
}

#[test]
fn mpv_paused_looks_the_same() {
    looks_the_same(&MPV_PAUSED);
}

/// It cannot become shorter: the table in docs/pixels.md says whose can.
#[test]
fn the_memory_of_foot_gtk4_and_qt5_is_read_where_it_lies() {
    let sway = Sway::start();
    let mut session = Session::start(&sway);
    let maps = format!("/proc/{}/maps", session.host.pid().as_raw_nonzero());
    let sealed =
        [(FOOT, "foot-wayland-shm-buffer-pool"), (GTK4_DEMO, "gdk-wayland"), (QTERMINAL, "wayland-shm")];
    for (scene, memory) in sealed {
        let mut program = session.join((scene.prepare)(session.home())).start();
        until(&format!("a mapping of {}", scene.name), || {
            program.must_run();
            let maps = std::fs::read_to_string(&maps).expect("the session's mappings");
            maps.contains(&format!("/memfd:{memory} ")).then_some(())
        });
    }
    session.must_run();
}

#[test]
fn mpv_plays_through_a_session() {
    let sway = Sway::start();
    let mut session = Session::start(&sway);
    let mut program = session.join(mpv(session.home()).arg("--loop")).start();
    sway.window("mpv", |window| window.app_id == "mpv");
    keeps_changing(&sway);
    program.must_run();
    session.must_run();
}

#[test]
fn weston_flower_is_drawn() {
    let sway = Sway::start();
    let desk = sway.settled();
    let mut pair = Pair::start(&sway, |home| home.launch("weston-flower"));
    sway.window("the flower", |_| true);
    let shown = sway.settled();
    assert!(shown.colours() > 50, "no flower: {}", desk.difference(&shown));
    pair.program.must_run();
}

/// Under sway alone it aborts, because sway holds both of its buffers; Wayferry gives them back at once.
#[test]
fn weston_simple_shm_runs_where_buffers_are_held() {
    animates_on_sway("weston-simple-shm");
}

#[test]
fn weston_simple_damage_runs_where_buffers_are_held() {
    animates_on_sway("weston-simple-damage");
}

#[test]
fn weston_subsurfaces_turn() {
    animates_on_sway("weston-subsurfaces");
}

#[test]
fn weston_simple_shm_is_shown_by_weston() {
    animates_on_weston("weston-simple-shm");
}

#[test]
fn weston_simple_damage_is_shown_by_weston() {
    animates_on_weston("weston-simple-damage");
}

#[test]
#[ignore = "heavy: `make test-full` installs and runs it"]
fn firefox_looks_the_same() {
    let sway = Sway::start();
    let mut pointer = sway.pointer();
    let (desk, expected) = direct(&FIREFOX, &sway, &mut pointer);
    // Not through the bare halves: they serve one connection, and firefox makes a second.
    through(Session::start(&sway), &FIREFOX, &sway, &desk, &mut pointer, &expected);
}

/// Shows a scene without Wayferry, then through the bare halves, then through a session.
pub(crate) fn looks_the_same(scene: &Scene) {
    looks_the_same_on(&Sway::start(), scene);
}

fn looks_the_same_on(sway: &Sway, scene: &Scene) {
    let mut pointer = sway.pointer();
    let (desk, expected) = direct(scene, sway, &mut pointer);

    let mut pair = Pair::start(sway, scene.prepare);
    pose(scene, sway, &desk, &mut pointer);
    sway.shows(&format!("{} through the halves", scene.name), &expected);
    pair.program.must_run();
    pair.program.kill();
    sway.empty();

    through(Session::start(sway), scene, sway, &desk, &mut pointer, &expected);
}

/// The empty desk, and the scene on it without Wayferry.
pub(crate) fn direct(scene: &Scene, sway: &Sway, pointer: &mut Pointer) -> (Picture, Picture) {
    let desk = sway.settled();
    let mut program = (scene.prepare)(sway.home()).env("WAYLAND_DISPLAY", sway.display()).start();
    pose(scene, sway, &desk, pointer);
    let expected = sway.settled();
    program.kill();
    sway.empty();
    (desk, expected)
}

/// Shows the scene through a session.
pub(crate) fn through(
    mut session: Session,
    scene: &Scene,
    sway: &Sway,
    desk: &Picture,
    pointer: &mut Pointer,
    expected: &Picture,
) {
    let mut program = session.join((scene.prepare)(session.home())).start();
    pose(scene, sway, desk, pointer);
    sway.shows(&format!("{} through a session", scene.name), expected);
    program.must_run();
    session.must_run();
}

/// Waits until the program is there, then makes its picture one that stays.
pub(crate) fn pose(scene: &Scene, sway: &Sway, desk: &Picture, pointer: &mut Pointer) {
    let (width, height) = sway.size();
    pointer.move_to(width - 1, height - 1);
    sway.window(scene.name, |window| window.focused);
    until("something to see", || (sway.screenshot() != *desk).then_some(()));
    (scene.act)(sway, pointer);
    // The cursor's shape follows what is below it, but a program looks only when the pointer moves.
    sway.settled();
    pointer.move_to(width - 40, height - 40);
    pointer.move_to(width - 2, height - 2);
}

fn animates_on_sway(name: &str) {
    let sway = Sway::start();
    let mut pair = Pair::start(&sway, |home| home.launch(name));
    sway.window(name, |_| true);
    keeps_changing(&sway);
    pair.program.must_run();
}

fn animates_on_weston(name: &str) {
    let weston = Weston::start();
    let desk = weston.settled();
    let mut pair = Pair::start(&weston, |home| home.launch(name));
    until("the first frame", || (weston.screenshot() != desk).then_some(()));
    keeps_changing(&weston);
    pair.program.must_run();
}

/// Waits for several pictures, each different from the one before.
pub(crate) fn keeps_changing(compositor: &impl Compositor) {
    let mut last = compositor.screenshot();
    for _ in 0..5 {
        last = until("another frame", || Some(compositor.screenshot()).filter(|now| *now != last));
    }
}

pub(crate) fn nothing(_: &Sway, _: &mut Pointer) {}

/// A terminal with text in many colours, and a program in it that waits.
pub(crate) fn colourful_foot(home: &Home) -> Launch {
    // No program is started in between, so that all of it is there at once.
    let numbers: Vec<String> = (1..=30).map(|number| number.to_string()).collect();
    let colour = "printf \"\\033[3${i}mcolour $i\\033[0m\\n\"";
    let script = format!("for i in 1 2 3 4 5 6 7; do echo {}; {colour}; done; exec cat", numbers.join(" "));
    home.launch("foot").args(["sh", "-c", &script])
}

pub(crate) const FOOT: Scene = Scene { name: "foot", prepare: colourful_foot, act: nothing };

pub(crate) const WESTON_TERMINAL: Scene = Scene {
    name: "weston-terminal",
    prepare: |home| {
        let shell = home.write("shell", "#!/bin/sh\nseq 1 12\nexec cat\n");
        home.launch("weston-terminal").arg(format!("--shell={}", executable(&shell)))
    },
    act: nothing,
};

pub(crate) const GTK4_DEMO: Scene =
    Scene { name: "gtk4-demo", prepare: |home| with_bus(home, "gtk4-demo"), act: nothing };

pub(crate) const QTERMINAL: Scene = Scene {
    name: "qterminal",
    prepare: |home| with_bus(home, "qterminal").args(["-e", "sh -c 'seq 1 12; exec cat'"]),
    act: nothing,
};

pub(crate) const MPV_PAUSED: Scene = Scene {
    name: "mpv",
    prepare: |home| mpv(home).args(["--pause", "--cursor-autohide=always"]),
    act: nothing,
};

pub(crate) const FIREFOX: Scene = Scene {
    name: "firefox",
    prepare: |home| firefox(home, "<title>page</title><h1>Wayferry</h1><p style='color:red'>text"),
    act: |sway, _| page_is_there(sway),
};

/// Its first page never rests; the second does. On an output that is narrower than the first page wants, its width
/// would depend on the moment of the click.
pub(crate) const WIDGETS: Scene = Scene {
    name: "gtk4-widget-factory",
    prepare: |home| with_bus(home, "gtk4-widget-factory"),
    act: |_, pointer| pointer.click(800, 23),
};

/// Waits for a browser's page, whose title is `page`: before, its window is empty.
pub(crate) fn page_is_there(sway: &Sway) {
    sway.window("the page", |window| window.title.starts_with("page"));
}

/// Writes a page to a file and gives its address: browsers open no `data:` of their command line.
pub(crate) fn page(home: &Home, text: &str) -> String {
    format!("file://{}", home.write("page.html", text).display())
}

/// A browser that shows this page and nothing around it, which would name the page's file, and asks nothing of the
/// network.
pub(crate) fn firefox(home: &Home, text: &str) -> Launch {
    with_bus(home, "firefox-esr")
        .env("MOZ_ENABLE_WAYLAND", "1")
        .args(["--no-remote", "--new-instance", "--kiosk", "--profile", &firefox_profile(home)])
        .arg(page(home, text))
}

/// The path of a profile with which Firefox asks nothing of the network.
pub(crate) fn firefox_profile(home: &Home) -> String {
    let profile = home.file("profile");
    std::fs::create_dir_all(&profile).expect("a profile");
    home.write("profile/user.js", FIREFOX_STAYS_HOME);
    home.give(&profile);
    profile.display().to_string()
}

pub(crate) fn with_bus(home: &Home, program: &str) -> Launch {
    home.launch(program).under(&["dbus-run-session", "--"])
}

/// A player with a clip of a moving test picture, made once per home.
pub(crate) fn mpv(home: &Home) -> Launch {
    let clip = home.file("clip.mkv").display().to_string();
    if !home.file("clip.mkv").exists() {
        home.launch("ffmpeg")
            .args(["-loglevel", "error", "-f", "lavfi", "-i", "testsrc2=size=640x360:rate=30:duration=3"])
            .args(["-c:v", "mpeg4", "-q:v", "3", &clip])
            .run();
    }
    home.launch("mpv").args(["--no-config", "--vo=wlshm", "--ao=null", "--no-osc", "--osd-level=0", &clip])
}

fn executable(path: &std::path::Path) -> String {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("an executable script");
    path.display().to_string()
}

/// Nothing is asked of the network: no first-run page, and a proxy that does not run for what asks all the same.
const FIREFOX_STAYS_HOME: &str = r#"
user_pref("browser.startup.homepage_override.mstone", "ignore");
user_pref("datareporting.policy.firstRunURL", "");
user_pref("network.proxy.type", 1);
user_pref("network.proxy.http", "127.0.0.1");
user_pref("network.proxy.http_port", 9);
user_pref("network.proxy.ssl", "127.0.0.1");
user_pref("network.proxy.ssl_port", 9);
"#;
