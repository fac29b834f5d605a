//! The handlers of this half, a file for each family of the policy table, and the way to them.

use crate::policy::{self, Handler};

use super::handler::{Handles, Plain};

mod captures;
mod connection;
mod input;
mod outputs;
mod selections;
mod surfaces;
mod tablets;
mod windows;

macro_rules! find {
    ($($family:ident { $($name:ident: $($half:ident)*,)* })*) => {
        /// What handles an interface.
        pub(super) fn of(handler: Handler) -> &'static dyn Handles {
            match handler {
                Handler::None => &Plain,
                $($(Handler::$name => of_half!($family $name $($half)*),)*)*
            }
        }
    };
}

macro_rules! of_half {
    ($family:ident $name:ident display) => {
        &$family::$name
    };
    ($family:ident $name:ident app display) => {
        &$family::$name
    };
    ($family:ident $name:ident app) => {
        &Plain
    };
}

policy::handlers!(find);
