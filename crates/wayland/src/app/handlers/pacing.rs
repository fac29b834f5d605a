//! Pacing: feedback, and commits that are to be applied later than they are made.

use crate::wire::Arg;

use super::super::call::Call;
use super::super::connection::Connection;
use super::super::fault::Fault;
use super::super::handler::Handles;

/// `CLOCK_MONOTONIC`: times are mapped to this side's.
const CLOCK_MONOTONIC: u32 = 1;

/// `wp_presentation`.
pub(super) struct Presentation;

impl Handles for Presentation {
    fn greet(&self, connection: &mut Connection, id: u32) -> Result<(), Fault> {
        connection.emit(id, "clock_id", vec![Arg::Uint(CLOCK_MONOTONIC)])
    }

    fn local(&self, connection: &mut Connection, call: Call, args: Vec<Arg>) -> Result<(), Fault> {
        match (call.desc.name, &args[..]) {
            ("feedback", [Arg::Object(surface), Arg::NewId(id)]) => connection.add_feedback(*surface, *id),
            _ => Ok(()),
        }
    }
}

/// `wp_fifo_manager_v1`.
pub(super) struct FifoManager;

impl Handles for FifoManager {
    fn local(&self, connection: &mut Connection, call: Call, args: Vec<Arg>) -> Result<(), Fault> {
        match (call.desc.name, &args[..]) {
            ("get_fifo", [Arg::NewId(id), Arg::Object(surface)]) => connection.add_fifo(call, *id, *surface),
            _ => Ok(()),
        }
    }
}

/// `wp_fifo_v1`.
pub(super) struct Fifo;

impl Handles for Fifo {
    fn local(&self, connection: &mut Connection, call: Call, _: Vec<Arg>) -> Result<(), Fault> {
        match call.desc.name {
            "set_barrier" => connection.set_barrier(call),
            "wait_barrier" => connection.wait_barrier(call),
            "destroy" => {
                connection.end_timing(call.id);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// `wp_commit_timing_manager_v1`.
pub(super) struct TimingManager;

impl Handles for TimingManager {
    fn local(&self, connection: &mut Connection, call: Call, args: Vec<Arg>) -> Result<(), Fault> {
        match (call.desc.name, &args[..]) {
            ("get_timer", [Arg::NewId(id), Arg::Object(surface)]) => {
                connection.add_timer(call, *id, *surface)
            }
            _ => Ok(()),
        }
    }
}

/// `wp_commit_timer_v1`.
pub(super) struct Timer;

impl Handles for Timer {
    fn local(&self, connection: &mut Connection, call: Call, args: Vec<Arg>) -> Result<(), Fault> {
        match (call.desc.name, &args[..]) {
            ("set_timestamp", [Arg::Uint(high), Arg::Uint(low), Arg::Uint(nanos)]) => {
                connection.set_timestamp(call, u64::from(*high) << 32 | u64::from(*low), *nanos)
            }
            ("destroy", _) => {
                connection.end_timing(call.id);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
