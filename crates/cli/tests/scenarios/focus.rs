//! Keyboard and pointer while surfaces come, go and change.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use wayferry_stage::{Clipboard, Image, Input, LinkConfig, Outage, StageEvent};

use crate::rig::{Far, from_now, noise, picture, rough};

#[test]
fn a_window_destroyed_while_the_focus_is_on_its_way_to_it() {
    let far = Far::start(3);
    let mut first = far.window("first");
    let client = &mut first.client;
    let mut watch = from_now(&far.stage);
    let doomed = client.window("doomed", 64, 64).unwrap();
    client.draw(doomed, &noise(64, 64, 1)).unwrap();
    let second = watch.commit(|commit| commit.title.as_deref() == Some("doomed") && commit.attached).unwrap();
    client.wait_input(|input| *input == Input::KeyboardEnter { pane: Some(doomed), keys: vec![] }).unwrap();
    far.stage.set_focus(Some(first.surface));
    client
        .wait_input(|input| *input == Input::KeyboardEnter { pane: Some(first.pane), keys: vec![] })
        .unwrap();

    // The focus and a key leave the display while the destruction leaves the program.
    let mut watch = from_now(&far.stage);
    far.stage.set_focus(Some(second.surface));
    far.stage.key(A, true);
    far.stage.key(A, false);
    client.destroy(doomed);
    client.flush().unwrap();
    watch.until(|event| *event == StageEvent::KeyboardFocus { surface: Some(first.surface) }).unwrap();
    far.stage.key(B, true);
    far.stage.key(B, false);
    let last = |input: &Input| matches!(input, Input::Key { code: B, pressed: false, .. });
    let mut focus = None;
    loop {
        let input = client.next_input().unwrap();
        match &input {
            Input::KeyboardEnter { pane, .. } => {
                // Where the protocol allows no null, libraries end a program over one.
                assert_ne!(*pane, None, "an enter of no surface");
                focus = *pane;
            }
            input if last(input) => break,
            _ => {}
        }
    }
    assert_eq!(focus, Some(first.pane));
    client.round_trip().unwrap();
    drop(first);
    far.end();
}

#[test]
fn ctrl_v_right_after_a_copy_pastes_the_new_text() {
    let far = Far::start(4);
    let mut shown = far.window("editor");
    for round in 0..8 {
        let text = format!("copied in round {round}").into_bytes();
        far.stage.set_clipboard(Clipboard::Regular, vec![(TEXT.to_owned(), text.clone())]);
        control(&far, V);
        pressed(&mut shown.client, V);
        assert_eq!(shown.client.paste(Clipboard::Regular, TEXT).unwrap(), Some(text));
    }

    // From one program of the session to another: copied there, the focus moves here, and Ctrl+V at once.
    let mut other = far.window("other editor");
    for round in 0..4 {
        far.stage.set_focus(Some(other.surface));
        control(&far, C);
        pressed(&mut other.client, C);
        let text = format!("copied by a program in round {round}").into_bytes();
        let mut watch = from_now(&far.stage);
        other.client.copy(Clipboard::Regular, vec![(TEXT.to_owned(), text.clone())]).unwrap();
        watch.until(|event| matches!(event, StageEvent::SetSelection { accepted: true, .. })).unwrap();
        far.stage.set_focus(Some(shown.surface));
        control(&far, V);
        pressed(&mut shown.client, V);
        let pipe = shown.client.receive(Clipboard::Regular, TEXT).unwrap().expect("an offer");
        let reader = std::thread::spawn(move || std::io::read_to_string(std::fs::File::from(pipe)));
        // It serves what it copied.
        other.client.wait("the paste", |_| reader.is_finished()).unwrap();
        assert_eq!(reader.join().unwrap().unwrap().into_bytes(), text);
    }
    drop((shown, other));
    far.end();
}

#[test]
fn a_text_of_the_input_method_comes_before_the_return_after_it() {
    let far = Far::start(10);
    let mut shown = far.window("letter");
    shown.client.wait_input(|input| matches!(input, Input::KeyboardEnter { .. })).unwrap();
    let words: Vec<String> = (0..12).map(|number| format!("größe {number} 大")).collect();
    // The program answers the focus by asking for text; no event tells when that has arrived.
    shown.client.wait("the input method", |_| far.stage.commit_text(&words[0]) == 1).unwrap();
    for word in &words[1..] {
        far.stage.key(RETURN, true);
        far.stage.key(RETURN, false);
        assert_eq!(far.stage.commit_text(word), 1);
    }
    far.stage.key(RETURN, true);
    far.stage.key(RETURN, false);
    let mut heard = String::new();
    while heard.matches('\n').count() < words.len() {
        match shown.client.next_input().unwrap() {
            Input::Text { text } => heard.push_str(&text),
            Input::Key { code: RETURN, pressed: true, .. } => heard.push('\n'),
            _ => {}
        }
    }
    assert_eq!(heard.lines().collect::<Vec<_>>(), words);
    drop(shown);
    far.end();
}

#[test]
fn a_key_held_over_an_outage_goes_up_once() {
    let begun = Instant::now();
    let far = Far::start(5);
    let mut shown = far.window("held");
    let client = &mut shown.client;
    client.wait_input(|input| matches!(input, Input::KeyboardEnter { .. })).unwrap();
    far.stage.key(SHIFT, true);
    far.stage.key(A, true);
    pressed(client, A);
    // `begun` is before the link's start, so the outage lasts three seconds at least.
    let length = begun.elapsed() + Duration::from_secs(3);
    let outage = vec![Outage { start: Duration::ZERO, length }];
    far.link.set_config(LinkConfig { outages: outage, ..rough(5) });
    let mut keys = Vec::new();
    while keys.len() < 2 {
        if let Input::Key { code, pressed, .. } = client.next_input().unwrap() {
            keys.push((code, pressed));
        }
    }
    keys.sort_unstable();
    assert_eq!(keys, [(A, false), (SHIFT, false)], "what stays down repeats for ever");
    // The real ones, into the dark, and a visit elsewhere.
    far.stage.key(A, false);
    far.stage.key(SHIFT, false);
    far.stage.set_focus(None);
    far.stage.set_focus(Some(shown.surface));
    far.stage.key(B, true);
    far.stage.key(B, false);
    let mut heard = Vec::new();
    while heard.last() != Some(&Heard::Key(B, false)) {
        heard.extend(Heard::of(&client.next_input().unwrap()));
    }
    let expected = [
        Heard::Modifiers(0),
        Heard::Leave,
        Heard::Enter,
        Heard::Modifiers(0),
        Heard::Key(B, true),
        Heard::Key(B, false),
    ];
    assert_eq!(heard, expected);
    drop(shown);
    far.end_saying("note: no contact for 3 s\nnote: contact restored\n");
}

#[test]
fn the_last_cursor_wins_and_is_whole() {
    let far = Far::start(6);
    let mut shown = far.window("cursors");
    let client = &mut shown.client;
    let mut watch = from_now(&far.stage);
    far.stage.pointer_motion(50.0, 50.0);
    client.wait_input(|input| matches!(input, Input::PointerEnter { .. })).unwrap();
    let cursors = [client.bare(), client.bare()];
    let image = |number: i32| noise(24, 24, number as u64);
    for number in 0..CURSORS {
        let cursor = cursors[number as usize % 2];
        client.draw(cursor, &image(number)).unwrap();
        client.set_cursor(Some(cursor), (number % 24, number / 24));
    }
    client.flush().unwrap();
    let numbers: HashMap<u64, i32> = (0..CURSORS).map(|number| (image(number).checksum(), number)).collect();
    let mut shown_on = HashMap::new();
    let mut last = -1;
    while last < CURSORS - 1 {
        let event =
            watch.until(|event| matches!(event, StageEvent::Commit(_) | StageEvent::SetCursor { .. }));
        match event.unwrap().event {
            StageEvent::Commit(commit) if commit.title.is_none() => {
                let number = numbers.get(&commit.checksum).expect("a whole picture");
                assert!(shown_on.insert(commit.surface, *number).is_none_or(|before| before <= *number));
            }
            StageEvent::SetCursor { surface, hotspot, accepted, .. } => {
                assert!(accepted);
                let number = hotspot.0 + 24 * hotspot.1;
                assert!(number > last, "cursor {number} after {last}");
                last = number;
                let content = surface.and_then(|surface| shown_on.get(&surface)).copied();
                assert!(content >= Some(number), "cursor {number} is set while {content:?} is shown");
            }
            _ => {}
        }
    }
    let (picture, hotspot) = far.stage.screenshot_cursor().unwrap();
    assert_eq!(hotspot, ((CURSORS - 1) % 24, (CURSORS - 1) / 24));
    assert_eq!(picture.difference(&image(CURSORS - 1)), None);

    // None at all, and a picture changed in place afterwards.
    client.set_cursor(None, (0, 0));
    client.flush().unwrap();
    watch.until(|event| matches!(event, StageEvent::SetCursor { surface: None, .. })).unwrap();
    assert_eq!(far.stage.screenshot_cursor(), None);
    client.set_cursor(Some(cursors[0]), (1, 2));
    client.draw(cursors[0], &image(CURSORS)).unwrap();
    let changed = image(CURSORS).checksum();
    watch.commit(|commit| commit.checksum == changed).unwrap();
    let (picture, hotspot): (Image, _) = far.stage.screenshot_cursor().unwrap();
    assert_eq!((picture.checksum(), hotspot), (changed, (1, 2)));
    client.draw(shown.pane, &picture_of_the_end()).unwrap();
    watch.commit(|commit| commit.checksum == picture_of_the_end().checksum()).unwrap();
    drop(shown);
    far.end();
}

/// Presses a key with Ctrl.
fn control(far: &Far, code: u32) {
    far.stage.key(CONTROL, true);
    far.stage.key(code, true);
    far.stage.key(code, false);
    far.stage.key(CONTROL, false);
}

/// Waits until a program sees a key go down.
fn pressed(client: &mut wayferry_stage::Client, wanted: u32) {
    let is_it = |input: &Input| matches!(input, Input::Key { code, pressed: true, .. } if *code == wanted);
    client.wait_input(is_it).unwrap();
}

fn picture_of_the_end() -> Image {
    picture(77)
}

/// What a program hears of the keyboard.
#[derive(Debug, PartialEq)]
enum Heard {
    Enter,
    Leave,
    Key(u32, bool),
    Modifiers(u32),
}

impl Heard {
    fn of(input: &Input) -> Option<Heard> {
        match input {
            Input::KeyboardEnter { .. } => Some(Heard::Enter),
            Input::KeyboardLeave { .. } => Some(Heard::Leave),
            Input::Key { code, pressed, .. } => Some(Heard::Key(*code, *pressed)),
            Input::Modifiers { depressed, .. } => Some(Heard::Modifiers(*depressed)),
            _ => None,
        }
    }
}

const CURSORS: i32 = 60;
const TEXT: &str = "text/plain;charset=utf-8";
// Keys by their evdev codes.
const RETURN: u32 = 28;
const CONTROL: u32 = 29;
const A: u32 = 30;
const SHIFT: u32 = 42;
const C: u32 = 46;
const V: u32 = 47;
const B: u32 = 48;
