//! hwloc's locations: `package:0.core:0-3`, separated by blanks.

use super::levels::Level;
use crate::scan::{At, Fault, Scanner};
use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    pub operator: Operator,
    /// From the outermost object to the innermost; empty for `all`.
    pub steps: Vec<Step>,
    pub offset: At<()>,
}

/// How a location combines with those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    Add,
    /// `~`: removes its CPUs.
    Remove,
    /// `x`: keeps only its CPUs.
    Keep,
    /// `^`: removes its CPUs that are in the set, adds those that are not.
    Toggle,
}

const OPERATORS: [(&str, Operator); 3] = [("~", Operator::Remove), ("x", Operator::Keep), ("^", Operator::Toggle)];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub level: At<Level>,
    pub range: At<Range>,
}

/// The objects of a level, counted from 0 within the object before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Range {
    All,
    Odd,
    Even,
    /// `2`, `0-3`
    Span(u32, u32),
    /// `2-`
    From(u32),
    /// `2:4`: four objects from the third on, starting again from the first after the last.
    Wrapped(u32, u32),
}

const WORDS: [(&str, Range); 3] = [("all", Range::All), ("odd", Range::Odd), ("even", Range::Even)];
const LEVELS: [(&str, Level); 9] = [
    ("machine", Level::Machine),
    ("package", Level::Package),
    ("socket", Level::Package),
    ("die", Level::Die),
    ("numanode", Level::Node),
    ("numa", Level::Node),
    ("node", Level::Node),
    ("core", Level::Core),
    ("pu", Level::Pu),
];

pub fn parse(scanner: &mut Scanner) -> Result<Vec<Location>, Fault> {
    let mut locations: Vec<Location> = Vec::new();
    loop {
        scanner.blanks();
        if scanner.is_at_end() && !locations.is_empty() {
            return Ok(locations);
        }
        let location = location(scanner)?;
        if locations.is_empty() && location.operator != Operator::Add {
            return Err(Fault::new(location.offset.offset, "~, x and ^ change the locations before them, and there are none"));
        }
        locations.push(location);
        if !scanner.is_at_end() && !scanner.rest().starts_with([' ', '\t']) {
            return Err(scanner
                .fault(format!("expected '.' and a smaller object, a blank and another object, or the end, found {}", scanner.found())));
        }
    }
}

fn location(scanner: &mut Scanner) -> Result<Location, Fault> {
    let offset = At { value: (), offset: scanner.offset() };
    let operator = OPERATORS.into_iter().find(|(sign, _)| scanner.eat(sign)).map_or(Operator::Add, |(_, operator)| operator);
    let mut steps = Vec::new();
    if matches!(scanner.word(), "all" | "root") {
        scanner.take(|c| c.is_ascii_alphabetic());
        return Ok(Location { operator, steps, offset });
    }
    loop {
        let level = level(scanner)?;
        if !scanner.eat(":") {
            return Err(scanner.fault(match scanner.peek() {
                Some('[') => "filters in brackets are not supported".to_owned(),
                Some('=') => "devices are not supported here; name the objects near them".to_owned(),
                _ => format!("expected ':' and which, such as {}:0, found {}", level.value, scanner.found()),
            }));
        }
        steps.push(Step { level, range: range(scanner)? });
        if !scanner.eat(".") {
            return Ok(Location { operator, steps, offset });
        }
    }
}

/// A level by hwloc's names; case does not matter.
fn level(scanner: &mut Scanner) -> Result<At<Level>, Fault> {
    let offset = scanner.offset();
    let word = scanner.take(|c| c.is_ascii_alphanumeric()).to_ascii_lowercase();
    let level = LEVELS.into_iter().find(|(name, _)| *name == word).map(|(_, level)| level).or_else(|| cache(&word));
    level.map(|value| At { value, offset }).ok_or_else(|| {
        let found = if word.is_empty() { scanner.found() } else { format!("'{word}'") };
        let mask = if word.starts_with("0x") { "; write a mask as a list of CPUs, such as 0,2-3" } else { "" };
        Fault::new(offset, format!("expected an object (machine, package, die, numa, l3, l2, l1, core, pu), found {found}{mask}"))
    })
}

/// `l3`, `l3cache`, `l1i`, `l1icache`, `l1d`
fn cache(word: &str) -> Option<Level> {
    let word = word.strip_prefix('l')?;
    let word = word.strip_suffix("cache").unwrap_or(word);
    let (level, kind) = word.split_at_checked(1)?;
    let level = level.parse().ok().filter(|level| (1..=5).contains(level))?;
    match kind {
        "" | "d" => Some(Level::Cache { level, instruction: false }),
        "i" => Some(Level::Cache { level, instruction: true }),
        _ => None,
    }
}

fn range(scanner: &mut Scanner) -> Result<At<Range>, Fault> {
    let offset = scanner.offset();
    let word = scanner.word();
    if let Some((name, value)) = WORDS.into_iter().find(|(name, _)| *name == word) {
        scanner.eat(name);
        return Ok(At { value, offset });
    }
    let first = *scanner.number("which: a number, 0-3, 2-, 2:4, all, odd or even")?;
    let value = if scanner.eat("-") {
        if scanner.peek().is_some_and(|c| c.is_ascii_digit()) {
            let last = *scanner.number("a number")?;
            if last < first {
                return Err(Fault::new(offset, "a range must run upwards"));
            }
            Range::Span(first, last)
        } else {
            Range::From(first)
        }
    } else if scanner.eat(":") {
        Range::Wrapped(first, *scanner.positive("how many")?)
    } else {
        Range::Span(first, first)
    };
    if scanner.peek() == Some(',') {
        return Err(scanner.fault("hwloc takes no lists: name each object, with blanks between them"));
    }
    Ok(At { value, offset })
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(OPERATORS.iter().find(|(_, operator)| *operator == self.operator).map_or("", |(sign, _)| sign))?;
        if self.steps.is_empty() {
            return f.write_str("all");
        }
        for (index, step) in self.steps.iter().enumerate() {
            write!(f, "{}{}:{}", if index > 0 { "." } else { "" }, step.level.value, step.range.value)?;
        }
        Ok(())
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Span(first, last) if first == last => write!(f, "{first}"),
            Self::Span(first, last) => write!(f, "{first}-{last}"),
            Self::From(first) => write!(f, "{first}-"),
            Self::Wrapped(first, count) => write!(f, "{first}:{count}"),
            word => f.write_str(WORDS.iter().find(|(_, range)| range == word).map_or("all", |(name, _)| name)),
        }
    }
}
