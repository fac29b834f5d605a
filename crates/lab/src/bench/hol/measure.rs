//! Figures out of what arrived, and what they should be.

use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};

use super::mode::Mode;
use crate::bench::{round, share};
use crate::flags::LinkName;

/// A packet of sound that arrived, perhaps not for the first time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Packet {
    pub(super) arrived: Duration,
    pub(super) sequence: u32,
    pub(super) captured: Duration,
}

/// How packets of sound came.
#[derive(Debug, Clone, Default)]
pub(super) struct Arrivals {
    /// Between each and the next, in the order of their capture.
    pub(super) gaps: Vec<f64>,
    /// The difference of arrivals less that of captures, of each and the next.
    pub(super) jitter: Vec<Span>,
}

/// A duration with a sign, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Span(f64);

/// All that is known of a session.
#[derive(Debug, Clone)]
pub(super) struct Measured {
    pub(super) mode: Mode,
    pub(super) sound: Arrivals,
    /// From each key until it was seen.
    pub(super) keys: Vec<Duration>,
    /// Between pictures of what was typed, in milliseconds.
    pub(super) typed: Vec<f64>,
    /// How old each picture of content was when it was seen.
    pub(super) ages: Vec<Duration>,
    /// Between pictures of one window of content, in milliseconds.
    pub(super) pictures: Vec<f64>,
    /// Pictures of each window of content.
    pub(super) steps: Vec<usize>,
    /// That came down.
    pub(super) bytes: u64,
    /// Before content grew, and after it.
    pub(super) halves: [Half; 2],
}

/// What content should not touch.
#[derive(Debug, Clone, Default)]
pub(super) struct Half {
    pub(super) sound: Arrivals,
    pub(super) keys: Vec<Duration>,
}

impl Half {
    /// In milliseconds.
    fn late_key(&self) -> f64 {
        let keys: Vec<f64> = self.keys.iter().map(|key| key.as_secs_f64() * 1e3).collect();
        share(&keys, 0.99)
    }
}

impl Span {
    pub(super) fn unsigned_abs(self) -> Duration {
        Duration::from_secs_f64(self.0.abs() / 1e3)
    }
}

impl Arrivals {
    /// The first copy of each packet counts.
    pub(super) fn of(packets: &[Packet]) -> Self {
        let mut first: Vec<Packet> = packets.to_vec();
        first.sort_by_key(|packet| (packet.sequence, packet.arrived));
        first.dedup_by_key(|packet| packet.sequence);
        let pairs = || first.windows(2).map(|pair| (pair[0], pair[1]));
        let between = |a: Duration, b: Duration| (b.as_secs_f64() - a.as_secs_f64()) * 1e3;
        let jitter = pairs().map(|(a, b)| between(a.arrived, b.arrived) - between(a.captured, b.captured));
        let jitter = jitter.map(Span).collect();
        let mut arrived: Vec<Duration> = first.iter().map(|packet| packet.arrived).collect();
        arrived.sort_unstable();
        Self { gaps: Self::gaps(&arrived), jitter }
    }

    /// Between each time and the next, in milliseconds.
    pub(super) fn gaps(times: &[Duration]) -> Vec<f64> {
        times.windows(2).map(|pair| pair[1].saturating_sub(pair[0]).as_secs_f64() * 1e3).collect()
    }

    /// Standard deviation and maximum of the jitter, in milliseconds.
    fn spread(&self) -> (f64, f64) {
        let count = self.jitter.len().max(1) as f64;
        let mean = self.jitter.iter().map(|span| span.0).sum::<f64>() / count;
        let variance = self.jitter.iter().map(|span| (span.0 - mean).powi(2)).sum::<f64>() / count;
        (variance.sqrt(), self.jitter.iter().fold(0.0, |max: f64, span| max.max(span.0.abs())))
    }
}

/// A kind of message of a session.
pub(super) struct Row {
    link: LinkName,
    mode: Mode,
    kind: &'static str,
    gaps: Vec<f64>,
    jitter: Option<(f64, f64)>,
    /// From its making until it was seen, in milliseconds.
    delays: Vec<f64>,
    bytes_share: Option<f64>,
    pictures: Option<Vec<usize>>,
    /// Before content grew, and after it, in milliseconds: the standard deviation of sound's jitter, p99 of keys.
    step: Option<[f64; 2]>,
}

impl Row {
    /// All of one link.
    pub(super) fn all(link: LinkName, measured: &[Measured], parallel: bool) -> Vec<Self> {
        let total: u64 = measured.iter().map(|one| one.bytes).sum();
        let rows = measured.iter().flat_map(|one| {
            let share = parallel.then(|| one.bytes as f64 / total.max(1) as f64);
            let row = |kind, gaps: &[f64], delays: &[Duration]| Self {
                link,
                mode: one.mode,
                kind,
                gaps: gaps.to_vec(),
                jitter: None,
                delays: delays.iter().map(|delay| delay.as_secs_f64() * 1e3).collect(),
                bytes_share: share,
                pictures: None,
                step: None,
            };
            let step = |figure: fn(&Half) -> f64| Some([figure(&one.halves[0]), figure(&one.halves[1])]);
            let sound = row("sound", &one.sound.gaps, &[]);
            let content = row("content", &one.pictures, &one.ages);
            [
                Self { jitter: Some(one.sound.spread()), step: step(|half| half.sound.spread().0), ..sound },
                Self { step: step(Half::late_key), ..row("input", &one.typed, &one.keys) },
                Self { pictures: Some(one.steps.clone()), ..content },
            ]
        });
        rows.collect()
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "link": self.link.name(),
            "mode": self.mode.name(),
            "kind": self.kind,
            "inter_arrival_ms": distribution(&self.gaps),
            "sound_jitter_ms": self.jitter.map(|(stdev, max)| json!({ "stdev": round(stdev), "max": round(max) })),
            "delay_ms": (!self.delays.is_empty()).then(|| distribution(&self.delays)),
            "bytes_share": self.bytes_share.map(round),
            "pictures": self.pictures,
            "step_ms": self.step.map(|[before, after]| json!({ "before": round(before), "after": round(after) })),
        })
    }

    /// For people.
    pub(super) fn line(&self) -> String {
        let at = |values: &[f64], part| share(values, part);
        let mut line = format!(
            "{:<9} {:<9} {:<8} every {:>6.1} ms (p95 {:>6.1}, p99 {:>6.1}, max {:>7.1})",
            self.link.name(),
            self.mode.name(),
            self.kind,
            mean(&self.gaps),
            at(&self.gaps, 0.95),
            at(&self.gaps, 0.99),
            at(&self.gaps, 1.0),
        );
        if let Some((stdev, max)) = self.jitter {
            line += &format!("  jitter {stdev:>6.1} ms, max {max:>6.1}");
        }
        if !self.delays.is_empty() {
            let (p50, p99) = (at(&self.delays, 0.5), at(&self.delays, 0.99));
            line += &format!("  seen after {p50:>6.1} ms, p99 {p99:>7.1}");
        }
        if let Some([before, after]) = self.step {
            line += &format!("  as content grows {before:.1} -> {after:.1}");
        }
        if let Some(pictures) = &self.pictures {
            let counts: Vec<String> = pictures.iter().map(usize::to_string).collect();
            line += &format!("  {} pictures", counts.join(" + "));
        }
        if let Some(share) = self.bytes_share {
            line += &format!("  {:.0} % of all bytes", share * 100.0);
        }
        line
    }
}

/// What the three have to be, compared.
pub(super) struct Goals(Vec<Goal>);

/// One of them.
pub(super) struct Goal {
    what: String,
    value: f64,
    limit: f64,
    pub(super) met: bool,
}

impl Goals {
    /// Of a link on which all three were measured.
    pub(super) fn of(link: LinkName, measured: &[Measured]) -> Self {
        let spread = |mode| measured.iter().find(|one| one.mode == mode).map(|one| one.sound.spread());
        let all = (spread(Mode::Tcp), spread(Mode::QuicOne), spread(Mode::QuicMany));
        let (Some(tcp), Some(one), Some(many)) = all else { return Self(Vec::new()) };
        let at_most =
            |what: &str, value: f64, limit| Goal { what: what.into(), value, limit, met: value <= limit };
        let at_least =
            |what: &str, value: f64, limit| Goal { what: what.into(), value, limit, met: value >= limit };
        let times = |other: f64| other / many.0.max(0.001);
        let halves = measured.iter().find(|one| one.mode == Mode::QuicMany).map(|one| &one.halves);
        let late = halves.map_or(0.0, |[before, after]| after.late_key() - before.late_key());
        let after = halves.map_or(0.0, |[_, after]| after.sound.spread().0);
        Self(match link {
            LinkName::Cellular => vec![
                at_most("sound's jitter, standard deviation in ms", many.0, 10.0),
                at_most("sound's jitter, maximum in ms", many.1, 100.0),
                at_least("times better than TCP", times(tcp.0), 6.0),
                at_least("times better than one stream", times(one.0), 8.0),
                at_most("sound's jitter once content has grown, in ms", after, 10.0),
                at_most("more that p99 of keys is then, in ms", late, FRAME_MS),
            ],
            LinkName::Wifi => vec![at_most("sound's jitter, standard deviation in ms", many.0, 10.0)],
            LinkName::Lan => vec![at_most(
                "most that two differ in sound's jitter, in ms",
                [tcp.0, one.0, many.0].iter().fold(0.0, |most: f64, a| most.max((a - many.0).abs())),
                5.0,
            )],
        })
    }

    pub(super) fn lines(self) -> Vec<Goal> {
        self.0
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.met { "meets" } else { "MISSES" };
        write!(f, "  {:<50} {:>8.2}  {word} {}", self.what, self.value, self.limit)
    }
}

/// Keys are seen when a picture is, at 60 Hz.
const FRAME_MS: f64 = 17.0;

fn distribution(values: &[f64]) -> Value {
    let at = |part| round(share(values, part));
    json!({ "mean": round(mean(values)), "p50": at(0.5), "p95": at(0.95), "p99": at(0.99), "max": at(1.0) })
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(sequence: u32, captured: u64, arrived: u64) -> Packet {
        let (captured, arrived) = (Duration::from_millis(captured), Duration::from_millis(arrived));
        Packet { arrived, sequence, captured }
    }

    #[test]
    fn packets_that_come_as_they_were_captured_have_no_jitter() {
        let arrivals = Arrivals::of(&[packet(0, 0, 50), packet(1, 20, 70), packet(2, 40, 90)]);
        assert_eq!(arrivals.gaps, [20.0, 20.0]);
        assert!(arrivals.spread().1 < 1e-9, "{:?}", arrivals.spread());
    }

    #[test]
    fn the_first_copy_counts_and_a_stall_is_seen() {
        let packets =
            [packet(0, 0, 50), packet(1, 20, 170), packet(2, 40, 171), packet(1, 20, 90), packet(3, 60, 172)];
        let arrivals = Arrivals::of(&packets);
        let jitter: Vec<f64> = arrivals.jitter.iter().map(|span| span.0.round()).collect();
        assert_eq!(jitter, [20.0, 61.0, -19.0]);
        assert_eq!(arrivals.spread().1.round(), 61.0);
    }

    fn measured(mode: Mode, stall: u64) -> Measured {
        let packets: Vec<Packet> = (0..100)
            .map(|at| {
                packet(at, u64::from(at) * 20, u64::from(at) * 20 + if at % 10 == 0 { stall } else { 0 })
            })
            .collect();
        Measured {
            mode,
            sound: Arrivals::of(&packets),
            keys: vec![Duration::from_millis(5)],
            typed: vec![97.0],
            ages: Vec::new(),
            pictures: vec![16.0],
            steps: vec![7, 8],
            bytes: 100,
            halves: [0, stall].map(|late| Half {
                sound: Arrivals::of(&packets),
                keys: vec![Duration::from_millis(5 + late)],
            }),
        }
    }

    #[test]
    fn goals_are_met_from_the_right_side() {
        let met = |tcp, one, many| {
            let all = [(Mode::Tcp, tcp), (Mode::QuicOne, one), (Mode::QuicMany, many)];
            let all = all.map(|(mode, stall)| measured(mode, stall));
            Goals::of(LinkName::Cellular, &all).lines().iter().map(|goal| goal.met).collect::<Vec<_>>()
        };
        assert_eq!(met(700, 900, 10), [true; 6]);
        assert_eq!(met(700, 900, 200), [false; 6]);
        assert_eq!(met(50, 900, 10), [true, true, false, true, true, true]);
    }

    #[test]
    fn a_row_has_the_fields_of_the_format() {
        let rows = Row::all(LinkName::Wifi, &[measured(Mode::Tcp, 7)], true);
        let kinds: Vec<Value> = rows.iter().map(|row| row.json()["kind"].clone()).collect();
        assert_eq!(kinds, ["sound", "input", "content"]);
        let json = rows[0].json();
        assert_eq!(
            (&json["link"], &json["mode"], &json["bytes_share"]),
            (&json!("wifi"), &json!("tcp"), &json!(1.0))
        );
        assert_eq!(rows[1].json()["step_ms"], json!({ "before": 5.0, "after": 12.0 }));
        assert!(json["sound_jitter_ms"]["stdev"].is_number() && json["inter_arrival_ms"]["p99"].is_number());
    }
}
