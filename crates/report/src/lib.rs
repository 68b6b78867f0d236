//! Results as text for people, as JSON, and in the formats of other tools.
//!
//! A module is named after its command: `bench/`, `check/` (text, SARIF, JUnit, GitHub), `diff.rs`, `doctor.rs`, `export/` (formats of other tools), `html/` (the report as a page), `map/`, `plan.rs`, `predict.rs`,
//! `profile.rs`, `reproduce/`, `run.rs`, `topology/`; `system/` holds `balancing`, `machines`, `maps`, `migrate`, `ps`, `stat` and `validate`.
//!
//! `firsttouch report` is `report_json.rs`, `recommendation_json.rs` (which `check` and `plan` show too) and `text/`: `finding.rs`, `not_judged.rs` (objects without a verdict), `doubts.rs` (missing evidence,
//! notes, and what would help), `kernel.rs` (the kernel's counters), `object_map.rs`, `paint.rs` (colours), `place.rs` (a line, a function, or module and
//! offset), `words.rs` (figures, shares of threads), `layout.rs`.

mod bench;
mod canvas;
mod check;
mod diff;
mod doctor;
pub mod export;
mod html;
mod map;
mod plan;
mod predict;
mod profile;
mod recommendation_json;
mod report_json;
mod reproduce;
mod run;
mod system;
mod text;
mod topology;
mod xml;

pub use bench::{BenchJson, bench_text, speed_chart};
pub use check::{CheckJson, check_github, check_junit, check_sarif, check_text};
pub use diff::{DiffJson, diff_text};
pub use doctor::{DoctorJson, doctor_text, seen_text};
pub use firsttouch_plan::Recommendations;
pub use html::{Comparison, Cost, Page, Side, View, diff_html, html, svg};
pub use map::{Origin, SaveError, SaveErrorKind, heat_maps, machine_toml, map_text, map_xml};
pub use plan::{PlanJson, plan_in_source_text, plan_text};
pub use predict::{Compared, PredictJson, PredictMachine, predict_text};
pub use profile::profile_summary;
pub use recommendation_json::RecommendationJson;
pub use report_json::{FindingJson, ReportJson};
pub use reproduce::{reproduction_figure, reproduction_text};
pub use run::{ExplainJson, QuickTestJson, explain_text, quick_test_text};
pub use system::{
    BalancingJson, MachineJson, MachinesJson, MapsJson, MapsText, MeasuredJson, MigrateJson, MigrateTarget, NotMoved, PsJson, Span,
    StatJson, WatchTable, balancing_text, machine_text, machines_text, maps_text, measured_text, migrate_text, ps_text, stat_text,
    validation_markdown, validation_text,
};
pub use text::{Context, Style, counted_as, described, text, thousands, timeline_text, verdict_sentence, wrapped};
pub use topology::{TopologyJson, hwloc_xml, picture, topology_text};
