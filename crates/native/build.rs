//! Compiles the bundled kernels (OpenMP, linked into firsttouch), and the agent, the pin library and the plan
//! library (shared libraries, embedded as bytes).

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, exit};

fn main() {
    if let Err(message) = build() {
        eprintln!("\nerror: {message}\n");
        exit(1);
    }
}

fn build() -> Result<(), String> {
    let manifest = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(variable("OUT_DIR")?);
    let native = manifest.join("native");
    let native = native.canonicalize().map_err(|e| format!("cannot find {}: {e}", native.display()))?;
    let compiler =
        cc::Build::new().try_get_compiler().map_err(|e| format!("cannot find a C compiler: {e}; install gcc or clang, or set CC"))?;
    kernels(&native.join("kernels"), &compiler, &out)?;
    for shared in ["include", "preload"] {
        println!("cargo:rerun-if-changed={}", native.join(shared).display());
    }
    library(&native, "agent", &[], AGENT_LINK_FLAGS, &compiler, &out)?;
    library(&native, "pin", &[], &[], &compiler, &out)?;
    library(&native, "plan", &[], AGENT_LINK_FLAGS, &compiler, &out)?;
    // With the sources of libfirsttouch that place memory; only the names of the OpenMP runtime are exported.
    let exports = format!("-Wl,--version-script={}", native.join("openmp/exports.map").display());
    library(&native, "openmp", &["library"], &["-ffunction-sections", &exports, "-Wl,--gc-sections"], &compiler, &out)
}

fn kernels(folder: &Path, compiler: &cc::Tool, out: &Path) -> Result<(), String> {
    let sources = watched_sources(folder)?;
    check_openmp(compiler, out)?;
    cc::Build::new()
        .files(&sources)
        .std("c11")
        // Optimised in every profile: bench measures memory, and reports must be right at -O2 -g.
        .opt_level(2)
        .debug(true)
        .flag("-fopenmp")
        .flag("-fno-omit-frame-pointer")
        .warnings(true)
        .extra_warnings(true)
        .try_compile("firsttouch_kernels")
        .map_err(|e| format!("cannot compile the kernels in {}: {e}", folder.display()))?;
    link_openmp(compiler, &out.join("openmp.c"))?;
    println!("cargo:rustc-link-lib=dylib=m");
    Ok(())
}

/// Compiles and links a program that needs OpenMP, so that a missing OpenMP is reported once, with what to install.
fn check_openmp(compiler: &cc::Tool, out: &Path) -> Result<(), String> {
    let source = out.join("openmp.c");
    let program = "#include <omp.h>\nint main(void) { return omp_get_max_threads() < 1; }\n";
    fs::write(&source, program).map_err(|e| format!("cannot write {}: {e}", source.display()))?;
    let output = compiler
        .to_command()
        .arg("-fopenmp")
        .arg(&source)
        .arg("-o")
        .arg(out.join("openmp"))
        .output()
        .map_err(|e| format!("cannot run {}: {e}", compiler.path().display()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!(
        "cannot compile OpenMP with {}: {}\ninstall gcc, or libomp-dev for clang, or set CC to another compiler",
        compiler.path().display(),
        String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or("-fopenmp failed").trim()
    ))
}

/// Links the compiler's OpenMP runtime. Its name and folders are those of the link line that the compiler would run (`-###`).
fn link_openmp(compiler: &cc::Tool, source: &Path) -> Result<(), String> {
    let output = compiler
        .to_command()
        .args(["-###", "-fopenmp"])
        .arg(source)
        .output()
        .map_err(|e| format!("cannot run {}: {e}", compiler.path().display()))?;
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    let words = || messages.split_whitespace().map(|word| word.trim_matches('"'));
    let runtime = words().filter_map(|word| word.strip_prefix("-l")).find(|name| RUNTIMES.contains(name));
    let runtime = runtime.ok_or_else(|| {
        format!(
            "cannot determine which OpenMP runtime {} links: its link line has none of {RUNTIMES:?}; set CC=gcc",
            compiler.path().display()
        )
    })?;
    for folder in words().filter_map(|word| word.strip_prefix("-L")).filter(|folder| Path::new(folder).is_absolute()) {
        println!("cargo:rustc-link-search=native={folder}");
    }
    println!("cargo:rustc-link-lib=dylib={runtime}");
    Ok(())
}

/// GNU, LLVM, Intel.
const RUNTIMES: &[&str] = &["gomp", "omp", "iomp5"];

/// native/agent/agent.h, native/pin/pin.h and native/plan/plan.h explain the flags. No debug information, because the libraries are embedded.
/// Without -ffunction-sections: the agent's unwinding from a hook in a signal handler crashed with it (`noharm::mmap_in_a_signal_handler`); the cause is not known.
const LIBRARY_FLAGS: &[&str] = &[
    "-std=c11",
    "-O2",
    "-g0",
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
    "-ftls-model=initial-exec",
    "-fasynchronous-unwind-tables",
    "-fno-strict-aliasing",
    "-Wall",
    "-Wextra",
];
const LIBRARY_LINK_FLAGS: &[&str] = &["-Wl,-z,now", "-Wl,-z,relro", "-ldl", "-lpthread"];
const AGENT_LINK_FLAGS: &[&str] = &["-static-libgcc", "-Wl,--exclude-libs,ALL", "-Wl,-z,initfirst"];

/// Compiles `native/NAME`, with the folders that it shares code with, to `libfirsttouch_NAME.so`.
fn library(native: &Path, name: &str, with: &[&str], link_flags: &[&str], compiler: &cc::Tool, out: &Path) -> Result<(), String> {
    let file = format!("libfirsttouch_{name}.so");
    let mut sources = watched_sources(&native.join(name))?;
    for folder in with {
        sources.extend(watched_sources(&native.join(folder))?);
    }
    // The compiler without cargo's flags: the library is the same in debug and release builds.
    let output = Command::new(compiler.path())
        .args(LIBRARY_FLAGS)
        .arg("-I")
        .arg(native.join("include"))
        .arg("-I")
        .arg(native.join("library/include"))
        .args(&sources)
        .args(link_flags)
        .args(LIBRARY_LINK_FLAGS)
        .arg(format!("-Wl,-soname,{file}"))
        .arg("-o")
        .arg(out.join(&file))
        .output()
        .map_err(|e| format!("cannot run {}: {e}", compiler.path().display()))?;
    let messages = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("cannot compile {file} in {}:\n{messages}", native.join(name).display()));
    }
    for line in messages.lines() {
        println!("cargo:warning={line}");
    }
    Ok(())
}

/// The C files of a folder, sorted; cargo rebuilds when the folder changes.
fn watched_sources(folder: &Path) -> Result<Vec<PathBuf>, String> {
    println!("cargo:rerun-if-changed={}", folder.display());
    let entries = fs::read_dir(folder).map_err(|e| format!("cannot read {}: {e}", folder.display()))?;
    let mut sources: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == "c")).collect();
    sources.sort();
    if sources.is_empty() {
        return Err(format!("no C files in {}", folder.display()));
    }
    Ok(sources)
}

fn variable(name: &str) -> Result<String, String> {
    env::var(name).map_err(|e| format!("cannot read {name}: {e}; build with cargo"))
}
