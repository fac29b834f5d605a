//! What may pass what: the parts of a window, popups, cursors, titles and `sync` beside commits that are held.

use wayferry_proto::UpdateSeq;

use super::rig::{GLOBALS, Rig, size};
use super::units::{GREEN, RED, applied};
use crate::message::{ToDisplay, UnitContent, WireArg, WireId};
use crate::value::Positioner;

/// A popup on a window or on another popup, shown: its `wl_surface`, `xdg_surface` and `xdg_popup`.
fn popup(rig: &mut Rig, shell: WireId, parent: WireId) -> [WireId; 3] {
    let surface = rig.surface();
    let xdg_surface = rig.make(shell, "get_xdg_surface", vec![WireArg::Object(surface)]);
    let positioner = Positioner { size: Some((1, 1)), ..Positioner::default() };
    let args = vec![WireArg::Object(parent), WireArg::Positioner(positioner)];
    let popup = rig.make(xdg_surface, "get_popup", args);
    rig.paint(surface, size(1, 1), RED);
    [surface, xdg_surface, popup]
}

/// Objects at the compositor that got this request, in the order in which they got it.
fn objects_of(rig: &Rig, interface: &str, request: &str) -> Vec<u32> {
    rig.got.iter().filter(|got| got.is(interface, request)).map(|got| got.object).collect()
}

/// Regression: the compositor ended the program for `not_the_topmost_popup`.
#[test]
fn a_popup_goes_before_the_one_that_it_is_on_although_its_pixels_are_on_their_way() {
    let mut rig = Rig::new();
    let [shell, window, window_xdg, _] = rig.toplevel();
    rig.paint(window, size(1, 1), RED);
    let lower = popup(&mut rig, shell, window_xdg);
    let upper = popup(&mut rig, shell, lower[1]);
    rig.commit_update(upper[0]);
    rig.requests();
    let ids = [upper[2], lower[2]].map(|popup| rig.id(popup));
    for [_, xdg_surface, popup] in [upper, lower] {
        rig.request(popup, "destroy", vec![]);
        rig.request(xdg_surface, "destroy", vec![]);
    }
    assert_eq!(objects_of(&rig, "xdg_popup", "destroy"), []);
    // The pixels are of no use any more.
    rig.request(upper[0], "destroy", vec![]);
    rig.request(lower[0], "destroy", vec![]);
    assert_eq!(objects_of(&rig, "xdg_popup", "destroy"), ids);
    rig.assert_alive();
}

/// A surface, and what makes it a subsurface of another.
fn subsurface(rig: &mut Rig, parent: WireId) -> (WireId, WireId) {
    let child = rig.surface();
    let manager = rig.bind("wl_subcompositor");
    let args = vec![WireArg::Object(child), WireArg::Object(parent)];
    (child, rig.make(manager, "get_subsurface", args))
}

/// What the compositor gets once these pixels are there, without what it takes to show them.
fn once_painted(rig: &mut Rig, surface: WireId) -> Vec<&'static str> {
    rig.requests();
    let update = rig.fresh(surface, size(1, 1), GREEN);
    rig.deliver(update);
    let told = ["commit", "destroy", "get_subsurface", "set_cursor", "set_title", "get_toplevel_decoration"];
    let of_memory = ["wl_shm_pool", "wl_buffer"];
    let got = rig.got.iter().filter(|got| !of_memory.contains(&got.interface) && told.contains(&got.request));
    got.map(|got| got.request).collect()
}

/// Regression: it stayed invisible, for its place in the window applies with the parent's next commit.
#[test]
fn a_parents_commit_does_not_pass_a_subsurface_that_is_still_to_be_made() {
    let mut rig = Rig::new();
    let (window, child) = (rig.surface(), rig.surface());
    rig.commit_update(child);
    let manager = rig.bind("wl_subcompositor");
    rig.requests();
    rig.make(manager, "get_subsurface", vec![WireArg::Object(child), WireArg::Object(window)]);
    rig.commit(window);
    assert_eq!(objects_of(&rig, "wl_surface", "commit"), []);
    once_painted(&mut rig, child);
    assert_eq!(objects_of(&rig, "wl_surface", "commit"), [rig.id(child), rig.id(window)]);
    let made = rig.got.iter().position(|got| got.request == "get_subsurface");
    let commit = rig.got.iter().rposition(|got| got.request == "commit");
    assert!(made < commit);
}

/// Regression: a part of the window vanished while the window's pixels were on their way.
#[test]
fn a_subsurface_is_taken_out_of_its_window_between_the_same_commits_as_at_home() {
    for whole in [false, true] {
        let mut rig = Rig::new();
        let window = rig.surface();
        let (middle, _) = subsurface(&mut rig, window);
        let (child, role) = subsurface(&mut rig, middle);
        rig.paint(child, size(1, 1), RED);
        rig.commit_update(window);
        rig.requests();
        rig.request(if whole { child } else { role }, "destroy", vec![]);
        rig.commit(window);
        rig.commit(middle);
        assert_eq!(rig.requests(), Vec::<String>::new());
        assert_eq!(once_painted(&mut rig, window), ["commit", "destroy", "commit", "commit"]);
        rig.assert_alive();
    }
}

/// Regression: what a commit shows as a whole was shown without the part that was destroyed after it.
#[test]
fn a_commit_is_shown_as_a_whole_although_a_child_is_destroyed_meanwhile() {
    let mut rig = Rig::new();
    let window = rig.surface();
    let (child, _) = subsurface(&mut rig, window);
    let mut unit = rig.unit(window, UnitContent::Update(UpdateSeq(1)));
    unit.children.push(rig.unit(child, UnitContent::Keep));
    rig.say(&ToDisplay::Unit(unit));
    rig.request(child, "destroy", vec![]);
    assert_eq!(once_painted(&mut rig, window), ["commit", "commit", "destroy"]);
    assert_eq!(applied(&mut rig), [(child, 1), (window, 1)]);
}

/// Some compositors place it with its own commit.
#[test]
fn a_child_is_placed_before_it_is_committed() {
    let mut rig = Rig::new();
    let window = rig.surface();
    let (child, role) = subsurface(&mut rig, window);
    rig.requests();
    let mut unit = rig.unit(window, UnitContent::Keep);
    unit.state.push(rig.message(role, "set_position", vec![WireArg::Int(3), WireArg::Int(4)]));
    unit.state.push(rig.message(window, "set_buffer_scale", vec![WireArg::Int(2)]));
    unit.children.push(rig.unit(child, UnitContent::Keep));
    rig.say(&ToDisplay::Unit(unit));
    let order = [
        "wl_subsurface.set_position",
        "wl_surface.commit",
        "wl_surface.set_buffer_scale",
        "wl_surface.commit",
    ];
    assert_eq!(rig.requests(), order);
}

/// Regression: on compositors that rely on the damage of programs, its pixels stayed where it had been.
#[test]
fn what_a_subsurface_covered_is_drawn_again_once_it_goes_or_moves() {
    for how in ["nothing", "attach", "set_position", "role", "surface"] {
        let mut rig = Rig::new();
        let window = rig.surface();
        let (child, role) = subsurface(&mut rig, window);
        rig.paint(window, size(4, 4), RED);
        rig.paint(child, size(1, 1), GREEN);
        rig.requests();
        let mut unit = rig.unit(window, UnitContent::Keep);
        match how {
            "attach" => {
                let unit = rig.unit(child, UnitContent::None);
                rig.say(&ToDisplay::Unit(unit));
            }
            "set_position" => {
                let args = vec![WireArg::Int(3), WireArg::Int(4)];
                unit.state.push(rig.message(role, "set_position", args));
            }
            "role" => rig.request(role, "destroy", vec![]),
            "surface" => rig.request(child, "destroy", vec![]),
            _ => {}
        }
        rig.say(&ToDisplay::Unit(unit));
        rig.commit(window);
        let id = rig.id(window);
        let got = rig.got.iter().filter(|got| got.object == id).map(|got| got.request);
        let got: Vec<&str> = got.filter(|request| ["damage", "commit"].contains(request)).collect();
        let damaged = ["damage", "commit", "commit"];
        assert_eq!(got, damaged[usize::from(how == "nothing")..], "{how}");
    }
}

/// Regression: a commit of the window showed the subsurface without the pixels that it had been committed with.
#[test]
fn a_subsurface_keeps_its_own_commits_until_it_is_destroyed() {
    let mut rig = Rig::new();
    let (window, child) = (rig.surface(), rig.surface());
    rig.commit_update(child);
    let manager = rig.bind("wl_subcompositor");
    let role = rig.make(manager, "get_subsurface", vec![WireArg::Object(child), WireArg::Object(window)]);
    rig.commit(window);
    rig.request(role, "destroy", vec![]);
    rig.request(child, "destroy", vec![]);
    let story = once_painted(&mut rig, child);
    assert_eq!(story, ["commit", "get_subsurface", "commit", "destroy", "destroy"]);
    assert_eq!(applied(&mut rig), [(child, 1), (window, 1)]);
}

/// A commit that is for the window's next one is not applied by an earlier one, and applied by that one.
#[test]
fn a_commit_of_a_synchronised_subsurface_keeps_its_place_among_those_of_the_window() {
    for synchronised in [true, false] {
        let mut rig = Rig::new();
        let window = rig.surface();
        let (child, role) = subsurface(&mut rig, window);
        if !synchronised {
            rig.request(role, "set_desync", vec![]);
        }
        rig.commit_update(window);
        rig.take_reported();
        rig.commit(child);
        assert_eq!(applied(&mut rig).is_empty(), synchronised);
        once_painted(&mut rig, window);
        let expected = if synchronised { vec![(window, 1), (child, 1)] } else { vec![(window, 1)] };
        assert_eq!(applied(&mut rig), expected);
        rig.commit_update(child);
        rig.commit(window);
        assert_eq!(applied(&mut rig).is_empty(), synchronised);
        once_painted(&mut rig, child);
        let expected = if synchronised { vec![(child, 2), (window, 2)] } else { vec![(child, 2)] };
        assert_eq!(applied(&mut rig), expected);
    }
}

/// Regression: the compositor ended the program for `viewport_exists`.
#[test]
fn a_new_viewport_waits_for_the_end_of_the_one_before() {
    let mut rig = Rig::new();
    let surface = rig.surface();
    let viewporter = rig.bind("wp_viewporter");
    let viewport = rig.make(viewporter, "get_viewport", vec![WireArg::Object(surface)]);
    let mut unit = rig.unit(surface, UnitContent::Update(UpdateSeq(1)));
    unit.state.push(rig.message(viewport, "set_destination", vec![WireArg::Int(3), WireArg::Int(3)]));
    rig.say(&ToDisplay::Unit(unit));
    rig.request(viewport, "destroy", vec![]);
    rig.requests();
    rig.make(viewporter, "get_viewport", vec![WireArg::Object(surface)]);
    assert_eq!(rig.requests(), Vec::<String>::new());
    let update = rig.fresh(surface, size(1, 1), GREEN);
    rig.deliver(update);
    let requests = rig.requests();
    let last: Vec<&str> = requests.iter().rev().take(3).rev().map(String::as_str).collect();
    assert_eq!(last, ["wl_surface.commit", "wp_viewport.destroy", "wp_viewporter.get_viewport"]);
}

/// Regression: a compositor forgets title and application id of a window that is unmapped; the new ones came too early.
#[test]
fn what_is_asked_of_a_window_after_it_was_unmapped_is_not_lost() {
    let mut rig = Rig::with(&[GLOBALS, &[("zxdg_decoration_manager_v1", 1)]].concat());
    let [_, surface, _, toplevel] = rig.toplevel();
    let decorations = rig.bind("zxdg_decoration_manager_v1");
    rig.paint(surface, size(1, 1), RED);
    rig.commit_update(surface);
    let unit = rig.unit(surface, UnitContent::None);
    rig.say(&ToDisplay::Unit(unit));
    rig.requests();
    rig.request(toplevel, "set_title", vec![WireArg::Str(Some(b"t".to_vec()))]);
    rig.make(decorations, "get_toplevel_decoration", vec![WireArg::Object(toplevel)]);
    rig.commit(surface);
    assert_eq!(rig.requests(), Vec::<String>::new());
    let order = ["commit", "commit", "set_title", "get_toplevel_decoration", "commit"];
    assert_eq!(once_painted(&mut rig, surface), order);
}

/// Regression: the pixels before were shown, for a surface that is destroyed needs no others.
#[test]
fn a_cursor_whose_surface_is_destroyed_does_not_look_as_it_once_did() {
    let mut rig = Rig::new();
    let seat = rig.bind("wl_seat");
    let pointer = rig.make(seat, "get_pointer", vec![]);
    let surface = rig.surface();
    rig.paint(surface, size(1, 1), RED);
    rig.commit_update(surface);
    rig.got.clear();
    let args = vec![WireArg::Uint(1), WireArg::Object(surface), WireArg::Int(0), WireArg::Int(0)];
    rig.request(pointer, "set_cursor", args);
    assert!(rig.got.is_empty(), "it waits");
    rig.request(surface, "destroy", vec![]);
    assert!(rig.got.is_empty(), "it is to be seen first");
    assert_eq!(once_painted(&mut rig, surface), ["commit", "set_cursor", "destroy"]);
}

#[test]
fn a_cursor_waits_for_its_pixels_and_keeps_its_place() {
    let mut rig = Rig::new();
    let seat = rig.bind("wl_seat");
    let pointer = rig.make(seat, "get_pointer", vec![]);
    let (slow, fast) = (rig.surface(), rig.surface());
    rig.commit_update(slow);
    rig.requests();
    let cursor = |surface| vec![WireArg::Uint(1), WireArg::Object(surface), WireArg::Int(0), WireArg::Int(0)];
    rig.request(pointer, "set_cursor", cursor(slow));
    rig.request(pointer, "set_cursor", cursor(fast));
    assert_eq!(rig.requests(), Vec::<String>::new());
    let update = rig.fresh(slow, size(1, 1), RED);
    rig.deliver(update);
    let cursors: Vec<u32> =
        rig.got.iter().filter(|got| got.is("wl_pointer", "set_cursor")).map(|got| got.uint(1)).collect();
    assert_eq!(cursors, [rig.id(slow), rig.id(fast)]);
}

#[test]
fn titles_and_syncs_pass_held_pixels() {
    let mut rig = Rig::new();
    let [_, surface, _, toplevel] = rig.toplevel();
    rig.commit_update(surface);
    rig.requests();
    rig.request(toplevel, "set_title", vec![WireArg::Str(Some(b"t".to_vec()))]);
    rig.make(WireId::DISPLAY, "sync", vec![]);
    assert_eq!(rig.requests(), ["xdg_toplevel.set_title", "wl_display.sync"]);
    // Not even a commit of nothing but state holds it up.
    rig.commit(surface);
    rig.make(WireId::DISPLAY, "sync", vec![]);
    assert_eq!(rig.requests(), ["wl_display.sync"]);
}

#[test]
fn a_sync_waits_for_the_initial_commit_before_it() {
    let mut rig = Rig::new();
    let [_, surface, ..] = rig.toplevel();
    rig.commit_update(surface);
    let unit = rig.unit(surface, UnitContent::None);
    rig.say(&ToDisplay::Unit(unit));
    rig.commit(surface);
    rig.requests();
    rig.make(WireId::DISPLAY, "sync", vec![]);
    assert_eq!(rig.requests(), Vec::<String>::new());
    let update = rig.fresh(surface, size(1, 1), RED);
    rig.deliver(update);
    let requests = rig.requests();
    assert_eq!(requests[requests.len() - 2..], ["wl_surface.commit", "wl_display.sync"]);
}
