//! A plan for `firsttouch run --plan`: a parsed plan prints and parses to an equal one, applies to nodes, and converts to the table.
#![no_main]

use firsttouch_fuzz::mutate;
use firsttouch_plan::{Found, Plan, RunNodes, Table, apply, table};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

fuzz_mutator!(|data: &mut [u8], size: usize, most: usize, seed: u32| { mutate::text(data, size, most, seed) });

fuzz_target!(|text: &str| {
    match text.parse::<Plan>() {
        Ok(plan) => {
            assert_eq!(plan.to_string().parse::<Plan>().as_ref(), Ok(&plan));
            for nodes in [vec![], vec![3], vec![0, 1], vec![1, 4, 6, 7]] {
                let applied = apply(&plan, &RunNodes { nodes, ..RunNodes::default() });
                let found = vec![Found::Missing; plan.entries.len()];
                let bytes = table(&Table { plan: &plan, applied: &applied, identities: &[], found: &found, pid: 1 });
                assert!(bytes.len() >= 128 + 304 * plan.entries.len());
            }
        }
        Err(error) => assert!(error.line >= 1 && !error.kind.to_string().is_empty()),
    }
});
