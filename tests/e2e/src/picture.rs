//! Checks an SVG picture as a reader sees it: no text leaves the picture, and no two texts overlap.
//!
//! The widths of texts are those of DejaVu Sans, the first font that the pictures ask for and the widest of those they name.

use std::ops::RangeInclusive;

/// The advance widths of the characters from space to `~`, as hundredths of the font size.
const REGULAR: [u8; 95] = [
    32, 40, 46, 84, 64, 95, 78, 27, 39, 39, 50, 84, 32, 36, 32, 34, 64, 64, 64, 64, 64, 64, 64, 64, 64, 64, 34, 34, 84, 84, 84, 53, 100,
    68, 69, 70, 77, 63, 58, 77, 75, 29, 29, 66, 56, 86, 75, 79, 60, 79, 69, 63, 61, 73, 68, 99, 69, 61, 69, 39, 34, 39, 84, 50, 50, 61, 63,
    55, 63, 62, 35, 63, 63, 28, 28, 58, 28, 97, 63, 61, 63, 63, 41, 52, 39, 63, 59, 82, 59, 59, 52, 64, 34, 64, 84,
];
const BOLD: [u8; 95] = [
    35, 46, 52, 84, 70, 100, 87, 31, 46, 46, 52, 84, 38, 42, 38, 37, 70, 70, 70, 70, 70, 70, 70, 70, 70, 70, 40, 40, 84, 84, 84, 58, 100,
    77, 76, 73, 83, 68, 68, 82, 84, 37, 37, 77, 64, 100, 84, 85, 73, 85, 77, 72, 68, 81, 77, 110, 77, 72, 73, 46, 37, 46, 84, 50, 50, 67,
    72, 59, 72, 68, 44, 72, 71, 34, 34, 67, 34, 104, 71, 69, 72, 72, 49, 60, 48, 71, 65, 92, 65, 65, 58, 71, 37, 71, 84,
];
const OTHER: u8 = 85;

/// A text of a picture, px.
#[derive(Clone, Debug)]
pub struct Text {
    pub words: String,
    pub class: String,
    pub x: RangeInclusive<f64>,
    pub y: RangeInclusive<f64>,
}

/// A picture that firsttouch drew.
#[derive(Debug)]
pub struct Picture {
    pub texts: Vec<Text>,
    /// The `viewBox`: left, top, width, height.
    view: [f64; 4],
    svg: String,
}

impl Picture {
    /// # Panics
    /// If the text is no SVG picture of firsttouch's.
    #[must_use]
    pub fn read(svg: &str) -> Self {
        let numbers: Vec<f64> = attribute(svg, "viewBox").split(' ').filter_map(|word| word.parse().ok()).collect();
        let view = numbers.try_into().unwrap_or_else(|all| panic!("viewBox {all:?}"));
        Self { texts: svg.lines().filter(|line| line.starts_with("<text ")).map(text).collect(), view, svg: svg.to_owned() }
    }

    /// The number of elements of a kind that have all of the words.
    #[must_use]
    pub fn count(&self, element: &str, words: &[&str]) -> usize {
        let start = format!("<{element} ");
        self.svg.lines().filter(|line| line.starts_with(&start) && words.iter().all(|word| line.contains(word))).count()
    }

    #[must_use]
    pub fn says(&self, words: &str) -> bool {
        self.texts.iter().any(|text| text.words.contains(words))
    }

    /// What a reader cannot read: texts that leave the picture, and pairs that overlap.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        let [left, top, width, height] = self.view;
        let leaves =
            |text: &&Text| *text.x.start() < left || *text.x.end() > left + width || *text.y.start() < top || *text.y.end() > top + height;
        let mut faults: Vec<String> = self.texts.iter().filter(leaves).map(|text| format!("cut in {:?}: {text:?}", self.view)).collect();
        for (index, one) in self.texts.iter().enumerate() {
            let overlaps = |other: &&Text| meet(&one.x, &other.x) && meet(&one.y, &other.y);
            faults.extend(self.texts[index + 1..].iter().filter(overlaps).map(|other| format!("{one:?} over {other:?}")));
        }
        faults
    }
}

fn meet(one: &RangeInclusive<f64>, other: &RangeInclusive<f64>) -> bool {
    one.start() < other.end() && other.start() < one.end()
}

fn attribute<'a>(element: &'a str, name: &str) -> &'a str {
    let start = format!(" {name}=\"");
    let rest = element.split_once(&start).unwrap_or_else(|| panic!("no {name} in {element}")).1;
    rest.split('"').next().unwrap_or_default()
}

fn text(line: &str) -> Text {
    let number = |name: &str| attribute(line, name).parse::<f64>().unwrap_or_else(|error| panic!("{name} in {line}: {error}"));
    let words = line.split_once('>').and_then(|(_, rest)| rest.strip_suffix("</text>")).unwrap_or_else(|| panic!("no text: {line}"));
    let words = words.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&apos;", "'").replace("&amp;", "&");
    let class = attribute(line, "class").to_owned();
    let (size, widths) = match class.split(' ').next() {
        Some("big") => (16.0, &BOLD),
        Some("head") => (13.0, &BOLD),
        Some("small") => (10.0, &REGULAR),
        _ => (11.0, &REGULAR),
    };
    let advance = |c: char| (c as usize).checked_sub(32).and_then(|index| widths.get(index)).copied().unwrap_or(OTHER);
    let width = words.chars().map(|c| f64::from(advance(c))).sum::<f64>() / 100.0 * size;
    let start = number("x")
        - match attribute(line, "text-anchor") {
            "middle" => width / 2.0,
            "end" => width,
            _ => 0.0,
        };
    // Letters reach 0.73 of the size above the baseline and 0.2 below it.
    let y = number("y");
    Text { words, class, x: start..=start + width, y: y - 0.73 * size..=y + 0.2 * size }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that cut and overlapping texts are found, and others are not.
    #[test]
    fn faults_are_found() {
        let picture = |texts: &str| Picture::read(&format!("<svg viewBox=\"0 0 100 50\">\n{texts}\n</svg>"));
        let text = |x: u32, y: u32, anchor: &str, class: &str, words: &str| {
            format!("<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\" class=\"{class}\">{words}</text>")
        };
        for (texts, count) in [
            (text(10, 20, "start", "", "12345678901"), 0),
            (text(10, 20, "start", "big", "12345678901"), 1),
            (text(10, 20, "end", "", "a &lt; b"), 1),
            (text(10, 5, "start", "", "high"), 1),
            (text(10, 20, "start", "", "one") + "\n" + &text(20, 22, "start", "", "two"), 1),
            (text(10, 20, "start", "", "one") + "\n" + &text(10, 32, "start", "", "two"), 0),
        ] {
            let faults = picture(&texts).faults();
            assert_eq!(faults.len(), count, "{texts}: {faults:?}");
        }
    }
}
