//! The results of `firsttouch map` as text, pictures, hwloc XML and a machine description.

mod attributes;
mod heat;
mod save;
mod text;

pub use attributes::map_xml;
pub(crate) use heat::HeatMap;
pub use heat::heat_maps;
pub use save::{Origin, SaveError, SaveErrorKind, machine_toml};
pub use text::map_text;
