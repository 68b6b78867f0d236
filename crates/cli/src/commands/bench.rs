//! `firsttouch bench`

use super::usage;
use crate::arguments::{Dgemv, Init};
use crate::output::{print, print_json};
use anyhow::{Result, bail};
use firsttouch_domain::format_bytes;
use firsttouch_machine::MachineInfo;
use firsttouch_native::{self as native, DgemvResult, Initialisation, Schedule, Spread};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;

pub fn dgemv(arguments: &Dgemv) -> Result<u8> {
    let dgemv = native::Dgemv {
        rows: arguments.m,
        columns: arguments.n,
        iterations: arguments.iterations,
        repetitions: arguments.repetitions,
        threads: arguments.threads.unwrap_or(0),
        initialisation: match arguments.init {
            Init::Serial => Initialisation::Serial,
            Init::Parallel => Initialisation::Parallel,
        },
        schedule: arguments.schedule,
    };
    usage(fits_memory(&dgemv))?;
    let result = dgemv.run()?;
    if arguments.json {
        print_json(&as_json(arguments, &dgemv, &result))?;
    } else {
        print(&as_text(arguments, &dgemv, &result))?;
    }
    Ok(0)
}

/// Linux hands out memory it does not have and kills who uses it: better refused before.
fn fits_memory(dgemv: &native::Dgemv) -> Result<()> {
    let available = MachineInfo::read(Path::new("/")).map_or(0, |info| info.available_memory_bytes);
    if available > 0 && dgemv.bytes() > available {
        bail!(
            "cannot run dgemv with {} x {} elements: it needs {}, and {} are available; choose smaller --m and --n",
            dgemv.rows,
            dgemv.columns,
            format_bytes(dgemv.bytes()),
            format_bytes(available)
        );
    }
    Ok(())
}

/// Speeds are the reverse of times: the slowest repetition has the lowest speed.
fn speed(amount: f64, seconds: Spread) -> Spread {
    Spread { min: amount / seconds.max, median: amount / seconds.median, max: amount / seconds.min }
}

fn gb_per_s(dgemv: &native::Dgemv, result: &DgemvResult) -> Spread {
    speed(dgemv.bytes() as f64 / 1e9, result.seconds)
}

fn gflops(dgemv: &native::Dgemv, result: &DgemvResult) -> Spread {
    speed(dgemv.flops() / 1e9, result.seconds)
}

fn init_name(init: Init) -> &'static str {
    match init {
        Init::Serial => "serial",
        Init::Parallel => "parallel",
    }
}

fn schedule_name(schedule: Schedule) -> String {
    match schedule {
        Schedule::Static => "static".to_owned(),
        Schedule::Dynamic { chunk } => format!("dynamic,{chunk}"),
    }
}

fn as_json(arguments: &Dgemv, dgemv: &native::Dgemv, result: &DgemvResult) -> Value {
    let spread = |spread: Spread| json!({"min": spread.min, "median": spread.median, "max": spread.max});
    json!({
        "schema": "firsttouch.bench/1",
        "kernel": "dgemv",
        "threads": result.threads,
        "init": init_name(arguments.init),
        "schedule": schedule_name(arguments.schedule),
        "sizes": {"m": dgemv.rows, "n": dgemv.columns, "bytes": dgemv.bytes()},
        "iterations": dgemv.iterations,
        "repetitions": dgemv.repetitions,
        "seconds": spread(result.seconds),
        "gb_per_s": spread(gb_per_s(dgemv, result)),
        "gflops": spread(gflops(dgemv, result)),
        "worst_error": result.worst_error,
    })
}

fn as_text(arguments: &Dgemv, dgemv: &native::Dgemv, result: &DgemvResult) -> String {
    let mut text = format!(
        "dgemv {} x {} ({}), {} threads, {} initialisation, schedule {}\n\n{:<12}{:>12}{:>12}{:>12}\n",
        dgemv.rows,
        dgemv.columns,
        format_bytes(dgemv.bytes()),
        result.threads,
        init_name(arguments.init),
        schedule_name(arguments.schedule),
        "a product",
        "min",
        "median",
        "max"
    );
    for (name, spread, digits) in
        [("seconds", result.seconds, 6), ("GB/s", gb_per_s(dgemv, result), 2), ("Gflop/s", gflops(dgemv, result), 2)]
    {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name:<12}{:>12.digits$}{:>12.digits$}{:>12.digits$}", spread.min, spread.median, spread.max);
    }
    let _ = writeln!(text, "\nThe answer is right. Over {} repetitions of {} products.", dgemv.repetitions, dgemv.iterations);
    text
}
