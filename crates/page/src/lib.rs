//! The display half of a page in a browser: what programs show, kept so that a script can paint it.
//!
//! A page has no compositor. [`Page`] takes what the session brings of each program, messages and updates, gives what
//! is to be answered, and keeps the windows: which surfaces are in them, where, how large, and their pixels. As a
//! viewer it has no seat, and is told nothing but what a view is told. As a display it is a small compositor: windows
//! fill its [`Area`], and it tells programs of the pointer, the keyboard and the clipboard that a script has. It paints
//! nothing itself, and knows no session and no clock; the frames of videos it gives to the script to be decoded.
//!
//! Invariant: any input of the app side ends at most the program that it is about, and all programs together take no
//! more memory than the limits of [`Page`] say.

mod area;
mod ask;
mod client;
mod clipboard;
mod control;
mod decoders;
mod desk;
mod end;
mod hit;
mod input;
mod intake;
mod keyboard;
mod keymap;
mod objects;
mod page;
mod place;
mod pointer;
mod popups;
mod program;
mod queues;
mod rgba;
mod role;
mod said;
mod scene;
mod seat;
mod shape;
mod share;
mod shares;
mod surface;
mod updates;
mod videos;
mod windows;

pub use area::Area;
pub use clipboard::{Clip, MAX_COPIED_PICTURE, MAX_COPIED_TEXT, Pipe, Transfer};
pub use decoders::Task;
pub use end::End;
pub use keymap::Level;
pub use page::{Cursor, Ended, MAX_PROGRAMS, Page};
pub use pointer::Wheel;
pub use program::Program;
pub use rgba::rgba;
pub use role::Role;
pub use scene::{Inside, Node, Window};
pub use shape::Shape;
pub use surface::Damage;
