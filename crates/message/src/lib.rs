//! What the two halves of the Wayland proxy say to each other, as values and as bytes.
//!
//! [`ToDisplay`] and [`ToApp`] cross on the channels of one program's connection, the [`Snapshot`](snapshot::Snapshot)
//! on the control channel. Everything here is plain data: no interface tables, no descriptors, no pixels, so that a
//! page in a browser can use it too. Which message may be sent when is the business of the halves. Invariant: what is
//! decoded is within the bounds that are named here, and encodes to a message that decodes to the same.

mod halves;
pub mod snapshot;
pub mod value;

pub use halves::{
    MAX_AHEAD, MAX_ARG_BYTES, MAX_ARGS, MAX_REGION_OPS, MAX_UNIT_CHILDREN, MAX_UNIT_DEPTH, MAX_UNIT_STATE,
    MESSAGE_COST, Request, ToApp, ToDisplay, Unit, UnitContent, WireArg, WireId, cost,
};
