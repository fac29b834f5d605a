//! Protocol versions that a display lacks, and errors: what the program is told here, and in whose name.

use super::*;

/// [`desk`] with these globals instead of what it has of the same name.
pub(super) fn desk_with(globals: &[(&str, u32)]) -> Rc<Desk> {
    let mut desk = Desk::clone(&desk());
    let listed = &mut desk.snapshot.globals;
    listed.retain(|global| globals.iter().all(|(name, _)| *name != global.interface));
    for ((interface, version), name) in globals.iter().zip(900..) {
        listed.push(Global { name, interface: (*interface).to_owned(), version: *version });
    }
    Rc::new(desk)
}

impl Rig {
    fn name_of(&self, id: u32) -> WireArg {
        WireArg::Object(self.connection.objects.of(id).unwrap().wire.unwrap())
    }

    /// The error that ended the program: object and code.
    pub(super) fn error(&mut self) -> Option<(u32, u32)> {
        let events = self.events();
        let error = events.iter().find(|event| (event.object, event.name) == (1, "error"))?;
        let [Arg::Object(object), Arg::Uint(code), _] = error.args[..] else { panic!("{error:?}") };
        Some((object, code))
    }

    fn positioner(&mut self, base: u32, width: i32, height: i32) -> u32 {
        let id = self.id("xdg_positioner");
        self.request(base, "create_positioner", vec![Arg::NewId(id)]);
        self.request(id, "set_size", vec![Arg::Int(width), Arg::Int(height)]);
        self.request(id, "set_anchor_rect", [0, 0, 1, 1].map(Arg::Int).into());
        id
    }

    /// A popup on a window: its `xdg_surface` and `xdg_popup`.
    fn popup(&mut self, base: u32) -> (u32, u32) {
        let compositor = self.bind("wl_compositor");
        let (parent, child) = (self.surface(compositor), self.surface(compositor));
        let (shell, _) = self.toplevel(parent);
        let xdg = self.id("xdg_surface");
        self.request(base, "get_xdg_surface", vec![Arg::NewId(xdg), Arg::Object(child)]);
        let positioner = self.positioner(base, 10, 20);
        let popup = self.id("xdg_popup");
        let args = vec![Arg::NewId(popup), Arg::Object(shell), Arg::Object(positioner)];
        self.request(xdg, "get_popup", args);
        (xdg, popup)
    }

    /// The serial of the last configure, as the program has it.
    fn configured(&mut self) -> u32 {
        let Some(Event { name: "configure", args, .. }) = self.events().pop() else { panic!() };
        let [Arg::Uint(serial)] = args[..] else { panic!("{args:?}") };
        serial
    }

    fn acknowledged(&mut self, xdg: u32, serial: u32) -> bool {
        let surface = self.connection.association(xdg).unwrap();
        self.request(xdg, "ack_configure", vec![Arg::Uint(serial)]);
        std::mem::take(&mut self.connection.surfaces.get_mut(&surface).unwrap().pending.state).acknowledges()
    }
}

#[test]
fn regression_an_error_of_the_compositor_names_the_programs_own_object() {
    let mut rig = Rig::new();
    let compositor = rig.bind("wl_compositor");
    let surface = rig.surface(compositor);
    let object = rig.connection.objects.wire(surface).unwrap();
    rig.tell(&ToApp::Fatal { object, code: 2, message: "invalid size".to_owned() });
    assert_eq!(rig.error(), Some((surface, 2)));
}

#[test]
fn an_error_about_nothing_of_the_programs_is_the_displays() {
    for object in [WireId::DISPLAY, WireId(4000)] {
        let mut rig = Rig::new();
        rig.tell(&ToApp::Fatal { object, code: 3, message: "gone".to_owned() });
        assert_eq!(rig.error(), Some((1, error_code::IMPLEMENTATION)));
    }
}

/// 1 is `not_constructed` of an `xdg_surface`, and nothing of the sort had happened.
#[test]
fn regression_a_request_that_does_not_exist_is_no_error_of_the_objects_own() {
    let mut rig = Rig::new();
    let compositor = rig.bind("wl_compositor");
    let surface = rig.surface(compositor);
    let (xdg, _) = rig.toplevel(surface);
    rig.connection.input().push(&[xdg.to_ne_bytes(), (8_u32 << 16 | 30).to_ne_bytes()].concat(), []).unwrap();
    rig.connection.process(rig.now);
    assert_eq!(rig.error(), Some((1, error_code::INVALID_METHOD)));
}

#[test]
fn a_positioner_with_impossible_numbers_is_the_positioners_error() {
    for (request, args) in [
        ("set_size", vec![Arg::Int(0), Arg::Int(4)]),
        ("set_anchor_rect", [0, 0, -1, 4].map(Arg::Int).into()),
        ("set_gravity", vec![Arg::Uint(9)]),
    ] {
        let mut rig = Rig::new();
        let base = rig.bind("xdg_wm_base");
        let positioner = rig.positioner(base, 4, 4);
        rig.request(positioner, request, args);
        assert_eq!(rig.error(), Some((positioner, 0)), "{request}");
    }
}

#[test]
fn an_offset_moves_the_content_and_attach_may_have_none() {
    let mut rig = Rig::new();
    let (surface, shm) = rig.window();
    rig.units();
    let buffer = rig.buffer(shm, 4, 4, 2);
    rig.request(surface, "offset", vec![Arg::Int(3), Arg::Int(-4)]);
    rig.attach(surface, buffer);
    rig.commit(surface);
    rig.now += FRAME;
    rig.flush(u64::MAX);
    assert_eq!(rig.units().last().unwrap().offset, (3, -4));
    rig.events();
    rig.request(surface, "attach", vec![Arg::Object(buffer), Arg::Int(1), Arg::Int(0)]);
    assert_eq!(rig.error(), Some((surface, 3)));
}

#[test]
fn wheel_steps_of_an_older_compositor_are_120ths() {
    let mut rig = Rig::new();
    let seat = rig.bind("wl_seat");
    let pointer = rig.id("wl_pointer");
    rig.request(seat, "get_pointer", vec![Arg::NewId(pointer)]);
    rig.events();
    rig.event(pointer, "axis_discrete", vec![WireArg::Uint(0), WireArg::Int(-2)]);
    rig.event(pointer, "axis_discrete", vec![WireArg::Uint(0), WireArg::Int(0)]);
    rig.event(pointer, "axis_value120", vec![WireArg::Uint(0), WireArg::Int(30)]);
    let events = rig.events();
    assert_eq!(names(&events), [(pointer, "axis_value120"), (pointer, "axis_value120")]);
    assert!(matches!(events[0].args[..], [Arg::Uint(0), Arg::Int(-240)]));
}

/// The first frame is drawn at the right scale where there is no doubt which that is.
#[test]
fn surfaces_are_told_their_scale_where_the_compositor_does_not() {
    let mut desk = Desk::clone(&desk());
    desk.snapshot.outputs[0].scale = 2;
    desk.snapshot.outputs.push(Output { global: 16, scale: 3, ..Output::default() });
    let mut rig = Rig::with_desk(&Rc::new(desk.clone()));
    let scale = |events: Vec<Event>| {
        let told = events.into_iter().filter(|event| event.name == "preferred_buffer_scale");
        told.map(|event| if let [Arg::Int(scale)] = event.args[..] { scale } else { 0 }).collect::<Vec<_>>()
    };
    let (compositor, output) = (rig.bind("wl_compositor"), rig.bind("wl_output"));
    let surface = rig.surface(compositor);
    assert_eq!(scale(rig.events()), [3], "the highest there is");
    let on = rig.name_of(output);
    rig.event(surface, "enter", vec![on.clone()]);
    assert_eq!(scale(rig.events()), [2], "its output's");
    desk.snapshot.outputs[0].scale = 1;
    rig.connection.on_desk(rig.now, &Rc::new(desk));
    assert_eq!(scale(rig.events()), [1], "regression: it changes with the output");
    rig.event(surface, "leave", vec![on]);
    assert_eq!(scale(rig.events()), [3]);
    let newer = desk_with(&[("wl_compositor", 6)]);
    rig.connection.attach(rig.now, &newer, Compression::default());
    assert_eq!(scale(rig.events()), [0; 0], "that one says it itself");
    rig.event(surface, "preferred_buffer_scale", vec![WireArg::Int(1)]);
    assert_eq!(scale(rig.events()), [1]);
}

/// weston-simple-damage binds what is offered, and its library ends it for an event that it does not know.
#[test]
fn regression_a_program_is_ended_by_an_event_that_says_nothing_new() {
    let mut rig = Rig::new();
    let compositor = rig.bind("wl_compositor");
    rig.surface(compositor);
    assert!(rig.events().iter().all(|event| event.name != "preferred_buffer_scale"));
}

#[test]
fn regression_the_fractional_stub_follows_the_outputs() {
    let mut rig = Rig::new();
    let compositor = rig.bind("wl_compositor");
    let surface = rig.surface(compositor);
    let (manager, fraction) = (rig.bind("wp_fractional_scale_manager_v1"), rig.id("wp_fractional_scale_v1"));
    rig.request(manager, "get_fractional_scale", vec![Arg::NewId(fraction), Arg::Object(surface)]);
    let told = |rig: &mut Rig| {
        let told = rig.events().into_iter().filter(|event| event.name == "preferred_scale");
        told.map(|event| if let [Arg::Uint(scale)] = event.args[..] { scale } else { 0 }).collect::<Vec<_>>()
    };
    assert_eq!(told(&mut rig), [120]);
    let mut changed = Desk::clone(&desk());
    changed.snapshot.outputs[0].scale = 2;
    rig.connection.on_desk(rig.now, &Rc::new(changed));
    assert_eq!(told(&mut rig), [240]);
}

#[test]
fn a_window_may_ask_for_everything_of_a_compositor_that_does_not_say() {
    for (version, expected) in [(4, 1), (5, 0)] {
        let mut rig = Rig::with_desk(&desk_with(&[("xdg_wm_base", version)]));
        let compositor = rig.bind("wl_compositor");
        let surface = rig.surface(compositor);
        rig.toplevel(surface);
        let told = rig.events().into_iter().filter(|event| event.name == "wm_capabilities");
        let told: Vec<_> = told.map(|event| format!("{:?}", event.args)).collect();
        assert_eq!(told.len(), expected, "version {version}");
        let all = [1_u32, 2, 3, 4].map(u32::to_ne_bytes).concat();
        assert!(told.iter().all(|args| *args == format!("{:?}", [Arg::Array(all.clone())])), "{told:?}");
    }
}

#[test]
fn a_popup_is_moved_by_the_compositor_if_it_can() {
    let mut rig = Rig::with_desk(&desk_with(&[("xdg_wm_base", 3)]));
    let base = rig.bind("xdg_wm_base");
    let (_, popup) = rig.popup(base);
    let positioner = rig.positioner(base, 30, 40);
    rig.events();
    rig.sent.clear();
    rig.request(popup, "reposition", vec![Arg::Object(positioner), Arg::Uint(7)]);
    let [ToDisplay::Request(Request { args, .. })] = &rig.sent[..] else { panic!("{:?}", rig.sent) };
    assert!(
        matches!(args[..], [WireArg::Positioner(positioner), WireArg::Uint(7)] if positioner.size == Some((30, 40)))
    );
    assert!(rig.events().is_empty());
}

/// A program that began at a display whose popups move, and has come to one whose popups do not.
fn at_an_older_display() -> Rig {
    let mut rig = Rig::with_desk(&desk_with(&[("xdg_wm_base", 6)]));
    rig.bind("xdg_wm_base");
    rig.detach();
    rig.attach_to(&desk());
    rig.sent.clear();
    rig
}

#[test]
fn a_program_that_begins_where_popups_do_not_move_is_told_so_and_others_stay_as_they_are() {
    let version = |rig: &Rig| {
        let mut offers = rig.connection.offering.offers().iter();
        offers.find(|offer| offer.interface == "xdg_wm_base").map(|offer| offer.version)
    };
    let newer = desk_with(&[("xdg_wm_base", 3)]);
    for (first, second, expected) in [(&desk(), &newer, 2), (&newer, &desk(), 6)] {
        let mut rig = Rig::with_desk(first);
        assert_eq!(version(&rig), Some(expected));
        rig.bind("wl_compositor");
        rig.events();
        rig.detach();
        rig.attach_to(second);
        assert_eq!(version(&rig), Some(expected));
        assert!(!rig.events().iter().any(|event| event.name == "global_remove"));
    }
}

/// GTK waits for the answer before it draws the popup anew.
#[test]
fn a_popup_that_the_compositor_cannot_move_stays_and_is_configured() {
    let mut rig = at_an_older_display();
    let base = rig.bind("xdg_wm_base");
    let (xdg, popup) = rig.popup(base);
    rig.event(popup, "configure", [5, 6, 10, 20].map(WireArg::Int).into());
    rig.event(xdg, "configure", vec![WireArg::Uint(41)]);
    let serial = rig.configured();
    assert!(rig.acknowledged(xdg, serial));
    rig.sent.clear();
    let positioner = rig.positioner(base, 30, 40);
    rig.request(popup, "reposition", vec![Arg::Object(positioner), Arg::Uint(7)]);
    assert!(rig.sent.is_empty());
    let events = rig.events();
    assert_eq!(names(&events), [(popup, "repositioned"), (popup, "configure"), (xdg, "configure")]);
    assert!(matches!(events[1].args[..], [Arg::Int(5), Arg::Int(6), Arg::Int(30), Arg::Int(40)]));
    let [Arg::Uint(serial)] = events[2].args[..] else { panic!() };
    assert!(!rig.acknowledged(xdg, serial), "the compositor has heard it, and would end the program");
    rig.event(xdg, "configure", vec![WireArg::Uint(42)]);
    let serial = rig.configured();
    assert!(rig.acknowledged(xdg, serial));
}

#[test]
fn a_popup_that_moves_before_it_is_configured_is_answered_with_that() {
    let mut rig = at_an_older_display();
    let base = rig.bind("xdg_wm_base");
    let (xdg, popup) = rig.popup(base);
    rig.events();
    let positioner = rig.positioner(base, 30, 40);
    rig.request(popup, "reposition", vec![Arg::Object(positioner), Arg::Uint(7)]);
    assert!(rig.events().is_empty());
    for serial in [41, 42] {
        rig.event(popup, "configure", [5, 6, 10, 20].map(WireArg::Int).into());
        rig.event(xdg, "configure", vec![WireArg::Uint(serial)]);
    }
    let told: Vec<_> = rig.events().iter().map(|event| event.name).collect();
    assert_eq!(told, ["repositioned", "configure", "configure", "configure", "configure"]);
}

#[test]
fn what_only_a_newer_display_said_of_windows_is_void_at_an_older_one() {
    let mut rig = Rig::with_desk(&desk_with(&[("xdg_wm_base", 6)]));
    let compositor = rig.bind("wl_compositor");
    let surface = rig.surface(compositor);
    let (_, toplevel) = rig.toplevel(surface);
    rig.event(toplevel, "configure_bounds", vec![WireArg::Int(800), WireArg::Int(600)]);
    rig.event(toplevel, "wm_capabilities", vec![WireArg::Array(Vec::new())]);
    let told = |rig: &mut Rig| {
        let told = rig.events().into_iter().filter(|event| event.object == toplevel);
        told.map(|event| event.name).collect::<Vec<_>>()
    };
    assert_eq!(told(&mut rig), ["configure_bounds", "wm_capabilities"]);
    for expected in [&["configure_bounds", "wm_capabilities"][..], &[]] {
        rig.connection.attach(rig.now, &desk(), Compression::default());
        assert_eq!(told(&mut rig), expected, "told once");
    }
}

#[test]
fn a_registry_that_is_destroyed_gives_its_id_back() {
    let mut rig = Rig::new();
    let fixes = rig.bind("wl_fixes");
    let registry = rig.id("wl_registry");
    rig.request(1, "get_registry", vec![Arg::NewId(registry)]);
    rig.events();
    rig.request(fixes, "destroy_registry", vec![Arg::Object(registry)]);
    let [Event { object: 1, name: "delete_id", args }] = &rig.events()[..] else { panic!() };
    assert!(matches!(args[..], [Arg::Uint(id)] if id == registry));
    rig.connection.on_desk(rig.now, &desk_with(&[("zwp_text_input_manager_v3", 1)]));
    assert!(!rig.events().iter().any(|event| event.object == registry));
}

/// Compositors with version 1 end a program over it.
#[test]
fn decorations_of_a_window_with_content_are_asked_of_newer_compositors_only() {
    for (version, content, crosses) in [(1, true, false), (1, false, true), (2, true, true)] {
        let mut rig = Rig::with_desk(&desk_with(&[("zxdg_decoration_manager_v1", version)]));
        let (compositor, shm) = (rig.bind("wl_compositor"), rig.bind("wl_shm"));
        let surface = rig.surface(compositor);
        let (_, toplevel) = rig.toplevel(surface);
        if content {
            let buffer = rig.buffer(shm, 4, 4, 1);
            rig.attach(surface, buffer);
            rig.commit(surface);
        }
        let manager = rig.bind("zxdg_decoration_manager_v1");
        let decoration = rig.id("zxdg_toplevel_decoration_v1");
        rig.events();
        let args = vec![Arg::NewId(decoration), Arg::Object(toplevel)];
        rig.request(manager, "get_toplevel_decoration", args);
        assert_eq!(
            rig.connection.objects.wire(decoration).is_some(),
            crosses,
            "version {version}, content {content}"
        );
        let answered = names(&rig.events()) == [(decoration, "configure")];
        assert_eq!(answered, !crosses);
    }
}

/// A bind may be on its way when the display changes.
#[test]
fn a_global_that_has_just_gone_can_still_be_bound() {
    let mut rig = Rig::with_desk(&desk_with(&[("xdg_system_bell_v1", 1)]));
    let bell = rig.bind("xdg_system_bell_v1");
    let name = rig
        .connection
        .offering
        .offers()
        .iter()
        .find(|offer| offer.interface == "xdg_system_bell_v1")
        .unwrap()
        .name;
    rig.connection.attach(rig.now, &desk(), Compression::default());
    assert!(names(&rig.events()).iter().any(|(_, name)| *name == "global_remove"));
    let registry = rig.id("wl_registry");
    rig.request(1, "get_registry", vec![Arg::NewId(registry)]);
    let late = rig.id("xdg_system_bell_v1");
    let interface = Arg::Str(Some(b"xdg_system_bell_v1".to_vec()));
    rig.request(registry, "bind", vec![Arg::Uint(name), interface, Arg::Uint(1), Arg::NewId(late)]);
    for bell in [bell, late] {
        rig.request(bell, "ring", vec![Arg::Object(0)]);
    }
    assert!(rig.error().is_none() && rig.connection.end().is_none());
}

/// Compositors end a program for it, and the order in which the display would have heard it depended on what was held
/// there.
#[test]
fn regression_a_surface_may_go_before_its_role_object() {
    let late = |end: &[&str]| {
        let mut rig = Rig::new();
        let (surface, xdg, toplevel, _) = rig.mapped();
        for name in end {
            rig.request(if *name == "xdg_toplevel" { toplevel } else { xdg }, "destroy", vec![]);
        }
        rig.sent.clear();
        rig.request(surface, "destroy", vec![]);
        (rig.error().map(|(object, code)| (object == surface, code)), rig.sent.len())
    };
    assert_eq!(late(&[]), (Some((true, 4)), 0));
    assert_eq!(late(&["xdg_toplevel"]), (Some((true, 4)), 0));
    assert_eq!(late(&["xdg_toplevel", "xdg_surface"]), (None, 1));
}

#[test]
fn a_surface_that_has_an_inert_role_object_or_none_may_go() {
    let mut rig = Rig::new();
    let (compositor, subcompositor) = (rig.bind("wl_compositor"), rig.bind("wl_subcompositor"));
    let (child, parent) = (rig.surface(compositor), rig.surface(compositor));
    let subsurface = rig.id("wl_subsurface");
    let args = vec![Arg::NewId(subsurface), Arg::Object(child), Arg::Object(parent)];
    rig.request(subcompositor, "get_subsurface", args);
    rig.request(child, "destroy", vec![]);
    rig.request(parent, "destroy", vec![]);
    assert_eq!((rig.error(), rig.connection.end()), (None, None));
}

/// An `xdg_surface` of another surface may have the id of the one that it had.
#[test]
fn a_role_object_of_another_surface_is_none_of_its_own() {
    let mut rig = Rig::new();
    let (surface, xdg, toplevel, _) = rig.mapped();
    let wire = rig.connection.objects.wire(xdg).unwrap();
    rig.request(toplevel, "destroy", vec![]);
    rig.request(xdg, "destroy", vec![]);
    rig.tell(&ToApp::Deleted(wire));
    let (compositor, base) = (rig.bind("wl_compositor"), rig.bind("xdg_wm_base"));
    let other = rig.surface(compositor);
    rig.request(base, "get_xdg_surface", vec![Arg::NewId(xdg), Arg::Object(other)]);
    rig.request(surface, "destroy", vec![]);
    assert_eq!(rig.connection.end(), None);
    rig.request(other, "destroy", vec![]);
    assert_eq!(rig.error(), Some((other, 4)));
}

/// Before version 6 compositors differ, so the attached one is asked.
#[test]
fn a_surface_of_an_older_version_goes_to_the_compositor_before_its_role_object() {
    let mut rig = Rig::new();
    let name = rig
        .connection
        .offering
        .offers()
        .iter()
        .find(|offer| offer.interface == "wl_compositor")
        .unwrap()
        .name;
    let (registry, compositor) = (rig.id("wl_registry"), rig.id("wl_compositor"));
    rig.request(1, "get_registry", vec![Arg::NewId(registry)]);
    let text = Arg::Str(Some(b"wl_compositor".to_vec()));
    rig.request(registry, "bind", vec![Arg::Uint(name), text, Arg::Uint(5), Arg::NewId(compositor)]);
    let surface = rig.surface(compositor);
    rig.toplevel(surface);
    rig.sent.clear();
    rig.request(surface, "destroy", vec![]);
    assert_eq!((rig.connection.end(), rig.sent.len()), (None, 1));
}

fn transforms(events: &[Event]) -> Vec<u32> {
    let told = events.iter().filter(|event| event.name == "preferred_buffer_transform");
    told.map(|event| if let [Arg::Uint(transform)] = event.args[..] { transform } else { 99 }).collect()
}

#[test]
fn the_transform_that_the_compositor_prefers_reaches_the_program() {
    let mut rig = Rig::with_desk(&desk_with(&[("wl_compositor", 6)]));
    let (surface, ..) = rig.mapped();
    for transform in [1, 3] {
        rig.event(surface, "preferred_buffer_transform", vec![WireArg::Uint(transform)]);
    }
    assert_eq!(transforms(&rig.events()), [1, 3]);
}

/// A compositor says nothing of outputs that are not rotated, and an older one says nothing at all.
#[test]
fn regression_a_window_stays_rotated_as_the_last_display_wanted_it() {
    for version in [6, 4] {
        let mut rig = Rig::with_desk(&desk_with(&[("wl_compositor", 6)]));
        let (surface, ..) = rig.mapped();
        rig.event(surface, "preferred_buffer_transform", vec![WireArg::Uint(1)]);
        assert_eq!(transforms(&rig.events()), [1]);
        assert_eq!(transforms(&rig.detach()), [0; 0], "no display shows it");
        rig.attach_to(&desk_with(&[("wl_compositor", version)]));
        assert_eq!(transforms(&rig.events()), [0], "as long as the new one says nothing else");
        rig.detach();
        rig.attach_to(&desk_with(&[("wl_compositor", 6)]));
        assert_eq!(transforms(&rig.events()), [0; 0], "that is no news");
        rig.event(surface, "preferred_buffer_transform", vec![WireArg::Uint(2)]);
        assert_eq!(transforms(&rig.events()), [2]);
    }
}

fn notifier(rig: &mut Rig, version: u32) -> (u32, u32) {
    let (seat, notifier) = (rig.bind("wl_seat"), rig.bind("ext_idle_notifier_v1"));
    let offer =
        rig.connection.offering.offers().iter().find(|offer| offer.interface == "ext_idle_notifier_v1");
    assert_eq!(offer.map(|offer| offer.version), Some(version));
    (seat, notifier)
}

#[test]
fn idle_notifications_that_only_input_ends_are_offered_where_the_compositor_has_them() {
    let mut rig = Rig::with_desk(&desk_with(&[("ext_idle_notifier_v1", 1)]));
    notifier(&mut rig, 1);
    let mut rig = Rig::with_desk(&desk_with(&[("ext_idle_notifier_v1", 2)]));
    let (seat, notifier) = notifier(&mut rig, 2);
    let notification = rig.id("ext_idle_notification_v1");
    let args = || vec![Arg::NewId(notification), Arg::Uint(5000), Arg::Object(seat)];
    rig.request(notifier, "get_input_idle_notification", args());
    rig.events();
    rig.event(notification, "idled", vec![]);
    assert_eq!(names(&rig.events()), [(notification, "idled")]);
    // Another display knows only the ones that inhibitors hold off: they come later, never too early.
    let resumed = rig.detach();
    assert_eq!(names(&resumed).first(), Some(&(notification, "resumed")));
    let told = rig.attach_to(&desk_with(&[("ext_idle_notifier_v1", 1)]));
    assert!(told.iter().any(|told| told.contains("get_idle_notification")), "{told:?}");
    assert!(told.iter().all(|told| !told.contains("get_input_idle_notification")), "{told:?}");
    rig.detach();
    let told = rig.attach_to(&desk_with(&[("ext_idle_notifier_v1", 2)]));
    assert!(told.iter().any(|told| told.contains("get_input_idle_notification")), "{told:?}");
}

#[test]
fn a_session_of_the_compositors_is_passed_on_and_over_with_its_display() {
    let able = desk_with(&[("xdg_session_manager_v1", 1)]);
    let offers =
        |rig: &Rig| rig.connection.offering.offers().iter().any(|o| o.interface == "xdg_session_manager_v1");
    assert!(!offers(&Rig::new()), "it would only pretend");
    let mut rig = Rig::with_desk(&able);
    assert!(offers(&rig));
    let manager = rig.bind("xdg_session_manager_v1");
    let session = rig.id("xdg_session_v1");
    let id = Arg::Str(Some(b"earlier".to_vec()));
    rig.request(manager, "get_session", vec![Arg::NewId(session), Arg::Uint(1), id]);
    let compositor = rig.bind("wl_compositor");
    let surface = rig.surface(compositor);
    let (_, toplevel) = rig.toplevel(surface);
    let restored = rig.id("xdg_toplevel_session_v1");
    let name = Arg::Str(Some(b"main".to_vec()));
    rig.request(session, "restore_toplevel", vec![Arg::NewId(restored), Arg::Object(toplevel), name]);
    rig.commit(surface);
    let requests: Vec<_> = rig.sent.iter().map(|message| rig.words(message)).collect();
    let at = |word: &str| requests.iter().position(|words| words.starts_with(word));
    assert!(at("xdg_session_manager_v1.get_session(earlier)").is_some(), "{requests:?}");
    let order = (at("xdg_session_v1.restore_toplevel(main)"), at("unit"));
    assert!(order.0.is_some() && order.0 < order.1, "{requests:?}");
    rig.events();
    rig.event(session, "restored", vec![]);
    rig.event(restored, "restored", vec![]);
    assert_eq!(names(&rig.events()), [(session, "restored"), (restored, "restored")]);
    let farewell = rig.detach();
    assert!(names(&farewell).contains(&(session, "replaced")), "{farewell:?}");
    let told = rig.attach_to(&able);
    assert!(
        told.iter().all(|told| !told.contains("get_session") && !told.contains("restore_toplevel")),
        "{told:?}"
    );
    assert_eq!(rig.connection.end(), None);
}

/// A pointer or keyboard (`what`) and its timestamps, where the compositor has them.
fn stamped(rig: &mut Rig, what: &str, device: &'static str) -> (u32, u32) {
    let (manager, seat) = (rig.bind("zwp_input_timestamps_manager_v1"), rig.bind("wl_seat"));
    let (device, stamps) = (rig.id(device), rig.id("zwp_input_timestamps_v1"));
    rig.request(seat, &format!("get_{what}"), vec![Arg::NewId(device)]);
    let args = vec![Arg::NewId(stamps), Arg::Object(device)];
    rig.request(manager, &format!("get_{what}_timestamps"), args);
    rig.events();
    (device, stamps)
}

impl Rig {
    /// The compositor tells a time, in nanoseconds below a second.
    fn stamp(&mut self, stamps: u32, nanos: u32) {
        self.event(stamps, "timestamp", [0, 0, nanos].map(WireArg::Uint).into());
    }

    fn input(&mut self, device: u32, name: &str, args: &[u32]) {
        self.event(device, name, args.iter().copied().map(WireArg::Uint).collect());
    }

    fn read_ago(&mut self, ago: Duration) {
        let time = self.now.since_start().saturating_sub(ago);
        self.tell(&ToApp::Read { time_ns: u64::try_from(time.as_nanos()).unwrap() });
    }
}

/// The nanoseconds that the program was told, and the names of the events between them.
fn reported(events: &[Event]) -> Vec<String> {
    let word = |event: &Event| match (event.name, &event.args[..]) {
        ("timestamp", [_, _, Arg::Uint(nanos)]) => nanos.to_string(),
        (name, _) => name.to_owned(),
    };
    events.iter().map(word).collect()
}

const TIMESTAMPS: (&str, u32) = ("zwp_input_timestamps_manager_v1", 1);

#[test]
fn a_timestamp_comes_right_before_its_event() {
    let offers =
        |rig: &Rig| rig.connection.offering.offers().iter().any(|offer| offer.interface == TIMESTAMPS.0);
    assert!(!offers(&Rig::new()), "none would ever come");
    let mut rig = Rig::with_desk(&desk_with(&[TIMESTAMPS]));
    let (pointer, stamps) = stamped(&mut rig, "pointer", "wl_pointer");
    rig.stamp(stamps, 5);
    assert_eq!(reported(&rig.events()), [""; 0], "it waits");
    rig.input(pointer, "frame", &[]);
    rig.input(pointer, "button", &[7, 0, 272, 1]);
    rig.input(pointer, "button", &[8, 0, 272, 0]);
    assert_eq!(reported(&rig.events()), ["frame", "5", "button", "button"]);
    rig.stamp(stamps, 6);
    rig.request(stamps, "destroy", vec![]);
    rig.input(pointer, "axis_stop", &[0, 0]);
    assert_eq!(reported(&rig.events()), ["axis_stop"]);
    assert_eq!(rig.connection.end(), None);
}

#[test]
fn the_timestamp_of_a_late_press_is_dropped_with_it() {
    let mut rig = Rig::with_desk(&desk_with(&[TIMESTAMPS]));
    let (pointer, stamps) = stamped(&mut rig, "pointer", "wl_pointer");
    rig.now += Duration::from_secs(60);
    rig.read_ago(Duration::from_secs(3));
    rig.stamp(stamps, 5);
    rig.input(pointer, "button", &[7, 0, 272, 1]);
    rig.input(pointer, "frame", &[]);
    rig.read_ago(Duration::ZERO);
    rig.stamp(stamps, 6);
    rig.input(pointer, "button", &[8, 0, 272, 0]);
    rig.stamp(stamps, 7);
    rig.input(pointer, "button", &[9, 0, 273, 1]);
    assert_eq!(reported(&rig.events()), ["frame", "7", "button"]);
}

#[test]
fn a_key_that_is_made_up_has_no_timestamp_of_another() {
    let mut rig = Rig::with_desk(&desk_with(&[TIMESTAMPS]));
    let (keyboard, stamps) = stamped(&mut rig, "keyboard", "wl_keyboard");
    rig.stamp(stamps, 5);
    rig.input(keyboard, "key", &[7, 0, 30, 1]);
    assert_eq!(reported(&rig.events()), ["5", "key"]);
    rig.stamp(stamps, 6);
    rig.now += Duration::from_millis(250);
    rig.connection.on_timeout(rig.now);
    assert_eq!(reported(&rig.events()), ["key"], "released here");
    rig.input(keyboard, "key", &[8, 0, 30, 0]);
    assert_eq!(reported(&rig.events()), [""; 0], "the real release, too late");
    rig.stamp(stamps, 7);
    rig.input(keyboard, "key", &[9, 0, 31, 1]);
    assert_eq!(reported(&rig.events()), ["7", "key"]);
}

#[test]
fn timestamps_are_asked_for_again_and_none_is_of_a_display_before() {
    let able = desk_with(&[TIMESTAMPS]);
    let mut rig = Rig::with_desk(&able);
    let (pointer, stamps) = stamped(&mut rig, "pointer", "wl_pointer");
    rig.stamp(stamps, 5);
    rig.detach();
    let asked = |told: &[String]| told.iter().any(|told| told.contains("get_pointer_timestamps"));
    assert!(!asked(&rig.attach_to(&desk())));
    rig.events();
    rig.input(pointer, "button", &[7, 0, 272, 1]);
    assert_eq!(reported(&rig.events()), ["button"]);
    rig.detach();
    assert!(asked(&rig.attach_to(&able)));
    rig.events();
    rig.stamp(stamps, 6);
    rig.input(pointer, "button", &[7, 0, 272, 1]);
    assert_eq!(reported(&rig.events()), ["6", "button"]);
    assert_eq!(rig.connection.end(), None);
}
