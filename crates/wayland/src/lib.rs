//! Both halves of the Wayland proxy.

pub mod wire;
