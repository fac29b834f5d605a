//! Surfaces, their trees, and how their content is shown.

use super::{
    Block, app, commit, destructor, forward, lasting, local_destructor, parent_state, pending, state, value,
};
use crate::policy::Handler;
use crate::policy::Subject::{Above, Arg, This};

pub(super) const BLOCKS: &[Block] = &[
    lasting("wl_compositor", &[forward("create_surface"), value("create_region")], &[])
        .handled(Handler::Compositor),
    app("wl_region", &[local_destructor("destroy"), value("add"), value("subtract")], &[])
        .handled(Handler::Region),
    lasting(
        "wl_surface",
        &[
            // Cancels the commits of its own that are held, unless it is a subsurface. What is around it is shown
            // first.
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
    )
    .handled(Handler::Surface),
    lasting(
        "wl_subcompositor",
        &[
            destructor("destroy"),
            // The child takes a role, and the parent a child, between two commits of each.
            forward("get_subsurface").surface(Arg(1)).after(&[Arg(1), Arg(2)]),
        ],
        &[],
    )
    .handled(Handler::Subcompositor),
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
    )
    .handled(Handler::Subsurface),
    lasting("wp_viewporter", &[destructor("destroy"), forward("get_viewport").surface(Arg(1))], &[]),
    lasting(
        "wp_viewport",
        &[destructor("destroy").after(&[This]), state("set_source"), state("set_destination")],
        &[],
    )
    .handled(Handler::Viewport),
    lasting(
        "wp_fractional_scale_manager_v1",
        &[destructor("destroy"), forward("get_fractional_scale").surface(Arg(1))],
        &[],
    )
    .handled(Handler::FractionalScaleManager),
    lasting("wp_fractional_scale_v1", &[destructor("destroy")], &[forward("preferred_scale")])
        .handled(Handler::FractionalScale),
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
    lasting("wp_alpha_modifier_v1", &[destructor("destroy"), forward("get_surface").surface(Arg(1))], &[])
        .handled(Handler::AlphaModifier),
    lasting(
        "wp_alpha_modifier_surface_v1",
        // Never crosses where the app side multiplies the pixels.
        &[destructor("destroy").after(&[This]), state("set_multiplier")],
        &[],
    )
    .handled(Handler::AlphaSurface),
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
];
