//! Meanings of expressions, derived by hand from likwid's and hwloc's documentation, on the machines of these documents, whose SMT
//! siblings are numbered after all cores, and on recorded machines.

use firsttouch_model::ExpressionError;
use firsttouch_model::topology::{Cache, CacheKind, Core, CpuLists, Node, Package, Topology};
use firsttouch_placement::{Affinity, Layout};
use firsttouch_system::topology;
use std::path::Path;

/// A recorded machine's layout, with the limits of the process that recorded it.
fn recorded(name: &str) -> Layout {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/machines").join(name);
    Layout::new(&topology::read(&path).unwrap())
}

/// A machine of equal nodes with two threads per core: core c has CPUs c and c + cores. A package's cores share an L3 cache.
fn with_smt(packages: u32, nodes_a_package: u32, cores_a_node: u32) -> Layout {
    let (nodes, cores) = (packages * nodes_a_package, packages * nodes_a_package * cores_a_node);
    let cpus_of = |objects: u32, object: u32| {
        let first = object * (cores / objects)..(object + 1) * (cores / objects);
        first.clone().chain(first.map(|core| core + cores)).collect::<Vec<u32>>()
    };
    let topology = Topology {
        cpus: CpuLists { online: (0..2 * cores).collect(), offline: vec![] },
        packages: (0..packages).map(|id| Package { id, cpus: cpus_of(packages, id), nodes: vec![] }).collect(),
        nodes: (0..nodes).map(|id| Node { id, cpus: cpus_of(nodes, id), ..Node::default() }).collect(),
        cores: (0..cores).map(|id| Core { id: Some(id), package: None, cpus: cpus_of(cores, id) }).collect(),
        caches: (0..packages)
            .map(|id| Cache {
                level: 3,
                kind: CacheKind::Unified,
                size_bytes: 1 << 25,
                line_bytes: None,
                ways: None,
                cpus: cpus_of(packages, id),
            })
            .collect(),
        ..Topology::default()
    };
    Layout::new(&topology)
}

/// Two packages of two nodes each, 16 CPUs: core c has CPUs c and c + 8.
fn sub_numa() -> Layout {
    with_smt(2, 2, 2)
}

fn resolve(text: &str, layout: &Layout, threads: Option<usize>) -> Result<Vec<u32>, ExpressionError> {
    text.parse::<Affinity>()?.resolve(layout, threads)
}

fn check(layout: &Layout, table: &[(&str, &[u32])]) {
    for (text, cpus) in table {
        assert_eq!(resolve(text, layout, None).as_deref(), Ok(*cpus), "{text}");
    }
}

/// Check the examples of likwid's documentation (doc/applications/likwid-pin.md, likwid-pin(1)), on the machine they are for: two
/// sockets of two cores, N = 0,4,1,5,2,6,3,7, S0 = 0,4,1,5, S1 = 2,6,3,7.
#[test]
fn likwids_examples() {
    check(
        &with_smt(2, 1, 2),
        &[
            ("1", &[1]),
            ("1,4", &[1, 4]),
            ("1-3", &[1, 2, 3]),
            ("0,1-3", &[0, 1, 2, 3]),
            ("L:0", &[0]),
            ("L:0,4", &[0, 4]),
            ("L:1-3", &[1, 2, 3]),
            ("L:N:1,4-6", &[1, 4, 5, 6]),
            ("N:0-3", &[0, 1, 2, 3]),
            ("E:N:1", &[0]),
            ("E:N:2", &[0, 4]),
            ("E:N:2:1:2", &[0, 1]),
            ("E:N:4:2:4", &[0, 4, 2, 6]),
            ("E:N:4:1:2", &[0, 1, 2, 3]),
            ("S:scatter", &[0, 2, 1, 3, 4, 6, 5, 7]),
            ("S:scatter:4", &[0, 2, 1, 3]),
            ("S:balanced:4", &[0, 4, 2, 6]),
            ("S:cbalanced:4", &[0, 1, 2, 3]),
            ("S0:0-1@S1:0-1", &[0, 1, 2, 3]),
        ],
    );
}

/// Check domains on a machine with SMT, two packages of two nodes each, 16 CPUs: core c has CPUs c and c + 8.
#[test]
fn domains_with_smt_and_sub_numa() {
    check(
        &sub_numa(),
        &[
            ("S1", &[4, 12, 5, 13, 6, 14, 7, 15]),
            ("S1:0-5", &[4, 5, 6, 7, 12, 13]),
            ("S1:5-4", &[13, 12]),
            ("M1", &[2, 10, 3, 11]),
            ("M3:0-3", &[6, 7, 14, 15]),
            ("C1:0@D0:4", &[4, 8]),
            ("M:scatter", &[0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15]),
            ("M:scatter:5", &[0, 2, 4, 6, 1]),
            ("S1:scatter:5", &[4, 5, 6, 7, 12]),
            ("S:balanced:5", &[0, 8, 1, 4, 12]),
            ("S:cbalanced:5", &[0, 1, 2, 4, 5]),
            // More threads than cores: as few cores as possible get two threads, and these have adjacent numbers.
            ("S:cbalanced:12", &[0, 8, 1, 9, 2, 3, 4, 12, 5, 13, 6, 7]),
            ("E:S0:4:1:2:1", &[8, 9, 10, 11]),
            // Overlapping chunks, and strides past the end, which start again.
            ("E:N:8:4:2", &[0, 8, 1, 9, 1, 9, 2, 10]),
            ("E:S0:6:1:3", &[0, 9, 3, 0, 9, 3]),
            ("N:15,0@1", &[15, 0, 1]),
        ],
    );
}

/// Check hwloc's objects (hwloc(7)) on the same machine: first one CPU of each core, unless the location goes down to pu.
#[test]
fn objects_with_smt_and_sub_numa() {
    check(
        &sub_numa(),
        &[
            ("package:1.core:1", &[5, 13]),
            ("package:0.core:0-3", &[0, 1, 2, 3, 8, 9, 10, 11]),
            ("package:0.core:0-1.pu:0", &[0, 1]),
            ("package:0.core:0-1.pu:all", &[0, 8, 1, 9]),
            ("package:all.numa:1.core:0.pu:0", &[2, 6]),
            ("numa:1.pu:all", &[2, 10, 3, 11]),
            ("numa:1", &[2, 3, 10, 11]),
            ("l3:1.core:3:2.pu:1", &[15, 12]),
            ("core:6-.pu:0", &[6, 7]),
            ("core:even.pu:0", &[0, 2, 4, 6]),
            ("core:odd.pu:1", &[9, 11, 13, 15]),
            ("pu:2-3", &[1, 9]),
            ("package:1.core:0 package:0.core:0", &[4, 12, 0, 8]),
            ("package:0 ~numa:1", &[0, 1, 8, 9]),
            ("all xcore:5", &[5, 13]),
            ("core:0-1.pu:0 ^core:1-2.pu:0", &[0, 2]),
            ("machine:0.core:7.pu:0", &[7]),
        ],
    );
}

/// Check the keywords on the same machine, for known and unknown numbers of threads.
#[test]
fn threads_over_nodes() {
    let layout = sub_numa();
    for (text, threads, cpus) in [
        ("compact:6", None, &[0, 1, 8, 9, 2, 3][..]),
        ("compact", Some(3), &[0, 1, 8]),
        ("compact:2", Some(3), &[0, 1]),
        ("scatter:6", None, &[0, 2, 4, 6, 1, 3]),
        ("spread", Some(4), &[0, 2, 4, 6]),
        ("spread", Some(6), &[0, 1, 2, 4, 5, 6]),
        ("spread:8", None, &[0, 1, 2, 3, 4, 5, 6, 7]),
        ("spread", None, &[0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15]),
        ("compact:17", None, &[0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15, 0]),
    ] {
        assert_eq!(resolve(text, &layout, threads).as_deref(), Ok(cpus), "{text} {threads:?}");
    }
}

/// Check SMT siblings with consecutive numbers, on a recorded machine: two packages of two nodes, one core each.
#[test]
fn siblings_in_a_row() {
    check(
        &recorded("guest-4-nodes-snc2"),
        &[
            ("N", &[0, 1, 2, 3, 4, 5, 6, 7]),
            ("N:0-3", &[0, 2, 4, 6]),
            ("S1:0-2", &[4, 6, 5]),
            ("M:scatter", &[0, 2, 4, 6, 1, 3, 5, 7]),
            ("S:balanced:4", &[0, 1, 4, 5]),
            ("S:cbalanced:4", &[0, 2, 4, 6]),
            ("E:N:4:1:2", &[0, 2, 4, 6]),
            ("package:1.core:0", &[4, 5]),
            ("core:all.pu:0", &[0, 2, 4, 6]),
            ("numa:3", &[6, 7]),
            ("spread:4", &[0, 2, 4, 6]),
            ("compact:3", &[0, 1, 2]),
        ],
    );
}

/// Check numbers with holes, on a recorded machine: of four CPUs, 0 and 2 are online, and node 2 has only memory.
#[test]
fn numbers_with_holes() {
    check(
        &recorded("guest-holes"),
        &[
            ("N", &[0, 2]),
            ("N:1", &[2]),
            ("M0", &[0, 2]),
            ("M:scatter", &[0, 2]),
            ("core:1", &[2]),
            ("2,0", &[2, 0]),
            ("numa:0", &[0, 2]),
            ("spread:2", &[0, 2]),
        ],
    );
    let layout = recorded("guest-holes");
    for (text, reason) in [("1", "CPU 1 is offline; online are 0,2"), ("M1", "M1 does not exist"), ("0-3", "CPU 1 is offline")] {
        let error = resolve(text, &layout, None).expect_err(text);
        assert!(error.reason.starts_with(reason), "{text}: {error}");
    }
}

/// Check that the error names what the machine lacks, with the position in the expression.
#[test]
fn missing_objects_are_named() {
    let layout = sub_numa();
    for (text, offset, reason) in [
        ("0,16", 2, "CPU 16 does not exist: this machine has CPUs 0-15"),
        ("0-16", 0, "CPU 16 does not exist"),
        ("S2:0", 0, "S2 does not exist: this machine has S0 to S1"),
        ("S0:0@M4", 5, "M4 does not exist: this machine has M0 to M3"),
        ("S0:0,8", 5, "S0 has no position 8: the last that this process may use is 7"),
        ("E:N:17", 4, "this asks for 17 threads on 16 CPUs"),
        ("E:S0:2:1:1:8", 11, "the offset is past the last of 8 CPUs"),
        ("M:scatter:17", 10, "this asks for 17 threads on 16 CPUs"),
        ("package:0.core:4", 15, "there is no core:4 here: the last is core:3"),
        ("package:2-3", 8, "there is no package:2 here"),
        ("l4:0", 0, "this machine reports no l4"),
        ("numa:0.package:0", 7, "package is larger than the object before it"),
        ("package:0 ~package:0", 0, "this selects no CPU"),
        ("core:0.pu:odd xcore:1", 0, "this selects no CPU"),
    ] {
        let error = resolve(text, &layout, None).expect_err(text);
        assert_eq!(error.offset, offset, "{text}: {error}");
        assert!(error.reason.starts_with(reason), "{text}: {error}");
    }
}

/// Check that only the cpuset's CPUs are used (recorded with CPUs 1 and 4 of six on three nodes), and domains keep their names.
#[test]
fn limits_are_kept() {
    let layout = recorded("guest-cpuset");
    check(
        &layout,
        &[
            ("N", &[1, 4]),
            ("N:1", &[4]),
            ("M0", &[1]),
            ("M2:0", &[4]),
            ("M2:0@M0:0", &[4, 1]),
            ("all", &[1, 4]),
            ("numa:1", &[4]),
            ("spread:2", &[1, 4]),
            ("4", &[4]),
        ],
    );
    for (text, reason) in [
        ("2", "CPU 2 is not allowed here: this process may use CPUs 1,4"),
        ("M1:0", "M1 has no CPU that this process may use"),
        ("numa:2", "there is no numa:2 here: the last is numa:1"),
    ] {
        assert_eq!(resolve(text, &layout, None).expect_err(text).reason, reason);
    }
}
