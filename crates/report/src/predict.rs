//! `firsttouch predict`: placements compared, as text and JSON.

use crate::system::{Lines, row};
use crate::text::words::{count, percent, times};
use crate::text::{Style, paint::Paint};
use crate::topology::table::Align::{Left, Right};
use firsttouch_analysis::{Analysis, Verdict};
use firsttouch_predict::forecast::Forecast;
use firsttouch_predict::model_error::ModelError;
use firsttouch_predict::program::{Caps, Controller, Link, Moot, Placement, Predicted, best};
use firsttouch_predict::undecided::Undecided;
use serde::Serialize;

/// The text says that accesses to objects which were not judged are left out if they are this part of all.
const MUCH_LEFT_OUT: f64 = 0.05;
/// With fewer samples, the text warns that the prediction is uncertain.
const LEAST_SAMPLES: usize = 16;

/// A placement whose interval ends below this is as fast as the best.
const SURELY_BEST: f64 = 1.05;

/// Threads that move little memory compute, or wait for one load after the other.
const LATENCY: &str = "what latency costs: the program moved far less than memory delivers, so it computes, or it waits for latency (pointer \
                       chasing, dependent lookups). Bandwidth, all that is predicted, decides little. If the program waits, fewer remote accesses \
                       may save time; firsttouch run with the placement measures it";

/// The JSON of `firsttouch predict`.
#[derive(Serialize)]
pub struct PredictJson<'a> {
    pub schema: &'static str,
    pub command: &'a [String],
    pub machine: PredictMachine<'a>,
    /// The number of threads that access memory at the same time.
    pub threads: usize,
    /// Fraction of the traffic that flows while one thread works alone.
    pub serial_share: f64,
    /// The part of the run in code that does not access large objects, with its 95 % interval; `None` if it is not known or not counted.
    pub computing_share: Option<f64>,
    pub computing_interval: Option<[f64; 2]>,
    /// The number of sampled addresses behind the figures.
    pub samples: usize,
    /// `static` or `dynamic`.
    pub schedule: &'static str,
    pub caps: Caps,
    pub write_share: f64,
    /// What the prediction does not cover, if that may decide: why a small gain is no result.
    pub not_judged: Option<&'static str>,
    /// Why the profile holds a part of the run only.
    pub not_whole: Option<String>,
    /// Why the report on the same profile gives no verdict; `None` if it gives one.
    pub report_not_judged: Option<String>,
    /// The name of the best placement.
    pub best: &'a str,
    pub placements: Vec<Compared<'a>>,
    /// The placements that may be the best, if that depends on an assumed number.
    pub undecided: Option<&'a Undecided>,
    pub model_error: &'a ModelError,
    pub assumptions: Vec<String>,
}

#[derive(Serialize)]
pub struct PredictMachine<'a> {
    pub name: &'a str,
    pub title: &'a str,
    pub nodes: usize,
    /// Whether its bandwidths are unknown and therefore assumed.
    pub assumed: bool,
}

/// One placement. `node` is set for `one-node` only.
#[derive(Serialize)]
pub struct Compared<'a> {
    pub name: &'static str,
    pub node: Option<usize>,
    pub slowdown: f64,
    pub interval: [f64; 2],
    pub interval_of_samples: [f64; 2],
    pub remote_fraction: f64,
    pub controller: Option<Controller>,
    pub link: Option<Link>,
    #[serde(skip)]
    title: String,
    #[serde(skip)]
    predicted: &'a Predicted,
}

impl<'a> PredictJson<'a> {
    #[must_use]
    pub fn new(analysis: &'a Analysis, forecast: &'a Forecast) -> Self {
        let machine = &forecast.machine;
        Self {
            schema: "firsttouch.predict/1",
            command: &analysis.command,
            machine: PredictMachine {
                name: &machine.name,
                title: &machine.title,
                nodes: machine.nodes.len(),
                assumed: forecast.is_assumed,
            },
            threads: forecast.team,
            serial_share: forecast.serial,
            computing_share: forecast.computing.map(|computing| computing.share),
            computing_interval: forecast.computing.map(|computing| computing.interval()),
            samples: analysis.traffic.objects.iter().map(|object| object.samples.len()).sum(),
            schedule: if forecast.is_dynamic { "dynamic" } else { "static" },
            caps: forecast.caps,
            write_share: forecast.write_share,
            not_judged: not_judged(forecast.caps, machine.nodes.len()),
            not_whole: analysis.not_whole().map(|cause| cause.to_string()),
            report_not_judged: match analysis.verdict() {
                Verdict::NotJudged(causes) => causes.first().map(ToString::to_string),
                _ => None,
            },
            best: best(&forecast.placements).map_or("", |best| best.placement.name()),
            placements: forecast
                .placements
                .iter()
                .map(|one| Compared::new(one, forecast.decision.choice.placements.is_empty(), analysis.remote_fraction))
                .collect(),
            undecided: forecast.undecided.as_ref(),
            model_error: &forecast.error,
            assumptions: assumptions(forecast).into_iter().chain(left_out(analysis)).chain(other_count(analysis, forecast)).collect(),
        }
    }
}

impl<'a> Compared<'a> {
    /// `is_plan_empty`: a plan places nothing, so that its row repeats that of the program as it is. `reported`: the report's remote fraction, which
    /// is the figure for these rows.
    fn new(predicted: &'a Predicted, is_plan_empty: bool, reported: Option<f64>) -> Self {
        let is_unchanged = predicted.placement == Placement::AsIs || (predicted.placement == Placement::Plan && is_plan_empty);
        let node = match predicted.placement {
            Placement::OneNode { node } => Some(node),
            _ => None,
        };
        Self {
            name: predicted.placement.name(),
            node,
            slowdown: predicted.slowdown,
            interval: predicted.interval,
            interval_of_samples: predicted.interval_of_samples,
            remote_fraction: reported.filter(|_| is_unchanged).unwrap_or(predicted.remote_fraction),
            controller: predicted.controller,
            link: predicted.link,
            title: title(predicted.placement, is_plan_empty),
            predicted,
        }
    }

    /// What the placement does, in words.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.title
    }

    fn cells(&self) -> Vec<String> {
        let used = |utilisation: f64| percent(utilisation.min(1.0));
        // As fast as the best by the numbers as they are, but not by all that they may be, is no best.
        let is_best = self.predicted.slowdown <= 1.0 + 1e-9 && self.interval[1] < SURELY_BEST;
        vec![
            self.title.clone(),
            format!("{:.2}x", self.slowdown),
            if is_best { "best".to_owned() } else { times(self.interval) },
            percent(self.remote_fraction),
            self.controller.map_or_else(|| "-".to_owned(), |one| format!("node {} {}", one.node, used(one.utilisation))),
            self.link.map_or_else(|| "-".to_owned(), |one| format!("{}->{} {}", one.from, one.to, used(one.utilisation))),
        ]
    }
}

fn title(placement: Placement, is_plan_empty: bool) -> String {
    let remark = if placement == Placement::Plan && is_plan_empty { " (places nothing)" } else { "" };
    format!("{placement}{remark}")
}

pub(crate) fn not_judged(caps: Caps, nodes: usize) -> Option<&'static str> {
    (caps == Caps::Recorded && nodes > 1).then_some(LATENCY)
}

/// What the prediction leaves out, if it receives many of the accesses: objects that were not judged, and memory of no recorded object.
pub(crate) fn left_out(analysis: &Analysis) -> Option<String> {
    let coverage = analysis.coverage.as_ref()?;
    let much = |share: f64| (share >= MUCH_LEFT_OUT).then(|| percent(share));
    let objects = much(coverage.not_judged).map(|share| {
        format!("Objects that were not judged receive {share} of the accesses seen, and are left out: the report says which, and why.")
    });
    let elsewhere = much(coverage.elsewhere.unwrap_or(0.0))
        .map(|share| format!("Memory of no recorded object receives {share} of the accesses seen, and is left out."));
    let sentences: Vec<String> = objects.into_iter().chain(elsewhere).collect();
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

/// The model's own count of the remote accesses of the program as it is, if it differs from the report's by half a point.
fn other_count(analysis: &Analysis, forecast: &Forecast) -> Option<String> {
    let reported = analysis.remote_fraction?;
    let counted = forecast.placements.iter().find(|one| one.placement == Placement::AsIs)?.remote_fraction;
    ((reported - counted).abs() >= 0.005).then(|| {
        format!(
            "As it is, {} of the accesses are remote by the report, and {} as the model counts (it counts bytes, and evens shares that do not differ \
             beyond chance); rows of other placements have the model's count.",
            percent(reported),
            percent(counted)
        )
    })
}

/// Whether the program as it is may be as fast as the best placement, which is another one: its interval reaches 1.
fn no_certain_gain(json: &PredictJson<'_>) -> Option<String> {
    let as_is = json.placements.iter().find(|one| one.predicted.placement == Placement::AsIs)?;
    let is_open = json.best != as_is.name && as_is.interval[0] <= 1.0;
    is_open.then(|| format!("No gain is certain: the program as it is ({:.2}x {}) may be as fast.", as_is.slowdown, times(as_is.interval)))
}

/// The best placement depends on a number that is assumed.
fn open_advice(undecided: &Undecided, machine: &str) -> String {
    format!(
        "Undecided: {} is the best if the {} of {machine} are as assumed; within their range {} may be. `{}` on that machine measures them.",
        undecided.between.first().copied().unwrap_or_default(),
        undecided.depends_on,
        undecided.between.get(1..).unwrap_or_default().join(" or "),
        undecided.measure
    )
}

/// The assumptions of a forecast that lack evidence, one sentence each.
fn assumptions(forecast: &Forecast) -> Vec<String> {
    let percent = |part: f64| format!("{:.0} %", 100.0 * part);
    let mut list = Vec::new();
    if forecast.is_assumed {
        list.push(format!(
            "Of {} only the nodes are known: its controllers, cores and links compare as on the median machine of the catalogue, and \
             every node has a link to every other.",
            forecast.machine.name
        ));
    }
    let assumed: Vec<&str> =
        forecast.machine.facts.iter().filter(|fact| fact.source.starts_with("assumed")).map(|fact| fact.what.as_str()).collect();
    if !forecast.is_assumed && !assumed.is_empty() {
        list.push(format!(
            "Of {} these numbers are assumed: {} (`firsttouch machines show` says how).",
            forecast.machine.name,
            assumed.join(", ")
        ));
    }
    list.push("The kernel's balancing is off (kernel.numa_balancing): where it is on, pages may move while the program runs.".to_owned());
    list.push("Every access to a watched word moves 8 bytes of memory: savings by shared caches and reuse are not modelled.".to_owned());
    list.push(format!("{} of the traffic is written (--writes).", percent(forecast.write_share)));
    match forecast.moot {
        Some(Moot::Guessed(part)) => list.push(format!(
            "Intervals reach to no effect: the samples do not show how fast the loops go that make {} of the accesses, so how much they move is not known.",
            percent(part)
        )),
        Some(Moot::Cached(speed)) => list.push(format!(
            "Intervals reach to no effect: threads accessed {:.0} GB/s each, more than a core usually draws from memory: caches probably served \
             some of that, and how much is not known.",
            speed.0 / 1e9
        )),
        None => {}
    }
    list.push(match forecast.caps {
        Caps::Recorded => "Threads compute as fast as when they were recorded, in CPU time: they moved far less than this machine's \
                           memory delivers (--caps)."
            .to_owned(),
        Caps::Auto | Caps::Machine if forecast.has_doubtful_caps => {
            "Threads wait for memory only, or compute as fast as when they were recorded: their \
             speed does not tell, so intervals cover both (--caps machine or --caps recorded for one of them)."
                .to_owned()
        }
        Caps::Auto | Caps::Machine => "Threads wait for memory only: a core draws what the machine's description says (--caps).".to_owned(),
    });
    list.push(match forecast.is_dynamic {
        true => "What no thread owns, which is most of the traffic, goes to whoever is free; parts with an owner stay that thread's work."
            .to_owned(),
        false => "Threads work at the same time, each on its own part; the last to end ends all.".to_owned(),
    });
    if forecast.serial > 0.0 {
        list.push(format!(
            "{} of the traffic flows while one thread works alone (outside of parallel regions, or before there were other threads): it takes \
             its own time, and stays serial wherever pages lie.",
            percent(forecast.serial)
        ));
    }
    if let Some(computing) = forecast.computing {
        let [low, high] = computing.interval().map(|bound| 100.0 * bound);
        list.push(format!(
            "{} of the run [{low:.0}, {high:.0}] is spent in code that does not access large objects ({}): no placement changes that time.",
            percent(computing.share),
            count(computing.samples as usize, "sample")
        ));
    }
    if !forecast.evened.is_empty() {
        list.push(format!("Threads use equal parts of {}: their shares do not differ beyond chance.", forecast.evened.join(", ")));
    }
    if forecast.unknown > 0.005 {
        list.push(format!("{} of the traffic lies on pages of unknown nodes, and is left out.", percent(forecast.unknown)));
    }
    if let Some(found) = &forecast.found {
        list.push(format!(
            "The best combination is that of {} computed: the {} objects with most traffic in every placement, each by itself; others as the plan \
             has them.",
            found.tried, found.objects
        ));
    }
    list
}

/// The comparison as text.
#[must_use]
pub fn predict_text(json: &PredictJson<'_>, style: Style) -> String {
    let mut out = Lines::new(style);
    let machine = &json.machine;
    let command = if json.command.is_empty() { "the program".to_owned() } else { json.command.join(" ") };
    out.sentence(&format!(
        "{command} on {} ({}), {}, {} at a time; from {}",
        machine.name,
        machine.title,
        count(machine.nodes, "node"),
        count(json.threads, "thread"),
        count(json.samples, "sampled address").replace("addresss", "addresses"),
    ));
    out.gap();
    let mut rows = vec![row(["placement", "time", "95 % interval", "remote", "controller", "link"])];
    rows.extend(json.placements.iter().map(Compared::cells));
    out.headed_table(&rows, &[Left, Right, Left, Right, Left, Left]);
    out.gap();
    if let Some(what) = &json.not_whole {
        out.sentence(&format!("{}: {what}.", style.paint(Paint::Bad, "NOT JUDGED")));
    }
    if let Some(what) = json.report_not_judged.as_ref().filter(|_| json.not_whole.is_none()) {
        out.sentence(&format!(
            "The report on this profile is {}: {what}. What is predicted holds as far as its remote shares do.",
            style.paint(Paint::Bad, "NOT JUDGED")
        ));
    }
    if let Some(what) = json.not_judged {
        out.sentence(&format!("{}: {what}.", style.paint(Paint::Bad, "NOT JUDGED")));
    }
    out.sentence("Times are relative to the best placement; of controllers and links the busiest is shown, with the part of its limit that it carries.");
    if let Some(open) = no_certain_gain(json) {
        out.sentence(&open);
    }
    if let Some(undecided) = json.undecided {
        out.sentence(&open_advice(undecided, machine.name));
    }
    if json.samples < LEAST_SAMPLES {
        out.sentence(&style.paint(Paint::Bad, "These are few samples: profile a longer run."));
    }
    out.sentence(&format!(
        "The intervals hold the samples' spread and the model's own error: {} off in the median over {} published figures{}, {} at the 90th percentile{}.",
        percent(json.model_error.median),
        json.model_error.rows,
        if json.model_error.of == "all" { String::new() } else { " of this machine".to_owned() },
        percent(json.model_error.percentile_90),
        json.model_error.ratios.map_or_else(String::new, |ratios| format!(
            "; {} at the 90th percentile over {} published ratios of placements",
            percent(ratios.percentile_90.exp() - 1.0),
            ratios.rows
        )),
    ));
    out.heading("Assumed");
    let bullets: Vec<Vec<String>> = json.assumptions.iter().map(|text| vec!["-".to_owned(), text.clone()]).collect();
    out.table(&bullets, &[Left, Left]);
    out.text()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that programs that move little memory are told what the prediction leaves out, and others are not.
    #[test]
    fn latency_is_not_judged() {
        let judged = [(Caps::Recorded, 2), (Caps::Recorded, 1), (Caps::Machine, 2)].map(|(caps, nodes)| not_judged(caps, nodes).is_none());
        assert_eq!(judged, [false, true, true]);
    }

    /// Check that undecided advice names both placements, what decides, and how to measure it.
    #[test]
    fn open_advice_names_the_measurement() {
        let depends_on = "links between packages".to_owned();
        let undecided = Undecided { between: vec!["interleave", "as-is"], depends_on, measure: "firsttouch map --save" };
        let said = open_advice(&undecided, "epyc");
        for part in ["interleave", "as-is", "links between packages of epyc", "firsttouch map --save"] {
            assert!(said.contains(part), "{said}");
        }
    }

    /// Check that the row of a plan that places nothing says so.
    #[test]
    fn an_empty_plan_is_said() {
        assert_eq!(title(Placement::Plan, true), "the plan (places nothing)");
        assert_eq!(title(Placement::Plan, false), "the plan");
        assert_eq!(title(Placement::Interleave, true), "interleave");
    }
}
