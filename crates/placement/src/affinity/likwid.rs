//! likwid's expressions: lists of CPUs, domains and ways to fill them, joined by `@`.

use super::levels::Level;
use crate::scan::{At, Fault, Scanner};
use std::fmt;

/// `N`, `S0`, `D0`, `C0`, `M0`; without a number, all of the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Domain {
    pub kind: Kind,
    pub index: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    All,
    Socket,
    Die,
    Cache,
    Memory,
}

const KINDS: [(&str, Kind, Level); 5] = [
    ("N", Kind::All, Level::Machine),
    ("S", Kind::Socket, Level::Package),
    ("D", Kind::Die, Level::Die),
    ("C", Kind::Cache, Level::LastCache),
    ("M", Kind::Memory, Level::Node),
];

/// First and last number, ascending or descending.
pub type Span = At<(u32, u32)>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// `0,2-4`: CPUs, by the kernel's numbers.
    Cpus(Vec<Span>),
    /// `S0`: a domain's CPUs, core by core.
    Whole(At<Domain>),
    /// `S0:0-3`: positions in a domain's list, in which each core comes once before any comes twice.
    Positions(At<Domain>, Vec<Span>),
    /// `E:N:60:1:4`: threads, in a domain's list core by core.
    Strided { domain: At<Domain>, threads: At<u32>, stride: Option<Stride> },
    /// `M:scatter`, `S:balanced:4`: threads over all domains of a kind.
    Shared { domain: At<Domain>, way: Way, threads: Option<At<u32>> },
}

/// `chunk` CPUs in a row; each row begins `stride` positions after the start of the one before, the first at `offset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stride {
    pub chunk: u32,
    pub stride: u32,
    pub offset: At<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// One from each domain in turn.
    Scatter,
    /// Equal blocks, core by core.
    Balanced,
    /// Equal blocks, each core once before any comes twice.
    CoreBalanced,
}

const WAYS: [(&str, Way); 3] = [("scatter", Way::Scatter), ("balanced", Way::Balanced), ("cbalanced", Way::CoreBalanced)];

impl Domain {
    pub fn level(self) -> Level {
        KINDS.iter().find(|(_, kind, _)| *kind == self.kind).map_or(Level::Machine, |(.., level)| *level)
    }
}

/// Whether an expression begins like likwid's, not like hwloc's.
pub fn begins(text: &str) -> bool {
    let word = Scanner::new(text).word();
    let (first, rest) = word.split_at_checked(1).unwrap_or_default();
    match first {
        "E" | "L" => rest.is_empty(),
        "N" | "S" | "D" | "C" | "M" | "G" => rest.bytes().all(|byte| byte.is_ascii_digit()),
        // A mask belongs to hwloc's language.
        _ => text.starts_with(|c: char| c.is_ascii_digit()) && !text.starts_with("0x"),
    }
}

pub fn parse(scanner: &mut Scanner) -> Result<Vec<Part>, Fault> {
    let mut parts = vec![part(scanner)?];
    while scanner.eat("@") {
        parts.push(part(scanner)?);
    }
    scanner.end("'@' or the end")?;
    Ok(parts)
}

fn part(scanner: &mut Scanner) -> Result<Part, Fault> {
    if scanner.peek().is_some_and(|c| c.is_ascii_digit()) {
        return Ok(Part::Cpus(spans(scanner)?));
    }
    if scanner.eat("E:") {
        return strided(scanner);
    }
    if scanner.eat("L:") {
        let offset = scanner.offset();
        if scanner.peek().is_some_and(|c| c.is_ascii_digit()) {
            return Ok(Part::Positions(At { value: Domain { kind: Kind::All, index: None }, offset }, spans(scanner)?));
        }
        let domain = one_domain(scanner)?;
        colon(scanner, "places such as 0-3")?;
        return Ok(Part::Positions(domain, spans(scanner)?));
    }
    let domain = domain(scanner)?;
    if !scanner.eat(":") {
        return check_one(domain).map(Part::Whole);
    }
    let word = scanner.word();
    if let Some((name, way)) = WAYS.into_iter().find(|(name, _)| *name == word) {
        scanner.eat(name);
        let threads = if scanner.eat(":") { Some(scanner.positive("a number of threads")?) } else { None };
        return Ok(Part::Shared { domain, way, threads });
    }
    if scanner.peek().is_some_and(|c| !c.is_ascii_digit()) {
        return Err(scanner.fault(format!("expected positions such as 0-3, scatter, balanced or cbalanced, found {}", scanner.found())));
    }
    Ok(Part::Positions(check_one(domain)?, spans(scanner)?))
}

fn domain(scanner: &mut Scanner) -> Result<At<Domain>, Fault> {
    let (offset, found) = (scanner.offset(), scanner.found());
    let letters = scanner.take(|c| c.is_ascii_alphabetic());
    let Some((_, kind, _)) = KINDS.into_iter().find(|(letter, ..)| *letter == letters) else {
        let reason = match letters {
            "G" => "domains of GPUs (G) are not supported; name the node's domain, such as M0".to_owned(),
            _ => format!("expected CPUs such as 0,2-4 or a domain (N, S0, D0, C0, M0), found {found}"),
        };
        return Err(Fault::new(offset, reason));
    };
    let has_number = scanner.peek().is_some_and(|c| c.is_ascii_digit());
    if has_number && kind == Kind::All {
        return Err(scanner.fault("there is one domain N: it takes no number"));
    }
    let index = if has_number { Some(*scanner.number("a number")?) } else { None };
    Ok(At { value: Domain { kind, index }, offset })
}

fn one_domain(scanner: &mut Scanner) -> Result<At<Domain>, Fault> {
    check_one(domain(scanner)?)
}

/// Only `scatter`, `balanced` and `cbalanced` accept all domains of a kind.
fn check_one(domain: At<Domain>) -> Result<At<Domain>, Fault> {
    if domain.index.is_none() && domain.kind != Kind::All {
        let name = domain.value;
        return Err(Fault::new(
            domain.offset,
            format!("{name} needs a number, such as {name}0; for all of them write {name}:scatter or {name}:balanced"),
        ));
    }
    Ok(domain)
}

fn strided(scanner: &mut Scanner) -> Result<Part, Fault> {
    let domain = one_domain(scanner)?;
    if !scanner.eat(":") {
        return Ok(Part::Whole(domain));
    }
    let threads = scanner.positive("a number of threads")?;
    if !scanner.eat(":") {
        return Ok(Part::Strided { domain, threads, stride: None });
    }
    let chunk = *scanner.positive("CPUs in a row")?;
    colon(scanner, "the stride")?;
    let stride = *scanner.positive("the stride")?;
    let offset = if scanner.eat(":") { scanner.number("an offset")? } else { At { value: 0, offset: scanner.offset() } };
    Ok(Part::Strided { domain, threads, stride: Some(Stride { chunk, stride, offset }) })
}

fn colon(scanner: &mut Scanner, what: &str) -> Result<(), Fault> {
    if scanner.eat(":") { Ok(()) } else { Err(scanner.fault(format!("expected ':' and {what}, found {}", scanner.found()))) }
}

/// Numbers and ranges: `0,2-4`. A range may run downwards.
pub fn spans(scanner: &mut Scanner) -> Result<Vec<Span>, Fault> {
    let mut spans = Vec::new();
    loop {
        let first = scanner.number("a number")?;
        let last = if scanner.eat("-") { scanner.number("a number")? } else { first };
        spans.push(At { value: (*first, *last), offset: first.offset });
        if !scanner.eat(",") {
            return Ok(spans);
        }
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(KINDS.iter().find(|(_, kind, _)| *kind == self.kind).map_or("N", |(letter, ..)| *letter))?;
        self.index.map_or(Ok(()), |index| write!(f, "{index}"))
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpus(spans) => write_spans(f, spans),
            Self::Whole(domain) => domain.value.fmt(f),
            Self::Positions(domain, spans) => {
                write!(f, "{}:", domain.value)?;
                write_spans(f, spans)
            }
            Self::Strided { domain, threads, stride } => {
                write!(f, "E:{}:{}", domain.value, threads.value)?;
                let Some(Stride { chunk, stride, offset }) = stride else { return Ok(()) };
                write!(f, ":{chunk}:{stride}")?;
                if offset.value == 0 { Ok(()) } else { write!(f, ":{}", offset.value) }
            }
            Self::Shared { domain, way, threads } => {
                let name = WAYS.iter().find(|(_, named)| named == way).map_or("", |(name, _)| name);
                write!(f, "{}:{name}", domain.value)?;
                threads.map_or(Ok(()), |threads| write!(f, ":{}", threads.value))
            }
        }
    }
}

fn write_spans(f: &mut fmt::Formatter<'_>, spans: &[Span]) -> fmt::Result {
    for (index, span) in spans.iter().enumerate() {
        f.write_str(if index > 0 { "," } else { "" })?;
        match span.value {
            (first, last) if first == last => write!(f, "{first}")?,
            (first, last) => write!(f, "{first}-{last}")?,
        }
    }
    Ok(())
}
