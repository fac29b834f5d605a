//! The edges of sound: the socket that programs play to, and the sound server of the desk.
//!
//! Threads, so that none waits for pixels: `capture` runs a session's sound server and encodes what it mixes,
//! `playback` pulls a player and feeds the desk's sound server or a file, `microphone` encodes what the desk's records.
//! They exchange data with a run loop through bounded queues. It decides nothing about the link. Invariant: the threads
//! end with their handles; one alone that has a sound card open may be later, as late as ALSA answers.

mod capture;
mod encoding;
mod link;
mod microphone;
mod outbox;
mod playback;
mod source;

pub use capture::{Capture, Door};
pub use link::{Surroundings, find_server};
pub use microphone::{Heeding, Microphone};
pub use outbox::{Captured, Content, Wanted};
pub use playback::{DeviceState, Heard, Notice, Output, Playback, Report, Watcher};
pub use wayferry_audio::Codec;
