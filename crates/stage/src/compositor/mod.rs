//! A miniature Wayland compositor on a thread of its own: shared memory only, no GPU, no system library.
//!
//! It is what a test looks at instead of a screen: [`Stage`] gives input, takes screenshots and tells, as a log
//! of [`StageEvent`]s, all that its clients did. It places windows by a simple rule (each 40 pixels to the right
//! of and below the one before) and has no decorations, no animations and no settings of a user's.
//!
//! Invariant: commands and clients' requests are handled on one thread in one order, and the log has that order.

mod config;
mod data;
mod event;
mod extras;
mod geometry;
mod ime;
mod log;
mod look;
mod output;
mod pipe;
mod popup;
mod positioner;
mod primary;
mod region;
mod render;
mod run;
mod seat;
mod shm;
mod stage;
mod state;
mod subsurface;
mod surface;
mod timing;
mod toplevel;
mod watch;
mod xdg;

pub use config::{Config, Frames, Global};
pub use event::{ClientNumber, Clipboard, Commit, Role, StageEvent, Stamped, SurfaceId};
pub use geometry::Rect;
pub use look::{Look, Seen};
pub use shm::Format;
pub use stage::{Stage, Window};
pub use watch::{Missing, Watch};
