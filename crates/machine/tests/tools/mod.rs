//! What numactl and lscpu print, understood. Written from their output (numactl 2.0.16, util-linux 2.38).

use serde_json::Value;
use std::collections::BTreeMap;

fn numbers(text: &str) -> Vec<u32> {
    text.split_whitespace().map(|word| word.parse().unwrap()).collect()
}

/// `numactl --hardware`
#[derive(Default)]
pub struct Numactl {
    pub nodes: Vec<u32>,
    pub details: Vec<Detail>,
    pub distances: Option<Vec<Vec<u32>>>,
}

#[derive(Default)]
pub struct Detail {
    pub cpus: Vec<u32>,
    pub size_mib: f64,
    pub free_mib: f64,
}

impl Numactl {
    pub fn parse(text: &str) -> Self {
        let mut told = Self::default();
        let (facts, matrix) = text.split_once("node distances:\n").unwrap_or((text, ""));
        let mut details: BTreeMap<u32, Detail> = BTreeMap::new();
        for line in facts.lines() {
            if let Some(rest) = line.strip_prefix("available: ") {
                let list = rest.split_once('(').unwrap().1.trim_end_matches(')');
                told.nodes = firsttouch_machine::parse_list(list).unwrap();
            } else if let Some((subject, value)) = line.strip_prefix("node ").and_then(|line| line.split_once(':')) {
                let (id, what) = subject.split_once(' ').unwrap();
                let detail = details.entry(id.parse().unwrap()).or_default();
                let mib = || value.trim().trim_end_matches(" MB").parse().unwrap();
                match what {
                    "cpus" => detail.cpus = numbers(value),
                    "size" => detail.size_mib = mib(),
                    "free" => detail.free_mib = mib(),
                    _ => {}
                }
            }
        }
        told.details = details.into_values().collect();
        let rows: Vec<Vec<u32>> = matrix.lines().filter_map(|line| line.split_once(':')).map(|(_, row)| numbers(row)).collect();
        told.distances = (!rows.is_empty()).then_some(rows);
        told
    }
}

/// `numactl --show`
#[derive(Default)]
pub struct Show {
    pub policy: String,
    pub cpus: Vec<u32>,
    pub membind: Vec<u32>,
}

impl Show {
    pub fn parse(text: &str) -> Self {
        let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default().trim().to_owned();
        Self { policy: value("policy:"), cpus: numbers(&value("physcpubind:")), membind: numbers(&value("membind:")) }
    }
}

/// `lscpu --json`: fields by name, those of newer versions with `children` as well.
pub struct Lscpu(BTreeMap<String, String>);

impl Lscpu {
    pub fn parse(text: &str) -> Self {
        let json: Value = serde_json::from_str(text).unwrap();
        let mut fields = BTreeMap::new();
        let mut rest: Vec<&Value> = json["lscpu"].as_array().unwrap().iter().collect();
        while let Some(entry) = rest.pop() {
            if let (Some(field), Some(data)) = (entry["field"].as_str(), entry["data"].as_str()) {
                fields.insert(field.trim_end_matches(':').to_owned(), data.to_owned());
            }
            rest.extend(entry["children"].as_array().into_iter().flatten());
        }
        Self(fields)
    }

    pub fn text(&self, field: &str) -> Option<&String> {
        self.0.get(field)
    }

    pub fn number(&self, field: &str) -> Option<u64> {
        self.text(field)?.parse().ok()
    }

    pub fn cpus(&self, field: &str) -> Option<Vec<u32>> {
        firsttouch_machine::parse_list(self.text(field)?).ok()
    }

    /// `64 KiB (2 instances)`: bytes and instances.
    pub fn cache(&self, field: &str) -> Option<(f64, u64)> {
        let (size, instances) = self.text(field)?.split_once(" (")?;
        let (number, unit) = size.split_once(' ')?;
        let shift = ["B", "KiB", "MiB", "GiB"].iter().position(|one| *one == unit)?;
        Some((number.parse::<f64>().ok()? * f64::from(1u32 << (10 * shift)), instances.split(' ').next()?.parse().ok()?))
    }
}
