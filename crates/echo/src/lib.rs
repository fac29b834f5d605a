//! Predicts from keys and pixels what a typed key will look like, before the answer comes.
//!
//! The caller has one [`Echo`] for each surface that keys may go to. It says which keys were pressed ([`Echo::key`]),
//! what the surface looks like after each update and which key the program had before it ([`Echo::content`]), and when
//! a key has been with the program for so long that no answer is to be expected ([`Echo::late`]). Each of these may say
//! what is to be drawn over the surface from now on, or that nothing is:
//!
//! ```
//! use std::time::Duration;
//! use wayferry_echo::{Answered, Echo, Key, KeyId};
//! use wayferry_pixels::{Content, Format, Region, Size};
//!
//! let mut echo = Echo::new();
//! let size = Size::new(720, 270)?;
//! let content = Content::new(size, Format::Xrgb8888);
//! echo.content(Duration::ZERO, &content, &Region::full(size), Answered(None));
//! let a = Key { code: 30, modifiers: 0, group: 0 };
//! // Nothing is known of this surface yet, so nothing is shown.
//! assert_eq!(echo.key(Duration::from_millis(10), KeyId(1), a), None);
//! assert_eq!(echo.late(Duration::from_millis(120), KeyId(1)), None);
//! # Ok::<(), wayferry_pixels::Error>(())
//! ```
//!
//! It knows no Wayland, no keymaps and no clock, does no I/O, and never touches the content. It starts knowing nothing:
//! what a caret is, how wide a cell is and what a letter looks like it learns from what earlier keys changed. Keys are
//! kept until they are answered, pixels until the caller says [`Echo::forget`]; all of it in at most [`MAX_MEMORY`]
//! bytes; pixels and keys are overwritten before their memory is freed.
//!
//! The one invariant: where a program shows no letters, or one shape for all of them, no letter is shown or kept.
//! `docs/echo.md` says why.

mod ahead;
mod answers;
mod caret;
mod carets;
mod confidence;
mod engine;
mod field;
mod find;
mod glyphs;
mod ink;
mod key;
mod line;
mod masked;
mod overlay;
mod pitch;
mod plane;
mod shape;
mod text;

pub use engine::{Answered, Echo, Figures, MAX_MEMORY, MAX_OUTSTANDING, MAX_SHOWN, Purpose};
pub use key::{Key, KeyId};
pub use overlay::{Mark, Marked, Overlay, Show};
