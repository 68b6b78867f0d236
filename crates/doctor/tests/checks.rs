//! Each check on constructed facts: one set that triggers it, and the same machine without the cause, which must have no finding.

use firsttouch_doctor::{CHECKS, Diagnosis, Finding, Scope, Severity, UNKNOWN, examine};
use firsttouch_model::facts::{BandwidthCounters, Compiler, CpuQuota, Facts, Limits, OpenMp, Probe, Probes, Program, Swap};
use firsttouch_model::topology::{Core, CpuLists, Cpuset, Memory, MemoryPolicy, Node, Package, ProcessLimits, SubNuma, Topology};
use std::collections::BTreeMap;

const GIB: u64 = 1 << 30;

/// Two nodes of two cores with two SMT siblings each; half of the memory free; everything allowed; one bound thread per core.
fn healthy() -> Facts {
    let node = |id: u32| Node {
        id,
        cpus: (4 * id..4 * id + 4).collect(),
        memory: Some(Memory { total_bytes: 16 * GIB, free_bytes: Some(8 * GIB) }),
        ..Node::default()
    };
    let core = |first: u32| Core { id: Some(first), package: Some(first / 4), cpus: vec![first, first + 1] };
    let topology = Topology {
        cpus: CpuLists { online: (0..8).collect(), offline: Vec::new() },
        packages: (0..2).map(|id| Package { id, cpus: node(id).cpus, nodes: vec![id] }).collect(),
        cores: [0, 2, 4, 6].map(core).to_vec(),
        nodes: vec![node(0), node(1)],
        process: Some(ProcessLimits {
            policy: Some(policy("default", &[])),
            allowed_cpus: Some((0..8).collect()),
            allowed_nodes: Some(vec![0, 1]),
            cpuset: None,
        }),
        ..Topology::default()
    };
    let mut facts = Facts { topology, ..Facts::default() };
    facts.kernel.numa_balancing = Some(0);
    facts.kernel.zone_reclaim_mode = Some(0);
    facts.kernel.perf_event_paranoid = Some(2);
    facts.kernel.transparent_huge_pages = Some("madvise".to_owned());
    facts.kernel.huge_page_bytes = Some(2 << 20);
    facts.kernel.seccomp = Some(0);
    facts.limits = Some(Limits { open_files: Some(4096), address_space_bytes: None });
    facts.swap = Some(Swap { total_bytes: GIB, free_bytes: GIB });
    facts.governors = (0..8).map(|cpu| (cpu, "performance".to_owned())).collect();
    facts.bandwidth_counters = BandwidthCounters::Missing;
    facts.compiler = Compiler { clang: Some("/usr/bin/clang".to_owned()), libomp: Some("/usr/lib/libomp.so.5".to_owned()) };
    let yes = Probe::Allowed;
    facts.probes = Probes { get_mempolicy: yes, set_mempolicy: yes, mbind: yes, move_pages: yes, page_faults: yes, watchpoint: yes };
    with(facts, &[("OMP_PROC_BIND", "spread"), ("OMP_PLACES", "cores"), ("OMP_NUM_THREADS", "4")])
}

fn policy(mode: &str, nodes: &[u32]) -> MemoryPolicy {
    MemoryPolicy { mode: mode.to_owned(), flags: Vec::new(), nodes: nodes.to_vec(), source: "get_mempolicy".to_owned() }
}

/// The facts with another environment.
fn with(mut facts: Facts, variables: &[(&str, &str)]) -> Facts {
    facts.environment = Some(variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect());
    facts
}

fn changed(change: impl FnOnce(&mut Facts)) -> Facts {
    let mut facts = healthy();
    change(&mut facts);
    facts
}

fn limits(facts: &mut Facts) -> &mut ProcessLimits {
    facts.topology.process.as_mut().unwrap()
}

fn memory(facts: &mut Facts, node: usize, total_bytes: u64, free_bytes: u64) {
    facts.topology.nodes[node].memory = Some(Memory { total_bytes, free_bytes: Some(free_bytes) });
}

fn openmp(openmp: OpenMp, runtime: &str, file: Option<&str>, ompt: Option<bool>) -> Program {
    let (runtime, runtime_file) = (runtime.to_owned(), file.map(str::to_owned));
    Program { path: "/opt/solver".to_owned(), openmp, runtime, runtime_file, ompt, ..Program::default() }
}

fn gnu() -> Program {
    openmp(OpenMp::Gnu, "libgomp.so.1", Some("/usr/lib/libgomp.so.1"), Some(false))
}

fn ids(diagnosis: &Diagnosis) -> Vec<&str> {
    diagnosis.findings.iter().map(|finding| finding.id).collect()
}

/// The only finding.
fn only(facts: &Facts, id: &str) -> Finding {
    let diagnosis = examine(facts);
    assert_eq!(ids(&diagnosis), [id], "{:#?}", diagnosis.findings);
    diagnosis.findings.into_iter().next().unwrap()
}

fn silent(facts: &Facts) {
    let diagnosis = examine(facts);
    assert!(diagnosis.findings.is_empty(), "{:#?}", diagnosis.findings);
}

fn evidence(finding: &Finding) -> Vec<String> {
    finding.evidence.iter().map(|evidence| format!("{}: {}", evidence.source, evidence.value)).collect()
}

/// Check that there are no findings on a healthy system and on one about which nothing is known.
#[test]
fn nothing_wrong_is_nothing_found() {
    silent(&healthy());
    silent(&Facts::default());
    let unknown = Topology { nodes: vec![Node::default(), Node { id: 1, ..Node::default() }], ..Topology::default() };
    silent(&Facts { topology: unknown, ..Facts::default() });
    assert_eq!(examine(&healthy()).checked.len(), CHECKS.len());
}

/// Check that each cause triggers only its own check, with the file, the value and a command.
#[test]
fn each_check_is_provoked() {
    let refused = Probe::Refused(1);
    let bound = |count: &'static str| [("OMP_PROC_BIND", "spread"), ("OMP_PLACES", "cores"), ("OMP_NUM_THREADS", count)];
    let quota = CpuQuota { cpus: 2.0, file: "/sys/fs/cgroup/cpu.max".to_owned(), value: "200000 100000".to_owned() };
    let snc = SubNuma { mode: "SNC2".to_owned(), nodes_per_package: 2, meaning: "sub-NUMA clustering".to_owned() };
    let cases: Vec<(&str, Facts, Severity, &str, &str)> = vec![
        ("perf-forbidden", changed(|f| f.probes.page_faults = refused), Severity::High, "perf_event_open: EPERM", "--cap-add PERFMON"),
        (
            "watchpoints-missing",
            changed(|f| f.probes.watchpoint = Probe::Refused(28)),
            Severity::Medium,
            "(breakpoint): ENOSPC",
            "ps -C gdb",
        ),
        ("mempolicy-forbidden", changed(|f| f.probes.mbind = refused), Severity::High, "mbind: EPERM", "--cap-add SYS_NICE"),
        // Docker's filter forbids move_pages regardless of capabilities.
        (
            "mempolicy-forbidden",
            changed(|f| f.probes.move_pages = refused),
            Severity::Medium,
            "move_pages: EPERM",
            "container: a seccomp profile",
        ),
        (
            "mempolicy-forbidden",
            changed(|f| (f.probes.mbind, f.probes.move_pages) = (refused, refused)),
            Severity::High,
            "move_pages: EPERM",
            "all but move_pages",
        ),
        (
            "unpinned-threads",
            with(healthy(), &[("OMP_NUM_THREADS", "4")]),
            Severity::Medium,
            "OMP_PROC_BIND: not set",
            "OMP_PROC_BIND=spread",
        ),
        (
            "threads-on-one-place",
            with(healthy(), &[("OMP_PROC_BIND", "primary"), ("OMP_NUM_THREADS", "4")]),
            Severity::Medium,
            "OMP_PROC_BIND: primary",
            "OMP_PROC_BIND=spread",
        ),
        ("more-threads-than-cpus", with(healthy(), &bound("9")), Severity::Medium, "OMP_NUM_THREADS: 9", "OMP_NUM_THREADS=4"),
        ("smt-shared", with(healthy(), &bound("5")), Severity::Medium, "cpu0/topology/core_cpus_list: 0-1", "OMP_NUM_THREADS=4"),
        (
            "cpu-quota",
            changed(|f| f.cpu_quota = Some(quota)),
            Severity::Medium,
            "/sys/fs/cgroup/cpu.max: 200000 100000",
            "OMP_NUM_THREADS=2",
        ),
        ("cpuset", changed(|f| limits(f).allowed_nodes = Some(vec![0])), Severity::High, "Mems_allowed_list: 0", "--cpuset-mems=0-1"),
        (
            "memory-policy",
            changed(|f| limits(f).policy = Some(policy("interleave", &[0, 1]))),
            Severity::Medium,
            "get_mempolicy: interleave: 0-1",
            "numactl --localalloc",
        ),
        (
            "numa-balancing",
            changed(|f| f.kernel.numa_balancing = Some(1)),
            Severity::Medium,
            "/proc/sys/kernel/numa_balancing: 1",
            "sysctl kernel.numa_balancing=0",
        ),
        (
            "huge-pages-always",
            changed(|f| f.kernel.transparent_huge_pages = Some("always".to_owned())),
            Severity::Low,
            "/sys/kernel/mm/transparent_hugepage/enabled: always",
            "echo madvise",
        ),
        (
            "zone-reclaim",
            changed(|f| f.kernel.zone_reclaim_mode = Some(1)),
            Severity::Low,
            "/proc/sys/vm/zone_reclaim_mode: 1",
            "sysctl vm.zone_reclaim_mode=0",
        ),
        (
            "node-nearly-full",
            changed(|f| memory(f, 1, 16 * GIB, GIB / 2)),
            Severity::High,
            "node1/meminfo: 512 MiB free of 16 GiB",
            "drop_caches",
        ),
        (
            "swap-in-use",
            changed(|f| f.swap = Some(Swap { total_bytes: GIB, free_bytes: GIB / 2 })),
            Severity::Medium,
            "/proc/meminfo: 512 MiB of 1 GiB swap in use",
            "swapoff -a",
        ),
        ("node-without-memory", changed(|f| memory(f, 1, 0, 0)), Severity::High, "node1/meminfo: MemTotal: 0 kB", "taskset -c 0-3"),
        (
            "node-without-cpus",
            changed(|f| {
                let far = Node { id: 2, memory: Some(Memory { total_bytes: GIB, free_bytes: Some(GIB) }), ..Node::default() };
                f.topology.nodes.push(far);
                limits(f).allowed_nodes = Some(vec![0, 1, 2]);
            }),
            Severity::Low,
            "node2/cpulist: (no CPUs)",
            "--membind=0-1",
        ),
        ("sub-numa", changed(|f| f.topology.sub_numa = Some(snc)), Severity::Low, "SNC2: 2 nodes, 2 packages", "OMP_PLACES=numa_domains"),
        (
            "openmp-runtime-missing",
            changed(|f| f.program = Some(openmp(OpenMp::Llvm, "libomp.so.5", None, None))),
            Severity::High,
            "/opt/solver: needs libomp.so.5",
            "apt install libomp5",
        ),
        (
            "openmp-without-ompt",
            changed(|f| f.program = Some(openmp(OpenMp::Llvm, "libomp.so", Some("/x/libomp.so"), Some(false)))),
            Severity::Low,
            "/x/libomp.so: does not contain ompt_start_tool",
            "apt install libomp5",
        ),
        (
            "openmp-allocator-trait",
            changed(|f| f.program = Some(Program { makes_allocators: true, ..gnu() })),
            Severity::Low,
            "/usr/lib/libgomp.so.1: names neither",
            "run --openmp-allocators",
        ),
        (
            "openmp-allocator-trait",
            changed(|f| {
                f.program = Some(Program { placing_library: Some("libmemkind.so".to_owned()), ..gnu() });
                let allocator = ("OMP_ALLOCATOR".to_owned(), "omp_default_mem_space:partition=blocked".to_owned());
                f.environment.as_mut().unwrap().extend([allocator]);
            }),
            Severity::Low,
            "OMP_ALLOCATOR=omp_default_mem_space:partition=blocked",
            "run --openmp-allocators",
        ),
        (
            "fewer-places-than-threads",
            with(healthy(), &[("OMP_PLACES", "{0},{2},{4}"), ("OMP_NUM_THREADS", "4")]),
            Severity::Medium,
            "OMP_PLACES: {0},{2},{4}",
            "OMP_PLACES=cores",
        ),
        (
            "openmp-value-not-understood",
            with(healthy(), &[("OMP_PROC_BIND", "spread"), ("OMP_PLACES", "core"), ("OMP_NUM_THREADS", "4")]),
            Severity::Medium,
            "OMP_PLACES: core",
            "OMP_PLACES: cores, threads",
        ),
        (
            "places-not-allowed",
            with(healthy(), &[("GOMP_CPU_AFFINITY", "5-9"), ("OMP_NUM_THREADS", "4")]),
            Severity::High,
            "GOMP_CPU_AFFINITY: 5-9",
            "unset GOMP_CPU_AFFINITY",
        ),
        (
            "preloaded-allocator",
            changed(|f| f.environment.as_mut().unwrap().extend([("LD_PRELOAD".to_owned(), "/a/b.so:/x/libjemalloc.so.2".to_owned())])),
            Severity::Low,
            "LD_PRELOAD: /x/libjemalloc.so.2",
            "env -u LD_PRELOAD",
        ),
        (
            "preload-missing",
            changed(|f| f.missing_preloads = vec!["/x/libjemalloc.so.2".to_owned()]),
            Severity::Medium,
            "LD_PRELOAD: /x/libjemalloc.so.2: no such library",
            "unset LD_PRELOAD",
        ),
        (
            "open-files-limit",
            changed(|f| f.limits.as_mut().unwrap().open_files = Some(8)),
            Severity::High,
            "Max open files: 8",
            "ulimit -n 256",
        ),
        (
            "address-space-limit",
            changed(|f| f.limits.as_mut().unwrap().address_space_bytes = Some(1 << 30)),
            Severity::Low,
            "Max address space: 1 GiB",
            "ulimit -v unlimited",
        ),
        (
            "frequency-governor",
            changed(|f| f.governors = BTreeMap::from([(0, "performance".to_owned()), (1, "powersave".to_owned())])),
            Severity::Low,
            "cpu1/cpufreq/scaling_governor: powersave",
            "cpupower frequency-set -g performance",
        ),
        (
            "bandwidth-counters",
            changed(|f| {
                let why = "uncore_imc_0: perf_event_open: Permission denied".to_owned();
                f.bandwidth_counters = BandwidthCounters::Refused { why, remedy: "sudo sysctl kernel.perf_event_paranoid=0".to_owned() };
            }),
            Severity::Low,
            "counters: uncore_imc_0",
            "kernel.perf_event_paranoid=0",
        ),
    ];
    let mut provoked: Vec<&str> = cases.iter().map(|(id, ..)| *id).collect();
    for (id, facts, severity, seen, remedy) in &cases {
        let finding = only(facts, id);
        assert_eq!(finding.severity, *severity, "{id}");
        assert!(evidence(&finding).iter().any(|evidence| evidence.contains(seen)), "{id}: {:#?}", finding.evidence);
        assert!(finding.remedy.contains(remedy), "{id}: {}", finding.remedy);
    }
    provoked.sort_unstable();
    provoked.dedup();
    let mut all: Vec<&str> = CHECKS.iter().map(|check| check.id).collect();
    all.sort_unstable();
    assert_eq!(provoked, all, "every check has a case");
}

/// Check that on one node, the checks for several nodes are listed as skipped, and the others run.
#[test]
fn one_node_is_spared() {
    let mut facts = with(healthy(), &[]);
    facts.topology.nodes.truncate(1);
    facts.topology.nodes[0].memory = Some(Memory { total_bytes: GIB, free_bytes: Some(0) });
    facts.kernel.numa_balancing = Some(1);
    facts.kernel.zone_reclaim_mode = Some(1);
    facts.kernel.transparent_huge_pages = Some("always".to_owned());
    silent(&facts);
    let diagnosis = examine(&facts);
    assert_eq!(diagnosis.checked.len() + diagnosis.left_out.len(), CHECKS.len());
    assert!(diagnosis.left_out.iter().any(|left_out| left_out.id == "numa-balancing"));
    assert_eq!(diagnosis.left_out.len(), CHECKS.iter().filter(|check| check.scope == Scope::SeveralNodes).count());
    facts.swap = Some(Swap { total_bytes: GIB, free_bytes: 0 });
    only(&facts, "swap-in-use");
    // Programs that place their memory fail there as well.
    facts.swap = None;
    facts.probes.mbind = Probe::Refused(1);
    assert_eq!(only(&facts, "mempolicy-forbidden").severity, Severity::Low);
}

/// Check the effect of a known runtime: severity, variables that it does not read, and no finding without OpenMP.
#[test]
fn the_program_decides_which_variables_count() {
    let mut facts = with(healthy(), &[("KMP_AFFINITY", "compact"), ("OMP_NUM_THREADS", "4")]);
    silent(&facts);
    facts.program = Some(gnu());
    let finding = only(&facts, "unpinned-threads");
    assert_eq!(finding.severity, Severity::High);
    assert!(evidence(&finding).contains(&"/opt/solver: needs libgomp.so.1".to_owned()), "{finding:#?}");
    assert!(
        evidence(&finding).iter().any(|seen| seen == "KMP_AFFINITY: compact (GCC's runtime (libgomp) does not read it)"),
        "{finding:#?}"
    );
    facts.program = Some(openmp(OpenMp::None, "", None, None));
    facts.environment = Some(BTreeMap::from([("OMP_NUM_THREADS".to_owned(), "100".to_owned())]));
    silent(&facts);
}

/// Check that threads confined to one node (taskset, a cpuset) need no binding.
#[test]
fn threads_that_cannot_leave_a_node_are_pinned_enough() {
    let mut facts = with(healthy(), &[("OMP_NUM_THREADS", "2")]);
    limits(&mut facts).allowed_cpus = Some(vec![0, 1, 2, 3]);
    silent(&facts);
    limits(&mut facts).allowed_cpus = Some(vec![0, 2, 4]);
    only(&facts, "unpinned-threads");
}

/// Check the team size against the cores: the default team, packing, one thread per core, and machines without SMT.
#[test]
fn siblings_are_counted() {
    let bind = [("OMP_PROC_BIND", "close"), ("OMP_PLACES", "cores")];
    assert_eq!(only(&with(healthy(), &bind), "smt-shared").severity, Severity::Low, "the default team has one thread per CPU");
    let packed = with(healthy(), &[("OMP_PROC_BIND", "close"), ("OMP_PLACES", "threads"), ("OMP_NUM_THREADS", "4")]);
    let finding = only(&packed, "smt-shared");
    assert!(finding.message.contains("adjacent hardware threads"), "{}", finding.message);
    let mut one_a_core = with(healthy(), &bind);
    limits(&mut one_a_core).allowed_cpus = Some(vec![0, 2, 4, 6]);
    silent(&one_a_core);
    let mut without_smt = with(healthy(), &bind);
    without_smt.topology.cores.iter_mut().for_each(|core| core.cpus.truncate(1));
    without_smt.topology.cpus.online = vec![0, 2, 4, 6];
    silent(&without_smt);
    silent(&with(healthy(), &[("KMP_AFFINITY", "compact"), ("KMP_HW_SUBSET", "1t")]));
}

/// Check quotas: one that is sufficient, and one below the size of a default team.
#[test]
fn quotas_are_compared_with_threads() {
    let with_quota = |cpus: f64, variables: &[(&str, &str)]| {
        let mut facts = with(healthy(), variables);
        facts.cpu_quota = Some(CpuQuota { cpus, file: "/f".to_owned(), value: "v".to_owned() });
        facts
    };
    let bound = [("OMP_PROC_BIND", "spread"), ("OMP_PLACES", "cores"), ("OMP_NUM_THREADS", "4")];
    silent(&with_quota(4.0, &bound));
    let mut facts = with_quota(0.5, &bound[..2]);
    limits(&mut facts).allowed_cpus = Some(vec![0, 2, 4, 6]);
    let finding = only(&facts, "cpu-quota");
    assert_eq!(finding.severity, Severity::Low);
    assert!(finding.remedy.contains("OMP_NUM_THREADS=1"), "{}", finding.remedy);
}

/// Check that a cpuset with CPUs and memory of the same nodes is a note, not a defect.
#[test]
fn a_consistent_cpuset_is_a_note() {
    let mut facts = healthy();
    *limits(&mut facts) = ProcessLimits {
        policy: None,
        allowed_cpus: Some(vec![0, 1, 2, 3]),
        allowed_nodes: Some(vec![0]),
        cpuset: Some(Cpuset { group: "/job".to_owned(), cpus: None, nodes: None }),
    };
    let facts = with(facts, &[("OMP_NUM_THREADS", "2")]);
    let finding = only(&facts, "cpuset");
    assert_eq!(finding.severity, Severity::Low);
    assert!(evidence(&finding).contains(&"/proc/self/cgroup: cpuset of /job".to_owned()), "{finding:#?}");
}

/// Check limit values: 5 % free, all swap free, contradictory swap.
#[test]
fn borders() {
    silent(&changed(|f| memory(f, 0, 1000, 50)));
    only(&changed(|f| memory(f, 0, 1000, 49)), "node-nearly-full");
    silent(&changed(|f| f.swap = Some(Swap { total_bytes: 0, free_bytes: 0 })));
    silent(&changed(|f| f.swap = Some(Swap { total_bytes: 1, free_bytes: 2 })));
    let both = only(
        &changed(|f| {
            memory(f, 0, 1000, 1);
            memory(f, 1, 1000, 2);
            f.file_bytes = BTreeMap::from([(0, 900)]);
        }),
        "node-nearly-full",
    );
    assert_eq!(both.evidence.len(), 2);
    assert!(both.evidence[0].value.contains("files hold 900 B"), "{both:#?}");
}

/// Check the messages about permissions by cause: the kernel's level, a filter, no events at all, a recorded machine.
#[test]
fn permissions_name_their_cause() {
    let refused = Probe::Refused(13);
    let strict = changed(|f| {
        f.probes.page_faults = refused;
        f.probes.watchpoint = refused;
        f.kernel.perf_event_paranoid = Some(4);
    });
    let finding = only(&strict, "perf-forbidden");
    assert_eq!(finding.remedy, "sudo sysctl kernel.perf_event_paranoid=2");
    assert!(evidence(&finding).contains(&"perf_event_open: EACCES".to_owned()));
    let mut both = strict.clone();
    both.kernel.seccomp = Some(2);
    assert!(only(&both, "perf-forbidden").remedy.contains("PERFMON"));
    assert!(evidence(&only(&both, "perf-forbidden")).contains(&"/proc/self/status: Seccomp: 2".to_owned()));
    let nothing = changed(|f| {
        f.probes.page_faults = Probe::Refused(38);
        f.kernel.perf_event_paranoid = None;
    });
    assert!(only(&nothing, "perf-forbidden").remedy.contains("CONFIG_PERF_EVENTS"));
    let recorded = changed(|f| {
        f.probes = Probes::default();
        f.kernel.perf_event_paranoid = Some(3);
    });
    only(&recorded, "perf-forbidden");
    let root = changed(|f| f.kernel.perf_event_paranoid = Some(4));
    silent(&root);
    let asking = only(&changed(|f| f.probes.move_pages = Probe::Refused(38)), "mempolicy-forbidden");
    assert_eq!(asking.severity, Severity::Medium);
    assert!(asking.remedy.contains("CONFIG_NUMA"), "{}", asking.remedy);
}

/// Check shapes of machines: a node over several packages (also on one node), sockets as places, tiering, programs without OpenMP.
#[test]
fn shapes_and_tools() {
    let mut spanned = changed(|f| {
        f.topology.sub_numa = Some(SubNuma { mode: "NPS0".to_owned(), nodes_per_package: 0, meaning: "a node spans".to_owned() });
    });
    spanned.topology.nodes.truncate(1);
    assert_eq!(only(&spanned, "sub-numa").severity, Severity::High);
    let snc = SubNuma { mode: "SNC2".to_owned(), nodes_per_package: 2, meaning: "sub-NUMA clustering".to_owned() };
    let mut coarse = with(healthy(), &[("OMP_PLACES", "sockets(2)"), ("OMP_NUM_THREADS", "4")]);
    coarse.topology.sub_numa = Some(snc);
    assert_eq!(only(&coarse, "sub-numa").severity, Severity::Medium);
    assert_eq!(only(&changed(|f| f.kernel.numa_balancing = Some(2)), "numa-balancing").severity, Severity::Low);
    let clang = only(&changed(|f| f.compiler.libomp = None), "openmp-runtime-missing");
    assert!(clang.remedy.contains("libomp-dev"));
    silent(&changed(|f| f.compiler = Compiler::default()));
    let everywhere = only(&changed(|f| f.preloaded_everywhere = vec!["/x/libtcmalloc.so.4".to_owned()]), "preloaded-allocator");
    assert!(everywhere.remedy.contains("/etc/ld.so.preload"));
    silent(&changed(|f| f.environment.as_mut().unwrap().extend([("LD_PRELOAD".to_owned(), "/x/libasan.so.8".to_owned())])));
}

/// Check that an allocator that the loader does not find is not taken for one in force.
#[test]
fn missing_allocators_are_not_in_force() {
    let file = "/x/libjemalloc.so.2".to_owned();
    let facts = changed(|f| {
        f.environment.as_mut().unwrap().extend([("LD_PRELOAD".to_owned(), file.clone())]);
        f.missing_preloads = vec![file];
    });
    only(&facts, "preload-missing");
}

/// Check that forbidden calls of memory policies are reported on one node as well, as of no effect there; a kernel without NUMA is not.
#[test]
fn forbidden_policies_on_one_node() {
    let one_node = |errno: i32, seccomp: i64| {
        let mut facts = changed(|f| {
            (f.probes.set_mempolicy, f.probes.mbind, f.kernel.seccomp) = (Probe::Refused(errno), Probe::Refused(errno), Some(seccomp))
        });
        facts.topology.nodes.truncate(1);
        facts
    };
    let finding = examine(&one_node(1, 2)).findings.into_iter().find(|finding| finding.id == "mempolicy-forbidden").unwrap();
    assert_eq!(finding.severity, Severity::Low);
    assert!(finding.message.contains("run --plan"), "{}", finding.message);
    assert!(!ids(&examine(&one_node(38, 0))).contains(&"mempolicy-forbidden"));
}

/// Check the two bounds of open files.
#[test]
fn few_open_files() {
    let with_files = |files: u64| changed(|f| f.limits.as_mut().unwrap().open_files = Some(files));
    assert_eq!(only(&with_files(64), "open-files-limit").severity, Severity::Medium);
    silent(&with_files(1024));
}

/// Check lists of places: all threads on one CPU, more threads than CPUs in the list, the default team, and lists that are long enough.
#[test]
fn lists_of_places_are_counted() {
    let one = |variables: &[(&str, &str)]| only(&with(healthy(), variables), "threads-on-one-place");
    let finding = one(&[("GOMP_CPU_AFFINITY", "0"), ("OMP_NUM_THREADS", "4")]);
    assert_eq!(finding.severity, Severity::High);
    assert!(finding.message.contains("all bound to CPU 0: the 4 of them"), "{}", finding.message);
    assert!(finding.remedy.starts_with("unset GOMP_CPU_AFFINITY; export"), "{}", finding.remedy);
    let default = examine(&with(healthy(), &[("OMP_PLACES", "{5}")]));
    assert!(default.findings[0].message.contains("all bound to CPU 5: the 8 of them"), "{:#?}", default.findings);
    let few = |variables: &[(&str, &str)]| only(&with(healthy(), variables), "fewer-places-than-threads").message;
    assert!(few(&[("OMP_PLACES", "{0},{2}"), ("OMP_NUM_THREADS", "4")]).starts_with("4 threads are bound to the 2 CPUs of OMP_PLACES"));
    assert!(few(&[("OMP_PLACES", "cores(1)"), ("OMP_NUM_THREADS", "4")]).contains("6 CPUs stay idle"));
    let mut confined = with(healthy(), &[("OMP_PLACES", "{0}"), ("OMP_NUM_THREADS", "4")]);
    limits(&mut confined).allowed_cpus = Some(vec![0]);
    confined.launcher = Some("taskset -c 0".to_owned());
    let finding = only(&confined, "more-threads-than-cpus");
    assert!(finding.message.starts_with("4 threads share 1 CPU:"), "{}", finding.message);
    assert!(evidence(&finding).contains(&"taskset -c 0: CPUs 0".to_owned()), "{finding:#?}");
    for places in ["{0},{2},{4},{6}", "{0:8}", "{7:8:-1}", "sockets(2)"] {
        silent(&with(healthy(), &[("OMP_PLACES", places), ("OMP_NUM_THREADS", "4")]));
    }
    silent(&with(healthy(), &[("OMP_PLACES", "{0}"), ("OMP_NUM_THREADS", "1")]));
    let mut serial = with(healthy(), &[("GOMP_CPU_AFFINITY", "0"), ("OMP_NUM_THREADS", "4")]);
    serial.program = Some(openmp(OpenMp::None, "", None, None));
    silent(&serial);
}

/// Check values that libgomp rejects, and such that it takes (measured with libgomp 14).
#[test]
fn values_that_no_runtime_understands() {
    let bound = [("OMP_PROC_BIND", "spread"), ("OMP_PLACES", "cores"), ("OMP_NUM_THREADS", "4")];
    let examined = |name: &str, value: &str| {
        let mut facts = with(healthy(), &bound);
        facts.topology.nodes.truncate(1);
        facts.environment.as_mut().unwrap().insert(name.to_owned(), value.to_owned());
        let found = examine(&facts).findings;
        found.iter().any(|finding| finding.id == "openmp-value-not-understood" && finding.message.starts_with(name))
    };
    for (name, wrong, right) in [
        ("OMP_PROC_BIND", &["sprea", "spread,x", "yes"][..], &["spread", "TRUE", "close,spread", "master", " primary "][..]),
        (
            "OMP_PLACES",
            &["{0:2:1", "core", "{1-2}", "{0}{1}", "cores(x)", "{}"],
            &["{0:2:1}", "ll_caches", "!{0}", "{3:4:-1}", "Cores(99)"],
        ),
        ("OMP_NUM_THREADS", &["abc", "0", "2,x", "2,", "-1"], &["4", " 4 , 2"]),
        ("OMP_THREAD_LIMIT", &["x"], &["4"]),
        ("GOMP_CPU_AFFINITY", &["x", "3-1", "0-3:0"], &["0-7", "0 3 1-2 4-7:2", "0,1"]),
    ] {
        assert!(wrong.iter().all(|value| examined(name, value)) && !right.iter().any(|value| examined(name, value)), "{name}");
    }
}

/// Check lists with CPUs that the machine does not have, or that the process may not use.
#[test]
fn cpus_that_are_not_allowed() {
    let found = |variable: &str, value: &str, allowed: u32| {
        let mut facts = with(healthy(), &[(variable, value), ("OMP_NUM_THREADS", "2")]);
        limits(&mut facts).allowed_cpus = Some((0..allowed).collect());
        let finding = examine(&facts).findings.into_iter().find(|finding| finding.id == "places-not-allowed");
        finding.map(|finding| (finding.severity, finding.message))
    };
    let (severity, message) = found("GOMP_CPU_AFFINITY", "5-9", 8).unwrap();
    assert!(severity == Severity::High && message.contains("this machine does not have (8-9)") && message.contains("ends the program"));
    assert!(found("GOMP_CPU_AFFINITY", "5-7", 2).unwrap().1.contains("this process may not use (5-7)"));
    assert!(found("OMP_PLACES", "{0},{9}", 8).unwrap().1.contains("leave them out"));
    let (severity, message) = found("OMP_PLACES", "{5}", 2).unwrap();
    assert!(severity == Severity::High && message.contains("no place is left"));
    assert_eq!(found("OMP_PLACES", "cores", 2), None);
    assert_eq!(found("GOMP_CPU_AFFINITY", "0-1", 2), None);
}

/// Check that a check whose facts are unknown is left out, and not counted as made.
#[test]
fn unknown_facts_are_no_passed_checks() {
    let diagnosis = examine(&changed(|f| (f.governors, f.environment) = (BTreeMap::new(), None)));
    let unknown: Vec<&str> = diagnosis.left_out.iter().filter(|check| check.reason == UNKNOWN).map(|check| check.id).collect();
    let threads = [
        "unpinned-threads",
        "openmp-value-not-understood",
        "places-not-allowed",
        "threads-on-one-place",
        "fewer-places-than-threads",
        "more-threads-than-cpus",
        "smt-shared",
    ];
    assert_eq!(unknown, [&threads[..], &["preload-missing", "frequency-governor"]].concat());
    assert_eq!(diagnosis.checked.len() + unknown.len(), CHECKS.len());
}

/// Check that the most severe findings come first.
#[test]
fn findings_are_sorted() {
    let facts = changed(|f| {
        f.kernel.transparent_huge_pages = Some("always".to_owned());
        f.kernel.numa_balancing = Some(1);
        f.probes.mbind = Probe::Refused(1);
        f.governors.insert(3, "schedutil".to_owned());
    });
    assert_eq!(ids(&examine(&facts)), ["mempolicy-forbidden", "numa-balancing", "huge-pages-always", "frequency-governor"]);
}
