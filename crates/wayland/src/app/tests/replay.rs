//! Displays that go, and others that come.

use std::collections::BTreeSet;

use super::*;

/// A display with these globals beside the usual ones, whose registry names begin at `first`.
pub(super) fn desk_with(first: u32, more: &[&str]) -> Rc<Desk> {
    let mut desk = Desk::clone(&desk());
    for name in more {
        let version = tables::version_cap(name);
        desk.snapshot.globals.push(Global { name: 0, interface: (*name).to_owned(), version });
    }
    for (global, name) in desk.snapshot.globals.iter_mut().zip(first..) {
        global.name = name;
    }
    desk.snapshot.outputs[0].global = first + 100;
    desk.snapshot.seats[0].global = first + 200;
    Rc::new(desk)
}

/// A display that differs from [`desk`] in everything that may differ.
fn other_desk() -> Rc<Desk> {
    let mut desk = Desk::clone(&desk_with(500, &[]));
    let outputs = &mut desk.snapshot.outputs;
    (outputs[0].scale, outputs[0].name) = (2, "OTHER-1".to_owned());
    let second = Output { global: 999, scale: 3, name: "OTHER-2".to_owned(), ..Output::default() };
    outputs.push(second);
    desk.snapshot.seats[0].repeat = Some((30, 400));
    desk.snapshot.seats[0].keymap = Some(Keymap { format: 1, hash: blob::hash(b"other keys\0"), length: 11 });
    Rc::new(desk)
}

impl Rig {
    pub(super) fn detach(&mut self) -> Vec<Event> {
        self.connection.detach(self.now);
        self.collect();
        self.sent.clear();
        self.updates.clear();
        self.pipes.clear();
        self.events()
    }

    /// Attaches, and gives what the display is told.
    pub(super) fn attach_to(&mut self, desk: &Rc<Desk>) -> Vec<String> {
        self.connection.attach(self.now, desk, Compression::default());
        self.collect();
        self.story()
    }

    /// The messages that have left since, in words.
    fn story(&mut self) -> Vec<String> {
        let sent = std::mem::take(&mut self.sent);
        let words = sent.iter().map(|message| self.words(message)).collect();
        self.sent = sent;
        words
    }

    pub(super) fn words(&self, message: &ToDisplay) -> String {
        match message {
            ToDisplay::Bind { global, interface, .. } => format!("bind {interface} {global}"),
            ToDisplay::Request(request) => self.request_words(request),
            ToDisplay::Unit(unit) => {
                let state: Vec<_> = unit.state.iter().map(|request| self.request_words(request)).collect();
                let content = match unit.content {
                    UnitContent::Keep => "no content",
                    UnitContent::None => "empty",
                    UnitContent::Update(_) => "content",
                };
                format!("unit {}: {content} [{}] {}", unit.surface.0, state.join(", "), unit.children.len())
            }
            other => format!("{other:?}"),
        }
    }

    fn request_words(&self, request: &Request) -> String {
        let by_name = |id| self.connection.objects.of(id).map(|object| object.interface);
        let tombstone = || self.connection.keeping.tombstone(request.object).map(|it| it.interface);
        let interface = self.connection.objects.by_name(request.object).and_then(by_name).or_else(tombstone);
        let Some(interface) = interface else { return format!("{}.{}", request.object.0, request.opcode) };
        let name = interface.requests[usize::from(request.opcode)].name;
        let texts = request.args.iter().filter_map(|arg| match arg {
            WireArg::Str(Some(text)) => Some(String::from_utf8_lossy(text).into_owned()),
            WireArg::Int(number) => Some(number.to_string()),
            _ => None,
        });
        let texts: Vec<_> = texts.collect();
        format!("{}.{name}({})", interface.name, texts.join(" "))
    }

    pub(super) fn event(&mut self, object: u32, name: &str, args: Vec<WireArg>) {
        let opcode =
            tables::event_opcode(tables::interface(self.interfaces[&object]).unwrap(), name).unwrap();
        let object = self.connection.objects.wire(object).expect("the display has it");
        self.tell(&ToApp::Event(Request { object, opcode, args }));
    }

    pub(super) fn configure(
        &mut self,
        xdg: u32,
        toplevel: u32,
        size: (i32, i32),
        states: &[u32],
        serial: u32,
    ) {
        let states = states.iter().flat_map(|state| state.to_ne_bytes()).collect();
        let args = vec![WireArg::Int(size.0), WireArg::Int(size.1), WireArg::Array(states)];
        self.event(toplevel, "configure", args);
        self.event(xdg, "configure", vec![WireArg::Uint(serial)]);
    }

    /// A window with content that the display has configured: surface, `xdg_surface`, `xdg_toplevel`, `wl_shm`.
    pub(super) fn mapped(&mut self) -> (u32, u32, u32, u32) {
        let (compositor, shm) = (self.bind("wl_compositor"), self.bind("wl_shm"));
        let surface = self.surface(compositor);
        let (xdg, toplevel) = self.toplevel(surface);
        self.commit(surface);
        if self.connection.is_attached() {
            self.configure(xdg, toplevel, (0, 0), &[], 50);
        }
        self.request(xdg, "ack_configure", vec![Arg::Uint(50)]);
        self.paint(surface, shm, 1);
        self.events();
        self.sent.clear();
        self.updates.clear();
        (surface, xdg, toplevel, shm)
    }

    pub(super) fn paint(&mut self, surface: u32, shm: u32, value: u8) {
        let buffer = self.buffer(shm, 4, 4, value);
        self.attach(surface, buffer);
        self.commit(surface);
    }

    /// The pixels of an update, all alike.
    pub(super) fn shown(&self, update: &Update) -> u8 {
        let mut shown = wayferry_pixels::Content::new(update.size, update.format);
        wayferry_pixels::Decoder::new().apply(&mut shown, &update.chunks).unwrap();
        let pixels: BTreeSet<u8> = shown.pixels().iter().copied().collect();
        assert_eq!(pixels.len(), 1);
        pixels.into_iter().next().unwrap()
    }

    pub(super) fn make(
        &mut self,
        factory: u32,
        request: &str,
        interface: &'static str,
        args: Vec<Arg>,
    ) -> u32 {
        let id = self.id(interface);
        self.request(factory, request, std::iter::once(Arg::NewId(id)).chain(args).collect());
        id
    }
}

fn text(text: &str) -> Vec<Arg> {
    vec![Arg::Str(Some(text.as_bytes().to_vec()))]
}

#[test]
fn without_a_display_a_program_goes_on_and_nothing_leaves() {
    let mut rig = Rig::new();
    let (surface, _, toplevel, shm) = rig.mapped();
    rig.detach();
    assert!(!rig.connection.is_attached());
    rig.connection.detach(rig.now);
    let buffer = rig.buffer(shm, 4, 4, 7);
    rig.attach(surface, buffer);
    let frame = rig.frame(surface);
    rig.commit(surface);
    rig.request(toplevel, "set_title", text("away"));
    assert!(names(&rig.events()).contains(&(buffer, "release")), "at once");
    let callback = rig.id("wl_callback");
    rig.request(1, "sync", vec![Arg::NewId(callback)]);
    assert_eq!(names(&rig.events()), [(callback, "done"), (1, "delete_id")]);
    let due = rig.connection.next_timeout().expect("frames never stop");
    rig.now = due;
    rig.flush(u64::MAX);
    rig.connection.on_timeout(rig.now);
    assert!(names(&rig.events()).contains(&(frame, "done")));
    let frame = rig.frame(surface);
    rig.commit(surface);
    let slow = rig.connection.next_timeout().unwrap();
    assert_eq!(slow.since(rig.now), Duration::from_secs(1), "but they are slow");
    rig.now = slow;
    rig.connection.on_timeout(rig.now);
    assert!(names(&rig.events()).contains(&(frame, "done")));
    rig.collect();
    assert!(rig.sent.is_empty() && rig.updates.is_empty() && rig.pipes.is_empty());
}

#[test]
fn a_window_is_made_again_with_its_last_state_and_its_last_pixels() {
    let mut rig = Rig::new();
    let (surface, xdg, toplevel, shm) = rig.mapped();
    let geometry = [0, 0, 4, 4].map(Arg::Int).into();
    rig.request(xdg, "set_window_geometry", geometry);
    rig.request(toplevel, "set_min_size", [2, 2].map(Arg::Int).into());
    rig.commit(surface);
    rig.request(toplevel, "set_title", text("first"));
    rig.detach();
    rig.request(toplevel, "set_title", text("last"));
    rig.paint(surface, shm, 9);
    rig.events();
    let story = rig.attach_to(&other_desk());
    let wire = rig.connection.surfaces[&surface].wire.0;
    let initial = format!("unit {wire}: no content [xdg_toplevel.set_min_size(2 2)] 0");
    assert_eq!(
        story,
        [
            "bind wl_compositor 500",
            "wl_compositor.create_surface()",
            "bind xdg_wm_base 502",
            "xdg_wm_base.get_xdg_surface()",
            "xdg_surface.get_toplevel()",
            "xdg_toplevel.set_title(last)",
            initial.as_str(),
        ]
    );
    rig.sent.clear();
    rig.flush(u64::MAX);
    assert!(rig.sent.is_empty() && rig.updates.is_empty(), "nothing before the first configure");
    rig.configure(xdg, toplevel, (0, 0), &[], 3);
    let told = rig.events();
    let serial = told.iter().find(|event| event.name == "configure" && event.object == xdg).unwrap();
    let [Arg::Uint(serial)] = serial.args[..] else { panic!("{serial:?}") };
    rig.flush(u64::MAX);
    let state = "[xdg_surface.set_window_geometry(0 0 4 4), xdg_surface.ack_configure()]";
    assert_eq!(rig.story(), [format!("unit {wire}: content {state} 0")]);
    let ToDisplay::Unit(unit) = &rig.sent[0] else { panic!() };
    assert_eq!(unit.state[1].args, [WireArg::Uint(3)], "in the display's own numbers");
    assert!(rig.updates[0].fresh);
    assert_eq!(rig.shown(&rig.updates[0]), 9);
    // The program acknowledges what has been acknowledged for it, and then something newer.
    rig.sent.clear();
    rig.request(xdg, "ack_configure", vec![Arg::Uint(serial)]);
    rig.now += FRAME;
    rig.paint(surface, shm, 10);
    rig.flush(u64::MAX);
    assert_eq!(rig.story(), [format!("unit {wire}: content [] 0")]);
    rig.sent.clear();
    rig.configure(xdg, toplevel, (0, 0), &[], 4);
    rig.request(xdg, "ack_configure", vec![Arg::Uint(serial + 1)]);
    rig.now += FRAME;
    rig.paint(surface, shm, 11);
    rig.flush(u64::MAX);
    assert_eq!(rig.story(), [format!("unit {wire}: content [xdg_surface.ack_configure()] 0")]);
}

#[test]
fn a_commit_before_the_first_configure_waits_for_it() {
    let mut rig = Rig::new();
    let (surface, xdg, toplevel, shm) = rig.mapped();
    rig.detach();
    rig.attach_to(&desk());
    rig.sent.clear();
    let frame = rig.frame(surface);
    rig.paint(surface, shm, 9);
    rig.now += FRAME;
    rig.flush(u64::MAX);
    assert!(rig.sent.is_empty() && names(&rig.events()).contains(&(frame, "done")));
    rig.configure(xdg, toplevel, (0, 0), &[], 3);
    rig.flush(u64::MAX);
    assert_eq!((rig.sent.len(), rig.shown(&rig.updates[0])), (1, 9));
}

#[test]
fn a_size_that_the_display_requires_is_the_programs_to_draw() {
    const MAXIMIZED: u32 = 1;
    let mut rig = Rig::new();
    let (surface, xdg, toplevel, shm) = rig.mapped();
    rig.configure(xdg, toplevel, (4, 4), &[MAXIMIZED], 60);
    rig.detach();
    let story = rig.attach_to(&desk());
    assert!(story.contains(&"xdg_toplevel.set_maximized()".to_owned()), "{story:?}");
    rig.sent.clear();
    rig.configure(xdg, toplevel, (8, 8), &[MAXIMIZED], 3);
    let told = rig.events();
    rig.flush(u64::MAX);
    assert!(rig.sent.is_empty(), "the last pixels do not fit");
    let Arg::Uint(serial) = told.last().unwrap().args[0] else { panic!("{told:?}") };
    rig.paint(surface, shm, 8);
    rig.flush(u64::MAX);
    assert!(rig.sent.is_empty(), "not acknowledged");
    rig.request(xdg, "ack_configure", vec![Arg::Uint(serial)]);
    let buffer = rig.buffer(shm, 8, 8, 5);
    rig.attach(surface, buffer);
    rig.commit(surface);
    rig.flush(u64::MAX);
    assert_eq!((rig.updates.len(), rig.shown(&rig.updates[0])), (1, 5));
    assert!(rig.story()[0].contains("ack_configure"), "{:?}", rig.story());
    // One that fits is shown at once.
    rig.detach();
    rig.attach_to(&desk());
    rig.sent.clear();
    rig.configure(xdg, toplevel, (8, 8), &[MAXIMIZED], 3);
    rig.flush(u64::MAX);
    assert_eq!(rig.updates.len(), 1);
}

#[test]
fn a_window_without_content_begins_again_and_one_that_has_not_begun_does_not() {
    let mut rig = Rig::new();
    let compositor = rig.bind("wl_compositor");
    let (begun, not) = (rig.surface(compositor), rig.surface(compositor));
    let (_, toplevel) = rig.toplevel(begun);
    rig.request(toplevel, "set_max_size", [9, 9].map(Arg::Int).into());
    rig.toplevel(not);
    rig.commit(begun);
    rig.detach();
    let story = rig.attach_to(&desk());
    let units: Vec<_> = story.iter().filter(|words| words.starts_with("unit")).collect();
    assert_eq!(units.len(), 1, "{story:?}");
    assert!(units[0].contains("set_max_size(9 9)"));
}

#[test]
fn popups_close_from_the_top_and_are_not_made_again() {
    let mut rig = Rig::new();
    let (_, xdg, _, _) = rig.mapped();
    let (compositor, base) = (rig.bind("wl_compositor"), rig.bind("xdg_wm_base"));
    let positioner = rig.make(base, "create_positioner", "xdg_positioner", vec![]);
    let mut open = |parent: u32| {
        let surface = rig.surface(compositor);
        let of = rig.make(base, "get_xdg_surface", "xdg_surface", vec![Arg::Object(surface)]);
        let popup =
            rig.make(of, "get_popup", "xdg_popup", vec![Arg::Object(parent), Arg::Object(positioner)]);
        (surface, of, popup)
    };
    let (_, first_xdg, first) = open(xdg);
    let (surface, _, second) = open(first_xdg);
    let told = rig.detach();
    let done: Vec<_> = told.iter().filter(|event| event.name == "popup_done").map(|e| e.object).collect();
    assert_eq!(done, [second, first]);
    let story = rig.attach_to(&desk());
    assert!(!story.iter().any(|words| words.contains("popup")), "{story:?}");
    assert_eq!(story.iter().filter(|words| words.contains("get_xdg_surface")).count(), 1);
    rig.sent.clear();
    rig.commit(surface);
    rig.flush(u64::MAX);
    assert!(rig.sent.is_empty(), "no user sees it");
    // A new one must wait until its parent is shown.
    let of = rig.make(base, "get_xdg_surface", "xdg_surface", vec![Arg::Object(surface)]);
    let args = vec![Arg::Object(xdg), Arg::Object(positioner)];
    let early = rig.make(of, "get_popup", "xdg_popup", args);
    assert!(names(&rig.events()).contains(&(early, "popup_done")));
}

#[test]
fn what_a_destroyed_global_made_is_made_by_another_of_its_kind() {
    let mut rig = Rig::with_desk(&desk_with(10, &["wp_viewporter"]));
    let (compositor, viewporter) = (rig.bind("wl_compositor"), rig.bind("wp_viewporter"));
    let surface = rig.surface(compositor);
    let viewport = rig.make(viewporter, "get_viewport", "wp_viewport", vec![Arg::Object(surface)]);
    rig.request(viewporter, "destroy", vec![]);
    rig.detach();
    for _ in 0..2 {
        let story = rig.attach_to(&desk_with(10, &["wp_viewporter"]));
        let of: Vec<_> = story.iter().filter(|words| words.contains("viewport")).collect();
        assert_eq!(of, ["bind wp_viewporter 16", "wp_viewporter.get_viewport()", "wp_viewporter.destroy()"]);
        rig.detach();
    }
    rig.request(viewport, "destroy", vec![]);
    let story = rig.attach_to(&desk_with(10, &["wp_viewporter"]));
    assert!(!story.iter().any(|words| words.contains("viewport")), "{story:?}");
}

#[test]
fn what_a_display_lacks_is_a_stub_there_and_real_at_the_next() {
    let decoration = "zxdg_decoration_manager_v1";
    let (with, without) = (desk_with(10, &[decoration]), desk());
    let mut rig = Rig::with_desk(&without);
    let (_, _, toplevel, _) = rig.mapped();
    let manager = rig.bind(decoration);
    let args = vec![Arg::Object(toplevel)];
    let object = rig.make(manager, "get_toplevel_decoration", "zxdg_toplevel_decoration_v1", args);
    rig.request(object, "set_mode", vec![Arg::Uint(2)]);
    rig.detach();
    rig.events();
    let story = rig.attach_to(&with);
    let told = |story: &[String], what: &str| story.iter().any(|words| words.contains(what));
    assert!(told(&story, "get_toplevel_decoration") && told(&story, "set_mode"), "{story:?}");
    assert!(!names(&rig.events()).contains(&(object, "configure")), "the display says what it wants");
    rig.detach();
    let story = rig.attach_to(&without);
    assert!(!told(&story, "decoration"), "{story:?}");
    assert!(names(&rig.events()).contains(&(object, "configure")), "the program decorates");
}

#[test]
fn input_ends_with_its_display() {
    let mut rig = Rig::new();
    let (surface, _, _, _) = rig.mapped();
    let (seat, output) = (rig.bind("wl_seat"), rig.bind("wl_output"));
    let keyboard = rig.make(seat, "get_keyboard", "wl_keyboard", vec![]);
    let pointer = rig.make(seat, "get_pointer", "wl_pointer", vec![]);
    let wire = WireArg::Object(rig.connection.objects.wire(surface).unwrap());
    let output_wire = WireArg::Object(rig.connection.objects.wire(output).unwrap());
    rig.event(surface, "enter", vec![output_wire]);
    rig.event(keyboard, "enter", vec![WireArg::Uint(70), wire.clone(), WireArg::Array(vec![])]);
    rig.event(keyboard, "key", [71, 100, 30, 1].map(WireArg::Uint).to_vec());
    rig.event(pointer, "enter", vec![WireArg::Uint(72), wire, WireArg::Fixed(0), WireArg::Fixed(0)]);
    rig.event(pointer, "button", [73, 100, 272, 1].map(WireArg::Uint).to_vec());
    rig.events();
    let told = rig.detach();
    let of = |object| -> Vec<_> {
        told.iter().filter(|event| event.object == object).map(|event| event.name).collect()
    };
    assert_eq!(of(keyboard), ["key", "leave"]);
    assert_eq!(of(pointer), ["button", "leave", "frame"]);
    assert_eq!(of(surface), ["leave"]);
    let key = told.iter().find(|event| event.name == "key").unwrap();
    assert!(matches!(key.args[..], [_, _, Arg::Uint(30), Arg::Uint(0)]), "{key:?}");
    let leave = told.iter().find(|event| (event.object, event.name) == (pointer, "leave")).unwrap();
    assert!(matches!(leave.args[..], [_, Arg::Object(left)] if left == surface), "{leave:?}");
    rig.attach_to(&desk());
    assert!(rig.detach().iter().all(|event| event.name == "delete_id"), "nothing is ended twice");
}

#[test]
fn outputs_and_seats_go_over_to_the_new_display() {
    let mut rig = Rig::new();
    let registry = rig.make(1, "get_registry", "wl_registry", vec![]);
    let (seat, output) = (rig.bind("wl_seat"), rig.bind("wl_output"));
    let keyboard = rig.make(seat, "get_keyboard", "wl_keyboard", vec![]);
    rig.connection.on_blob(rig.now, blob::hash(b"keys\0"), &Rc::from(b"keys\0".as_slice()));
    rig.events();
    rig.detach();
    let story = rig.attach_to(&other_desk());
    assert_eq!(story[0], "bind wl_seat 700");
    assert_eq!(story[1], "bind wl_output 600");
    let told = rig.events();
    let of = |object| -> Vec<_> {
        told.iter().filter(|event| event.object == object).map(|event| event.name).collect()
    };
    assert_eq!(of(registry), ["global"], "one more output, and none is taken away");
    assert_eq!(of(output), ["geometry", "scale", "name", "description", "done"]);
    assert_eq!(of(keyboard), ["repeat_info"]);
    rig.connection.on_blob(rig.now, blob::hash(b"other keys\0"), &Rc::from(b"other keys\0".as_slice()));
    assert_eq!(names(&rig.events()), [(keyboard, "keymap")]);
    rig.detach();
    rig.attach_to(&desk());
    let told = rig.events();
    let gone = told.iter().filter(|event| (event.object, event.name) == (registry, "global_remove")).count();
    assert_eq!(gone, 1, "{told:?}");
}

#[test]
fn a_keyboard_keeps_a_keymap_that_is_the_same_elsewhere() {
    let mut rig = Rig::new();
    let seat = rig.bind("wl_seat");
    let keyboard = rig.make(seat, "get_keyboard", "wl_keyboard", vec![]);
    rig.connection.on_blob(rig.now, blob::hash(b"keys\0"), &Rc::from(b"keys\0".as_slice()));
    rig.events();
    rig.detach();
    rig.attach_to(&desk_with(300, &[]));
    assert!(rig.sent.iter().any(|message| matches!(message, ToDisplay::KeymapKnown { .. })));
    assert!(!names(&rig.events()).iter().any(|(object, _)| *object == keyboard));
}

#[test]
fn devices_that_a_seat_lacks_are_not_asked_for() {
    let mut rig = Rig::new();
    let seat = rig.bind("wl_seat");
    rig.make(seat, "get_keyboard", "wl_keyboard", vec![]);
    rig.make(seat, "get_pointer", "wl_pointer", vec![]);
    let mut desk = Desk::clone(&desk());
    desk.snapshot.seats[0].capabilities = 1;
    rig.detach();
    let story = rig.attach_to(&Rc::new(desk));
    assert_eq!(story[1..], ["wl_seat.get_pointer()"], "{story:?}");
    assert!(names(&rig.events()).contains(&(seat, "capabilities")));
}

#[test]
fn a_program_that_comes_before_any_display_finds_an_output_and_a_seat() {
    let mut rig = Rig::with_desk(&Rc::new(Desk::default()));
    rig.detach();
    let output = rig.bind("wl_output");
    let seat = rig.bind("wl_seat");
    let told = names(&rig.events());
    assert!(told.contains(&(output, "mode")) && told.contains(&(seat, "capabilities")));
    let (surface, ..) = rig.mapped();
    rig.detach();
    let story = rig.attach_to(&desk());
    assert!(story.contains(&"bind wl_output 15".to_owned()) && story.contains(&"bind wl_seat 14".to_owned()));
    assert!(story.last().unwrap().starts_with("unit"), "{story:?}");
    let told = names(&rig.events());
    assert!(told.contains(&(output, "scale")) && told.contains(&(seat, "capabilities")));
    assert_eq!(rig.connection.surfaces[&surface].standing.stage(), standing::Stage::Awaited);
}

#[test]
fn the_clipboard_is_offered_again_with_the_first_serial() {
    let mut rig = Rig::new();
    let (surface, ..) = rig.mapped();
    let (source, device) = clipboard(&mut rig);
    let seat = rig.bind("wl_seat");
    let keyboard = rig.make(seat, "get_keyboard", "wl_keyboard", vec![]);
    for kind in ["text/plain", "text/html"] {
        rig.request(source, "offer", text(kind));
    }
    rig.request(device, "set_selection", vec![Arg::Object(source), Arg::Uint(50)]);
    let told = names(&rig.detach());
    assert!(told.contains(&(device, "selection")) && !told.contains(&(source, "cancelled")), "{told:?}");
    let story = rig.attach_to(&desk());
    let offers: Vec<_> = story.iter().filter(|words| words.starts_with("wl_data_source")).collect();
    assert_eq!(offers, ["wl_data_source.offer(text/plain)", "wl_data_source.offer(text/html)"]);
    assert!(!story.iter().any(|words| words.contains("set_selection")));
    rig.sent.clear();
    let wire = WireArg::Object(rig.connection.objects.wire(surface).unwrap());
    rig.event(keyboard, "enter", vec![WireArg::Uint(4), wire, WireArg::Array(vec![])]);
    assert!(rig.sent.is_empty(), "a window that appears takes no program's clipboard");
    rig.event(keyboard, "key", [5, 100, 29, 1].map(WireArg::Uint).to_vec());
    let [ToDisplay::Request(request)] = &rig.sent[..] else { panic!("{:?}", rig.story()) };
    assert_eq!(request.args[1], WireArg::Uint(5));
    rig.event(keyboard, "key", [6, 100, 30, 1].map(WireArg::Uint).to_vec());
    assert_eq!(rig.sent.len(), 1, "once");
    rig.event(source, "cancelled", vec![]);
    rig.detach();
    rig.attach_to(&desk());
    rig.sent.clear();
    rig.event(keyboard, "key", [7, 100, 31, 1].map(WireArg::Uint).to_vec());
    assert!(rig.sent.is_empty(), "somebody else has taken it since");
}

#[test]
fn a_drag_is_over_with_its_display() {
    let mut rig = Rig::new();
    let (surface, ..) = rig.mapped();
    let (source, device) = clipboard(&mut rig);
    let args = vec![Arg::Object(source), Arg::Object(surface), Arg::Object(0), Arg::Uint(50)];
    rig.request(device, "start_drag", args);
    assert!(names(&rig.detach()).contains(&(source, "cancelled")));
}

#[test]
fn dialogs_are_told_of_their_parent_again_once_it_is_shown() {
    let mut rig = Rig::new();
    let (_, parent_xdg, parent, _) = rig.mapped();
    let (_, _, child, _) = rig.mapped();
    rig.request(child, "set_parent", vec![Arg::Object(parent)]);
    rig.detach();
    rig.attach_to(&desk());
    rig.sent.clear();
    rig.configure(parent_xdg, parent, (0, 0), &[], 3);
    let story = rig.story();
    assert!(story[0].contains("content") && story[1] == "xdg_toplevel.set_parent()", "{story:?}");
}

#[test]
fn children_come_with_their_parent_in_their_order() {
    let mut rig = Rig::new();
    let (surface, xdg, toplevel, shm) = rig.mapped();
    let (compositor, factory) = (rig.bind("wl_compositor"), rig.bind("wl_subcompositor"));
    let mut children = Vec::new();
    for value in 2..5 {
        let child = rig.surface(compositor);
        let args = vec![Arg::Object(child), Arg::Object(surface)];
        let role = rig.make(factory, "get_subsurface", "wl_subsurface", args);
        rig.request(role, "set_position", [value, value].map(Arg::Int).into());
        rig.paint(child, shm, value as u8);
        children.push((child, role));
    }
    let [(first, _), (_, second), (_, third)] = children[..] else { panic!() };
    rig.request(third, "place_below", vec![Arg::Object(surface)]);
    rig.request(second, "place_below", vec![Arg::Object(first)]);
    rig.commit(surface);
    rig.request(children[0].1, "set_desync", vec![]);
    rig.detach();
    rig.attach_to(&desk());
    let story = rig.story();
    let initial = story.iter().find(|words| words.starts_with("unit")).unwrap();
    for words in ["set_position(2 2)", "set_position(4 4)"] {
        assert!(initial.contains(words), "{initial}");
    }
    assert!(story.contains(&"wl_subsurface.set_desync()".to_owned()));
    rig.sent.clear();
    rig.configure(xdg, toplevel, (0, 0), &[], 3);
    rig.flush(u64::MAX);
    let shown: BTreeSet<u8> = rig.updates.iter().map(|update| rig.shown(update)).collect();
    assert_eq!(shown, BTreeSet::from([1, 2, 3, 4]));
    let units = rig.unapplied_units();
    let parent = units.iter().find(|unit| unit.surface == rig.connection.surfaces[&surface].wire).unwrap();
    assert_eq!(parent.children.len(), 2, "the third is by itself");
    let id = |name| rig.connection.objects.by_name(name).unwrap();
    let place = |request: &Request| match request.args[..] {
        [WireArg::Object(sibling)] => Some((id(request.object), id(sibling))),
        _ => None,
    };
    let placed: Vec<_> = parent.state.iter().filter_map(place).collect();
    assert_eq!(placed, [(third, surface), (second, surface)], "one below, one above");
    assert_eq!(units.len(), 2);
}

#[test]
fn a_lock_is_asked_for_again_unless_it_was_for_once() {
    let constraints = "zwp_pointer_constraints_v1";
    let desk = desk_with(10, &[constraints]);
    for (lifetime, again) in [(1, false), (2, true)] {
        let mut rig = Rig::with_desk(&desk);
        let (surface, ..) = rig.mapped();
        let (seat, manager) = (rig.bind("wl_seat"), rig.bind(constraints));
        let pointer = rig.make(seat, "get_pointer", "wl_pointer", vec![]);
        let args = vec![Arg::Object(surface), Arg::Object(pointer), Arg::Object(0), Arg::Uint(lifetime)];
        let lock = rig.make(manager, "lock_pointer", "zwp_locked_pointer_v1", args);
        rig.event(lock, "locked", vec![]);
        assert!(names(&rig.detach()).contains(&(lock, "unlocked")));
        let story = rig.attach_to(&desk);
        assert_eq!(story.iter().any(|words| words.contains("lock_pointer")), again, "{story:?}");
    }
}

#[test]
fn an_input_method_counts_from_the_programs_first_commit() {
    let manager = "zwp_text_input_manager_v3";
    let desk = desk_with(10, &[manager]);
    let mut rig = Rig::with_desk(&desk);
    let (manager, seat) = (rig.bind(manager), rig.bind("wl_seat"));
    let input = rig.make(manager, "get_text_input", "zwp_text_input_v3", vec![Arg::Object(seat)]);
    (0..3).for_each(|_| rig.request(input, "commit", vec![]));
    rig.detach();
    let story = rig.attach_to(&desk);
    assert!(!story.iter().any(|words| words.contains("zwp_text_input_v3.commit")));
    rig.request(input, "commit", vec![]);
    rig.events();
    rig.event(input, "done", vec![WireArg::Uint(1)]);
    assert!(matches!(rig.events()[0].args[..], [Arg::Uint(4)]), "the fourth of the program");
}

#[test]
fn a_program_that_waits_for_a_token_gets_one() {
    let activation = "xdg_activation_v1";
    let desk = desk_with(10, &[activation]);
    let mut rig = Rig::with_desk(&desk);
    let activation = rig.bind(activation);
    let asked = rig.make(activation, "get_activation_token", "xdg_activation_token_v1", vec![]);
    let other = rig.make(activation, "get_activation_token", "xdg_activation_token_v1", vec![]);
    rig.request(asked, "commit", vec![]);
    let told = names(&rig.detach());
    assert!(told.contains(&(asked, "done")) && !told.contains(&(other, "done")));
    rig.request(other, "commit", vec![]);
    assert!(names(&rig.events()).contains(&(other, "done")));
    assert!(!rig.attach_to(&desk).iter().any(|words| words.contains("token")));
}

#[test]
fn an_icon_that_was_destroyed_after_use_is_set_again() {
    let manager = "xdg_toplevel_icon_manager_v1";
    let desk = desk_with(10, &[manager]);
    let mut rig = Rig::with_desk(&desk);
    let (_, _, toplevel, shm) = rig.mapped();
    let manager = rig.bind(manager);
    let icon = rig.make(manager, "create_icon", "xdg_toplevel_icon_v1", vec![]);
    let buffer = rig.buffer(shm, 8, 8, 3);
    rig.request(icon, "add_buffer", vec![Arg::Object(buffer), Arg::Int(1)]);
    rig.request(manager, "set_icon", vec![Arg::Object(toplevel), Arg::Object(icon)]);
    rig.request(icon, "destroy", vec![]);
    rig.detach();
    let story = rig.attach_to(&desk);
    let of: Vec<_> = story.iter().filter(|words| words.contains("icon_")).map(String::as_str).collect();
    assert_eq!(
        of,
        [
            "bind xdg_toplevel_icon_manager_v1 16",
            "xdg_toplevel_icon_manager_v1.create_icon()",
            "xdg_toplevel_icon_v1.add_buffer(1)",
            "xdg_toplevel_icon_manager_v1.set_icon()",
            "xdg_toplevel_icon_v1.destroy()",
        ]
    );
    assert!(matches!(&rig.pipes[..], [Action::Blob { bytes, .. }] if bytes.len() < 256));
}

#[test]
fn a_hundred_displays_hear_the_same_and_nothing_grows() {
    let mut rig = Rig::new();
    let (surface, _, toplevel, shm) = rig.mapped();
    rig.request(toplevel, "set_title", text("steady"));
    let factory = rig.bind("wl_subcompositor");
    let compositor = rig.bind("wl_compositor");
    let child = rig.surface(compositor);
    let args = vec![Arg::Object(child), Arg::Object(surface)];
    let role = rig.make(factory, "get_subsurface", "wl_subsurface", args);
    rig.paint(child, shm, 2);
    rig.request(role, "place_below", vec![Arg::Object(surface)]);
    rig.commit(surface);
    let mut first = None;
    for _ in 0..100 {
        rig.detach();
        rig.connection.attach(rig.now, &desk(), Compression::default());
        rig.collect();
        let heard: Vec<Vec<u8>> = rig.sent.iter().map(ToDisplay::encode).collect();
        let now = (heard, rig.connection.kept(), rig.connection.objects.iter().count());
        assert_eq!(first.get_or_insert_with(|| now.clone()), &now);
    }
}

#[test]
fn any_number_of_commits_without_a_display_is_like_the_last() {
    let mut rig = Rig::new();
    let (surface, xdg, toplevel, shm) = rig.mapped();
    rig.detach();
    let buffer = rig.buffer(shm, 4, 4, 9);
    let mut kept = None;
    for count in 0..3000 {
        rig.frame(surface);
        rig.attach(surface, buffer);
        rig.request(xdg, "set_window_geometry", [0, 0, 4, 4].map(Arg::Int).into());
        rig.request(toplevel, "set_title", text("again"));
        rig.commit(surface);
        rig.events();
        assert!(rig.connection.end().is_none());
        if count > 0 {
            assert_eq!(kept.get_or_insert(rig.connection.kept()), &rig.connection.kept());
        }
    }
    assert!(rig.connection.surfaces[&surface].frames.len() <= frames::MAX_FRAMES);
}

#[test]
fn a_program_that_says_too_much_is_told_so() {
    let mut rig = Rig::new();
    let (source, _) = clipboard(&mut rig);
    rig.detach();
    let mut offers = 0;
    while rig.connection.end().is_none() {
        rig.request(source, "offer", text(&"x".repeat(4000)));
        offers += 1;
        assert!(offers < 20_000, "no limit");
    }
    assert!(matches!(rig.connection.end(), Some(End::TooMuch(what)) if what.contains("another display")));
    assert!(offers > 8000 && rig.connection.kept_bytes() < 40 << 20);
}

/// What the documentation says.
#[test]
fn an_idle_window_keeps_little() {
    let mut rig = Rig::new();
    let before = rig.connection.kept();
    let (surface, xdg, toplevel, _) = rig.mapped();
    rig.request(toplevel, "set_title", text("a title of some length"));
    rig.request(toplevel, "set_app_id", text("org.example.Application"));
    rig.request(xdg, "set_window_geometry", [0, 0, 4, 4].map(Arg::Int).into());
    rig.commit(surface);
    let after = rig.connection.kept();
    assert_eq!(after.pixels - before.pixels, 64);
    assert!(after.state - before.state < 2000, "{after:?}");
}

proptest! {
    #[test]
    fn hostile_programs_never_panic_when_displays_come_and_go(
        words in proptest::collection::vec(
            (0u32..16, 0u16..14, proptest::collection::vec(0u32..40, 0..8), 0u8..12), 1..60)
    ) {
        let mut rig = Rig::new();
        let registry = rig.id("wl_registry");
        rig.request(1, "get_registry", vec![Arg::NewId(registry)]);
        rig.mapped();
        for (object, opcode, body, display) in words {
            let mut bytes = object.to_ne_bytes().to_vec();
            bytes.extend(((8 + 4 * body.len() as u32) << 16 | u32::from(opcode)).to_ne_bytes());
            body.iter().for_each(|word| bytes.extend(word.to_ne_bytes()));
            if rig.connection.input().push(&bytes, []).is_err() {
                break;
            }
            rig.connection.process(rig.now);
            match display {
                0 => rig.connection.detach(rig.now),
                1 => rig.connection.attach(rig.now, &other_desk(), Compression::default()),
                _ => {}
            }
        }
        rig.flush(u64::MAX);
    }
}
