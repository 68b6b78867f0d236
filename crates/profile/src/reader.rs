//! Reads a whole profile. The error for another kind of file, a damaged file or another schema says which it is.

use crate::foreign;
use crate::large;
use crate::parts::Parts;
use crate::slice::Slice;
use crate::small;
use crate::thin::{Rows, Thinning};
use crate::{APPLICATION_ID, OLDEST_VERSION, SCHEMA_VERSION};
use firsttouch_model::error::{Context, Error, Result};
use firsttouch_model::rows::metadata::Metadata;
use firsttouch_model::rows::{Id, Owner, Profile, Site};
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
    with_connection(path, |connection| {
        let parts = Parts::of(connection, path);
        let profile = load(connection, &parts, counts(&parts)?, with_sites)?;
        foreign::check_nodes(&profile)?;
        foreign::check_parts(&profile)?;
        Ok(Profile { owner: owner(path, &profile.meta), ..profile })
    })
}

/// Whose a profile is: the owner of the file could have written anything into it, and so could those that the file itself names.
pub(crate) fn owner(path: &Path, meta: &Metadata) -> Owner {
    let of_file = std::fs::metadata(path).map_or(Owner::Unknown, |about| Owner::User(about.uid()));
    of_file.and(meta.made_by.unwrap_or(Owner::ROOT))
}

/// Opens the profile at `path`, checks that its tables are tables, and reads something of it.
///
/// # Errors
/// As [`open`].
pub(crate) fn with_connection<T>(path: &Path, read: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
        // A reader of a crashed profile replays its WAL, which needs write access; without it, read what is in the main file.
        .or_else(|first| connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(|_| first))?;
    let checked = || -> Result<T> {
        if wal_exists(path) {
            foreign::check_pages(&connection)?;
        }
        foreign::check_schema(&connection)?;
        if !foreign::has_tables(&connection)? {
            return Err(Error::invalid_data(
                "it is empty: its recording was killed, or ended, before it wrote anything; take the profile again",
            ));
        }
        read(&connection)
    };
    checked().with_context(|| format!("cannot read profile {}: the file is damaged or incomplete", path.display()))
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

/// Reads all tables. `rows`: of the large ones, of which a part is read; `None` if all are to be read.
fn load(c: &Connection, parts: &Parts<'_>, rows: Option<Rows>, with_sites: impl FnOnce(&BTreeMap<Id, Site>)) -> Result<Profile> {
    let mut profile = small::load_rows(c, &Slice::ALL, small::load_recording(c)?)?;
    with_sites(&profile.sites);
    let thinning = rows.map_or(Thinning::NONE, |rows| Thinning::of(rows, &profile));
    large::load(parts, thinning, &mut profile)?;
    if let Some(rows) = rows {
        thinning.weigh(rows, &mut profile);
    }
    Ok(profile)
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
