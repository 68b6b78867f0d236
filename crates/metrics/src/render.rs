//! The two text formats: OpenMetrics 1.0, and that of Prometheus, version 0.0.4.

use crate::catalogue::Kind;
use crate::exposition::{Exposition, Family, Value};
use firsttouch_model::shown::is_control;
use std::fmt::Write;

/// A text format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    OpenMetrics,
    /// Version 0.0.4, which every tool reads.
    Text,
}

impl Format {
    #[must_use]
    pub fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// The samples as text.
#[must_use]
pub fn render(exposition: &Exposition, format: Format) -> String {
    let mut text = String::new();
    for family in exposition.families() {
        render_family(&mut text, family, format);
    }
    if format == Format::OpenMetrics {
        text.push_str("# EOF\n");
    }
    text
}

fn render_family(text: &mut String, family: &Family, format: Format) {
    let metric = family.metric;
    let sample_name = metric.sample_name();
    // In OpenMetrics the ending belongs to the sample, in the older format to the name of the metric.
    let (name, kind) = match (format, metric.kind) {
        (Format::OpenMetrics, Kind::Info) => (metric.name, "info"),
        (Format::OpenMetrics, Kind::Counter) => (metric.name, "counter"),
        (Format::Text, Kind::Counter) => (sample_name.as_str(), "counter"),
        (Format::Text, Kind::Info) => (sample_name.as_str(), "gauge"),
        (_, Kind::Gauge) => (metric.name, "gauge"),
    };
    // Writing to a string does not fail.
    let _ = writeln!(text, "# HELP {name} {}", metric.help);
    let _ = writeln!(text, "# TYPE {name} {kind}");
    if format == Format::OpenMetrics && !metric.unit.is_empty() {
        let _ = writeln!(text, "# UNIT {name} {}", metric.unit);
    }
    for sample in &family.samples {
        text.push_str(&sample_name);
        for (index, (label, value)) in metric.labels.iter().zip(&sample.labels).enumerate() {
            text.push(if index == 0 { '{' } else { ',' });
            text.push_str(label);
            text.push_str("=\"");
            push_escaped(text, value);
            text.push('"');
        }
        if !sample.labels.is_empty() {
            text.push('}');
        }
        let _ = match sample.value {
            Value::Whole(value) => writeln!(text, " {value}"),
            Value::Real(value) => writeln!(text, " {value}"),
        };
    }
}

/// The value of a label: backslash, quote and new line are escaped. Other characters that control lines, terminals or directions are replaced: some readers
/// take them for the end of a line.
fn push_escaped(text: &mut String, value: &str) {
    for c in value.chars() {
        match c {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            c if is_control(c) => text.push(char::REPLACEMENT_CHARACTER),
            c => text.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::{BUILD, CGROUP_OUTSIDE, NUMA_HIT, PRESSURE_WAITING, SCRAPE_DURATION};
    use crate::exposition::Batch;

    fn exposition() -> Exposition {
        let mut batch = Batch::default();
        batch.add(&BUILD, &["0.1.0"], 1_u64);
        batch.add(&NUMA_HIT, &["0"], u64::MAX);
        batch.add(&NUMA_HIT, &["1"], 0_u64);
        batch.add(&PRESSURE_WAITING, &["cpu"], 1.5);
        batch.add(&SCRAPE_DURATION, &[], 0.000_012);
        let mut exposition = Exposition::new(10);
        exposition.take_always(batch);
        exposition
    }

    /// Check the whole of both formats: names, types, units, the end.
    #[test]
    fn formats_differ_in_names_and_ends() {
        let expected = "# HELP firsttouch_node_numa_hit Pages allocated on this node as wanted (numastat).\n\
            # TYPE firsttouch_node_numa_hit counter\n\
            firsttouch_node_numa_hit_total{node=\"0\"} 18446744073709551615\n\
            firsttouch_node_numa_hit_total{node=\"1\"} 0\n\
            # HELP firsttouch_pressure_waiting_seconds Time in which some task waited for the resource (PSI, some).\n\
            # TYPE firsttouch_pressure_waiting_seconds counter\n\
            # UNIT firsttouch_pressure_waiting_seconds seconds\n\
            firsttouch_pressure_waiting_seconds_total{resource=\"cpu\"} 1.5\n\
            # HELP firsttouch_build The version of firsttouch.\n\
            # TYPE firsttouch_build info\n\
            firsttouch_build_info{version=\"0.1.0\"} 1\n\
            # HELP firsttouch_scrape_duration_seconds Time to read the figures of this scrape.\n\
            # TYPE firsttouch_scrape_duration_seconds gauge\n\
            # UNIT firsttouch_scrape_duration_seconds seconds\n\
            firsttouch_scrape_duration_seconds 0.000012\n\
            # EOF\n";
        assert_eq!(render(&exposition(), Format::OpenMetrics), expected);
        let text = render(&exposition(), Format::Text);
        assert!(!text.contains("# UNIT") && !text.contains("# EOF"), "{text}");
        assert!(text.contains("# TYPE firsttouch_node_numa_hit_total counter\nfirsttouch_node_numa_hit_total{node=\"0\"} "), "{text}");
        assert!(text.contains("# TYPE firsttouch_build_info gauge\nfirsttouch_build_info{version=\"0.1.0\"} 1\n"), "{text}");
    }

    /// Check names that would end a label, a line or a terminal's patience.
    #[test]
    fn labels_are_escaped() {
        let mut batch = Batch::default();
        let name = "/a\"} 1\nfirsttouch_up 1\n#\\x2d\r\u{1b}[2J\u{85}é";
        batch.add(&CGROUP_OUTSIDE, &[name], 7_u64);
        let mut exposition = Exposition::new(1);
        exposition.take("cgroups", batch);
        let text = render(&exposition, Format::Text);
        let sample = "firsttouch_cgroup_memory_outside_cpuset_bytes{cgroup=\"/a\\\"} 1\\nfirsttouch_up 1\\n#\\\\x2d\u{fffd}\u{fffd}[2J\u{fffd}é\"} 7";
        assert_eq!(text.lines().nth(2), Some(sample));
        assert_eq!(text.lines().count(), 3);
    }
}
