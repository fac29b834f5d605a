//! Files that the user drags from the desk onto a window of a session.

use std::fs;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use wayferry_stage::{Client, Image, Input, Pane};

use crate::rig::{Compositor, Pointer, Program, Session, Sshd, Sway, until};
use crate::ssh::ferry;

#[test]
fn files_that_are_dropped_on_a_window_are_there_and_its_program_reads_them() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    let mut pointer = sway.pointer();
    let (ferry, socket) = beyond(&sway, &sshd, &[]);
    let mut here = Window::at_the_desk(&sway);
    let mut there = Window::open(&sway, &socket, "there");
    let big: Vec<u8> = (0..500_000_u32).flat_map(u32::to_le_bytes).collect();
    let files = [("letter to ä.txt", &b"dear"[..]), ("big.bin", &big)];
    let paths = files.map(|(name, text)| sway.home().write(name, text).display().to_string());
    let list = format!(
        "file://{}\r\nfile:///nonexistent/x\r\nhttp://localhost/%7Ea\r\nfile://localhost{}\r\nfile://{}\r\n",
        paths[0].replace(' ', "%20").replace('ä', "%C3%A4"),
        paths[1],
        sway.home().path().display(),
    );
    for count in 1..=2 {
        let got = drag(&sway, &mut pointer, (&mut here, &mut there), &list);
        let lines: Vec<&str> = got.lines().collect();
        let [letter, link, copy] = lines[..] else { panic!("{got} {}", ferry.stderr()) };
        assert_eq!(link, "http://localhost/%7Ea");
        for (line, (name, text)) in [letter, copy].into_iter().zip(files) {
            let plain =
                line.replace("%20", " ").replace("%C3%A4", "ä").replace("%28", "(").replace("%29", ")");
            let path = PathBuf::from(plain.strip_prefix("file://").expect("a file"));
            assert!(path.starts_with(sshd.home().file("Downloads/wayferry")), "{line}");
            assert!(fs::read(&path).expect("it is there") == text, "{line}");
            // None is overwritten.
            let (stem, ending) = name.split_at(name.len() - 4);
            let second = if count == 2 { " (2)" } else { "" };
            assert!(path.ends_with(format!("{stem}{second}{ending}")), "{line}");
        }
        until("what the user is told", || (ferry.count("file-dropped") == 2 * count).then_some(()));
        assert_eq!(ferry.count("file-not-dropped"), 2 * count, "{}", ferry.stderr());
    }
}

#[test]
fn what_is_dragged_between_windows_of_a_session_passes_unchanged() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    let mut pointer = sway.pointer();
    let (ferry, socket) = beyond(&sway, &sshd, &[]);
    let mut from = Window::open(&sway, &socket, "from");
    let mut to = Window::open(&sway, &socket, "to");
    assert_eq!(drag(&sway, &mut pointer, (&mut from, &mut to), &secret(&sway)), secret(&sway));
    nothing_was_sent(&sshd, &ferry);
}

#[test]
fn what_is_dragged_from_one_session_to_another_passes_unchanged() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    let mut pointer = sway.pointer();
    let (ferry, socket) = beyond(&sway, &sshd, &[]);
    let other = Session::start(&sway);
    let mut from = Window::over(&sway, other.socket(), "from");
    let mut to = Window::open(&sway, &socket, "to");
    assert_eq!(drag(&sway, &mut pointer, (&mut from, &mut to), &secret(&sway)), secret(&sway));
    nothing_was_sent(&sshd, &ferry);
}

#[test]
fn other_types_that_name_files_of_the_desk_are_not_seen_over_there() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    let mut pointer = sway.pointer();
    let (ferry, socket) = beyond(&sway, &sshd, &[]);
    let mut here = Window::at_the_desk(&sway);
    let mut there = Window::open(&sway, &socket, "there");
    let list = secret(&sway);
    let copied = format!("copy\n{list}");
    let data = [
        ("x-special/gnome-copied-files", &*copied),
        ("application/vnd.portal.filetransfer", "key"),
        ("application/vnd.portal.files", "key"),
        (LIST, &*list),
        ("application/x-kde4-urilist", &*list),
        ("text/plain", "letter"),
    ];
    for (asked, got) in [("x-special/gnome-copied-files", ""), ("text/plain", "letter")] {
        let types = carry(&sway, &mut pointer, (&mut here, &mut there), &data);
        assert_eq!(types, [LIST, "text/plain"]);
        assert_eq!(drop_it(&mut pointer, (&mut here, &mut there), asked), got);
    }
    until("both drops to be over", || (ferry.count("file-dropped") == 2).then_some(()));
}

#[test]
fn what_only_crosses_a_window_is_not_sent_and_its_program_is_given_nothing() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    let mut pointer = sway.pointer();
    let (ferry, socket) = beyond(&sway, &sshd, &[]);
    let mut here = Window::at_the_desk(&sway);
    let mut there = Window::open(&sway, &socket, "there");
    let list = secret(&sway);
    carry(&sway, &mut pointer, (&mut here, &mut there), &[(LIST, &list)]);
    // The program wants to know at once.
    let asked = there.client.receive_drag(LIST).expect("a pipe").expect("it is over its window");
    there.client.round_trip().expect("it is asked");
    let (x, y) = here.middle(&sway);
    here.client.take_inputs();
    pointer.move_to(x - 1, y);
    pointer.move_to(x, y);
    there.client.wait_input(|input| *input == Input::DragLeave).expect("it has crossed");
    let mut got = String::new();
    fs::File::from(asked).read_to_string(&mut got).expect("its end");
    assert_eq!(got, "");
    here.client.wait_input(|input| matches!(input, Input::DragEnter { .. })).expect("it is back");
    here.client.round_trip().expect("what it says is read");
    pointer.release();
    here.client.wait_input(|input| *input == Input::Drop).expect("it is dropped where it came from");
    assert_eq!(here.client.take_drop(LIST).expect("the list"), Some(list.into_bytes()));
    assert_eq!(ferry.count("file-dropping"), 0);
    nothing_was_sent(&sshd, &ferry);
}

#[test]
fn files_with_odd_names_are_dropped_under_plain_ones_and_told_in_plain_letters() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    let mut pointer = sway.pointer();
    let (ferry, socket) = beyond(&sway, &sshd, &[]);
    let mut here = Window::at_the_desk(&sway);
    let mut there = Window::open(&sway, &socket, "there");
    let long = "x".repeat(255);
    let names = ["a\u{1b}[2J\nb", "-rf", ".bashrc", &long, "50%2F.."];
    let address = |name: &&str| {
        let bytes = name.bytes().map(|byte| format!("%{byte:02x}")).collect::<String>();
        format!("file://{}/{bytes}\r\n", sway.home().path().display())
    };
    names.iter().for_each(|name| fs::write(sway.home().file(name), "x").expect("written"));
    let list = names.iter().map(address).collect::<String>();
    let got = drag(&sway, &mut pointer, (&mut here, &mut there), &list);
    let kept = ["a_%5B2J_b", "_rf", "_bashrc", &long[..200], "50%252F.."];
    let last: Vec<&str> = got.lines().filter_map(|line| line.rsplit('/').next()).collect();
    assert_eq!(last, kept);
    assert!(!ferry.stderr().contains('\u{1b}'), "{}", ferry.stderr());
}

#[test]
fn how_far_a_large_file_is_that_was_dropped_is_shown_on_the_terminal() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    let mut pointer = sway.pointer();
    let terminal = ["python3", "-c", "import pty, sys; pty.spawn(sys.argv[1:])"];
    let (mut ferry, socket) = beyond_under(&terminal, &sway, &sshd, &[]);
    let mut here = Window::at_the_desk(&sway);
    let mut there = Window::open(&sway, &socket, "there");
    let path = sway.home().write("big.bin", "");
    // Without bytes on the disk here; it is not waited for there.
    fs::File::options().write(true).open(&path).and_then(|file| file.set_len(4 << 30)).expect("a length");
    carry(&sway, &mut pointer, (&mut here, &mut there), &[(LIST, &format!("file://{}\r\n", path.display()))]);
    pointer.release();
    until("how far it is", || {
        ferry.must_run();
        // It gives the list.
        here.client.dispatch(Duration::from_millis(10)).expect("a compositor");
        ferry.stdout().contains("\r\x1b[Kbig.bin: ").then_some(())
    });
    assert!(ferry.count("file-progress") > 0);
    // It takes no line of its own: it is erased before anything else is written.
    let shown = ferry.stdout();
    let pieces = shown.split("\r\x1b[Kbig.bin: ").skip(1).map(|rest| rest.split("\x1b[K").next());
    assert!(pieces.flatten().all(|piece| !piece.contains('\n')), "{shown}");
}

/// A list that names a file of the desk.
fn secret(sway: &Sway) -> String {
    format!("file://{}\r\n", sway.home().write("secret", "x").display())
}

fn nothing_was_sent(sshd: &Sshd, ferry: &Program) {
    assert_eq!(ferry.count("file-dropped") + ferry.count("file-not-dropped"), 0);
    assert!(!sshd.home().file("Downloads").exists());
}

#[test]
fn where_the_host_takes_no_files_none_is_dropped_and_the_user_is_told() {
    let sway = Sway::start();
    let mut pointer = sway.pointer();
    let session = Session::start(&sway);
    let mut here = Window::at_the_desk(&sway);
    let mut there = Window::over(&sway, session.socket(), "there");
    let file = sway.home().write("letter", "dear").display().to_string();
    let list = format!("file://{file}\r\nhttp://localhost/\r\n");
    assert_eq!(drag(&sway, &mut pointer, (&mut here, &mut there), &list), "http://localhost/\r\n");
    until("what the user is told", || (session.attach.count("file-not-dropped") == 1).then_some(()));
    assert!(!session.home().file("Downloads").exists());
    // What the program drags to the desk is its own.
    assert_eq!(drag(&sway, &mut pointer, (&mut there, &mut here), &list), list);
}

#[test]
fn a_desk_that_lets_no_files_cross_drops_none() {
    let (sway, sshd) = (Sway::start(), Sshd::start());
    let mut pointer = sway.pointer();
    let (ferry, socket) = beyond(&sway, &sshd, &["--files", "off"]);
    let mut here = Window::at_the_desk(&sway);
    let mut there = Window::open(&sway, &socket, "there");
    let list = format!("file://{}\r\n", sway.home().write("letter", "dear").display());
    assert_eq!(drag(&sway, &mut pointer, (&mut here, &mut there), &list), "");
    until("what the user is told", || ferry.stderr().contains("--files off").then_some(()));
    assert!(!sshd.home().file("Downloads").exists());
}

/// A session over there that is shown here, and where its programs connect to.
fn beyond(sway: &Sway, sshd: &Sshd, options: &[&str]) -> (Program, PathBuf) {
    beyond_under(&[], sway, sshd, options)
}

/// The same, begun by these words.
fn beyond_under(words: &[&str], sway: &Sway, sshd: &Sshd, options: &[&str]) -> (Program, PathBuf) {
    let line = "'echo $WAYLAND_DISPLAY > $HOME/display; exec tail -f /dev/null'";
    let mut ferry = ferry(sway, sshd, options, &["sh", "-c", line]).under(words).start();
    let socket = until("the session's program", || {
        ferry.must_run();
        fs::read_to_string(sshd.home().file("display")).ok().filter(|path| path.ends_with('\n'))
    });
    (ferry, socket.trim().into())
}

/// A window of a program that the test plays.
struct Window {
    client: Client,
    pane: Pane,
    title: String,
}

impl Window {
    fn at_the_desk(sway: &Sway) -> Self {
        Self::open(sway, &sway.home().runtime().join(sway.display()), "here")
    }

    fn open(sway: &Sway, socket: &Path, title: &str) -> Self {
        Self::over(sway, UnixStream::connect(socket).expect("a compositor"), title)
    }

    fn over(sway: &Sway, socket: UnixStream, title: &str) -> Self {
        let mut client = Client::from_stream(socket).expect("a compositor");
        let pane = client.window(title, 640, 720).expect("a window");
        client.draw(pane, &Image::new(1280, 720, 0xff80_8080)).expect("its picture");
        sway.window(title, |window| window.title.ends_with(title));
        Self { client, pane, title: title.to_owned() }
    }

    /// Its middle on the output.
    fn middle(&self, sway: &Sway) -> (u32, u32) {
        let window = sway.window(&self.title, |window| window.title.ends_with(&self.title));
        let middle = |from: i64, length: i64| u32::try_from(from + length / 2).expect("on the output");
        (middle(window.place.0, window.width), middle(window.place.1, window.height))
    }
}

/// Drags a list of addresses from one window to the other; gives what that one's program reads.
fn drag(sway: &Sway, pointer: &mut Pointer, between: (&mut Window, &mut Window), list: &str) -> String {
    let (from, to) = between;
    let types = carry(sway, pointer, (from, to), &[(LIST, list)]);
    // The desk may see that it is of a session; no program of one does.
    assert!(types == [LIST] || (to.title == "here" && types[0] == LIST), "{types:?}");
    drop_it(pointer, (from, to), LIST)
}

/// Drags this, by its types, from one window over the other, which takes it; gives the types that that one sees.
fn carry(
    sway: &Sway,
    pointer: &mut Pointer,
    (from, to): (&mut Window, &mut Window),
    data: &[(&str, &str)],
) -> Vec<String> {
    let ((x, y), (to_x, to_y)) = (from.middle(sway), to.middle(sway));
    from.client.take_inputs();
    to.client.take_inputs();
    pointer.move_to(x, y);
    pointer.press();
    let is_press = |input: &Input| matches!(input, Input::Button { pressed: true, .. });
    from.client.wait_input(is_press).expect("a button");
    let data = data.iter().map(|(kind, text)| ((*kind).to_owned(), text.as_bytes().to_vec()));
    from.client.start_drag(from.pane, None, data.collect()).expect("a drag");
    std::thread::scope(|scope| {
        let accepted = scope.spawn(|| from.client.wait_input(|input| *input == Input::DragAccepted));
        // The drag may begin after a motion, which then tells nothing.
        let types = until("the drag to come", || {
            pointer.move_to(to_x - 1, to_y);
            pointer.move_to(to_x, to_y);
            to.client.dispatch(Duration::from_millis(10)).expect("a compositor");
            to.client.take_inputs().into_iter().find_map(|input| match input {
                Input::DragEnter { types, .. } => Some(types),
                _ => None,
            })
        });
        to.client.round_trip().expect("what it says is read");
        accepted.join().expect("no panic").expect("it would be taken");
        types
    })
}

/// Drops what is dragged; gives what the program of the second window reads of this type.
fn drop_it(pointer: &mut Pointer, (from, to): (&mut Window, &mut Window), kind: &str) -> String {
    pointer.release();
    std::thread::scope(|scope| {
        let over = |input: &Input| matches!(input, Input::DragFinished | Input::DragCancelled);
        let finished = scope.spawn(move || from.client.wait_input(over));
        to.client.wait_input(|input| *input == Input::Drop).expect("a drop");
        let got = to.client.take_drop(kind).expect("the list").expect("something");
        assert_eq!(finished.join().expect("no panic").expect("its end"), Input::DragFinished);
        String::from_utf8(got).expect("letters")
    })
}

const LIST: &str = "text/uri-list";
