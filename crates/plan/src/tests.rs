use super::*;
use firsttouch_model::{NodeId, Pin};

const PLAN: &str = r#"schema = "firsttouch.plan/1"
nodes = 2
[threads]
count = 8
pin = "spread"
[[module]]
name = "dgemv"
path = "/tmp/dgemv"
[[place]]
what = "A"
policy = "blocked"
threads = [0, 1, 2, 3, 4, 5, 6, 7]
frames = [{ module = "dgemv", offset = 0x1234, function = "run", file = "dgemv.c", line = 41 }]
[[place]]
what = "t"
policy = "interleave"
symbol = { module = "dgemv", name = "t" }
"#;

fn applied(plan: &Plan, nodes: &[u32]) -> Applied {
    apply(plan, &RunNodes { nodes: nodes.to_vec(), ..RunNodes::default() })
}

/// Check that parts by thread follow the number of nodes, whatever the nodes' numbers, and that on one node nothing is placed.
#[test]
fn parts_follow_the_nodes() {
    let plan: Plan = PLAN.parse().unwrap();
    let parts = |nodes: &[u32]| applied(&plan, nodes).policies[0].clone();
    let of = |parts: &[(f64, u32)]| KernelPolicy::Parts { parts: parts.to_vec(), period_bytes: None, rows: 1 };
    assert_eq!(parts(&[0, 1]), of(&[(0.5, 0), (1.0, 1)]));
    assert_eq!(parts(&[1, 3, 4, 7]), of(&[(0.25, 1), (0.5, 3), (0.75, 4), (1.0, 7)]));
    assert_eq!(applied(&plan, &[2, 5]).threads, [2, 2, 2, 2, 5, 5, 5, 5]);
    assert_eq!(applied(&plan, &[2, 5]).policies[1], KernelPolicy::Whole { mode: 3, nodes: vec![2, 5] });
    assert_eq!(applied(&plan, &[4]), Applied { policies: vec![KernelPolicy::Leave; 2], ..Applied::default() });
}

/// Check that idle threads take no place: the others are spread as if there were no idle ones, also in the parts of memory.
#[test]
fn idle_threads_take_no_place() {
    let mut plan: Plan = PLAN.replace("count = 8", "count = 8\nidle = [6, 0, 1, 6, 7]").parse().unwrap();
    assert_eq!(plan.threads.idle, [0, 1, 6, 7]);
    let here = applied(&plan, &[2, 5]);
    assert_eq!((here.threads, here.idle), (vec![2, 2, 5, 5], vec![0, 1, 6, 7]));
    let nodes = |plan: &Plan| match &applied(plan, &[2, 5]).policies[0] {
        KernelPolicy::Parts { parts, .. } => parts.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(nodes(&plan), [(0.5, 2), (1.0, 5)], "threads 2 and 3, and the idle ones before them, then 4 to 7");
    plan.threads.pin = Some(Pin::Nodes((0..8).map(|thread| NodeId(thread % 2)).collect()));
    assert_eq!(applied(&plan, &[2, 5]).threads, [2, 5, 2, 5], "threads 2 to 5, by their numbers");
    assert_eq!(plan.to_string().parse::<Plan>().unwrap(), plan);
    plan.threads.pin = None;
    assert_eq!(applied(&plan, &[2, 5]).idle, [0; 0]);
}

/// Check that missing nodes are reported, and that pinning by nodes scales.
#[test]
fn absent_nodes_are_said() {
    let mut plan: Plan = PLAN.parse().unwrap();
    plan.nodes = 4;
    plan.threads.pin = Some(Pin::Nodes(vec![NodeId(0), NodeId(3)]));
    plan.entries[0].policy = Policy::Interleave(vec![1, 3]);
    plan.entries[1].policy = Policy::Preferred(3);
    let here = applied(&plan, &[0, 1]);
    assert_eq!(here.policies, [KernelPolicy::Whole { mode: 3, nodes: vec![1] }, KernelPolicy::Leave]);
    assert_eq!(here.threads[..4], [0, 1, 0, 1]);
    assert!(
        here.doubts[0].to_string().contains("A: there is no logical node 3 here") && here.doubts[1].to_string().contains("left alone"),
        "{:?}",
        here.doubts
    );
}

/// Check the table of malformed plans: the fault and its line.
#[test]
fn malformed_plans_name_the_line() {
    for (from, to, line, word) in [
        ("firsttouch.plan/1", "firsttouch.plan/9", 1, "not a plan of firsttouch"),
        ("nodes = 2", "nodes = 0", 2, "nodes must be"),
        ("nodes = 2", "nodes = two", 2, ""),
        ("nodes = 2", "nodse = 2", 2, "nodse"),
        ("count = 8", "count = 0", 4, "count must be"),
        ("count = 8", "count = 8\nidle = [8]", 5, "threads 0-7, not all"),
        ("count = 8", "count = 8\nidle = [0, 1, 2, 3, 4, 5, 6, 7]", 5, "not all"),
        ("count = 8", "count = 4", 9, "thread 4 does not exist"),
        ("\"spread\"", "\"wide\"", 5, "or none"),
        ("\"spread\"", "\"0,7\"", 5, "node 7 does not exist"),
        ("\"blocked\"", "\"blokced\"", 11, "no policy 'blokced'"),
        ("\"interleave\"", "\"preferred\"", 15, "needs one node"),
        ("\"interleave\"", "\"bind\"", 15, "needs nodes"),
        ("\"interleave\"", "\"interleave\"\nnodes = [2]", 15, "node 2 does not exist"),
        ("\"interleave\"", "\"interleave\"\nuntil = [1.0]", 18, "does not go with"),
        ("threads = [", "until = [0.5, 0.25]\nthreads = [", 9, "until has a number"),
        ("threads = [", "period_bytes = 12.0\nthreads = [", 9, "at least a page"),
        ("threads = [", "rows = 0\nthreads = [", 9, "rows is at least 1"),
        ("threads = [0, 1, 2, 3, 4, 5, 6, 7]", "", 9, "threads, one a part"),
        ("module = \"dgemv\", offset", "module = \"other\", offset", 9, "no [[module]]"),
        ("offset = 0x1234", "offset = -3", 13, ""),
        ("offset = 0x1234, ", "", 9, "must have an offset"),
        ("offset = 0x1234", "offset = 0x1234, copies = [[7, 7]]", 9, "copies are"),
        ("offset = 0x1234", "offset = 0x1234, copies = [7]", 13, ""),
        ("offset = 0x1234", "offset = 0x1234, inlined = true", 9, "cannot be inlined"),
        ("symbol = { module = \"dgemv\", name = \"t\" }", "", 15, "either frames or a symbol"),
        ("path = \"/tmp/dgemv\"", "path = \"/tmp/dgemv\"\nbuild_id = \"xyz\"", 1, "hexadecimal"),
    ] {
        assert!(PLAN.contains(from), "{from}");
        let error = PLAN.replacen(from, to, 1).parse::<Plan>().expect_err(to);
        assert!(error.kind.to_string().contains(word), "{to}: {error}");
        // The error is near the line of the entry or of its key.
        assert!(error.line.abs_diff(line) <= 3, "{to}: {error}");
    }
    for text in ["", "\0", "schema = 1", "[[place]]", "schema = \"firsttouch.plan/1\"", "é = 1", "nodes = 99999999999999999999"] {
        assert!(text.parse::<Plan>().is_err(), "{text}");
    }
}

/// Files of which only the build is known.
struct SameBuild(bool);

impl ProgramFiles for SameBuild {
    fn canonical(&self, path: &std::path::Path) -> Option<std::path::PathBuf> {
        Some(path.to_owned())
    }

    fn build_id(&self, _: &std::path::Path) -> Option<String> {
        Some(if self.0 { "aa" } else { "bb" }.into())
    }

    fn modified_unix_s(&self, _: &std::path::Path) -> Option<i64> {
        None
    }

    fn device_and_inode(&self, _: &std::path::Path) -> Option<(u64, u64)> {
        None
    }

    fn static_arrays(&self, _: &std::path::Path, _: &str) -> Vec<(u64, u64)> {
        Vec::new()
    }

    fn code_at(&self, _: &std::path::Path, _: &[Frame]) -> Vec<(u64, u64)> {
        assert!(!self.0, "a run in the same build reads no debug data");
        vec![(7, 9)]
    }

    fn copies(&self, _: &std::path::Path, _: u64, _: &[Frame]) -> Vec<(u64, u64)> {
        panic!("copies are looked up when the plan is made")
    }

    fn is_at(&self, _: &std::path::Path, _: u64, _: &[Frame]) -> bool {
        panic!("a run in the same build reads no debug data")
    }
}

/// Check that a run in the same build finds a call at its offset and at its copies, without debug data, and in another build at its lines.
#[test]
fn copies_of_a_call_are_found() {
    let text = PLAN.replace("path = \"/tmp/dgemv\"", "path = \"/tmp/dgemv\"\nbuild_id = \"AA\"");
    let found = |text: &str, is_same: bool| {
        let plan: Plan = text.parse().unwrap();
        match &locate(&plan, None, &SameBuild(is_same)).found[0] {
            Found::Site(code) => code[0].ranges.clone(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(found(&text, true), [(0x1234, 0x1235)]);
    let with_copies = text.replace("offset = 0x1234", "offset = 0x1234, copies = [[0x2000, 0x2008], [0x3000, 0x3004]]");
    assert_eq!(found(&with_copies, true), [(0x2000, 0x2008), (0x3000, 0x3004), (0x1234, 0x1235)]);
    assert_eq!(found(&with_copies, false), [(7, 9)]);
}

/// Check that a site's hash depends on the lines of the code, but not on its directory.
#[test]
fn hashes_follow_lines() {
    let frame = |line, offset, folder: &str| Frame {
        module: "m".into(),
        offset: Some(offset),
        function: "f".into(),
        file: format!("{folder}/a.c"),
        line,
        ..Frame::default()
    };
    let site = |frames: Vec<Frame>| hash(&Site { call: "malloc".into(), frames, ..Site::default() });
    assert_eq!(site(vec![frame(3, 10, "/a")]), site(vec![frame(3, 99, "/b/c")]));
    assert_ne!(site(vec![frame(3, 10, "/a")]), site(vec![frame(4, 10, "/a")]));
    assert_ne!(site(vec![frame(0, 10, "/a")]), site(vec![frame(0, 11, "/a")]));
}

/// Check the sizes and counts of the library's table.
#[test]
fn the_table_has_its_form() {
    let plan: Plan = PLAN.parse().unwrap();
    let here = applied(&plan, &[0, 1]);
    let found = [
        Found::Site(vec![Code { module: 0, ranges: vec![(0x1234, 0x1235)] }]),
        Found::Symbol(Spot { module: 0, address: 0x4000, bytes: 1 << 20 }),
    ];
    let identities = [Identity { build_id: vec![1, 2, 3], device: 5, inode: 6 }];
    let bytes = table(&Table { plan: &plan, applied: &here, identities: &identities, found: &found, pid: 77 });
    assert_eq!(bytes.len(), 128 + 56 + 2 * 304 + 16 + 16 + 2 * 16);
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    assert_eq!((word(12) as usize, word(16)), (bytes.len(), 77));
    assert_eq!([20, 24, 28, 32, 36].map(word), [1, 2, 1, 1, 2]);
}
