//! The report as one HTML file that loads nothing: for a browser, a mail, a printer.
//!
//! All pictures and tables are made here, from the same analysis, forecast and recommendations as the text and the JSON; the page's small script only
//! zooms, sorts, filters and selects. Each figure names its place in the JSON, and a test compares them.
//!
//! | file | view |
//! |---|---|
//! | `verdict.rs` | the verdict, and the figures behind it |
//! | `findings.rs` | each finding: its map, its lines, the fix |
//! | `page_map.rs` | the address range of an object: first toucher, user, node, remote part |
//! | `objects.rs`, `treemap.rs` | all objects: a table, and areas |
//! | `source.rs` | the source code, with what its lines do to objects |
//! | `time.rs`, `by_time.rs` | the run over time; the accesses of each stretch, for the other views |
//! | `matrices.rs`, `machine.rs`, `prediction.rs` | threads and nodes, the machine, placements compared |
//! | `ranks.rs` | ranks of a job |
//! | `evidence.rs` | what all of it rests on |
//! | `compare.rs` | two profiles side by side (`firsttouch diff --html`) |
//! | `single.rs` | one view as a file of its own (`report --svg`) |
//! | `document.rs`, `markup.rs`, `assets/` | the frame of the page; markup with everything escaped; style and script |

mod by_time;
mod compare;
mod document;
mod evidence;
mod findings;
mod machine;
mod markup;
mod matrices;
mod objects;
mod page_map;
mod prediction;
mod ranks;
mod single;
mod source;
mod time;
mod treemap;
mod verdict;

pub use compare::{Comparison, Side, diff_html};
pub use single::{View, svg};

use crate::text::Context;
use document::{Section, document, script_data};
use firsttouch_analysis::pictures::{PageMap, Pictures, SourceExcerpt};
use firsttouch_analysis::{Analysis, Finding, ObjectView};
use firsttouch_plan::Recommendations;
use firsttouch_predict::forecast::Forecast;
use markup::Markup;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Objects without a finding that have a map: those with the most accesses.
const MOST_MAPS: usize = 12;
/// Objects of findings that have a map.
const MOST_FOUND_MAPS: usize = 40;

/// Parts of the pieces of all maps: those of the first objects.
const MOST_PARTS: usize = 12_288;

/// What a page is made of.
#[derive(Clone, Copy)]
pub struct Page<'a> {
    pub analysis: &'a Analysis,
    pub forecast: Option<&'a Forecast>,
    pub recommendations: &'a Recommendations,
    pub context: &'a Context,
    /// Finer maps, and the run over time.
    pub pictures: &'a Pictures,
    pub excerpts: &'a [SourceExcerpt],
    pub cost: Cost<'a>,
}

/// What the recording cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost<'a> {
    /// CPU time of the recorder while the program ran.
    pub profiler_cpu_s: Option<f64>,
    /// CPU time of the program.
    pub program_cpu_s: Option<f64>,
    /// The version that recorded the profile.
    pub recorded_by: Option<&'a str>,
}

impl<'a> Page<'a> {
    /// An object and its index in the report.
    fn object(&self, id: i64) -> Option<(usize, &'a ObjectView)> {
        self.analysis.objects.iter().enumerate().find(|(_, object)| object.id == id)
    }

    fn map(&self, object: &ObjectView) -> Option<PageMap> {
        page_map::map_of(object, self.pictures.map(object.id))
    }

    /// The objects with a map of their own, in the order of the report: those of findings, and those with the most accesses.
    fn mapped(&self) -> Vec<(usize, &'a ObjectView)> {
        let found: BTreeSet<i64> =
            self.analysis.findings.iter().filter_map(|finding: &Finding| finding.object).take(MOST_FOUND_MAPS).collect();
        let mut others = 0;
        let is_mapped = |(_, object): &(usize, &ObjectView)| {
            let is_found = found.contains(&object.id);
            let is_other = !is_found && others < MOST_MAPS && object.access_share.is_some_and(|share| share > 0.0);
            others += usize::from(is_other);
            is_found || is_other
        };
        self.analysis.objects.iter().enumerate().filter(is_mapped).collect()
    }

    /// The objects that have a map on the page.
    fn map_ids(&self) -> BTreeSet<i64> {
        self.mapped().iter().filter(|(_, object)| self.map(object).is_some()).map(|(_, object)| object.id).collect()
    }
}

/// The page.
#[must_use]
pub fn html(page: &Page<'_>) -> String {
    let analysis = page.analysis;
    let mut head = Markup::default();
    verdict::draw(&mut head, page);
    let title = format!("{}: {} - firsttouch", verdict::program(analysis), verdict::word(&analysis.verdict()).1);
    document(&title, head, sections(page), &script_data(&data(page)))
}

fn sections(page: &Page<'_>) -> Vec<Section> {
    let analysis = page.analysis;
    let mut list = Vec::new();
    let mut add = |is_shown: bool, id: &'static str, title: &'static str, about: &'static str, draw: &dyn Fn(&mut Markup)| {
        if is_shown {
            let mut contents = Markup::default();
            draw(&mut contents);
            list.push(Section { id, title, about, contents });
        }
    };
    let has_findings = !analysis.findings.is_empty();
    add(
        has_findings,
        "findings",
        "Findings",
        "Most worthwhile first. Each map shows the object's address range from left to right.",
        &|html| {
            findings::draw(html, page);
        },
    );
    let found: BTreeSet<i64> = analysis.findings.iter().filter_map(|finding| finding.object).collect();
    let others: Vec<(usize, &ObjectView)> = page.mapped().into_iter().filter(|(_, object)| !found.contains(&object.id)).collect();
    let about =
        "The address range of the objects with the most accesses. Where a part is used and where it lies have one pattern, it is local.";
    let title = if has_findings { "Other objects" } else { "Page maps" };
    add(others.iter().any(|(_, object)| page.map(object).is_some()), "maps", title, about, &|html| {
        if !has_findings {
            page_map::legend(html, analysis);
        }
        other_maps(html, page, &others);
    });
    add(!analysis.ranks.is_empty(), "ranks", "Ranks", "Each rank of the job by itself.", &|html| ranks::draw(html, analysis));
    add(true, "objects", "Objects", "All objects that received accesses, and the largest others.", &|html| objects::draw(html, page));
    let about = "The lines that allocate, first touch and use objects, with the share of each object's accesses in the margin; green lines are the fix.";
    add(source::has_code(page), "source", "Source", about, &|html| source::draw(html, page));
    let about = "The run from its start to its end. Select a stretch: the other views then show that stretch.";
    if let Some(timeline) = page.pictures.timeline.as_ref().filter(|timeline| time::has_charts(timeline)) {
        add(true, "time-view", "Time", about, &|html| time::draw(html, timeline));
    }
    let about = "Which threads access which objects, and from which node to which.";
    add(!analysis.matrix.is_empty() || !analysis.threads.is_empty(), "threads", "Threads and nodes", about, &|html| {
        if machine::can_draw(analysis) {
            machine::draw_for_script(html, analysis);
        }
        matrices::nodes(html, analysis);
        matrices::threads(html, page);
    });
    add(page.forecast.is_some(), "prediction", "Placements compared", "What each placement of the memory would cost.", &|html| {
        prediction::draw(html, page);
    });
    add(true, "evidence", "Evidence", "What this report rests on, and what was not seen.", &|html| evidence::draw(html, page));
    list
}

fn other_maps(html: &mut Markup, page: &Page<'_>, others: &[(usize, &ObjectView)]) {
    for (index, object) in others {
        let Some(map) = page.map(object) else { continue };
        html.within("article", &[("class", "object")], |html| {
            html.element("h3", &[], &page_map::named(page.analysis, object));
            html.within("p", &[("class", "head")], |html| {
                let at = |key: &str| format!("/objects/{index}/{key}");
                html.figure(markup::Document::Report, &at("total_bytes"), markup::Figure::Bytes(object.total_bytes));
                if let Some(share) = object.access_share {
                    html.text(", ");
                    html.with_interval((&at("access_share"), share), (&at("access_share_interval"), object.access_share_interval));
                    html.text(" of the accesses");
                }
                if let Some(remote) = remote_of(object) {
                    html.text(", ");
                    html.with_interval((&at("remote_fraction"), remote), (&at("remote_interval"), object.remote_interval));
                    html.text(" of them remote");
                }
            });
            page_map::draw(html, page.analysis, (*index, object), &map, &format!("map-{}", object.id));
        });
    }
}

/// The remote part of an object's accesses, if the object is judged.
fn remote_of(object: &ObjectView) -> Option<f64> {
    object.remote_fraction.filter(|_| object.judged)
}

/// What the script needs to answer questions about maps and time.
fn data(page: &Page<'_>) -> Value {
    let mut maps = Map::new();
    let mut parts = MOST_PARTS;
    for (index, object) in page.mapped() {
        if let Some(map) = page.map(object) {
            maps.insert(object.id.to_string(), page_map::data(page.analysis, (index, object), &map, &mut parts));
        }
    }
    let nodes: Vec<u32> = page.analysis.threads.iter().map(|thread| thread.node).collect();
    let names: Vec<String> = (0..page.analysis.machine.nodes).map(|node| page.analysis.node_name(node)).collect();
    serde_json::json!({
        "maps": maps,
        "time": page.pictures.timeline.as_ref().map(time::data),
        "by_time": page.pictures.timeline.as_ref().map(|_| by_time::data(page)),
        "thread_nodes": nodes,
        "node_names": names,
    })
}
