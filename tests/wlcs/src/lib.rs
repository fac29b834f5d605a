//! An integration module for WLCS, the Wayland conformance suite, that puts both halves of the proxy between the suite
//! and a compositor which has an integration module of its own.
//!
//! `abi` is what the suite and that module are spoken to with: C, and the only unsafe part. `relay` is a thread that
//! serves the suite's clients, `client` one of them with its two halves. There is no link: what leaves one half arrives
//! at the other. Invariant: what the suite does to the compositor by its module (moving windows, the pointer, fingers)
//! happens after everything that its clients have sent before.

mod abi;
mod client;
mod relay;
