//! Affinity expressions: which CPU each thread gets.
//!
//! Three languages, distinguished by how they begin: likwid's (`0,2-4`, `S0:0-3@S1:0-3`, `E:N:4:1:2`, `M:scatter`), hwloc's
//! (`package:0.core:0-3`), and the words `compact`, `scatter` and `spread`.

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
}

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

    fn cpus(&self, layout: &Layout, threads: Option<usize>) -> Result<Vec<u32>, Fault> {
        let cpus = match &self.tree {
            Tree::Parts(parts) => likwid_on_machine::cpus(parts, layout)?,
            Tree::Locations(locations) => hwloc_on_machine::cpus(locations, layout)?,
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
    if likwid::begins(scanner.rest()) {
        return likwid::parse(scanner).map(Tree::Parts);
    }
    if scanner.rest().trim().is_empty() {
        return Err(scanner.fault(
            "expected CPUs (0,2-4), domains (S0:0-3@S1:0-3, E:N:4:1:2, M:scatter), objects (package:0.core:0-3), or compact, scatter, spread",
        ));
    }
    hwloc::parse(scanner).map(Tree::Locations)
}

impl fmt::Display for Affinity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.tree {
            Tree::Parts(parts) => write_joined(f, parts, "@"),
            Tree::Locations(locations) => write_joined(f, locations, " "),
            Tree::Fill(fill, threads) => {
                f.write_str(FILLS.iter().find(|(_, named)| named == fill).map_or("", |(name, _)| name))?;
                threads.map_or(Ok(()), |threads| write!(f, ":{}", threads.value))
            }
        }
    }
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
