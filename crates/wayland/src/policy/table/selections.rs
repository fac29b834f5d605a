//! Clipboard, primary selection, drag and drop.

use super::{Block, brief, destructor, forward, given, lasting, one_shot, reply};
use crate::policy::Subject::Arg;
use crate::policy::{Fd, Handler};

pub(super) const BLOCKS: &[Block] = &[
    lasting("wl_data_device_manager", &[forward("create_data_source"), forward("get_data_device")], &[]),
    lasting(
        "wl_data_device",
        &[
            // Both: a dropped one is answered by `cancelled` of its source.
            one_shot("start_drag").serial(3).after(&[Arg(2)]),
            one_shot("set_selection").serial(1),
            destructor("release"),
        ],
        &[
            forward("data_offer"),
            forward("enter").serial(0).until("leave"),
            forward("leave"),
            forward("motion").millis(0),
            forward("drop"),
            forward("selection"),
        ],
    )
    .handled(Handler::DataDevice)
    .farewell(&["selection"]),
    lasting(
        "wl_data_source",
        &[forward("offer").keep_all(), destructor("destroy"), forward("set_actions").keep("actions")],
        &[
            forward("target"),
            forward("send").fd(Fd::Pipe),
            forward("cancelled"),
            forward("dnd_drop_performed"),
            forward("dnd_finished"),
            forward("action"),
        ],
    )
    .handled(Handler::Source),
    given(
        "wl_data_offer",
        &[
            one_shot("accept").serial(0),
            reply("receive").fd(Fd::Pipe),
            destructor("destroy"),
            reply("finish"),
            reply("set_actions"),
        ],
        &[forward("offer"), forward("source_actions"), forward("action")],
    )
    .handled(Handler::DataOffer),
    lasting(
        "zwp_primary_selection_device_manager_v1",
        &[forward("create_source"), forward("get_device"), destructor("destroy")],
        &[],
    ),
    lasting(
        "zwp_primary_selection_device_v1",
        &[one_shot("set_selection").serial(1), destructor("destroy")],
        &[forward("data_offer"), forward("selection")],
    )
    .handled(Handler::PrimaryDevice)
    .farewell(&["selection"]),
    lasting(
        "zwp_primary_selection_source_v1",
        &[forward("offer").keep_all(), destructor("destroy")],
        &[forward("send").fd(Fd::Pipe), forward("cancelled")],
    )
    .handled(Handler::Source),
    given(
        "zwp_primary_selection_offer_v1",
        &[reply("receive").fd(Fd::Pipe), destructor("destroy")],
        &[forward("offer")],
    ),
    lasting("xdg_toplevel_drag_manager_v1", &[destructor("destroy"), forward("get_xdg_toplevel_drag")], &[]),
    brief("xdg_toplevel_drag_v1", &[destructor("destroy"), forward("attach").after(&[Arg(0)])], &[]),
];
