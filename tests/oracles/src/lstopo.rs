//! lstopo of hwloc 2.9: its XML, which firsttouch imports.

use crate::{list, numbers};
use serde_json::Value;
use std::collections::BTreeSet;

/// Compares a machine read from its own files (`json`) with the same machine imported from lstopo's XML (`reported`).
pub fn agrees(name: &str, json: &Value, reported: &Value) {
    assert_eq!(reported["cpus"], json["cpus"], "{name}");
    assert_eq!(reported["page_bytes"], json["page_bytes"], "{name}");
    for key in ["vendor", "model_name", "family", "model"] {
        // For a tree that is not the running system, lstopo does not know the architecture and omits these.
        if reported["processor"][key] != "" && !reported["processor"][key].is_null() {
            assert_eq!(reported["processor"][key], json["processor"][key], "{name}: {key}");
        }
    }
    for (ours, theirs) in list(json, "nodes").iter().zip(list(reported, "nodes")) {
        for key in ["id", "cpus"] {
            assert_eq!(theirs[key], ours[key], "{name}: node {}", ours["id"]);
        }
        // The memory of a running system can change between the two readings.
        let mib = |node: &Value| node["memory"]["total_bytes"].as_u64().unwrap() >> 20;
        assert_eq!(mib(theirs), mib(ours), "{name}: memory of node {}", ours["id"]);
    }
    assert_eq!(list(reported, "nodes").len(), list(json, "nodes").len(), "{name}");
    let groups = |json: &Value, key: &str| list(json, key).iter().map(|one| numbers(&one["cpus"])).collect::<BTreeSet<_>>();
    for key in ["packages", "cores"] {
        assert_eq!(groups(reported, key), groups(json, key), "{name}: {key}");
    }
    let caches = |json: &Value| {
        let one = |cache: &Value| format!("{} {} {} {}", cache["level"], cache["kind"], cache["size_bytes"], cache["cpus"]);
        list(json, "caches").iter().map(one).collect::<BTreeSet<_>>()
    };
    assert_eq!(caches(reported), caches(json), "{name}: caches");
    if !reported["distances"].is_null() {
        assert_eq!(reported["distances"], json["distances"], "{name}: distances");
    }
    assert_eq!(reported["sub_numa"]["nodes_per_package"], json["sub_numa"]["nodes_per_package"], "{name}: sub-NUMA");
}
