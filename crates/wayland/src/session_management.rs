//! The message tables of `xdg_session_management`, version 1: the protocol crates have none yet.
//!
//! Signatures alone, as those crates would tell them. Invariant: they are what the protocol's text says; a test counts
//! the messages. Goes when the crates have a module of that name.

use wayland_backend::protocol::{AllowNull, ArgumentType, Interface, MessageDesc};
use wayland_protocols::xdg::shell::client::__interfaces::XDG_TOPLEVEL_INTERFACE;

/// `xdg_session_manager_v1`, from which all others are reached.
pub(crate) fn manager() -> &'static Interface {
    &MANAGER
}

static MANAGER: Interface = Interface {
    name: "xdg_session_manager_v1",
    version: 1,
    requests: &[
        destructor("destroy"),
        MessageDesc {
            child_interface: Some(&SESSION),
            // The new object, why it is asked for, and the session's id if there is one.
            ..plain(
                "get_session",
                &[ArgumentType::NewId, ArgumentType::Uint, ArgumentType::Str(AllowNull::Yes)],
            )
        },
    ],
    events: &[],
    c_ptr: None,
};

static SESSION: Interface = Interface {
    name: "xdg_session_v1",
    version: 1,
    requests: &[
        destructor("destroy"),
        destructor("remove"),
        toplevel("add_toplevel"),
        toplevel("restore_toplevel"),
        plain("remove_toplevel", &[TEXT]),
    ],
    events: &[plain("created", &[TEXT]), plain("restored", &[]), plain("replaced", &[])],
    c_ptr: None,
};

static TOPLEVEL_SESSION: Interface = Interface {
    name: "xdg_toplevel_session_v1",
    version: 1,
    requests: &[destructor("destroy"), plain("rename", &[TEXT])],
    events: &[plain("restored", &[])],
    c_ptr: None,
};

static WINDOW: [&Interface; 1] = [&XDG_TOPLEVEL_INTERFACE];

const TEXT: ArgumentType = ArgumentType::Str(AllowNull::No);

const fn plain(name: &'static str, signature: &'static [ArgumentType]) -> MessageDesc {
    MessageDesc {
        name,
        signature,
        since: 1,
        is_destructor: false,
        child_interface: None,
        arg_interfaces: &[],
    }
}

const fn destructor(name: &'static str) -> MessageDesc {
    MessageDesc { is_destructor: true, ..plain(name, &[]) }
}

/// A request that makes an `xdg_toplevel_session_v1` of a window and its name.
const fn toplevel(name: &'static str) -> MessageDesc {
    MessageDesc {
        child_interface: Some(&TOPLEVEL_SESSION),
        arg_interfaces: &WINDOW,
        ..plain(name, &[ArgumentType::NewId, ArgumentType::Object(AllowNull::No), TEXT])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The protocol's text has 2, 5 and 2 requests, and 0, 3 and 1 events.
    #[test]
    fn the_tables_have_all_messages_and_agree_with_their_signatures() {
        for (interface, requests, events) in [(&MANAGER, 2, 0), (&SESSION, 5, 3), (&TOPLEVEL_SESSION, 2, 1)] {
            let count = (interface.requests.len(), interface.events.len());
            assert_eq!(count, (requests, events), "{}", interface.name);
            for message in interface.requests.iter().chain(interface.events) {
                let of =
                    |is: fn(&ArgumentType) -> bool| message.signature.iter().filter(|kind| is(kind)).count();
                let objects = of(|kind| matches!(kind, ArgumentType::Object(_)));
                assert_eq!(objects, message.arg_interfaces.len(), "{}", message.name);
                let made = of(|kind| matches!(kind, ArgumentType::NewId));
                assert_eq!(made, usize::from(message.child_interface.is_some()), "{}", message.name);
            }
        }
    }
}
