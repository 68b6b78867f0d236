//! Reads a profile again and again while another process writes it: of the large tables, only the rows that are new.

use crate::foreign;
use crate::large;
use crate::parts::Part;
use crate::reader::{connect, owner, plain, wal_exists};
use crate::slice::Slice;
use crate::small;
use firsttouch_model::error::{Context, Error, Result};
use firsttouch_model::rows::{Id, Profile};
use rusqlite::{Connection, OpenFlags};
use std::path::{Path, PathBuf};

/// A profile that another process writes. (The writing process must not read it: closing the file would give up SQLite's locks.)
pub struct LiveReader {
    path: PathBuf,
    connection: Connection,
    /// What SQLite said of the version that was read last.
    version: Option<i64>,
    /// The last rows that were read of the tables that only grow at their end.
    touch: Id,
    sample: Id,
    access: Id,
}

impl LiveReader {
    /// Opens the profile. `None` if its writer would have to wait for readers (a file system without WAL), or has not written anything yet.
    ///
    /// # Errors
    /// When it is not a profile, or damaged.
    pub fn open(path: &Path) -> Result<Option<Self>> {
        if !wal_exists(path) {
            return Ok(None);
        }
        let connection = connect(&plain(path), OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        foreign::check_schema(&connection)?;
        if !foreign::has_tables(&connection)? {
            return Ok(None);
        }
        // It reads as long as the other process writes.
        connection.progress_handler(0, None::<fn() -> bool>);
        Ok(Some(Self { path: path.to_owned(), connection, version: None, touch: Id::MIN, sample: Id::MIN, access: Id::MIN }))
    }

    /// Brings the profile up to date: new rows of the large tables are added, all other tables replaced. Returns whether anything changed.
    ///
    /// # Errors
    /// When the file is damaged.
    pub fn refresh(&mut self, profile: &mut Profile) -> Result<bool> {
        self.read(profile).with_context(|| format!("cannot read profile {}", self.path.display()))
    }

    fn read(&mut self, profile: &mut Profile) -> Result<bool> {
        let failed = |error: rusqlite::Error| Error::invalid_data(error.to_string());
        let version: i64 = self.connection.query_row("PRAGMA data_version", [], |row| row.get(0)).map_err(failed)?;
        if self.version.replace(version) == Some(version) {
            return Ok(false);
        }
        let c = self.connection.unchecked_transaction().map_err(failed)?;
        let last_access: Option<Id> = c.query_row("SELECT max(rowid) FROM sampled_accesses", [], |row| row.get(0)).map_err(failed)?;
        // A table that has become empty counts from 1 again.
        if last_access.is_some_and(|last| last < self.access) {
            self.access = Id::MIN;
        }
        let after = |row: Id| Part(Some((row.saturating_add(1), Id::MAX)));
        let mut read = small::load_rows(&c, &Slice::ALL, small::load_recording(&c)?)?;
        large::load_after(&c, [after(self.touch), after(self.sample), after(self.access)], &mut read)?;
        drop(c);
        foreign::check_nodes(&read)?;
        read.owner = owner(&self.path, &read.meta);
        self.touch = read.first_touches.last().map_or(self.touch, |touch| touch.id);
        self.sample = read.samples.last().map_or(self.sample, |sample| sample.id);
        self.access = last_access.unwrap_or(self.access);
        let old = std::mem::replace(profile, read);
        prepend(&mut profile.first_touches, old.first_touches);
        prepend(&mut profile.samples, old.samples);
        prepend(&mut profile.sampled_accesses, old.sampled_accesses);
        // Names that were looked up meanwhile.
        profile.meta.symbols = old.meta.symbols;
        for (id, site) in old.sites {
            profile.sites.insert(id, site);
        }
        Ok(true)
    }
}

fn prepend<T>(new: &mut Vec<T>, mut old: Vec<T>) {
    old.append(new);
    *new = old;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Writer;
    use firsttouch_model::rows::{AccessKind, SampleState, SampledAccess, TimerSample};

    fn sample(id: Id, time_ns: u64) -> TimerSample {
        TimerSample {
            id,
            thread: 0,
            time_ns,
            cpu: 0,
            cpu_ns: 0,
            weight: 1.0,
            site: None,
            state: SampleState::Computing,
            around: None,
            unknown: 0,
            elsewhere: 0.0,
        }
    }

    fn access(sample: Id) -> SampledAccess {
        SampledAccess { sample, object: 1, address: 64, bytes: 8, words: 1.0, kind: AccessKind::Read, site: None, stride: None }
    }

    fn write(writer: &mut Writer, ids: std::ops::RangeInclusive<Id>) {
        for id in ids {
            writer.sampled_access(access(id)).unwrap();
            writer.sample(sample(id, 10 * id.unsigned_abs())).unwrap();
        }
        writer.flush().unwrap();
    }

    /// Check that new rows are added once, that rows which the writer removes do no harm, and that an open reader does not stop the writer's end.
    #[test]
    fn rows_are_read_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.ftp");
        let mut writer = Writer::create(&path).unwrap();
        write(&mut writer, 1..=3);
        let mut reader = LiveReader::open(&path).unwrap().expect("a WAL");
        let mut profile = Profile::default();
        assert!(reader.refresh(&mut profile).unwrap());
        assert!(!reader.refresh(&mut profile).unwrap(), "nothing new");
        let ids = |profile: &Profile| profile.samples.iter().map(|sample| sample.id).collect::<Vec<_>>();
        assert_eq!(ids(&profile), [1, 2, 3]);
        writer.forget_samples(30).unwrap();
        write(&mut writer, 4..=5);
        assert!(reader.refresh(&mut profile).unwrap());
        assert_eq!((ids(&profile), profile.sampled_accesses.len()), (vec![1, 2, 3, 4, 5], 5));
        let whole = crate::open(&path).unwrap();
        assert_eq!((ids(&whole), whole.sampled_accesses.len()), (vec![3, 4, 5], 3));
        // All rows go: the table of accesses counts from 1 again.
        writer.forget_samples(1000).unwrap();
        writer.flush().unwrap();
        reader.refresh(&mut profile).unwrap();
        write(&mut writer, 6..=7);
        reader.refresh(&mut profile).unwrap();
        assert_eq!((ids(&profile), profile.sampled_accesses.len()), (vec![1, 2, 3, 4, 5, 6, 7], 7));
        writer.finish().unwrap();
        drop(reader);
        assert_eq!(ids(&crate::open(&path).unwrap()), [6, 7]);
    }

    /// Check that a profile whose tables are just being made is not damaged: a reader that comes then tries again, and one that comes after its
    /// writer was killed says that it is empty.
    #[test]
    fn profiles_without_tables_are_empty() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.ftp");
        let begun = Connection::open(&path).unwrap();
        begun.pragma_update(None, "application_id", crate::APPLICATION_ID).unwrap();
        begun.pragma_update(None, "user_version", crate::SCHEMA_VERSION).unwrap();
        begun.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).unwrap();
        begun.execute_batch("BEGIN IMMEDIATE;").unwrap();
        assert!(LiveReader::open(&path).unwrap().is_none());
        let error = format!("{:#}", crate::open(&path).unwrap_err());
        assert!(error.contains("before it wrote anything"), "{error}");
        begun.execute_batch(&format!("{} COMMIT;", crate::SCHEMA)).unwrap();
        assert!(LiveReader::open(&path).unwrap().is_some());
    }
}
