//! A connection: it reads a request, writes the answer, and is read empty and closed, or reads again. It never waits: the server's loop does.

use super::request::{MOST_HEAD, Parsed, Refusal, Request, parse};
use super::response::Response;
use firsttouch_system::calls::ready::Watched;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

/// Bytes that are read at a time.
const AT_ONCE: usize = 4_096;
/// Bytes that are thrown away of a client that was refused and goes on sending.
const MOST_THROWN_AWAY: usize = 256 << 10;

enum State {
    /// Waits for a request, or for the rest of one.
    Reads,
    Writes(Response, usize),
    /// The answer to a refused request is written. What the client still sends is thrown away: closed at once, the client would lose the answer.
    Empties(usize),
}

/// What the server has to do for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing, until it is ready again.
    Wait,
    Answer(Request),
    Refuse(Refusal),
    /// It is over.
    Close,
}

/// The time that a client has for each state.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// For a whole request, since the connection or its first byte.
    pub request: Duration,
    /// Between two requests.
    pub idle: Duration,
    /// To take a whole answer.
    pub answer: Duration,
}

pub struct Connection {
    stream: TcpStream,
    input: Vec<u8>,
    state: State,
    /// When this state began.
    since: Instant,
    /// A request was answered on it.
    was_answered: bool,
}

impl Connection {
    /// # Errors
    /// When the connection cannot be made one that does not wait.
    pub fn new(stream: TcpStream, now: Instant) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        // Answers are written whole: to wait for more would only delay them.
        stream.set_nodelay(true)?;
        Ok(Self { stream, input: Vec::new(), state: State::Reads, since: now, was_answered: false })
    }

    #[must_use]
    pub fn watched(&self) -> Watched {
        match self.state {
            State::Writes(..) => Watched::writer(self.stream.as_raw_fd()),
            State::Reads | State::Empties(_) => Watched::reader(self.stream.as_raw_fd()),
        }
    }

    /// When its time is up.
    #[must_use]
    pub fn deadline(&self, patience: &Patience) -> Instant {
        self.since
            + match self.state {
                State::Reads if self.was_answered && self.input.is_empty() => patience.idle,
                State::Reads | State::Empties(_) => patience.request,
                State::Writes(..) => patience.answer,
            }
    }

    /// When its state began: when there are too many connections, the oldest goes.
    #[must_use]
    pub fn since(&self) -> Instant {
        self.since
    }

    /// Whether its end at its deadline is that of a client who simply does not ask any more.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        matches!(self.state, State::Reads | State::Empties(_)) && self.was_answered && self.input.is_empty()
    }

    /// Bytes of an answer that the client has not taken.
    #[must_use]
    pub fn waiting_bytes(&self) -> usize {
        match &self.state {
            State::Writes(response, written) => response.len() - written,
            State::Reads | State::Empties(_) => 0,
        }
    }

    /// Whether a further request may already be here: nothing wakes the loop for it.
    #[must_use]
    pub fn has_input(&self) -> bool {
        matches!(self.state, State::Reads)
            && self.was_answered
            && !self.input.is_empty()
            && !matches!(parse(&self.input), Parsed::Incomplete)
    }

    /// Goes on, now that it is ready, or has input.
    pub fn go_on(&mut self, now: Instant) -> Step {
        match &mut self.state {
            State::Reads => self.read(now),
            State::Writes(..) => self.write(now),
            State::Empties(left) => match self.stream.read(&mut [0; AT_ONCE]) {
                Ok(count @ 1..) if count < *left => {
                    *left -= count;
                    Step::Wait
                }
                Err(error) if is_early(&error) => Step::Wait,
                _ => Step::Close,
            },
        }
    }

    fn read(&mut self, now: Instant) -> Step {
        // Of a client that sends requests without waiting for answers, no more is taken than this.
        if self.input.len() < MOST_HEAD {
            let mut bytes = [0; AT_ONCE];
            match self.stream.read(&mut bytes) {
                // A client that has sent all it will may still wait for its answer.
                Ok(0) if self.input.is_empty() || parse(&self.input) == Parsed::Incomplete => return Step::Close,
                Ok(count) => {
                    if self.was_answered && self.input.is_empty() {
                        self.since = now;
                    }
                    self.input.extend_from_slice(bytes.get(..count).unwrap_or_default());
                }
                Err(error) if is_early(&error) => {}
                Err(_) => return Step::Close,
            }
        }
        match parse(&self.input) {
            Parsed::Incomplete => Step::Wait,
            Parsed::Request(request, length) => {
                self.input.drain(..length);
                Step::Answer(request)
            }
            Parsed::Refused(refusal) => Step::Refuse(refusal),
        }
    }

    /// Begins to answer.
    pub fn answer(&mut self, response: Response, now: Instant) -> Step {
        self.was_answered = true;
        self.since = now;
        self.state = State::Writes(response, 0);
        self.write(now)
    }

    fn write(&mut self, now: Instant) -> Step {
        let State::Writes(response, written) = &mut self.state else { return Step::Wait };
        while *written < response.len() {
            match self.stream.write(response.from(*written)) {
                Ok(0) => return Step::Close,
                Ok(count) => *written += count,
                Err(error) if is_early(&error) => return Step::Wait,
                Err(_) => return Step::Close,
            }
        }
        let stays_open = response.stays_open;
        self.since = now;
        if stays_open {
            // A client that asked for much does not keep the memory for it.
            self.input.shrink_to_fit();
            self.state = State::Reads;
            return Step::Wait;
        }
        self.input = Vec::new();
        self.state = State::Empties(MOST_THROWN_AWAY);
        if self.stream.shutdown(Shutdown::Write).is_err() { Step::Close } else { Step::Wait }
    }
}

/// Whether nothing can be read or written yet.
fn is_early(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
