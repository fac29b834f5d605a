//! GPU buffers: they are read where the program is, and never cross.

use super::{Block, app, local, local_destructor, pending};
use crate::policy::Subject::Arg;
use crate::policy::{Fd, Handler};

pub(super) const BLOCKS: &[Block] = &[
    app(
        "zwp_linux_dmabuf_v1",
        &[
            local_destructor("destroy"),
            local("create_params"),
            local("get_default_feedback"),
            local("get_surface_feedback"),
        ],
        &[local("format"), local("modifier")],
    )
    .handled(Handler::LinuxDmabuf),
    app(
        "zwp_linux_buffer_params_v1",
        &[local_destructor("destroy"), local("add").fd(Fd::Kept), local("create"), local("create_immed")],
        &[local("created"), local("failed")],
    )
    .handled(Handler::DmabufParams),
    app(
        "zwp_linux_dmabuf_feedback_v1",
        &[local_destructor("destroy")],
        &[
            local("done"),
            local("format_table").fd(Fd::Kept),
            local("main_device"),
            local("tranche_done"),
            local("tranche_target_device"),
            local("tranche_formats"),
            local("tranche_flags"),
        ],
    ),
    app(
        "wp_linux_drm_syncobj_manager_v1",
        &[
            local_destructor("destroy"),
            local("get_surface").surface(Arg(1)),
            local("import_timeline").fd(Fd::Kept),
        ],
        &[],
    )
    .handled(Handler::SyncobjManager),
    app("wp_linux_drm_syncobj_timeline_v1", &[local_destructor("destroy")], &[]),
    app(
        "wp_linux_drm_syncobj_surface_v1",
        &[local_destructor("destroy"), pending("set_acquire_point"), pending("set_release_point")],
        &[],
    )
    .handled(Handler::SyncobjSurface),
];
