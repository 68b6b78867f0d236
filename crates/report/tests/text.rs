//! Compares the text report of hand-made analyses with expected text.

mod doubts;
mod generated_code;
mod hostile_names;
mod jobs;
mod recommendations;
mod several_sources;
mod together;
mod two_profiles;
mod unlined;
mod unsettled;
mod verdicts;

use firsttouch_analysis::{
    Analysis, CodeLocation, EvidenceView, Finding, FirstTouchView, MachineView, NotJudged, ObjectMap, ObjectView, PartitionKind, ThreadView,
};
use firsttouch_model::TouchCause;
use firsttouch_model::finding::{FindingKind, FixKind, Severity};
use firsttouch_model::rows::ObjectKind;
use firsttouch_model::traffic::Traffic;
use firsttouch_plan::{Action, Blocks, ObjectAdvice, Origin, Place, Policy, Recommendation, Recommendations, SpreadAll, Worth};
use firsttouch_report::{Context, Style, described};

pub const PLAIN: Style = Style { width: 100, colour: false };

pub fn context() -> Context {
    Context { profile: "dgemv.ftp".into(), options: Vec::new(), recorded_nodes: 1, heading: true, more: true, verbose: false, prefix: "" }
}

fn code_line(line: u32, function: &str, text: &str, share: f64) -> CodeLocation {
    CodeLocation {
        file: Some("/home/me/src/dgemv.c".into()),
        line: Some(line),
        function: Some(function.into()),
        share_interval: None,
        alone: None,
        share,
        text: Some(format!("    {text}")),
        module: Some("/home/me/dgemv".into()),
        offset: Some(0x1234),
        inlined_at: Vec::new(),
    }
}

fn evidence(source: &str, samples: u64) -> EvidenceView {
    EvidenceView { source: source.into(), available: true, samples, lost: 0, detail: String::new() }
}

pub fn matrix_a() -> ObjectView {
    ObjectView {
        id: 7,
        name: "A".into(),
        bytes: 3_200_000_000,
        count: 1,
        total_bytes: 3_200_000_000,
        kind: ObjectKind::Heap,
        call: Some("malloc".into()),
        process: 1,
        shared_by: None,
        is_shareable: false,
        library: None,
        ordinal: 0,
        language: Some("c".into()),
        allocated_at: Some(code_line(41, "run", "double *A = malloc(m * n * sizeof *A);", 1.0)),
        access_share: Some(0.98),
        access_share_interval: Some([0.97, 0.99]),
        time_share: None,
        time_share_interval: None,
        evidence: "watch".into(),
        windows: 300,
        hit_windows: 290,
        hints: 0,
        remote_fraction: Some(0.5),
        remote_interval: Some([0.48, 0.52]),
        remote_interval_by_samples: None,
        guessed_homes: 0.0,
        speed_error: 0.0,
        is_same_anywhere: false,
        is_at_users: false,
        is_spread: false,
        first_touch: FirstTouchView {
            by_thread: vec![1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0].into(),
            at: vec![code_line(46, "initialise", "A[i * n + j] = (double)(i + j);", 1.0)],
            partition: PartitionKind::Single,
            cause: Some(TouchCause::Loop),
            samples: 1310,
            by_kernel: 0.0,
            recycled: 0.0,
            of_misplaced_part: false,
            serial_allocations: None,
        },
        used_by_thread: vec![0.125; 8].into(),
        used_by_thread_interval: vec![[0.11, 0.14]; 8].into(),
        used_by_thread_samples: vec![238; 8].into(),
        used_at: vec![code_line(23, "product", "sum += A[i * n + j] * b[j];", 1.0)],
        partition: PartitionKind::Block,
        partition_period: None,
        page_bytes: 4096,
        policy: None,
        resident: None,
        judged: true,
        reason: None,
        together: Vec::new(),
        map: ObjectMap { users: (0..16).map(|piece| piece / 2).collect(), homes: vec![0; 16] },
    }
}

pub fn serial() -> Analysis {
    Analysis {
        command: vec!["./dgemv".into(), "20000".into()],
        exit_code: Some(0),
        signal: None,
        wall_s: 6.2,
        machine: MachineView { name: "virtual:2".into(), nodes: 2, virtual_machine: true },
        threads: (0..8)
            .map(|index| ThreadView { index, node: index as u32 / 4, slot: index, process: 1, ..ThreadView::default() })
            .collect(),
        evidence: vec![evidence("touch", 1310), evidence("watch", 1904)],
        remote_fraction: Some(0.49),
        remote_interval: Some([0.47, 0.52]),
        remote_interval_by_samples: None,
        guessed_homes: 0.0,
        speed_error: 0.0,
        missing_addresses: 0.0,
        used_in_turn: 0.0,
        remote_samples: 290,
        remote_evidence: Some("watch".into()),
        cross_checks: vec![],
        matrix: vec![vec![0.5, 0.0], vec![0.5, 0.0]],
        objects: vec![matrix_a()],
        findings: vec![Finding {
            kind: FindingKind::SerialFirstTouch,
            object: Some(7),
            together: Vec::new(),
            object_name: "A".into(),
            severity: Severity::High,
            message: "Thread 0 touched all of A first, so all of it is on node 0; 8 threads use it, each its own block.".into(),
            fix: "initialise A in the loop that uses it:\n  #pragma omp parallel for schedule(static)\n  for (i = 0; i < m; i++) ..."
                .into(),
            fix_edits: Vec::new(),
            fix_otherwise: None,
            library: None,
            fix_kind: FixKind::DivideFirstTouch,
            cause: Some(TouchCause::Loop),
            misplaced_at: None,
            remote_fraction: 0.5,
            interval: [0.48, 0.52],
            remote_share: 0.49,
            figures: std::collections::BTreeMap::new(),
            ranks: Vec::new(),
            in_ranks: Vec::new(),
        }],
        not_judged: vec![NotJudged { id: 8, name: "b".into(), bytes: 160_000, count: 1, reason: "fits in cache".into() }],
        coverage: None,
        kernel: None,
        notes: vec![],
        unrecorded: None,
        unasked: None,
        attached: false,
        unprofiled: None,
        processes_left: 0,
        ran_s: None,
        has_waited: false,
        write_failure: None,
        unfinished: false,
        lost: vec![],
        hosts: vec![],
        ranks: vec![],
        missing_ranks: vec![],
        across_ranks: vec![],
        traffic: Traffic::default(),
        variables: std::collections::BTreeMap::new(),
    }
}

/// A placement of an object that a plan makes.
pub fn place(policy: Policy) -> Action {
    let origin = Origin::Symbol { module: "dgemv".into(), name: "A".into() };
    Action::Place(Place { policy, gain: None, undivided: None, origin, reason: String::new() })
}

/// Recommends every finding, without figures: a plan puts each thread's part on its node.
pub fn recommended(analysis: &Analysis) -> Recommendations {
    let advice = |object| ObjectAdvice { object, name: "A".into(), action: place(Policy::Blocked(Blocks::default())) };
    let one = |(finding, one): (usize, &Finding)| Recommendation {
        finding,
        kind: one.kind,
        fix_kind: one.fix_kind,
        worth: Worth::Worthwhile,
        of_fix: None,
        is_fix_worth: true,
        is_interleaving_worth: true,
        of_plan: None,
        objects: one.objects().map(advice).collect(),
        spread_all: SpreadAll::Open,
    };
    let list = analysis.findings.iter().enumerate().map(one).collect();
    Recommendations { list, machine: analysis.machine.name.clone(), is_assumed: true, is_by_bandwidth_only: false, not_predictable: None }
}

/// The report without a forecast.
pub fn text(analysis: &Analysis, context: &Context, style: Style) -> String {
    firsttouch_report::text(analysis, None, &recommended(analysis), context, style)
}

pub fn well_placed() -> Analysis {
    Analysis { findings: vec![], remote_fraction: Some(0.012), remote_interval: Some([0.003, 0.021]), not_judged: vec![], ..serial() }
}

fn check(analysis: &Analysis, context: &Context, style: Style, expected: &str) {
    let actual = text(analysis, context, style);
    assert_eq!(actual, expected, "\n--- actual ---\n{actual}--- expected ---\n{expected}");
}

/// Check the whole report of the textbook case.
#[test]
fn serial_first_touch() {
    check(
        &serial(),
        &context(),
        PLAIN,
        "\
dgemv.ftp: ./dgemv 20000: 8 threads, 6.2 s; samples: touch 1,310, watch 1,904
MISPLACED: 49 % of accesses would be remote [47, 52]. Judged on virtual:2 (recorded on one node).

1. A   2.98 GiB   serial-first-touch                            50 % of its accesses remote [48, 52]
   allocated      dgemv.c:41  double *A = malloc(m * n * sizeof *A);  in run
   first touched  dgemv.c:46  A[i * n + j] = (double)(i + j);         all by thread 0
   used           dgemv.c:23  sum += A[i * n + j] * b[j];             8 threads, each its own block
   map            thread 0 0 1 1 2 2 3 3 4 4 5 5 6 6 7 7   who uses each part
                  node   0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0   where it is
   fix            initialise A in the loop that uses it:
                    #pragma omp parallel for schedule(static)
                    for (i = 0; i < m; i++) ...
   plan           each thread's part goes to the node of that thread

Not judged: b (156.2 KiB, fits in cache). Lost samples: 0.
Without touching the source, on a machine with several nodes:
  firsttouch plan dgemv.ftp -o dgemv.toml &&
  firsttouch run --plan dgemv.toml -- ./dgemv 20000
More: firsttouch report dgemv.ftp --verbose (also --json, --machine virtual:4)
",
    );
}

/// Check that a well-placed program gets one clear sentence.
#[test]
fn no_findings() {
    check(
        &well_placed(),
        &context(),
        PLAIN,
        "\
dgemv.ftp: ./dgemv 20000: 8 threads, 6.2 s; samples: touch 1,310, watch 1,904
No finding: 1.2 % of accesses would be remote [0.3, 2.1], and no judged object is misplaced. Judged
on virtual:2 (recorded on one node).

Partly remote, but no finding is certain: A (98 % of the accesses, 50 % remote [48, 52]).

All objects seen were judged. Lost samples: 0.
More: firsttouch report dgemv.ftp --verbose (also --json, --machine virtual:4)
",
    );
}

/// Check that well-placed objects are one line, those with the most accesses first, and that misplaced and unjudged ones are not in it.
#[test]
fn well_placed_objects_are_a_line() {
    let mut analysis = serial();
    for (id, share) in [(17, 0.01), (18, 0.03), (19, 0.02)] {
        let mut next = analysis.objects[0].clone();
        (next.id, next.name, next.total_bytes) = (id, format!("next{id}"), (30 << 20) + (1 << 19));
        (next.access_share, next.remote_fraction, next.judged) = (Some(share), Some(0.0), id != 19);
        next.remote_interval = Some([0.0, 0.04]);
        analysis.objects.push(next);
    }
    // Its interval reaches to a large share.
    let mut unsure = analysis.objects[1].clone();
    (unsure.id, unsure.name, unsure.access_share, unsure.remote_interval) = (20, "unsure".into(), Some(0.2), Some([0.0, 0.26]));
    analysis.objects.push(unsure);
    let shown = text(&analysis, &context(), PLAIN);
    assert!(shown.contains("\nWell placed: next18 (30.5 MiB, 0 % remote), next17 (30.5 MiB, 0 % remote).\n"), "{shown}");
    assert!(shown.contains("Too few samples for a finding: unsure (20 % of the accesses, 0 % remote [0, 26]; about"), "{shown}");
}

/// Check the layout on a narrow terminal, and that no line is wider.
#[test]
fn narrow() {
    check(
        &serial(),
        &context(),
        Style { width: 60, colour: false },
        "\
dgemv.ftp: ./dgemv 20000: 8 threads, 6.2 s; samples:
touch 1,310, watch 1,904
MISPLACED: 49 % of accesses would be remote [47, 52]. Judged
on virtual:2 (recorded on one node).

1. A   2.98 GiB   serial-first-touch
   50 % of its accesses remote [48, 52]
   allocated      dgemv.c:41  double *A = malloc(m * n * si…
                  in run
   first touched  dgemv.c:46  A[i * n + j] = (double)(i + j…
                  all by thread 0
   used           dgemv.c:23  sum += A[i * n + j] * b[j];
                  8 threads, each its own block
   map            thread 0 0 1 1 2 2 3 3 4 4 5 5 6 6 7 7
                  node   0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
   fix            initialise A in the loop that uses it:
                    #pragma omp parallel for
                      schedule(static)
                    for (i = 0; i < m; i++) ...
   plan           each thread's part goes to the node of
                  that thread

Not judged: b (156.2 KiB, fits in cache). Lost samples: 0.
Without touching the source, on a machine with several
nodes:
  firsttouch plan dgemv.ftp -o dgemv.toml &&
  firsttouch run --plan dgemv.toml -- ./dgemv 20000
More: firsttouch report dgemv.ftp --verbose
  (also --json, --machine virtual:4)
",
    );
}

/// Check that no line of any report is wider than the given width, at any width, with long and wide names everywhere.
#[test]
fn lines_fit() {
    let mut analysis = serial();
    let long = "行列".repeat(40);
    analysis.command.push("x".repeat(500));
    analysis.findings[0].object_name.clone_from(&long);
    analysis.objects[0].allocated_at = Some(CodeLocation {
        file: Some(format!("/дом/{long}/{long}.cpp")),
        line: Some(123_456),
        function: Some("std::vector<std::pair<int, double>>::resize".repeat(5)),
        text: Some("auto v = std::vector<double>(n); ".repeat(20)),
        ..CodeLocation::default()
    });
    analysis.objects[0].map =
        ObjectMap { users: (0..32).map(|piece| piece * 40).collect(), homes: (0..32).map(|piece| piece % 64).collect() };
    analysis.not_judged[0].name.clone_from(&long);
    analysis.notes.push(long.into());
    analysis.evidence[0].detail = "word ".repeat(100);
    (analysis.objects[0].count, analysis.objects[0].total_bytes) = (8, 8 * analysis.objects[0].bytes);
    for width in 0..200 {
        for (number, line) in text(&analysis, &context(), Style { width, colour: false }).lines().enumerate() {
            let columns = unicode_width::UnicodeWidthStr::width(line);
            // A word of a command is never broken: it would be another word.
            let is_one_word = line.trim_end_matches(" \\").trim_start().contains(&"x".repeat(500)) && !line.trim().contains("x ");
            assert!(is_one_word || columns <= width.max(40), "line {number} has {columns} columns at {width}: {line}");
        }
    }
}

/// Check several places: their order, that the shares are in one column, and that places that are not listed are counted.
#[test]
fn several_places() {
    let mut analysis = serial();
    let at = |line, text, share| CodeLocation { share, ..code_line(line, "product", text, share) };
    analysis.objects[0].used_at = vec![at(23, "+ in[i]", 0.42), at(24, "out[i] = 0.25 * (in[i - 1]", 0.21), at(25, "+ 1", 0.21)];
    let text = text(&analysis, &context(), PLAIN);
    let expected = "
   used           8 threads, each its own block
                  dgemv.c:23  + in[i]                                 42 %
                  dgemv.c:24  out[i] = 0.25 * (in[i - 1]              21 %
                  dgemv.c:25  + 1                                     21 %
                  others                                              16 %
";
    assert!(text.contains(expected), "{text}");
    // Shares by samples have intervals: here, 100 samples.
    for (place, interval) in analysis.objects[0].used_at.iter_mut().zip([[0.327, 0.519], [0.141, 0.301], [0.141, 0.301]]) {
        place.share_interval = Some(interval);
    }
    let text = self::text(&analysis, &context(), PLAIN);
    let expected = "
                  dgemv.c:23  + in[i]                                 42 % [33, 52]
                  dgemv.c:24  out[i] = 0.25 * (in[i - 1]              21 % [14, 30]
                  dgemv.c:25  + 1                                     21 % [14, 30]
                  others                                              16 % [10, 25]
";
    assert!(text.contains(expected), "{text}");
    // A thread's share is an estimate too.
    analysis.objects[0].used_by_thread = vec![0.97, 0.03].into();
    analysis.objects[0].used_by_thread_interval = vec![[0.94, 0.99], [0.01, 0.06]].into();
    let text = self::text(&analysis, &context(), PLAIN);
    assert!(text.contains("used           97 % [94, 99] by thread 0"), "{text}");
}

/// Check that simultaneous and successive allocations are distinguished.
#[test]
fn numbers_of_allocations() {
    let mut analysis = serial();
    (analysis.objects[0].count, analysis.objects[0].bytes) = (2000, 1_600_000);
    assert!(text(&analysis, &context(), PLAIN).contains("1. A   2,000 x 1.53 MiB   serial"));
    (analysis.objects[0].count, analysis.objects[0].total_bytes) = (10, 1_600_000);
    assert!(text(&analysis, &context(), PLAIN).contains("1. A   10 in turn, up to 1.53 MiB   serial"));
}

/// Check that colour is only added: without the escapes the text is the same.
#[test]
fn colour_changes_no_text() {
    for analysis in [serial(), well_placed()] {
        let coloured = text(&analysis, &context(), Style { width: 100, colour: true });
        let mut bare = String::new();
        let mut rest = coloured.as_str();
        while let Some((before, after)) = rest.split_once("\u{1b}[") {
            bare.push_str(before);
            rest = after.split_once('m').unwrap().1;
        }
        bare.push_str(rest);
        assert!(coloured.contains('\u{1b}'));
        assert_eq!(bare, text(&analysis, &context(), PLAIN));
    }
}

/// Check that the sentences that a table repeats, and the notes that change nothing, are shown on request only.
#[test]
fn details_are_shown_on_request() {
    let mut analysis = serial();
    analysis.notes = vec![firsttouch_analysis::Note::Initialising { samples: 56, all: 1000 }, "A doubt.".into()];
    let short = text(&analysis, &context(), PLAIN);
    assert!(!short.contains("   why  ") && !short.contains("being initialised") && short.contains("- A doubt."), "{short}");
    let long = text(&analysis, &Context { verbose: true, ..context() }, PLAIN);
    assert!(long.contains("   why            Thread 0 touched all of A first") && long.contains("56 of 1000 samples saw memory"), "{long}");
    // Of many, it is said in any case.
    analysis.notes[0] = firsttouch_analysis::Note::Initialising { samples: 156, all: 1000 };
    let much = text(&analysis, &context(), PLAIN).replace('\n', " ");
    assert!(much.contains("156 of 1000 samples saw memory being initialised: shares of accesses,"), "{much}");
}

/// Check that the report on a program that firsttouch attached to shows who uses which part and where the part should be.
#[test]
fn attached_programs_show_owners() {
    let mut analysis = Analysis { attached: true, ..well_placed() };
    let object = &mut analysis.objects[0];
    (object.judged, object.remote_fraction) = (false, None);
    object.reason = Some("its first touches were not seen".into());
    object.map.homes = vec![-2; 16];
    let shown = text(&analysis, &context(), Style { width: 80, colour: false });
    let expected = "
A   2.98 GiB   not judged                                   98 % of the accesses
   used           dgemv.c:23  sum += A[i * n + j] * b[j];
                  8 threads, each its own block
   map            thread 0 0 1 1 2 2 3 3 4 4 5 5 6 6 7 7   who uses each part
                  wanted 0 0 0 0 0 0 0 0 1 1 1 1 1 1 1 1   where it should be
";
    assert!(shown.contains(expected), "{shown}");
    assert!(!text(&well_placed(), &context(), PLAIN).contains("wanted"));
}

/// Check that attaching on a machine with several nodes shows where the parts are besides where they should be, and that threads and places of a
/// part of a mapping are said to be that.
#[test]
fn attached_programs_show_where_parts_are() {
    let mut analysis = Analysis { attached: true, ..well_placed() };
    let object = &mut analysis.objects[0];
    (object.judged, object.remote_fraction) = (true, Some(0.5));
    object.map.homes = vec![0; 16];
    let shown = text(&analysis, &context(), Style { width: 80, colour: false });
    let expected = "
   map            thread 0 0 1 1 2 2 3 3 4 4 5 5 6 6 7 7   who uses each part
                  node   0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0   where it is
                  wanted 0 0 0 0 0 0 0 0 1 1 1 1 1 1 1 1   where it should be
";
    assert!(shown.contains(expected), "{shown}");
    let mut part = serial();
    part.objects[0].first_touch.of_misplaced_part = true;
    assert!(text(&part, &context(), PLAIN).contains("its misplaced part, all by thread 0"), "{}", text(&part, &context(), PLAIN));
}

/// Check that threads that follow each other are counted and numbered by the places that they take.
#[test]
fn short_threads_are_numbered_by_place() {
    let mut analysis = serial();
    let thread =
        |index: usize| ThreadView { index, slot: if index == 0 { 0 } else { 1 + (index - 1) % 4 }, process: 1, ..ThreadView::default() };
    analysis.threads = (0..401).map(thread).collect();
    let object = &mut analysis.objects[0];
    object.used_by_thread = (0..401).map(|index| if index == 0 { 0.0 } else { 1.0 / 400.0 }).collect();
    object.first_touch.by_thread = (0..401).map(|index| if index == 0 { 1.0 } else { 0.0 }).collect();
    object.map.users = vec![1, 6, 203, 400];
    object.map.homes = vec![0; 4];
    let shown = text(&analysis, &context(), PLAIN);
    assert!(shown.contains("4 threads, each its own block") && shown.contains("thread 1 2 3 4 "), "{shown}");
    assert!(shown.contains("- 401 threads followed each other in 5 places"), "{shown}");
    // A process that only started this one, as a shell does, changes nothing but the numbers.
    analysis.threads[0].process = 2;
    let shown = text(&analysis, &context(), PLAIN);
    assert!(shown.contains("4 threads, each its own block") && shown.contains("thread 1 2 3 4 "), "{shown}");
}

/// Check that the report of README's DGEMV, with the line before it and without the fix, fits a screen of 80 x 24, and begins with the verdict.
#[test]
fn dgemv_fits_a_screen() {
    let mut analysis = serial();
    analysis.command = "firsttouch bench dgemv --init serial --iterations 30 --threads 8".split(' ').map(str::to_owned).collect();
    let check = firsttouch_analysis::CrossCheck {
        evidence: "watch".into(),
        remote_fraction: 0.47,
        interval: [0.32, 0.62],
        samples: 346,
        agrees: true,
    };
    analysis.cross_checks = vec![check];
    analysis.notes = vec![firsttouch_analysis::Note::Initialising { samples: 56, all: 1000 }];
    let coverage = serde_json::json!({"evidence": "sample", "judged": 0.5, "cached": 0.0, "not_judged": 0.0, "elsewhere": 0.5});
    analysis.coverage = Some(serde_json::from_value(coverage).unwrap());
    let context = Context { heading: false, prefix: "firsttouch: ", ..context() };
    let report = text(&analysis, &context, Style { width: 80, colour: false });
    let mut is_fix = false;
    let shown: Vec<&str> = report
        .lines()
        .filter(|line| {
            is_fix = line.starts_with("   fix ") || (is_fix && !line.starts_with("   plan "));
            !is_fix
        })
        .collect();
    // `profile` prints its own line before, which takes two rows.
    assert!(shown.len() + 2 <= 24 && report.contains("   fix "), "{} rows\n{}", shown.len(), shown.join("\n"));
    assert!(shown[0].starts_with("firsttouch: MISPLACED: 49 % of accesses would be remote [47, 52]."), "{}", shown[0]);
    let order = ["MISPLACED: ", "\n1. A ", "Not judged: ", "\n  firsttouch plan "].map(|text| report.find(text));
    assert!(order.iter().all(Option::is_some) && order.is_sorted(), "{order:?}\n{report}");
}

/// Check that names and descriptions keep within the width, and stay in their columns.
#[test]
fn descriptions_keep_within_the_width() {
    let text = described(&[("a", "one two three four five six seven"), ("longer", "eight")], 30);
    assert_eq!(text, "a       one two three four\n        five six seven\nlonger  eight\n");
}
