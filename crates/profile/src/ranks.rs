//! Reads and writes the tables of merged profiles: hosts, and parts with what was counted for each as a whole.

use crate::Writer;
use crate::reader::{has_table, rows, unsigned};
use firsttouch_model::error::{Context, Error, Result};
use firsttouch_model::rows::metadata::Metadata;
use firsttouch_model::rows::{FirstIds, Host, Part};
use rusqlite::{Connection, Row, params};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;

impl Writer {
    /// Writes a host of a merged profile.
    pub fn host(&self, host: &Host) -> Result<()> {
        let Host { id, name, first_node, nodes, first_cpu, cpus } = host;
        self.run("INSERT OR REPLACE INTO hosts VALUES (?, ?, ?, ?, ?, ?)", params![id, name, first_node, nodes, first_cpu, cpus])
    }

    /// Writes a part of a merged profile. Its place in the job is that of its metadata.
    pub fn part(&self, part: &Part) -> Result<()> {
        let Part { id, host, place: _, source, shift_ns, first, meta, machine, evidence, lost, counters } = part;
        let FirstIds { process, thread, site, object, touch, window, round, sample, region } = first;
        let meta: BTreeMap<&str, String> = meta.entries().iter().map(|entry| (entry.key(), entry.text())).collect();
        self.run(
            "INSERT OR REPLACE INTO parts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            params![
                id,
                host,
                source,
                shift_ns,
                process,
                thread,
                site,
                object,
                touch,
                window,
                round.cast_signed(),
                sample,
                region,
                json(&meta)?,
                json(machine)?,
                json(evidence)?,
                json(lost)?,
                json(counters)?
            ],
        )
    }
}

fn json(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).context("cannot store a part")
}

/// Early files of version 3, and all of version 2, lack the table.
pub fn hosts(c: &Connection) -> Result<Vec<Host>> {
    if !has_table(c, "hosts")? {
        return Ok(Vec::new());
    }
    rows(c, "SELECT id, name, first_node, nodes, first_cpu, cpus FROM hosts ORDER BY id", |r| {
        Ok(Host { id: r.get(0)?, name: r.get(1)?, first_node: r.get(2)?, nodes: r.get(3)?, first_cpu: r.get(4)?, cpus: r.get(5)? })
    })
}

/// Early files of version 3, and all of version 2, lack the table.
pub fn parts(c: &Connection) -> Result<Vec<Part>> {
    if !has_table(c, "parts")? {
        return Ok(Vec::new());
    }
    let firsts =
        "first_process, first_thread, first_site, first_object, first_touch, first_window, first_round, first_sample, first_region";
    let select = format!("SELECT id, host, source, shift_ns, {firsts}, meta, machine, evidence, lost, counters FROM parts ORDER BY id");
    rows(c, &select, |r| Ok((part(r)?, r.get::<_, String>(13)?, [r.get(14)?, r.get(15)?, r.get(16)?, r.get(17)?])))?
        .into_iter()
        .map(|(part, meta, counted): (Part, String, [String; 4])| with_counts(part, &meta, &counted))
        .collect()
}

fn part(r: &Row<'_>) -> rusqlite::Result<Part> {
    let first = FirstIds {
        process: r.get(4)?,
        thread: r.get(5)?,
        site: r.get(6)?,
        object: r.get(7)?,
        touch: r.get(8)?,
        window: r.get(9)?,
        round: unsigned(r, 10)?,
        sample: r.get(11)?,
        region: r.get(12)?,
    };
    Ok(Part { id: r.get(0)?, host: r.get(1)?, source: r.get(2)?, shift_ns: r.get(3)?, first, ..Part::default() })
}

fn with_counts(part: Part, meta: &str, [machine, evidence, lost, counters]: &[String; 4]) -> Result<Part> {
    let mut own = Metadata::default();
    let entries: BTreeMap<String, String> = read(part.id, "meta", meta)?;
    entries.iter().for_each(|(key, value)| own.set(key, value));
    Ok(Part {
        place: own.rank.clone(),
        meta: own,
        machine: read(part.id, "machine", machine)?,
        evidence: read(part.id, "evidence", evidence)?,
        lost: read(part.id, "lost", lost)?,
        counters: read(part.id, "counters", counters)?,
        ..part
    })
}

fn read<T: DeserializeOwned>(part: i64, column: &str, text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| Error::invalid_data(format!("column {column} of part {part} is not readable: {error}")))
}
