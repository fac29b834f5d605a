//! Programs of the large toolkits: popups that move, wheels, and the scale of the first frame.
//!
//! The compositor is older than they expect, so what it lacks is made up on the way (`wayland/src/app/older.rs`).

use std::collections::HashMap;

use crate::programs::{Scene, firefox, looks_the_same, page, page_is_there, with_bus};
use crate::rig::{Compositor, Home, Launch, Pointer, Session, Sway, until};

#[test]
fn a_gtk4_popover_opens_and_moves() {
    looks_the_same(&Scene { name: "gtk4", prepare: gtk4, act: open_popover });
}

#[test]
fn a_gtk4_list_is_scrolled() {
    looks_the_same(&Scene { name: "gtk4", prepare: gtk4, act: scroll });
}

#[test]
fn the_first_frame_of_gtk4_has_the_right_scale() {
    first_frame_is_sharp(gtk4);
}

#[test]
fn the_first_frame_of_foot_has_the_right_scale() {
    first_frame_is_sharp(|home| home.launch("foot").args(["cat"]));
}

#[test]
#[ignore = "heavy: `make test-full` installs and runs it"]
fn a_qt6_menu_opens_another() {
    looks_the_same(&Scene { name: "qt6", prepare: qt6, act: open_menus });
}

#[test]
#[ignore = "heavy: `make test-full` installs and runs it"]
fn a_qt6_list_is_scrolled() {
    looks_the_same(&Scene { name: "qt6", prepare: qt6, act: scroll });
}

#[test]
#[ignore = "heavy: `make test-full` installs and runs it"]
fn the_first_frame_of_qt6_has_the_right_scale() {
    first_frame_is_sharp(qt6);
}

#[test]
#[ignore = "heavy: `make test-full` installs and runs it"]
fn firefox_opens_a_choice() {
    browses(&Scene { name: "firefox", prepare: |home| firefox(home, PAGE), act: choose });
}

#[test]
#[ignore = "heavy: `make test-full` installs and runs it"]
fn firefox_scrolls() {
    browses(&Scene { name: "firefox", prepare: firefox_at_once, act: scroll_page });
}

#[test]
#[ignore = "heavy: `make test-full` installs and runs it"]
fn the_first_frame_of_firefox_has_the_right_scale() {
    first_frame_is_sharp(|home| firefox(home, PAGE));
}

#[test]
#[ignore = "heavy: `make test-full` installs and runs it"]
fn chromium_opens_a_choice() {
    browses(&Scene { name: "chromium", prepare: chromium, act: choose });
}

/// It takes steps of another length from a seat of version 8, which sway 1.7 does not have, so it is compared with
/// itself.
#[test]
#[ignore = "heavy: `make test-full` installs and runs it"]
fn chromium_scrolls_by_whole_steps() {
    let sway = Sway::start();
    let mut pointer = sway.pointer();
    let session = Session::start(&sway);
    let mut program = session.join(chromium(session.home())).start();
    page_is_there(&sway);
    pointer.move_to(600, 400);
    let mut turned = |steps: &[i32]| {
        sway.keys(&["-k", "Home"]);
        let top = sway.settled();
        steps.iter().for_each(|steps| pointer.wheel(*steps));
        let there = sway.settled();
        assert!(there != top, "{steps:?} scrolled nothing");
        there
    };
    let expected = turned(&[1, 1]);
    for steps in [&[2][..], &[1, 1, 1, -1], &[3, -1]] {
        let there = turned(steps);
        assert!(there == expected, "{steps:?}: {}", expected.difference(&there));
    }
    program.must_run();
}

#[test]
#[ignore = "heavy: `make test-full` installs and runs it"]
fn the_first_frame_of_chromium_has_the_right_scale() {
    first_frame_is_sharp(chromium);
}

/// Shows a scene without Wayferry and through a session: browsers connect more than once.
fn browses(scene: &Scene) {
    let sway = Sway::start();
    let mut pointer = sway.pointer();
    let (desk, expected) = crate::programs::direct(scene, &sway, &mut pointer);
    crate::programs::through(Session::start(&sway), scene, &sway, &desk, &mut pointer, &expected);
}

/// On an output of scale 2 nothing is ever committed that was drawn for scale 1.
fn first_frame_is_sharp(prepare: fn(&Home) -> Launch) {
    let sway = Sway::start();
    sway.message(&["output", "*", "scale", "2"]);
    until("the scale", || {
        let outputs = sway.message(&["-t", "get_outputs"]);
        (outputs[0]["scale"].as_f64() == Some(2.0)).then_some(())
    });
    let session = Session::start(&sway);
    let mut program = session.join(prepare(session.home())).env("WAYLAND_DEBUG", "client").start();
    sway.window("a window", |window| window.focused);
    sway.settled();
    program.must_run();
    let said = program.stderr();
    let Frame { scale, size, destination } = first_frame(&said).expect("a window was drawn");
    match destination {
        None => assert_eq!(scale, 2, "a buffer of {size:?}"),
        Some((width, height)) => assert_eq!(size, (2 * width, 2 * height), "for {width} × {height}"),
    }
}

/// A window's first frame.
#[derive(Debug, Default)]
struct Frame {
    scale: u32,
    /// Of its buffer, in pixels.
    size: (u32, u32),
    /// What a viewport makes of it.
    destination: Option<(u32, u32)>,
}

/// The first frame of the first toplevel, in what libwayland writes with `WAYLAND_DEBUG=client`.
fn first_frame(log: &str) -> Option<Frame> {
    // Newer versions write `wl_surface#3`, older ones `wl_surface@3`.
    let log = log.replace('#', "@");
    let requests: Vec<_> =
        log.lines().filter_map(|line| line.split_once(" -> ")).map(|(_, said)| said).collect();
    let window = requests.iter().find_map(|said| said.split_once(".get_toplevel("))?.0;
    let made = requests.iter().find(|said| said.contains(&format!(".get_xdg_surface(new id {window},")))?;
    let surface = arguments(made).pop()?;
    let mut frame = Frame { scale: 1, ..Frame::default() };
    let (mut viewport, mut buffers, mut is_drawn) = (None, HashMap::new(), false);
    for said in requests {
        let (object, request) = said.split_once('.')?;
        let arguments = arguments(request);
        let number = |at: usize| arguments.get(at).and_then(|number| number.parse().ok());
        match request.split_once('(')?.0 {
            "create_buffer" => drop(buffers.insert(arguments[0].clone(), (number(2)?, number(3)?))),
            "get_viewport" if arguments[1] == surface => viewport = Some(arguments[0].clone()),
            "set_destination" if viewport.as_deref() == Some(object) => {
                frame.destination = number(0).zip(number(1));
            }
            "set_buffer_scale" if object == surface => frame.scale = number(0)?,
            "attach" if object == surface => {
                is_drawn = arguments[0] != "nil";
                frame.size = buffers.get(&arguments[0]).copied().unwrap_or(frame.size);
            }
            "commit" if object == surface && is_drawn => return Some(frame),
            _ => {}
        }
    }
    None
}

/// The arguments of a request; a new object by its name alone.
fn arguments(request: &str) -> Vec<String> {
    let inner = request.split_once('(').and_then(|(_, rest)| rest.rsplit_once(')')).unwrap_or_default().0;
    inner.split(", ").map(|argument| argument.trim_start_matches("new id ").to_owned()).collect()
}

fn gtk4(home: &Home) -> Launch {
    python(home, "toolkit-gtk4.py", include_str!("tools/toolkit-gtk4.py"))
}

fn qt6(home: &Home) -> Launch {
    python(home, "toolkit-qt6.py", include_str!("tools/toolkit-qt6.py"))
}

fn python(home: &Home, name: &str, source: &str) -> Launch {
    let script = home.write(name, source).display().to_string();
    with_bus(home, "python3").arg(script)
}

/// Firefox, which scrolls without a movement whose end depends on the moment.
fn firefox_at_once(home: &Home) -> Launch {
    let launch = firefox(home, PAGE);
    home.write("profile/prefs.js", "user_pref(\"general.smoothScroll\", false);\n");
    launch
}

fn chromium(home: &Home) -> Launch {
    let profile = format!("--user-data-dir={}", home.file("profile").display());
    with_bus(home, "chromium")
        .args(["--no-sandbox", "--test-type", "--ozone-platform=wayland", "--no-first-run", "--disable-gpu"])
        .args(["--disable-smooth-scrolling", "--host-resolver-rules=MAP * ~NOTFOUND"])
        .args(["--disable-background-networking", &profile, &format!("--app={}", page(home, PAGE))])
}

fn open_popover(sway: &Sway, pointer: &mut Pointer) {
    opens(sway, (640, 60), || pointer.click(640, 15));
    opens(sway, (640, 180), || pointer.click(640, 60));
}

fn open_menus(sway: &Sway, pointer: &mut Pointer) {
    changes(sway, || pointer.click(20, 10));
    changes(sway, || sway.keys(&["-k", "Up"]));
    changes(sway, || sway.keys(&["-k", "Right"]));
}

/// Waits for what an act changes.
fn changes(sway: &Sway, act: impl FnOnce()) {
    let before = sway.settled();
    act();
    until("a change", || (sway.screenshot() != before).then_some(()));
    sway.settled();
}

/// Waits for what opens at a place of the window that was empty.
fn opens(sway: &Sway, (x, y): (usize, usize), act: impl FnOnce()) {
    let before = sway.settled().pixel(x, y);
    act();
    until("something to open", || (sway.screenshot().pixel(x, y) != before).then_some(()));
    sway.settled();
}

fn scroll_page(sway: &Sway, pointer: &mut Pointer) {
    page_is_there(sway);
    scroll(sway, pointer);
}

fn scroll(sway: &Sway, pointer: &mut Pointer) {
    pointer.move_to(600, 400);
    sway.settled();
    for _ in 0..3 {
        pointer.wheel(1);
    }
    pointer.wheel(-1);
    sway.settled();
}

fn choose(sway: &Sway, pointer: &mut Pointer) {
    page_is_there(sway);
    opens(sway, (150, 75), || pointer.click(60, 50));
}

/// A page with a choice at its top and many lines below.
const PAGE: &str = "<title>page</title>\
    <select style='position:absolute;top:40px;left:20px;width:200px'><option>one<option>two<option>three</select>\
    <div style='height:100px'></div><ol><script>for(i=0;i<200;i++)document.write('<li>line '+i)</script></ol>";
