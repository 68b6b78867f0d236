//! The head of a request: RFC 9112. Pure: bytes to what is asked for.

use super::accept;
use crate::render::Format;

/// The longest request line and the longest head, bytes.
pub const MOST_LINE: usize = 2_048;
pub const MOST_HEAD: usize = 8_192;
/// The most headers.
pub const MOST_HEADERS: usize = 64;

/// What may be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    Start,
    Metrics,
    Health,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    pub page: Page,
    /// HEAD: only the head of the answer is wanted.
    pub is_head: bool,
    pub format: Format,
    /// Whether the client may ask again on this connection.
    pub stays_open: bool,
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    Malformed,
    NotFound,
    Method,
    /// A body, which no page takes.
    Body,
    LineTooLong,
    HeadTooLarge,
    Version,
}

/// What the bytes so far are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    Incomplete,
    /// A request, and the number of its bytes.
    Request(Request, usize),
    Refused(Refusal),
}

/// Parses the bytes that a client has sent so far.
#[must_use]
pub fn parse(bytes: &[u8]) -> Parsed {
    match parse_head(bytes) {
        Ok(Some((request, length))) => Parsed::Request(request, length),
        Ok(None) => Parsed::Incomplete,
        Err(refusal) => Parsed::Refused(refusal),
    }
}

fn parse_head(bytes: &[u8]) -> Result<Option<(Request, usize)>, Refusal> {
    // Empty lines before a request are ignored (RFC 9112, 2.2).
    let start = bytes.iter().position(|byte| !b"\r\n".contains(byte)).unwrap_or(bytes.len());
    let rest = bytes.get(start..).unwrap_or_default();
    // A method is a word in capitals: what begins otherwise, as TLS does, need not be waited for.
    if rest.first().is_some_and(|byte| !byte.is_ascii_uppercase()) {
        return Err(Refusal::Malformed);
    }
    let mut lines = Lines { rest, length: 0 };
    let Some(first) = lines.next_line() else {
        return if rest.len() > MOST_LINE { Err(Refusal::LineTooLong) } else { incomplete(bytes) };
    };
    if first.len() > MOST_LINE {
        return Err(Refusal::LineTooLong);
    }
    let line = request_line(first)?;
    let mut headers = Headers::default();
    let mut count = 0;
    loop {
        let Some(header) = lines.next_line() else { return incomplete(bytes) };
        if start + lines.length > MOST_HEAD {
            return Err(Refusal::HeadTooLarge);
        }
        if header.is_empty() {
            break;
        }
        count += 1;
        if count > MOST_HEADERS {
            return Err(Refusal::HeadTooLarge);
        }
        headers.read(header)?;
    }
    let request = headers.request(line)?;
    Ok(Some((request, start + lines.length)))
}

fn incomplete<T>(bytes: &[u8]) -> Result<Option<T>, Refusal> {
    if bytes.len() >= MOST_HEAD { Err(Refusal::HeadTooLarge) } else { Ok(None) }
}

/// Lines that end with CR LF, or with LF alone.
struct Lines<'a> {
    rest: &'a [u8],
    /// Bytes of the lines so far, with their ends.
    length: usize,
}

impl<'a> Lines<'a> {
    fn next_line(&mut self) -> Option<&'a [u8]> {
        let end = self.rest.iter().position(|byte| *byte == b'\n')?;
        let (line, rest) = self.rest.split_at(end);
        self.rest = rest.get(1..).unwrap_or_default();
        self.length += end + 1;
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    }
}

struct RequestLine {
    page: Option<Page>,
    /// `None`: another one than GET and HEAD.
    is_head: Option<bool>,
    is_1_0: bool,
}

fn request_line(line: &[u8]) -> Result<RequestLine, Refusal> {
    let text = std::str::from_utf8(line).map_err(|_| Refusal::Malformed)?;
    let words: Vec<&str> = text.split(' ').collect();
    let [method, target, version] = words.as_slice() else { return Err(Refusal::Malformed) };
    if !method.bytes().all(is_token) || target.is_empty() || target.bytes().any(|byte| !(0x21..=0x7e).contains(&byte)) {
        return Err(Refusal::Malformed);
    }
    let is_1_0 = match version.strip_prefix("HTTP/") {
        Some("1.1") => false,
        Some("1.0") => true,
        Some(_) => return Err(Refusal::Version),
        None => return Err(Refusal::Malformed),
    };
    let is_head = match *method {
        "GET" => Some(false),
        "HEAD" => Some(true),
        _ => None,
    };
    Ok(RequestLine { page: page(target), is_head, is_1_0 })
}

/// The page of a target: `/metrics`, `/metrics?x`, `http://host/metrics`.
fn page(target: &str) -> Option<Page> {
    let path = match target.strip_prefix("http://") {
        Some(absolute) => absolute.find('/').map_or("/", |slash| &absolute[slash..]),
        None => target,
    };
    match path.split('?').next()? {
        "/" => Some(Page::Start),
        "/metrics" => Some(Page::Metrics),
        "/healthz" => Some(Page::Health),
        _ => None,
    }
}

/// A character of a method or of a header's name (RFC 9110, 5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// The headers that matter.
#[derive(Default)]
struct Headers {
    accept: String,
    has_host: bool,
    body_bytes: Option<u64>,
    closes: bool,
}

impl Headers {
    fn read(&mut self, line: &[u8]) -> Result<(), Refusal> {
        let colon = line.iter().position(|byte| *byte == b':').ok_or(Refusal::Malformed)?;
        let (name, value) = (line.get(..colon).unwrap_or_default(), line.get(colon + 1..).unwrap_or_default());
        // Also refuses lines that go on with the one before, and spaces before the colon, which have deceived other servers.
        if name.is_empty() || !name.iter().copied().all(is_token) || value.iter().any(|byte| matches!(byte, 0 | b'\r')) {
            return Err(Refusal::Malformed);
        }
        let value = String::from_utf8_lossy(value);
        let value = value.trim_matches([' ', '\t']);
        match name.to_ascii_lowercase().as_slice() {
            b"accept" if self.accept.is_empty() => self.accept = value.to_owned(),
            // Several headers are one list.
            b"accept" => self.accept = format!("{},{value}", self.accept),
            b"host" if self.has_host => return Err(Refusal::Malformed),
            b"host" => self.has_host = true,
            b"content-length" => {
                let is_number = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
                let bytes = if is_number { value.parse().unwrap_or(u64::MAX) } else { return Err(Refusal::Malformed) };
                if self.body_bytes.replace(bytes).is_some_and(|other| other != bytes) {
                    return Err(Refusal::Malformed);
                }
            }
            b"transfer-encoding" => self.body_bytes = Some(u64::MAX),
            b"connection" => self.closes |= value.split(',').any(|word| word.trim().eq_ignore_ascii_case("close")),
            _ => {}
        }
        Ok(())
    }

    fn request(self, line: RequestLine) -> Result<Request, Refusal> {
        if !self.has_host && !line.is_1_0 {
            return Err(Refusal::Malformed);
        }
        let is_head = line.is_head.ok_or(Refusal::Method)?;
        if self.body_bytes.is_some_and(|bytes| bytes > 0) {
            return Err(Refusal::Body);
        }
        let page = line.page.ok_or(Refusal::NotFound)?;
        Ok(Request { page, is_head, format: accept::format(&self.accept), stays_open: !self.closes && !line.is_1_0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: impl AsRef<[u8]>) -> Option<Refusal> {
        match parse(text.as_ref()) {
            Parsed::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// Check requests of usual clients, and that the length ends each one.
    #[test]
    fn requests_are_read() {
        let text =
            "GET /metrics HTTP/1.1\r\nHost: localhost:9843\r\nUser-Agent: Prometheus/2.42\r\nAccept: application/openmetrics-text\r\n\r\n";
        let expected = Request { page: Page::Metrics, is_head: false, format: Format::OpenMetrics, stays_open: true };
        assert_eq!(parse(text.as_bytes()), Parsed::Request(expected, text.len()));
        let twice = format!("\r\n{text}{text}");
        assert_eq!(parse(twice.as_bytes()), Parsed::Request(expected, text.len() + 2));
        for (line, page, is_head, stays_open) in [
            ("GET / HTTP/1.1\nHost: a\n\n", Page::Start, false, true),
            ("HEAD /healthz HTTP/1.1\r\nhost:a\r\nConnection: TE, Close\r\n\r\n", Page::Health, true, false),
            ("GET /metrics?collect[]=x HTTP/1.0\r\n\r\n", Page::Metrics, false, false),
            ("GET http://a:1/metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nX: \u{e9}\r\n\r\n", Page::Metrics, false, true),
            ("GET http://a HTTP/1.1\r\nHost: a\r\n\r\n", Page::Start, false, true),
        ] {
            let expected = Request { page, is_head, format: Format::Text, stays_open };
            assert_eq!(parse(line.as_bytes()), Parsed::Request(expected, line.len()), "{line}");
        }
        let several = "GET / HTTP/1.1\r\nHost: a\r\nAccept: text/plain;q=0.5\r\nAccept: application/openmetrics-text\r\n\r\n";
        assert!(matches!(parse(several.as_bytes()), Parsed::Request(Request { format: Format::OpenMetrics, .. }, _)));
    }

    /// Check that every beginning of a request is waited for, and none is taken for another request.
    #[test]
    fn beginnings_are_incomplete() {
        let text = b"GET /metrics HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n";
        for length in 0..text.len() {
            assert_eq!(parse(&text[..length]), Parsed::Incomplete, "{length}");
        }
    }

    /// Check the table of requests that are refused.
    #[test]
    fn requests_are_refused() {
        use Refusal::{Body, Malformed, Method, NotFound, Version};
        for (text, why) in [
            ("\x16\x03\x01\x02", Malformed),
            ("get / HTTP/1.1\r\n", Malformed),
            ("GET /\r\n", Malformed),
            ("GET  / HTTP/1.1\r\n", Malformed),
            ("GET / HTTP/1.1 x\r\n", Malformed),
            ("GET /\t HTTP/1.1\r\n", Malformed),
            ("GET /\u{e9} HTTP/1.1\r\n", Malformed),
            ("G(T / HTTP/1.1\r\n", Malformed),
            ("GET / FTP/1.1\r\n", Malformed),
            ("GET / HTTP/2.0\r\n", Version),
            ("PRI * HTTP/2.0\r\n\r\n", Version),
            ("GET / HTTP/1.1\r\n\r\n", Malformed),
            ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", Malformed),
            ("GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n", Malformed),
            ("GET / HTTP/1.1\r\nHost : a\r\n\r\n", Malformed),
            ("GET / HTTP/1.1\r\n: a\r\n\r\n", Malformed),
            ("GET / HTTP/1.1\r\nHost\r\n\r\n", Malformed),
            ("GET / HTTP/1.1\r\nHost: a\0\r\n\r\n", Malformed),
            ("GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n", Malformed),
            ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1x\r\n\r\n", Malformed),
            ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", Malformed),
            ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\n", Malformed),
            ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n", Body),
            ("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n", Body),
            ("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", Body),
            ("POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n", Method),
            ("DELETE / HTTP/1.1\r\nHost: a\r\n\r\n", Method),
            ("CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n", Method),
            ("GET /metrics/ HTTP/1.1\r\nHost: a\r\n\r\n", NotFound),
            ("GET /../etc/passwd HTTP/1.1\r\nHost: a\r\n\r\n", NotFound),
            ("GET * HTTP/1.1\r\nHost: a\r\n\r\n", NotFound),
            ("GET https://a/metrics HTTP/1.1\r\nHost: a\r\n\r\n", NotFound),
        ] {
            assert_eq!(refused(text), Some(why), "{text:?}");
        }
    }

    /// Check the limits on lines, heads and their headers, and that they are known before the end comes.
    #[test]
    fn sizes_are_limited() {
        let long = "a".repeat(MOST_LINE);
        assert_eq!(refused(format!("GET /{long}")), Some(Refusal::LineTooLong));
        assert_eq!(refused(format!("GET /{long} HTTP/1.1\r\n")), Some(Refusal::LineTooLong));
        let value = "a".repeat(MOST_HEAD);
        assert_eq!(refused(format!("GET / HTTP/1.1\r\nHost: {value}")), Some(Refusal::HeadTooLarge));
        assert_eq!(refused(format!("GET / HTTP/1.1\r\nHost: {value}\r\n\r\n")), Some(Refusal::HeadTooLarge));
        assert_eq!(refused("\r\n".repeat(MOST_HEAD / 2)), Some(Refusal::HeadTooLarge));
        let many = "X: 1\r\n".repeat(MOST_HEADERS);
        assert_eq!(refused(format!("GET / HTTP/1.1\r\nHost: a\r\n{many}\r\n")), Some(Refusal::HeadTooLarge));
        assert!(matches!(parse(format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", &many[6..]).as_bytes()), Parsed::Request(..)));
    }

    /// Check that no bytes make it panic: changed requests, from a fixed sequence of numbers.
    #[test]
    fn damaged_requests_are_survived() {
        let text = b"GET /metrics HTTP/1.1\r\nHost: a\r\nAccept: application/openmetrics-text;q=0.5\r\nContent-Length: 0\r\n\r\n";
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize
        };
        let mut outcomes = [0, 0, 0];
        for _ in 0..20_000 {
            let mut damaged = text.to_vec();
            for _ in 0..1 + next() % 3 {
                let place = next() % damaged.len();
                match next() % 3 {
                    0 => damaged[place] = next() as u8,
                    1 => drop(damaged.remove(place)),
                    _ => damaged.insert(place, b"\r\n:; \0\xff/"[next() % 8]),
                }
            }
            match parse(&damaged) {
                Parsed::Incomplete => outcomes[0] += 1,
                Parsed::Request(_, length) => {
                    assert!(length <= damaged.len());
                    outcomes[1] += 1;
                }
                Parsed::Refused(_) => outcomes[2] += 1,
            }
        }
        assert!(outcomes.iter().all(|count| *count > 100), "{outcomes:?}");
    }
}
