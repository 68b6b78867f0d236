//! Reads a plan from a file.

use crate::unseekable::Readable;
use crate::{ErrorKind, PipelineError, Result, is_profile};
use firsttouch_plan::Plan;
use firsttouch_system::read_bounded_text;
use std::path::Path;

/// The largest plan, bytes: one with as many entries and frames as there may be is smaller.
const MOST_BYTES: u64 = 64 << 20;

/// Reads a plan.
///
/// # Errors
/// When the file cannot be read or is not a plan.
pub fn read_plan(path: &Path) -> Result<Plan> {
    let shown = path.display();
    let cannot = |error| PipelineError::because(ErrorKind::PlanFile, format!("cannot read the plan {shown}"), error);
    let readable = Readable::of(path).map_err(cannot)?;
    if is_profile(readable.path()) {
        let message = format!("cannot use {shown} as a plan: it is a profile (firsttouch plan {shown} -o PLAN.toml)");
        return Err(PipelineError::new(ErrorKind::PlanFile, message));
    }
    let text = read_bounded_text(readable.path(), MOST_BYTES).map_err(cannot)?;
    text.parse().map_err(|error: firsttouch_plan::PlanError| {
        PipelineError::new(ErrorKind::PlanFile, format!("cannot use the plan {shown}:{}: {}", error.line, error.kind))
    })
}
