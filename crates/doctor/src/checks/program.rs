//! The program, its runtime and its allocator.

use crate::diagnosis::{Finding, Severity};
use crate::openmp;
use firsttouch_model::facts::{Facts, OpenMp};

pub const RUNTIME: &str = "openmp-runtime-missing";
pub const OMPT: &str = "openmp-without-ompt";
pub const ALLOCATOR_TRAIT: &str = "openmp-allocator-trait";
pub const ALLOCATOR: &str = "preloaded-allocator";
pub const MISSING: &str = "preload-missing";

/// Allocators that keep freed memory for each thread or arena and reuse it, by the start of their file names.
const ALLOCATORS: [&str; 9] = [
    "libjemalloc",
    "libtcmalloc",
    "libmimalloc",
    "libtbbmalloc",
    "libhoard",
    "libscudo",
    "librpmalloc",
    "libsnmalloc",
    "libclang_rt.scudo",
];

pub fn runtime(facts: &Facts) -> Option<Finding> {
    if let Some(program) = &facts.program {
        if program.runtime.is_empty() || program.runtime_file.is_some() {
            return None;
        }
        let message = format!("the program needs {}, which the loader cannot find: it will not start", program.runtime);
        let package = if program.openmp == OpenMp::Gnu { "libgomp1" } else { "libomp5" };
        return Some(
            Finding::new(RUNTIME, Severity::High, message)
                .seen(&program.path, format!("needs {}", program.runtime))
                .remedy(format!("sudo apt install {package}; or give its folder: export LD_LIBRARY_PATH=FOLDER")),
        );
    }
    let clang = facts.compiler.clang.as_ref().filter(|_| facts.compiler.libomp.is_none())?;
    let message = "clang is installed without its OpenMP runtime: programs built with clang -fopenmp do not link, and those linked to libgomp \
                   instead do not report parallel regions (OMPT)";
    Some(
        Finding::new(RUNTIME, Severity::Low, message.to_owned())
            .seen(clang, "found")
            .seen("/etc/ld.so.cache", "no libomp.so, libiomp5.so")
            .remedy("sudo apt install libomp-dev"),
    )
}

pub fn ompt(facts: &Facts) -> Option<Finding> {
    let program = facts.program.as_ref().filter(|program| program.openmp == OpenMp::Llvm && program.ompt == Some(false))?;
    let message =
        "the program's OpenMP runtime was built without OMPT: parallel regions and the numbers of threads in their teams are not seen";
    Some(
        Finding::new(OMPT, Severity::Low, message.to_owned())
            .seen(program.runtime_file.as_deref().unwrap_or(&program.runtime), "does not contain ompt_start_tool")
            .remedy("use a runtime with OMPT: sudo apt install libomp5, and run with LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu"),
    )
}

/// No runtime divides memory among nodes (`omp_atv_blocked`), and some ignore all of the trait.
pub fn allocator_trait(facts: &Facts) -> Option<Finding> {
    let program = facts.program.as_ref()?;
    let described = facts.environment.as_ref().and_then(|known| openmp::set(known, "OMP_ALLOCATOR"));
    let described = described.filter(|text| text.contains("partition"));
    if !program.makes_allocators && described.is_none() {
        return None;
    }
    let file = program.runtime_file.as_deref().unwrap_or(&program.runtime);
    let (message, seen) = match &program.placing_library {
        Some(library) => (
            format!(
                "the program's OpenMP runtime has no blocked partition of memory for allocators (omp_atk_partition), and places nothing without {library}"
            ),
            format!("names {library}"),
        ),
        None => (
            "the program's OpenMP runtime ignores where allocators ask for their memory (omp_atk_partition: nearest, blocked, interleaved)"
                .to_owned(),
            "names neither libmemkind.so nor libnuma.so".to_owned(),
        ),
    };
    let asks = described.map_or_else(|| "calls omp_init_allocator".to_owned(), |text| format!("OMP_ALLOCATOR={text}"));
    Some(
        Finding::new(ALLOCATOR_TRAIT, Severity::Low, message)
            .seen(&program.path, asks)
            .seen(file, seen)
            .remedy("if the program uses the trait: firsttouch run --openmp-allocators -- PROGRAM"),
    )
}

pub fn allocator(facts: &Facts) -> Option<Finding> {
    let preload = facts.environment.as_ref().and_then(|variables| openmp::set(variables, "LD_PRELOAD")).unwrap_or_default();
    let everywhere = facts.preloaded_everywhere.iter().map(|file| ("/etc/ld.so.preload", file.as_str()));
    let is_loaded = |file: &&str| !facts.missing_preloads.iter().any(|missing| missing == file);
    let here = preload.split([':', ' ']).filter(is_loaded).map(|file| ("LD_PRELOAD", file));
    let file_name = |file: &'_ str| file.rsplit('/').next().is_some_and(|name| ALLOCATORS.iter().any(|start| name.starts_with(start)));
    let (source, file) = here.chain(everywhere).find(|(_, file)| file_name(file))?;
    let message = "another allocator is preloaded: it reuses memory without returning it to the kernel, so pages stay on the node of their \
                   first owner, and only the first touch is seen";
    let remedy = if source == "LD_PRELOAD" {
        "profile without it first: env -u LD_PRELOAD COMMAND; keep it if the placement is the same"
    } else {
        "profile without it first: remove it from /etc/ld.so.preload"
    };
    Some(Finding::new(ALLOCATOR, Severity::Low, message.to_owned()).seen(source, file).remedy(remedy))
}

pub fn missing_preload(facts: &Facts) -> Option<Finding> {
    let (first, others) = facts.missing_preloads.split_first()?;
    let message = "the loader does not find a file that LD_PRELOAD lists: it prints an error and starts programs without it, an allocator as \
                   well, so what is measured is not what was meant";
    let finding = Finding::new(MISSING, Severity::Medium, message.to_owned()).seen("LD_PRELOAD", format!("{first}: no such library"));
    let finding = others.iter().fold(finding, |finding, file| finding.seen("LD_PRELOAD", format!("{file}: no such library")));
    Some(finding.remedy("correct the path, or: unset LD_PRELOAD"))
}
