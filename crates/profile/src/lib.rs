//! The profile file: an SQLite database that users can open. It is written while the target runs, and is readable after a crash.

mod bulk;
mod fold;
mod foreign;
mod kept;
mod large;
mod live;
pub mod merge;
mod parts;
mod place;
mod ranks;
mod reader;
mod reserve;
mod rows;
mod slice;
mod small;
mod sqlite;
mod thin;
mod writer;

pub use foreign::{check_schema_of, restrict};
pub use live::LiveReader;
pub use place::{Created, Output, is_profile, kept};
pub use reader::{open, open_to_judge, open_with, shares};
pub use sqlite::InWords;
pub use thin::{MOST as MOST_ROWS, thin};
pub use writer::{Abandoned, Writer};

/// The schema of the file.
pub const SCHEMA: &str = include_str!("schema.sql");
/// `PRAGMA application_id`: "FTP1".
pub const APPLICATION_ID: i32 = 0x4654_5031;
/// `PRAGMA user_version` of new profiles.
pub const SCHEMA_VERSION: i32 = 3;
/// The oldest version that is read. Version 2 has no timer samples.
pub const OLDEST_VERSION: i32 = 2;
