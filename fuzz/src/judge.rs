//! A profile, judged on several machines and reported.

use firsttouch_analysis::{Target, analyse};
use firsttouch_model::Pin;
use firsttouch_model::rows::Profile;
use firsttouch_pipeline::FileSources;
use firsttouch_report::{Context, ReportJson, Style, text};

/// Judges the profile as `report` does, without reading the files that it names.
pub fn judged(profile: &Profile) {
    for (nodes, virtual_machine) in [(2, true), (4, false)] {
        let target = Target {
            name: "fuzzed".to_owned(),
            nodes,
            virtual_machine,
            pin: Pin::Spread,
            place_all_threads: false,
            cores_per_node: 2,
            cpu_nodes: Vec::new(),
            slow_nodes: Vec::new(),
            private_cache_bytes: 1 << 20,
        };
        let analysis = analyse(profile, &target, &FileSources::new(&[]));
        let sum: f64 = analysis.matrix.iter().flatten().sum();
        assert!(sum == 0.0 || (sum - 1.0).abs() < 1e-6, "the matrix sums to {sum}");
        serde_json::to_string(&ReportJson::new(&analysis, None)).expect("JSON");
        let context = Context {
            verbose: true,
            profile: "p.ftp".to_owned(),
            options: Vec::new(),
            recorded_nodes: nodes,
            heading: true,
            more: true,
            plan: None,
            prefix: "",
        };
        assert!(!text(&analysis, None, &context, Style { width: 80, colour: false }).is_empty());
    }
}
