//! Pacing: the app side's, since it is the back-pressure.

use super::{Block, app, local, local_destructor, pending};
use crate::policy::Handler;
use crate::policy::Subject::Arg;

pub(super) const BLOCKS: &[Block] = &[
    app(
        "wp_presentation",
        &[local_destructor("destroy"), pending("feedback").surface(Arg(0))],
        &[local("clock_id")],
    )
    .handled(Handler::Presentation),
    // From the display side's own feedback for the unit, with the time mapped.
    app(
        "wp_presentation_feedback",
        &[],
        &[local("sync_output"), local_destructor("presented"), local_destructor("discarded")],
    ),
    app("wp_fifo_manager_v1", &[local_destructor("destroy"), local("get_fifo").surface(Arg(1))], &[])
        .handled(Handler::FifoManager),
    app("wp_fifo_v1", &[pending("set_barrier"), pending("wait_barrier"), local_destructor("destroy")], &[])
        .handled(Handler::Fifo),
    app(
        "wp_commit_timing_manager_v1",
        &[local_destructor("destroy"), local("get_timer").surface(Arg(1))],
        &[],
    )
    .handled(Handler::TimingManager),
    // The time is of the app side's own clock, and stays there.
    app("wp_commit_timer_v1", &[pending("set_timestamp"), local_destructor("destroy")], &[])
        .handled(Handler::Timer),
];
