//! A profile, judged on several machines and reported.

use firsttouch_analysis::{Analysis, Target, analyse};
use firsttouch_model::Pin;
use firsttouch_model::rows::Profile;
use firsttouch_pipeline::FileSources;
use firsttouch_plan::{Frame, ProgramFiles, Proposals, Recommendations, recommend};
use firsttouch_predict::forecast::{ForecastMachine, ForecastOptions, choose};
use firsttouch_report::{Context, ReportJson, Style, text};
use std::path::{Path, PathBuf};

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
            ranks: firsttouch_analysis::RankLayout::default(),
        };
        let analysis = analyse(profile, &target, &FileSources::new(&[]));
        let sum: f64 = analysis.matrix.iter().flatten().sum();
        assert!(sum == 0.0 || (sum - 1.0).abs() < 1e-6, "the matrix sums to {sum}");
        let advice = recommended(profile, &analysis);
        serde_json::to_string(&ReportJson::new(&analysis, None, &advice)).expect("JSON");
        let context = Context {
            verbose: true,
            profile: "p.ftp".to_owned(),
            options: Vec::new(),
            recorded_nodes: nodes,
            heading: true,
            more: true,
            prefix: "",
        };
        assert!(!text(&analysis, None, &advice, &context, Style { width: 80, colour: false }).is_empty());
    }
}

fn recommended(profile: &Profile, analysis: &Analysis) -> Recommendations {
    let nodes = analysis.machine.nodes;
    let machine = ForecastMachine::assumed("fuzzed", nodes, &analysis.traffic, (0..nodes).collect()).expect("the catalogue");
    let proposals = Proposals::new(profile, analysis, &machine, false, &NoFiles);
    let decision = choose(&analysis.traffic, &machine, &proposals.candidates(), &analysis.remedies(), ForecastOptions::default());
    let all = recommend(analysis, &proposals, decision.as_ref().map_err(ToString::to_string));
    assert_eq!(all.list.len(), analysis.findings.len());
    all
}

/// No program file can be read.
struct NoFiles;

impl ProgramFiles for NoFiles {
    fn canonical(&self, _: &Path) -> Option<PathBuf> {
        None
    }

    fn build_id(&self, _: &Path) -> Option<String> {
        None
    }

    fn modified_unix_s(&self, _: &Path) -> Option<i64> {
        None
    }

    fn device_and_inode(&self, _: &Path) -> Option<(u64, u64)> {
        None
    }

    fn static_arrays(&self, _: &Path, _: &str) -> Vec<(u64, u64)> {
        Vec::new()
    }

    fn code_at(&self, _: &Path, _: &[Frame]) -> Vec<(u64, u64)> {
        Vec::new()
    }

    fn copies(&self, _: &Path, _: u64, _: &[Frame]) -> Vec<(u64, u64)> {
        Vec::new()
    }

    fn is_at(&self, _: &Path, _: u64, _: &[Frame]) -> bool {
        false
    }
}
