//! What is answered.

use super::request::Refusal;
use crate::render::Format;
use std::sync::Arc;

const START: &str = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>firsttouch</title></head>\n<body><h1>firsttouch</h1>\n\
    <p>Where memory is on a NUMA machine: <a href=\"/metrics\">metrics</a> for Prometheus.</p></body></html>\n";

/// An answer. The body is shared by all who asked at the same time.
#[derive(Clone, Debug)]
pub struct Response {
    pub status: u16,
    pub head: Vec<u8>,
    pub body: Arc<[u8]>,
    /// Whether the client may ask again.
    pub stays_open: bool,
}

impl Response {
    #[must_use]
    pub fn metrics(text: Arc<[u8]>, format: Format, is_head: bool, stays_open: bool) -> Self {
        Self::new(200, format.content_type(), text, is_head, stays_open)
    }

    #[must_use]
    pub fn start(is_head: bool, stays_open: bool) -> Self {
        Self::new(200, "text/html; charset=utf-8", START.as_bytes().into(), is_head, stays_open)
    }

    #[must_use]
    pub fn health(is_head: bool, stays_open: bool) -> Self {
        Self::new(200, "text/plain; charset=utf-8", b"ok\n".as_slice().into(), is_head, stays_open)
    }

    #[must_use]
    pub fn refusal(refusal: Refusal) -> Self {
        let (status, text) = match refusal {
            Refusal::Malformed => (400, "The request is not one of HTTP/1.1.\n"),
            Refusal::NotFound => (404, "There are /metrics, /healthz and / here.\n"),
            Refusal::Method => (405, "Only GET and HEAD are answered here.\n"),
            Refusal::Body => (413, "No request has a body here.\n"),
            Refusal::LineTooLong => (414, "The request line is too long.\n"),
            Refusal::HeadTooLarge => (431, "The headers are too large, or too many.\n"),
            Refusal::Version => (505, "Only HTTP/1.1 and HTTP/1.0 are answered here.\n"),
        };
        Self::new(status, "text/plain; charset=utf-8", text.as_bytes().into(), false, false)
    }

    fn new(status: u16, content_type: &str, body: Arc<[u8]>, is_head: bool, stays_open: bool) -> Self {
        let reason = match status {
            200 => "OK",
            400 => "Bad Request",
            404 => "Not Found",
            405 => "Method Not Allowed",
            413 => "Content Too Large",
            414 => "URI Too Long",
            431 => "Request Header Fields Too Large",
            _ => "HTTP Version Not Supported",
        };
        let allow = if status == 405 { "Allow: GET, HEAD\r\n" } else { "" };
        let close = if stays_open { "" } else { "Connection: close\r\n" };
        let head = format!(
            "HTTP/1.1 {status} {reason}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
             X-Content-Type-Options: nosniff\r\n{allow}{close}\r\n",
            body.len()
        );
        let body = if is_head { Arc::from([]) } else { body };
        Self { status, head: head.into_bytes(), body, stays_open }
    }

    /// Its bytes from an offset on, as far as they lie together.
    #[must_use]
    pub fn from(&self, offset: usize) -> &[u8] {
        let body = || self.body.get(offset - self.head.len()..).unwrap_or_default();
        self.head.get(offset..).filter(|rest| !rest.is_empty()).unwrap_or_else(body)
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.head.len() + self.body.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(response: &Response) -> String {
        let mut bytes = Vec::new();
        while bytes.len() < response.len() {
            // In steps, as a slow client takes it.
            let rest = response.from(bytes.len());
            bytes.extend_from_slice(&rest[..rest.len().min(7)]);
        }
        assert!(response.from(bytes.len()).is_empty());
        String::from_utf8(bytes).unwrap()
    }

    /// Check heads, and that HEAD has the length of what GET would give.
    #[test]
    fn answers_have_heads() {
        let get = Response::metrics(b"a 1\n".as_slice().into(), Format::Text, false, true);
        let expected = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: 4\r\nCache-Control: no-store\r\n\
            X-Content-Type-Options: nosniff\r\n\r\na 1\n";
        assert_eq!(whole(&get), expected);
        let head = Response::metrics(b"a 1\n".as_slice().into(), Format::Text, true, true);
        assert_eq!(whole(&head), expected.trim_end_matches("a 1\n"));
        let refused = whole(&Response::refusal(Refusal::Method));
        assert!(
            refused.starts_with("HTTP/1.1 405 Method Not Allowed\r\n")
                && refused.contains("\r\nAllow: GET, HEAD\r\nConnection: close\r\n\r\n")
        );
    }
}
