//! The table against the protocols' own: complete, nothing superfluous, and consistent with the signatures.

use std::collections::{HashMap, HashSet};

use wayland_backend::protocol::{AllowNull, ArgumentType, Interface, MessageDesc};

use super::*;
use crate::tables::{self, GLOBALS};

/// A row with the message that it is about.
struct Row {
    interface: &'static Interface,
    home: Home,
    is_request: bool,
    message: &'static MessageDesc,
    rule: &'static Rule,
}

impl Row {
    fn name(&self) -> String {
        format!("{}.{}", self.interface.name, self.message.name)
    }

    fn creates(&self) -> Option<&'static Interface> {
        self.message.child_interface
    }

    /// Whether the message crosses, in a unit or by itself.
    fn crosses(&self) -> bool {
        use Class::{Destructor, Forward, OneShot, ParentState, Reply, State};
        matches!(self.rule.class, Forward | Reply | OneShot | Destructor | State | ParentState)
            && self.home == Home::Both
    }

    /// The interface that argument `index` names: of an object, or of the object that it creates.
    fn interface_of(&self, index: u8) -> Option<&'static Interface> {
        let signature = self.message.signature;
        if signature[usize::from(index)] == ArgumentType::NewId {
            return self.creates();
        }
        let objects =
            |kinds: &[ArgumentType]| kinds.iter().filter(|k| matches!(k, ArgumentType::Object(_))).count();
        let position = objects(&signature[..usize::from(index)]);
        matches!(signature[usize::from(index)], ArgumentType::Object(_))
            .then(|| self.message.arg_interfaces.get(position).copied())
            .flatten()
    }
}

fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for block in table::blocks() {
        let interface = tables::interface(block.interface).unwrap_or_else(|| panic!("{}", block.interface));
        for (is_request, messages, rules) in
            [(true, interface.requests, block.requests), (false, interface.events, block.events)]
        {
            rows.extend(rules.iter().zip(messages).map(|(rule, message)| Row {
                interface,
                home: block.home,
                is_request,
                message,
                rule,
            }));
        }
    }
    rows
}

#[test]
fn every_reachable_interface_has_one_block_and_no_other_has() {
    let blocks: Vec<_> = table::blocks().map(|block| block.interface).collect();
    let named: HashSet<_> = blocks.iter().copied().collect();
    assert_eq!(named.len(), blocks.len(), "a block appears twice");
    let reachable: HashSet<_> = tables::interfaces().map(|interface| interface.name).collect();
    assert_eq!(reachable.difference(&named).collect::<Vec<_>>(), [&""; 0], "missing blocks");
    assert_eq!(named.difference(&reachable).collect::<Vec<_>>(), [&""; 0], "superfluous blocks");
}

#[test]
fn every_message_up_to_the_cap_has_its_row_and_no_other_has() {
    for block in table::blocks() {
        let interface = tables::interface(block.interface).unwrap();
        let cap = tables::version_cap(block.interface);
        for (messages, rules) in [(interface.requests, block.requests), (interface.events, block.events)] {
            let expected: Vec<_> = messages.iter().filter(|m| m.since <= cap).map(|m| m.name).collect();
            let got: Vec<_> = rules.iter().map(|rule| rule.name).collect();
            assert_eq!(got, expected, "{} at version {cap}", block.interface);
            // Rows are found by opcode, so there may be no gap.
            assert!(messages[expected.len()..].iter().all(|m| m.since > cap), "{}", block.interface);
        }
    }
}

#[test]
fn destructors_end_objects_where_they_live() {
    for row in rows() {
        let is_destructor = matches!(row.rule.class, Class::Destructor | Class::LocalDestructor);
        assert_eq!(is_destructor, row.message.is_destructor, "{}", row.name());
        if is_destructor {
            assert_eq!(row.rule.class == Class::Destructor, row.home == Home::Both, "{}", row.name());
        }
    }
}

#[test]
fn only_what_both_sides_have_is_passed_on() {
    for row in rows().iter().filter(|row| row.home == Home::App) {
        let class = row.rule.class;
        let stays = matches!(class, Class::Local | Class::LocalDestructor | Class::Value | Class::Pending);
        assert!(stays, "{}", row.name());
    }
}

#[test]
fn objects_are_made_where_they_live() {
    // A callback of `sync` may be forwarded; all others stay at the app side.
    for row in rows().iter().filter(|row| row.creates().is_some_and(|child| child.name != "wl_callback")) {
        let child = row.creates().unwrap();
        let expected = match row.rule.class {
            Class::Forward | Class::Reply | Class::OneShot => Home::Both,
            _ => Home::App,
        };
        assert_eq!(home(child.name), expected, "{}", row.name());
    }
}

#[test]
fn serials_and_times_are_integers_of_messages_that_cross() {
    for row in rows() {
        let uint = |index: u8| {
            assert_eq!(row.message.signature[usize::from(index)], ArgumentType::Uint, "{}", row.name());
        };
        if let Some(index) = row.rule.serial {
            uint(index);
        }
        match row.rule.time {
            Some(Time::Millis(arg)) => uint(arg),
            Some(Time::Micros(arg)) => [arg, arg + 1].into_iter().for_each(uint),
            None => {}
        }
        if row.rule.serial.is_some() || row.rule.time.is_some() {
            assert!(row.crosses(), "{}", row.name());
        }
        assert!(
            row.rule.serial.is_none_or(|serial| row.rule.time != Some(Time::Millis(serial))),
            "{}",
            row.name()
        );
    }
}

/// A request that returns a serial of the display means something only there and then, unless it
/// acknowledges.
#[test]
fn a_serial_makes_a_request_valid_once() {
    for row in rows().iter().filter(|row| row.is_request) {
        match row.rule.class {
            Class::OneShot => assert!(row.rule.serial.is_some(), "{}", row.name()),
            Class::State => {
                assert_eq!(row.rule.serial.is_some(), row.rule.name == "ack_configure", "{}", row.name());
            }
            _ => assert_eq!(row.rule.serial, None, "{}", row.name()),
        }
    }
}

#[test]
fn serials_and_times_that_the_protocol_names_are_not_forgotten() {
    // The tables have no argument names; these messages are those with `serial` or `time` in the XML, up to
    // the caps.
    for (interface, requests, events) in [
        ("wl_pointer", &["set_cursor"][..], &["enter", "leave", "motion", "button", "axis", "axis_stop"][..]),
        ("wl_keyboard", &[], &["enter", "leave", "key", "modifiers"]),
        ("wl_touch", &[], &["down", "up", "motion"]),
        ("wl_data_device", &["start_drag", "set_selection"], &["enter", "motion"]),
        ("wl_data_offer", &["accept"], &[]),
        ("xdg_surface", &["ack_configure"], &["configure"]),
        ("xdg_toplevel", &["show_window_menu", "move", "resize"], &[]),
        ("xdg_popup", &["grab"], &[]),
        ("zwp_primary_selection_device_v1", &["set_selection"], &[]),
        ("wp_cursor_shape_device_v1", &["set_shape"], &[]),
        ("xdg_activation_token_v1", &["set_serial"], &[]),
        ("zwp_relative_pointer_v1", &[], &["relative_motion"]),
        ("zwp_pointer_gesture_swipe_v1", &[], &["begin", "update", "end"]),
        ("zwp_pointer_gesture_pinch_v1", &[], &["begin", "update", "end"]),
        ("zwp_pointer_gesture_hold_v1", &[], &["begin", "end"]),
        ("zwp_tablet_tool_v2", &["set_cursor"], &["proximity_in", "down", "button", "frame"]),
        ("zwp_tablet_pad_v2", &["set_feedback"], &["button", "enter", "leave"]),
        ("zwp_tablet_pad_group_v2", &[], &["mode_switch"]),
        ("zwp_tablet_pad_ring_v2", &["set_feedback"], &["frame"]),
        ("zwp_tablet_pad_strip_v2", &["set_feedback"], &["frame"]),
        ("zwlr_layer_surface_v1", &["ack_configure"], &["configure"]),
        ("zwp_text_input_v1", &[], &["keysym"]),
        ("zwp_text_input_v3", &[], &["action"]),
        ("wp_pointer_warp_v1", &["warp_pointer"], &[]),
        ("zwp_virtual_keyboard_v1", &["key"], &[]),
        (
            "zwlr_virtual_pointer_v1",
            &["motion", "motion_absolute", "button", "axis", "axis_stop", "axis_discrete"],
            &[],
        ),
    ] {
        for (is_request, expected) in [(true, requests), (false, events)] {
            let got: Vec<_> = rows()
                .iter()
                .filter(|row| row.interface.name == interface && row.is_request == is_request)
                .filter(|row| row.rule.serial.is_some() || row.rule.time.is_some())
                .map(|row| row.rule.name)
                .collect();
            assert_eq!(got, expected, "{interface}");
        }
    }
}

#[test]
fn every_descriptor_has_its_kind_and_no_other_message_has() {
    for row in rows() {
        let fds = row.message.signature.iter().filter(|kind| **kind == ArgumentType::Fd).count();
        assert_eq!(fds, usize::from(row.rule.fd.is_some()), "{}", row.name());
        if let Some(fd) = row.rule.fd {
            assert_eq!(row.crosses(), fd != Fd::Kept, "{}", row.name());
        }
        if row.rule.fd == Some(Fd::Blob) {
            let sized =
                row.message.signature.windows(2).any(|pair| pair == [ArgumentType::Fd, ArgumentType::Uint]);
            assert!(sized, "{}", row.name());
        }
    }
}

#[test]
fn objects_that_the_display_side_lacks_cross_by_value() {
    for row in rows().iter().filter(|row| row.crosses()) {
        let lacking: Vec<_> = (0..row.message.signature.len() as u8)
            .filter(|index| matches!(row.message.signature[usize::from(*index)], ArgumentType::Object(_)))
            .filter(|index| {
                row.interface_of(*index).is_some_and(|interface| home(interface.name) == Home::App)
            })
            .collect();
        let told = row.rule.value.into_iter().chain(row.rule.fills);
        assert_eq!(lacking, told.collect::<Vec<_>>(), "{}", row.name());
    }
}

#[test]
fn subjects_are_or_belong_to_surfaces() {
    // What a new object belongs to is told by the message that makes it.
    let owned: HashSet<_> = rows()
        .iter()
        .filter(|row| row.rule.surface.is_some())
        .filter_map(|row| row.creates().map(|child| child.name))
        .chain(["wl_surface"])
        .collect();
    for row in rows() {
        for subject in row.rule.after.iter().copied().chain(row.rule.surface) {
            let interface = match subject {
                Subject::This | Subject::Above => row.interface,
                Subject::Arg(index) => row.interface_of(index).unwrap_or_else(|| panic!("{}", row.name())),
            };
            assert!(owned.contains(interface.name), "{}: {}", row.name(), interface.name);
        }
        let is_state = matches!(row.rule.class, Class::State | Class::ParentState | Class::Pending);
        if is_state && row.rule.surface.is_none() {
            assert!(owned.contains(row.interface.name), "{}", row.name());
        }
        assert!(row.is_request || row.rule.after.is_empty(), "{}", row.name());
    }
}

/// Otherwise the end of an object would change how a commit before it is shown.
#[test]
fn objects_with_state_in_units_end_behind_their_surfaces_commits() {
    let with_state: HashSet<_> = rows()
        .iter()
        .filter(|row| row.crosses() && matches!(row.rule.class, Class::State | Class::ParentState))
        .map(|row| row.interface.name)
        .collect();
    for row in rows().iter().filter(|row| row.is_request && row.rule.class == Class::Destructor) {
        // `wl_surface.destroy` cancels them instead.
        if with_state.contains(row.interface.name) && row.interface.name != "wl_surface" {
            assert!(row.rule.after.contains(&Subject::This), "{}", row.name());
        }
    }
}

#[test]
fn what_is_kept_is_a_request_without_serial_or_pipe() {
    for row in rows().iter().filter(|row| row.rule.keep != Keep::Nothing) {
        assert!(row.is_request && matches!(row.rule.class, Class::Forward | Class::Reply), "{}", row.name());
        assert!(row.rule.serial.is_none() && matches!(row.rule.fd, None | Some(Fd::Blob)), "{}", row.name());
        if let Subject::Arg(index) = row.rule.keeper {
            assert!(row.interface_of(index).is_some_and(|keeper| again(keeper.name) == Again::Born));
        }
        assert_eq!(again(row.interface.name), Again::Born, "{}", row.name());
    }
}

/// Every interface has a rule for another display, or there would be no block of its name; here it must be the right
/// one.
#[test]
fn objects_last_unless_the_compositor_made_them() {
    let globals: HashSet<_> = GLOBALS.iter().map(|global| global.name()).collect();
    for block in table::blocks() {
        let made_by = |requests| {
            let rows = rows().into_iter().filter(move |row| row.is_request == requests);
            rows.filter_map(|row| row.creates()).any(|child| child.name == block.interface)
        };
        let given = made_by(false) && !made_by(true) && !globals.contains(block.interface);
        assert_eq!(block.again == Again::Given, given, "{}", block.interface);
        assert_eq!(block.again == Again::Here, block.home == Home::App, "{}", block.interface);
        assert!(block.again != Again::Over || !globals.contains(block.interface), "{}", block.interface);
    }
    let over: Vec<_> = table::blocks().filter(|b| b.again == Again::Over).map(|b| b.interface).collect();
    let expected = [
        "wl_callback",
        "xdg_popup",
        "xdg_session_v1",
        "xdg_toplevel_session_v1",
        "zxdg_exported_v2",
        "zxdg_imported_v2",
        "xdg_activation_token_v1",
        "xdg_toplevel_drag_v1",
        "zwlr_screencopy_frame_v1",
    ];
    assert_eq!(over, expected, "what is over must be something that no other display could know");
}

#[test]
fn what_a_gone_display_says_can_be_made_up() {
    for block in table::blocks() {
        let interface = tables::interface(block.interface).unwrap();
        for name in block.farewell {
            let event = &interface.events[usize::from(tables::event_opcode(interface, name).unwrap())];
            let null = |kind: &ArgumentType| matches!(kind, ArgumentType::Object(AllowNull::Yes));
            assert!(event.signature.iter().all(null), "{}.{name}", block.interface);
        }
    }
    for row in rows().iter().filter(|row| row.rule.until.is_some()) {
        assert!(!row.is_request, "{}", row.name());
        let end = row.rule.until.unwrap();
        let opcode = tables::event_opcode(row.interface, end).unwrap();
        let desc = &row.interface.events[usize::from(opcode)];
        // The object is the one of the beginning, the serial and the time are the newest, a number says "cancelled".
        for (kind, index) in desc.signature.iter().zip(0u8..) {
            let rule = event(row.interface.name, opcode);
            let known = match kind {
                ArgumentType::Uint => rule.serial == Some(index) || rule.time == Some(Time::Millis(index)),
                ArgumentType::Object(_) => {
                    row.message.arg_interfaces.iter().any(|begun| begun.name == desc.arg_interfaces[0].name)
                }
                ArgumentType::Int => end == "end",
                _ => false,
            };
            assert!(known, "{}.{end}", row.interface.name);
        }
    }
}

#[test]
fn every_handler_is_of_some_interface() {
    let named: Vec<_> =
        table::blocks().map(|block| block.handler).filter(|it| *it != Handler::None).collect();
    for it in Handler::ALL {
        let of = named.iter().filter(|other| *other == it).count();
        assert!(of == 1 || of > 1 && matches!(it, Handler::Constraint | Handler::Source), "{it:?}");
    }
    assert_eq!(handler("wl_surface"), Handler::Surface);
    assert_eq!((handler("xdg_toplevel_tag_manager_v1"), handler("nonsense")), (Handler::None, Handler::None));
}

#[test]
fn only_what_is_answered_here_may_be_sent_on() {
    let sent_on: Vec<_> = rows().into_iter().filter(|row| row.rule.sent_on).collect();
    let names: Vec<_> = sent_on.iter().map(Row::name).collect();
    assert_eq!(names, ["wl_display.sync"]);
    assert!(sent_on.iter().all(|row| row.is_request && row.rule.class == Class::Local));
}

#[test]
fn only_globals_greet() {
    let globals: HashSet<_> = GLOBALS.iter().map(|global| global.name()).collect();
    for block in table::blocks().filter(|block| block.greets) {
        assert!(globals.contains(block.interface) && block.home == Home::Both, "{}", block.interface);
    }
}

#[test]
fn lookup_finds_every_row_and_refuses_the_rest() {
    let mut opcodes = HashMap::new();
    for row in rows() {
        let opcode = opcodes.entry((row.interface.name, row.is_request)).or_insert(0_u16);
        let found = if row.is_request { request } else { event }(row.interface.name, *opcode);
        assert_eq!(found, row.rule);
        *opcode += 1;
    }
    for (interface, opcode) in [("wl_surface", 11), ("wl_surface", u16::MAX), ("wl_shell", 0), ("", 0)] {
        assert_eq!(request(interface, opcode).class, Class::Refused);
        assert_eq!(event(interface, opcode).class, Class::Refused);
    }
}
