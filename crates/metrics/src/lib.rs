//! Metrics of NUMA placement for Prometheus: `firsttouch serve-metrics`.
//!
//! | module | what it does |
//! |---|---|
//! | `catalogue.rs` | every metric: name, kind, unit, labels, help |
//! | `exposition.rs` | the samples of a scrape, and the limit on their number |
//! | `render.rs` | samples to text: OpenMetrics, and the older format of Prometheus |
//! | `collect/` | reads the samples: nodes, counters, pressure, control groups, processes |
//! | `http/` | the server: requests, responses, connections with their limits |
//! | `textfile.rs` | a file for node_exporter's textfile collector |

pub mod catalogue;
mod collect;
mod exposition;
pub mod http;
mod render;
mod textfile;

pub use collect::{Cgroups, Collector, Options, ProcessOptions, Watcher};
pub use exposition::{Batch, Exposition, Family, Sample, Value};
pub use http::{Limits, Server};
pub use render::{Format, render};
pub use textfile::write as write_textfile;
