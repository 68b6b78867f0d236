//! `map` on two nodes: a figure counts only if the kernel confirms that its pages were on the intended nodes.

use firsttouch_e2e::tool::{temporary_directory, text};
use firsttouch_guests::json;
use firsttouch_oracles::list;

/// Check that every pair is measured, on its own nodes, and that the curves have a point for each number of threads.
#[test]
fn every_pair_is_measured() {
    let folder = temporary_directory();
    let saved = folder.path().join("two.toml");
    let map = json(&["map", "--kernels", "triad", "--runs", "3", "--spread", "50%", "--size", "1M", "--save", text(&saved)]);
    assert_eq!((&map["cpu_nodes"], &map["memory_nodes"]), (&serde_json::json!([0, 1]), &serde_json::json!([0, 1])));
    for table in ["triad", "latency"] {
        let table = map["tables"].as_array().unwrap().iter().find(|one| one["name"] == table).unwrap();
        let cells = table["cells"].as_array().unwrap();
        let pairs: Vec<_> = cells.iter().map(|cell| (cell["memory_node"].as_u64(), cell["cpu_node"].as_u64())).collect();
        assert_eq!(pairs, [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(memory, cpu)| (Some(memory), Some(cpu))));
        assert!(cells.iter().all(|cell| cell["best"]["value"].as_f64() > Some(0.0)), "{table:#}");
    }
    let threads: Vec<_> = list(&map, "saturation").iter().map(|point| (point["kernel"].as_str(), point["threads"].as_u64())).collect();
    assert_eq!(threads, [("read", 1), ("read", 2), ("triad", 1), ("triad", 2)].map(|(kernel, threads)| (Some(kernel), Some(threads))));
    assert!(map["one_thread_remote"]["value"].as_f64() > Some(0.0), "{map:#}");
    assert_eq!(list(&map, "loaded_latency").len(), 2);

    // The saved machine has two nodes, each a package with two cores.
    let machine = json(&["machines", "show", text(&saved)]);
    let fact = |name: &str| {
        list(&machine, "numbers").iter().find(|fact| fact["what"] == name).unwrap_or_else(|| panic!("{machine:#}"))["value"].clone()
    };
    assert_eq!((fact("nodes.count"), fact("nodes.cores"), fact("bandwidth.gb_per_s")), ("2".into(), "2, 2".into(), "2 x 2".into()));
    assert_eq!(fact("distances"), "10 21 | 21 10");
}
