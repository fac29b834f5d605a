//! Shows the screen of a compositor as a window of a session.
//!
//! It is a client of two compositors: *there* of the one whose screen is shown, which it watches through
//! `wlr-screencopy` and whose keyboard and pointer it plays; *here* of the session's app side, for which it is a
//! program with one window. All that Wayferry does for programs (pixels, repair, sound, outages, viewers, predicted
//! text) holds for the screen, and nothing elsewhere knows of screens.
//!
//! It touches no pixel: the memory into which one compositor copies is the memory that the other reads. It starts and
//! ends no processes, and does not choose the compositor. Invariant: what it has pressed or changed there is released
//! when it ends; an idle screen costs nothing, for the next frame is one that differs from the last.
//!
//! ```text
//!     the session's app side                              the compositor there
//!       keys, pointer, size ── keyboard.rs, pointer.rs ──> virtual devices, output management
//!       pictures <── window.rs <── capture.rs <─────────── screencopy
//!       frame callback ───────────────────────────────────> "the next frame that differs"
//! ```
//!
//! [`show`] is all there is to call; `frames.rs` decides when a frame is copied and shown, `size.rs` when the screen
//! gets another size.

mod capture;
mod clipboard;
mod cursor;
mod damage;
mod error;
mod frames;
mod inbox;
mod keyboard;
mod outputs;
mod pointer;
mod pool;
mod run;
mod screen;
mod size;
mod there;
mod window;

pub use self::error::Error;
pub use self::run::show;
pub use self::screen::Ended;
pub use self::there::examine;
