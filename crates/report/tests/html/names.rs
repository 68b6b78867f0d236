//! Names from a profile are text on a page, wherever they stand.

use super::{check_form, elements, page_of, parsed};
use crate::text::serial;
use firsttouch_analysis::Analysis;

/// Names that would do something in HTML, XML, JSON, JavaScript or a style if they were not text.
const HOSTILE: &[&str] = &[
    "</script><script>alert(1)</script>",
    "</style><img src=x onerror=alert(1)>",
    "\"><svg onload=alert(1)>",
    "' onmouseover='alert(1)",
    "]]><b>&amp;&lt;&#60;",
    "<!--",
    "-->",
    "${alert(1)}`",
    "\u{2028}\u{2029}\u{202e}\u{0}\u{1b}[31m\u{7f}\u{fffe}",
    "__proto__",
    "javascript:alert(1)",
    "a\nb\tc\r\nd",
    "&",
    "\\u003cscript\\u003e",
];

fn named(name: &str) -> Analysis {
    let mut analysis = serial();
    analysis.command = vec![name.into()];
    analysis.machine.name = name.into();
    analysis.threads[0].name = Some(name.into());
    analysis.evidence[0].detail = name.into();
    analysis.notes.push(name.to_owned().into());
    let object = &mut analysis.objects[0];
    object.name = name.into();
    for at in object.allocated_at.iter_mut().chain(&mut object.first_touch.at).chain(&mut object.used_at) {
        (at.file, at.function, at.text) = (Some(format!("/src/{name}.c")), Some(name.into()), Some(name.into()));
        at.module = Some(name.into());
    }
    let finding = &mut analysis.findings[0];
    // A fix has several lines; names are on one.
    (finding.object_name, finding.message, finding.fix) = (name.into(), name.into(), format!("do:\n  {}", name.replace(['\n', '\r'], " ")));
    analysis.not_judged[0].name = name.into();
    analysis
}

/// Check that a page with such names has the same elements and attributes as one with plain names, and the same scripts.
#[test]
fn hostile_names_are_text() {
    let shape = |page: &str| -> Vec<String> {
        let document = parsed(page);
        let one = |node: roxmltree::Node<'_, '_>| {
            let names: Vec<&str> = node.attributes().map(|attribute| attribute.name()).collect();
            let script = if node.tag_name().name() == "script" && node.attribute("type").is_none() { node.text() } else { None };
            format!("{} {} {}", node.tag_name().name(), names.join(","), script.unwrap_or_default())
        };
        elements(&document).map(one).collect()
    };
    let plain = shape(&page_of(&named("plain")));
    for name in HOSTILE {
        let page = page_of(&named(name));
        check_form(&page.replace("javascript:", ""));
        assert_eq!(shape(&page), plain, "{name}");
        assert!(!page.chars().any(|c| c.is_control() && c != '\n' && c != '\t'), "{name:?}");
    }
}

/// Check that the data for the script are the JSON of the names, and cannot end their element.
#[test]
fn data_hold_hostile_names() {
    for name in HOSTILE {
        let page = page_of(&named(name));
        let document = parsed(&page);
        let data = elements(&document).find(|node| node.attribute("id") == Some("data")).unwrap().text().unwrap();
        assert!(!data.contains('<'), "{name}");
        let data: serde_json::Value = serde_json::from_str(data).unwrap();
        let shown = data["maps"]["7"]["name"].as_str().unwrap();
        // Characters that no XML may hold are replaced before.
        let is_kept = !name.chars().any(char::is_control) && !name.contains('\u{202e}');
        assert!(!is_kept || shown == *name, "{name:?} {shown:?}");
    }
}
