//! lscpu of util-linux 2.38.

use crate::{list, numbers, parse_list};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// `lscpu --json`: fields by name, also from newer versions, which nest them in `children`.
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
        self.text(field).map(|list| parse_list(list))
    }

    /// `64 KiB (2 instances)`: bytes and instances.
    pub fn cache(&self, field: &str) -> Option<(f64, u64)> {
        let (size, instances) = self.text(field)?.split_once(" (")?;
        let (number, unit) = size.split_once(' ')?;
        let shift = ["B", "KiB", "MiB", "GiB"].iter().position(|one| *one == unit)?;
        Some((number.parse::<f64>().ok()? * f64::from(1u32 << (10 * shift)), instances.split(' ').next()?.parse().ok()?))
    }
}

/// Compares CPUs, packages, cores, SMT, caches and nodes of `firsttouch topology --json` with `lscpu --json`.
pub fn summary_agrees(name: &str, json: &Value, text: &str) {
    let reported = Lscpu::parse(text);
    let (online, offline) = (numbers(&json["cpus"]["online"]), numbers(&json["cpus"]["offline"]));
    assert_eq!(reported.number("CPU(s)"), Some((online.len() + offline.len()) as u64), "{name}: CPU(s)");
    assert_eq!(reported.cpus("On-line CPU(s) list"), Some(online), "{name}: online");
    assert_eq!(reported.cpus("Off-line CPU(s) list").unwrap_or_default(), offline, "{name}: offline");
    for (field, key) in [("Vendor ID", "vendor"), ("Model name", "model_name")] {
        if let Some(text) = reported.text(field) {
            assert_eq!(json["processor"][key], *text, "{name}: {field}");
        }
    }
    for (field, key) in [("CPU family", "family"), ("Model", "model")] {
        assert_eq!(json["processor"][key].as_u64(), reported.number(field), "{name}: {field}");
    }
    let threads = list(json, "cores").iter().map(|core| list(core, "cpus").len() as u64).max();
    assert_eq!(threads, reported.number("Thread(s) per core"), "{name}: threads");
    assert_eq!(Some(list(json, "packages").len() as u64), reported.number("Socket(s)"), "{name}: sockets");
    assert_eq!(Some(list(json, "nodes").len() as u64), reported.number("NUMA node(s)"), "{name}: nodes");
    for node in list(json, "nodes") {
        let field = format!("NUMA node{} CPU(s)", node["id"]);
        assert_eq!(reported.cpus(&field).unwrap_or_default(), numbers(&node["cpus"]), "{name}: {field}");
    }
    let mut sums: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for cache in list(json, "caches") {
        let letter = match cache["kind"].as_str().unwrap() {
            "data" => "d",
            "instruction" => "i",
            _ => "",
        };
        let sum = sums.entry(format!("L{}{letter} cache", cache["level"])).or_default();
        *sum = (sum.0 + cache["size_bytes"].as_u64().unwrap(), sum.1 + 1);
    }
    for (field, (bytes, instances)) in sums {
        let Some((reported_bytes, reported_instances)) = reported.cache(&field) else { continue };
        // QEMU gives an L3 cache that several CPUs share one ID for each of them. lscpu counts IDs, firsttouch counts sets of CPUs.
        let (bytes, instances) = if name.starts_with("guest-") && field == "L3 cache" && reported_instances > instances {
            (bytes * reported_instances / instances, reported_instances)
        } else {
            (bytes, instances)
        };
        // lscpu rounds to one decimal: 1.125 MiB become 1.1 MiB.
        assert!((reported_bytes - bytes as f64).abs() <= 0.05 * bytes as f64, "{name}: {field}: {bytes} bytes, lscpu: {reported_bytes}");
        assert_eq!(instances, reported_instances, "{name}: {field}");
    }
}

/// Compares each CPU's node, core and package in `firsttouch topology --json` with `lscpu --json --all
/// --extended=CPU,CORE,SOCKET,NODE,ONLINE`.
pub fn table_agrees(name: &str, json: &Value, text: &str) {
    // lscpu 2.38 writes a bare dash, which is not JSON, for unknown values of offline CPUs.
    let table: Value = serde_json::from_str(&text.replace(": -", ": null")).unwrap();
    // lscpu has its own numbers for cores and sockets, so compare only which CPUs share them.
    let (mut cores, mut sockets) = (BTreeMap::<u64, Vec<u32>>::new(), BTreeMap::<u64, Vec<u32>>::new());
    for row in list(&table, "cpus") {
        let number = |key: &str| row[key].as_u64().or_else(|| row[key].as_str()?.parse().ok());
        let cpu = number("cpu").unwrap() as u32;
        let is_online = row["online"].as_bool().unwrap_or_else(|| row["online"].as_str() == Some("yes"));
        assert_eq!(numbers(&json["cpus"]["online"]).contains(&cpu), is_online, "{name}: CPU {cpu}");
        if !is_online {
            continue;
        }
        let node = list(json, "nodes").iter().find(|node| numbers(&node["cpus"]).contains(&cpu)).map(|node| node["id"].as_u64().unwrap());
        assert_eq!(node, number("node"), "{name}: node of CPU {cpu}");
        cores.entry(number("core").unwrap()).or_default().push(cpu);
        sockets.entry(number("socket").unwrap()).or_default().push(cpu);
    }
    let groups = |key: &str| list(json, key).iter().map(|one| numbers(&one["cpus"])).collect::<BTreeSet<_>>();
    assert_eq!(groups("cores"), cores.into_values().collect(), "{name}: cores");
    assert_eq!(groups("packages"), sockets.into_values().collect(), "{name}: packages");
}
