//! Shows live data: as text, CSV and JSON lines, and on a terminal.
//!
//! | module | what it does |
//! |---|---|
//! | `cells.rs` | figures as short texts: shares with their interval, bytes, CPUs |
//! | `batch.rs` | a snapshot as text and as CSV |
//! | `view/` | what is on the screen: the state that keys change (`state.rs`), tables (`tables.rs`), and the drawing (`draw.rs`); no terminal |
//! | `source.rs` | where snapshots come from: a thread that watches this machine, or a record |
//! | `screen.rs` | the terminal: raw mode and back, keys, signals |

mod batch;
mod cells;
mod screen;
mod source;
mod view;

pub use batch::{CsvTable, text};
pub use screen::{Left, Recorded, replay, watch};
pub use source::{Also, Live};
pub use view::{Palette, View};
