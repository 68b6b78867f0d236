//! Lists of nodes and CPUs in numactl's syntax: `0-3,6`, `all`, `!1`, `+0-1`, `same`, `netdev:eth0`.

mod device;
mod numbered;
mod parse;

pub use device::{Device, DeviceKind};
pub use numbered::Numbered;

use crate::scan::{Fault, Scanner};
use firsttouch_model::{Error, ExpressionError};
use parse::Tree;
use std::fmt;
use std::str::FromStr;

/// A list of nodes. Two are equal if they mean the same, however they were written.
#[derive(Clone, Debug)]
pub struct NodeList {
    text: String,
    nodes: Nodes,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Nodes {
    /// The list of the other option.
    Same,
    List(Tree),
}

/// Finds the nodes of a device.
pub type FindDevice<'a> = &'a dyn Fn(&Device) -> Result<Vec<u32>, Error>;

impl NodeList {
    /// The nodes, sorted: those of `same` for `same`.
    ///
    /// # Errors
    /// Names the first part that is not a node this process may use.
    pub fn resolve(&self, known: &Numbered, same: Option<&[u32]>, devices: FindDevice) -> Result<Vec<u32>, ExpressionError> {
        let nodes = match &self.nodes {
            Nodes::Same => same.map(<[u32]>::to_vec).ok_or_else(|| Fault::new(0, "'same' needs nodes or CPUs in another option")),
            Nodes::List(list) => list.resolve(known, devices),
        };
        nodes.map_err(|fault| fault.of(&self.text))
    }
}

impl FromStr for NodeList {
    type Err = ExpressionError;

    fn from_str(text: &str) -> Result<Self, ExpressionError> {
        let nodes = if text == "same" { Nodes::Same } else { Nodes::List(Tree::parse(text, true).map_err(|fault| fault.of(text))?) };
        Ok(Self { text: text.to_owned(), nodes })
    }
}

impl fmt::Display for NodeList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.nodes {
            Nodes::Same => f.write_str("same"),
            Nodes::List(list) => list.fmt(f),
        }
    }
}

impl PartialEq for NodeList {
    fn eq(&self, other: &Self) -> bool {
        self.nodes == other.nodes
    }
}

impl Eq for NodeList {}

/// A list of CPUs. Two are equal if they mean the same, however they were written.
#[derive(Clone, Debug)]
pub struct CpuList {
    text: String,
    list: Tree,
}

impl CpuList {
    /// The CPUs, sorted.
    ///
    /// # Errors
    /// Names the first part that is not a CPU this process may use.
    pub fn resolve(&self, known: &Numbered) -> Result<Vec<u32>, ExpressionError> {
        self.list
            .resolve(known, &|device| Err(Error::invalid_input(format!("{device} is not a CPU"))))
            .map_err(|fault| fault.of(&self.text))
    }
}

impl FromStr for CpuList {
    type Err = ExpressionError;

    fn from_str(text: &str) -> Result<Self, ExpressionError> {
        let list = Tree::parse(text, false).map_err(|fault| fault.of(text))?;
        Ok(Self { text: text.to_owned(), list })
    }
}

impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.list.fmt(f)
    }
}

impl PartialEq for CpuList {
    fn eq(&self, other: &Self) -> bool {
        self.list == other.list
    }
}

impl Eq for CpuList {}

#[cfg(test)]
mod tests;
