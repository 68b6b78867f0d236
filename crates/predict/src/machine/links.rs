//! What the links between two packages carry, by generation (`machines/links.toml`): for machines whose own links are not measured.

use super::MachineError;
use serde::Deserialize;
use std::sync::OnceLock;

const SCHEMA: &str = "firsttouch.links/1";
const TABLE: &str = include_str!("../../machines/links.toml");

/// The links between two packages in one direction, all of them together.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Generation {
    pub name: String,
    /// The links in words.
    pub what: String,
    pub gb_per_s: f64,
    /// Where the figure of a machine of this generation may be, GB/s.
    pub range: [f64; 2],
    pub source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    schema: String,
    generation: Vec<Generation>,
}

fn parse(text: &str) -> Result<Vec<Generation>, String> {
    let table: Table = toml::from_str(text).map_err(|error| error.message().to_owned())?;
    if table.schema != SCHEMA {
        return Err(format!("expected '{SCHEMA}', found '{}'", table.schema));
    }
    let fits = |one: &Generation| one.range[0] > 0.0 && one.range[0] <= one.gb_per_s && one.gb_per_s <= one.range[1];
    match table.generation.iter().find(|one| !(fits(one) && one.range[1].is_finite())) {
        Some(odd) => Err(format!("{}: {} GB/s is not in its range", odd.name, odd.gb_per_s)),
        None => Ok(table.generation),
    }
}

/// All generations of the table.
///
/// # Errors
/// Internal error: the embedded table is invalid. A test reads it.
pub fn generations() -> Result<&'static [Generation], MachineError> {
    static KNOWN: OnceLock<Result<Vec<Generation>, String>> = OnceLock::new();
    let known = KNOWN.get_or_init(|| parse(TABLE)).as_deref();
    known.map_err(|reason| MachineError { place: "links.toml".to_owned(), reason: reason.clone() })
}

/// A generation of the table.
///
/// # Errors
/// When the table lacks the name: names those that it has.
pub fn generation(name: &str) -> Result<&'static Generation, MachineError> {
    let known = generations()?;
    known.iter().find(|one| one.name == name).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|one| one.name.as_str()).collect();
        MachineError {
            place: "interconnect.generation".to_owned(),
            reason: format!("no generation '{name}' is known (known: {})", names.join(", ")),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that every generation has a figure in its range, a source and a name of its own, and that unknown names are refused with those
    /// that are known.
    #[test]
    fn the_table_is_usable() {
        let known = generations().unwrap();
        assert!(known.len() >= 10);
        for one in known {
            assert!(!one.source.is_empty() && !one.what.is_empty(), "{}", one.name);
            assert_eq!(known.iter().filter(|other| other.name == one.name).count(), 1, "{}", one.name);
        }
        let error = generation("token-ring").unwrap_err().to_string();
        assert!(error.contains("token-ring") && error.contains("upi-10.4x2"), "{error}");
    }

    /// Check that a figure outside its range is refused.
    #[test]
    fn a_figure_outside_its_range_is_refused() {
        let table = format!("schema = '{SCHEMA}'\n[[generation]]\nname = 'x'\nwhat = 'x'\ngb_per_s = 9\nrange = [1, 8]\nsource = 'x'\n");
        assert!(parse(&table).unwrap_err().contains("not in its range"));
        assert!(parse(&table.replace("[1, 8]", "[1, 9]")).is_ok());
    }
}
