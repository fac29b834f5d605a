//! Sessions of Wayferry as a library: both sides' run loops, who is let in, and how they are controlled.
//!
//! The two sides are [`app_side`], which programs connect to, and [`display_side`], which shows their windows on a
//! compositor. Each is one thread that sits in poll(2) and moves bytes between sans-IO cores and descriptors: the
//! session ([`wayferry_proto`]), the Wayland halves ([`wayferry_wayland`]) and the carriers ([`wayferry_net`]) decide
//! everything else. What happens is reported as [`event`]s, why a session ends as an [`error::Error`]: no module here
//! words messages for users, reads a command line, or ends a process. Order of work in each turn: arrivals of the link,
//! events of the session, control socket and the like, writes of input to programs, requests and content as far as the
//! link has room, the session's transmits. So a key that arrives is written to its program before any pixel is worked
//! on. Invariant: the work of one turn is bounded per descriptor, so that none can starve the others.
//!
//! | module | noun |
//! |---|---|
//! | `app_side`, `display_side` | the sides |
//! | `edge` | what they poll: sockets, pipes, programs, signals |
//! | `link`, `carriers` | a session and its carrier; how carriers are made |
//! | `admission`, `control_server`, `control`, `sessions` | who is let in; the control socket; sessions by name |
//! | `bootstrap`, `returning`, `reconnect`, `moving` | how the two sides meet, meet again, and get a better carrier |
//! | `files`, `drops`, `opening` | files that cross; those that are dropped; addresses that the desk opens |
//! | `event`, `error`, `info`, `stats`, `trace` | what is reported |
//! | `gpu` | what would read GPU buffers, told before a session |
//! | `notes` | notifications of programs, from the session's bus to the desk's |
//! | `settings` | what the user has chosen |
//! | `tray` | icons of programs, from the session's bus to the desk's tray |

pub mod admission;
pub mod app_side;
mod backlog;
pub mod bootstrap;
pub mod carriers;
pub mod clock;
pub mod control;
pub mod control_server;
pub mod display_side;
mod drops;
pub mod edge;
pub mod error;
pub mod event;
pub mod files;
mod gauges;
pub mod gpu;
pub mod info;
pub mod link;
mod moving;
pub mod notes;
pub mod opening;
pub mod passing;
mod program_connection;
pub mod reconnect;
pub mod returning;
pub mod sanitize;
pub mod sessions;
pub mod settings;
pub mod sound;
pub mod stats;
pub mod trace;
pub mod tray;
pub mod url;

pub use wayferry_gpu::{HELPER as GPU_HELPER, How as GpuHow, helper as gpu_helper, read as read_gpu_buffers};
