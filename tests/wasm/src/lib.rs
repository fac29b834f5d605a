//! The checks of `audio`, `fec`, `proto`, `page` and `pixels` that their crates run natively (`tests/vectors`), as a
//! module of WebAssembly.
//!
//! `scripts/test-wasm` builds it and runs it under node. Elsewhere there is nothing here. It checks nothing by itself.

#[cfg(target_arch = "wasm32")]
mod export;

#[cfg(target_arch = "wasm32")]
#[path = "../../../crates/audio/tests/vectors/checks.rs"]
mod audio;
#[cfg(target_arch = "wasm32")]
#[path = "../../../crates/fec/tests/vectors/checks.rs"]
mod fec;
#[cfg(target_arch = "wasm32")]
#[path = "../../../crates/page/tests/vectors/checks.rs"]
mod page;
#[cfg(target_arch = "wasm32")]
#[path = "../../../crates/pixels/tests/vectors/checks.rs"]
mod pixels;
#[cfg(target_arch = "wasm32")]
#[path = "../../../crates/proto/tests/vectors/checks.rs"]
mod proto;
