//! Records: snapshots in an SQLite file, and back. Only what changed is written, so that days fit in little space.
//!
//! | module | what it does |
//! |---|---|
//! | `cells.rs` | a snapshot as cells, (row, column) -> value, and back |
//! | `code.rs` | the changes of cells as bytes |
//! | `writer.rs`, `reader.rs` | the file |
//!
//! The file has three tables: `meta` (what it is), `names` (the rows, columns and texts, by number), `ticks` (a snapshot each: the changes since the
//! one before, as `code.rs` has them; each [`WHOLE_EACH`]th is whole; the checksum of all its cells).

mod cells;
mod code;
mod reader;
mod writer;

pub use reader::Reader;
pub use writer::Writer;

/// `PRAGMA application_id`: "FTR1".
const APPLICATION_ID: i32 = 0x4654_5231;
/// `PRAGMA user_version`.
const VERSION: i32 = 2;
const SCHEMA: &str = "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE names (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE ticks (id INTEGER PRIMARY KEY, time_ms INTEGER NOT NULL, is_whole INTEGER NOT NULL, checksum INTEGER NOT NULL, changes BLOB NOT NULL);";
/// So many snapshots have one that does not build on others.
const WHOLE_EACH: u64 = 256;

#[cfg(test)]
mod tests;
