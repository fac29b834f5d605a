//! Which cells a grid has.

use super::cell::{Cell, LossModel, Trouble, Workload};
use crate::controller::Controller;
use crate::session::{Amount, Delivery};

/// A set of cells with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grid {
    /// A few cells that show whether everything works.
    Smoke,
    /// The paper's: one factor at a time from the baseline.
    Paper,
    /// What the paper left out: more loss, bursts, typing, mixed sizes, recordings.
    Beyond,
    /// What a person waits for and what never stops, over links that lose in every manner.
    Bursts,
    /// What a person waits for who views in a browser, whose scripts read streams in order.
    Pages,
}

impl Grid {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Smoke, Self::Paper, Self::Beyond, Self::Bursts, Self::Pages];

    /// As in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Smoke => "smoke",
            Self::Paper => "paper",
            Self::Beyond => "beyond",
            Self::Bursts => "bursts",
            Self::Pages => "pages",
        }
    }

    /// Its cells, always in the same order.
    pub fn cells(self) -> Vec<Cell> {
        match self {
            Self::Smoke => smoke(),
            Self::Paper => paper(),
            Self::Beyond => beyond(),
            Self::Bursts => bursts(),
            Self::Pages => pages(),
        }
    }

    /// How many seeds are run unless something else is said.
    pub fn seeds(self) -> u64 {
        match self {
            Self::Smoke => 2,
            Self::Paper | Self::Beyond | Self::Bursts | Self::Pages => 20,
        }
    }
}

/// What is compared under every controller.
const MAIN: [Delivery; 3] = [Delivery::Total, Delivery::Partial, Delivery::Repaired(Amount::Adaptive)];

fn cross(workloads: &[Workload]) -> Vec<Cell> {
    let mut cells = Vec::new();
    for workload in workloads {
        for controller in Controller::ALL {
            cells.extend(MAIN.map(|delivery| Cell::baseline(*workload, delivery, controller)));
        }
    }
    cells
}

fn smoke() -> Vec<Cell> {
    cross(&[Workload::Streaming, Workload::NonStreaming, Workload::Typing])
}

/// One factor at a time; under the product's controller also the paper's own amounts of repair.
fn paper() -> Vec<Cell> {
    let workloads = [Workload::Streaming, Workload::Streaming10Hz, Workload::NonStreaming];
    let mut cells: Vec<Cell> = cross(&workloads).into_iter().flat_map(one_at_a_time).collect();
    for workload in workloads {
        let fixed = |amount| Cell::baseline(workload, Delivery::Repaired(amount), Controller::Copa);
        cells.extend(one_at_a_time(fixed(Amount::Fixed105)));
        cells.push(Cell { loss: 10, ..fixed(Amount::Fixed103) });
        cells.extend(one_at_a_time(fixed(Amount::Fixed110)).into_iter().filter(|cell| cell.loss != 10));
    }
    cells
}

fn one_at_a_time(base: Cell) -> Vec<Cell> {
    let mut cells = vec![base];
    cells.extend([0, 10, 100].map(|loss| Cell { loss, ..base }));
    cells.extend([50, 200].map(|rtt_ms| Cell { rtt_ms, ..base }));
    cells.extend([10, 1000].map(|rate_mbps| Cell { rate_mbps, ..base }));
    cells
}

fn beyond() -> Vec<Cell> {
    let mut cells = Vec::new();
    for base in cross(&[Workload::NonStreaming, Workload::Typing, Workload::Mixed]) {
        cells.extend([50, 100, 200, 300, 500].map(|loss| Cell { loss, ..base }));
        let bursts = LossModel::ALL.into_iter().filter(|model| *model != LossModel::Independent);
        cells.extend(bursts.flat_map(|loss_model| [100, 200].map(|loss| Cell { loss, loss_model, ..base })));
    }
    let traces = [Workload::TraceTerminal, Workload::TraceScroll, Workload::TraceWindows];
    for base in cross(&traces) {
        cells.extend([100, 300].map(|loss| Cell { loss, rate_mbps: 20, ..base }));
        cells.push(Cell { loss: 100, loss_model: LossModel::Burst5Ms, rate_mbps: 20, ..base });
    }
    cells
}

/// Typing and busy windows at round trips of 20 to 200 ms with 1 % of loss in each manner; singles also of 3 %, bad
/// times also of 2 and 5 %. At 100 ms every trouble too: by itself, with single losses, and with bad times; and both
/// windows beside each other.
fn bursts() -> Vec<Cell> {
    let repaired = Delivery::Repaired(Amount::Adaptive);
    let mut cells = Vec::new();
    for workload in [Workload::Typing, Workload::Busy, Workload::InPlace] {
        for delivery in [Delivery::Partial, repaired] {
            let base = Cell { rate_mbps: 20, ..Cell::baseline(workload, delivery, Controller::Copa) };
            cells.push(Cell { loss: 0, ..base });
            for rtt_ms in [20, 50, 100, 200] {
                cells.extend(manners().map(|(loss_model, loss)| Cell { loss_model, loss, rtt_ms, ..base }));
            }
            for trouble in Trouble::ALL.into_iter().filter(|trouble| *trouble != Trouble::None) {
                let losses =
                    [(LossModel::Independent, 0), (LossModel::Independent, 100), (LossModel::Burst5Ms, 100)];
                cells.extend(losses.map(|(loss_model, loss)| Cell { loss_model, loss, trouble, ..base }));
            }
        }
    }
    for delivery in [Delivery::Partial, repaired] {
        let base = Cell::baseline(Workload::TypingBesideBusy, delivery, Controller::Copa);
        cells.push(Cell { loss: 0, rate_mbps: 20, ..base });
        cells.extend(manners().map(|(loss_model, loss)| Cell { loss_model, loss, rate_mbps: 20, ..base }));
    }
    cells
}

/// The same typing and busy window, to a page with and without repair, and natively.
fn pages() -> Vec<Cell> {
    let (page, with) = (Delivery::Page { repaired: false }, Delivery::Page { repaired: true });
    let native = Delivery::Repaired(Amount::Adaptive);
    let mut cells = Vec::new();
    for workload in [Workload::Typing, Workload::Busy] {
        for delivery in [page, with, native] {
            let base = Cell { rate_mbps: 20, ..Cell::baseline(workload, delivery, Controller::Copa) };
            cells.extend([0, 100, 300].map(|loss| Cell { loss, ..base }));
            let manners = [(LossModel::Gilbert2, 100), (LossModel::Burst5Ms, 100), (LossModel::Elliott, 195)];
            cells.extend(manners.map(|(loss_model, loss)| Cell { loss_model, loss, ..base }));
        }
    }
    cells
}

/// How a link loses, and how many hundredths of a percent.
fn manners() -> impl Iterator<Item = (LossModel, u32)> {
    let times = [LossModel::Burst5Ms, LossModel::Burst20Ms].map(|model| [200, 500].map(|loss| (model, loss)));
    let one = |model| (model, if model == LossModel::Elliott { 195 } else { 100 });
    LossModel::ALL
        .into_iter()
        .map(one)
        .chain([(LossModel::Independent, 300)])
        .chain(times.into_iter().flatten())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_is_run_twice() {
        for grid in Grid::ALL {
            let cells = grid.cells();
            let unique: std::collections::BTreeSet<_> = cells.iter().collect();
            assert_eq!(unique.len(), cells.len(), "{grid:?}");
        }
    }
}
