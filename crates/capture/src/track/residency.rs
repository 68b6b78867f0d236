//! Queries of where pages are. Several sources make them; what refuses one (a container's seccomp profile) refuses all.

use super::processes::LiveProcess;
use crate::sink::Sink;
use firsttouch_model::rows::{Id, Page, UNKNOWN_NODE};
use firsttouch_system::calls::pages::nodes_of;
use std::io;

#[derive(Default)]
pub struct Residency {
    /// Why the kernel refuses the query, once it did.
    pub refused: Option<String>,
    /// Pages asked about so far.
    pub queried: u64,
    /// Pages of which the kernel named the node.
    pub nodes_named: u64,
}

impl Residency {
    /// Asks which pages are present and how large they are, which needs no right to ask for their nodes, and writes a row for each: (object,
    /// address). Older kernels than Linux 6.7 do not say, and then there are no rows.
    pub fn query_sizes(process: &mut LiveProcess, pages: &[(Id, u64)], now: u64, sink: &mut Sink) {
        for &(object, address) in pages {
            let Some(page_bytes) = process.page_sizes.scan(address) else { return };
            let node = if page_bytes > 0 { UNKNOWN_NODE } else { -libc::ENOENT };
            let row = Page { process: process.id, object: Some(object), address, time_ns: now, node, page_bytes };
            sink.write(|w| w.page(&row));
        }
    }

    /// Asks where pages are, and writes a row for each: (object, address).
    ///
    /// # Errors
    /// The kernel's; nothing is written then.
    pub fn query(&mut self, process: &mut LiveProcess, pages: &[(Id, u64)], now: u64, sink: &mut Sink) -> io::Result<()> {
        let addresses: Vec<u64> = pages.iter().map(|&(_, address)| address).collect();
        let nodes = nodes_of(process.pid, &addresses)?;
        for (&(object, address), node) in pages.iter().zip(nodes) {
            let page_bytes = if node >= 0 { process.page_sizes.at(address) } else { 0 };
            let row = Page { process: process.id, object: Some(object), address, time_ns: now, node, page_bytes };
            sink.write(|w| w.page(&row));
            self.queried += 1;
            self.nodes_named += u64::from(node >= 0);
        }
        Ok(())
    }
}
