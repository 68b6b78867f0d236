//! Divides the rows of a large table, so that all CPUs pass over it. Each part is read by a connection of its own, because a connection serves one
//! thread.

use crate::reader::{connect, has_table, wal_exists};
use crate::{foreign, thin::Rows};
use firsttouch_model::error::{Error, Result};
use firsttouch_model::parallel;
use firsttouch_system::calls::heap::give_back;
use rusqlite::{Connection, OpenFlags};
use std::fmt;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::OnceLock;
use std::thread::available_parallelism;

/// Rows of a part, at least: a connection costs as much as some thousand rows.
const LEAST: i64 = 100_000;
const MOST_PARTS: usize = 8;
/// Tables of smaller files are counted in no time, bytes.
const LARGE_FILE: u64 = 32 << 20;

/// The numbers of the first and the last row that are read; `None` for all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Part(pub Option<(i64, i64)>);

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some((first, last)) => write!(f, "WHERE rowid BETWEEN {first} AND {last}"),
            None => write!(f, "WHERE true"),
        }
    }
}

/// A profile, and the connection that its small tables are read with.
pub struct Parts<'a> {
    connection: &'a Connection,
    path: &'a Path,
    /// Other connections see the same rows.
    is_at_rest: bool,
}

impl<'a> Parts<'a> {
    pub fn of(connection: &'a Connection, path: &'a Path) -> Self {
        Self { connection, path, is_at_rest: !wal_exists(path) }
    }

    /// The rows of a table, in the order of their numbers: `read` reads one part.
    pub fn read<T: Send>(&self, table: &str, read: impl Fn(&Connection, Part) -> Result<Vec<T>> + Sync) -> Result<Vec<T>> {
        let parts = if self.is_at_rest { self.divide(table, workers()) } else { Vec::new() };
        if parts.len() < 2 {
            return read(self.connection, Part(None));
        }
        let path = self.path;
        let read = parallel::map(&parts, |part| another(path).and_then(|c| read(&c, *part)));
        let mut parts = read.into_iter().collect::<Result<Vec<Vec<T>>>>()?.into_iter();
        let mut all = parts.next().unwrap_or_default();
        all.reserve_exact(parts.as_slice().iter().map(Vec::len).sum());
        parts.for_each(|part| all.extend(part));
        // What the other threads held is of no use to this one.
        give_back();
        Ok(all)
    }

    /// The number of rows of the large tables. Version 2 has no samples.
    pub fn count(&self) -> Result<Rows> {
        const TABLES: [&str; 3] = ["first_touches", "windows", "samples"];
        let path = self.path;
        let is_large = std::fs::metadata(path).is_ok_and(|about| about.len() >= LARGE_FILE);
        let counts = if self.is_at_rest && is_large {
            parallel::map(&TABLES, |table| another(path).and_then(|c| count(&c, table)))
        } else {
            TABLES.iter().map(|table| count(self.connection, table)).collect()
        };
        let counts = counts.into_iter().collect::<Result<Vec<u64>>>()?;
        Ok(Rows { touches: counts[0], windows: counts[1], samples: counts[2] })
    }

    fn divide(&self, table: &str, workers: usize) -> Vec<Part> {
        let end = |order: &str| -> Option<i64> {
            self.connection.query_row(&format!("SELECT rowid FROM {table} ORDER BY rowid {order} LIMIT 1"), [], |row| row.get(0)).ok()
        };
        end("ASC").zip(end("DESC")).map_or_else(Vec::new, |(first, last)| divided(first, last, workers))
    }
}

/// Parts of about equal length of the rows from `first` to `last`.
fn divided(first: i64, last: i64, workers: usize) -> Vec<Part> {
    let length = i128::from(last) - i128::from(first) + 1;
    let parts = (length / i128::from(LEAST)).clamp(1, workers.max(1) as i128);
    let start = |part: i128| i128::from(first) + length * part / parts;
    let fits = |number: i128| i64::try_from(number).unwrap_or(i64::MAX);
    (0..parts).map(|part| Part(Some((fits(start(part)), fits(start(part + 1) - 1))))).collect()
}

/// Asking for the number of CPUs reads files of control groups.
fn workers() -> usize {
    static CPUS: OnceLock<usize> = OnceLock::new();
    *CPUS.get_or_init(|| available_parallelism().map_or(1, NonZeroUsize::get).min(MOST_PARTS))
}

/// Another connection, which is as careful as the first.
fn another(path: &Path) -> Result<Connection> {
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    foreign::check_schema(&connection)?;
    Ok(connection)
}

fn count(c: &Connection, table: &str) -> Result<u64> {
    if !has_table(c, table)? {
        return Ok(0);
    }
    let all: i64 = c
        .query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0))
        .map_err(|error| Error::invalid_data(error.to_string()))?;
    Ok(all.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that parts cover all row numbers once, also the least and the greatest possible ones, and that small tables stay whole.
    #[test]
    fn parts_cover_all_rows() {
        for (first, last, workers, parts) in
            [(1, LEAST, 8, 1), (1, 3 * LEAST, 2, 2), (-5, 10 * LEAST, 8, 8), (i64::MIN, i64::MAX, 3, 3), (7, 7, 0, 1)]
        {
            let found: Vec<(i64, i64)> = divided(first, last, workers).iter().filter_map(|part| part.0).collect();
            assert_eq!(found.len(), parts, "{first} to {last}");
            assert_eq!((found[0].0, found[parts - 1].1), (first, last));
            assert!(found.windows(2).all(|pair| pair[0].1 + 1 == pair[1].0 && pair[0].0 <= pair[0].1), "{found:?}");
        }
    }
}
