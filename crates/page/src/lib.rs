//! The display half of a page in a browser: what programs show, kept so that a script can paint it.
//!
//! A page has no compositor. [`Page`] takes what the session brings of each program, messages and updates, gives what
//! is to be answered, and keeps the windows: which surfaces are in them, where, how large, and their pixels. A page is
//! a viewer: it has no seat, and is told nothing but what a view is told. It paints nothing itself, knows no session
//! and no clock, and shows no videos.
//!
//! Invariant: any input of the app side ends at most the program that it is about, and all programs together take no
//! more memory than the limits of [`Page`] say.

mod ask;
mod desk;
mod end;
mod intake;
mod objects;
mod page;
mod program;
mod queues;
mod rgba;
mod said;
mod scene;
mod shape;
mod share;
mod surface;
mod updates;
mod windows;

pub use desk::snapshot;
pub use end::End;
pub use page::{Ended, MAX_PROGRAMS, Page};
pub use program::Program;
pub use rgba::rgba;
pub use scene::{Inside, Node, Window};
pub use shape::Shape;
pub use surface::Damage;
