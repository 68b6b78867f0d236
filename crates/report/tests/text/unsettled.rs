//! Judged objects without a finding.

use super::{PLAIN, context, matrix_a, serial, text};
use firsttouch_analysis::{CodeLocation, Coverage, NotJudged, ObjectView};
use firsttouch_model::evidence::EvidenceSource;

/// Check that each judged object is in a line: with its finding, as well placed, or with what it lacks for a finding; and that the well-placed
/// objects are counted without those of libraries.
#[test]
fn judged_objects_are_all_listed() {
    let mut analysis = serial();
    let object = |id, name: &str, share, remote, interval| ObjectView {
        id,
        name: name.into(),
        access_share: Some(share),
        remote_fraction: Some(remote),
        remote_interval: Some(interval),
        ..matrix_a()
    };
    let library = CodeLocation { module: Some("/usr/lib/x86_64-linux-gnu/libc.so.6".into()), offset: Some(1), ..CodeLocation::default() };
    analysis.objects.extend([
        ObjectView { access_share_interval: Some([0.008, 0.05]), ..object(10, "rowptr", 0.011, 0.47, [0.27, 0.67]) },
        ObjectView { access_share_interval: Some([0.001, 0.32]), ..object(24, "q", 0.016, 0.5, [0.37, 0.62]) },
        object(11, "val", 0.32, 0.56, [0.004, 0.998]),
        object(18, "w", 0.05, 0.5, [0.11, 0.96]),
        ObjectView { library: Some("libopenblas.so.0".into()), ..object(19, "buffer of libopenblas.so.0", 0.04, 0.5, [0.4, 0.6]) },
        ObjectView { library: Some("libopenblas.so.0".into()), ..object(20, "buffer of libopenblas.so.0", 0.03, 0.0, [0.0, 0.1]) },
        ObjectView { remote_interval_by_samples: Some([0.43, 0.47]), guessed_homes: 0.6, ..object(21, "z", 0.27, 0.45, [0.0, 1.0]) },
        ObjectView { remote_interval_by_samples: Some([0.3, 0.5]), ..object(22, "u", 0.05, 0.4, [0.01, 0.5]) },
        ObjectView { remote_interval_by_samples: Some([0.28, 0.32]), speed_error: 0.5, ..object(23, "s", 0.04, 0.3, [0.03, 0.8]) },
        object(12, "y", 0.28, 0.22, [0.09, 0.42]),
        object(13, "a", 0.2, 0.0, [0.0, 0.05]),
        object(14, "b", 0.1, 0.0, [0.0, 0.05]),
        object(15, "c", 0.1, 0.0, [0.0, 0.05]),
        object(16, "d", 0.1, 0.0, [0.0, 0.05]),
        ObjectView { allocated_at: Some(library), ..object(17, "of libc", 0.1, 0.0, [0.0, 0.05]) },
    ]);
    let shown = text(&analysis, &context(), PLAIN).replace(['\n', '\u{a0}'], " ");
    for expected in [
        "Well placed: a (2.98 GiB, 0 % remote), b (2.98 GiB, 0 % remote), c (2.98 GiB, 0 % remote), and 1 more.",
        "Partly remote, but no finding is certain: y (28 % of the accesses, 22 % remote [9.0, 42]).",
        "Too few samples for a finding: val (32 % of the accesses, 56 % remote [0.4, 100]; about 5 s more would decide), w (5.0 % of the accesses, 50 % remote [11, 96]; about 2 s more would decide).",
        "Too few first touches recorded for a finding (a longer run has no more of them): z (27 % of the accesses, 45 % remote [0, 100]).",
        "The speeds of the loops are not known well enough for a finding (a longer run helps only if it shows more of them): s (4.0 % of the accesses, 30 % remote [3.0, 80]).",
        "The sources of evidence disagree too much for a finding: u (5.0 % of the accesses, 40 % remote [1.0, 50]).",
        "Own memory of libraries and interpreters, which a program cannot place: libopenblas.so.0 (5.96 GiB, 7.0 % of the accesses).",
        "The share of the accesses is not known well enough for a finding: q (1.6 % of the accesses [0.1, 32], 50 % remote [37, 62]).",
        "Too few accesses to matter: rowptr (1.1 % of the accesses, 47 % remote [27, 67]).",
    ] {
        assert!(shown.contains(expected), "{shown}\nlacks {expected}");
    }
    assert!(!text(&serial(), &context(), PLAIN).contains("Too few"));
}

/// Check that large objects that were not judged for one reason are in one sentence, and that it is said of which accesses their shares are where
/// many go to memory of no recorded object.
#[test]
fn not_judged_for_one_reason() {
    let mut analysis = serial();
    let object = |id, name: &str, share| ObjectView {
        id,
        name: name.into(),
        access_share: Some(share),
        judged: false,
        reason: Some("its first touches were not seen".into()),
        ..matrix_a()
    };
    analysis.objects.extend([object(10, "p", 0.4), object(11, "q", 0.3)]);
    let of = |object: &ObjectView| NotJudged {
        id: object.id,
        name: object.name.clone(),
        bytes: object.total_bytes,
        count: 1,
        reason: object.reason.clone().expect("a reason"),
    };
    analysis.not_judged = analysis.objects.iter().filter(|object| !object.judged).map(of).collect();
    for (elsewhere, of_accesses) in [(0.01, "of the accesses"), (0.9, "of the accesses to recorded objects")] {
        analysis.coverage = Some(Coverage {
            judged: 0.1 * (1.0 - elsewhere),
            cached: 0.0,
            not_judged: 0.9 * (1.0 - elsewhere),
            elsewhere: Some(elsewhere),
            evidence: EvidenceSource::Sample,
        });
        let shown = text(&analysis, &context(), PLAIN).replace(['\n', '\u{a0}'], " ");
        let expected = format!(
            "Not judged: p (2.98 GiB, 40 % {of_accesses}), q (2.98 GiB, 30 % {of_accesses}), each: its first touches were not seen."
        );
        assert!(shown.contains(&expected), "{shown}\nlacks {expected}");
    }
}
