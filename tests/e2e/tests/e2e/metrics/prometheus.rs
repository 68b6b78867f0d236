// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A real Prometheus scrapes this machine and a recorded one, with the alerts loaded, and answers each question of the dashboard.

use super::{Exporter, groups, prometheus_tool};
use firsttouch_e2e::paths::{target_dir, workspace_root};
use firsttouch_e2e::process::{Running, run};
use firsttouch_e2e::skip::skipped;
use firsttouch_e2e::tool::{Firsttouch, temporary_directory, text};
use serde_json::Value;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

const WAIT: Duration = Duration::from_secs(60);

/// Prometheus's API.
struct Api(SocketAddr);

impl Api {
    /// An answer of the API; `None` while it does not listen, or says no.
    fn get(&self, path: &str) -> Option<Value> {
        let mut stream = TcpStream::connect(self.0).ok()?;
        stream.write_all(format!("GET /api/v1/{path} HTTP/1.0\r\nHost: a\r\n\r\n").as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let value: Value = serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()?;
        (value["status"] == "success").then(|| value["data"].clone())
    }

    /// The samples that an expression gives now: their labels, and the value. `None` if it is no expression.
    fn query(&self, expression: &str) -> Option<Vec<(Value, f64)>> {
        let encoded: String = expression.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let found = self.get(&format!("query?query={encoded}"))?;
        let sample =
            |sample: &Value| (sample["metric"].clone(), sample["value"][1].as_str().and_then(|v| v.parse().ok()).expect("a number"));
        Some(found["result"].as_array()?.iter().map(sample).collect())
    }

    fn one(&self, expression: &str) -> f64 {
        let found = self.query(expression).unwrap_or_else(|| panic!("{expression} is not understood"));
        assert_eq!(found.len(), 1, "{expression}: {found:?}");
        found[0].1
    }
}

/// The expressions of the dashboard, with its variables filled in.
fn dashboard() -> Vec<String> {
    let text = fs::read_to_string(workspace_root().join("packaging/grafana/firsttouch.json")).expect("the dashboard");
    let dashboard: Value = serde_json::from_str(&text).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    let filled =
        |target: &Value| target["expr"].as_str().expect("an expression").replace("$instance", ".+").replace("$__rate_interval", "1m");
    targets.map(filled).collect()
}

/// The names of metrics in an expression.
fn names(expression: &str) -> Vec<&str> {
    expression.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| word.starts_with("firsttouch_")).collect()
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").port()
}

/// The sum of one counter over the nodes of this machine.
fn counted(name: &str) -> f64 {
    let nodes = fs::read_dir("/sys/devices/system/node").expect("nodes").flatten();
    let files = nodes.filter_map(|node| fs::read_to_string(node.path().join("numastat")).ok());
    files.filter_map(|text| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok())).sum()
}

/// Check that promtool accepts the rules, and that each alert is raised when it should be.
#[test]
fn rules_are_tested() {
    let Some(promtool) = prometheus_tool("metrics::rules_are_tested", "promtool") else { return };
    let folder = workspace_root().join("packaging/prometheus");
    for words in [&["check", "rules", "firsttouch.rules.yml"][..], &["test", "rules", "firsttouch.rules.test.yml"]] {
        let outcome = run(Command::new(&promtool).args(words).current_dir(&folder));
        assert!(outcome.status == 0 && outcome.stdout_text().contains("SUCCESS"), "{outcome:?}");
    }
    let [rules, tests] =
        ["firsttouch.rules.yml", "firsttouch.rules.test.yml"].map(|name| fs::read_to_string(folder.join(name)).expect("a file"));
    for alert in rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
        assert!(tests.contains(&format!("alertname: {alert}\n")), "{alert} has no test");
    }
}

/// Check that the dashboard is what Grafana's schema allows, and that the check finds an unknown field, a wrong type and a lost bracket.
#[test]
fn the_dashboard_matches_the_schema() {
    let schema = target_dir().join("grafana/schema");
    if !schema.is_file() {
        return skipped(
            "metrics::prometheus::the_dashboard_matches_the_schema",
            "target/grafana/schema is not built (scripts/grafana-schema, which needs Go)",
        );
    }
    let dashboard = workspace_root().join("packaging/grafana/firsttouch.json");
    let outcome = run(Command::new(&schema).arg(&dashboard));
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let (text_of, directory) = (fs::read_to_string(&dashboard).expect("the dashboard"), temporary_directory());
    for (from, to, said) in [
        ("\"graphTooltip\": 1", "\"graphTooltipp\": 1", "graphTooltipp"),
        ("\"graphTooltip\": 1", "\"graphTooltip\": \"one\"", "graphTooltip"),
        ("\"panels\": [", "\"panels\": ", "invalid character"),
    ] {
        let file = directory.path().join("changed.json");
        fs::write(&file, text_of.replacen(from, to, 1)).expect("a file");
        let outcome = run(Command::new(&schema).arg(&file));
        assert!(outcome.status == 1 && outcome.stderr_text().contains(said), "{from}: {outcome:?}");
    }
}

/// Check figures of this machine and of a recorded one through a real Prometheus, its view of the rules, and each expression of the dashboard.
#[test]
fn a_real_prometheus() {
    let name = "metrics::a_real_prometheus";
    let (Some(firsttouch), Some(program)) = (Firsttouch::find(name), prometheus_tool(name, "prometheus")) else { return };
    let here = Exporter::start(&firsttouch, &["--processes", "3"]);
    let recorded = Exporter::start(&firsttouch, &["--root", &groups()]);
    let directory = temporary_directory();
    let (port, config) = (free_port(), directory.path().join("prometheus.yml"));
    let yaml = format!(
        "global: {{scrape_interval: 200ms, scrape_timeout: 200ms, evaluation_interval: 200ms}}\nrule_files: ['{}']\nscrape_configs:\n  - job_name: firsttouch\n    \
         static_configs: [{{targets: ['{}', '{}']}}]\n",
        workspace_root().join("packaging/prometheus/firsttouch.rules.yml").display(),
        here.address,
        recorded.address
    );
    fs::write(&config, yaml).expect("its configuration");
    let before = counted("numa_hit");
    let mut command = Command::new(program);
    command.arg(format!("--config.file={}", text(&config))).arg(format!("--storage.tsdb.path={}", text(&directory.path().join("data"))));
    command.arg(format!("--web.listen-address=127.0.0.1:{port}")).args(["--log.level=warn", "--web.enable-lifecycle"]);
    let running = Running::start(&mut command, b"");
    let api = Api(SocketAddr::from(([127, 0, 0, 1], port)));
    let deadline = Instant::now() + WAIT;
    let enough = "count(count_over_time(firsttouch_build_info[1m]) >= 3)";
    while api.query(enough).is_none_or(|found| found.first().is_none_or(|(_, count)| *count < 2.0)) {
        assert!(Instant::now() < deadline, "{:?} {:?}", api.query("up"), api.get("targets"));
        std::thread::sleep(Duration::from_millis(50));
    }

    let here_only = format!("instance=\"{}\"", here.address);
    let hits = api.one(&format!("sum(firsttouch_node_numa_hit_total{{{here_only}}})"));
    let after = counted("numa_hit");
    assert!(before <= hits && hits <= after, "{before} <= {hits} <= {after}");
    let group = "cgroup=\"/kubepods.slice/kubepods-pod1.slice/cri-containerd-a.scope\"";
    assert_eq!(api.one(&format!("firsttouch_cgroup_memory_outside_cpuset_bytes{{{group}}}")), 25_240_704.0);
    assert_eq!(api.one("count(firsttouch_process_resident_memory_bytes)"), 3.0);
    // Only OpenMetrics has units.
    let metadata = api.get("metadata?metric=firsttouch_node_memory_size_bytes").expect("metadata");
    assert_eq!(metadata["firsttouch_node_memory_size_bytes"][0]["unit"], "bytes", "{metadata}");

    let rules = || {
        let found = api.get("rules").unwrap_or_default();
        let rules = found["groups"][0]["rules"].as_array().cloned().unwrap_or_default();
        rules.into_iter().map(|rule| (rule["health"].as_str().unwrap_or_default().to_owned(), rule)).collect::<Vec<_>>()
    };
    while rules().len() < 8 || rules().iter().any(|(health, _)| health == "unknown") {
        assert!(Instant::now() < deadline, "{:?}", rules());
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(rules().iter().all(|(health, _)| health == "ok"), "{:?}", rules());

    let known = api.get("label/__name__/values").expect("names");
    let known: Vec<&str> = known.as_array().expect("names").iter().filter_map(Value::as_str).collect();
    let documented = fs::read_to_string(workspace_root().join("docs/metrics.md")).expect("docs/metrics.md");
    let expressions = dashboard();
    assert!(expressions.len() >= 15, "{expressions:?}");
    for expression in &expressions {
        let found = api.query(expression).unwrap_or_else(|| panic!("{expression} is not understood"));
        // It takes ten seconds of samples until a remote share is known.
        let needs_samples = expression.contains("_remote_access_");
        assert!(needs_samples || !found.is_empty(), "{expression} finds nothing");
        for name in names(expression) {
            assert!(needs_samples || known.contains(&name), "{expression}: nothing has the name {name}");
            assert!(documented.contains(&format!("| `{name}` |")), "{expression}: {name} is not documented");
        }
    }
    running.signal(libc::SIGTERM);
    assert_eq!(running.wait().status, 0);
    here.stop();
    recorded.stop();
}
