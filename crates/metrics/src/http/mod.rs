//! A small HTTP/1.1 server: GET and HEAD of three pages, one thread, limits on everything a client controls (docs/adr/0030).
//!
//! | module | what it does |
//! |---|---|
//! | `accept.rs` | which format a client wants |
//! | `request.rs` | the bytes of a request to what is asked for, or to a refusal; pure |
//! | `response.rs` | what is answered |
//! | `connection.rs` | a connection: reads, writes, is closed |
//! | `server.rs` | the loop over all connections |

mod accept;
mod connection;
mod request;
mod response;
mod server;

pub use request::{Page, Parsed, Refusal, Request, parse};
pub use server::{Limits, Server};
