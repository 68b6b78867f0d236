//! The rows of one part of a merged profile: those whose numbers are its own.

use firsttouch_model::error::{Error, Result};
use firsttouch_model::rows::{FirstIds, Id, Part};
use rusqlite::Connection;
use std::ops::RangeInclusive;

/// What has numbers of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Part,
    Process,
    Thread,
    Site,
    Object,
    Touch,
    Window,
    Sample,
    Region,
}

/// How many kinds there are.
pub const KINDS: usize = Kind::Region as usize + 1;

/// The least and the greatest number of each kind; `None`: all rows of a profile.
#[derive(Clone, Debug, PartialEq)]
pub struct Slice(Option<[(Id, Id); KINDS]>);

impl Slice {
    pub const ALL: Self = Self(None);

    /// Those of each part, in their order. Together they have all rows of the profile, whatever their numbers.
    pub fn of_parts(parts: &[Part]) -> Vec<Self> {
        let slice = |at: usize| {
            let mut ranges = [(Id::MIN, Id::MAX); KINDS];
            let (from, next) = (at.checked_sub(1).map(|_| numbers(&parts[at])), parts.get(at + 1).map(numbers));
            from.into_iter().for_each(|from| ranges.iter_mut().zip(from).for_each(|(range, from)| range.0 = from));
            next.into_iter().for_each(|next| ranges.iter_mut().zip(next).for_each(|(range, next)| range.1 = next.saturating_sub(1)));
            Self(Some(ranges))
        };
        (0..parts.len()).map(slice).collect()
    }

    /// The numbers of a kind.
    pub fn range(&self, kind: Kind) -> RangeInclusive<Id> {
        self.0.map_or(Id::MIN..=Id::MAX, |ranges| ranges[kind as usize].0..=ranges[kind as usize].1)
    }

    /// A query of these rows of a table whose first key, the first word of `order`, is a number of this kind.
    pub fn of(&self, select: &str, order: &str, kind: Kind) -> String {
        let key = order.split(',').next().unwrap_or(order);
        let range =
            self.0.map_or(String::new(), |_| format!(" WHERE {key} BETWEEN {} AND {}", self.range(kind).start(), self.range(kind).end()));
        format!("{select}{range} ORDER BY {order}")
    }

    /// A query of these rows of a table without keys.
    ///
    /// # Errors
    /// As [`Slice::rows`].
    pub fn rows_of(&self, c: &Connection, select: &str, table: &str, column: &str, kind: Kind) -> Result<String> {
        let rows = self.rows(c, table, column, kind)?;
        let range = rows.map_or(String::new(), |(first, last)| format!(" WHERE rowid BETWEEN {first} AND {last}"));
        Ok(format!("{select} FROM {table}{range}"))
    }

    /// The first and the last row of a table without keys that can belong to the slice; `None`: all. Such a table has the rows of a part beside
    /// each other, in the order of the parts: whoever reads them checks that they do belong to it.
    ///
    /// # Errors
    /// When the column has something else than numbers.
    pub fn rows(&self, c: &Connection, table: &str, column: &str, kind: Kind) -> Result<Option<(Id, Id)>> {
        if self.0.is_none() {
            return Ok(None);
        }
        let range = self.range(kind);
        let first = first_row(c, table, column, *range.start())?;
        let last = match range.end().checked_add(1) {
            Some(next) => first_row(c, table, column, next)?.saturating_sub(1),
            None => Id::MAX,
        };
        Ok(Some((first, last)))
    }
}

fn numbers(part: &Part) -> [Id; KINDS] {
    let FirstIds { process, thread, site, object, touch, window, sample, region, round: _ } = part.first;
    [part.id, process, thread, site, object, touch, window, sample, region]
}

/// The first row whose column has at least this value, if they are in the order of these.
fn first_row(c: &Connection, table: &str, column: &str, value: Id) -> Result<Id> {
    if value == Id::MIN {
        return Ok(Id::MIN);
    }
    let failed = |error: rusqlite::Error| Error::invalid_data(error.to_string());
    // Each in a query of its own, or SQLite passes over the table.
    let end =
        |which: &str| c.query_row(&format!("SELECT {which}(rowid) FROM {table}"), [], |row| row.get::<_, Option<Id>>(0)).map_err(failed);
    let (Some(mut low), Some(last)) = (end("min")?, end("max")?) else { return Ok(Id::MAX) };
    let mut at_row =
        c.prepare_cached(&format!("SELECT {column} >= ? FROM {table} WHERE rowid >= ? ORDER BY rowid LIMIT 1")).map_err(failed)?;
    let mut is_behind = |row: Id| at_row.query_row([value, row], |found| found.get::<_, bool>(0)).map_err(failed);
    if !is_behind(last)? {
        return Ok(last.saturating_add(1));
    }
    let mut high = last;
    while low < high {
        let middle = low + (high.abs_diff(low) / 2).cast_signed();
        if is_behind(middle)? {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Ok(low)
}
