//! A miniature compositor, a scripted client and a link emulator, for tests, the demo and benches.
//!
//! - [`Stage`]: a Wayland compositor without screen or GPU that can be looked at, typed at and waited for.
//! - [`Client`]: a Wayland client in a few calls; [`Program`] runs one on a thread, such as [`Demo`] or [`Busy`].
//! - [`Link`]: a UDP relay with delay, loss and the rest; [`Lane`] is its sans-IO core.
//! - [`Beyond`]: a network behind such a link, for whole programs; [`Place`]: one without links.
//! - [`Image`]: a picture, its comparison with another, its PNG. [`Strip`]: numbers drawn into a picture.
//!
//! Nothing here is part of what Wayferry ships to do its work, and nothing here knows Wayferry.

mod beyond;
mod client;
mod clock;
mod compositor;
mod font;
mod image;
mod keys;
mod link;
mod measure;
mod paint;
mod random;
mod strip;

pub use beyond::{Beyond, Place, tun};
pub use client::{
    BigCommit, Busy, Cells, Client, ClientError, Counts, Demo, Endpoint, Input, Menu, Pace, Pane, Program,
    Typing,
};
pub use clock::now;
pub use compositor::{
    ClientNumber, Clipboard, Commit, Config, Format, Frames, Global, Look, Missing, Rect, Role, Seen, Stage,
    StageEvent, Stamped, SurfaceId, Watch, Window,
};
pub use font::Font;
pub use image::{Difference, Image};
pub use link::{Lane, LaneStats, Link, LinkConfig, LinkStats, Loss, Outage, Reorder, Trace, TraceError};
pub use measure::{commits_per_second, freshness, key_latencies, percentile};
pub use random::Random;
pub use strip::Strip;
