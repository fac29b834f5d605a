//! For any input of the app side, the connection ends with a clear error or lives; it never panics.

use proptest::prelude::*;
use wayferry_pixels::{Compression, Content, Encoder, Format};
use wayferry_proto::{ConnectionId, SurfaceId, Time, UnitHead, UpdateHeader, UpdateSeq};

use super::super::intake::MAX_WAITING;
use super::super::link::MAX_OUTPUT;
use super::super::{Config, Room};
use super::rig::{GLOBALS, Rig, size};
use crate::action::End;
use crate::message::{self, Request, ToApp, ToDisplay, UnitContent, WireArg, WireId};
use crate::value::{Image, Positioner, RegionOp};
use crate::wire::Arg;

fn violation(request: impl FnOnce(&mut Rig) -> ToDisplay) -> String {
    let mut rig = Rig::new();
    let message = request(&mut rig);
    rig.say(&message);
    rig.violation().to_owned()
}

fn raw(object: u64, opcode: u16, args: Vec<WireArg>) -> ToDisplay {
    ToDisplay::Request(Request { object: WireId(object), opcode, args })
}

#[test]
fn wrong_requests_are_named() {
    let unknown = violation(|_| raw(400, 0, vec![]));
    assert_eq!(unknown, "request 0 to object 400, which does not exist");

    let opcode = violation(|rig| raw(rig.surface().0, 99, vec![]));
    assert_eq!(opcode, "wl_surface has no request 99");

    let count = violation(|rig| raw(rig.toplevel()[3].0, 2, vec![]));
    assert_eq!(count, "xdg_toplevel.set_title: 0 arguments, expected 1");

    let kind = violation(|rig| raw(rig.toplevel()[3].0, 2, vec![WireArg::Uint(1)]));
    assert_eq!(kind, "xdg_toplevel.set_title: argument 0: expected Str(No)");

    let interface = violation(|rig| {
        let [_, surface, _, toplevel] = rig.toplevel();
        raw(toplevel.0, 1, vec![WireArg::Object(surface)])
    });
    assert_eq!(interface, "xdg_toplevel.set_parent: argument 0: a wl_surface, expected a xdg_toplevel");

    let reused = violation(|rig| {
        let compositor = rig.bind("wl_compositor");
        raw(compositor.0, 0, vec![WireArg::NewId(compositor)])
    });
    assert_eq!(reused, "a new object is named 4, which exists already");

    let bare = violation(|rig| raw(rig.surface().0, 6, vec![]));
    assert_eq!(bare, "wl_surface.commit: is not sent outside a unit");

    let global = violation(|rig| {
        let id = rig.name();
        ToDisplay::Bind { global: 1, interface: "no\u{7}thing".into(), version: 1, id }
    });
    assert_eq!(global, "`nothing` is no known global");

    let unit = violation(|rig| {
        let [_, _, xdg_surface, _] = rig.toplevel();
        ToDisplay::Unit(rig.unit(xdg_surface, UnitContent::Keep))
    });
    assert!(unit.ends_with("which is no wl_surface"), "{unit}");
}

#[test]
fn a_destroyed_object_cannot_be_named_again() {
    let mut rig = Rig::new();
    let [_, surface, _, toplevel] = rig.toplevel();
    rig.commit_update(surface);
    let title = rig.message(toplevel, "set_title", vec![WireArg::Str(Some(vec![]))]);
    // Held, but gone for the app side.
    rig.request(toplevel, "destroy", vec![]);
    rig.say(&ToDisplay::Request(title));
    assert!(rig.violation().ends_with("which does not exist"));
}

#[test]
fn units_come_in_order_and_updates_in_sequence() {
    let mut rig = Rig::new();
    let surface = rig.surface();
    rig.commit(surface);
    let mut unit = rig.unit(surface, UnitContent::Keep);
    unit.number = 1;
    rig.say(&ToDisplay::Unit(unit));
    assert!(rig.violation().contains("comes after 1"));

    let mut rig = Rig::new();
    let surface = rig.surface();
    let mut update = rig.fresh(surface, size(1, 1), [0; 4]);
    update.0.fresh = false;
    rig.deliver(update);
    let unit = rig.unit(surface, UnitContent::Update(UpdateSeq(1)));
    rig.say(&ToDisplay::Unit(unit));
    // It builds on content of another size; that may be an accident.
    assert!(rig.take_reported().contains(&ToApp::Refresh { surface }));
    assert_eq!(rig.end(), None);
}

#[test]
fn updates_of_impossible_surfaces_end_the_connection() {
    let header = |size, format| UpdateHeader {
        connection: ConnectionId(1),
        surface: SurfaceId(4),
        seq: UpdateSeq(1),
        size,
        format,
        fresh: true,
        covers: 0,
        unit: None,
    };
    for header in [header((0, 1), 0), header((20_000, 1), 0), header((1, 1), 99)] {
        let mut rig = Rig::new();
        rig.deliver((header, vec![]));
        rig.violation();
    }
}

#[test]
fn garbage_ends_the_connection() {
    let mut rig = Rig::new();
    rig.connection.on_message(Time::ZERO, &[77, 1, 2, 3]);
    rig.violation();
    // It stays ended, quietly.
    rig.connection.on_message(Time::ZERO, &ToDisplay::Hang(true).encode());
    rig.turn();
    rig.violation();
}

#[test]
fn a_peer_that_is_further_ahead_than_may_be_is_told_so() {
    let mut rig = Rig::new();
    let surface = rig.surface();
    let mut cost = 0;
    while cost <= MAX_WAITING {
        assert_eq!(rig.end(), None, "at {cost}");
        let unit = rig.unit(surface, UnitContent::Update(UpdateSeq(1)));
        let message = ToDisplay::Unit(unit).encode();
        cost += message::cost(&message);
        rig.connection.on_message(Time::ZERO, &message);
    }
    rig.violation();
}

#[test]
fn privileged_globals_are_bound_only_if_allowed() {
    let name = "zwlr_virtual_pointer_manager_v1";
    let globals = [("wl_compositor", 4), ("wl_shm", 1), (name, 2)];
    for (allow, bound) in [
        (Some(vec![]), false),
        (Some(vec![name.to_owned()]), true),
        (None, true),
        (Some(vec!["zwlr_layer_shell_v1".to_owned()]), false),
    ] {
        let mut rig = Rig::configured(&globals, Config { allow, ..Config::default() });
        rig.turn();
        let manager = rig.bind(name);
        let pointer = rig.name();
        let args = vec![WireArg::Object(WireId::NULL), WireArg::NewId(pointer)];
        rig.request(manager, "create_virtual_pointer", args);
        assert_eq!(rig.connection.objects.live(pointer).is_some(), bound);
        rig.request(pointer, "button", vec![WireArg::Uint(0), WireArg::Uint(1), WireArg::Uint(1)]);
        rig.assert_alive();
        let sent = rig.got.iter().any(|got| got.is("zwlr_virtual_pointer_v1", "button"));
        assert_eq!(sent, bound);
    }
}

/// A program that pastes two hundred times before anybody takes a pipe.
#[test]
fn regression_two_hundred_pastes_in_one_turn_wait_for_their_turns() {
    let mut rig = Rig::new();
    let (manager, seat) = (rig.bind("wl_data_device_manager"), rig.bind("wl_seat"));
    let device = rig.make(manager, "get_data_device", vec![WireArg::Object(seat)]);
    let device_id = rig.id(device);
    rig.event(device_id, "data_offer", vec![Arg::NewId(0xff00_0000)]);
    rig.turn();
    let args = vec![WireArg::Str(Some(b"a".to_vec())), WireArg::Pipe(2)];
    let receive = ToDisplay::Request(rig.message(WireId::FIRST_DISPLAY, "receive", args)).encode();
    for _ in 0..200 {
        rig.connection.on_message(Time::ZERO, &receive);
    }
    for opened in [64, 128, 192, 200] {
        rig.turn();
        assert_eq!(rig.pipes_out.len(), opened);
    }
    assert_eq!(rig.got.iter().filter(|got| got.is("wl_data_offer", "receive")).count(), 200);
    rig.assert_alive();
}

/// It stands still for as long as it likes; what is said meanwhile waits, in its order.
#[test]
fn regression_a_compositor_that_does_not_read_ends_no_program() {
    let mut rig = Rig::new();
    let [.., toplevel] = rig.toplevel();
    rig.got.clear();
    let title = |n: u32| format!("{n:04000}").into_bytes();
    for n in 0..3000 {
        let request = rig.message(toplevel, "set_title", vec![WireArg::Str(Some(title(n)))]);
        rig.connection.on_message(Time::ZERO, &ToDisplay::Request(request).encode());
    }
    rig.assert_alive();
    assert!(rig.connection.output().len() < MAX_OUTPUT);
    assert_ne!(rig.connection.next_timeout(), Some(Time::ZERO), "there is nothing to do before it reads");
    for _ in 0..3 {
        rig.turn();
        rig.work(Room::default());
    }
    let titles = rig.got.iter().filter(|got| got.is("xdg_toplevel", "set_title"));
    let told = titles.map(|got| match &got.args[..] {
        [Arg::Str(Some(title))] => title.clone(),
        other => panic!("{other:?}"),
    });
    assert!(told.eq((0..3000).map(title)));
    rig.assert_alive();
}

/// A blob of some hundred bytes that becomes 4 MiB of pixels.
fn plain_icon(rig: &mut Rig, pixel: [u8; 4]) -> Image {
    let mut content = Content::new(size(1024, 1024), Format::Argb8888);
    content.fill(&pixel);
    let blob = crate::picture::pack(&mut Encoder::new(Compression::Lz4), content);
    let hash = crate::blob::hash(&blob);
    rig.connection.on_blob(rig.now, hash, &blob.into());
    Image { hash, width: 1024, height: 1024, format: 0 }
}

fn add_buffers(rig: &mut Rig, icon: WireId, images: impl IntoIterator<Item = Image>) {
    for image in images {
        let args = vec![WireArg::Image(image), WireArg::Int(1)];
        let request = rig.message(icon, "add_buffer", args);
        rig.connection.on_message(rig.now, &ToDisplay::Request(request).encode());
    }
}

fn buffers_made(rig: &Rig) -> usize {
    rig.got.iter().filter(|got| got.is("wl_shm_pool", "create_buffer")).count()
}

#[test]
fn regression_an_icon_takes_as_much_memory_as_it_is_asked_for() {
    let mut rig = Rig::new();
    let manager = rig.bind("xdg_toplevel_icon_manager_v1");
    let icon = rig.make(manager, "create_icon", vec![]);
    let images: Vec<Image> = (0..8).map(|shade| plain_icon(&mut rig, [shade, 0, 0, 255])).collect();
    // The same picture needs no memory again; different ones are left out in the end.
    add_buffers(&mut rig, icon, vec![images[0]; 500]);
    rig.turn();
    assert_eq!(buffers_made(&rig), 1);
    assert_eq!(rig.got.iter().filter(|got| got.is("xdg_toplevel_icon_v1", "add_buffer")).count(), 500);
    add_buffers(&mut rig, icon, images.clone());
    rig.turn();
    let taken = rig.connection.taken();
    assert_eq!((buffers_made(&rig), taken.icons), (2, 8 << 20));
    // They go with the icon, and make room for another.
    rig.request(icon, "destroy", vec![]);
    rig.turn();
    assert_eq!(rig.connection.taken().icons, 0);
    let icon = rig.make(manager, "create_icon", vec![]);
    add_buffers(&mut rig, icon, images);
    rig.turn();
    assert_eq!(buffers_made(&rig), 4);
    rig.assert_alive();
}

/// Memory waits with what the compositor has not read.
#[test]
fn regression_icons_that_are_gone_fill_the_memory_while_the_compositor_does_not_read() {
    let mut rig = Rig::new();
    let manager = rig.bind("xdg_toplevel_icon_manager_v1");
    let image = plain_icon(&mut rig, [1, 2, 3, 255]);
    let icons: Vec<WireId> = (0..8).map(|_| rig.make(manager, "create_icon", vec![])).collect();
    for icon in icons {
        add_buffers(&mut rig, icon, [image]);
        let end = ToDisplay::Request(rig.message(icon, "destroy", vec![]));
        rig.connection.on_message(rig.now, &end.encode());
        let mut room = Room::ENDLESS;
        rig.connection.work(rig.now, &mut room);
        assert!(rig.connection.taken().icons <= 8 << 20);
    }
    rig.turn();
    assert_eq!(buffers_made(&rig), 2);
    rig.assert_alive();
}

#[test]
fn regression_icons_are_unpacked_while_keys_wait() {
    let mut rig = Rig::new();
    let manager = rig.bind("xdg_toplevel_icon_manager_v1");
    let images: Vec<Image> = (0..2).map(|shade| plain_icon(&mut rig, [shade, 0, 0, 255])).collect();
    let icon = rig.make(manager, "create_icon", vec![]);
    add_buffers(&mut rig, icon, images);
    rig.exchange();
    assert_eq!(buffers_made(&rig), 0, "it waits for the turn's end");
    for made in 1..=2 {
        assert_eq!(rig.connection.next_timeout(), Some(Time::ZERO));
        rig.work(Room::default());
        assert_eq!(buffers_made(&rig), made, "one in a turn");
    }
    assert_ne!(rig.connection.next_timeout(), Some(Time::ZERO));
    rig.assert_alive();
}

#[test]
fn a_broken_compositor_ends_the_connection() {
    let mut rig = Rig::new();
    let surface = rig.surface();
    let id = rig.id(surface);
    // A new object in the range that we give away ids from.
    let manager = rig.bind("wl_data_device_manager");
    let seat = rig.bind("wl_seat");
    let device = rig.make(manager, "get_data_device", vec![WireArg::Object(seat)]);
    let device_id = rig.id(device);
    rig.late_event(device_id, "wl_data_device", "data_offer", vec![Arg::NewId(id)]);
    rig.turn();
    assert!(matches!(rig.end(), Some(End::CompositorError(_))), "{:?}", rig.end());
}

/// Any argument, mostly of small values so that some of them mean something.
fn arg() -> impl Strategy<Value = WireArg> {
    prop_oneof![
        4 => (0u64..40).prop_map(|id| WireArg::Object(WireId(id))),
        3 => (0u64..60).prop_map(|id| WireArg::NewId(WireId(id * 2))),
        2 => any::<i32>().prop_map(WireArg::Int),
        2 => any::<u32>().prop_map(WireArg::Uint),
        1 => any::<i32>().prop_map(WireArg::Fixed),
        1 => prop::option::of(prop::collection::vec(any::<u8>(), 0..6)).prop_map(WireArg::Str),
        1 => prop::collection::vec(any::<u8>(), 0..6).prop_map(WireArg::Array),
        1 => (0u64..4).prop_map(WireArg::Pipe),
        1 => any::<u128>().prop_map(|hash| WireArg::Blob { hash, length: 3 }),
        1 => Just(WireArg::Region(vec![RegionOp::Add(0, 0, 1, 1)])),
        1 => Just(WireArg::Positioner(Positioner::default())),
        1 => (0u32..3).prop_map(|width| WireArg::Image(Image { hash: 0, width, height: 1, format: 0 })),
    ]
}

/// A request that fits its signature wherever names allow, so that the deeper layers are reached.
#[derive(Debug, Clone)]
enum Attack {
    Any(u64, u16, Vec<WireArg>),
    Fitting(u64, u16, Vec<WireArg>),
    Unit(u64, u8, Vec<(u64, u16, Vec<WireArg>)>),
    Bind(usize),
    Update(u64, u64, bool, u8, Option<(u64, u64)>),
}

fn attack() -> impl Strategy<Value = Attack> {
    let call = || (0u64..40, 0u16..14, prop::collection::vec(arg(), 0..6));
    prop_oneof![
        1 => call().prop_map(|(object, opcode, args)| Attack::Any(object, opcode, args)),
        8 => call().prop_map(|(object, opcode, args)| Attack::Fitting(object, opcode, args)),
        4 => (0u64..20, 0u8..3, prop::collection::vec(call(), 0..3))
            .prop_map(|(surface, content, state)| Attack::Unit(surface, content, state)),
        3 => (0..GLOBALS.len()).prop_map(Attack::Bind),
        2 => (0u64..20, 1u64..6, any::<bool>(), 0u8..4, prop::option::of((0u64..6, 0u64..9)))
            .prop_map(|(surface, seq, fresh, covers, unit)| Attack::Update(surface, seq, fresh, covers, unit)),
    ]
}

/// Chooses an object that has such a request, and arguments of the right kinds.
fn fit(rig: &mut Rig, object: u64, opcode: u16, args: &[WireArg]) -> Request {
    let names: Vec<WireId> =
        (1..200).map(WireId).filter(|id| rig.connection.objects.usable(*id).is_some()).collect();
    let object = names[object as usize % names.len()];
    let interface = rig.connection.objects.usable(object).unwrap().interface;
    let opcode = opcode % interface.requests.len().max(1) as u16;
    let Some(desc) = interface.requests.get(usize::from(opcode)) else {
        return Request { object, opcode, args: vec![] };
    };
    use wayland_backend::protocol::ArgumentType as Kind;
    let mut wanted = desc.arg_interfaces.iter();
    let number =
        |index: usize| args.get(index).map_or(1, |arg| if let WireArg::Uint(v) = arg { *v % 9 } else { 3 });
    let fitted = desc.signature.iter().enumerate().map(|(index, kind)| match kind {
        Kind::Int => WireArg::Int(number(index) as i32),
        Kind::Uint => WireArg::Uint(number(index)),
        Kind::Fixed => WireArg::Fixed(number(index) as i32),
        Kind::Str(_) => WireArg::Str(Some(b"x".to_vec())),
        Kind::Array => WireArg::Array(vec![]),
        Kind::NewId => WireArg::NewId(rig.name()),
        Kind::Fd => WireArg::Pipe(2),
        Kind::Object(_) => {
            let wanted = wanted.next().map_or("", |interface| interface.name);
            let of_kind = |id: &WireId| {
                rig.connection.objects.usable(*id).is_some_and(|object| object.interface.name == wanted)
            };
            let fitting: Vec<WireId> = names.iter().copied().filter(of_kind).collect();
            match wanted {
                "wl_region" => WireArg::Region(vec![RegionOp::Add(0, 0, 1, 1)]),
                "xdg_positioner" => WireArg::Positioner(Positioner::default()),
                _ if fitting.is_empty() => WireArg::Object(WireId::NULL),
                _ => WireArg::Object(fitting[number(index) as usize % fitting.len()]),
            }
        }
    });
    let fitted = fitted.collect();
    Request { object, opcode, args: fitted }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn no_sequence_of_messages_breaks_the_connection_or_the_compositor(
        attacks in prop::collection::vec(attack(), 0..60),
    ) {
        // The rig asserts that every request reaches an object that exists, at its version.
        let mut rig = Rig::new();
        for attack in attacks {
            if rig.end().is_some() {
                break;
            }
            match attack {
                Attack::Any(object, opcode, args) => rig.say(&raw(object, opcode, args)),
                Attack::Fitting(object, opcode, args) => {
                    let request = fit(&mut rig, object, opcode, &args);
                    rig.say(&ToDisplay::Request(request));
                }
                Attack::Unit(object, content, state) => {
                    let surfaces: Vec<WireId> = rig.connection.surfaces.keys().copied().collect();
                    let Some(surface) = surfaces.iter().max().copied() else { continue };
                    let content = match content {
                        0 => UnitContent::Keep,
                        1 => UnitContent::None,
                        _ => UnitContent::Update(UpdateSeq(1 + object % 2)),
                    };
                    let mut unit = rig.unit(surface, content);
                    for (object, opcode, args) in state {
                        unit.state.push(fit(&mut rig, object, opcode, &args));
                    }
                    rig.say(&ToDisplay::Unit(unit));
                }
                Attack::Bind(global) => {
                    rig.bind(GLOBALS[global].0);
                }
                Attack::Update(surface, seq, fresh, covers, unit) => {
                    let unit = unit.map(|(number, after)| UnitHead {
                        number,
                        after,
                        feedback: number % 2 == 0,
                        answered: (number % 3 == 0).then_some(after),
                    });
                    let header = UpdateHeader {
                        connection: ConnectionId(1),
                        surface: SurfaceId(surface * 2),
                        seq: UpdateSeq(seq),
                        size: (2, 2),
                        format: 0,
                        fresh,
                        covers,
                        unit,
                    };
                    rig.deliver((header, vec![]));
                }
            }
        }
        rig.connection.on_timeout(Time::from_millis(5000));
        rig.turn();
    }
}
