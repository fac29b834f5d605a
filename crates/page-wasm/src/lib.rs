//! A session and what it shows, for the script of a page.
//!
//! `Viewer` joins the display side of a session with a [`Page`](wayferry_page::Page) and a player of its sound: the
//! script hands it what its link has received, and the time, and gets what is to be sent, painted and played.
//! In a browser the functions of `export` say the same with numbers and bytes alone. It knows no sockets, no clock and
//! no canvas.
//!
//! Invariant: no input of the other side makes it panic, or keep more than the session, the page and
//! [`MAX_UNSENT`](viewer::MAX_UNSENT) let it; nor does the user make it keep more than [`MAX_KEPT`](acts::MAX_KEPT) and
//! [`MAX_PASTED`](acts::MAX_PASTED).

pub mod acts;
pub mod drawing;
#[cfg(target_arch = "wasm32")]
mod export;
mod pipes;
pub mod socket;
pub mod sound;
pub mod viewer;
