//! `firsttouch serve-metrics`

use crate::arguments::{Addresses, ServeMetrics, WindowArgument};
use crate::exit;
use crate::output::{is_stdout, message, print_own};
use crate::request::analysis_request;
use anyhow::{Context, Result, anyhow};
use firsttouch_metrics::{Batch, Cgroups, Collector, Format, Limits, Options, ProcessOptions, Server, Watcher, render, write_textfile};
use firsttouch_monitor::{Focus, Monitor, RecorderCommand, Window};
use firsttouch_system::MachineInfo;
use firsttouch_system::launch::raise_file_limit;
use firsttouch_system::launch::signals::{Notice, Signals};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The port unless another one is named.
const PORT: u16 = 9_843;

pub fn run(arguments: &ServeMetrics) -> Result<u8> {
    // Before any thread begins, so that none of them is ended by a signal.
    let signals = Signals::catch()?;
    match &arguments.textfile {
        Some(file) => textfile(arguments, file, &signals),
        None => serve(arguments, &signals),
    }
}

fn serve(arguments: &ServeMetrics, signals: &Signals) -> Result<u8> {
    let mut addresses: Vec<SocketAddr> = arguments.listen.iter().flat_map(|Addresses(found)| found.iter().copied()).collect();
    if addresses.is_empty() {
        addresses.push((Ipv4Addr::LOCALHOST, PORT).into());
    }
    raise_file_limit();
    // Before the processes are looked at, which takes longer.
    let mut server = Server::bind(&addresses, Limits::default()).map_err(|(address, error)| cannot_listen(address, error))?;
    let collector = collector(arguments)?;
    collector.collect(Batch::default()).doubts.iter().for_each(|doubt| message(doubt));
    for address in server.addresses() {
        message(&format!("serving metrics on http://{address}/metrics"));
        if !address.ip().is_loopback() {
            message(&format!(
                "warning: {address} is not a loopback address: whoever can reach it can read the metrics, without a password or encryption"
            ));
        }
    }
    let is_over = || is_asked_to_end(signals);
    server.run(signals.as_raw_fd(), is_over, |about| collector.collect(about)).context("cannot wait for connections")?;
    Ok(exit::DONE)
}

fn cannot_listen(address: SocketAddr, error: io::Error) -> anyhow::Error {
    let hint = match error.kind() {
        io::ErrorKind::AddrInUse => "; another program listens there, perhaps another serve-metrics: choose another port with --listen",
        io::ErrorKind::PermissionDenied => "; ports below 1024 need root or CAP_NET_BIND_SERVICE: choose another port with --listen",
        io::ErrorKind::AddrNotAvailable => "; this machine does not have the address: 'ip address' lists those that it has",
        _ => "",
    };
    anyhow!("cannot listen on {address}: {error}{hint}")
}

/// Writes the file once, or in each interval. A write that fails in between is said, and the next one may succeed.
fn textfile(arguments: &ServeMetrics, file: &Path, signals: &Signals) -> Result<u8> {
    let collector = collector(arguments)?;
    let mut next = Instant::now();
    let mut failure = None;
    let mut is_first = true;
    loop {
        let exposition = collector.collect(Batch::default());
        if std::mem::take(&mut is_first) {
            exposition.doubts.iter().for_each(|doubt| message(doubt));
        }
        let text = render(&exposition, Format::Text);
        let written = if is_stdout(file) {
            print_own(&text)
        } else {
            write_textfile(file, &text).with_context(|| format!("cannot write {}", file.display()))
        };
        let Some(interval) = arguments.interval else { return written.map(|()| exit::DONE) };
        let now = written.err().map(|error| format!("{error:#}"));
        if now != failure {
            message(&now.as_ref().map_or_else(
                || format!("{} is written again", file.display()),
                |why| format!("{why}; the old file is kept, and the next try is in {} s", interval.as_secs()),
            ));
        }
        failure = now;
        next = (next + interval).max(Instant::now());
        if ends_before(signals, next) {
            return Ok(exit::DONE);
        }
    }
}

/// Waits until then. Returns whether a signal asked firsttouch to end.
fn ends_before(signals: &Signals, until: Instant) -> bool {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left == Duration::ZERO {
            return false;
        }
        if is_end(signals.wait(u64::try_from(left.as_nanos()).unwrap_or(u64::MAX), &mut Vec::new())) {
            return true;
        }
    }
}

fn is_asked_to_end(signals: &Signals) -> bool {
    std::iter::from_fn(|| signals.pending()).any(|notice| is_end(Some(notice)))
}

fn is_end(notice: Option<Notice>) -> bool {
    // SIGHUP, SIGINT, SIGQUIT, SIGTERM.
    matches!(notice, Some(Notice::Forward(1 | 2 | 3 | 15) | Notice::Terminal(1 | 2 | 3 | 15)))
}

fn collector(arguments: &ServeMetrics) -> Result<Collector> {
    let cgroups = match (arguments.no_cgroups, arguments.cgroup.as_slice()) {
        (true, _) => Cgroups::None,
        (_, []) => Cgroups::All,
        (_, groups) => Cgroups::Below(groups.to_vec()),
    };
    let root = arguments.root.clone();
    std::fs::read_dir(&root).with_context(|| format!("cannot read {}", root.display()))?;
    for group in &arguments.cgroup {
        let folder = root.join("sys/fs/cgroup").join(group.trim_start_matches('/'));
        if let Err(error) = std::fs::metadata(&folder) {
            message(&format!("cannot read the control group {group} ({}: {error}): it has no metrics until it exists", folder.display()));
        }
    }
    let options = Options { root, cgroups, max_series: arguments.max_series, version: env!("CARGO_PKG_VERSION") };
    let watcher = arguments.processes.map(|most| watcher(arguments, most)).transpose()?;
    Ok(Collector::new(options, watcher))
}

/// What looks at processes: the model of `top`.
fn watcher(arguments: &ServeMetrics, most: u16) -> Result<Watcher> {
    let root = PathBuf::from("/");
    let request = analysis_request(&arguments.judge())?;
    let info = MachineInfo::read(&root)?;
    request.check(&info.machine)?;
    let command = RecorderCommand {
        program: std::env::current_exe().unwrap_or_else(|_| PathBuf::from("firsttouch")),
        arguments: vec!["record-live".into()],
    };
    let window = match arguments.window {
        Some(WindowArgument::One) => Window::Short,
        Some(WindowArgument::Ten) => Window::Medium,
        Some(WindowArgument::Sixty) | None => Window::Long,
    };
    let monitor = Monitor::new(root.clone(), &info.machine, request, command, &Focus::All);
    let monitor = monitor.map_err(|error| anyhow!("cannot watch the processes of this machine: {error}"))?;
    let watcher = Watcher::start(monitor, root, ProcessOptions { most: usize::from(most), window });
    watcher.context("cannot start a thread that watches the processes")
}
