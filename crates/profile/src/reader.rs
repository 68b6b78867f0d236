//! Reads a whole profile. The error for another kind of file, a damaged file or another schema says which it is.

use crate::foreign;
use crate::large;
use crate::parts::Parts;
use crate::thin::{Rows, Thinning};
use crate::{APPLICATION_ID, OLDEST_VERSION, SCHEMA_VERSION};
use firsttouch_model::error::{Context, Error, Result};
use firsttouch_model::rows::metadata::Metadata;
use firsttouch_model::rows::{
    Appeared, Counter, Evidence, FaultCount, FaultPeriod, FoldedObjects, Frame, Id, Lost, Machine, Object, ObjectKind, Page, Policy,
    Population, Process, Profile, Region, Release, Seen, SharedMemory, Site, SmallBlock, SourceFile, Thread,
};
use firsttouch_system::calls::identity::effective_user;
use firsttouch_system::process::user;
use rusqlite::{Connection, OpenFlags, Row};
use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Reads the profile at `path`.
///
/// # Errors
/// Says what is wrong with the file: missing, not a profile, another schema version, damaged.
pub fn open(path: &Path) -> Result<Profile> {
    open_with(path, |_| ())
}

/// As [`open`]. Calls `with_sites` with the call stacks before the large tables are read, so that their names can be looked up meanwhile.
///
/// # Errors
/// As [`open`].
pub fn open_with(path: &Path, with_sites: impl FnOnce(&BTreeMap<Id, Site>)) -> Result<Profile> {
    read(path, |_| Ok(None), with_sites)
}

/// Reads of the profile at `path` what a judgement needs: of a very large one a part that stands for all ([`crate::thin`]).
///
/// # Errors
/// As [`open`].
pub fn open_to_judge(path: &Path) -> Result<Profile> {
    read(path, |parts| parts.count().map(Some), |_| ())
}

/// Threads times objects of the profile at `path`: an analysis has a share for each, and holds as much memory.
///
/// # Errors
/// As [`open`].
pub fn shares(path: &Path) -> Result<u64> {
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    foreign::check_schema(&connection)?;
    let count = |table| rows(&connection, &format!("SELECT count(*) FROM {table}"), |row| unsigned(row, 0)).map(|all| all[0]);
    Ok(count("threads")?.saturating_mul(count("objects")?))
}

/// `counts`: the rows of the large tables, if not all are to be read.
fn read(
    path: &Path,
    counts: impl FnOnce(&Parts<'_>) -> Result<Option<Rows>>,
    with_sites: impl FnOnce(&BTreeMap<Id, Site>),
) -> Result<Profile> {
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
        // A reader of a crashed profile replays its WAL, which needs write access; without it, read what is in the main file.
        .or_else(|first| connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(|_| first))?;
    let read = || -> Result<Profile> {
        if wal_exists(path) {
            foreign::check_pages(&connection)?;
        }
        foreign::check_schema(&connection)?;
        let parts = Parts::of(&connection, path);
        let profile = load(&connection, &parts, counts(&parts)?, with_sites)?;
        foreign::check_nodes(&profile)?;
        Ok(Profile { owner: std::fs::metadata(path).ok().map(|about| about.uid()), ..profile })
    };
    read().with_context(|| format!("cannot read profile {}: the file is damaged or incomplete", path.display()))
}

/// `PRAGMA application_id` of an SQLite file, from its header (offset 68, big endian); `None` if it is not an SQLite file.
pub(crate) fn application_id(path: &Path) -> Option<i32> {
    let header = header(path).ok()?;
    let id = header.get(68..72)?;
    header.starts_with(b"SQLite format 3\0").then(|| i32::from_be_bytes([id[0], id[1], id[2], id[3]]))
}

fn header(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut header = Vec::with_capacity(100);
    std::fs::File::open(path)?.take(100).read_to_end(&mut header)?;
    Ok(header)
}

pub(crate) fn connect(path: &Path, flags: OpenFlags) -> Result<Connection> {
    let name = path.display();
    let cannot = |error: std::io::Error| {
        let words = format!("cannot open profile {name}{}", remedy(path, &error));
        Error::caused_by(error, words)
    };
    let meta = std::fs::metadata(path).map_err(cannot)?;
    if !meta.is_file() {
        return Err(Error::invalid_input(format!("cannot open profile {name}: it is not a regular file")));
    }
    header(path).map_err(cannot)?;
    let other_database =
        || Error::invalid_data(format!("cannot read profile {name}: it is an SQLite database, but not a firsttouch profile"));
    match application_id(path) {
        Some(APPLICATION_ID) => {}
        // A profile whose first flush is still in the WAL has an empty or plain SQLite header.
        Some(0) | None if wal_exists(path) => {}
        Some(_) => return Err(other_database()),
        None => {
            return Err(Error::invalid_data(format!(
                "cannot read profile {name}: it is not a firsttouch profile (make one with: firsttouch profile -o FILE -- COMMAND)"
            )));
        }
    }
    let context = || format!("cannot open profile {name}");
    let connection = Connection::open_with_flags(plain(path), flags | OpenFlags::SQLITE_OPEN_NO_MUTEX).with_context(context)?;
    let damaged = || format!("cannot read profile {name}: the file is damaged");
    let size = |path: &Path| std::fs::metadata(path).map_or(0, |about| about.len());
    foreign::restrict(&connection, size(path).saturating_add(size(&wal(path)))).with_context(damaged)?;
    let id: i32 = connection.query_row("PRAGMA application_id", [], |row| row.get(0)).with_context(damaged)?;
    let version: i32 = connection.query_row("PRAGMA user_version", [], |row| row.get(0)).with_context(damaged)?;
    if id != APPLICATION_ID {
        return Err(other_database());
    }
    if !(OLDEST_VERSION..=SCHEMA_VERSION).contains(&version) {
        return Err(Error::unsupported(format!(
            "cannot read profile {name}: it has schema version {version}, this firsttouch reads versions {OLDEST_VERSION} to {SCHEMA_VERSION}: take the profile again"
        )));
    }
    Ok(connection)
}

/// What helps if a profile may not be read: ` (it belongs to user db (114): ...)`; empty for other errors.
fn remedy(path: &Path, error: &std::io::Error) -> String {
    if error.kind() != std::io::ErrorKind::PermissionDenied {
        return String::new();
    }
    match std::fs::metadata(path) {
        Ok(meta) => {
            let (owner, own) = (user(Path::new("/"), meta.uid()), user(Path::new("/"), effective_user()));
            format!(
                " (it belongs to user {owner}, and firsttouch runs as user {own}: run it as that user, with sudo, or have the owner allow it: \
                 chmod o+r {})",
                path.display()
            )
        }
        Err(_) => " (this user may not enter a folder on the way to it: run firsttouch as the user who recorded it, or with sudo, or have \
                   the owner of the folder allow it: chmod o+x FOLDER)"
            .to_owned(),
    }
}

/// A name that SQLite treats as a path; it gives `:memory:` and `file:...` another meaning.
pub(crate) fn plain(path: &Path) -> PathBuf {
    if path.is_absolute() { path.to_owned() } else { Path::new(".").join(path) }
}

fn wal(path: &Path) -> PathBuf {
    let mut wal = path.as_os_str().to_owned();
    wal.push("-wal");
    wal.into()
}

pub(crate) fn wal_exists(path: &Path) -> bool {
    wal(path).exists()
}

fn metadata(c: &Connection) -> Result<Metadata> {
    let mut metadata = Metadata::default();
    for (key, value) in rows(c, "SELECT key, value FROM meta", |r| Ok((r.get::<_, String>(0)?, r.get::<_, String>(1)?)))? {
        metadata.set(&key, &value);
    }
    Ok(metadata)
}

/// Reads all tables. `rows`: of the large ones, of which a part is read; `None` if all are to be read.
fn load(c: &Connection, parts: &Parts<'_>, rows: Option<Rows>, with_sites: impl FnOnce(&BTreeMap<Id, Site>)) -> Result<Profile> {
    let mut profile = load_small_tables(c)?;
    with_sites(&profile.sites);
    let thinning = rows.map_or(Thinning::NONE, |rows| Thinning::of(rows, &profile));
    large::load(parts, thinning, &mut profile)?;
    if let Some(rows) = rows {
        thinning.weigh(rows, &mut profile);
    }
    Ok(profile)
}

fn load_small_tables(c: &Connection) -> Result<Profile> {
    Ok(Profile {
        meta: metadata(c)?,
        machine: machine(c)?,
        evidence: rows(c, "SELECT source, available, samples, detail FROM evidence", |r| {
            Ok(Evidence { source: r.get(0)?, available: r.get(1)?, samples: unsigned(r, 2)?, detail: r.get(3)? })
        })?,
        processes: rows(c, "SELECT id, pid, parent, exe, born_ns, died_ns FROM processes ORDER BY id", |r| {
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
            "SELECT id, process, tid, parent, name, born_ns, died_ns, cpu_ns, omp_number, user_faults, all_faults, allowed_cpus, node_moves FROM threads ORDER BY id",
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
        thread_cpus: rows(c, "SELECT thread, cpu, samples, looks FROM thread_cpus", |r| {
            Ok(((r.get(0)?, r.get(1)?), Seen { samples: unsigned(r, 2)?, looks: unsigned(r, 3)? }))
        })?
        .into_iter()
        .collect(),

        sites: all_sites(c)?,
        objects: rows(
            c,
            "SELECT id, process, kind, call, name, address, bytes, born_ns, died_ns, site, thread FROM objects ORDER BY id",
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
        shared_memory: shared_memory(c)?,
        folded_objects: rows(c, "SELECT site, call, bytes, count, word_ns FROM folded_objects", |r| {
            Ok(FoldedObjects { site: r.get(0)?, call: r.get(1)?, bytes: unsigned(r, 2)?, count: unsigned(r, 3)?, word_ns: r.get(4)? })
        })?,
        small_blocks: small_blocks(c)?,
        fault_periods: fault_periods(c)?,
        releases: rows(c, "SELECT process, time_ns, address, bytes FROM releases", |r| {
            Ok(Release { process: r.get(0)?, time_ns: unsigned(r, 1)?, address: unsigned(r, 2)?, bytes: unsigned(r, 3)? })
        })?,
        populations: populations(c)?,
        appeared: appeared(c)?,
        fault_counts: fault_counts(c)?,
        pages: rows(c, "SELECT process, object, address, time_ns, node, page_bytes FROM pages", |r| {
            Ok(Page {
                process: r.get(0)?,
                object: r.get(1)?,
                address: unsigned(r, 2)?,
                time_ns: unsigned(r, 3)?,
                node: r.get(4)?,
                page_bytes: unsigned(r, 5)?,
            })
        })?,
        policies: rows(c, "SELECT object, policy, time_ns FROM policies", |r| {
            Ok((r.get(0)?, Policy { policy: r.get(1)?, time_ns: unsigned(r, 2)? }))
        })?
        .into_iter()
        .collect(),
        counters: rows(c, "SELECT name, node, at_start, at_end FROM counters ORDER BY name, node", |r| {
            let node: i64 = r.get(1)?;
            Ok(Counter { name: r.get(0)?, node: u32::try_from(node).ok(), at_start: unsigned(r, 2)?, at_end: unsigned(r, 3)? })
        })?,
        regions: rows(c, "SELECT id, process, begin_ns, end_ns, site, team_size, thread FROM regions ORDER BY id", |r| {
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
        lost: rows(c, "SELECT source, reason, count FROM lost", |r| {
            Ok(Lost { source: r.get(0)?, reason: r.get(1)?, count: unsigned(r, 2)? })
        })?,
        source_files: source_files(c)?,
        ..Profile::default()
    })
}

/// Call stacks by number.
fn all_sites(c: &Connection) -> Result<BTreeMap<Id, Site>> {
    let sites = rows(c, "SELECT id, process FROM sites", |r| {
        let id = r.get(0)?;
        Ok((id, Site { id, process: r.get(1)?, frames: Vec::new() }))
    })?;
    let mut sites: BTreeMap<Id, Site> = sites.into_iter().collect();
    let frames = rows(c, "SELECT site, address, module, offset, inlined, function, file, line FROM frames ORDER BY site, depth", |r| {
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

/// Version 2 has no table of this name.
pub(crate) fn has_table(c: &Connection, name: &str) -> Result<bool> {
    let count: i64 = c
        .query_row("SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?", [name], |row| row.get(0))
        .map_err(|error| Error::invalid_data(error.to_string()))?;
    Ok(count > 0)
}

pub(crate) fn has_column(c: &Connection, table: &str, name: &str) -> Result<bool> {
    let count: i64 = c
        .query_row("SELECT count(*) FROM pragma_table_info(?) WHERE name = ?", [table, name], |row| row.get(0))
        .map_err(|error| Error::invalid_data(error.to_string()))?;
    Ok(count > 0)
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
fn small_blocks(c: &Connection) -> Result<Vec<SmallBlock>> {
    if !has_table(c, "small_blocks")? {
        return Ok(Vec::new());
    }
    rows(c, "SELECT process, thread, site, call, address, bytes, weight, time_ns FROM small_blocks", |r| {
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

/// Early files of version 3, and all of version 2, lack the table.
fn fault_periods(c: &Connection) -> Result<Vec<FaultPeriod>> {
    if !has_table(c, "fault_periods")? {
        return Ok(Vec::new());
    }
    let read = |r: &rusqlite::Row<'_>| Ok(FaultPeriod { time_ns: unsigned(r, 0)?, faults: unsigned(r, 1)?, part: None });
    rows(c, "SELECT time_ns, faults FROM fault_periods ORDER BY time_ns, rowid", read)
}

/// Early files of version 3, and all of version 2, lack the table.
fn populations(c: &Connection) -> Result<Vec<Population>> {
    if !has_table(c, "populations")? {
        return Ok(Vec::new());
    }
    rows(c, "SELECT process, thread, time_ns, call, address, bytes, future, site FROM populations ORDER BY time_ns, rowid", |r| {
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
fn appeared(c: &Connection) -> Result<Vec<Appeared>> {
    if !has_table(c, "appeared")? {
        return Ok(Vec::new());
    }
    rows(c, "SELECT process, from_ns, to_ns, address, bytes, page_bytes FROM appeared", |r| {
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
fn fault_counts(c: &Connection) -> Result<Vec<FaultCount>> {
    if !has_table(c, "fault_counts")? {
        return Ok(Vec::new());
    }
    rows(c, "SELECT process, thread, time_ns, faults FROM fault_counts", |r| {
        Ok(FaultCount { process: r.get(0)?, thread: r.get(1)?, time_ns: unsigned(r, 2)?, faults: unsigned(r, 3)? })
    })
}

/// Early files of version 3, and all of version 2, lack the table.
fn shared_memory(c: &Connection) -> Result<BTreeMap<Id, SharedMemory>> {
    if !has_table(c, "shared_memory")? {
        return Ok(BTreeMap::new());
    }
    let all = rows(c, "SELECT object, memory, offset FROM shared_memory", |r| {
        Ok((r.get(0)?, SharedMemory { memory: r.get(1)?, offset: unsigned(r, 2)? }))
    })?;
    Ok(all.into_iter().collect())
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

pub(crate) fn rows<T>(c: &Connection, sql: &str, read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>) -> Result<Vec<T>> {
    let read_all = || c.prepare(sql)?.query_map([], read)?.collect::<rusqlite::Result<Vec<T>>>();
    read_all().map_err(|error| Error::invalid_data(error.to_string()))
}

pub(crate) fn unsigned(row: &Row<'_>, index: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(index).map(i64::cast_unsigned)
}

pub(crate) fn maybe(row: &Row<'_>, index: usize) -> rusqlite::Result<Option<u64>> {
    row.get::<_, Option<i64>>(index).map(|v| v.map(i64::cast_unsigned))
}
