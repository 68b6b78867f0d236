//! The samples of a profile in the formats of other tools (`firsttouch export`).
//!
//! | file | format |
//! |---|---|
//! | `folded.rs` | folded stacks: flamegraph.pl, inferno, speedscope |
//! | `pprof.rs`, `protobuf.rs` | pprof: `go tool pprof`, and web viewers |
//! | `callgrind.rs` | callgrind: KCachegrind, callgrind_annotate |
//! | `firefox.rs` | the Firefox Profiler |
//! | `csv.rs` | a row for each sample |
//! | `parquet.rs` | a row for each sample or each object, with types |
//! | `limits.rs` | how long names, stacks and texts may be |
//!
//! Values are whole numbers in all of them. They are rounded so that their sum is that of the profile ([`Rounded`]). Uncertainty is in comments and labels,
//! never in values.

mod callgrind;
mod csv;
mod firefox;
mod folded;
mod limits;
pub mod parquet;
mod pprof;
mod protobuf;

pub use callgrind::callgrind;
pub use csv::csv;
pub use firefox::firefox;
pub use folded::folded;
pub use pprof::{is_pprof, pprof};

use crate::text::words::{interval, percent};
use firsttouch_analysis::pictures::{AccessSample, AccessSamples, Timeline};
use firsttouch_analysis::{Analysis, ObjectView};
use firsttouch_model::rows::{Frame, Id};
use firsttouch_symbols::readable_function;
use limits::name;
use std::collections::BTreeMap;

/// Bytes of one access, as watchpoints and loops count them.
pub const WORD: u64 = 8;

/// What is exported.
#[derive(Clone, Copy)]
pub struct Export<'a> {
    pub analysis: &'a Analysis,
    pub samples: &'a AccessSamples,
    pub timeline: Option<&'a Timeline>,
    /// Seconds from the epoch to the start of the program, if that is known.
    pub start_unix_s: Option<u64>,
}

/// What a value counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counted {
    #[default]
    Accesses,
    RemoteAccesses,
    Bytes,
    RemoteBytes,
}

impl Counted {
    pub const ALL: [Self; 4] = [Self::Accesses, Self::RemoteAccesses, Self::Bytes, Self::RemoteBytes];

    /// Its name and unit, as pprof has them.
    #[must_use]
    pub const fn name(self) -> (&'static str, &'static str) {
        match self {
            Self::Accesses => ("accesses", "count"),
            Self::RemoteAccesses => ("remote_accesses", "count"),
            Self::Bytes => ("bytes", "bytes"),
            Self::RemoteBytes => ("remote_bytes", "bytes"),
        }
    }
}

/// Rounds numbers so that their sum is that of the exact ones: what one loses by rounding, the next gets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rounded {
    rest: f64,
}

impl Rounded {
    pub fn next(&mut self, exact: f64) -> u64 {
        let wanted = exact.max(0.0) + self.rest;
        let whole = wanted.round().max(0.0);
        self.rest = wanted - whole;
        whole as u64
    }
}

/// A sample with whole numbers.
pub struct Whole<'a> {
    pub sample: &'a AccessSample,
    pub accesses: u64,
    pub remote: u64,
}

impl Whole<'_> {
    #[must_use]
    pub fn value(&self, counted: Counted) -> u64 {
        match counted {
            Counted::Accesses => self.accesses,
            Counted::RemoteAccesses => self.remote,
            Counted::Bytes => self.accesses.saturating_mul(WORD),
            Counted::RemoteBytes => self.remote.saturating_mul(WORD),
        }
    }
}

impl<'a> Export<'a> {
    /// The samples with whole numbers, in their order.
    #[must_use]
    pub fn whole(&self) -> Vec<Whole<'a>> {
        let mut all = Rounded::default();
        self.samples
            .list
            .iter()
            .map(|sample| {
                let accesses = all.next(sample.accesses);
                let remote = if sample.is_remote() == Some(true) { accesses } else { 0 };
                Whole { sample, accesses, remote }
            })
            .collect()
    }

    /// Objects by id.
    #[must_use]
    pub fn objects(&self) -> BTreeMap<Id, &'a ObjectView> {
        self.analysis.objects.iter().map(|object| (object.id, object)).collect()
    }

    /// The frames of a sample, leaf first. Of a deep stack, those next to the leaf, and one frame for the others.
    #[must_use]
    pub fn stack(&self, sample: &AccessSample) -> Vec<&'a Frame> {
        self.stack_of(sample.site)
    }

    fn stack_of(&self, site: Option<Id>) -> Vec<&'a Frame> {
        limits::stack(site.and_then(|site| self.samples.stacks.get(&site)).map_or(&[], Vec::as_slice))
    }

    /// What values do not say: the uncertainty, and what the samples are.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        let analysis = self.analysis;
        let mut remarks = vec![format!("firsttouch {}: {}", env!("CARGO_PKG_VERSION"), name(&analysis.command.join(" ")))];
        let source = self.samples.source.as_ref().map_or("none", |source| source.as_str());
        remarks.push(format!("accesses: estimated from {} samples (source: {source}), 8 bytes each", self.samples.list.len()));
        remarks.push(format!("judged on {}", name(&analysis.machine.name)));
        if let Some((value, range)) = analysis.remote_fraction.zip(analysis.remote_interval) {
            let words = format!(
                "remote accesses: {} {} (95 % interval) of those to objects larger than a core's cache",
                percent(value),
                interval(range)
            );
            remarks.push(words.replace(crate::text::layout::GLUE, " "));
        }
        let verdict = analysis.verdict_view();
        remarks.push(format!("verdict: {}", verdict.outcome));
        remarks.extend(verdict.causes.iter().map(|cause| name(cause)));
        remarks
    }

    /// The name of an object; objects that the report does not list have only a number.
    #[must_use]
    pub fn object_name(objects: &BTreeMap<Id, &ObjectView>, id: Id) -> String {
        objects.get(&id).map_or_else(|| format!("object {id}"), |object| name(&object.name))
    }
}

/// The function of a frame, or what else is known of it.
#[must_use]
pub fn function(frame: &Frame) -> String {
    match (&frame.function, &frame.module, frame.offset) {
        (Some(function), ..) => name(&readable_function(&limits::cut(function))),
        (None, Some(module), Some(offset)) => name(&format!("{}+{offset:#x}", limits::cut(crate::text::place::file_name(module)))),
        (None, Some(module), None) => name(crate::text::place::file_name(module)),
        (None, None, _) => format!("{:#x}", frame.address),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that rounded numbers sum up to the rounded sum.
    #[test]
    fn sums_are_kept() {
        let exact: Vec<f64> = (0..1000).map(|at| f64::from(at) * 0.317).collect();
        let mut rounded = Rounded::default();
        let sum: u64 = exact.iter().map(|one| rounded.next(*one)).sum();
        assert!((sum as f64 - exact.iter().sum::<f64>()).abs() <= 0.5 + 1e-6);
    }
}
