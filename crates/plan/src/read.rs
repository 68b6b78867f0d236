//! Reads a plan from its text. An error names its line.

use crate::check::{EntryFault, PlanFault, check, check_all};
use crate::{
    Blocks, Entry, Frame, Gain, MOST_NODES, MOST_RANKS, MOST_THREADS, Module, Origin, Plan, Policy, RankNodes, SCHEMA, Site, Threads,
};
use firsttouch_model::shown::one_line;
use serde::Deserialize;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use toml::Spanned;

/// The fault, and its line (from 1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanError {
    pub line: usize,
    pub kind: PlanErrorKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanErrorKind {
    /// The text is not TOML, or a value has the wrong type.
    Toml(String),
    /// The schema is not that of plans.
    Schema(String),
    NodeCount,
    ThreadCount,
    Pin {
        text: String,
        reason: String,
    },
    /// Ranks without nodes, with nodes that do not exist, or too many.
    Ranks,
    /// A predicted gain that is not a finite number.
    Gain,
    /// An entry with frames and a symbol, or with neither.
    Origin {
        what: String,
    },
    /// A key that the policy of the entry does not use.
    ForeignKey {
        key: &'static str,
        policy: String,
    },
    BindWithoutNodes,
    PreferredNodes,
    UnknownPolicy(String),
    Entry {
        what: String,
        fault: EntryFault,
    },
    Plan(PlanFault),
}

impl fmt::Display for PlanErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sentence = match self {
            Self::Toml(message) => message.clone(),
            Self::Schema(found) => format!("this is not a plan of firsttouch: schema is '{found}', expected '{SCHEMA}'"),
            Self::NodeCount => format!("nodes must be 1 to {MOST_NODES}"),
            Self::ThreadCount => format!("count must be 1 to {MOST_THREADS}"),
            Self::Pin { text, reason } => format!("pin = '{text}': {reason}, or none"),
            Self::Ranks => {
                format!("of_rank lists the nodes of each rank, below nodes, for 1 to {MOST_RANKS} ranks: nodes = 2, of_rank = [[0], [1]]")
            }
            Self::Gain => "a predicted gain is a finite number".to_owned(),
            Self::Origin { what } => format!("'{what}' needs either frames or a symbol"),
            Self::ForeignKey { key, policy } => format!("'{key}' does not go with policy \"{policy}\": delete that line"),
            Self::BindWithoutNodes => "policy \"bind\" needs nodes".to_owned(),
            Self::PreferredNodes => "policy \"preferred\" needs one node: nodes = [0]".to_owned(),
            Self::UnknownPolicy(name) => format!("no policy '{name}': expected {}", POLICIES.join(", ")),
            Self::Entry { what, fault } => format!("'{what}': {fault}"),
            Self::Plan(fault) => fault.to_string(),
        };
        // Names in it come from the file.
        f.write_str(&one_line(&sentence))
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.kind)
    }
}

impl std::error::Error for PlanError {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileText {
    schema: Spanned<String>,
    #[serde(default)]
    made_from: String,
    #[serde(default)]
    judged_on: String,
    #[serde(default)]
    command: Vec<String>,
    nodes: Spanned<u32>,
    #[serde(default = "default_least_bytes")]
    least_bytes: u64,
    predicted_gain: Option<Spanned<GainText>>,
    #[serde(default)]
    left_alone: Vec<String>,
    threads: Option<Spanned<ThreadsText>>,
    ranks: Option<Spanned<RanksText>>,
    #[serde(default)]
    module: Vec<ModuleText>,
    #[serde(default)]
    place: Vec<Spanned<PlaceText>>,
}

/// The default lower bound for recorded allocations in `firsttouch profile`.
fn default_least_bytes() -> u64 {
    64 << 10
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ThreadsText {
    count: Spanned<u32>,
    #[serde(default)]
    idle: Vec<u32>,
    pin: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RanksText {
    nodes: u32,
    of_rank: Vec<Vec<u32>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ModuleText {
    name: String,
    path: String,
    #[serde(default)]
    build_id: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GainText {
    value: f64,
    low: f64,
    high: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlaceText {
    what: String,
    #[serde(default)]
    at: String,
    #[serde(default)]
    bytes: u64,
    policy: Spanned<String>,
    nodes: Option<Spanned<Vec<u32>>>,
    threads: Option<Spanned<Vec<u32>>>,
    until: Option<Spanned<Vec<f64>>>,
    period_bytes: Option<Spanned<f64>>,
    rows: Option<Spanned<u32>>,
    #[serde(default)]
    small_pages: bool,
    #[serde(default)]
    reason: String,
    predicted_gain: Option<Spanned<GainText>>,
    symbol: Option<SymbolText>,
    #[serde(rename = "site")]
    _site: Option<String>,
    call: Option<String>,
    ordinal: Option<OrdinalText>,
    #[serde(default)]
    shares_lines: bool,
    frames: Option<Spanned<Vec<FrameText>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SymbolText {
    module: String,
    name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OrdinalText {
    first: u32,
    every: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FrameText {
    module: String,
    offset: Option<u64>,
    #[serde(default)]
    copies: Vec<(u64, u64)>,
    #[serde(default)]
    inlined: bool,
    #[serde(default)]
    function: String,
    #[serde(default)]
    file: String,
    #[serde(default)]
    line: u32,
}

impl FromStr for Plan {
    type Err = PlanError;

    fn from_str(text: &str) -> Result<Self, PlanError> {
        let lines = Lines { text };
        let file: FileText = toml::from_str(text).map_err(|error| {
            let message = error.message().lines().collect::<Vec<_>>().join("; ");
            // Replace serde's terms by those of TOML.
            let message = message
                .replace("expected a sequence", "expected a list, such as [0, 1]")
                .replace("expected u64", "expected a whole number");
            lines.error(&error.span().unwrap_or(0..0), PlanErrorKind::Toml(message.replace("expected u32", "expected a whole number")))
        })?;
        if file.schema.get_ref() != SCHEMA {
            return Err(lines.error(&file.schema.span(), PlanErrorKind::Schema(file.schema.get_ref().clone())));
        }
        if !(1..=MOST_NODES).contains(file.nodes.get_ref()) {
            return Err(lines.error(&file.nodes.span(), PlanErrorKind::NodeCount));
        }
        let threads = file.threads.map(|threads| lines.threads(threads)).transpose()?.unwrap_or_default();
        let mut plan = Self {
            made_from: file.made_from,
            judged_on: file.judged_on,
            command: file.command,
            nodes: file.nodes.into_inner(),
            least_bytes: file.least_bytes,
            gain: file.predicted_gain.map(|gain| lines.gain(gain)).transpose()?,
            threads,
            modules: file.module.into_iter().map(|m| Module { name: m.name, path: m.path, build_id: m.build_id }).collect(),
            entries: Vec::with_capacity(file.place.len()),
            ranks: file.ranks.map(|ranks| lines.ranks(ranks)).transpose()?,
            left_alone: file.left_alone,
        };
        for place in file.place {
            let span = place.span();
            let entry = lines.entry(place)?;
            check(&entry, &plan).map_err(|fault| lines.error(&span, PlanErrorKind::Entry { what: entry.what.clone(), fault }))?;
            plan.entries.push(entry);
        }
        check_all(&plan).map_err(|fault| {
            let is_key = |line: &str| fault.key().is_some_and(|key| line.trim_start().starts_with(key));
            let at = text.split_inclusive('\n').scan(0, |at, line| Some((std::mem::replace(at, *at + line.len()), line)));
            let found = at.filter(|(_, line)| is_key(line)).map(|(at, _)| at).next().unwrap_or(0);
            lines.error(&(found..found), PlanErrorKind::Plan(fault))
        })?;
        plan.make_names_safe();
        Ok(plan)
    }
}

const POLICIES: [&str; 6] = ["bind", "preferred", "interleave", "weighted", "blocked", "leave"];

struct Lines<'a> {
    text: &'a str,
}

impl Lines<'_> {
    fn error(&self, span: &Range<usize>, kind: PlanErrorKind) -> PlanError {
        let before = self.text.as_bytes().get(..span.start).unwrap_or(self.text.as_bytes());
        PlanError { line: before.iter().filter(|byte| **byte == b'\n').count() + 1, kind }
    }

    fn ranks(&self, ranks: Spanned<RanksText>) -> Result<RankNodes, PlanError> {
        let span = ranks.span();
        let RanksText { nodes, of_rank } = ranks.into_inner();
        let is_right = |list: &Vec<u32>| !list.is_empty() && list.iter().all(|node| *node < nodes);
        if !(1..=MOST_NODES).contains(&nodes) || !(1..=MOST_RANKS).contains(&of_rank.len()) || !of_rank.iter().all(is_right) {
            return Err(self.error(&span, PlanErrorKind::Ranks));
        }
        Ok(RankNodes { nodes, of_rank })
    }

    fn threads(&self, text: Spanned<ThreadsText>) -> Result<Threads, PlanError> {
        let ThreadsText { count, mut idle, pin } = text.into_inner();
        if !(1..=MOST_THREADS).contains(count.get_ref()) {
            return Err(self.error(&count.span(), PlanErrorKind::ThreadCount));
        }
        let span = pin.span();
        let pin = match pin.get_ref().as_str() {
            "none" => None,
            text => Some(text.parse().map_err(|error: firsttouch_model::ExpressionError| {
                self.error(&span, PlanErrorKind::Pin { text: text.to_owned(), reason: error.reason })
            })?),
        };
        idle.sort_unstable();
        idle.dedup();
        Ok(Threads { count: count.into_inner(), idle, pin })
    }

    fn gain(&self, text: Spanned<GainText>) -> Result<Gain, PlanError> {
        let span = text.span();
        let GainText { value, low, high } = text.into_inner();
        if [value, low, high].iter().all(|number| number.is_finite()) {
            Ok(Gain { value, low, high })
        } else {
            Err(self.error(&span, PlanErrorKind::Gain))
        }
    }

    fn entry(&self, text: Spanned<PlaceText>) -> Result<Entry, PlanError> {
        let span = text.span();
        let text = text.into_inner();
        let origin = match (text.symbol, text.frames) {
            (Some(symbol), None) => Origin::Symbol { module: symbol.module, name: symbol.name },
            (None, Some(frames)) => Origin::Site(Site {
                call: text.call.unwrap_or_default(),
                frames: frames.into_inner().into_iter().map(frame).collect(),
                ordinal: text.ordinal.map(|ordinal| (ordinal.first, ordinal.every)),
                shares_lines: text.shares_lines,
            }),
            _ => return Err(self.error(&span, PlanErrorKind::Origin { what: text.what })),
        };
        let blocked = text.policy.get_ref() == "blocked";
        let foreign = [
            (text.threads.as_ref().map(Spanned::span), "threads", blocked),
            (text.until.as_ref().map(Spanned::span), "until", blocked),
            (text.period_bytes.as_ref().map(Spanned::span), "period_bytes", blocked),
            (text.rows.as_ref().map(Spanned::span), "rows", blocked),
            (text.nodes.as_ref().map(Spanned::span), "nodes", !blocked && text.policy.get_ref() != "leave"),
        ];
        for (span, name, belongs) in foreign {
            if let Some(span) = span.filter(|_| !belongs && POLICIES.contains(&text.policy.get_ref().as_str())) {
                return Err(self.error(&span, PlanErrorKind::ForeignKey { key: name, policy: text.policy.get_ref().clone() }));
            }
        }
        let one = text.nodes.as_ref().map(|nodes| nodes.get_ref().len());
        let nodes_at = text.nodes.as_ref().map_or(span.clone(), Spanned::span);
        let nodes = text.nodes.map(Spanned::into_inner).unwrap_or_default();
        let policy = match text.policy.get_ref().as_str() {
            "bind" if nodes.is_empty() => return Err(self.error(&nodes_at, PlanErrorKind::BindWithoutNodes)),
            "bind" => Policy::Bind(nodes),
            "preferred" if one == Some(1) => Policy::Preferred(nodes[0]),
            "preferred" => return Err(self.error(&nodes_at, PlanErrorKind::PreferredNodes)),
            "interleave" => Policy::Interleave(nodes),
            "weighted" => Policy::Weighted(nodes),
            "blocked" => Policy::Blocked(Blocks {
                threads: text.threads.map(Spanned::into_inner).unwrap_or_default(),
                until: text.until.map(Spanned::into_inner).unwrap_or_default(),
                period_bytes: text.period_bytes.map(Spanned::into_inner),
                rows: text.rows.map_or(1, Spanned::into_inner),
            }),
            "leave" => Policy::Leave,
            other => {
                return Err(self.error(&text.policy.span(), PlanErrorKind::UnknownPolicy(other.to_owned())));
            }
        };
        Ok(Entry {
            what: text.what,
            at: text.at,
            bytes: text.bytes,
            policy,
            small_pages: text.small_pages,
            reason: text.reason,
            gain: text.predicted_gain.map(|gain| self.gain(gain)).transpose()?,
            origin,
        })
    }
}

fn frame(text: FrameText) -> Frame {
    Frame {
        module: text.module,
        offset: text.offset,
        copies: text.copies,
        inlined: text.inlined,
        function: text.function,
        file: text.file,
        line: text.line,
    }
}
