//! Affinity expressions: which CPU each thread gets.
//!
//! Three languages, distinguished by how they begin: likwid's (`0,2-4`, `S0:0-3@S1:0-3`, `E:N:4:1:2`, `M:scatter`), hwloc's
//! (`package:0.core:0-3`), and words: `compact`, `scatter` and `spread`, and `nodes:0,0,1,1` for the node of each thread.
//!
//! `run` resolves them to CPUs, and `report` and its relatives to the nodes of these CPUs on the machine that they judge on.

mod distribute;
mod hwloc;
mod hwloc_on_machine;
mod levels;
mod likwid;
mod likwid_on_machine;

pub use levels::{Layout, Level};

use crate::scan::{At, Fault, Scanner};
use distribute::{FILLS, Fill};
use firsttouch_model::ExpressionError;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use std::str::FromStr;

/// The most threads of an expression.
const MOST_THREADS: usize = 65_536;

/// An affinity expression. Two are equal if they mean the same, however they were written.
#[derive(Clone, Debug)]
pub struct Affinity {
    text: String,
    tree: Tree,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Tree {
    Parts(Vec<likwid::Part>),
    Locations(Vec<hwloc::Location>),
    /// With the number of threads, if the expression has one.
    Fill(Fill, Option<At<u32>>),
    /// `nodes:0,0,1,1`: the node of each thread.
    Nodes(Vec<likwid::Span>),
}

/// What an expression for the node of each thread begins with.
const NODES: &str = "nodes:";

impl Affinity {
    /// The CPU of thread 0, thread 1, and so on. A CPU may occur several times; there is at least one.
    ///
    /// `threads` is the number of threads, if it is known. `compact`, `scatter` and `spread` need it; without it they assume a thread for
    /// each CPU.
    ///
    /// # Errors
    /// Names the part that does not exist, or that this process may not use.
    pub fn resolve(&self, layout: &Layout, threads: Option<usize>) -> Result<Vec<u32>, ExpressionError> {
        self.cpus(layout, threads).map_err(|fault| fault.of(&self.text))
    }

    /// The node of each thread, if the expression names nodes.
    #[must_use]
    pub fn nodes(&self) -> Option<Vec<u32>> {
        let Tree::Nodes(spans) = &self.tree else { return None };
        Some(numbers(spans).map(|node| node.value).collect())
    }

    /// Whether the expression names CPUs by the kernel's numbers.
    #[must_use]
    pub fn names_cpus(&self) -> bool {
        matches!(&self.tree, Tree::Parts(parts) if parts.iter().any(|part| matches!(part, likwid::Part::Cpus(_))))
    }

    fn cpus(&self, layout: &Layout, threads: Option<usize>) -> Result<Vec<u32>, Fault> {
        let cpus = match &self.tree {
            Tree::Parts(parts) => likwid_on_machine::cpus(parts, layout)?,
            Tree::Locations(locations) => hwloc_on_machine::cpus(locations, layout)?,
            Tree::Nodes(spans) => on_nodes(spans, layout)?,
            Tree::Fill(fill, own) => {
                let nodes: Vec<Vec<u32>> = layout.objects(Level::Node).iter().map(|node| layout.cores_first(node)).collect();
                let nodes: Vec<Vec<u32>> = nodes.into_iter().filter(|node| !node.is_empty()).collect();
                let threads = own.map(|threads| threads.value as usize).or(threads);
                fill.cpus(&nodes, threads.unwrap_or_else(|| layout.all().len()).min(MOST_THREADS))
            }
        };
        if cpus.is_empty() { Err(Fault::new(0, "this selects no CPU")) } else { Ok(cpus) }
    }
}

impl FromStr for Affinity {
    type Err = ExpressionError;

    fn from_str(text: &str) -> Result<Self, ExpressionError> {
        let tree = parse(&mut Scanner::new(text)).map_err(|fault| fault.of(text))?;
        Ok(Self { text: text.to_owned(), tree })
    }
}

fn parse(scanner: &mut Scanner) -> Result<Tree, Fault> {
    let word = scanner.word();
    if let Some((name, fill)) = FILLS.into_iter().find(|(name, _)| *name == word) {
        scanner.eat(name);
        let threads = if scanner.eat(":") { Some(scanner.positive("a number of threads")?) } else { None };
        scanner.end("':' and a number of threads, or the end")?;
        return Ok(Tree::Fill(fill, threads));
    }
    if scanner.eat(NODES) {
        let spans = likwid::spans(scanner)?;
        scanner.end("',' or the end")?;
        return Ok(Tree::Nodes(spans));
    }
    if likwid::begins(scanner.rest()) {
        return likwid::parse(scanner).map(Tree::Parts);
    }
    if scanner.rest().trim().is_empty() {
        return Err(scanner.fault(
            "expected CPUs (0,2-4), domains (S0:0-3@S1:0-3, E:N:4:1:2, M:scatter), objects (package:0.core:0-3), nodes (nodes:0,0,1,1), or compact, scatter, spread",
        ));
    }
    hwloc::parse(scanner).map(Tree::Locations)
}

impl fmt::Display for Affinity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.tree {
            Tree::Parts(parts) => write_joined(f, parts, "@"),
            Tree::Locations(locations) => write_joined(f, locations, " "),
            Tree::Nodes(spans) => {
                f.write_str(NODES)?;
                let one = |span: &likwid::Span| if span.0 == span.1 { span.0.to_string() } else { format!("{}-{}", span.0, span.1) };
                write_joined(f, &spans.iter().map(one).collect::<Vec<_>>(), ",")
            }
            Tree::Fill(fill, threads) => {
                f.write_str(FILLS.iter().find(|(_, named)| named == fill).map_or("", |(name, _)| name))?;
                threads.map_or(Ok(()), |threads| write!(f, ":{}", threads.value))
            }
        }
    }
}

/// The numbers of ranges, which may run downwards.
fn numbers(spans: &[likwid::Span]) -> impl Iterator<Item = At<u32>> {
    spans.iter().flat_map(|span| {
        let (first, last) = span.value;
        let count = first.abs_diff(last) + 1;
        (0..count).map(move |step| At { value: if first <= last { first + step } else { first - step }, offset: span.offset })
    })
}

/// The CPUs of threads on nodes: each thread takes the node's next CPU.
fn on_nodes(spans: &[likwid::Span], layout: &Layout) -> Result<Vec<u32>, Fault> {
    let mut turns: BTreeMap<u32, (Vec<u32>, usize)> = BTreeMap::new();
    let mut cpus = Vec::new();
    for node in numbers(spans) {
        if cpus.len() >= MOST_THREADS {
            return Err(too_many());
        }
        let (of_node, next) = match turns.entry(node.value) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let of_node = layout.node(node.value).map_err(|error| Fault::new(node.offset, error.to_string()))?;
                new.insert((of_node, 0))
            }
        };
        cpus.extend(of_node.get(*next % of_node.len().max(1)));
        *next += 1;
    }
    Ok(cpus)
}

fn too_many() -> Fault {
    Fault::new(0, format!("this asks for more than {MOST_THREADS} threads"))
}

fn write_joined(f: &mut fmt::Formatter<'_>, parts: &[impl fmt::Display], between: &str) -> fmt::Result {
    for (index, part) in parts.iter().enumerate() {
        write!(f, "{}{part}", if index > 0 { between } else { "" })?;
    }
    Ok(())
}

impl PartialEq for Affinity {
    fn eq(&self, other: &Self) -> bool {
        self.tree == other.tree
    }
}

impl Eq for Affinity {}

#[cfg(test)]
mod tests;
