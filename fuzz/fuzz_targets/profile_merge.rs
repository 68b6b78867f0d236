//! Two valid databases with damaged rows (`fuzz/src/rows.rs`), a line `%` between them: merged, or refused. What is merged can be read, judged, and
//! merged again to the same.
#![no_main]

use firsttouch_fuzz::{judged, mutate, profile_of_rows};
use firsttouch_model::rows::Profile;
use firsttouch_profile::merge::merge_to;
use firsttouch_profile::open;
use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use std::fs::remove_file;
use std::path::Path;

fuzz_mutator!(|data: &mut [u8], size: usize, most: usize, seed: u32| { mutate::text(data, size, most, seed) });

fuzz_target!(|input: &str| {
    let (first, second) = input.split_once("\n%\n").unwrap_or((input, ""));
    let (first, second) = (profile_of_rows("first.ftp", first), profile_of_rows("second.ftp", second));
    let merge = |files: &[&Path], name: &str| {
        let files: Vec<_> = files.iter().map(|file| file.to_path_buf()).collect();
        let merged = first.path().with_file_name(name);
        let _ = remove_file(&merged);
        merge_to(&files, &merged).map(|_| merged)
    };
    let Ok(merged) = merge(&[first.path(), second.path()], "merged.ftp") else { return };
    let whole = open(&merged).expect("what was merged can be read");
    judged(&whole);
    let again = merge(&[&merged], "again.ftp").expect("what was merged can be taken apart");
    same(&whole, &open(&again).expect("a profile"));
    let turned = merge(&[second.path(), first.path()], "turned.ftp").expect("the order does not matter");
    same(&whole, &open(&turned).expect("a profile"));
});

/// Numbers that are none are not equal to themselves.
fn same(one: &Profile, other: &Profile) {
    assert_eq!(format!("{one:?}"), format!("{other:?}"));
}
