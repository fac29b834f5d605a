//! The sound server of a session: programs play to it as they would to PulseAudio.
//!
//! A [`Server`] takes the bytes of its clients and gives the bytes that answer them, and mixes what they play, 10 ms at
//! a time. It opens no socket, starts no thread and reads no clock: the caller does. Invariants: one client can end at
//! most itself; all that a client can make grow has a named limit.

mod server;

pub use server::{ClientId, Server};
