//! Which cells a grid has.

use super::cell::{Cell, LossModel, Workload};
use crate::controller::Controller;
use crate::session::{Amount, Delivery};

/// A set of cells with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grid {
    /// A few cells that show whether everything works.
    Smoke,
    /// The paper's: one factor at a time from the baseline.
    Paper,
    /// What the paper left out: more loss, bursts, typing, mixed sizes.
    Beyond,
}

impl Grid {
    /// Its cells, always in the same order.
    pub fn cells(self) -> Vec<Cell> {
        match self {
            Self::Smoke => smoke(),
            Self::Paper => paper(),
            Self::Beyond => beyond(),
        }
    }

    /// How many seeds are run unless something else is said.
    pub fn seeds(self) -> u64 {
        match self {
            Self::Smoke => 2,
            Self::Paper | Self::Beyond => 20,
        }
    }
}

/// How updates are delivered, for comparison.
const DELIVERIES: [Delivery; 3] = [Delivery::Total, Delivery::Partial, Delivery::Repaired(Amount::Adaptive)];

fn cross(workloads: &[Workload], controllers: &[Controller]) -> Vec<Cell> {
    let mut cells = Vec::new();
    for workload in workloads {
        for controller in controllers {
            cells.extend(DELIVERIES.map(|delivery| Cell::baseline(*workload, delivery, *controller)));
        }
    }
    cells
}

fn smoke() -> Vec<Cell> {
    cross(&[Workload::Streaming, Workload::NonStreaming, Workload::Typing], &Controller::ALL)
}

/// One factor at a time.
fn paper() -> Vec<Cell> {
    let workloads = [Workload::Streaming, Workload::Streaming10Hz, Workload::NonStreaming];
    let mut cells = Vec::new();
    for base in cross(&workloads, &Controller::ALL) {
        cells.push(base);
        cells.extend([0, 10, 100].map(|loss| Cell { loss, ..base }));
        cells.extend([50, 200].map(|rtt_ms| Cell { rtt_ms, ..base }));
        cells.extend([10, 1000].map(|rate_mbps| Cell { rate_mbps, ..base }));
    }
    cells
}

fn beyond() -> Vec<Cell> {
    let mut cells = Vec::new();
    for base in cross(&[Workload::NonStreaming, Workload::Typing, Workload::Mixed], &Controller::ALL) {
        cells.extend([50, 100, 200, 300, 500].map(|loss| Cell { loss, ..base }));
        let bursts = LossModel::ALL.into_iter().filter(|model| *model != LossModel::Independent);
        cells.extend(bursts.flat_map(|loss_model| [100, 200].map(|loss| Cell { loss, loss_model, ..base })));
    }
    cells
}
