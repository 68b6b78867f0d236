//! What a sampled access stands for: accesses that samples do not show, and loops whose speed they do not show.

use crate::samples::{A, B, BYTES, FAST, SLOW, judged_of, run};
use firsttouch_model::rows::*;
use std::collections::HashSet;

/// The share of the accesses to an object, and of the time at it.
fn shares_of(profile: &Profile, name: &str) -> [f64; 2] {
    let analysis = judged_of(profile);
    let object = analysis.objects.iter().find(|object| object.name == name).expect("the object");
    [object.access_share, object.time_share].map(|share| share.expect("a share"))
}

/// Check that accesses whose addresses few samples show count as often as those of the same loop that all samples show.
#[test]
fn hidden_accesses_count() {
    let mut profile = run(3, [FAST, SLOW], 4).profile;
    // Both objects are used in each round of the first loop.
    profile.sampled_accesses.retain(|access| access.object == 1);
    let kept: HashSet<Id> = profile.sampled_accesses.iter().map(|access| access.sample).collect();
    profile.samples.retain(|sample| kept.contains(&sample.id));
    let beside: Vec<SampledAccess> = profile
        .sampled_accesses
        .iter()
        .map(|access| SampledAccess { object: 2, address: access.address - A + B, site: Some(12), ..access.clone() })
        .collect();
    let seen: Vec<SampledAccess> = beside.iter().filter(|access| access.sample % 10 == 0).cloned().collect();
    let (known, all) = (seen.len() as u64, beside.len() as u64);
    profile.sampled_accesses.extend(seen);
    profile.sampled_accesses.sort_by_key(|access| access.sample);
    let [few, _] = shares_of(&profile, "B");
    assert!(few < 0.15, "{few}");
    profile.operand_counts = vec![OperandCount { process: 1, instruction: 0xc000, known, unknown: all - known }];
    let shares = shares_of(&profile, "B");
    assert!(shares.iter().all(|share| (share - 0.5).abs() < 0.03), "{shares:?}");
}

/// Check that the intervals of shares contain what they would be if the accesses whose addresses no sample shows were all to one object, or to the other.
#[test]
fn missing_addresses_widen_shares() {
    let mut profile = run(3, [FAST, SLOW], 4).profile;
    profile.sampled_accesses.retain(|access| access.object == 1);
    let kept: HashSet<Id> = profile.sampled_accesses.iter().map(|access| access.sample).collect();
    profile.samples.retain(|sample| kept.contains(&sample.id));
    let beside = |access: &SampledAccess| SampledAccess { object: 2, address: access.address - A + B, site: Some(12), ..access.clone() };
    profile.sampled_accesses = profile.sampled_accesses.iter().flat_map(|access| [access.clone(), beside(access)]).collect();
    let interval = |profile: &Profile| {
        let analysis = judged_of(profile);
        let object = analysis.objects.iter().find(|object| object.name == "B").expect("the object");
        object.access_share_interval.expect("an interval")
    };
    let [low, high] = interval(&profile);
    assert!(low > 0.45 && high < 0.55, "{low} {high}");
    // Between the instructions at 0xb000 and 0xc000.
    let all = kept.len() as u64;
    let mut with = |instruction: u64, unknown: u64| {
        profile.operand_counts = vec![OperandCount { process: 1, instruction, known: 2, unknown }];
        interval(&profile)
    };
    // The counts of a live view are of the time before its window too.
    for unknown in [all, 10 * all] {
        let [low, high] = with(0xb800, unknown);
        assert!((low - 1.0 / 3.0).abs() < 0.03 && (high - 2.0 / 3.0).abs() < 0.03, "{low} {high}");
    }
    // In one of ten rounds, and in other code.
    let [low, high] = with(0xb800, all / 10);
    assert!((low - 0.476).abs() < 0.02 && (high - 0.524).abs() < 0.02, "{low} {high}");
    let [low, high] = with(0xd000, all);
    assert!(low > 0.45 && high < 0.55, "{low} {high}");
}

/// Check that of loops whose speed nothing shows, those that go through memory word by word are taken to be faster than those that access places all over it.
#[test]
fn unrated_loops_have_the_speed_of_their_kind() {
    let mut profile = run(3, [FAST, SLOW], 4).profile;
    // Each sample is in an entry of its own, and at a random place: no two of them show progress.
    for sample in &mut profile.samples {
        let around = sample.around.as_mut().expect("a loop");
        around.entry = sample.id.unsigned_abs();
        around.progress =
            around.progress.map(|progress| Progress { value: sample.id.unsigned_abs().wrapping_mul(0x9E37_79B9_7F4A_7C15), ..progress });
    }
    for access in &mut profile.sampled_accesses {
        let base = if access.object == 1 { A } else { B };
        access.address = base + access.sample.unsigned_abs().wrapping_mul(0x9E37_79B9_7F4A_7C15) % BYTES / 8 * 8;
        access.stride = access.stride.filter(|_| access.object == 1);
    }
    let ([of_a, time_of_a], [of_b, time_of_b]) = (shares_of(&profile, "A"), shares_of(&profile, "B"));
    let faster = (of_a / time_of_a) / (of_b / time_of_b);
    // The threads of A's loop are mixed in memory, so it may be slower than its way through memory shows. Of one speed for all loops, this is 1.
    assert!(faster > 3.0, "{faster}");
}
