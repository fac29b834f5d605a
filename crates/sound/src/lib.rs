//! The edges of sound: the socket that programs play to, and the sound server of the desk.
//!
//! Two threads, so that neither waits for pixels: `capture` runs a session's sound server and encodes what it mixes,
//! `playback` pulls a player and feeds the desk's sound server or a file. They exchange data with a run loop through
//! bounded queues. It decides nothing about the link. Invariant: the threads end with their handles.

mod capture;
mod playback;

pub use capture::{Capture, Captured, Content, Door, Wanted};
pub use playback::{Codec, DeviceState, Notice, Output, Playback, Report, Surroundings};
