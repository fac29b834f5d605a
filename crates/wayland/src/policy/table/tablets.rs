//! Tablets.

use super::{Block, destructor, forward, given, lasting, one_shot};
use crate::policy::Handler;
use crate::policy::Subject::Arg;

pub(super) const BLOCKS: &[Block] = &[
    lasting("zwp_tablet_manager_v2", &[forward("get_tablet_seat"), destructor("destroy")], &[]),
    lasting(
        "zwp_tablet_seat_v2",
        &[destructor("destroy")],
        &[forward("tablet_added"), forward("tool_added"), forward("pad_added")],
    ),
    given(
        "zwp_tablet_v2",
        &[destructor("destroy")],
        &[forward("name"), forward("id"), forward("path"), forward("done"), forward("removed")],
    )
    .farewell(&["removed"]),
    given(
        "zwp_tablet_tool_v2",
        &[one_shot("set_cursor").serial(0).after(&[Arg(1)]), destructor("destroy")],
        &[
            forward("type"),
            // The maker's number, not the compositor's.
            forward("hardware_serial"),
            forward("hardware_id_wacom"),
            forward("capability"),
            forward("done"),
            forward("removed"),
            forward("proximity_in").serial(0).until("proximity_out"),
            forward("proximity_out"),
            forward("down").serial(0).until("up"),
            forward("up"),
            forward("motion"),
            forward("pressure"),
            forward("distance"),
            forward("tilt"),
            forward("rotation"),
            forward("slider"),
            forward("wheel"),
            forward("button").serial(0),
            forward("frame").millis(0),
        ],
    )
    .handled(Handler::TabletTool)
    .farewell(&["removed"]),
    given(
        "zwp_tablet_pad_v2",
        &[one_shot("set_feedback").serial(2), destructor("destroy")],
        &[
            forward("group"),
            forward("path"),
            forward("buttons"),
            forward("done"),
            forward("button").millis(0),
            forward("enter").serial(0).until("leave"),
            forward("leave").serial(0),
            forward("removed"),
        ],
    )
    .farewell(&["removed"]),
    given(
        "zwp_tablet_pad_group_v2",
        &[destructor("destroy")],
        &[
            forward("buttons"),
            forward("ring"),
            forward("strip"),
            forward("modes"),
            forward("done"),
            forward("mode_switch").millis(0).serial(1),
        ],
    ),
    given(
        "zwp_tablet_pad_ring_v2",
        &[one_shot("set_feedback").serial(1), destructor("destroy")],
        &[forward("source"), forward("angle"), forward("stop"), forward("frame").millis(0)],
    ),
    given(
        "zwp_tablet_pad_strip_v2",
        &[one_shot("set_feedback").serial(1), destructor("destroy")],
        &[forward("source"), forward("position"), forward("stop"), forward("frame").millis(0)],
    ),
];
