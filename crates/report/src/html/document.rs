//! The frame of a page: head, content security policy, navigation, style and script.

use super::markup::Markup;
use firsttouch_model::shown::json;
use sha2::{Digest, Sha256};

pub const STYLE: &str = include_str!("assets/page.css");
const SCRIPT: &str = include_str!("assets/page.js");

/// A section of a page.
pub struct Section {
    /// Its anchor.
    pub id: &'static str,
    pub title: &'static str,
    /// What the view shows, in a sentence.
    pub about: &'static str,
    pub contents: Markup,
}

/// A whole page. `data`: JSON for the script, already safe within a script element.
#[must_use]
pub fn document(title: &str, head: Markup, sections: Vec<Section>, data: &str) -> String {
    // XML readers need the marks to leave the script as it is; they are part of what the hash covers.
    let script = format!("//<![CDATA[\n{SCRIPT}\n//]]>");
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
        base64_of_sha256(STYLE),
        base64_of_sha256(&script)
    );
    let mut html = Markup::default();
    html.raw("<!DOCTYPE html>\n");
    html.within("html", &[("lang", "en"), ("xmlns", "http://www.w3.org/1999/xhtml")], |html| {
        html.within("head", &[], |html| {
            html.empty("meta", &[("charset", "utf-8")]);
            html.empty("meta", &[("http-equiv", "Content-Security-Policy"), ("content", &policy)]);
            html.empty("meta", &[("name", "viewport"), ("content", "width=device-width, initial-scale=1")]);
            html.empty("meta", &[("name", "generator"), ("content", concat!("firsttouch ", env!("CARGO_PKG_VERSION")))]);
            html.empty("meta", &[("name", "color-scheme"), ("content", "light dark")]);
            html.element("title", &[], title);
            html.within("style", &[], |html| html.raw(STYLE));
        });
        html.within("body", &[], |html| {
            html.element("a", &[("class", "skip"), ("href", "#main")], "Skip to the report");
            html.within("header", &[], |html| html.raw(&head.finish()));
            navigation(html, &sections);
            html.raw(&patterns());
            html.within("main", &[("id", "main")], |html| {
                for section in sections {
                    let heading = format!("{}-heading", section.id);
                    html.within("section", &[("id", section.id), ("aria-labelledby", &heading)], |html| {
                        html.element("h2", &[("id", &heading)], section.title);
                        if !section.about.is_empty() {
                            html.element("p", &[("class", "about")], section.about);
                        }
                        html.raw(&section.contents.finish());
                    });
                }
            });
            html.within("footer", &[], |html| {
                html.text(concat!(
                    "Made by firsttouch ",
                    env!("CARGO_PKG_VERSION"),
                    ". This file loads nothing and sends nothing. Numbers in brackets are 95\u{a0}% intervals; those beside a percentage are percentages."
                ));
            });
            html.within("script", &[("type", "application/json"), ("id", "data")], |html| html.raw(data));
            html.within("script", &[], |html| html.raw(&script));
        });
    });
    html.finish()
}

fn navigation(html: &mut Markup, sections: &[Section]) {
    html.within("nav", &[("aria-label", "Views")], |html| {
        html.within("ul", &[], |html| {
            for section in sections {
                html.within("li", &[], |html| html.element("a", &[("href", &format!("#{}", section.id))], section.title));
            }
        });
    });
}

/// The patterns of nodes, which drawings refer to. Colours come from the style, so that they follow light, dark and print.
pub fn patterns() -> String {
    let shapes = [
        "",
        r#"<path d="M-1 1l2-2M0 6l6-6M5 7l2-2"/>"#,
        r#"<circle cx="2" cy="2" r="1"/><circle cx="5" cy="5" r="1"/>"#,
        r#"<path d="M0 1.5h6M0 4.5h6"/>"#,
        r#"<path d="M1.5 0v6M4.5 0v6"/>"#,
        r#"<path d="M-1 5l2 2M0 0l6 6M5-1l2 2"/>"#,
        r#"<path d="M0 3h6M3 0v6"/>"#,
        r#"<path d="M0 0l6 6M6 0l-6 6"/>"#,
    ];
    let one = |(index, shape): (usize, &&str)| {
        format!(
            r#"<pattern id="p{index}" class="p{index}" width="6" height="6" patternUnits="userSpaceOnUse"><rect width="6" height="6"/>{shape}</pattern>"#
        )
    };
    let all: String = shapes.iter().enumerate().map(one).collect();
    let several = r#"<pattern id="ps" class="ps" width="8" height="8" patternUnits="userSpaceOnUse"><rect width="8" height="8"/><path d="M0 0h4v4h-4zM4 4h4v4h-4z"/></pattern>"#;
    format!(r#"<svg class="defs" width="0" height="0" aria-hidden="true" focusable="false"><defs>{all}{several}</defs></svg>"#) + "\n"
}

/// JSON as the contents of a script element: nothing in it can end the element, in HTML and in XML.
#[must_use]
pub fn script_data(value: &serde_json::Value) -> String {
    let mut out = String::new();
    // A page on standard output may get into the log of a CI system.
    for c in json(&value.to_string()).chars() {
        // The last two are characters that XML does not allow.
        match c {
            '<' | '>' | '&' | '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{fffe}' | '\u{ffff}' => {
                out.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out
}

/// A hash as content security policies have it.
fn base64_of_sha256(text: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for part in Sha256::digest(text.as_bytes()).chunks(3) {
        let bits = part.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - part.len()));
        for at in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * at) & 63) as usize];
            out.push(if at > part.len() { '=' } else { char::from(digit) });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check the hash of a known text (`printf abc | openssl sha256 -binary | base64`).
    #[test]
    fn hashes_are_those_of_policies() {
        assert_eq!(base64_of_sha256("abc"), "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
    }

    /// Check that data cannot end the script element, and stay the same JSON.
    #[test]
    fn data_stay_in_their_element() {
        let value = serde_json::json!({"</script><script>": "<!--&]]>##[error]"});
        let text = script_data(&value);
        assert!(!text.contains(['<', '>', '&']) && !text.contains("##["), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }

    /// Check that the assets leave their elements as they are in HTML and in XML.
    #[test]
    fn assets_are_contents_of_elements() {
        assert!(!STYLE.contains(['<', '&']));
        assert!(!SCRIPT.contains("</") && !SCRIPT.contains("]]>") && !SCRIPT.contains("<!--"));
    }
}
