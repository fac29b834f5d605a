//! A whole screen as one window: its pixels and its size, keys and the pointer, the clipboard, its rest, and its end.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};

use rustix::process::{Signal, kill_process};
use wayferry_stage::LinkConfig;

use crate::info::info;
use crate::rig::{Compositor, Home, Keyboard, Launch, Program, Session, Sshd, Sway, Weston, until};

/// A screen that is shown on a desk.
struct Shown {
    // Dropped in this order.
    screen: Program,
    session: Session,
    there: Sway,
    desk: Sway,
}

impl Shown {
    fn start() -> Self {
        Self::start_with(|desk| Session::start_with(desk, &["--lossless"]), |screen| screen)
    }

    fn start_with(session: impl Fn(&Sway) -> Session, prepare: impl Fn(Launch) -> Launch) -> Self {
        let (desk, there) = (Sway::start(), Sway::with_output(800, 600));
        // A desktop that tiles gives a window nothing but its screen.
        desk.message(&["for_window [app_id=small] floating enable"]);
        let session = session(&desk);
        let screen = prepare(screen(&session, &there)).start();
        desk.window("the screen", |window| window.app_id == APP_ID && window.focused);
        Self { screen, session, there, desk }
    }

    /// Waits until the desk shows what the screen shows.
    fn is_same(&self, what: &str) {
        self.has_size(self.desk.size());
        let expected = self.there.settled();
        self.desk.shows(what, &expected);
    }

    fn has_size(&self, size: (u32, u32)) {
        until("the screen to have the window's size", || {
            (self.there.screenshot().size() == size).then_some(())
        });
    }

    /// Presses a letter here, and waits until the terminal there shows it.
    fn letter(&self, keyboard: &mut Keyboard) {
        let before = self.there.settled();
        keyboard.letter('x');
        until("the letter", || (self.there.screenshot() != before).then_some(()));
    }

    /// Starts a terminal there with a script, and waits until it is seen here.
    fn terminal(&self, script: &str) -> Program {
        let foot = self.there.launch("foot").args(["sh", "-c", script]).start();
        self.there.window("foot", |window| window.focused);
        self.is_same("a terminal");
        foot
    }

    fn must_run(&mut self) {
        self.screen.must_run();
        self.session.must_run();
    }

    /// How many frames were copied there, and how many were shown here, so far; see [`TOLD`].
    fn frames(&self) -> (usize, usize) {
        let told = self.screen.stderr();
        let count = |object: &str, what: &str| {
            told.lines().filter(|line| line.contains(object) && line.contains(what)).count()
        };
        (count(" <- zwlr_screencopy_frame_v1@", ".ready,"), count(" -> wl_surface@", ".commit("))
    }

    /// Bytes of the link between the two sides so far, both ways.
    fn bytes(&self) -> u64 {
        let stats = self.session.link.as_ref().expect("a link").stats();
        stats.up.offered_bytes + stats.down.offered_bytes
    }

    /// Waits until the session says that it is so many seconds older; that says nothing on the link.
    fn goes_on(&self, seconds: u64) {
        let age = || info(self.session.home())[0]["state_seconds"].as_u64();
        let then = age().expect("it is attached") + seconds;
        until("time to pass", || (age()? >= then).then_some(()));
    }
}

/// Of weston-eventdemo: one click and one step of the wheel, at the place where these tests point.
pub(crate) fn heard_a_click_and_a_step(heard: &str) {
    for expected in [
        "button: 272, state: pressed, x: 300, y: 200",
        "button: 272, state: released, x: 300, y: 200",
        "axis source: wheel",
        "axis discrete axis: 0 value: 1",
        "axis: vertical, value: 15.000000",
    ] {
        assert_eq!(heard.matches(expected).count(), 1, "{expected} in {heard}");
    }
}

/// Prepares the program of a session that shows this screen.
pub(crate) fn screen(session: &Session, there: &impl Compositor) -> Launch {
    let socket = there.home().runtime().join(there.display()).display().to_string();
    let runtime = there.home().runtime().display().to_string();
    session.join(session.home().wayferry().args(["screen", "--of", &socket, "--runtime-dir", &runtime]))
}

#[test]
fn regression_a_socket_that_never_answers_takes_the_time_of_the_others() {
    let (desk, there) = (Sway::start(), Sway::with_output(800, 600));
    let runtime = there.home().runtime();
    // It is looked at before sway's.
    let silent = runtime.join("wayland-");
    let _silent = UnixListener::bind(&silent).expect("a socket");
    let session = Session::start_with(&desk, &["--lossless"]);
    let runtime = runtime.display().to_string();
    let mut screen =
        session.join(session.home().wayferry().args(["screen", "--runtime-dir", &runtime])).start();
    desk.window("the screen", |window| window.app_id == APP_ID && window.focused);
    screen.must_run();
}

#[test]
fn a_screen_takes_on_its_windows_size_and_is_shown_to_the_pixel() {
    let mut shown = Shown::start();
    shown.is_same("an empty screen");
    let mut foot = shown.terminal("seq 100; exec cat");
    let id = shown.desk.windows()[0].id;
    shown.desk.message(&["floating enable"]);
    until("another size of the window", || shown.desk.resize(id, (900, 500)).then_some(()));
    shown.has_size((900, 500));
    let expected = shown.there.settled();
    until("the window to show it", || {
        let window = shown.desk.windows()[0].clone();
        let place = (window.place.0 as u32, window.place.1 as u32);
        (shown.desk.screenshot().part(place, (900, 500)) == expected).then_some(())
    });
    foot.must_run();
    shown.must_run();
}

#[test]
fn keys_that_are_pressed_in_the_window_are_pressed_at_the_screen() {
    let mut shown = Shown::start();
    let _foot = shown.terminal("read line; echo $line > heard; exec cat");
    let mut keyboard = Keyboard::new(&shown.desk);
    "hello".chars().for_each(|letter| keyboard.letter(letter));
    keyboard.enter();
    let heard = shown.there.home().read_when("heard", |heard| heard.ends_with(b"\n"));
    assert_eq!(String::from_utf8_lossy(&heard), "hello\n");
    shown.is_same("what was typed");
    shown.must_run();
}

#[test]
fn letters_that_another_keymap_has_are_typed_as_they_are() {
    let mut shown = Shown::start();
    let _foot = shown.terminal("read line; echo $line > heard; exec cat");
    // wtype brings a keymap of its own, with these letters in it.
    shown.desk.type_text("grüße €");
    shown.desk.keys(&["-k", "Return"]);
    let heard = shown.there.home().read_when("heard", |heard| heard.ends_with(b"\n"));
    assert_eq!(String::from_utf8_lossy(&heard), "grüße €\n");
    shown.must_run();
}

#[test]
fn the_pointer_is_at_the_screen_where_it_is_in_the_window() {
    let mut shown = Shown::start();
    let program = shown.there.launch("weston-eventdemo").args(["--log-button", "--log-axis", "--log-motion"]);
    let program = program.under(&["stdbuf", "-oL"]).start();
    shown.there.window("the program", |window| window.focused);
    shown.is_same("the program");
    let mut pointer = shown.desk.pointer();
    // The first is what tells a program that there is a pointer.
    until("the pointer", || {
        pointer.move_to(299, 200);
        pointer.move_to(300, 200);
        program.stdout().contains("x: 300.000000, y: 200.000000").then_some(())
    });
    pointer.click(300, 200);
    pointer.wheel(1);
    until("the wheel", || program.stdout().contains("axis time").then_some(()));
    heard_a_click_and_a_step(&program.stdout());
    shown.must_run();
}

/// What is sent are the pings of a session that rests (docs/wire.md, 3): the third is 4 s after the second.
#[test]
fn a_screen_on_which_nothing_changes_sends_no_frames_and_no_more_than_pings() {
    let session = |desk: &Sway| Session::start_over(desk, LinkConfig::default(), &["--lossless"]);
    let mut shown = Shown::start_with(session, |screen| screen.env(TOLD.0, TOLD.1));
    let _foot = shown.terminal("exec cat");
    until("the rest to begin", || {
        let before = shown.frames();
        // Whole seconds are told: of two, one at least has passed.
        shown.goes_on(2);
        (shown.frames() == before).then_some(())
    });
    let (frames, bytes) = (shown.frames(), shown.bytes());
    shown.goes_on(REST);
    assert_eq!(shown.frames(), frames, "copied and shown");
    let sent = shown.bytes() - bytes;
    assert!(sent <= PINGS, "{sent} bytes");
    // And what does change is counted.
    shown.letter(&mut Keyboard::new(&shown.desk));
    until("its frame", || (shown.frames().0 > frames.0 && shown.frames().1 > frames.1).then_some(()));
    assert!(shown.bytes() > bytes + sent);
    shown.must_run();
}

/// By ssh, from the command line that the README has.
#[test]
fn the_screen_of_another_machine_is_shown_and_left_and_shown_again() {
    let (desk, there, sshd) = (Sway::start(), Sway::with_output(800, 600), Sshd::start());
    // What a login there may set.
    let socket = there.home().runtime().join(there.display());
    let binary = sshd.home().wayferry().words()[0].clone();
    let login = format!("#!/bin/sh\nWAYLAND_DISPLAY={} exec {binary} \"$@\"\n", socket.display());
    let login = sshd.home().write("login", login);
    fs::set_permissions(&login, Permissions::from_mode(0o755)).expect("its permissions");
    let words = ["desktop", "ssh", "--remote-bin", &login.display().to_string()].map(str::to_owned);
    let words: Vec<String> = words.into_iter().chain(sshd.arguments()).collect();
    let ferry = || desk.home().wayferry().privileged().env("WAYLAND_DISPLAY", desk.display());
    let mut shown = sshd.near(ferry().args(words.iter().map(String::as_str))).start();
    let window = desk.window("the screen", |window| window.app_id == APP_ID && window.focused);
    assert!(window.title.contains("Desktop of "), "{}", window.title);
    until("the screen to have the window's size", || {
        (there.screenshot().size() == desk.size()).then_some(())
    });
    let expected = there.settled();
    desk.shows("the screen", &expected);
    let which = |what: &str| {
        let arguments = sshd.arguments();
        let (host, options) = arguments.split_last().expect("a host");
        let words =
            [&["--remote-bin".to_owned(), binary.clone()], options, &[format!("{host}:desktop")]].concat();
        sshd.near(ferry().arg(what).args(words.iter().map(String::as_str)))
    };
    which("detach").run();
    assert!(shown.ended().success(), "{}", shown.stderr());
    desk.empty();
    let mut again = which("attach").start();
    desk.window("the screen again", |window| window.app_id == APP_ID && window.focused);
    desk.shows("the screen again", &expected);
    which("stop").run();
    again.ended();
    desk.empty();
    there.screenshot();
}

#[test]
fn on_a_desk_of_scale_2_the_screen_has_it_too() {
    let mut shown = Shown::start();
    shown.is_same("a screen of scale 1");
    shown.desk.message(&["output HEADLESS-1 scale 2"]);
    until("the screen to have the scale", || {
        (shown.there.message(&["-t", "get_outputs"])[0]["scale"].as_f64()? == 2.0).then_some(())
    });
    let _foot = shown.terminal("seq 100; exec cat");
    shown.must_run();
}

#[test]
fn a_second_screen_stays_as_it_is() {
    let (desk, there) = (Sway::start(), Sway::with_output(800, 600));
    there.message(&["create_output"]);
    let outputs = || {
        let outputs = there.message(&["-t", "get_outputs"]);
        let outputs = outputs.as_array().expect("a list").iter();
        outputs.map(|output| (output["active"] == true, output["rect"]["width"].as_i64())).collect::<Vec<_>>()
    };
    until("a second screen", || (outputs().len() == 2).then_some(()));
    let second = outputs()[1];
    let session = Session::start(&desk);
    let mut screen = screen(&session, &there).start();
    until("the first to be resized", || (outputs()[0].1 == Some(1280)).then_some(()));
    assert_eq!(outputs(), [(true, Some(1280)), second]);
    assert!(second.0, "it was on");
    screen.must_run();
}

/// Before, the same key is the desk's own.
#[test]
fn in_a_fullscreen_window_the_desks_own_shortcuts_are_the_screens() {
    let mut shown = Shown::start();
    let _foot = shown.terminal("read line; echo $line > heard; exec cat");
    let taken = shown.desk.home().file("taken");
    shown.desk.message(&[&format!("bindsym x exec touch {}", taken.display())]);
    let mut keyboard = Keyboard::new(&shown.desk);
    keyboard.letter('x');
    until("the desk to take the key", || taken.exists().then_some(()));
    fs::remove_file(&taken).expect("it was there");
    shown.desk.message(&["fullscreen enable"]);
    let heard = until("the screen to take it", || {
        keyboard.letter('x');
        let now = shown.there.settled();
        until("a picture", || Some(shown.desk.settled()).filter(|seen| *seen == now));
        (!taken.exists()).then(|| keyboard.enter())?;
        Some(shown.there.home().read_when("heard", |heard| heard.ends_with(b"\n")))
    });
    assert!(heard.starts_with(b"x"), "{heard:?}");
    shown.must_run();
}

/// A screen is left while a key is down: it must not repeat there until the user comes back.
#[test]
fn what_is_down_is_released_when_the_window_loses_the_keyboard() {
    let mut shown = Shown::start();
    let _foot = shown.terminal("exec cat");
    let mut keyboard = Keyboard::new(&shown.desk);
    keyboard.hold('a');
    until("a letter that repeats", || {
        let before = shown.there.screenshot();
        until("one more", || (shown.there.screenshot() != before).then_some(()));
        Some(())
    });
    let _other = shown.desk.launch("foot").args(["-a", "small", "cat"]).start();
    shown.desk.window("another", |window| window.app_id == "small" && window.focused);
    shown.there.settled();
    shown.must_run();
}

#[test]
fn what_is_copied_at_the_screen_is_pasted_here_and_the_other_way_round() {
    let mut shown = Shown::start();
    let _foot = shown.terminal("exec cat");
    // Nothing may be put into a desk's clipboard by a window in which the user has done nothing.
    let mut keyboard = Keyboard::new(&shown.desk);
    shown.letter(&mut keyboard);
    for words in [&[][..], &["-p"]] {
        shown.there.launch("wl-copy").args(words.iter().copied()).arg("from there").run();
        let paste = |sway: &Sway| sway.launch("wl-paste").arg("-n").args(words.iter().copied()).text();
        until("the far text", || (paste(&shown.desk)? == b"from there").then_some(()));
        shown.desk.launch("wl-copy").args(words.iter().copied()).arg("from here").run();
        until("the near text", || (paste(&shown.there)? == b"from here").then_some(()));
        shown.letter(&mut keyboard);
        shown.there.launch("wl-copy").args(words.iter().copied()).arg("once more").run();
        until("the far text again", || (paste(&shown.desk)? == b"once more").then_some(()));
        // A desk refuses what comes without the user's doing, and says nothing of it.
        shown.desk.launch("wl-copy").args(words.iter().copied()).arg("a second").run();
        until("the near text again", || (paste(&shown.there)? == b"a second").then_some(()));
        shown.there.launch("wl-copy").args(words.iter().copied()).arg("refused").run();
        // wl-copy may end before its words have reached the compositor.
        until("the far copy", || (paste(&shown.there)? == b"refused").then_some(()));
        shown.desk.launch("wl-copy").args(words.iter().copied()).arg("a third").run();
        until("the last text", || (paste(&shown.there)? == b"a third").then_some(()));
    }
    let picture = shown.desk.screenshot().keep("desktop-clipboard");
    let image = fs::read(&picture).expect("the image");
    let source = shown.desk.home().write("image.png", &image);
    shown.desk.launch("wl-copy").args(["-t", "image/png"]).stdin(source).run();
    until("the image", || {
        let pasted = shown.there.launch("wl-paste").args(["-t", "image/png"]).text()?;
        (pasted == image).then_some(())
    });
    shown.must_run();
}

#[test]
fn the_end_of_the_screen_is_the_end_of_the_program_and_closing_the_window_too() {
    let mut shown = Shown::start();
    shown.there.kill();
    assert!(shown.screen.ended().success());
    shown.desk.empty();
    let mut shown = Shown::start();
    shown.desk.message(&["kill"]);
    assert!(shown.screen.ended().success());
    // The screen itself stays.
    shown.there.screenshot();
}

#[test]
fn a_compositor_that_cannot_be_watched_is_named_with_what_it_lacks() {
    let (desk, weston) = (Sway::start(), Weston::start());
    let session = Session::start(&desk);
    // No other can be started instead.
    let mut screen = screen(&session, &weston).under(&["env", "PATH=/nowhere"]).start();
    assert_eq!(screen.ended().code(), Some(91));
    let error = screen.error().expect("an error").to_string();
    assert!(error.contains("zwlr_screencopy_manager_v1") && error.contains("labwc"), "{error}");
}

/// sway is installed and none runs: one is started, with the command in it, and both end together.
#[test]
fn where_no_screen_is_one_is_started_for_the_command() {
    let desk = Sway::start();
    let (home, far) = (desk.home(), Home::new());
    let ferry = home.wayferry();
    let binary = ferry.words()[0].clone();
    let runtime = format!("XDG_RUNTIME_DIR={}", far.runtime().display());
    let script = "echo $WAYLAND_DISPLAY > inner; read line; exit 7";
    let way = ["--title-prefix=", "desktop", "through", "--remote-bin", &binary, "env", &runtime];
    let command = ["--", "foot", "sh", "-c", script];
    let mut ferry = ferry.env("WAYLAND_DISPLAY", desk.display()).args(way).args(command).start();
    let window = desk.window("the screen", |window| window.app_id == APP_ID && window.focused);
    assert!(window.title.starts_with("Desktop of "), "{}", window.title);
    home.read_when("inner", |name| name.ends_with(b"\n"));
    Keyboard::new(&desk).enter();
    assert_eq!(ferry.ended().code(), Some(7));
    desk.empty();
    until("the compositor to end", || {
        fs::read_dir(far.runtime()).expect("a directory").flatten().next().is_none().then_some(())
    });
}

#[test]
fn regression_a_compositor_that_was_started_outlives_a_screen_that_is_killed() {
    let (desk, far) = (Sway::start(), Home::new());
    let session = Session::start(&desk);
    let runtime = far.runtime().display().to_string();
    let alone = session.home().wayferry().args(["screen", "--runtime-dir", &runtime]);
    let screen = session.join(alone).start();
    desk.window("the screen", |window| window.app_id == APP_ID);
    let socket = far.runtime().join("wayland-1");
    UnixStream::connect(&socket).expect("the compositor's");
    // The screen alone: what it has started is to end by itself.
    kill_process(screen.pid(), Signal::KILL).expect("it runs");
    until("the compositor to end", || UnixStream::connect(&socket).is_err().then_some(()));
}

pub(crate) const APP_ID: &str = "wayferry-desktop";

/// Has a program that speaks Wayland tell on stderr all that it says and hears.
const TOLD: (&str, &str) = ("WAYLAND_DEBUG", "1");

/// Seconds for which nothing changes.
const REST: u64 = 6;

/// Bytes of so many seconds of rest: each ping with its answer and their acknowledgements has some 130.
const PINGS: u64 = 800;
