//! Builds markup that is HTML and well-formed XML. All text and all values of attributes are escaped here and nowhere else, so that names from profiles
//! are always text.

use crate::text::layout::{GLUE, clean};
use crate::text::words;
use crate::xml::escape;
use firsttouch_analysis::Interval;
use firsttouch_model::format_bytes;

/// Attributes of an element.
pub type Attributes<'a> = &'a [(&'a str, &'a str)];

/// Markup under construction.
#[derive(Default)]
pub struct Markup {
    out: String,
}

/// How a figure of the JSON reads on the page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Figure {
    /// A part of a whole: `49 %`.
    Percent(f64),
    /// A 95 % interval of parts of a whole: `[47, 52]`.
    Interval(Interval),
    Bytes(u64),
    Count(u64),
    /// A ratio: `1.9x`.
    Times(f64),
    /// A 95 % interval of ratios: `[1.6, 2.0]`.
    TimesInterval(Interval),
    Seconds(f64),
}

/// The JSON document that a figure is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Document {
    /// `firsttouch report --json`
    Report,
    /// `firsttouch predict --json`
    Predict,
    /// `firsttouch diff --json`
    Diff,
}

impl Document {
    /// The attribute with the figure's JSON pointer.
    const fn attribute(self) -> &'static str {
        match self {
            Self::Report => "data-report",
            Self::Predict => "data-predict",
            Self::Diff => "data-diff",
        }
    }
}

impl Figure {
    /// The name of the format, for whoever reads the page.
    const fn format(self) -> &'static str {
        match self {
            Self::Percent(_) => "percent",
            Self::Interval(_) => "interval",
            Self::Bytes(_) => "bytes",
            Self::Count(_) => "count",
            Self::Times(_) => "times",
            Self::TimesInterval(_) => "times-interval",
            Self::Seconds(_) => "seconds",
        }
    }

    /// The figure as text.
    #[must_use]
    pub fn text(self) -> String {
        let text = match self {
            Self::Percent(value) => words::percent(value),
            Self::Interval(range) => words::interval(range),
            Self::Bytes(bytes) => format_bytes(bytes).replace(' ', "\u{a0}"),
            Self::Count(count) => words::thousands(count),
            Self::Times(value) => format!("{value:.1}x"),
            Self::TimesInterval(range) => words::times(range),
            Self::Seconds(value) => format!("{value:.1}\u{a0}s"),
        };
        text.replace(GLUE, "\u{a0}")
    }
}

impl Markup {
    /// The finished markup.
    pub fn finish(self) -> String {
        self.out
    }

    fn start(&mut self, tag: &str, attributes: Attributes<'_>) {
        self.out.push('<');
        self.out.push_str(tag);
        for (name, value) in attributes {
            self.out.push(' ');
            self.out.push_str(name);
            self.out.push_str("=\"");
            self.out.push_str(&escape(&value.replace(GLUE, "\u{a0}")));
            self.out.push('"');
        }
    }

    /// An element with contents.
    pub fn within(&mut self, tag: &str, attributes: Attributes<'_>, contents: impl FnOnce(&mut Self)) {
        self.start(tag, attributes);
        self.out.push('>');
        contents(self);
        self.out.push_str("</");
        self.out.push_str(tag);
        self.out.push_str(if matches!(tag, "span" | "a" | "b" | "code" | "title" | "text" | "td" | "th" | "button") { ">" } else { ">\n" });
    }

    /// An element with text only.
    pub fn element(&mut self, tag: &str, attributes: Attributes<'_>, text: &str) {
        self.within(tag, attributes, |html| html.text(text));
    }

    /// An element without contents. HTML knows which elements have none; those of SVG end with a slash in both languages.
    pub fn empty(&mut self, tag: &str, attributes: Attributes<'_>) {
        self.start(tag, attributes);
        self.out.push_str("/>");
    }

    /// Text.
    pub fn text(&mut self, text: &str) {
        self.out.push_str(&escape(&clean(&text.replace(GLUE, "\u{a0}"))));
    }

    /// Text of our own that is markup already: the page's style and script, and JSON without `<`.
    pub fn raw(&mut self, markup: &str) {
        self.out.push_str(markup);
    }

    /// A figure, with its place in the JSON of a command.
    pub fn figure(&mut self, document: Document, pointer: &str, figure: Figure) {
        let class = if matches!(figure, Figure::Interval(_) | Figure::TimesInterval(_)) { "ci" } else { "f" };
        let attributes = [("class", class), (document.attribute(), pointer), ("data-as", figure.format())];
        self.element("span", &attributes, &figure.text());
    }

    /// A figure of the report, with its interval if it has one.
    pub fn with_interval(&mut self, (pointer, value): (&str, f64), (of_interval, range): (&str, Option<Interval>)) {
        self.figure(Document::Report, pointer, Figure::Percent(value));
        if let Some(range) = range {
            self.text(" ");
            self.figure(Document::Report, of_interval, Figure::Interval(range));
        }
    }

    /// A table's cell with a figure, and the number that the page sorts by.
    pub fn figure_cell(&mut self, pointer: &str, figure: Option<Figure>, sorted_by: f64) {
        let number = format!("{sorted_by:.6}");
        self.within("td", &[("class", "n"), ("data-v", &number)], |html| match figure {
            Some(figure) => html.figure(Document::Report, pointer, figure),
            None => html.text("\u{2013}"),
        });
    }
}

/// A percentage of the width of a drawing: `12.5%`.
#[must_use]
pub fn across(part: f64) -> String {
    let text = format!("{:.3}", 100.0 * part);
    format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
}

/// A number with six digits, which are enough for the script.
#[must_use]
pub fn rounded(value: f64) -> f64 {
    format!("{value:.5e}").parse().unwrap_or(value)
}

/// The class with the pattern of a node.
#[must_use]
pub fn node_class(node: usize) -> String {
    format!("n{}", node % NODE_PATTERNS)
}

/// Patterns of nodes; more nodes share them, and are distinguished by their numbers.
pub const NODE_PATTERNS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that names are text wherever they stand.
    #[test]
    fn names_are_text() {
        let mut html = Markup::default();
        html.within("p", &[("title", "\"><script>")], |html| html.text("</p><script>alert(1)</script>\u{1b}[31m"));
        assert_eq!(
            html.finish(),
            "<p title=\"&quot;&gt;&lt;script&gt;\">&lt;/p&gt;&lt;script&gt;alert(1)&lt;/script&gt;\u{fffd}[31m</p>\n"
        );
    }

    /// Check the attributes and the text of figures.
    #[test]
    fn figures_name_their_place() {
        let mut html = Markup::default();
        html.with_interval(("/remote_fraction", 0.49), ("/remote_interval", Some([0.47, 0.52])));
        assert_eq!(
            html.finish(),
            "<span class=\"f\" data-report=\"/remote_fraction\" data-as=\"percent\">49\u{a0}%</span> \
             <span class=\"ci\" data-report=\"/remote_interval\" data-as=\"interval\">[47,\u{a0}52]</span>"
        );
        assert_eq!([across(0.125), across(1.0), across(0.0)], ["12.5%", "100%", "0%"]);
    }
}
