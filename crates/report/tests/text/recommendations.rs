//! What reports and `check` say about the fix in the source and about the plan, and in which order.

use super::{PLAIN, context, matrix_a, place, recommended, serial, text};
use firsttouch_analysis::{Analysis, Coverage, Finding, LibraryFix, ObjectView};
use firsttouch_model::finding::{FindingKind, FixKind};
use firsttouch_plan::{
    Action, Entry, Gain, LeftAlone, Origin, Outlook, Plan, Planned, Policy, Recommendations, SpreadAll, Unplaceable, Worth,
};
use firsttouch_predict::forecast::Expected;
use firsttouch_predict::program::Caps;
use firsttouch_report::{CheckJson, PlanJson, ReportJson, check_github, check_junit, check_sarif, plan_in_source_text, plan_text};
use std::path::Path;

fn gains(gain: f64) -> Option<Expected> {
    Some(Expected { gain, interval: Some([gain - 0.125, gain + 0.125]) })
}

/// A described machine, and one change of the recommendation.
fn with(change: impl Fn(&mut Recommendations)) -> (Analysis, Recommendations) {
    let analysis = serial();
    let mut all = recommended(&analysis);
    all.is_assumed = false;
    change(&mut all);
    (analysis, all)
}

fn shown((analysis, all): &(Analysis, Recommendations)) -> String {
    firsttouch_report::text(analysis, None, all, &context(), PLAIN)
}

/// The report with its line breaks removed.
fn words(one: &(Analysis, Recommendations)) -> String {
    shown(one).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Check that the report suggests the commands of a plan only where the plan places something, and says why it leaves objects alone.
#[test]
fn plans_are_promised_where_they_help() {
    assert!(text(&serial(), &context(), PLAIN).contains("  firsttouch plan dgemv.ftp"));
    for (why, said) in [
        (LeftAlone::Slower("interleave", 1.04, None), "a plan leaves it alone, because interleave would take 4 % longer on this machine"),
        (LeftAlone::Unplaceable(Unplaceable::PythonCode), "no plan can place it, because it is allocated by Python code, whose stacks"),
        (LeftAlone::Unplaceable(Unplaceable::Segment), "no plan can place it, because shmat attached it, which a run does not follow"),
        (LeftAlone::Unplaceable(Unplaceable::SmallBlocks), "no plan can place it, because its blocks are too small for a run to place"),
        (
            LeftAlone::Unplaceable(Unplaceable::NoLibrary("the program is statically linked, so no agent can be loaded into it".into())),
            "statically linked, so no agent can be loaded into it; a run could not load the library that places memory either",
        ),
    ] {
        let one = with(|all| {
            all.list[0].objects[0].action = Action::LeaveAlone(why.clone());
            all.list[0].spread_all = SpreadAll::InVain;
        });
        let words = words(&one);
        let expected = format!("plan only a change of the source removes this: {said}");
        assert!(words.contains(&expected) || words.contains(said), "{words}");
        assert!(!words.contains("firsttouch plan") && !words.contains("firsttouch run --plan"), "{words}");
        assert!(words.contains("fix initialise A in the loop that uses it"), "{words}");
    }
    let attached = Analysis { attached: true, ..serial() };
    assert!(!text(&attached, &context(), PLAIN).contains("firsttouch plan"));
}

/// Check what the report says about memory that no plan can place: that only the source helps, only where interleaving all memory is known to gain
/// nothing.
#[test]
fn interleaving_is_offered_where_it_helps() {
    const CANNOT: &str = "no plan can place it, because it is allocated by Python code, whose stacks a run does not follow";
    const COMMAND: &str = "firsttouch run --interleave all -- ./dgemv 20000";
    let gain = Some(Expected { gain: 2.111, interval: Some([1.9, 2.4]) });
    for (spread_all, fix_kind, said, is_offered) in [
        (SpreadAll::InVain, FixKind::DivideFirstTouch, format!("plan only a change of the source removes this: {CANNOT}"), false),
        (SpreadAll::Open, FixKind::DivideFirstTouch, format!("plan {CANNOT}"), false),
        (
            SpreadAll::Gains(gain),
            FixKind::DivideFirstTouch,
            format!(
                "plan {CANNOT}; without a change of the source, firsttouch run --interleave all -- CMD interleaves all memory of the program; that \
                 is predicted to be 2.11 times as fast [1.90, 2.40]"
            ),
            true,
        ),
        (
            SpreadAll::Gains(gain),
            FixKind::Interleave,
            format!("plan {CANNOT}; to interleave all memory is predicted to be 2.11 times"),
            true,
        ),
        (SpreadAll::Gains(None), FixKind::Interleave, format!("plan {CANNOT}"), true),
    ] {
        let one = with(|all| {
            let first = &mut all.list[0];
            first.objects[0].action = Action::LeaveAlone(LeftAlone::Unplaceable(Unplaceable::PythonCode));
            (first.spread_all, first.fix_kind) = (spread_all, fix_kind);
        });
        let words = words(&one);
        assert!(words.contains(&said), "{said}\n{words}");
        assert_eq!(
            words.contains(&format!("Without touching the source, on a machine with several nodes (its pages on all nodes in turn: no controller serves all of them, and 50 % of the accesses stay remote): {COMMAND}")),
            is_offered,
            "{words}"
        );
        assert_eq!(words.contains("only a change of the source"), spread_all == SpreadAll::InVain, "{words}");
    }
}

/// Check that the report says what a plan does instead of the fix, and why.
#[test]
fn differences_are_explained() {
    for (fix_kind, expected) in [
        (FixKind::CopyPerNode, "plan a copy a node is best, in the source; a plan cannot copy memory, so it interleaves the pages"),
        (
            FixKind::FixedParts,
            "plan fixed parts for each thread are best, in the source; a plan cannot change which thread works on a part, so it interleaves \
             the pages",
        ),
        (
            FixKind::DivideFirstTouch,
            "plan a plan interleaves the pages, because that is predicted to be 25 % faster here than each thread's part on its own node",
        ),
        (FixKind::Interleave, "plan its pages go round the nodes"),
    ] {
        let one = with(|all| {
            let first = &mut all.list[0];
            (first.fix_kind, first.of_fix, first.of_plan) = (fix_kind, gains(2.0), gains(2.5));
            first.objects[0].action = place(Policy::Interleave(Vec::new()));
        });
        let words = words(&one);
        assert!(words.contains(expected), "{words}");
        assert!(words.contains("2.5x faster by the plan [2.4, 2.6]"), "{words}");
        let json = serde_json::to_value(ReportJson::new(&one.0, None, &one.1)).unwrap();
        let recommendation = &json["findings"][0]["recommendation"];
        assert_eq!(recommendation["difference"].is_null(), fix_kind == FixKind::Interleave, "{recommendation:#}");
        assert_eq!((&recommendation["plan"]["objects"][0]["policy"], &recommendation["gain"]), (&"interleave".into(), &2.5.into()));
        assert_eq!((&json["findings"][0]["fix_kind"], &json["findings"][0]["predicted_gain"]), (&"divide-first-touch".into(), &2.0.into()));
    }
    let one = with(|all| {
        let first = &mut all.list[0];
        (first.of_fix, first.is_fix_worth, first.of_plan) = (gains(0.8), false, gains(1.5));
        first.objects[0].action = place(Policy::Interleave(Vec::new()));
    });
    let words = words(&one);
    let expected = "plan on this machine only the plan is worth it: the fix in the source is predicted to take 25 % longer";
    assert!(words.contains(expected) && !words.contains("fix initialise A"), "{words}");
}

/// Two findings on a described machine: the first one is not worth repairing, and the second one is.
fn not_worth_it(worth: Worth) -> (Analysis, Recommendations) {
    let mut analysis = serial();
    analysis.objects.push(ObjectView { id: 9, name: "B".into(), ..matrix_a() });
    analysis.findings.push(Finding { object: Some(9), object_name: "B".into(), remote_share: 0.1, ..analysis.findings[0].clone() });
    let mut all = recommended(&analysis);
    all.is_assumed = false;
    all.list.reverse();
    all.list[0].of_fix = gains(1.5);
    let last = &mut all.list[1];
    (last.worth, last.is_fix_worth, last.of_fix) = (worth, false, gains(1.0));
    last.objects[0].action = Action::LeaveAlone(LeftAlone::NoGain);
    (analysis, all)
}

/// Check that what is not worth repairing comes last and says so, in every format, without its fix.
#[test]
fn what_is_not_worth_it_comes_last() {
    for (worth, why) in [
        (Worth::NoGain, "no gain is predicted [0.88, 1.12]"),
        (Worth::Costs(1.12), "its repair is predicted to take 12 % longer"),
        (Worth::OnlyAlone(1.3), "beside the other repairs it is predicted to cost time (by itself it would be 1.30 times as fast)"),
    ] {
        let one = not_worth_it(worth);
        let why = format!("ot worth repairing on virtual:2: {why}");
        let report = shown(&one);
        let order = ["1. B ", "Not worth repairing on virtual:2:\n2. A "].map(|text| report.find(text));
        assert!(order.iter().all(Option::is_some) && order.is_sorted(), "{report}");
        let after = words(&one).split_once("2. A").unwrap().1.to_owned();
        assert!(after.contains(&format!("fix n{why}")) && !after.contains("initialise A") && !after.contains(" plan each"), "{report}");
        let verbose = firsttouch_report::text(&one.0, None, &one.1, &firsttouch_report::Context { verbose: true, ..context() }, PLAIN);
        assert!(verbose.contains("   elsewhere      initialise A"), "{verbose}");

        let check = CheckJson::new(&one.0, &one.1, &[], Path::new("/home/me"), None);
        let github = check_github(&check);
        let lines: Vec<&str> = github.lines().collect();
        assert!(lines[0].starts_with("::warning ") && lines[0].contains("firsttouch serial-first-touch%3A B"), "{github}");
        assert!(lines[1].starts_with("::notice ") && lines[1].contains(&why.replace('%', "%25")) && !lines[1].contains("initialise A"));
        let sarif = check_sarif(&check, "1.0.0");
        let results = sarif["runs"][0]["results"].as_array().unwrap();
        assert_eq!(results.iter().map(|one| one["level"].as_str().unwrap()).collect::<Vec<_>>(), ["warning", "note"]);
        assert!(results[1]["message"]["text"].as_str().unwrap().contains(&why) && !check_junit(&check).contains("</failure>"));
        let json = serde_json::to_value(&check).unwrap();
        assert_eq!(json["findings"][0]["object_name"], "B");
        assert_eq!(json["findings"][1]["recommendation"]["worth"], worth.as_str());
    }
    let mut all = not_worth_it(Worth::NoGain);
    all.0.findings.truncate(1);
    all.1.list.remove(0);
    assert!(
        words(&all).contains("MISPLACED, but no repair is predicted to pay: 49 % of accesses would be remote [47, 52]."),
        "{}",
        words(&all)
    );
}

/// Check that the changes of the source begin with what does not pay, where it does not, and keep the fix for other machines.
#[test]
fn changes_of_the_source_say_whether_they_pay() {
    let (analysis, all) = not_worth_it(Worth::NoGain);
    let text = plan_in_source_text(&analysis, &all);
    let lines: Vec<&str> = text.lines().collect();
    let at = |text: &str| lines.iter().position(|line| line.contains(text)).unwrap_or_else(|| panic!("{text}: {lines:#?}"));
    assert_eq!(lines[at("B (/home/me/src/dgemv.c:41)") + 1], "    fix: initialise A in the loop that uses it:");
    let worthless = at("A (/home/me/src/dgemv.c:41)");
    assert!(worthless > at("B (/home/me/src/dgemv.c:41)"), "{text}");
    assert!(lines[worthless + 1].starts_with("    not worth repairing on virtual:2: no gain is predicted"), "{text}");
    assert_eq!(lines[worthless + 2], "    fix elsewhere: initialise A in the loop that uses it:");
}

/// Check that the library's interleaving is offered only where interleaving is not predicted to be in vain, in the report and among the changes of the
/// source; its division among threads is offered in each case.
#[test]
fn the_library_interleaves_where_that_helps() {
    let library =
        |call: &str| LibraryFix { text: format!("insert after dgemv.c:41:\n  {call}"), edits: Vec::new(), needs: "link it".into() };
    for (call, interleaves) in [("ft_place(A, bytes, ft_interleaved())", true), ("ft_place(A, bytes, ft_blocked())", false)] {
        for (why, is_in_vain) in [
            (LeftAlone::Slower("interleave", 1.04, None), true),
            (LeftAlone::NoGain, true),
            (LeftAlone::Slower("blocked", 1.04, None), false),
            (LeftAlone::Unplaceable(Unplaceable::Segment), false),
        ] {
            let mut one = with(|all| all.list[0].objects[0].action = Action::LeaveAlone(why.clone()));
            one.0.findings[0].library = Some(library(call));
            let is_offered = !(interleaves && is_in_vain);
            let in_source = plan_in_source_text(&one.0, &one.1);
            assert_eq!(in_source.contains(call), is_offered, "{why:?}: {in_source}");
            assert_eq!(in_source.contains("no gain is predicted by its interleaving on this machine"), !is_offered, "{in_source}");
            assert_eq!(words(&one).contains(call), is_offered, "{why:?}: {}", words(&one));
        }
    }
}

/// Check that findings about the whole program promise no plan.
#[test]
fn the_program_has_no_plan() {
    let mut analysis = serial();
    let finding = &mut analysis.findings[0];
    (finding.kind, finding.object, finding.fix_kind) = (FindingKind::UnpinnedThreads, None, FixKind::NotMemory);
    let report = text(&analysis, &context(), PLAIN);
    assert!(!report.contains("   plan ") && !report.contains("firsttouch plan"), "{report}");
}

/// Check the figures: gains near 1 with two decimals, losses as losses.
#[test]
fn gains_are_said() {
    for (gain, said) in [
        (1.87, "1.9x faster if fixed [1.7, 2.0]"),
        (1.03, "1.03x faster if fixed [0.91, 1.16]"),
        (1.004, "no gain predicted if fixed [0.88, 1.13]"),
        (0.96, "1.04x slower if fixed [0.83, 1.08]"),
    ] {
        let one = with(|all| all.list[0].of_fix = gains(gain));
        assert!(words(&one).contains(said), "{gain}: {}", words(&one));
    }
}

/// Check that a program which moves little memory is told that bandwidth alone was predicted, and only then.
#[test]
fn bandwidth_alone_is_said() {
    const ALONE: &str = "by bandwidth alone (the program computes, or waits for latency, which is not predicted)";
    for is_alone in [false, true] {
        let mut one = not_worth_it(Worth::NoGain);
        one.1.is_by_bandwidth_only = is_alone;
        let words = words(&one);
        assert_eq!(words.contains(&format!("no gain is predicted [0.88, 1.12], {ALONE}")), is_alone, "{words}");
        assert_eq!(words.contains(ALONE), is_alone, "{words}");
    }
}

/// Check that the commands of a plan without a predicted gain say so where the machine's speeds are assumed, and no others do: with known speeds each
/// finding has its gain.
#[test]
fn plans_in_vain_say_so() {
    let says = |gain: Option<Expected>, is_assumed: bool| {
        let one = with(|all| {
            all.is_assumed = is_assumed;
            all.list[0].of_plan = gain;
        });
        let words = words(&one);
        assert!(words.contains("firsttouch run --plan"), "{words}");
        words.contains("(no gain is predicted at the relative speeds of the catalogue's median machine; on yours, it may differ)")
    };
    assert!(says(gains(1.0), true));
    assert!(!says(gains(1.5), true) && !says(None, true) && !says(gains(1.0), false));
}

/// Check that the user of a JVM is not sent to a source alone: the options of the JVM place its memory, and no plan does.
#[test]
fn memory_of_the_jvm_has_options() {
    let one = with(|all| {
        all.list[0].objects[0].action = Action::LeaveAlone(LeftAlone::Unplaceable(Unplaceable::Jvm));
        all.list[0].spread_all = SpreadAll::InVain;
    });
    let words = words(&one);
    let expected = "plan options of the JVM and changes of the source remove this: no plan can place the JVM's own memory";
    assert!(words.contains(expected) && !words.contains("only a change of the source"), "{words}");
    let left = one.1.left_alone();
    assert_eq!(left, ["A: it is the JVM's own memory, which holds objects of all kinds"]);
}

/// Check that a plan for a program that moves little memory says what its prediction does not cover.
#[test]
fn a_plan_says_what_is_not_judged() {
    let analysis = serial();
    let entry = Entry {
        what: "A".into(),
        at: "dgemv.c:41".into(),
        bytes: 1 << 30,
        policy: Policy::Interleave(Vec::new()),
        small_pages: false,
        reason: String::new(),
        gain: None,
        origin: Origin::Symbol { module: "dgemv".into(), name: "A".into() },
    };
    let gain = Some(Gain { value: 1.0, low: 1.0, high: 1.25 });
    let plan = Plan { judged_on: "virtual:2".into(), entries: vec![entry], gain, ..Plan::default() };
    for (caps, is_judged) in [(Caps::Machine, true), (Caps::Recorded, false)] {
        let outlook = Some(Outlook { is_assumed: false, caps, remote_before: 0.5, remote_after: 0.5, time_ratio: 1.0 });
        let planned = Planned { plan: plan.clone(), outlook, recommendations: Recommendations::default() };
        let text = plan_text(&planned, &analysis, None);
        assert!(text.contains("predicted: 1.00 times as fast [1.00, 1.25] on virtual:2"), "{text}");
        assert!(text.contains("remote accesses 50 % -> 50 %; no gain is certain"), "{text}");
        let faster = Plan { gain: Some(Gain { value: 1.22, low: 0.9, high: 1.8 }), ..plan.clone() };
        let text = plan_text(&Planned { plan: faster.clone(), ..planned.clone() }, &analysis, None);
        let reason = "50 % -> 50 %; the gain is that several nodes' memory serves them at the same time; no gain is certain";
        assert!(text.contains(reason), "{text}");
        let fewer = outlook.map(|outlook| Outlook { remote_after: 0.1, ..outlook });
        let text = plan_text(&Planned { plan: faster, outlook: fewer, ..planned.clone() }, &analysis, None);
        assert!(!text.contains("the gain is that"), "{text}");
        assert!(!text.contains("left out"), "{text}");
        let coverage = Coverage { judged: 0.33, cached: 0.0, not_judged: 0.06, elsewhere: Some(0.61), evidence: "sample".into() };
        let text_of_some = plan_text(&planned, &Analysis { coverage: Some(coverage), ..analysis.clone() }, None);
        for part in [
            "Objects that were not judged receive 6.0 % of the accesses seen",
            "Memory of no recorded object receives 61 % of the accesses",
        ] {
            assert!(text_of_some.contains(part), "{text_of_some}");
        }
        let part = Analysis { unfinished: true, ..analysis.clone() };
        assert!(plan_text(&planned, &part, None).starts_with("NOT JUDGED: the profile is not whole: "), "{text}");
        assert!(serde_json::to_value(PlanJson::new(&planned).of(&part)).unwrap()["not_whole"].is_string());
        assert!(serde_json::to_value(PlanJson::new(&planned).of(&analysis)).unwrap()["not_whole"].is_null());
        assert_eq!(
            !text.contains("\nNOT JUDGED: what latency costs: the program moved far less than memory delivers"),
            is_judged,
            "{text}"
        );
    }
}
