//! Whole programs: real compositors, real applications, and Wayferry between them.

mod direct;
mod rig;
