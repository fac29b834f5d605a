//! The display half: it stands where the program would, in front of the local compositor.
//!
//! [`Connection`] serves one program: it replays the program's requests under ids of its own, applies commit units
//! once their pixels are here, keeps the compositor's buffers, and sends every event back. [`Watcher`] is a
//! connection of the session itself that describes the compositor to the app side. Both are state machines: the
//! run loop moves bytes between them, the compositor's socket and the session.
//!
//! It keeps nothing that the app side could not rebuild: kill it, start another, attach again.
//!
//! Invariant: for any input of the app side, the compositor sees requests that a well-behaved client could have
//! sent, or the connection ends with an [`End`](crate::End) that says what was wrong; other connections never notice.

mod answers;
mod bind;
mod buffers;
mod captions;
mod captures;
mod connection;
mod cursor;
mod drags;
mod events;
mod globals;
mod ground;
mod handler;
mod handlers;
mod hold;
mod images;
mod intake;
mod keyboard;
mod lending;
mod link;
mod make;
mod meaning;
mod objects;
mod opening;
mod ops;
mod painting;
mod peer;
mod pings;
mod predict;
mod presses;
mod put_off;
mod ratio;
mod requests;
mod share;
mod shm;
mod state;
mod surface;
mod told;
mod tree;
mod turn;
mod units;
mod updates;
mod veil;
mod videos;
mod waiting;
mod watcher;

pub use connection::{Config, Connection};
pub use predict::{Predict, Wishes};
pub use share::Taken;
pub use turn::Room;
pub use watcher::Watcher;

#[cfg(all(test, feature = "video"))]
pub(crate) use updates::Screen;
#[cfg(test)]
mod tests;
