//! Ranks of an MPI job, for `profile` and `check`: which part this firsttouch has in recording them.
//!
//! | module | what it does |
//! |---|---|
//! | `naming.rs` | where the profiles of a job go |
//! | `inside.rs` | records one rank (`mpirun firsttouch profile ./x`) |
//! | `outside.rs` | starts the launcher, with firsttouch before its programs (`firsttouch profile mpirun ./x`) |
//! | `merged.rs` | merges the profiles of a job, and says which ranks did not end well |

mod inside;
mod merged;
mod naming;
mod outside;

pub use inside::{JobEnd, record_rank};
pub use merged::{Merged, summary};
pub use outside::record_job;

use crate::arguments::Ranks;
use crate::exit::usage;
use crate::output::message;
use crate::profile_name;
use anyhow::{Result, anyhow};
use firsttouch_model::rows::RankPlace;
use firsttouch_model::topology::format_list;
use firsttouch_ranks::{Process, Programs, programs};
use firsttouch_system::calls::affinity::allowed_cpus;
use firsttouch_system::launch::find_program;
use naming::JobName;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const ROOT: &str = "/";

/// What a command is asked to record.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The name that the user gives.
    pub output: Option<&'a Path>,
    /// The default name, if it is not the program's. A job of several programs is judged as one, so its profiles are in one directory.
    pub default_name: Option<&'static str>,
    pub program: &'a [OsString],
    pub pid: Option<i32>,
    pub ranks: Option<&'a Ranks>,
    /// The directory of a firsttouch before the launcher.
    pub job_directory: Option<&'a Path>,
}

/// The part of this firsttouch.
#[derive(Debug)]
pub enum Role {
    /// It records one program.
    Alone,
    /// It records a rank, whose profile has a name of its own.
    Named,
    /// It records a rank of a job.
    Rank(Rank),
    /// The program runs unrecorded: a rank that is not asked for, or a launcher that starts firsttouch itself.
    Unrecorded,
    /// It starts a launcher.
    Outside(Outside),
    /// It starts a launcher whose program it cannot find, and says why.
    Follow(String),
}

#[derive(Debug)]
pub struct Rank {
    place: Option<RankPlace>,
    recorded: Option<Vec<u32>>,
    joins: Joins,
}

#[derive(Debug)]
enum Joins {
    /// The directory of a firsttouch before the launcher, which merges.
    Existing(PathBuf),
    Own(JobName),
}

#[derive(Debug)]
pub struct Outside {
    /// The positions of the programs.
    programs: Vec<usize>,
    /// The launcher's word.
    launcher: String,
    /// `None`: each rank writes a file of the name that the user gives.
    name: Option<JobName>,
}

/// The place of this process in its job, with the CPUs that the launcher gave it.
pub fn here() -> Option<RankPlace> {
    let place = firsttouch_ranks::place(&|name| std::env::var(name).ok())?;
    Some(RankPlace { bound_cpus: allowed_cpus().map(|cpus| format_list(&cpus)), ..place })
}

/// # Errors
/// When options do not fit: a usage error.
pub fn role(wanted: &Wanted<'_>) -> Result<Role> {
    if wanted.pid.is_some() {
        return Ok(Role::Alone);
    }
    let place = here();
    let size = place.as_ref().map_or(1, |place| place.size);
    let is_rank =
        wanted.job_directory.is_some() || size > 1 || wanted.output.is_some_and(|name| place.is_some() && naming::is_directory(name));
    if is_rank {
        return usage(rank(wanted, place));
    }
    if let Some(at) = profile_name::launcher(wanted.program) {
        return outside(wanted, at);
    }
    match wanted.ranks {
        Some(_) if place.is_none() => usage(Err(anyhow!(
            "--ranks names ranks of an MPI job, and no launcher is here: name one (firsttouch profile --ranks 0 -- mpirun ./program), or start \
             firsttouch by one"
        ))),
        _ => Ok(Role::Alone),
    }
}

fn rank(wanted: &Wanted<'_>, place: Option<RankPlace>) -> Result<Role> {
    let recorded = wanted.ranks.map(|ranks| ranks.list.clone());
    if let (Some(list), Some(place)) = (&recorded, &place) {
        // Not an error: the other ranks would wait for this one.
        if place.rank == 0 && list.iter().all(|rank| *rank >= place.size) {
            message(&format!("nothing is recorded: --ranks {}, and the job has the ranks 0-{}", format_list(list), place.size - 1));
        }
        if !list.contains(&place.rank) {
            return Ok(Role::Unrecorded);
        }
    }
    let joins = match wanted.job_directory {
        Some(directory) => Joins::Existing(directory.to_owned()),
        None if wanted.output.is_some_and(profile_name::is_pattern) => return Ok(Role::Named),
        None => Joins::Own(JobName::of(wanted)?),
    };
    Ok(Role::Rank(Rank { place, recorded, joins }))
}

fn outside(wanted: &Wanted<'_>, at: usize) -> Result<Role> {
    let launcher = wanted.program[at].to_string_lossy().into_owned();
    let own = own_program();
    let is_own = |word: &OsString| {
        Path::new(word).file_name() == Some(OsStr::new("firsttouch"))
            || own.is_some() && find_program(word).and_then(|file| file.canonicalize().ok()) == own
    };
    match programs(&wanted.program[at..], &|word: &OsStr| executable(word)) {
        Programs::At(list) => {
            let programs: Vec<usize> = list.iter().map(|word| at + word).collect();
            let records = |word: usize| wanted.program.get(word + 1).is_some_and(|next| next == "profile" || next == "check");
            if programs.iter().any(|word| is_own(&wanted.program[*word]) && records(*word)) {
                return Ok(Role::Unrecorded);
            }
            let name = match wanted.output {
                Some(name) if profile_name::is_pattern(name) => None,
                _ => Some(usage(JobName::of(wanted))?),
            };
            Ok(Role::Outside(Outside { programs, launcher, name }))
        }
        Programs::Unsure(why) => Ok(Role::Follow(format!(
            "cannot tell which word of the command line is the program that {launcher} starts ({why}): all processes that it starts on this host are \
             recorded, as with --follow. Or put firsttouch behind it: {launcher} ... firsttouch profile -- PROGRAM"
        ))),
    }
}

/// The file that a word names as a program.
fn executable(word: &OsStr) -> Option<PathBuf> {
    let file = find_program(word)?.canonicalize().ok()?;
    let about = std::fs::metadata(&file).ok()?;
    (about.is_file() && about.permissions().mode() & 0o111 != 0).then_some(file)
}

fn own_program() -> Option<PathBuf> {
    std::env::current_exe().ok()?.canonicalize().ok()
}

fn this() -> Process {
    Process::this(Path::new(ROOT))
}
