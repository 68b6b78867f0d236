// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The programs of corpus/ with the promises in their headers (corpus/README.md), the bundled kernels, and plans made for them.

use crate::paths::{target_dir, workspace_root};
use crate::process::run;
use crate::programs::{BuildError, build, output_path, sources};
use crate::skip::{lacks_tools, skipped};
use crate::tool::Firsttouch;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A kernel of `firsttouch bench`, with one thread that initialises its arrays.
pub struct Kernel {
    pub name: &'static str,
    /// Small enough for a guest under emulation.
    pub sizes: &'static [&'static str],
    /// Iterations that take some seconds on the host, where the kernel is profiled.
    pub iterations: &'static str,
    /// The end of each thread's part of the main array, as a fraction of the array.
    pub ends: [f64; 4],
}

pub const KERNELS: [Kernel; 4] = [
    Kernel { name: "dgemv", sizes: &["--m", "2000", "--n", "2000"], iterations: "2000", ends: EQUAL },
    Kernel { name: "dmvm", sizes: &["--m", "2000", "--n", "2000"], iterations: "2000", ends: EQUAL },
    Kernel { name: "triad", sizes: &["--elements", "2000000", "--temporal"], iterations: "1500", ends: EQUAL },
    Kernel { name: "iso3dfd", sizes: &ISO3DFD, iterations: "6000", ends: [48.0 / 176.0, 0.5, 128.0 / 176.0, 1.0] },
];

const EQUAL: [f64; 4] = [0.25, 0.5, 0.75, 1.0];
/// For each thread one block of 40 planes, which are five slabs of the kernel's bricks, and 8 planes on either side of the blocks.
const ISO3DFD: [&str; 10] = ["--n1", "64", "--n2", "64", "--n3", "176", "--n2-block", "48", "--n3-block", "40"];

/// Threads of the kernels: as many as the guests have CPUs.
pub const KERNEL_THREADS: &str = "4";

impl Kernel {
    /// The command line, without the program.
    #[must_use]
    pub fn arguments<'a>(&'a self, iterations: &'a str) -> Vec<&'a str> {
        let how = ["--init", "serial", "--threads", KERNEL_THREADS, "--repetitions", "1", "--iterations", iterations];
        ["bench", self.name].iter().chain(self.sizes).chain(&how).copied().collect()
    }
}

/// A program and what its comments promise.
#[derive(Clone)]
pub struct Program {
    pub name: String,
    pub source: PathBuf,
    header: BTreeMap<String, String>,
}

/// All programs of corpus/, by name, without those of corpus/mpi, which a launcher starts.
///
/// # Panics
/// If corpus/ is missing.
#[must_use]
pub fn programs() -> Vec<Program> {
    let folder = workspace_root().join("corpus");
    programs_in(&folder).into_iter().filter(|program| program.source.parent() == Some(&folder)).collect()
}

/// All programs of corpus/mpi, by name.
///
/// # Panics
/// If the folder is missing.
#[must_use]
pub fn mpi_programs() -> Vec<Program> {
    programs_in(&workspace_root().join("corpus/mpi"))
}

/// All programs of a folder, by name.
///
/// # Panics
/// If the folder is missing.
#[must_use]
pub fn programs_in(folder: &Path) -> Vec<Program> {
    let mut all = sources(folder);
    let is_python = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "py");
    all.extend(std::fs::read_dir(folder).expect("a folder of programs").flatten().map(|entry| entry.path()).filter(is_python));
    all.sort();
    all.dedup();
    all.iter().map(|source| Program::read(source)).collect()
}

impl Program {
    /// # Panics
    /// If the source cannot be read.
    #[must_use]
    pub fn read(source: &Path) -> Self {
        let text = std::fs::read_to_string(source).expect("a readable source");
        let header = text
            .lines()
            .filter_map(|line| line.split_once("corpus: ")?.1.split_once(" = "))
            .map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()))
            .collect();
        Self { name: source.file_stem().expect("a file name").to_string_lossy().into_owned(), source: source.to_owned(), header }
    }

    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.header.get(key).map(String::as_str)
    }

    /// What is wrong with the fix of a finding: the header says `fix = words`, `fix = example` (words, and lines that are no change
    /// of the source), `fix = edit`, or `fix = edit: LINE`, with a line of the change, as a directive.
    ///
    /// # Panics
    /// If the header has no such key.
    #[must_use]
    pub fn fix_problem(&self, finding: &Value) -> Option<String> {
        let text = finding["fix"].as_str().unwrap_or_default();
        let edits = finding["fix_edits"].as_array().map_or(&[][..], Vec::as_slice);
        let mut lines = edits.iter().filter_map(|edit| edit["text"].as_array()).flatten().filter_map(Value::as_str);
        let wanted = self.get("fix").unwrap_or_else(|| panic!("{} has no key fix", self.name));
        let is_right = match wanted.split_once(": ") {
            Some(("edit", line)) => lines.any(|shown| shown.trim() == line),
            None if wanted == "edit" => !edits.is_empty(),
            None if wanted == "words" => edits.is_empty() && !text.contains('\n'),
            None if wanted == "example" => edits.is_empty() && text.contains('\n'),
            _ => panic!("{}: fix = {wanted}", self.name),
        };
        let lacks = self.get("says").filter(|words| !text.contains(words)).map(|words| format!("the fix lacks '{words}': {text}"));
        (!is_right).then(|| format!("the fix is not '{wanted}': {text}")).or(lacks)
    }

    #[must_use]
    pub fn is_python(&self) -> bool {
        self.source.extension().is_some_and(|extension| extension == "py")
    }

    #[must_use]
    pub fn is_fortran(&self) -> bool {
        self.source.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("f90"))
    }

    /// The policy that a plan has for its object: `blocked`, `interleave`, `none`.
    #[must_use]
    pub fn policy(&self) -> &str {
        match (self.get("plan"), self.get("finding"), self.get("partition")) {
            (Some(plan), ..) => plan,
            (None, Some("none"), _) => "none",
            _ if self.is_python() => "none",
            (None, _, Some("irregular" | "shared")) => "interleave",
            _ => "blocked",
        }
    }

    /// Builds the program and returns its command line. Reports a skip and returns `None` if its compiler or interpreter is missing.
    ///
    /// # Panics
    /// If the build fails.
    pub fn command(&self) -> Option<Vec<String>> {
        if self.get("build").is_some_and(|how| how != "none") {
            match build(&self.source) {
                Ok(_) => {}
                Err(BuildError::MissingTool(tool)) => {
                    skipped("corpus", &format!("{}: {tool} is not installed", self.name));
                    return None;
                }
                Err(error) => panic!("{}: {error:?}", self.name),
            }
        }
        let words = self.command_when_built();
        (!words.is_empty() && !lacks_tools("corpus", &[words[0].as_str()])).then_some(words)
    }

    /// The command line of a program that is built already, as in a guest, which has no compilers.
    #[must_use]
    pub fn command_when_built(&self) -> Vec<String> {
        let (out, src) = (output_path(&self.source).to_string_lossy().into_owned(), self.source.to_string_lossy().into_owned());
        let words = self.get("run").unwrap_or_default().split_whitespace();
        words.map(|word| word.replace("{out}", &out).replace("{src}", &src)).collect()
    }
}

/// The path of the plan of a program or kernel. The host makes the plan for `virtual:2`, and the guests follow it.
#[must_use]
pub fn plan_of(name: &str) -> PathBuf {
    target_dir().join("plans").join(format!("{name}.toml"))
}

/// Makes the plan of a command, unless there is a plan that is newer than the program and firsttouch. Makes up to three profiles,
/// because the samples of one may not be sufficient.
///
/// # Panics
/// If the command or firsttouch fails, or no profile leads to a plan with entries.
pub fn make_plan(firsttouch: &Firsttouch, name: &str, command: &[&str]) {
    let time = |path: &Path| path.metadata().and_then(|file| file.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    let plan = plan_of(name);
    let newest = time(Path::new(command[0])).max(time(firsttouch.binary()));
    if time(&plan) > newest {
        return;
    }
    let folder = crate::tool::temporary_directory();
    std::fs::create_dir_all(plan.parent().expect("a folder")).expect("a folder for plans");
    for _ in 0..3 {
        let file = folder.path().join("plan.ftp");
        let _ = std::fs::remove_file(&file);
        let outcome = run(&mut firsttouch.profile(&file, &["--quiet"], command));
        assert_eq!(outcome.status, 0, "{command:?}: {outcome:?}");
        let new = folder.path().join("plan.toml");
        let planned = run(firsttouch.command(["plan", "--machine", "virtual:2"]).arg(&file).arg("-o").arg(&new));
        assert_eq!(planned.status, 0, "{name}: {planned:?}");
        let text = std::fs::read_to_string(&new).expect("the plan");
        if text.contains("[[place]]") {
            return std::fs::write(&plan, text).expect("a plan that can be written");
        }
        eprintln!("plan of {name}: {}", planned.stderr_text());
    }
    panic!("{name}: nothing to plan in three profiles");
}
