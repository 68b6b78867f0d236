//! The plan that follows from what was decided. It is made when pages are about to move: afterwards the same program looks well placed.

use crate::tuning::watch::Watch;
use firsttouch_pipeline::{AnalysedProfile, AnalysisRequest};
use firsttouch_plan::Plan;

#[derive(Default)]
pub struct Learnt {
    pub plan: Option<Plan>,
    /// Why no plan could be made, or why the last attempt failed.
    pub failure: Option<String>,
}

impl Learnt {
    /// Adds what is known now.
    pub fn learn(&mut self, watch: &Watch, request: &AnalysisRequest) {
        let made = AnalysedProfile::new(watch.with_homes(), request).and_then(|analysed| analysed.plan("firsttouch tune"));
        match made {
            Ok(planned) => {
                self.failure = None;
                match &mut self.plan {
                    Some(plan) => add(plan, planned.plan),
                    None => self.plan = Some(planned.plan),
                }
            }
            Err(error) => self.failure = Some(format!("{error:#}")),
        }
    }
}

/// Adds the entries of a newer plan for memory that the older one does not name.
fn add(plan: &mut Plan, newer: Plan) {
    if plan.is_empty() {
        *plan = newer;
        return;
    }
    for entry in newer.entries {
        if plan.entries.iter().all(|known| known.origin != entry.origin) {
            plan.entries.push(entry);
            // The gain of both together is not known.
            plan.gain = None;
        }
    }
    for module in newer.modules {
        if plan.modules.iter().all(|known| known.name != module.name) {
            plan.modules.push(module);
        }
    }
}
