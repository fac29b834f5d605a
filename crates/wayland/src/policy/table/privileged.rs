//! Only for a session that allows it by name.

use super::{Block, destructor, forward, given, lasting, reply, state};
use crate::policy::Subject::{Arg, This};
use crate::policy::{Fd, Handler};

pub(super) const BLOCKS: &[Block] = &[
    lasting(
        "zwlr_layer_shell_v1",
        &[forward("get_layer_surface").surface(Arg(1)).after(&[Arg(1)]), destructor("destroy")],
        &[],
    )
    .handled(Handler::LayerShell),
    lasting(
        "zwlr_layer_surface_v1",
        &[
            state("set_size"),
            state("set_anchor"),
            state("set_exclusive_zone"),
            state("set_margin"),
            state("set_keyboard_interactivity"),
            forward("get_popup").after(&[This]),
            state("ack_configure").serial(0),
            destructor("destroy").after(&[This]),
            state("set_layer"),
        ],
        &[forward("configure").serial(0), forward("closed")],
    )
    .handled(Handler::LayerSurface),
    lasting("zwp_virtual_keyboard_manager_v1", &[forward("create_virtual_keyboard")], &[]),
    lasting(
        "zwp_virtual_keyboard_v1",
        &[
            forward("keymap").fd(Fd::Blob).keep("keymap"),
            forward("key").millis(0),
            forward("modifiers"),
            destructor("destroy"),
        ],
        &[],
    ),
    lasting(
        "zwlr_virtual_pointer_manager_v1",
        &[
            forward("create_virtual_pointer"),
            destructor("destroy"),
            forward("create_virtual_pointer_with_output"),
        ],
        &[],
    ),
    lasting(
        "zwlr_virtual_pointer_v1",
        &[
            forward("motion").millis(0),
            forward("motion_absolute").millis(0),
            forward("button").millis(0),
            forward("axis").millis(0),
            forward("frame"),
            forward("axis_source"),
            forward("axis_stop").millis(0),
            forward("axis_discrete").millis(0),
            destructor("destroy"),
        ],
        &[],
    ),
    lasting("zwlr_input_inhibit_manager_v1", &[forward("get_inhibitor")], &[]),
    lasting("zwlr_input_inhibitor_v1", &[destructor("destroy")], &[]),
    lasting(
        "zwlr_data_control_manager_v1",
        // The device's first selection is awaited by a `sync`, here and below.
        &[forward("create_data_source"), reply("get_data_device"), destructor("destroy")],
        &[],
    ),
    lasting(
        "zwlr_data_control_device_v1",
        &[
            forward("set_selection").keep("selection"),
            destructor("destroy"),
            forward("set_primary_selection").keep("primary"),
        ],
        &[forward("data_offer"), forward("selection"), forward("finished"), forward("primary_selection")],
    )
    .farewell(&["selection", "primary_selection"]),
    lasting(
        "zwlr_data_control_source_v1",
        &[forward("offer").keep_all(), destructor("destroy")],
        &[forward("send").fd(Fd::Pipe), forward("cancelled")],
    )
    .handled(Handler::Source),
    given(
        "zwlr_data_control_offer_v1",
        &[reply("receive").fd(Fd::Pipe), destructor("destroy")],
        &[forward("offer")],
    ),
    lasting(
        "ext_data_control_manager_v1",
        &[forward("create_data_source"), reply("get_data_device"), destructor("destroy")],
        &[],
    ),
    lasting(
        "ext_data_control_device_v1",
        &[
            forward("set_selection").keep("selection"),
            destructor("destroy"),
            forward("set_primary_selection").keep("primary"),
        ],
        &[forward("data_offer"), forward("selection"), forward("finished"), forward("primary_selection")],
    )
    .farewell(&["selection", "primary_selection"]),
    lasting(
        "ext_data_control_source_v1",
        &[forward("offer").keep_all(), destructor("destroy")],
        &[forward("send").fd(Fd::Pipe), forward("cancelled")],
    )
    .handled(Handler::Source),
    given(
        "ext_data_control_offer_v1",
        &[reply("receive").fd(Fd::Pipe), destructor("destroy")],
        &[forward("offer")],
    ),
    lasting(
        "zwlr_foreign_toplevel_manager_v1",
        &[reply("stop")],
        &[forward("toplevel"), destructor("finished")],
    )
    .handled(Handler::WlrToplevels)
    .greets(),
    given(
        "zwlr_foreign_toplevel_handle_v1",
        &[
            forward("set_maximized"),
            forward("unset_maximized"),
            forward("set_minimized"),
            forward("unset_minimized"),
            forward("activate"),
            forward("close"),
            forward("set_rectangle"),
            destructor("destroy"),
            forward("set_fullscreen"),
            forward("unset_fullscreen"),
        ],
        &[
            forward("title"),
            forward("app_id"),
            forward("output_enter"),
            forward("output_leave"),
            forward("state"),
            forward("done"),
            forward("closed"),
            forward("parent"),
        ],
    )
    .farewell(&["closed"]),
    lasting(
        "ext_foreign_toplevel_list_v1",
        &[reply("stop"), destructor("destroy")],
        &[forward("toplevel"), forward("finished")],
    )
    .handled(Handler::ExtToplevels)
    .greets(),
    given(
        "ext_foreign_toplevel_handle_v1",
        &[destructor("destroy")],
        &[forward("closed"), forward("done"), forward("title"), forward("app_id"), forward("identifier")],
    )
    .farewell(&["closed"]),
];
