//! The figure of a second source of evidence.

use super::{PLAIN, context, serial, text};
use firsttouch_analysis::CrossCheck;

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
    let expected = "- Sources disagree about the remote share: 'watch' gives 49 % [47, 52], 'sample' 20 % [17, 23] (1,904 samples). \
                    The report uses 'watch'.";
    assert!(words(&analysis).contains(expected), "{}", words(&analysis));
    // A figure that agrees with nearly all others is no comparison.
    analysis.cross_checks = vec![CrossCheck { interval: [0.06, 0.56], ..check(0.22, false) }];
    assert!(
        words(&analysis).contains("Samples of registers saw too few accesses to compare: 22 % remote [6.0, 56]."),
        "{}",
        words(&analysis)
    );
    assert!(!words(&analysis).contains("agree"), "{}", words(&analysis));
}
