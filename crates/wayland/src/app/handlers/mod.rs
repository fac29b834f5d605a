//! The handlers of this half, a file for each family of the policy table, and the way to them.

use crate::policy::{self, Handler};

use super::handler::{Handles, Plainly};

mod captures;
mod connection;
mod desktop;
mod gpu;
mod input;
mod memory;
mod outputs;
mod pacing;
mod privileged;
mod selections;
mod surfaces;
mod tablets;
mod windows;

macro_rules! find {
    ($($family:ident { $($name:ident: $($half:ident)*,)* })*) => {
        /// What handles an interface.
        pub(super) fn of(handler: Handler) -> &'static dyn Handles {
            match handler {
                Handler::None => &Plainly,
                $($(Handler::$name => of_half!($family $name $($half)*),)*)*
            }
        }
    };
}

macro_rules! of_half {
    ($family:ident $name:ident app) => {
        &$family::$name
    };
    ($family:ident $name:ident app display) => {
        &$family::$name
    };
    ($family:ident $name:ident display) => {
        &Plainly
    };
}

policy::handlers!(find);
