//! Programs that start another one under other conditions, at the front of a command: `taskset -c 0 env OMP_NUM_THREADS=4 ./solver`. Pure.

use crate::files::parse_list;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// What a program is started with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launched {
    /// The words of the program and its arguments.
    pub command: Vec<OsString>,
    /// Variables that are set, or removed (`None`), in this order.
    pub variables: Vec<(String, Option<String>)>,
    /// `env -i`: nothing else is left of the environment.
    pub is_empty_environment: bool,
    /// The CPUs that it may run on, and the words that say so (`taskset -c 0`).
    pub cpus: Option<(Vec<u32>, String)>,
}

/// Looks behind the launchers that are known, as far as their options are understood.
#[must_use]
pub fn behind(command: &[OsString]) -> Launched {
    let mut launched = Launched { command: command.to_vec(), ..Launched::default() };
    loop {
        let words: Option<Vec<&str>> = launched.command.iter().map(|word| word.to_str()).collect();
        let Some(words) = words else { return launched };
        let name = words.first().and_then(|word| Path::new(word).file_name()).and_then(OsStr::to_str).unwrap_or_default();
        let mut next = Launched { command: Vec::new(), ..launched.clone() };
        let arguments = words.get(1..).unwrap_or_default();
        let used = match name {
            "env" => env(arguments, &mut next),
            "taskset" => taskset(arguments, &mut next),
            "numactl" => numactl(arguments, &mut next),
            "nice" => Some(options(arguments, &["-n", "--adjustment"])),
            "time" | "nohup" | "setsid" => Some(options(arguments, &["-f", "-o"])),
            _ => None,
        };
        let Some(program) = used.and_then(|used| launched.command.get(1 + used..)).filter(|program| !program.is_empty()) else {
            return launched;
        };
        next.command = program.to_vec();
        launched = next;
    }
}

/// The number of words that are options; those in `with_value` are followed by a value.
fn options(arguments: &[&str], with_value: &[&str]) -> usize {
    let mut at = 0;
    while let Some(word) = arguments.get(at).filter(|word| word.starts_with('-') && word.len() > 1) {
        at += if with_value.contains(word) { 2 } else { 1 };
        if *word == "--" {
            break;
        }
    }
    at
}

fn env(arguments: &[&str], next: &mut Launched) -> Option<usize> {
    let mut at = 0;
    while let Some(&word) = arguments.get(at) {
        match word {
            "-i" | "-" | "--ignore-environment" => {
                next.is_empty_environment = true;
                next.variables.clear();
            }
            "-u" | "--unset" => {
                at += 1;
                next.variables.push(((*arguments.get(at)?).to_owned(), None));
            }
            "--" => {}
            _ if word.starts_with('-') => return None,
            _ => match word.split_once('=') {
                Some((name, value)) => next.variables.push((name.to_owned(), Some(value.to_owned()))),
                None => break,
            },
        }
        at += 1;
    }
    Some(at)
}

fn taskset(arguments: &[&str], next: &mut Launched) -> Option<usize> {
    let (mut at, mut is_list) = (0, false);
    while let Some(word) = arguments.get(at).filter(|word| word.starts_with('-')) {
        match *word {
            "-c" | "--cpu-list" | "-ac" => is_list = true,
            "-a" | "--all-tasks" => {}
            _ => return None,
        }
        at += 1;
    }
    let text = *arguments.get(at)?;
    let cpus = if is_list { parse_list(text).ok()? } else { mask(text)? };
    let option = if is_list { "-c " } else { "" };
    next.cpus = (!cpus.is_empty()).then(|| (cpus, format!("taskset {option}{text}")));
    Some(at + 1)
}

/// The CPUs of a mask in hexadecimal digits.
fn mask(text: &str) -> Option<Vec<u32>> {
    let digits = text.trim_start_matches("0x");
    let mut cpus = Vec::new();
    for (place, digit) in digits.chars().rev().filter(|c| *c != ',').enumerate() {
        let (digit, first) = (digit.to_digit(16)?, u32::try_from(4 * place).ok()?);
        cpus.extend((0..4).filter(|bit| digit >> bit & 1 == 1).map(|bit| first + bit));
    }
    (!digits.is_empty()).then_some(cpus)
}

fn numactl(arguments: &[&str], next: &mut Launched) -> Option<usize> {
    /// Options whose value is the next word, if it is not joined to them.
    const WITH_VALUE: &[&str] =
        &["-i", "-w", "-m", "-P", "-N", "-C", "-p", "--interleave", "--membind", "--cpunodebind", "--physcpubind", "--preferred"];
    let mut at = 0;
    while let Some(&word) = arguments.get(at).filter(|word| word.starts_with('-')) {
        let is_split = WITH_VALUE.contains(&word);
        let value = if is_split { arguments.get(at + 1).copied()? } else { word.split_once('=').map_or("", |(_, value)| value) };
        let short = word.strip_prefix("-C").filter(|value| !value.is_empty());
        if word == "-C" || word.starts_with("--physcpubind") || short.is_some() {
            let value = short.unwrap_or(value);
            // `all`, `+0-1` and `!0` depend on the CPUs that are allowed here.
            next.cpus = parse_list(value)
                .ok()
                .filter(|cpus| !cpus.is_empty())
                .map(|cpus| (cpus, format!("numactl -C {value}")))
                .or(next.cpus.take());
        }
        at += if is_split { 2 } else { 1 };
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(command: &str) -> Launched {
        behind(&command.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    }

    /// Check what lies behind launchers, and that a command whose options are not understood is left as it is.
    #[test]
    fn launchers_are_looked_behind() {
        let cpus = |command: &str| found(command).cpus;
        let program =
            |command: &str| found(command).command.iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ");
        for (command, behind) in [
            ("./x 1 -c 0", "./x 1 -c 0"),
            ("taskset -c 0 env OMP_NUM_THREADS=4 ./x a=b", "./x a=b"),
            ("/usr/bin/env -i -u HOME A=1 -- ./x", "./x"),
            ("numactl --interleave=all -N 0 -m 0 --localalloc ./x", "./x"),
            ("nice -n 5 time -v nohup ./x -n 5", "./x -n 5"),
            ("env --split-string=x ./x", "env --split-string=x ./x"),
            ("taskset -p 12", "taskset -p 12"),
            ("taskset", "taskset"),
            ("env", "env"),
            ("env A=1", "env A=1"),
            ("numactl -C", "numactl -C"),
            ("", ""),
        ] {
            assert_eq!(program(command), behind, "{command}");
        }
        for (command, expected) in [
            ("taskset -c 0,2-3 ./x", Some((vec![0, 2, 3], "taskset -c 0,2-3".to_owned()))),
            ("taskset 0x5 ./x", Some((vec![0, 2], "taskset 0x5".to_owned()))),
            ("taskset 10 ./x", Some((vec![4], "taskset 10".to_owned()))),
            ("numactl -C 1 ./x", Some((vec![1], "numactl -C 1".to_owned()))),
            ("numactl --physcpubind=0-1 ./x", Some((vec![0, 1], "numactl -C 0-1".to_owned()))),
            ("numactl --physcpubind=+0 ./x", None),
            ("numactl --interleave=all ./x", None),
            ("taskset -c x ./x", None),
        ] {
            assert_eq!(cpus(command), expected, "{command}");
        }
        let variables = found("env -u A B=1 env B=2 ./x").variables;
        let set = |name: &str, value: Option<&str>| (name.to_owned(), value.map(str::to_owned));
        assert_eq!(variables, [set("A", None), set("B", Some("1")), set("B", Some("2"))]);
        assert!(found("env A=1 env -i ./x").is_empty_environment && found("env A=1 env -i ./x").variables.is_empty());
    }
}
