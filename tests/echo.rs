//! Letters that are typed into a terminal are on the screen before the program can have answered them, and where a
//! terminal shows none there are none.

use std::time::Duration;

use wayferry_stage::LinkConfig;

use crate::rig::{Compositor, Home, InputMethod, Keyboard, Launch, Picture, Session, Sway, until};

/// Letters that are typed until the terminal's are known, and those that are typed then.
const LEARNED: &str = "hehehehehehe";
const TYPED: &str = "he";

#[test]
fn letters_are_shown_while_no_answer_can_come_and_it_is_what_they_looked_like() {
    shown_at_once(&Sway::start(), LEARNED, || ());
}

/// Fewer letters than it takes to learn what a caret looks like, and where it is.
#[test]
fn where_a_terminal_says_where_its_caret_is_letters_are_shown_sooner() {
    let sway = Sway::start();
    let mut method = InputMethod::new(&sway);
    shown_at_once(&sway, "heheh", || method.is_asked());
}

/// Letters that follow those that are learned, while no answer can come. `ready` waits until the first may be typed.
fn shown_at_once(sway: &Sway, letters: &str, mut ready: impl FnMut()) {
    let mut keyboard = Keyboard::new(sway);
    let pictures = without(sway, &mut keyboard, letters, &mut ready);
    let [first, answered @ .., learned, expected] = &pictures[..] else { panic!("letters") };
    let mut session = Session::start_over(sway, far(), &[]);
    let _foot = session.join(foot(session.home())).start();
    sway.window("foot", |window| window.focused);
    ready();
    sway.shows("an empty terminal", first);
    for (letter, picture) in letters.chars().zip(answered.iter().chain([learned])) {
        keyboard.letter(letter);
        sway.shows("an answer", picture);
    }
    let link = session.link.as_ref().expect("a link");
    link.set_down(true);
    TYPED.chars().for_each(|letter| keyboard.letter(letter));
    until("letters that nothing has answered", || {
        // Below each is a line, for it is not confirmed.
        let now = sway.screenshot();
        let (to_truth, to_before) = (now.differing(expected), now.differing(learned));
        (to_truth > 0 && to_truth < 60 && to_before > to_truth).then_some(())
    });
    link.set_down(false);
    sway.shows("the truth", expected);
    session.must_run();
}

fn foot(home: &Home) -> Launch {
    home.launch("foot").args(["cat"])
}

#[test]
fn nothing_is_shown_of_a_password_that_is_typed_into_a_terminal() {
    let script = "read line; read -s password; echo $password > heard; exec cat";
    let sway = Sway::start();
    let mut keyboard = Keyboard::new(&sway);
    let mut session = Session::start_over(&sway, far(), &[]);
    let _foot = session.launch("foot").args(["bash", "-c", script]).start();
    types_slowly(&sway, &mut keyboard, LEARNED);
    keyboard.enter();
    let before = sway.settled();
    LEARNED.chars().for_each(|letter| keyboard.letter(letter));
    keyboard.enter();
    let heard = until("the password", || {
        assert_eq!(before.differing(&sway.screenshot()), 0, "something is shown");
        std::fs::read(session.home().file("heard")).ok().filter(|heard| heard.ends_with(b"\n"))
    });
    assert_eq!(String::from_utf8_lossy(&heard).trim(), LEARNED);
    session.must_run();
}

/// What a terminal looks like without Wayferry: at first, after each of the letters that are learned, and after the
/// others.
fn without(sway: &Sway, keyboard: &mut Keyboard, learned: &str, ready: impl FnOnce()) -> Vec<Picture> {
    let mut foot = foot(sway.home()).env("WAYLAND_DISPLAY", sway.display()).start();
    sway.window("foot", |window| window.focused);
    ready();
    let mut pictures = vec![sway.settled()];
    for letter in learned.chars() {
        types_slowly(sway, keyboard, &letter.to_string());
        pictures.push(sway.settled());
    }
    types_slowly(sway, keyboard, TYPED);
    pictures.push(sway.settled());
    foot.kill();
    sway.empty();
    pictures
}

/// Types letters, each when the one before is seen.
fn types_slowly(sway: &Sway, keyboard: &mut Keyboard, text: &str) {
    sway.window("foot", |window| window.focused);
    let mut before = sway.settled();
    for letter in text.chars() {
        keyboard.letter(letter);
        before = until("a letter", || Some(sway.screenshot()).filter(|now| *now != before));
    }
}

fn far() -> LinkConfig {
    LinkConfig { one_way_delay: Duration::from_millis(150), ..LinkConfig::default() }
}
