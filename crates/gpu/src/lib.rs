//! GPU buffers of programs (dmabufs): what is known of them, what programs are offered, and how their pixels are read.
//!
//! A session never reads such a buffer itself: it *asks* a reader ([`Ask`], [`Answer`]), which imports the buffer once
//! and reads what is damaged of it as often as it is shown. What a reader does it with is an [`Importer`]. Knows no
//! Wayland. Invariant: what a program says of its buffers is checked against the kernel before a reader gets it.
//!
//! Formats and modifiers are those of the kernel's `drm_fourcc.h`.

mod ask;
mod client;
mod confine;
mod convert;
mod cpu;
mod dmabuf;
#[cfg(feature = "egl")]
mod egl;
mod exporter;
pub mod fake;
mod format;
mod frame;
mod importer;
mod link;
mod map;
mod node;
mod offer;
mod process;
mod reader;
mod rows;
mod slots;
mod sync;
mod syncobj;
#[cfg(test)]
mod tests;
mod timeline;
pub mod wire;

pub use ask::{Answer, Ask, BufferId, Job};
pub use client::{Client, Due, Figures, Owner, Packet};
pub use cpu::Cpu;
pub use dmabuf::{Described, Dmabuf, MAX_PLANES, Plane, Wrong};
pub use exporter::exporter;
pub use format::{Fourcc, Modifier, Stored};
pub use frame::Frame;
pub use importer::{Importer, Refused, Route};
pub use link::{Link, Received};
pub use offer::Offer;
pub use process::{HELPER, How, helper, read};
pub use reader::serve;
pub use rows::Rows;
pub use syncobj::Syncobjs;
pub use timeline::{Fence, Point, Release, Timeline, Timelines};
