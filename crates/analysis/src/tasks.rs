//! Whether code is the body of an OpenMP task. Any thread of the team may execute a task, another one each time, so memory that tasks use has no
//! owners, whatever a run happens to show, and there is no loop whose schedule could be that of the initialisation.
//!
//! GNU's compiler makes functions of the same names from tasks and from parallel regions, and its runtime calls both, so the source decides: the innermost
//! directive around the line.

use crate::Sources;
use crate::code::fortran::Fortran;
use crate::code::regions::{Directive, File};
use crate::evidence::Hit;
use crate::names::Language;
use crate::partition::{Partition, PartitionKind};
use crate::source_code::CodeLocations;
use firsttouch_model::rows::{Frame, Id};
use hashbrown::HashMap;
use std::cell::RefCell;

/// Memory is used by tasks if they make at least this fraction of its accesses.
const MOSTLY: f64 = 0.8;
/// In names of functions that compilers make from tasks, and from tasks or parallel regions.
const TASK: &str = ".omp_task";
const OUTLINED: &[&str] = &["_omp_fn.", "omp_outlined", ".omp_task", ".DIR.OMP.", "__par_", "__nv_"];
/// Directives that say which thread executes a statement.
const DIVIDING: &[&str] = &["task", "taskloop", "parallel", "for", "do", "sections", "single", "master", "masked", "loop", "distribute"];

/// The sites of a program, each looked up once.
pub struct Tasks<'a> {
    places: &'a CodeLocations<'a>,
    files: RefCell<HashMap<String, Option<Text>>>,
    known: RefCell<HashMap<Id, bool>>,
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
        Self { places, files: RefCell::default(), known: RefCell::default() }
    }

    /// A partition, if the accesses (`hits`) show it. Any thread may execute a task, whatever parts a run happens to show.
    #[must_use]
    pub fn partition(&self, found: Partition, hits: &[Hit]) -> Partition {
        if found.kind != PartitionKind::Single && self.make(hits) { Partition::of_tasks() } else { found }
    }

    /// Whether tasks make most of these accesses.
    fn make(&self, hits: &[Hit]) -> bool {
        let (mut of_tasks, mut all) = (0.0, 0.0);
        for (site, rate) in hits.iter().flat_map(|hit| &hit.sites) {
            all += rate;
            of_tasks += if site.is_some_and(|site| self.is_task(site)) { *rate } else { 0.0 };
        }
        all > 0.0 && of_tasks >= MOSTLY * all
    }

    fn is_task(&self, site: Id) -> bool {
        if let Some(known) = self.known.borrow().get(&site) {
            return *known;
        }
        let is_task = self.is_in_task(self.places.frames(Some(site)));
        self.known.borrow_mut().insert(site, is_task);
        is_task
    }

    /// Innermost first: the first function around which there is a directive that divides work decides.
    fn is_in_task(&self, frames: &[Frame]) -> bool {
        let has = |part: &&str| frames.iter().filter_map(|frame| frame.function.as_deref()).any(|name| name.contains(part));
        if has(&TASK) {
            return true;
        }
        if !OUTLINED.iter().any(has) {
            return false;
        }
        frames.iter().find_map(|frame| self.is_task_around(frame)).unwrap_or(false)
    }

    fn is_task_around(&self, frame: &Frame) -> Option<bool> {
        let (path, line) = frame.file.as_deref().zip(frame.line)?;
        let mut files = self.files.borrow_mut();
        let text = files.entry(path.to_owned()).or_insert_with(|| Text::read(self.places.sources, path)).as_ref()?;
        let directives = text.directives_around(line)?;
        let innermost = directives.iter().rev().find(|one| DIVIDING.iter().any(|word| one.has(word)))?;
        Some(innermost.has("task") || innermost.has("taskloop"))
    }
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
    }
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

    /// Check that the innermost directive around the code, or around the call of its function, decides whether it is a task.
    #[test]
    fn tasks_are_told_from_loops() {
        let frame = |function: &str, line: u32| Frame {
            function: Some(function.into()),
            file: Some("a.c".into()),
            line: Some(line),
            ..Frame::default()
        };
        let outlined = |line: u32| frame("f._omp_fn.0", line);
        for (frames, is_task) in [
            (vec![outlined(9)], false),
            (vec![outlined(14)], true),
            (vec![frame("work", 2), outlined(18)], true),
            (vec![frame("work", 2), outlined(9)], false),
            // Without a parallel region, one thread runs it.
            (vec![frame("work", 2), frame("main", 18)], false),
            (vec![Frame { function: Some(".omp_task_entry.".into()), ..Frame::default() }], true),
            (vec![], false),
        ] {
            let site = Site { id: 1, process: 1, frames: frames.clone() };
            let profile = Profile { sites: [(1, site)].into(), ..Profile::default() };
            let places = CodeLocations { profile: &profile, sources: &OneSource };
            assert_eq!(Tasks::new(&places).is_task(1), is_task, "{frames:?}");
        }
    }
}
