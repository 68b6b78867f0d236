//! Other objects that the same code initialises. A loop that is divided as one of them is used gives the others the same parts, which may be wrong for
//! them.

use super::super::{Case, Context};
use super::team;
use crate::code::fortran::Fortran;
use crate::code::regions::File;
use crate::names::Language;
use crate::partition::Order;
use crate::{CodeLocation, PartitionKind};
use std::ops::RangeInclusive;

/// A line with less than this part of an object's first touches does not initialise it.
const LITTLE_TOUCHED: f64 = 0.1;
/// With so many samples for each thread, a thread that uses an object is not missing from them.
const SAMPLES_A_THREAD: usize = 8;
/// Objects that are named one by one.
const MOST_NAMED: usize = 3;

impl Context<'_> {
    /// What else these lines initialise that is used in other parts than this object: `b (used by 8 threads)`.
    pub(super) fn used_otherwise(&self, case: &Case<'_>, path: &str, lines: &RangeInclusive<u32>) -> Option<String> {
        let is_in = |place: &CodeLocation| place.file.as_deref() == Some(path) && place.line.is_some_and(|line| lines.contains(&line));
        let is_touched_here =
            |other: &&Case<'_>| other.view.first_touch.at.iter().any(|place| place.share >= LITTLE_TOUCHED && is_in(place));
        let is_other = |other: &&Case<'_>| {
            let is_same = other.subject.group == case.subject.group || case.view.together.contains(&other.view.id);
            !is_same && other.object.process == case.object.process && other.subject.reason.is_none()
        };
        let others = self.cases.iter().filter(is_other).filter(is_touched_here).filter(|other| self.are_divided_otherwise(case, other));
        let names: Vec<String> = others.take(MOST_NAMED).map(|other| self.with_users(other)).collect();
        (!names.is_empty()).then(|| names.join(", "))
    }

    /// The same for the loop around the line that first touches the object.
    pub(super) fn used_otherwise_at_touch(&self, case: &Case<'_>) -> Option<String> {
        let (path, line) = case.view.first_touch.at.first().and_then(|place| place.file.as_deref().zip(place.line))?;
        self.used_otherwise(case, path, &self.loop_around(path, line).unwrap_or(line..=line))
    }

    fn loop_around(&self, path: &str, line: u32) -> Option<RangeInclusive<u32>> {
        let sources = self.places.sources;
        match Language::of(path)? {
            Language::C | Language::Cpp => {
                let file = File::read(sources, path)?;
                let one = file.loops_on(line).into_iter().next()?;
                Some(file.tokens.get(one.start)?.line..=file.tokens.get(one.end.checked_sub(1)?)?.line)
            }
            Language::Fortran => Fortran::read(sources, path)?.loops_on(line)?.first().map(|one| one.first..=one.last),
            Language::Rust | Language::Python => None,
        }
    }

    fn with_users(&self, other: &Case<'_>) -> String {
        let users = other.subject.users(self.threads).len();
        let by = match other.subject.partition.order() {
            _ if other.subject.partition.kind == PartitionKind::Single => "one thread".to_owned(),
            Order::Ascending => format!("{users} threads"),
            _ => format!("{users} threads in another order"),
        };
        format!("{} (used by {by})", other.view.name)
    }

    fn are_divided_otherwise(&self, case: &Case<'_>, other: &Case<'_>) -> bool {
        let (own, others) = (&case.subject.partition, &other.subject.partition);
        match others.kind {
            // Wherever their pages are, some accesses are remote.
            PartitionKind::Shared | PartitionKind::Irregular | PartitionKind::Unknown => return false,
            kind if kind != own.kind => return true,
            _ if others.order() != own.order() => return true,
            _ => {}
        }
        let clause = |case: &Case<'_>| {
            let directives = team::directives_at_use(self, case);
            let parallel = directives.iter().rfind(|one| one.has("parallel"))?;
            Some(["num_threads", "schedule", "collapse"].map(|word| parallel.clause(word).map(str::to_owned)))
        };
        if let (Some(one), Some(two)) = (clause(case), clause(other))
            && one != two
        {
            return true;
        }
        let count = |case: &Case<'_>| {
            let users = case.subject.users(self.threads).len();
            (case.hits.len() >= SAMPLES_A_THREAD * users).then_some(users)
        };
        matches!((count(case), count(other)), (Some(one), Some(two)) if one != two)
    }
}
