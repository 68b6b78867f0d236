//! What helps, as text and code in the program's language, with the user's own lines where they are known.

use super::loops::enclosing_loop;
use super::text::loop_after_call;
use super::{Case, Context, Kind};
use crate::PartitionKind;
use crate::names::Language;

const INTERLEAVE: &str = "without touching the source, spread its pages over the nodes: numactl --interleave=all CMD";

impl Context<'_> {
    pub(super) fn fix(&self, kind: Kind, case: &Case<'_>) -> String {
        let name = case.view.name.as_str();
        let language = self.language(case);
        match kind {
            Kind::SerialFirstTouch => serial(self, case, language),
            Kind::MismatchedPartition => format!(
                "initialise {name} with the loop that uses it: same bounds, same schedule and chunk, same number of threads{}",
                code(&self.parallel_loop(case, language))
            ),
            Kind::NoStablePartition if !case.subject.partition.dealt_out => format!(
                "{INTERLEAVE}. If each thread reads all of {name}, one copy a node, made by a thread of that node, is better still; if its parts \
                 change hands, give each thread the same part every time ({}), and initialise {name} in that loop",
                static_schedule(language)
            ),
            Kind::NoStablePartition => format!(
                "give each thread the same part every time ({}), and initialise {name} in that loop; or {INTERLEAVE}",
                static_schedule(language)
            ),
            Kind::SharedRead => format!("keep one copy of {name} a node, made by a thread of that node; or {INTERLEAVE}"),
            Kind::IoFirstTouch => io(self, case, language),
            Kind::HugePageSharing => huge(self, case, language),
            Kind::RecycledMemory => format!(
                "use fresh memory for {name}: do not free the former buffer before, or allocate with mmap (environment: \
                 MALLOC_MMAP_THRESHOLD_=131072 MALLOC_TRIM_THRESHOLD_=131072 makes glibc return large blocks to the kernel), or use an allocator that keeps memory by thread; \
                 then initialise it in the loop that uses it. Or move the pages to their users once with move_pages"
            ),
        }
    }

    fn language(&self, case: &Case<'_>) -> Option<Language> {
        let touch = case.view.first_touch.at.first().and_then(|p| p.file.as_deref()).and_then(Language::of);
        touch.or_else(|| case.view.allocated_at.as_ref().and_then(|p| p.file.as_deref()).and_then(Language::of))
    }

    /// The user's initialising loop, made parallel. Empty where the language or line is not known.
    fn parallel_loop(&self, case: &Case<'_>, language: Option<Language>) -> String {
        let Some(language) = language else { return String::new() };
        let place = case.view.first_touch.at.first();
        let line = place.and_then(|p| p.file.as_deref().zip(p.line));
        let own = line.and_then(|(file, line)| enclosing_loop(self.places.sources, file, line, language));
        let arrays = case.subject.arrays_in_mapping(case.object.kind).is_some();
        let chunks = case.subject.partition.kind == PartitionKind::BlockCyclic && !arrays;
        let schedule = if chunks { "schedule(static, CHUNK)" } else { "schedule(static)" };
        match language {
            Language::C | Language::Cpp => {
                let header = own.filter(|header| header.starts_with("for")).unwrap_or_else(|| "for (size_t i = 0; i < n; i++)".to_owned());
                let end = if header.ends_with('{') { "\n}" } else { "" };
                format!("#pragma omp parallel for {schedule}\n{header}\n    ...{end}")
            }
            Language::Fortran => {
                format!("!$omp parallel do {schedule}\n{}\n  ...\nend do", own.unwrap_or_else(|| "do i = 1, n".to_owned()))
            }
            Language::Rust => {
                "data.par_chunks_mut(n.div_ceil(threads)).for_each(|part| part.fill(value)); // the split of the loop that uses it"
                    .to_owned()
            }
            Language::Python => {
                "list(pool.map(lambda part: part.fill(0), numpy.array_split(a, threads)))  # the split of the loop that uses it".to_owned()
            }
        }
    }
}

fn code(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let lines: Vec<String> = text.lines().map(|line| format!("  {line}")).collect();
    format!(":\n{}", lines.join("\n"))
}

fn static_schedule(language: Option<Language>) -> &'static str {
    match language {
        Some(Language::C | Language::Cpp) => "#pragma omp for schedule(static) instead of dynamic, guided or tasks",
        Some(Language::Fortran) => "!$omp do schedule(static) instead of dynamic, guided or tasks",
        _ => "a static split instead of dynamic scheduling",
    }
}

fn serial(context: &Context<'_>, case: &Case<'_>, language: Option<Language>) -> String {
    let name = case.view.name.as_str();
    if case.subject.partition.kind == PartitionKind::Single {
        return format!("let the thread that uses {name} allocate and initialise it");
    }
    let cause = case.view.first_touch.cause.as_deref().unwrap_or_default();
    match (cause, language) {
        ("calloc" | "realloc", Some(Language::C | Language::Cpp)) if loop_after_call(case.view).is_some() => format!(
            "write {name} first in the loop that uses it ({}){}",
            if cause == "calloc" { "calloc itself touches nothing" } else { "or reserve all of it at once, so that realloc moves nothing" },
            code(&context.parallel_loop(case, language))
        ),
        ("calloc", Some(Language::C | Language::Cpp)) => format!(
            "calloc clears {name} in one thread: allocate with malloc and clear it in the loop that uses it{}",
            code("p = malloc(bytes);\n#pragma omp parallel for schedule(static)\nfor (size_t i = 0; i < n; i++) p[i] = 0;")
        ),
        ("memset", Some(Language::C | Language::Cpp)) => format!(
            "memset runs in one thread: clear {name} in a loop divided like the one that uses it{}",
            code("#pragma omp parallel for schedule(static)\nfor (size_t i = 0; i < n; i++) p[i] = 0;")
        ),
        ("memcpy" | "realloc", Some(Language::C | Language::Cpp)) => format!(
            "{cause} runs in one thread: copy into {name} in a loop divided like the one that uses it, into memory nobody touched before{}",
            code("#pragma omp parallel for schedule(static)\nfor (size_t i = 0; i < n; i++) p[i] = from[i];")
        ),
        ("std::vector", _) => format!(
            "std::vector fills {name} in one thread: give it an allocator that does not initialise, and fill it in the loop that uses it{}",
            code(
                "template <class T> struct untouched : std::allocator<T> {\n  template <class U> struct rebind { using other = untouched<U>; };\n  \
                 template <class U> void construct(U *p) { ::new (static_cast<void *>(p)) U; }\n};\nstd::vector<double, untouched<double>> v(n);\n\
                 #pragma omp parallel for schedule(static)\nfor (size_t i = 0; i < n; i++) v[i] = 0;"
            )
        ),
        ("fortran-assignment", _) => format!(
            "an array assignment runs in one thread: replace it by a parallel loop{}",
            code("!$omp parallel do schedule(static)\ndo i = 1, n\n  a(i) = 0\nend do")
        ),
        ("numpy", _) => format!(
            "NumPy fills {name} in one thread: start from numpy.empty and fill it in the threads that use it{}",
            code(&context.parallel_loop(case, Some(Language::Python)))
        ),
        _ => format!("initialise {name} in the loop that uses it{}", code(&context.parallel_loop(case, language))),
    }
}

fn io(context: &Context<'_>, case: &Case<'_>, language: Option<Language>) -> String {
    let name = case.view.name.as_str();
    let touch = match language {
        Some(Language::Fortran) => "!$omp parallel do schedule(static)\ndo i = 1, n\n  a(i) = 0\nend do\nread (unit) a",
        Some(Language::C | Language::Cpp) => {
            "#pragma omp parallel for schedule(static)\nfor (size_t i = 0; i < n; i++) p[i] = 0;\nread(fd, p, bytes); /* or fread */"
        }
        _ => {
            return format!(
                "touch {name} in parallel, in the loop that uses it, before reading into it{}",
                code(&context.parallel_loop(case, language))
            );
        }
    };
    format!("touch {name} in parallel, divided like the loop that uses it, before reading into it{}", code(touch))
}

fn huge(context: &Context<'_>, case: &Case<'_>, language: Option<Language>) -> String {
    let name = case.view.name.as_str();
    let size = firsttouch_domain::format_bytes(context.profile.machine.huge_page_bytes.max(case.subject.touch.page_bytes));
    let advice = match language {
        Some(Language::C | Language::Cpp) | None => ":\n  madvise(p, bytes, MADV_NOHUGEPAGE); /* before the first touch */",
        _ => " with madvise(..., MADV_NOHUGEPAGE) before the first touch",
    };
    format!(
        "make each thread's part of {name} a multiple of {size} and align it so (larger chunks, padding); or use base pages for it{advice}"
    )
}
