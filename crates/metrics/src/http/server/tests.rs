//! The server with real connections, and limits that are soon met.

use super::*;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};

const REQUEST: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n";

fn limits() -> Limits {
    Limits {
        connections: 8,
        waiting_bytes: 64 << 20,
        request: Duration::from_secs(30),
        idle: Duration::from_secs(30),
        answer: Duration::from_secs(30),
    }
}

/// Runs a server while `client` talks to it; returns what that returned, and how often metrics were collected. Samples: one a CPU of `padding` bytes.
fn with_server<T>(limits: Limits, padding: usize, client: impl FnOnce(SocketAddr) -> T) -> (T, usize) {
    let mut server = Server::bind(&["127.0.0.1:0".parse().unwrap()], limits).unwrap();
    let address = server.addresses()[0];
    let (stopped, stop) = io::pipe().unwrap();
    let collected = AtomicUsize::new(0);
    let result = std::thread::scope(|scope| {
        let run = scope.spawn(|| {
            let collect = |about: Batch| {
                collected.fetch_add(1, Ordering::Relaxed);
                let mut exposition = Exposition::new(10);
                exposition.take_always(about);
                let mut batch = Batch::default();
                batch.add(&metric::CGROUP_OUTSIDE, &[&"a".repeat(padding)], 1_u64);
                exposition.take_always(batch);
                exposition
            };
            server.run(stopped.as_raw_fd(), || true, collect).unwrap();
        });
        let result = client(address);
        drop(stop);
        run.join().unwrap();
        result
    });
    (result, collected.into_inner())
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream
}

/// Reads one answer by its length.
fn answer(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap().parse::<usize>().unwrap();
            if body.len() == length {
                return text;
            }
        }
        let mut more = [0; 1024];
        let count = stream.read(&mut more).unwrap();
        assert!(count > 0, "closed after {text}");
        bytes.extend_from_slice(&more[..count]);
    }
}

/// Whether the server has closed a connection.
fn is_closed(stream: &mut TcpStream) -> bool {
    matches!(stream.read(&mut [0; 64]), Ok(0) | Err(_))
}

/// Check several requests on a connection, sent in pieces and all at once, and the counts of answers.
#[test]
fn connections_stay_open() {
    let ((), collected) = with_server(limits(), 1, |address| {
        let mut stream = connect(address);
        for byte in REQUEST {
            stream.write_all(&[*byte]).unwrap();
        }
        assert!(answer(&mut stream).starts_with("HTTP/1.1 200 OK\r\n"));
        stream.write_all(b"HEAD /healthz HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        let mut head = [0; 512];
        let count = stream.read(&mut head).unwrap();
        let head = String::from_utf8_lossy(&head[..count]).into_owned();
        assert!(head.contains("Content-Length: 3\r\n") && head.ends_with("\r\n\r\n"), "{head}");
        stream.write_all(&REQUEST.repeat(3)).unwrap();
        let mut all = String::new();
        while all.matches("HTTP/1.1 200 OK").count() < 3 || !all.ends_with("{reason=\"memory\"} 0\n") {
            let mut more = [0; 4096];
            let count = stream.read(&mut more).unwrap();
            assert!(count > 0, "closed after {all}");
            all.push_str(&String::from_utf8_lossy(&more[..count]));
        }
        assert!(all.contains("firsttouch_http_requests_total{code=\"200\"} 4\n"), "{all}");
        stream.write_all(b"GET /none HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        assert!(answer(&mut stream).starts_with("HTTP/1.1 404 Not Found\r\n"));
        assert!(is_closed(&mut stream));
    });
    assert_eq!(collected, 4);
}

/// Check that a client whose request is refused gets the answer, although it goes on sending.
#[test]
fn refusals_arrive() {
    with_server(limits(), 1, |address| {
        let mut stream = connect(address);
        let _ = stream.write_all(&[b"GET / HTTP/1.1\r\nX: ".as_slice(), &[b'a'; 100_000]].concat());
        assert!(answer(&mut stream).starts_with("HTTP/1.1 431 "));
        assert!(is_closed(&mut stream));
        let mut stream = connect(address);
        stream.write_all(b"\x16\x03\x01").unwrap();
        assert!(answer(&mut stream).starts_with("HTTP/1.1 400 "));
    });
}

/// Check that more slow clients than there is room for do not keep others out, and that the oldest go.
#[test]
fn slow_clients_make_room() {
    with_server(limits(), 1, |address| {
        let mut slow: Vec<TcpStream> = (0..8).map(|_| connect(address)).collect();
        for stream in &mut slow {
            stream.write_all(b"GET /metrics HT").unwrap();
        }
        let mut fast = connect(address);
        fast.write_all(REQUEST).unwrap();
        let text = answer(&mut fast);
        assert!(text.contains("closed_total{reason=\"full\"} 1\n") && text.contains("firsttouch_http_connections 8\n"), "{text}");
        assert!(is_closed(&mut slow[0]), "the oldest");
        slow[7].write_all(b"TP/1.1\r\nHost: a\r\n\r\n").unwrap();
        assert!(answer(&mut slow[7]).starts_with("HTTP/1.1 200 OK"));
    });
}

/// Check the times: of a request that does not end, of an idle connection, of a client that does not read.
#[test]
fn time_is_limited() {
    let short = Duration::from_millis(60);
    with_server(Limits { request: short, ..limits() }, 1, |address| {
        let mut silent = connect(address);
        let mut half = connect(address);
        half.write_all(b"GET /").unwrap();
        assert!(is_closed(&mut silent) && is_closed(&mut half));
        let mut fast = connect(address);
        fast.write_all(REQUEST).unwrap();
        assert!(answer(&mut fast).contains("closed_total{reason=\"timeout\"} 2\n"));
    });
    with_server(Limits { idle: short, ..limits() }, 1, |address| {
        let mut idle = connect(address);
        idle.write_all(REQUEST).unwrap();
        answer(&mut idle);
        assert!(is_closed(&mut idle));
        let mut fast = connect(address);
        fast.write_all(REQUEST).unwrap();
        assert!(answer(&mut fast).contains("closed_total{reason=\"timeout\"} 0\n"), "an idle client loses nothing");
    });
    with_server(Limits { answer: short, ..limits() }, 16 << 20, |address| {
        let mut deaf = connect(address);
        deaf.write_all(REQUEST).unwrap();
        std::thread::sleep(4 * short);
        let mut bytes = Vec::new();
        let _ = deaf.read_to_end(&mut bytes);
        assert!(bytes.len() < 16 << 20, "{}", bytes.len());
    });
}

/// Check that answers that nobody takes have a bound, and the oldest such client is cut off.
#[test]
fn memory_is_limited() {
    with_server(Limits { waiting_bytes: 24 << 20, ..limits() }, 16 << 20, |address| {
        let mut deaf: Vec<TcpStream> = (0..3).map(|_| connect(address)).collect();
        for stream in &mut deaf {
            stream.write_all(REQUEST).unwrap();
            std::thread::sleep(Duration::from_millis(20));
        }
        let mut health = connect(address);
        health.write_all(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        assert!(answer(&mut health).ends_with("\r\n\r\nok\n"));
        let mut bytes = Vec::new();
        let _ = deaf[0].read_to_end(&mut bytes);
        assert!(bytes.len() < 16 << 20, "{}", bytes.len());
    });
}

/// Check that an address that is taken is named.
#[test]
fn taken_addresses_are_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let free: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let Err((named, error)) = Server::bind(&[free, address], limits()) else { panic!("it was taken") };
    assert_eq!((named, error.kind()), (address, io::ErrorKind::AddrInUse));
}
