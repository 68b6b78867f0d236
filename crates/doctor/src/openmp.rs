//! The environment variables of OpenMP runtimes: how many threads, and where they run.
//!
//! Sources: OpenMP 5.2 chapter 21 (OMP_*); libgomp's manual (GOMP_CPU_AFFINITY; OMP_PLACES or GOMP_CPU_AFFINITY alone bind);
//! LLVM's OpenMP runtime reference (KMP_AFFINITY overrides OMP_PROC_BIND; GOMP_CPU_AFFINITY is supported).

use firsttouch_model::facts::OpenMp;
use std::collections::BTreeMap;

pub type Variables = BTreeMap<String, String>;

/// Whether threads are bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Binding {
    /// Each thread is bound to an OpenMP place.
    Bound,
    /// All threads share the OpenMP place of the first thread (`primary`, formerly `master`).
    Together,
    /// The kernel may move threads. Lists the variables that look as if they bound them, and why they do not.
    Free(Vec<(&'static str, &'static str)>),
}

/// The effect of the variables on a runtime. For `OpenMp::Unknown`, the variables of every runtime count.
pub fn binding(variables: &Variables, openmp: OpenMp) -> Binding {
    let value = |name| set(variables, name);
    let mut useless = Vec::new();
    if let Some(text) = value("KMP_AFFINITY") {
        match (openmp, intel(text)) {
            (OpenMp::Gnu, _) => useless.push(("KMP_AFFINITY", "GCC's runtime (libgomp) does not read it")),
            (_, Some(true)) => return Binding::Bound,
            (_, Some(false)) => return Binding::Free(vec![("KMP_AFFINITY", "it turns binding off")]),
            (_, None) => useless.push(("KMP_AFFINITY", "it does not select a binding")),
        }
    }
    if let Some(text) = value("OMP_PROC_BIND") {
        // A list has a binding for each nesting level.
        match text.split(',').next().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
            "true" | "close" | "spread" => return Binding::Bound,
            "primary" | "master" => return Binding::Together,
            "false" => return Binding::Free(vec![("OMP_PROC_BIND", "it turns binding off")]),
            _ => useless.push(("OMP_PROC_BIND", "its value is not true, false, close, spread or primary")),
        }
    }
    if value("OMP_PLACES").is_some() || value("GOMP_CPU_AFFINITY").is_some() {
        return Binding::Bound;
    }
    Binding::Free(useless)
}

/// Whether KMP_AFFINITY binds; `None` if it only has modifiers (`verbose`, `granularity=core`).
fn intel(text: &str) -> Option<bool> {
    let mut words = text.split(',').map(|word| word.trim().to_ascii_lowercase());
    words.find_map(|word| match word.as_str() {
        "compact" | "scatter" | "balanced" | "explicit" | "physical" | "logical" => Some(true),
        "none" | "disabled" => Some(false),
        _ => None,
    })
}

/// Whether threads are packed onto adjacent hardware threads, so that they share a few cores while others are idle.
pub fn packs_siblings(variables: &Variables) -> bool {
    let is = |name, word: &str| set(variables, name).is_some_and(|text| text.eq_ignore_ascii_case(word));
    is("OMP_PLACES", "threads") && (is("OMP_PROC_BIND", "close") || is("OMP_PROC_BIND", "true"))
}

/// The team size that the variables request, with the variable's name.
pub fn threads(variables: &Variables) -> Option<(&'static str, u32)> {
    // A list has a number for each nesting level.
    let number = |name| set(variables, name)?.split(',').next()?.trim().parse::<u32>().ok().filter(|number| *number > 0);
    let asked = number("OMP_NUM_THREADS").map(|threads| ("OMP_NUM_THREADS", threads));
    let limit = number("OMP_THREAD_LIMIT").map(|threads| ("OMP_THREAD_LIMIT", threads));
    match (asked, limit) {
        (Some(asked), Some(limit)) if limit.1 < asked.1 => Some(limit),
        (asked, _) => asked,
    }
}

/// The value of a variable that is not empty.
pub fn set<'a>(variables: &'a Variables, name: &str) -> Option<&'a str> {
    variables.get(name).map(|text| text.trim()).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> Variables {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    /// Check which spellings bind, for which runtime.
    #[test]
    fn spellings_of_binding() {
        let free = |variable, why| Binding::Free(vec![(variable, why)]);
        let off = "it turns binding off";
        for (pairs, openmp, expected) in [
            (&[][..], OpenMp::Gnu, Binding::Free(vec![])),
            (&[("OMP_PROC_BIND", "true")], OpenMp::Gnu, Binding::Bound),
            (&[("OMP_PROC_BIND", " Spread,close ")], OpenMp::Llvm, Binding::Bound),
            (&[("OMP_PROC_BIND", "FALSE"), ("OMP_PLACES", "cores")], OpenMp::Gnu, free("OMP_PROC_BIND", off)),
            (&[("OMP_PROC_BIND", "yes")], OpenMp::Gnu, free("OMP_PROC_BIND", "its value is not true, false, close, spread or primary")),
            (&[("OMP_PROC_BIND", "master")], OpenMp::Gnu, Binding::Together),
            (&[("OMP_PROC_BIND", "primary")], OpenMp::Llvm, Binding::Together),
            (&[("OMP_PROC_BIND", "")], OpenMp::Gnu, Binding::Free(vec![])),
            (&[("OMP_PLACES", "cores")], OpenMp::Unknown, Binding::Bound),
            (&[("GOMP_CPU_AFFINITY", "0-3")], OpenMp::Gnu, Binding::Bound),
            (&[("GOMP_CPU_AFFINITY", "0-3")], OpenMp::Llvm, Binding::Bound),
            (&[("KMP_AFFINITY", "granularity=fine,compact,1,0")], OpenMp::Llvm, Binding::Bound),
            (&[("KMP_AFFINITY", "compact")], OpenMp::Unknown, Binding::Bound),
            (&[("KMP_AFFINITY", "compact")], OpenMp::Gnu, free("KMP_AFFINITY", "GCC's runtime (libgomp) does not read it")),
            (&[("KMP_AFFINITY", "disabled"), ("OMP_PROC_BIND", "true")], OpenMp::Llvm, free("KMP_AFFINITY", off)),
            (&[("KMP_AFFINITY", "verbose")], OpenMp::Llvm, free("KMP_AFFINITY", "it does not select a binding")),
            (&[("KMP_AFFINITY", "verbose"), ("OMP_PLACES", "cores")], OpenMp::Llvm, Binding::Bound),
        ] {
            assert_eq!(binding(&variables(pairs), openmp), expected, "{pairs:?} {openmp:?}");
        }
    }

    /// Check numbers of threads: nesting, limits, invalid values.
    #[test]
    fn numbers_of_threads() {
        for (pairs, expected) in [
            (&[][..], None),
            (&[("OMP_NUM_THREADS", "8")], Some(("OMP_NUM_THREADS", 8))),
            (&[("OMP_NUM_THREADS", " 4 , 2")], Some(("OMP_NUM_THREADS", 4))),
            (&[("OMP_NUM_THREADS", "8"), ("OMP_THREAD_LIMIT", "2")], Some(("OMP_THREAD_LIMIT", 2))),
            (&[("OMP_NUM_THREADS", "2"), ("OMP_THREAD_LIMIT", "8")], Some(("OMP_NUM_THREADS", 2))),
            (&[("OMP_THREAD_LIMIT", "8")], None),
            (&[("OMP_NUM_THREADS", "0")], None),
            (&[("OMP_NUM_THREADS", "-1")], None),
            (&[("OMP_NUM_THREADS", "many")], None),
            (&[("OMP_NUM_THREADS", "99999999999")], None),
        ] {
            assert_eq!(threads(&variables(pairs)), expected, "{pairs:?}");
        }
    }

    /// Check that only adjacent hardware threads count as packed.
    #[test]
    fn packing() {
        assert!(packs_siblings(&variables(&[("OMP_PLACES", "threads"), ("OMP_PROC_BIND", "close")])));
        assert!(!packs_siblings(&variables(&[("OMP_PLACES", "threads"), ("OMP_PROC_BIND", "spread")])));
        assert!(!packs_siblings(&variables(&[("OMP_PLACES", "cores"), ("OMP_PROC_BIND", "close")])));
    }
}
