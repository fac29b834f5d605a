//! What windows ask of the desktop around them: sessions, each other, attention, to stay awake.

use super::{Block, brief, destructor, forward, lasting, one_shot, reply};
use crate::policy::Handler;
use crate::policy::Subject::Arg;

pub(super) const BLOCKS: &[Block] = &[
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
    lasting("zxdg_exporter_v2", &[destructor("destroy"), reply("export_toplevel").surface(Arg(1))], &[])
        .handled(Handler::Exporter),
    brief("zxdg_exported_v2", &[destructor("destroy")], &[forward("handle")]),
    lasting("zxdg_importer_v2", &[destructor("destroy"), forward("import_toplevel")], &[])
        .handled(Handler::Importer),
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
            // `done` is owed no matter what becomes of the request: GTK waits for it.
            reply("commit"),
            destructor("destroy"),
        ],
        &[forward("done")],
    )
    .handled(Handler::ActivationToken),
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
    )
    .handled(Handler::IdleNotifier),
    lasting(
        "ext_idle_notification_v1",
        &[destructor("destroy")],
        &[forward("idled").until("resumed"), forward("resumed")],
    ),
];
