// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Builds test programs: `build-programs [--print] [PATH...]`, files or directories, by default `corpus` and
//! `tests/programs`. Prints a summary, or with `--print` the path of each result, to stdout.

use firsttouch_e2e::paths::workspace_root;
use firsttouch_e2e::programs::{BuildError, build, sources};
use firsttouch_e2e::side_by_side::side_by_side;
use firsttouch_e2e::skip::skipped;
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let (options, paths): (Vec<String>, Vec<String>) = std::env::args().skip(1).partition(|arg| arg.starts_with("--"));
    if options.iter().any(|option| option != "--print") {
        eprintln!("usage: build-programs [--print] [PATH...]");
        return ExitCode::from(2);
    }
    let print = !options.is_empty();
    let mut paths: Vec<PathBuf> = paths.iter().map(PathBuf::from).collect();
    if paths.is_empty() {
        paths = ["corpus", "tests/programs"].map(|path| workspace_root().join(path)).to_vec();
    }

    let (mut fresh, mut current, mut missing, mut failed) = (0, 0, 0, 0);
    let sources: Vec<PathBuf> = paths.iter().flat_map(|path| sources(path)).collect();
    for (source, result) in sources.iter().zip(side_by_side(&sources, |source| build(source))) {
        match result {
            Ok(built) => {
                *(if built.fresh { &mut fresh } else { &mut current }) += 1;
                if print {
                    println!("{}", built.path.display());
                }
            }
            Err(BuildError::NoHeader) => {}
            Err(BuildError::MissingTool(tool)) => {
                missing += 1;
                skipped(&format!("building {}", source.display()), &format!("{tool} is not installed"));
            }
            Err(BuildError::Failed(text)) => {
                failed += 1;
                eprintln!("{text}");
            }
        }
    }
    if !print {
        println!("test programs: {fresh} built, {current} up to date, {missing} skipped, {failed} failed");
    }
    ExitCode::from(u8::from(failed > 0))
}
