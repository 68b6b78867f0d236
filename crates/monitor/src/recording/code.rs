//! The changes of cells as bytes.
//!
//! For each row with a change, by its number: the distance to the number before (varint), twice the count of its changes (varint; 1 alone: the row is
//! gone). For each change, by the number of its column: the distance to the number before (varint), and the value: eight times the zigzag code of the
//! difference to the value before, if that was of the same kind, plus the kind (varint).

use std::collections::BTreeMap;

/// A cell's value with its text as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coded {
    Null,
    False,
    True,
    Integer(i64),
    Fraction(i64),
    /// The number of a text.
    Text(i64),
    /// 0: an empty map; else one more than the length of a list.
    Shape(i64),
}

const GONE: u8 = 7;

impl Coded {
    /// The kind, and the number in it.
    fn parts(self) -> (u8, i64) {
        match self {
            Self::Null => (0, 0),
            Self::False => (1, 0),
            Self::True => (2, 0),
            Self::Integer(value) => (3, value),
            Self::Fraction(value) => (4, value),
            Self::Text(value) => (5, value),
            Self::Shape(value) => (6, value),
        }
    }

    fn of(kind: u8, value: i64) -> Option<Self> {
        Some(match kind {
            0 => Self::Null,
            1 => Self::False,
            2 => Self::True,
            3 => Self::Integer(value),
            4 => Self::Fraction(value),
            5 => Self::Text(value),
            6 => Self::Shape(value),
            _ => return None,
        })
    }
}

/// The cells by the numbers of their rows and columns.
pub type State = BTreeMap<u64, BTreeMap<u64, Coded>>;

/// Cells that a record may have: more are damage.
const MOST_CELLS: usize = 4 << 20;

fn put(bytes: &mut Vec<u8>, mut value: u128) {
    while value >= 0x80 {
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// The bytes that turn one state into the other.
#[must_use]
pub fn changes(before: &State, after: &State) -> Vec<u8> {
    let mut bytes = Vec::new();
    let none = BTreeMap::new();
    let mut rows: Vec<u64> = before.keys().chain(after.keys()).copied().collect();
    rows.sort_unstable();
    rows.dedup();
    let mut last_row = 0;
    for row in rows {
        let Some(new) = after.get(&row) else {
            put(&mut bytes, (row - last_row).into());
            put(&mut bytes, 1);
            last_row = row;
            continue;
        };
        let old = before.get(&row).unwrap_or(&none);
        let mut columns: Vec<u64> = old.keys().chain(new.keys()).copied().filter(|column| old.get(column) != new.get(column)).collect();
        columns.sort_unstable();
        columns.dedup();
        if columns.is_empty() {
            continue;
        }
        put(&mut bytes, (row - last_row).into());
        put(&mut bytes, 2 * columns.len() as u128);
        last_row = row;
        let mut last_column = 0;
        for column in columns {
            put(&mut bytes, (column - last_column).into());
            last_column = column;
            let Some(value) = new.get(&column) else {
                put(&mut bytes, GONE.into());
                continue;
            };
            let (kind, number) = value.parts();
            let base = old.get(&column).map(|old| old.parts()).filter(|(old, _)| *old == kind).map_or(0, |(_, number)| number);
            let difference = i128::from(number) - i128::from(base);
            let zigzag = if difference < 0 { (-difference as u128) * 2 - 1 } else { difference as u128 * 2 };
            put(&mut bytes, zigzag * 8 + u128::from(kind));
        }
    }
    bytes
}

struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn take(&mut self) -> Result<u128, String> {
        let (mut value, mut shift) = (0u128, 0);
        loop {
            let (first, rest) = self.0.split_first().ok_or("a snapshot that ends too early")?;
            self.0 = rest;
            if shift > 70 {
                return Err("a number that is too large".to_owned());
            }
            value |= u128::from(first & 0x7f) << shift;
            shift += 7;
            if first & 0x80 == 0 {
                return Ok(value);
            }
        }
    }

    fn number(&mut self) -> Result<u64, String> {
        u64::try_from(self.take()?).map_err(|_| "a number that is too large".to_owned())
    }
}

/// Applies the changes.
///
/// # Errors
/// What is wrong with the bytes.
pub fn apply(state: &mut State, bytes: &[u8]) -> Result<(), String> {
    let mut bytes = Bytes(bytes);
    let next = |last: u64, distance: u64| last.checked_add(distance).ok_or_else(|| "a number that is too large".to_owned());
    let mut row = 0;
    while !bytes.0.is_empty() {
        row = next(row, bytes.number()?)?;
        let count = bytes.number()?;
        if count == 1 {
            state.remove(&row).ok_or("the end of a row that is not there")?;
            continue;
        }
        let cells = state.entry(row).or_default();
        let mut column = 0;
        for _ in 0..count / 2 {
            column = next(column, bytes.number()?)?;
            let code = bytes.take()?;
            let (kind, zigzag) = ((code % 8) as u8, code / 8);
            if kind == GONE {
                cells.remove(&column).ok_or("the end of a cell that is not there")?;
                continue;
            }
            let base = cells.get(&column).map(|old| old.parts()).filter(|(old, _)| *old == kind).map_or(0, |(_, number)| number);
            let difference = if zigzag % 2 == 1 { -(zigzag.div_ceil(2) as i128) } else { (zigzag / 2) as i128 };
            let number = i64::try_from(i128::from(base) + difference).map_err(|_| "a number that is too large")?;
            cells.insert(column, Coded::of(kind, number).ok_or("an unknown kind of value")?);
        }
        if cells.is_empty() {
            state.remove(&row);
        }
    }
    if state.values().map(BTreeMap::len).sum::<usize>() > MOST_CELLS {
        return Err("more cells than any snapshot has".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(rows: &[(u64, &[(u64, Coded)])]) -> State {
        rows.iter().map(|(row, cells)| (*row, cells.iter().copied().collect())).collect()
    }

    /// Check that changes lead from each state to each other, that no change takes no bytes, and that small changes take few.
    #[test]
    fn changes_lead_from_one_state_to_the_next() {
        use Coded::{False, Fraction, Integer, Null, Shape, Text, True};
        let states = [
            State::new(),
            state(&[(0, &[(0, Integer(i64::MAX)), (7, Text(3))]), (300, &[(2, Fraction(-5))])]),
            state(&[(0, &[(0, Integer(i64::MIN)), (7, Null), (9, True)]), (4, &[(1, Shape(0))])]),
            state(&[(4, &[(1, Shape(3)), (2, False)])]),
        ];
        for from in &states {
            for to in &states {
                let bytes = changes(from, to);
                assert_eq!(bytes.is_empty(), from == to);
                let mut now = from.clone();
                apply(&mut now, &bytes).unwrap();
                assert_eq!(&now, to);
            }
        }
        let (one, other) = (state(&[(5, &[(3, Fraction(12_340))])]), state(&[(5, &[(3, Fraction(12_344))])]));
        assert_eq!(changes(&one, &other).len(), 4);
    }

    /// Check the table of malformed bytes: an error, and no panic.
    #[test]
    fn malformed_bytes_are_refused() {
        for bytes in [
            &[5][..],
            &[5, 2],
            &[5, 2, 1],
            &[5, 1],
            &[5, 2, 1, 7],
            &[0x80],
            &[0xff; 40],
            &[1, 2, 1, 0xfb, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f],
            &[1, 4, 1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0],
        ] {
            assert!(apply(&mut State::new(), bytes).is_err(), "{bytes:?}");
        }
    }

    /// Check that no bytes at all make it panic: all of two bytes, and drawn ones.
    #[test]
    fn any_bytes_are_survived() {
        for pair in 0..=u16::MAX {
            let _ = apply(&mut State::new(), &pair.to_le_bytes());
        }
        let mut word = 7u64;
        for _ in 0..20_000 {
            let mut bytes = Vec::new();
            for _ in 0..12 {
                word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                bytes.push((word >> 56) as u8 & if word & 1 == 0 { 0x0f } else { 0xff });
            }
            let mut now = state(&[(1, &[(1, Coded::Integer(4))])]);
            let _ = apply(&mut now, &bytes);
        }
    }
}
