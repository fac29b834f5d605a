//! Seats and their devices, pointers in all detail, text.

use super::{Block, destructor, forward, lasting, local, one_shot, state};
use crate::policy::Subject::{Arg, This};
use crate::policy::{Fd, Handler};

pub(super) const BLOCKS: &[Block] = &[
    lasting(
        "wl_seat",
        &[forward("get_pointer"), forward("get_keyboard"), forward("get_touch"), destructor("release")],
        // From the snapshot.
        &[local("capabilities"), local("name")],
    )
    .handled(Handler::Seat),
    lasting(
        "wl_pointer",
        &[one_shot("set_cursor").serial(0).after(&[Arg(1)]), destructor("release")],
        &[
            forward("enter").serial(0).until("leave"),
            forward("leave").serial(0),
            forward("motion").millis(0),
            forward("button").serial(0).millis(1),
            forward("axis").millis(0),
            forward("frame"),
            forward("axis_source"),
            forward("axis_stop").millis(0),
            forward("axis_discrete"),
            // Made of `axis_discrete` where the compositor is older than 8.
            forward("axis_value120"),
            forward("axis_relative_direction"),
        ],
    )
    .handled(Handler::Pointer),
    lasting(
        "wl_keyboard",
        &[destructor("release")],
        &[
            // The first keymap and repeat rate come from the snapshot; the same once more is swallowed.
            forward("keymap").fd(Fd::Blob),
            forward("enter").serial(0).until("leave"),
            forward("leave").serial(0),
            forward("key").serial(0).millis(1),
            forward("modifiers").serial(0),
            forward("repeat_info"),
        ],
    )
    .handled(Handler::Keyboard),
    lasting(
        "wl_touch",
        &[destructor("release")],
        &[
            forward("down").serial(0).millis(1).until("cancel"),
            forward("up").serial(0).millis(1),
            forward("motion").millis(0),
            forward("frame"),
            forward("cancel"),
            forward("shape"),
            forward("orientation"),
        ],
    )
    .handled(Handler::Touch),
    lasting(
        "wp_cursor_shape_manager_v1",
        &[destructor("destroy"), forward("get_pointer"), forward("get_tablet_tool_v2")],
        &[],
    ),
    lasting("wp_cursor_shape_device_v1", &[destructor("destroy"), one_shot("set_shape").serial(0)], &[])
        .handled(Handler::CursorShape),
    lasting(
        "zwp_relative_pointer_manager_v1",
        &[destructor("destroy"), forward("get_relative_pointer")],
        &[],
    ),
    lasting("zwp_relative_pointer_v1", &[destructor("destroy")], &[forward("relative_motion").micros(0)]),
    lasting(
        "zwp_input_timestamps_manager_v1",
        &[
            destructor("destroy"),
            forward("get_keyboard_timestamps"),
            forward("get_pointer_timestamps"),
            forward("get_touch_timestamps"),
        ],
        &[],
    ),
    // By way of the device: the program gets it right before the event that it is of, or not at all.
    lasting("zwp_input_timestamps_v1", &[destructor("destroy")], &[forward("timestamp")])
        .handled(Handler::Timestamps),
    lasting(
        "zwp_pointer_constraints_v1",
        &[
            destructor("destroy"),
            forward("lock_pointer").value(3).surface(Arg(1)),
            forward("confine_pointer").value(3).surface(Arg(1)),
        ],
        &[],
    ),
    lasting("wp_pointer_warp_v1", &[destructor("destroy"), one_shot("warp_pointer").serial(4)], &[]),
    lasting(
        "zwp_locked_pointer_v1",
        &[
            destructor("destroy").after(&[This]),
            state("set_cursor_position_hint"),
            state("set_region").value(0),
        ],
        &[forward("locked").until("unlocked"), forward("unlocked")],
    )
    .handled(Handler::Constraint),
    lasting(
        "zwp_confined_pointer_v1",
        &[destructor("destroy").after(&[This]), state("set_region").value(0)],
        &[forward("confined").until("unconfined"), forward("unconfined")],
    )
    .handled(Handler::Constraint),
    lasting(
        "zwp_pointer_gestures_v1",
        &[
            forward("get_swipe_gesture"),
            forward("get_pinch_gesture"),
            destructor("release"),
            forward("get_hold_gesture"),
        ],
        &[],
    ),
    lasting(
        "zwp_pointer_gesture_swipe_v1",
        &[destructor("destroy")],
        &[
            forward("begin").serial(0).millis(1).until("end"),
            forward("update").millis(0),
            forward("end").serial(0).millis(1),
        ],
    ),
    lasting(
        "zwp_pointer_gesture_pinch_v1",
        &[destructor("destroy")],
        &[
            forward("begin").serial(0).millis(1).until("end"),
            forward("update").millis(0),
            forward("end").serial(0).millis(1),
        ],
    ),
    lasting(
        "zwp_pointer_gesture_hold_v1",
        &[destructor("destroy")],
        &[forward("begin").serial(0).millis(1).until("end"), forward("end").serial(0).millis(1)],
    ),
    lasting(
        "zwp_keyboard_shortcuts_inhibit_manager_v1",
        &[destructor("destroy"), forward("inhibit_shortcuts").surface(Arg(1))],
        &[],
    ),
    lasting(
        "zwp_keyboard_shortcuts_inhibitor_v1",
        &[destructor("destroy")],
        &[forward("active").until("inactive"), forward("inactive")],
    ),
    lasting("zwp_text_input_manager_v3", &[destructor("destroy"), forward("get_text_input")], &[]),
    lasting(
        "zwp_text_input_v3",
        &[
            destructor("destroy"),
            // Not kept: after the `leave` that a program gets, the next `enter` makes it say all of it anew.
            forward("enable"),
            forward("disable"),
            forward("set_surrounding_text"),
            forward("set_text_change_cause"),
            forward("set_content_type"),
            forward("set_cursor_rectangle"),
            forward("commit"),
            forward("set_available_actions"),
            forward("show_input_panel"),
            forward("hide_input_panel"),
        ],
        &[
            forward("enter").until("leave"),
            forward("leave"),
            forward("preedit_string"),
            forward("commit_string"),
            forward("delete_surrounding_text"),
            // Its "serial" counts the object's commits: no serial of the compositor's.
            forward("done"),
            forward("action").serial(1),
            forward("language"),
            forward("preedit_hint"),
        ],
    )
    .handled(Handler::TextInput),
    lasting("zwp_text_input_manager_v1", &[forward("create_text_input")], &[]),
    lasting(
        "zwp_text_input_v1",
        &[
            // Not kept: after the `leave` that a program gets, it activates what has the focus next.
            forward("activate"),
            forward("deactivate"),
            forward("show_input_panel"),
            forward("hide_input_panel"),
            forward("reset"),
            forward("set_surrounding_text"),
            forward("set_content_type"),
            forward("set_cursor_rectangle"),
            forward("set_preferred_language"),
            forward("commit_state"),
            forward("invoke_action"),
        ],
        &[
            forward("enter").until("leave"),
            forward("leave"),
            forward("modifiers_map"),
            forward("input_panel_state"),
            // Its "serials" are the program's own, of `commit_state`.
            forward("preedit_string"),
            forward("preedit_styling"),
            forward("preedit_cursor"),
            forward("commit_string"),
            forward("cursor_position"),
            forward("delete_surrounding_text"),
            forward("keysym").millis(1),
            forward("language"),
            forward("text_direction"),
        ],
    ),
];
