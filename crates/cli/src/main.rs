//! The `wayferry` program.

fn main() {}
