//! Where snapshots come from: a thread that watches this machine.

use firsttouch_monitor::{Monitor, Request, Snapshot};
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Before the first rates, a snapshot comes soon.
const FIRST: Duration = Duration::from_millis(300);

/// What a snapshot is also given to, as a record. Returns what to say if that fails.
pub type Also = Box<dyn FnMut(&Snapshot) -> Result<(), String> + Send>;

enum Command {
    Ask(Request),
    Delay(Duration),
}

/// What comes from the thread.
pub enum Event {
    Snapshot(Arc<Snapshot>),
    /// The program that was started has ended.
    Ended(ExitStatus),
    /// A record could not be written, or the recorder of the program was killed.
    Failed(String),
}

/// A thread that watches this machine.
pub struct Live {
    commands: Option<Sender<Command>>,
    events: Receiver<Event>,
    wake: PipeReader,
    thread: Option<JoinHandle<Monitor>>,
    asked: Request,
    delay: Duration,
}

impl Live {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system allows no further thread or pipe.
    pub fn start(monitor: Monitor, first: Request, delay: Duration, also: Option<Also>) -> io::Result<Self> {
        let (commands, asked) = channel();
        let (tell, events) = channel();
        let (wake, waker) = io::pipe()?;
        let watch = move || watch(monitor, first, delay, also, &asked, &tell, waker);
        let thread = std::thread::Builder::new().name("monitor".to_owned()).spawn(watch)?;
        Ok(Self { commands: Some(commands), events, wake, thread: Some(thread), asked: first, delay })
    }

    /// A descriptor that can be read when there is an event.
    #[must_use]
    pub fn descriptor(&self) -> RawFd {
        self.wake.as_raw_fd()
    }

    /// Asks for other snapshots, if they are other ones.
    pub fn ask(&mut self, request: Request, delay: Duration) {
        let Some(commands) = &self.commands else { return };
        if std::mem::replace(&mut self.asked, request) != request {
            let _ = commands.send(Command::Ask(request));
        }
        if std::mem::replace(&mut self.delay, delay) != delay {
            let _ = commands.send(Command::Delay(delay));
        }
    }

    /// The next event, if there is one.
    pub fn event(&mut self) -> Option<Event> {
        let event = self.events.try_recv().ok()?;
        // A byte was written for it.
        let _ = self.wake.read_exact(&mut [0]);
        Some(event)
    }

    /// Ends the thread, and gives the monitor back.
    pub fn stop(mut self) -> Option<Monitor> {
        self.end()
    }

    fn end(&mut self) -> Option<Monitor> {
        self.commands = None;
        self.thread.take()?.join().ok()
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // The monitor removes its recorders and files.
        drop(self.end());
    }
}

fn watch(
    mut monitor: Monitor,
    mut request: Request,
    mut delay: Duration,
    mut also: Option<Also>,
    asked: &Receiver<Command>,
    tell: &Sender<Event>,
    mut waker: PipeWriter,
) -> Monitor {
    let mut send = |event: Event| {
        if tell.send(event).is_ok() {
            let _ = waker.write_all(&[0]);
        }
    };
    monitor.tick(request);
    let mut next = Instant::now() + FIRST.min(delay);
    let mut has_ended = false;
    loop {
        match asked.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Ok(Command::Ask(other)) => (request, next) = (other, Instant::now()),
            Ok(Command::Delay(other)) => (delay, next) = (other, next.min(Instant::now() + other)),
            Err(RecvTimeoutError::Disconnected) => return monitor,
            Err(RecvTimeoutError::Timeout) => {
                next = (next + delay).max(Instant::now());
                let snapshot = Arc::new(monitor.tick(request));
                if let Some(write) = &mut also
                    && let Err(why) = write(&snapshot)
                {
                    also = None;
                    send(Event::Failed(why));
                }
                send(Event::Snapshot(snapshot));
                if let Some(status) = monitor.launched_status().filter(|_| !has_ended) {
                    has_ended = true;
                    send(Event::Ended(status));
                }
                if let Some(why) = monitor.unobserved() {
                    send(Event::Failed(why));
                }
            }
        }
    }
}
