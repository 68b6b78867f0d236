//! Merges the profiles of several recordings, such as the ranks of a job, into one.
//!
//! A merged profile has the rows of all, none left out, with numbers of their own (`numbers.rs`); the CPUs and nodes of each host are its own
//! (`places.rs`). What is counted for a whole recording is kept by part, and the tables have the sums (`recording.rs`). The parts are in one order,
//! whatever the order of the files, and a merged profile is taken apart again (`input.rs`): so merging in steps gives the same as merging all
//! at once.

mod input;
mod numbers;
mod places;
mod recording;
mod rows;

use crate::Writer;
use crate::place::{self, Created, Output};
use firsttouch_model::error::{Context, Error, Result};
use firsttouch_model::rows::{Host, Id, Owner, Part, Profile, SourceFile};
use firsttouch_system::run_directory::RunDirectory;
use input::{Identity, Input};
use numbers::{Next, Spans};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// The nodes that a profile can have, of all hosts together.
pub use crate::foreign::MOST_NODES;

/// A merged profile that was written.
#[derive(Debug, Default)]
pub struct Merged {
    /// The file, and what became of an older one.
    pub created: Created,
    pub hosts: Vec<Host>,
    pub parts: Vec<Part>,
}

/// The profiles that are to be merged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    pub files: Vec<PathBuf>,
    /// Profiles of ranks in which nothing was written: their recorders were killed at once.
    pub empty: Vec<PathBuf>,
}

/// The ending of a directory with the profiles of the ranks of one job.
const DIRECTORY: &str = ".ftp.d";

/// Whether a path is a directory, which may have the profiles of ranks.
#[must_use]
pub fn is_directory(path: &Path) -> bool {
    path.is_dir()
}

/// The merged profile that belongs to a directory of ranks: `x.ftp` of `x.ftp.d`. `None` if it is not named like one.
#[must_use]
pub fn merged_name(directory: &Path) -> Option<PathBuf> {
    let name = directory.file_name()?.to_str()?;
    let stem = name.strip_suffix(DIRECTORY).filter(|stem| !stem.is_empty())?;
    Some(directory.with_file_name(format!("{stem}.ftp")))
}

/// The profiles that files and directories stand for: of a directory, its files `rank-*.ftp`.
///
/// # Errors
/// When a directory cannot be read or has no profiles.
pub fn find(named: &[PathBuf]) -> Result<Found> {
    let mut found = Found::default();
    for path in named {
        if is_directory(path) { of_directory(path, &mut found)? } else { found.files.push(path.clone()) }
    }
    Ok(found)
}

fn of_directory(directory: &Path, found: &mut Found) -> Result<()> {
    let context = || format!("cannot read directory {}", directory.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).with_context(context)? {
        let name = entry.with_context(context)?.file_name();
        if name.as_encoded_bytes().starts_with(b"rank-") && name.as_encoded_bytes().ends_with(b".ftp") {
            files.push(directory.join(name));
        }
    }
    files.sort_unstable();
    let is_empty = |file: &PathBuf| std::fs::metadata(file).is_ok_and(|about| about.len() == 0) && !crate::reader::wal_exists(file);
    let (empty, files): (Vec<_>, Vec<_>) = files.into_iter().partition(is_empty);
    if files.is_empty() {
        let why = if empty.is_empty() { "no profiles of ranks (rank-*.ftp)" } else { "only empty profiles of ranks" };
        return Err(Error::invalid_input(format!("cannot read {}: the directory has {why}", directory.display())));
    }
    found.files.extend(files);
    found.empty.extend(empty);
    Ok(())
}

/// Merges profiles into a new one. It is written beside its place and put there when it is whole; an older one is treated as by
/// [`Writer::create_at`].
///
/// # Errors
/// Names the file that cannot be read, or the recording that is in two files. Nothing is changed then.
pub fn merge_files(files: &[PathBuf], output: &Output) -> Result<Merged> {
    let plan = Plan::of(files)?;
    let draft = Draft::beside(output)?;
    let (hosts, parts) = plan.write(&draft.path)?;
    let (created, older) = place::take(output, |created| {
        let context = || format!("cannot create profile {}", created.path.display());
        put(&draft.path, &created.path).with_context(context)?;
        Ok(created)
    })?;
    if let Some(older) = older.filter(|older| !older.is_kept) {
        let _ = place::remove(&older.path);
    }
    Ok(Merged { created, hosts, parts })
}

/// Where the merged profile of a directory of ranks goes by default: `x.ftp` beside `x.ftp.d`. An older one is kept as `x.ftp.1`. `None` if the directory is
/// not named like one.
#[must_use]
pub fn output_beside(directory: &Path) -> Option<Output> {
    let merged = merged_name(directory)?;
    let folder = merged.parent().map(Path::to_owned).unwrap_or_default();
    Some(Output::Default { name: merged.file_stem()?.to_owned(), folders: vec![folder] })
}

/// Merges the profiles of the ranks in a directory, and says which they were.
///
/// # Errors
/// As [`find`] and [`merge_files`].
pub fn merge_directory(directory: &Path, output: &Output) -> Result<(Merged, Found)> {
    let found = find(&[directory.to_owned()])?;
    Ok((merge_files(&found.files, output)?, found))
}

/// Merges profiles into a file that does not exist yet: one that is removed again.
///
/// # Errors
/// As [`merge_files`]. The file may then be there in part.
pub fn merge_to(files: &[PathBuf], path: &Path) -> Result<Merged> {
    let (hosts, parts) = Plan::of(files)?.write(path)?;
    Ok(Merged { created: Created { path: path.to_owned(), ..Created::default() }, hosts, parts })
}

/// What the name of a draft has behind the name of the file that it becomes.
pub(crate) const DRAFT: &str = ".merging-";

/// A file that is removed unless it was renamed.
struct Draft {
    path: PathBuf,
    /// The directory that it is in, if that is not the one of the result.
    _elsewhere: Option<RunDirectory>,
}

impl Draft {
    /// A new file beside the one that is to be written, or in a temporary directory if none can be made there and the result may be elsewhere too.
    fn beside(output: &Output) -> Result<Self> {
        let name = format!("merging-{}", std::process::id());
        let wanted = match output {
            Output::File(path) => place::beside(path, &format!(".{name}")),
            Output::Default { name: stem, folders } => {
                let stem = stem.to_string_lossy();
                folders.first().cloned().unwrap_or_default().join(format!("{stem}.ftp.{name}"))
            }
        };
        let new = |path: &Path| std::fs::File::options().write(true).create_new(true).open(path).map(drop);
        match (new(&wanted), output) {
            (Ok(()), _) => Ok(Self { path: wanted, _elsewhere: None }),
            (Err(_), Output::Default { .. }) => {
                let folder = RunDirectory::temporary().context("cannot make a temporary directory for the merged profile")?;
                Ok(Self { path: folder.path().join("merged.ftp"), _elsewhere: Some(folder) })
            }
            (Err(error), Output::File(path)) => Err(error).with_context(|| format!("cannot create profile {}", path.display())),
        }
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
        let _ = place::remove_sides(&self.path);
    }
}

/// Puts a whole file in its place, in one step.
fn put(draft: &Path, path: &Path) -> std::io::Result<()> {
    match std::fs::rename(draft, path) {
        Err(error) if error.kind() == std::io::ErrorKind::CrossesDevices => {
            let copy = place::beside(path, &format!(".merging-{}", std::process::id()));
            let copied = std::fs::copy(draft, &copy).and_then(|_| std::fs::rename(&copy, path));
            if copied.is_err() {
                let _ = std::fs::remove_file(&copy);
            }
            copied
        }
        done => done,
    }
}

/// What is merged, in the order of the parts.
struct Plan {
    inputs: Vec<Input>,
    hosts: Vec<Host>,
    source_files: BTreeMap<String, SourceFile>,
    /// Whose they are. The file belongs to whoever merges.
    owner: Owner,
}

impl Plan {
    fn of(files: &[PathBuf]) -> Result<Self> {
        let mut inputs: Vec<(Identity, Input)> = Vec::new();
        let mut source_files: BTreeMap<String, SourceFile> = BTreeMap::new();
        let mut owner = Owner::ROOT;
        for file in files {
            let looked = input::look(file)?;
            owner = owner.and(looked.owner);
            inputs.extend(looked.inputs.into_iter().map(|input| (input.identity(), input)));
            for (path, found) in looked.source_files {
                let kept = source_files.entry(path).or_insert(found);
                // One of two that differ, whatever the order.
                if (found.modified_ns, found.bytes) > (kept.modified_ns, kept.bytes) {
                    *kept = found;
                }
            }
        }
        if inputs.is_empty() {
            return Err(Error::invalid_input("there is nothing to merge: name profiles, or a directory with the profiles of ranks"));
        }
        refuse_repeated(&inputs)?;
        inputs.sort_by(|one, other| one.0.cmp(&other.0));
        let mut inputs: Vec<Input> = inputs.into_iter().map(|(_, input)| input).collect();
        let hosts = number_hosts(&mut inputs)?;
        Ok(Self { inputs, hosts, source_files, owner })
    }

    /// Writes the merged profile: parts are read by one thread and written by another.
    fn write(self, path: &Path) -> Result<(Vec<Host>, Vec<Part>)> {
        let Self { inputs, hosts, source_files, owner } = self;
        let mut writer = Writer::create_draft(path)?;
        let (sender, receiver) = sync_channel(1);
        let written = std::thread::scope(|scope| {
            let (inputs, hosts) = (&inputs, &hosts);
            scope.spawn(move || read_all(inputs, hosts, &sender));
            write_all(receiver, &mut writer)
        });
        let (parts, variables) = written?;
        let mut meta = recording::metadata(&parts, &hosts);
        meta.variables = variables;
        meta.add_maker(owner);
        meta.entries().into_iter().try_for_each(|entry| writer.meta(entry))?;
        writer.machine(&recording::machine(&parts, &hosts))?;
        recording::evidence(&parts).iter().try_for_each(|row| writer.evidence(row))?;
        recording::lost(&parts).iter().try_for_each(|row| writer.lost(&row.source, &row.reason, row.count))?;
        recording::counters(&parts, &hosts).iter().try_for_each(|row| writer.counter(row))?;
        source_files.iter().try_for_each(|(path, file)| writer.source_file(path, file))?;
        hosts.iter().try_for_each(|host| writer.host(host))?;
        parts.iter().try_for_each(|part| writer.part(part))?;
        writer.finish()?;
        Ok((hosts, parts))
    }
}

/// The same recording in two files would count twice.
fn refuse_repeated(inputs: &[(Identity, Input)]) -> Result<()> {
    let mut seen = BTreeMap::new();
    for ((host, _, _, start_ns, pid, start_unix_s), input) in inputs {
        if let Some(other) = seen.insert((host, start_ns, pid, start_unix_s), input) {
            let other: &Input = other;
            let pid = pid.map_or(String::new(), |pid| format!("process {pid} "));
            return Err(Error::invalid_input(format!(
                "cannot merge: {} and {} are the same recording ({pid}on host '{host}')",
                other.name(),
                input.name()
            )));
        }
    }
    Ok(())
}

/// Numbers the hosts, their nodes and CPUs, and the parts, which are in order. Times of hosts are shifted so that their first parts start at the
/// same time, the latest of the starts.
fn number_hosts(inputs: &mut [Input]) -> Result<Vec<Host>> {
    let mut hosts: Vec<Host> = Vec::new();
    let mut starts: Vec<Option<u64>> = Vec::new();
    for (at, input) in inputs.iter_mut().enumerate() {
        let name = &input.part.machine.hostname;
        if hosts.last().is_none_or(|host| host.name != *name) {
            hosts.push(Host { id: hosts.len() as Id, name: name.clone(), ..Host::default() });
            starts.push(None);
        }
        let last = hosts.len() - 1;
        (hosts[last].nodes, hosts[last].cpus) = (hosts[last].nodes.max(input.nodes), hosts[last].cpus.max(input.cpus));
        starts[last] = [starts[last], input.part.meta.start_ns].into_iter().flatten().min();
        (input.part.id, input.part.host) = (at as Id, last as Id);
    }
    let (mut node, mut cpu) = (0_u32, 0_u32);
    for host in &mut hosts {
        (host.first_node, host.first_cpu) = (node, cpu);
        let ends = node.checked_add(host.nodes).filter(|end| *end <= MOST_NODES).zip(cpu.checked_add(host.cpus));
        (node, cpu) = ends.ok_or_else(|| {
            Error::unsupported(format!("cannot merge: the hosts have more than {MOST_NODES} nodes, or more CPUs than can be numbered"))
        })?;
    }
    let latest = starts.iter().flatten().max().copied();
    for input in inputs {
        let start = usize::try_from(input.part.host).ok().and_then(|host| starts[host]);
        input.part.shift_ns = latest.zip(start).map_or(0, |(latest, start)| latest.wrapping_sub(start).cast_signed());
    }
    Ok(hosts)
}

/// Reads the inputs one after the other, and gives their rows the numbers of the merged profile.
fn read_all(inputs: &[Input], hosts: &[Host], to: &SyncSender<Result<(Part, Profile)>>) {
    let mut next = Next::default();
    for input in inputs {
        let read = read(input, hosts, &mut next);
        let has_failed = read.is_err();
        if to.send(read).is_err() || has_failed {
            return;
        }
    }
}

fn read(input: &Input, hosts: &[Host], next: &mut Next) -> Result<(Part, Profile)> {
    let (mut profile, slice) = input.read()?;
    let mut part = input.part.clone();
    let mut number = || -> Result<()> {
        let host = usize::try_from(part.host).ok().and_then(|host| hosts.get(host)).ok_or_else(|| Error::invalid_data("it has no host"))?;
        if !recording::fits(&part, host) {
            return Err(Error::invalid_data("its machine has more nodes or CPUs than its host"));
        }
        part.first = Spans::of(&mut profile, slice)?.renumber(&mut profile, next)?;
        profile.fault_periods.iter_mut().for_each(|period| period.part = Some(part.id));
        profile.bandwidth.iter_mut().for_each(|row| row.part = Some(part.id));
        places::into_merged(&mut profile, host, part.shift_ns)
    };
    number().with_context(|| format!("cannot merge {}: the file is damaged, or was written to meanwhile", input.name()))?;
    Ok((part, profile))
}

fn write_all(from: Receiver<Result<(Part, Profile)>>, writer: &mut Writer) -> Result<(Vec<Part>, BTreeMap<Id, String>)> {
    let (mut parts, mut variables) = (Vec::new(), BTreeMap::new());
    for read in from {
        let (part, mut profile) = read?;
        variables.append(&mut profile.meta.variables);
        writer.rows(profile)?;
        parts.push(part);
    }
    Ok((parts, variables))
}
