//! The loop over all connections, in one thread. A client can be slow, silent or wild: it costs one connection of a bounded number, for a bounded time.

use super::connection::{Connection, Patience, Step};
use super::request::{Page, Request};
use super::response::Response;
use crate::catalogue as metric;
use crate::exposition::{Batch, Exposition};
use crate::render::{Format, render};
use firsttouch_system::calls::ready::{Watched, wait};
use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Connections that are accepted in one turn of the loop, from each address.
const ACCEPTED: usize = 64;
/// After a failure to accept that is not the client's, such as no memory.
const PAUSE: Duration = Duration::from_millis(20);

/// The most connections.
pub const MOST_CONNECTIONS: usize = 512;
/// The most bytes of answers that clients have not taken.
pub const MOST_WAITING_BYTES: usize = 64 << 20;

/// What clients may cost.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub connections: usize,
    pub waiting_bytes: usize,
    pub request: Duration,
    pub idle: Duration,
    pub answer: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: MOST_CONNECTIONS,
            waiting_bytes: MOST_WAITING_BYTES,
            request: Duration::from_secs(5),
            idle: Duration::from_secs(120),
            answer: Duration::from_secs(15),
        }
    }
}

/// Why a connection was closed before the client was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Cut {
    /// Its time was up.
    Timeout,
    /// There were too many, and it was the oldest.
    Full,
    /// Too many bytes of answers waited, and it was the oldest.
    Memory,
}

impl Cut {
    const ALL: [Self; 3] = [Self::Timeout, Self::Full, Self::Memory];

    fn name(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Full => "full",
            Self::Memory => "memory",
        }
    }
}

/// Listens, and answers.
pub struct Server {
    listeners: Vec<TcpListener>,
    connections: Vec<Connection>,
    limits: Limits,
    answered: BTreeMap<u16, u64>,
    cut: BTreeMap<Cut, u64>,
}

/// The metrics of one turn of the loop: all who ask at the same time get the same.
#[derive(Default)]
struct Turn {
    exposition: Option<Exposition>,
    texts: Vec<(Format, Arc<[u8]>)>,
}

impl Server {
    /// Listens on addresses.
    ///
    /// # Errors
    /// The first address that cannot be had, and why.
    pub fn bind(addresses: &[SocketAddr], limits: Limits) -> Result<Self, (SocketAddr, io::Error)> {
        let bind = |address: &SocketAddr| {
            let listener = TcpListener::bind(address)?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        };
        let listeners = addresses.iter().map(|address| bind(address).map_err(|error| (*address, error))).collect::<Result<_, _>>()?;
        let cut = Cut::ALL.into_iter().map(|cut| (cut, 0)).collect();
        Ok(Self { listeners, connections: Vec::new(), limits, answered: BTreeMap::from([(200, 0)]), cut })
    }

    /// The addresses that it listens on: of port 0, the one that the system chose.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.listeners.iter().filter_map(|listener| listener.local_addr().ok()).collect()
    }

    /// Answers until `stop` can be read and `is_over` says so. `collect` gives the metrics, with those about the server that it is given.
    ///
    /// # Errors
    /// When the system cannot watch the connections.
    pub fn run(&mut self, stop: RawFd, mut is_over: impl FnMut() -> bool, mut collect: impl FnMut(Batch) -> Exposition) -> io::Result<()> {
        let patience = Patience { request: self.limits.request, idle: self.limits.idle, answer: self.limits.answer };
        let mut pause = false;
        loop {
            let mut watched = vec![Watched::reader(stop)];
            // After a failure to accept, the listeners would be ready at once again.
            watched.extend(self.listeners.iter().filter(|_| !pause).map(|listener| Watched::reader(listener.as_raw_fd())));
            let first = watched.len();
            watched.extend(self.connections.iter().map(Connection::watched));
            let timeout = self.timeout(&patience, pause);
            wait(&mut watched, timeout)?;
            if watched.first().is_some_and(Watched::is_ready) && is_over() {
                return Ok(());
            }
            let now = Instant::now();
            let ready: Vec<bool> = watched.get(first..).unwrap_or_default().iter().map(Watched::is_ready).collect();
            self.serve(&ready, now, &mut collect);
            self.end_late(&patience, now);
            let has_callers = watched.get(1..first).unwrap_or_default().iter().any(Watched::is_ready);
            pause = has_callers && !self.accept(now);
            self.bound_memory();
        }
    }

    fn timeout(&self, patience: &Patience, pause: bool) -> Duration {
        if self.connections.iter().any(Connection::has_input) {
            return Duration::ZERO;
        }
        let now = Instant::now();
        let next = self.connections.iter().map(|one| one.deadline(patience)).min();
        let left = next.map_or(Duration::from_secs(3_600), |next| next.saturating_duration_since(now));
        // The deadline is passed for certain then: no turn of the loop is for nothing.
        let left = left + Duration::from_millis(1);
        if pause { left.min(PAUSE) } else { left }
    }

    /// Goes on with the connections that are ready.
    fn serve(&mut self, ready: &[bool], now: Instant, collect: &mut impl FnMut(Batch) -> Exposition) {
        let mut turn = Turn::default();
        let mut index = 0;
        let about = self.about();
        let answered = &mut self.answered;
        self.connections.retain_mut(|connection| {
            let is_ready = ready.get(index).copied().unwrap_or(false) || connection.has_input();
            index += 1;
            let mut step = if is_ready { connection.go_on(now) } else { Step::Wait };
            let response = match step {
                Step::Answer(request) => Some(turn.response(request, || collect(about.clone()))),
                Step::Refuse(refusal) => Some(Response::refusal(refusal)),
                Step::Wait | Step::Close => None,
            };
            if let Some(response) = response {
                *answered.entry(response.status).or_default() += 1;
                step = connection.answer(response, now);
            }
            step != Step::Close
        });
    }

    /// Takes those who wait to be connected. Returns false if the system has no room for them.
    fn accept(&mut self, now: Instant) -> bool {
        for index in 0..self.listeners.len() {
            for _ in 0..ACCEPTED {
                let Some(listener) = self.listeners.get(index) else { break };
                match listener.accept() {
                    Ok((stream, _)) => {
                        if self.connections.len() >= self.limits.connections {
                            self.end_oldest(Cut::Full);
                        }
                        self.connections.extend(Connection::new(stream, now));
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    // The client is gone already.
                    Err(error) if matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted) => {}
                    // No descriptors, no memory: a connection fewer helps.
                    Err(_) if self.connections.is_empty() => return false,
                    Err(_) => {
                        self.end_oldest(Cut::Full);
                        return true;
                    }
                }
            }
        }
        true
    }

    fn end_oldest(&mut self, cut: Cut) {
        let oldest = self.connections.iter().enumerate().min_by_key(|(_, one)| one.since()).map(|(index, _)| index);
        if let Some(index) = oldest {
            self.connections.remove(index);
            *self.cut.entry(cut).or_default() += 1;
        }
    }

    fn end_late(&mut self, patience: &Patience, now: Instant) {
        let cut = self.cut.entry(Cut::Timeout).or_default();
        self.connections.retain(|one| {
            let is_late = one.deadline(patience) <= now;
            *cut += u64::from(is_late && !one.is_idle());
            !is_late
        });
    }

    /// Ends the oldest of those who do not take their answers, if these are too many bytes.
    fn bound_memory(&mut self) {
        let waiting = |connections: &[Connection]| connections.iter().map(Connection::waiting_bytes).sum::<usize>();
        while waiting(&self.connections) > self.limits.waiting_bytes {
            let writing = self.connections.iter().enumerate().filter(|(_, one)| one.waiting_bytes() > 0);
            let Some(oldest) = writing.min_by_key(|(_, one)| one.since()).map(|(index, _)| index) else { return };
            self.connections.remove(oldest);
            *self.cut.entry(Cut::Memory).or_default() += 1;
        }
    }

    /// The metrics about the server.
    fn about(&self) -> Batch {
        let mut batch = Batch::default();
        for (status, count) in &self.answered {
            batch.add(&metric::HTTP_REQUESTS, &[&status.to_string()], *count);
        }
        batch.add(&metric::HTTP_CONNECTIONS, &[], self.connections.len());
        for (cut, count) in &self.cut {
            batch.add(&metric::HTTP_CLOSED, &[cut.name()], *count);
        }
        batch
    }
}

impl Turn {
    fn response(&mut self, request: Request, collect: impl FnOnce() -> Exposition) -> Response {
        let Request { page, is_head, format, stays_open } = request;
        match page {
            Page::Start => Response::start(is_head, stays_open),
            Page::Health => Response::health(is_head, stays_open),
            Page::Metrics => Response::metrics(self.text(format, collect), format, is_head, stays_open),
        }
    }

    fn text(&mut self, format: Format, collect: impl FnOnce() -> Exposition) -> Arc<[u8]> {
        if let Some((_, text)) = self.texts.iter().find(|(known, _)| *known == format) {
            return Arc::clone(text);
        }
        let exposition = self.exposition.get_or_insert_with(collect);
        let text: Arc<[u8]> = render(exposition, format).into_bytes().into();
        self.texts.push((format, Arc::clone(&text)));
        text
    }
}

#[cfg(test)]
mod tests;
