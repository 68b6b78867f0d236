//! The head of the page: the program, the verdict, and the figures behind it.

use super::Page;
use super::markup::{Document, Figure, Markup};
use crate::text;
use crate::text::place::file_name;
use crate::text::words::{capital, counted_as};
use firsttouch_analysis::{Analysis, Verdict};
use firsttouch_predict::forecast::Forecast;

pub fn draw(html: &mut Markup, page: &Page<'_>) {
    let analysis = page.analysis;
    html.within("p", &[("class", "brand")], |html| {
        html.element("b", &[], "firsttouch");
        html.text(&format!(" report of {}", page.context.profile));
    });
    html.element("h1", &[], &program(analysis));
    html.element("p", &[("class", "facts")], &text::facts(analysis));
    let verdict = analysis.verdict();
    let (class, word) = word(&verdict);
    html.within("div", &[("class", &format!("verdict {class}")), ("role", "status"), ("aria-label", "Verdict")], |html| {
        html.element("p", &[("class", "word")], word);
        let sentence = text::verdict_sentence(analysis, page.forecast, page.recommendations);
        html.element(
            "p",
            &[],
            &capital(sentence.strip_prefix(word).map_or(sentence.as_str(), |rest| rest.trim_start_matches([':', ',', ' ']))),
        );
        html.element("p", &[("class", "hint")], &text::judged_on_sentence(analysis, page.context));
    });
    figures(html, page);
}

/// The command line, without the folders of the programs.
pub fn program(analysis: &Analysis) -> String {
    if analysis.command.is_empty() || analysis.is_attached() {
        return "A running process".to_owned();
    }
    // The programs of a job are joined, as mpirun takes them.
    let is_job = analysis.ranks.len() > 1;
    let begins = |at: usize| at == 0 || (is_job && analysis.command[at - 1] == ":");
    let word = |(at, word): (usize, &String)| if begins(at) { file_name(word).to_owned() } else { word.clone() };
    analysis.command.iter().enumerate().map(word).collect::<Vec<_>>().join(" ")
}

/// The class and the first word of a verdict.
pub fn word(verdict: &Verdict) -> (&'static str, &'static str) {
    match verdict {
        Verdict::Findings => ("misplaced", "MISPLACED"),
        Verdict::WellPlaced(_) => ("well", "No finding"),
        Verdict::NotJudged(_) => ("open", "NOT JUDGED"),
    }
}

/// The figures behind the verdict, side by side.
fn figures(html: &mut Markup, page: &Page<'_>) {
    let analysis = page.analysis;
    html.within("dl", &[("class", "figures")], |html| {
        if let Some(remote) = analysis.remote_fraction {
            let name = if analysis.machine.virtual_machine { "accesses that would be remote" } else { "remote accesses" };
            one(html, name, &format!("from {}", counted_as(analysis.remote_samples, "sample", "samples")), |html| {
                html.with_interval(("/remote_fraction", remote), ("/remote_interval", analysis.remote_interval));
            });
        }
        if let Some(prediction) = page.forecast.and_then(Forecast::prediction) {
            one(html, "time, over the best placement", "predicted", |html| {
                html.figure(Document::Report, "/prediction/slowdown", Figure::Times(prediction.slowdown));
                html.text(" ");
                html.figure(Document::Report, "/prediction/interval", Figure::TimesInterval(prediction.interval));
            });
        }
        if let Some(coverage) = &analysis.coverage {
            one(html, "of the accesses seen are judged", &format!("by {}", coverage.evidence), |html| {
                html.figure(Document::Report, "/coverage/judged", Figure::Percent(coverage.judged));
            });
        }
        one(html, "findings", "", |html| html.text(&analysis.findings.len().to_string()));
        one(html, "run time", "", |html| html.figure(Document::Report, "/wall_s", Figure::Seconds(analysis.wall_s)));
    });
}

fn one(html: &mut Markup, name: &str, hint: &str, value: impl FnOnce(&mut Markup)) {
    html.within("div", &[], |html| {
        html.within("dt", &[], |html| {
            html.text(name);
            if !hint.is_empty() {
                html.element("span", &[("class", "hint")], &format!(" {hint}"));
            }
        });
        html.within("dd", &[], value);
    });
}
