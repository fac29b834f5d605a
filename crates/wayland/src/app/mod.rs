//! The app side of one Wayland connection: the program's server.
//!
//! It answers locally what can be answered locally (registry, memory, callbacks, outputs, most of `sync`), folds
//! commits into units with the pixels they need, and passes everything else on by the policy table. It does no I/O
//! but `pread` on the program's memory and `pipe`; bytes and descriptors come and go through [`Connection::input`]
//! and [`Connection::output`], everything for the display side through [`Connection::poll_action`].
//!
//! What a connection is made of, each file a noun of its own that knows no connection:
//!
//! | module | noun |
//! |---|---|
//! | `config`, `fault` | what a connection is told, and why it ends |
//! | `object`, `roles`, `call` | ids and objects; what surfaces are used for; a request as its handlers get it |
//! | `program`, `ping` | the program at the other end of the socket, and whether it answers |
//! | `line`, `sync`, `serial` | the line to the display side, answers that the compositor owes, serials |
//! | `offering`, `offer`, `slots` | globals, outputs and seats as the program knows them |
//! | `shm`, `dmabuf`, `buffer` | pools, GPU buffers as a program makes them, buffers |
//! | `reading` | what waits for the reader of GPU buffers |
//! | `surface`, `surfaces` | a surface, and how those of a program are nested |
//! | `standing`, `family`, `stack` | what it is used for, where it stands among others, the order of its children |
//! | `pending`, `unsent`, `waiting` | what its next commit has, a commit that has not left, those of one surface |
//! | `sent`, `frames`, `preferred` | what has left, frame callbacks, scale and transform that a display prefers |
//! | `shape`, `fade` | how its content is shown; pixels that are multiplied where the compositor cannot |
//! | `timing`, `room` | commits that are to be applied later, and what all contents take |
//! | `studio` | what pixels are encoded with |
//! | `painter`, `videos` | its pixels, and what one display is told of them; pictures that change all the time |
//! | `canvas`, `errand` | where its pixels are: here, or with a worker |
//! | `comparing`, `making` | a commit whose buffer is being compared, or whose pixels are being encoded |
//! | `improving` | a step of a content that becomes better |
//! | `pacing`, `beat` | how fast commits leave, and when frames are drawn |
//! | `credit`, `flow`, `under_way` | what the link takes now, how far the display side is, units that it has not applied |
//! | `devices` | what the display's input has begun |
//! | `keyboard`, `late`, `focus` | keys that must not stay down, input that comes too late, what the user attends to |
//! | `answers` | keys that the program has, and whether it has answered them |
//! | `announced`, `clipboard` | what ends with a display, what is offered again |
//! | `birth`, `keeping`, `committed` | what is kept for another display |
//! | `watch` | what viewers are told |
//!
//! What is done with them, by methods of a [`Connection`], which is in `connection`:
//!
//! | module | what |
//! |---|---|
//! | `request` | one request of the program, routed by its class |
//! | `registry`, `desk` | globals, bind, sync; outputs and seats, answered from the snapshot |
//! | `role`, `alpha` | requests on roles, alpha modifiers |
//! | `handler`, `handlers` | what an interface needs beyond its rows, a file for each family of the table |
//! | `commit`, `compare` | commits, and who compares their pixels |
//! | `later`, `read`, `flush`, `units` | when they are applied and their pixels read, when they leave, and how |
//! | `better` | what is lossy becomes exact |
//! | `publish`, `view` | viewers |
//! | `event` | events of the compositor on their way to the program |
//! | `answering` | which keys commits answer, and which none will |
//! | `stub`, `older` | answers for what the attached compositor lacks, or has in an older version |
//! | `keep` | what is kept for another display |
//! | `away` | a program without a display |
//! | `replay`, `restage` | a new display |
//!
//! Invariant: nothing that the program sends can end more than this connection.

mod alpha;
mod announced;
mod answering;
mod answers;
mod away;
mod beat;
mod better;
mod birth;
mod buffer;
mod call;
mod canvas;
mod captures;
mod chain;
mod clipboard;
mod commit;
mod committed;
mod compare;
mod comparing;
mod config;
mod connection;
mod credit;
mod desk;
mod devices;
mod dmabuf;
mod errand;
mod event;
mod fade;
mod family;
mod fault;
mod flow;
mod flush;
mod focus;
mod frames;
mod handler;
mod handlers;
mod improving;
mod keep;
mod keeping;
mod keyboard;
mod late;
mod later;
mod line;
mod making;
mod object;
mod offer;
mod offering;
mod older;
mod outage;
mod pacing;
mod painter;
mod pending;
mod ping;
mod points;
mod preferred;
mod program;
mod publish;
mod read;
mod reading;
mod reads;
mod registry;
mod replay;
mod request;
mod restage;
mod role;
mod roles;
mod room;
mod sent;
mod serial;
mod shape;
mod shm;
mod slots;
mod stack;
mod standing;
mod stub;
mod studio;
mod surface;
mod surfaces;
mod sync;
#[cfg(test)]
mod tests;
mod timelines;
mod timing;
mod told;
mod under_way;
mod units;
mod unsent;
mod videos;
mod view;
mod waiting;
mod watch;

pub(crate) use captures::MAX_COPIES;
pub use config::{Config, Desk};
pub use connection::Connection;
pub use credit::Credit;
pub use flush::{Handed, Turn};
pub use keep::Kept;
pub use painter::Fidelity;
pub use reads::GpuSurface;
pub use view::{Counts, Scene, View};
pub use watch::{Published, Whole};
