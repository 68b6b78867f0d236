//! Writes a record.

use super::cells::{Cells, Scalar, apart, checksum};
use super::code::{Coded, State, changes};
use super::{APPLICATION_ID, SCHEMA, VERSION, WHOLE_EACH};
use crate::snapshot::Snapshot;
use firsttouch_model::error::{Context, Error, Result};
use firsttouch_profile::InWords;
use firsttouch_system::calls::claim::claim;
use firsttouch_system::calls::rename::rename_new;
use rusqlite::{Connection, OpenFlags, params};
use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Names of rows that are kept in memory: a machine that starts a process each second has forgotten them after some days.
const MOST_NAMES: usize = 200_000;

/// A record that is being written.
pub struct Writer {
    connection: Connection,
    /// Where an older record was moved to.
    kept: Option<PathBuf>,
    state: State,
    names: HashMap<String, i64>,
    next_name: i64,
    ticks: u64,
    /// Dropped after the connection.
    place: Place,
}

/// The new file. It is removed if nothing was recorded in it.
struct Place {
    path: PathBuf,
    /// Held while the record is written.
    claim: File,
    is_empty: bool,
}

impl Writer {
    /// Creates the file. An older record of that name is kept as `FILE.1`, `FILE.2`, ...
    ///
    /// # Errors
    /// When something else is there, another firsttouch is writing it, or it cannot be written.
    pub fn create(path: &Path) -> Result<Self> {
        let cannot = || format!("cannot create record {}", path.display());
        let kept = keep_older(path).with_context(cannot)?;
        let created = Self::create_new(path, kept.clone());
        if let (Err(_), Some(kept)) = (&created, &kept) {
            // The name is free: what was created there was removed.
            let _ = rename_new(kept, path);
        }
        created.with_context(cannot)
    }

    fn create_new(path: &Path, kept: Option<PathBuf>) -> Result<Self> {
        let claimed = File::options().read(true).write(true).create_new(true).open(path)?;
        if !claim(&claimed) {
            return Err(Error::invalid_input("another process holds the file"));
        }
        let place = Place { path: path.to_owned(), claim: claimed, is_empty: true };
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let open = || -> rusqlite::Result<Connection> {
            let connection = Connection::open_with_flags(plain(path), flags)?;
            connection.pragma_update(None, "application_id", APPLICATION_ID)?;
            connection.pragma_update(None, "user_version", VERSION)?;
            // A crash of the machine may destroy the record, a crash of firsttouch does not.
            connection.pragma_update(None, "synchronous", "OFF")?;
            connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
            connection.execute_batch(&format!("BEGIN; {SCHEMA} COMMIT;"))?;
            connection.execute("INSERT INTO meta VALUES ('tool_version', ?)", [env!("CARGO_PKG_VERSION")])?;
            Ok(connection)
        };
        let connection = open().in_words(path, || "cannot write its first page")?;
        Ok(Self { connection, kept, state: State::new(), names: HashMap::new(), next_name: 1, ticks: 0, place })
    }

    /// Where an older record of this name was moved to.
    #[must_use]
    pub fn kept(&self) -> Option<&Path> {
        self.kept.as_deref()
    }

    /// Adds a snapshot.
    ///
    /// # Errors
    /// When the disk is full or the file was removed. Earlier snapshots stay.
    pub fn add(&mut self, snapshot: &Snapshot) -> Result<()> {
        let value = serde_json::to_value(snapshot).context("cannot record a snapshot")?;
        let failed = format!("cannot write record {}", self.place.path.display());
        let path = self.place.path.clone();
        self.connection.execute_batch("BEGIN").in_words(&path, || failed.clone())?;
        let written = self.write(&apart(&value), (snapshot.time_s * 1000.0).round() as i64);
        let end = if written.is_ok() { "COMMIT" } else { "ROLLBACK" };
        self.connection.execute_batch(end).and(written).in_words(&path, || failed)?;
        self.place.is_empty = false;
        Ok(())
    }

    fn write(&mut self, cells: &Cells, time_ms: i64) -> rusqlite::Result<()> {
        if self.names.len() > MOST_NAMES {
            // Names that are still in use get new numbers.
            self.names.clear();
            self.ticks += WHOLE_EACH - self.ticks % WHOLE_EACH;
        }
        let is_whole = self.ticks.is_multiple_of(WHOLE_EACH);
        let mut state = State::new();
        for ((row, column), scalar) in cells {
            let (row, column) = (self.name(row)?, self.name(column)?);
            let coded = self.coded(scalar)?;
            state.entry(row.unsigned_abs()).or_default().insert(column.unsigned_abs(), coded);
        }
        let before = if is_whole { State::new() } else { std::mem::take(&mut self.state) };
        let bytes = changes(&before, &state);
        self.connection
            .prepare_cached("INSERT INTO ticks (time_ms, is_whole, checksum, changes) VALUES (?, ?, ?, ?)")?
            .execute(params![time_ms, is_whole, checksum(cells), bytes])?;
        self.state = state;
        self.ticks += 1;
        Ok(())
    }

    fn coded(&mut self, scalar: &Scalar) -> rusqlite::Result<Coded> {
        Ok(match scalar {
            Scalar::Null => Coded::Null,
            Scalar::Bool(false) => Coded::False,
            Scalar::Bool(true) => Coded::True,
            Scalar::Integer(value) => Coded::Integer(*value),
            Scalar::Fraction(value) => Coded::Fraction(*value),
            Scalar::Text(text) => Coded::Text(self.name(text)?),
            Scalar::Empty => Coded::Shape(0),
            Scalar::Length(length) => Coded::Shape(i64::try_from(*length).unwrap_or(i64::MAX - 1) + 1),
        })
    }

    /// The number of a name, which is written the first time.
    fn name(&mut self, name: &str) -> rusqlite::Result<i64> {
        if let Some(number) = self.names.get(name) {
            return Ok(*number);
        }
        let number = self.next_name;
        self.connection.prepare_cached("INSERT INTO names VALUES (?, ?)")?.execute(params![number, name])?;
        self.next_name += 1;
        self.names.insert(name.to_owned(), number);
        Ok(number)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // The record becomes one file, unless someone reads it.
        let _ = self.connection.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(()));
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let same = |one: &Metadata, other: &Metadata| (one.dev(), one.ino()) == (other.dev(), other.ino());
        let is_ours = matches!((std::fs::symlink_metadata(&self.path), self.claim.metadata()), (Ok(now), Ok(own)) if same(&now, &own));
        if self.is_empty && is_ours {
            for side in ["", "-wal", "-shm", "-journal"] {
                let mut name = self.path.as_os_str().to_owned();
                name.push(side);
                let _ = std::fs::remove_file(name);
            }
        }
    }
}

/// A name that SQLite takes for a path.
pub(super) fn plain(path: &Path) -> PathBuf {
    if path.is_absolute() { path.to_owned() } else { Path::new(".").join(path) }
}

/// `PRAGMA application_id` of an SQLite file, from its header; `None` for other files.
pub(super) fn application_id(path: &Path) -> Option<i32> {
    use std::io::Read;
    let mut header = [0; 72];
    File::open(path).ok()?.read_exact(&mut header).ok()?;
    header.starts_with(b"SQLite format 3\0").then(|| i32::from_be_bytes([header[68], header[69], header[70], header[71]]))
}

/// Renames an older record. Returns its new name, if there was one.
fn keep_older(path: &Path) -> Result<Option<PathBuf>> {
    let Ok(about) = std::fs::symlink_metadata(path) else { return Ok(None) };
    if about.is_file() && about.len() == 0 {
        // As mktemp makes it.
        return std::fs::remove_file(path).map(|()| None).context("cannot replace the empty file");
    }
    if !about.is_file() || application_id(path) != Some(APPLICATION_ID) {
        return Err(Error::invalid_input("another kind of file is already there: move it away, or choose another name"));
    }
    let older = File::options().read(true).write(true).open(path).context("cannot open the older record")?;
    if !claim(&older) {
        return Err(Error::invalid_input("another firsttouch is writing it: choose another name"));
    }
    let numbered = |number: u32| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{number}"));
        PathBuf::from(name)
    };
    let free = (1..10_000).map(numbered).find(|name| std::fs::symlink_metadata(name).is_err());
    let free = free.ok_or_else(|| Error::invalid_input("10,000 older records are kept already: remove some"))?;
    // Rows that a crash left in the WAL go into the file first: the WAL has the file's name.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if let Ok(connection) = Connection::open_with_flags(plain(path), flags) {
        let _ = connection.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(()));
    }
    std::fs::rename(path, &free).context("cannot rename the older record")?;
    drop(older);
    Ok(Some(free))
}
