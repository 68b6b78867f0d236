//! Makes a profile one file where the disk is full: SQLite would need space to move rows from the WAL into the file, although most of the WAL may
//! be rows that were rolled back.

use crate::place::{beside, remove_sides};
use firsttouch_model::error::{Context, Result};
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Pages that are copied at once, and how often: 4 TiB.
const PAGES: i32 = 1024;
const MOST_STEPS: u32 = 1 << 20;
/// Where the file's header has the versions for writing and reading: 2 is WAL mode, 1 is not (sqlite.org/fileformat2.html, 1.3.3).
const VERSIONS: u64 = 18;

/// Whether rows of a profile are in a WAL beside it.
pub fn has_wal(path: &Path) -> bool {
    beside(path, "-wal").exists()
}

/// Copies what was committed to memory, removes the WAL, and writes the file anew. It takes no more space than file and WAL did.
///
/// # Errors
/// When there is no memory, or the file cannot be written.
pub fn fold(connection: Connection, path: &Path) -> Result<()> {
    let context = || format!("cannot complete profile {}", path.display());
    let mut memory = Connection::open_in_memory().with_context(context)?;
    copy(&connection, &mut memory).with_context(context)?;
    drop(connection);
    remove_sides(path).with_context(context)?;
    File::options().write(true).truncate(true).open(path).with_context(context)?;
    let mut file = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE).with_context(context)?;
    file.execute_batch("PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF;").with_context(context)?;
    copy(&memory, &mut file).with_context(context)?;
    file.close().map_err(|(_, error)| error).with_context(context)?;
    let file = File::options().write(true).open(path).with_context(context)?;
    file.write_all_at(&[1, 1], VERSIONS).with_context(context)
}

fn copy(from: &Connection, to: &mut Connection) -> rusqlite::Result<()> {
    let backup = Backup::new(from, to)?;
    for _ in 0..MOST_STEPS {
        match backup.step(PAGES)? {
            StepResult::Done => return Ok(()),
            StepResult::More => {}
            // Another process has the file open, for as long as it likes.
            _ => return Err(rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_BUSY), None)),
        }
    }
    Err(rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_TOOBIG), None))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a profile whose rows are all in the WAL is one file afterwards, with the rows that were committed and no others.
    #[test]
    fn profiles_become_one_file() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("a.ftp");
        let connection = Connection::open(&path).expect("a file");
        connection
            .execute_batch(
                "PRAGMA journal_mode = WAL; CREATE TABLE t (x); INSERT INTO t VALUES (7); BEGIN; INSERT INTO t VALUES (8); ROLLBACK;",
            )
            .expect("a table");
        assert!(has_wal(&path));
        fold(connection, &path).expect("one file");
        let names: Vec<_> =
            std::fs::read_dir(directory.path()).expect("a folder").map(|entry| entry.expect("a file").file_name()).collect();
        assert_eq!(names, ["a.ftp"]);
        let read = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY).expect("the file");
        let sum = |sql: &str| read.query_row(sql, [], |row| row.get::<_, i64>(0)).expect("a number");
        assert_eq!((sum("SELECT sum(x) FROM t"), sum("PRAGMA page_count")), (7, 2));
        let mode: String = read.query_row("PRAGMA journal_mode", [], |row| row.get(0)).expect("a mode");
        assert_eq!(mode, "delete");
    }
}
