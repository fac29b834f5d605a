//! Keyboard, pointer, popups, cursors.

mod common;

use common::{checkers, start};
use wayferry_stage::{Client, Config, Global, Image, Input, Menu, Rect, Role, StageEvent};

/// A window that has the keyboard, and its surface.
fn focused(
    stage: &wayferry_stage::Stage,
    client: &mut Client,
    title: &str,
) -> (wayferry_stage::Pane, wayferry_stage::SurfaceId) {
    let window = client.window(title, 200, 100).unwrap();
    client.draw(window, &checkers(200, 100)).unwrap();
    client.wait_input(|input| *input == Input::KeyboardEnter { pane: Some(window), keys: vec![] }).unwrap();
    (window, stage.window(title).unwrap().surface)
}

fn pressed(client: &mut Client) -> u32 {
    match client.wait_input(|input| matches!(input, Input::Key { pressed: true, .. })).unwrap() {
        Input::Key { code, .. } => code,
        other => panic!("{other:?}"),
    }
}

#[test]
fn typed_text_arrives_as_keys() {
    let (stage, mut client) = start(Config::default());
    focused(&stage, &mut client, "keys");
    stage.type_text("aB");
    assert_eq!(pressed(&mut client), 30);
    assert_eq!(pressed(&mut client), 42);
    client.wait_input(|input| *input == Input::Modifiers { depressed: 1, locked: 0 }).unwrap();
    assert_eq!(pressed(&mut client), 48);
    client.wait_input(|input| *input == Input::Modifiers { depressed: 0, locked: 0 }).unwrap();
    assert!(client.keymap().unwrap().contains("xkb_symbols"));
    assert_eq!(client.counts().key_presses, 3);
}

#[test]
fn focus_moves_with_new_windows_and_with_clicks() {
    let (stage, mut client) = start(Config::default());
    let (first, surface) = focused(&stage, &mut client, "first");
    let mut other = Client::from_stream(stage.connect().unwrap()).unwrap();
    let (second, _) = focused(&stage, &mut other, "second");
    client.wait_input(|input| *input == Input::KeyboardLeave { pane: Some(first) }).unwrap();
    // The second stands at (40, 40): this is on the first.
    stage.pointer_motion(10.0, 10.0);
    stage.pointer_button(0x110, true);
    stage.pointer_button(0x110, false);
    client.wait_input(|input| matches!(input, Input::KeyboardEnter { .. })).unwrap();
    other.wait_input(|input| *input == Input::KeyboardLeave { pane: Some(second) }).unwrap();
    assert_eq!(stage.windows().last().unwrap().surface, surface);
    // When it goes, the other has the keyboard again.
    client.destroy(first);
    client.flush().unwrap();
    other.wait_input(|input| matches!(input, Input::KeyboardEnter { .. })).unwrap();
}

#[test]
fn the_pointer_moves_clicks_and_scrolls() {
    let (stage, mut client) = start(Config::default());
    let (window, _) = focused(&stage, &mut client, "pointer");
    let child = client.subsurface(window, 50, 50).unwrap();
    client.draw(child, &Image::new(20, 20, 0xffff_0000)).unwrap();
    client.commit(window);
    client.round_trip().unwrap();
    stage.pointer_motion(20.0, 10.0);
    let entered = client.wait_input(|input| matches!(input, Input::PointerEnter { .. })).unwrap();
    let Input::PointerEnter { pane, position, .. } = entered else { unreachable!() };
    assert_eq!((pane, position), (Some(window), (20.0, 10.0)));
    stage.pointer_motion(21.5, 11.0);
    client.wait_input(|input| *input == Input::Motion { position: (21.5, 11.0) }).unwrap();
    stage.pointer_motion(55.0, 60.0);
    let entered = client.wait_input(|input| matches!(input, Input::PointerEnter { .. })).unwrap();
    let Input::PointerEnter { pane, position, .. } = entered else { unreachable!() };
    assert_eq!((pane, position), (Some(child), (5.0, 10.0)));
    let serial = stage.pointer_button(0x110, true);
    client.wait_input(|input| *input == Input::Button { code: 0x110, pressed: true, serial }).unwrap();
    stage.pointer_axis(false, 3);
    client.wait_input(|input| *input == Input::Axis { horizontal: false, value: 30.0 }).unwrap();
}

#[test]
fn a_cursor_is_set_while_the_pointer_is_there() {
    let (stage, mut client) = start(Config::default());
    let mut watch = stage.watch();
    focused(&stage, &mut client, "cursor");
    let cursor = client.bare();
    client.set_cursor(Some(cursor), (1, 1));
    client.flush().unwrap();
    let set = |event: &StageEvent| matches!(event, StageEvent::SetCursor { .. });
    let early = watch.until(set).unwrap().event;
    assert!(matches!(early, StageEvent::SetCursor { accepted: false, .. }), "{early:?}");
    stage.pointer_motion(5.0, 5.0);
    client.wait_input(|input| matches!(input, Input::PointerEnter { .. })).unwrap();
    client.set_cursor(Some(cursor), (3, 4));
    client.draw(cursor, &checkers(16, 16)).unwrap();
    let set = watch.until(set).unwrap().event;
    assert!(matches!(set, StageEvent::SetCursor { accepted: true, hotspot: (3, 4), .. }), "{set:?}");
    watch.commit(|commit| commit.role == Some(Role::Cursor)).unwrap();
    let (picture, hotspot) = stage.screenshot_cursor().unwrap();
    assert_eq!((picture.difference(&checkers(16, 16)), hotspot), (None, (3, 4)));
}

#[test]
fn nested_popups_are_placed_shown_and_sent_away() {
    let (stage, mut client) = start(Config { background: 0xff00_0000, ..Config::default() });
    let mut watch = stage.watch();
    let (window, _) = focused(&stage, &mut client, "menus");
    stage.pointer_motion(20.0, 10.0);
    let serial = stage.pointer_button(0x110, true);
    stage.pointer_button(0x110, false);
    client.wait_input(|input| matches!(input, Input::Button { pressed: false, .. })).unwrap();
    let menu = Menu { anchor: Rect::new(10, 0, 30, 20), size: (80, 120), grab: Some(serial) };
    let outer = client.popup(window, menu).unwrap();
    assert_eq!(client.place(outer), Rect::new(10, 20, 80, 120));
    client.draw(outer, &Image::new(80, 120, 0xffff_0000)).unwrap();
    let menu = Menu { anchor: Rect::new(70, 30, 10, 10), size: (60, 40), grab: Some(serial) };
    let inner = client.popup(outer, menu).unwrap();
    client.draw(inner, &Image::new(60, 40, 0xff00_ff00)).unwrap();
    let outer_surface = watch.commit(|commit| commit.role == Some(Role::Popup)).unwrap().surface;
    watch.commit(|c| c.attached && c.role == Some(Role::Popup) && c.surface != outer_surface).unwrap();
    let picture = stage.screenshot_output();
    assert_eq!(picture.pixel(15, 130), Some(0xffff_0000));
    assert_eq!(picture.pixel(82, 65), Some(0xff00_ff00));
    // A click outside of everything sends both away, the topmost first.
    stage.pointer_motion(600.0, 500.0);
    stage.pointer_button(0x110, true);
    stage.pointer_button(0x110, false);
    let done = |client: &mut Client| match client.wait_input(|it| matches!(it, Input::PopupDone { .. })) {
        Ok(Input::PopupDone { pane }) => pane,
        other => panic!("{other:?}"),
    };
    assert_eq!(done(&mut client), inner);
    assert_eq!(done(&mut client), outer);
    client.destroy(inner);
    client.destroy(outer);
    client.round_trip().unwrap();
    assert_eq!(stage.screenshot_output().pixel(15, 130), Some(0xff00_0000));
    assert_eq!(client.keyboard_focus(), Some(window));
}

#[test]
fn destroying_a_popup_under_another_is_a_violation() {
    let (stage, mut client) = start(Config::default());
    let (window, _) = focused(&stage, &mut client, "order");
    let menu = Menu { anchor: Rect::new(0, 0, 10, 10), size: (50, 50), grab: None };
    let outer = client.popup(window, menu).unwrap();
    client.draw(outer, &checkers(50, 50)).unwrap();
    let inner = client.popup(outer, menu).unwrap();
    client.draw(inner, &checkers(50, 50)).unwrap();
    client.destroy(outer);
    let error = client.round_trip().unwrap_err();
    assert!(error.to_string().contains("popups are above"), "{error}");
}

#[test]
fn a_popup_turns_over_at_the_edge() {
    let (stage, mut client) = start(Config { height: 150, ..Config::default() });
    let (window, _) = focused(&stage, &mut client, "edge");
    let menu = Menu { anchor: Rect::new(10, 80, 30, 10), size: (40, 70), grab: None };
    let popup = client.popup(window, menu).unwrap();
    assert_eq!(client.place(popup), Rect::new(10, 10, 40, 70));
}

#[test]
fn a_ping_is_answered() {
    let (stage, mut client) = start(Config::default());
    let mut watch = stage.watch();
    let serial = stage.ping();
    client.round_trip().unwrap();
    client.round_trip().unwrap();
    watch.until(|event| matches!(event, StageEvent::Pong { serial: it, .. } if *it == serial)).unwrap();
}

#[test]
fn an_input_method_commits_text_between_keys() {
    let (stage, mut client) = start(Config::default());
    focused(&stage, &mut client, "text");
    client.round_trip().unwrap();
    assert_eq!(stage.commit_text("größe"), 1);
    stage.type_text("\n");
    let text = client.wait_input(|input| matches!(input, Input::Text { .. } | Input::Key { .. })).unwrap();
    assert_eq!(text, Input::Text { text: "größe".to_owned() });
    assert_eq!(pressed(&mut client), 28);
}

#[test]
fn without_a_seat_there_are_pixels_only() {
    let (stage, mut client) = start(Config::default().without(Global::Seat));
    assert!(client.globals().iter().all(|(name, _)| name != "wl_seat"));
    let window = client.window("mute", 10, 10).unwrap();
    client.draw(window, &checkers(10, 10)).unwrap();
    stage.watch().commit(|commit| commit.attached).unwrap();
}
