//! String instructions (`rep movs`, `rep stos`; memcpy and memset use them): one instruction goes over a word in several steps,
//! and every step traps, up to eight times a word. A pass over a word counts as one access, as it does for a load that is wider
//! than a word (`docs/estimator.md`), so the traps of one pass are merged into its first.

use crate::perf::records::Sample;

/// Bytes that one step may leave the watched word behind.
const REACH: u64 = 72;
/// Steps between two traps of one pass, at most.
const STEPS: u64 = 64;
/// The longest string instruction: `rep` (a prefix, perhaps REX) and the operation.
const LONGEST: u64 = 4;

/// Keeps the first trap of each pass. `samples`: of one thread on one word, oldest first.
pub fn merge(samples: Vec<Sample>) -> Vec<Sample> {
    let mut kept: Vec<Sample> = Vec::with_capacity(samples.len());
    let mut last: Option<[u64; 4]> = None;
    for sample in samples {
        let now = registers(&sample);
        if !last.zip(now).is_some_and(|(before, after)| is_same_pass(before, after, sample.address)) {
            kept.push(sample);
        }
        last = now;
    }
    kept
}

/// Count, source, destination and instruction pointer.
fn registers(sample: &Sample) -> Option<[u64; 4]> {
    #[cfg(target_arch = "x86_64")]
    if let [cx, si, di, _, _, ip] = sample.registers[..] {
        return Some([cx, si, di, ip]);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = sample;
    None
}

/// Whether the count fell by as many elements as the destination moved on, next to the watched word, at one instruction. (After
/// the last step the instruction pointer stands behind it.)
fn is_same_pass(before: [u64; 4], after: [u64; 4], address: u64) -> bool {
    let [cx0, _, di0, ip0] = before;
    let [cx1, si1, di1, ip1] = after;
    let Some(steps) = cx0.checked_sub(cx1).filter(|steps| (1..=STEPS).contains(steps)) else { return false };
    let moved = di0.abs_diff(di1);
    let there = ip1 == ip0 || (cx1 == 0 && ip1 > ip0 && ip1 - ip0 <= LONGEST);
    let near = di1.abs_diff(address) <= REACH || si1.abs_diff(address) <= REACH;
    there && near && moved % steps == 0 && matches!(moved / steps, 1 | 2 | 4 | 8)
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    const WORD: u64 = 0x10_000;

    fn trap(cx: u64, di: u64, ip: u64) -> Sample {
        Sample { address: WORD, registers: vec![cx, di + 0x5000, di, 0, 0, ip], ..Sample::default() }
    }

    /// Check that the eight traps of `rep movsb` over a word are one access, also where the last step ends the instruction.
    #[test]
    fn one_pass_is_one_access() {
        let pass = |ip: u64| (1..=8u64).map(move |i| trap(108 - i, WORD + i, ip));
        assert_eq!(merge(pass(0x400).chain(pass(0x400)).collect()).len(), 2);
        let ends = (1..=8u64).map(|i| trap(8 - i, WORD + i, if i == 8 { 0x402 } else { 0x400 }));
        assert_eq!(merge(ends.collect()).len(), 1);
    }

    /// Check that a loop which comes back to the word, and one whose registers merely change, are left alone.
    #[test]
    fn loops_are_not_passes() {
        let again: Vec<Sample> = (0..5).map(|_| trap(7, WORD, 0x400)).collect();
        assert_eq!(merge(again).len(), 5);
        let strided: Vec<Sample> = (0..5u64).map(|i| trap(100 - i, WORD + 64 * i, 0x400)).collect();
        assert_eq!(merge(strided).len(), 5);
        let elsewhere: Vec<Sample> = (0..5u64).map(|i| trap(100 - i, WORD + 0x9000 + i, 0x400)).collect();
        assert_eq!(merge(elsewhere).len(), 5);
        let bare: Vec<Sample> = (0..3).map(|_| Sample { address: WORD, ..Sample::default() }).collect();
        assert_eq!(merge(bare).len(), 3);
    }
}
