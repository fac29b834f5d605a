//! How long the turns of both loops took in a case: a key waits that much for a turn at most.

use std::cell::RefCell;
use std::ops::Deref;

use wayferry_host::edge::handle::Handle;
use wayferry_host::edge::turns::Turns;

use super::super::rig::Rig;
use super::super::{Figures, Row, Setting, Target};

/// The turns of the sessions of one case.
#[derive(Default)]
pub(super) struct Tally {
    app: RefCell<Side>,
    display: RefCell<Side>,
}

/// Those of one side.
#[derive(Default)]
struct Side {
    all: Turns,
    /// How much of that they had a processor.
    at_work: Turns,
}

impl Side {
    fn add(&mut self, handle: &Handle) {
        self.all.merge(&handle.all_turns());
        self.at_work.merge(&handle.turns_at_work());
    }

    /// Of turns the 99th percentile and the longest, and the same of their time on a processor.
    fn rows(&self, case: &'static str, metrics: [&'static str; 4]) -> [Row; 4] {
        let figures = [
            (&self.all, 0.99, Some(P99)),
            (&self.all, 1.0, Some(LONGEST)),
            (&self.at_work, 0.99, None),
            (&self.at_work, 1.0, None),
        ];
        let row = |at: usize| {
            let (turns, share, most) = figures[at];
            Row {
                case,
                setting: Setting::default(),
                buffers: None,
                metric: metrics[at],
                unit: "ms",
                figures: Figures::one(turns.share(share).as_secs_f64() * 1e3),
                target: most.map(Target::MedianAtMost),
            }
        };
        std::array::from_fn(row)
    }
}

impl Tally {
    /// What they are so far; the next case begins anew.
    pub(super) fn take_rows(&self, case: &'static str) -> Vec<Row> {
        let app = self.app.take().rows(case, APP);
        app.into_iter().chain(self.display.take().rows(case, DISPLAY)).collect()
    }
}

/// A session whose turns are counted when it ends.
pub(super) struct Counted<'a> {
    pub(super) rig: Rig<'a>,
    pub(super) tally: &'a Tally,
}

impl<'a> Deref for Counted<'a> {
    type Target = Rig<'a>;

    fn deref(&self) -> &Rig<'a> {
        &self.rig
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.tally.app.borrow_mut().add(self.rig.session.app());
        self.tally.display.borrow_mut().add(self.rig.session.display());
    }
}

const APP: [&str; 4] = [
    "p99 of the app side's turns",
    "the app side's longest turn",
    "p99 of the app side's turns on a processor",
    "the app side's longest turn on a processor",
];
const DISPLAY: [&str; 4] = [
    "p99 of the display side's turns",
    "the display side's longest turn",
    "p99 of the display side's turns on a processor",
    "the display side's longest turn on a processor",
];

/// Milliseconds.
const P99: f64 = 1.0;
const LONGEST: f64 = 3.0;
