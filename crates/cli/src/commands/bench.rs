//! `firsttouch bench`

use crate::arguments::{Init, Kernel, KernelOptions, Simd, Stream};
use crate::exit;
use crate::output::{is_stdout, print, print_json, write};
use crate::progress;
use anyhow::{Context, Result};
use firsttouch_experiments::bench::{self, BenchResult, Problem, Request};
use firsttouch_native::{Form, Initialisation, Operation};
use firsttouch_report::{BenchJson, bench_text, speed_chart};
use firsttouch_system::MachineInfo;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

pub fn run(kernel: &Kernel) -> Result<u8> {
    let (problem, iterations, options) = problem(kernel);
    if let Some(placement) = &options.place {
        return become_placed(placement);
    }
    let request = Request {
        problem,
        iterations,
        repetitions: options.repetitions,
        initialisation: match options.init {
            Init::Serial => Initialisation::Serial,
            Init::Parallel => Initialisation::Parallel,
            Init::Mismatched => Initialisation::Mismatched,
            Init::Blocked => Initialisation::Blocked,
        },
        schedule: options.schedule,
        form: match options.simd {
            Simd::Auto => Form::Best,
            Simd::Portable => Form::Portable,
            Simd::Avx2 => Form::Avx2,
            Simd::Avx512 => Form::Avx512,
        },
        huge_pages: options.huge_pages,
        teams: if options.scaling.is_empty() { options.threads.into_iter().collect() } else { options.scaling.clone() },
        placement: options.placed.clone(),
    };
    let available_bytes = MachineInfo::read(Path::new("/")).map_or(0, |info| info.available_memory_bytes);
    show(&bench::run(&request, available_bytes, progress::kernel)?, options)?;
    Ok(exit::DONE)
}

fn problem(kernel: &Kernel) -> (Problem, u64, &KernelOptions) {
    let stream = |operation, a: &'_ Stream| Problem::Stream { operation, elements: a.elements, temporal: a.temporal };
    match kernel {
        Kernel::Dgemv(a) => (Problem::Dgemv { m: a.m, n: a.n, tuned: a.tuned }, a.iterations, &a.options),
        Kernel::Dmvm(a) => (Problem::Dmvm { m: a.m, n: a.n }, a.iterations, &a.options),
        Kernel::Copy(a) => (stream(Operation::Copy, a), a.iterations, &a.options),
        Kernel::Scale(a) => (stream(Operation::Scale, a), a.iterations, &a.options),
        Kernel::Add(a) => (stream(Operation::Add, a), a.iterations, &a.options),
        Kernel::Triad(a) => (stream(Operation::Triad, a), a.iterations, &a.options),
        Kernel::Read(a) => (stream(Operation::Read, a), a.iterations, &a.options),
        Kernel::Write(a) => (stream(Operation::Write, a), a.iterations, &a.options),
        Kernel::Schoenauer(a) => (stream(Operation::Schoenauer, a), a.iterations, &a.options),
        Kernel::Chase(a) => (Problem::Chase { lines: a.lines }, a.iterations, &a.options),
        Kernel::Iso3dfd(a) => {
            let blocks = [a.n1_block, a.n2_block, a.n3_block];
            (Problem::Iso3dfd { points: [a.n1, a.n2, a.n3], blocks }, a.iterations, &a.options)
        }
    }
}

fn show(result: &BenchResult, options: &KernelOptions) -> Result<()> {
    if let Some(path) = &options.svg {
        write(path, &speed_chart(result))?;
        if is_stdout(path) {
            return Ok(());
        }
    }
    if options.json { print_json(&BenchJson::new(result)) } else { print(&bench_text(result)) }
}

/// Executes `firsttouch run PLACEMENT -- firsttouch bench ...` with this command line without its `--place`.
fn become_placed(placement: &str) -> Result<u8> {
    let firsttouch = std::env::current_exe().context("cannot find firsttouch's own file, to run it placed")?;
    let error = Command::new(&firsttouch)
        .arg("run")
        .args(placement_options(placement))
        .arg("--")
        .arg(&firsttouch)
        .args(without_placement(std::env::args_os().skip(1)))
        .arg(format!("--placed={placement}"))
        .exec();
    Err(error).with_context(|| format!("cannot start {}", firsttouch.display()))
}

/// The value of `--place` is either a list of options of `run`, or a value of its `--pin`.
fn placement_options(placement: &str) -> Vec<String> {
    if placement.trim_start().starts_with('-') {
        placement.split_whitespace().map(str::to_owned).collect()
    } else {
        vec!["--pin".to_owned(), placement.to_owned()]
    }
}

fn without_placement(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words = words.peekable();
    let mut kept = Vec::new();
    while let Some(word) = words.next() {
        if word == OsStr::new("--place") {
            words.next();
        } else if !word.as_encoded_bytes().starts_with(b"--place=") {
            kept.push(word);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check which words of a command line are kept, and the options for a placement.
    #[test]
    fn placements_move() {
        let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
        for line in ["bench triad --place spread:8 --json", "bench triad --place=spread:8 --json"] {
            assert_eq!(without_placement(words(line).into_iter()), words("bench triad --json"));
        }
        assert_eq!(placement_options("spread:8"), ["--pin", "spread:8"]);
        assert_eq!(placement_options("--interleave all -C 0,1"), ["--interleave", "all", "-C", "0,1"]);
    }
}
