//! Whether code is the body of an OpenMP task, or of a loop with a dynamic schedule. Any thread of the team may execute a task, another one each time, so memory that tasks use has no
//! owners, whatever a run happens to show, and there is no loop whose schedule could be that of the initialisation. A dynamic or guided schedule
//! deals out parts as threads become free: few samples may show owners by chance, and do not show whether each thread reads all of it.
//!
//! A function that the runtime's waiting calls is a task: threads execute tasks while they wait for others. Where a stack is cut off, a function is
//! taken for a task if the source calls it in one, or in a function that it calls in one: of a recursive function, the innermost frames are all that is
//! known.
//!
//! GNU's compiler makes functions of the same names from tasks and from parallel regions, and its runtime calls both, so the source decides: the innermost
//! directive around the line.

use crate::Sources;
use crate::code::fortran::{Fortran, is_called};
use crate::code::regions::{Directive, File};
use crate::code::tokens::Kind;
use crate::evidence::Hit;
use crate::names::Language;
use crate::partition::{Partition, PartitionKind};
use crate::source_code::CodeLocations;
use firsttouch_model::rows::{Frame, Id};
use hashbrown::HashMap;
use std::cell::RefCell;
use std::collections::BTreeSet;

/// Memory is used by tasks if they make at least this fraction of its accesses.
const MOSTLY: f64 = 0.8;
/// In names of functions that compilers make from tasks, and from tasks or parallel regions.
const TASK: &str = ".omp_task";
const OUTLINED: &[&str] = &["_omp_fn.", "omp_outlined", ".omp_task", ".DIR.OMP.", "__par_", "__nv_"];
/// Functions of runtimes in which a thread executes tasks: what they call is one.
const SCHEDULING: &[&str] = &[
    "GOMP_taskwait",
    "GOMP_taskgroup_end",
    "GOMP_task",
    "GOMP_barrier",
    "__kmp_invoke_task",
    "__kmpc_omp_taskwait",
    "__kmpc_omp_task",
    "__kmpc_end_taskgroup",
    "__kmpc_barrier",
];
/// In paths of the sources of installed libraries.
const SYSTEM: &[&str] = &["/usr/include/", "/usr/local/include/", "/include/c++/"];
/// The outermost function of a program's own: the stack is whole.
const OUTERMOST: &[&str] = &["main", "MAIN__", "_start"];
/// Functions between a task and the one of a frame that are looked for in the source.
const CALLERS: u32 = 3;
/// Calls of a function that are looked at.
const MOST_CALLS: usize = 64;
/// What has a list in brackets in front of the name of a function.
const ATTRIBUTES: &[&str] = &["__attribute__", "__attribute", "__declspec", "alignas", "decltype", "requires", "explicit"];
/// Schedules that deal parts out as threads become free.
const DYNAMIC: &[&str] = &["dynamic", "guided"];
/// Directives that say which thread executes a statement.
const DIVIDING: &[&str] = &["task", "taskloop", "parallel", "for", "do", "sections", "single", "master", "masked", "loop", "distribute"];

/// The sites of a program, each looked up once.
pub struct Tasks<'a> {
    places: &'a CodeLocations<'a>,
    files: RefCell<HashMap<String, Option<Text>>>,
    known: RefCell<HashMap<Id, Dealt>>,
    /// Whether a source file calls a function in a task.
    called: RefCell<HashMap<(String, String), bool>>,
    /// Whether a source file makes tasks.
    with_tasks: RefCell<HashMap<String, bool>>,
}

/// How the threads of a team get the work around a place in the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dealt {
    /// By a fixed schedule, or not at all.
    Fixed,
    /// A loop's parts, as threads become free.
    Dynamic,
    Tasks,
    /// The stack is cut off inside a library's code, and does not show who called it.
    Unknown,
}

enum Text {
    C(File),
    Fortran(Fortran),
}

impl Text {
    fn read(sources: &dyn Sources, path: &str) -> Option<Self> {
        match Language::of(path)? {
            Language::C | Language::Cpp => File::read(sources, path).map(Self::C),
            Language::Fortran => Fortran::read(sources, path).map(Self::Fortran),
            _ => None,
        }
    }

    fn directives_around(&self, line: u32) -> Option<Vec<Directive>> {
        match self {
            Self::C(file) => file.directives_around(file.on_line(line).start),
            Self::Fortran(file) => file.directives_around(line),
        }
    }
}

impl<'a> Tasks<'a> {
    #[must_use]
    pub fn new(places: &'a CodeLocations<'a>) -> Self {
        Self { places, files: RefCell::default(), known: RefCell::default(), called: RefCell::default(), with_tasks: RefCell::default() }
    }

    /// A partition, if the accesses (`hits`) show it. Any thread may execute a task, whatever parts a run happens to show.
    #[must_use]
    pub fn partition(&self, found: Partition, hits: &[Hit]) -> Partition {
        if found.kind == PartitionKind::Single {
            return found;
        }
        match self.dealt(hits) {
            Dealt::Tasks => Partition::of_tasks(),
            Dealt::Dynamic => found.of_dynamic_loop(hits.len()),
            Dealt::Fixed | Dealt::Unknown => found,
        }
    }

    /// Whether the source says that the work at this place goes to whichever thread is free.
    #[must_use]
    pub fn goes_to_any_thread(&self, site: Id) -> bool {
        matches!(self.dealt_at(site), Dealt::Dynamic | Dealt::Tasks)
    }

    /// What makes most of these accesses.
    fn dealt(&self, hits: &[Hit]) -> Dealt {
        let (mut of_tasks, mut dynamic, mut all) = (0.0, 0.0, 0.0);
        for (site, rate) in hits.iter().flat_map(|hit| &hit.sites) {
            let dealt = site.map(|site| self.dealt_at(site));
            all += if dealt == Some(Dealt::Unknown) { 0.0 } else { *rate };
            match dealt {
                Some(Dealt::Tasks) => of_tasks += rate,
                Some(Dealt::Dynamic) => dynamic += rate,
                Some(Dealt::Fixed | Dealt::Unknown) | None => {}
            }
        }
        match () {
            () if all > 0.0 && of_tasks >= MOSTLY * all => Dealt::Tasks,
            () if all > 0.0 && of_tasks + dynamic >= MOSTLY * all => Dealt::Dynamic,
            () => Dealt::Fixed,
        }
    }

    fn dealt_at(&self, site: Id) -> Dealt {
        if let Some(known) = self.known.borrow().get(&site) {
            return *known;
        }
        let dealt = self.dealt_around(self.places.frames(Some(site)));
        self.known.borrow_mut().insert(site, dealt);
        dealt
    }

    /// Innermost first: the first function around which there is a directive that divides work decides.
    fn dealt_around(&self, frames: &[Frame]) -> Dealt {
        let has = |part: &&str| frames.iter().filter_map(|frame| frame.function.as_deref()).any(|name| name.contains(part));
        let executes_tasks = |frame: &Frame| frame.function.as_deref().is_some_and(|name| SCHEDULING.contains(&name));
        let is_called_by_runtime =
            frames.iter().position(executes_tasks).is_some_and(|at| frames[..at].iter().any(|frame| frame.line.is_some()));
        if has(&TASK) || is_called_by_runtime {
            return Dealt::Tasks;
        }
        if OUTLINED.iter().any(has)
            && let Some(around) = frames.iter().find_map(|frame| self.dealt_around_line(frame))
        {
            return around;
        }
        let is_whole = frames.iter().filter_map(|frame| frame.function.as_deref()).any(|name| OUTERMOST.contains(&name));
        let mut files = frames.iter().filter_map(|frame| frame.file.as_deref()).peekable();
        let is_installed = files.peek().is_some() && files.all(is_of_system);
        match () {
            () if is_whole || OUTLINED.iter().any(has) => Dealt::Fixed,
            () if frames.iter().any(|frame| self.is_called_in_task(frame)) => Dealt::Tasks,
            () if is_installed => Dealt::Unknown,
            () => Dealt::Fixed,
        }
    }

    /// Whether the source calls the function of this frame in a task, itself or by so many other functions of the file.
    fn is_called_in_task(&self, frame: &Frame) -> bool {
        let Some((path, function)) = frame.file.as_deref().zip(frame.function.as_deref()) else { return false };
        let name = function.split(['<', '(']).next().unwrap_or_default().rsplit("::").next().unwrap_or_default();
        if name.is_empty() || Language::of(path).is_none() || is_of_system(path) || !self.has_tasks(path) {
            return false;
        }
        let key = (path.to_owned(), name.to_owned());
        if let Some(known) = self.called.borrow().get(&key) {
            return *known;
        }
        let called = self.reaches_task(frame, path, name);
        self.called.borrow_mut().insert(key, called);
        called
    }

    /// Whether a file has a directive that makes tasks. Few files have one, and only those are searched for calls.
    fn has_tasks(&self, path: &str) -> bool {
        let mut known = self.with_tasks.borrow_mut();
        *known.entry(path.to_owned()).or_insert_with(|| {
            let mut lines = (1..).map_while(|number| self.places.sources.line(path, number));
            lines.any(|line| {
                let line = line.to_ascii_lowercase();
                line.contains("omp") && line.contains("task")
            })
        })
    }

    /// Looks at the calls of a function, then at those of the functions around these calls, and so on.
    fn reaches_task(&self, frame: &Frame, path: &str, name: &str) -> bool {
        let (mut seen, mut next) = (BTreeSet::from([name.to_owned()]), vec![name.to_owned()]);
        for _ in 0..=CALLERS {
            let lines = (1..).map_while(|number| Some((number, self.places.sources.line(path, number)?)));
            let calls: Vec<u32> = lines
                .filter(|(_, line)| next.iter().any(|name| is_called(line, name)))
                .map(|(number, _)| number)
                .take(MOST_CALLS)
                .collect();
            if calls.iter().any(|line| self.dealt_around_line(&Frame { line: Some(*line), ..frame.clone() }) == Some(Dealt::Tasks)) {
                return true;
            }
            let callers = calls.iter().filter_map(|line| self.function_around(path, *line));
            next = callers.filter(|caller| seen.insert(caller.clone())).collect();
            if next.is_empty() {
                return false;
            }
        }
        false
    }

    /// The name of the function around a line of C or C++.
    fn function_around(&self, path: &str, line: u32) -> Option<String> {
        let mut files = self.files.borrow_mut();
        let text = files.entry(path.to_owned()).or_insert_with(|| Text::read(self.places.sources, path)).as_ref()?;
        let Text::C(file) = text else { return None };
        let body = file.function(file.on_line(line).start)?;
        let head = file.head(body.start);
        let lists = head.windows(2).filter(|two| two[0].kind == Kind::Word && two[1].is("("));
        lists.map(|two| two[0].text.as_str()).find(|name| !ATTRIBUTES.contains(name)).map(str::to_owned)
    }

    fn dealt_around_line(&self, frame: &Frame) -> Option<Dealt> {
        let (path, line) = frame.file.as_deref().zip(frame.line)?;
        let mut files = self.files.borrow_mut();
        let text = files.entry(path.to_owned()).or_insert_with(|| Text::read(self.places.sources, path)).as_ref()?;
        let directives = text.directives_around(line)?;
        let innermost = directives.iter().rev().find(|one| DIVIDING.iter().any(|word| one.has(word)))?;
        let schedule = innermost.clause("schedule").unwrap_or_default();
        let is_dynamic = || DYNAMIC.iter().any(|kind| schedule.split([',', ':', ' ']).any(|word| word == *kind));
        Some(match () {
            () if innermost.has("task") || innermost.has("taskloop") => Dealt::Tasks,
            () if is_dynamic() => Dealt::Dynamic,
            () => Dealt::Fixed,
        })
    }
}

fn is_of_system(file: &str) -> bool {
    SYSTEM.iter().any(|part| file.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;
    use firsttouch_model::TouchCause;
    use firsttouch_model::rows::{Profile, Site};

    const SOURCE: &str = "void work(double *y) {
    y[0] = 1;
}
void f(double *y) {
#pragma omp parallel
    {
#pragma omp for schedule(static)
        for (int i = 0; i < 9; i++)
            y[i] = 2;
#pragma omp single
        for (int i = 0; i < 9; i++) {
#pragma omp task
            for (int j = 0; j < 9; j++)
                y[j] = 3;
        }
#pragma omp taskloop
        for (int i = 0; i < 9; i++)
            work(y);
#pragma omp for schedule(guided, 4)
        for (int i = 0; i < 9; i++)
            y[i] = 4;
    }
}
double walk(node *n) {
    return n->value + walk(n->left);
}
double walk_tasks(node *n, int depth) {
    if (depth == 0)
        return walk(n);
    double a;
#pragma omp task
    a = walk_tasks(n->left, depth - 1);
    return a;
}
double alone(node *n) {
    return n->value;
}
double even(node *n) {
    return odd(n->left);
}
double odd(node *n) {
    return even(n->left) + alone(n);
}
void ping(node *n) {
    pong(n);
}
void pong(node *n) {
    ping(n);
}
__attribute__((noinline)) void starts(node *n) {
#pragma omp task
    first(n);
}
void first(node *n) {
    pong(n);
    second(n);
}
void second(node *n) {
    third(n);
}
void third(node *n) {
    fourth(n);
}
void fourth(node *n) {
    fifth(n);
}
";

    struct OneSource;

    impl Sources for OneSource {
        fn line(&self, _: &str, line: u32) -> Option<String> {
            SOURCE.lines().nth((line as usize).checked_sub(1)?).map(str::to_owned)
        }

        fn cause(&self, _: &[Frame], _: Option<&str>) -> TouchCause {
            TouchCause::Unknown
        }

        fn user_frame(&self, _: &[Frame]) -> Option<usize> {
            None
        }

        fn variable(&self, _: &str, _: u32, _: &str, _: usize) -> Option<String> {
            None
        }
    }

    /// Check that the innermost directive around the code, or around the call of its function, decides whether it is a task, or a loop with a
    /// dynamic schedule.
    #[test]
    fn tasks_are_told_from_loops() {
        let frame = |function: &str, line: u32| Frame {
            function: Some(function.into()),
            file: Some("a.c".into()),
            line: Some(line),
            ..Frame::default()
        };
        let outlined = |line: u32| frame("f._omp_fn.0", line);
        let sort = || Frame { file: Some("/usr/include/c++/12/bits/stl_algo.h".into()), ..frame("std::__introsort_loop", 1922) };
        let runtime = |function: &str| Frame { function: Some(function.into()), ..Frame::default() };
        for (frames, dealt) in [
            (vec![outlined(9)], Dealt::Fixed),
            (vec![outlined(14)], Dealt::Tasks),
            (vec![frame("work", 2), outlined(18)], Dealt::Tasks),
            (vec![frame("work", 2), outlined(9)], Dealt::Fixed),
            (vec![outlined(21)], Dealt::Dynamic),
            // Without a parallel region, one thread runs it.
            (vec![frame("work", 2), frame("main", 18)], Dealt::Fixed),
            (vec![Frame { function: Some(".omp_task_entry.".into()), ..Frame::default() }], Dealt::Tasks),
            // The runtime executes a task while it waits, which calls `work` by a jump, and one that computes nothing itself.
            (vec![frame("work", 2), runtime("GOMP_taskwait"), outlined(9)], Dealt::Tasks),
            (vec![runtime("GOMP_taskwait"), outlined(9)], Dealt::Fixed),
            // Cut off: the source calls `work` in a task.
            (vec![frame("work", 2)], Dealt::Tasks),
            (vec![frame("std::sort", 2), frame("ns::work<int>", 2)], Dealt::Tasks),
            (vec![frame("wor", 2)], Dealt::Fixed),
            // Called by a function that is called in a task; in no task; and by each other.
            (vec![frame("walk", 25), frame("walk", 25)], Dealt::Tasks),
            (vec![frame("alone", 36)], Dealt::Fixed),
            (vec![frame("even", 39)], Dealt::Fixed),
            (vec![sort()], Dealt::Unknown),
            (vec![sort(), frame("wor", 2)], Dealt::Fixed),
            (vec![sort(), frame("main", 18)], Dealt::Fixed),
            (vec![], Dealt::Fixed),
            (vec![runtime("dgemm_kernel")], Dealt::Fixed),
            (vec![Frame { file: Some("/home/me/include/a.hpp".into()), ..frame("sort", 2) }], Dealt::Fixed),
        ] {
            let site = Site { id: 1, process: 1, frames: frames.clone() };
            let profile = Profile { sites: [(1, site)].into(), ..Profile::default() };
            let places = CodeLocations { profile: &profile, sources: &OneSource };
            assert_eq!(Tasks::new(&places).dealt_at(1), dealt, "{frames:?}");
        }
    }

    /// Check that what was asked before does not matter: functions that call each other, of which one is called in a task, and a chain of callers
    /// that is too long from its end.
    #[test]
    fn callers_are_found_in_any_order() {
        let frame = |function: &str| Frame { function: Some(function.into()), file: Some("a.c".into()), line: Some(2), ..Frame::default() };
        let profile = Profile::default();
        let places = CodeLocations { profile: &profile, sources: &OneSource };
        for order in [["ping", "pong", "third", "fifth"], ["fifth", "third", "pong", "ping"]] {
            let tasks = Tasks::new(&places);
            for name in order {
                assert_eq!(tasks.is_called_in_task(&frame(name)), name != "fifth", "{name} of {order:?}");
            }
        }
    }
}
