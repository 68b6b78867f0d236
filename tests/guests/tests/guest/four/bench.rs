//! `bench` on real nodes: each initialisation places pages as documented.

use firsttouch_guests::{Setting, first_two_with_cpus, firsttouch, json, nodes};

/// The nodes of 64 pages at equal distances in the main array of a kernel, run by one thread on each of two nodes.
fn pages(kernel: &[&str], init: &str, cpus: (u32, u32)) -> Vec<Option<u64>> {
    let (ours, pin) = (firsttouch(), format!("{},{}", cpus.0, cpus.1));
    let binary = ours.binary().to_str().unwrap();
    let run = ["run", "--pin", &pin, "--", binary, "bench"];
    let bench = json(&[&run, kernel, &["--init", init, "--threads", "2", "--repetitions", "1", "--iterations", "1"]].concat());
    assert_eq!(bench["ran_on_cpus"], serde_json::json!([cpus.0.min(cpus.1), cpus.0.max(cpus.1)]), "{kernel:?}");
    bench["page_nodes"].as_array().unwrap().iter().map(|node| node.as_u64()).collect()
}

/// Check the four initialisations of every kind of kernel. A page at the border of two parts belongs to the thread that touched it first.
#[test]
fn initialisations_place_pages() {
    // A huge page that two parts share is on the node of its first toucher. malloc places dgemv's matrix, so it can begin anywhere in a huge
    // page.
    let _small = Setting::set("/sys/kernel/mm/transparent_hugepage/enabled", "madvise");
    let [one, other] = first_two_with_cpus();
    let cpus = (one.cpus[0], other.cpus[0]);
    let (one, other) = (Some(u64::from(one.id)), Some(u64::from(other.id)));
    // iso3dfd's blocks are whole planes, longer than a huge page.
    let kernels: [&[&str]; 5] = [
        &["triad", "--elements", "2097152"],
        &["dgemv", "--m", "2048", "--n", "2048"],
        &["iso3dfd", "--n1", "128", "--n2", "64", "--n3", "272", "--n2-block", "48", "--n3-block", "64"],
        &["dmvm", "--m", "1024", "--n", "1024"],
        &["chase", "--lines", "131072"],
    ];
    // The node of a part does not depend on the number of other nodes, so each guest tests some of the kernels.
    let kernels = if nodes().len() == 2 { &kernels[..3] } else { &kernels[3..] };
    for kernel in kernels {
        let serial = pages(kernel, "serial", cpus);
        assert!(serial.iter().all(|node| *node == one), "{kernel:?} serial: {serial:?}");
        for (init, first, second) in [("parallel", one, other), ("mismatched", other, one)] {
            let nodes = pages(kernel, init, cpus);
            let wrong =
                nodes[..20].iter().filter(|node| **node != first).count() + nodes[44..].iter().filter(|node| **node != second).count();
            assert!(wrong == 0, "{kernel:?} {init}: {nodes:?}");
        }
        let blocked = pages(kernel, "blocked", cpus);
        let at_one = blocked.iter().filter(|node| **node == one).count();
        assert!((20..=44).contains(&at_one) && blocked[..32].contains(&other) && blocked[32..].contains(&one), "{kernel:?}: {blocked:?}");
    }
}
