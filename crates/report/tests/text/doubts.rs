//! What stands against a verdict, and what was not judged.

use super::{PLAIN, check, context, evidence, matrix_a, recommended, serial, text, well_placed};
use firsttouch_analysis::{Analysis, CodeLocation, EvidenceView, LostView, NotJudged, NotJudgedReason, ObjectView};
use firsttouch_model::evidence::EvidenceSource;
use firsttouch_model::rows::ObjectKind;
use firsttouch_report::{Context, ReportJson, Style};

/// Check that a figure without any judged object is not called good.
#[test]
fn nothing_judged() {
    let mut analysis = well_placed();
    analysis.objects[0].judged = false;
    analysis.objects[0].reason = Some(NotJudgedReason::NoAccess { samples: 1 });
    let text = text(&analysis, &context(), PLAIN).replace('\n', " ");
    assert!(text.contains("NOT JUDGED: the judged objects receive 0 % of the accesses seen; of the others, A receives the most"), "{text}");
}

/// Check that the report gives no all-clear if much memory belongs to no recorded object, also in colour.
#[test]
fn no_all_clear() {
    let analysis = Analysis { unrecorded: Some(0.89), notes: vec!["89 % of the touched memory ...".into()], ..well_placed() };
    let text = text(&analysis, &context(), Style { width: 200, colour: true });
    let reported = "NOT JUDGED: 89 % of the touched memory belongs to no recorded object. As far as seen, 1.2 % of accesses would be remote [0.3, 2.1].";
    assert!(text.contains(reported) && !text.contains("\x1b[32m"), "{text}");
}

/// Check that programs without threads get one clear sentence, and that attached programs get no advice that cannot help.
#[test]
fn nothing_to_compare() {
    let mut analysis = Analysis { remote_fraction: None, remote_interval: None, ..well_placed() };
    analysis.evidence.push(EvidenceView { available: false, detail: "attached to a running program".into(), ..evidence("agent", 0) });
    analysis.command.clear();
    let attached = text(&analysis, &context(), PLAIN).replace('\n', " ");
    assert!(!attached.contains("--min-size") && attached.contains("start the program under 'firsttouch profile'"), "{attached}");
    analysis.threads.truncate(1);
    let single = text(&analysis, &context(), PLAIN);
    assert!(single.contains("\nNo finding: the program has one thread, and its memory is where it runs. Judged"), "{single}");
    assert!(!single.contains("Longer") && !single.contains("nothing to find"), "{single}");
    let mut processes = well_placed();
    processes.threads.iter_mut().for_each(|thread| thread.process = thread.index as i64);
    assert!(text(&processes, &context(), PLAIN).contains("No finding: each process has one thread"));
    processes.threads.iter_mut().for_each(|thread| thread.team = Some(0));
    assert!(!text(&processes, &context(), PLAIN).contains("each process has one thread"), "they share memory");
}

/// Check that an idle program to which firsttouch attached gets no all-clear, whether it has one thread or several, and that the reason is that it was
/// idle; a program that was started, and one that worked, are judged.
#[test]
fn idle_programs_are_not_judged() {
    let shown = |threads: usize, attached: bool, ran_s: f64| {
        let mut analysis = Analysis { attached, ran_s: Some(ran_s), wall_s: 1.0, ..well_placed() };
        analysis.threads.truncate(threads);
        text(&analysis, &context(), PLAIN).replace('\n', " ")
    };
    for threads in [1, 8] {
        let idle = shown(threads, true, 0.027);
        let expected = "NOT JUDGED: the program was idle: its threads ran for 27 ms of the 1.0 s; record it while it does its usual work, or for longer.";
        assert!(idle.contains(expected), "{idle}");
        assert!(shown(threads, true, 0.4).contains("No finding") && shown(threads, false, 0.027).contains("No finding"));
    }
    // The parent of a server waits, and its children work.
    let server = Analysis { attached: true, ran_s: Some(0.0), wall_s: 3.0, unprofiled: Some(1.0), ..well_placed() };
    let said = text(&server, &context(), PLAIN);
    assert!(!said.contains("idle") && said.replace('\n', " ").contains("used 100 % of the CPU time; to profile them: --follow"), "{said}");
}

/// Check that missing and partial evidence, notes and losses are reported with the remedy.
#[test]
fn doubts_are_told() {
    let mut analysis = well_placed();
    analysis.remote_fraction = None;
    analysis.remote_interval = None;
    analysis.exit_code = Some(139);
    analysis.evidence = vec![
        EvidenceView {
            source: "watch".into(),
            available: false,
            samples: 0,
            lost: 0,
            detail: "perf_event_open is not permitted (perf_event_paranoid is 3). As root: sysctl kernel.perf_event_paranoid=2".into(),
        },
        evidence("touch", 12),
    ];
    analysis.notes = vec!["The program ended after 0.02 s: figures rest on few samples.".into()];
    analysis.lost = vec![LostView { source: "touch".into(), reason: "ring full".into(), count: 1234 }];
    check(
        &analysis,
        &context(),
        PLAIN,
        "\
dgemv.ftp: ./dgemv 20000: 8 threads, 6.2 s, exit status 139; samples: touch 12
NOT JUDGED: no accesses were seen: perf_event_open is not permitted (perf_event_paranoid is 3). As
root: sysctl kernel.perf_event_paranoid=2. Judged on virtual:2 (recorded on one node).

Partly remote, but no finding is certain: A (98 % of the accesses, 50 % remote [48, 52]).

- Evidence 'watch' not available: perf_event_open is not permitted (perf_event_paranoid is 3). As
  root: sysctl kernel.perf_event_paranoid=2
- The program ended after 0.02 s: figures rest on few samples.

All objects seen were judged. Lost samples: 1,234 (touch 1,234: ring full).
More: firsttouch report dgemv.ftp --verbose (also --json, --machine virtual:4)
",
    );
}

/// Check that a small loss is a number, and that its reason is among the details.
#[test]
fn small_losses_are_short() {
    let mut analysis = well_placed();
    analysis.evidence = vec![evidence("sample", 1500), evidence("touch", 12)];
    analysis.lost = vec![LostView { source: "sample".into(), reason: "ring full".into(), count: 3 }];
    let shown = |analysis: &Analysis, verbose: bool| text(analysis, &Context { verbose, ..context() }, PLAIN);
    assert!(shown(&analysis, false).contains("Lost samples: 3 of 1,503.\n"));
    assert!(shown(&analysis, true).contains("Lost samples: 3 (sample 3: ring full)."));
    // One of 59 is more than 1 %, and less than half the standard error of 59.
    analysis.evidence.push(evidence("watch", 59));
    analysis.lost.push(LostView { source: "watch".into(), reason: "not guarded".into(), count: 1 });
    assert!(shown(&analysis, false).contains("Lost samples: 4 of 1,563.\n"));
    analysis.lost[0].count = 20;
    assert!(shown(&analysis, false).contains("Lost samples: 21 (sample 20: ring full; 1 of other sources)."));
    assert!(shown(&analysis, true).contains("Lost samples: 21 (sample 20: ring full; watch 1: not guarded)."));
    analysis.lost[1] = LostView { source: "other".into(), reason: "gone".into(), count: 1 };
    assert!(shown(&analysis, false).contains("; other 1: gone)"));
    // A reason why the source is not available is said once.
    let evidence = &mut analysis.evidence[0];
    (evidence.available, evidence.detail) = (false, "ring full; see the guide".into());
    analysis.lost[0].source = evidence.source.clone();
    let text = shown(&analysis, false);
    assert_eq!((text.matches("ring full").count(), text.contains("sample 20: not available, as said above;")), (1, true), "{text}");
}

/// Check the advice for programs without line information and without symbols.
#[test]
fn what_would_help() {
    let mut analysis = serial();
    let object = &mut analysis.objects[0];
    for place in object.first_touch.at.iter_mut().chain(&mut object.used_at).chain(&mut object.allocated_at) {
        (place.file, place.line, place.text) = (None, None, None);
    }
    let no_lines = text(&analysis, &context(), PLAIN);
    assert!(no_lines.contains("first touched  initialise()"), "{no_lines}");
    assert!(no_lines.contains("- dgemv has no line numbers. Compiling it with -g"), "{no_lines}");
    analysis.objects[0].used_at[0].function = None;
    let stripped = text(&analysis, &context(), PLAIN);
    // The recorded address is the one after the access, for traps and for calls.
    assert!(stripped.contains("used           before dgemv+0x1234  8 threads, each its own block\n"), "{stripped}");
    assert!(stripped.contains("- Some code of dgemv has no names: it was stripped."), "{stripped}");
}

/// Check that missing debug information of a system library, or of code in no finding, causes no note.
#[test]
fn no_help_for_libraries() {
    let mut analysis = serial();
    let nameless = |module: &str| CodeLocation { module: Some(module.into()), offset: Some(1), share: 0.2, ..CodeLocation::default() };
    analysis.objects[0].used_at.push(nameless("/usr/lib/x86_64-linux-gnu/libc.so.6"));
    analysis.objects.push(ObjectView { id: 9, used_at: vec![nameless("/home/me/libown.so")], ..matrix_a() });
    let text = text(&analysis, &context(), PLAIN);
    assert!(!text.contains("has no names") && !text.contains("line numbers"), "{text}");
}

/// Check that objects omitted for the same reason are listed together, and that the program's own objects are named.
#[test]
fn reasons_are_grouped() {
    let mut analysis = serial();
    let one = |id, name: &str, bytes, reason: NotJudgedReason| NotJudged { id, name: name.into(), bytes, count: 1, reason };
    let cache = || NotJudgedReason::Cached { cache_bytes: 1 << 20 };
    analysis.not_judged = vec![
        one(7, "b", 160_000, cache()),
        one(20, "heap object of libc.so.6+0x1", 4096, cache()),
        one(7, "c", 80_000, cache()),
        one(7, "d", 4_000_000, NotJudgedReason::NoAccess { samples: 1 }),
        one(7, "e", 4_000_000, NotJudgedReason::NoAccess { samples: 7 }),
        one(7, "f", 2_000_000, NotJudgedReason::TooFewSamples { seen: 3, source: EvidenceSource::Watch, needed: 16 }),
    ];
    let library = CodeLocation { module: Some("/usr/lib/x86_64-linux-gnu/libc.so.6".into()), offset: Some(1), ..CodeLocation::default() };
    analysis.objects.push(ObjectView { id: 20, allocated_at: Some(library), ..matrix_a() });
    let text = text(&analysis, &context(), Style { width: 200, colour: false });
    let expected = "Not judged: 2 objects, no access was seen: d (3.81 MiB), e (3.81 MiB). f (1.91 MiB, too few samples; \
                    profile a longer run). 2 objects fit in a core's cache (1 MiB): b (156.2 KiB), c (78.1 KiB). 1 object of libraries and \
                    interpreters (4 KiB). Lost";
    let text = text.replace('\n', " ");
    assert!(text.contains(expected), "{text}");
}

/// Check that few windows or a wide interval give no verdict.
#[test]
fn too_little_for_a_verdict() {
    let mut analysis = well_placed();
    (analysis.remote_fraction, analysis.remote_interval, analysis.remote_samples) = (Some(1.0), Some([0.05, 1.0]), 3);
    let wide = text(&analysis, &context(), PLAIN);
    let expected = "NOT JUDGED: too few accesses were seen (3 samples); profile a longer run. As far as seen, 100 %";
    assert!(wide.contains(expected) && !wide.contains("No finding"), "{wide}");
    (analysis.remote_interval, analysis.remote_samples) = (Some([0.0, 0.1]), 1);
    assert!(text(&analysis, &context(), PLAIN).contains("(1 sample); profile"));
}

/// Check that work of processes that were not profiled, and a run in which nothing was seen, are no all-clear for a program of one thread.
#[test]
fn no_all_clear_for_what_was_not_seen() {
    let mut analysis = well_placed();
    analysis.threads.truncate(1);
    assert!(text(&analysis, &context(), PLAIN).contains("No finding: the program has one thread"));
    analysis.unprofiled = Some(0.97);
    let children = text(&analysis, &context(), PLAIN).replace('\n', " ");
    let expected =
        "NOT JUDGED: processes that the program started and that were not profiled used 97 % of the CPU time; to profile them: --follow.";
    assert!(children.contains(expected) && analysis.verdict_view().outcome == "not-judged", "{children}");
    analysis.unprofiled = None;
    analysis.processes_left = 1;
    let left = text(&analysis, &context(), PLAIN).replace('\n', " ");
    let expected = "NOT JUDGED: 1 process of the program still runs and is no longer recorded; to record until all have ended: --wait.";
    assert!(left.contains(expected), "{left}");
    analysis.has_waited = true;
    let waited = text(&analysis, &context(), PLAIN).replace('\n', " ");
    let expected = "the recording ended before they did, in spite of --wait: a longer --duration, or none.";
    assert!(waited.contains("no longer recorded") && waited.contains(expected) && !waited.contains("ended: --wait"), "{waited}");
    analysis.has_waited = false;
    analysis.processes_left = 0;
    for evidence in &mut analysis.evidence {
        evidence.samples = 0;
    }
    let nothing = text(&analysis, &context(), PLAIN).replace('\n', " ");
    assert!(nothing.contains("NOT JUDGED: no accesses were seen in 6.2 s; profile the program at its usual work."), "{nothing}");
}

/// Check that a recording without an end is no all-clear, and that findings do not hide it, nor processes that still run.
#[test]
fn ends_that_were_not_seen() {
    let mut analysis = well_placed();
    analysis.unfinished = true;
    let shown = |analysis: &Analysis| text(analysis, &context(), PLAIN).replace('\n', " ");
    let expected = "NOT JUDGED: the profile is not whole: its recording still goes on, or firsttouch was killed; it holds the first 6.2 s; wait \
                    until it has ended, or profile again.";
    assert!(shown(&analysis).contains(expected), "{}", shown(&analysis));
    let mut misplaced = serial();
    let json = |analysis: &Analysis| serde_json::to_value(ReportJson::new(analysis, None, &recommended(analysis))).expect("JSON");
    let read = |value: serde_json::Value| serde_json::from_value::<Analysis>(value).expect("the contract");
    assert!(json(&analysis)["unfinished"] == true && read(json(&analysis)).unfinished);
    assert!(json(&misplaced).get("unfinished").is_none() && !read(json(&misplaced)).unfinished);
    assert!(!shown(&misplaced).contains("not whole") && !shown(&misplaced).contains("still run"));
    misplaced.unfinished = true;
    misplaced.processes_left = 2;
    misplaced.threads[7].process = 2;
    let text = shown(&misplaced);
    assert!(text.contains("MISPLACED: 49 %"), "{text}");
    assert!(text.contains("- The profile is not whole: its recording still goes on"), "{text}");
    assert!(text.contains("- 2 processes of the program still run and are no longer recorded"), "{text}");
}

/// Check that pools of an interpreter's small blocks are not listed as the program's own, though a shell that executed it allocated some.
#[test]
fn small_blocks_of_interpreters_are_one_line() {
    let mut analysis = well_placed();
    let object = &mut analysis.objects[0];
    (object.judged, object.kind, object.name) = (false, ObjectKind::Pool, "small blocks of 17 allocating lines".into());
    object.access_share = Some(0.01);
    object.reason = Some("fits in a core's cache".into());
    object.allocated_at = None;
    let place = |module: &str, share| CodeLocation { module: Some(module.into()), offset: Some(1), share, ..CodeLocation::default() };
    object.used_at = vec![place("/home/me/.pyenv/lib/libpython3.11.so.1.0", 1.0)];
    object.first_touch.at = vec![place("/usr/lib/x86_64-linux-gnu/libc.so.6", 0.95), place("/opt/site/python", 0.05)];
    let not_judged = |analysis: &mut Analysis| {
        let object = &analysis.objects[0];
        let reason = object.reason.clone().expect("a reason");
        analysis.not_judged = vec![NotJudged { id: object.id, name: object.name.clone(), bytes: 1 << 20, count: 17, reason }];
        let shown = text(analysis, &context(), PLAIN).replace('\n', " ");
        shown.split_once("Not judged: ").expect("a list").1.to_owned()
    };
    let shown = not_judged(&mut analysis);
    assert!(shown.contains("1 object of libraries and interpreters") && !shown.contains("allocating lines"), "{shown}");
    analysis.objects[0].first_touch.at = vec![place("/opt/site/solver", 1.0)];
    let shown = not_judged(&mut analysis);
    assert!(shown.contains("small blocks of 17 allocating lines"), "the program's own: {shown}");
}

/// Check that long messages are broken at the terminal's width, and that short lines stay as they are, empty ones too.
#[test]
fn long_messages_are_wrapped() {
    let text = "error: a  b\n\n  a table   of columns\ncannot open /a/b: the file is a pipe: name a file";
    let wrapped = firsttouch_report::wrapped(text, 30);
    assert_eq!(wrapped, "error: a  b\n\n  a table   of columns\ncannot open /a/b: the file is\na pipe: name a file");
}
