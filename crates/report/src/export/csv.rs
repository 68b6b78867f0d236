//! A row for each sample (RFC 4180, with the line ends of this system).

use super::limits::{Bounded, MOST_BYTES, name};
use super::{Export, WORD, function};
use firsttouch_model::error::Result;

/// The names of the columns.
const COLUMNS: &str =
    "time_s,thread,thread_node,object_id,object,position_bytes,home_node,remote,in_report,accesses,bytes,function,file,line";

/// The table.
///
/// # Errors
/// When it is too large.
pub fn csv(export: &Export<'_>) -> Result<String> {
    let objects = export.objects();
    let mut out = Bounded::new(MOST_BYTES);
    out.line(format_args!("{COLUMNS}"))?;
    for whole in export.whole() {
        let sample = whole.sample;
        let stack = export.stack(sample);
        let leaf = stack.iter().find(|frame| frame.file.is_some()).or_else(|| stack.first()).copied();
        let object = Export::object_name(&objects, sample.object);
        out.line(format_args!(
            "{:.6},{},{},{},{},{},{},{},{},{},{},{},{},{}",
            sample.time_ns as f64 / 1e9,
            sample.thread,
            sample.thread_node,
            sample.object,
            quoted(&object),
            sample.position,
            sample.home.map_or_else(String::new, |home| home.to_string()),
            sample.is_remote().map_or("", |remote| if remote { "1" } else { "0" }),
            u8::from(sample.counts),
            whole.accesses,
            whole.accesses.saturating_mul(WORD),
            quoted(&leaf.map_or_else(String::new, function)),
            quoted(&leaf.and_then(|frame| frame.file.as_deref()).map_or_else(String::new, name)),
            leaf.and_then(|frame| frame.line).map_or_else(String::new, |line| line.to_string()),
        ))?;
    }
    Ok(out.finish())
}

/// A text as a field. Spreadsheets take a field that begins like a formula for one, so that it gets a quote before it.
fn quoted(text: &str) -> String {
    let text = if text.starts_with(['=', '+', '-', '@']) { format!("'{text}") } else { text.to_owned() };
    if text.contains([',', '"', '\r', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    /// Check fields with separators, quotes, line ends and formulas.
    #[test]
    fn fields_stay_fields() {
        assert_eq!(["a", "a,b", "a\"b", "=1+1"].map(quoted), ["a", "\"a,b\"", "\"a\"\"b\"", "'=1+1"]);
    }
}
