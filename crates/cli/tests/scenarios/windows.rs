//! Popups, subsurfaces, and the end of the link.

use std::collections::HashMap;

use wayferry_stage::{Input, LinkConfig, Menu, Rect, Role, StageEvent};

use crate::rig::{Far, WIDTH, from_now, noise, picture, rough};

#[test]
fn a_menu_does_not_wait_for_the_later_pixels_of_a_busy_window() {
    // The window's pictures take two seconds each: what waits for one comes after it.
    let rate = Some(2_000_000);
    let far = Far::start_over(LinkConfig { rate, queue_bytes: 1 << 16, ..rough(7) });
    let mut shown = far.window("busy");
    let (client, window) = (&mut shown.client, shown.pane);
    let mut watch = from_now(&far.stage);
    let big = |number: u64| noise(400, 300, 100 + number);
    let menu = client.popup(window, menu((48, 48), None)).unwrap();
    client.draw(window, &big(1)).unwrap();
    client.draw(menu, &noise(48, 48, 1)).unwrap();
    client.draw(window, &big(2)).unwrap();
    let first = watch.commit(|commit| commit.attached).unwrap();
    assert_eq!((first.role, first.checksum), (Some(Role::Popup), noise(48, 48, 1).checksum()));
    // The window goes on.
    let last = big(2).checksum();
    watch.commit(|commit| commit.checksum == last).unwrap();
    // The menu answers, before the window's next picture.
    client.draw(window, &big(3)).unwrap();
    client.draw(menu, &noise(48, 48, 2)).unwrap();
    let next = watch.commit(|commit| commit.attached).unwrap();
    assert_eq!((next.surface, next.checksum), (first.surface, noise(48, 48, 2).checksum()));
    let last = big(3).checksum();
    watch.commit(|commit| commit.checksum == last).unwrap();
    client.destroy(menu);
    client.flush().unwrap();
    watch.until(|event| *event == StageEvent::Destroyed { surface: first.surface }).unwrap();
    drop(shown);
    far.end();
}

#[test]
fn nested_menus_closed_from_outside_go_in_order() {
    let far = Far::start(8);
    let mut shown = far.window("menus");
    let (client, window) = (&mut shown.client, shown.pane);
    let mut watch = from_now(&far.stage);
    for round in 0..3 {
        far.stage.pointer_motion(20.0, 20.0);
        far.stage.pointer_button(LEFT, true);
        far.stage.pointer_button(LEFT, false);
        client.wait_input(|input| matches!(input, Input::Button { pressed: false, .. })).unwrap();
        let mut parent = window;
        let (mut panes, mut surfaces) = (Vec::new(), Vec::new());
        for depth in 0..3 {
            let pane = client.popup(parent, menu((90, 60), Some(client.serial()))).unwrap();
            let image = noise(90, 60, 10 * round + depth);
            client.draw(pane, &image).unwrap();
            let commit = watch.commit(|commit| commit.checksum == image.checksum()).unwrap();
            (panes, surfaces) = ([panes, vec![pane]].concat(), [surfaces, vec![commit.surface]].concat());
            parent = pane;
        }
        match round {
            // A click on the desktop, far from them all.
            0 => {
                far.stage.pointer_motion(1200.0, 700.0);
                far.stage.pointer_button(LEFT, true);
                far.stage.pointer_button(LEFT, false);
            }
            1 => far.stage.dismiss_popup(surfaces[0]),
            // The program closes the innermost at the same moment.
            _ => {
                far.stage.dismiss_popup(surfaces[0]);
                client.destroy(panes[2]);
                client.flush().unwrap();
            }
        }
        let still = if round == 2 { 2 } else { 3 };
        for pane in panes[..still].iter().rev() {
            let done = client.wait_input(|input| matches!(input, Input::PopupDone { .. })).unwrap();
            assert_eq!(done, Input::PopupDone { pane: *pane });
            client.destroy(*pane);
        }
        client.flush().unwrap();
        for surface in surfaces.iter().rev() {
            let gone = watch.until(|event| matches!(event, StageEvent::Destroyed { .. })).unwrap();
            assert_eq!(gone.event, StageEvent::Destroyed { surface: *surface });
        }
    }
    // No violation: the window lives on.
    client.draw(window, &picture(9)).unwrap();
    watch.commit(|commit| commit.checksum == picture(9).checksum()).unwrap();
    drop(shown);
    far.end();
}

#[test]
fn no_commit_shows_a_torn_combination() {
    let far = Far::start(9);
    let mut shown = far.window("tree");
    let (client, window) = (&mut shown.client, shown.pane);
    let mut watch = from_now(&far.stage);
    let (tied, free) = (client.subsurface(window, 0, 0).unwrap(), client.subsurface(window, 60, 0).unwrap());
    client.set_synchronised(free, false);
    let image = |of: u64, number: u64| {
        if of == 0 { picture(number) } else { noise(WIDTH - 60, 110, of << 32 | number) }
    };
    for number in 1..=FRAMES {
        client.draw(tied, &image(1, number)).unwrap();
        if number % 3 != 0 {
            client.draw(free, &image(2, number)).unwrap();
        }
        client.draw(window, &image(0, number)).unwrap();
        client.ask_frame(window);
        client.commit(window);
        client.wait_frame(window).unwrap();
    }
    // The free one goes on alone.
    client.draw(free, &image(2, FRAMES + 1)).unwrap();
    let mut numbers = HashMap::new();
    for of in 0..3 {
        numbers.extend((0..=FRAMES + 1).map(|number| (image(of, number).checksum(), (of, number))));
    }
    let mut seen = [0; 3];
    while seen != [FRAMES, FRAMES, FRAMES + 1] {
        let event = watch.until(|event| matches!(event, StageEvent::Commit(_) | StageEvent::Applied { .. }));
        let (cached, checksum) = match event.unwrap().event {
            StageEvent::Commit(commit) if commit.checksum != 0 => (commit.cached, commit.checksum),
            StageEvent::Applied { checksum, .. } => (false, checksum),
            _ => continue,
        };
        let (of, number) = *numbers.get(&checksum).expect("a whole picture of the program's");
        assert!(!cached || of == 1, "only the synchronised child waits for its parent");
        if cached {
            continue;
        }
        let before = std::mem::replace(&mut seen[of as usize], number);
        assert!(before <= number, "{before} was newer than {number}");
        // The parent's commit is logged first, then what it lets its child apply.
        if of == 1 {
            assert_eq!(seen[0], seen[1], "window and child belong together");
        }
    }
    let mut expected = image(0, FRAMES);
    expected.blend(&image(1, FRAMES), 0, 0);
    expected.blend(&image(2, FRAMES + 1), 60, 0);
    assert_eq!(far.stage.screenshot_window(shown.surface).unwrap().difference(&expected), None);
    drop(shown);
    far.end();
}

/// A menu near the top of its parent.
fn menu(size: (i32, i32), grab: Option<u32>) -> Menu {
    Menu { anchor: Rect::new(10, 10, 40, 20), size, grab }
}

const FRAMES: u64 = 40;
/// A pointer button by its evdev code.
const LEFT: u32 = 0x110;
