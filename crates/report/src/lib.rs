//! What a reader sees: the analysis as text for people (its JSON is the analysis itself, serialised), and the source code
//! the analysis asks about.

mod doctor;
mod sources;
mod system;
mod text;
mod topology;

pub use doctor::{DoctorJson, doctor_text};
pub use sources::FileSources;
pub use system::{
    BalancingJson, MapsJson, MapsText, MeasuredJson, PsJson, Span, StatJson, balancing_text, maps_text, measured_text, ps_text, stat_text,
};
pub use text::{Context, Style, text, thousands};
pub use topology::{TopologyJson, hwloc_xml, picture, topology_text};
