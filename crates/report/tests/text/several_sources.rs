//! The figure of a second source of evidence.

use super::{PLAIN, context, serial, text, well_placed};
use firsttouch_analysis::check_limits::{LimitStatus, Limits, check};
use firsttouch_analysis::{Analysis, Assessed, CrossCheck, Verdict};

/// Check that the report says whether another source agrees, and which one it uses if not.
#[test]
fn agreement_and_disagreement() {
    let mut analysis = serial();
    let check = |remote_fraction: f64, agrees: bool| CrossCheck {
        evidence: "sample".into(),
        remote_fraction,
        interval: [remote_fraction - 0.03, remote_fraction + 0.03],
        samples: 1904,
        agrees,
    };
    let words = |analysis: &_| text(analysis, &context(), PLAIN).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(!words(&analysis).contains("agree"));
    analysis.cross_checks = vec![check(0.48, true)];
    assert!(words(&analysis).contains("Samples of registers agree: 48 % remote [45, 51]."), "{}", words(&analysis));
    analysis.cross_checks = vec![check(0.2, false)];
    let expected = "- Sources disagree about the remote share: 'watch' gives 49 %, 'sample' 20 % [17, 23] (1,904 samples). \
                    The report uses 'watch', and its interval covers both.";
    assert!(words(&analysis).contains(expected), "{}", words(&analysis));
    // A figure that agrees with nearly all others is no comparison.
    analysis.cross_checks = vec![CrossCheck { interval: [0.06, 0.56], ..check(0.22, false) }];
    assert!(words(&analysis).contains("Samples of registers are too uncertain to compare: 22 % remote [6.0, 56]."), "{}", words(&analysis));
    assert!(!words(&analysis).contains("agree"), "{}", words(&analysis));
}

/// Check that a program is not called well placed, and passes no limit, if by another source much of it is remote for certain; that little, or an
/// uncertain figure, does not stand against an all-clear; and that findings stay.
#[test]
fn no_all_clear_against_another_source() {
    let with = |analysis: Analysis, interval: [f64; 2]| {
        let other = CrossCheck {
            evidence: "watch".into(),
            remote_fraction: f64::midpoint(interval[0], interval[1]),
            interval,
            samples: 25,
            agrees: false,
        };
        Analysis { remote_fraction: Some(0.03), remote_interval: Some([0.0, 0.07]), cross_checks: vec![other], ..analysis }
    };
    let contradicted = with(well_placed(), [0.61, 0.67]);
    let shown = text(&contradicted, &context(), PLAIN).replace('\n', " ");
    assert!(
        shown.contains(
            "NOT JUDGED: the sources disagree: by 'watch', [61, 67] % of the accesses would be remote (25 samples); profile a longer run."
        ),
        "{shown}"
    );
    let limits = Limits { max_remote: Some(0.2), ..Limits::default() };
    assert_eq!(check(Assessed { analysis: &contradicted, prediction: None }, &limits, true)[0].status, LimitStatus::Unknown);
    for interval in [[0.12, 0.18], [0.21, 0.6]] {
        assert!(matches!(with(well_placed(), interval).verdict(), Verdict::WellPlaced(_)), "{interval:?}");
    }
    assert_eq!(with(serial(), [0.61, 0.67]).verdict(), Verdict::Findings);
    let remote = Analysis { remote_fraction: Some(0.16), remote_interval: Some([0.02, 0.19]), ..with(well_placed(), [0.02, 0.12]) };
    assert!(matches!(remote.verdict(), Verdict::NotJudged(_)), "by the source in use, much is remote");
}
