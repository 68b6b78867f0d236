//! The state of the screen, and how keys and the mouse change it.

use super::tables::{self, Kind, Order, Row};
use firsttouch_monitor::{Request, Snapshot, Window};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Delays that + and - choose from, ms.
const DELAYS_MS: [u64; 9] = [100, 200, 500, 1000, 2000, 3000, 5000, 10_000, 60_000];
/// The longest text of a search or filter.
const LONGEST: usize = 40;

/// A key, without the terminal's details.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    Char(char),
    Function(u8),
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Home,
    End,
    Enter,
    Escape,
    Tab,
    BackTab,
    Backspace,
    Interrupt,
}

/// What the mouse does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mouse {
    WheelUp,
    WheelDown,
    Click { column: u16, row: u16 },
}

/// What the loop has to do after a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Nothing,
    Quit,
    /// Ctrl-C: as [`Action::Quit`], and a program that was started is interrupted.
    Interrupt,
    Step(i32),
}

/// Where a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Playback {
    pub at: usize,
    pub count: usize,
}

/// The pages of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    Table(Kind),
    /// Which node accesses which.
    Heat,
}

const OVERVIEW: [Page; 2] = [Page::Table(Kind::Processes), Page::Table(Kind::Nodes)];
const CLOSE: [Page; 4] = [Page::Table(Kind::Threads), Page::Table(Kind::Objects), Page::Heat, Page::Table(Kind::Mappings)];

/// A text that is being typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prompt {
    Search,
    Filter,
}

/// Where the drawing put things, for the mouse.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// The row of the table's titles; rows of the table follow.
    pub titles: u16,
    pub rows: u16,
    /// The first column and the last one of each title, and its place in the table.
    pub columns: Vec<(u16, u16, usize)>,
    pub tabs: Vec<(u16, u16, usize)>,
    pub tabs_row: u16,
}

/// The state of the screen.
pub struct View {
    pub snapshot: Arc<Snapshot>,
    pub is_paused: bool,
    pub shows_help: bool,
    pub prompt: Option<Prompt>,
    pub search: String,
    pub filter: String,
    pub window: Window,
    pub delay: Duration,
    pub close: Option<i32>,
    pub page: Page,
    /// What a record says of its place; `None` when live.
    pub playback: Option<Playback>,
    /// All that is watched has ended: its last figures stay.
    pub has_ended: bool,
    /// What is said at the bottom, until a key is pressed.
    pub message: Option<String>,
    /// The first row that is shown.
    pub first: usize,
    pub places: Places,
    orders: BTreeMap<usize, Order>,
    selected: BTreeMap<usize, i64>,
}

impl View {
    #[must_use]
    pub fn new(window: Window, delay: Duration, close: Option<i32>) -> Self {
        Self {
            snapshot: Arc::new(Snapshot::default()),
            is_paused: false,
            shows_help: false,
            prompt: None,
            search: String::new(),
            filter: String::new(),
            window,
            delay,
            close,
            page: if close.is_some() { CLOSE[0] } else { OVERVIEW[0] },
            playback: None,
            has_ended: false,
            message: None,
            first: 0,
            places: Places::default(),
            orders: BTreeMap::new(),
            selected: BTreeMap::new(),
        }
    }

    /// What the snapshots shall be about.
    #[must_use]
    pub fn request(&self) -> Request {
        Request { window: self.window, close: self.close }
    }

    /// Shows a new snapshot. The process that was looked at closely may have ended. Where all that is watched has, the snapshot before stays.
    pub fn show(&mut self, snapshot: Arc<Snapshot>) {
        let lives = |snapshot: &Snapshot| snapshot.processes.iter().any(|row| !row.has_ended);
        if self.playback.is_none() && !lives(&snapshot) && lives(&self.snapshot) {
            if !self.has_ended {
                self.message = Some("it has ended; these are its last figures (q leaves)".to_owned());
            }
            self.has_ended = true;
            return;
        }
        self.has_ended &= !lives(&snapshot);
        if let Some(pid) = self.close
            && !snapshot.processes.is_empty()
            && !snapshot.processes.iter().any(|row| row.pid == pid && !row.has_ended)
        {
            self.message = Some(format!("process {pid} has ended"));
            self.leave();
        }
        self.snapshot = snapshot;
    }

    /// The pages that Tab goes through.
    #[must_use]
    pub fn pages(&self) -> &'static [Page] {
        if self.close.is_some() { &CLOSE } else { &OVERVIEW }
    }

    #[must_use]
    pub fn title(page: Page) -> &'static str {
        match page {
            Page::Table(Kind::Nodes) => "Nodes",
            Page::Table(Kind::Processes) => "Processes",
            Page::Table(Kind::Threads) => "Threads",
            Page::Table(Kind::Objects) => "Objects",
            Page::Table(Kind::Mappings) => "Mappings",
            Page::Heat => "Node x node",
        }
    }

    #[must_use]
    pub fn order(&self, kind: Kind) -> Order {
        self.orders.get(&(kind as usize)).copied().unwrap_or(kind.first_order())
    }

    /// The rows of the table that is shown.
    #[must_use]
    pub fn rows(&self) -> Vec<Row> {
        match self.page {
            Page::Table(kind) => tables::rows(kind, &self.snapshot, &self.filter, self.order(kind)),
            Page::Heat => Vec::new(),
        }
    }

    /// The selected row: where it was, or the first one.
    #[must_use]
    pub fn selected(&self, rows: &[Row]) -> usize {
        let Page::Table(kind) = self.page else { return 0 };
        let key = self.selected.get(&(kind as usize));
        key.and_then(|key| rows.iter().position(|row| row.key == *key)).unwrap_or(0)
    }

    fn select(&mut self, row: &Row) {
        if let Page::Table(kind) = self.page {
            self.selected.insert(kind as usize, row.key);
        }
    }

    fn move_by(&mut self, rows: isize) {
        let list = self.rows();
        let at = self.selected(&list).saturating_add_signed(rows).min(list.len().saturating_sub(1));
        if let Some(row) = list.get(at) {
            self.select(row);
        }
    }

    fn turn(&mut self, step: usize) {
        let pages = self.pages();
        let at = pages.iter().position(|page| *page == self.page).unwrap_or(0);
        self.open(pages[(at + step) % pages.len()]);
    }

    fn open(&mut self, page: Page) {
        self.page = page;
        self.first = 0;
    }

    fn enter(&mut self) {
        let rows = self.rows();
        let Some(row) = rows.get(self.selected(&rows)) else { return };
        if self.page == Page::Table(Kind::Processes) {
            let has_details = self.snapshot.detail.as_ref().is_some_and(|detail| i64::from(detail.pid) == row.key);
            if self.playback.is_some() && !has_details {
                self.message = Some(format!("this record has no details of process {} here", row.key));
                return;
            }
            self.close = i32::try_from(row.key).ok();
            self.filter.clear();
            self.open(CLOSE[0]);
        }
    }

    fn leave(&mut self) {
        self.close = None;
        self.filter.clear();
        self.open(OVERVIEW[0]);
    }

    fn sort(&mut self, change: impl FnOnce(Order, usize) -> Order) {
        let Page::Table(kind) = self.page else { return };
        self.orders.insert(kind as usize, change(self.order(kind), kind.columns().len()));
    }

    fn sort_by(&mut self, title: &str) {
        let Page::Table(kind) = self.page else { return };
        if let Some(column) = kind.columns().iter().position(|column| column.title == title) {
            self.sort(|_, _| Order { column, descending: true });
        }
    }

    /// Goes to the next row with the text of the search; `skip`: not the selected one.
    fn find(&mut self, skip: usize) {
        let rows = self.rows();
        let at = self.selected(&rows);
        let next = (0..rows.len()).map(|step| (at + skip + step) % rows.len()).find(|at| tables::contains(&rows[*at], &self.search));
        match next {
            Some(at) => self.select(&rows[at]),
            None => self.message = Some(format!("nothing contains '{}'", self.search)),
        }
    }

    fn change_delay(&mut self, longer: bool) {
        let now = u64::try_from(self.delay.as_millis()).unwrap_or(u64::MAX);
        let next = match longer {
            true => DELAYS_MS.into_iter().find(|ms| *ms > now),
            false => DELAYS_MS.into_iter().rev().find(|ms| *ms < now),
        };
        self.delay = next.map_or(self.delay, Duration::from_millis);
    }

    fn set_window(&mut self, window: Window) {
        if self.playback.is_some() {
            self.message = Some("the window of a record is the one it was taken with".to_owned());
        } else {
            self.window = window;
        }
    }

    /// A key was pressed.
    pub fn key(&mut self, key: Key) -> Action {
        self.message = None;
        if key == Key::Interrupt {
            return Action::Interrupt;
        }
        if self.prompt.is_some() {
            self.type_key(key);
            return Action::Nothing;
        }
        if self.shows_help {
            self.shows_help = false;
            return Action::Nothing;
        }
        let page = isize::try_from(self.places.rows.max(2) - 1).unwrap_or(1);
        match key {
            Key::Up => self.move_by(-1),
            Key::Down => self.move_by(1),
            Key::PageUp => self.move_by(-page),
            Key::PageDown => self.move_by(page),
            Key::Home => self.move_by(isize::MIN),
            Key::End => self.move_by(isize::MAX),
            Key::Tab => self.turn(1),
            Key::BackTab => self.turn(self.pages().len() - 1),
            Key::Enter => self.enter(),
            Key::Left | Key::Char('[') if self.playback.is_some() => return Action::Step(-1),
            Key::Right | Key::Char(']') if self.playback.is_some() => return Action::Step(1),
            Key::Escape if !self.filter.is_empty() => self.filter.clear(),
            Key::Escape if self.close.is_some() => self.leave(),
            Key::Char('q') | Key::Function(10) => return Action::Quit,
            Key::Char('h' | '?') | Key::Function(1) => self.shows_help = true,
            Key::Char('/') | Key::Function(3) => {
                self.search.clear();
                self.prompt = Some(Prompt::Search);
            }
            Key::Char('n') if !self.search.is_empty() => self.find(1),
            Key::Char('\\') | Key::Function(4) => self.prompt = Some(Prompt::Filter),
            Key::Char('>') | Key::Function(6) => self.sort(|order, count| Order { column: (order.column + 1) % count, ..order }),
            Key::Char('<') => self.sort(|order, count| Order { column: (order.column + count - 1) % count, ..order }),
            Key::Char('I') => self.sort(|order, _| Order { descending: !order.descending, ..order }),
            Key::Char('P') => self.sort_by("CPU%"),
            Key::Char('M') => self.sort_by("RES"),
            Key::Char('R') => self.sort_by("REMOTE"),
            Key::Char('1') => self.set_window(Window::Short),
            Key::Char('2') => self.set_window(Window::Medium),
            Key::Char('3') => self.set_window(Window::Long),
            Key::Char('w') => self.set_window(self.window.next()),
            Key::Char('p' | ' ') => self.is_paused = !self.is_paused,
            Key::Char('+') => self.change_delay(true),
            Key::Char('-') => self.change_delay(false),
            _ => {}
        }
        Action::Nothing
    }

    /// A key while a text is typed.
    fn type_key(&mut self, key: Key) {
        let prompt = self.prompt;
        let text = if prompt == Some(Prompt::Search) { &mut self.search } else { &mut self.filter };
        match key {
            Key::Char(letter) if !letter.is_control() && text.chars().count() < LONGEST => text.push(letter),
            Key::Backspace => drop(text.pop()),
            Key::Enter => self.prompt = None,
            Key::Escape => {
                text.clear();
                self.prompt = None;
            }
            _ => {}
        }
        if prompt == Some(Prompt::Search) && !self.search.is_empty() {
            self.find(0);
        }
    }

    /// The mouse was used.
    pub fn mouse(&mut self, mouse: Mouse) {
        match mouse {
            Mouse::WheelUp => self.move_by(-3),
            Mouse::WheelDown => self.move_by(3),
            Mouse::Click { column, row } => self.click(column, row),
        }
    }

    fn click(&mut self, column: u16, row: u16) {
        if self.shows_help {
            self.shows_help = false;
            return;
        }
        let hit = |places: &[(u16, u16, usize)]| places.iter().find(|(from, to, _)| (*from..=*to).contains(&column)).map(|(.., at)| *at);
        if row == self.places.tabs_row
            && let Some(at) = hit(&self.places.tabs)
        {
            self.open(self.pages()[at]);
            return;
        }
        if row == self.places.titles
            && let Some(at) = hit(&self.places.columns)
        {
            self.sort(|order, _| Order { column: at, descending: order.column != at || !order.descending });
            return;
        }
        let Some(at) = row.checked_sub(self.places.titles + 1).filter(|at| *at < self.places.rows) else { return };
        let rows = self.rows();
        let at = self.first + usize::from(at);
        if at < rows.len() && at == self.selected(&rows) {
            self.enter();
        } else if let Some(row) = rows.get(at) {
            self.select(row);
        }
    }
}
