//! The connection itself.

use crate::policy::Handler;

use super::{Block, app, brief, destructor, lasting, local, local_destructor};

pub(super) const BLOCKS: &[Block] = &[
    lasting(
        "wl_display",
        &[
            // Answered at once, unless a reply is owed: then it is sent behind what owes it.
            local("sync").sent_on(),
            local("get_registry"),
        ],
        &[
            // Ends the connection; told to the app side as such.
            local("error"),
            // The app side learns it by wire id, in order with the events.
            local("delete_id"),
        ],
    )
    .handled(Handler::Display),
    app("wl_registry", &[local("bind")], &[local("global"), local("global_remove")])
        .handled(Handler::Registry),
    app("wl_fixes", &[local_destructor("destroy"), local("destroy_registry")], &[]).handled(Handler::Fixes),
    // Of a forwarded `sync`. Callbacks of frames never leave the side that they were made on.
    brief("wl_callback", &[], &[destructor("done")]).handled(Handler::Callback),
];
