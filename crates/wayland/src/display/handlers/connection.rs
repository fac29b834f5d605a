//! `wl_display`.

use super::super::connection::Connection;
use super::super::handler::{Asked, Handles};
use super::super::hold::{Claim, Key};

/// `wl_display`.
pub(super) struct Display;

impl Handles for Display {
    /// `sync` waits for what is owed an answer, and for nothing else.
    fn claim(&self, _: &Connection, _: Asked<'_>, claim: &mut Claim) {
        claim.waits = vec![Key::Reply];
    }
}
