//! Windows: what they are, who decorates them, what they are called.

use super::{
    Block, app, brief, destructor, forward, lasting, local, local_destructor, one_shot, reply, state, value,
};
use crate::policy::Handler;
use crate::policy::Subject::{Arg, This};

pub(super) const BLOCKS: &[Block] = &[
    lasting(
        "xdg_wm_base",
        &[
            destructor("destroy"),
            value("create_positioner"),
            // The new role applies from the next commit on.
            forward("get_xdg_surface").surface(Arg(1)).after(&[Arg(1)]),
            local("pong"),
        ],
        // The app side asks the program by itself; the display side answers while it hears no complaint.
        &[local("ping")],
    )
    .handled(Handler::WmBase),
    app(
        "xdg_positioner",
        &[
            local_destructor("destroy"),
            value("set_size"),
            value("set_anchor_rect"),
            value("set_anchor"),
            value("set_gravity"),
            value("set_constraint_adjustment"),
            value("set_offset"),
            value("set_reactive"),
            value("set_parent_size"),
            // Its serial is translated where the positioner is used.
            value("set_parent_configure"),
        ],
        &[],
    )
    .handled(Handler::Positioner),
    lasting(
        "xdg_surface",
        &[
            destructor("destroy").after(&[This]),
            forward("get_toplevel").surface(This),
            // The parent must be mapped by then.
            forward("get_popup").value(2).surface(This).after(&[Arg(1)]),
            state("set_window_geometry"),
            state("ack_configure").serial(0),
        ],
        &[forward("configure").serial(0)],
    )
    .handled(Handler::XdgSurface),
    lasting(
        "xdg_toplevel",
        &[
            destructor("destroy").after(&[This]),
            // A parent that is not mapped counts as none.
            forward("set_parent").keep("parent").after(&[Arg(0)]),
            forward("set_title").keep("title"),
            forward("set_app_id").keep("app_id"),
            one_shot("show_window_menu").serial(1),
            one_shot("move").serial(1),
            one_shot("resize").serial(1),
            state("set_max_size"),
            state("set_min_size"),
            // Each is answered by a configure, whether it was granted or not.
            reply("set_maximized").keep("maximized"),
            reply("unset_maximized").keep("maximized"),
            reply("set_fullscreen").keep("fullscreen"),
            reply("unset_fullscreen").keep("fullscreen"),
            forward("set_minimized"),
        ],
        &[
            forward("configure"),
            forward("close"),
            forward("configure_bounds"),
            // Made up where the compositor is older than 5.
            forward("wm_capabilities"),
        ],
    )
    .handled(Handler::Toplevel),
    brief(
        "xdg_popup",
        // A dropped grab is answered by `popup_done`.
        &[
            destructor("destroy").after(&[This]),
            one_shot("grab").serial(1),
            // Answered by a configure: by the app side's where the compositor is older than 3.
            reply("reposition").value(0).after(&[This]),
        ],
        &[forward("configure"), forward("popup_done"), forward("repositioned")],
    )
    .handled(Handler::Popup)
    .farewell(&["popup_done"]),
    lasting(
        "zxdg_decoration_manager_v1",
        &[destructor("destroy"), forward("get_toplevel_decoration").surface(Arg(1))],
        &[],
    )
    .handled(Handler::DecorationManager),
    lasting(
        "zxdg_toplevel_decoration_v1",
        &[destructor("destroy"), reply("set_mode").keep("mode"), reply("unset_mode").keep("mode")],
        &[forward("configure")],
    )
    .handled(Handler::Decoration),
    lasting(
        "org_kde_kwin_server_decoration_manager",
        &[reply("create").surface(Arg(1))],
        // GTK looks for it before it opens its first window.
        &[forward("default_mode")],
    )
    .handled(Handler::KdeDecorationManager)
    .greets(),
    lasting(
        "org_kde_kwin_server_decoration",
        &[destructor("release"), reply("request_mode").keep("mode")],
        &[forward("mode")],
    )
    .handled(Handler::KdeDecoration),
    lasting("xdg_wm_dialog_v1", &[destructor("destroy"), forward("get_xdg_dialog").surface(Arg(1))], &[]),
    lasting(
        "xdg_dialog_v1",
        &[destructor("destroy"), forward("set_modal").keep("modal"), forward("unset_modal").keep("modal")],
        &[],
    ),
    lasting(
        "xdg_toplevel_icon_manager_v1",
        &[destructor("destroy"), forward("create_icon"), forward("set_icon").keep("icon").keeper(Arg(0))],
        &[forward("icon_size"), forward("done")],
    )
    .handled(Handler::IconManager),
    lasting(
        "xdg_toplevel_icon_v1",
        // The program may not touch a buffer from here on, so its pixels are taken now.
        &[destructor("destroy"), forward("set_name").keep("name"), forward("add_buffer").value(0).keep_all()],
        &[],
    )
    .handled(Handler::Icon),
    lasting(
        "xdg_toplevel_tag_manager_v1",
        &[
            destructor("destroy"),
            forward("set_toplevel_tag").keep("tag").keeper(Arg(0)),
            forward("set_toplevel_description").keep("description").keeper(Arg(0)),
        ],
        &[],
    ),
];
