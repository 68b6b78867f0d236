use super::state::Page;
use super::tables::Kind;
use super::*;
use firsttouch_monitor::{
    Cost, Detail, JudgedMachine, NodeRow, ObjectRow, ProcessRow, Remote, SCHEMA, Snapshot, SystemRow, ThreadRow, Window,
};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

fn figure(share: f64, width: f64) -> Remote {
    Remote {
        share: Some(share),
        interval: Some([share - width / 2.0, share + width / 2.0]),
        samples: 812,
        source: Some("sample".into()),
        covers: Some(0.9),
        ..Remote::default()
    }
}

fn process(pid: i32, command: &str, cpu: f64, remote: Remote) -> ProcessRow {
    ProcessRow {
        pid,
        parent: 1,
        user: "me".into(),
        name: command.into(),
        command: format!("/opt/bin/{command} --steps 100"),
        state: 'R',
        threads: 8,
        cpu: Some(cpu),
        resident_bytes: 1 << 30,
        nodes: Some(BTreeMap::from([(0, 900 << 20), (1, 124 << 20)])),
        remote,
        ..ProcessRow::default()
    }
}

fn snapshot() -> Snapshot {
    let gib = 1u64 << 30;
    let node = |node: u32| NodeRow {
        node,
        cpus: 4,
        cpu: Some(1.5 + f64::from(node)),
        memory_total_bytes: Some(16 * gib),
        memory_free_bytes: Some((3 + u64::from(node)) * gib),
        hits_per_s: Some(1200.0),
        misses_per_s: Some(0.0),
        foreign_per_s: Some(0.0),
        accesses_in: Some(0.2),
        accesses_out: Some(0.05),
    };
    Snapshot {
        schema: SCHEMA.into(),
        time_s: 1_795_689_602.0,
        window_s: 10.0,
        seen_s: 10.0,
        host: "nine".into(),
        machine: JudgedMachine { name: "nine".into(), nodes: 2, is_virtual: false },
        system: SystemRow { cpus: 8, processes: 3, hint_faults_per_s: Some(0.0), pages_migrated_per_s: Some(12.0), ..SystemRow::default() },
        nodes: vec![node(0), node(1)],
        processes: vec![
            process(41, "idle", 0.0, Remote::unknown("not sampled: it uses less than 5 % of a CPU")),
            process(42, "solver", 3.9, figure(0.49, 0.06)),
            process(43, "database", 0.7, figure(0.05, 0.3)),
        ],
        detail: Some(Detail {
            pid: 42,
            name: "solver".into(),
            threads: (0..8)
                .map(|at| ThreadRow {
                    tid: 42 + at,
                    name: "solver".into(),
                    state: 'R',
                    cpu: Some(0.49),
                    last_cpu: u32::try_from(at).unwrap_or(0),
                    node: Some(u32::from(at >= 4)),
                    allowed_cpus: Some("0-7".into()),
                    remote: Some(if at >= 4 { 1.0 } else { 0.0 }),
                    hottest: Some("A".into()),
                    ..ThreadRow::default()
                })
                .collect(),
            objects: vec![ObjectRow {
                id: 1,
                name: "A".into(),
                line: Some("solver.c:41".into()),
                bytes: 900 << 20,
                share: Some(0.9),
                pages_by_node: vec![1.0, 0.0],
                users_by_node: vec![0.5, 0.5],
                remote: figure(0.5, 0.06),
            }],
            matrix: vec![vec![0.5, 0.0], vec![0.5, 0.0]],
            remote: figure(0.49, 0.06),
            ..Detail::default()
        }),
        cost: Cost { own_cpu: Some(0.005), recorders_cpu: Some(0.004), sampled: 2 },
        notes: Vec::new(),
    }
}

fn view() -> View {
    let mut view = View::new(Window::Medium, Duration::from_secs(2), None);
    view.show(Arc::new(snapshot()));
    view
}

fn screen(view: &mut View, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, view, Palette { has_colours: false })).unwrap();
    let buffer = terminal.backend().buffer().clone();
    (0..height).map(|y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned()).collect()
}

/// Check the whole screen of the processes at the size of most terminals.
#[test]
fn processes_at_80_by_24() {
    let lines = screen(&mut view(), 80, 24);
    assert_eq!(lines[0], "firsttouch top - nine 10:40:02  window 10 s  delay 2 s  remote on nine");
    assert!(lines[1].starts_with("node 0 [||||") && lines[1].ends_with("13G/16G]") && lines[1].contains("150/400%]"), "{}", lines[1]);
    assert!(lines[2].starts_with("node 1 [||||") && lines[2].contains("250/400%]"), "{}", lines[2]);
    assert_eq!(lines[3], "3 processes, 2 sampled; cost 0.5%+0.4% CPU; hinting 0/s, moved 12/s");
    assert_eq!(lines[4], " Processes   Nodes");
    assert_eq!(lines[5], "    PID USER      CPU%v   RES  THR NODES         REMOTE        COMMAND");
    assert_eq!(lines[6], "     42 me        390.0  1.0G    8 0:900M 1:124M 49% [46,52]   solver --steps 1~");
    assert_eq!(lines[7], "     43 me         70.0  1.0G    8 0:900M 1:124M 5% [-10,20]   database --steps~");
    assert_eq!(lines[8], "     41 me          0.0  1.0G    8 0:900M 1:124M -             idle --steps 100");
    assert!(lines[9..22].iter().all(String::is_empty), "{lines:#?}");
    assert_eq!(lines[22], "process 42: the share covers 90 % of the accesses beyond caches; 812 samples");
    assert!(lines[23].starts_with("F1Help TabView EnterThreads, objects"), "{}", lines[23]);
}

/// Check that a wide screen has all columns, and a tiny one the most important ones.
#[test]
fn columns_follow_the_width() {
    let wide = screen(&mut view(), 120, 40);
    assert!(wide[5].contains("SOURCE") && wide[6].contains("/opt/bin/solver --steps 100"), "{wide:#?}");
    let tiny = screen(&mut view(), 20, 5);
    assert_eq!(tiny.len(), 5);
    assert!(tiny[1].contains("PID") && tiny[2].contains("42"), "{tiny:#?}");
}

/// Check that each page can be drawn at each size, also with help and without any snapshot.
#[test]
fn no_size_panics() {
    for (width, height) in [(1, 1), (2, 2), (20, 5), (5, 20), (80, 8), (80, 16), (80, 24), (120, 40), (300, 3), (7, 100)] {
        for page in [
            Page::Table(Kind::Nodes),
            Page::Table(Kind::Processes),
            Page::Table(Kind::Threads),
            Page::Table(Kind::Objects),
            Page::Table(Kind::Mappings),
            Page::Heat,
        ] {
            for (help, empty) in [(false, false), (true, false), (false, true)] {
                let mut view = view();
                view.shows_help = help;
                view.page = page;
                if empty {
                    view.snapshot = Arc::new(Snapshot::default());
                }
                screen(&mut view, width, height);
                view.mouse(Mouse::Click { column: width, row: height });
                view.key(Key::PageDown);
            }
        }
    }
}

/// Check the way into a process and back, and its pages.
#[test]
fn a_process_is_looked_at_closely() {
    let mut view = view();
    screen(&mut view, 80, 24);
    assert_eq!(view.key(Key::Enter), Action::Nothing);
    assert_eq!(view.request().close, Some(42));
    let lines = screen(&mut view, 80, 24);
    assert_eq!(lines[4], " Threads   Objects   Node x node   Mappings   42 solver: 49% [46,52] remote");
    assert_eq!(lines[6], "     42 R   49.0    0     0      - 0-7           0% A                solver");
    view.key(Key::Tab);
    let lines = screen(&mut view, 80, 24);
    assert_eq!(lines[6], "   90%  900M 0:100%        0:50% 1:50%   50% [47,53]   solver.c:41      A");
    view.key(Key::Tab);
    let lines = screen(&mut view, 80, 24);
    assert_eq!((lines[7].as_str(), lines[8].as_str()), ("     0    50%    0%", "     1    50%    0%"));
    view.key(Key::Escape);
    assert_eq!(view.request().close, None);
}

/// Check that a process that ends while it is looked at is left, with a word on it.
#[test]
fn a_process_may_end() {
    let mut view = view();
    view.key(Key::Enter);
    let mut later = snapshot();
    later.processes.retain(|row| row.pid != 42);
    view.show(Arc::new(later));
    assert_eq!(view.request().close, None);
    assert!(screen(&mut view, 80, 24)[22].contains("process 42 has ended"));
}

fn keys(view: &mut View, keys: &str) {
    keys.chars().for_each(|key| {
        view.key(Key::Char(key));
    });
}

fn first_row(view: &mut View) -> String {
    screen(view, 80, 24)[6].split_whitespace().next().unwrap_or_default().to_owned()
}

/// Check sorting by keys and by clicks, search and filter.
#[test]
fn rows_are_sorted_searched_and_filtered() {
    let mut view = view();
    assert_eq!(first_row(&mut view), "42");
    keys(&mut view, "I");
    assert_eq!(first_row(&mut view), "41");
    keys(&mut view, "R");
    assert_eq!(first_row(&mut view), "42");
    view.mouse(Mouse::Click { column: 5, row: 5 });
    assert_eq!(first_row(&mut view), "43");
    view.mouse(Mouse::Click { column: 5, row: 5 });
    assert_eq!(first_row(&mut view), "41");
    keys(&mut view, "/DATA");
    assert_eq!(screen(&mut view, 80, 24)[22], "search: DATA_");
    view.key(Key::Enter);
    let rows = view.rows();
    assert_eq!(rows[view.selected(&rows)].key, 43);
    keys(&mut view, "\\solv");
    view.key(Key::Enter);
    assert_eq!(view.rows().len(), 1);
    view.key(Key::Escape);
    assert_eq!(view.rows().len(), 3);
    view.mouse(Mouse::Click { column: 5, row: 7 });
    let rows = view.rows();
    assert_eq!(view.selected(&rows), 1);
}

/// Check the keys for windows, delay, pause, pages, steps of a record, and the end.
#[test]
fn keys_do_what_the_help_says() {
    let mut view = view();
    keys(&mut view, "3");
    assert_eq!(view.request().window, Window::Long);
    keys(&mut view, "w");
    assert_eq!(view.request().window, Window::Short);
    keys(&mut view, "+");
    assert_eq!(view.delay, Duration::from_secs(3));
    keys(&mut view, "---");
    assert_eq!(view.delay, Duration::from_millis(500));
    keys(&mut view, " ");
    assert!(view.is_paused && screen(&mut view, 80, 24)[0].contains("PAUSED"));
    view.key(Key::Tab);
    assert!(screen(&mut view, 80, 24)[5].contains("MISS/s"));
    assert_eq!(view.key(Key::Right), Action::Nothing);
    view.playback = Some(Playback { at: 3, count: 9 });
    assert_eq!([view.key(Key::Right), view.key(Key::Char('['))], [Action::Step(1), Action::Step(-1)]);
    assert!(screen(&mut view, 80, 24)[0].contains("RECORD 4/9"));
    keys(&mut view, "h");
    assert!(screen(&mut view, 80, 24)[0].contains("keys"));
    assert_eq!(view.key(Key::Char('q')), Action::Nothing, "it closes the help");
    assert_eq!(
        [view.key(Key::Char('q')), view.key(Key::Function(10)), view.key(Key::Interrupt)],
        [Action::Quit, Action::Quit, Action::Interrupt]
    );
}

/// Check that uncertain figures are dim, also without colours, and that a share is coloured by its size only with colours.
#[test]
fn uncertain_figures_are_dim() {
    use ratatui::style::{Color, Modifier};
    let mut view = view();
    view.key(Key::End);
    for has_colours in [true, false] {
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        terminal.draw(|frame| draw(frame, &mut view, Palette { has_colours })).unwrap();
        let buffer = terminal.backend().buffer().clone();
        let (certain, uncertain) = (buffer[(50, 6)].style(), buffer[(50, 7)].style());
        assert_eq!(certain.fg == Some(Color::Red), has_colours);
        assert!(!certain.add_modifier.contains(Modifier::DIM) && uncertain.add_modifier.contains(Modifier::DIM));
    }
}

/// Check that figures of few samples are dim, and that the number of samples is said.
#[test]
fn few_samples_are_said() {
    use ratatui::style::Modifier;
    let mut few = snapshot();
    if let Some(detail) = &mut few.detail {
        detail.objects[0].remote = Remote { samples: 3, ..Remote::unknown("3 samples are too few") };
        detail.remote = Remote { samples: 9, ..figure(0.5, 0.4) };
    }
    let mut view = view();
    view.key(Key::Enter);
    view.show(Arc::new(few));
    view.page = Page::Table(Kind::Objects);
    assert_eq!(screen(&mut view, 80, 24)[22], "A: 3 samples are too few");
    view.page = Page::Heat;
    assert!(screen(&mut view, 80, 24)[6].ends_with("n = 9"));
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
    terminal.draw(|frame| draw(frame, &mut view, Palette { has_colours: false })).unwrap();
    let buffer = terminal.backend().buffer().clone();
    assert!(buffer[(10, 7)].style().add_modifier.contains(Modifier::DIM));
}

/// Check that the last figures stay when all that is watched has ended, also those of the process that is looked at.
#[test]
fn last_figures_stay() {
    let mut view = view();
    view.key(Key::Enter);
    let mut later = snapshot();
    later.processes.retain(|row| row.pid == 42);
    view.show(Arc::new(later.clone()));
    later.processes[0].has_ended = true;
    later.processes[0].remote = Remote::unknown("it has ended");
    view.show(Arc::new(later.clone()));
    later.processes.clear();
    view.show(Arc::new(later));
    assert_eq!(view.request().close, Some(42));
    let lines = screen(&mut view, 80, 24);
    assert!(lines[0].contains("ENDED") && lines[4].contains("42 solver: 49% [46,52] remote"), "{lines:#?}");
    assert!(lines[22].starts_with("it has ended"), "{lines:#?}");
    let mut view = View::new(Window::Medium, Duration::from_secs(2), None);
    view.has_ended = true;
    assert!(screen(&mut view, 80, 24)[0].contains("it ended before the first figures"));
}

/// Check that a record says that it has no details of a process.
#[test]
fn records_without_details_say_so() {
    let mut view = view();
    let mut recorded = snapshot();
    recorded.detail = None;
    view.playback = Some(Playback { at: 0, count: 1 });
    view.show(Arc::new(recorded));
    view.key(Key::Enter);
    assert_eq!(view.request().close, None);
    assert_eq!(screen(&mut view, 80, 24)[22], "this record has no details of process 42 here");
}

/// Check that long remarks have two lines, and that virtual nodes are called so.
#[test]
fn lines_are_not_cut() {
    let mut view = view();
    let mut long = snapshot();
    long.machine.is_virtual = true;
    long.processes[1].remote =
        Remote::unknown("A (93 % of its accesses): it ran before, so nobody knows which thread touched its pages first");
    view.show(Arc::new(long));
    let lines = screen(&mut view, 80, 24);
    assert!(lines[21].starts_with("process 42: no remote share: A") && lines[22].ends_with("first"), "{lines:#?}");
    view.key(Key::Enter);
    assert!(screen(&mut view, 80, 24)[5].contains(" VNODE "));
}

/// Check that the age of a figure is printed.
#[test]
fn figures_have_an_age() {
    let mut view = view();
    let mut old = snapshot();
    old.processes[1].remote = Remote { until_s: Some(old.time_s - 14.2), ..figure(0.5, 0.05) };
    view.show(Arc::new(old));
    let remark = screen(&mut view, 80, 24)[21..23].join(" ");
    assert!(remark.contains("812 samples, the newest 14 s ago"), "{remark}");
}
