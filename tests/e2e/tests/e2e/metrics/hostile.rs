// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Clients that are slow, silent, many, or wild.

use super::{Client, Exporter};
use firsttouch_e2e::skip::skipped;
use firsttouch_e2e::tool::{Firsttouch, assert_no_panic};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// Memory that may be more after than before: what the allocator keeps.
const GROWTH: u64 = 1 << 20;

/// Check requests that nobody should send: each is answered as it should be, and the next client is served.
#[test]
fn bad_requests() {
    let Some(firsttouch) = Firsttouch::find("metrics::bad_requests") else { return };
    let exporter = Exporter::start(&firsttouch, &["--no-cgroups"]);
    let long = |count: usize| vec![b'a'; count];
    let host = b"GET /metrics HTTP/1.1\r\nHost: a\r\n".as_slice();
    let requests: Vec<(Vec<u8>, u16)> = vec![
        (b"POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc".to_vec(), 405),
        (b"DELETE /metrics HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(), 405),
        (b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(), 405),
        (b"GET /../../etc/passwd HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(), 404),
        (b"GET /metrics HTTP/1.1\r\n\r\n".to_vec(), 400),
        (b"GET /metrics HTTP/3.0\r\n\r\n".to_vec(), 505),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(), 400),
        (b"\0\0\0\0".to_vec(), 400),
        ([b"GET /".as_slice(), &long(1 << 20)].concat(), 414),
        ([host, b"X: ", &long(1 << 20)].concat(), 431),
        ([host, &b"X: 1\r\n".repeat(10_000)].concat(), 431),
        ([host, b"Content-Length: 99999999999999999999\r\n\r\n"].concat(), 413),
        ([host, b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n"].concat(), 413),
        ([host, b"Accept: ", &b"a;q=,".repeat(1_000), b"\r\n\r\n"].concat(), 200),
        ([host, b"Accept: \xff\xfe;version=\"\r\nX-\xc3: 1\r\n\r\n"].concat(), 400),
    ];
    for (request, status) in requests {
        let mut client = exporter.connect();
        client.send(&request);
        let shown = String::from_utf8_lossy(&request[..request.len().min(60)]).into_owned();
        let answer = client.answer(false).unwrap_or_else(|| panic!("no answer to {shown:?}"));
        assert_eq!(answer.status, status, "{shown:?}: {answer:?}");
    }
    // Clients that go away at every point.
    for request in [b"".as_slice(), b"GET", host, b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"] {
        let mut client = exporter.connect();
        client.send(request);
        let _ = client.reader.get_ref().shutdown(Shutdown::Both);
    }
    let metrics = exporter.metrics();
    assert!(metrics.contains("firsttouch_http_requests_total{code=\"431\"} 2\n"), "{metrics}");
    assert_no_panic(&exporter.stop());
}

/// Lets this process open so many files, if the system allows it. Where it may already, nothing changes: programs of other tests inherit the limit.
fn may_open(files: u64) -> bool {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a valid block for both calls.
    unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        if limit.rlim_cur >= files {
            return true;
        }
        limit.rlim_cur = files.min(limit.rlim_max);
        libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
    }
    limit.rlim_cur >= files
}

/// Check that 1,000 clients that send their requests a byte at a time stop nobody else, and cost little memory and few descriptors.
#[test]
fn slow_clients() {
    let name = "metrics::slow_clients";
    let Some(firsttouch) = Firsttouch::find(name) else { return };
    if !may_open(1_500) {
        return skipped(name, "this process may not open 1,500 files (ulimit -Hn)");
    }
    let exporter = Exporter::start(&firsttouch, &["--no-cgroups"]);
    exporter.metrics();
    let before = exporter.resident_bytes();
    let mut slow: Vec<TcpStream> = (0..1_000).map(|_| TcpStream::connect(exporter.address).expect("it accepts")).collect();
    let mut slowest = Duration::ZERO;
    for round in 0..10 {
        for stream in &mut slow {
            let _ = std::io::Write::write_all(stream, &b"GET /metrics HTTP/1.1\r\n"[round..=round]);
        }
        let began = Instant::now();
        exporter.metrics();
        slowest = slowest.max(began.elapsed());
    }
    assert!(slowest < Duration::from_secs(2), "{slowest:?}");
    let metrics = exporter.metrics();
    let value = |sample: &str| metrics.lines().find_map(|line| line.strip_prefix(sample)?.trim().parse::<u64>().ok()).expect("a sample");
    assert!(value("firsttouch_http_connections ") <= 512, "{metrics}");
    assert!(value("firsttouch_http_connections_closed_total{reason=\"full\"} ") >= 400, "{metrics}");
    let files = std::fs::read_dir(format!("/proc/{}/fd", exporter.running.pid())).expect("it runs").count();
    assert!(files < 540, "{files}");
    let grown = exporter.resident_bytes().saturating_sub(before);
    assert!(grown < 8 << 20, "{grown} bytes more");
    assert_no_panic(&exporter.stop());
}

/// Check 10,000 scrapes: ten clients that ask at the same time, a thousand times each. Memory does not grow.
#[test]
fn ten_thousand_scrapes() {
    let Some(firsttouch) = Firsttouch::find("metrics::ten_thousand_scrapes") else { return };
    let exporter = Exporter::start(&firsttouch, &[]);
    let mut clients: Vec<Client> = (0..10).map(|_| exporter.connect()).collect();
    let mut scrape_all = |rounds: usize| {
        for _ in 0..rounds {
            for client in &mut clients {
                client.send(b"GET /metrics HTTP/1.1\r\nHost: a\r\nAccept: application/openmetrics-text\r\n\r\n");
            }
            for client in &mut clients {
                let answer = client.answer(false).expect("an answer");
                assert!(answer.status == 200 && answer.body.ends_with("# EOF\n"), "{answer:?}");
            }
        }
    };
    scrape_all(100);
    let before = exporter.resident_bytes();
    scrape_all(1_000);
    let after = exporter.resident_bytes();
    assert!(after <= before + GROWTH, "{before} bytes before, {after} after");
    let metrics = exporter.metrics();
    let seconds = |sample: &str| metrics.lines().find_map(|line| line.strip_prefix(sample)?.parse::<f64>().ok()).expect("a sample");
    assert!(seconds("firsttouch_http_requests_total{code=\"200\"} ") >= 11_000.0);
    assert!(seconds("firsttouch_scrape_duration_seconds ") < 0.1, "{metrics}");
    exporter.stop();
}
