// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Parses the output of lscpu, lstopo and numactl for a machine and compares it field by field with firsttouch's JSON, for recorded
//! machines (crates/system/tests/machines.rs) and for running ones (tests/guests). Written from the tools' output.
//! A difference panics, so that the test fails.
#![allow(clippy::unwrap_used, reason = "this crate is a part of tests")]

pub mod lscpu;
pub mod lstopo;
pub mod numactl;

use serde_json::Value;

/// Parses the kernel's list format for CPUs and nodes, independently of the parser under test.
pub fn parse_list(text: &str) -> Vec<u32> {
    let number = |word: &str| word.parse::<u32>().unwrap();
    let parts = text.trim().split(',').filter(|part| !part.is_empty());
    parts
        .flat_map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            number(first)..=number(last)
        })
        .collect()
}

/// An array of numbers.
pub fn numbers(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|number| u32::try_from(number.as_u64().unwrap()).unwrap()).collect()
}

/// The array below a key.
pub fn list<'a>(value: &'a Value, key: &str) -> &'a Vec<Value> {
    value[key].as_array().unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check the parser of lists, which the readers of the tools' formats use.
    #[test]
    fn lists_are_the_kernels() {
        assert_eq!(parse_list("0,2,4-5"), [0, 2, 4, 5]);
        assert_eq!(parse_list(" 3\n"), [3]);
        assert_eq!(parse_list(""), Vec::<u32>::new());
    }
}
