//! Reads the large tables: first touches, windows and samples with their accesses. Of rows that are not wanted only the column that says so is
//! decoded: SQLite calls the function `takes`, which is defined here, for each row.
//! Large tables are passed over in as many parts as there are CPUs, each by a connection of its own.

use crate::kept::Kept;
use crate::parts::{Part, Parts};
use crate::reader::{has_column, has_table, maybe, rows, unsigned};
use crate::slice::{Kind, Slice};
use crate::thin::Thinning;
use firsttouch_model::error::{Error, Result};
use firsttouch_model::rows::{
    Access, AccessKind, FirstTouch, Id, Profile, Progress, SampleState, SampledAccess, SampledLoop, TimerSample, Window,
};
use rusqlite::Connection;
use rusqlite::functions::FunctionFlags;
use std::sync::Arc;

/// Reads into `profile` the rows that `thinning` takes.
pub fn load(parts: &Parts<'_>, thinning: Thinning, profile: &mut Profile) -> Result<()> {
    profile.first_touches = parts.read("first_touches", |c, part| first_touches(c, part, thinning))?;
    profile.windows = parts.read("windows", |c, part| windows(c, part, thinning))?;
    let kept = thinning.leaves_windows_out().then(|| Arc::new(Kept::new(profile.windows.iter().map(|window| window.id))));
    profile.accesses = parts.read("accesses", |c, part| accesses(c, part, kept.clone()))?;
    profile.samples = parts.read("samples", |c, part| samples(c, part, thinning))?;
    let kept = thinning.leaves_samples_out().then(|| Arc::new(Kept::new(profile.samples.iter().map(|sample| sample.id))));
    profile.sampled_accesses = parts.read("sampled_accesses", |c, part| sampled_accesses(c, part, kept.clone()))?;
    Ok(())
}

/// Reads into `profile` these parts of the tables of first touches, samples, and their accesses.
pub fn load_after(c: &Connection, [touches, samples_part, accesses_part]: [Part; 3], profile: &mut Profile) -> Result<()> {
    profile.first_touches = first_touches(c, touches, Thinning::NONE)?;
    profile.samples = samples(c, samples_part, Thinning::NONE)?;
    profile.sampled_accesses = sampled_accesses(c, accesses_part, None)?;
    Ok(())
}

/// Reads into `profile` all rows of a part of a merged profile.
pub fn load_slice(c: &Connection, slice: &Slice, profile: &mut Profile) -> Result<()> {
    let part = |table, column, kind| slice.rows(c, table, column, kind).map(Part);
    profile.first_touches = first_touches(c, part("first_touches", "id", Kind::Touch)?, Thinning::NONE)?;
    profile.windows = windows(c, part("windows", "id", Kind::Window)?, Thinning::NONE)?;
    profile.accesses = accesses(c, part("accesses", "window", Kind::Window)?, None)?;
    if has_table(c, "samples")? {
        profile.samples = samples(c, part("samples", "id", Kind::Sample)?, Thinning::NONE)?;
    }
    if has_table(c, "sampled_accesses")? {
        profile.sampled_accesses = sampled_accesses(c, part("sampled_accesses", "sample", Kind::Sample)?, None)?;
    }
    Ok(())
}

/// The condition that selects the rows of a part that `takes` wants, by an integer column; all of them without `takes`.
fn wanted(c: &Connection, part: Part, column: &str, takes: Option<impl Fn(i64) -> bool + Send + 'static>) -> Result<String> {
    let Some(takes) = takes else { return Ok(part.to_string()) };
    c.create_scalar_function("takes", 1, FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC, move |row| {
        row.get::<i64>(0).map(&takes)
    })
    .map_err(|error| Error::invalid_data(error.to_string()))?;
    Ok(format!("{part} AND takes({column})"))
}

fn first_touches(c: &Connection, part: Part, thinning: Thinning) -> Result<Vec<FirstTouch>> {
    let columns = "id, process, time_ns, thread, cpu, address, weight, by_kernel, site, mapped_bytes, node";
    let takes = thinning.leaves_touches_out().then_some(move |address: i64| thinning.takes_touch(address.cast_unsigned()));
    let wanted = wanted(c, part, "address", takes)?;
    rows(c, &format!("SELECT {columns} FROM first_touches {wanted} ORDER BY id"), |r| {
        Ok(FirstTouch {
            id: r.get(0)?,
            process: r.get(1)?,
            time_ns: unsigned(r, 2)?,
            thread: r.get(3)?,
            cpu: r.get(4)?,
            address: unsigned(r, 5)?,
            weight: r.get(6)?,
            by_kernel: r.get(7)?,
            site: r.get(8)?,
            mapped_bytes: maybe(r, 9)?,
            node: r.get(10)?,
        })
    })
}

fn windows(c: &Connection, part: Part, thinning: Thinning) -> Result<Vec<Window>> {
    let columns = "id, round, object, address, start_ns, held_ns, round_ns, inclusion";
    let takes = thinning.leaves_windows_out().then_some(move |round: i64| thinning.takes_round(round.cast_unsigned()));
    let wanted = wanted(c, part, "round", takes)?;
    rows(c, &format!("SELECT {columns} FROM windows {wanted} ORDER BY id"), |r| {
        Ok(Window {
            id: r.get(0)?,
            round: unsigned(r, 1)?,
            object: r.get(2)?,
            address: unsigned(r, 3)?,
            start_ns: unsigned(r, 4)?,
            held_ns: unsigned(r, 5)?,
            round_ns: unsigned(r, 6)?,
            inclusion: r.get(7)?,
        })
    })
}

/// Early files of version 3, and all of version 2, lack the column `cpu_ns`.
fn accesses(c: &Connection, part: Part, kept: Option<Arc<Kept>>) -> Result<Vec<Access>> {
    let cpu_ns = if has_column(c, "accesses", "cpu_ns")? { "cpu_ns" } else { "NULL" };
    let wanted = wanted(c, part, "window", kept.map(|kept| move |window: Id| kept.contains(window)))?;
    rows(c, &format!("SELECT window, thread, site, hits, estimate, watched_ns, cut, cpu, {cpu_ns} FROM accesses {wanted}"), |r| {
        Ok(Access {
            window: r.get(0)?,
            thread: r.get(1)?,
            site: r.get(2)?,
            hits: unsigned(r, 3)?,
            estimate: r.get(4)?,
            watched_ns: unsigned(r, 5)?,
            cut: r.get(6)?,
            cpu: r.get(7)?,
            cpu_ns: maybe(r, 8)?,
        })
    })
}

fn samples(c: &Connection, part: Part, thinning: Thinning) -> Result<Vec<TimerSample>> {
    if !has_table(c, "samples")? {
        return Ok(Vec::new());
    }
    let columns = "id, thread, time_ns, cpu, cpu_ns, weight, site, state, loop_end, loop_entry, progress, step, unknown, elsewhere";
    // Early files of version 3 lack this column.
    let left = if has_column(c, "samples", "loop_left")? { "loop_left" } else { "NULL" };
    let takes = thinning.leaves_samples_out().then_some(move |time_ns: i64| thinning.takes_sample(time_ns.cast_unsigned()));
    let wanted = wanted(c, part, "time_ns", takes)?;
    rows(c, &format!("SELECT {columns}, {left} FROM samples {wanted} ORDER BY id"), |r| {
        let progress = maybe(r, 10)?.zip(r.get(11)?).map(|(value, step)| Progress { value, step });
        let left = maybe(r, 14)?;
        Ok(TimerSample {
            id: r.get(0)?,
            thread: r.get(1)?,
            time_ns: unsigned(r, 2)?,
            cpu: r.get(3)?,
            cpu_ns: unsigned(r, 4)?,
            weight: r.get(5)?,
            site: r.get(6)?,
            state: SampleState::from_number(r.get(7)?),
            around: maybe(r, 8)?.zip(maybe(r, 9)?).map(|(end, entry)| SampledLoop { end, entry, progress, left }),
            unknown: r.get(12)?,
            elsewhere: r.get(13)?,
        })
    })
}

fn sampled_accesses(c: &Connection, part: Part, kept: Option<Arc<Kept>>) -> Result<Vec<SampledAccess>> {
    if !has_table(c, "sampled_accesses")? {
        return Ok(Vec::new());
    }
    let columns = "sample, object, address, bytes, words, kind, site, stride";
    let wanted = wanted(c, part, "sample", kept.map(|kept| move |sample: Id| kept.contains(sample)))?;
    rows(c, &format!("SELECT {columns} FROM sampled_accesses {wanted}"), |r| {
        let kind = r.get(5)?;
        Ok(SampledAccess {
            sample: r.get(0)?,
            object: r.get(1)?,
            address: unsigned(r, 2)?,
            bytes: r.get(3)?,
            words: r.get(4)?,
            kind: AccessKind::from_number(kind).ok_or(rusqlite::Error::IntegralValueOutOfRange(5, kind))?,
            site: r.get(6)?,
            stride: r.get(7)?,
        })
    })
}
