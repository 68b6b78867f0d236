//! The header Accept: RFC 9110, 12.5.1.

use crate::render::Format;

/// The format that a client prefers. Who does not ask for OpenMetrics gets the older format, whatever else the header says: every reader of metrics reads it.
#[must_use]
pub fn format(accept: &str) -> Format {
    let mut quality_of = [None, None];
    for range in accept.split(',') {
        let mut parts = range.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
        let (mut quality, mut is_known) = (1.0, true);
        for parameter in parts {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            match name.trim().to_ascii_lowercase().as_str() {
                "q" => quality = value.trim().parse().ok().filter(|q| (0.0..=1.0).contains(q)).unwrap_or(0.0),
                // 0.0.1 is what clients called it before it was a standard; the text is the same.
                "version" => is_known = ["0.0.1", "0.0.4", "1.0.0"].contains(&value.trim().trim_matches('"')),
                _ => {}
            }
        }
        let index = match kind.as_str() {
            "application/openmetrics-text" => 0,
            "text/plain" | "text/*" | "*/*" => 1,
            _ => continue,
        };
        if is_known && quality_of.get(index).is_some_and(|known: &Option<f64>| known.is_none_or(|known| known < quality)) {
            quality_of[index] = Some(quality);
        }
    }
    match quality_of {
        [Some(open), text] if open > 0.0 && open >= text.unwrap_or(0.0) => Format::OpenMetrics,
        _ => Format::Text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check what Prometheus, browsers and curl send, preferences, and damaged headers.
    #[test]
    fn formats_are_negotiated() {
        let prometheus = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        for (accept, expected) in [
            (prometheus, Format::OpenMetrics),
            ("application/openmetrics-text", Format::OpenMetrics),
            ("Application/OpenMetrics-Text; Version=\"1.0.0\"; escaping=underscores", Format::OpenMetrics),
            ("text/plain, application/openmetrics-text", Format::OpenMetrics),
            ("text/plain;version=0.0.4;q=0.9,application/openmetrics-text;q=0.3", Format::Text),
            ("application/openmetrics-text;q=0, */*", Format::Text),
            ("application/openmetrics-text;version=2.0.0,text/plain;version=0.0.4;q=0.1", Format::Text),
            ("text/html,application/xhtml+xml,*/*;q=0.8", Format::Text),
            ("*/*", Format::Text),
            ("", Format::Text),
            (",;,;;q=,=;", Format::Text),
            ("application/openmetrics-text;q=nan", Format::Text),
            ("application/openmetrics-text;q=1e999", Format::Text),
            ("application/openmetrics-text;q=-1", Format::Text),
        ] {
            assert_eq!(format(accept), expected, "{accept}");
        }
    }
}
