//! Properties of every expression: its printed form parses to an equal one, and nothing panics on any machine.

use firsttouch_placement::{Affinity, CpuList, Layout, NodeList, Numbered};
use firsttouch_system::topology;
use std::fmt::{Debug, Display};
use std::fs;
use std::path::Path;
use std::str::FromStr;

/// A small random generator (xorshift64), so that a failure can be reproduced.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }

    fn one_of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.below(words.len())]
    }

    fn maybe(&mut self, word: &str) -> String {
        if self.below(2) == 0 { word.to_owned() } else { String::new() }
    }

    /// Mostly small numbers, sometimes at the limits.
    fn number(&mut self) -> String {
        match self.below(20) {
            0 => "65535".to_owned(),
            1 => "0".to_owned(),
            _ => self.below(12).to_string(),
        }
    }

    fn joined(&mut self, between: &str, part: impl Fn(&mut Self) -> String) -> String {
        let count = 1 + self.below(3);
        (0..count).map(|_| part(self)).collect::<Vec<_>>().join(between)
    }

    fn range(&mut self) -> String {
        let (first, last) = (self.below(9), self.below(9));
        if self.below(2) == 0 { self.number() } else { format!("{}-{}", first.min(last), first.max(last)) }
    }

    /// `!+0-3,6`, `same`, `netdev:eth0`
    fn nodes(&mut self) -> String {
        match self.below(8) {
            0 => "same".to_owned(),
            1 => format!("{}{}:{}", self.maybe("!"), self.one_of(&["netdev", "block", "pci", "ip", "file"]), self.number()),
            _ => self.cpus(),
        }
    }

    fn cpus(&mut self) -> String {
        let numbers = self.joined(",", |random| if random.below(5) == 0 { "all".to_owned() } else { random.range() });
        format!("{}{}{numbers}", self.maybe("!"), self.maybe("+"))
    }

    fn affinity(&mut self) -> String {
        match self.below(3) {
            0 => self.joined("@", Self::part),
            1 => {
                let first = self.location();
                let others = self.joined(" ", |random| format!("{}{}", random.one_of(&["", "~", "x", "^"]), random.location()));
                format!("{first} {others}")
            }
            _ => {
                let threads = format!(":{}", 1 + self.below(40));
                format!("{}{}", self.one_of(&["compact", "scatter", "spread"]), self.maybe(&threads))
            }
        }
    }

    fn part(&mut self) -> String {
        let domain = format!("{}{}", self.one_of(&["S", "D", "C", "M"]), self.below(3));
        let domain = if self.below(4) == 0 { "N".to_owned() } else { domain };
        let positive = |random: &mut Self| 1 + random.below(9);
        match self.below(6) {
            0 => self.spans(),
            1 => domain,
            2 => format!("{}{domain}:{}", self.maybe("L:"), self.spans()),
            3 => format!("E:{domain}:{}", positive(self)),
            4 => {
                let offset = format!(":{}", self.below(4));
                format!("E:{domain}:{}:{}:{}{}", positive(self), positive(self), positive(self), self.maybe(&offset))
            }
            _ => {
                let domain = if self.below(2) == 0 { &domain[..1] } else { &domain };
                let threads = format!(":{}", positive(self));
                format!("{domain}:{}{}", self.one_of(&["scatter", "balanced", "cbalanced"]), self.maybe(&threads))
            }
        }
    }

    /// Upwards and downwards.
    fn spans(&mut self) -> String {
        self.joined(",", |random| if random.below(2) == 0 { random.number() } else { format!("{}-{}", random.below(9), random.below(9)) })
    }

    fn location(&mut self) -> String {
        if self.below(8) == 0 {
            return "all".to_owned();
        }
        self.joined(".", |random| {
            let level = random.one_of(&["machine", "package", "die", "numa", "NUMANode", "l3", "L2Cache", "l1i", "core", "pu"]);
            let range = match random.below(4) {
                0 => random.one_of(&["all", "odd", "even"]).to_owned(),
                1 => format!("{}-", random.below(3)),
                2 => format!("{}:{}", random.below(3), 1 + random.below(9)),
                _ => random.range(),
            };
            format!("{level}:{range}")
        })
    }

    /// The text with some characters removed, doubled or inserted.
    fn damaged(&mut self, text: &str) -> String {
        let mut characters: Vec<char> = text.chars().collect();
        for _ in 0..=self.below(2) {
            let at = self.below(characters.len() + 1);
            match self.below(3) {
                0 if at < characters.len() => {
                    characters.remove(at);
                }
                1 if at < characters.len() => characters.insert(at, characters[at]),
                _ => {
                    let puts =
                        ['0', '9', '-', ',', ':', '@', '!', '+', '.', ' ', '~', 'x', 'E', 'N', 'S', 'L', 'é', '\u{0}', '\n', '\u{10ffff}'];
                    characters.insert(at, puts[self.below(puts.len())]);
                }
            }
        }
        characters.into_iter().collect()
    }
}

/// Parses `text`; checks that the printed form parses to the same, and prints the same.
fn round_trip<T: FromStr<Err: Debug> + Display + PartialEq + Debug>(text: &str) -> Option<T> {
    let parsed = text.parse::<T>().ok()?;
    let printed = parsed.to_string();
    let again = printed.parse::<T>().unwrap_or_else(|error| panic!("{text:?} prints as {printed:?}: {error:?}"));
    assert_eq!(again, parsed, "{text:?} prints as {printed:?}");
    assert_eq!(again.to_string(), printed, "{text:?}");
    Some(parsed)
}

struct Machine {
    layout: Layout,
    nodes: Numbered,
    cpus: Numbered,
}

fn machines() -> Vec<Machine> {
    let machines = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/machines");
    let folders = fs::read_dir(machines).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    let topologies = folders.map(|path| topology::read(&path).unwrap()).chain([Default::default()]);
    topologies
        .map(|topology| Machine { layout: Layout::new(&topology), nodes: Numbered::nodes(&topology), cpus: Numbered::cpus(&topology) })
        .collect()
}

/// Parses a text as every kind of expression, on all machines. Returns whether any kind accepts it.
fn read_everywhere(text: &str, machines: &[Machine]) -> bool {
    let (nodes, cpus, affinity) = (round_trip::<NodeList>(text), round_trip::<CpuList>(text), round_trip::<Affinity>(text));
    for machine in machines {
        let allowed = machine.cpus.allowed();
        if let Some(Ok(found)) =
            nodes.as_ref().map(|list| list.resolve(&machine.nodes, None, &|_| Err(firsttouch_model::Error::unsupported("no devices"))))
        {
            assert!(!found.is_empty() && found.is_sorted() && found.iter().all(|node| machine.nodes.allowed().contains(node)), "{text}");
        }
        if let Some(Ok(found)) = cpus.as_ref().map(|list| list.resolve(&machine.cpus)) {
            assert!(!found.is_empty() && found.is_sorted() && found.iter().all(|cpu| allowed.contains(cpu)), "{text}");
        }
        for threads in [None, Some(0), Some(3)] {
            match affinity.as_ref().map(|affinity| affinity.resolve(&machine.layout, threads)) {
                Some(Ok(found)) => assert!(!found.is_empty() && found.iter().all(|cpu| allowed.contains(cpu)), "{text}"),
                Some(Err(error)) => assert!(error.offset <= text.len(), "{text}: {error:?}"),
                None => {}
            }
        }
    }
    nodes.is_some() || cpus.is_some() || affinity.is_some()
}

/// Check that expressions generated from the grammar parse, that their printed forms parse to equal ones, and that they resolve to
/// usable CPUs and nodes.
#[test]
fn expressions_print_back_to_an_equal_one() {
    let machines = machines();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for _ in 0..4000 {
        let texts = [random.nodes(), random.cpus(), random.affinity()];
        assert!(round_trip::<NodeList>(&texts[0]).is_some(), "{}", texts[0]);
        assert!(round_trip::<CpuList>(&texts[1]).is_some(), "{}", texts[1]);
        assert!(round_trip::<Affinity>(&texts[2]).is_some(), "{}", texts[2]);
        for text in texts {
            read_everywhere(&text, &machines);
        }
    }
}

/// Check that damaged expressions do not panic, and that the printed forms of those that still parse are equal.
#[test]
fn damaged_expressions_panic_nowhere() {
    let machines = machines();
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let mut read = 0;
    for _ in 0..4000 {
        let text = [random.nodes(), random.cpus(), random.affinity()][random.below(3)].clone();
        let damaged = random.damaged(&text);
        read += usize::from(read_everywhere(&damaged, &machines));
        if let Err(error) = damaged.parse::<Affinity>() {
            assert!(error.to_string().lines().count() >= 3, "the spot is shown: {error}");
        }
    }
    assert!((400..3000).contains(&read), "{read} of 4000 are still read: the damage is too small or too large to test much");
}
