//! `firsttouch predict`

use super::usage;
use crate::arguments::{CapsFrom, Predict};
use crate::forecast::{Asked, forecast};
use crate::judge::{Question, judge_profile, read};
use crate::output::{print, print_json, style};
use anyhow::{Context, Result};
use firsttouch_predict::program::Caps;
use firsttouch_report::{PredictJson, predict_text};

pub fn run(arguments: &Predict) -> Result<u8> {
    let question = usage(Question::parse(&arguments.judge))?;
    let profile = read(&arguments.profile)?;
    let judged = judge_profile(&profile, &question)?;
    let caps = match arguments.caps {
        CapsFrom::Auto => Caps::Auto,
        CapsFrom::Machine => Caps::Machine,
        CapsFrom::Recorded => Caps::Recorded,
    };
    let asked = Asked { write_share: arguments.writes, caps, exhaustive: arguments.exhaustive };
    let forecast = forecast(&profile, &judged, asked).with_context(|| arguments.profile.display().to_string())?;
    let json = PredictJson::new(&judged.analysis, &judged.traffic, &forecast);
    if arguments.json {
        print_json(&json)?
    } else {
        print(&predict_text(&json, style(&std::io::stdout())))?
    }
    Ok(0)
}
