//! What is written of the figures: Markdown, a chart, and whether each target is reached.

use std::fmt::Write as _;
use std::path::Path;

use plotters::prelude::*;

use crate::stats::Samples;

/// A bound, and what was measured against it.
pub struct Goal {
    pub bound: Bound,
    pub measured: Samples,
}

#[derive(Clone, Copy)]
pub enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

impl Goal {
    pub fn at_most(bound: f64, measured: Samples) -> Self {
        Self { bound: Bound::AtMost(bound), measured }
    }

    pub fn at_least(bound: f64, measured: Samples) -> Self {
        Self { bound: Bound::AtLeast(bound), measured }
    }

    /// By how much the median misses the bound; 0 or less is reached.
    fn missed_by(&self) -> f64 {
        match self.bound {
            Bound::AtMost(bound) => self.measured.median() - bound,
            Bound::AtLeast(bound) => bound - self.measured.median(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    Reached,
    WithinNoise,
    Missed,
}

/// Reached if one of the goals is.
pub struct Target {
    pub what: &'static str,
    pub goals: Vec<Goal>,
}

impl Target {
    pub fn verdict(&self) -> Verdict {
        let verdicts =
            self.goals.iter().map(|goal| match (goal.missed_by(), goal.measured.spread()) {
                (by, noise) if by <= -noise => Verdict::Reached,
                (by, noise) if by <= noise => Verdict::WithinNoise,
                _ => Verdict::Missed,
            });
        verdicts.min_by_key(|verdict| *verdict as u8).expect("a target has a goal")
    }
}

/// A table, in the order in which its rows were measured.
pub struct Table {
    pub title: &'static str,
    pub text: String,
    pub header: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new(title: &'static str, text: impl Into<String>, header: &[&str]) -> Self {
        let header = header.iter().map(|&cell| cell.into()).collect();
        Self { title, text: text.into(), header, rows: vec![] }
    }

    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }
}

/// Median and spread.
pub fn cell(samples: &Samples, decimals: usize) -> String {
    format!("{:.decimals$} ± {:.decimals$}", samples.median(), samples.spread())
}

fn goal_cells(goal: &Goal) -> (String, String) {
    match goal.bound {
        Bound::AtMost(bound) if bound >= 100.0 => (format!("≤ {bound}"), cell(&goal.measured, 0)),
        Bound::AtMost(bound) => (format!("≤ {bound}"), cell(&goal.measured, 3)),
        Bound::AtLeast(bound) => (format!("≥ {bound}"), cell(&goal.measured, 3)),
    }
}

pub fn targets_table(targets: &[Target]) -> Table {
    let text = "± is the noise: half of the rounds lie within it. Where the bound does too, the target may be reached or missed.";
    let mut table = Table::new("Targets", text, &["figure", "to reach", "measured", ""]);
    for target in targets {
        let (bounds, measured): (Vec<_>, Vec<_>) = target.goals.iter().map(goal_cells).unzip();
        let verdict = match target.verdict() {
            Verdict::Reached => "reached",
            Verdict::WithinNoise => "within the noise of it",
            Verdict::Missed => "**missed**",
        };
        table.row([target.what.into(), bounds.join(" or "), measured.join(", "), verdict.into()]);
    }
    table
}

pub fn markdown(introduction: &str, tables: &[Table]) -> String {
    let mut page = introduction.to_string();
    for Table { title, text, header, rows } in tables {
        let _ = writeln!(page, "\n## {title}\n\n{text}\n");
        for cells in [header, &vec!["---".to_string(); header.len()]].into_iter().chain(rows) {
            let _ = writeln!(page, "| {} |", cells.join(" | "));
        }
    }
    page
}

/// What the chart shows.
pub struct Chart {
    /// Seconds, by generator.
    pub bars: Vec<(String, f64)>,
    /// A line's name, and IDs a millisecond by the number of clients.
    pub lines: Vec<(String, Vec<(u32, f64)>)>,
    /// IDs a millisecond that the format has room for.
    pub limit: f64,
}

/// Draws bars to the left, lines to the right.
pub fn draw(chart: &Chart, path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let root = SVGBackend::new(path, (1100, 420)).into_drawing_area();
    root.fill(&WHITE)?;
    let (left, right) = root.split_horizontally(560);
    draw_bars(&chart.bars, &left)?;
    draw_lines(&chart.lines, chart.limit, &right)?;
    root.present()?;
    Ok(())
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

fn draw_bars(bars: &[(String, f64)], area: &Area) -> Result<(), Box<dyn std::error::Error>> {
    let longest = bars.iter().map(|&(_, seconds)| seconds).fold(0.0, f64::max) * 1.1;
    let count = i32::try_from(bars.len())?;
    let mut chart = ChartBuilder::on(area)
        .caption("INSERT of 1,000,000 rows, seconds", ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(30)
        .y_label_area_size(210)
        .build_cartesian_2d(0.0..longest, (0..count - 1).into_segmented())?;
    let name = |y: &SegmentValue<i32>| match y {
        SegmentValue::CenterOf(n) => usize::try_from(*n)
            .ok()
            .and_then(|n| bars.iter().rev().nth(n))
            .map_or(String::new(), |bar| bar.0.clone()),
        _ => String::new(),
    };
    chart
        .configure_mesh()
        .disable_y_mesh()
        .light_line_style(TRANSPARENT)
        .y_labels(bars.len())
        .y_label_formatter(&name)
        .label_style(("sans-serif", 14))
        .draw()?;
    for (n, (name, seconds)) in (0..).zip(bars.iter().rev()) {
        let color = if name.starts_with("snowflake_nextval") {
            RGBColor(31, 119, 180)
        } else {
            RGBColor(170, 170, 170)
        };
        let corners = [(0.0, SegmentValue::Exact(n)), (*seconds, SegmentValue::Exact(n + 1))];
        let mut bar = Rectangle::new(corners, color.filled());
        bar.set_margin(5, 5, 0, 0);
        chart.draw_series([bar])?;
    }
    Ok(())
}

fn draw_lines(
    lines: &[(String, Vec<(u32, f64)>)],
    limit: f64,
    area: &Area,
) -> Result<(), Box<dyn std::error::Error>> {
    let points = || lines.iter().flat_map(|(_, points)| points);
    let highest = points().map(|&(_, rate)| rate).fold(limit, f64::max) * 1.4;
    // One step to the right doubles the clients.
    let step = |clients: u32| f64::from(clients).log2();
    let last = points().map(|&(clients, _)| step(clients)).fold(0.0, f64::max);
    let mut chart = ChartBuilder::on(area)
        .caption("IDs a millisecond of one sequence, by clients", ("sans-serif", 18))
        .margin(12)
        .x_label_area_size(30)
        .y_label_area_size(60)
        .build_cartesian_2d(0.0..last, 0.0..highest)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_labels(lines.first().map_or(0, |(_, points)| points.len()))
        .x_label_formatter(&|step| step.exp2().to_string())
        .y_label_formatter(&|rate| rate.to_string())
        .label_style(("sans-serif", 14))
        .draw()?;
    let format_limit = [(0.0, limit), (last, limit)];
    chart
        .draw_series(LineSeries::new(format_limit, BLACK.stroke_width(1)))?
        .label("the format's limit")
        .legend(|(x, y)| PathElement::new([(x, y), (x + 16, y)], BLACK));
    for (n, (name, points)) in lines.iter().enumerate() {
        let color = Palette99::pick(n).to_rgba();
        let points = points.iter().map(|&(clients, rate)| (step(clients), rate));
        chart
            .draw_series(LineSeries::new(points, color.stroke_width(2)))?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], color.stroke_width(2)));
    }
    chart
        .configure_series_labels()
        .label_font(("sans-serif", 14))
        .background_style(WHITE.mix(0.8))
        .position(SeriesLabelPosition::UpperRight)
        .draw()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(values: &[f64]) -> Samples {
        let mut samples = Samples::default();
        values.iter().for_each(|&value| samples.push(value));
        samples
    }

    fn verdict(goals: Vec<Goal>) -> Verdict {
        Target { what: "", goals }.verdict()
    }

    #[test]
    fn target_is_reached_or_missed_only_by_more_than_the_noise() {
        let noisy = samples(&[1.0, 1.1, 1.2]);
        let at_most = |bound| verdict(vec![Goal::at_most(bound, noisy.clone())]);
        assert_eq!(
            [1.25, 1.15, 1.05, 0.95].map(at_most),
            [Verdict::Reached, Verdict::WithinNoise, Verdict::WithinNoise, Verdict::Missed]
        );
        let at_least = |bound| verdict(vec![Goal::at_least(bound, noisy.clone())]);
        assert_eq!(
            [0.95, 1.05, 1.15, 1.25].map(at_least),
            [Verdict::Reached, Verdict::WithinNoise, Verdict::WithinNoise, Verdict::Missed]
        );
    }

    #[test]
    fn one_of_the_goals_is_enough() {
        let missed = || Goal::at_most(1.0, samples(&[2.0]));
        let reached = || Goal::at_least(0.98, samples(&[0.99]));
        assert_eq!(verdict(vec![missed(), reached()]), Verdict::Reached);
        assert_eq!(verdict(vec![missed(), missed()]), Verdict::Missed);
    }
}
