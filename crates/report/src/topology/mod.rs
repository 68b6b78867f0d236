//! A machine's topology as text, JSON, picture (SVG) and hwloc's XML.

mod hwloc;
mod picture;
pub(crate) mod table;
mod text;

pub use hwloc::{Attribute, hwloc_xml, hwloc_xml_with};
pub use picture::picture;
pub use text::topology_text;

use firsttouch_model::topology::Topology;
use serde::Serialize;

/// The JSON of `firsttouch topology`: the topology with the name of its schema.
#[derive(Serialize)]
pub struct TopologyJson<'a> {
    pub schema: &'static str,
    #[serde(flatten)]
    pub topology: &'a Topology,
}

impl<'a> TopologyJson<'a> {
    #[must_use]
    pub fn new(topology: &'a Topology) -> Self {
        Self { schema: "firsttouch.topology/1", topology }
    }
}
