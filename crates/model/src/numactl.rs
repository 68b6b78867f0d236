//! The options of numactl, and of `firsttouch run`, which takes the same and more.

/// Letters of options with a value.
pub const SHORT_WITH_VALUE: &str = "mpPiwNcC";
/// Long options with a value, which is the next word if it does not follow a `=`.
pub const LONG_WITH_VALUE: &[&str] = &[
    "--membind",
    "--preferred",
    "--preferred-many",
    "--interleave",
    "--weighted-interleave",
    "--cpunodebind",
    "--cpubind",
    "--physcpubind",
];

/// The options with a value that `firsttouch run` has besides these.
pub const RUN_WITH_VALUE: &[&str] = &["--pin", "--skip", "--plan", "--rounds"];

/// Options that set a memory policy, by letter and by name.
const POLICY: [(char, &str); 6] = [
    ('m', "--membind"),
    ('p', "--preferred"),
    ('P', "--preferred-many"),
    ('i', "--interleave"),
    ('w', "--weighted-interleave"),
    ('l', "--localalloc"),
];

/// Whether the value of an option is the next word: a group of short options that ends with one that takes a value, or a long one.
fn takes_next_word(option: &str) -> bool {
    LONG_WITH_VALUE.contains(&option) || RUN_WITH_VALUE.contains(&option) || ends_with_value(SHORT_WITH_VALUE, option)
}

/// The words behind the name of numactl or `firsttouch run`: its options, each with its value, and the program that it starts.
fn parts(words: &[String]) -> (Vec<&[String]>, &[String]) {
    let (mut options, mut at) = (Vec::new(), 0);
    while let Some(option) = words.get(at).filter(|word| word.starts_with('-')) {
        if option == "--" {
            at += 1;
            break;
        }
        let end = (at + 1 + usize::from(takes_next_word(option))).min(words.len());
        options.push(&words[at..end]);
        at = end;
    }
    (options, &words[at..])
}

/// Whether a group of short options ends with one of the letters `with_value`: the next word is its value.
#[must_use]
pub fn ends_with_value(with_value: &str, option: &str) -> bool {
    let Some(letters) = option.strip_prefix('-').filter(|letters| !letters.starts_with('-')) else { return false };
    letters.chars().position(|letter| with_value.contains(letter)).is_some_and(|at| at + 1 == letters.chars().count())
}

/// A command without the memory policy of a numactl that starts its program: other options stay, and numactl too if it has some.
#[must_use]
pub fn without_policy(command: &[String]) -> Vec<String> {
    let Some((first, rest)) = command.split_first().filter(|(first, _)| first.rsplit('/').next() == Some("numactl")) else {
        return command.to_vec();
    };
    let (options, program) = parts(rest);
    let kept: Vec<String> = options.into_iter().filter(|option| !sets_policy(&option[0])).flatten().cloned().collect();
    let before = if kept.is_empty() { Vec::new() } else { [vec![first.clone()], kept].concat() };
    [before, program.to_vec()].concat()
}

/// Whether `firsttouch run --plan` starts a command's program.
#[must_use]
pub fn runs_a_plan(command: &[String]) -> bool {
    let is_run = |pair: &[String]| pair[0].rsplit('/').next() == Some("firsttouch") && pair[1] == "run";
    let is_plan = |option: &[String]| option[0] == "--plan" || option[0].starts_with("--plan=");
    command.windows(2).position(is_run).is_some_and(|at| parts(&command[at + 2..]).0.into_iter().any(is_plan))
}

fn sets_policy(option: &str) -> bool {
    let name = option.split('=').next().unwrap_or(option);
    let by_letter = |letter: char| !option.starts_with("--") && option.strip_prefix('-').is_some_and(|rest| rest.starts_with(letter));
    POLICY.iter().any(|(letter, long)| name == *long || by_letter(*letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(command: &str) -> Vec<String> {
        command.split(' ').map(str::to_owned).collect()
    }

    /// Check that the plan of `firsttouch run` is told from options of the program that it starts.
    #[test]
    fn plans_are_options_of_run() {
        for (command, expected) in [
            ("firsttouch run --plan p.toml ./x", true),
            ("/usr/bin/firsttouch run --pin spread:4 --plan=p.toml -- ./x", true),
            ("time firsttouch run --plan p.toml -- ./x", true),
            ("firsttouch run -m 0 ./x --plan p.toml", false),
            ("firsttouch run -- ./x --plan p.toml", false),
            ("firsttouch profile --plan p.toml", false),
            ("./run --plan p.toml", false),
            ("firsttouch run", false),
            ("firsttouch run --plan", true),
        ] {
            assert_eq!(runs_a_plan(&words(command)), expected, "{command}");
        }
    }

    /// Check that a policy of numactl is taken out of a command, that its other options stay, and that other programs keep theirs.
    #[test]
    fn policies_are_left_out() {
        for (command, expected) in [
            ("numactl --membind=0 ./x -m 1", "./x -m 1"),
            ("numactl -m 0 -N 1 ./x", "numactl -N 1 ./x"),
            ("/usr/bin/numactl --interleave all --cpunodebind=0 ./x", "/usr/bin/numactl --cpunodebind=0 ./x"),
            ("numactl -l ./x", "./x"),
            ("numactl -i0-1 -- ./x", "./x"),
            ("numactl --balancing --membind=0 ./x", "numactl --balancing ./x"),
            ("numactl -a -C 0,1 --preferred-many 0 ./x", "numactl -a -C 0,1 ./x"),
            ("numactl --localalloc --physcpubind 0,1 python a.py --membind=0", "numactl --physcpubind 0,1 python a.py --membind=0"),
            ("./x --membind=0", "./x --membind=0"),
            ("numactl", ""),
        ] {
            assert_eq!(without_policy(&words(command)).join(" "), expected, "{command}");
        }
    }
}
