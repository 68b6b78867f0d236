// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Profiles recorded once (`fixtures/profiles`), so that tests of later stages do not depend on the samples of one run.

use crate::corpus::KERNELS;
use crate::paths::workspace_root;
use crate::process::run;
use crate::programs::build;
use crate::tool::{Firsttouch, text};
use std::fs;
use std::path::{Path, PathBuf};

/// DGEMV with 8 threads, the matrix a hundredth of the published one.
const DGEMV: &str = "dgemv --m 4000 --n 4000 --threads 8 --iterations 300 --repetitions 1";
/// The published grid scaled down, in the article's blocks, one block per thread.
const ISO3DFD: &str =
    "iso3dfd --n1 112 --n2 544 --n3 208 --n1-block 112 --n2-block 24 --n3-block 96 --threads 44 --iterations 400 --repetitions 1";

/// The program of a recording.
enum Recorded {
    /// `firsttouch bench` with these words.
    Bench(String),
    /// A program of corpus/.
    Corpus(&'static str),
}

/// All recordings by name.
fn recordings() -> Vec<(String, Recorded)> {
    let bench = |name: &str, words: String| (name.to_owned(), Recorded::Bench(words));
    let mut all = vec![
        bench("dgemv_serial", format!("{DGEMV} --init serial")),
        bench("dgemv_parallel", format!("{DGEMV} --init parallel")),
        bench("iso3dfd_serial_dynamic", format!("{ISO3DFD} --init serial --schedule dynamic")),
        bench("iso3dfd_parallel_static", format!("{ISO3DFD} --init parallel --schedule static")),
        ("serial_loop".to_owned(), Recorded::Corpus("serial_loop.c")),
        ("dynamic_schedule".to_owned(), Recorded::Corpus("dynamic_schedule.c")),
    ];
    all.extend(KERNELS.iter().map(|kernel| {
        let words = kernel.arguments(kernel.iterations)[1..].join(" ");
        bench(&format!("kernel_{}", kernel.name), words)
    }));
    all
}

/// The names of all recordings.
#[must_use]
pub fn names() -> Vec<String> {
    recordings().into_iter().map(|(name, _)| name).collect()
}

/// A copy of the recording `name` in `folder`. With `FIRSTTOUCH_LIVE=1`, makes a new profile instead.
///
/// # Panics
/// If there is no such recording.
pub fn recorded(firsttouch: &Firsttouch, name: &str, folder: &Path) -> PathBuf {
    if std::env::var("FIRSTTOUCH_LIVE").as_deref() == Ok("1") {
        return record(firsttouch, name, folder);
    }
    let (kept, copy) = (fixture(name), folder.join(format!("{name}.ftp")));
    fs::copy(&kept, &copy).unwrap_or_else(|error| panic!("cannot copy {}: {error} (`record-profiles` makes it)", kept.display()));
    copy
}

/// The path of the recording `name` in the repository.
#[must_use]
pub fn fixture(name: &str) -> PathBuf {
    workspace_root().join("fixtures/profiles").join(name).with_extension("ftp")
}

/// Profiles the program of the recording `name`.
///
/// # Panics
/// If there is no such recording, or its program fails.
pub fn record(firsttouch: &Firsttouch, name: &str, folder: &Path) -> PathBuf {
    let recording = recordings().into_iter().find(|(known, _)| known == name);
    let (_, what) = recording.unwrap_or_else(|| panic!("no recording '{name}', but {:?}", names()));
    let command: Vec<String> = match &what {
        Recorded::Bench(words) => [text(firsttouch.binary()), "bench"].into_iter().chain(words.split(' ')).map(str::to_owned).collect(),
        Recorded::Corpus(source) => {
            let built = build(&workspace_root().join("corpus").join(source)).unwrap_or_else(|error| panic!("{source}: {error:?}"));
            vec![text(&built.path).to_owned()]
        }
    };
    let file = folder.join(format!("{name}.ftp"));
    let _ = fs::remove_file(&file);
    let outcome = run(&mut firsttouch.profile(&file, &["--quiet"], &command));
    assert_eq!(outcome.status, 0, "{command:?}: {outcome:?}");
    file
}
