//! What programs and users do at the worst moment, over a link with a round trip of 200 ms that loses and reorders
//! packets: scripted programs at one end, the stage at the other, and a real session between them.
//!
//! Nothing here measures time: a test waits for what must happen, and orders of events are what it asserts.

mod focus;
mod lossy;
mod rig;
mod start;
mod windows;
