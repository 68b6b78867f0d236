//! From a judged profile to predictions: which machine, which placements.

use crate::judge::Judged;
use crate::plan::choice;
use anyhow::Result;
use firsttouch_analysis::Prediction;
use firsttouch_model::finding::{FindingKind, Remedy};
use firsttouch_model::rows::Profile;
use firsttouch_predict::error::model_error;
use firsttouch_predict::experiments;
use firsttouch_predict::machine::{Machine, assumed};
use firsttouch_predict::program::{Caps, Forecast, Placement, Program, Question, best};

/// Combinations of placements that a search may compute: a second or two.
const COMBINATIONS: usize = 5_000;

/// What a prediction is asked with.
#[derive(Clone, Copy)]
pub struct Asked {
    pub write_share: f64,
    pub caps: Caps,
    /// Whether all combinations of placements are compared, too.
    pub exhaustive: bool,
}

impl Default for Asked {
    fn default() -> Self {
        Self { write_share: 0.0, caps: Caps::Auto, exhaustive: false }
    }
}

/// The machine to compute with: the described one, else one of equal nodes; and whether only its nodes are known.
///
/// # Errors
/// A defect of ours.
pub fn known_or_assumed(judged: &Judged) -> Result<(Machine, bool)> {
    if let Some(described) = &judged.described {
        return Ok((described.clone(), false));
    }
    let target = &judged.analysis.machine;
    let mut seated = vec![0; target.nodes];
    for worker in &judged.traffic.workers {
        if let Some(count) = seated.get_mut(worker.node as usize) {
            *count += 1;
        }
    }
    let cores = seated.into_iter().max().unwrap_or(1).max(1);
    Ok((assumed(&target.name, target.nodes, cores)?, true))
}

/// Predicts what each placement costs.
///
/// # Errors
/// Nothing to predict from.
pub fn forecast(profile: &Profile, judged: &Judged, asked: Asked) -> Result<Forecast> {
    let (machine, is_assumed) = known_or_assumed(judged)?;
    let error = model_error(&machine, &experiments::all()?)?;
    let question = Question { write_share: asked.write_share, caps: asked.caps, model_error: error.standard() };
    let mut program = Program::new(&machine, &judged.traffic, judged.memory_nodes.clone(), question)?;
    let plan = choice(profile, judged, &program)?;
    let mut compared = placements(&program);
    let mut found = None;
    if asked.exhaustive {
        let best = program.search(&plan, COMBINATIONS)?;
        program.follow_found(best.placements.clone());
        compared.push(Placement::Exhaustive);
        found = Some(best);
    }
    program.follow(plan);
    let placements = program.predict(&compared)?;
    let (caps, is_dynamic, team, serial) = (program.caps(), program.is_dynamic(), program.team(), program.serial());
    let traffic = &judged.traffic;
    let evened = traffic.objects.iter().filter(|object| !object.even.is_empty()).map(|object| object.name.clone()).collect();
    let (unknown, write_share) = (traffic.unknown, asked.write_share);
    Ok(Forecast { placements, error, caps, write_share, is_dynamic, team, serial, unknown, evened, is_assumed, machine, found })
}

/// The placements that are compared, the one that is there first.
fn placements(program: &Program<'_>) -> Vec<Placement> {
    let one = Placement::OneNode { node: program.main_node() };
    vec![Placement::AsIs, Placement::ParallelFirstTouch, Placement::Interleave, Placement::WeightedInterleave, one, Placement::Plan]
}

/// Adds the slow-down of the program and the gain of each finding to an analysis for a machine whose numbers are known. Without evidence there
/// are none.
///
/// # Errors
/// The published tables cannot be read: a defect of ours.
pub fn add_to_report(profile: &Profile, judged: &mut Judged) -> Result<()> {
    let Some(machine) = judged.described.clone() else { return Ok(()) };
    let error = model_error(&machine, &experiments::all()?)?;
    let Asked { write_share, caps, .. } = Asked::default();
    let question = Question { write_share, caps, model_error: error.standard() };
    // The analysis is written to while the program looks at the traffic.
    let traffic = judged.traffic.clone();
    let Ok(mut program) = Program::new(&machine, &traffic, judged.memory_nodes.clone(), question) else { return Ok(()) };
    program.follow(choice(profile, judged, &program)?);
    let predicted = program.predict(&placements(&program))?;
    judged.analysis.prediction = predicted.first().map(|now| {
        let best = best(&predicted).map_or("", |best| best.placement.name());
        Prediction { slowdown: now.slowdown, interval: now.interval, best: best.to_owned() }
    });
    for finding in &mut judged.analysis.findings {
        let (Some(object), Some(fixed)) = (finding.object, fixed(finding.kind)) else { continue };
        let gain = program.gain(object, fixed)?;
        finding.predicted_gain = Some(gain.gain);
        finding.predicted_gain_interval = Some(gain.interval);
    }
    Ok(())
}

/// What a finding's fix does to its object.
pub fn fixed(finding: FindingKind) -> Option<Placement> {
    finding.remedy().map(|remedy| match remedy {
        Remedy::ParallelFirstTouch => Placement::ParallelFirstTouch,
        Remedy::Interleave => Placement::Interleave,
    })
}
