//! Whole programs: real compositors, real applications, and Wayferry between them.

mod clipboard;
mod demo;
mod direct;
mod docs;
mod elsewhere;
mod first_hour;
mod fuse;
mod halves;
mod idle;
mod info;
mod input;
mod limits;
mod programs;
mod rig;
mod roaming;
mod rough_link;
mod session;
mod sessions;
mod slow_link;
mod slurm;
mod ssh;
mod strangers;
mod suspended;
mod toolkits;
mod units;
mod views;
