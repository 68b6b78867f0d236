//! One view of the page as a file of its own (`report --svg VIEW`): for papers and slides.
//!
//! The page's own functions draw it. What they draw within HTML is taken out of their markup, and what HTML places beside it (names of rows, scales, the
//! legend) becomes text. Colours are those of the light page, as values: readers of SVG other than browsers do not know variables of CSS.

use super::document::{STYLE, patterns};
use super::markup::Markup;
use super::{Page, machine, objects, page_map, time, verdict};
use crate::text::layout::cut;
use roxmltree::{Document, Node};
use std::fmt::Write;

/// The width of the picture, px, and of the names to the left of maps and charts.
const WIDTH: f64 = 900.0;
const NAMES: f64 = 86.0;
const MARGIN: f64 = 14.0;
const LINE: f64 = 18.0;
/// The height of a row of a map, with its gap.
const ROW: f64 = 22.0;
/// About the width of a character of 12 px.
const CHARACTER: f64 = 6.6;
/// The longest names of the program and of what is drawn that fit beside each other in the title, in columns.
const LONGEST_NAMES: (usize, usize) = (54, 32);

/// What is drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum View {
    /// The page map of the first object of this name, or of the first object that has a map.
    Map(Option<String>),
    /// Objects as areas, by bytes.
    Objects,
    /// Objects as areas, by remote accesses.
    Remote,
    /// The run over time.
    Time,
    /// Nodes, threads and remote accesses.
    Machine,
}

impl View {
    /// The views by name, for messages.
    pub const NAMES: &str = "map, map:OBJECT, objects, remote, time, machine";

    /// A view by its name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "map" => Self::Map(None),
            "objects" => Self::Objects,
            "remote" => Self::Remote,
            "time" => Self::Time,
            "machine" => Self::Machine,
            _ => Self::Map(Some(name.strip_prefix("map:").filter(|object| !object.is_empty())?.to_owned())),
        })
    }
}

/// The picture as SVG.
///
/// # Errors
/// Why the profile has no such picture.
pub fn svg(page: &Page<'_>, view: &View) -> Result<String, String> {
    let mut markup = Markup::default();
    let subject = draw(&mut markup, page, view)?;
    let mut legend = Markup::default();
    if !matches!(view, View::Objects | View::Remote) {
        page_map::legend(&mut legend, page.analysis);
    }
    let title = format!("{}{}", cut(&verdict::program(page.analysis), LONGEST_NAMES.0), cut(&subject, LONGEST_NAMES.1));
    compose(&title, &markup.finish(), &legend.finish()).map_err(|error| format!("internal error: the drawing cannot be read: {error}"))
}

/// Draws a view as on the page, and returns what it is of.
fn draw(html: &mut Markup, page: &Page<'_>, view: &View) -> Result<String, String> {
    let analysis = page.analysis;
    match view {
        View::Map(wanted) => {
            let is_wanted = |name: &str| wanted.as_deref().is_none_or(|wanted| wanted == name);
            let known = || page.analysis.objects.iter().filter_map(|object| Some((object, page.map(object)?)));
            let Some((object, map)) = known().find(|(object, _)| is_wanted(&object.name)) else {
                let names: Vec<&str> = known().map(|(object, _)| object.name.as_str()).take(8).collect();
                return Err(match wanted {
                    Some(wanted) if !names.is_empty() => format!("no object '{wanted}' has a map; there are {}", names.join(", ")),
                    _ => "no object has a map, because it is not known which threads touched or used its parts".to_owned(),
                });
            };
            page_map::draw_plain(html, analysis, object, &map, "map");
            Ok(format!(": {}", page_map::named(analysis, object)))
        }
        View::Objects if analysis.objects.is_empty() => Err("no objects were seen".to_owned()),
        View::Objects => {
            objects::areas_by_bytes(html, analysis);
            Ok(": objects".to_owned())
        }
        View::Remote if objects::areas_by_remote(html, analysis) => Ok(": objects".to_owned()),
        View::Remote => Err("no remote accesses to objects that could be judged were seen".to_owned()),
        View::Time => {
            let Some(timeline) = page.pictures.timeline.as_ref().filter(|timeline| time::has_charts(timeline)) else {
                return Err("the profile has neither samples nor first touches with their times".to_owned());
            };
            time::draw(html, timeline);
            Ok(", over time".to_owned())
        }
        View::Machine if machine::can_draw(analysis) => {
            machine::draw(html, analysis);
            Ok(format!(" on {}", analysis.machine.name))
        }
        View::Machine => {
            Err(format!("machines of 2 to {} nodes are drawn, and {} has {}", machine::MOST, analysis.machine.name, analysis.machine.nodes))
        }
    }
}

/// Puts drawings one below the other, with what stands beside them on the page.
fn compose(title: &str, drawn: &str, legend: &str) -> Result<String, roxmltree::Error> {
    let drawn = format!("<r>{drawn}</r>");
    let document = Document::parse(&drawn)?;
    let mut body = Markup::default();
    let mut bottom = MARGIN + 16.0;
    body.element("text", &[("class", "title"), ("x", &MARGIN.to_string()), ("y", &(bottom - 4.0).to_string())], title);
    bottom += 8.0;
    let mut widest = WIDTH;
    for picture in document.descendants().filter(|node| is_svg(node) && !node.ancestors().skip(1).any(|one| is_svg(&one))) {
        bottom = place(&mut body, picture, &drawn, bottom, &mut widest);
    }
    for hint in document.descendants().filter(|node| has_class(node, "hint")) {
        body.element("text", &[("class", "tick"), ("x", &MARGIN.to_string()), ("y", &bottom.to_string())], hint.text().unwrap_or_default());
        bottom += LINE;
    }
    let legend = format!("<r>{legend}</r>");
    body.raw("<g class=\"legend\">");
    bottom = place_legend(&mut body, &Document::parse(&legend)?, (&legend, &drawn), bottom);
    body.raw("</g>\n");
    let height = bottom + MARGIN;
    let mut svg = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{widest}\" height=\"{height}\" viewBox=\"0 0 {widest} {height}\" font-family=\"sans-serif\">"
    );
    let _ = writeln!(svg, "<style>{}</style>", style());
    svg.push_str(&patterns().replacen(" class=\"defs\"", "", 1));
    svg.push_str("<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n");
    svg.push_str(&body.finish());
    svg.push_str("</svg>\n");
    Ok(svg)
}

fn is_svg(node: &Node<'_, '_>) -> bool {
    node.has_tag_name("svg")
}

/// Whether the node has this class.
fn has_class(node: &Node<'_, '_>, class: &str) -> bool {
    node.attribute("class").is_some_and(|all| all.split(' ').any(|one| one == class))
}

/// The length of an attribute in px; `None` for a part of the width.
fn px(node: &Node<'_, '_>, name: &str) -> Option<f64> {
    node.attribute(name)?.parse().ok()
}

/// Places a drawing with the names and scales of the element around it, and returns where the next one begins.
fn place(body: &mut Markup, picture: Node<'_, '_>, markup: &str, top: f64, widest: &mut f64) -> f64 {
    let around = |class: &str| picture.ancestors().skip(1).find(|node| node.children().any(|child| has_class(&child, class)));
    let beside = |class: &str| -> Vec<String> {
        let element = around(class).and_then(|node| node.children().find(|child| has_class(child, class)));
        let spans = element
            .map(|element| element.children().filter(Node::is_element).map(|span| span.text().unwrap_or_default().to_owned()).collect());
        spans.unwrap_or_default()
    };
    let (rows, scale) = (beside("rows"), beside("scale"));
    let height = px(&picture, "height").unwrap_or(LINE);
    let mut top = top;
    let mut text = |class: &str, anchor: &str, x: f64, y: f64, words: &str| {
        body.element("text", &[("class", class), ("text-anchor", anchor), ("x", &x.to_string()), ("y", &y.to_string())], words);
    };
    let is_chart = !scale.is_empty();
    let caption = picture.parent_element().filter(|node| node.has_tag_name("figure")).map(|figure| child_text(&figure, "figcaption"));
    if let Some(caption) = caption.or_else(|| is_chart.then(|| child_text(&picture, "title"))) {
        text("", "start", if is_chart { MARGIN + NAMES } else { MARGIN }, top + 12.0, caption);
        top += LINE;
    }
    for (at, row) in rows.iter().enumerate() {
        text("tick", "start", MARGIN, top + 15.0 + ROW * at as f64, row);
    }
    if let [high, low] = &scale[..] {
        text("tick", "end", MARGIN + NAMES - 10.0, top + 9.0, high);
        text("tick", "end", MARGIN + NAMES - 10.0, top + height, low);
    }
    let is_beside_names = is_chart || !rows.is_empty() || picture.ancestors().any(|node| has_class(&node, "time"));
    let left = MARGIN + if is_beside_names { NAMES } else { 0.0 };
    let width = px(&picture, "width").unwrap_or(WIDTH - MARGIN - left);
    *widest = widest.max(left + width + MARGIN);
    let frame = [left, top, width, height].map(|number| number.to_string());
    body.within("svg", &[("x", &frame[0]), ("y", &frame[1]), ("width", &frame[2]), ("height", &frame[3])], |body| {
        body.raw(markup.get(picture.range()).unwrap_or_default());
    });
    top + height + 12.0
}

fn child_text<'a>(node: &Node<'a, '_>, name: &str) -> &'a str {
    node.children().find(|child| child.has_tag_name(name)).and_then(|child| child.text()).unwrap_or_default()
}

/// Places the meaning of those patterns that are in the drawing in lines, and returns where they end.
fn place_legend(body: &mut Markup, legend: &Document<'_>, (markup, drawn): (&str, &str), top: f64) -> f64 {
    let (mut left, mut line) = (MARGIN, top);
    let is_drawn = |item: &Node<'_, '_>| {
        let class = item.descendants().find(|node| node.has_tag_name("rect")).and_then(|swatch| swatch.attribute("class"));
        class.is_some_and(|class| drawn.contains(&format!("class=\"{class}\"")))
    };
    let items: Vec<Node<'_, '_>> = legend.descendants().filter(|node| node.has_tag_name("li") && is_drawn(node)).collect();
    for item in &items {
        let words: String = item.children().filter(Node::is_text).filter_map(|text| text.text()).collect();
        let width = 24.0 + CHARACTER * words.trim().chars().count() as f64;
        if left + width > WIDTH - MARGIN && left > MARGIN {
            (left, line) = (MARGIN, line + LINE);
        }
        if let Some(swatch) = item.children().find(is_svg) {
            body.within("svg", &[("x", &left.to_string()), ("y", &line.to_string()), ("width", "18"), ("height", "12")], |body| {
                body.raw(markup.get(swatch.range()).unwrap_or_default());
            });
        }
        body.element("text", &[("class", "tick"), ("x", &(left + 24.0).to_string()), ("y", &(line + 10.0).to_string())], words.trim());
        left += width + LINE;
    }
    if items.is_empty() { top } else { line + 12.0 }
}

/// The rules of the page's style that are about drawings, with the values of its variables on a light screen.
fn style() -> String {
    let rules = top_rules(STYLE);
    let variables: Vec<(&str, &str)> = rules
        .iter()
        .filter(|(selector, _)| selector.trim() == ":root")
        .flat_map(|(_, body)| body.split(';'))
        .filter_map(|one| one.trim().split_once(':'))
        .filter(|(name, _)| name.starts_with("--"))
        .collect();
    let mut out = String::new();
    for (selector, body) in &rules {
        let is_drawn = ["fill:", "stroke", "shape-rendering", "paint-order"].iter().any(|one| body.contains(one))
            || selector.contains("svg")
            || selector.contains(".label");
        if is_drawn && !selector.contains(":root") {
            let _ = write!(out, "{}{{{body}}}", selector.trim());
        }
    }
    for (name, value) in &variables {
        out = out.replace(&format!("var({name})"), value.trim());
    }
    // The first drawing is within another one, and names of maps are not hidden by a script that zooms.
    out.push_str(".treemap .name,.machine .name{font-weight:600}svg .title{font-size:15px;font-weight:600}");
    out
}

/// The rules of a style sheet outside of at-rules: selectors and bodies.
fn top_rules(style: &str) -> Vec<(&str, &str)> {
    let mut rules = Vec::new();
    let mut rest = style;
    while let Some((selector, after)) = rest.split_once('{') {
        if !selector.trim_start().starts_with('@') {
            let Some((body, after)) = after.split_once('}') else { break };
            rules.push((selector, body));
            rest = after;
            continue;
        }
        let mut depth = 1;
        let end = after.find(|c| {
            depth += match c {
                '{' => 1,
                '}' => -1,
                _ => 0,
            };
            depth == 0
        });
        rest = end.and_then(|end| after.get(end + 1..)).unwrap_or_default();
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check names of views.
    #[test]
    fn views_have_names() {
        assert_eq!(View::parse("map:a:b"), Some(View::Map(Some("a:b".into()))));
        assert_eq!(["map", "time", "maps", "map:", ""].map(|name| View::parse(name).is_some()), [true, true, false, false, false]);
    }

    /// Check that the style has no variables and nothing of other media, and has the colours of the light page.
    #[test]
    fn the_style_stands_alone() {
        let style = style();
        assert!(!style.contains("var(") && !style.contains('@'), "{style}");
        assert!(style.contains(".remote{fill:#c2410c}") && style.contains(".p0 rect{fill:#c5d2de}"), "{style}");
        assert_eq!(top_rules("a{b:c}@media x{d{e:f}}g{h:i}"), [("a", "b:c"), ("g", "h:i")]);
    }
}
