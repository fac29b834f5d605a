//! Clipboard and primary selection in both directions, by programs that know nothing of Wayferry.
//!
//! `wl-copy` and `wl-paste` use the data-control protocol where it is offered, and otherwise take the focus with a
//! small window of their own, as any program would. A session offers that protocol only with `--allow`.

use crate::rig::{Compositor, Home, Launch, Program, Session, Sway, until};

/// Lets the tools reach the clipboard without the focus.
const CONTROL: &[&str] = &["--allow", "zwlr_data_control_manager_v1"];

#[test]
fn one_byte_passes_both_ways() {
    let both = Both::start(CONTROL);
    both.there_to_here(b"x", TEXT);
    both.here_to_there(b"y", TEXT);
}

#[test]
fn a_megabyte_passes_both_ways() {
    let both = Both::start(CONTROL);
    let text: Vec<u8> =
        (0..1_000_000_u32).map(|at| b'a' + (at.wrapping_mul(2_654_435_761) >> 24) as u8 % 26).collect();
    both.there_to_here(&text, TEXT);
    both.here_to_there(&text, TEXT);
}

#[test]
fn an_image_passes_both_ways() {
    let both = Both::start(CONTROL);
    let picture = both.sway.screenshot().keep("clipboard-image");
    let image = std::fs::read(picture).expect("the image");
    both.there_to_here(&image, "image/png");
    both.here_to_there(&image, "image/png");
}

#[test]
fn the_primary_selection_passes_both_ways() {
    let both = Both::start(CONTROL);
    let _far = both.session.launch("wl-copy").args(["-f", "-p", "far"]).start();
    until("the far selection", || {
        (both.sway.launch("wl-paste").args(["-n", "-p"]).text()? == b"far").then_some(())
    });
    both.sway.launch("wl-copy").args(["-p", "near"]).run();
    until("the near selection", || {
        (both.session.launch("wl-paste").args(["-n", "-p"]).text()? == b"near").then_some(())
    });
}

#[test]
fn a_reader_may_stop_early() {
    let mut both = Both::start(CONTROL);
    let text = vec![b'z'; 4_000_000];
    let _owner = both.offer(both.session.launch("wl-copy"), both.session.home(), &text, TEXT);
    let some = || both.sway.launch("sh").args(["-c", "wl-paste -n | head -c 10"]).text();
    assert_eq!(until("the selection", || some().filter(|text| !text.is_empty())), b"zzzzzzzzzz");
    // The session is as good as before.
    both.session.must_run();
    both.here_to_there(b"after", TEXT);
}

#[test]
fn a_program_with_the_focus_needs_no_leave() {
    let both = Both::start(&[]);
    let _far = both.session.launch("wl-copy").args(["-f", "by focus"]).start();
    until("the far text", || (both.sway.launch("wl-paste").arg("-n").text()? == b"by focus").then_some(()));
    both.sway.launch("wl-copy").arg("back").run();
    until("the near text", || (both.session.launch("wl-paste").arg("-n").text()? == b"back").then_some(()));
}

#[test]
fn regression_64_megabytes_are_pasted_beside_typing() {
    let mut both = Both::start(CONTROL);
    let text: Vec<u8> = (0..64_u32 << 20).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let kind = "application/octet-stream";
    let _foot = both.session.launch("foot").args(["sh", "-c", "head -n 1 > heard; exec cat"]).start();
    both.sway.window("foot", |window| window.focused);
    let _owner = both.offer(both.sway.launch("wl-copy"), both.sway.home(), &text, kind);
    let offers = || both.session.launch("wl-paste").arg("--list-types").text();
    until("the offer", || offers().filter(|types| String::from_utf8_lossy(types).contains(kind)));
    let paste = ["-c", "wl-paste -n -t application/octet-stream > pasted"];
    let mut paste = both.session.launch("sh").args(paste).start();
    both.sway.type_text("meanwhile");
    both.sway.keys(&["-k", "Return"]);
    let heard = both.session.home().read_when("heard", |text| text.ends_with(b"\n"));
    assert_eq!(heard, b"meanwhile\n");
    assert!(paste.ended().success());
    let pasted = std::fs::read(both.session.home().file("pasted")).expect("what was pasted");
    assert!(pasted == text, "{} of {} bytes", pasted.len(), text.len());
    both.session.must_run();
}

/// A compositor here and a session with programs there.
struct Both {
    session: Session,
    sway: Sway,
}

impl Both {
    fn start(options: &[&str]) -> Self {
        let sway = Sway::start();
        Self { session: Session::start_with(&sway, options), sway }
    }

    fn there_to_here(&self, content: &[u8], kind: &str) {
        let _owner = self.offer(self.session.launch("wl-copy"), self.session.home(), content, kind);
        self.pasted(|| self.sway.launch("wl-paste"), content, kind);
    }

    fn here_to_there(&self, content: &[u8], kind: &str) {
        let _owner = self.offer(self.sway.launch("wl-copy"), self.sway.home(), content, kind);
        self.pasted(|| self.session.launch("wl-paste"), content, kind);
    }

    /// A program that owns the selection as long as it lives.
    fn offer(&self, copy: Launch, home: &Home, content: &[u8], kind: &str) -> Program {
        copy.args(["-f", "-t", kind]).stdin(home.write("content", content)).start()
    }

    fn pasted(&self, paste: impl Fn() -> Launch, content: &[u8], kind: &str) {
        let mut size = 0;
        until(&format!("{} bytes of {kind}", content.len()), || {
            let got = paste().args(["-n", "-t", kind]).text()?;
            size = got.len();
            (got == content).then_some(())
        });
    }
}

const TEXT: &str = "text/plain;charset=utf-8";
