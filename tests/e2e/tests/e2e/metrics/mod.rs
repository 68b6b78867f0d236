// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `firsttouch serve-metrics`: both formats, hostile clients, files, and a real Prometheus that scrapes it.

mod hostile;
mod pages;
mod prometheus;
mod textfile;

use firsttouch_e2e::paths::{find_tool, target_dir, workspace_root};
use firsttouch_e2e::process::{Outcome, Running};
use firsttouch_e2e::skip::skipped;
use firsttouch_e2e::tool::Firsttouch;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

/// An exporter that listens on a port of its own.
struct Exporter {
    running: Running,
    address: SocketAddr,
}

impl Exporter {
    fn start(firsttouch: &Firsttouch, options: &[&str]) -> Self {
        let listen = if options.contains(&"--listen") { &[][..] } else { &["--listen", "127.0.0.1:0"] };
        let running = Running::start(firsttouch.command(["serve-metrics"]).args(listen).args(options), b"");
        let line = running.wait_for_stderr("serving metrics on http://");
        let address = line.split("http://").nth(1).and_then(|rest| rest.split('/').next()?.parse().ok()).expect("an address");
        Self { running, address }
    }

    fn connect(&self) -> Client {
        Client::connect(self.address)
    }

    /// The text format.
    fn metrics(&self) -> String {
        let answer = self.connect().get("/metrics", "");
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.body
    }

    fn resident_bytes(&self) -> u64 {
        let statm = std::fs::read_to_string(format!("/proc/{}/statm", self.running.pid())).expect("it runs");
        4096 * statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).expect("pages")
    }

    /// Ends it as systemd does. It must end well.
    fn stop(self) -> Outcome {
        self.running.signal(libc::SIGTERM);
        let outcome = self.running.wait();
        assert_eq!((outcome.status, outcome.stdout_text().as_str()), (0, ""), "{outcome:?}");
        outcome
    }
}

#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

/// A client that keeps its connection.
struct Client {
    reader: BufReader<TcpStream>,
}

impl Client {
    fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
        stream.set_nodelay(true).expect("an option");
        Self { reader: BufReader::with_capacity(64 << 10, stream) }
    }

    /// Sends bytes; a server that has closed already is no error.
    fn send(&mut self, bytes: &[u8]) {
        let _ = self.reader.get_mut().write_all(bytes);
    }

    fn get(&mut self, path: &str, headers: &str) -> Answer {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: test\r\n{headers}\r\n").as_bytes());
        self.answer(false).expect("an answer")
    }

    /// Reads an answer; `None` if the connection was closed.
    fn answer(&mut self, is_head: bool) -> Option<Answer> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if self.reader.read_line(&mut head).ok()? == 0 {
                return None;
            }
        }
        let status = head.split(' ').nth(1)?.parse().ok()?;
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "))?.parse().ok()?;
        let mut body = vec![0; if is_head { 0 } else { length }];
        self.reader.read_exact(&mut body).ok()?;
        Some(Answer { status, head, body: String::from_utf8(body).expect("text") })
    }
}

/// The recorded machine with two nodes and control groups.
fn groups() -> String {
    workspace_root().join("fixtures/metrics/guest-2-nodes-cgroups").display().to_string()
}

/// A program of Prometheus: on PATH, or where scripts/prometheus puts it.
fn prometheus_tool(test: &str, name: &str) -> Option<PathBuf> {
    let own = target_dir().join("prometheus/usr/bin").join(name);
    let found = find_tool(name).or_else(|| own.is_file().then_some(own));
    if found.is_none() {
        skipped(test, &format!("{name} is neither on PATH nor in target/prometheus (`make deps` gets it)"));
    }
    found
}
