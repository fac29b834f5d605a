//! Windows are seen to be old while nothing is heard of their program.

use super::rig::{GLOBALS, Rig, size};
use crate::message::{WireArg, WireId};
use crate::wire::Arg;

const GREEN: [u8; 4] = [0, 255, 0, 255];

/// What a window's veil was asked since the log was last taken: the requests to its surface, and its size.
fn asked(rig: &mut Rig, window: u32) -> (Vec<String>, Option<Vec<i32>>) {
    let size = rig.got.iter().rev().find(|got| got.is("wp_viewport", "set_destination"));
    let size = size.map(|got| numbers(&got.args));
    let surfaces = rig.got.iter().filter(|got| got.interface == "wl_surface");
    let requests = surfaces.map(|got| {
        assert_ne!(got.object, window, "the program's surface is its own: {got:?}");
        got.request.to_owned()
    });
    let requests = requests.collect();
    rig.requests();
    (requests, size)
}

fn numbers(args: &[Arg]) -> Vec<i32> {
    let number = |arg: &Arg| if let Arg::Int(value) = arg { *value } else { panic!("{arg:?} is no number") };
    args.iter().map(number).collect()
}

fn window(rig: &mut Rig) -> [WireId; 4] {
    let made = rig.toplevel();
    rig.paint(made[1], size(4, 3), GREEN);
    rig.requests();
    made
}

#[test]
fn a_window_is_veiled_while_nothing_is_heard_and_its_own_surface_is_not_touched() {
    let mut rig = Rig::new();
    let [_, surface, ..] = window(&mut rig);
    let id = rig.id(surface);
    rig.connection.set_stale(true);
    rig.turn();
    let (requests, sides) = asked(&mut rig, id);
    assert_eq!(requests, ["attach", "damage", "commit"]);
    assert_eq!(sides, Some(vec![4, 3]), "as its pixels");
    rig.connection.set_stale(true);
    rig.turn();
    assert!(rig.requests().is_empty(), "it is veiled already");
    rig.connection.set_stale(false);
    rig.turn();
    let nothing = rig.got.iter().find(|got| got.is("wl_surface", "attach")).map(|got| got.uint(0));
    assert_eq!((nothing, asked(&mut rig, id).0), (Some(0), vec!["attach".to_owned(), "commit".to_owned()]));
    rig.assert_alive();
}

#[test]
fn a_veil_covers_what_the_program_calls_its_window() {
    let mut rig = Rig::new();
    let [_, surface, xdg_surface, _] = window(&mut rig);
    let mut unit = rig.unit(surface, crate::message::UnitContent::Keep);
    let geometry = [5, 6, 70, 80].map(WireArg::Int).to_vec();
    unit.state.push(rig.message(xdg_surface, "set_window_geometry", geometry));
    rig.say(&crate::message::ToDisplay::Unit(unit));
    let at = rig.got.iter().position(|got| got.is("wl_subsurface", "set_position")).expect("it is placed");
    let commit = rig.got.iter().position(|got| got.is("wl_surface", "commit")).expect("it is committed");
    assert!(at < commit, "both hold together");
    assert_eq!(numbers(&rig.got[at].args), [5, 6]);
    rig.requests();
    rig.connection.set_stale(true);
    rig.turn();
    let id = rig.id(surface);
    assert_eq!(asked(&mut rig, id).1, Some(vec![70, 80]));
    rig.assert_alive();
}

#[test]
fn regression_a_veil_is_as_large_as_its_window_at_any_scale() {
    let mut rig = Rig::new();
    let [_, surface, ..] = rig.toplevel();
    let viewporter = rig.bind("wp_viewporter");
    let viewport = rig.make(viewporter, "get_viewport", vec![WireArg::Object(surface)]);
    let say = |rig: &mut Rig, object, name, args: &[i32]| {
        let mut unit = rig.unit(surface, crate::message::UnitContent::Keep);
        unit.state.push(rig.message(object, name, args.iter().copied().map(WireArg::Int).collect()));
        rig.say(&crate::message::ToDisplay::Unit(unit));
    };
    let veiled = |rig: &mut Rig| {
        let id = rig.id(surface);
        rig.requests();
        rig.connection.set_stale(true);
        rig.turn();
        let size = asked(rig, id).1.expect("it is veiled");
        rig.connection.set_stale(false);
        rig.turn();
        size
    };
    say(&mut rig, surface, "set_buffer_scale", &[2]);
    rig.paint(surface, size(8, 6), GREEN);
    assert_eq!(veiled(&mut rig), [4, 3]);
    say(&mut rig, surface, "set_buffer_transform", &[3]);
    assert_eq!(veiled(&mut rig), [3, 4]);
    say(&mut rig, viewport, "set_destination", &[70, 50]);
    assert_eq!(veiled(&mut rig), [70, 50]);
    say(&mut rig, viewport, "set_destination", &[-1, -1]);
    assert_eq!(veiled(&mut rig), [3, 4]);
    rig.assert_alive();
}

#[test]
fn a_veil_stays_above_what_the_program_puts_into_its_window() {
    let mut rig = Rig::new();
    let [_, surface, ..] = window(&mut rig);
    let (subcompositor, child) = (rig.bind("wl_subcompositor"), rig.surface());
    rig.requests();
    rig.make(subcompositor, "get_subsurface", vec![WireArg::Object(child), WireArg::Object(surface)]);
    rig.turn();
    let child = rig.id(child);
    assert!(rig.got.iter().any(|got| got.is("wl_subsurface", "place_above") && got.uint(0) == child));
    rig.assert_alive();
}

#[test]
fn where_there_can_be_no_veil_there_is_none() {
    for lacks in ["wl_subcompositor", "wp_viewporter"] {
        let globals: Vec<_> = GLOBALS.iter().copied().filter(|(name, _)| *name != lacks).collect();
        let mut rig = Rig::with(&globals);
        window(&mut rig);
        rig.connection.set_stale(true);
        rig.turn();
        assert_eq!(rig.requests(), ["xdg_toplevel.set_title"], "which says it alone");
        rig.assert_alive();
    }
}

#[test]
fn a_veil_goes_with_its_window_and_another_window_gets_another() {
    let mut rig = Rig::new();
    let [_, surface, xdg_surface, toplevel] = window(&mut rig);
    rig.connection.set_stale(true);
    rig.turn();
    rig.requests();
    rig.request(toplevel, "destroy", vec![]);
    rig.request(xdg_surface, "destroy", vec![]);
    rig.request(surface, "destroy", vec![]);
    rig.requests();
    rig.connection.set_stale(false);
    rig.turn();
    assert!(rig.requests().is_empty(), "there is none any more");
    let [_, surface, ..] = window(&mut rig);
    rig.connection.set_stale(true);
    rig.turn();
    let id = rig.id(surface);
    assert_eq!(asked(&mut rig, id).0, ["attach", "damage", "commit"]);
    rig.assert_alive();
}
