//! An intact profile, changed by SQL: rows, but also tables, views, triggers, indexes, virtual tables. Whatever it then is, it is refused or judged.
#![no_main]

use firsttouch_fuzz::{Scratch, judged, mutate};
use firsttouch_profile::{APPLICATION_ID, SCHEMA, SCHEMA_VERSION};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use rusqlite::Connection;
use rusqlite::limits::Limit;

/// Steps of SQLite's machine for the changes: what they do is not under test.
const STEPS: i32 = 200_000;

fuzz_mutator!(|data: &mut [u8], size: usize, most: usize, seed: u32| { mutate::text(data, size, most, seed) });

fuzz_target!(|input: &str| {
    let file = Scratch::new("sql.ftp", b"");
    let connection = Connection::open(file.path()).expect("a database");
    let own = format!(
        "PRAGMA journal_mode=MEMORY; PRAGMA synchronous=OFF; {SCHEMA}; PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={SCHEMA_VERSION};"
    );
    connection.execute_batch(&own).expect("the schema");
    for (limit, most) in [(Limit::SQLITE_LIMIT_ATTACHED, 0), (Limit::SQLITE_LIMIT_LENGTH, 1 << 20)] {
        connection.set_limit(limit, most).expect("a limit");
    }
    for statement in input.split(';').take(200) {
        let mut steps = 0;
        connection.progress_handler(
            1000,
            Some(move || {
                steps += 1000;
                steps > STEPS
            }),
        );
        let _ = connection.execute_batch(statement);
    }
    drop(connection);
    if let Ok(profile) = firsttouch_profile::open(file.path()) {
        judged(&profile);
    }
});
