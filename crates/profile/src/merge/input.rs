//! What is merged: profiles, or the parts of profiles that were merged before. They are looked at first, and read when it is their turn.

use super::places::{after, extent, last_of_list, last_of_policy, out_of_merged};
use crate::large;
use crate::reader::{has_table, owner, rows, with_connection};
use crate::slice::{Kind, Slice};
use crate::{foreign, small};
use firsttouch_model::error::{Context, Result};
use firsttouch_model::rows::{Host, Owner, Part, Profile, RankPlace, SourceFile};
use rusqlite::Connection;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A profile, or a part of a merged one.
#[derive(Debug)]
pub struct Input {
    pub file: PathBuf,
    slice: Slice,
    /// Where its CPUs and nodes are in the file, and by how much its times were shifted; `None`: it is not a part of a merged profile.
    merged: Option<(Host, i64)>,
    /// Numbers of nodes and CPUs that its host takes.
    pub nodes: u32,
    pub cpus: u32,
    /// The process number of its first process.
    pid: Option<i32>,
    /// As it will be in the merged profile, without numbers.
    pub part: Part,
}

/// The parts of a file, and the source files that its frames name.
pub struct Looked {
    pub inputs: Vec<Input>,
    pub source_files: BTreeMap<String, SourceFile>,
    pub owner: Owner,
}

/// Looks at a file.
///
/// # Errors
/// When it is not a readable profile.
pub fn look(file: &Path) -> Result<Looked> {
    with_connection(file, |c| {
        let mut recording = small::load_recording(c)?;
        foreign::check_nodes(&recording)?;
        foreign::check_parts(&recording)?;
        let source_files = std::mem::take(&mut recording.source_files);
        let owner = owner(file, &recording.meta);
        let inputs = if recording.parts.is_empty() { vec![whole(c, file, recording)?] } else { parts(c, file, recording)? };
        Ok(Looked { inputs, source_files, owner })
    })
}

fn whole(c: &Connection, file: &Path, recording: Profile) -> Result<Input> {
    let (nodes, cpus) = extents(c, &recording)?;
    let Profile { mut meta, machine, evidence, lost, counters, .. } = recording;
    meta.variables.clear();
    let source = file.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let part = Part { place: meta.rank.clone(), source, meta, machine, evidence, lost, counters, ..Part::default() };
    Ok(Input { file: file.to_owned(), slice: Slice::ALL, merged: None, nodes, cpus, pid: pid(c, &Slice::ALL)?, part })
}

fn parts(c: &Connection, file: &Path, recording: Profile) -> Result<Vec<Input>> {
    let slices = Slice::of_parts(&recording.parts);
    let of_hosts = recording.parts.into_iter().zip(slices).filter_map(|(part, slice)| {
        let host = recording.hosts.get(usize::try_from(part.host).ok()?)?.clone();
        Some((part, slice, host))
    });
    let input = |(part, slice, host): (Part, Slice, Host)| {
        let (nodes, cpus, shift_ns, pid) = (host.nodes, host.cpus, part.shift_ns, pid(c, &slice)?);
        Ok(Input { file: file.to_owned(), slice, merged: Some((host, shift_ns)), nodes, cpus, pid, part })
    };
    of_hosts.map(input).collect()
}

/// One more than the largest numbers of a node and of a CPU that a profile has.
fn extents(c: &Connection, recording: &Profile) -> Result<(u32, u32)> {
    let (mut nodes, mut cpus) = extent(&recording.machine);
    for table in ["thread_cpus", "first_touches", "accesses", "samples"] {
        if has_table(c, table)? {
            let last: Vec<Option<u32>> = rows(c, &format!("SELECT max(cpu) FROM {table} WHERE cpu < {}", u32::MAX), |row| row.get(0))?;
            cpus = cpus.max(after(last.into_iter().flatten().max()));
        }
    }
    for table in ["pages", "first_touches", "counters", "bandwidth"] {
        if !has_table(c, table)? {
            continue;
        }
        let last: Vec<Option<u32>> = rows(c, &format!("SELECT max(node) FROM {table} WHERE node >= 0"), |row| row.get(0))?;
        nodes = nodes.max(after(last.into_iter().flatten().max()));
    }
    let texts = |column: &str, table: &str| -> Result<Vec<String>> {
        rows(c, &format!("SELECT DISTINCT {column} FROM {table} WHERE {column} IS NOT NULL"), |row| row.get(0))
    };
    let allowed = texts("allowed_cpus", "threads")?;
    let policies = texts("policy", "policies")?;
    cpus = cpus.max(after(allowed.iter().filter_map(|list| last_of_list(list)).max()));
    nodes = nodes.max(after(policies.iter().filter_map(|policy| last_of_policy(policy)).max()));
    Ok((nodes, cpus))
}

fn pid(c: &Connection, slice: &Slice) -> Result<Option<i32>> {
    let pids = rows(c, &format!("{} LIMIT 1", slice.of("SELECT pid FROM processes", "id", Kind::Process)), |row| row.get(0))?;
    Ok(pids.first().copied())
}

/// What a recording is told by: no two have the same host, process number and start. In the order in which merged profiles have them.
pub type Identity = (String, Option<String>, Option<u32>, Option<u64>, Option<i32>, Option<u64>);

impl Input {
    /// Host, job, rank, start, process number, start by the wall clock.
    pub fn identity(&self) -> Identity {
        let Part { place, meta, machine, .. } = &self.part;
        let job = place.as_ref().and_then(|place: &RankPlace| place.job.clone());
        (machine.hostname.clone(), job, place.as_ref().map(|place| place.rank), meta.start_ns, self.pid, meta.start_unix_s)
    }

    /// The name of the file, and of the part if it is one of several.
    pub fn name(&self) -> String {
        match &self.merged {
            Some(_) => format!("{} (in {})", self.part.source, self.file.display()),
            None => self.file.display().to_string(),
        }
    }

    /// Reads its rows, with CPUs, nodes, times and memory as it was recorded.
    ///
    /// # Errors
    /// When the file is damaged.
    pub fn read(&self) -> Result<(Profile, &Slice)> {
        let profile = with_connection(&self.file, |c| {
            let mut profile = small::load_rows(c, &self.slice, Profile::default())?;
            profile.meta.variables = small::metadata(c)?.variables;
            profile.meta.variables.retain(|site, _| self.slice.range(Kind::Site).contains(site));
            large::load_slice(c, &self.slice, &mut profile)?;
            foreign::check_nodes(&profile)?;
            Ok(profile)
        });
        let mut profile = profile?;
        if let Some((host, shift_ns)) = &self.merged {
            out_of_merged(&mut profile, host, *shift_ns)
                .with_context(|| format!("cannot read profile {}: the file is damaged", self.file.display()))?;
        }
        Ok((profile, &self.slice))
    }
}
