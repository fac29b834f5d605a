//! A timeline as a picture: one row per surface, stage and thread (more where bars would hide each other), time from
//! left to right.
//!
//! Only numbers of ours get into the SVG, never text of a file. Invariant: the picture is bounded, and what does not
//! fit is counted.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::RangeInclusive;

use super::join::Bar;
use wayferry_host::trace::{Half, Stage, Subject};

/// A picture.
#[derive(Debug)]
pub(crate) struct Chart {
    pub(crate) svg: String,
    /// Bars for which there was no place.
    pub(crate) left_out: usize,
}

/// What a row shows: rows of a surface stand together, in the order in which an update goes through them.
type Key = (Subject, Stage, Half, u32);

/// Draws the bars, and of each what is in this time, in nanoseconds.
pub(crate) fn draw(bars: &[Bar], time: &RangeInclusive<u64>) -> Chart {
    let (rows, count) = rows(&bars[..bars.len().min(MAX_BARS)]);
    let placed: Vec<(&Bar, usize)> = rows.values().flat_map(|row| row.bars.iter().copied()).collect();
    let begin = placed.iter().map(|(bar, _)| bar.start).min().unwrap_or(0).max(*time.start());
    let end = placed.iter().map(|(bar, _)| bar.end).max().unwrap_or(begin).min(*time.end());
    let axis = Axis::new(begin, end.max(begin));
    let mut svg = String::new();
    // Writing to a string cannot fail.
    let _ = head(&mut svg, &axis, count)
        .and_then(|()| legend(&mut svg))
        .and_then(|()| grid(&mut svg, &axis, count))
        .and_then(|()| rows.iter().try_for_each(|(key, row)| label(&mut svg, &axis, key, row)))
        .and_then(|()| placed.iter().try_for_each(|(bar, row)| mark(&mut svg, &axis, bar, *row)))
        .and_then(|()| svg.write_str("</svg>\n"));
    Chart { svg, left_out: bars.len() - placed.len() }
}

/// Bars that stand together, in as many rows as it takes to keep them apart.
#[derive(Default)]
struct Row<'a> {
    first: usize,
    /// When each row is free again.
    free: Vec<u64>,
    bars: Vec<(&'a Bar, usize)>,
}

/// Gives every bar its row; the number of rows with it.
fn rows(bars: &[Bar]) -> (BTreeMap<Key, Row<'_>>, usize) {
    let mut rows: BTreeMap<Key, Row<'_>> = BTreeMap::new();
    for bar in bars {
        let row = rows.entry(key(bar)).or_default();
        let lane = row.free.iter().position(|free| *free <= bar.start);
        let lane = lane.unwrap_or_else(|| {
            if row.free.len() < MAX_LANES {
                row.free.push(0);
            }
            row.free.len() - 1
        });
        row.free[lane] = row.free[lane].max(bar.end);
        row.bars.push((bar, lane));
    }
    let mut count = 0;
    while rows.values().map(|row| row.free.len()).sum::<usize>() > MAX_ROWS {
        rows.pop_last();
    }
    for row in rows.values_mut() {
        row.first = count;
        count += row.free.len();
        row.bars.iter_mut().for_each(|(_, lane)| *lane += row.first);
    }
    (rows, count)
}

/// Time to x.
struct Axis {
    begin: u64,
    span: u64,
    width: f64,
}

impl Axis {
    fn new(begin: u64, end: u64) -> Self {
        let span = (end - begin).max(1);
        let width = (span as f64 / 1e6 * PIXELS_PER_MS).clamp(MIN_WIDTH, MAX_WIDTH);
        Self { begin, span, width }
    }

    fn x(&self, time: u64) -> f64 {
        MARGIN + time.saturating_sub(self.begin).min(self.span) as f64 / self.span as f64 * self.width
    }

    /// Between two lines of the grid: 1, 2 or 5 of some unit, about a hundred pixels apart.
    fn step(&self) -> u64 {
        let least = self.span as f64 / self.width * 100.0;
        let decades = (0..19).map(|power| 10u64.pow(power));
        let steps = decades.flat_map(|unit| [1, 2, 5].map(|digit: u64| digit.saturating_mul(unit)));
        steps.into_iter().find(|step| *step as f64 >= least).unwrap_or(u64::MAX)
    }
}

fn key(bar: &Bar) -> Key {
    (bar.subject, bar.stage, bar.half, bar.thread)
}

fn head(svg: &mut String, axis: &Axis, rows: usize) -> std::fmt::Result {
    let (width, height) = (MARGIN + axis.width + 20.0, top(rows) + 10.0);
    writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"sans-serif\" font-size=\"11\">"
    )?;
    writeln!(svg, "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>")
}

fn legend(svg: &mut String) -> std::fmt::Result {
    for (index, stage) in Stage::ALL.into_iter().enumerate() {
        let x = 10.0 + 90.0 * index as f64;
        writeln!(svg, "<rect x=\"{x:.0}\" y=\"10\" width=\"14\" height=\"12\" fill=\"{}\"/>", colour(stage))?;
        writeln!(svg, "<text x=\"{:.0}\" y=\"20\">{}</text>", x + 20.0, stage.name())?;
    }
    Ok(())
}

fn grid(svg: &mut String, axis: &Axis, rows: usize) -> std::fmt::Result {
    let step = axis.step();
    let mut next = axis.begin.checked_next_multiple_of(step);
    while let Some(time) = next.filter(|time| *time <= axis.begin.saturating_add(axis.span)) {
        next = time.checked_add(step);
        let x = axis.x(time);
        writeln!(
            svg,
            "<line x1=\"{x:.1}\" y1=\"{:.0}\" x2=\"{x:.1}\" y2=\"{:.0}\" stroke=\"#dddddd\"/>",
            TOP - 4.0,
            top(rows)
        )?;
        let shown = Time(time);
        writeln!(svg, "<text x=\"{x:.1}\" y=\"{:.0}\" text-anchor=\"middle\">{shown}</text>", TOP - 8.0)?;
    }
    Ok(())
}

fn label(svg: &mut String, axis: &Axis, key: &Key, row: &Row<'_>) -> std::fmt::Result {
    let (subject, stage, half, thread) = *key;
    let y = top(row.first);
    if matches!(stage, Stage::Encode | Stage::Wire | Stage::Decode) {
        let (width, height) = (MARGIN + axis.width, HEIGHT * row.free.len() as f64);
        writeln!(
            svg,
            "<rect x=\"0\" y=\"{y:.0}\" width=\"{width:.0}\" height=\"{height:.0}\" fill=\"#000000\" \
             fill-opacity=\"0.03\"/>"
        )?;
    }
    let whose = if stage == Stage::Wire { "link" } else { half.name() };
    write!(svg, "<text x=\"10\" y=\"{:.0}\">", y + 12.0)?;
    match subject {
        Subject::Sound => write!(svg, "sound")?,
        Subject::Surface { connection, surface } => {
            write!(svg, "program {connection} · surface {surface}")?;
        }
    }
    write!(svg, " · {whose} · {}", stage.name())?;
    if thread > 0 {
        write!(svg, " · thread {thread}")?;
    }
    writeln!(svg, "</text>")
}

fn mark(svg: &mut String, axis: &Axis, bar: &Bar, row: usize) -> std::fmt::Result {
    let (x, y) = (axis.x(bar.start), top(row) + 3.0);
    let width = (axis.x(bar.end) - x).max(LEAST_BAR);
    let (height, fill) = (HEIGHT - 6.0, colour(bar.stage));
    writeln!(
        svg,
        "<rect x=\"{x:.2}\" y=\"{y:.0}\" width=\"{width:.2}\" height=\"{height:.0}\" fill=\"{fill}\">\
         <title>{} of {} {}: {} at {}, {} bytes</title></rect>",
        bar.stage.name(),
        if bar.subject == Subject::Sound { "packet" } else { "update" },
        bar.seq,
        Time(bar.end - bar.start),
        Time(bar.start),
        bar.bytes
    )
}

/// Distinct to the colour-blind too.
fn colour(stage: Stage) -> &'static str {
    match stage {
        Stage::Capture => "#0072b2",
        Stage::Encode => "#e69f00",
        Stage::Queue => "#999999",
        Stage::Wire => "#56b4e9",
        Stage::Arrive => "#000000",
        Stage::Decode => "#cc79a7",
        Stage::Commit => "#009e73",
        Stage::Hear => "#d55e00",
    }
}

/// Upper edge of a row.
fn top(row: usize) -> f64 {
    TOP + HEIGHT * row as f64
}

/// Nanoseconds for people.
struct Time(u64);

impl std::fmt::Display for Time {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ns = self.0 as f64;
        match self.0 {
            // Microseconds are as fine as anything here is measured.
            0..1_000_000 => write!(f, "{} µs", (ns / 1e3).round()),
            1_000_000..1_000_000_000 => write!(f, "{} ms", (ns / 1e3).round() / 1e3),
            _ => write!(f, "{} s", (ns / 1e6).round() / 1e3),
        }
    }
}

/// Bars in one picture; browsers get slow beyond it.
const MAX_BARS: usize = 50_000;
/// Rows in one picture.
const MAX_ROWS: usize = 400;
/// Rows for bars of one kind that overlap; of more, some hide others.
const MAX_LANES: usize = 8;
/// Room for the labels.
const MARGIN: f64 = 270.0;
/// Where the rows begin.
const TOP: f64 = 56.0;
/// Height of a row.
const HEIGHT: f64 = 17.0;
/// A second is as wide as most screens; a frame of 60 Hz is 17 pixels of it.
const PIXELS_PER_MS: f64 = 1.0;
/// Widths between which the time axis stays.
const MIN_WIDTH: f64 = 900.0;
const MAX_WIDTH: f64 = 20_000.0;
/// What takes no time must be seen too.
const LEAST_BAR: f64 = 0.8;

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: RangeInclusive<u64> = 0..=u64::MAX;

    fn bar(stage: Stage, surface: u64, thread: u32, start: u64, end: u64) -> Bar {
        let subject = Subject::Surface { connection: 1, surface };
        Bar { stage, half: Half::App, thread, subject, seq: 9, start, end, bytes: 5 }
    }

    /// Whether every element is closed in its order.
    fn well_formed(svg: &str) -> bool {
        let mut open: Vec<&str> = Vec::new();
        let mut rest = svg;
        while let Some(at) = rest.find('<') {
            let Some(length) = rest[at..].find('>') else { return false };
            let tag = &rest[at + 1..at + length];
            rest = &rest[at + length + 1..];
            if let Some(closed) = tag.strip_prefix('/') {
                if open.pop() != Some(closed) {
                    return false;
                }
            } else if !tag.ends_with('/') {
                if tag.matches('"').count() % 2 == 1 {
                    return false;
                }
                open.push(tag.split(' ').next().unwrap_or(tag));
            }
        }
        open.is_empty() && !svg.contains('&') && !svg.contains("NaN") && !svg.contains("inf")
    }

    #[test]
    fn a_row_per_surface_stage_and_thread() {
        let bars = [
            bar(Stage::Encode, 24, 0, 1_000_000, 3_000_000),
            bar(Stage::Encode, 24, 1, 1_200_000, 2_000_000),
            bar(Stage::Encode, 24, 0, 20_000_000, 23_000_000),
            bar(Stage::Capture, 24, 0, 0, 900_000),
            bar(Stage::Capture, 24, 0, 500_000, 950_000),
            bar(Stage::Capture, 26, 0, 50_000_000, 50_000_000),
        ];
        let Chart { svg, left_out } = draw(&bars, &ALL);
        assert!(well_formed(&svg), "{svg}");
        assert_eq!(left_out, 0);
        let sound = [Bar { subject: Subject::Sound, ..bar(Stage::Hear, 0, 0, 0, 60_000_000) }];
        let heard = draw(&sound, &ALL).svg;
        assert!(heard.contains(">sound · app · hear</text>"), "{heard}");
        assert!(heard.contains("<title>hear of packet 9: 60 ms at 0 µs, 5 bytes</title>"), "{heard}");
        assert_eq!(svg.matches("program 1 · surface ").count(), 4);
        assert_eq!(svg.matches("<title>").count(), bars.len());
        // The two that overlap are in rows of their own: five rows for four kinds.
        assert!(svg.contains(&format!("height=\"{:.0}\" viewBox", top(5) + 10.0)), "{svg}");
        assert!(svg.contains("surface 24 · app · encode · thread 1"), "{svg}");
        assert!(svg.contains("<title>capture of update 9: 900 µs at 0 µs, 5 bytes</title>"), "{svg}");
        for stage in Stage::ALL {
            assert!(svg.contains(&format!(">{}</text>", stage.name())), "{stage:?} is in the legend");
        }
    }

    #[test]
    fn a_bar_is_cut_where_the_time_ends() {
        let bars = [bar(Stage::Wire, 1, 0, 0, 9_000_000_000)];
        let svg = draw(&bars, &(3_000_000_000..=4_000_000_000)).svg;
        assert!(svg.contains("<title>wire of update 9: 9 s at 0 µs"), "{svg}");
        let mark = format!("<rect x=\"{MARGIN:.2}\" y=\"{:.0}\" width=\"1000.00\"", top(0) + 3.0);
        assert!(svg.contains(&mark), "{svg}");
        for label in ["3 s", "3.5 s", "4 s"] {
            assert!(svg.contains(&format!(">{label}</text>")), "{label}: {svg}");
        }
    }

    #[test]
    fn nothing_is_a_picture_too() {
        let chart = draw(&[], &ALL);
        assert!(well_formed(&chart.svg) && chart.left_out == 0, "{}", chart.svg);
    }

    #[test]
    fn a_picture_is_bounded() {
        let many: Vec<Bar> =
            (0..60_000).map(|index| bar(Stage::Wire, index % 1000, 0, index, index + 1)).collect();
        let chart = draw(&many, &ALL);
        assert!(well_formed(&chart.svg));
        assert_eq!(chart.svg.matches("surface ").count(), MAX_ROWS);
        assert_eq!(chart.svg.matches("<title>").count() + chart.left_out, many.len());
        let far = [bar(Stage::Queue, 1, 0, 0, u64::MAX), bar(Stage::Queue, 1, 0, u64::MAX, u64::MAX)];
        let chart = draw(&far, &ALL);
        assert!(well_formed(&chart.svg) && chart.svg.len() < 100_000, "{}", chart.svg.len());
    }
}
