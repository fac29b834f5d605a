//! Start, objects, forwarding.

use wayferry_proto::Time;

use super::rig::{GLOBALS, Rig, size};
use crate::action::End;
use crate::message::{ToApp, ToDisplay, UnitContent, WireArg, WireId};
use crate::value::{Positioner, RegionOp};
use crate::wire::Arg;

#[test]
fn messages_wait_until_the_globals_are_known() {
    let mut rig = Rig::unstarted(GLOBALS);
    let id = rig.name();
    let bind = ToDisplay::Bind { global: 1, interface: "wl_compositor".into(), version: 4, id };
    rig.connection.on_message(Time::ZERO, &bind.encode());
    rig.turn();
    rig.assert_alive();
    let binds = rig.requests().into_iter().filter(|request| request == "wl_registry.bind").count();
    assert_eq!(binds, 6, "five of our own and the program's");
    assert!(rig.connection.objects.live(id).is_some());
}

#[test]
fn a_toplevel_gets_its_first_configure_and_its_pixels() {
    let mut rig = Rig::new();
    let [_, surface, xdg_surface, toplevel] = rig.toplevel();
    rig.request(toplevel, "set_title", vec![WireArg::Str(Some(b"foot".to_vec()))]);
    rig.commit(surface);
    let requests = rig.requests();
    assert_eq!(&requests[requests.len() - 2..], ["xdg_toplevel.set_title", "wl_surface.commit"]);

    let (toplevel_id, xdg_id) = (rig.id(toplevel), rig.id(xdg_surface));
    rig.event(toplevel_id, "configure", vec![Arg::Int(0), Arg::Int(0), Arg::Array(vec![])]);
    rig.event(xdg_id, "configure", vec![Arg::Uint(7)]);
    rig.turn();
    let events: Vec<WireId> = rig
        .take_reported()
        .into_iter()
        .filter_map(|told| if let ToApp::Event(event) = told { Some(event.object) } else { None })
        .collect();
    assert_eq!(events, [toplevel, xdg_surface]);

    let update = rig.fresh(surface, size(4, 3), [1, 2, 3, 255]);
    let mut unit = rig.unit(surface, UnitContent::Update(update.0.seq));
    unit.state.push(rig.message(xdg_surface, "ack_configure", vec![WireArg::Uint(7)]));
    rig.deliver(update);
    rig.say(&ToDisplay::Unit(unit));
    rig.assert_alive();
    let requests = rig.requests();
    let order =
        ["xdg_surface.ack_configure", "wl_surface.attach", "wl_surface.damage_buffer", "wl_surface.commit"];
    let places: Vec<_> = order.iter().map(|name| requests.iter().position(|r| r == name).unwrap()).collect();
    assert!(places.is_sorted(), "{requests:?}");
    assert_eq!(rig.shown.last().unwrap().pixels, [1, 2, 3, 255].repeat(12));
    assert!(rig.take_reported().contains(&ToApp::Applied { surface, unit: 2 }));
}

#[test]
fn ids_come_back_and_the_app_side_hears_of_it() {
    let mut rig = Rig::new();
    let compositor = rig.bind("wl_compositor");
    let first = rig.make(compositor, "create_surface", vec![]);
    let id = rig.id(first);
    rig.request(first, "destroy", vec![]);
    assert_eq!(rig.take_reported(), [ToApp::Deleted(first)]);
    let second = rig.make(compositor, "create_surface", vec![]);
    assert_eq!(rig.id(second), id);
}

#[test]
fn sync_is_answered_by_the_compositor() {
    let mut rig = Rig::new();
    let callback = rig.make(WireId::DISPLAY, "sync", vec![]);
    let told = rig.take_reported();
    assert!(matches!(&told[0], ToApp::Event(event) if event.object == callback), "{told:?}");
    assert_eq!(told[1..], [ToApp::Deleted(callback)]);
}

#[test]
fn regions_cross_by_value() {
    let mut rig = Rig::new();
    let surface = rig.surface();
    rig.requests();
    let ops = vec![RegionOp::Add(0, 0, 9, 9), RegionOp::Subtract(1, 1, 2, 2)];
    let mut unit = rig.unit(surface, UnitContent::Keep);
    unit.state.push(rig.message(surface, "set_input_region", vec![WireArg::Region(ops)]));
    unit.state.push(rig.message(surface, "set_opaque_region", vec![WireArg::Object(WireId::NULL)]));
    rig.say(&ToDisplay::Unit(unit));
    let expected = [
        "wl_compositor.create_region",
        "wl_region.add",
        "wl_region.subtract",
        "wl_surface.set_input_region",
        "wl_region.destroy",
        "wl_surface.set_opaque_region",
        "wl_surface.commit",
    ];
    assert_eq!(rig.requests(), expected);
}

#[test]
fn positioners_cross_by_value() {
    let mut rig = Rig::new();
    let [shell, parent, parent_xdg, _] = rig.toplevel();
    rig.commit(parent);
    let surface = rig.surface();
    let xdg_surface = rig.make(shell, "get_xdg_surface", vec![WireArg::Object(surface)]);
    rig.requests();
    let positioner = Positioner {
        size: Some((10, 20)),
        anchor_rect: Some((0, 0, 1, 1)),
        anchor: Some(3),
        // Version 3 of xdg-shell: not for this compositor.
        reactive: true,
        parent_size: Some((1, 1)),
        ..Positioner::default()
    };
    let args = vec![WireArg::Object(parent_xdg), WireArg::Positioner(positioner)];
    rig.make(xdg_surface, "get_popup", args);
    rig.assert_alive();
    let expected = [
        "xdg_wm_base.create_positioner",
        "xdg_positioner.set_size",
        "xdg_positioner.set_anchor_rect",
        "xdg_positioner.set_anchor",
        "xdg_surface.get_popup",
        "xdg_positioner.destroy",
    ];
    assert_eq!(rig.requests(), expected);
}

/// The compositor disconnects a client whose new ids leave a gap.
#[test]
fn a_positioner_is_made_before_the_popup_gets_its_id() {
    let mut rig = Rig::new();
    let [shell, _, parent_xdg, _] = rig.toplevel();
    let surface = rig.surface();
    let xdg_surface = rig.make(shell, "get_xdg_surface", vec![WireArg::Object(surface)]);
    let args = vec![WireArg::Object(parent_xdg), WireArg::Positioner(Positioner::default())];
    let popup = rig.make(xdg_surface, "get_popup", args);
    let positioner = rig.got.iter().find(|got| got.is("xdg_wm_base", "create_positioner")).unwrap().uint(0);
    assert!(positioner < rig.id(popup));
}

#[test]
fn objects_of_a_missing_global_are_inert() {
    let mut rig = Rig::with(&[("wl_compositor", 4), ("wl_shm", 1), ("wl_data_device_manager", 3)]);
    let seat = rig.bind("wl_seat");
    let pointer = rig.make(seat, "get_pointer", vec![]);
    rig.request(pointer, "release", vec![]);
    assert_eq!(rig.take_reported(), [ToApp::Deleted(pointer)]);
    // What needs an inert object is inert too, and a null takes its place where one is allowed.
    let manager = rig.bind("wl_data_device_manager");
    let device = rig.make(manager, "get_data_device", vec![WireArg::Object(seat)]);
    rig.requests();
    let null = WireArg::Object(WireId::NULL);
    rig.request(device, "set_selection", vec![null, WireArg::Uint(1)]);
    assert_eq!(rig.requests(), Vec::<String>::new());
    rig.assert_alive();
}

#[test]
fn a_vanished_global_binds_to_nothing() {
    let mut rig = Rig::new();
    let registry = rig.registry;
    rig.event(registry, "global_remove", vec![Arg::Uint(7)]);
    rig.turn();
    let output = rig.name();
    rig.say(&ToDisplay::Bind { global: 7, interface: "wl_output".into(), version: 4, id: output });
    assert_eq!(rig.requests(), Vec::<String>::new());
    rig.request(output, "release", vec![]);
    assert_eq!(rig.take_reported(), [ToApp::Deleted(output)]);
    rig.assert_alive();
}

#[test]
fn requests_above_the_bound_version_are_dropped() {
    let mut rig = Rig::with(&[("wl_compositor", 4), ("wl_shm", 1), ("wl_output", 2), ("wl_seat", 2)]);
    let output = rig.bind("wl_output");
    let seat = rig.bind("wl_seat");
    let pointer = rig.make(seat, "get_pointer", vec![]);
    let (output_id, pointer_id) = (rig.id(output), rig.id(pointer));
    rig.requests();
    rig.take_reported();
    // Both destructors came with version 3.
    rig.request(pointer, "release", vec![]);
    rig.request(output, "release", vec![]);
    assert_eq!(rig.take_reported(), [ToApp::Deleted(pointer), ToApp::Deleted(output)]);
    assert_eq!(rig.requests(), Vec::<String>::new());
    rig.event(output_id, "scale", vec![Arg::Int(2)]);
    rig.event(pointer_id, "motion", vec![Arg::Uint(1), Arg::Fixed(0), Arg::Fixed(0)]);
    rig.turn();
    assert_eq!(rig.take_reported(), []);
    rig.assert_alive();
}

#[test]
fn the_bound_version_is_the_lower_one() {
    let mut rig = Rig::with(&[("wl_compositor", 4), ("wl_shm", 1), ("wl_output", 2)]);
    let id = rig.name();
    rig.say(&ToDisplay::Bind { global: 3, interface: "wl_output".into(), version: 4, id });
    let bind = rig.got.pop().unwrap();
    assert!(matches!(&bind.args[2], Arg::Uint(2)), "{:?}", bind.args);
}

#[test]
fn a_compositor_without_shm_is_an_error() {
    let rig = Rig::with(&[("wl_compositor", 4)]);
    assert_eq!(rig.end(), Some(&End::CompositorError("it has no wl_shm".into())));
}

#[test]
fn pings_are_answered_unless_the_program_hangs() {
    let mut rig = Rig::new();
    let shell = rig.bind("xdg_wm_base");
    let id = rig.id(shell);
    rig.requests();
    rig.event(id, "ping", vec![Arg::Uint(1)]);
    rig.turn();
    assert_eq!(rig.requests(), ["xdg_wm_base.pong"]);
    rig.say(&ToDisplay::Hang(true));
    rig.event(id, "ping", vec![Arg::Uint(2)]);
    rig.turn();
    assert_eq!(rig.requests(), Vec::<String>::new());
    rig.say(&ToDisplay::Hang(false));
    let pong = rig.got.pop().unwrap();
    assert!(pong.is("xdg_wm_base", "pong") && pong.uint(0) == 2);
    assert_eq!(rig.take_reported(), []);
}

#[test]
fn what_the_compositor_says_last_reaches_the_app_side() {
    let mut rig = Rig::new();
    let surface = rig.surface();
    let id = rig.id(surface);
    let text = Arg::Str(Some(b"bad\x1b[31m things".to_vec()));
    rig.event(1, "error", vec![Arg::Object(id), Arg::Uint(3), text]);
    rig.turn();
    let message = "bad[31m things".to_owned();
    assert_eq!(rig.take_reported(), [ToApp::Fatal { object: surface, code: 3, message }]);
    assert_eq!(rig.end(), Some(&End::CompositorError("wl_surface: bad[31m things".to_owned())));
}

#[test]
fn regression_an_error_about_an_object_of_ours_is_not_given_its_code() {
    let mut rig = Rig::new();
    let text = Arg::Str(Some(b"no".to_vec()));
    // The first helper that is bound: `wl_compositor`, of which the program knows nothing.
    let helper = rig.registry + 2;
    rig.event(1, "error", vec![Arg::Object(helper), Arg::Uint(0), text]);
    rig.turn();
    let [ToApp::Fatal { object: WireId::DISPLAY, code: 3, message }] = &rig.take_reported()[..] else {
        panic!()
    };
    assert!(message.ends_with(": no"), "{message}");
}

#[test]
fn a_hang_up_ends_the_connection() {
    let mut rig = Rig::new();
    rig.connection.on_hang_up();
    rig.turn();
    assert!(matches!(&rig.take_reported()[..], [ToApp::Fatal { object: WireId::DISPLAY, code: 3, .. }]));
    assert!(matches!(rig.end(), Some(End::CompositorError(_))));
}
