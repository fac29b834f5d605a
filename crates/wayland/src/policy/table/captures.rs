//! Pictures of what the display shows, only for a session that allows it by name.

use super::{Block, brief, destructor, forward, lasting, local};
use crate::policy::Handler;

pub(super) const BLOCKS: &[Block] = &[
    lasting(
        "zwlr_screencopy_manager_v1",
        &[forward("capture_output"), forward("capture_output_region"), destructor("destroy")],
        &[],
    )
    .handled(Handler::ScreencopyManager),
    // `ready` comes once the program's buffer is filled.
    brief(
        "zwlr_screencopy_frame_v1",
        &[forward("copy").fills(0), destructor("destroy"), forward("copy_with_damage").fills(0)],
        &[
            forward("buffer"),
            forward("flags"),
            forward("ready"),
            forward("failed"),
            forward("damage"),
            // Pixels go through memory.
            local("linux_dmabuf"),
            forward("buffer_done"),
        ],
    )
    .farewell(&["failed"])
    .handled(Handler::ScreencopyFrame),
];
