//! A snapshot as cells. Its JSON is taken apart: an element of a list with a number of its own (`pid`, `tid`, `node`, `id`) is a row, `processes[pid=7]`,
//! whatever its place in the list; what lies in it are columns, `remote.interval[0]`. So a process that comes or goes changes no other row, and a
//! process that does nothing changes no cell.

use firsttouch_model::shown::one_line;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The keys that give an element of a list its number.
const NUMBERS: [&str; 4] = ["pid", "tid", "node", "id"];
/// Floating-point numbers are kept to 1/10000.
const SCALE: f64 = 1e4;
/// Lists are shorter than this, and elements lie no deeper.
const MOST_ELEMENTS: usize = 1 << 16;
const DEEPEST: usize = 16;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar {
    Null,
    Bool(bool),
    Integer(i64),
    /// Times [`SCALE`].
    Fraction(i64),
    Text(String),
    /// The length of a list without rows.
    Length(usize),
    /// A map without entries.
    Empty,
}

/// Cells by (row, column).
pub type Cells = BTreeMap<(String, String), Scalar>;

/// Takes JSON apart.
pub fn apart(value: &Value) -> Cells {
    let mut cells = Cells::new();
    take(value, "", "", &mut cells);
    cells
}

/// A checksum of cells, whatever their order: the sum of FNV-1a (32 bits) of each. Any change of one byte of one cell changes it. Texts count as they
/// are shown: a reader has them no other way.
pub fn checksum(cells: &Cells) -> i32 {
    let sum = |sum: u32, ((row, column), scalar): (&(String, String), &Scalar)| {
        let (kind, number) = match scalar {
            Scalar::Null => (0, 0),
            Scalar::Bool(is) => (1, i64::from(*is)),
            Scalar::Integer(value) => (2, *value),
            Scalar::Fraction(value) => (3, *value),
            Scalar::Text(_) => (4, 0),
            Scalar::Length(length) => (5, i64::try_from(*length).unwrap_or(i64::MAX)),
            Scalar::Empty => (6, 0),
        };
        let text = if let Scalar::Text(text) = scalar { one_line(text) } else { "".into() };
        let (row, column) = (one_line(row), one_line(column));
        sum.wrapping_add(fnv(&[row.as_bytes(), column.as_bytes(), &[kind], &number.to_le_bytes(), text.as_bytes()]))
    };
    cells.iter().fold(0, sum).cast_signed()
}

/// FNV-1a, with a byte between the parts that no text has.
fn fnv(parts: &[&[u8]]) -> u32 {
    let step = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    parts.iter().fold(0x811c_9dc5, |hash, part| part.iter().fold(step(hash, &0xff), step))
}

fn number_of(element: &Value) -> Option<(&'static str, i64)> {
    NUMBERS.into_iter().find_map(|key| Some((key, element.get(key)?.as_i64()?)))
}

fn take(value: &Value, row: &str, column: &str, cells: &mut Cells) {
    let mut put = |scalar| drop(cells.insert((row.to_owned(), column.to_owned()), scalar));
    match value {
        Value::Null => put(Scalar::Null),
        Value::Bool(is) => put(Scalar::Bool(*is)),
        Value::String(text) => put(Scalar::Text(text.clone())),
        Value::Number(number) => put(match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => Scalar::Integer(integer),
            (None, Some(fraction)) => Scalar::Fraction((fraction * SCALE).round() as i64),
            (None, None) => Scalar::Null,
        }),
        Value::Object(map) if map.is_empty() => put(Scalar::Empty),
        Value::Object(map) => {
            for (key, value) in map {
                let column = if column.is_empty() { key.clone() } else { format!("{column}.{key}") };
                take(value, row, &column, cells);
            }
        }
        Value::Array(list) if !list.is_empty() && list.iter().all(|element| number_of(element).is_some()) => {
            for element in list {
                let Some((key, number)) = number_of(element) else { continue };
                let row = format!("{row}{}{column}[{key}={number}]", if row.is_empty() { "" } else { "/" });
                take(element, &row, "", cells);
            }
        }
        Value::Array(list) => {
            put(Scalar::Length(list.len()));
            for (at, element) in list.iter().enumerate() {
                take(element, row, &format!("{column}[{at}]"), cells);
            }
        }
    }
}

/// Puts the JSON together again. Lists with rows that have none now are missing in it.
///
/// # Errors
/// What no snapshot has: the cells are damaged.
pub fn together(cells: &Cells) -> Result<Value, String> {
    let mut root = Value::Object(Map::new());
    for ((row, column), scalar) in cells {
        let mut steps = Vec::new();
        for part in row.split('/').filter(|part| !part.is_empty()) {
            let (list, number) = part.split_once('[').ok_or("a row without a number")?;
            let (key, number) = number.trim_end_matches(']').split_once('=').ok_or("a row without a number")?;
            let key = NUMBERS.into_iter().find(|known| *known == key).ok_or("a row with an unknown kind of number")?;
            steps.extend(list.split('.').map(Step::Key));
            steps.push(Step::Row(key, number.parse().map_err(|_| "a row without a number")?));
        }
        steps.extend(column.split('.').filter(|name| !name.is_empty()).flat_map(names_and_places));
        if steps.len() > DEEPEST {
            return Err("cells that lie too deep".to_owned());
        }
        let place = steps.into_iter().try_fold(&mut root, descend)?;
        match scalar {
            // Its elements, or none, follow.
            Scalar::Length(length) if *length > MOST_ELEMENTS => return Err("a list that is too long".to_owned()),
            Scalar::Length(_) if place.is_array() => {}
            Scalar::Length(_) => *place = Value::Array(Vec::new()),
            scalar => *place = value_of(scalar),
        }
    }
    Ok(root)
}

enum Step<'a> {
    Key(&'a str),
    Place(usize),
    Row(&'static str, i64),
}

/// `interval[0][1]`: a key and places in lists.
fn names_and_places(part: &str) -> Vec<Step<'_>> {
    let mut pieces = part.split('[');
    let mut steps: Vec<Step<'_>> = pieces.next().filter(|name| !name.is_empty()).map(Step::Key).into_iter().collect();
    // A place that is no number is one that no list has.
    steps.extend(pieces.map(|piece| Step::Place(piece.trim_end_matches(']').parse().unwrap_or(usize::MAX))));
    steps
}

fn descend<'a>(value: &'a mut Value, step: Step<'_>) -> Result<&'a mut Value, String> {
    match step {
        Step::Key(key) => {
            if !value.is_object() {
                *value = Value::Object(Map::new());
            }
            value.as_object_mut().map(|map| map.entry(key.to_owned()).or_insert(Value::Null)).ok_or_else(|| "no map".to_owned())
        }
        Step::Place(at) if at < MOST_ELEMENTS => {
            let list = list(value)?;
            while list.len() <= at {
                list.push(Value::Null);
            }
            Ok(&mut list[at])
        }
        Step::Place(_) => Err("a list that is too long".to_owned()),
        Step::Row(key, number) => {
            let list = list(value)?;
            if list.len() >= MOST_ELEMENTS {
                return Err("a list that is too long".to_owned());
            }
            // By their numbers, as snapshots have them.
            let of = |element: &Value| element.get(key).and_then(Value::as_i64).unwrap_or(i64::MIN);
            let at = match list.binary_search_by_key(&number, of) {
                Ok(at) => at,
                Err(at) => {
                    list.insert(at, Value::Object(Map::from_iter([(key.to_owned(), Value::from(number))])));
                    at
                }
            };
            Ok(&mut list[at])
        }
    }
}

fn list(value: &mut Value) -> Result<&mut Vec<Value>, String> {
    if !value.is_array() {
        *value = Value::Array(Vec::new());
    }
    value.as_array_mut().ok_or_else(|| "no list".to_owned())
}

fn value_of(scalar: &Scalar) -> Value {
    match scalar {
        Scalar::Null | Scalar::Length(_) => Value::Null,
        Scalar::Bool(is) => Value::from(*is),
        Scalar::Integer(integer) => Value::from(*integer),
        Scalar::Fraction(scaled) => Value::from(*scaled as f64 / SCALE),
        Scalar::Text(text) => Value::from(text.clone()),
        Scalar::Empty => Value::Object(Map::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a change of any cell changes the checksum.
    #[test]
    fn checksums_see_each_change() {
        let cell = |row: &str, column: &str, scalar: Scalar| Cells::from([((row.to_owned(), column.to_owned()), scalar)]);
        let all = [
            cell("a", "b", Scalar::Integer(1)),
            cell("ab", "", Scalar::Integer(1)),
            cell("a", "b", Scalar::Integer(3)),
            cell("a", "b", Scalar::Fraction(1)),
            cell("a", "b", Scalar::Text("1".into())),
            cell("a", "b", Scalar::Null),
            cell("a", "b", Scalar::Empty),
            cell("a", "b", Scalar::Bool(true)),
        ];
        let sums: std::collections::BTreeSet<i32> = all.iter().map(checksum).collect();
        assert_eq!(sums.len(), all.len());
        assert_eq!(
            checksum(&cell("a", "b", Scalar::Text("x\ny".into()))),
            checksum(&cell("a", "b", Scalar::Text(one_line("x\ny").into_owned())))
        );
    }
}
