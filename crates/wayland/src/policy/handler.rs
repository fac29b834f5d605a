//! The handlers by name: what a row can say of an interface whose messages need code.
//!
//! The only list of them. Each half makes the way from a name to its handler of it, so a protocol with behaviour is a
//! line here, a block in the table and the handler itself. Says nothing about what a handler does.

/// Hands the list to the macro `$of`: families, the handlers in each, and the halves that have one. The handler of a half is
/// a unit struct of that name in the half's `handlers/<family>.rs`.
macro_rules! handlers {
    ($of:ident) => {
        $of! {
            connection {
                Display: display,
            }
            surfaces {
                Surface: display,
                Subcompositor: display,
                Subsurface: display,
            }
            windows {
                WmBase: display,
                Toplevel: display,
                Popup: display,
                IconManager: display,
                Icon: display,
            }
            outputs {
                Output: display,
            }
            input {
                Pointer: display,
                Keyboard: display,
                CursorShape: display,
            }
            tablets {
                TabletTool: display,
            }
        }
    };
}
pub(crate) use handlers;

macro_rules! declare {
    ($($family:ident { $($name:ident: $($half:ident)*,)* })*) => {
        /// What handles the messages of an interface beyond what their rows say.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Handler {
            /// Nothing: the rows say it all.
            None,
            $($(
                #[doc = concat!("`", stringify!($name), "` of the family `", stringify!($family), "`.")]
                $name,
            )*)*
        }

        impl Handler {
            /// Every handler but [`Self::None`].
            #[cfg(test)]
            pub(super) const ALL: &[Self] = &[$($(Self::$name,)*)*];
        }
    };
}
handlers!(declare);
