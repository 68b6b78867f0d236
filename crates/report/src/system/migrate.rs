//! `firsttouch migrate` as text and JSON.

use super::{Lines, by_node, row};
use crate::text::Style;
use crate::text::layout::clean;
use crate::text::words::thousands;
use crate::topology::table::Align::{Left, Right};
use firsttouch_model::format_bytes;
use firsttouch_model::system::{ByNode, ProcessMaps};
use firsttouch_model::topology::{Topology, format_list};
use firsttouch_placement::move_pages::{Migrated, Rule, reason};
use serde::Serialize;

const GIB: f64 = 1_073_741_824.0;

/// The target of the migration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MigrateTarget {
    /// `to`, `interleave`, `used`.
    pub kind: &'static str,
    pub nodes: Vec<u32>,
}

/// Pages that could not move.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NotMoved {
    pub errno: i32,
    pub name: String,
    pub reason: &'static str,
    pub pages: u64,
}

/// The JSON of `firsttouch migrate`.
#[derive(Clone, Debug, Serialize)]
pub struct MigrateJson {
    pub schema: &'static str,
    pub pid: i32,
    pub name: String,
    /// The nodes of the machine.
    pub nodes: Vec<u32>,
    /// Null on a machine with one node.
    pub target: Option<MigrateTarget>,
    /// Resident bytes by node before the migration.
    pub before: Option<ByNode>,
    pub moved_pages: u64,
    pub moved_bytes: u64,
    /// Pages that were already on their target node.
    pub there_pages: u64,
    pub there_bytes: u64,
    /// Bytes moved, by source node and by target node.
    pub from: ByNode,
    pub to: ByNode,
    pub seconds: f64,
    /// Null if no page moved.
    pub gib_per_s: Option<f64>,
    pub failed: Vec<NotMoved>,
    /// Whether the process ended during the migration.
    pub ended: bool,
    pub notes: Vec<String>,
}

impl MigrateTarget {
    #[must_use]
    pub fn of(rule: &Rule) -> Self {
        match rule {
            Rule::To(nodes) => Self { kind: "to", nodes: nodes.clone() },
            Rule::Interleave(nodes) => Self { kind: "interleave", nodes: nodes.clone() },
        }
    }

    #[must_use]
    pub fn used() -> Self {
        Self { kind: "used", nodes: Vec::new() }
    }

    #[must_use]
    pub fn planned() -> Self {
        Self { kind: "plan", nodes: Vec::new() }
    }
}

impl MigrateJson {
    /// The state before any page moved.
    #[must_use]
    pub fn new(maps: &ProcessMaps, machine: &Topology) -> Self {
        Self {
            schema: "firsttouch.migrate/1",
            pid: maps.pid,
            name: maps.name.clone(),
            nodes: machine.nodes.iter().map(|node| node.id).collect(),
            target: None,
            before: maps.memory.nodes.clone(),
            moved_pages: 0,
            moved_bytes: 0,
            there_pages: 0,
            there_bytes: 0,
            from: ByNode::new(),
            to: ByNode::new(),
            seconds: 0.0,
            gib_per_s: None,
            failed: Vec::new(),
            ended: false,
            notes: Vec::new(),
        }
    }

    /// Adds the outcome.
    pub fn add(&mut self, done: &Migrated, seconds: f64) {
        (self.moved_pages, self.moved_bytes) = (done.moved, done.moved_bytes);
        (self.there_pages, self.there_bytes) = (done.there, done.there_bytes);
        (self.from, self.to) = (done.from.clone(), done.to.clone());
        self.seconds = seconds;
        self.gib_per_s = (done.moved > 0 && seconds > 0.0).then(|| done.moved_bytes as f64 / GIB / seconds);
        self.failed = done
            .failed
            .iter()
            .map(|(&errno, &pages)| {
                let (name, reason) = reason(errno);
                NotMoved { errno, name, reason, pages }
            })
            .collect();
        self.ended = done.ended;
    }
}

/// The outcome as text.
#[must_use]
pub fn migrate_text(json: &MigrateJson, style: Style) -> String {
    let mut out = Lines::new(style);
    out.heading(&clean(&format!("{} ({})", json.name, json.pid)));
    if let Some(before) = &json.before {
        out.sentence(&format!("memory before: {}", by_node(before)));
    }
    if let Some(target) = &json.target {
        let nodes = format!("node{} {}", if target.nodes.len() == 1 { "" } else { "s" }, format_list(&target.nodes));
        let wanted = match target.kind {
            "to" => format!("to {nodes}"),
            "interleave" => format!("interleaved over {nodes}"),
            "plan" => "to their nodes in the plan".to_owned(),
            _ => "to the nodes that use them".to_owned(),
        };
        let rate = json.gib_per_s.map_or(String::new(), |rate| format!(", {rate:.2} GiB/s"));
        let mut rows = vec![vec![
            "moved".to_owned(),
            thousands(json.moved_pages),
            format_bytes(json.moved_bytes),
            format!("{wanted}, in {:.2} s{rate}", json.seconds),
        ]];
        rows.push(vec!["stayed".to_owned(), thousands(json.there_pages), format_bytes(json.there_bytes), "were there".to_owned()]);
        for failed in &json.failed {
            rows.push(vec!["not moved".to_owned(), thousands(failed.pages), String::new(), format!("{}: {}", failed.name, failed.reason)]);
        }
        rows.insert(0, row(["", "pages", "size", ""]));
        out.table(&rows, &[Left, Right, Right, Left]);
        if !json.to.is_empty() {
            out.sentence(&format!("moved from: {}", by_node(&json.from)));
            out.sentence(&format!("moved to: {}", by_node(&json.to)));
        }
    }
    if json.ended {
        out.sentence("The process ended meanwhile.");
    }
    for note in &json.notes {
        out.sentence(note);
    }
    out.text()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check the text of a migration: counts, rate and reasons, and its width.
    #[test]
    fn outcomes_are_told() {
        let maps = ProcessMaps { pid: 7, name: "solver".into(), ..ProcessMaps::default() };
        let mut json = MigrateJson::new(&maps, &Topology::default());
        json.target = Some(MigrateTarget::of(&Rule::To(vec![1])));
        // EBUSY, ENOMEM, EACCES.
        let failed = [(16, 2), (12, 3), (13, 1_000_000)].into();
        let done = Migrated { moved: 262_144, moved_bytes: 1 << 30, there: 1, there_bytes: 4096, failed, ..Migrated::default() };
        json.add(&done, 0.5);
        let text = migrate_text(&json, Style { width: 80, colour: false });
        for words in ["solver (7)", "262,144", "to node 1, in 0.50 s, 2.00 GiB/s", "EBUSY: busy", "1,000,000", "EACCES: other processes"] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
        assert_eq!(serde_json::to_value(&json).unwrap()["failed"][0]["name"], "ENOMEM");
    }
}
