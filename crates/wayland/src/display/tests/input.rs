//! Events: seats, keymaps, data offers, pipes, late events.

use std::io::{Read, Write};
use std::os::fd::OwnedFd;

use wayferry_pixels::{Compression, Content, Encoder, Format, Size};
use wayferry_proto::Time;

use super::super::buffers::Memory;
use super::rig::{GLOBALS, Rig, size};
use crate::message::{ToApp, ToDisplay, WireArg, WireId};
use crate::value::Image;
use crate::wire::Arg;

/// First id of the compositor's own range.
const SERVER: u32 = 0xff00_0000;

fn keymap_fd(text: &[u8]) -> Arg {
    let memory = Memory::new(text.len()).unwrap();
    memory.write(0, text).unwrap();
    Arg::Fd(memory.share().unwrap())
}

fn events(rig: &mut Rig) -> Vec<crate::message::Request> {
    let told = rig.take_reported();
    told.into_iter()
        .filter_map(|told| if let ToApp::Event(event) = told { Some(event) } else { None })
        .collect()
}

fn keyboard(rig: &mut Rig) -> (WireId, u32) {
    let seat = rig.bind("wl_seat");
    let keyboard = rig.make(seat, "get_keyboard", vec![]);
    rig.take_reported();
    (keyboard, rig.id(keyboard))
}

#[test]
fn a_keymap_travels_as_a_blob() {
    let mut rig = Rig::new();
    let (keyboard, id) = keyboard(&mut rig);
    rig.event(id, "keymap", vec![Arg::Uint(1), keymap_fd(b"map\0"), Arg::Uint(4)]);
    rig.turn();
    let hash = crate::blob::hash(b"map\0");
    assert_eq!(rig.blobs, [(hash, b"map\0".to_vec())]);
    let event = events(&mut rig).pop().unwrap();
    assert_eq!(event.object, keyboard);
    assert_eq!(event.args, [WireArg::Uint(1), WireArg::Blob { hash, length: 4 }, WireArg::Uint(4)]);
}

#[test]
fn a_keymap_that_the_program_has_is_not_sent_again() {
    let mut rig = Rig::new();
    let (keyboard, id) = keyboard(&mut rig);
    let hash = crate::blob::hash(b"map\0");
    rig.say(&ToDisplay::KeymapKnown { keyboard, hash });
    rig.event(id, "keymap", vec![Arg::Uint(1), keymap_fd(b"map\0"), Arg::Uint(4)]);
    rig.turn();
    assert_eq!(events(&mut rig), []);
    rig.event(id, "keymap", vec![Arg::Uint(1), keymap_fd(b"other\0"), Arg::Uint(6)]);
    rig.event(id, "keymap", vec![Arg::Uint(1), keymap_fd(b"map\0"), Arg::Uint(4)]);
    rig.turn();
    assert_eq!(events(&mut rig).len(), 2);
}

#[test]
fn an_unreadable_or_huge_keymap_is_dropped() {
    let mut rig = Rig::new();
    let (_, id) = keyboard(&mut rig);
    rig.event(id, "keymap", vec![Arg::Uint(1), keymap_fd(b"map\0"), Arg::Uint(5)]);
    rig.event(id, "keymap", vec![Arg::Uint(1), keymap_fd(b"map\0"), Arg::Uint(u32::MAX)]);
    let (pipe, _write) = rustix::pipe::pipe().unwrap();
    rig.event(id, "keymap", vec![Arg::Uint(1), Arg::Fd(pipe), Arg::Uint(4)]);
    rig.turn();
    assert_eq!(events(&mut rig), []);
    rig.assert_alive();
}

#[test]
fn held_keys_are_heard_of_every_100_ms() {
    let mut rig = Rig::new();
    let (keyboard, id) = keyboard(&mut rig);
    let key = |state| [1, 0, 30, state].map(Arg::Uint).into();
    rig.event(id, "key", key(1));
    rig.turn();
    assert_eq!(rig.connection.next_timeout(), Some(Time::from_millis(100)));
    rig.take_reported();
    rig.now = Time::from_millis(100);
    rig.connection.on_timeout(rig.now);
    rig.turn();
    assert_eq!(rig.take_reported(), [ToApp::KeysHeld { keyboard }]);
    assert_eq!(rig.connection.next_timeout(), Some(Time::from_millis(200)));
    rig.event(id, "key", key(0));
    rig.turn();
    assert_eq!(rig.connection.next_timeout(), None);
}

#[test]
fn a_released_keyboard_beats_no_more() {
    let mut rig = Rig::new();
    let (keyboard, id) = keyboard(&mut rig);
    rig.event(id, "key", [1, 0, 30, 1].map(Arg::Uint).into());
    rig.turn();
    rig.request(keyboard, "release", vec![]);
    assert_eq!(rig.connection.next_timeout(), None);
}

#[test]
fn seat_and_output_properties_are_left_to_the_snapshot() {
    let mut rig = Rig::new();
    let (seat, output) = (rig.bind("wl_seat"), rig.bind("wl_output"));
    let (seat_id, output_id) = (rig.id(seat), rig.id(output));
    rig.event(seat_id, "capabilities", vec![Arg::Uint(3)]);
    rig.event(seat_id, "name", vec![Arg::Str(Some(b"seat0".to_vec()))]);
    rig.event(output_id, "scale", vec![Arg::Int(2)]);
    rig.event(output_id, "done", vec![]);
    rig.turn();
    assert_eq!(rig.take_reported(), []);
}

#[test]
fn focus_names_the_programs_surface() {
    let mut rig = Rig::new();
    let (keyboard, id) = keyboard(&mut rig);
    let surface = rig.surface();
    let surface_id = rig.id(surface);
    rig.event(id, "enter", vec![Arg::Uint(1), Arg::Object(surface_id), Arg::Array(vec![])]);
    rig.turn();
    let event = events(&mut rig).pop().unwrap();
    assert_eq!((event.object, &event.args[1]), (keyboard, &WireArg::Object(surface)));
    // A focus that crosses the destruction still names it: the app side tells its program in order.
    rig.request(surface, "destroy", vec![]);
    rig.turn();
    rig.event(id, "leave", vec![Arg::Uint(2), Arg::Object(surface_id)]);
    rig.turn();
    assert_eq!(events(&mut rig), [], "after delete_id the name means nothing");
    rig.assert_alive();
}

#[test]
fn the_clipboard_is_read_through_a_pipe() {
    let mut rig = Rig::new();
    let (manager, seat) = (rig.bind("wl_data_device_manager"), rig.bind("wl_seat"));
    let device = rig.make(manager, "get_data_device", vec![WireArg::Object(seat)]);
    let device_id = rig.id(device);
    rig.take_reported();
    rig.event(device_id, "data_offer", vec![Arg::NewId(SERVER)]);
    rig.event(SERVER, "offer", vec![Arg::Str(Some(b"text/plain".to_vec()))]);
    rig.event(device_id, "selection", vec![Arg::Object(SERVER)]);
    rig.turn();
    let seen = events(&mut rig);
    let WireArg::NewId(offer) = seen[0].args[0] else { panic!("{seen:?}") };
    assert!(!offer.is_app());
    assert_eq!(seen[1].object, offer);
    assert_eq!(seen[2].args, [WireArg::Object(offer)]);

    rig.request(offer, "receive", vec![WireArg::Str(Some(b"text/plain".to_vec())), WireArg::Pipe(2)]);
    let got = rig.got.pop().unwrap();
    assert!(got.is("wl_data_offer", "receive"));
    let Some(Arg::Fd(write)) = got.args.into_iter().nth(1) else { panic!() };
    std::fs::File::from(write).write_all(b"pasted").unwrap();
    let (pipe, read) = rig.pipes_out.pop().unwrap();
    let mut text = String::new();
    std::fs::File::from(read).read_to_string(&mut text).unwrap();
    assert_eq!((pipe, text.as_str()), (2, "pasted"));

    rig.request(offer, "destroy", vec![]);
    assert_eq!(rig.take_reported(), [ToApp::Deleted(offer)]);
    // The compositor may use its id again.
    rig.event(device_id, "data_offer", vec![Arg::NewId(SERVER)]);
    rig.turn();
    let seen = events(&mut rig);
    assert!(matches!(seen[0].args[0], WireArg::NewId(id) if id != offer));
    rig.assert_alive();
}

#[test]
fn the_programs_selection_is_written_through_a_pipe() {
    let mut rig = Rig::new();
    let manager = rig.bind("wl_data_device_manager");
    let source = rig.make(manager, "create_data_source", vec![]);
    let id = rig.id(source);
    rig.take_reported();
    let (_read, write) = rustix::pipe::pipe().unwrap();
    rig.event(id, "send", vec![Arg::Str(Some(b"text/plain".to_vec())), Arg::Fd(write)]);
    rig.turn();
    let (pipe, _fd): (u64, OwnedFd) = rig.pipes_in.pop().unwrap();
    assert_eq!(pipe & 1, 1);
    assert_eq!(events(&mut rig)[0].args[1], WireArg::Pipe(pipe));
}

#[test]
fn a_paste_from_nowhere_ends_at_once() {
    let mut rig =
        Rig::with(&[("wl_compositor", 4), ("wl_shm", 1), ("wl_data_device_manager", 3), ("wl_seat", 7)]);
    let (manager, seat) = (rig.bind("wl_data_device_manager"), rig.bind("wl_seat"));
    let device = rig.make(manager, "get_data_device", vec![WireArg::Object(seat)]);
    let device_id = rig.id(device);
    rig.event(device_id, "data_offer", vec![Arg::NewId(SERVER)]);
    rig.turn();
    let seen = events(&mut rig);
    let WireArg::NewId(offer) = seen[0].args[0] else { panic!("{seen:?}") };
    // Not at the compositor any more, as after a display was replaced.
    rig.connection.objects.make_inert(offer);
    rig.request(offer, "receive", vec![WireArg::Str(Some(b"text/plain".to_vec())), WireArg::Pipe(4)]);
    let (_, read) = rig.pipes_out.pop().unwrap();
    let mut nothing = Vec::new();
    std::fs::File::from(read).read_to_end(&mut nothing).unwrap();
    assert!(nothing.is_empty());
}

#[test]
fn events_of_destroyed_objects_leave_nothing_behind() {
    let mut rig = Rig::new();
    let (manager, seat) = (rig.bind("wl_data_device_manager"), rig.bind("wl_seat"));
    let device = rig.make(manager, "get_data_device", vec![WireArg::Object(seat)]);
    let source = rig.make(manager, "create_data_source", vec![]);
    let (device_id, source_id) = (rig.id(device), rig.id(source));
    rig.take_reported();
    rig.requests();
    // The events are on their way while the destructors are.
    let (read, write) = rustix::pipe::pipe().unwrap();
    rig.event(device_id, "data_offer", vec![Arg::NewId(SERVER)]);
    rig.event(source_id, "send", vec![Arg::Str(Some(b"text/plain".to_vec())), Arg::Fd(write)]);
    let messages = [(device, "release"), (source, "destroy")]
        .map(|(object, request)| ToDisplay::Request(rig.message(object, request, vec![])));
    for message in messages {
        rig.connection.on_message(rig.now, &message.encode());
    }
    rig.turn();
    assert_eq!(events(&mut rig), []);
    assert!(rig.pipes_in.is_empty());
    let mut nothing = Vec::new();
    std::fs::File::from(read).read_to_end(&mut nothing).unwrap();
    assert!(rig.requests().contains(&"wl_data_offer.destroy".to_owned()));
    rig.assert_alive();
}

/// A blob with a picture of one colour.
fn icon_of(size: Size, pixel: [u8; 4]) -> Vec<u8> {
    let mut content = Content::new(size, Format::Argb8888);
    content.fill(&pixel);
    crate::picture::pack(&mut Encoder::new(Compression::Lz4), content)
}

/// On a slow link a large icon comes long after its window.
#[test]
fn regression_a_window_goes_although_its_icon_has_not_come() {
    let mut rig = Rig::new();
    let manager = rig.bind("xdg_toplevel_icon_manager_v1");
    let [_, surface, xdg_surface, toplevel] = rig.toplevel();
    let pixels = icon_of(size(1024, 1024), [9, 8, 7, 255]);
    let hash = crate::blob::hash(&pixels);
    for _ in 0..2 {
        let icon = rig.make(manager, "create_icon", vec![]);
        let image = WireArg::Image(Image { hash, width: 1024, height: 1024, format: 0 });
        rig.request(icon, "add_buffer", vec![image, WireArg::Int(1)]);
        rig.request(manager, "set_icon", vec![WireArg::Object(toplevel), WireArg::Object(icon)]);
        rig.request(icon, "destroy", vec![]);
    }
    // Neither its end nor an answer waits for that.
    let callback = rig.name();
    rig.request(WireId::DISPLAY, "sync", vec![WireArg::NewId(callback)]);
    rig.request(toplevel, "destroy", vec![]);
    rig.request(xdg_surface, "destroy", vec![]);
    rig.request(surface, "destroy", vec![]);
    let requests = rig.requests();
    for expected in ["wl_display.sync", "xdg_toplevel.destroy", "wl_surface.destroy"] {
        assert!(requests.iter().any(|request| request == expected), "{expected} waits: {requests:?}");
    }
    rig.connection.on_blob(rig.now, hash, &pixels.into());
    rig.turn();
    assert!(!rig.requests().contains(&"xdg_toplevel_icon_manager_v1.set_icon".to_owned()));
    rig.assert_alive();
}

/// Blobs that no request has used yet make room for newer ones.
#[test]
fn regression_icons_whose_pixels_were_forgotten_end_no_connection() {
    let mut rig = Rig::new();
    let manager = rig.bind("xdg_toplevel_icon_manager_v1");
    let pixels = icon_of(size(2, 2), [9, 8, 7, 255]);
    let hash = crate::blob::hash(&pixels);
    rig.connection.on_blob(rig.now, hash, &pixels.into());
    let image = |hash| WireArg::Image(Image { hash, width: 2, height: 2, format: 0 });
    let icon = rig.make(manager, "create_icon", vec![]);
    rig.request(icon, "add_buffer", vec![image(7), WireArg::Int(1)]);
    rig.request(icon, "add_buffer", vec![image(hash), WireArg::Int(2)]);
    for salt in 0..20u8 {
        rig.connection.on_blob(rig.now, u128::from(salt) + 100, &vec![salt; 1 << 20].into());
    }
    // The first one comes, and lets the second one go, whose pixels have gone.
    let first = icon_of(size(2, 2), [1, 1, 1, 255]);
    rig.connection.on_blob(rig.now, 7, &first.into());
    rig.turn();
    rig.assert_alive();
}

#[test]
fn an_icon_waits_for_its_pixels() {
    let mut rig = Rig::new();
    let manager = rig.bind("xdg_toplevel_icon_manager_v1");
    let icon = rig.make(manager, "create_icon", vec![]);
    let [_, _, _, toplevel] = rig.toplevel();
    rig.requests();
    let pixels = icon_of(size(2, 2), [9, 8, 7, 255]);
    let hash = crate::blob::hash(&pixels);
    let image = WireArg::Image(Image { hash, width: 2, height: 2, format: 0 });
    rig.request(icon, "add_buffer", vec![image, WireArg::Int(1)]);
    rig.request(manager, "set_icon", vec![WireArg::Object(toplevel), WireArg::Object(icon)]);
    rig.request(icon, "destroy", vec![]);
    assert!(!rig.requests().iter().any(|request| request.starts_with("xdg_toplevel_icon_v1")));
    rig.connection.on_blob(rig.now, hash, &pixels.into());
    rig.turn();
    let requests = rig.requests();
    let expected = [
        "xdg_toplevel_icon_v1.add_buffer",
        "xdg_toplevel_icon_manager_v1.set_icon",
        "xdg_toplevel_icon_v1.destroy",
        "wl_buffer.destroy",
    ];
    let places: Vec<_> = expected.iter().map(|name| requests.iter().position(|r| r == name)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{requests:?}");
    rig.assert_alive();
}

#[test]
fn shapes_are_drawn_at_the_scale_of_the_outputs() {
    let mut rig = Rig::new();
    let seat = rig.bind("wl_seat");
    let pointer = rig.make(seat, "get_pointer", vec![]);
    let manager = rig.bind("wp_cursor_shape_manager_v1");
    let device = rig.make(manager, "get_pointer", vec![WireArg::Object(pointer)]);
    let output = rig.bind("wl_output");
    let mut bytes = Vec::new();
    for scale in [1, 2] {
        let id = rig.id(output);
        rig.event(id, "scale", vec![Arg::Int(scale)]);
        rig.turn();
        rig.requests();
        rig.request(device, "set_shape", vec![WireArg::Uint(5), WireArg::Uint(1)]);
        let told = rig.got.iter().find(|got| got.is("wl_surface", "set_buffer_scale")).unwrap();
        assert!(matches!(told.args[..], [Arg::Int(told)] if told == scale));
        bytes.push(rig.shown.last().unwrap().pixels.len());
    }
    assert_eq!(bytes, [11 * 17 * 4, 22 * 34 * 4]);
}

#[test]
fn shapes_are_drawn_where_the_compositor_cannot() {
    let mut rig = Rig::new();
    let seat = rig.bind("wl_seat");
    let pointer = rig.make(seat, "get_pointer", vec![]);
    let manager = rig.bind("wp_cursor_shape_manager_v1");
    let device = rig.make(manager, "get_pointer", vec![WireArg::Object(pointer)]);
    rig.requests();
    rig.request(device, "set_shape", vec![WireArg::Uint(5), WireArg::Uint(1)]);
    let cursor = rig.got.iter().find(|got| got.is("wl_pointer", "set_cursor")).unwrap();
    assert_eq!(cursor.uint(0), 5);
    assert!(!rig.shown.last().unwrap().pixels.is_empty());
    rig.request(device, "set_shape", vec![WireArg::Uint(6), WireArg::Uint(1)]);
    assert_eq!(rig.buffers.len(), 1, "one buffer per shape");
    rig.request(pointer, "release", vec![]);
    assert!(rig.requests().contains(&"wl_surface.destroy".to_owned()));
    rig.request(device, "destroy", vec![]);
    rig.assert_alive();
}

fn virtual_keyboard(rig: &mut Rig) -> WireId {
    let (manager, seat) = (rig.bind("zwp_virtual_keyboard_manager_v1"), rig.bind("wl_seat"));
    let keyboard = rig.name();
    let args = vec![WireArg::Object(seat), WireArg::NewId(keyboard)];
    rig.request(manager, "create_virtual_keyboard", args);
    keyboard
}

#[test]
fn a_virtual_keyboards_keys_wait_for_its_keymap() {
    let mut globals = GLOBALS.to_vec();
    globals.push(("zwp_virtual_keyboard_manager_v1", 1));
    let mut rig = Rig::with(&globals);
    let keyboard = virtual_keyboard(&mut rig);
    rig.requests();
    let hash = crate::blob::hash(b"keys\0");
    let keymap = vec![WireArg::Uint(1), WireArg::Blob { hash, length: 5 }, WireArg::Uint(5)];
    rig.request(keyboard, "keymap", keymap.clone());
    rig.request(keyboard, "key", vec![WireArg::Uint(9), WireArg::Uint(30), WireArg::Uint(1)]);
    assert_eq!(rig.requests(), Vec::<String>::new());
    rig.connection.on_blob(rig.now, hash, &b"keys\0".as_slice().into());
    rig.turn();
    let got = rig.got.iter().find(|got| got.request == "keymap").expect("it was sent");
    let Arg::Fd(fd) = &got.args[1] else { panic!("{got:?}") };
    assert_eq!(crate::blob::read(fd, 5).as_deref(), Ok(&b"keys\0"[..]));
    assert_eq!(rig.requests(), ["zwp_virtual_keyboard_v1.keymap", "zwp_virtual_keyboard_v1.key"]);
    // A blob that is here already holds nothing up.
    rig.request(keyboard, "keymap", keymap);
    assert_eq!(rig.requests(), ["zwp_virtual_keyboard_v1.keymap"]);
    rig.assert_alive();
}

#[test]
fn a_keymap_of_another_size_than_announced_is_refused() {
    for (length, told) in [(5, 4096), (4096, 4096)] {
        let mut globals = GLOBALS.to_vec();
        globals.push(("zwp_virtual_keyboard_manager_v1", 1));
        let mut rig = Rig::with(&globals);
        let keyboard = virtual_keyboard(&mut rig);
        let hash = crate::blob::hash(b"keys\0");
        rig.connection.on_blob(rig.now, hash, &b"keys\0".as_slice().into());
        rig.requests();
        rig.request(
            keyboard,
            "keymap",
            vec![WireArg::Uint(1), WireArg::Blob { hash, length }, WireArg::Uint(told)],
        );
        assert!(rig.violation().contains("blob of"), "{}", rig.violation());
        assert_eq!(rig.requests(), Vec::<String>::new());
    }
}
