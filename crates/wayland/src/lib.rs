//! Both halves of the Wayland proxy.

pub mod policy;
pub mod tables;
pub mod wire;
