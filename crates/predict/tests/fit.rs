//! Checks that the numbers marked as fitted in machine files are the least-squares result for their fit rows.

use firsttouch_predict::experiments::{self, Experiment};
use firsttouch_predict::machine::{self, MachineModel};
use firsttouch_predict::units::Bandwidth;
use firsttouch_predict::validate::validate_on;

type Knob = fn(&mut MachineModel) -> Vec<&mut f64>;

fn core(machine: &mut MachineModel) -> Vec<&mut f64> {
    machine.nodes.iter_mut().map(|node| &mut node.curves[0].core).collect()
}

fn limit(machine: &mut MachineModel) -> Vec<&mut f64> {
    machine.nodes.iter_mut().map(|node| &mut node.curves[0].limit).collect()
}

fn sharpness(machine: &mut MachineModel) -> Vec<&mut f64> {
    machine.nodes.iter_mut().map(|node| &mut node.curves[0].sharpness).collect()
}

fn remote(machine: &mut MachineModel) -> Vec<&mut f64> {
    machine
        .nodes
        .iter_mut()
        .map(|node| {
            let Bandwidth(value) = &mut node.core_remote;
            value
        })
        .collect()
}

/// The rows of the experiment that the machine is fitted to.
fn fit_rows(name: &str, machine: &MachineModel) -> Vec<Experiment> {
    let mut list: Vec<Experiment> = experiments::all().unwrap().into_iter().filter(|experiment| experiment.name == name).collect();
    for experiment in &mut list {
        let name = experiment.name.clone();
        experiment.dgemv.retain(|run| {
            let note = run.note.as_ref().map_or_else(String::new, |note| format!(", {note}"));
            machine.is_fitted_to(&name, &format!("{} m={} threads={}{note}", run.init.name(), run.m, run.threads))
        });
        assert_eq!(experiment.dgemv.len(), machine.fitted.len(), "every fitted row exists");
    }
    list
}

fn squares(rows: &[Experiment], machine: &MachineModel) -> f64 {
    let found = validate_on(rows, &|_| Ok(machine.clone())).unwrap();
    found.rows.iter().map(|row| row.error * row.error).sum()
}

fn turned(machine: &MachineModel, knob: Knob, factor: f64) -> MachineModel {
    let mut machine = machine.clone();
    knob(&mut machine).into_iter().for_each(|value| *value *= factor);
    machine
}

/// Pattern search that starts with the file's numbers. Returns the best numbers, to a thousandth.
fn fitted(rows: &[Experiment], start: &MachineModel, knobs: &[Knob]) -> MachineModel {
    let (mut best, mut least) = (start.clone(), squares(rows, start));
    let mut step = 0.08;
    while step > 0.0005 {
        let tries = knobs.iter().flat_map(|knob| [1.0 + step, 1.0 / (1.0 + step)].map(|factor| turned(&best, *knob, factor)));
        match tries.map(|machine| (squares(rows, &machine), machine)).min_by(|a, b| a.0.total_cmp(&b.0)) {
            Some((sum, machine)) if sum < least => (best, least) = (machine, sum),
            _ => step /= 2.0,
        }
    }
    best
}

fn check(experiment: &str, name: &str, knobs: &[Knob]) {
    let file = machine::find(name).unwrap();
    let rows = fit_rows(experiment, &file);
    let best = fitted(&rows, &file, knobs);
    for (index, knob) in knobs.iter().enumerate() {
        let (mut kept, mut found) = (file.clone(), best.clone());
        let (kept, found) = (*knob(&mut kept)[0], *knob(&mut found)[0]);
        println!("{name} number {index}: {kept:.5e} in the file, {found:.5e} by least squares");
    }
    let (kept, least) = (squares(&rows, &file), squares(&rows, &best));
    println!("{name}: sum of squared errors {kept:.6} in the file, {least:.6} at best");
    for (index, knob) in knobs.iter().enumerate() {
        let (mut kept, mut found) = (file.clone(), best.clone());
        let ratio = *knob(&mut kept)[0] / *knob(&mut found)[0];
        assert!((ratio - 1.0).abs() < 0.005, "{name}: number {index} is {ratio} of the least-squares result");
    }
}

/// Check the machine with two E5620: the limit of one core, that of the controller, and the sharpness of the bend between them.
#[test]
fn e5620() {
    check("dgemv-e5620", "xeon-e5620x2", &[core, limit, sharpness]);
}

/// Check the machine with two E5-2620 v4: one core on local and on remote memory.
#[test]
fn e5_2620v4() {
    check("balancing-e5-2620v4", "xeon-e5-2620v4x2", &[core, remote]);
}
