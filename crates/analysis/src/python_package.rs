//! Memory that belongs to Python's own code: what packages make for themselves, and the interpreter's arenas.

use crate::groups::PYTHON;
use crate::names::base;
use firsttouch_model::rows::Frame;

/// The sizes of CPython's arenas, which hold objects of all kinds (Include/internal/pycore_obmalloc.h, ARENA_SIZE; before 3.10 the smaller one).
const ARENAS: [u64; 2] = [1 << 20, 256 << 10];

/// The package whose Python code makes the array, and the line: the innermost Python code that is not NumPy's or the standard library's. `None` if that
/// is the user's.
pub(crate) fn package(frames: &[Frame]) -> Option<(String, String)> {
    let files = frames.iter().filter(|frame| frame.module.as_deref() == Some(PYTHON));
    for (frame, file) in files.filter_map(|frame| Some((frame, frame.file.as_deref()?))) {
        let inside = ["/site-packages/", "/dist-packages/"].iter().find_map(|folder| file.split_once(folder)).map(|(_, inside)| inside);
        let Some(inside) = inside else {
            let is_standard = file.starts_with("<frozen ") || ["/lib/python3", "/lib64/python3"].iter().any(|part| file.contains(part));
            if is_standard { continue } else { return None }
        };
        let package = inside.split('/').next().unwrap_or(inside);
        if package == "numpy" {
            continue;
        }
        let line = frame.line.map_or_else(|| base(file).to_owned(), |line| format!("{}:{line}", base(file)));
        return Some((package.trim_end_matches(".py").to_owned(), line));
    }
    None
}

/// The interpreter that mapped the object as an arena for small objects of all kinds; `None` for other memory.
pub(crate) fn arena<'f>(call: Option<&str>, bytes: u64, frames: &'f [Frame]) -> Option<&'f str> {
    let is_arena = call == Some("mmap") && ARENAS.contains(&bytes);
    let is_system = |name: &str| ["libc.", "libc-", "ld-", "libfirsttouch", "libpthread"].iter().any(|start| name.starts_with(start));
    let mut modules = frames.iter().filter_map(|frame| frame.module.as_deref()).map(base);
    let name = modules.find(|name| !is_system(name)).filter(|_| is_arena)?;
    let version = name.strip_prefix("libpython").or_else(|| name.strip_prefix("python"))?;
    version.starts_with('3').then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(module: &str, file: &str, line: u32) -> Frame {
        Frame { module: Some(module.to_owned()), file: Some(file.to_owned()), line: Some(line), ..Frame::default() }
    }

    /// Check that an array that a package makes is told from one that the user's source makes by NumPy.
    #[test]
    fn packages() {
        const LIB: &str = "/env/lib/python3.11/site-packages";
        let native = || frame("/env/numpy/_multiarray_umath.so", "x.c", 1);
        let python = |file: &str, line| frame("python", file, line);
        let own = || python("/home/me/a.py", 4);
        let numpy = || python(&format!("{LIB}/numpy/_core/numeric.py"), 9);
        let kmeans = || python(&format!("{LIB}/sklearn/cluster/_kmeans.py"), 1459);
        assert_eq!(package(&[native(), numpy(), kmeans(), own()]), Some(("sklearn".into(), "_kmeans.py:1459".into())));
        assert_eq!(package(&[native(), numpy(), own(), kmeans()]), None);
        assert_eq!(package(&[native(), python("/usr/lib/python3.11/copy.py", 2), own()]), None);
        assert_eq!(package(&[python("/usr/lib/python3/dist-packages/six.py", 2), own()]), Some(("six".into(), "six.py:2".into())));
        assert_eq!(package(&[native(), own()]), None);
        assert_eq!(package(&[]), None);
    }

    /// Check that the interpreter's arenas are told from what else it maps.
    #[test]
    fn arenas() {
        let stack =
            |module: &str| [frame("/lib/x86_64-linux-gnu/libc.so.6", "", 0), frame(module, "", 0), frame("python", "/home/me/a.py", 3)];
        assert_eq!(arena(Some("mmap"), 1 << 20, &stack("/usr/bin/python3.11")), Some("python3.11"));
        assert_eq!(arena(Some("mmap"), 1 << 18, &stack("/usr/lib/libpython3.9.so.1.0")), Some("libpython3.9.so.1.0"));
        assert_eq!(arena(Some("mmap"), 64 << 20, &stack("/usr/bin/python3.11")), None);
        assert_eq!(arena(Some("malloc"), 1 << 20, &stack("/usr/bin/python3.11")), None);
        assert_eq!(arena(Some("mmap"), 1 << 20, &stack("/usr/lib/python3.11/lib-dynload/mmap.cpython-311.so")), None);
        assert_eq!(arena(Some("mmap"), 1 << 20, &stack("/home/me/sim")), None);
        assert_eq!(arena(Some("mmap"), 1 << 20, &[]), None);
    }
}
