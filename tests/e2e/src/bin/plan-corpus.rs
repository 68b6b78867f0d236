// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Makes the plans for the tests in guests: profiles their programs on this machine, and writes the plans to target/plans.

use firsttouch_e2e::corpus::{KERNELS, make_plan, programs};
use firsttouch_e2e::tool::{Firsttouch, text};

fn main() {
    let Some(firsttouch) = Firsttouch::find("plan-corpus") else { return };
    for program in programs().iter().filter(|program| program.policy() != "none") {
        if let Some(command) = program.command() {
            let command: Vec<&str> = command.iter().map(String::as_str).collect();
            make_plan(&firsttouch, &program.name, &command);
        }
    }
    for kernel in &KERNELS {
        let command = [&[text(firsttouch.binary())], &kernel.arguments(kernel.iterations)[..]].concat();
        make_plan(&firsttouch, kernel.name, &command);
    }
}
