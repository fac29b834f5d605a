//! A whole screen in a page of Chromium that was opened by `wayferry share`: as a viewer, and as the session's display.

use crate::browser::{area, corner, in_front, shows, state};
use crate::desktop::{APP_ID, heard_a_click_and_a_step, screen};
use crate::rig::{Chromium, Compositor, Home, Program, Session, Sway, until};
use crate::sessions::manage;
use crate::sockets::page;

/// A screen whose session is shared by a link.
struct Shared {
    // Dropped in this order.
    chromium: Chromium,
    share: Program,
    screen: Program,
    session: Session,
    there: Sway,
    _desk: Sway,
    // Where the browser keeps what it keeps.
    _home: Home,
}

impl Shared {
    /// Shows a screen on a desk, and opens a link to it.
    fn open(options: &[&str]) -> Self {
        let (desk, there) = (Sway::start(), Sway::with_output(800, 600));
        let session = Session::start(&desk);
        let screen = screen(&session, &there).start();
        desk.window("the screen", |window| window.app_id == APP_ID && window.focused);
        let (home, folder) = (Home::new(), page(session.home(), ""));
        let words = [&["share", "--page-files", &folder], options].concat();
        let mut share = manage(&session, &words).start();
        let mut chromium = Chromium::open(&home, &share.first_line());
        state(&mut chromium, "shown");
        Self { chromium, share, screen, session, there, _desk: desk, _home: home }
    }

    /// Waits until the screen has this size, and the page's only canvas its pixels.
    fn is_same(&mut self, what: &str, size: (u32, u32)) {
        until("the screen to have the size", || (self.there.screenshot().size() == size).then_some(()));
        shows(what, &self.there.settled(), || self.chromium.canvas());
        let canvases = self.chromium.evaluate("document.querySelectorAll('canvas').length");
        assert_eq!(canvases, 1, "a screen is one window");
    }

    fn must_run(&mut self) {
        self.screen.must_run();
        self.share.must_run();
        self.session.host.must_run();
    }
}

#[test]
#[ignore = "opens Chromium more often than `make test` has time for"]
fn a_page_that_views_a_screen_has_its_pixels() {
    let mut shared = Shared::open(&[]);
    // The desk's, which is the display.
    let size = (1280, 720);
    shared.is_same("an empty screen", size);
    let mut foot = shared.there.launch("foot").args(["sh", "-c", "seq 100; exec cat"]).start();
    shared.there.window("foot", |window| window.focused);
    shared.is_same("a terminal", size);
    // A page of another size leaves the screen as it is.
    shared.chromium.resize(600, 500, 1.0);
    shared.is_same("a terminal, in a small page", size);
    foot.must_run();
    shared.session.attach.must_run();
    shared.must_run();
}

#[test]
#[ignore = "opens Chromium more often than `make test` has time for"]
fn a_page_is_the_display_of_a_screen_which_takes_on_its_size_and_hears_its_keys_and_its_pointer() {
    let mut shared = Shared::open(&["--control"]);
    assert_eq!(shared.session.attach.ended().code(), Some(0), "the display before is told to leave");
    in_front(&mut shared.chromium);
    let size = area(&mut shared.chromium);
    assert_ne!(size, (1280, 720), "the desk's");
    shared.is_same("an empty screen", size);

    let script = "head -n 1 > heard; exec cat";
    let foot = shared.there.launch("foot").args(["sh", "-c", script]).start();
    shared.there.window("foot", |window| window.focused);
    shared.is_same("a terminal", size);
    for (code, key) in [("KeyH", "h"), ("KeyI", "i"), ("Space", " "), ("KeyE", "é")] {
        shared.chromium.press(code, key);
    }
    shared.chromium.write("漢");
    shared.chromium.press("Enter", "Enter");
    let heard = shared.there.home().read_when("heard", |heard| heard.ends_with(b"\n"));
    assert_eq!(String::from_utf8_lossy(&heard), "hi é漢\n");
    shared.is_same("what was typed", size);
    drop(foot);
    shared.there.empty();

    shared.pointer_is_where_it_is();
    // Of one and a half, the bar of 37 leaves an even height: grim is not exact for half pixels.
    for (width, height, ratio) in [(700, 500, 1.0), (900, 650, 2.0), (802, 603, 1.5), (640, 480, 1.0)] {
        shared.chromium.resize(width, height, ratio);
        let (width, height) = until("the page's new size", || {
            Some(area(&mut shared.chromium)).filter(|size| size.0 == width && size.1 < height)
        });
        let pixels = [width, height].map(|length| (f64::from(length) * ratio) as u32);
        shared.is_same("another size", pixels.into());
        let scale = &shared.there.message(&["-t", "get_outputs"])[0]["scale"];
        assert_eq!(scale.as_f64(), Some(ratio));
    }
    shared.must_run();
}

impl Shared {
    /// A click and a step of the wheel at a place of the page are one each, at that place of the screen.
    fn pointer_is_where_it_is(&mut self) {
        let program = self.there.launch("weston-eventdemo");
        let program = program.args(["--log-button", "--log-axis", "--log-motion"]).under(&["stdbuf", "-oL"]);
        let program = program.start();
        self.there.window("the program", |window| window.focused);
        let (left, top) = corner(&mut self.chromium);
        // The first is what tells a program that there is a pointer.
        until("the pointer", || {
            self.chromium.point(left + 299.0, top + 200.0);
            self.chromium.point(left + 300.0, top + 200.0);
            program.stdout().contains("x: 300.000000, y: 200.000000").then_some(())
        });
        self.chromium.click(left + 300.0, top + 200.0);
        self.chromium.wheel(left + 300.0, top + 200.0, 1);
        until("the wheel", || program.stdout().contains("axis time").then_some(()));
        heard_a_click_and_a_step(&program.stdout());
    }
}
