//! Turns linker names into source names: Rust, C++ and Fortran.

use crate::dwarf::is_fortran;
use gimli::DwLang;

/// Longer names are not demangled: hostile ones may take exponential time and space.
const LONGEST_MANGLED: usize = 4096;

/// The source name of a function, without parameters and return types.
pub(crate) fn demangle(raw: &str) -> String {
    if raw.len() > LONGEST_MANGLED {
        return raw.to_owned();
    }
    // Compilers append `.constprop.0`, `._omp_fn.0` and the like after mangling.
    let (stem, suffix) = split_suffix(raw);
    let plain = rust(stem).or_else(|| cpp(stem)).or_else(|| fortran(stem));
    plain.map_or_else(|| raw.to_owned(), |plain| plain + suffix)
}

/// As [`demangle`]; for Fortran, also removes the trailing underscore that the compiler adds.
pub(crate) fn demangle_in(raw: &str, language: Option<DwLang>) -> String {
    let (stem, suffix) = split_suffix(raw);
    match stem.strip_suffix('_').filter(|_| language.is_some_and(is_fortran) && !stem.ends_with("__")) {
        Some(stem) if !stem.is_empty() => format!("{stem}{suffix}"),
        _ => demangle(raw),
    }
}

fn split_suffix(raw: &str) -> (&str, &str) {
    let start = raw.get(1..).and_then(|rest| rest.find('.')).map_or(raw.len(), |position| position + 1);
    // Old Rust names contain dots (`..` for `::` within types) and end with a hash.
    let is_old_rust = raw.starts_with("_ZN") && raw.get(start..).is_some_and(|suffix| suffix.contains("17h"));
    let start = if is_old_rust { raw.len() } else { start };
    raw.split_at(start)
}

fn rust(stem: &str) -> Option<String> {
    rustc_demangle::try_demangle(stem).ok().map(|name| format!("{name:#}"))
}

fn cpp(stem: &str) -> Option<String> {
    if !stem.starts_with("_Z") {
        return None;
    }
    let options = cpp_demangle::DemangleOptions::new().no_params().no_return_type();
    cpp_demangle::Symbol::new(stem).ok()?.demangle_with_options(&options).ok()
}

/// Module procedures and variables of gfortran (`__mod_MOD_sub`), flang (`_QMmodPsub`) and ifort (`mod_mp_sub_`).
fn fortran(stem: &str) -> Option<String> {
    if let Some(name) = stem.strip_prefix("_Q") {
        return flang(name);
    }
    let (module, name) = match stem.strip_prefix("__").and_then(|rest| rest.split_once("_MOD_")) {
        Some(parts) => parts,
        None => stem.strip_suffix('_')?.split_once("_mp_")?,
    };
    (!module.is_empty() && !name.is_empty()).then(|| format!("{module}::{name}"))
}

/// Flang lowercases names and marks each scope with one capital letter.
fn flang(name: &str) -> Option<String> {
    if name == "Qmain" {
        return Some("MAIN__".to_owned());
    }
    if !name.starts_with(|c: char| "MFSPE".contains(c)) || !name.is_ascii() {
        return None;
    }
    let scopes = name.split(|c: char| c.is_ascii_uppercase()).filter(|scope| !scope.is_empty());
    let joined = scopes.collect::<Vec<_>>().join("::");
    (!joined.is_empty()).then_some(joined)
}

/// Suffixes that compilers add to a function's name for the outlined body of an OpenMP parallel region.
const OUTLINED: &[&str] = &["._omp_fn.", "._omp_cpyfn.", ".omp_outlined", ".DIR.OMP."];

/// A function name for a report: outlined OpenMP bodies become `main (parallel region)`; clone suffixes and C++ default allocators are
/// removed.
#[must_use]
pub fn readable_function(name: &str) -> String {
    let outlined = OUTLINED.iter().find_map(|mark| name.find(mark)).map(|end| name.get(..end).unwrap_or_default());
    match outlined.or_else(|| outlined_by_intel(name)).or_else(|| outlined_by_nvidia(name)) {
        Some("") => "parallel region".to_owned(),
        Some(owner) => format!("{} (parallel region)", tidy(owner)),
        None if name.starts_with(".omp_task") => "OpenMP task".to_owned(),
        None => tidy(name),
    }
}

/// `L_main_12__par_loop0_2_0` (ifort, icc).
fn outlined_by_intel(name: &str) -> Option<&str> {
    let (owner, _) = name.strip_prefix("L_")?.split_once("__par_")?;
    Some(owner.rsplit_once('_').map_or(owner, |(owner, _line)| owner))
}

/// `__nv_main_F1L12_1` (nvc, nvfortran).
fn outlined_by_nvidia(name: &str) -> Option<&str> {
    let (owner, place) = name.strip_prefix("__nv_")?.rsplit_once("_F")?;
    place.contains('L').then_some(owner)
}

fn tidy(name: &str) -> String {
    without_default_allocators(without_clone_suffix(name))
}

/// `work.constprop.0.isra.0` -> `work`; names that begin with a dot or contain other dots are kept.
fn without_clone_suffix(name: &str) -> &str {
    const CLONES: &[&str] = &[".constprop.", ".isra.", ".part.", ".cold", ".lto_priv.", ".llvm.", " [clone "];
    let end = CLONES.iter().filter_map(|clone| name.find(clone)).min();
    end.filter(|end| *end > 0).and_then(|end| name.get(..end)).unwrap_or(name)
}

/// `std::vector<double, std::allocator<double> >` -> `std::vector<double>`.
fn without_default_allocators(name: &str) -> String {
    const ALLOCATOR: &str = ", std::allocator<";
    let mut rest = name;
    let mut out = String::with_capacity(name.len());
    while let Some((before, after)) = rest.split_once(ALLOCATOR) {
        let Some(end) = closing_bracket(after) else { break };
        out.push_str(before);
        rest = after.get(end + 1..).unwrap_or_default();
        rest = rest.strip_prefix(' ').filter(|rest| rest.starts_with('>')).unwrap_or(rest);
    }
    out + rest
}

/// The position at which the bracket that is open at the start of `text` closes.
fn closing_bracket(text: &str) -> Option<usize> {
    let mut depth = 1_usize;
    text.char_indices().find_map(|(position, character)| {
        match character {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ => {}
        }
        (depth == 0).then_some(position)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_what_programmers_wrote() {
        for (raw, plain) in [
            ("main", "main"),
            ("", ""),
            ("_", "_"),
            ("_Z4workPdi", "work"),
            ("_ZN4grid4fillEPdi", "grid::fill"),
            ("_Z4workPdi._omp_fn.0", "work._omp_fn.0"),
            ("_Z4workPdi.constprop.0", "work.constprop.0"),
            ("_ZNSt6vectorIdSaIdEEC2EmRKdRKS0_", "std::vector<double, std::allocator<double> >::vector"),
            ("_ZN4demo4fill17h0123456789abcdefE", "demo::fill"),
            ("_RNvCs1234_7mycrate3foo", "mycrate::foo"),
            ("__grid_mod_MOD_fill", "grid_mod::fill"),
            ("__grid_mod_MOD_fill._omp_fn.1", "grid_mod::fill._omp_fn.1"),
            ("__grid_mod_MOD_field", "grid_mod::field"),
            ("grid_mp_fill_", "grid::fill"),
            ("_QMgridPfill", "grid::fill"),
            ("_QMgridFouterPinner", "grid::outer::inner"),
            ("_QQmain", "MAIN__"),
            ("_Q", "_Q"),
            ("MAIN__", "MAIN__"),
            ("__MOD_", "__MOD_"),
            ("_Znonsense", "_Znonsense"),
            ("ünïcode.constprop.0", "ünïcode.constprop.0"),
        ] {
            assert_eq!(demangle(raw), plain, "{raw}");
        }
        let fortran = Some(gimli::DW_LANG_Fortran95);
        assert_eq!(demangle_in("ext_", fortran), "ext");
        assert_eq!(demangle_in("ext_._omp_fn.0", fortran), "ext._omp_fn.0");
        assert_eq!(demangle_in("MAIN__", fortran), "MAIN__");
        assert_eq!(demangle_in("__grid_mod_MOD_fill", fortran), "grid_mod::fill");
        assert_eq!(demangle_in("keep_", Some(gimli::DW_LANG_C99)), "keep_");
        assert_eq!(demangle(&"_Z".repeat(100_000)).len(), 200_000);
    }

    #[test]
    fn reports_show_readable_functions() {
        for (name, readable) in [
            ("main", "main"),
            ("main._omp_fn.0", "main (parallel region)"),
            ("grid::fill._omp_fn.12", "grid::fill (parallel region)"),
            (".omp_outlined.", "parallel region"),
            (".omp_outlined..3", "parallel region"),
            (".omp_outlined._debug__", "parallel region"),
            ("main.omp_outlined", "main (parallel region)"),
            ("main.omp_outlined_debug__", "main (parallel region)"),
            (".omp_task_entry.", "OpenMP task"),
            ("main.DIR.OMP.PARALLEL.2.split34", "main (parallel region)"),
            ("L_main_12__par_loop0_2_0", "main (parallel region)"),
            ("__nv_main_F1L12_1", "main (parallel region)"),
            ("work.constprop.0.isra.0", "work"),
            ("work.cold", "work"),
            (".cold", ".cold"),
            ("std::vector<double, std::allocator<double> >::vector", "std::vector<double>::vector"),
            (
                "std::vector<std::vector<int, std::allocator<int> >, std::allocator<std::vector<int, std::allocator<int> > > >::resize",
                "std::vector<std::vector<int>>::resize",
            ),
            ("std::x<int, std::allocator<int", "std::x<int, std::allocator<int"),
            ("", ""),
        ] {
            assert_eq!(readable_function(name), readable, "{name}");
        }
    }
}
