//! The terminal: raw mode and back whatever happens, keys, the mouse, signals, sizes.

use crate::source::{Event, Live};
use crate::view::{Action, Key, Mouse, Palette, Playback, View, draw};
use firsttouch_monitor::{Monitor, Snapshot};
use firsttouch_system::launch::signals::{Notice, Signals};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{
    self, DisableMouseCapture, EnableMouseCapture, Event as TerminalEvent, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, MouseButton,
    MouseEventKind,
};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use std::io::{self, Stdout, stdin, stdout};
use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a wait lasts without any event.
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// SIGINT, SIGQUIT, SIGTERM, SIGHUP.
const ENDING: [i32; 4] = [2, 3, 15, 1];

/// EIO: the terminal was closed.
const TERMINAL_GONE: i32 = 5;
const HANGUP: i32 = 1;

/// How the screen was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// By a key.
    Quit,
    /// By Ctrl-C.
    Interrupted,
    /// By this signal.
    Signal(i32),
}

/// Snapshots that were recorded.
pub trait Recorded {
    /// How many there are: at least one.
    fn count(&self) -> usize;

    /// The snapshot with this number, from 0.
    ///
    /// # Errors
    /// When the record is damaged there.
    fn at(&mut self, number: usize) -> Result<Snapshot, String>;
}

/// The terminal in the state for a screen. Dropped, it is as before.
struct Screen {
    /// Never dropped: where the terminal is gone, its own drop would panic over a message that it cannot print.
    terminal: ManuallyDrop<Terminal<CrosstermBackend<Stdout>>>,
}

impl Screen {
    fn open() -> io::Result<Self> {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            before(panic);
        }));
        enable_raw_mode()?;
        let opened =
            execute!(stdout(), EnterAlternateScreen, EnableMouseCapture).and_then(|()| Terminal::new(CrosstermBackend::new(stdout())));
        match opened {
            Ok(terminal) => Ok(Self { terminal: ManuallyDrop::new(terminal) }),
            Err(error) => {
                restore();
                Err(error)
            }
        }
    }

    fn draw(&mut self, view: &mut View, palette: Palette) -> io::Result<()> {
        self.terminal.draw(|frame| draw(frame, view, palette)).map(|_| ())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
        let _ = self.terminal.show_cursor();
    }
}

fn restore() {
    let _ = execute!(stdout(), DisableMouseCapture, LeaveAlternateScreen);
    let _ = disable_raw_mode();
}

/// Shows what a monitor sees until the user leaves. Returns how, and the monitor.
///
/// # Errors
/// When the terminal cannot be written.
pub fn watch(mut live: Live, view: &mut View, palette: Palette, signals: &Signals) -> io::Result<(Left, Option<Monitor>)> {
    let left = {
        let mut screen = Screen::open()?;
        watch_on(&mut screen, &mut live, view, palette, signals)
    };
    // Whatever ended it: recorders are removed.
    let monitor = live.stop();
    match left {
        Err(error) if error.raw_os_error() == Some(TERMINAL_GONE) => Ok((Left::Signal(HANGUP), monitor)),
        left => Ok((left?, monitor)),
    }
}

fn watch_on(screen: &mut Screen, live: &mut Live, view: &mut View, palette: Palette, signals: &Signals) -> io::Result<Left> {
    let mut waiting: Option<Arc<Snapshot>> = None;
    loop {
        while let Some(event) = live.event() {
            match event {
                Event::Snapshot(snapshot) => waiting = Some(snapshot),
                Event::Ended(status) => {
                    view.has_ended = true;
                    view.message = Some(match status.code() {
                        Some(code) => format!("the program has ended with status {code}; these are its last figures (q leaves)"),
                        None => "the program has ended; its recorder was killed, so its status is not known (q leaves)".to_owned(),
                    });
                }
                Event::Failed(why) => view.message = Some(why),
            }
        }
        if let Some(snapshot) = waiting.take_if(|_| !view.is_paused) {
            view.show(snapshot);
        }
        screen.draw(view, palette)?;
        if let Some(left) = wait(signals, LONGEST_WAIT, Some(live.descriptor())) {
            return Ok(left);
        }
        for action in actions(view)? {
            match action {
                Action::Quit => return Ok(Left::Quit),
                Action::Interrupt => return Ok(Left::Interrupted),
                Action::Nothing | Action::Step(_) => {}
            }
        }
        live.ask(view.request(), view.delay);
    }
}

/// Shows a record until the user leaves.
///
/// # Errors
/// When the terminal cannot be written, or the record is damaged.
pub fn replay(record: &mut dyn Recorded, view: &mut View, palette: Palette, signals: &Signals) -> io::Result<Left> {
    let mut screen = Screen::open()?;
    let (mut at, last) = (0, record.count().saturating_sub(1));
    view.is_paused = true;
    let mut shown = None;
    let mut due = Instant::now() + view.delay;
    loop {
        if shown != Some(at) {
            view.show(Arc::new(record.at(at).map_err(io::Error::other)?));
            view.playback = Some(Playback { at, count: last + 1 });
            shown = Some(at);
        }
        screen.draw(view, palette)?;
        let left = if view.is_paused { LONGEST_WAIT } else { due.saturating_duration_since(Instant::now()) };
        if let Some(left) = wait(signals, left, None) {
            return Ok(left);
        }
        let was_paused = view.is_paused;
        for action in actions(view)? {
            match action {
                Action::Quit => return Ok(Left::Quit),
                Action::Interrupt => return Ok(Left::Interrupted),
                Action::Step(step) => at = at.saturating_add_signed(isize::try_from(step).unwrap_or(0)).min(last),
                Action::Nothing => {}
            }
        }
        if was_paused && !view.is_paused {
            due = Instant::now() + view.delay;
        }
        if !view.is_paused && Instant::now() >= due {
            due = Instant::now() + view.delay;
            view.is_paused = at >= last;
            at = (at + 1).min(last);
        }
    }
}

/// Waits for a key, a signal, or something else to read. Returns how a signal ends the screen.
fn wait(signals: &Signals, longest: Duration, other: Option<i32>) -> Option<Left> {
    let mut descriptors: Vec<i32> = std::iter::once(stdin().as_raw_fd()).chain(other).collect();
    match signals.wait(u64::try_from(longest.as_nanos()).unwrap_or(u64::MAX), &mut descriptors) {
        Some(Notice::Forward(signal) | Notice::Terminal(signal)) if ENDING.contains(&signal) => Some(Left::Signal(signal)),
        _ if !descriptors.contains(&stdin().as_raw_fd()) => Some(Left::Signal(HANGUP)),
        _ => None,
    }
}

/// What the keys and the mouse ask for that have waited.
fn actions(view: &mut View) -> io::Result<Vec<Action>> {
    let mut actions = Vec::new();
    while event::poll(Duration::ZERO)? {
        match event::read()? {
            TerminalEvent::Key(key) if key.kind != KeyEventKind::Release => actions.extend(key_of(key).map(|key| view.key(key))),
            TerminalEvent::Mouse(mouse) => {
                let mouse = match mouse.kind {
                    MouseEventKind::ScrollUp => Mouse::WheelUp,
                    MouseEventKind::ScrollDown => Mouse::WheelDown,
                    MouseEventKind::Down(MouseButton::Left) => Mouse::Click { column: mouse.column, row: mouse.row },
                    _ => continue,
                };
                view.mouse(mouse);
            }
            _ => {}
        }
    }
    Ok(actions)
}

fn key_of(event: KeyEvent) -> Option<Key> {
    let is_control = event.modifiers.contains(KeyModifiers::CONTROL);
    Some(match event.code {
        KeyCode::Char('c') if is_control => Key::Interrupt,
        KeyCode::Char(_) if is_control => return None,
        KeyCode::Char(letter) => Key::Char(letter),
        KeyCode::F(number) => Key::Function(number),
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Escape,
        KeyCode::Tab => Key::Tab,
        KeyCode::BackTab => Key::BackTab,
        KeyCode::Backspace => Key::Backspace,
        _ => return None,
    })
}
