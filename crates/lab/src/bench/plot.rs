//! Cumulative distributions as one SVG: panels beside each other, a line for each series.
//!
//! The vertical axis is stretched towards the top, a decade for each nine, because what users notice is the tail. It
//! draws and decides nothing. Invariant: a series without samples has no line, but keeps its colour.

use plotters::coord::Shift;
use plotters::drawing::DrawingArea;
use plotters::prelude::{
    BindKeyPoints, ChartBuilder, Color, DrawingBackend, IntoDrawingArea, IntoFont, IntoLogRange, LineSeries,
    PathElement, RGBColor, SVGBackend, ShapeStyle, Text, WHITE,
};
use wayferry_sim::Samples;

/// One chart.
#[derive(Debug)]
pub(crate) struct Panel {
    pub(crate) title: String,
    /// Of the horizontal axis: a thousand of what [`Samples`] counts.
    pub(crate) unit: &'static str,
    /// Name and samples of each line.
    pub(crate) series: Vec<(String, Samples)>,
}

/// Draws the panels, `columns` in a row; those of a row have the same series, which are named at its end. `None` when
/// something cannot be drawn, of which there is no case.
pub(crate) fn draw(panels: &[Panel], columns: usize) -> Option<String> {
    let columns = columns.max(1);
    let rows = panels.len().div_ceil(columns).max(1);
    let width = WIDTH * columns as u32;
    let mut svg = String::new();
    {
        let size = (width + LEGEND, HEIGHT * rows as u32);
        let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        root.fill(&WHITE).ok()?;
        for (row, panels) in root.split_evenly((rows, 1)).iter().zip(panels.chunks(columns)) {
            let (charts, legend) = row.split_horizontally(width);
            for (area, panel) in charts.split_evenly((1, columns)).iter().zip(panels) {
                draw_panel(area, panel)?;
            }
            draw_legend(&legend, panels.first()?)?;
        }
        root.present().ok()?;
    }
    Some(svg)
}

/// The colour and the width of a series' line.
fn style(number: usize) -> ShapeStyle {
    COLORS[number % COLORS.len()].stroke_width(if number < COLORS.len() { 2 } else { 1 })
}

fn draw_legend<B: DrawingBackend>(area: &DrawingArea<B, Shift>, panel: &Panel) -> Option<()> {
    for (number, (name, _)) in panel.series.iter().enumerate() {
        let y = 40 + 17 * number as i32;
        area.draw(&PathElement::new(vec![(6, y), (24, y)], style(number))).ok()?;
        area.draw(&Text::new(name.as_str(), (30, y - 6), ("sans-serif", 12).into_font())).ok()?;
    }
    Some(())
}

fn draw_panel<B: DrawingBackend>(area: &DrawingArea<B, Shift>, panel: &Panel) -> Option<()> {
    let bound = |share| panel.series.iter().filter_map(move |(_, samples)| samples.percentile(share));
    let longest = bound(1.0).fold(1.0, f64::max);
    let shortest = bound(0.0).fold(longest, f64::min).max(SHORTEST);
    let (least, most) = (shortest * 0.9, longest * 1.1);
    let mut chart = ChartBuilder::on(area)
        .caption(&panel.title, ("sans-serif", 14).into_font())
        .margin(6)
        .x_label_area_size(28)
        .y_label_area_size(46)
        .build_cartesian_2d((least..most).log_scale().with_key_points(round_values(least, most)), 0.0..NINES)
        .ok()?;
    chart
        .configure_mesh()
        .x_desc(panel.unit)
        .x_label_formatter(&|value| format!("{value}"))
        .y_labels(5)
        .y_label_formatter(&|nines| percent(*nines))
        .light_line_style(WHITE)
        .draw()
        .ok()?;
    for (number, (_, samples)) in panel.series.iter().enumerate().filter(|(_, (_, all))| !all.is_empty()) {
        chart.draw_series(LineSeries::new(points(samples), style(number))).ok()?;
    }
    Some(())
}

/// The line of a distribution: at each of these heights, the value that it reaches.
fn points(samples: &Samples) -> Vec<(f64, f64)> {
    let steps = (0..=POINTS).map(|step| NINES * f64::from(step) / f64::from(POINTS));
    let known = steps.take_while(|nines| 0.1_f64.powf(*nines) * samples.len() as f64 >= 1.0 || *nines == 0.0);
    known
        .filter_map(|nines| Some((samples.percentile(1.0 - 0.1_f64.powf(nines))?.max(SHORTEST), nines)))
        .collect()
}

/// What a logarithmic axis between these is labelled with: 1, 2 and 5 of each decade, 1 alone where there are many
/// decades; the multiples of such a number where the axis is shorter than that.
fn round_values(least: f64, most: f64) -> Vec<f64> {
    let decades = least.log10().floor() as i32..=most.log10().ceil() as i32;
    let of = |digits: &[f64]| -> Vec<f64> {
        let all = decades.clone().flat_map(|power| digits.iter().map(move |digit| scaled(*digit, power)));
        all.filter(|value| (least..=most).contains(value)).collect()
    };
    let values = [of(&[1.0, 2.0, 5.0]), of(&[1.0])].into_iter().find(|values| values.len() <= LABELS);
    match values.unwrap_or_default() {
        few if few.len() < 3 => multiples(least, most),
        values => values,
    }
}

/// The multiples of 1, 2 or 5 of a decade between these, five at most.
fn multiples(least: f64, most: f64) -> Vec<f64> {
    let power = ((most - least) / 5.0).log10().floor() as i32;
    let mut steps = [1, 2, 5, 10].into_iter().map(|digit| {
        let step = scaled(f64::from(digit), power);
        ((least / step).ceil() as i64..=(most / step).floor() as i64, digit)
    });
    let Some((range, digit)) = steps.find(|(range, _)| range.clone().count() <= 5) else { return Vec::new() };
    range.map(|number| scaled((number * i64::from(digit)) as f64, power)).collect()
}

/// This many times a power of ten, as it would be written.
fn scaled(number: f64, power: i32) -> f64 {
    if power < 0 { number / 10_f64.powi(-power) } else { number * 10_f64.powi(power) }
}

fn percent(nines: f64) -> String {
    let share = 100.0 * (1.0 - 0.1_f64.powf(nines));
    format!("{share:.*} %", if nines > 1.5 { (nines - 1.5) as usize } else { 0 })
}

const WIDTH: u32 = 440;
const HEIGHT: u32 = 300;

/// Where the names are.
const LEGEND: u32 = 230;

/// The least left end of the horizontal axis in its unit; what is less is drawn there.
const SHORTEST: f64 = 0.1;

/// The top of the vertical axis: 99.99 %.
const NINES: f64 = 4.0;

/// Labels for which a horizontal axis has room.
const LABELS: usize = 11;

/// Points of a line.
const POINTS: u32 = 80;

const COLORS: [RGBColor; 10] = [
    RGBColor(31, 119, 180),
    RGBColor(255, 127, 14),
    RGBColor(44, 160, 44),
    RGBColor(214, 39, 40),
    RGBColor(148, 103, 189),
    RGBColor(140, 86, 75),
    RGBColor(227, 119, 194),
    RGBColor(127, 127, 127),
    RGBColor(188, 189, 34),
    RGBColor(23, 190, 207),
];

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn panel(samples: Samples) -> Panel {
        Panel { title: "response <ms>".into(), unit: "kB", series: vec![("partial".into(), samples)] }
    }

    #[test]
    fn panels_become_a_picture() {
        let samples: Samples = (1..1000).map(Duration::from_millis).collect();
        let svg = draw(&[panel(samples), panel(Samples::default())], 2).unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{svg}");
        assert!(svg.contains("response &lt;ms&gt;"));
        assert_eq!(svg.matches("99.9 %").count(), 2);
        assert!(svg.contains("kB"));
    }

    #[test]
    fn axes_have_round_labels() {
        assert_eq!(round_values(0.9, 220.0), [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0]);
        assert_eq!(round_values(0.09, 11_000.0), [0.1, 1.0, 10.0, 100.0, 1000.0, 10_000.0]);
        assert_eq!(round_values(0.27, 2.2), [0.5, 1.0, 2.0]);
        assert_eq!(round_values(110.0, 190.0), [120.0, 140.0, 160.0, 180.0]);
        assert_eq!(round_values(0.31, 0.55), [0.35, 0.4, 0.45, 0.5, 0.55]);
        let samples: Samples = (1..1000).map(Duration::from_millis).collect();
        let svg = draw(&[panel(samples)], 1).unwrap();
        let labels: Vec<&str> = svg.lines().map(str::trim).collect();
        for label in ["1", "10", "500", "1000", "0 %", "90 %", "99 %", "99.9 %", "99.99 %"] {
            assert!(labels.contains(&label), "{label} is missing: {svg}");
        }
    }

    #[test]
    fn a_line_ends_where_its_samples_do() {
        let samples: Samples = (1..=100).map(Duration::from_millis).collect();
        let points = points(&samples);
        assert_eq!(points.first(), Some(&(1.0, 0.0)));
        assert_eq!(points.last(), Some(&(99.0, 2.0)));
    }
}
