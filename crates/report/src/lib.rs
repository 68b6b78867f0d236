//! What a reader sees: the analysis as text for people (its JSON is the analysis itself, serialised), and the source code
//! the analysis asks about.

mod doctor;
mod sources;
mod text;
mod topology;

pub use doctor::{DoctorJson, doctor_text};
pub use sources::FileSources;
pub use text::{Context, Style, text, thousands};
pub use topology::{TopologyJson, hwloc_xml, picture, topology_text};
