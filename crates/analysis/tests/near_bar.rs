//! Programs of which a little more is remote than of a well-placed one: no run calls them misplaced and the next one well placed.

use crate::simulated::*;
use firsttouch_analysis::check_limits::{LimitStatus, Limits, Outcome, check};
use firsttouch_analysis::{Analysis, Assessed, Finding, PartitionKind, Verdict, analyse};
use firsttouch_model::TouchCause;
use firsttouch_model::finding::{FindingKind, FixKind};

fn analysed(toucher: Who) -> Analysis {
    let profile = World::new(4, vec![Thing::new("a", 64, toucher, Who::Block(0, 4))]).profile(3);
    analyse(&profile, &target(2), &FakeSources(TouchCause::Loop))
}

/// Check that an object near the bar of findings is neither, with its figures and what would help, and that limits on the figure are checked all the
/// same; and that objects of which nearly nothing may be remote, and the buffers of libraries, are no such case.
#[test]
fn near_the_bar_is_not_judged() {
    let mut analysis = analysed(Who::Block(0, 4));
    assert!(matches!(analysis.verdict(), Verdict::WellPlaced(_)), "{:?}", analysis.verdict());
    analysis.objects[0].is_at_users = false;
    for (value, interval, is_near) in [
        (0.08, [0.04, 0.12], true),
        (0.08, [0.055, 0.11], true),
        (0.06, [0.03, 0.11], true),
        (0.04, [0.03, 0.06], false),
        (0.06, [0.01, 0.19], false),
        (0.0, [0.0, 0.02], false),
    ] {
        (analysis.objects[0].remote_fraction, analysis.objects[0].remote_interval) = (Some(value), Some(interval));
        let view = analysis.verdict_view();
        assert_eq!(view.outcome == "not-judged", is_near, "{value} {interval:?}: {view:?}");
        assert_eq!(
            view.causes.iter().any(|cause| cause.starts_with("a is near the limit: ") && cause.contains("profile a longer run")),
            is_near
        );
        let limits = Limits { max_remote: Some(0.2), ..Limits::default() };
        let checked = check(Assessed { analysis: &analysis, prediction: None }, &limits, true);
        assert_eq!(Outcome::of(&checked), Outcome::Passed, "{checked:?}");
    }
    // Where more samples would not make the interval narrow, none are asked for.
    (analysis.objects[0].remote_fraction, analysis.objects[0].remote_interval) = (Some(0.08), Some([0.04, 0.12]));
    (analysis.objects[0].remote_interval_by_samples, analysis.objects[0].speed_error) = (Some([0.07, 0.09]), 0.04);
    let causes = analysis.verdict_view().causes;
    assert!(causes.iter().any(|cause| cause.contains("more samples alone do not decide it")), "{causes:?}");
    analysis.objects[0].library = Some("libopenblas.so.0".to_owned());
    assert!(matches!(analysis.verdict(), Verdict::WellPlaced(_)));
}

/// Check that much that is remote, without a finding, is no all-clear where each thread has parts of its own, also while a recording goes on; and that it
/// is one for an interleaved table, and for memory that all threads use.
#[test]
fn much_remote_without_a_finding() {
    let mut analysis = analysed(Who::Block(0, 4));
    (analysis.objects[0].remote_fraction, analysis.objects[0].remote_interval) = (Some(0.5), Some([0.42, 0.58]));
    analysis.objects[0].is_at_users = false;
    (analysis.remote_fraction, analysis.remote_interval) = (Some(0.5), Some([0.42, 0.58]));
    let is_said = |analysis: &Analysis| {
        let view = analysis.verdict_view();
        view.outcome == "not-judged" && view.causes.iter().any(|cause| cause.starts_with("a may be misplaced: 50.0 % of its accesses"))
    };
    assert!(is_said(&analysis), "{:?}", analysis.verdict_view());
    assert!(is_said(&Analysis { unfinished: true, ..analysis.clone() }));
    let interleaved = |analysis: &mut Analysis| analysis.objects[0].policy = Some("interleave:0-1".to_owned());
    let shared = |analysis: &mut Analysis| analysis.objects[0].partition = PartitionKind::Shared;
    let at_users = |analysis: &mut Analysis| analysis.objects[0].is_at_users = true;
    for change in [&interleaved as &dyn Fn(&mut Analysis), &shared, &at_users] {
        let mut analysis = analysis.clone();
        change(&mut analysis);
        assert!(matches!(analysis.verdict(), Verdict::WellPlaced(_)), "{:?}", analysis.verdict());
    }
}

/// Check that buffers which a producer writes and consumers read are no finding where each is on its consumer's node: the producer's accesses are remote
/// wherever they are. Where another consumer initialised them, and where one of several arrays was initialised by one thread, they are one: also with
/// few samples, several nodes, and a small part of the accesses.
#[test]
fn pages_at_their_main_users() {
    let consumers = || Who::Cyclic(1, 3, 8 * MIB);
    let used = || Who::Turns(vec![Who::One(0), consumers(), consumers(), consumers()]);
    let arrays = |wrong: usize, threads: usize, count: usize| {
        let of = |array: usize| if array < wrong { Who::One(0) } else { Who::Block(0, threads) };
        Who::Arrays((0..count).map(of).collect())
    };
    let reversed = |wrong: usize, count: usize| {
        let of = |block: usize| Who::One(if block < wrong { (block + count / 2) % count } else { block });
        Who::Arrays((0..count).map(of).collect())
    };
    for (touched, used, threads, nodes, seconds, is_placed) in [
        (consumers(), used(), 4, 2, 10, true),
        (Who::Arrays(vec![Who::One(1); 9]), used(), 4, 2, 10, false),
        (Who::One(0), used(), 4, 2, 10, false),
        (arrays(0, 4, 3), arrays(0, 4, 3), 4, 2, 10, true),
        (arrays(1, 4, 3), arrays(0, 4, 3), 4, 2, 10, false),
        (arrays(2, 4, 5), arrays(0, 4, 5), 4, 2, 4, false),
        (arrays(1, 4, 4), arrays(0, 4, 4), 4, 4, 4, false),
        (reversed(2, 8), Who::Block(0, 8), 8, 8, 3, false),
        (reversed(2, 8), Who::Block(0, 8), 8, 8, 10, false),
    ] {
        let thing = Thing { sweep: 1_973_000, ..Thing::new("a", 72, touched.clone(), used.clone()) };
        let world = World { seconds, ..World::new(threads, vec![thing]) };
        let analysis = analyse(&world.profile(3), &target(nodes), &FakeSources(TouchCause::Loop));
        let a = &analysis.objects[0];
        assert_eq!((analysis.findings.is_empty(), a.is_at_users), (is_placed, is_placed), "{touched:?} {used:?} {nodes} {seconds}: {a:?}");
        assert_eq!(matches!(analysis.verdict(), Verdict::WellPlaced(_)), is_placed, "{:?}", analysis.verdict());
        let inherent = matches!(used, Who::Turns(_)) && is_placed;
        assert!(!inherent || a.remote_interval.is_some_and(|[low, high]| low > 0.1 && low < 0.17 && high > 0.17), "{a:?}");
    }
}

/// Check that no advice spreads pages which are on all nodes already; where one thread touched them first, or each a block, it does: the loads of nodes follow
/// each other then.
#[test]
fn spread_pages_are_not_spread_again() {
    for (touched, is_spread) in [(Who::Cyclic(0, 4, 4096), true), (Who::Block(0, 4), false), (Who::One(0), false)] {
        let profile = World::new(4, vec![Thing::new("a", 64, touched, Who::Dynamic(0, 4, MIB))]).profile(3);
        let analysis = analyse(&profile, &target(2), &FakeSources(TouchCause::Loop));
        let [finding] = &analysis.findings[..] else { panic!("{:?}", analysis.findings) };
        assert_eq!((finding.kind, analysis.objects[0].is_spread), (FindingKind::NoStablePartition, is_spread), "{finding:?}");
        assert_eq!(finding.fix.contains("--interleave"), !is_spread, "{}", finding.fix);
        assert_eq!(finding.fix.contains("its pages are on all nodes already"), is_spread, "{}", finding.fix);
        assert_eq!(finding.fix_kind, if is_spread { FixKind::FixedParts } else { FixKind::Interleave });
    }
}

/// Check that a finding near the bar is no new one if a baseline without it may have had as much by chance.
#[test]
fn findings_near_the_bar_are_not_new() {
    let after = analysed(Who::One(0));
    let finding = |interval| Finding { interval, ..after.findings[0].clone() };
    for (of_baseline, now, status) in [
        ([0.03, 0.09], [0.055, 0.12], LimitStatus::Within),
        ([0.0, 0.02], [0.055, 0.12], LimitStatus::Exceeded),
        ([0.03, 0.09], [0.45, 0.55], LimitStatus::Exceeded),
    ] {
        let mut before = analysed(Who::Block(0, 4));
        before.objects[0].remote_interval = Some(of_baseline);
        let after = Analysis { findings: vec![finding(now)], ..after.clone() };
        let baselines = [Assessed { analysis: &before, prediction: None }];
        // The shares of all accesses are another limit.
        let limits = Limits { baselines: &baselines, tolerance: Some(1.0), ..Limits::default() };
        let checked = check(Assessed { analysis: &after, prediction: None }, &limits, true);
        let findings = checked.iter().find(|limit| limit.kind.as_str() == "baseline-findings").unwrap();
        assert_eq!(findings.status, status, "{of_baseline:?} {now:?}: {findings:?}");
    }
}

/// Check that records which all lie at one end of an object say nothing of the accesses elsewhere, and that they do of those there.
#[test]
fn records_at_one_end() {
    let mut profile = World::new(4, vec![Thing::new("a", 64, Who::One(0), Who::Block(0, 4))]).profile(3);
    profile.first_touches.sort_by_key(|touch| touch.address);
    profile.first_touches.iter_mut().for_each(|touch| touch.weight = 1.0);
    let all = analyse(&profile, &target(2), &FakeSources(TouchCause::Loop));
    assert_eq!(all.findings.len(), 1, "{:?}", all.objects[0]);
    profile.first_touches.truncate(10);
    let analysis = analyse(&profile, &target(2), &FakeSources(TouchCause::Loop));
    let reason = analysis.objects[0].reason.as_ref().map(ToString::to_string).unwrap_or_default();
    assert!(reason.starts_with("the 10 records of its first touches lie in one part of it"), "{reason}");
    assert_eq!((analysis.findings.len(), analysis.verdict_view().outcome), (0, "not-judged"));
    assert!(analysis.remote_interval.is_some_and(|[low, high]| high - low > 0.9), "{:?}", analysis.remote_interval);
}
