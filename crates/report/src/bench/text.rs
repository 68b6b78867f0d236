//! The results of a bench as text.

use super::Figures;
use firsttouch_experiments::Statistics;
use firsttouch_experiments::bench::{BenchResult, TeamResult};
use firsttouch_model::{counted, format_bytes};
use std::fmt::Write;

/// The statistics of one team, or a table of several.
#[must_use]
pub fn bench_text(bench: &BenchResult) -> String {
    let mut out = heading(bench);
    match bench.teams.as_slice() {
        [] => {}
        [team] => one_team(&mut out, bench, team),
        teams => scaling(&mut out, bench, teams),
    }
    let repetitions = bench.teams.last().map_or(0, |team| team.seconds.len());
    // Writing to a String cannot fail.
    let _ = writeln!(
        out,
        "\nThe answer is correct. Statistics over {} of {}.",
        counted(repetitions as u64, "repetition"),
        counted(bench.iterations, &bench.work.iteration)
    );
    let most = bench.teams.iter().map(|team| team.threads as usize).max().unwrap_or(0);
    if most > bench.cpus {
        let _ = writeln!(out, "{most} threads share {}: these are not the times of {most} CPUs.", counted(bench.cpus, "CPU"));
    }
    let work = &bench.work;
    if work.flops > 0.0 || work.moved != work.bytes {
        let more = if work.moved == work.bytes { String::new() } else { format!(" ({} moved: stores read their lines first)", work.moved) };
        let _ = writeln!(out, "Counted for each {}: {} bytes{more} and {} operations.", work.element, work.bytes, work.flops);
    }
    out
}

fn heading(bench: &BenchResult) -> String {
    let threads = match bench.teams.as_slice() {
        [team] if team.threads == 1 => ", 1 thread".to_owned(),
        [team] => format!(", {} threads", team.threads),
        _ => String::new(),
    };
    let place = bench.place.as_ref().map_or(String::new(), |place| format!(", placed by '{place}'"));
    let huge = if bench.huge_pages { ", huge pages requested" } else { "" };
    format!(
        "{} {} ({}){threads}, {} initialisation, schedule {}, {}{huge}{place}\n\n",
        bench.kernel,
        bench.shape,
        format_bytes(bench.bytes),
        bench.init,
        bench.schedule,
        bench.form
    )
}

fn one_team(out: &mut String, bench: &BenchResult, team: &TeamResult) {
    let _ = writeln!(out, "{:<16}{:>12}{:>12}{:>12}{:>12}", format!("a {}", bench.work.iteration), "min", "median", "max", "std. dev.");
    let figures = Figures::of(bench, &team.seconds);
    let moved = figures.moved_gb_per_s.filter(|_| bench.work.moved != bench.work.bytes);
    let gflops = figures.gflops.filter(|_| bench.work.flops > 0.0);
    let rows = [
        ("seconds", figures.seconds.filter(|_| figures.latency_ns.is_none()), 6),
        ("ns", figures.latency_ns, 1),
        ("MPoints/s", figures.mpoints_per_s, 1),
        ("GB/s", figures.gb_per_s.filter(|_| figures.latency_ns.is_none()), 2),
        ("GB/s moved", moved, 2),
        ("GFlop/s", gflops, 2),
    ];
    for (name, figure, digits) in rows {
        if let Some(Statistics { min, median, max, standard_deviation }) = figure {
            let deviation = standard_deviation.map_or("-".to_owned(), |value| format!("{value:.digits$}"));
            let _ = writeln!(out, "{name:<16}{min:>12.digits$}{median:>12.digits$}{max:>12.digits$}{deviation:>12}");
        }
    }
}

/// The scaling table of the slides: times by number of threads, and the speed-up S(p) = T(first) / T(p) of the medians.
fn scaling(out: &mut String, bench: &BenchResult, teams: &[TeamResult]) {
    let rate_name = if bench.work.element == "point" { "MPoints/s" } else { "GB/s" };
    let _ = writeln!(out, "{:>8}{:>14}{:>14}{:>14}{:>12}{:>10}", "threads", "seconds, min", "median", "max", rate_name, "speed-up");
    for team in teams {
        let figures = Figures::of(bench, &team.seconds);
        let (Some(seconds), Some(rate)) = (figures.seconds, figures.mpoints_per_s.or(figures.gb_per_s)) else { continue };
        let speedup = bench.speedup(team).map_or("-".to_owned(), |speedup| format!("{speedup:.2}"));
        let _ = writeln!(
            out,
            "{:>8}{:>14.6}{:>14.6}{:>14.6}{:>12.2}{speedup:>10}",
            team.threads, seconds.min, seconds.median, seconds.max, rate.median
        );
    }
}
