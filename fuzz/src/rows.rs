//! A valid database with damaged rows: each line of the input has the letter of a table and the values of a row, as SQLite stores them.

use crate::Scratch;
use firsttouch_profile::{APPLICATION_ID, SCHEMA, SCHEMA_VERSION};
use rusqlite::Connection;
use rusqlite::types::Value;

/// Tables by letter; after z come {, |, } and ~.
const TABLES: [&str; 30] = [
    "meta",
    "machine",
    "evidence",
    "processes",
    "threads",
    "thread_cpus",
    "sites",
    "frames",
    "objects",
    "folded_objects",
    "first_touches",
    "windows",
    "accesses",
    "pages",
    "regions",
    "releases",
    "policies",
    "counters",
    "lost",
    "source_files",
    "shared_memory",
    "small_blocks",
    "fault_periods",
    "appeared",
    "fault_counts",
    "samples",
    "sampled_accesses",
    "hosts",
    "parts",
    "bandwidth",
];

/// A value in a line: an empty one is NULL, digits are an integer, digits with a dot a float, and `'` begins a text.
fn value(text: &str) -> Value {
    if text.is_empty() {
        Value::Null
    } else if let Some(text) = text.strip_prefix('\'') {
        Value::Text(text.to_owned())
    } else if let Ok(number) = text.parse() {
        Value::Integer(number)
    } else {
        text.parse().map_or_else(|_| Value::Blob(text.as_bytes().to_vec()), Value::Real)
    }
}

/// A profile with the rows of an input.
pub fn profile_of_rows(name: &str, input: &str) -> Scratch {
    let file = Scratch::new(name, b"");
    let connection = Connection::open(file.path()).expect("a database");
    connection.execute_batch(&format!("PRAGMA journal_mode=MEMORY; PRAGMA synchronous=OFF; BEGIN; {SCHEMA}; PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={SCHEMA_VERSION};")).expect("the schema");
    let columns: Vec<usize> = TABLES
        .iter()
        .map(|table| connection.query_row("SELECT count(*) FROM pragma_table_info(?)", [table], |row| row.get(0)).expect("a table"))
        .collect();
    for line in input.lines().take(2000) {
        let mut words = line.split(' ');
        let Some(letter) = words.next().and_then(|word| word.bytes().next()) else { continue };
        let place = usize::from(letter.wrapping_sub(b'a'));
        let (Some(table), Some(columns)) = (TABLES.get(place), columns.get(place)) else { continue };
        let values: Vec<Value> = words.map(value).chain(std::iter::repeat(Value::Null)).take(*columns).collect();
        let places = vec!["?"; *columns].join(",");
        let Ok(mut statement) = connection.prepare_cached(&format!("INSERT INTO {table} VALUES ({places})")) else { continue };
        // SQLite refuses duplicate keys, and NULL in columns that do not allow it.
        let _ = statement.execute(rusqlite::params_from_iter(values));
    }
    connection.execute_batch("COMMIT").expect("a database in memory");
    drop(connection);
    file
}
