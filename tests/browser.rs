//! A page in Chromium as a viewer: what its canvas shows is what the program drew. As the display: what is typed and
//! clicked is what the program hears.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::info::info;
use crate::programs::FOOT;
use crate::rig::{Chromium, Compositor, Firefox, Home, PATIENCE, Picture, Session, Sway, poll, until};
use crate::sessions::manage;
use crate::slow_link::{mpv_to_its_end, narrow};
use crate::sound::{Ear, Hosted};
use crate::suspended::{go_on, stop};
use crate::views::{self, view_here};

#[test]
#[ignore = "opens Chromium more often than `make test` has time for"]
fn a_page_in_chromium_shows_the_pixels_that_the_program_drew_and_hears_of_the_end() {
    let sway = Sway::start();
    let mut session = Session::start(&sway);
    let mut foot = session.join((FOOT.prepare)(session.home())).start();
    sway.window("foot", |_| true);
    let expected = sway.settled();
    let origin = serve();
    let mut chromium = Chromium::open(session.home(), &link(&session, &origin));
    shows("a program", &expected, || chromium.canvas());
    assert_eq!(chromium.evaluate("location.hash"), json!(""), "the ticket is not left in the address");
    assert_eq!(chromium.evaluate("document.documentElement?.dataset.state"), json!("shown"));
    foot.must_run();
    manage(&session, &["detach", "--views"]).run();
    state(&mut chromium, "done");
    session.must_run();
}

#[test]
fn what_is_typed_and_clicked_in_chromium_reaches_the_program_that_it_displays() {
    let sway = Sway::start();
    let mut session = Session::start(&sway);
    let mut foot = session.launch("foot").args(["sh", "-c", LISTENER]).start();
    sway.window("foot", |_| true);
    let mut chromium = Chromium::open(session.home(), &control_link(&session, &serve()));
    state(&mut chromium, "shown");
    assert_eq!(session.attach.ended().code(), Some(0), "the display before is told to leave");
    let before = in_front(&mut chromium);
    for (code, key) in [("KeyH", "h"), ("KeyI", "i"), ("Space", " "), ("KeyE", "é")] {
        chromium.press(code, key);
    }
    chromium.write("漢");
    until("what was typed to be shown", || (chromium.canvas()? != before).then_some(()));
    chromium.press("Enter", "Enter");
    let heard = session.home().read_when("heard", |heard| heard.ends_with(b"\n"));
    assert_eq!(String::from_utf8_lossy(&heard), "hi é漢\n");
    until("a shell that listens to the mouse", || session.home().file("listens").exists().then_some(()));
    let (x, y) = corner(&mut chromium);
    chromium.click(x + 6.0, y + 6.0);
    // The left button, pressed in the first column and row.
    session.home().read_when("clicked", |clicked| clicked.starts_with(b"\x1b[<0;1;1M"));
    foot.must_run();
    assert_eq!(
        chromium.evaluate(OVER),
        json!("none"),
        "regression: the last picture stayed below the notice"
    );
    session.host.must_run();
}

#[test]
#[ignore = "opens Chromium more often than `make test` has time for"]
fn a_page_finds_its_session_again_after_a_silence_with_what_was_typed_meanwhile() {
    let sway = Sway::start();
    let mut session = Session::start(&sway);
    let mut foot = session.launch("foot").args(["sh", "-c", LISTENER]).start();
    sway.window("foot", |_| true);
    let origin = serve();
    let home = Home::new();
    let mut viewer = Chromium::open(&home, &link(&session, &origin));
    state(&mut viewer, "shown");
    let mut display = Chromium::open(session.home(), &control_link(&session, &origin));
    state(&mut display, "shown");
    in_front(&mut display);
    // Not while a key is down: its program would repeat it until the host tells that it is up.
    stop(session.host.pid());
    display.press("KeyH", "h");
    display.press("KeyI", "i");
    // Chromium gives up after half a minute by itself; the page looks for the session sooner.
    state(&mut display, "away");
    state(&mut viewer, "away");
    display.press("Enter", "Enter");
    go_on(session.host.pid());
    state(&mut display, "shown");
    state(&mut viewer, "shown");
    let heard = session.home().read_when("heard", |heard| heard.ends_with(b"\n"));
    assert_eq!(String::from_utf8_lossy(&heard), "hi\n");
    until("the viewer to see what the display sees", || {
        (viewer.canvas()? == display.canvas()?).then_some(())
    });
    foot.must_run();
    session.host.must_run();
}

#[test]
#[ignore = "opens Chromium more often than `make test` has time for"]
fn a_link_that_was_used_or_is_none_says_so() {
    let sway = Sway::start();
    let session = Session::start(&sway);
    let origin = serve();
    let link = link(&session, &origin);
    let mut first = Chromium::open(session.home(), &link);
    state(&mut first, "shown");
    drop(first);
    let other = Home::new();
    let mut second = Chromium::open(&other, &link);
    state(&mut second, "refused");
    let told = second.evaluate("document.getElementById('notice').innerText");
    assert!(told.as_str().is_some_and(|told| told.contains("another one")), "{told}");
    let elsewhere = Home::new();
    state(&mut Chromium::open(&elsewhere, &format!("{origin}/#wf1:nonsense")), "no link");
}

#[test]
#[ignore = "opens Chromium more often than `make test` has time for"]
fn what_a_program_copies_chromium_has_and_what_chromium_has_is_pasted_into_a_program() {
    let sway = Sway::start();
    let mut session = Session::start(&sway);
    let mut foot = session.launch("foot").args(["sh", "-c", COPIER]).start();
    sway.window("foot", |_| true);
    let origin = serve();
    let mut chromium = Chromium::open(session.home(), &control_link(&session, &origin));
    chromium.grant_clipboard(&origin);
    state(&mut chromium, "shown");
    in_front(&mut chromium);
    chromium.press("Enter", "Enter");
    until("what the program copies", || {
        (chromium.evaluate(READ) == json!("of the program, é")).then_some(())
    });
    // What it has copied itself, by way of the browser, and then what the browser has.
    // A program reads what it pastes when it likes, also behind keys and what is pasted later.
    let pasted = |end: &str| session.home().read_when("pasted", |pasted| pasted.ends_with(end.as_bytes()));
    chromium.shortcut('V');
    assert_eq!(String::from_utf8_lossy(&pasted("é")), "of the program, é");
    chromium.evaluate("navigator.clipboard.writeText('; of the browser, 漢')");
    chromium.shortcut('V');
    assert_eq!(String::from_utf8_lossy(&pasted("漢")), "of the program, é; of the browser, 漢");
    foot.must_run();
    session.host.must_run();
}

#[test]
#[ignore = "opens Chromium more often than `make test` has time for"]
fn a_picture_that_a_program_copies_chromium_has_and_one_of_chromiums_is_pasted() {
    let sway = Sway::start();
    let mut session = Session::start(&sway);
    let mut foot = session.launch("foot").args(["sh", "-c", "seq 50; exec cat"]).start();
    sway.window("foot", |_| true);
    sway.settled();
    let png = sway.launch("grim").args(["-g", "0,0 60x40", "-t", "png", "-"]).run();
    let expected = Picture::from_png(&session.home().write("picture.png", png)).expect("a picture");
    assert!(expected.colours() > 3, "it shows something");
    let origin = serve();
    let mut chromium = Chromium::open(session.home(), &control_link(&session, &origin));
    chromium.grant_clipboard(&origin);
    state(&mut chromium, "shown");
    in_front(&mut chromium);
    let copying = "exec wl-copy -f -t image/png < picture.png";
    let copier = session.launch("sh").args(["-c", copying]).start();
    until("the picture that was copied", || {
        let told = chromium.evaluate(PICTURE);
        let pixels = told["pixels"].as_array()?.iter().map(|value| value.as_u64().expect("a byte") as u8);
        let side = |name| told[name].as_u64().expect("a length") as usize;
        (Picture::of(side("width"), side("height"), pixels.collect()) == expected).then_some(())
    });
    chromium.evaluate(INVERT);
    drop(copier);
    in_front(&mut chromium);
    chromium.paste();
    let pasted = session.home().file("pasted.png");
    let inverted = until("the picture that was pasted", || {
        session.launch("sh").args(["-c", "wl-paste -t image/png > pasted.png"]).start().ended();
        Picture::from_png(&pasted).filter(|pasted| pasted != &expected)
    });
    assert_eq!(inverted.size(), expected.size());
    for at in (0..60).flat_map(|x| (0..40).map(move |y| (x, y))) {
        let opposite = expected.pixel(at.0, at.1).map(|value| 255 - value);
        assert_eq!(inverted.pixel(at.0, at.1), opposite, "{at:?}");
    }
    foot.must_run();
    session.host.must_run();
}

#[test]
#[ignore = "opens Chromium more often than `make test` has time for"]
fn a_video_crosses_to_a_page_in_chromium_as_frames_and_is_exact_when_it_stops() {
    let sway = Sway::with_output(1600, 900);
    // What the display is sent, the page is sent too, if it takes it.
    let mut session = Session::start_over(&sway, narrow(), &[]);
    let mut chromium = Chromium::open(session.home(), &link(&session, &serve()));
    state(&mut chromium, "shown");
    let mut program = session.join(mpv_to_its_end(session.home()).arg("--loop-file=2")).start();
    let shared = || info(session.home())[0]["view_updates_shared"].as_u64();
    until("a video", || {
        let sides = info(session.home());
        sides[0]["surfaces"].as_array()?.iter().any(|surface| surface["videos"] == 1).then_some(())
    });
    // As long as there is a video, only who takes frames is sent what the display is sent.
    let before = shared().expect("a number");
    until("frames", || (shared()? >= before + 10).then_some(()));
    let expected = sway.settled();
    until("the page to show what the display shows", || (chromium.canvas()? == expected).then_some(()));
    program.must_run();
    session.must_run();
}

#[test]
#[ignore = "opens Chromium more often than `make test` has time for"]
fn a_page_of_another_size_in_chromium_gives_it_to_the_window_and_its_wheel_scrolls() {
    let sway = Sway::start();
    let mut session = Session::start(&sway);
    let foot = session.launch("foot").args(["sh", "-c", SIZES]).start();
    sway.window("foot", |_| true);
    let mut chromium = Chromium::open(session.home(), &control_link(&session, &serve()));
    state(&mut chromium, "shown");
    in_front(&mut chromium);
    let told = |last: &[u8]| session.home().read_when("size", |size| size.ends_with(b"\n") && size != last);
    let mut last = told(b"");
    for (width, height, ratio) in [(700, 500, 1.0), (500, 400, 2.0), (950, 650, 1.0)] {
        chromium.resize(width, height, ratio);
        until("a picture that fills the page", || {
            let (wide, high) = area(&mut chromium);
            let pixels = [wide, high].map(|length| (f64::from(length) * ratio) as u32);
            (wide == width && high < height && chromium.canvas()?.size() == pixels.into()).then_some(())
        });
        last = told(&last);
    }
    drop(foot);
    let program = session.launch("weston-eventdemo").args(["--log-axis", "--log-motion"]);
    let mut program = program.under(&["stdbuf", "-oL"]).start();
    until("the program in front", || {
        chromium.evaluate("document.title").as_str()?.contains("EventDemo").then_some(())
    });
    in_front(&mut chromium);
    until("the pointer", || {
        let (left, top) = corner(&mut chromium);
        chromium.point(left + 199.0, top + 200.0);
        chromium.point(left + 200.0, top + 200.0);
        program.stdout().contains("motion").then_some(())
    });
    let (left, top) = corner(&mut chromium);
    let steps = [1, -1];
    for step in steps {
        chromium.wheel(left + 200.0, top + 200.0, step);
    }
    until("both", || (program.stdout().matches("axis time").count() == steps.len()).then_some(()));
    let heard = program.stdout();
    for step in steps {
        for expected in [
            format!("axis discrete axis: 0 value: {step}\n"),
            format!("axis: vertical, value: {}.000000\n", 15 * step),
        ] {
            assert_eq!(heard.matches(&expected).count(), 1, "{expected} in {heard}");
        }
    }
    program.must_run();
    session.host.must_run();
}

#[test]
#[ignore = "needs Firefox ESR"]
fn a_page_in_firefox_shows_the_pixels_that_the_program_drew() {
    let sway = Sway::start();
    let mut session = Session::start(&sway);
    let mut foot = session.join((FOOT.prepare)(session.home())).start();
    sway.window("foot", |_| true);
    let expected = sway.settled();
    let mut firefox = Firefox::open(session.home(), &link(&session, &serve()));
    shows("a program in Firefox", &expected, || firefox.canvas());
    foot.must_run();
    session.must_run();
}

#[test]
#[ignore = "needs Firefox ESR"]
fn firefox_shows_a_program_and_types_into_it() {
    let sway = Sway::start();
    let mut session = Session::start(&sway);
    let mut foot = session.launch("foot").args(["sh", "-c", LISTENER]).start();
    sway.window("foot", |_| true);
    let mut firefox = Firefox::open(session.home(), &control_link(&session, &serve()));
    let before = poll(PATIENCE, || {
        let front = firefox.evaluate("document.activeElement.id");
        (front == json!("field")).then(|| firefox.canvas())?
    });
    let told = firefox.evaluate("[document.documentElement.dataset.state, document.body.innerText]");
    let before = before.unwrap_or_else(|| panic!("no window in front: {told}"));
    firefox.press("hi é");
    until("what was typed to be shown", || (firefox.canvas()? != before).then_some(()));
    // A viewer natively, which has the pixels of the display.
    let looking = Sway::with_output(1600, 1200);
    let mut view = view_here(&session, &looking).start();
    looking.window("foot at the view", |window| window.app_id == "foot");
    let shown = firefox.canvas().expect("a window");
    views::shows(&looking, &shown);
    view.must_run();
    firefox.press("\u{e006}");
    let heard = session.home().read_when("heard", |heard| heard.ends_with(b"\n"));
    assert_eq!(String::from_utf8_lossy(&heard), "hi é\n");
    foot.must_run();
    session.host.must_run();
}

#[test]
#[ignore = "opens Chromium more often than `make test` has time for"]
fn a_tone_of_the_session_is_heard_in_chromium_once_its_user_has_clicked() {
    let hosted = Hosted::start(&["--share-audio"]);
    let ear = Ear::start(&[], &[&hosted.ticket]);
    let mut session = hosted.heard_by(ear);
    let _tone = session.tone();
    let origin = serve();
    for (options, role) in [(&["--view"][..], ""), (&[], "control,")] {
        let ticket = session.ticket(&[options, &["--page", &origin]].concat());
        let home = Home::new();
        let mut chromium = Chromium::open(&home, &format!("{origin}/#{role}{ticket}"));
        until("a session with sound", || (!chromium.evaluate(BUTTON)["hidden"].as_bool()?).then_some(()));
        assert_eq!(chromium.evaluate(BUTTON)["pressed"], json!("false"), "the user has not clicked yet");
        chromium.evaluate(LISTEN);
        chromium.click(300.0, 300.0);
        until("the sound to be on", || (chromium.evaluate(BUTTON)["pressed"] == json!("true")).then_some(()));
        hears(&mut chromium, |heard| (438.0..=442.0).contains(&heard.pitch) && heard.loudest > 0.4);
        let before = hears(&mut chromium, |_| true).seconds;
        hears(&mut chromium, |heard| heard.seconds > before + 3.0 && heard.silent < 0.001);
        chromium.cover();
        until("a tab that is not seen", || {
            (chromium.evaluate("document.visibilityState") == json!("hidden")).then_some(())
        });
        let before = hears(&mut chromium, |_| true).seconds;
        hears(&mut chromium, |heard| heard.seconds > before + 3.0 && heard.silent < 0.001);
        chromium.evaluate("document.getElementById('sound').click()");
        assert_eq!(chromium.evaluate(BUTTON)["pressed"], json!("false"));
        until("the browser to play nothing", || {
            (chromium.evaluate("heard.context.state") == json!("suspended")).then_some(())
        });
        chromium.evaluate("document.getElementById('sound').click()");
        let before = hears(&mut chromium, |_| true).seconds;
        hears(&mut chromium, |heard| {
            heard.seconds > before + 1.0 && (438.0..=442.0).contains(&heard.pitch) && heard.silent < 0.001
        });
    }
    session.host.must_run();
}

/// What the page has played lately, as the browser heard it.
#[derive(Debug)]
pub(crate) struct Heard {
    /// How long it has been playing.
    seconds: f64,
    /// Periods in a second.
    pub(crate) pitch: f64,
    pub(crate) loudest: f64,
    /// Seconds of the longest silence.
    silent: f64,
}

/// Waits until the page plays something like this.
pub(crate) fn hears(chromium: &mut Chromium, is_it: impl Fn(&Heard) -> bool) -> Heard {
    let mut last = json!(null);
    let heard = poll(PATIENCE, || {
        last = chromium.evaluate(HEARD);
        let number = |name: &str| last[name].as_f64();
        let [seconds, pitch] = [number("seconds")?, number("pitch")?];
        let heard = Heard { seconds, pitch, loudest: number("loudest")?, silent: number("silent")? };
        is_it(&heard).then_some(heard)
    });
    heard.unwrap_or_else(|| panic!("what is heard is {last}"))
}

/// Waits until a page's canvas shows this; keeps both pictures when it never does.
pub(crate) fn shows(what: &str, expected: &Picture, mut canvas: impl FnMut() -> Option<Picture>) {
    let mut shown = None;
    let same = poll(PATIENCE, || {
        shown = canvas();
        (shown.as_ref() == Some(expected)).then_some(())
    });
    if same.is_none() {
        let place = expected.keep("page-expected");
        let shown = shown.inspect(|shown| drop(shown.keep("page-shown")));
        let difference = shown.map(|shown| expected.difference(&shown));
        panic!("{what} in the page: {difference:?}; pictures in {place}");
    }
}

/// The size of the page's room for windows, in its own pixels.
pub(crate) fn area(chromium: &mut Chromium) -> (u32, u32) {
    let area = chromium.evaluate(AREA);
    let side = |at: usize| area[at].as_u64().expect("a length") as u32;
    (side(0), side(1))
}

/// Where the window's canvas begins on the page.
pub(crate) fn corner(chromium: &mut Chromium) -> (f64, f64) {
    let corner = chromium.evaluate(CORNER);
    let side = |name| corner[name].as_f64().expect("a number");
    (side("x"), side("y"))
}

/// The picture of the window in front, once the keys go there.
pub(crate) fn in_front(chromium: &mut Chromium) -> Picture {
    until("the window in front", || {
        (chromium.evaluate("document.activeElement.id") == json!("field")).then(|| chromium.canvas())?
    })
}

/// Waits until the page is in this state.
pub(crate) fn state(chromium: &mut Chromium, state: &str) {
    let mut last = json!(null);
    let reached = poll(PATIENCE, || {
        last = chromium.evaluate("document.documentElement?.dataset.state");
        (last == json!(state)).then_some(())
    });
    assert!(reached.is_some(), "the page is `{last}` and not `{state}`");
}

/// The link of a page that is to be the display.
pub(crate) fn control_link(session: &Session, origin: &str) -> String {
    let printed = manage(session, &["ticket", "--page", origin]).run();
    format!("{origin}/#control,{}", String::from_utf8(printed).expect("text").trim())
}

/// The link that a user would open.
pub(crate) fn link(session: &Session, origin: &str) -> String {
    let printed = manage(session, &["ticket", "--view", "--page", origin]).run();
    format!("{origin}/#{}", String::from_utf8(printed).expect("text").trim())
}

/// Serves the page on this machine; gives its origin.
pub(crate) fn serve() -> String {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../page");
    assert!(folder.join("viewer.wasm").exists(), "there is no page: run `make page`");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let folder = folder.clone();
            // Chromium opens connections ahead on which it may ask for nothing. One that goes away in between is none
            // of this test's.
            std::thread::spawn(move || drop(answer(&stream, &folder)));
        }
    });
    format!("http://localhost:{port}")
}

fn answer(mut stream: &TcpStream, folder: &Path) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream).lines();
    let asked = lines.next().transpose()?.unwrap_or_default();
    while lines.next().transpose()?.is_some_and(|line| !line.is_empty()) {}
    let name = asked.split(' ').nth(1).unwrap_or_default().trim_start_matches('/');
    let name = if name.is_empty() { "index.html" } else { name };
    let kind = match PathBuf::from(name).extension().and_then(|kind| kind.to_str()) {
        Some("html") => "text/html",
        Some("css") => "text/css",
        Some("wasm") => "application/wasm",
        _ => "text/javascript",
    };
    let (status, body) = match std::fs::read(folder.join(name)) {
        Ok(body) => ("200 OK", body),
        Err(_) => ("404 Not Found", Vec::new()),
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(&[head.as_bytes(), &body].concat())
}

/// Keeps a line, and then what the terminal says of the mouse (SGR, 1006).
const LISTENER: &str = "head -n 1 > heard; stty raw -echo; printf '\\033[?1000h\\033[?1006h'; \
    touch listens; head -c 9 > clicked; exec cat";

/// Keeps what size it has, each time.
const SIZES: &str = "trap 'stty size > size' WINCH; stty size > size; while :; do read line; done";

/// Copies something after a line, and keeps what is pasted up to the end of another.
const COPIER: &str = "head -n 1 > begun; printf '\\033]52;c;%s\\a' \"$(printf 'of the program, é' | base64)\"; \
    stty -icanon; exec cat > pasted";

/// What the clipboard has.
const READ: &str = "navigator.clipboard.readText()";

/// The clipboard's picture, if it has one.
const PICTURE: &str = r"(async () => {
    const [item] = await navigator.clipboard.read();
    if (!item?.types.includes('image/png')) {
        return {};
    }
    const picture = await createImageBitmap(await item.getType('image/png'));
    const { width, height } = picture;
    const context = new OffscreenCanvas(width, height).getContext('2d');
    context.drawImage(picture, 0, 0);
    const all = context.getImageData(0, 0, width, height).data;
    return { width, height, pixels: [...all].filter((_, at) => at % 4 < 3) };
})()";

/// Puts the opposite of that into the clipboard, as another window would, to which the user has gone meanwhile.
const INVERT: &str = r"(async () => {
    const [item] = await navigator.clipboard.read();
    const picture = await createImageBitmap(await item.getType('image/png'));
    const canvas = new OffscreenCanvas(picture.width, picture.height);
    const context = canvas.getContext('2d');
    context.drawImage(picture, 0, 0);
    const all = context.getImageData(0, 0, picture.width, picture.height);
    all.data.forEach((value, at) => { all.data[at] = at % 4 < 3 ? 255 - value : value; });
    context.putImageData(all, 0, 0);
    const blob = await canvas.convertToBlob({ type: 'image/png' });
    await navigator.clipboard.write([new ClipboardItem({ 'image/png': blob })]);
    dispatchEvent(new Event('blur'));
})()";

/// The button for sound.
pub(crate) const BUTTON: &str = r"(() => {
    const button = document.getElementById('sound');
    return button && { hidden: button.hidden, pressed: button.ariaPressed };
})()";

/// Has what the page plays looked at, too.
pub(crate) const LISTEN: &str = r"{
    const { connect } = AudioNode.prototype;
    AudioNode.prototype.connect = function (to, ...more) {
        if (to === this.context.destination) {
            const analyser = new AnalyserNode(this.context, { fftSize: 32768 });
            window.heard = { context: this.context, analyser };
            connect.call(this, analyser);
        }
        return connect.call(this, to, ...more);
    };
}";

/// What it was for the last two thirds of a second.
const HEARD: &str = r"(() => {
    if (!window.heard) return null;
    const { context, analyser } = window.heard;
    const samples = new Float32Array(analyser.fftSize);
    analyser.getFloatTimeDomainData(samples);
    let [rises, loudest, silent, run] = [0, 0, 0, 0];
    samples.forEach((sample, at) => {
        rises += at > 0 && samples[at - 1] < 0 && sample >= 0;
        loudest = Math.max(loudest, Math.abs(sample));
        run = Math.abs(sample) < 0.001 ? run + 1 : 0;
        silent = Math.max(silent, run / context.sampleRate);
    });
    const pitch = (rises * context.sampleRate) / samples.length;
    return { seconds: context.currentTime, pitch, loudest, silent };
})()";

/// How the windows are laid out once it is over.
const OVER: &str = "(() => {
    document.documentElement.classList.add('over');
    return getComputedStyle(document.getElementById('windows')).display;
})()";

/// The size of the place that has the windows.
const AREA: &str = "(({ clientWidth, clientHeight }) => [clientWidth, clientHeight])(\
    document.getElementById('windows'))";

/// Where the window's canvas is on the page.
const CORNER: &str = "document.querySelector('canvas').getBoundingClientRect().toJSON()";
