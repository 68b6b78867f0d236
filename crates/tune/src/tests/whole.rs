//! Whole programs.

use super::simulated::{PAGE, Program, S};
use crate::decide::Held;
use crate::{ProcessOutcome, text};

const BUDGET: f64 = 500e6;

/// Check DGEMV with serial initialisation: half of the matrix moves, no more, and nothing moves after that.
#[test]
fn serial_initialisation_is_repaired() {
    let user = |page: u64, _: u64| Some((page / 4096) as u32);
    let mut program = Program::new(8192, BUDGET, |_| 0);
    program.run(6, &user);
    let moved = program.moved();
    assert!(program.misplaced(&user) * 100 <= 8192 * 2, "{} misplaced", program.misplaced(&user));
    assert!((4000..=4200).contains(&moved), "{moved}");
    program.run(20, &user);
    assert_eq!(program.moved(), moved);
    assert!(program.tuner.is_settled(program.now_ns, 10 * S));
    let outcome = ProcessOutcome::of(7, "dgemv", &program.tuner);
    assert_eq!((outcome.moved_pages, outcome.verified_pages >= moved as u64, outcome.astray_pages), (moved as u64, true, 0));
    assert_eq!((outcome.objects[0].moves.len(), outcome.objects[0].moves[0].nodes.clone()), (1, vec![1]));
}

/// Check three arrays in one mapping on four nodes, all of them on one: 95 % of the pages are at their users'.
#[test]
fn several_arrays_in_one_mapping() {
    let user = |page: u64, _: u64| Some((page / 1024 % 4) as u32);
    let mut program = Program::new(3 * 4096, BUDGET, |_| 2);
    program.nodes = 4;
    program.run(20, &user);
    assert!(program.misplaced(&user) * 20 <= 3 * 4096, "{} misplaced", program.misplaced(&user));
}

/// Check that nothing moves in programs whose memory is where it is used: blocks, one thread, shared and interleaved, and at random.
#[test]
fn well_placed_programs_are_left_alone() {
    let blocks = |page: u64, _: u64| Some((page / 100 % 2) as u32);
    let mut program = Program::new(8000, BUDGET, |page| (page / 100 % 2) as u32);
    program.run(20, &blocks);
    assert_eq!(program.moved(), 0);
    assert_eq!(program.tuner.objects[&1].held, Some(Held::InPlace));
    let mut interleaved = Program::new(8000, BUDGET, |page| (page % 2) as u32);
    interleaved.run(20, &|_, _| None);
    assert_eq!(interleaved.moved(), 0);
}

/// Check that what all threads use from one node is interleaved.
#[test]
fn shared_memory_is_interleaved() {
    let mut program = Program::new(8000, BUDGET, |_| 1);
    program.run(10, &|_, _| None);
    let kernel = program.fake.0.lock().unwrap();
    assert!(kernel.pages.iter().all(|(address, node)| u64::from(*node) == address / PAGE % 2));
}

/// Check that no more bytes move in any second than the budget allows.
#[test]
fn the_budget_holds() {
    let user = |page: u64, _: u64| Some((page / 4096) as u32);
    let mut program = Program::new(8192, 2e6, |_| 0);
    program.run(15, &user);
    let kernel = program.fake.0.lock().unwrap();
    assert!(kernel.moves.len() as u64 * PAGE > 4_000_000, "{}", kernel.moves.len());
    for (from, _) in &kernel.moves {
        let in_a_second = kernel.moves.iter().filter(|(time, _)| (*from..from + S).contains(time)).count() as u64 * PAGE;
        assert!(in_a_second as f64 <= 2e6 * 1.1 + PAGE as f64, "{in_a_second}");
    }
}

/// Check a program that changes its partition each 10 s, of which each move costs more than it gains: at most its first partition is followed.
#[test]
fn changing_programs_are_not_chased() {
    let user = |page: u64, time: u64| Some(((page / 4096 + time / (10 * S)) % 2) as u32);
    let mut program = Program::new(8192, BUDGET, |_| 0);
    program.run(60, &user);
    // Moving 16 MiB costs 16 ms, and gains up to 2 CPUs x 0.52 x 5 s: worth it, until the margin of what was undone is larger.
    assert!(program.tuner.changes() >= 4, "{}", program.tuner.changes());
    let alone = {
        let mut alone = Program::new(8192, 1.0, |_| 0);
        alone.run(60, &user);
        alone.misplaced_page_s
    };
    assert!(program.misplaced_page_s < alone, "{} and {alone}", program.misplaced_page_s);
    // The same program where moving is a thousand times dearer.
    let mut dear = Program::new(8192, BUDGET, |_| 0);
    (0..60).for_each(|_| dear.tuner.carrier.rate.measured(1 << 30, 1000.0));
    dear.run(60, &user);
    assert_eq!(dear.moved(), 0);
    assert!(matches!(dear.tuner.objects[&1].held, Some(Held::NotWorth { .. })), "{:?}", dear.tuner.objects[&1].held);
}

/// Check that serial initialisation, which is a way of use of its own, delays nothing for long.
#[test]
fn initialisation_is_a_phase() {
    let user = |page: u64, time: u64| Some(if time < 4 * S { 0 } else { (page / 4096) as u32 });
    let mut program = Program::new(8192, BUDGET, |_| 0);
    program.run(10, &user);
    assert!(program.misplaced(&user) * 50 <= 8192, "{}", program.misplaced(&user));
}

/// Check that memory is not taken for shared because one thread initialised it and others use it, if there are few samples of both.
#[test]
fn initialisation_with_few_samples_is_not_sharing() {
    let user = |page: u64, time: u64| Some(if time < 3 * S { 0 } else { (page / 4096) as u32 });
    let mut program = Program::new(8192, BUDGET, |_| 0);
    program.a_second = 8;
    program.run(40, &user);
    // No page is moved twice, and none that node 0 uses but near the border.
    assert!(program.moved() <= 4096 + 300, "{}", program.moved());
    assert!(program.misplaced(&user) * 20 <= 8192, "{}", program.misplaced(&user));
}

/// Check that pages which cannot move are counted with their reason, and that tries end.
#[test]
fn stuck_pages_end_the_tries() {
    let user = |_: u64, _: u64| Some(1);
    let mut program = Program::new(1000, BUDGET, |_| 0);
    let start = program.start;
    program.fake.0.lock().unwrap().stuck = (0..600).map(|page| (start + page * PAGE, libc::EACCES)).collect();
    program.run(20, &user);
    assert_eq!(program.moved(), 400);
    assert_eq!(program.tuner.carrier.objects[&1].tries, 3);
    let outcome = ProcessOutcome::of(7, "a", &program.tuner);
    assert_eq!((outcome.failed.len(), outcome.failed[0].errno.as_str(), outcome.failed[0].pages), (1, "EACCES", 600));
    assert_eq!(program.tuner.objects[&1].held, Some(Held::CannotMove { tries: 3 }));
}

/// Check that the kernel's refusal ends it, with nothing moved, and that a dry run moves nothing and says what it would.
#[test]
fn refusals_and_dry_runs() {
    let user = |page: u64, _: u64| Some((page / 500) as u32);
    let mut program = Program::new(1000, BUDGET, |_| 0);
    program.fake.0.lock().unwrap().refusal = Some(libc::EPERM);
    program.run(10, &user);
    assert_eq!((program.refused, program.moved()), (Some(libc::EPERM), 0));

    let mut dry = Program::new(1000, BUDGET, |_| 0);
    let settings = crate::Settings { dry_run: true, ..dry.tuner.settings().clone() };
    dry.tuner = crate::Tuner::new(settings);
    dry.run(10, &user);
    let outcome = ProcessOutcome::of(7, "a", &dry.tuner);
    assert_eq!((dry.moved(), outcome.objects[0].moves.len()), (0, 1));
    assert!(outcome.remote_expected.unwrap() < 0.02, "{outcome:?}");
    let whole = crate::Outcome { dry_run: true, nodes: 2, processes: vec![outcome], ..crate::Outcome::default() };
    let said = text(&whole);
    assert!(said.contains("would move 1.9") && said.contains("to node 1: threads on node 1 use it"), "{said}");
    assert!(said.contains(" remote now, 0 % expected after the moves"), "{said}");
}

/// Check that a dry run compares shares of the same accesses: interleaving memory that the threads of both nodes use leaves half of it remote, and gains
/// only where bandwidth is the limit.
#[test]
fn interleaving_is_not_said_to_gain() {
    let mut dry = Program::new(8000, BUDGET, |_| 1);
    let settings = crate::Settings { dry_run: true, ..dry.tuner.settings().clone() };
    dry.tuner = crate::Tuner::new(settings);
    dry.run(10, &|_, _| None);
    let outcome = ProcessOutcome::of(7, "a", &dry.tuner);
    let [now, expected] = [outcome.remote_now, outcome.remote_expected].map(Option::unwrap);
    assert!((now - 0.5).abs() < 0.1 && (expected - 0.5).abs() < 1e-9, "{outcome:?}");
    let said = text(&crate::Outcome { dry_run: true, nodes: 2, processes: vec![outcome], ..crate::Outcome::default() });
    assert!(said.contains(": if the bandwidth of node 1 is the limit;"), "{said}");
}

/// Check that the memory of a thread that wanders between nodes does not follow it: it may move once, before it is known that the thread wanders.
#[test]
fn wandering_threads_hold() {
    let user = |_: u64, time: u64| Some((time / S % 2) as u32);
    let mut program = Program::new(1000, BUDGET, |_| 0);
    // One thread, which is on each node in turn.
    for _ in 0..30 {
        program.half_a_second_of_one_thread(&user);
    }
    assert!(program.moved() <= 1000, "{}", program.moved());
    assert!(
        matches!(program.tuner.objects[&1].held, Some(Held::ThreadsMove { .. } | Held::InPlace)),
        "{:?}",
        program.tuner.objects[&1].held
    );
}

/// Check that a matrix is repaired soon after its initialisation, which went through it from its beginning to its end while it was watched: the accesses of the
/// initialising thread count no longer, and nothing moves during it.
#[test]
fn initialisation_is_forgotten() {
    let user = |page: u64, time_ns: u64| Some(if time_ns < 4 * S { 0 } else { (page / 4096) as u32 });
    let mut program = Program::new(8192, BUDGET, |_| 0);
    program.reach = |time_ns| ((time_ns.saturating_sub(S)) as f64 / (3 * S) as f64).min(1.0);
    program.run(3, &user);
    assert_eq!(program.moved(), 0);
    program.run(2, &user);
    let placed = |page: u64, _: u64| Some((page / 4096) as u32);
    assert!(program.misplaced(&placed) * 100 <= 8192 * 3, "{} misplaced, {} moved", program.misplaced(&placed), program.moved());
    assert!(program.moved() <= 4400, "{}", program.moved());
}

/// Check a program that changes its partition each 10 s where so few accesses are sampled that it takes long to notice: after its first change it is left alone.
#[test]
fn changing_programs_are_left_alone_if_noticed_late() {
    let user = |page: u64, time: u64| Some(((page / 4096 + time / (10 * S)) % 2) as u32);
    let run = |budget: f64| {
        let mut program = Program::new(8192, budget, |_| 0);
        program.a_second = 4;
        program.run(90, &user);
        (program.moved(), program.misplaced_page_s)
    };
    let ((moved, misplaced), (_, alone)) = (run(BUDGET), run(1.0));
    assert!(moved <= 8192 && misplaced < 1.1 * alone, "{moved} moved, {misplaced} misplaced, {alone} alone");
}
