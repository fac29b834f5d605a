//! Outputs: the display side has them too, for `wl_surface.enter`, but the snapshot speaks for them.

use crate::policy::Handler;

use super::{Block, app, destructor, lasting, local, local_destructor};

pub(super) const BLOCKS: &[Block] = &[
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
    )
    .handled(Handler::Output),
    app("zxdg_output_manager_v1", &[local_destructor("destroy"), local("get_xdg_output")], &[])
        .handled(Handler::XdgOutputManager),
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
];
