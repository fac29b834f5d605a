//! Memory of programs: it never crosses.

use super::{Block, app, local, local_destructor};
use crate::policy::{Fd, Handler};

pub(super) const BLOCKS: &[Block] = &[
    app("wl_shm", &[local("create_pool").fd(Fd::Kept)], &[local("format")]).handled(Handler::Shm),
    app("wl_shm_pool", &[local("create_buffer"), local_destructor("destroy"), local("resize")], &[])
        .handled(Handler::ShmPool),
    app("wl_buffer", &[local_destructor("destroy")], &[local("release")]).handled(Handler::Buffer),
    app(
        "wp_single_pixel_buffer_manager_v1",
        &[local_destructor("destroy"), local("create_u32_rgba_buffer")],
        &[],
    )
    .handled(Handler::SinglePixel),
];
