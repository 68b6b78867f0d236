//! Reads a record, which may come from anywhere: what it can hold besides rows is refused, and damage is an error that says where.

use super::cells::{Cells, Scalar, checksum, together};
use super::code::{Coded, State, apply};
use super::writer::{application_id, plain};
use super::{APPLICATION_ID, SCHEMA, VERSION};
use crate::snapshot::{SCHEMA as JSON_SCHEMA, Snapshot};
use firsttouch_model::error::{Context, Error, Result};
use firsttouch_model::shown::one_line;
use rusqlite::{Connection, OpenFlags};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Snapshots that a record may have: a year at 1 s.
const MOST_TICKS: i64 = 40_000_000;

/// A record.
pub struct Reader {
    connection: Connection,
    path: PathBuf,
    /// The row of each snapshot, and whether it is whole.
    ticks: Vec<(i64, bool)>,
    names: HashMap<i64, String>,
    /// The cells after this snapshot.
    at: Option<usize>,
    state: State,
    /// What the cells shall have.
    checksum: i32,
}

impl Reader {
    /// Opens the record.
    ///
    /// # Errors
    /// When it is not there, is something else, is damaged, or has no snapshot.
    pub fn open(path: &Path) -> Result<Self> {
        let name = path.display();
        let cannot = || format!("cannot open record {name}");
        // Before it is opened: that would wait for the writer of a pipe.
        if !std::fs::metadata(path).with_context(cannot)?.is_file() {
            return Err(Error::invalid_input(format!("{}: it is not a regular file", cannot())));
        }
        std::fs::File::open(path).with_context(cannot)?;
        match application_id(path) {
            Some(APPLICATION_ID) => {}
            Some(_) => {
                return Err(Error::invalid_data(format!(
                    "cannot read record {name}: it is an SQLite database, but no record of 'firsttouch top'"
                )));
            }
            None => {
                return Err(Error::invalid_data(format!(
                    "cannot read record {name}: it is no record of 'firsttouch top' (make one with: firsttouch top --record FILE)"
                )));
            }
        }
        let context = || format!("cannot read record {name}: the file is damaged");
        let connection = connect(path).with_context(context)?;
        let version: i32 = connection.query_row("PRAGMA user_version", [], |row| row.get(0)).with_context(context)?;
        if version != VERSION {
            return Err(Error::unsupported(format!(
                "cannot read record {name}: it has version {version}, and this firsttouch reads version {VERSION}"
            )));
        }
        firsttouch_profile::check_schema_of(&connection, SCHEMA).with_context(context)?;
        let mut reader = Self {
            connection,
            path: path.to_owned(),
            ticks: Vec::new(),
            names: HashMap::new(),
            at: None,
            state: State::new(),
            checksum: 0,
        };
        reader.list().with_context(context)?;
        match reader.ticks.first() {
            None => Err(Error::invalid_data(format!("cannot show record {name}: it has no snapshots"))),
            Some(_) if reader.ticks.windows(2).any(|pair| pair[0].0.checked_add(1) != Some(pair[1].0)) => {
                Err(Error::invalid_data(format!("{}: snapshots are missing in its middle", context())))
            }
            Some((_, false)) => Err(Error::invalid_data(format!("{}: its beginning is missing", context()))),
            Some(_) => Ok(reader),
        }
    }

    fn list(&mut self) -> rusqlite::Result<()> {
        let mut statement = self.connection.prepare("SELECT id, is_whole FROM ticks ORDER BY id LIMIT ?")?;
        self.ticks = statement.query_map([MOST_TICKS], |row| Ok((row.get(0)?, row.get(1)?)))?.collect::<rusqlite::Result<_>>()?;
        let mut statement = self.connection.prepare("SELECT id, name FROM names")?;
        let names = statement.query_map([], |row| Ok((row.get(0)?, row.get::<_, String>(1)?)))?;
        // No name controls the terminal.
        self.names = names.map(|row| row.map(|(id, name)| (id, one_line(&name).into_owned()))).collect::<rusqlite::Result<_>>()?;
        Ok(())
    }

    /// How many snapshots it has: at least one.
    #[must_use]
    pub fn count(&self) -> usize {
        self.ticks.len()
    }

    /// The snapshot with this number, from 0.
    ///
    /// # Errors
    /// When the record is damaged there.
    pub fn at(&mut self, number: usize) -> Result<Snapshot> {
        let context = format!("cannot read snapshot {} of record {}: the file is damaged", number + 1, self.path.display());
        self.go_to(number).and_then(|()| self.snapshot()).map_err(|why| Error::invalid_data(format!("{context}: {why}")))
    }

    fn go_to(&mut self, number: usize) -> std::result::Result<(), String> {
        let whole = (0..=number).rev().find(|at| self.ticks.get(*at).is_some_and(|(_, is_whole)| *is_whole)).ok_or("no such snapshot")?;
        let from = self.at.filter(|at| (whole..=number).contains(at)).map_or(whole, |at| at + 1);
        for at in from..=number {
            let (id, is_whole) = *self.ticks.get(at).ok_or("no such snapshot")?;
            let read = "SELECT changes, checksum FROM ticks WHERE id = ?";
            let read = self.connection.query_row(read, [id], |row| Ok((row.get::<_, Vec<u8>>(0)?, row.get::<_, i32>(1)?)));
            let (bytes, checksum) = read.map_err(|error| error.to_string())?;
            if is_whole {
                self.state.clear();
            }
            // Until all of it is applied, the state is incomplete.
            self.at = None;
            apply(&mut self.state, &bytes)?;
            (self.at, self.checksum) = (Some(at), checksum);
        }
        Ok(())
    }

    fn snapshot(&self) -> std::result::Result<Snapshot, String> {
        let name = |number: u64| i64::try_from(number).ok().and_then(|number| self.names.get(&number)).ok_or("a name is missing");
        let mut cells = Cells::new();
        for (row, columns) in &self.state {
            for (column, coded) in columns {
                let scalar = match *coded {
                    Coded::Null => Scalar::Null,
                    Coded::False => Scalar::Bool(false),
                    Coded::True => Scalar::Bool(true),
                    Coded::Integer(value) => Scalar::Integer(value),
                    Coded::Fraction(value) => Scalar::Fraction(value),
                    Coded::Text(number) => Scalar::Text(name(number.unsigned_abs())?.clone()),
                    Coded::Shape(0) => Scalar::Empty,
                    Coded::Shape(length) => Scalar::Length(usize::try_from(length - 1).map_err(|_| "a list of no length")?),
                };
                cells.insert((name(*row)?.clone(), name(*column)?.clone()), scalar);
            }
        }
        let snapshot: Snapshot = serde_json::from_value(together(&cells)?).map_err(|error| error.to_string())?;
        match () {
            () if snapshot.schema != JSON_SCHEMA => Err("a snapshot of another schema".to_owned()),
            () if checksum(&cells) != self.checksum => Err("its checksum is wrong".to_owned()),
            () => Ok(snapshot),
        }
    }
}

fn connect(path: &Path) -> Result<Connection> {
    // The reader of a record that is still written, or was left by a crash, uses its WAL, which needs write access.
    let open = |flags| Connection::open_with_flags(plain(path), flags | OpenFlags::SQLITE_OPEN_NO_MUTEX);
    let connection =
        open(OpenFlags::SQLITE_OPEN_READ_WRITE).or_else(|_| open(OpenFlags::SQLITE_OPEN_READ_ONLY)).context("cannot open it")?;
    let size = std::fs::metadata(path).map_or(0, |about| about.len());
    firsttouch_profile::restrict(&connection, size)?;
    let found: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).context("cannot check it")?;
    if found != "ok" {
        return Err(Error::invalid_data(found));
    }
    // It is read for as long as the user looks at it.
    connection.progress_handler(0, None::<fn() -> bool>);
    Ok(connection)
}
