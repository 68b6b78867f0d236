//! Which words of a launcher's command line are programs: `mpirun -n 4 --bind-to core ./solver : -n 1 ./io`.

use crate::options::{Dialect, Meaning};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// What is known of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Programs {
    /// The positions of the programs' words.
    At(Vec<usize>),
    /// Why that is not sure, as the end of a sentence.
    Unsure(String),
}

/// Finds programs on this machine, to tell a program from a value.
pub trait Files {
    /// The file that a word names as a program, if it can be executed here; links are followed.
    fn program(&self, word: &OsStr) -> Option<PathBuf>;
}

impl<F: Fn(&OsStr) -> Option<PathBuf>> Files for F {
    fn program(&self, word: &OsStr) -> Option<PathBuf> {
        self(word)
    }
}

const OPEN_MPI: &[Dialect] = &[Dialect::OpenMpi];
const HYDRA: &[Dialect] = &[Dialect::Hydra];
/// Of `mpirun`, the file behind the name may tell.
const EITHER: &[Dialect] = &[Dialect::OpenMpi, Dialect::Hydra];

const LAUNCHERS: [(&str, &[Dialect]); 14] = [
    ("mpirun", EITHER),
    ("mpiexec", EITHER),
    ("mpirun.openmpi", OPEN_MPI),
    ("mpiexec.openmpi", OPEN_MPI),
    ("orterun", OPEN_MPI),
    ("prterun", OPEN_MPI),
    ("prun", OPEN_MPI),
    ("mpirun.mpich", HYDRA),
    ("mpiexec.mpich", HYDRA),
    ("mpiexec.hydra", HYDRA),
    ("mpirun.hydra", HYDRA),
    ("mpirun_rsh", EITHER),
    ("srun", &[Dialect::Slurm]),
    ("flux", &[Dialect::Flux]),
];

fn base(word: &OsStr) -> &str {
    Path::new(word).file_name().and_then(OsStr::to_str).unwrap_or_default()
}

/// Whether a command starts ranks: its first word is a launcher's name. (`flux` has other commands beside `flux run`.)
#[must_use]
pub fn is_launcher(command: &[OsString]) -> bool {
    let Some(first) = command.first() else { return false };
    let name = base(first);
    let is_flux = || command.get(1).is_some_and(|word| word == "run");
    name != "mpirun_rsh" && LAUNCHERS.iter().any(|(known, _)| *known == name) && (name != "flux" || is_flux())
}

/// The programs' words in the command line of a launcher.
#[must_use]
pub fn programs(command: &[OsString], files: &impl Files) -> Programs {
    let unsure = |why: &str| Programs::Unsure(why.to_owned());
    let Some(first) = command.first().filter(|_| is_launcher(command)) else { return unsure("it does not begin with a launcher") };
    let dialects = |name: &str| LAUNCHERS.iter().find(|(known, _)| *known == name).map_or(EITHER, |(_, dialects)| *dialects);
    let named = dialects(base(first));
    let found = if named.len() > 1 { files.program(first) } else { None };
    let dialects = found.as_deref().map_or(named, |file| dialects(base(file.as_os_str())));
    let begin = if dialects == [Dialect::Flux] { 2 } else { 1 };
    let mut read = dialects.iter().map(|dialect| read(command, begin, *dialect, files));
    let one = read.next().unwrap_or_else(|| unsure("no dialect is known"));
    match read.find(|other| *other != one) {
        Some(_) if matches!(one, Programs::At(_)) => unsure("the options of different launchers give different answers"),
        _ => one,
    }
}

fn read(command: &[OsString], begin: usize, dialect: Dialect, files: &impl Files) -> Programs {
    let mut at = Vec::new();
    let mut start = begin;
    loop {
        let rest = command.get(start..).unwrap_or_default();
        let end = rest.iter().position(|word| dialect.has_sections() && word == ":").map_or(command.len(), |length| start + length);
        match section(command, start, end, dialect, files) {
            Ok(program) => at.push(program),
            Err(why) => return Programs::Unsure(why),
        }
        if end == command.len() {
            return Programs::At(at);
        }
        start = end + 1;
    }
}

/// The program's word in a part of the command line. Never guesses: what could be a value of an unknown option is no program.
fn section(command: &[OsString], start: usize, end: usize, dialect: Dialect, files: &impl Files) -> Result<usize, String> {
    let mut at = start;
    let mut unknown: Option<&str> = None;
    while at < end {
        let word = command[at].to_str().unwrap_or_default();
        if word == "--" && at + 1 < end {
            return Ok(at + 1);
        }
        if !word.starts_with('-') || word.len() == 1 {
            return match unknown {
                Some(option) if files.program(&command[at]).is_none() => {
                    Err(format!("it has the unknown option {option}, and {} is no program here", command[at].display()))
                }
                _ => Ok(at),
            };
        }
        match dialect.meaning(word) {
            Meaning::Values(values) => at += 1 + values,
            Meaning::NoProgram => return Err(format!("{word} names no program")),
            Meaning::Unknown => {
                unknown = Some(word);
                at += 1 + usize::from(has_value(command, at, end, files)?);
            }
        }
    }
    Err("it names no program".to_owned())
}

/// Whether the word after an unknown option is its value.
fn has_value(command: &[OsString], option: usize, end: usize, files: &impl Files) -> Result<bool, String> {
    let name = command[option].display();
    let Some(next) = command.get(option + 1).filter(|_| option + 1 < end) else { return Ok(false) };
    let text = next.to_string_lossy();
    if name.to_string().contains('=') || text.starts_with('-') {
        return Ok(false);
    }
    let unsure = || Err(format!("it has the unknown option {name}, and {} may be its value or the program", next.display()));
    if files.program(next).is_some() {
        // A program, unless options or another program follow: then it could be a value.
        let follows = command.get(option + 2..end).unwrap_or_default();
        let is_last = follows.iter().all(|word| !word.to_string_lossy().starts_with('-') && files.program(word).is_none());
        return if is_last { Ok(false) } else { unsure() };
    }
    if text.contains('/') { unsure() } else { Ok(true) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Here, `./x`, `./y` and `bash` are programs; `mpirun` is Open MPI's, `mpiexec` MPICH's, and `/intel/mpirun` a script.
    fn file(word: &OsStr) -> Option<PathBuf> {
        match word.to_str()? {
            "mpirun" => Some("/usr/bin/orterun".into()),
            "mpiexec" => Some("/usr/bin/mpiexec.hydra".into()),
            word @ ("./x" | "./y" | "bash" | "/intel/mpirun") => Some(word.into()),
            _ => None,
        }
    }

    fn of(line: &str) -> Programs {
        programs(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>(), &file)
    }

    /// The programs' words with those after them, or `unsure`.
    fn found(line: &str) -> Vec<&str> {
        let words: Vec<&str> = line.split_whitespace().collect();
        match of(line) {
            Programs::At(at) => at.into_iter().map(|at| words[at]).collect(),
            Programs::Unsure(_) => vec!["unsure"],
        }
    }

    /// Check that programs are found behind known options, in all launchers and sections.
    #[test]
    fn programs_are_found() {
        for (line, programs) in [
            ("mpirun -n 4 ./x -n 5 --mca a", vec!["./x"]),
            ("mpirun ./x", vec!["./x"]),
            ("mpirun -np 4 --bind-to core --map-by ppr:2:socket -x A=1 --mca btl self,vader far-away a b", vec!["far-away"]),
            ("mpirun --allow-run-as-root --oversubscribe -n 2 ./x : -n 2 ./y -v : ./x", vec!["./x", "./y", "./x"]),
            ("mpirun -n 4 -- ./x -- a", vec!["./x"]),
            ("mpirun -n 4 numactl -m 0 ./x", vec!["numactl"]),
            ("mpiexec -n 4 -genv A 1 -bind-to core:2 ./x", vec!["./x"]),
            ("mpiexec.hydra -n=4 -ppn 2 -hosts a,b -l ./x -l", vec!["./x"]),
            ("/opt/bin/mpirun.mpich -env A 1 -n 2 ./x : -env A 2 -n 2 ./y", vec!["./x", "./y"]),
            ("srun -n4 -N 2 --cpu-bind=cores --mem-bind local -c2 ./x -n", vec!["./x"]),
            ("srun -lun 4 ./x : -n1 ./y", vec!["./x", "./y"]),
            ("flux run -n4 -o cpu-affinity=per-task --cores-per-task 2 ./x : ./y", vec!["./x"]),
            ("/intel/mpirun -n 4 -host a ./x", vec!["./x"]),
        ] {
            assert_eq!(found(line), programs, "{line}");
        }
    }

    /// Check that after an unknown option, only what can be nothing else is a program.
    #[test]
    fn unknown_options_are_no_guess() {
        for (line, programs) in [
            ("mpirun --new -n 4 ./x", vec!["./x"]),
            ("mpirun --new=3 -n 4 ./x a", vec!["./x"]),
            ("mpirun --new core ./x a", vec!["./x"]),
            ("mpirun --new ./x a", vec!["./x"]),
            ("mpirun --new bash ./x", vec!["unsure"]),
            ("mpirun --new ./x -n 5", vec!["unsure"]),
            ("mpirun --new ./far-away ./x", vec!["unsure"]),
            ("mpirun --new core far-away ./x", vec!["unsure"]),
            ("mpirun --new", vec!["unsure"]),
            ("mpirun --app file", vec!["unsure"]),
            ("mpirun --version", vec!["unsure"]),
            ("mpirun", vec!["unsure"]),
            ("mpirun -n 4", vec!["unsure"]),
            ("mpirun -n 2 ./x :", vec!["unsure"]),
            ("srun --multi-prog file", vec!["unsure"]),
            ("/intel/mpirun -l -c 4 ./x", vec!["./x"]),
            ("/intel/mpirun -s all -n 4 ./x", vec!["unsure"]),
            ("./x mpirun", vec!["unsure"]),
        ] {
            assert_eq!(found(line), programs, "{line}: {:?}", of(line));
        }
    }

    /// Check which commands are launchers.
    #[test]
    fn launchers_are_known() {
        let is = |line: &str| is_launcher(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>());
        assert_eq!(["/usr/bin/mpirun x", "srun x", "flux run x", "prterun x"].map(is), [true; 4]);
        assert_eq!(["./solver mpirun", "flux jobs", "", "mpirun.sh"].map(is), [false; 4]);
    }
}
