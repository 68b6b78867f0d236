//! hwloc's XML (format 2, as lstopo 2.x writes it) as a topology.
//!
//! The format is that of hwloc's hwloc2.dtd: nested `object` elements, each with the set of its CPUs, then `distances2`
//! and `memattr` elements. Every object has its own set of CPUs, so the nesting is not followed.

mod attributes;
mod bitmap;
mod objects;

use crate::files::read_bounded_text;
use crate::topology::sub_numa;
use firsttouch_model::error::{Context, Error, Result};
use firsttouch_model::pairs::PairFigure;
use firsttouch_model::topology::Topology;
use roxmltree::{Document, ParsingOptions};
use std::path::Path;

/// The most elements of a file; a machine of 8192 CPUs has about 100,000.
const MOST_ELEMENTS: u32 = 4_000_000;
/// The largest file that is read as a topology.
const MOST_BYTES: u64 = 256 << 20;

/// Reads an hwloc XML file.
///
/// # Errors
/// When the file cannot be read, is not hwloc's XML of format 2, or names no CPUs or nodes.
pub fn read_file(path: &Path) -> Result<Topology> {
    read_file_with_figures(path).map(|(topology, _)| topology)
}

/// As [`read_file`], and also returns the figures of pairs of nodes (memory attributes).
///
/// # Errors
/// As [`read_file`].
pub fn read_file_with_figures(path: &Path) -> Result<(Topology, Vec<PairFigure>)> {
    let cannot = || format!("cannot read {}", path.display());
    let text = read_bounded_text(path, MOST_BYTES).with_context(cannot)?;
    read_with_figures(&text).with_context(cannot)
}

/// Reads the text of an hwloc XML file.
///
/// # Errors
/// When it is not hwloc's XML of format 2, or names no CPUs or nodes.
pub fn read(text: &str) -> Result<Topology> {
    read_with_figures(text).map(|(topology, _)| topology)
}

/// As [`read`], and also returns the figures of pairs of nodes (memory attributes).
///
/// # Errors
/// As [`read`].
pub fn read_with_figures(text: &str) -> Result<(Topology, Vec<PairFigure>)> {
    // The parser recurses once a level. hwloc nests about twenty deep; a hostile file must not exhaust the stack.
    const DEEPEST: usize = 256;
    if depth(text) > DEEPEST {
        return Err(Error::invalid_data(format!("its elements are nested more than {DEEPEST} deep: not an hwloc topology")));
    }
    let options = ParsingOptions { allow_dtd: true, nodes_limit: MOST_ELEMENTS };
    let document =
        Document::parse_with_options(text, options).map_err(|error| Error::invalid_data(format!("it is not well-formed XML: {error}")))?;
    let root = document.root_element();
    if root.tag_name().name() != "topology" {
        return Err(Error::invalid_data(format!(
            "it is not an hwloc topology: the first element is '{}', expected 'topology'",
            root.tag_name().name()
        )));
    }
    match root.attribute("version").and_then(|version| version.split('.').next()?.parse::<u32>().ok()) {
        Some(2..=3) => {}
        Some(other) => return Err(Error::invalid_data(format!("it has hwloc's XML format {other}; formats 2 and 3 are understood"))),
        None => {
            return Err(Error::invalid_data(
                "it has no format version, so hwloc 1 wrote it; write it with lstopo 2 or later: lstopo --of xml FILE",
            ));
        }
    }
    let mut objects = objects::Objects::collect(root)?;
    let mut topology = objects.topology();
    attributes::distances(root, &mut topology, &mut objects);
    let figures = attributes::access(root, &mut topology, &objects);
    topology.sub_numa = sub_numa::recognise(&topology);
    topology.doubts = objects.doubts;
    topology.make_names_safe();
    Ok((topology, figures))
}

/// How deep the tags of a text are nested. With comments or damage the result may be too large, never too small.
fn depth(text: &str) -> usize {
    let (mut depth, mut deepest) = (0usize, 0usize);
    for tag in text.split('<').skip(1) {
        match tag.as_bytes().first() {
            Some(b'/') => depth = depth.saturating_sub(1),
            Some(b'!' | b'?') | None => {}
            Some(_) if tag.split('>').next().is_some_and(|inside| inside.ends_with('/')) => {}
            Some(_) => {
                depth += 1;
                deepest = deepest.max(depth);
            }
        }
    }
    deepest
}
