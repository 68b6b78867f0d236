//! A profile may come from anywhere: what an SQLite database can hold besides rows is switched off or refused before anything is read.

use crate::SCHEMA;
use firsttouch_model::error::{Context, Error, Result};
use firsttouch_model::rows::Profile;
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;

/// The longest text of a profile, bytes: the names of C++ functions can be long, those of files cannot.
const LONGEST_TEXT: i32 = 16 << 20;
/// Steps of SQLite's machine for each byte of the file: reading a row takes some steps for each column, and a column takes a byte at least. A
/// damaged file whose pages lead to each other in circles has more rows than it has room for.
const STEPS_A_BYTE: u64 = 32;
const LEAST_STEPS: u64 = 10_000_000;
const STEPS_AT_ONCE: i32 = 100_000;
/// Nodes that a Linux kernel can have (`CONFIG_NODES_SHIFT` is 10 at most).
const MOST_NODES: u32 = 1024;

/// Switches off what no profile needs, and bounds what reading may cost. `bytes`: the size of the file and its WAL.
pub fn restrict(connection: &Connection, bytes: u64) -> Result<()> {
    let context = || "cannot restrict SQLite";
    for (config, value) in [
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false),
    ] {
        connection.set_db_config(config, value).with_context(context)?;
    }
    for (limit, most) in [
        (Limit::SQLITE_LIMIT_LENGTH, LONGEST_TEXT),
        (Limit::SQLITE_LIMIT_SQL_LENGTH, 100_000),
        (Limit::SQLITE_LIMIT_COLUMN, 100),
        (Limit::SQLITE_LIMIT_EXPR_DEPTH, 20),
        (Limit::SQLITE_LIMIT_ATTACHED, 0),
    ] {
        connection.set_limit(limit, most).with_context(context)?;
    }
    connection.pragma_update(None, "cell_size_check", true).with_context(context)?;
    let (mut steps, most) = (0_u64, LEAST_STEPS.max(bytes.saturating_mul(STEPS_A_BYTE)));
    connection.progress_handler(
        STEPS_AT_ONCE,
        Some(move || {
            steps += u64::from(STEPS_AT_ONCE.unsigned_abs());
            steps > most
        }),
    );
    Ok(())
}

/// Checks that the tables of a profile are tables: a view computes its rows, without end if it likes, and a virtual table runs code.
pub fn check_schema(connection: &Connection) -> Result<()> {
    let failed = |error: rusqlite::Error| Error::invalid_data(error.to_string());
    let own = Connection::open_in_memory().and_then(|own| own.execute_batch(SCHEMA).map(|()| own)).map_err(failed)?;
    let names = "SELECT name, type, rootpage > 0 FROM sqlite_schema WHERE type IN ('table', 'view')";
    let entries = |c: &Connection| -> rusqlite::Result<Vec<(String, String, bool)>> {
        c.prepare(names)?.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect()
    };
    let known = entries(&own).map_err(failed)?;
    for (name, kind, has_pages) in entries(connection).map_err(failed)? {
        if !known.iter().any(|(known, ..)| known.eq_ignore_ascii_case(&name)) {
            continue;
        }
        if kind != "table" || !has_pages {
            let kind = if kind == "table" { "a virtual table" } else { "a view" };
            return Err(Error::invalid_data(format!("'{name}' is {kind}, and a profile has a table")));
        }
        let computed: i64 = connection
            .query_row("SELECT count(*) FROM pragma_table_xinfo(?) WHERE hidden <> 0", [&name], |row| row.get(0))
            .map_err(failed)?;
        if computed > 0 {
            return Err(Error::invalid_data(format!("table '{name}' has computed columns, which no profile has")));
        }
    }
    Ok(())
}

/// Checks a file that was not closed (its WAL is still there), page by page.
pub fn check_pages(connection: &Connection) -> Result<()> {
    let found: String =
        connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(|error| Error::invalid_data(error.to_string()))?;
    if found == "ok" { Ok(()) } else { Err(Error::invalid_data(found)) }
}

/// Checks that the numbers of nodes are numbers of nodes: tables of them are as large as the largest one.
pub fn check_nodes(profile: &Profile) -> Result<()> {
    let signed = |node: i32| u32::try_from(node).ok();
    let all = profile
        .pages
        .iter()
        .filter_map(|page| Some(("pages", signed(page.node)?)))
        .chain(profile.first_touches.iter().filter_map(|touch| Some(("first_touches", touch.node.and_then(signed)?))))
        .chain(profile.counters.iter().filter_map(|counter| Some(("counters", counter.node?))));
    match all.into_iter().find(|(_, node)| *node >= MOST_NODES) {
        Some((table, node)) => {
            Err(Error::invalid_data(format!("table {table} has node {node}, and Linux has nodes 0 to {} at most", MOST_NODES - 1)))
        }
        None => Ok(()),
    }
}
