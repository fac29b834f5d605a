//! A scripted Wayland client: a few calls make windows, popups, subsurfaces and cursors, draw them, copy, paste,
//! and wait for what comes back.
//!
//! ```no_run
//! # use wayferry_stage::{Client, Config, Image, Input, Stage};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let stage = Stage::start(Config::default())?;
//! let mut client = Client::from_stream(stage.connect()?)?;
//! let window = client.window("hello", 200, 100)?;
//! client.draw(window, &Image::new(200, 100, 0xff33_6699))?;
//! stage.watch().commit(|commit| commit.attached)?;
//! stage.type_text("a");
//! client.wait_input(|input| matches!(input, Input::Key { pressed: true, .. }))?;
//! # Ok(())
//! # }
//! ```
//!
//! A client is used from one thread; [`Program`] gives it one of its own. What it draws is written into its
//! buffers with pwrite(2).

mod buffer;
mod connection;
mod counts;
mod error;
mod inner;
mod parts;
mod program;
mod scenario;
mod selection;

pub use connection::Client;
pub use counts::Counts;
pub use error::ClientError;
pub use inner::{Input, Pane};
pub use parts::Menu;
pub use program::{Endpoint, Program};
pub use scenario::{BigCommit, Busy, Cells, Demo, Pace, Typing};
