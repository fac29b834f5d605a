//! More pixels than are kept: what was painted longest ago is dropped, and asked for when it is needed.

use super::rig::{Rig, size};
use crate::message::{ToApp, ToDisplay, Unit, UnitContent, WireId};

const SIDE: u32 = 40;
const BYTES: usize = (SIDE * SIDE * 4) as usize;

/// Windows of which the contents of three are kept, each in a colour of its own.
fn windows(rig: &mut Rig, count: u8) -> Vec<WireId> {
    rig.connection.memory.limit(3 * BYTES);
    let windows: Vec<WireId> = (0..count).map(|_| rig.surface()).collect();
    for (window, colour) in windows.iter().zip(1..) {
        rig.paint(*window, size(SIDE, SIDE), [colour, 0, 0, 255]);
    }
    rig.take_reported();
    windows
}

fn kept(rig: &Rig) -> usize {
    rig.connection.surfaces.values().filter_map(|surface| surface.content.as_ref()).count()
}

/// A change that builds on what the surface shows.
fn change(rig: &mut Rig, window: WireId, colour: u8) {
    let mut content = rig.contents[&window].0.content().clone();
    content.write_row(0, 0, &[colour, 0, 0, 255]);
    let update = rig.update(window, content, false);
    assert!(!update.0.fresh);
    let seq = update.0.seq;
    rig.deliver(update);
    let unit = rig.unit(window, UnitContent::Update(seq));
    rig.say(&ToDisplay::Unit(unit));
}

#[test]
fn regression_more_pixels_than_are_kept_end_no_connection() {
    let mut rig = Rig::new();
    let windows = windows(&mut rig, 8);
    rig.assert_alive();
    assert_eq!((rig.shown.len(), kept(&rig)), (8, 3), "all are shown, and the last three kept");
    // The newest is kept: it changes as ever.
    change(&mut rig, windows[7], 90);
    assert_eq!(rig.shown.len(), 9);
    assert!(!rig.take_reported().iter().any(|told| matches!(told, ToApp::Refresh { .. })));
    // The oldest is not: its change waits for the whole.
    let commits = |rig: &Rig| rig.got.iter().filter(|got| got.is("wl_surface", "commit")).count();
    let before = commits(&rig);
    change(&mut rig, windows[0], 91);
    change(&mut rig, windows[0], 92);
    assert_eq!(commits(&rig), before, "an old picture is not committed with new state");
    let told = rig.take_reported();
    let asked = told.iter().filter(|told| **told == ToApp::Refresh { surface: windows[0] }).count();
    assert_eq!(asked, 1, "{told:?}");
    let applied = told.iter().filter(|told| matches!(told, ToApp::Applied { .. })).count();
    assert_eq!(applied, 2, "the app side goes on");
    let content = rig.contents[&windows[0]].0.content().clone();
    let update = rig.update(windows[0], content.clone(), true);
    let seq = update.0.seq;
    rig.deliver(update);
    let unit = rig.unit(windows[0], UnitContent::Update(seq));
    rig.say(&ToDisplay::Unit(unit));
    assert!(rig.shown.last().is_some_and(|shown| shown.pixels == content.pixels()));
    change(&mut rig, windows[0], 93);
    assert!(rig.take_reported().iter().all(|told| !matches!(told, ToApp::Refresh { .. })));
    assert_eq!(kept(&rig), 3);
    rig.assert_alive();
}

#[test]
fn what_is_hidden_is_dropped_first_and_asked_for_when_it_appears() {
    let mut rig = Rig::new();
    let windows = windows(&mut rig, 3);
    // The compositor draws all but the last two of them.
    let frames: Vec<u32> =
        rig.got.iter().filter(|got| got.is("wl_surface", "frame")).map(|got| got.uint(0)).collect();
    assert_eq!(frames.len(), 3);
    rig.event(frames[0], "done", vec![crate::wire::Arg::Uint(1)]);
    rig.turn();
    rig.now += std::time::Duration::from_secs(2);
    rig.connection.on_timeout(rig.now);
    rig.turn();
    let new = rig.surface();
    rig.paint(new, size(SIDE, SIDE), [77, 0, 0, 255]);
    let has = |rig: &Rig, window| rig.connection.surfaces[&window].content.is_some();
    assert!(has(&rig, windows[0]) && !has(&rig, windows[1]), "the oldest is seen, the next one not");
    rig.take_reported();
    rig.event(frames[1], "done", vec![crate::wire::Arg::Uint(1)]);
    rig.turn();
    let told = rig.take_reported();
    assert!(told.contains(&ToApp::Refresh { surface: windows[1] }), "{told:?}");
    rig.assert_alive();
}

/// Regression: the window was committed, and its child was not, whose content had been dropped.
#[test]
fn a_window_is_not_shown_without_the_new_pixels_of_a_child() {
    let mut rig = Rig::new();
    let contents = windows(&mut rig, 5);
    let (lost, sibling, window) = (contents[0], contents[3], contents[4]);
    let commits =
        |rig: &mut Rig| rig.requests().into_iter().filter(|name| name == "wl_surface.commit").count();
    let changed = |rig: &mut Rig, surface, colour| {
        let mut content = rig.contents[&surface].0.content().clone();
        content.write_row(0, 0, &[colour, 0, 0, 255]);
        let update = rig.update(surface, content, false);
        let seq = update.0.seq;
        rig.deliver(update);
        rig.unit(surface, UnitContent::Update(seq))
    };
    let children = [lost, sibling].map(|surface| changed(&mut rig, surface, 90));
    let unit = Unit { children: children.into(), ..changed(&mut rig, window, 91) };
    commits(&mut rig);
    rig.say(&ToDisplay::Unit(unit));
    assert_eq!(commits(&mut rig), 0);
    let told = rig.take_reported();
    assert!(told.contains(&ToApp::Refresh { surface: lost }));
    assert_eq!(told.iter().filter(|told| matches!(told, ToApp::Applied { .. })).count(), 3);
    // What does not bring it waits, too.
    let unit = rig.unit(window, UnitContent::Keep);
    rig.say(&ToDisplay::Unit(unit));
    assert_eq!(commits(&mut rig), 0);
    rig.shown.clear();
    let content = rig.contents[&lost].0.content().clone();
    let update = rig.update(lost, content, true);
    let child = rig.unit(lost, UnitContent::Update(update.0.seq));
    rig.deliver(update);
    let unit = Unit { children: vec![child], ..rig.unit(window, UnitContent::Keep) };
    rig.say(&ToDisplay::Unit(unit));
    let shown: Vec<u8> = rig.shown.iter().map(|shown| shown.pixels[0]).collect();
    assert_eq!(shown, [90, 90, 91]);
    rig.assert_alive();
}

/// As many as on a wall of screens; the compositor has all of them, and here is what there is room for.
#[test]
fn forty_windows_of_3840_by_2160_live() {
    let mut rig = Rig::new();
    for colour in 1..=40 {
        let window = rig.surface();
        rig.paint(window, size(3840, 2160), [colour, 0, 0, 255]);
        assert_eq!(rig.shown.pop().map(|shown| shown.pixels[0]), Some(colour));
        // The test needs no copies of its own.
        rig.contents.clear();
    }
    rig.assert_alive();
    let bytes: usize = rig
        .connection
        .surfaces
        .values()
        .filter_map(|surface| surface.content.as_ref())
        .map(|content| content.pixels().len())
        .sum();
    assert_eq!(bytes, 32 * 3840 * 2160 * 4);
}
