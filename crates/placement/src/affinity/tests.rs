use super::*;

fn parse(text: &str) -> Result<Affinity, ExpressionError> {
    text.parse()
}

/// Check that an expression prints in one form, and that parsing this form gives the same expression.
#[test]
fn expressions_print_back() {
    for (text, printed) in [
        ("0,2,4-7", "0,2,4-7"),
        ("7-4,3-3", "7-4,3"),
        ("N", "N"),
        ("S0:0-3@S1:0-3", "S0:0-3@S1:0-3"),
        ("L:S0:1", "S0:1"),
        ("L:0-1", "N:0-1"),
        ("E:S0", "S0"),
        ("E:N:4", "E:N:4"),
        ("E:N:60:1:4", "E:N:60:1:4"),
        ("E:M1:4:2:4:0", "E:M1:4:2:4"),
        ("E:M1:4:2:4:1", "E:M1:4:2:4:1"),
        ("M:scatter", "M:scatter"),
        ("S:balanced:4", "S:balanced:4"),
        ("C1:cbalanced:2@D0:scatter", "C1:cbalanced:2@D0:scatter"),
        ("0@S1", "0@S1"),
        ("package:0.core:0-3", "package:0.core:0-3"),
        ("Socket:1.NUMANode:0.L3Cache:2:4.L1iCache:1-.PU:all", "package:1.numa:0.l3:2:4.l1i:1-.pu:all"),
        ("node:odd  core:2-2", "numa:odd core:2"),
        ("root ~pu:0 xcore:even ^die:0 ", "all ~pu:0 xcore:even ^die:0"),
        ("machine:0.l2d:1", "machine:0.l2:1"),
        ("compact", "compact"),
        ("scatter:8", "scatter:8"),
        ("spread:16", "spread:16"),
        ("nodes:0,0,1-3", "nodes:0,0,1-3"),
    ] {
        let affinity = parse(text).expect(text);
        assert_eq!(affinity.to_string(), printed);
        assert_eq!(parse(printed).as_ref(), Ok(&affinity), "{text}");
    }
    assert_ne!(parse("S0"), parse("D0"));
    assert_ne!(parse("core:0"), parse("pu:0"));
    assert_ne!(parse("spread"), parse("spread:1"));
}

/// Check malformed expressions: the error says where, and nothing panics.
#[test]
fn malformed_expressions_say_where() {
    for (text, offset, reason) in [
        ("", 0, "expected CPUs (0,2-4), domains"),
        ("  ", 0, "expected CPUs (0,2-4), domains"),
        // Lists of CPUs.
        ("0,", 2, "expected a number, found the end"),
        ("0,,1", 2, "expected a number, found ','"),
        ("0-", 2, "expected a number"),
        ("0-1-2", 3, "expected '@' or the end, found '-'"),
        ("0 1", 1, "expected '@' or the end, found ' '"),
        ("65536", 0, "65536 is too large"),
        ("0,99999999999", 2, "99999999999 is too large"),
        ("0:1", 1, "expected '@' or the end, found ':'"),
        // Domains.
        ("S", 0, "S needs a number, such as S0; for all of them write S:scatter"),
        ("S:0", 0, "S needs a number"),
        ("M@S0", 0, "M needs a number"),
        ("N0:1", 1, "there is one domain N"),
        ("G0:0", 0, "domains of GPUs (G) are not supported"),
        ("S0:", 3, "expected a number"),
        ("S0:x", 3, "expected positions such as 0-3, scatter, balanced or cbalanced, found 'x'"),
        ("S0:sideways", 3, "expected positions"),
        ("S0:0-", 5, "expected a number"),
        ("S0:0@", 5, "expected CPUs such as 0,2-4 or a domain"),
        ("S0@core:0", 3, "expected CPUs such as 0,2-4 or a domain (N, S0, D0, C0, M0), found 'c'"),
        ("S0:scatter:0", 11, "expected a number of threads, at least 1"),
        ("S0:scatter:", 11, "expected a number of threads, found the end"),
        ("S0:scatter:1:2", 12, "expected '@' or the end"),
        ("S99999", 1, "99999 is too large"),
        // Threads, chunk and stride.
        ("E", 0, "expected CPUs such as 0,2-4 or a domain"),
        ("E:", 2, "expected CPUs such as 0,2-4 or a domain"),
        ("E:S:4", 2, "S needs a number"),
        ("E:N:0", 4, "expected a number of threads, at least 1"),
        ("E:N:4:2", 7, "expected ':' and the stride, found the end"),
        ("E:N:4:0:1", 6, "expected CPUs in a row, at least 1"),
        ("E:N:4:1:0", 8, "expected the stride, at least 1"),
        ("E:N:4:1:1:1:1", 11, "expected '@' or the end"),
        ("L:", 2, "expected CPUs such as 0,2-4 or a domain"),
        ("L:S0", 4, "expected ':' and places such as 0-3, found the end"),
        // Objects.
        ("nothing:0", 0, "expected an object (machine, package,"),
        ("0x3", 0, "expected an object (machine, package, die, numa, l3, l2, l1, core, pu), found '0x3'; write a mask as a list"),
        ("core", 4, "expected ':' and which, such as core:0, found the end"),
        ("core:", 5, "expected which: a number, 0-3, 2-, 2:4, all, odd or even, found the end"),
        ("core:x", 5, "expected which"),
        ("core:3-1", 5, "a range must run upwards"),
        ("core:1:0", 7, "expected how many, at least 1"),
        ("core:0,2", 6, "hwloc takes no lists"),
        ("core:0.", 7, "expected an object"),
        ("core:0/1", 6, "expected '.' and a smaller object, a blank and another object, or the end, found '/'"),
        ("numa[hbm]:0", 4, "filters in brackets are not supported"),
        ("os=eth0", 0, "expected an object"),
        ("l6:0", 0, "expected an object"),
        ("l:0", 0, "expected an object"),
        ("lé:0", 0, "expected an object"),
        ("~core:0", 0, "~, x and ^ change the locations before them"),
        ("core:0 ~", 8, "expected an object"),
        ("é", 0, "expected an object (machine, package, die, numa, l3, l2, l1, core, pu), found 'é'"),
        // Words.
        ("compact:", 8, "expected a number of threads, found the end"),
        ("scatter:0", 8, "expected a number of threads, at least 1"),
        ("spread,1", 6, "expected ':' and a number of threads, or the end, found ','"),
        ("Compact", 0, "expected an object"),
        ("balanced", 0, "expected an object"),
        ("nodes:", 6, "expected a number, found the end"),
        ("nodes:0,x", 8, "expected a number, found 'x'"),
        ("nodes:0:1", 7, "expected ',' or the end"),
    ] {
        let error = parse(text).expect_err(text);
        assert_eq!(error.offset, offset, "{text}: {error}");
        assert!(error.reason.starts_with(reason), "{text}: {error}");
    }
}

/// Check that an unknown machine causes an error, not a panic.
#[test]
fn an_empty_machine_has_no_cpus() {
    let layout = Layout::new(&firsttouch_model::topology::Topology::default());
    for text in ["0", "N", "S0:0", "E:N:1", "M:scatter", "S:balanced", "all", "core:all", "l3:0", "compact", "scatter:4", "spread"] {
        assert!(parse(text).expect(text).resolve(&layout, Some(4)).is_err(), "{text}");
    }
}

/// Check that threads on nodes take the nodes' CPUs in turn, and that a node that does not exist is named.
#[test]
fn nodes_of_threads() {
    use firsttouch_model::topology::{Node, Topology};
    let node = |id: u32, cpus: Vec<u32>| Node {
        id,
        cpus,
        memory: None,
        huge_pages: Vec::new(),
        access: Vec::new(),
        memory_side_caches: Vec::new(),
    };
    let mut machine = Topology { nodes: vec![node(0, vec![0, 1]), node(3, vec![2, 3]), node(5, vec![])], ..Topology::default() };
    machine.cpus.online = vec![0, 1, 2, 3];
    let layout = Layout::new(&machine);
    let resolved = |text: &str| parse(text).unwrap().resolve(&layout, None);
    assert_eq!(resolved("nodes:0,0,3,3,0"), Ok(vec![0, 1, 2, 3, 0]));
    assert_eq!(parse("nodes:3,0-1").unwrap().nodes(), Some(vec![3, 0, 1]));
    assert!(resolved("nodes:0,7").unwrap_err().reason.contains("node 7 does not exist: the machine has nodes 0,3,5"));
    assert!(resolved("nodes:5").unwrap_err().reason.contains("node 5 has no CPU"));
}
