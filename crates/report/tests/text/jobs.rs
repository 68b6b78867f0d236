//! Reports of jobs of several ranks.

use super::{PLAIN, context, matrix_a, serial, text};
use firsttouch_analysis::job::{HostView, ObjectAcrossRanks, OverRanks, RankView};
use firsttouch_analysis::{Analysis, Finding, ObjectView};
use firsttouch_model::finding::FindingKind;

fn rank(rank: u32) -> RankView {
    let (first, remote) = (2 * rank as usize, if rank == 3 { 0.5 } else { 0.0 });
    RankView {
        rank: Some(rank),
        host: rank as usize / 2,
        process: 1 + i64::from(rank),
        first_thread: first,
        threads: 2,
        thread_nodes: if rank == 3 { vec![0.0, 0.0, 0.52, 0.48] } else { (0..4).map(|node| f64::from(node == rank)).collect() },
        memory_nodes: (0..4).map(|node| f64::from(node == rank.min(2))).collect(),
        remote_fraction: Some(remote),
        remote_interval: Some([remote, remote + 0.02]),
        access_share: Some(0.25),
        findings: if rank == 3 { vec![FindingKind::SerialFirstTouch] } else { vec![] },
        exit_code: Some(0),
        ..RankView::default()
    }
}

/// Four ranks of five on two hosts: rank 3 has the finding.
fn job() -> Analysis {
    let object = |rank: i64| ObjectView {
        id: 7 + rank,
        process: 1 + rank,
        remote_fraction: Some(if rank == 3 { 0.5 } else { 0.0 }),
        remote_interval: Some(if rank == 3 { [0.48, 0.52] } else { [0.0, 0.02] }),
        ..matrix_a()
    };
    let finding = Finding { object: Some(10), ranks: vec![3], ..serial().findings[0].clone() };
    let over = |min, median, max, outlier| OverRanks { min, median, max, outlier };
    Analysis {
        hosts: vec![HostView { name: "ant".into(), first_node: 0, nodes: 2 }, HostView { name: "bee".into(), first_node: 2, nodes: 2 }],
        ranks: (0..4).map(rank).collect(),
        missing_ranks: vec![4],
        objects: (0..4).map(object).collect(),
        findings: vec![finding],
        across_ranks: vec![ObjectAcrossRanks {
            name: "A".into(),
            allocated_at: None,
            objects: vec![7, 8, 9, 10],
            ranks: vec![0, 1, 2, 3],
            bytes: over(3.2e9, 3.2e9, 3.2e9, None),
            access_share: Some(over(0.97, 0.98, 0.99, None)),
            remote_fraction: Some(over(0.0, 0.0, 0.5, Some(3))),
            judged: 4,
        }],
        ..serial()
    }
}

/// Check the table of ranks (hosts, nodes of the host, remote fractions), the objects over ranks with the outlier, and the ranks of a finding.
#[test]
fn ranks_are_listed() {
    let report = text(&job(), &context(), PLAIN);
    let lines: Vec<&str> = report.lines().collect();
    let at = lines.iter().position(|line| line.starts_with("rank  host")).unwrap();
    assert_eq!(
        lines[at..at + 6],
        [
            "rank  host  threads  run on          memory on  remote         accesses  findings",
            "0     ant   0-1      0               0          0 % [0, 2.0]   25 %      -",
            "1     ant   2-3      1               1          0 % [0, 2.0]   25 %      -",
            "2     bee   4-5      0               0          0 % [0, 2.0]   25 %      -",
            "3     bee   6-7      0 52 %, 1 48 %  0          50 % [50, 52]  25 %      1",
            "Rank 4 of the job has no profile here.",
        ],
        "{report}"
    );
    assert!(report.contains("A                  4      2.98 GiB  97 / 98 / 99 %  0 / 0 / 50 %  rank 3"), "{report}");
    assert!(report.contains("   ranks          3 (of 5 ranks); the lines, the map and the threads (6-7) are those of rank 3"), "{report}");
    assert!(report.contains("4 ranks of 5 on 2 hosts, 8 threads"), "{report}");
    assert!(!report.contains("Well placed: A (2.98 GiB, 50 %"), "{report}");
    assert!(report.contains("Well placed: A (2.98 GiB, 0 % remote at most, in 3 ranks)."), "{report}");
}

/// Check that the programs of a job are named with their ranks, and that each has its own command to run it with the plan.
#[test]
fn programs_of_a_job_are_named() {
    let mut job = job();
    for (number, rank) in job.ranks.iter_mut().enumerate() {
        rank.command = if number < 3 { vec!["./ocean".into(), "a b".into()] } else { vec!["./ice".into()] };
    }
    job.command = ["./ocean", "a b", ":", "./ice"].map(str::to_owned).to_vec();
    let report = text(&job, &context(), PLAIN);
    assert!(report.contains("\nRanks 0-2 ran ./ocean a b; rank 3 ran ./ice.\n"), "{report}");
    assert!(report.contains(".toml -- ./ocean 'a b'\n") && report.contains(".toml -- ./ice\n"), "{report}");
    let words = report.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("each of the last commands takes the place of its program"), "{report}");
    job.ranks.iter_mut().for_each(|rank| rank.command = vec!["./ice".into()]);
    assert!(!text(&job, &context(), PLAIN).contains(" ran ./ice"));
}

/// Check that ranks that died are named, and that of many ranks those are listed that matter, in a table that fits the width.
#[test]
fn ranks_that_matter_are_listed() {
    let mut many = job();
    many.ranks = (0..64).map(|number| RankView { rank: Some(number), ..rank(0) }).collect();
    many.ranks[40] = RankView { rank: Some(40), exit_code: Some(137), signal: Some(9), ..rank(0) };
    many.ranks[50].unfinished = true;
    many.ranks[60].remote_fraction = Some(0.4);
    let report = text(&many, &context(), PLAIN);
    for rank in ["\n40 ", "\n50 ", "\n60 "] {
        assert!(report.contains(rank), "{rank}: {report}");
    }
    assert!(report.contains("and 48 more ranks, with 0 % to 0 % remote"), "{report}");
    assert!(report.contains("Ranks that died: 40 (signal 9 (SIGKILL)), 50 (recorder died). Their figures hold until then."), "{report}");
    assert!(report.lines().all(|line| line.chars().count() <= 100), "{report}");
    assert!(!text(&serial(), &context(), PLAIN).contains("rank"), "a program has no ranks");
}
