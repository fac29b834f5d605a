//! The policy table itself. How to read it: [the module above](super).

use super::Subject::{Above, Arg, This};
use super::{Again, Class, Fd, Home, Keep, Rule, Subject, Time};

/// The rules of one interface.
#[derive(Debug)]
pub struct Block {
    /// Its name.
    pub interface: &'static str,
    /// Which sides have its objects.
    pub home: Home,
    /// What becomes of its objects at another display.
    pub again: Again,
    /// Events that tell the program, of each of its objects, that the display is gone: without arguments, or with null.
    pub farewell: &'static [&'static str],
    /// Whether the compositor owes events to whoever binds it: a later `sync` waits for them. For globals
    /// only.
    pub greets: bool,
    /// Its requests, in the order of their opcodes.
    pub requests: &'static [Rule],
    /// Its events, in the order of their opcodes.
    pub events: &'static [Rule],
}

/// Every interface that a program can reach.
pub const TABLE: &[Block] = &[
    // ---------------------------------------------------------------------------------------------------------
    // The connection
    lasting(
        "wl_display",
        &[
            // Answered at once, unless a reply is owed: then it is sent behind what owes it.
            local("sync"),
            local("get_registry"),
        ],
        &[
            // Ends the connection; told to the app side as such.
            local("error"),
            // The app side learns it by wire id, in order with the events.
            local("delete_id"),
        ],
    ),
    app("wl_registry", &[local("bind")], &[local("global"), local("global_remove")]),
    app("wl_fixes", &[local_destructor("destroy"), local("destroy_registry")], &[]),
    // Of a forwarded `sync`. Callbacks of frames never leave the side that they were made on.
    brief("wl_callback", &[], &[destructor("done")]),
    // ---------------------------------------------------------------------------------------------------------
    // Memory: never crosses
    app("wl_shm", &[local("create_pool").fd(Fd::Kept)], &[local("format")]),
    app("wl_shm_pool", &[local("create_buffer"), local_destructor("destroy"), local("resize")], &[]),
    app("wl_buffer", &[local_destructor("destroy")], &[local("release")]),
    app(
        "wp_single_pixel_buffer_manager_v1",
        &[local_destructor("destroy"), local("create_u32_rgba_buffer")],
        &[],
    ),
    // ---------------------------------------------------------------------------------------------------------
    // Surfaces
    lasting("wl_compositor", &[forward("create_surface"), value("create_region")], &[]),
    app("wl_region", &[local_destructor("destroy"), value("add"), value("subtract")], &[]),
    lasting(
        "wl_surface",
        &[
            // Cancels the commits of its own that are held, unless it is a subsurface. What is around it is shown first.
            destructor("destroy").after(&[Above]),
            // Its pixels cross as an update, which the unit names.
            pending("attach"),
            pending("damage"),
            // Answered by the app side's own clock.
            pending("frame"),
            state("set_opaque_region").value(0),
            state("set_input_region").value(0),
            commit("commit"),
            state("set_buffer_transform"),
            state("set_buffer_scale"),
            pending("damage_buffer"),
            pending("offset"),
        ],
        &[
            forward("enter").until("leave"),
            forward("leave"),
            // The scale is the app side's to tell where the compositor is older than 6.
            forward("preferred_buffer_scale"),
            forward("preferred_buffer_transform"),
        ],
    ),
    lasting(
        "wl_subcompositor",
        &[
            destructor("destroy"),
            // The child takes a role, and the parent a child, between two commits of each.
            forward("get_subsurface").surface(Arg(1)).after(&[Arg(1), Arg(2)]),
        ],
        &[],
    ),
    lasting(
        "wl_subsurface",
        &[
            destructor("destroy").after(&[This, Above]),
            parent_state("set_position"),
            parent_state("place_above"),
            parent_state("place_below"),
            // At once, but a commit before it was made in the other mode.
            forward("set_sync").keep("sync").after(&[This]),
            forward("set_desync").keep("sync").after(&[This]),
        ],
        &[],
    ),
    lasting("wp_viewporter", &[destructor("destroy"), forward("get_viewport").surface(Arg(1))], &[]),
    lasting(
        "wp_viewport",
        &[destructor("destroy").after(&[This]), state("set_source"), state("set_destination")],
        &[],
    ),
    lasting(
        "wp_fractional_scale_manager_v1",
        &[destructor("destroy"), forward("get_fractional_scale").surface(Arg(1))],
        &[],
    ),
    lasting("wp_fractional_scale_v1", &[destructor("destroy")], &[forward("preferred_scale")]),
    lasting(
        "wp_content_type_manager_v1",
        &[destructor("destroy"), forward("get_surface_content_type").surface(Arg(1))],
        &[],
    ),
    lasting("wp_content_type_v1", &[destructor("destroy").after(&[This]), state("set_content_type")], &[]),
    lasting(
        "wp_tearing_control_manager_v1",
        &[destructor("destroy"), forward("get_tearing_control").surface(Arg(1))],
        &[],
    ),
    lasting(
        "wp_tearing_control_v1",
        &[state("set_presentation_hint"), destructor("destroy").after(&[This])],
        &[],
    ),
    lasting("wp_alpha_modifier_v1", &[destructor("destroy"), forward("get_surface").surface(Arg(1))], &[]),
    lasting(
        "wp_alpha_modifier_surface_v1",
        // Never crosses where the app side multiplies the pixels.
        &[destructor("destroy").after(&[This]), state("set_multiplier")],
        &[],
    ),
    lasting(
        "ext_background_effect_manager_v1",
        &[destructor("destroy"), forward("get_background_effect").surface(Arg(1))],
        &[forward("capabilities")],
    )
    .greets(),
    lasting(
        "ext_background_effect_surface_v1",
        &[destructor("destroy").after(&[This]), state("set_blur_region").value(0)],
        &[],
    ),
    // ---------------------------------------------------------------------------------------------------------
    // Pacing: the app side's, since it is the back-pressure
    app(
        "wp_presentation",
        &[local_destructor("destroy"), pending("feedback").surface(Arg(0))],
        &[local("clock_id")],
    ),
    // From the display side's own feedback for the unit, with the time mapped.
    app(
        "wp_presentation_feedback",
        &[],
        &[local("sync_output"), local_destructor("presented"), local_destructor("discarded")],
    ),
    app("wp_fifo_manager_v1", &[local_destructor("destroy"), local("get_fifo").surface(Arg(1))], &[]),
    app("wp_fifo_v1", &[pending("set_barrier"), pending("wait_barrier"), local_destructor("destroy")], &[]),
    app(
        "wp_commit_timing_manager_v1",
        &[local_destructor("destroy"), local("get_timer").surface(Arg(1))],
        &[],
    ),
    // The time is of the app side's own clock, and stays there.
    app("wp_commit_timer_v1", &[pending("set_timestamp"), local_destructor("destroy")], &[]),
    // ---------------------------------------------------------------------------------------------------------
    // Windows
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
    ),
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
    ),
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
    ),
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
    ),
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
    .farewell(&["popup_done"]),
    lasting(
        "zxdg_decoration_manager_v1",
        &[destructor("destroy"), forward("get_toplevel_decoration").surface(Arg(1))],
        &[],
    ),
    lasting(
        "zxdg_toplevel_decoration_v1",
        &[destructor("destroy"), reply("set_mode").keep("mode"), reply("unset_mode").keep("mode")],
        &[forward("configure")],
    ),
    lasting(
        "org_kde_kwin_server_decoration_manager",
        &[reply("create").surface(Arg(1))],
        // GTK looks for it before it opens its first window.
        &[forward("default_mode")],
    )
    .greets(),
    lasting(
        "org_kde_kwin_server_decoration",
        &[destructor("release"), reply("request_mode").keep("mode")],
        &[forward("mode")],
    ),
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
    ),
    lasting(
        "xdg_toplevel_icon_v1",
        // The program may not touch a buffer from here on, so its pixels are taken now.
        &[destructor("destroy"), forward("set_name").keep("name"), forward("add_buffer").value(0).keep_all()],
        &[],
    ),
    lasting(
        "xdg_toplevel_tag_manager_v1",
        &[
            destructor("destroy"),
            forward("set_toplevel_tag").keep("tag").keeper(Arg(0)),
            forward("set_toplevel_description").keep("description").keeper(Arg(0)),
        ],
        &[],
    ),
    lasting("xdg_session_manager_v1", &[destructor("destroy"), reply("get_session")], &[]),
    // Of one compositor: another one keeps its own. Its toplevels are inert with it.
    brief(
        "xdg_session_v1",
        &[
            destructor("destroy"),
            destructor("remove"),
            forward("add_toplevel").surface(Arg(1)),
            // Before the window's first commit.
            forward("restore_toplevel").surface(Arg(1)),
            forward("remove_toplevel"),
        ],
        &[forward("created"), forward("restored"), forward("replaced")],
    )
    .farewell(&["replaced"]),
    brief("xdg_toplevel_session_v1", &[destructor("destroy"), forward("rename")], &[forward("restored")]),
    lasting("zxdg_exporter_v2", &[destructor("destroy"), reply("export_toplevel").surface(Arg(1))], &[]),
    brief("zxdg_exported_v2", &[destructor("destroy")], &[forward("handle")]),
    lasting("zxdg_importer_v2", &[destructor("destroy"), forward("import_toplevel")], &[]),
    brief(
        "zxdg_imported_v2",
        &[destructor("destroy"), forward("set_parent_of").after(&[Arg(0)])],
        &[forward("destroyed")],
    )
    .farewell(&["destroyed"]),
    lasting(
        "xdg_activation_v1",
        // A surface that is not mapped cannot be activated.
        &[destructor("destroy"), forward("get_activation_token"), forward("activate").after(&[Arg(1)])],
        &[],
    ),
    brief(
        "xdg_activation_token_v1",
        &[
            one_shot("set_serial").serial(0),
            forward("set_app_id"),
            forward("set_surface"),
            // `done` is owed whatever becomes of the request: GTK waits for it.
            reply("commit"),
            destructor("destroy"),
        ],
        &[forward("done")],
    ),
    lasting("xdg_system_bell_v1", &[destructor("destroy"), forward("ring")], &[]),
    lasting(
        "zwp_idle_inhibit_manager_v1",
        &[destructor("destroy"), forward("create_inhibitor").surface(Arg(1))],
        &[],
    ),
    lasting("zwp_idle_inhibitor_v1", &[destructor("destroy")], &[]),
    lasting(
        "ext_idle_notifier_v1",
        &[
            destructor("destroy"),
            forward("get_idle_notification"),
            // Asked as the former where the compositor is older than 2.
            forward("get_input_idle_notification"),
        ],
        &[],
    ),
    lasting(
        "ext_idle_notification_v1",
        &[destructor("destroy")],
        &[forward("idled").until("resumed"), forward("resumed")],
    ),
    // ---------------------------------------------------------------------------------------------------------
    // Outputs: the display side has them too, for `wl_surface.enter`, but the snapshot speaks for them
    lasting(
        "wl_output",
        &[destructor("release")],
        &[
            local("geometry"),
            local("mode"),
            local("done"),
            local("scale"),
            local("name"),
            local("description"),
        ],
    ),
    app("zxdg_output_manager_v1", &[local_destructor("destroy"), local("get_xdg_output")], &[]),
    app(
        "zxdg_output_v1",
        &[local_destructor("destroy")],
        &[
            local("logical_position"),
            local("logical_size"),
            local("done"),
            local("name"),
            local("description"),
        ],
    ),
    // ---------------------------------------------------------------------------------------------------------
    // Input
    lasting(
        "wl_seat",
        &[forward("get_pointer"), forward("get_keyboard"), forward("get_touch"), destructor("release")],
        // From the snapshot.
        &[local("capabilities"), local("name")],
    ),
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
    ),
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
    ),
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
    ),
    lasting(
        "wp_cursor_shape_manager_v1",
        &[destructor("destroy"), forward("get_pointer"), forward("get_tablet_tool_v2")],
        &[],
    ),
    lasting("wp_cursor_shape_device_v1", &[destructor("destroy"), one_shot("set_shape").serial(0)], &[]),
    lasting(
        "zwp_relative_pointer_manager_v1",
        &[destructor("destroy"), forward("get_relative_pointer")],
        &[],
    ),
    lasting("zwp_relative_pointer_v1", &[destructor("destroy")], &[forward("relative_motion").micros(0)]),
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
    ),
    lasting(
        "zwp_confined_pointer_v1",
        &[destructor("destroy").after(&[This]), state("set_region").value(0)],
        &[forward("confined").until("unconfined"), forward("unconfined")],
    ),
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
    ),
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
    // ---------------------------------------------------------------------------------------------------------
    // Tablets
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
    // ---------------------------------------------------------------------------------------------------------
    // Clipboard, primary selection, drag and drop
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
    ),
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
    ),
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
    .farewell(&["selection"]),
    lasting(
        "zwp_primary_selection_source_v1",
        &[forward("offer").keep_all(), destructor("destroy")],
        &[forward("send").fd(Fd::Pipe), forward("cancelled")],
    ),
    given(
        "zwp_primary_selection_offer_v1",
        &[reply("receive").fd(Fd::Pipe), destructor("destroy")],
        &[forward("offer")],
    ),
    lasting("xdg_toplevel_drag_manager_v1", &[destructor("destroy"), forward("get_xdg_toplevel_drag")], &[]),
    brief("xdg_toplevel_drag_v1", &[destructor("destroy"), forward("attach").after(&[Arg(0)])], &[]),
    // ---------------------------------------------------------------------------------------------------------
    // Only for a session that allows it by name
    lasting(
        "zwlr_layer_shell_v1",
        &[forward("get_layer_surface").surface(Arg(1)).after(&[Arg(1)]), destructor("destroy")],
        &[],
    ),
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
    ),
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
    ),
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
    ),
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
    .greets(),
    given(
        "ext_foreign_toplevel_handle_v1",
        &[destructor("destroy")],
        &[forward("closed"), forward("done"), forward("title"), forward("app_id"), forward("identifier")],
    )
    .farewell(&["closed"]),
];

/// The rule for whatever has no row.
pub const REFUSED: Rule = rule(Class::Refused, "");

/// An interface whose objects both sides have, and that are made again at another display.
const fn lasting(interface: &'static str, requests: &'static [Rule], events: &'static [Rule]) -> Block {
    block(interface, Again::Born, requests, events)
}

/// An interface whose objects both sides have, for something that another display knows nothing of.
const fn brief(interface: &'static str, requests: &'static [Rule], events: &'static [Rule]) -> Block {
    block(interface, Again::Over, requests, events)
}

/// An interface whose objects the compositor makes.
const fn given(interface: &'static str, requests: &'static [Rule], events: &'static [Rule]) -> Block {
    block(interface, Again::Given, requests, events)
}

/// An interface whose objects only the app side has.
const fn app(interface: &'static str, requests: &'static [Rule], events: &'static [Rule]) -> Block {
    Block { home: Home::App, ..block(interface, Again::Here, requests, events) }
}

const fn block(
    interface: &'static str,
    again: Again,
    requests: &'static [Rule],
    events: &'static [Rule],
) -> Block {
    Block { interface, home: Home::Both, again, farewell: &[], greets: false, requests, events }
}

impl Block {
    const fn greets(self) -> Self {
        Self { greets: true, ..self }
    }

    const fn farewell(self, events: &'static [&'static str]) -> Self {
        Self { farewell: events, ..self }
    }
}

const fn forward(name: &'static str) -> Rule {
    rule(Class::Forward, name)
}

const fn reply(name: &'static str) -> Rule {
    rule(Class::Reply, name)
}

const fn one_shot(name: &'static str) -> Rule {
    rule(Class::OneShot, name)
}

const fn destructor(name: &'static str) -> Rule {
    rule(Class::Destructor, name)
}

const fn state(name: &'static str) -> Rule {
    rule(Class::State, name)
}

const fn parent_state(name: &'static str) -> Rule {
    rule(Class::ParentState, name)
}

const fn pending(name: &'static str) -> Rule {
    rule(Class::Pending, name)
}

const fn commit(name: &'static str) -> Rule {
    rule(Class::Commit, name)
}

const fn value(name: &'static str) -> Rule {
    rule(Class::Value, name)
}

const fn local(name: &'static str) -> Rule {
    rule(Class::Local, name)
}

const fn local_destructor(name: &'static str) -> Rule {
    rule(Class::LocalDestructor, name)
}

const fn rule(class: Class, name: &'static str) -> Rule {
    Rule {
        name,
        class,
        serial: None,
        time: None,
        fd: None,
        value: None,
        surface: None,
        after: &[],
        keep: Keep::Nothing,
        keeper: This,
        until: None,
    }
}

/// What rows say about arguments.
impl Rule {
    const fn serial(self, index: u8) -> Self {
        Self { serial: Some(index), ..self }
    }

    const fn millis(self, arg: u8) -> Self {
        Self { time: Some(Time::Millis(arg)), ..self }
    }

    const fn micros(self, arg: u8) -> Self {
        Self { time: Some(Time::Micros(arg)), ..self }
    }

    const fn fd(self, fd: Fd) -> Self {
        Self { fd: Some(fd), ..self }
    }

    const fn value(self, index: u8) -> Self {
        Self { value: Some(index), ..self }
    }

    const fn surface(self, subject: Subject) -> Self {
        Self { surface: Some(subject), ..self }
    }

    const fn after(self, subjects: &'static [Subject]) -> Self {
        Self { after: subjects, ..self }
    }

    const fn keep(self, slot: &'static str) -> Self {
        Self { keep: Keep::Last(slot), ..self }
    }

    const fn keep_all(self) -> Self {
        Self { keep: Keep::All, ..self }
    }

    const fn keeper(self, subject: Subject) -> Self {
        Self { keeper: subject, ..self }
    }

    const fn until(self, event: &'static str) -> Self {
        Self { until: Some(event), ..self }
    }
}
