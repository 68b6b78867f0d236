//! The options of numactl.

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
    LONG_WITH_VALUE.contains(&option) || ends_with_value(SHORT_WITH_VALUE, option)
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
    let (mut kept, mut at) = (Vec::new(), 0);
    while let Some(option) = rest.get(at).filter(|word| word.starts_with('-')) {
        if option == "--" {
            at += 1;
            break;
        }
        let words = 1 + usize::from(takes_next_word(option));
        kept.extend(rest.iter().skip(at).take(words).filter(|_| !sets_policy(option)).cloned());
        at += words;
    }
    let program = rest.get(at..).unwrap_or_default();
    let before = if kept.is_empty() { Vec::new() } else { [vec![first.clone()], kept].concat() };
    [before, program.to_vec()].concat()
}

fn sets_policy(option: &str) -> bool {
    let name = option.split('=').next().unwrap_or(option);
    let by_letter = |letter: char| !option.starts_with("--") && option.strip_prefix('-').is_some_and(|rest| rest.starts_with(letter));
    POLICY.iter().any(|(letter, long)| name == *long || by_letter(*letter))
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
            assert_eq!(without_policy(&words).join(" "), expected, "{command}");
        }
    }
}
