//! String instructions (`rep movs`, `rep stos`; memcpy and memset use them) pass a word in several steps, and every step traps, up
//! to eight times a word. A pass over a word counts as one access, as it does for a load that is wider than a word
//! (`docs/estimator.md`). So the traps of one pass are merged into the first.

use crate::perf::records::Sample;

/// Largest distance from the watched word after a step, bytes.
const REACH: u64 = 72;
/// Steps between two traps of one pass, at most.
const STEPS: u64 = 64;
/// The longest string instruction: `rep` (a prefix, perhaps REX) and the operation.
const LONGEST: u64 = 4;

/// Keeps the first trap of each pass. `samples`: of one thread on one word, oldest first.
pub fn merge(samples: &mut Vec<Sample>) {
    let mut last: Option<[u64; 4]> = None;
    samples.retain(|sample| {
        let now = registers(sample);
        let before = std::mem::replace(&mut last, now);
        !before.zip(now).is_some_and(|(before, after)| is_same_pass(before, after, sample.address))
    });
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

/// The count fell by as many elements as the destination advanced, next to the watched word, at one instruction. (After the last
/// step the instruction pointer is behind the instruction.)
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

    fn merged(samples: impl IntoIterator<Item = Sample>) -> usize {
        let mut samples = samples.into_iter().collect();
        merge(&mut samples);
        samples.len()
    }

    /// Check that the eight traps of `rep movsb` over a word are one access, also where the last step ends the instruction.
    #[test]
    fn one_pass_is_one_access() {
        let pass = |ip: u64| (1..=8u64).map(move |i| trap(108 - i, WORD + i, ip));
        assert_eq!(merged(pass(0x400).chain(pass(0x400))), 2);
        let ends = (1..=8u64).map(|i| trap(8 - i, WORD + i, if i == 8 { 0x402 } else { 0x400 }));
        assert_eq!(merged(ends), 1);
    }

    /// Check that a loop which comes back to the word, and one whose registers merely change, are left alone.
    #[test]
    fn loops_are_not_passes() {
        let again: Vec<Sample> = (0..5).map(|_| trap(7, WORD, 0x400)).collect();
        assert_eq!(merged(again), 5);
        let strided: Vec<Sample> = (0..5u64).map(|i| trap(100 - i, WORD + 64 * i, 0x400)).collect();
        assert_eq!(merged(strided), 5);
        let elsewhere: Vec<Sample> = (0..5u64).map(|i| trap(100 - i, WORD + 0x9000 + i, 0x400)).collect();
        assert_eq!(merged(elsewhere), 5);
        let bare: Vec<Sample> = (0..3).map(|_| Sample { address: WORD, ..Sample::default() }).collect();
        assert_eq!(merged(bare), 3);
    }
}
