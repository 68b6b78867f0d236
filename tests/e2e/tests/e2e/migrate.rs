// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `firsttouch migrate` on a machine with one node, and with invalid arguments. The guests (tests/guests) have several nodes.

use firsttouch_e2e::process::run;
use firsttouch_e2e::tool::{Firsttouch, assert_clear_error};
use std::process::{Child, Command};

/// A process that this test started. Dropping the value kills it.
struct Sleeping(Child);

impl Sleeping {
    fn start() -> Self {
        Self(Command::new("sleep").arg("600").spawn().expect("sleep"))
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Sleeping {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Check that without a target the message says how to give one, and that errors name invalid nodes and processes.
#[test]
fn what_cannot_be_moved() {
    let Some(firsttouch) = Firsttouch::find("what_cannot_be_moved") else { return };
    let sleeping = Sleeping::start();
    let pid = sleeping.pid();
    let nodes = std::fs::read_dir("/sys/devices/system/node").into_iter().flatten().flatten();
    let several =
        nodes.filter(|entry| entry.file_name().to_string_lossy().strip_prefix("node").is_some_and(|n| n.parse::<u32>().is_ok())).count()
            > 1;
    for (words, status, mentions) in [
        (vec![pid.as_str()], 2, vec!["--profile FILE", "--to NODES", "--interleave", "firsttouch profile --pid"]),
        (vec![&pid, "--to", "77"], 2, vec!["--to", "77"]),
        (vec![&pid, "--to", "x"], 2, vec!["--to", "x"]),
        (vec!["4194305", "--to", "0"], 1, vec!["4194305"]),
        (vec!["no-such-program-runs", "--to", "0"], 1, vec!["no-such-program-runs"]),
    ] {
        let outcome = run(&mut firsttouch.command([&["migrate"], &words[..]].concat()));
        assert_clear_error(&outcome, &[status], &mentions);
    }
    if !several {
        let outcome = run(&mut firsttouch.command(["migrate", &pid, "--interleave"]));
        assert!(
            outcome.status == 0 && outcome.stdout_text().contains("This machine has one node: there is nowhere to move pages."),
            "{outcome:?}"
        );
        let outcome = run(&mut firsttouch.command(["migrate", &pid, "--to", "0", "--json"]));
        let json: serde_json::Value = serde_json::from_slice(&outcome.stdout).expect("JSON");
        assert_eq!(
            (&json["schema"], &json["moved_pages"], &json["target"]),
            (&"firsttouch.migrate/1".into(), &0.into(), &serde_json::Value::Null)
        );
    }
}
