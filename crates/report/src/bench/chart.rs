//! The speed by number of threads as a picture (SVG): medians with their range, and the line of perfect scaling.

use crate::canvas::{Anchor, Area, Canvas};
use firsttouch_experiments::Statistics;
use firsttouch_experiments::bench::BenchResult;

/// Above it is room for the figure of a column of full height.
const PLOT: Area = Area { x: 70.0, y: 66.0, width: 520.0, height: 320.0 };
const MARGIN: f64 = 20.0;
const BLUE: &str = "#2b6cb0";
const GREY: &str = "#bbb";

/// One column per team: its height is the median speed, the bar in it the range of the repetitions.
#[must_use]
pub fn speed_chart(bench: &BenchResult) -> String {
    let is_points = bench.work.element == "point";
    let (unit, amount) = if is_points { ("MPoints/s", 1e-6) } else { ("GB/s", bench.work.bytes * 1e-9) };
    let speeds: Vec<(u32, Statistics)> = bench
        .teams
        .iter()
        .filter_map(|team| Some((team.threads, Statistics::rate(bench.work.elements * amount, &team.seconds)?)))
        .collect();
    let top = nice(speeds.iter().map(|(_, speed)| speed.max).fold(0.0, f64::max));
    let title = format!("{} {}: {unit} by number of threads", bench.kernel, bench.shape);
    let mut canvas = Canvas::default();
    canvas.text((MARGIN, 24.0), Anchor::Start, "big", &title);
    let below = format!("{} initialisation, schedule {}, {}", bench.init, bench.schedule, bench.form);
    canvas.text((MARGIN, 40.0), Anchor::Start, "faint", &below);
    let height = |value: f64| PLOT.y + PLOT.height * (1.0 - value / top);
    for tick in 0..=5u32 {
        let value = top * f64::from(tick) / 5.0;
        canvas.line((PLOT.x, height(value)), (PLOT.x + PLOT.width, height(value)), "#eee", 1.0);
        canvas.text((PLOT.x - 6.0, height(value) + 4.0), Anchor::End, "small", &label(value, top));
    }
    let step = PLOT.width / speeds.len().max(1) as f64;
    let mut before: Option<(f64, f64)> = None;
    let mut is_scaling_drawn = false;
    for (index, (threads, speed)) in speeds.iter().enumerate() {
        let x = PLOT.x + step * (index as f64 + 0.5);
        let ideal = speeds.first().map_or(0.0, |(first, speed)| speed.median * f64::from(*threads) / f64::from((*first).max(1)));
        // End the line before it leaves the drawing area.
        if let Some(before) = before.replace((x, height(ideal)))
            && ideal <= top
        {
            canvas.line(before, (x, height(ideal)), GREY, 1.0);
            is_scaling_drawn = true;
        }
        let y = height(speed.median);
        let column = Area { x: x - step * 0.25, y, width: step * 0.5, height: PLOT.y + PLOT.height - y };
        canvas.rectangle(column, "#bcd4ec", BLUE);
        if speed.max > speed.min {
            canvas.line((x, height(speed.min)), (x, height(speed.max)), BLUE, 2.0);
        }
        canvas.text((x, height(speed.max) - 6.0), Anchor::Middle, "", &label(speed.median, speed.median));
        canvas.text((x, PLOT.y + PLOT.height + 16.0), Anchor::Middle, "", &threads.to_string());
    }
    canvas.line((PLOT.x, PLOT.y + PLOT.height), (PLOT.x + PLOT.width, PLOT.y + PLOT.height), "#222", 1.0);
    canvas.text((PLOT.x + PLOT.width / 2.0, PLOT.y + PLOT.height + 34.0), Anchor::Middle, "", "threads");
    let note = caption(bench.teams.iter().map(|team| team.seconds.len()).max().unwrap_or(0), is_scaling_drawn);
    canvas.text((MARGIN, PLOT.y + PLOT.height + 54.0), Anchor::Start, "faint", &note);
    canvas.finish(&title, MARGIN)
}

/// What the columns, bars and lines are.
fn caption(repetitions: usize, is_scaling_drawn: bool) -> String {
    let columns = match repetitions {
        0 | 1 => "Columns: one repetition".to_owned(),
        _ => format!("Columns: median of {repetitions} repetitions, bars: least to most"),
    };
    columns + if is_scaling_drawn { "; grey: perfect scaling from the first column." } else { "." }
}

/// The end of an axis: the next larger of 1, 2, 2.5 or 5 times a power of ten.
pub fn nice(value: f64) -> f64 {
    if value <= 0.0 || !value.is_finite() {
        return 1.0;
    }
    let power = 10f64.powf(value.log10().floor());
    [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().map(|step| step * power).find(|end| *end >= value).unwrap_or(10.0 * power)
}

pub fn label(value: f64, top: f64) -> String {
    let digits = if top >= 50.0 {
        0
    } else if top >= 5.0 {
        1
    } else {
        2
    };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::{caption, nice, speed_chart};
    use firsttouch_experiments::bench::{BenchResult, KernelWork, TeamResult};

    /// Check that the figure of a column as high as the drawing lies below the words above it.
    #[test]
    fn full_columns_leave_room() {
        let team = TeamResult { threads: 1, seconds: vec![1.0], worst_error: 0.0, cpus: vec![0], page_nodes: Vec::new() };
        let [init, schedule, form] = ["parallel", "static", "AVX2"].map(str::to_owned);
        let drawn = speed_chart(&BenchResult {
            kernel: "triad".to_owned(),
            init,
            schedule,
            form,
            place: None,
            sizes: [].into(),
            shape: "1".to_owned(),
            bytes: 8,
            huge_pages: false,
            iterations: 1,
            cpus: 1,
            work: KernelWork {
                element: "element".to_owned(),
                elements: 1e9,
                bytes: 50.0,
                moved: 50.0,
                flops: 2.0,
                iteration: "iteration".to_owned(),
            },
            teams: vec![team],
        });
        let height = |words: &str| -> f64 {
            let line = drawn.lines().rfind(|line| line.contains(words)).unwrap();
            line.split("y=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
        };
        let (above, figure) = (height("initialisation"), height(">50<"));
        assert!(figure > above + 12.0, "{above} {figure}");
    }

    /// Check that the caption names bars and the line only if they are drawn.
    #[test]
    fn captions_name_what_is_drawn() {
        for (repetitions, is_scaling_drawn, expected) in [
            (1, false, "Columns: one repetition."),
            (5, false, "Columns: median of 5 repetitions, bars: least to most."),
            (5, true, "Columns: median of 5 repetitions, bars: least to most; grey: perfect scaling from the first column."),
        ] {
            assert_eq!(caption(repetitions, is_scaling_drawn), expected);
        }
    }

    /// Check the ends of axes.
    #[test]
    fn axes_end_at_round_numbers() {
        for (value, end) in [(0.0, 1.0), (1.0, 1.0), (1.1, 2.0), (2.2, 2.5), (26.0, 50.0), (987.0, 1000.0), (f64::NAN, 1.0)] {
            assert!((nice(value) - end).abs() < 1e-9, "{value}: {}", nice(value));
        }
    }
}
