//! Findings on the whole program, on the machine of the profile: threads move between nodes, or pages do.
//!
//! - `unpinned-threads`: threads were seen on several nodes. Each thread that had used CPU time was observed at regular intervals
//!   ("looks"). The fraction of looks at which a thread was off its main node must exceed 5 % at the lower limit, with at least 8 moves
//!   between nodes. The program's remote fraction must also exceed 5 % at the lower limit, so that the moves matter. Not reported if an
//!   object has this finding, because the cause is the same. Successive looks at a thread that stays are alike, so the interval counts
//!   stays (moves and threads), not looks.
//! - `balancing-churn`: of the pages that were queried repeatedly (objects larger than a core's cache), the fraction that returned to a
//!   node they had left must exceed 5 % at the lower limit. At least 16 pages must have been queried repeatedly (parts of a huge page count
//!   as one), and the kernel must have counted pages that the balancing migrated.
//!
//! A program with a permanent placement has neither: pinned threads do not move, and settled pages do not return.

use super::text::capital;
use super::{Context, figure};
use crate::Finding;
use crate::evidence::SourceRef;
use crate::residents::Moves;
use firsttouch_model::evidence::EvidenceSource;
use firsttouch_model::finding::{FindingKind, FixKind, Severity};
use firsttouch_model::{Estimate, format_bytes};
use std::collections::BTreeMap;

const OFF_BAR: f64 = 0.05;
const LEAST_MOVES: u64 = 8;
const RETURNED_BAR: f64 = 0.05;
const LEAST_PAGES: u64 = 16;
const REMOTE_BAR: f64 = 0.05;

/// The input of the rules.
pub struct Program<'a> {
    pub remote: Option<Estimate>,
    pub source: Option<SourceRef>,
    /// The moves of the pages of all objects that count.
    pub moves: &'a Moves,
    /// The findings on objects.
    pub findings: &'a [Finding],
}

impl Context<'_> {
    /// Findings without an object.
    #[must_use]
    pub fn find_in_program(&self, program: &Program<'_>) -> Vec<Finding> {
        if self.target.virtual_machine || self.target.nodes < 2 {
            return Vec::new();
        }
        self.floating(program).into_iter().chain(self.churn(program)).collect()
    }

    fn finding(
        &self,
        kind: FindingKind,
        name: &str,
        program: &Program<'_>,
        message: String,
        fix: String,
        own: (&str, Estimate, EvidenceSource),
    ) -> Finding {
        let remote = program.remote.unwrap_or(Estimate { value: 0.0, low: 0.0, high: 1.0, samples: 0 });
        let mut figures = BTreeMap::from([(own.0.to_owned(), figure(own.1, own.2))]);
        figures.extend(program.remote.zip(program.source).map(|(e, source)| ("remote".to_owned(), figure(e, source.name()))));
        Finding {
            kind,
            object: None,
            together: Vec::new(),
            object_name: name.to_owned(),
            severity: Severity::of(remote.value),
            message,
            fix,
            fix_edits: Vec::new(),
            fix_otherwise: None,
            library: None,
            fix_kind: FixKind::NotMemory,
            cause: None,
            misplaced_at: None,
            remote_fraction: remote.value,
            interval: [remote.low, remote.high],
            remote_share: remote.value,
            figures,
            ranks: Vec::new(),
            in_ranks: Vec::new(),
        }
    }

    fn floating(&self, program: &Program<'_>) -> Option<Finding> {
        let remote = program.remote.filter(|r| r.low > REMOTE_BAR)?;
        if program.findings.iter().any(|f| f.kind == FindingKind::UnpinnedThreads) {
            return None;
        }
        let (mut off, mut all, mut moves, mut floating, mut seen) = (0u64, 0u64, 0u64, 0, 0u64);
        for row in &self.profile.threads {
            let looks = self.threads.looks(self.profile, row.id, self.target.nodes);
            let (sum, most) = (looks.iter().fold(0u64, |sum, &n| sum.saturating_add(n)), looks.iter().max().copied().unwrap_or(0));
            seen += u64::from(sum > 0);
            floating += u64::from(row.node_moves > 0);
            moves = moves.saturating_add(row.node_moves);
            all = all.saturating_add(sum);
            off = off.saturating_add(sum - most);
        }
        if all == 0 || moves < LEAST_MOVES {
            return None;
        }
        let value = off as f64 / all as f64;
        let stays = moves.saturating_add(seen);
        let error = (value * (1.0 - value) / stays as f64).sqrt();
        let time = Estimate { samples: all, ..Estimate::fraction(value, error, stays) };
        if time.low <= OFF_BAR {
            return None;
        }
        let message = format!(
            "{floating} of {seen} threads moved between nodes while they ran ({moves} moves seen): {} of their time they ran off the node where each \
             ran most{}. Their memory stays where it was touched: {} of all accesses are remote.",
            share(time),
            self.allowed(),
            share(remote)
        );
        Some(self.finding(
            FindingKind::UnpinnedThreads,
            "threads",
            program,
            message,
            self.pin_advice(None),
            ("off_node", time, EvidenceSource::Looks),
        ))
    }

    fn churn(&self, program: &Program<'_>) -> Option<Finding> {
        let returned = program.moves.part(program.moves.returned)?;
        let migrated = self.profile.grown("numa_pages_migrated");
        if returned.samples < LEAST_PAGES || returned.low <= RETURNED_BAR || migrated == Some(0) {
            return None;
        }
        let counted = migrated.map_or_else(String::new, |pages| {
            format!(
                "; {pages} pages ({}) were moved meanwhile by the kernel's balancing (numa_pages_migrated, whole system)",
                format_bytes(pages.saturating_mul(self.profile.machine.page_bytes.max(1)))
            )
        });
        let message = format!(
            "The kernel's NUMA balancing moves pages back and forth: {} of the pages asked about again came back to a node they had \
             left ({} of {}){counted}.",
            share(returned),
            program.moves.returned,
            program.moves.revisited
        );
        let fix = self.churn_advice();
        Some(self.finding(FindingKind::BalancingChurn, "pages", program, message, fix, ("returned", returned, EvidenceSource::Resident)))
    }

    /// How to stop the kernel from moving pages back and forth.
    pub(super) fn churn_advice(&self) -> String {
        format!(
            "{}. If threads on several nodes use the same pages in turn, no placement suits for long: give each thread its own part, \
             or spread the pages and keep them there: numactl --interleave=all CMD (the balancing leaves memory with a policy alone). \
             Whether the balancing pays off: firsttouch balancing measure -- CMD; switching it off for the whole system needs root: firsttouch balancing off",
            capital(&self.pin_advice(None))
        )
    }

    /// ` (each may run on CPUs 0-3)`, if the list is the same for all threads.
    fn allowed(&self) -> String {
        let mut lists: Vec<&str> = self.profile.threads.iter().filter_map(|t| t.allowed_cpus.as_deref()).collect();
        lists.sort_unstable();
        lists.dedup();
        if let [one] = lists.as_slice() { format!(" (each may run on CPUs {one})") } else { String::new() }
    }
}

/// `31 % [20, 44]`.
fn share(estimate: Estimate) -> String {
    format!("{} [{}, {}]", super::text::percent(estimate.value), super::text::digits(estimate.low), super::text::digits(estimate.high))
}
