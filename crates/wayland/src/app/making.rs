//! A commit on its way out while its pixels are being encoded: how far it is.
//!
//! What is done to it is in `units`.

use std::collections::VecDeque;

use wayferry_proto::{Time, UnitHead};

use crate::message::UnitContent;
use crate::workers::Pending;

use super::errand::Return;
use super::pacing::Payer;
use super::unsent::{Change, Unsent};

/// A commit whose unit has not left yet.
#[derive(Debug)]
pub(super) struct Making {
    pub(super) id: u32,
    pub(super) unsent: Unsent,
    pub(super) began: Time,
    pub(super) payer: Payer,
    /// Surfaces whose contents are still to be made, in the order in which the unit names them.
    pub(super) todo: VecDeque<(u32, Change)>,
    /// What the others have become.
    pub(super) made: VecDeque<Made>,
    /// Content that has left.
    pub(super) bytes: u64,
    /// The painter that is with a worker, of the surface whose content is made now.
    pub(super) errand: Option<Pending<Return>>,
    /// How the last update has told the unit, if it has.
    pub(super) told: Option<UnitHead>,
}

/// The content of one surface, and how much of the unit had left with it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Made {
    pub(super) content: UnitContent,
    pub(super) bytes: u64,
}

/// What a surface brings that brings nothing.
pub(super) const NOTHING: Made = Made { content: UnitContent::Keep, bytes: 0 };
