//! The result of an examination. The names of the fields are the keys of the JSON (docs/doctor.md).

use crate::rank::RankBinding;
use crate::seen::Seen;
use firsttouch_model::facts::{OpenMp, Program};
use serde::Serialize;

/// The effect of a finding on placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Memory will be on the wrong node, or firsttouch sees nothing.
    High,
    /// Memory may be on the wrong node, or a part of the evidence is missing.
    Medium,
    /// Worth knowing if figures are unexpected.
    Low,
}

/// A fact and its source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// A file, a variable, or a system call.
    pub source: String,
    pub value: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub id: &'static str,
    pub severity: Severity,
    /// The fact, and its effect on placement.
    pub message: String,
    pub evidence: Vec<Evidence>,
    /// What to do, with the exact command if there is one.
    pub remedy: String,
}

/// A check that was left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    pub id: &'static str,
    pub reason: &'static str,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Diagnosis {
    pub nodes: usize,
    pub program: Option<Program>,
    /// What a launcher of ranks gave this process, if it is a rank.
    pub rank: Option<RankBinding>,
    /// Most severe first.
    pub findings: Vec<Finding>,
    /// The checks that were made.
    pub checked: Vec<&'static str>,
    pub left_out: Vec<LeftOut>,
    /// What every check saw.
    pub seen: Vec<Seen>,
    pub doubts: Vec<String>,
}

impl Finding {
    pub(crate) fn new(id: &'static str, severity: Severity, message: String) -> Self {
        Self { id, severity, message, evidence: Vec::new(), remedy: String::new() }
    }

    pub(crate) fn seen(mut self, source: impl Into<String>, value: impl ToString) -> Self {
        self.evidence.push(Evidence { source: source.into(), value: value.to_string() });
        self
    }

    pub(crate) fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = remedy.into();
        self
    }
}

/// The program's OpenMP runtime, as in the JSON.
#[must_use]
pub fn openmp_word(openmp: OpenMp) -> &'static str {
    match openmp {
        OpenMp::Gnu => "gnu",
        OpenMp::Llvm => "llvm",
        OpenMp::None => "none",
        OpenMp::Unknown => "unknown",
    }
}
