//! Who accesses what: threads by objects, and nodes by nodes.

use super::markup::{Document, Figure, Markup};
use super::{Page, page_map};
use crate::text::words::percent;
use firsttouch_analysis::{Analysis, ObjectView};

/// Objects and threads of the matrix; more threads are summed by node.
const MOST_OBJECTS: usize = 24;
const MOST_THREADS: usize = 32;
/// Nodes of the matrix.
const MOST_NODES: usize = 32;
/// Shades of a cell.
const SHADES: f64 = 8.0;

/// The shade of a cell: the class says which of eight, and whether its accesses are remote.
pub fn shade(part: f64, is_remote: bool) -> String {
    let step = (part.clamp(0.0, 1.0) * SHADES).ceil();
    match (step > 0.0, is_remote) {
        (false, _) => "n".to_owned(),
        (true, false) => format!("n h{step}"),
        (true, true) => format!("n r{step}"),
    }
}

/// Nodes of threads by nodes of pages.
pub fn nodes(html: &mut Markup, analysis: &Analysis) {
    if !analysis.matrix.iter().flatten().any(|part| *part > 0.0) {
        html.element("p", &[], "No accesses with a known node were seen.");
        return;
    }
    let shown = analysis.matrix.len().min(MOST_NODES);
    let most = analysis.matrix.iter().flatten().copied().fold(f64::MIN_POSITIVE, f64::max);
    let region = [("class", "scroll"), ("tabindex", "0"), ("role", "region"), ("aria-label", "Node by node matrix")];
    html.within("div", &region, |html| {
        html.within("table", &[("class", "matrix"), ("id", "nodes-matrix")], |html| {
            let caption = "Accesses by the node of the thread (rows) and the node of the memory (columns): parts of all, 100 % together";
            html.element("caption", &[], caption);
            html.within("tr", &[], |html| {
                html.element("th", &[("scope", "col")], "threads on");
                for node in 0..shown {
                    html.element("th", &[("scope", "col"), ("class", "n")], &format!("memory on {}", analysis.node_name(node)));
                }
            });
            for (from, row) in analysis.matrix.iter().enumerate().take(shown) {
                html.within("tr", &[], |html| {
                    html.element("th", &[("scope", "row")], &format!("node {}", analysis.node_name(from)));
                    for (to, part) in row.iter().enumerate().take(shown) {
                        html.within("td", &[("class", &shade(part / most, from != to))], |html| {
                            html.figure(Document::Report, &format!("/matrix/{from}/{to}"), Figure::Percent(*part));
                            if from != to {
                                html.element("span", &[("class", "visually-hidden")], " remote");
                            }
                        });
                    }
                });
            }
        });
    });
    if analysis.matrix.len() > shown {
        html.element("p", &[("class", "hint")], &format!("{} more nodes: firsttouch report --json.", analysis.matrix.len() - shown));
    }
}

/// The objects of the matrix, by index in the report.
fn used(analysis: &Analysis) -> Vec<(usize, &ObjectView)> {
    let is_used = |(_, object): &(usize, &ObjectView)| object.used_by_thread.counting(|share| *share > 0.0).next().is_some();
    analysis.objects.iter().enumerate().filter(is_used).take(MOST_OBJECTS).collect()
}

/// The threads of the matrix.
fn columns(analysis: &Analysis) -> Vec<usize> {
    (0..analysis.threads.len()).filter(|thread| !analysis.threads[*thread].idle).collect()
}

/// The objects that are shown by thread; none if the threads are summed by node.
#[must_use]
pub fn by_thread(page: &Page<'_>) -> Vec<usize> {
    let is_shown = columns(page.analysis).len() <= MOST_THREADS;
    used(page.analysis).into_iter().filter(|_| is_shown).map(|(index, _)| index).collect()
}

/// Objects by threads: which thread makes which part of an object's accesses.
pub fn threads(html: &mut Markup, page: &Page<'_>) {
    let analysis = page.analysis;
    let used = used(analysis);
    if used.is_empty() {
        html.element("p", &[], "No accesses of threads to objects were seen.");
        return;
    }
    let columns = columns(analysis);
    let region = [("class", "scroll"), ("tabindex", "0"), ("role", "region"), ("aria-label", "Threads and objects")];
    html.within("div", &region, |html| {
        html.within("table", &[("class", "matrix"), ("id", "threads-matrix")], |html| {
            if columns.len() <= MOST_THREADS {
                each_thread(html, analysis, &used, &columns);
            } else {
                by_node(html, analysis, &used);
            }
        });
    });
}

fn each_thread(html: &mut Markup, analysis: &Analysis, used: &[(usize, &ObjectView)], columns: &[usize]) {
    html.element("caption", &[], "The part of each object's accesses that each thread makes; below the thread its node");
    html.within("tr", &[], |html| {
        html.element("th", &[("scope", "col")], "object");
        for thread in columns {
            html.within("th", &[("scope", "col"), ("class", "n"), ("data-thread", &thread.to_string())], |html| {
                html.text(&format!("thread {thread}"));
                let node = analysis.node_name(analysis.threads[*thread].node as usize);
                html.element("span", &[("class", "hint")], &format!(" node {node}"));
            });
        }
    });
    for (index, object) in used {
        let most = columns.iter().map(|thread| share(object, *thread)).fold(f64::MIN_POSITIVE, f64::max);
        html.within("tr", &[("data-object", &index.to_string())], |html| {
            html.element("th", &[("scope", "row")], &page_map::named(analysis, object));
            for thread in columns {
                let part = share(object, *thread);
                let title = interval_words(object, *thread);
                html.within("td", &[("class", &shade(part / most, false)), ("title", &title)], |html| {
                    if part > 0.0 {
                        let pointer = format!("/objects/{index}/used_by_thread/{thread}");
                        html.figure(Document::Report, &pointer, Figure::Percent(part));
                    }
                });
            }
        });
    }
}

fn share(object: &ObjectView, thread: usize) -> f64 {
    if thread < object.used_by_thread.len() { object.used_by_thread[thread] } else { 0.0 }
}

fn interval_words(object: &ObjectView, thread: usize) -> String {
    if thread >= object.used_by_thread_interval.len() {
        return String::new();
    }
    let words = crate::text::words::interval(object.used_by_thread_interval[thread]);
    format!("{} of the accesses to {} {words}", percent(share(object, thread)), object.name)
}

/// Of many threads, the sums of those on each node.
fn by_node(html: &mut Markup, analysis: &Analysis, used: &[(usize, &ObjectView)]) {
    let nodes = analysis.machine.nodes.min(MOST_NODES);
    let words = format!("The part of each object's accesses that the threads of each node make ({} threads)", analysis.threads.len());
    html.element("caption", &[], &words);
    html.within("tr", &[], |html| {
        html.element("th", &[("scope", "col")], "object");
        for node in 0..nodes {
            let attributes = [("scope", "col"), ("class", "n"), ("data-node", &node.to_string())];
            html.element("th", &attributes, &format!("node {}", analysis.node_name(node)));
        }
    });
    for (index, object) in used {
        let mut sums = vec![0.0; nodes];
        for (thread, share) in object.used_by_thread.counting(|share| *share > 0.0) {
            if let Some(sum) = analysis.threads.get(thread).and_then(|view| sums.get_mut(view.node as usize)) {
                *sum += share;
            }
        }
        html.within("tr", &[("data-object", &index.to_string())], |html| {
            html.element("th", &[("scope", "row")], &page_map::named(analysis, object));
            for sum in &sums {
                html.element("td", &[("class", &shade(*sum, false))], &Figure::Percent(*sum).text());
            }
        });
    }
}
