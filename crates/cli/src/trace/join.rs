//! Rows of one or two traces as bars on one time axis.
//!
//! The first trace's clock is kept; the other's times are mapped by what the sessions knew of each other's clocks,
//! which drift, so the row nearest in time counts. Invariant: bars begin at 0 or later and end no earlier than they
//! begin.

use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;

use wayferry_host::trace::read::Trace;
use wayferry_host::trace::{ClockRow, Half, Row, Stage, Subject};

/// A piece of work on the common axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bar {
    pub(crate) stage: Stage,
    pub(crate) half: Half,
    pub(crate) thread: u32,
    pub(crate) subject: Subject,
    pub(crate) seq: u64,
    /// Nanoseconds since the first bar's begin, as `end`.
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) bytes: u64,
}

/// All bars, by their begin.
#[derive(Debug)]
pub(super) struct Joined {
    bars: Vec<Bar>,
}

impl Joined {
    /// The bars that are under way in this time, which is in nanoseconds.
    pub(super) fn cut(&self, time: &RangeInclusive<u64>) -> Vec<Bar> {
        self.bars.iter().filter(|bar| bar.end >= *time.start() && bar.start <= *time.end()).copied().collect()
    }

    /// The second at whose end that is over which took longest from its first bar to its last. Sound, which waits
    /// for its turn by design, counts only where there are no updates.
    pub(super) fn worst_second(&self) -> RangeInclusive<u64> {
        let mut spans: HashMap<(Subject, u64), (u64, u64)> = HashMap::new();
        for bar in &self.bars {
            let span = spans.entry((bar.subject, bar.seq)).or_insert((bar.start, bar.end));
            *span = (span.0.min(bar.start), span.1.max(bar.end));
        }
        let worst = spans.into_iter().max_by_key(|((subject, seq), (start, end))| {
            (*subject != Subject::Sound, end - start, *end, *seq)
        });
        let (start, end) = worst.map_or((0, 0), |(_, span)| span);
        // All of it with the same before and after, or as much of its end as there is room for.
        let around = SECOND.saturating_sub(end - start) / 2;
        let to = end.saturating_add(around).max(SECOND);
        to - SECOND..=to
    }
}

/// Puts one or two traces on one axis.
///
/// # Errors
/// Why they do not go together.
pub(super) fn join(traces: Vec<Trace>) -> Result<Joined, &'static str> {
    let mut traces = traces.into_iter();
    let first = traces.next().ok_or("no trace given")?;
    let mut rows: Vec<(i128, i128, Row)> =
        first.rows.iter().map(|row| (row.start.into(), row.end.into(), *row)).collect();
    if let Some(second) = traces.next() {
        if first.half.is_none() || second.half.is_none() || first.half == second.half {
            return Err("two traces go together when one is of the app side and one of the display side");
        }
        let offsets = Offsets::new(&first.clocks, &second.clocks)
            .ok_or("neither trace tells the offset between the two clocks")?;
        rows.extend(second.rows.iter().map(|row| (offsets.map(row.start), offsets.map(row.end), *row)));
    }
    if traces.next().is_some() {
        return Err("a session has two sides");
    }
    let wires = wires(&rows);
    let shown: HashSet<_> = wires.iter().map(|(.., row)| key(row)).collect();
    rows.retain(|(.., row)| row.stage != Stage::Arrive || !shown.contains(&key(row)));
    rows.extend(wires);
    let zero = rows.iter().map(|(start, ..)| *start).min().unwrap_or(0);
    let mut bars: Vec<Bar> = rows.iter().map(|row| bar(row, zero)).collect();
    bars.sort_by_key(|bar| (bar.start, bar.end));
    Ok(Joined { bars })
}

/// In nanoseconds.
const SECOND: u64 = 1_000_000_000;

/// How to map the second trace's clock to the first one's.
struct Offsets {
    /// When by the second clock, and what to subtract from it.
    samples: Vec<(u64, i128)>,
}

impl Offsets {
    fn new(first: &[ClockRow], second: &[ClockRow]) -> Option<Self> {
        let doubt = |rows: &[ClockRow]| rows.iter().map(|row| row.doubt).min().unwrap_or(u64::MAX);
        let theirs = |row: &ClockRow| (row.at, -i128::from(row.offset));
        let ours = |row: &ClockRow| {
            let at = i128::from(row.at) + i128::from(row.offset);
            (u64::try_from(at.max(0)).unwrap_or(u64::MAX), i128::from(row.offset))
        };
        let mut samples: Vec<(u64, i128)> = if second.is_empty() || doubt(first) < doubt(second) {
            first.iter().map(ours).collect()
        } else {
            second.iter().map(theirs).collect()
        };
        samples.sort_unstable();
        (!samples.is_empty()).then_some(Self { samples })
    }

    fn map(&self, time: u64) -> i128 {
        let next = self.samples.partition_point(|(at, _)| *at < time);
        let near = self.samples[next.saturating_sub(1)..].iter().take(2);
        let offset = near.min_by_key(|(at, _)| at.abs_diff(time)).map_or(0, |(_, offset)| *offset);
        i128::from(time) - offset
    }
}

/// The update or packet that a row is about.
fn key(row: &Row) -> (Subject, u64) {
    (row.subject, row.seq)
}

/// What neither side can know alone: how long an update was on its way. It ends with the arrival, so it stands for it.
fn wires(rows: &[(i128, i128, Row)]) -> Vec<(i128, i128, Row)> {
    let left: HashMap<_, i128> = rows
        .iter()
        .filter(|(.., row)| row.stage == last_before(row.subject))
        .map(|(_, end, row)| (key(row), *end))
        .collect();
    let mut known = HashSet::new();
    // A packet of sound may arrive several times; the first counts.
    let arrived = rows.iter().filter(|(.., row)| row.stage == Stage::Arrive && known.insert(key(row)));
    arrived
        .filter_map(|(at, _, row)| {
            let start = left.get(&key(row))?;
            // The clocks may be wrong by a little more than a short way takes.
            Some((*start.min(at), *at, Row { stage: Stage::Wire, ..*row }))
        })
        .collect()
}

/// What ends when the first byte leaves. Sound waits for nothing else, and no carrier tells of a wait.
fn last_before(subject: Subject) -> Stage {
    match subject {
        Subject::Surface { .. } => Stage::Queue,
        Subject::Sound => Stage::Capture,
    }
}

fn bar((start, end, row): &(i128, i128, Row), zero: i128) -> Bar {
    let place = |time: &i128| u64::try_from(time - zero).unwrap_or(0);
    let Row { stage, half, thread, subject, seq, bytes, .. } = *row;
    let start = place(start);
    Bar { stage, half, thread, subject, seq, start, end: place(end).max(start), bytes }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn row(stage: Stage, half: Half, start: u64, end: u64) -> Row {
        let subject = Subject::Surface { connection: 1, surface: 2 };
        Row { stage, half, thread: 0, subject, seq: 3, start, end, bytes: 9 }
    }

    fn clock(half: Half, at: u64, offset: i64, doubt: u64) -> ClockRow {
        ClockRow { half, at, offset, doubt }
    }

    /// The display's clock is 100 s ahead; the update is 20 ms on its way.
    fn traces() -> (Trace, Trace) {
        let ahead = 100_000 * MS;
        let app = Trace {
            half: Some(Half::App),
            rows: vec![
                row(Stage::Encode, Half::App, 1_000 * MS, 1_005 * MS),
                row(Stage::Queue, Half::App, 1_005 * MS, 1_010 * MS),
            ],
            clocks: vec![
                clock(Half::App, 900 * MS, ahead as i64, MS),
                clock(Half::App, 9_000 * MS, (ahead + 40 * MS) as i64, MS),
            ],
        };
        let arrive = row(Stage::Arrive, Half::Display, 1_030 * MS + ahead, 1_030 * MS + ahead);
        (app, Trace { half: Some(Half::Display), rows: vec![arrive], clocks: vec![] })
    }

    fn wire(joined: &Joined) -> Option<(u64, u64)> {
        let bar = joined.bars.iter().find(|bar| bar.stage == Stage::Wire)?;
        Some((bar.start, bar.end))
    }

    #[test]
    fn two_sides_make_a_wire_on_the_first_one_s_clock() {
        let (app, display) = traces();
        let joined = join(vec![app.clone(), display.clone()]).expect("they go together");
        assert_eq!(wire(&joined), Some((10 * MS, 30 * MS)));
        assert!(joined.bars.iter().all(|bar| bar.stage != Stage::Arrive), "the wire shows it");
        // Either order, and whichever side knows the clocks better.
        let joined = join(vec![display.clone(), app.clone()]).expect("they go together");
        assert_eq!(wire(&joined), Some((10 * MS, 30 * MS)));
        let better = clock(Half::Display, 101_000 * MS, -(100_001 * MS as i64), 0);
        let display = Trace { clocks: vec![better], ..display };
        let joined = join(vec![app, display]).expect("they go together");
        assert_eq!(wire(&joined), Some((10 * MS, 29 * MS)));
    }

    #[test]
    fn sound_is_on_its_way_from_its_capture_to_its_first_arrival() {
        let (mut app, mut display) = traces();
        let sound = |stage, half, start, end| Row { subject: Subject::Sound, ..row(stage, half, start, end) };
        app.rows = vec![sound(Stage::Capture, Half::App, 1_000 * MS, 1_010 * MS)];
        let arrivals = [1_030, 1_060].map(|at| at * MS + display.rows[0].start - 1_030 * MS);
        display.rows = arrivals.map(|at| sound(Stage::Arrive, Half::Display, at, at)).to_vec();
        let joined = join(vec![app, display]).expect("they go together");
        assert_eq!(wire(&joined), Some((10 * MS, 30 * MS)));
        assert_eq!(joined.bars.len(), 2, "{:?}", joined.bars);
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        let (app, display) = traces();
        let no_clock = Trace { clocks: vec![], ..app.clone() };
        assert!(join(vec![no_clock, display.clone()]).expect_err("no clock").contains("offset"));
        assert!(join(vec![app.clone(), app.clone()]).expect_err("twice").contains("one of the display side"));
        let both = Trace { half: None, ..display };
        assert!(join(vec![app, both]).is_err());
    }

    #[test]
    fn a_part_can_be_cut_out() {
        let (app, _) = traces();
        let stages = |from, to| {
            let bars = join(vec![traces().0]).expect("one").cut(&(from..=to));
            bars.iter().map(|bar| bar.stage).collect::<Vec<_>>()
        };
        assert_eq!(join(vec![app]).expect("one").bars.len(), 2);
        assert_eq!(stages(6 * MS, u64::MAX), [Stage::Queue]);
        assert_eq!(stages(0, 4 * MS), [Stage::Encode]);
        assert_eq!(stages(u64::MAX, u64::MAX), []);
    }

    #[test]
    fn the_worst_second_is_around_what_took_longest() {
        let worst = |rows: &[(Subject, u64, u64)]| {
            let rows = (0..).zip(rows).map(|(seq, (subject, start, end))| Row {
                subject: *subject,
                seq,
                ..row(Stage::Encode, Half::App, start * MS, end * MS)
            });
            let trace = Trace { half: Some(Half::App), rows: rows.collect(), clocks: vec![] };
            let worst = join(vec![trace]).expect("one").worst_second();
            (worst.start() / MS, worst.end() / MS)
        };
        let update = Subject::Surface { connection: 1, surface: 2 };
        assert_eq!(worst(&[]), (0, 1000));
        assert_eq!(worst(&[(update, 0, 9), (update, 5000, 5200), (update, 9000, 9010)]), (4600, 5600));
        assert_eq!(worst(&[(update, 0, 9), (update, 5000, 7000)]), (6000, 7000), "its end");
        assert_eq!(worst(&[(update, 0, 100)]), (0, 1000), "nothing is before the begin");
        assert_eq!(worst(&[(Subject::Sound, 3000, 3900), (update, 0, 100)]), (0, 1000));
        assert_eq!(worst(&[(Subject::Sound, 0, 10), (Subject::Sound, 3000, 3900)]), (2950, 3950));
    }

    #[test]
    fn hostile_times_stay_on_the_axis() {
        let rows = vec![
            row(Stage::Queue, Half::App, 0, u64::MAX),
            row(Stage::Encode, Half::App, u64::MAX, u64::MAX),
        ];
        let app = Trace {
            half: Some(Half::App),
            rows,
            clocks: vec![clock(Half::App, u64::MAX, i64::MIN, 0), clock(Half::App, 0, i64::MAX, 0)],
        };
        let rows = vec![row(Stage::Arrive, Half::Display, u64::MAX, u64::MAX)];
        let display = Trace { half: Some(Half::Display), rows, clocks: vec![] };
        let bars = join(vec![app, display]).expect("they go together").cut(&(0..=u64::MAX));
        assert!(bars.iter().all(|bar| bar.start <= bar.end), "{bars:?}");
    }
}
