//! A profile may come from anywhere: what an SQLite database can hold besides rows is switched off or refused before anything is read.

use crate::SCHEMA;
use firsttouch_model::error::{Context, Error, Result};
use firsttouch_model::rows::{FirstIds, Host, Id, Part, Profile};
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
pub const MOST_NODES: u32 = 1024;

/// Switches off what no profile needs, and bounds what reading may cost. `bytes`: the size of the file and its WAL.
///
/// # Errors
/// When SQLite refuses.
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

/// Columns that early files of a version lack, each the last of its table.
const LATER_COLUMNS: [(&str, &str); 5] = [
    ("accesses", "cpu_ns INTEGER"),
    ("samples", "loop_left INTEGER"),
    ("fault_periods", "part INTEGER"),
    ("frames", "column INTEGER"),
    ("shared_memory", "present INTEGER"),
];

/// Checks that the tables of a profile are those of its schema.
pub fn check_schema(connection: &Connection) -> Result<()> {
    check_tables(connection, SCHEMA, &LATER_COLUMNS)
}

/// Checks that the tables which this schema has are as it says: a view computes its rows, without end if it likes, a virtual table runs code, and
/// columns of other types, with defaults, conditions or orders of their own are not what a reader expects. Other tables are not read.
///
/// # Errors
/// Names what differs.
pub fn check_schema_of(connection: &Connection, schema: &str) -> Result<()> {
    check_tables(connection, schema, &[])
}

fn check_tables(connection: &Connection, schema: &str, later: &[(&str, &str)]) -> Result<()> {
    let failed = |error: rusqlite::Error| Error::invalid_data(error.to_string());
    let own = Connection::open_in_memory().and_then(|own| own.execute_batch(schema).map(|()| own)).map_err(failed)?;
    let query = "SELECT name, type, rootpage > 0, coalesce(sql, '') FROM sqlite_schema WHERE type IN ('table', 'view')";
    let entries = |c: &Connection| -> rusqlite::Result<Vec<(String, String, bool, String)>> {
        c.prepare(query)?.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?.collect()
    };
    let known = entries(&own).map_err(failed)?;
    for (name, kind, has_pages, statement) in entries(connection).map_err(failed)? {
        let Some((known, .., expected)) = known.iter().find(|(known, ..)| known.eq_ignore_ascii_case(&name)) else { continue };
        if kind != "table" || !has_pages {
            let kind = if kind == "table" { "a virtual table" } else { "a view" };
            return Err(Error::invalid_data(format!("'{name}' is {kind}, and a profile has a table")));
        }
        let later = later.iter().find(|(table, _)| table == known).map(|(_, column)| *column);
        check_columns(known, &parts(&statement), &parts(expected), later)?;
    }
    Ok(())
}

/// Compares what a table was created with.
fn check_columns(table: &str, found: &[String], expected: &[String], later: Option<&str>) -> Result<()> {
    let is_early = || expected.iter().filter(|part| Some(part.as_str()) != later).eq(found);
    if found == expected || is_early() {
        return Ok(());
    }
    let at = found.iter().zip(expected).take_while(|(found, expected)| found == expected).count();
    let shown = |parts: &[String]| {
        parts.get(at).map_or_else(|| "nothing".to_owned(), |part| format!("'{}'", part.chars().take(80).collect::<String>()))
    };
    Err(Error::invalid_data(format!(
        "table '{table}' has {} where this version of the format has {}: something else than firsttouch made or changed it",
        shown(found),
        shown(expected)
    )))
}

/// The parts of a statement between commas and the outer brackets, without the space between words that does not matter. Of what firsttouch writes,
/// these are the name, the columns and the options. Of anything else, they differ from these.
fn parts(statement: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut depth = 0_usize;
    for c in statement.chars() {
        let is_outer = match c {
            '(' => {
                depth += 1;
                depth == 1
            }
            ')' => {
                depth = depth.saturating_sub(1);
                depth == 0
            }
            ',' => depth == 1,
            _ => false,
        };
        match parts.last_mut() {
            Some(part) if !is_outer => part.push(c),
            _ => parts.push(String::new()),
        }
    }
    let mut parts: Vec<String> = parts.iter().map(|part| part.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    // Nothing follows the outer brackets.
    parts.pop_if(|last| last.is_empty());
    parts
}

/// Whether the tables were written: their writer makes all of them at once, after it has said what the file is.
///
/// # Errors
/// When the file is damaged.
pub fn has_tables(connection: &Connection) -> Result<bool> {
    let count: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'meta'", [], |row| row.get(0))
        .map_err(|error| Error::invalid_data(error.to_string()))?;
    Ok(count > 0)
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
        .chain(profile.bandwidth.iter().map(|row| ("bandwidth", row.node)))
        .chain(profile.counters.iter().filter_map(|counter| Some(("counters", counter.node?))));
    match all.into_iter().find(|(_, node)| *node >= MOST_NODES) {
        Some((table, node)) => {
            Err(Error::invalid_data(format!("table {table} has node {node}, and Linux has nodes 0 to {} at most", MOST_NODES - 1)))
        }
        None => Ok(()),
    }
}

/// Checks that the hosts and parts of a merged profile are numbered from 0, that hosts share no nodes and CPUs, and that the parts share no rows.
pub fn check_parts(profile: &Profile) -> Result<()> {
    let (hosts, parts) = (&profile.hosts, &profile.parts);
    let refuse = |why: String| Err(Error::invalid_data(why));
    if hosts.is_empty() != parts.is_empty() {
        return refuse(format!("it has {} hosts and {} parts", hosts.len(), parts.len()));
    }
    let is_next = |at: usize, id: Id| Id::try_from(at).is_ok_and(|at| at == id);
    if !hosts.iter().enumerate().all(|(at, host)| is_next(at, host.id)) || !parts.iter().enumerate().all(|(at, part)| is_next(at, part.id))
    {
        return refuse("its hosts and parts are not numbered 0, 1, 2, ...".to_owned());
    }
    let end = |first: u32, count: u32| first.checked_add(count);
    let follows = |pair: &[Host]| {
        end(pair[0].first_node, pair[0].nodes).is_some_and(|end| end <= pair[1].first_node)
            && end(pair[0].first_cpu, pair[0].cpus).is_some_and(|end| end <= pair[1].first_cpu)
    };
    let fits =
        |host: &Host| end(host.first_node, host.nodes).is_some_and(|end| end <= MOST_NODES) && end(host.first_cpu, host.cpus).is_some();
    if let Some(host) = hosts.iter().find(|host| !fits(host)) {
        return refuse(format!("the nodes or CPUs of host {} have numbers that no machine has", host.id));
    }
    if !hosts.windows(2).all(follows) {
        return refuse("two hosts have the same nodes or CPUs".to_owned());
    }
    if let Some(part) = parts.iter().find(|part| usize::try_from(part.host).map_or(true, |host| host >= hosts.len())) {
        return refuse(format!("part {} is of host {}, which it does not have", part.id, part.host));
    }
    if !parts.windows(2).all(|pair| comes_before(&pair[0], &pair[1])) {
        return refuse("the numbers of its parts are not in order".to_owned());
    }
    let is_of_none = |part: Option<Id>| part.is_none_or(|part| usize::try_from(part).map_or(true, |part| part >= parts.len()));
    let periods = profile.fault_periods.iter().map(|period| ("fault_periods", period.part));
    let bandwidth = profile.bandwidth.iter().map(|row| ("bandwidth", row.part));
    match periods.chain(bandwidth).find(|(_, part)| !parts.is_empty() && is_of_none(*part)) {
        Some((table, part)) => refuse(format!("table {table} has part {part:?}, which the profile does not have")),
        None => Ok(()),
    }
}

fn comes_before(part: &Part, next: &Part) -> bool {
    let numbers = |FirstIds { process, thread, site, object, touch, window, round: _, sample, region }: FirstIds| {
        [process, thread, site, object, touch, window, sample, region]
    };
    part.first.round <= next.first.round && numbers(part.first).iter().zip(numbers(next.first)).all(|(one, other)| *one <= other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile() -> Connection {
        let profile = Connection::open_in_memory().unwrap();
        profile.execute_batch(SCHEMA).unwrap();
        profile
    }

    /// Check that each table must be as in the schema: kind, names, types, order, keys, defaults, conditions.
    #[test]
    fn tables_are_those_of_the_schema() {
        assert!(check_schema(&profile()).is_ok());
        let lost = "source TEXT NOT NULL, reason TEXT NOT NULL, count INTEGER NOT NULL";
        let again = |columns: &str, options: &str| format!("DROP TABLE lost; CREATE TABLE lost ({columns}) {options}");
        let key = ", PRIMARY KEY (source, reason)";
        for (change, error) in [
            (again(&format!("{lost}{key}"), "WITHOUT ROWID"), ""),
            (again(&format!("{}{key}", lost.replace(' ', "\n  ")), "WITHOUT\tROWID"), ""),
            (again(&format!("{lost}{key}"), ""), "has nothing where"),
            (again(lost, ""), "where this version of the format has 'PRIMARY KEY (source, reason)'"),
            (again(&format!("{}{key}", lost.replace("count INTEGER", "count TEXT")), "WITHOUT ROWID"), "has 'count TEXT NOT NULL' where"),
            (
                again(&format!("{}{key}", lost.replace("count INTEGER NOT NULL", "count INTEGER")), "WITHOUT ROWID"),
                "has 'count INTEGER' where",
            ),
            (again(&format!("{}{key}", lost.replace("source TEXT", "source TEXT COLLATE NOCASE")), "WITHOUT ROWID"), "COLLATE NOCASE"),
            (again(&format!("{lost}, CHECK (count > 0){key}"), "WITHOUT ROWID"), "has 'CHECK (count > 0)' where"),
            (again(&format!("{lost}, more INTEGER AS (count + 1){key}"), "WITHOUT ROWID"), "has 'more INTEGER AS (count + 1)' where"),
            (
                again(&format!("count INTEGER NOT NULL, reason TEXT NOT NULL, source TEXT NOT NULL{key}"), "WITHOUT ROWID"),
                "has 'count INTEGER",
            ),
            ("ALTER TABLE threads ADD COLUMN more TEXT DEFAULT 'x'".to_owned(), "has 'more TEXT DEFAULT 'x'' where"),
            ("ALTER TABLE objects RENAME COLUMN name TO title".to_owned(), "has 'title TEXT' where"),
            ("ALTER TABLE threads DROP COLUMN node_moves".to_owned(), "has nothing where"),
            ("ALTER TABLE samples DROP COLUMN loop_left; ALTER TABLE accesses DROP COLUMN cpu_ns".to_owned(), ""),
            ("ALTER TABLE shared_memory DROP COLUMN present".to_owned(), ""),
            ("ALTER TABLE fault_periods DROP COLUMN part; DROP TABLE hosts; DROP TABLE parts; DROP TABLE bandwidth".to_owned(), ""),
            ("DROP TABLE lost; CREATE VIEW lost AS SELECT 1 AS source".to_owned(), "'lost' is a view"),
            ("CREATE TABLE mine (a); CREATE VIEW yours AS SELECT * FROM mine; CREATE INDEX faster ON objects (bytes)".to_owned(), ""),
        ] {
            let profile = profile();
            profile.execute_batch(&change).unwrap();
            match check_schema(&profile) {
                Ok(()) => assert_eq!(error, "", "{change}"),
                Err(found) => assert!(!error.is_empty() && found.to_string().contains(error), "{change}: {found}"),
            }
        }
    }

    /// Check that a foreign database can neither run code of its own nor take more than its share of steps.
    #[test]
    fn foreign_databases_run_nothing() {
        let profile = profile();
        profile
            .execute_batch("CREATE VIEW endless AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n")
            .unwrap();
        profile.execute_batch("CREATE TRIGGER fires AFTER INSERT ON lost BEGIN DELETE FROM meta; END").unwrap();
        restrict(&profile, 0).unwrap();
        for (config, value) in [
            (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true),
            (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
            (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
            (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false),
        ] {
            assert_eq!(profile.db_config(config).unwrap(), value, "{config:?}");
        }
        // Views and triggers do nothing, and the schema cannot be written as a table.
        assert!(profile.query_row("SELECT i FROM endless", [], |row| row.get::<_, i64>(0)).is_err());
        profile.execute_batch("INSERT INTO meta VALUES ('a', 'b'); INSERT INTO lost VALUES ('a', 'b', 1)").unwrap();
        assert_eq!(profile.query_row("SELECT count(*) FROM meta", [], |row| row.get::<_, i64>(0)).unwrap(), 1);
        profile.execute_batch("PRAGMA writable_schema = 1").unwrap();
        let written = profile.execute("UPDATE sqlite_schema SET rootpage = 2 WHERE name = 'lost'", []).unwrap_err();
        assert!(written.to_string().contains("may not be modified"), "{written}");
        assert!(profile.execute_batch("ATTACH ':memory:' AS other").is_err());
        let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
        let stopped = profile.query_row(endless, [], |row| row.get::<_, i64>(0)).unwrap_err();
        assert!(stopped.to_string().contains("interrupted"), "{stopped}");
    }
}
