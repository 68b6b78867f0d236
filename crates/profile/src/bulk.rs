//! Rows of the largest tables. They wait in memory until the next flush, and are inserted many at a time: one row at a time, each between
//! other work, took three times as long.

use rusqlite::Connection;
use rusqlite::types::Value;
use std::fmt::Write as _;

/// Rows of one insertion.
const TOGETHER: usize = 32;
/// Rows that wait at most.
const MOST: usize = 4096;

/// A row of a table with `N` columns.
pub trait Row<const N: usize> {
    const TABLE: &'static str;

    fn values(&self) -> [Value; N];
}

/// Rows that wait.
pub struct Bulk<T>(Vec<T>);

impl<T> Default for Bulk<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Bulk<T> {
    /// Adds a row, and writes all of them if there are many.
    pub fn add<const N: usize>(&mut self, row: T, connection: &Connection) -> rusqlite::Result<()>
    where
        T: Row<N>,
    {
        self.0.push(row);
        if self.0.len() < MOST { Ok(()) } else { self.write(connection) }
    }

    /// Inserts the rows that wait.
    pub fn write<const N: usize>(&mut self, connection: &Connection) -> rusqlite::Result<()>
    where
        T: Row<N>,
    {
        let all = self.0.chunks_exact(TOGETHER);
        let rest = all.remainder().chunks(1);
        all.chain(rest).try_for_each(|rows| insert(rows, connection))?;
        self.0.clear();
        Ok(())
    }
}

fn insert<T: Row<N>, const N: usize>(rows: &[T], connection: &Connection) -> rusqlite::Result<()> {
    let mut sql = format!("INSERT INTO {} VALUES ", T::TABLE);
    for row in 0..rows.len() {
        let _ = write!(sql, "{}({}?)", if row == 0 { "" } else { ", " }, "?, ".repeat(N - 1));
    }
    let mut statement = connection.prepare_cached(&sql)?;
    for (at, value) in (1..).zip(rows.iter().flat_map(Row::values)) {
        statement.raw_bind_parameter(at, value)?;
    }
    statement.raw_execute().map(drop)
}
