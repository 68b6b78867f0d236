//! The model's error on published measurements. The interval of a prediction includes it in addition to the samples' spread.

use crate::experiments::Experiment;
use crate::machine::MachineModel;
use crate::ratios;
use crate::validate::{Validation, ValidationError, validate_on};
use serde::Serialize;

/// With fewer published rows of a machine, use the error over all machines.
const LEAST_ROWS: usize = 8;
/// The 90th percentile of |z| for the normal distribution.
pub const Z90: f64 = 1.644_853_627;

/// Errors of the model, over published rows to which no number was fitted.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModelError {
    /// The machine, or `all`.
    pub of: String,
    pub rows: usize,
    pub median: f64,
    pub percentile_90: f64,
    /// The errors of ratios of placements on all other machines; `None` if too few are published.
    pub ratios: Option<RatioError>,
}

/// Errors of predicted ratios of two placements, over published rows to which no number was fitted. Two predictions of one machine err together in
/// part, and placements err more than local runs: neither follows from the errors of times.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RatioError {
    pub rows: usize,
    pub percentile_90: f64,
}

impl ModelError {
    /// The relative standard error of a prediction, assuming normal errors.
    #[must_use]
    pub fn standard(&self) -> f64 {
        self.percentile_90 / Z90
    }

    /// The same of each of two predictions whose ratio is asked for, as if they erred independently: so that their ratio errs as published ratios do,
    /// and at least as two times do.
    #[must_use]
    pub fn standard_of_each(&self) -> f64 {
        let of_ratio = self.ratios.map_or(0.0, |ratios| ratios.percentile_90 / Z90);
        (of_ratio / std::f64::consts::SQRT_2).max(self.standard())
    }
}

/// The model's errors on this machine if enough measurements of it are published, else on all machines.
///
/// # Errors
/// When an experiment cannot be predicted.
pub fn model_error(machine: &MachineModel, experiments: &[Experiment]) -> Result<ModelError, ValidationError> {
    let find = |name: &str| if name == machine.name { Ok(machine.clone()) } else { crate::machine::find(name) };
    let own: Vec<Experiment> = experiments.iter().map(|experiment| experiment.on(&machine.name)).collect();
    let of = |name: &str, validation: &Validation| {
        let all = validation.summary.first()?;
        let (median, percentile_90) = (all.median?, all.percentile_90?);
        Some(ModelError { of: name.to_owned(), rows: all.predicted, median, percentile_90, ratios: None })
    };
    let mut rows = Vec::new();
    for experiment in experiments.iter().filter(|experiment| !experiment.ratio.is_empty()) {
        rows.extend(validate_on(std::slice::from_ref(experiment), &crate::machine::find)?.rows);
    }
    // What `predict` compares: placements of the memory of threads on all nodes.
    let ratios = ratios::error_on_others(&rows, &machine.name, true);
    if let Some(error) = of(&machine.name, &validate_on(&own, &find)?).filter(|error| error.rows >= LEAST_ROWS) {
        return Ok(ModelError { ratios, ..error });
    }
    let all = validate_on(experiments, &crate::machine::find)?;
    let error = of("all", &all).ok_or(ValidationError::NothingPredicted)?;
    Ok(ModelError { ratios, ..error })
}
