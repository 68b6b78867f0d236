// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs real programs bare and profiled, and compares their output, status and files: `noharm-all [NAME...]`. The programs are in
//! tests/programs/real/programs.toml. Prints a line for each, and fails if firsttouch changed one of them, or if none ran.

use firsttouch_e2e::real::Program;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let is_wanted = |program: &Program| wanted.is_empty() || wanted.iter().any(|name| program.name.contains(name));
    let (mut same, mut changed, mut skipped) = (0, Vec::new(), Vec::new());
    for program in Program::all().into_iter().filter(is_wanted) {
        let missing = program.missing();
        if !missing.is_empty() {
            println!("SKIPPED   {:<22} no {} (package {})", program.name, missing.join(", "), program.package);
            skipped.push(program.name);
            continue;
        }
        let start = Instant::now();
        let is_same = catch_unwind(AssertUnwindSafe(|| program.check())).is_ok();
        println!("{}  {:<22} {:5.1} s", if is_same { "unharmed" } else { "CHANGED " }, program.name, start.elapsed().as_secs_f64());
        let _ = std::io::stdout().flush();
        if is_same {
            same += 1;
        } else {
            changed.push(program.name);
        }
    }
    println!("{same} programs unharmed, {} changed: {changed:?}, {} skipped: {skipped:?}", changed.len(), skipped.len());
    ExitCode::from(u8::from(!changed.is_empty() || same == 0))
}
