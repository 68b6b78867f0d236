//! The list of sources.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::analyse::analyse_by;
use crate::target::{Sources, Target};
use firsttouch_model::finding::FindingKind;
use firsttouch_model::rows::{FirstTouch, Frame, Object, ObjectKind, Thread};
use firsttouch_model::{Pin, TouchCause};

const BYTES: u64 = 64 << 20;
const SAMPLES: u64 = 200;

/// A source that samples the first object at equal distances, with four threads in blocks.
#[derive(Debug)]
struct Timer;

impl Source for Timer {
    fn name(&self) -> EvidenceSource {
        EvidenceSource::from("timer")
    }
    fn read(&self, reader: &Reader<'_>) -> Samples {
        let mut samples = Samples::of_groups(reader.groups.len());
        let (object, group) = reader.object(7).unwrap();
        for round in 0..SAMPLES {
            let offset = (round * (BYTES / SAMPLES)) & !7;
            let thread = (offset * 4 / BYTES) as usize;
            let (start, node) = (1000 + round, reader.threads.list[thread].node);
            samples.draws.push(Draw { group, round, z: 1.0, held_ns: 1.0, rate: 0.0, cut: false, doubts: [None; 2] });
            samples.hits[group].push(Hit {
                draw: round as usize,
                object,
                offset,
                position: reader.groups[group].position(object, offset),
                start,
                end: start,
                round,
                by_thread: Few::One(ByThread { thread, rate: 1.0, hits: 1, cut: false, cpu_ns: None, node }),
                writes: None,
                strided: None,
                sites: Few::One((None, 1.0)),
                home: Home::Unknown,
            });
        }
        samples
    }
    fn design(&self, reader: &Reader<'_>, draws: Vec<Draw>) -> Design {
        Design::new(draws, &vec![0.0; reader.groups.len()])
    }
    fn counts(&self) -> Counts {
        Counts::Accesses
    }
    fn sees_initialisation(&self) -> bool {
        true
    }
    fn sight(&self) -> Sight {
        Sight::Only
    }
    fn unit(&self, _: u64) -> &'static str {
        "timer samples"
    }
    fn has_draws(&self, _: &Profile) -> bool {
        true
    }
}

struct NoText;

impl Sources for NoText {
    fn line(&self, _: &str, _: u32) -> Option<String> {
        None
    }
    fn cause(&self, _: &[Frame], _: Option<&str>) -> TouchCause {
        TouchCause::Unknown
    }
    fn user_frame(&self, _: &[Frame]) -> Option<usize> {
        None
    }
    fn variable(&self, _: &str, _: u32, _: &str, _: usize) -> Option<String> {
        None
    }
}

/// Four threads; thread 0 touches all pages of one array.
fn profile() -> Profile {
    let thread = |id: i64| Thread { id, process: 1, tid: 1, born_ns: 0, ..Thread::default() };
    let touch = |page: u64| FirstTouch {
        id: page as i64,
        process: 1,
        time_ns: page / 64,
        thread: 0,
        cpu: 0,
        address: (1 << 40) + page * 4096,
        weight: 16.0,
        by_kernel: false,
        site: None,
        mapped_bytes: None,
        node: None,
    };
    let object = Object {
        id: 7,
        process: 1,
        kind: ObjectKind::Heap,
        call: None,
        name: Some("a".to_owned()),
        address: 1 << 40,
        bytes: BYTES,
        born_ns: 0,
        died_ns: None,
        site: None,
        thread: Some(0),
    };
    Profile {
        threads: (0..4).map(thread).collect(),
        objects: vec![object],
        first_touches: (0..BYTES / 4096).step_by(16).map(touch).collect(),
        ..Profile::default()
    }
}

/// Check that figures, findings, the matrix and the traffic all use a source that is known only through the list.
#[test]
fn a_third_source_is_used() {
    let target = Target {
        name: "virtual:2".to_owned(),
        nodes: 2,
        virtual_machine: true,
        pin: Pin::Spread,
        place_all_threads: false,
        cores_per_node: 2,
        cpu_nodes: vec![],
        slow_nodes: vec![],
        private_cache_bytes: 1 << 20,
        ranks: Default::default(),
    };
    let study = |list: &[&'static dyn Source]| analyse_by(list, &profile(), &target, &NoText);
    let without = study(SOURCES);
    assert_eq!((without.remote_fraction, without.remote_evidence, without.traffic.objects.len()), (None, None, 0));

    for list in [&[&watch::Watch as &dyn Source, &Timer, &hint::Hint][..], &[&watch::Watch, &hint::Hint, &Timer], &[&Timer]] {
        let analysis = study(list);
        let object = &analysis.objects[0];
        let timer = Timer.name();
        assert_eq!((analysis.remote_evidence.as_ref(), &object.evidence), (Some(&timer), &timer));
        assert_eq!((analysis.remote_samples, object.access_share), (SAMPLES, Some(1.0)));
        assert!((analysis.matrix[0][0] - 0.5).abs() < 0.01 && (analysis.matrix[1][0] - 0.5).abs() < 0.01, "{:?}", analysis.matrix);
        let finding = &analysis.findings[0];
        assert_eq!((finding.kind, &finding.figures["remote"].evidence), (FindingKind::SerialFirstTouch, &timer));
        assert!(finding.message.contains("(200 timer samples)"), "{}", finding.message);
        assert_eq!(analysis.traffic.objects[0].samples.len(), SAMPLES as usize);
    }
}

/// Check when a less trusted source replaces a more trusted one.
#[test]
fn a_later_source_speaks_where_it_says_more_and_agrees() {
    let replaces = |trusted, next| super::replaces(trusted, next, Counts::Accesses);
    let figure = |value: f64, half: f64, samples: u64| Some(Estimate { value, low: value - half, high: value + half, samples });
    assert!(replaces(None, figure(0.5, 0.01, 16)) && !replaces(None, figure(0.5, 0.01, 15)) && !replaces(None, None));
    assert!(replaces(figure(0.5, 0.01, 15), figure(0.5, 0.2, 16)), "too few samples of the trusted source");
    assert!(replaces(figure(0.5, 0.2, 50), figure(0.6, 0.02, 500)));
    assert!(!replaces(figure(0.5, 0.04, 50), figure(0.5, 0.02, 500)), "precise enough");
    assert!(!replaces(figure(0.5, 0.14, 50), figure(0.9, 0.02, 500)), "they contradict each other");
    assert!(!replaces(figure(0.35, 0.19, 50), figure(0.1, 0.11, 500)), "nor do they agree because their intervals have values in common");
    assert!(replaces(figure(0.5, 0.2, 50), figure(0.9, 0.02, 500)), "no verdict by the trusted source");
    assert!(!replaces(figure(0.5, 0.2, 50), figure(0.9, 0.12, 500)), "nor by the next one");
    assert!(!super::replaces(figure(0.5, 0.2, 50), figure(0.9, 0.02, 500), Counts::Pages), "pages say less than accesses");
    assert!(!replaces(figure(0.5, 0.2, 50), figure(0.6, 0.3, 500)), "no more precise");
}

/// Check that a source which took no samples of an object with a part of the accesses gives no figure over all objects; a few samples of another source
/// show no part.
#[test]
fn figures_over_all_objects_need_samples_of_all() {
    let sampled = |source: &'static dyn Source, counts: [u64; 2]| {
        let draws = (0..2).flat_map(|group: usize| (0..counts[group]).map(move |round| (group, round)));
        let draw = |(group, round)| Draw { group, round, z: 1.0, held_ns: 1.0, rate: 1.0, cut: false, doubts: [None; 2] };
        let design = Design::new(draws.map(draw).collect(), &[0.0; 2]);
        Sampled { source, design, time: None, hits: vec![Vec::new(), Vec::new()], found: None, elsewhere: None, cached: 0.0 }
    };
    let sees_all = |trusted: [u64; 2], other: [u64; 2]| {
        let evidence = Evidence { sampled: vec![sampled(&Timer, trusted), sampled(&watch::Watch, other)], ..Evidence::default() };
        evidence.sources().map(|source| evidence.sees_all(source)).collect::<Vec<_>>()
    };
    assert_eq!(sees_all([40, 20], [50, 0]), [true, false]);
    assert_eq!(sees_all([40, 20], [50, 5]), [true, true]);
    assert_eq!(sees_all([40, 3], [50, 0]), [true, true]);
    assert_eq!(sees_all([0, 0], [50, 0])[1..], [true]);
}
