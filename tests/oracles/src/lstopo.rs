//! lstopo of hwloc 2.9: its XML, which firsttouch imports.

use crate::{list, numbers};
use serde_json::Value;
use std::collections::BTreeSet;

/// Compares a machine read from its own files (`json`) with the same machine imported from lstopo's XML (`told`).
pub fn agrees(name: &str, json: &Value, told: &Value) {
    assert_eq!(told["cpus"], json["cpus"], "{name}");
    assert_eq!(told["page_bytes"], json["page_bytes"], "{name}");
    for key in ["vendor", "model_name", "family", "model"] {
        // For a tree that is not the running system, lstopo does not know the architecture and omits these.
        if told["processor"][key] != "" && !told["processor"][key].is_null() {
            assert_eq!(told["processor"][key], json["processor"][key], "{name}: {key}");
        }
    }
    for (ours, theirs) in list(json, "nodes").iter().zip(list(told, "nodes")) {
        for key in ["id", "cpus"] {
            assert_eq!(theirs[key], ours[key], "{name}: node {}", ours["id"]);
        }
        // The memory of a running system can change between the two readings.
        let mib = |node: &Value| node["memory"]["total_bytes"].as_u64().unwrap() >> 20;
        assert_eq!(mib(theirs), mib(ours), "{name}: memory of node {}", ours["id"]);
    }
    assert_eq!(list(told, "nodes").len(), list(json, "nodes").len(), "{name}");
    let groups = |json: &Value, key: &str| list(json, key).iter().map(|one| numbers(&one["cpus"])).collect::<BTreeSet<_>>();
    for key in ["packages", "cores"] {
        assert_eq!(groups(told, key), groups(json, key), "{name}: {key}");
    }
    let caches = |json: &Value| {
        let one = |cache: &Value| format!("{} {} {} {}", cache["level"], cache["kind"], cache["size_bytes"], cache["cpus"]);
        list(json, "caches").iter().map(one).collect::<BTreeSet<_>>()
    };
    assert_eq!(caches(told), caches(json), "{name}: caches");
    if !told["distances"].is_null() {
        assert_eq!(told["distances"], json["distances"], "{name}: distances");
    }
    assert_eq!(told["sub_numa"]["nodes_per_package"], json["sub_numa"]["nodes_per_package"], "{name}: sub-NUMA");
}
