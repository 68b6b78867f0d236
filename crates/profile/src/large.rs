//! Reads the large tables: first touches, windows and samples with their accesses. Rows that are not wanted cost no more than passing over them.
//! Large tables are passed over in as many parts as there are CPUs, each by a connection of its own.

use crate::kept::Kept;
use crate::parts::{Part, Parts};
use crate::reader::{has_column, has_table, maybe, unsigned};
use crate::thin::Thinning;
use firsttouch_model::error::{Error, Result};
use firsttouch_model::rows::{
    Access, AccessKind, FirstTouch, Id, Profile, Progress, SampleState, SampledAccess, SampledLoop, TimerSample, Window,
};
use rusqlite::{Connection, Row};

/// Reads into `profile` the rows that `thinning` takes.
pub fn load(parts: &Parts<'_>, thinning: Thinning, profile: &mut Profile) -> Result<()> {
    profile.first_touches = parts.read("first_touches", |c, part| first_touches(c, part, thinning))?;
    profile.windows = parts.read("windows", |c, part| windows(c, part, thinning))?;
    let kept = thinning.leaves_windows_out().then(|| Kept::new(profile.windows.iter().map(|window| window.id)));
    let takes = |window| kept.as_ref().is_none_or(|kept| kept.contains(window));
    profile.accesses = parts.read("accesses", |c, part| accesses(c, part, &takes))?;
    profile.samples = parts.read("samples", |c, part| samples(c, part, thinning))?;
    let kept = thinning.leaves_samples_out().then(|| Kept::new(profile.samples.iter().map(|sample| sample.id)));
    let takes = |sample| kept.as_ref().is_none_or(|kept| kept.contains(sample));
    profile.sampled_accesses = parts.read("sampled_accesses", |c, part| sampled_accesses(c, part, &takes))?;
    Ok(())
}

fn first_touches(c: &Connection, part: Part, thinning: Thinning) -> Result<Vec<FirstTouch>> {
    let columns = "id, process, time_ns, thread, cpu, address, weight, by_kernel, site, mapped_bytes, node";
    rows(c, &format!("SELECT {columns} FROM first_touches {part} ORDER BY id"), |r| {
        let address = unsigned(r, 5)?;
        if !thinning.takes_touch(address) {
            return Ok(None);
        }
        Ok(Some(FirstTouch {
            id: r.get(0)?,
            process: r.get(1)?,
            time_ns: unsigned(r, 2)?,
            thread: r.get(3)?,
            cpu: r.get(4)?,
            address,
            weight: r.get(6)?,
            by_kernel: r.get(7)?,
            site: r.get(8)?,
            mapped_bytes: maybe(r, 9)?,
            node: r.get(10)?,
        }))
    })
}

fn windows(c: &Connection, part: Part, thinning: Thinning) -> Result<Vec<Window>> {
    let columns = "id, round, object, address, start_ns, held_ns, round_ns, inclusion";
    rows(c, &format!("SELECT {columns} FROM windows {part} ORDER BY id"), |r| {
        let round = unsigned(r, 1)?;
        if !thinning.takes_round(round) {
            return Ok(None);
        }
        Ok(Some(Window {
            id: r.get(0)?,
            round,
            object: r.get(2)?,
            address: unsigned(r, 3)?,
            start_ns: unsigned(r, 4)?,
            held_ns: unsigned(r, 5)?,
            round_ns: unsigned(r, 6)?,
            inclusion: r.get(7)?,
        }))
    })
}

/// Early files of version 3, and all of version 2, lack the column `cpu_ns`.
fn accesses(c: &Connection, part: Part, takes: &dyn Fn(Id) -> bool) -> Result<Vec<Access>> {
    let cpu_ns = if has_column(c, "accesses", "cpu_ns")? { "cpu_ns" } else { "NULL" };
    rows(c, &format!("SELECT window, thread, site, hits, estimate, watched_ns, cut, cpu, {cpu_ns} FROM accesses {part}"), |r| {
        let window = r.get(0)?;
        if !takes(window) {
            return Ok(None);
        }
        Ok(Some(Access {
            window,
            thread: r.get(1)?,
            site: r.get(2)?,
            hits: unsigned(r, 3)?,
            estimate: r.get(4)?,
            watched_ns: unsigned(r, 5)?,
            cut: r.get(6)?,
            cpu: r.get(7)?,
            cpu_ns: maybe(r, 8)?,
        }))
    })
}

fn samples(c: &Connection, part: Part, thinning: Thinning) -> Result<Vec<TimerSample>> {
    if !has_table(c, "samples")? {
        return Ok(Vec::new());
    }
    let columns = "id, thread, time_ns, cpu, cpu_ns, weight, site, state, loop_end, loop_entry, progress, step, unknown, elsewhere";
    // Early files of version 3 lack this column.
    let left = if has_column(c, "samples", "loop_left")? { "loop_left" } else { "NULL" };
    rows(c, &format!("SELECT {columns}, {left} FROM samples {part} ORDER BY id"), |r| {
        let time_ns = unsigned(r, 2)?;
        if !thinning.takes_sample(time_ns) {
            return Ok(None);
        }
        let progress = maybe(r, 10)?.zip(r.get(11)?).map(|(value, step)| Progress { value, step });
        let left = maybe(r, 14)?;
        Ok(Some(TimerSample {
            id: r.get(0)?,
            thread: r.get(1)?,
            time_ns,
            cpu: r.get(3)?,
            cpu_ns: unsigned(r, 4)?,
            weight: r.get(5)?,
            site: r.get(6)?,
            state: SampleState::from_number(r.get(7)?),
            around: maybe(r, 8)?.zip(maybe(r, 9)?).map(|(end, entry)| SampledLoop { end, entry, progress, left }),
            unknown: r.get(12)?,
            elsewhere: r.get(13)?,
        }))
    })
}

fn sampled_accesses(c: &Connection, part: Part, takes: &dyn Fn(Id) -> bool) -> Result<Vec<SampledAccess>> {
    if !has_table(c, "sampled_accesses")? {
        return Ok(Vec::new());
    }
    let columns = "sample, object, address, bytes, words, kind, site, stride";
    rows(c, &format!("SELECT {columns} FROM sampled_accesses {part}"), |r| {
        let sample = r.get(0)?;
        if !takes(sample) {
            return Ok(None);
        }
        let kind = r.get(5)?;
        Ok(Some(SampledAccess {
            sample,
            object: r.get(1)?,
            address: unsigned(r, 2)?,
            bytes: r.get(3)?,
            words: r.get(4)?,
            kind: AccessKind::from_number(kind).ok_or(rusqlite::Error::IntegralValueOutOfRange(5, kind))?,
            site: r.get(6)?,
            stride: r.get(7)?,
        }))
    })
}

/// The rows that are not `None`.
fn rows<T>(c: &Connection, sql: &str, read: impl FnMut(&Row<'_>) -> rusqlite::Result<Option<T>>) -> Result<Vec<T>> {
    let read_all = || c.prepare(sql)?.query_map([], read)?.filter_map(rusqlite::Result::transpose).collect::<rusqlite::Result<Vec<T>>>();
    read_all().map_err(|error| Error::invalid_data(error.to_string()))
}
