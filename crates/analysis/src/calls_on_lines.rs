//! Several allocations on one source line: which of the line's variables each of them is assigned to.

use crate::code::expression::NUMBERS;
use crate::code::regions::File;
use crate::groups::PYTHON;
use crate::names::{Call, chain};
use crate::source_code::CodeLocations;
use crate::target::PythonValue;
use firsttouch_model::rows::{Frame, Id, Profile};
use std::collections::{BTreeMap, BTreeSet};

/// Variables of a line that are looked at. Of a line with more, none is named.
const MOST_VARIABLES: usize = 64;
/// After so many allocations of one variable, or of none, no other variable follows.
const ENOUGH: usize = 8;

/// The calls on each source line, in the order of the source. Calls of allocation functions are numbered together, because compilers turn
/// malloc into calloc; calls of each of the program's own functions, and allocations of containers, are numbered separately.
pub(crate) struct CallsOnLines(BTreeMap<Key, Calls>);

/// Allocations of containers, as the sources name them.
const CONTAINER: &str = "std::vector";

/// File, line, and the program's own function or the container (empty for allocation functions).
type Key = (String, u32, String);

/// The place of a call in its module: processes of one program have the same code at different addresses.
pub(crate) fn place(frame: &Frame) -> u64 {
    frame.offset.unwrap_or(frame.address)
}

/// The calls on one line, by the place that they return to (in Python: by their instruction).
pub(crate) struct Calls {
    in_order: Vec<u64>,
    /// Compilers place code in any order, and the order of the first allocations does not settle it.
    is_uncertain: bool,
    /// Each call has a column of its own.
    has_columns: bool,
}

impl CallsOnLines {
    /// Looks at all allocations of the profile, those without evidence too: they take part in the count.
    pub fn new(profile: &Profile, places: &CodeLocations<'_>) -> Self {
        let mut births: BTreeMap<(Id, &str), u64> = BTreeMap::new();
        for object in &profile.objects {
            if let Some(site) = object.site {
                let born = births.entry((site, object.call.as_deref().unwrap_or_default())).or_insert(u64::MAX);
                *born = object.born_ns.min(*born);
            }
        }
        // Their times of birth are not known.
        let folded: BTreeSet<(Id, &str)> = profile.folded_objects.iter().map(|folded| (folded.site, folded.call.as_str())).collect();
        let mut lines: BTreeMap<Key, (bool, BTreeMap<u64, Option<u64>>)> = BTreeMap::new();
        let mut columns: BTreeMap<Key, BTreeMap<u64, Option<u32>>> = BTreeMap::new();
        for &(site, call) in births.keys().chain(&folded).collect::<BTreeSet<_>>() {
            let born = births.get(&(site, call)).copied().filter(|_| !folded.contains(&(site, call)));
            for (depth, call) in chain(Some(site), Some(call), places).iter().enumerate() {
                let Some(key) = key(call, depth == 0) else { continue };
                columns.entry(key.clone()).or_default().insert(place(call.frame), call.frame.column);
                let (is_python, births) = lines.entry(key).or_default();
                *is_python |= call.frame.module.as_deref() == Some(PYTHON);
                let first = births.entry(place(call.frame)).or_insert(Some(u64::MAX));
                *first = first.zip(born).map(|(first, born)| first.min(born));
            }
        }
        let has_columns = |key: &Key| {
            let of_calls = &columns[key];
            of_calls.values().flatten().collect::<BTreeSet<_>>().len() == of_calls.len()
        };
        let calls = |(key, (is_python, births)): (Key, (bool, BTreeMap<u64, Option<u64>>))| {
            let calls = Calls { has_columns: has_columns(&key), ..Calls::new(&births, is_python) };
            (key, calls)
        };
        Self(lines.into_iter().map(calls).collect())
    }

    /// The variables that a call on its line can be assigned to: one if that is certain, none if there is no variable.
    pub fn variables(&self, call: &Call<'_>, innermost: bool, places: &CodeLocations<'_>) -> Vec<String> {
        let Some(key) = key(call, innermost) else { return Vec::new() };
        match python_value(call, places) {
            Some(PythonValue::Assigned(name)) => vec![name],
            Some(PythonValue::Unassigned(_)) => Vec::new(),
            None if is_one_of_statements(call, places) => Vec::new(),
            None => variables(call, self.0.get(&key), places),
        }
    }
}

/// Whether a Python line has several statements, and nothing tells which of them makes the call.
fn is_one_of_statements(call: &Call<'_>, places: &CodeLocations<'_>) -> bool {
    let python = call.line().filter(|_| call.frame.module.as_deref() == Some(PYTHON));
    python.and_then(|(file, line)| places.sources.line(file, line)).is_some_and(|text| text.trim_end().trim_end_matches(';').contains(';'))
}

/// What becomes of the value of a call in Python code, where its column is known.
pub(crate) fn python_value(call: &Call<'_>, places: &CodeLocations<'_>) -> Option<PythonValue> {
    let (file, line) = call.line().filter(|_| call.frame.module.as_deref() == Some(PYTHON))?;
    places.sources.python_value(file, line, call.frame.interpreted_column()?)
}

/// The variables that a call can be assigned to, among the calls on its line.
pub(crate) fn variables(call: &Call<'_>, calls: Option<&Calls>, places: &CodeLocations<'_>) -> Vec<String> {
    let Some((file, line)) = call.line() else { return Vec::new() };
    let callee = if call.is_container { CONTAINER } else { call.callee };
    let mut slots = slots(|nth| places.sources.variable(file, line, callee, nth));
    if slots.len() == MOST_VARIABLES {
        return Vec::new();
    }
    if call.is_container && slots.iter().flatten().any(|name| slots[0].as_ref() != Some(name)) {
        without_numbers(&mut slots, file, places);
    }
    while slots.last().is_some_and(Option::is_none) {
        slots.pop();
    }
    let mut distinct: Vec<String> = Vec::new();
    for name in slots.iter().flatten() {
        if !distinct.contains(name) {
            distinct.push(name.clone());
        }
    }
    // One variable is the answer for every call: a constructor may allocate more than once.
    let Some(calls) = calls.filter(|_| distinct.len() > 1) else { return distinct };
    let is_certain = !calls.is_uncertain && calls.in_order.len() == slots.len();
    let nth = calls.in_order.iter().position(|known| *known == place(call.frame));
    match nth.and_then(|nth| slots.get(nth)).filter(|_| is_certain) {
        Some(variable) => variable.iter().cloned().collect(),
        // Other calls of the line were not recorded: their blocks are small.
        None => {
            let column = call.frame.column.filter(|_| calls.has_columns);
            let at_column = column.and_then(|column| places.sources.variable_at(file, line, callee, column));
            at_column.filter(|name| distinct.contains(name)).map_or(distinct, |name| vec![name])
        }
    }
}

/// The variable of each allocation on a line, in order; `MOST_VARIABLES` of them if the list is cut.
fn slots(variable: impl Fn(usize) -> Option<String>) -> Vec<Option<String>> {
    let mut slots: Vec<Option<String>> = Vec::new();
    while slots.len() < MOST_VARIABLES {
        slots.push(variable(slots.len()));
        let last = slots.get(slots.len().saturating_sub(ENOUGH)..).unwrap_or_default();
        if slots.len() >= ENOUGH && last.windows(2).all(|pair| pair[0] == pair[1]) {
            break;
        }
    }
    slots
}

impl Calls {
    /// From the addresses of the calls, with the time of the first allocation of each if it is known.
    pub fn new(births: &BTreeMap<u64, Option<u64>>, is_python: bool) -> Self {
        let by_address: Vec<u64> = births.keys().copied().collect();
        let known: Vec<u64> = births.values().filter_map(|born| *born).collect();
        // Python's instructions are in the order of the source.
        if is_python || known.is_sorted() {
            return Self { in_order: by_address, is_uncertain: false, has_columns: false };
        }
        // A line is executed from left to right, wherever the compiler placed its code.
        let mut by_birth: Vec<(Option<u64>, u64)> = births.iter().map(|(address, born)| (*born, *address)).collect();
        by_birth.sort_unstable();
        let is_certain = known.len() == births.len() && by_birth.windows(2).all(|pair| pair[0].0 < pair[1].0);
        Self { in_order: by_birth.into_iter().map(|(_, address)| address).collect(), is_uncertain: !is_certain, has_columns: false }
    }
}

fn key(call: &Call<'_>, innermost: bool) -> Option<Key> {
    let (file, line) = call.line()?;
    let made_by = match innermost {
        true if call.is_container => CONTAINER,
        true => "",
        false => call.callee,
    };
    Some((file.to_owned(), line, made_by.to_owned()))
}

/// Removes variables that are declared as numbers: of `rho(n_, 1.0), n(n_)`, the second is no container.
fn without_numbers(slots: &mut Vec<Option<String>>, file: &str, places: &CodeLocations<'_>) {
    let Some(code) = File::read(places.sources, file) else { return };
    let is_number = |kind: &String| {
        let words = kind.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty());
        words.clone().count() > 0 && words.into_iter().all(|word| word == "std" || word == "const" || NUMBERS.contains(&word))
    };
    slots.retain(|slot| {
        let types = slot.as_deref().and_then(|name| name.rsplit(['.', '>']).next()).map_or_else(Vec::new, |name| code.declared_types(name));
        types.is_empty() || !types.iter().all(is_number)
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that all variables of a line are found, that a search ends, and that a list is known to be cut.
    #[test]
    fn variables_of_long_lines() {
        let of = |count: usize| slots(|nth| (nth < count).then(|| format!("a{nth}")));
        let filled = |count: usize| of(count).into_iter().flatten().count();
        assert_eq!([0, 1, 9, 30].map(filled), [0, 1, 9, 30]);
        assert!(of(30).len() < MOST_VARIABLES && of(100).len() == MOST_VARIABLES);
        assert_eq!(slots(|_| Some("a".to_owned())).len(), ENOUGH);
    }

    /// Check that calls are in the order of the source, or that the order is uncertain.
    #[test]
    fn order_of_calls() {
        let order = |births: &[(u64, Option<u64>)], is_python| {
            let calls = Calls::new(&births.iter().copied().collect(), is_python);
            (!calls.is_uncertain).then_some(calls.in_order)
        };
        assert_eq!(order(&[(1, Some(10)), (2, Some(20))], false), Some(vec![1, 2]));
        // The compiler placed the first call last.
        assert_eq!(order(&[(1, Some(20)), (2, Some(10))], false), Some(vec![2, 1]));
        assert_eq!(order(&[(1, Some(20)), (2, Some(10))], true), Some(vec![1, 2]));
        // Times that do not settle the order.
        assert_eq!(order(&[(1, Some(10)), (2, Some(10))], false), Some(vec![1, 2]));
        assert_eq!(order(&[(1, Some(10)), (2, None), (3, Some(30))], false), Some(vec![1, 2, 3]));
        assert_eq!(order(&[(1, Some(30)), (2, None), (3, Some(10))], false), None);
        assert_eq!(order(&[(1, Some(20)), (2, Some(10)), (3, Some(10))], false), None);
    }
}
