//! `placed [SECONDS CPU...]`: bindings/tests/placed.cpp in Rust. A thread on each of the CPUs works on its block; without CPUs, two threads
//! that are not bound.

use firsttouch_alloc::{FtVec, Partition, Replicated, Team, expect, nodes, static_bounds, verify};
use std::ffi::c_int;
use std::time::{Duration, Instant};

type Failure = Box<dyn std::error::Error + Send + Sync>;

unsafe extern "C" {
    fn sched_setaffinity(pid: c_int, bytes: usize, mask: *const u64) -> c_int;
}

const N: usize = 524_288;
const TABLE: usize = 262_144;

/// Binds the calling thread to a CPU below 64.
fn pin(cpu: Option<u32>) -> Result<(), Failure> {
    let Some(cpu) = cpu else { return Ok(()) };
    let mask = 1_u64 << cpu;
    // SAFETY: the mask has the length that is given, and the call reads it only.
    if unsafe { sched_setaffinity(0, size_of_val(&mask), &raw const mask) } == 0 {
        Ok(())
    } else {
        Err(std::io::Error::last_os_error().into())
    }
}

fn say(name: &str, share: f64, of: usize, good: bool) -> Result<(), Failure> {
    println!("{}  placed: {name}: {share:.4} of {of}", if good { "ok   " } else { "FAIL " });
    if good { Ok(()) } else { Err(format!("{name} is not where it belongs").into()) }
}

fn check(name: &str, slice: &[f64], partition: &Partition) -> Result<(), Failure> {
    let verdict = verify(slice, partition)?;
    let share = verdict.share.unwrap_or(0.0);
    say(name, share, verdict.present, share >= 0.99 && verdict.present == verdict.pages)
}

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let seconds = words.first().map_or(Ok(0.0), |word| word.parse())?;
    let cpus = words.iter().skip(1).map(|word| word.parse().map(Some)).collect::<Result<Vec<Option<u32>>, _>>()?;
    let cpus = if cpus.is_empty() { vec![None; 2] } else { cpus };
    let threads = cpus.len();
    pin(cpus[0])?;
    std::thread::scope(|scope| {
        let join = |(thread, &cpu)| scope.spawn(move || pin(cpu).and_then(|()| Ok(Team::default().join(thread, threads)?)));
        let joining: Vec<_> = cpus.iter().enumerate().map(join).collect();
        joining.into_iter().try_for_each(|thread| thread.join().expect("joining a team does not panic"))
    })?;

    let nodes = nodes();
    let weights: Vec<f64> = (1..=nodes.len()).map(|weight| weight as f64).collect();
    for (name, partition) in [
        ("blocked", Partition::blocked()),
        ("blocked over nodes", Partition::blocked().over_nodes()),
        ("cyclic", Partition::cyclic(10_000)),
        ("by bounds", Partition::by_bounds([0, 100_000, N])),
        ("weighted", Partition::weighted(weights)),
        ("interleaved", Partition::interleaved()),
        ("bind", Partition::bind(nodes[nodes.len() - 1])),
    ] {
        let mut array = FtVec::<f64>::zeroed(N, &partition)?;
        array.fill(1.0);
        check(name, &array, &partition)?;
    }

    let mut field = FtVec::<f64>::zeroed(N, &Partition::blocked())?;
    field.fill(1.0);
    let table = Replicated::<f64>::new(TABLE, |all| all.fill(0.5))?;
    let bounds = static_bounds(N, threads);
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let work = |thread: usize, block: &[f64]| -> Result<(bool, f64), Failure> {
        pin(cpus[thread])?;
        let mine = table.local();
        let is_local = expect(mine, &Partition::local(), 1.0)?;
        let mut sum = 0.0;
        loop {
            sum += block.iter().enumerate().map(|(i, x)| x * mine[i % TABLE]).sum::<f64>();
            if Instant::now() >= end {
                return Ok((is_local, sum));
            }
        }
    };
    let results = std::thread::scope(|scope| {
        let (work, field) = (&work, &field[..]);
        let start = |(thread, border): (usize, &[usize])| {
            let block = &field[border[0]..border[1]];
            scope.spawn(move || work(thread, block))
        };
        let working: Vec<_> = bounds.windows(2).enumerate().map(start).collect();
        working.into_iter().map(|thread| thread.join().expect("the threads do not panic")).collect::<Result<Vec<_>, _>>()
    })?;
    check("field", &field, &Partition::blocked())?;
    let local = results.iter().filter(|(is_local, sum)| *is_local && *sum > 0.0).count();
    say("table", local as f64 / threads as f64, threads, local == threads)
}
