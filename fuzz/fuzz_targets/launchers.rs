//! Launchers of MPI ranks: the environment that they give a rank, a variable a line, and after a line `%` the words of a command line.
#![no_main]

use firsttouch_fuzz::mutate;
use firsttouch_ranks::{Programs, is_launcher, place, programs};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

fuzz_mutator!(|data: &mut [u8], size: usize, most: usize, seed: u32| { mutate::text(data, size, most, seed) });

/// Words with a slash are programs here.
fn program(word: &OsStr) -> Option<PathBuf> {
    word.to_str().filter(|word| word.contains('/')).map(PathBuf::from)
}

fuzz_target!(|input: &str| {
    let (variables, words) = input.split_once("\n%\n").unwrap_or((input, ""));
    let lookup = |name: &str| variables.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('=').map(str::to_owned));
    if let Some(place) = place(&lookup) {
        assert!(place.rank < place.size && !place.launcher.is_empty(), "{place:?}");
    }
    let command: Vec<OsString> = words.lines().map(OsString::from).collect();
    match programs(&command, &program) {
        Programs::At(places) => {
            assert!(is_launcher(&command) && !places.is_empty() && places.is_sorted_by(|a, b| a < b), "{command:?}: {places:?}");
            assert!(places.iter().all(|at| (1..command.len()).contains(at)), "{command:?}: {places:?}");
        }
        Programs::Unsure(why) => assert!(!why.is_empty()),
    }
});
