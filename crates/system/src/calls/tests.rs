use super::affinity::{allowed_cpus, bind_to_cpus};
use super::mempolicy::{of_this_thread, set_policy};
use super::*;
use firsttouch_model::policy::{Mode, Policy};
use firsttouch_model::topology::MemoryPolicy;

/// The calling thread's policy according to the kernel; `None` if a sandbox forbids the query.
fn current() -> Option<MemoryPolicy> {
    of_this_thread().ok()
}

/// Runs something on another thread: policies and affinities belong to one thread and end with it.
fn on_another_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(work).join().expect("the thread ends"))
}

/// Check that the kernel reports each policy as it was set, or that the refusal names the kernel that has it.
#[test]
fn policies_are_set() {
    let Some(before) = current() else { return };
    for (mode, word) in [
        (Mode::Bind, "bind"),
        (Mode::Preferred, "prefer"),
        (Mode::PreferredMany, "prefer (many)"),
        (Mode::Interleave, "interleave"),
        (Mode::WeightedInterleave, "weighted interleave"),
        (Mode::Local, "local"),
    ] {
        let policy = Policy::new(mode, if mode == Mode::Local { vec![] } else { vec![0] });
        match on_another_thread(|| set_policy(&policy).map(|()| current())) {
            Ok(after) => {
                let after = after.expect("the query worked before");
                assert_eq!((after.mode.as_str(), after.nodes), (word, policy.nodes.clone()));
            }
            Err(refusal) => {
                let running = running_kernel();
                assert!(policy.since().is_some_and(|needs| is_older(&running, needs)), "{refusal}");
                assert!(refusal.to_string().contains(&running), "{refusal}");
            }
        }
    }
    let bind = Policy { balancing: true, ..Policy::new(Mode::Bind, vec![0]) };
    if let Ok(after) = on_another_thread(|| set_policy(&bind).map(|()| current())) {
        assert_eq!(after.expect("the query worked before").flags, ["balancing"]);
    }
    assert_eq!(current(), Some(before), "the test's own thread is unchanged");
}

/// Check that the error for refused nodes names action, call and remedy.
#[test]
fn refused_nodes_are_reported() {
    if current().is_none() {
        return;
    }
    let missing_node = Policy::new(Mode::Bind, vec![1023]);
    let refusal = on_another_thread(|| set_policy(&missing_node)).expect_err("no machine of the tests has so many nodes");
    let text = refusal.to_string();
    assert!(text.starts_with("cannot set the memory policy bind of node 1023: set_mempolicy failed: Invalid argument"), "{text}");
    assert!(text.contains("firsttouch topology"), "{text}");
}

/// Check that a thread is bound, and that CPUs which do not exist are refused, all or in part.
#[test]
fn threads_are_bound() {
    let before = allowed_cpus().expect("the kernel answers");
    let last = *before.last().expect("a CPU");
    assert_eq!(on_another_thread(|| bind_to_cpus(&[last]).map(|()| allowed_cpus())), Ok(Some(vec![last])));
    let refusal = on_another_thread(|| bind_to_cpus(&[60_000])).expect_err("no machine has so many CPUs");
    assert!(refusal.to_string().starts_with("cannot bind to CPUs 60000: sched_setaffinity failed: Invalid argument"), "{refusal}");
    let refusal = on_another_thread(|| bind_to_cpus(&[last, 60_000])).expect_err("a part");
    assert_eq!(refusal.cause, Cause::Part { noun: "CPU", taken: vec![last], missing: vec![60_000] });
    assert_eq!(allowed_cpus(), Some(before), "the test's own thread is unchanged");
}

/// Check which kernels are older.
#[test]
fn kernels_are_compared() {
    for (running, needs, older) in [
        ("6.1.0-56-amd64", "6.9", true),
        ("6.9.0", "6.9", false),
        ("6.18.44-fc-v595", "6.9", false),
        ("5.14.0-427.el9.x86_64", "5.15", true),
        ("10.0", "6.9", false),
        ("6", "6.9", false),
        ("", "6.9", false),
        ("six.nine", "6.9", false),
    ] {
        assert_eq!(is_older(running, needs), older, "{running} {needs}");
    }
}
