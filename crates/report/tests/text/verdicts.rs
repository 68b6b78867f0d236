//! The report and `check` give one verdict.

use super::{PLAIN, context, recommended, serial, text, well_placed};
use firsttouch_analysis::check_limits::{LimitStatus, Limits, Outcome, check};
use firsttouch_analysis::{Analysis, Assessed, CodeLocation, Note, Verdict};
use firsttouch_report::{CheckJson, check_text};
use std::path::Path;

/// Check that no limit is exceeded where the report says NOT JUDGED, that the interval and the samples are named as the cause, and that the verdict
/// on a misplaced program does not depend on the width of that interval.
#[test]
fn report_and_check_agree() {
    let status = |analysis: &Analysis| {
        let limits = Limits { max_remote: Some(0.2), ..Limits::default() };
        let checked = check(Assessed { analysis, prediction: None }, &limits, true);
        (checked[0].status, Outcome::of(&checked))
    };
    let wide =
        |analysis: Analysis| Analysis { remote_fraction: Some(0.45), remote_interval: Some([0.27, 0.65]), remote_samples: 38, ..analysis };
    let uncertain = wide(well_placed());
    assert_eq!(status(&uncertain), (LimitStatus::Unknown, Outcome::NotJudged));
    let shown = text(&uncertain, &context(), PLAIN).replace('\n', " ");
    let expected = "NOT JUDGED: the 95 % interval of the remote share, [27, 65], is too wide: 38 samples are too few; profile a longer run (about 4 s more would decide).";
    assert!(shown.contains(expected), "{shown}");
    // From nothing to what is worth a repair: no all-clear, whatever the value is. Narrow intervals on either side get one.
    let between = |interval| Analysis { remote_fraction: Some(0.13), remote_interval: Some(interval), ..wide(well_placed()) };
    assert!(
        text(&between([0.04, 0.33]), &context(), PLAIN)
            .replace('\n', " ")
            .contains("NOT JUDGED: the 95 % interval of the remote share, [4, 33]")
    );
    assert!(matches!(between([0.0, 0.18]).verdict(), Verdict::WellPlaced(_)));
    assert!(matches!(between([0.09, 0.24]).verdict(), Verdict::WellPlaced(_)));
    let misplaced = wide(serial());
    assert_eq!(misplaced.verdict(), Verdict::Findings);
    assert_eq!(status(&misplaced), (LimitStatus::Exceeded, Outcome::Failed));
    let shown = text(&misplaced, &context(), PLAIN).replace('\n', " ");
    let expected = "MISPLACED: 45 % of accesses would be remote [27, 65]";
    assert!(shown.contains(expected) && shown.contains("; how much is not known: 38 samples are too few; profile a longer run"), "{shown}");
    // What stands against an all-clear only does not stand against a limit.
    let mut low = Analysis { remote_fraction: Some(0.12), remote_interval: Some([0.038, 0.21]), ..misplaced.clone() };
    low.findings[0].remote_share = 0.12;
    assert_eq!(status(&low), (LimitStatus::Within, Outcome::Passed));
    assert!(!text(&low, &context(), PLAIN).contains("not known"));
    let unsure = Analysis { remote_interval: Some([0.11, 0.56]), ..misplaced };
    assert_eq!(status(&unsure), (LimitStatus::Unknown, Outcome::NotJudged));
}

/// Check that `check` says so where it passes although a limit may be exceeded, and not where the value is within it.
#[test]
fn unsure_limits_are_said() {
    let limits = Limits { max_remote: Some(0.2), ..Limits::default() };
    let shown = |fraction: f64, interval: [f64; 2]| {
        let mut analysis = Analysis { remote_fraction: Some(fraction), remote_interval: Some(interval), ..serial() };
        analysis.findings[0].remote_share = fraction;
        let checked = check(Assessed { analysis: &analysis, prediction: None }, &limits, true);
        let recommendations = recommended(&analysis);
        let json = CheckJson::new(&analysis, &recommendations, &checked, Path::new("/home/me"), None);
        (checked[0].status, check_text(&json, None, PLAIN))
    };
    let (status, words) = shown(0.25, [0.15, 0.35]);
    assert_eq!(status, LimitStatus::Unsure, "{words}");
    assert!(
        words.starts_with("check passed on ") && words.contains("No limit is exceeded for certain, but one may be (unsure)."),
        "{words}"
    );
    let (status, words) = shown(0.1, [0.05, 0.15]);
    assert!(status == LimitStatus::Within && !words.contains("for certain"), "{words}");
}

/// Check that a limit exceeded by interleaved memory without a finding comes with the limit that would allow it, and one with a finding, or by other memory,
/// does not; and that `check` says which policies and plans do nothing here.
#[test]
fn exceeded_limits_without_a_repair() {
    let limits = Limits { max_remote: Some(0.2), ..Limits::default() };
    let shown = |analysis: Analysis| {
        let analysis = Analysis { remote_fraction: Some(0.52), remote_interval: Some([0.495, 0.548]), ..analysis };
        let checked = check(Assessed { analysis: &analysis, prediction: None }, &limits, true);
        let recommendations = recommended(&analysis);
        let json = CheckJson::new(&analysis, &recommendations, &checked, Path::new("/home/me"), None);
        let text = check_text(&json, None, PLAIN);
        assert!(text.lines().all(|line| line.starts_with("  ") || line.starts_with("check ") || line.is_empty()), "{text}");
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let mut interleaved = well_placed();
    assert!(!shown(interleaved.clone()).contains("to allow this share"), "no policy was seen");
    interleaved.objects[0].policy = Some("interleave:0-1".to_owned());
    let without = shown(interleaved);
    let expected = format!("The pages of {} are interleaved over the nodes", well_placed().objects[0].name);
    assert!(without.contains("EXCEEDED") && without.contains(&expected) && without.contains("--max-remote 55"), "{without}");
    let mut misplaced = serial();
    misplaced.findings[0].remote_share = 0.52;
    misplaced.objects[0].policy = Some("interleave:0-1".to_owned());
    misplaced.notes.extend([Note::PlanWithoutNodes, Note::UnknownPolicies { objects: 1, policy: "bind:0".to_owned() }]);
    let with = shown(misplaced.clone());
    assert!(with.contains("src/dgemv.c:46"), "{with}");
    // The line that misplaces is shown, not the one with most first touches.
    misplaced.findings[0].misplaced_at =
        misplaced.objects[0].first_touch.at.first().map(|place| CodeLocation { line: Some(47), ..place.clone() });
    assert!(shown(misplaced).contains("src/dgemv.c:47"));
    assert!(with.contains("EXCEEDED") && !with.contains("to allow this share") && with.contains("is judged without the plan"), "{with}");
    assert!(with.contains("sets the memory policy bind:0"), "{with}");
}

/// Check that a program is not within a limit if the share of all accesses leaves out a misplaced object: attached to, its first touches are not
/// known, but all threads use all of it.
#[test]
fn what_the_share_leaves_out_passes_no_limit() {
    for (fraction, interval) in [(None, None), (Some(0.0), Some([0.0, 0.12]))] {
        let mut left_out = Analysis { remote_fraction: fraction, remote_interval: interval, ..serial() };
        left_out.findings[0].remote_share = 0.47;
        left_out.objects[0].is_same_anywhere = true;
        let limits = Limits { max_remote: Some(0.2), ..Limits::default() };
        let checked = check(Assessed { analysis: &left_out, prediction: None }, &limits, true);
        assert_eq!((checked[0].status, Outcome::of(&checked)), (LimitStatus::Unknown, Outcome::NotJudged), "{fraction:?}");
        let shown = text(&left_out, &context(), PLAIN).replace('\n', " ");
        assert!(shown.contains("MISPLACED") && shown.contains("how much is not known: that share leaves out"), "{shown}");
        left_out.findings[0].remote_share = 0.08;
        assert!(!text(&left_out, &context(), PLAIN).contains("leaves out"));
    }
}

/// Check that an object with known first touches is not said to be left out if it has more remote accesses than all are said to be: the sources
/// disagree, and no limit is passed either.
#[test]
fn more_in_one_object_than_in_all_passes_no_limit() {
    let mut more = Analysis { remote_fraction: Some(0.0), remote_interval: Some([0.0, 0.12]), ..serial() };
    more.findings[0].remote_share = 0.47;
    let limits = Limits { max_remote: Some(0.2), ..Limits::default() };
    let checked = check(Assessed { analysis: &more, prediction: None }, &limits, true);
    assert_eq!((checked[0].status, Outcome::of(&checked)), (LimitStatus::Unknown, Outcome::NotJudged));
    let shown = text(&more, &context(), PLAIN).replace('\n', " ");
    assert!(shown.contains("the sources of evidence disagree about that share: the remote accesses of A alone are 47 % of all"), "{shown}");
    assert!(!shown.contains("leaves out") && !shown.contains("first touches are not known"), "{shown}");
}

/// Check that a program which a signal ended before anything was seen is not asked for a longer run, and that the lack of memory is named where the kernel
/// may have killed it.
#[test]
fn killed_programs_need_no_longer_run() {
    for (exit_code, may_lack_memory) in [(137, true), (139, false)] {
        let mut analysis = Analysis { exit_code: Some(exit_code), remote_fraction: None, remote_interval: None, ..well_placed() };
        analysis.coverage = None;
        let shown = text(&analysis, &context(), PLAIN).replace('\n', " ");
        assert!(shown.contains("NOT JUDGED: the program was ended by signal "), "{shown}");
        assert!(shown.contains("before accesses to its objects were seen") && !shown.contains("profile a longer run"), "{shown}");
        assert_eq!(shown.contains("memory.events of its cgroup"), may_lack_memory, "{shown}");
    }
}
