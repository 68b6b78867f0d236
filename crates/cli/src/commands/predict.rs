//! `firsttouch predict`

use crate::arguments::{CapsFrom, Predict};
use crate::output::{print, print_json};
use crate::profile_name::named_or_newest;
use crate::request::analysis_request;
use crate::terminal::style;
use anyhow::{Context, Result};
use firsttouch_pipeline::AnalysedProfile;
use firsttouch_predict::forecast::ForecastOptions;
use firsttouch_predict::program::Caps;
use firsttouch_report::{PredictJson, predict_text};

pub fn run(arguments: &Predict) -> Result<u8> {
    let request = analysis_request(&arguments.judge)?;
    let profile = named_or_newest(arguments.profile.as_deref(), "predict")?;
    let analysed = AnalysedProfile::open(&profile, &request)?;
    let caps = match arguments.caps {
        CapsFrom::Auto => Caps::Auto,
        CapsFrom::Machine => Caps::Machine,
        CapsFrom::Recorded => Caps::Recorded,
    };
    let options = ForecastOptions { write_share: arguments.writes, caps, exhaustive: arguments.exhaustive };
    let forecast = analysed.predict(options).with_context(|| profile.display().to_string())?;
    let json = PredictJson::new(&analysed.analysis, &forecast);
    if arguments.json {
        print_json(&json)?
    } else {
        print(&predict_text(&json, style(&std::io::stdout())))?
    }
    Ok(0)
}
