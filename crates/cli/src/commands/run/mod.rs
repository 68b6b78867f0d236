//! `firsttouch run`

mod pin;
mod placement;
mod plan;
mod quick_test;
mod shared;

pub use quick_test::whole_nodes;

use super::{topology, unless_not_executed, words};
use crate::arguments::{Run, Topology};
use crate::output::{message, print, print_json, style};
use anyhow::Result;
use firsttouch_model::launch::{Explanation, PlannedMemory};
use firsttouch_placement::{Placement, explain};
use firsttouch_report::{ExplainJson, explain_text};
use firsttouch_system::calls::affinity::bind_to_cpus;
use firsttouch_system::calls::mempolicy::set_policy;
use firsttouch_system::launch::become_program;
use firsttouch_system::launch::restore_cpus;
use firsttouch_system::topology as machine;
use std::io::stdout;

pub fn run(arguments: &Run) -> Result<u8> {
    if arguments.hardware || arguments.show {
        return topology::run(&Topology { json: arguments.json, ..Topology::default() });
    }
    if let Some(wanted) = shared::wanted(&arguments.segment) {
        return shared::run(arguments, &wanted);
    }
    if arguments.quick_test {
        return quick_test::run(arguments);
    }
    let mut effort = Effort { is_best: arguments.best_effort, left_out: Vec::new() };
    if let Some(path) = &arguments.plan {
        if arguments.explain {
            let (placement, planned) = plan::explain(arguments, path)?;
            return show(arguments, &placement, planned, Vec::new());
        }
        let placement = plan::prepare(arguments, path)?;
        // The plan's own message has said what cannot be; the program runs.
        apply(&placement, &mut Effort { is_best: true, left_out: Vec::new() })?;
        return unless_not_executed(become_program(&arguments.program, &placement.environment));
    }
    let mut placement = placement::resolve(arguments, &mut effort)?;
    if arguments.explain {
        return show(arguments, &placement, Vec::new(), effort.left_out);
    }
    if !placement.threads.is_empty()
        && let Some(preload) = effort.settle(pin::preload(&arguments.program))?.flatten()
    {
        placement.environment.push(preload);
    }
    apply(&placement, &mut effort)?;
    unless_not_executed(become_program(&arguments.program, &placement.environment))
}

/// Whether to go on without what cannot be had, and what that was.
struct Effort {
    is_best: bool,
    left_out: Vec<String>,
}

impl Effort {
    /// The value; nothing, after a warning, where it cannot be had and need not.
    fn settle<T>(&mut self, result: Result<T>) -> Result<Option<T>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error) if self.is_best => {
                message(&format!("warning: {error:#}\nThe program runs without (--best-effort)."));
                self.left_out.push(format!("{error:#}").lines().next().unwrap_or_default().to_owned());
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// Places this process, and so the program that it becomes.
fn apply(placement: &Placement, effort: &mut Effort) -> Result<()> {
    if let Some(first) = placement.threads.first() {
        // The program begins there, and may run on all of them until it has a second thread.
        effort.settle(bind_to_cpus(&[*first]).map_err(Into::into))?;
    }
    if let Some(cpus) = &placement.cpus
        && effort.settle(bind_to_cpus(cpus).map_err(Into::into))?.is_none()
    {
        // A part of them may have been taken.
        restore_cpus();
    }
    if let Some(policy) = &placement.policy {
        effort.settle(set_policy(policy).map_err(Into::into))?;
    }
    Ok(())
}

fn show(arguments: &Run, placement: &Placement, planned: Vec<PlannedMemory>, left_out: Vec<String>) -> Result<u8> {
    let topology = machine::read_this_system()?;
    let inherited = topology.process.as_ref().and_then(|limits| limits.policy.as_ref());
    let explanation = Explanation { plan: planned, ..explain(placement, &topology, inherited, left_out) };
    let command = words(&arguments.program);
    if arguments.json {
        print_json(&ExplainJson::new(&command, &explanation))?;
    } else {
        print(&explain_text(&command, &explanation, style(&stdout())))?;
    }
    Ok(0)
}
