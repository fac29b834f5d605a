//! The handlers by name: what a row can say of an interface whose messages need code.
//!
//! The only list of them. Each half makes the way from a name to its handler of it, so a protocol with behaviour is a
//! line here, a block in the table and the handler itself. Says nothing about what a handler does.

/// Hands the list to the macro `$of`: families, the handlers in each, and the halves that have one. The handler of a
/// half is a unit struct of that name in the half's `handlers/<family>.rs`.
macro_rules! handlers {
    ($of:ident) => {
        $of! {
            connection {
                Display: app display,
                Registry: app,
                Fixes: app,
                Callback: app,
            }
            memory {
                Shm: app,
                ShmPool: app,
                Buffer: app,
                SinglePixel: app,
            }
            gpu {
                LinuxDmabuf: app,
                DmabufParams: app,
                SyncobjManager: app,
                SyncobjSurface: app,
            }
            surfaces {
                Compositor: app,
                Region: app,
                Surface: app display,
                Subcompositor: app display,
                Subsurface: app display,
                Viewport: app display,
                FractionalScaleManager: app,
                FractionalScale: app display,
                AlphaModifier: app,
                AlphaSurface: app,
            }
            pacing {
                Presentation: app,
                FifoManager: app,
                Fifo: app,
                TimingManager: app,
                Timer: app,
            }
            windows {
                WmBase: app display,
                Positioner: app,
                XdgSurface: app display,
                Toplevel: app display,
                Popup: app display,
                DecorationManager: app,
                Decoration: app,
                KdeDecorationManager: app,
                KdeDecoration: app,
                IconManager: app display,
                Icon: display,
            }
            desktop {
                Exporter: app,
                Importer: app,
                ActivationToken: app,
                IdleNotifier: app,
            }
            outputs {
                Output: app display,
                XdgOutputManager: app,
            }
            input {
                Seat: app,
                Pointer: app display,
                Keyboard: app display,
                Touch: app display,
                CursorShape: display,
                Constraint: app,
                TextInput: app display,
                Timestamps: app,
            }
            tablets {
                TabletTool: app display,
            }
            selections {
                DataDevice: app display,
                DataOffer: display,
                PrimaryDevice: app,
                Source: app display,
            }
            captures {
                ScreencopyManager: app display,
                ScreencopyFrame: app display,
            }
            privileged {
                LayerShell: app,
                LayerSurface: app,
                WlrToplevels: app,
                ExtToplevels: app,
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
            /// Whether its events are the user's doing, which an answer on the screen is waited for.
            pub(crate) fn is_input(self) -> bool {
                matches!(
                    self,
                    Self::Pointer | Self::Keyboard | Self::Touch | Self::TextInput | Self::TabletTool
                )
            }

            /// Whether its events say in which surface something is.
            pub(crate) fn is_somewhere(self) -> bool {
                self.is_input() || self == Self::DataDevice
            }

            /// Every handler but [`Self::None`].
            #[cfg(test)]
            pub(super) const ALL: &[Self] = &[$($(Self::$name,)*)*];
        }
    };
}
handlers!(declare);
