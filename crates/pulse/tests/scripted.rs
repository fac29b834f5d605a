//! Clients that say what a test tells them to, without sockets and in virtual time.

#[path = "scripted/commands.rs"]
mod commands;
#[path = "scripted/hostile.rs"]
mod hostile;
#[path = "scripted/model.rs"]
mod model;
#[path = "scripted/recordings.rs"]
mod recordings;
#[path = "scripted/script.rs"]
mod script;
#[path = "scripted/streams.rs"]
mod streams;
