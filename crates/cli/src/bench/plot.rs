//! Cumulative distributions as one SVG: panels beside each other, a line for each series.
//!
//! The vertical axis is stretched towards the top, a decade for each nine, because what users notice is the tail. It draws
//! and decides nothing. Invariant: a series without samples has no line, but keeps its colour.

use plotters::coord::Shift;
use plotters::drawing::DrawingArea;
use plotters::prelude::IntoLogRange;
use plotters::prelude::{
    BLACK, ChartBuilder, Color, DrawingBackend, IntoDrawingArea, IntoFont, LineSeries, PathElement, RGBColor,
    SVGBackend, SeriesLabelPosition, WHITE,
};
use wayferry_sim::Samples;

/// One chart.
#[derive(Debug)]
pub(crate) struct Panel {
    pub(crate) title: String,
    /// Name and samples of each line.
    pub(crate) series: Vec<(String, Samples)>,
}

/// Draws the panels, `columns` in a row; `None` when something cannot be drawn, of which there is no case.
pub(crate) fn draw(panels: &[Panel], columns: usize) -> Option<String> {
    let columns = columns.max(1);
    let rows = panels.len().div_ceil(columns).max(1);
    let mut svg = String::new();
    {
        let size = (WIDTH * columns as u32, HEIGHT * rows as u32);
        let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        root.fill(&WHITE).ok()?;
        for (area, panel) in root.split_evenly((rows, columns)).iter().zip(panels) {
            draw_panel(area, panel)?;
        }
        root.present().ok()?;
    }
    Some(svg)
}

fn draw_panel<B: DrawingBackend>(area: &DrawingArea<B, Shift>, panel: &Panel) -> Option<()> {
    let longest = panel.series.iter().filter_map(|(_, samples)| samples.percentile(1.0)).fold(1.0, f64::max);
    let mut chart = ChartBuilder::on(area)
        .caption(&panel.title, ("sans-serif", 14).into_font())
        .margin(6)
        .x_label_area_size(28)
        .y_label_area_size(46)
        .build_cartesian_2d((SHORTEST..longest * 1.1).log_scale(), 0.0..NINES)
        .ok()?;
    chart
        .configure_mesh()
        .x_desc("ms")
        .x_label_formatter(&|value| format!("{value}"))
        .y_labels(5)
        .y_label_formatter(&|nines| percent(*nines))
        .light_line_style(WHITE)
        .draw()
        .ok()?;
    for (number, (name, samples)) in panel.series.iter().enumerate().filter(|(_, (_, all))| !all.is_empty()) {
        let color = COLORS[number % COLORS.len()];
        let line =
            LineSeries::new(points(samples), color.stroke_width(if number < COLORS.len() { 2 } else { 1 }));
        let legend = move |(x, y)| PathElement::new(vec![(x, y), (x + 14, y)], color.stroke_width(2));
        chart.draw_series(line).ok()?.label(name).legend(legend);
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.3))
        .label_font(("sans-serif", 11))
        .draw()
        .ok()
}

/// The line of a distribution: at each of these heights, the value that it reaches.
fn points(samples: &Samples) -> Vec<(f64, f64)> {
    let steps = (0..=POINTS).map(|step| NINES * f64::from(step) / f64::from(POINTS));
    let known = steps.take_while(|nines| 0.1_f64.powf(*nines) * samples.len() as f64 >= 1.0 || *nines == 0.0);
    known
        .filter_map(|nines| Some((samples.percentile(1.0 - 0.1_f64.powf(nines))?.max(SHORTEST), nines)))
        .collect()
}

fn percent(nines: f64) -> String {
    let share = 100.0 * (1.0 - 0.1_f64.powf(nines));
    format!("{share:.*} %", if nines > 1.5 { (nines - 1.5) as usize } else { 0 })
}

const WIDTH: u32 = 440;
const HEIGHT: u32 = 300;

/// The left end of the horizontal axis in milliseconds; shorter times are drawn there.
const SHORTEST: f64 = 0.1;

/// The top of the vertical axis: 99.99 %.
const NINES: f64 = 4.0;

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
        Panel { title: "response <ms>".into(), series: vec![("partial".into(), samples)] }
    }

    #[test]
    fn panels_become_a_picture() {
        let samples: Samples = (1..1000).map(Duration::from_millis).collect();
        let svg = draw(&[panel(samples), panel(Samples::default())], 2).unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{svg}");
        assert!(svg.contains("response &lt;ms&gt;"));
        assert_eq!(svg.matches("99.9 %").count(), 2);
    }

    #[test]
    fn a_line_ends_where_its_samples_do() {
        let samples: Samples = (1..=100).map(Duration::from_millis).collect();
        let points = points(&samples);
        assert_eq!(points.first(), Some(&(1.0, 0.0)));
        assert_eq!(points.last(), Some(&(99.0, 2.0)));
    }
}
