//! The arguments of `firsttouch serve-metrics`.

use super::{Judge, WindowArgument};
use clap::Args;
use firsttouch_model::quantity::parse_duration;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

/// Serve metrics of nodes, control groups and processes to Prometheus
#[derive(Clone, Debug, Args)]
#[command(
    long_about = "Serves metrics about the placement of memory to Prometheus and to what reads its formats: the memory of each node by what it is used for, \
        numastat and the counters of NUMA balancing, pressure, and for each control group (version 2: containers, pods, services) its memory by node and what \
        of it is outside its cpuset. With --processes, also the processes with most memory: their memory by node, pages moved, and the share of remote \
        accesses with its 95 % interval (on a machine with one node, only of memory that is touched while the exporter looks).\n\n\
        It listens on the loopback address unless another one is named, answers GET and HEAD of /metrics, /healthz and /, and needs no root. Clients that \
        ask for OpenMetrics 1.0 get it; others get the text format 0.0.4. With --textfile, it writes a file for node_exporter's textfile collector \
        instead.",
    after_help = "Examples:\n  \
        firsttouch serve-metrics\n  \
        firsttouch serve-metrics --processes 10\n  \
        firsttouch serve-metrics --listen 10.0.0.5:9843 --listen '[::1]:9843'\n  \
        firsttouch serve-metrics --textfile /var/lib/prometheus/node-exporter/firsttouch.prom --interval 15s\n  \
        firsttouch serve-metrics --textfile - | promtool check metrics\n  \
        firsttouch serve-metrics --root /host --cgroup /kubepods.slice\n\n\
        Exit status: 0 after SIGTERM, SIGINT or SIGHUP, and when the file is written; 1 if it cannot listen or write."
)]
pub struct ServeMetrics {
    /// Listen on this address and port; may be repeated. Anybody who can reach it can read the metrics [default: 127.0.0.1:9843]
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = parse_addresses, conflicts_with = "textfile")]
    pub listen: Vec<Addresses>,
    /// Write the metrics to FILE once (- for stdout), and listen nowhere. The file is replaced in one step
    #[arg(long, value_name = "FILE")]
    pub textfile: Option<PathBuf>,
    /// With --textfile, write it again and again (seconds, or with a unit: 15s, 1m), at least each second
    #[arg(long, value_name = "TIME", value_parser = parse_interval, requires = "textfile")]
    pub interval: Option<Duration>,
    /// Also show the N processes with most memory; the busiest of all processes are sampled in turn, as by 'firsttouch top'
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pub processes: Option<u16>,
    /// Take remote shares over the last 1, 10 or 60 seconds [default: 60]
    #[arg(long, value_name = "SECONDS", value_enum, requires = "processes")]
    pub window: Option<WindowArgument>,
    /// Judge remote shares on this machine, as 'firsttouch report' does [default: this machine, or virtual:2 if it has one node]
    #[arg(long, value_name = "NAME|virtual:N|FILE", requires = "processes")]
    pub machine: Option<String>,
    /// Where threads run on a virtual machine, as in 'firsttouch report' [default: spread]
    #[arg(long, value_name = "EXPR", requires = "processes")]
    pub pin: Option<String>,
    /// Show only this control group and those below it (/system.slice); may be repeated [default: all]
    #[arg(long, value_name = "PATH", value_parser = parse_group)]
    pub cgroup: Vec<String>,
    /// Show no control groups
    #[arg(long, conflicts_with = "cgroup")]
    pub no_cgroups: bool,
    /// Show at most N series; of more, control groups far from the root are left out first, and counted
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = parse_series)]
    pub max_series: usize,
    /// Read /proc and /sys below DIR: the host's root, as a container sees it, or a recorded machine
    #[arg(long, value_name = "DIR", default_value = "/", hide_default_value = true, conflicts_with = "processes")]
    pub root: PathBuf,
}

/// What a name and a port stand for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses(pub Vec<SocketAddr>);

impl ServeMetrics {
    /// The judge's options.
    pub fn judge(&self) -> Judge {
        Judge { machine: self.machine.clone(), pin: self.pin.clone(), ..Judge::default() }
    }
}

fn parse_addresses(text: &str) -> Result<Addresses, String> {
    let expected = || "expected an address and a port, such as 127.0.0.1:9843, [::1]:9843 or localhost:9843".to_owned();
    let (host, port) = text.rsplit_once(':').ok_or_else(expected)?;
    if host.is_empty() || !port.bytes().all(|byte| byte.is_ascii_digit()) || port.parse::<u16>().is_err() {
        return Err(format!("{}; for all addresses of this machine: 0.0.0.0:9843 or [::]:9843", expected()));
    }
    let found: Vec<SocketAddr> = text.to_socket_addrs().map_err(|error| format!("{error}; {}", expected()))?.collect();
    if found.is_empty() { Err(format!("no address is known for it; {}", expected())) } else { Ok(Addresses(found)) }
}

fn parse_interval(text: &str) -> Result<Duration, String> {
    let interval = parse_duration(text).map_err(|error| error.to_string())?;
    if interval < Duration::from_secs(1) { Err("expected at least 1s".to_owned()) } else { Ok(interval) }
}

fn parse_group(text: &str) -> Result<String, String> {
    if text.starts_with('/') {
        Ok(text.to_owned())
    } else {
        Err("expected a path such as /system.slice, as in /proc/PID/cgroup".to_owned())
    }
}

fn parse_series(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|number| (1..=10_000_000).contains(number)).ok_or_else(|| "expected a number from 1 to 10000000".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check addresses as users write them, and a table of malformed ones.
    #[test]
    fn addresses_are_read() {
        for (text, first) in [("127.0.0.1:9843", "127.0.0.1:9843"), ("[::1]:0", "[::1]:0"), ("0.0.0.0:65535", "0.0.0.0:65535")] {
            assert_eq!(parse_addresses(text).unwrap().0, [first.parse::<SocketAddr>().unwrap()]);
        }
        assert!(parse_addresses("localhost:1").unwrap().0.iter().all(|address| address.ip().is_loopback()));
        for text in
            ["", ":", ":9843", "9843", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:+1", "[::1:1", "a b:1"]
        {
            assert!(parse_addresses(text).unwrap_err().contains("127.0.0.1:9843"), "{text}");
        }
    }

    /// Check the other values.
    #[test]
    fn values_are_checked() {
        assert_eq!(parse_interval("15s"), Ok(Duration::from_secs(15)));
        assert!(parse_interval("0").is_err() && parse_interval("999ms").is_err() && parse_interval("x").is_err());
        assert!(parse_group("/a").is_ok() && parse_group("a").is_err());
        assert!(parse_series("1").is_ok() && parse_series("0").is_err() && parse_series("99999999").is_err());
    }
}
