//! Reads all tables but the largest ones ([`crate::large`]).

use crate::ranks;
use crate::reader::{has_column, has_table, maybe, rows, unsigned};
use crate::slice::{Kind, Slice};
use firsttouch_model::error::{Context, Result};
use firsttouch_model::rows::metadata::Metadata;
use firsttouch_model::rows::{
    Appeared, Bandwidth, Counter, Evidence, FaultCount, FaultPeriod, FoldedObjects, Frame, Id, Lost, Machine, Object, ObjectKind,
    OperandCount, Page, Policy, Population, Process, Profile, PythonLine, Region, Release, Seen, SharedMemory, Site, SmallBlock,
    SourceFile, Thread,
};
use rusqlite::{Connection, Row};
use std::collections::BTreeMap;

/// What belongs to the whole recording.
pub fn load_recording(c: &Connection) -> Result<Profile> {
    Ok(Profile {
        meta: metadata(c)?,
        machine: machine(c)?,
        evidence: rows(c, "SELECT source, available, samples, detail FROM evidence", |r| {
            Ok(Evidence { source: r.get(0)?, available: r.get(1)?, samples: unsigned(r, 2)?, detail: r.get(3)? })
        })?,
        counters: rows(c, "SELECT name, node, at_start, at_end FROM counters ORDER BY name, node", |r| {
            let node: i64 = r.get(1)?;
            Ok(Counter { name: r.get(0)?, node: u32::try_from(node).ok(), at_start: unsigned(r, 2)?, at_end: unsigned(r, 3)? })
        })?,
        lost: rows(c, "SELECT source, reason, count FROM lost", |r| {
            Ok(Lost { source: r.get(0)?, reason: r.get(1)?, count: unsigned(r, 2)? })
        })?,
        source_files: source_files(c)?,
        hosts: ranks::hosts(c)?,
        parts: ranks::parts(c)?,
        ..Profile::default()
    })
}

/// The rows of the smaller tables, added to what was read of the recording.
pub fn load_rows(c: &Connection, slice: &Slice, recording: Profile) -> Result<Profile> {
    Ok(Profile {
        processes: rows(c, &slice.of("SELECT id, pid, parent, exe, born_ns, died_ns FROM processes", "id", Kind::Process), |r| {
            Ok(Process {
                id: r.get(0)?,
                pid: r.get(1)?,
                parent: r.get(2)?,
                exe: r.get(3)?,
                born_ns: unsigned(r, 4)?,
                died_ns: maybe(r, 5)?,
            })
        })?,
        threads: rows(
            c,
            &slice.of("SELECT id, process, tid, parent, name, born_ns, died_ns, cpu_ns, omp_number, user_faults, all_faults, allowed_cpus, node_moves FROM threads", "id", Kind::Thread),
            |r| {
                Ok(Thread {
                    id: r.get(0)?,
                    process: r.get(1)?,
                    tid: r.get(2)?,
                    parent: r.get(3)?,
                    name: r.get(4)?,
                    born_ns: unsigned(r, 5)?,
                    died_ns: maybe(r, 6)?,
                    cpu_ns: maybe(r, 7)?,
                    omp_number: r.get(8)?,
                    user_faults: maybe(r, 9)?,
                    all_faults: maybe(r, 10)?,
                    allowed_cpus: r.get(11)?,
                    node_moves: unsigned(r, 12)?,
                })
            },
        )?,
        thread_cpus: rows(c, &slice.of("SELECT thread, cpu, samples, looks FROM thread_cpus", "thread", Kind::Thread), |r| {
            Ok(((r.get(0)?, r.get(1)?), Seen { samples: unsigned(r, 2)?, looks: unsigned(r, 3)? }))
        })?
        .into_iter()
        .collect(),
        sites: all_sites(c, slice)?,
        objects: rows(
            c,
            &slice.of("SELECT id, process, kind, call, name, address, bytes, born_ns, died_ns, site, thread FROM objects", "id", Kind::Object),
            |r| {
                let kind: String = r.get(2)?;
                Ok(Object {
                    id: r.get(0)?,
                    process: r.get(1)?,
                    kind: ObjectKind::parse(&kind).unwrap_or(ObjectKind::Mapping),
                    call: r.get(3)?,
                    name: r.get(4)?,
                    address: unsigned(r, 5)?,
                    bytes: unsigned(r, 6)?,
                    born_ns: unsigned(r, 7)?,
                    died_ns: maybe(r, 8)?,
                    site: r.get(9)?,
                    thread: r.get(10)?,
                })
            },
        )?,
        shared_memory: shared_memory(c, slice)?,
        folded_objects: rows(c, &slice.of("SELECT site, call, bytes, count, word_ns FROM folded_objects", "site", Kind::Site), |r| {
            Ok(FoldedObjects { site: r.get(0)?, call: r.get(1)?, bytes: unsigned(r, 2)?, count: unsigned(r, 3)?, word_ns: r.get(4)? })
        })?,
        small_blocks: small_blocks(c, slice)?,
        fault_periods: fault_periods(c, slice)?,
        releases: rows(c, &slice.rows_of(c, "SELECT process, time_ns, address, bytes", "releases", "process", Kind::Process)?, |r| {
            Ok(Release { process: r.get(0)?, time_ns: unsigned(r, 1)?, address: unsigned(r, 2)?, bytes: unsigned(r, 3)? })
        })?,
        populations: populations(c, slice)?,
        appeared: appeared(c, slice)?,
        fault_counts: fault_counts(c, slice)?,
        operand_counts: operand_counts(c, slice)?,
        python_lines: python_lines(c, slice)?,
        bandwidth: bandwidth(c, slice)?,
        pages: rows(c, &slice.rows_of(c, "SELECT process, object, address, time_ns, node, page_bytes", "pages", "process", Kind::Process)?, |r| {
            Ok(Page {
                process: r.get(0)?,
                object: r.get(1)?,
                address: unsigned(r, 2)?,
                time_ns: unsigned(r, 3)?,
                node: r.get(4)?,
                page_bytes: unsigned(r, 5)?,
            })
        })?,
        policies: rows(c, &slice.of("SELECT object, policy, time_ns FROM policies", "object", Kind::Object), |r| {
            Ok((r.get(0)?, Policy { policy: r.get(1)?, time_ns: unsigned(r, 2)? }))
        })?
        .into_iter()
        .collect(),
        regions: rows(c, &slice.of("SELECT id, process, begin_ns, end_ns, site, team_size, thread FROM regions", "id", Kind::Region), |r| {
            Ok(Region {
                id: r.get(0)?,
                process: r.get(1)?,
                begin_ns: unsigned(r, 2)?,
                end_ns: maybe(r, 3)?,
                site: r.get(4)?,
                team_size: r.get(5)?,
                thread: r.get(6)?,
            })
        })?,
        ..recording
    })
}

pub fn metadata(c: &Connection) -> Result<Metadata> {
    let mut metadata = Metadata::default();
    for (key, value) in rows(c, "SELECT key, value FROM meta", |r| Ok((r.get::<_, String>(0)?, r.get::<_, String>(1)?)))? {
        metadata.set(&key, &value);
    }
    Ok(metadata)
}

fn machine(c: &Connection) -> Result<Machine> {
    let pairs = rows(c, "SELECT key, value FROM machine", |r| Ok((r.get::<_, String>(0)?, r.get::<_, String>(1)?)))?;
    let mut map = serde_json::to_value(Machine::default()).context("cannot describe a machine")?;
    if let Some(map) = map.as_object_mut() {
        for (key, text) in pairs {
            let value = match map.get(&key) {
                Some(serde_json::Value::String(_)) => serde_json::Value::String(text),
                Some(_) => serde_json::from_str(&text).with_context(|| format!("machine.{key} is not readable: {text}"))?,
                None => continue,
            };
            map.insert(key, value);
        }
    }
    serde_json::from_value(map).context("table machine is not readable")
}

/// Call stacks by number.
fn all_sites(c: &Connection, slice: &Slice) -> Result<BTreeMap<Id, Site>> {
    let sites = rows(c, &slice.of("SELECT id, process FROM sites", "id", Kind::Site), |r| {
        let id = r.get(0)?;
        Ok((id, Site { id, process: r.get(1)?, frames: Vec::new() }))
    })?;
    let mut sites: BTreeMap<Id, Site> = sites.into_iter().collect();
    // Early files of version 3 lack this column.
    let column = if has_column(c, "frames", "column")? { "\"column\"" } else { "NULL" };
    let columns = "site, address, module, offset, inlined, function, file, line";
    let frames = rows(c, &slice.of(&format!("SELECT {columns}, {column}, depth FROM frames"), "site, depth", Kind::Site), |r| {
        let site: i64 = r.get(0)?;
        Ok((
            site,
            Frame {
                address: unsigned(r, 1)?,
                module: r.get(2)?,
                offset: maybe(r, 3)?,
                inlined: r.get(4)?,
                function: r.get(5)?,
                file: r.get(6)?,
                line: r.get(7)?,
                column: r.get(8)?,
            },
        ))
    })?;
    for (site, frame) in frames {
        if let Some(site) = sites.get_mut(&site) {
            site.frames.push(frame);
        }
    }
    Ok(sites)
}

/// Early files of version 3, and all of version 2, lack the table.
fn source_files(c: &Connection) -> Result<BTreeMap<String, SourceFile>> {
    if !has_table(c, "source_files")? {
        return Ok(BTreeMap::new());
    }
    let read = |r: &Row<'_>| Ok((r.get(0)?, SourceFile { bytes: unsigned(r, 1)?, modified_ns: r.get(2)? }));
    Ok(rows(c, "SELECT path, bytes, modified_ns FROM source_files", read)?.into_iter().collect())
}

/// Early files of version 3, and all of version 2, lack the table.
fn small_blocks(c: &Connection, slice: &Slice) -> Result<Vec<SmallBlock>> {
    if !has_table(c, "small_blocks")? {
        return Ok(Vec::new());
    }
    let columns = "SELECT process, thread, site, call, address, bytes, weight, time_ns";
    rows(c, &slice.rows_of(c, columns, "small_blocks", "process", Kind::Process)?, |r| {
        Ok(SmallBlock {
            process: r.get(0)?,
            thread: r.get(1)?,
            site: r.get(2)?,
            call: r.get(3)?,
            address: unsigned(r, 4)?,
            bytes: unsigned(r, 5)?,
            weight: r.get(6)?,
            time_ns: unsigned(r, 7)?,
        })
    })
}

/// Early files of version 3, and all of version 2, lack the table, and later ones the column `part`.
fn fault_periods(c: &Connection, slice: &Slice) -> Result<Vec<FaultPeriod>> {
    if !has_table(c, "fault_periods")? {
        return Ok(Vec::new());
    }
    let part = if has_column(c, "fault_periods", "part")? { "part" } else { "NULL" };
    let select = slice.rows_of(c, &format!("SELECT time_ns, faults, {part}"), "fault_periods", "part", Kind::Part)?;
    rows(c, &format!("{select} ORDER BY time_ns, rowid"), |r| {
        Ok(FaultPeriod { time_ns: unsigned(r, 0)?, faults: unsigned(r, 1)?, part: r.get(2)? })
    })
}

/// Early files of version 3, and all of version 2, lack the table.
fn populations(c: &Connection, slice: &Slice) -> Result<Vec<Population>> {
    if !has_table(c, "populations")? {
        return Ok(Vec::new());
    }
    let columns = "SELECT process, thread, time_ns, call, address, bytes, future, site";
    let select = slice.rows_of(c, columns, "populations", "process", Kind::Process)?;
    rows(c, &format!("{select} ORDER BY time_ns, rowid"), |r| {
        Ok(Population {
            process: r.get(0)?,
            thread: r.get(1)?,
            time_ns: unsigned(r, 2)?,
            call: r.get(3)?,
            address: unsigned(r, 4)?,
            bytes: unsigned(r, 5)?,
            future: r.get(6)?,
            site: r.get(7)?,
        })
    })
}

/// Early files of version 3, and all of version 2, lack the table.
fn appeared(c: &Connection, slice: &Slice) -> Result<Vec<Appeared>> {
    if !has_table(c, "appeared")? {
        return Ok(Vec::new());
    }
    let columns = "SELECT process, from_ns, to_ns, address, bytes, page_bytes";
    rows(c, &slice.rows_of(c, columns, "appeared", "process", Kind::Process)?, |r| {
        Ok(Appeared {
            process: r.get(0)?,
            from_ns: unsigned(r, 1)?,
            to_ns: unsigned(r, 2)?,
            address: unsigned(r, 3)?,
            bytes: unsigned(r, 4)?,
            page_bytes: unsigned(r, 5)?,
        })
    })
}

/// Early files of version 3, and all of version 2, lack the table.
fn fault_counts(c: &Connection, slice: &Slice) -> Result<Vec<FaultCount>> {
    if !has_table(c, "fault_counts")? {
        return Ok(Vec::new());
    }
    let columns = "SELECT process, thread, time_ns, faults";
    rows(c, &slice.rows_of(c, columns, "fault_counts", "process", Kind::Process)?, |r| {
        Ok(FaultCount { process: r.get(0)?, thread: r.get(1)?, time_ns: unsigned(r, 2)?, faults: unsigned(r, 3)? })
    })
}

/// Early files of version 3, and all of version 2, lack the table.
fn python_lines(c: &Connection, slice: &Slice) -> Result<Vec<PythonLine>> {
    if !has_table(c, "python_lines")? {
        return Ok(Vec::new());
    }
    rows(c, &slice.rows_of(c, "SELECT thread, time_ns, site", "python_lines", "thread", Kind::Thread)?, |r| {
        Ok(PythonLine { thread: r.get(0)?, time_ns: unsigned(r, 1)?, site: r.get(2)? })
    })
}

/// Early files of version 3, and all of version 2, lack the table.
fn operand_counts(c: &Connection, slice: &Slice) -> Result<Vec<OperandCount>> {
    if !has_table(c, "operand_counts")? {
        return Ok(Vec::new());
    }
    rows(c, &slice.of("SELECT process, instruction, known, unknown FROM operand_counts", "process", Kind::Process), |r| {
        Ok(OperandCount { process: r.get(0)?, instruction: unsigned(r, 1)?, known: unsigned(r, 2)?, unknown: unsigned(r, 3)? })
    })
}

/// Early files of version 3, and all of version 2, lack the table.
fn bandwidth(c: &Connection, slice: &Slice) -> Result<Vec<Bandwidth>> {
    if !has_table(c, "bandwidth")? {
        return Ok(Vec::new());
    }
    let columns = "SELECT source, node, from_ns, to_ns, bytes, read_bytes, local_bytes, part";
    let select = slice.rows_of(c, columns, "bandwidth", "part", Kind::Part)?;
    rows(c, &format!("{select} ORDER BY from_ns, rowid"), |r| {
        Ok(Bandwidth {
            source: r.get(0)?,
            node: r.get(1)?,
            from_ns: unsigned(r, 2)?,
            to_ns: unsigned(r, 3)?,
            bytes: unsigned(r, 4)?,
            read_bytes: maybe(r, 5)?,
            local_bytes: maybe(r, 6)?,
            part: r.get(7)?,
        })
    })
}

/// Early files of version 3, and all of version 2, lack the table.
fn shared_memory(c: &Connection, slice: &Slice) -> Result<BTreeMap<Id, SharedMemory>> {
    if !has_table(c, "shared_memory")? {
        return Ok(BTreeMap::new());
    }
    let present = if has_column(c, "shared_memory", "present")? { "present" } else { "NULL" };
    let select = format!("SELECT object, memory, offset, {present} FROM shared_memory");
    let all = rows(c, &slice.of(&select, "object", Kind::Object), |r| {
        Ok((r.get(0)?, SharedMemory { memory: r.get(1)?, offset: unsigned(r, 2)?, present: r.get(3)? }))
    })?;
    Ok(all.into_iter().collect())
}
