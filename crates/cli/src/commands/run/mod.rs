//! `firsttouch run`

mod plan;
mod shared;

use crate::arguments::{Judge, Run};
use crate::exit::{self, unless_not_executed};
use crate::output::{Destination, Terminal, message, messages, words};
use crate::tuning::{Request as Tuning, tune_program};
use anyhow::Result;
use firsttouch_experiments::quick_test::{self, QuickTest};
use firsttouch_launch::{Pinning, PolicyRequest, Refusals, Request, apply, preload_openmp_allocators, preload_pinning, resolve};
use firsttouch_model::launch::{Explanation, PlannedMemory};
use firsttouch_model::policy::Mode;
use firsttouch_placement::{Placement, explain};
use firsttouch_report::{ExplainJson, QuickTestJson, TopologyJson, explain_text, quick_test_text, topology_text};
use firsttouch_system::launch::become_program;
use firsttouch_system::topology;

pub fn run(arguments: &Run) -> Result<u8> {
    destination(arguments).check()?;
    if arguments.hardware || arguments.show {
        return show_machine(arguments);
    }
    if let Some(wanted) = shared::wanted(&arguments.segment) {
        return shared::run(arguments, &wanted);
    }
    if arguments.quick_test {
        return quick_test(arguments);
    }
    if arguments.tune {
        return tune(arguments);
    }
    if let Some(file) = &arguments.plan {
        return plan::run(arguments, file);
    }
    let mut refusals = Refusals::new(arguments.best_effort);
    let mut placement = resolve(&request(arguments), &mut refusals)?;
    let left_out = warn(&mut refusals);
    if arguments.explain {
        return show(arguments, &placement, Vec::new(), left_out);
    }
    if !placement.threads.is_empty() {
        match refusals.accept(preload_pinning(&arguments.program))? {
            Some(Pinning::Preloaded(name, value)) => placement.environment.push((name, value)),
            Some(Pinning::Impossible(warning)) => message(&format!("warning: {warning}")),
            None => {}
        }
    }
    place_openmp_allocators(arguments, &mut placement.environment);
    apply(&placement, &mut refusals)?;
    warn(&mut refusals);
    unless_not_executed(become_program(&arguments.program, &placement.environment))
}

/// If that is not possible, the program runs without it.
fn place_openmp_allocators(arguments: &Run, environment: &mut Vec<(String, String)>) {
    if arguments.openmp_allocators
        && let Err(error) = preload_openmp_allocators(&arguments.program, environment)
    {
        message(&format!("warning: {error}; the program runs without"));
    }
}

fn tune(arguments: &Run) -> Result<u8> {
    let options = &arguments.tuning;
    let request = Tuning { options, judge: Judge::default(), once: false, dry_run: false, duration: None, json: None, output: None };
    tune_program(&arguments.program, &request)
}

/// Prints what was refused, and returns the first line of each refusal.
fn warn(refusals: &mut Refusals) -> Vec<String> {
    let refused = refusals.take();
    refused.iter().for_each(|error| messages(&format!("warning: {error}\nThe program runs without this (--best-effort).")));
    refused.iter().map(|error| error.to_string().lines().next().unwrap_or_default().to_owned()).collect()
}

/// The placement that the options ask for.
fn request(arguments: &Run) -> Request {
    let lists = [
        (Mode::Bind, &arguments.membind),
        (Mode::Preferred, &arguments.preferred),
        (Mode::PreferredMany, &arguments.preferred_many),
        (Mode::Interleave, &arguments.interleave),
        (Mode::WeightedInterleave, &arguments.weighted_interleave),
    ];
    let policy = |mode, nodes| PolicyRequest { mode, nodes, balancing: arguments.balancing };
    let given = lists.into_iter().find_map(|(mode, list)| Some(policy(mode, Some(list.clone()?))));
    Request {
        cpunodebind: arguments.cpunodebind.clone(),
        physcpubind: arguments.physcpubind.clone(),
        pin: arguments.pin.clone(),
        skip: arguments.skip.clone(),
        policy: given.or_else(|| arguments.localalloc.then(|| policy(Mode::Local, None))),
        home_node: arguments.home_node.clone(),
        all: arguments.all,
    }
}

fn show(arguments: &Run, placement: &Placement, planned: Vec<PlannedMemory>, left_out: Vec<String>) -> Result<u8> {
    let topology = topology::read_this_system()?;
    let inherited = topology.process.as_ref().and_then(|limits| limits.policy.as_ref());
    let explanation = Explanation { plan: planned, ..explain(placement, &topology, inherited, left_out) };
    let command = words(&arguments.program);
    let json = ExplainJson::new(&command, &explanation);
    destination(arguments).show(&json, |style| explain_text(&command, &explanation, style), Terminal::Stdout)?;
    Ok(exit::DONE)
}

fn destination(arguments: &Run) -> Destination<'_> {
    Destination { json: arguments.json.as_deref(), output: arguments.output.as_deref() }
}

fn show_machine(arguments: &Run) -> Result<u8> {
    let topology = topology::read_this_system()?;
    destination(arguments).show(&TopologyJson::new(&topology), |style| topology_text(&topology, style), Terminal::Stdout)?;
    Ok(exit::DONE)
}

fn quick_test(arguments: &Run) -> Result<u8> {
    let command = words(&arguments.program);
    let result = match quick_test::run(&arguments.program, arguments.rounds) {
        Ok(result) => result,
        Err(error) => return unless_not_executed(error),
    };
    let destination = destination(arguments);
    match result {
        QuickTest::Stopped { exit_code } => {
            message(&format!("nothing measured: a run ended with status {exit_code}"));
            return Ok(exit::of_program(exit_code));
        }
        QuickTest::NothingToTest { nodes, why } => {
            destination.write_json(&QuickTestJson::nothing(&command, &nodes, &why))?;
            if destination.shows_text() {
                message(&why);
            }
        }
        QuickTest::Done { nodes, tried } => {
            let json = QuickTestJson::new(&command, &nodes, &tried);
            destination.show(&json, |style| quick_test_text(&command, &nodes, &tried, style), Terminal::Stderr)?;
        }
    }
    Ok(exit::DONE)
}
