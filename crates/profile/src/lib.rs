//! The profile file: one SQLite database a user can open. Written while the target runs, readable after a crash.

mod reader;
mod writer;

pub use reader::open;
pub use writer::Writer;

/// The schema of the file; readers refuse others by name.
pub const SCHEMA: &str = include_str!("schema.sql");
/// `PRAGMA application_id`: "FTP1".
pub const APPLICATION_ID: i32 = 0x4654_5031;
/// `PRAGMA user_version`.
pub const SCHEMA_VERSION: i32 = 2;
