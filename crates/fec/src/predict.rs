//! How many repair rows a block needs, given what is known of the loss.
//!
//! The losses of one block are taken as beta-binomial: each row is lost with one probability, which itself is known
//! only as well as the packets seen allow. With many packets seen this is the binomial; with few it asks for more rows.

/// What is known of the chance that a packet is lost: so many lost of so many, neither of them whole numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Evidence {
    /// Lost packets; more than 0.
    pub(crate) lost: f64,
    /// Packets; more than `lost`.
    pub(crate) packets: f64,
}

/// The smallest r ≤ `limit` with P\[more than r of k + r rows are lost\] ≤ [`RESIDUE`]; `limit` if there is none.
pub(crate) fn rows_needed(k: usize, limit: usize, evidence: Evidence) -> usize {
    let kept = evidence.packets - evidence.lost;
    let none_lost = |none: f64, sent: usize| none * (kept + sent as f64) / (evidence.packets + sent as f64);
    let mut none = (0..k).fold(1.0, none_lost);
    for repair in 0..limit {
        if more_lost(k + repair, repair, none, evidence) <= RESIDUE {
            return repair;
        }
        none = none_lost(none, k + repair);
    }
    limit
}

/// P\[more than `repair` of `sent` rows are lost\], given the chance that none is.
fn more_lost(sent: usize, repair: usize, none: f64, Evidence { lost, packets }: Evidence) -> f64 {
    let kept = packets - lost;
    let (mut exactly, mut sum) = (none, none);
    for count in 0..repair {
        let left = (sent - count) as f64;
        exactly *= left / (count + 1) as f64 * (lost + count as f64) / (kept + left - 1.0);
        sum += exactly;
    }
    1.0 - sum
}

/// The share of blocks that may lack a row in the end and wait for retransmission: half of what a 99.95th percentile
/// leaves.
pub(crate) const RESIDUE: f64 = 2.5e-4;

#[cfg(test)]
mod tests {
    use super::*;

    fn certain(loss: f64) -> Evidence {
        Evidence { lost: loss * 1e12, packets: 1e12 }
    }

    #[test]
    fn rows_for_a_known_loss() {
        let losses = [0.001, 0.005, 0.01, 0.02, 0.03, 0.05];
        let table = [
            (1, [1, 1, 1, 2, 2, 2]),
            (5, [1, 2, 2, 3, 3, 4]),
            (16, [1, 2, 3, 4, 5, 6]),
            (32, [2, 3, 4, 5, 6, 8]),
            (84, [2, 4, 6, 8, 10, 14]),
            (200, [3, 6, 9, 13, 17, 24]),
        ];
        for (k, rows) in table {
            assert_eq!(losses.map(|loss| rows_needed(k, 50, certain(loss))), rows, "k = {k}");
        }
    }

    #[test]
    fn less_evidence_asks_for_more_rows() {
        let rows = |packets: f64| rows_needed(72, 50, Evidence { lost: packets / 200.0, packets });
        assert_eq!(rows(1e12), 4);
        assert!(rows(2000.0) < rows(200.0));
        assert!(rows(1e12) <= rows(2000.0));
    }

    #[test]
    fn nothing_for_a_link_that_loses_nothing_and_the_limit_for_one_that_loses_all() {
        assert_eq!(rows_needed(72, 50, certain(1e-9)), 0);
        assert_eq!(rows_needed(72, 50, certain(0.9)), 50);
        assert_eq!(rows_needed(72, 0, certain(0.9)), 0);
    }
}
