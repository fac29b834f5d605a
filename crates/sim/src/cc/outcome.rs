//! What was seen in a scenario, and what should have been.

use crate::stats::Samples;

/// What was seen; of several seeds, all of it.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// How long messages took.
    pub latency: Samples,
    /// How long packets waited in the bottleneck's queue.
    pub queue: Samples,
    /// Everything else, as (metric, value of each run).
    pub values: Vec<(Metric, Vec<f64>)>,
}

/// Something that a target can be about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Metric {
    /// Median time of a message in ms.
    LatencyP50,
    /// 99th percentile of it.
    LatencyP99,
    /// 99th percentile of the wait in the queue in ms.
    QueueP99,
    /// Messages that arrived in time to be counted, in percent.
    Delivered,
    /// Bulk bytes of all flows under test, in percent of what the link can carry.
    Goodput,
    /// The part of the flow under test beside its competitor, in percent.
    Share,
    /// The same in the first ten seconds.
    EarlyShare,
    /// Jain's index of fairness.
    Jain,
    /// Round trips until 90 % of the link was used for one of them.
    StartUp,
    /// Seconds until the queue stayed below 100 ms.
    Settling,
    /// Packets that found no room in the queue.
    Drops,
    /// Bytes of repair, in percent of the content's.
    Repair,
}

/// What a metric should be: `value` or better.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    /// Of what.
    pub metric: Metric,
    /// The limit.
    pub value: f64,
    /// The other limit, of a metric that has to lie between two.
    pub most: Option<f64>,
}

impl Outcome {
    /// Adds a value.
    pub fn set(&mut self, metric: Metric, value: f64) {
        self.values.push((metric, vec![value]));
    }

    /// Adds what another run saw.
    pub fn merge(&mut self, other: &Self) {
        self.latency.merge(&other.latency);
        self.queue.merge(&other.queue);
        for (metric, values) in &other.values {
            match self.values.iter_mut().find(|(known, _)| known == metric) {
                Some((_, all)) => all.extend(values),
                None => self.values.push((*metric, values.clone())),
            }
        }
    }

    /// A metric: percentiles of all runs together, else the mean of the runs; `None` if it was not measured.
    pub fn value(&self, metric: Metric) -> Option<f64> {
        match metric {
            Metric::LatencyP50 => self.latency.percentile(0.5),
            Metric::LatencyP99 => self.latency.percentile(0.99),
            Metric::QueueP99 => self.queue.percentile(0.99),
            _ => {
                let (_, values) = self.values.iter().find(|(known, _)| *known == metric)?;
                Some(values.iter().sum::<f64>() / values.len() as f64)
            }
        }
    }
}

impl Metric {
    /// All of them, in the order of tables.
    pub const ALL: [Self; 12] = [
        Self::LatencyP50,
        Self::LatencyP99,
        Self::QueueP99,
        Self::Delivered,
        Self::Goodput,
        Self::Share,
        Self::EarlyShare,
        Self::Jain,
        Self::StartUp,
        Self::Settling,
        Self::Drops,
        Self::Repair,
    ];

    /// As in tables and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::LatencyP50 => "latency-p50-ms",
            Self::LatencyP99 => "latency-p99-ms",
            Self::QueueP99 => "queue-p99-ms",
            Self::Delivered => "delivered-percent",
            Self::Goodput => "goodput-percent",
            Self::Share => "share-percent",
            Self::EarlyShare => "early-share-percent",
            Self::Jain => "jain",
            Self::StartUp => "start-up-rtts",
            Self::Settling => "settling-s",
            Self::Drops => "drops",
            Self::Repair => "repair-percent",
        }
    }

    /// Whether more of it is better.
    fn is_gain(self) -> bool {
        matches!(self, Self::Delivered | Self::Goodput | Self::Share | Self::EarlyShare | Self::Jain)
    }
}

impl Target {
    /// A limit: at least, of what there should be much of; else at most.
    pub(super) const fn of(metric: Metric, value: f64) -> Self {
        Self { metric, value, most: None }
    }

    /// Two limits.
    pub(super) const fn between(metric: Metric, least: f64, most: f64) -> Self {
        Self { metric, value: least, most: Some(most) }
    }

    /// Whether an outcome meets it; what was not measured does not.
    pub fn is_met(&self, outcome: &Outcome) -> bool {
        outcome.value(self.metric).is_some_and(|value| {
            let enough = if self.metric.is_gain() { value >= self.value } else { value <= self.value };
            enough && self.most.is_none_or(|most| value <= most)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_know_their_direction() {
        let mut outcome = Outcome::default();
        outcome.set(Metric::Goodput, 80.0);
        outcome.set(Metric::Drops, 3.0);
        assert!(Target::of(Metric::Goodput, 75.0).is_met(&outcome));
        assert!(!Target::of(Metric::Goodput, 85.0).is_met(&outcome));
        assert!(!Target::between(Metric::Goodput, 35.0, 65.0).is_met(&outcome));
        assert!(!Target::of(Metric::Drops, 0.0).is_met(&outcome));
        assert!(!Target::of(Metric::Jain, 0.9).is_met(&outcome), "not measured");
    }

    #[test]
    fn runs_are_averaged() {
        let (mut one, mut other) = (Outcome::default(), Outcome::default());
        one.set(Metric::Jain, 0.8);
        other.set(Metric::Jain, 1.0);
        one.merge(&other);
        assert_eq!(one.value(Metric::Jain), Some(0.9));
    }
}
