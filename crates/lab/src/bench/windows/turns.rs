//! How long the turns of both loops took in a case: a key waits that much for a turn at most.

use std::cell::RefCell;
use std::ops::Deref;

use wayferry_host::edge::turns::Turns;

use super::super::rig::Rig;
use super::super::{Figures, Row, Setting, Target};

/// The turns of the sessions of one case.
#[derive(Default)]
pub(super) struct Tally {
    app: RefCell<Turns>,
    display: RefCell<Turns>,
}

impl Tally {
    /// What they are so far; the next case begins anew.
    pub(super) fn take_rows(&self, case: &'static str) -> Vec<Row> {
        let sides = [("app", self.app.take()), ("display", self.display.take())];
        let rows = |(side, turns): (_, Turns)| {
            let figures = |share| Figures::one(turns.share(share).as_secs_f64() * 1e3);
            let row = |metric, figures, most| Row {
                case,
                setting: Setting::default(),
                buffers: None,
                metric,
                unit: "ms",
                figures,
                target: Some(Target::MedianAtMost(most)),
            };
            match side {
                "app" => [
                    row("p99 of the app side's turns", figures(0.99), P99),
                    row("its longest turn", figures(1.0), LONGEST),
                ],
                _ => [
                    row("p99 of the display side's turns", figures(0.99), P99),
                    row("its longest turn", figures(1.0), LONGEST),
                ],
            }
        };
        sides.into_iter().flat_map(rows).collect()
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
        self.tally.app.borrow_mut().merge(&self.rig.session.app().all_turns());
        self.tally.display.borrow_mut().merge(&self.rig.session.display().all_turns());
    }
}

/// Milliseconds.
const P99: f64 = 1.0;
const LONGEST: f64 = 3.0;
