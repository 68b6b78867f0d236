use super::*;
use firsttouch_model::topology::{CpuLists, Node, ProcessLimits, Topology};

/// Nodes 0, 1, 2, 5 and CPUs 0-7, 9 (8 offline), of which nodes 1, 2, 5 and CPUs 2-5, 9 are allowed.
fn machine() -> Topology {
    Topology {
        cpus: CpuLists { online: vec![0, 1, 2, 3, 4, 5, 6, 7, 9], offline: vec![8] },
        nodes: [0, 1, 2, 5].map(|id| Node { id, ..Node::default() }).to_vec(),
        process: Some(ProcessLimits {
            allowed_cpus: Some(vec![2, 3, 4, 5, 9, 64]),
            // The kernel lists CPUs as allowed that do not exist.
            allowed_nodes: Some(vec![1, 2, 3, 4, 5, 6, 7]),
            ..ProcessLimits::default()
        }),
        ..Topology::default()
    }
}

fn nodes(text: &str, known: &Numbered) -> Result<Vec<u32>, ExpressionError> {
    let devices = |device: &Device| match (device.kind, device.name.as_str()) {
        (DeviceKind::Network, "eth0") => Ok(vec![5]),
        (DeviceKind::Network, "eth1") => Ok(vec![0]),
        _ => Err(Error::unsupported("the kernel does not know its node")),
    };
    text.parse::<NodeList>()?.resolve(known, Some(&[2]), &devices)
}

/// Check the forms of numactl's manual, on a machine with holes and limits.
#[test]
fn lists_mean_what_numactl_says() {
    let limited = Numbered::nodes(&machine());
    for (text, answer) in [
        ("1", &[1][..]),
        ("1,5", &[1, 5]),
        ("5,1,1", &[1, 5]),
        ("1-2", &[1, 2]),
        // Numbers between the ends that do not exist are skipped.
        ("1-5", &[1, 2, 5]),
        ("2-2", &[2]),
        ("all", &[1, 2, 5]),
        ("1,all", &[1, 2, 5]),
        ("!1", &[2, 5]),
        ("!1-2", &[5]),
        ("!1,5", &[2]),
        ("+0", &[1]),
        ("+0-1", &[1, 2]),
        ("+2,0", &[1, 5]),
        ("+all", &[1, 2, 5]),
        ("!+0", &[2, 5]),
        ("0x5", &[5]),
        ("1, 2", &[1, 2]),
        ("same", &[2]),
        ("netdev:eth0", &[5]),
        ("!netdev:eth0", &[1, 2]),
        ("1,netdev:eth0", &[1, 5]),
    ] {
        assert_eq!(nodes(text, &limited).as_deref(), Ok(answer), "{text}");
    }
    let all = limited.without_limits();
    assert_eq!(nodes("all", &all), Ok(vec![0, 1, 2, 5]));
    assert_eq!(nodes("!0", &all), Ok(vec![1, 2, 5]));
    assert_eq!(nodes("+3", &all), Ok(vec![5]));
}

/// Check that the reasons for refusal are distinguished, with the position of the error.
#[test]
fn unusable_numbers_are_named() {
    let limited = Numbered::nodes(&machine());
    for (text, offset, reason) in [
        ("0", 0, "node 0 is not allowed here: this process may use nodes 1-2,5"),
        ("1,3", 2, "node 3 does not exist: this machine has nodes 0-2,5"),
        ("0-2", 0, "node 0 is not allowed"),
        ("1-4", 2, "node 4 does not exist"),
        ("!1-4", 3, "node 4 does not exist"),
        ("+3", 1, "+3 does not exist: this process may use 3 nodes, +0 to +2"),
        ("+0-3", 3, "+3 does not exist"),
        ("!all", 0, "this selects no node"),
        ("netdev:eth1", 0, "node 0 is not allowed"),
        ("block:sda", 0, "the kernel does not know its node"),
    ] {
        let error = nodes(text, &limited).expect_err(text);
        assert_eq!(error.offset, offset, "{text}: {error}");
        assert!(error.reason.starts_with(reason), "{text}: {error}");
    }
    let error = "same".parse::<NodeList>().unwrap().resolve(&limited, None, &|_| Ok(vec![])).expect_err("nothing before it");
    assert!(error.reason.contains("needs nodes or CPUs"), "{error}");

    let cpus = Numbered::cpus(&machine());
    let cpu = |text: &str| text.parse::<CpuList>().and_then(|list| list.resolve(&cpus));
    assert_eq!(cpu("2-9"), Ok(vec![2, 3, 4, 5, 9]));
    assert_eq!(cpu("!+0"), Ok(vec![3, 4, 5, 9]));
    for (text, reason) in [("8", "CPU 8 is offline; online are 0-7,9"), ("64", "CPU 64 does not exist"), ("0", "CPU 0 is not allowed here")]
    {
        assert!(cpu(text).expect_err(text).reason.starts_with(reason), "{text}");
    }
}

/// Check that an empty machine causes an error, not a panic.
#[test]
fn an_empty_machine_has_no_nodes() {
    let known = Numbered::nodes(&Topology::default());
    for text in ["all", "0", "!0", "+0", "+0-1", "0-65535"] {
        assert!(nodes(text, &known).is_err(), "{text}");
    }
}

/// Check malformed lists: the error says where, and nothing panics.
#[test]
fn malformed_lists_say_where() {
    for (text, offset, reason) in [
        ("", 0, "expected a number or 'all', found the end"),
        ("x", 0, "expected a number or 'all', found 'x'"),
        ("0,", 2, "expected a number"),
        (",", 0, "expected a number"),
        ("0,,1", 2, "expected a number"),
        ("-1", 0, "expected a number"),
        ("0-", 2, "expected a number"),
        ("0-1-2", 3, "expected ',' or the end, found '-'"),
        ("0 1", 1, "expected ',' or the end, found ' '"),
        ("3-1", 0, "a range must run upwards"),
        ("1,3-1", 2, "a range must run upwards"),
        ("010", 0, "a number with a leading 0 is octal"),
        ("0x", 0, "expected a number, decimal or 0x"),
        ("0xg", 0, "expected a number, decimal or 0x"),
        ("0x10000", 0, "expected a number, decimal or 0x"),
        ("65536", 0, "65536 is too large"),
        ("0-99999999999999999999", 2, "99999999999999999999 is too large"),
        ("0,+1", 2, "'+' stands once"),
        ("+!0", 1, "'!' stands once"),
        ("0,!1", 2, "'!' stands once"),
        ("++0", 1, "'+' stands once"),
        ("allx", 0, "expected a number or 'all', found 'a'"),
        ("all1", 0, "expected a number or 'all', found 'a'"),
        ("!", 1, "expected a number"),
        ("+", 1, "expected a number"),
        ("!same", 1, "expected a number"),
        ("0\u{0}", 1, "expected ',' or the end"),
        ("0,é", 2, "expected a number or 'all', found 'é'"),
        ("netdev:", 7, "expected a name after netdev:"),
        ("netdev:../eth0", 7, "'../eth0' is not the name of a device"),
        ("block:..", 6, "'..' is not the name of a device"),
    ] {
        let error = text.parse::<NodeList>().expect_err(text);
        assert_eq!(error.offset, offset, "{text}: {error}");
        assert!(error.reason.starts_with(reason), "{text}: {error}");
    }
    let error = "netdev:eth0".parse::<CpuList>().expect_err("CPUs have no devices");
    assert_eq!(error.offset, 0);
}

/// Check that a list prints in one form, and that parsing this form gives the same list.
#[test]
fn lists_print_back() {
    for (text, printed) in [
        ("0-3,6", "0-3,6"),
        ("!+0-1,7", "!+0-1,7"),
        ("0, 2", "0,2"),
        ("0x1f", "31"),
        ("all", "all"),
        ("same", "same"),
        ("file:/dev/sda, b", "file:/dev/sda, b"),
        ("!pci:0000:01:00.0", "!pci:0000:01:00.0"),
        ("1,ip:10.0.0.1", "1,ip:10.0.0.1"),
    ] {
        let list: NodeList = text.parse().unwrap();
        assert_eq!(list.to_string(), printed);
        assert_eq!(printed.parse::<NodeList>().as_ref(), Ok(&list), "{text}");
    }
    assert_ne!("1".parse::<NodeList>(), "1-1".parse::<NodeList>(), "printed differently");
    assert_ne!("same".parse::<NodeList>(), "all".parse::<NodeList>());
}
