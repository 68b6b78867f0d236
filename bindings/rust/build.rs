//! Compiles libfirsttouch from native/ and links it into the crate, or links the installed library (feature `system`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::exit;

fn main() {
    if std::env::var_os("CARGO_FEATURE_SYSTEM").is_some() {
        println!("cargo:rerun-if-env-changed=FIRSTTOUCH_LIB_DIR");
        if let Some(folder) = std::env::var_os("FIRSTTOUCH_LIB_DIR") {
            println!("cargo:rustc-link-search=native={}", Path::new(&folder).display());
        }
        println!("cargo:rustc-link-lib=dylib=firsttouch");
        return;
    }
    if let Err(message) = compile(Path::new("native")) {
        eprintln!("\nerror: {message}\n");
        exit(1);
    }
}

fn compile(folder: &Path) -> Result<(), String> {
    println!("cargo:rerun-if-changed={}", folder.display());
    let entries =
        fs::read_dir(folder).map_err(|e| format!("cannot read {}: {e}; build from the repository or the package", folder.display()))?;
    let mut sources: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "c")).collect();
    sources.sort();
    if sources.is_empty() {
        return Err(format!("cannot build libfirsttouch: no C files in {}", folder.display()));
    }
    cc::Build::new()
        .files(&sources)
        .include(folder.join("include"))
        .std("c11")
        .opt_level(2)
        .flag("-fvisibility=hidden")
        .flag("-pthread")
        .warnings(true)
        .extra_warnings(true)
        .try_compile("firsttouch")
        .map_err(|e| format!("cannot compile libfirsttouch: {e}; install gcc or clang, or set CC"))
}
