//! The name of a program, for its profile: that of the program that a wrapper starts, or of the script that an interpreter runs.

use super::base;
use firsttouch_model::numactl::{LONG_WITH_VALUE, RUN_WITH_VALUE, SHORT_WITH_VALUE, ends_with_value};
use firsttouch_ranks::{Programs, is_launcher, programs};
use firsttouch_system::launch::find_program;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// A program that starts another one.
struct Wrapper {
    name: &'static str,
    /// Short options that take a value: `-n 4`, `-n4`.
    short: &'static str,
    /// Long options that take a value as the next word, unless it follows after `=`.
    long: [&'static [&'static str]; 2],
    /// Words before the program, such as the mask of taskset.
    words: usize,
}

const fn wrapper(name: &'static str, short: &'static str, long: &'static [&'static str], words: usize) -> Wrapper {
    Wrapper { name, short, long: [long, &[]], words }
}

const WRAPPERS: &[Wrapper] = &[
    wrapper("numactl", SHORT_WITH_VALUE, LONG_WITH_VALUE, 0),
    wrapper("env", "uCS", &["--unset", "--chdir"], 0),
    wrapper("nice", "n", &["--adjustment"], 0),
    wrapper("ionice", "cn", &["--class", "--classdata"], 0),
    wrapper("time", "fo", &["--format", "--output"], 0),
    wrapper("timeout", "ks", &["--kill-after", "--signal"], 1),
    wrapper("taskset", "", &[], 1),
    wrapper("chrt", "TPD", &[], 1),
    wrapper("setarch", "", &[], 1),
    wrapper("nohup", "", &[], 0),
    wrapper("setsid", "", &[], 0),
    wrapper("stdbuf", "ioe", &["--input", "--output", "--error"], 0),
    wrapper("likwid-pin", "csS", &[], 0),
    wrapper("likwid-perfctr", "cCgtosTOM", &[], 0),
];

/// A program that runs a script.
struct Interpreter {
    /// The start of its name; digits and dots may follow.
    name: &'static str,
    /// Options that take a value.
    values: &'static [&'static str],
    /// Options whose value is the code itself, so that there is no script.
    code: &'static [&'static str],
    /// Options whose value names a module or a program file.
    module: &'static [&'static str],
}

const INTERPRETERS: &[Interpreter] = &[
    Interpreter { name: "python", values: &["-W", "-X", "--check-hash-based-pycs"], code: &["-c"], module: &["-m"] },
    Interpreter { name: "pypy", values: &["-W", "-X"], code: &["-c"], module: &["-m"] },
    Interpreter { name: "perl", values: &["-I"], code: &["-e", "-E"], module: &[] },
    Interpreter { name: "ruby", values: &["-I", "-r"], code: &["-e"], module: &[] },
    Interpreter { name: "node", values: &["-r", "--require"], code: &["-e", "-p", "--eval", "--print"], module: &[] },
    Interpreter { name: "Rscript", values: &[], code: &["-e"], module: &[] },
    Interpreter { name: "julia", values: &["-t", "-p", "--threads"], code: &["-e", "-E"], module: &[] },
    Interpreter { name: "java", values: &["-cp", "-classpath", "--class-path", "-p", "--module-path"], code: &[], module: &["-jar", "-m"] },
    Interpreter { name: "bash", values: &["-O", "-o"], code: &["-c"], module: &[] },
    Interpreter { name: "dash", values: &["-o"], code: &["-c"], module: &[] },
    Interpreter { name: "zsh", values: &["-o"], code: &["-c"], module: &[] },
    Interpreter { name: "ksh", values: &["-o"], code: &["-c"], module: &[] },
    Interpreter { name: "sh", values: &["-o"], code: &["-c"], module: &[] },
];

/// Endings that name the language of a script rather than the script.
const SCRIPTS: [&str; 12] = ["py", "pyz", "pl", "rb", "js", "mjs", "R", "r", "jl", "sh", "jar", "class"];

/// The position of a launcher of ranks in a command: of its first word, or of the one behind wrappers (`time mpirun`).
pub fn launcher(command: &[OsString]) -> Option<usize> {
    let first = command.first()?;
    if is_launcher(command) {
        return Some(0);
    }
    let name = base(first).to_str()?;
    let inner = wrapped(WRAPPERS.iter().find(|wrapper| wrapper.name == name)?, &command[1..])?;
    launcher(inner).map(|at| command.len() - inner.len() + at)
}

/// The default name of a program's profile, without its ending.
pub fn name(command: &[OsString]) -> OsString {
    let Some(first) = command.first() else { return "profile".into() };
    let own = base(first);
    let inner = match own.to_str().unwrap_or_default() {
        "firsttouch" => firsttouch(command),
        _ if is_launcher(command) => started(command).map(name),
        own => match WRAPPERS.iter().find(|wrapper| wrapper.name == own) {
            Some(wrapper) => wrapped(wrapper, &command[1..]).map(name),
            None => INTERPRETERS.iter().find(|one| is_version_of(own, one.name)).and_then(|one| script(one, &command[1..])),
        },
    };
    inner.unwrap_or_else(|| stem(own))
}

/// The words of the program that a launcher of ranks starts; of several, the first.
fn started(command: &[OsString]) -> Option<&[OsString]> {
    match programs(command, &|word: &OsStr| find_program(word)) {
        Programs::At(at) => command.get(*at.first()?..),
        Programs::Unsure(_) => None,
    }
}

/// `firsttouch run OPTIONS PROGRAM` and `firsttouch bench KERNEL`.
fn firsttouch(command: &[OsString]) -> Option<OsString> {
    const RUN: Wrapper = Wrapper { long: [LONG_WITH_VALUE, RUN_WITH_VALUE], ..wrapper("run", SHORT_WITH_VALUE, &[], 0) };
    match command.get(1)?.to_str()? {
        "run" => wrapped(&RUN, &command[2..]).map(name),
        "bench" => command.get(2).cloned(),
        _ => None,
    }
}

/// The words of the program that a wrapper starts.
fn wrapped<'a>(wrapper: &Wrapper, mut words: &'a [OsString]) -> Option<&'a [OsString]> {
    let mut before = wrapper.words;
    loop {
        let (first, rest) = words.split_first()?;
        let text = first.to_string_lossy();
        if text == "--" {
            return rest.get(before..).filter(|rest| !rest.is_empty());
        }
        let takes_next = wrapper.long.iter().any(|long| long.contains(&&*text)) || ends_with_value(wrapper.short, &text);
        let is_assignment = wrapper.name == "env" && text.contains('=');
        let is_option = text.starts_with('-') && text.len() > 1;
        if takes_next {
            words = rest.get(1..)?;
        } else if is_option || is_assignment {
            words = rest;
        } else if before > 0 {
            before -= 1;
            words = rest;
        } else {
            return Some(words);
        }
    }
}

/// The name of the script, module or archive that an interpreter runs.
fn script(interpreter: &Interpreter, words: &[OsString]) -> Option<OsString> {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let text = word.to_string_lossy();
        let is = |list: &[&str]| list.contains(&&*text);
        if is(interpreter.code) {
            return None;
        } else if is(interpreter.module) {
            return words.next().map(|name| stem(base(name)));
        } else if is(interpreter.values) || (interpreter.name.ends_with("sh") && ends_with_value("c", &text)) {
            if !is(interpreter.values) {
                return None;
            }
            words.next();
        } else if !text.starts_with('-') {
            return Some(stem(base(word)));
        } else if text == "--" {
            return words.next().map(|name| stem(base(name)));
        } else if text == "-" {
            return None;
        }
    }
    None
}

/// Whether a program is a version of an interpreter: `python3.11` of `python`.
fn is_version_of(program: &str, interpreter: &str) -> bool {
    program.strip_prefix(interpreter).is_some_and(|version| version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
}

/// A file's name without the ending of a script.
fn stem(name: &OsStr) -> OsString {
    let path = Path::new(name);
    let is_script = path.extension().is_some_and(|ending| SCRIPTS.iter().any(|script| ending == *script));
    let stem = path.file_stem().filter(|_| is_script).unwrap_or(name);
    if stem.is_empty() || stem == "." || stem == ".." { "profile".into() } else { stem.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(line: &str) -> String {
        let command: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        name(&command).into_string().unwrap()
    }

    /// Check the names of programs, scripts, and programs behind wrappers.
    #[test]
    fn names_come_from_the_program() {
        for (line, name) in [
            ("./solver input.dat", "solver"),
            ("/opt/bin/a.out", "a.out"),
            ("./train.py --epochs 3", "train"),
            ("python3 train.py input.dat", "train"),
            ("/usr/bin/python3.11 -u -X importtime dir/train.py -c x", "train"),
            ("python -m package.tool --flag", "package.tool"),
            ("python -c print(1)", "python"),
            ("python", "python"),
            ("pythonic script.py", "pythonic"),
            ("bash -x run.sh", "run"),
            ("sh -c ./solver", "sh"),
            ("bash -lc ./solver", "bash"),
            ("java -Xmx4g -jar /opt/app.jar --port 1", "app"),
            ("java -cp lib/* com.example.Main", "com.example.Main"),
            ("node server.js", "server"),
            ("Rscript fit.R", "fit"),
            ("numactl --membind 0 ./solver", "solver"),
            ("numactl --interleave=all -N 0,1 -- ./solver x", "solver"),
            ("numactl -i all -l python3 train.py", "train"),
            ("numactl --hardware", "numactl"),
            ("env OMP_NUM_THREADS=8 -u HOME ./solver", "solver"),
            ("env", "env"),
            ("nice -n 19 ./solver", "solver"),
            ("nice -19 ./solver", "solver"),
            ("/usr/bin/time -v -o log ./solver", "solver"),
            ("taskset -c 0-3 ./solver", "solver"),
            ("taskset 0xf ./solver", "solver"),
            ("timeout -k 5 60 ./solver", "solver"),
            ("stdbuf -oL ./solver", "solver"),
            ("env A=1 nice -n 5 numactl -m 0 python3 train.py", "train"),
            ("mpirun -np 4 --bind-to core ./solver", "solver"),
            ("srun -n 4 ./solver", "solver"),
            ("firsttouch run --pin spread:4 -m 0 -- ./solver", "solver"),
            ("firsttouch bench dgemv --init serial", "dgemv"),
            ("..", "profile"),
        ] {
            assert_eq!(named(line), name, "{line}");
        }
        assert_eq!(name(&[]), "profile");
    }

    /// Check that launchers are found behind wrappers, and that the arguments of a program are not taken for launchers.
    #[test]
    fn launchers_are_found() {
        let at = |line: &str| launcher(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>());
        assert_eq!(["mpirun -n 4 ./x", "time -p env A=1 srun ./x", "timeout 60 nice mpiexec ./x"].map(at), [Some(0), Some(4), Some(3)]);
        assert_eq!(["./x mpirun", "env", "bash -c mpirun", ""].map(at), [None; 4]);
    }
}
