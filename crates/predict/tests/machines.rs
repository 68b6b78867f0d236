//! Checks that malformed descriptions are errors with a position.

use firsttouch_predict::machine::MachineModel;

const GOOD: &str = r#"
schema = "firsttouch.machine/1"
name = "test"
title = "test"
[sources]
us = "measured by us"
[nodes]
count = { value = 2, source = "us" }
per_package = { value = 1, source = "us" }
cores = { value = [4, 2], source = "us" }
smt = { value = 1, source = "assumed: no matter" }
memory_mib = { value = 1024, source = "us" }
[bandwidth]
gb_per_s = [[30.0, 10.0], [12.0, 31.0]]
streams = { read = 1, write = 0, allocate = 0 }
source = "us"
[latency]
values = [[80, 130], [130, 80]]
source = "us"
"#;

/// Check that a matrix alone is sufficient for a machine: controllers come from its diagonal, links from the rest, marked as inferred.
#[test]
fn a_matrix_is_enough() {
    let machine = MachineModel::parse(GOOD).unwrap();
    assert_eq!(machine.nodes[0].curve(0.0).limit, 30e9);
    assert_eq!(machine.nodes[1].cores, 2);
    assert_eq!(machine.links[machine.route(1, 0)[0]].capacity.gb_per_s(), 12.0);
    let links = machine.facts.iter().find(|fact| fact.what == "links").unwrap();
    assert!(links.source.starts_with("inferred"));
}

/// Check that each malformed description is an error that names the position.
#[test]
fn nonsense_is_refused_with_its_place() {
    let matrix = "[[30.0, 10.0], [12.0, 31.0]]";
    for (from, to, place) in [
        (matrix, "[[30.0, -10.0], [12.0, 31.0]]", "bandwidth.gb_per_s[0][1]"),
        (matrix, "[[30.0, 10.0], [nan, 31.0]]", "bandwidth.gb_per_s[1][0]"),
        (matrix, "[[30.0, 10.0], [inf, 31.0]]", "bandwidth.gb_per_s[1][0]"),
        (matrix, "[[30.0, 10.0], [0.0, 31.0]]", "bandwidth.gb_per_s[1][0]"),
        (matrix, "[[30.0, 10.0]]", "bandwidth.gb_per_s"),
        (matrix, "[[30.0], [12.0, 31.0]]", "bandwidth.gb_per_s[0]"),
        (matrix, "\"fast\"", "line 14"),
        ("value = 2,", "value = 0,", "nodes.count"),
        ("value = 2,", "value = 2.5,", "nodes.count"),
        ("value = 2,", "value = 1e9,", "nodes.count"),
        ("[4, 2]", "[4]", "nodes.cores"),
        ("[4, 2]", "[4, -2]", "nodes.cores"),
        ("value = 1024", "value = nan", "nodes.memory_mib"),
        ("cores =", "coers =", "line 10"),
        ("machine/1", "machine/2", "schema"),
        ("value = 1024, source = \"us\"", "value = 1024", "line 12"),
        ("value = 1024, source = \"us\"", "value = 1024, source = \"hearsay\"", "nodes.memory_mib"),
        ("read = 1", "read = 0", "bandwidth.streams"),
        ("read = 1", "read = -1", "bandwidth.streams"),
        ("[[80, 130], [130, 80]]", "[[80, 130]]", "latency.values"),
        ("[latency]", "[[links]]\nfrom = 0\nto = 1\ngb_per_s = { value = 9, source = \"us\" }\n[latency]", "links"),
        ("[latency]", "[[links]]\nfrom = 0\nto = 2\ngb_per_s = { value = 9, source = \"us\" }\n[latency]", "links[0]"),
        ("[latency]", "[[links]]\nfrom = 0\nto = 1\ngb_per_s = { value = 0, source = \"us\" }\n[latency]", "links[0] 0->1 gb_per_s"),
        ("[latency]", "[interconnect]\ngb_per_s = { value = -1, source = \"us\" }\n[latency]", "interconnect.gb_per_s"),
        ("[latency]", "[core]\nremote_gb_per_s = { value = [1, 2, 3], source = \"us\" }\n[latency]", "core.remote_gb_per_s"),
        (
            "[latency]",
            "[[controller.curves]]\nstreams = { read = 1, write = 0, allocate = 0 }\npoints = [[1, 5], [1, 6]]\nsource = \"us\"\n[latency]",
            "controller.curves[0].points",
        ),
        ("[bandwidth]", "[bandwidth", "line 13"),
    ] {
        assert!(GOOD.contains(from), "{from}");
        let error = MachineModel::parse(&GOOD.replacen(from, to, 1)).expect_err(to);
        assert_eq!(error.place, place, "{to}: {error}");
    }
    assert!(MachineModel::parse("").is_err());
}

/// Check that a machine with one node needs no links, and that several nodes without links are an error.
#[test]
fn nodes_are_connected() {
    let curves = "[[controller.curves]]\nstreams = { read = 1, write = 0, allocate = 0 }\npoints = [[1, 5], [4, 9]]\nsource = \"us\"\n";
    let start = GOOD.split("[bandwidth]").next().unwrap();
    let error = MachineModel::parse(&format!("{start}{curves}")).unwrap_err();
    assert!(error.to_string().contains("no way leads from node 0 to node 1"), "{error}");
    let single = start.replace("value = 2,", "value = 1,").replace("[4, 2]", "4");
    assert!(MachineModel::parse(&format!("{single}{curves}")).unwrap().links.is_empty());
}
