//! Both halves of the Wayland proxy.

pub mod tables;
pub mod wire;
