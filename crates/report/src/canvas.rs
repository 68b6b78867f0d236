//! Builds an SVG document.

use crate::xml::escape;
use std::fmt::Write;

/// The size of text without a class, px.
const SIZE: f64 = 11.0;
/// A font is at most so much wider than the approximation by [`text_width`].
const WIDER: f64 = 1.1;

/// The position and size of a box, px.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Area {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
}

#[derive(Default)]
pub struct Canvas {
    body: String,
    /// The leftmost point, at most 0.
    left: f64,
    width: f64,
    height: f64,
}

/// The point of a text that is placed at its position.
#[derive(Clone, Copy)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

impl Canvas {
    pub fn rectangle(&mut self, area: Area, fill: &str, stroke: &str) {
        self.reach(area.x + area.width, area.y + area.height);
        let Area { x, y, width, height } = area;
        let _ = writeln!(
            self.body,
            r#"<rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" rx="2" fill="{fill}" stroke="{stroke}"/>"#
        );
    }

    pub fn text(&mut self, (x, y): (f64, f64), anchor: Anchor, class: &str, text: &str) {
        let width = width_of(class, text) * WIDER;
        let (anchor, start) = match anchor {
            Anchor::Start => ("start", x),
            Anchor::Middle => ("middle", x - width / 2.0),
            Anchor::End => ("end", x - width),
        };
        self.left = self.left.min(start);
        self.reach(start + width, y);
        let _ = writeln!(self.body, r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}" class="{class}">{}</text>"#, escape(text));
    }

    pub fn line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), stroke: &str, width: f64) {
        let _ = writeln!(
            self.body,
            r#"<line x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}" stroke="{stroke}" stroke-width="{width:.1}"/>"#
        );
    }

    pub fn circle(&mut self, (x, y): (f64, f64), radius: f64, fill: &str, stroke: &str) {
        self.reach(x + radius, y + radius);
        let _ = writeln!(self.body, r#"<circle cx="{x:.1}" cy="{y:.1}" r="{radius:.1}" fill="{fill}" stroke="{stroke}"/>"#);
    }

    /// The y coordinate of the lowest edge of the drawing, px.
    pub fn bottom(&self) -> f64 {
        self.height
    }

    fn reach(&mut self, x: f64, y: f64) {
        self.width = self.width.max(x);
        self.height = self.height.max(y);
    }

    /// The document, with a margin on the right and below.
    pub fn finish(self, title: &str, margin: f64) -> String {
        let left = if self.left < 0.0 { self.left - margin } else { 0.0 };
        let (width, height) = (self.width + margin - left, self.height + margin);
        format!(
            concat!(
                r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0}" height="{height:.0}" viewBox="{left:.0} 0 {width:.0} {height:.0}" "#,
                r#"font-family="DejaVu Sans, Helvetica, Arial, sans-serif" font-size="11">"#,
                "\n<title>{title}</title>\n",
                "<style>text{{fill:#222}}.big{{font-size:16px;font-weight:bold}}.head{{font-size:13px;font-weight:bold}}",
                ".small{{font-size:10px}}.faint{{fill:#777}}</style>\n",
                r#"<rect x="{left:.0}" y="0" width="{width:.0}" height="{height:.0}" fill="white"/>"#,
                "\n{body}</svg>\n"
            ),
            left = left,
            width = width,
            height = height,
            title = escape(title),
            body = self.body
        )
    }
}

/// The approximate width of a text without a class, px.
pub fn text_width(text: &str) -> f64 {
    text.chars().map(advance).sum::<f64>() * SIZE
}

/// The approximate width of a text of a class, px: the fonts need not be installed.
pub fn width_of(class: &str, text: &str) -> f64 {
    let factor = match class.split(' ').next() {
        Some("big") => 16.0 / SIZE * BOLD,
        Some("head") => 13.0 / SIZE * BOLD,
        Some("small") => 10.0 / SIZE,
        _ => 1.0,
    };
    text_width(text) * factor
}

/// Bold letters are so much wider.
const BOLD: f64 = 1.12;

/// The approximate width of a character, as a part of the font's size.
fn advance(character: char) -> f64 {
    match character {
        'i' | 'j' | 'l' | 'I' | 'J' | '\'' | ' ' | '.' | ',' | ':' | ';' | '|' | '/' => 0.33,
        'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '-' | '!' => 0.4,
        'm' | 'w' | 'M' | 'W' | '%' | '@' | '+' | '=' | '<' | '>' => 0.95,
        'a'..='z' | '0'..='9' => 0.63,
        'A'..='Z' => 0.75,
        _ => 0.85,
    }
}
