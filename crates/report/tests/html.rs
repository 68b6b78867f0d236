//! The report as a page: well-formed, without anything loaded from elsewhere, names as text, and the figures those of the JSON.

mod names;

use crate::text::{context, recommended, serial, well_placed};
use firsttouch_analysis::pictures::{Accessed, Bin, CountsIn, Pictures, TimedAccesses, Timeline};
use firsttouch_analysis::{Analysis, ObjectView, diff};
use firsttouch_pipeline::{AnalysedProfile, AnalysisRequest};
use firsttouch_report::{Comparison, Context, Cost, DiffJson, Page, PredictJson, ReportJson, Side, diff_html, html};
use roxmltree::{Document, Node, ParsingOptions};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

fn parsed(page: &str) -> Document<'_> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    Document::parse_with_options(page, options).unwrap_or_else(|error| panic!("{error}"))
}

fn elements<'a>(document: &'a Document<'_>) -> impl Iterator<Item = Node<'a, 'a>> {
    document.descendants().filter(Node::is_element)
}

/// The page of a hand-made analysis, without finer maps.
pub fn page_of(analysis: &Analysis) -> String {
    page_with(analysis, &Pictures::default())
}

fn page_with(analysis: &Analysis, pictures: &Pictures) -> String {
    let (recommendations, context) = (recommended(analysis), context());
    html(&Page {
        analysis,
        forecast: None,
        recommendations: &recommendations,
        context: &context,
        pictures,
        excerpts: &[],
        cost: Cost::default(),
    })
}

pub fn fixtures() -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/profiles");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|end| end == "ftp")).collect();
    files.sort();
    assert!(files.len() > 5);
    files
}

/// The page of a recorded profile, and the JSON that its figures come from.
fn page_of_profile(path: &std::path::Path, machine: Option<&str>) -> (String, Value, Option<Value>) {
    let request = AnalysisRequest::parse(machine, None).unwrap().with_pictures();
    let analysed = AnalysedProfile::open(path, &request).unwrap();
    let (forecast, recommendations) = (analysed.report_forecast().unwrap(), analysed.recommendations().unwrap());
    let context = Context { profile: "x.ftp".into(), ..context() };
    let page = Page {
        analysis: &analysed.analysis,
        forecast,
        recommendations: &recommendations,
        context: &context,
        pictures: analysed.pictures.as_ref().unwrap(),
        excerpts: &analysed.excerpts,
        cost: Cost::default(),
    };
    let report = serde_json::to_value(ReportJson::new(&analysed.analysis, forecast, &recommendations)).unwrap();
    let predict = forecast.map(|forecast| serde_json::to_value(PredictJson::new(&analysed.analysis, forecast)).unwrap());
    (html(&page), report, predict)
}

/// A figure of the JSON as the page has to show it. Written anew here: the page's own words are what is tested.
fn shown(value: &Value, format: &str) -> String {
    let digits = |part: &Value| {
        let value = part.as_f64().unwrap() * 100.0;
        if (0.05..9.95).contains(&value) { format!("{value:.1}") } else { format!("{value:.0}") }
    };
    let pair = |one: &dyn Fn(&Value) -> String| format!("[{}, {}]", one(&value[0]), one(&value[1]));
    match format {
        "percent" => format!("{} %", digits(value)),
        "interval" => pair(&digits),
        "times" => format!("{:.1}x", value.as_f64().unwrap()),
        "times-interval" => pair(&|one| format!("{:.1}", one.as_f64().unwrap())),
        "seconds" => format!("{:.1} s", value.as_f64().unwrap()),
        "bytes" => firsttouch_model::format_bytes(value.as_u64().unwrap()),
        "count" => {
            let digits: Vec<char> = value.as_u64().unwrap().to_string().chars().rev().collect();
            let groups: Vec<String> = digits.chunks(3).map(|group| group.iter().collect()).collect();
            groups.join(",").chars().rev().collect()
        }
        other => panic!("unknown format {other}"),
    }
}

/// Compares each figure of a page with the JSON that it names. Returns their number.
fn compare(page: &str, attribute: &str, json: &Value) -> usize {
    let document = parsed(page);
    let figures = elements(&document).filter_map(|node| Some((node, node.attribute(attribute)?)));
    let mut count = 0;
    for (node, pointer) in figures {
        let value = json.pointer(pointer).unwrap_or_else(|| panic!("no {pointer} in the JSON"));
        let text = node.text().unwrap_or_default().replace('\u{a0}', " ");
        assert_eq!(text, shown(value, node.attribute("data-as").unwrap()), "{pointer}");
        count += 1;
    }
    count
}

/// Check what a page must not have: addresses of other hosts, style in attributes and handlers, which the policy forbids, and equal anchors.
fn check_form(page: &str) {
    let document = parsed(page);
    let mut anchors = std::collections::BTreeSet::new();
    for node in elements(&document) {
        for attribute in node.attributes() {
            let (name, value) = (attribute.name(), attribute.value());
            assert!(name != "style" && !name.starts_with("on") && name != "src" && name != "srcset", "{name}={value}");
            assert!(name != "href" || value.starts_with('#'), "{value}");
            if name == "id" {
                assert!(anchors.insert(value.to_owned()), "two elements {value}");
            }
        }
        assert!(!["link", "iframe", "object", "embed", "base", "form", "image", "use"].contains(&node.tag_name().name()), "{node:?}");
    }
    for node in elements(&document) {
        let targets = node.attribute("href").and_then(|href| href.strip_prefix('#')).into_iter();
        for target in targets.chain(node.attribute("aria-labelledby").into_iter().flat_map(str::split_whitespace)) {
            assert!(anchors.contains(target), "no element {target}");
        }
    }
    let policy = elements(&document).find(|node| node.attribute("http-equiv") == Some("Content-Security-Policy")).unwrap();
    let policy = policy.attribute("content").unwrap();
    assert!(policy.starts_with("default-src 'none'; ") && !policy.contains("unsafe"), "{policy}");
    let rest = page.replace("http://www.w3.org/1999/xhtml", "").replace("http://www.w3.org/2000/svg", "");
    assert!(!rest.contains("http:") && !rest.contains("https:") && !rest.contains("@import"));
}

/// Check the pages of all recorded profiles: form, figures, and that the same profile gives the same bytes.
#[test]
fn pages_of_profiles() {
    for path in fixtures() {
        let (page, report, _) = page_of_profile(&path, None);
        check_form(&page);
        let figures = compare(&page, "data-report", &report);
        assert!(figures > 20, "{}: {figures} figures", path.display());
        assert_eq!(page_of_profile(&path, None).0, page, "{}", path.display());
        assert!(page.len() < 1_000_000, "{}: {} bytes", path.display(), page.len());
    }
}

/// Check the figures of a prediction: on a machine of the catalogue, with intervals.
#[test]
fn pages_with_predictions() {
    let path = fixtures().into_iter().find(|path| path.ends_with("dgemv_serial.ftp")).unwrap();
    let (page, report, predict) = page_of_profile(&path, Some("epyc-7451x2"));
    check_form(&page);
    assert!(compare(&page, "data-report", &report) > 20);
    assert!(compare(&page, "data-predict", &predict.unwrap()) >= 6);
    assert!(page.contains("/prediction/slowdown"));
}

/// Check that the frame of a page is small: style, script and markup without data.
#[test]
fn a_page_without_data_is_small() {
    let size = page_of(&well_placed()).len();
    assert!(size < 75_000, "{size}");
}

/// Check that NOT JUDGED is as prominent as a verdict, with its cause.
#[test]
fn what_is_not_judged_is_prominent() {
    let unseen = Analysis { remote_samples: 3, findings: vec![], ..serial() };
    for (analysis, class, word) in
        [(serial(), "misplaced", "MISPLACED"), (well_placed(), "well", "No finding"), (unseen.clone(), "open", "NOT JUDGED")]
    {
        let page = page_of(&analysis);
        let document = parsed(&page);
        let verdict = elements(&document).find(|node| node.attribute("class") == Some(&format!("verdict {class}"))).unwrap();
        let words: Vec<&str> = verdict.descendants().filter_map(|node| node.text()).collect();
        assert!(words.contains(&word), "{words:?}");
        for cause in analysis.doubts().iter().filter(|_| class == "open") {
            let cause = cause.to_string().to_lowercase();
            assert!(words.iter().any(|text| text.to_lowercase().contains(&cause)), "{cause}: {words:?}");
        }
    }
    assert!(!unseen.doubts().is_empty());
}

/// Check the page of two profiles: form and figures.
#[test]
fn two_profiles_side_by_side() {
    let (before, after) = (serial(), well_placed());
    let assessed = |analysis| firsttouch_analysis::Assessed { analysis, prediction: None };
    let found = diff::diff(assessed(&before), assessed(&after));
    let page = diff_html(&Comparison {
        diff: &found,
        before: Side { name: "before.ftp", analysis: &before },
        after: Side { name: "after.ftp", analysis: &after },
    });
    check_form(&page);
    assert!(compare(&page, "data-diff", &serde_json::to_value(DiffJson::new(&found)).unwrap()) >= 10);
    assert!(page.contains("Gone: 1") && page.contains("New: 0"));
}

/// Check that the remote share over time sums up to that of the report, and that maps have all pieces.
#[test]
fn pictures_sum_up() {
    for path in fixtures() {
        let request = AnalysisRequest::parse(None, None).unwrap().with_pictures();
        let analysed = AnalysedProfile::open(&path, &request).unwrap();
        let pictures = analysed.pictures.as_ref().unwrap();
        let timeline = pictures.timeline.as_ref().unwrap();
        let remote: f64 = timeline.bins.iter().map(|bin| bin.share * bin.remote.unwrap_or(0.0)).sum();
        if let Some(reported) = analysed.analysis.remote_fraction {
            assert!((remote - reported).abs() < 0.02, "{}: {remote} {reported}", path.display());
        }
        for map in &pictures.maps {
            let shares: f64 = map.pieces.iter().map(|piece| piece.share).sum();
            assert!(shares == 0.0 || (shares - 1.0).abs() < 1e-9, "{}: {shares}", path.display());
        }
    }
}

/// Check that an object which is not judged has no remote part, and that sources are compared in the words of the text.
#[test]
fn what_is_not_judged_has_no_remote_part() {
    let mut analysis = serial();
    assert!(page_of(&analysis).contains("/objects/0/remote_fraction"));
    analysis.objects[0].judged = false;
    analysis.findings.clear();
    assert!(!page_of(&analysis).contains("/objects/0/remote_fraction"));
}

/// The figures of all rows of a page's table by time: parts of accesses, and remote parts.
#[derive(Default)]
struct SumsByTime {
    shares: BTreeMap<i64, f64>,
    /// By object: accesses with a known home, and those of them that are remote.
    remote: BTreeMap<i64, (f64, f64)>,
    by_thread: BTreeMap<(i64, i64), f64>,
    by_nodes: BTreeMap<(i64, i64), f64>,
}

/// The table of a page, as its script reads it.
fn table_by_time(page: &str) -> Value {
    let document = parsed(page);
    let element = elements(&document).find(|node| node.attribute("id") == Some("data")).unwrap();
    serde_json::from_str::<Value>(element.text().unwrap()).unwrap()["by_time"].take()
}

fn sums_by_time(table: &Value) -> SumsByTime {
    let mut sums = SumsByTime::default();
    for of_object in table["cells"].as_array().unwrap() {
        let (object, bits, unit) = (of_object[0].as_i64().unwrap(), of_object[1].as_u64().unwrap(), of_object[2].as_f64().unwrap());
        for series in of_object[3].as_array().unwrap() {
            let numbers: Vec<f64> = series.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect();
            let [thread, node, home] = [0, 1, 2].map(|index| numbers[index] as i64);
            let weight: f64 = numbers[4..].chunks(3).map(|cell| cell[1] * unit).sum();
            if bits & 1 != 0 {
                *sums.shares.entry(object).or_default() += weight;
            }
            if bits & 2 != 0 {
                *sums.by_thread.entry((object, thread)).or_default() += weight;
                if home >= 0 {
                    let sum = sums.remote.entry(object).or_default();
                    *sum = (sum.0 + weight, sum.1 + if node == home { 0.0 } else { weight });
                }
            }
            if bits & 4 != 0 {
                *sums.by_nodes.entry((node, home)).or_default() += weight;
            }
        }
    }
    sums
}

/// Check that all stretches of time together give the figures of the report, also on another machine.
#[test]
fn stretches_sum_up() {
    let mut compared = 0;
    let on = |machine: Option<&'static str>| fixtures().into_iter().map(move |path| (path, machine));
    for (path, machine) in on(None).chain(on(Some("epyc-7451x2"))) {
        let (page, report, _) = page_of_profile(&path, machine);
        let table = table_by_time(&page);
        let sums = sums_by_time(&table);
        let mut check = |own: f64, reported: &Value, of: &str| {
            let reported = reported.as_f64().unwrap();
            assert!((own - reported).abs() < 0.002, "{} {of}: {own} {reported}", path.display());
            compared += 1;
        };
        let all: f64 = sums.shares.values().sum();
        assert!((all - 1.0).abs() < 0.001, "{all}");
        let elsewhere: Vec<usize> = table["elsewhere"].as_array().unwrap().iter().map(|index| index.as_u64().unwrap() as usize).collect();
        for (index, object) in report["objects"].as_array().unwrap().iter().enumerate() {
            let id = index as i64;
            if let Some(share) = sums.shares.get(&id) {
                check(*share, &object["access_share"], "share");
            }
            if let Some((known, remote)) =
                sums.remote.get(&id).filter(|_| !elsewhere.contains(&index) && object["remote_fraction"].is_f64())
            {
                check(remote / known, &object["remote_fraction"], "remote part");
            }
            let own: Vec<_> = sums.by_thread.iter().filter(|((object, thread), _)| *object == id && *thread >= 0).collect();
            let all: f64 = own.iter().map(|(_, weight)| **weight).sum();
            for ((_, thread), weight) in own {
                check(weight / all, &object["used_by_thread"][*thread as usize], "thread");
            }
        }
        let all: f64 = sums.by_nodes.values().sum();
        for (&(from, to), weight) in &sums.by_nodes {
            check(weight / all, &report["matrix"][from as usize][to as usize], "nodes");
        }
    }
    assert!(compared > 200, "{compared}");
}

/// Check that the table is bounded, and that a coarser one has the same sums.
#[test]
fn the_table_by_time_is_bounded() {
    let mut analysis = serial();
    let object = analysis.objects[0].clone();
    analysis.objects = (0..600).map(|id| ObjectView { id, ..object.clone() }).collect();
    let cell = |number: u64| {
        let number = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
        let of = Accessed {
            object: Some((number % 600) as i64),
            counts_in: CountsIn { shares: true, object: true, matrix: true },
            thread: (number / 600 % 8) as usize,
            node: (number / 4800 % 2) as usize,
            home: Some((number / 9600 % 2) as usize),
            piece: (number / 19200 % 32) as usize,
            bin: (number / 614_400 % 120) as usize,
        };
        TimedAccesses { of, accesses: 1.0 + (number % 7) as f64, samples: 1.0 }
    };
    for cells in [100_u64, 20_000, 200_000] {
        let by_time: Vec<TimedAccesses> = (0..cells).map(cell).collect();
        let bins = vec![Bin { share: 1.0 / 120.0, remote: Some(0.5), touched_bytes: vec![0.0; 2], ..Bin::default() }; 120];
        let timeline = Some(Timeline { wall_s: 12.0, bin_s: 0.1, bins, ..Timeline::default() });
        let pictures = Pictures { by_time, timeline, ..Pictures::default() };
        let page = page_with(&analysis, &pictures);
        let table = table_by_time(&page);
        assert_eq!(table["bins"] == 1, cells < 200_000, "{}", table["bins"]);
        assert!(table.to_string().len() <= 310_000);
        let sums = sums_by_time(&table);
        let remote = sums.by_nodes.iter().filter(|((from, to), _)| from != to).map(|(_, weight)| weight).sum::<f64>();
        let expected = pictures.by_time.iter().filter(|cell| Some(cell.of.node) != cell.of.home).map(|cell| cell.accesses).sum::<f64>()
            / pictures.by_time.iter().map(|cell| cell.accesses).sum::<f64>();
        assert!((remote - expected).abs() < 0.002 && (sums.shares.values().sum::<f64>() - 1.0).abs() < 0.002, "{remote} {expected}");
    }
}
