//! `map` on two nodes: a figure counts only if the kernel says that its pages were where they were meant to be.

use firsttouch_guests::json;

/// Check that every pair is measured, on its own nodes, and that the curves have a point for each number of threads.
#[test]
fn every_pair_is_measured() {
    let map = json(&["map", "--kernels", "triad", "--runs", "3", "--spread", "50%", "--size", "1M"]);
    assert_eq!((&map["cpu_nodes"], &map["memory_nodes"]), (&serde_json::json!([0, 1]), &serde_json::json!([0, 1])));
    for table in ["triad", "latency"] {
        let table = map["tables"].as_array().unwrap().iter().find(|one| one["name"] == table).unwrap();
        let cells = table["cells"].as_array().unwrap();
        let pairs: Vec<_> = cells.iter().map(|cell| (cell["memory_node"].as_u64(), cell["cpu_node"].as_u64())).collect();
        assert_eq!(pairs, [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(memory, cpu)| (Some(memory), Some(cpu))));
        assert!(cells.iter().all(|cell| cell["best"]["value"].as_f64() > Some(0.0)), "{table:#}");
    }
    let threads: Vec<_> = map["saturation"].as_array().unwrap().iter().map(|point| point["threads"].as_u64()).collect();
    assert_eq!(threads, [Some(1), Some(2)]);
    assert_eq!(map["loaded_latency"].as_array().unwrap().len(), 2);
}
