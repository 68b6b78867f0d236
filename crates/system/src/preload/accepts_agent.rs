//! Can the agent be loaded into this program? Looks at the file the kernel will execute, following `#!` lines.

use object::elf;
use object::read::elf::{FileHeader, ProgramHeader};
use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The longest name of a library or list of folders; longer text is damage.
const LONGEST_TEXT: usize = 4096;

/// Why the agent cannot be loaded into a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Agentless {
    /// Statically linked: it has no loader.
    Static,
    /// Another C library or another word size: the loader would ignore the agent or print an error.
    ForeignLoader(String),
    /// setuid, setgid, file capabilities: the loader ignores LD_PRELOAD.
    Privileged,
    /// Built with a sanitizer whose runtime is a library: it must come first, and ends the program if it does not.
    Sanitizer(String),
    /// Missing or not readable.
    Unreadable,
}

impl std::fmt::Display for Agentless {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Static => write!(
                f,
                "the program is statically linked, so no agent can be loaded into it: objects are named by mapping, and allocations, their lines and their sizes were not seen; link it dynamically to see them"
            ),
            Self::ForeignLoader(loader) => {
                write!(f, "the program uses the loader {loader}, for which there is no agent: objects are named by mapping")
            }
            Self::Privileged => write!(
                f,
                "the program is setuid or setgid or has file capabilities, so the loader refuses the agent: objects are named by mapping; profile a copy without them, or as its owner"
            ),
            Self::Sanitizer(library) => write!(
                f,
                "the program needs {library}, which must be the first library in the process, so the agent is not loaded: objects are named by mapping; build it without the sanitizer (its figures would be misleading anyway)"
            ),
            Self::Unreadable => {
                write!(f, "the program's file cannot be read, so it is unknown whether the agent fits: objects are named by mapping")
            }
        }
    }
}

/// Checks the program at `path`.
///
/// # Errors
/// The reason why it must run without the agent.
pub fn accepts_agent(path: &Path) -> Result<(), Agentless> {
    let mut path = path.to_owned();
    if let Some(library) = preloaded_sanitizer(std::env::var_os("LD_PRELOAD")) {
        return Err(Agentless::Sanitizer(library));
    }
    for _ in 0..5 {
        let mut start = Vec::new();
        let mut file = File::open(&path).map_err(|_| Agentless::Unreadable)?;
        let meta = file.metadata().map_err(|_| Agentless::Unreadable)?;
        if !meta.is_file() {
            return Err(Agentless::Unreadable);
        }
        file.by_ref().take(4096).read_to_end(&mut start).map_err(|_| Agentless::Unreadable)?;
        let (user, group) = crate::calls::identity::user_and_group();
        let mode = meta.permissions().mode();
        if (mode & libc::S_ISUID != 0 && meta.uid() != user) || (mode & libc::S_ISGID != 0 && meta.gid() != group) {
            return Err(Agentless::Privileged);
        }
        if user != 0 && has_capabilities(&file) {
            return Err(Agentless::Privileged);
        }
        match interpreter(&start) {
            Some(next) => path = next,
            None => return elf_accepts(&path),
        }
    }
    Err(Agentless::Unreadable)
}

fn has_capabilities(file: &File) -> bool {
    // SAFETY: an open descriptor and a terminated name; with size 0 nothing is written.
    unsafe { libc::fgetxattr(file.as_raw_fd(), c"security.capability".as_ptr(), std::ptr::null_mut(), 0) > 0 }
}

/// The interpreter of a `#!` script; `/bin/sh` for a text file, as execvp does.
fn interpreter(start: &[u8]) -> Option<PathBuf> {
    if let Some(line) = start.strip_prefix(b"#!") {
        let line = line.split(|&b| b == b'\n').next().unwrap_or_default();
        let word = String::from_utf8_lossy(line).split_whitespace().next().unwrap_or_default().to_owned();
        return Some(PathBuf::from(word));
    }
    (!start.starts_with(b"\x7fELF")).then(|| PathBuf::from("/bin/sh"))
}

fn elf_accepts(path: &Path) -> Result<(), Agentless> {
    let file = File::open(path).map_err(|_| Agentless::Unreadable)?;
    let data = crate::calls::mapped_file::map(&file).map_err(|_| Agentless::Unreadable)?;
    let header =
        elf::FileHeader64::<object::Endianness>::parse(&*data).map_err(|_| Agentless::ForeignLoader("of another word size".to_owned()))?;
    let endian = header.endian().map_err(|_| Agentless::Unreadable)?;
    let machine = if cfg!(target_arch = "aarch64") { elf::EM_AARCH64 } else { elf::EM_X86_64 };
    if header.e_machine(endian) != machine {
        return Err(Agentless::ForeignLoader("of another processor".to_owned()));
    }
    let segments = header.program_headers(endian, &*data).map_err(|_| Agentless::Unreadable)?;
    let Some(loader) = segments.iter().find_map(|s| s.interpreter(endian, &*data).ok().flatten()) else { return Err(Agentless::Static) };
    let loader = String::from_utf8_lossy(loader).into_owned();
    if !loader.rsplit('/').next().is_some_and(|file| file.starts_with("ld-linux")) {
        return Err(Agentless::ForeignLoader(loader));
    }
    needed(endian, segments, &data).into_iter().find(|name| is_sanitizer(name)).map_or(Ok(()), |name| Err(Agentless::Sanitizer(name)))
}

/// The names of the libraries a program needs, as far as they can be read.
fn needed(endian: object::Endianness, segments: &[elf::ProgramHeader64<object::Endianness>], data: &[u8]) -> Vec<String> {
    dynamic_texts(endian, segments, data, elf::DT_NEEDED)
}

/// The strings of all readable entries of a kind (`DT_NEEDED`, `DT_RUNPATH`) in the dynamic section.
pub(crate) fn dynamic_texts(
    endian: object::Endianness,
    segments: &[elf::ProgramHeader64<object::Endianness>],
    data: &[u8],
    kind: elf::DynamicTag,
) -> Vec<String> {
    let entries = segments.iter().find_map(|s| s.dynamic(endian, data).ok().flatten()).unwrap_or_default();
    let value = |tag: elf::DynamicTag| entries.iter().filter(move |e| e.d_tag.get(endian) == tag).map(|e| e.d_val.get(endian));
    let Some(names) = value(elf::DT_STRTAB).next() else { return Vec::new() };
    let text = |at: u64| {
        let address = names.checked_add(at)?;
        let segment = segments.iter().find(|s| {
            s.p_type(endian) == elf::PT_LOAD && address.checked_sub(s.p_vaddr(endian)).is_some_and(|within| within < s.p_filesz(endian))
        })?;
        let start = usize::try_from(segment.p_offset(endian).checked_add(address - segment.p_vaddr(endian))?).ok()?;
        let rest = data.get(start..)?;
        let end = rest.iter().take(LONGEST_TEXT).position(|&b| b == 0)?;
        Some(String::from_utf8_lossy(&rest[..end]).into_owned())
    };
    value(kind).filter_map(text).collect()
}

/// A sanitizer among the libraries that the user preloads: it must come before the agent too.
fn preloaded_sanitizer(list: Option<std::ffi::OsString>) -> Option<String> {
    let list = list?.to_string_lossy().into_owned();
    let files = list.split([':', ' ']).filter_map(|path| path.rsplit('/').next());
    files.into_iter().find(|file| is_sanitizer(file)).map(str::to_owned)
}

fn is_sanitizer(library: &str) -> bool {
    ["libasan.so", "libtsan.so", "liblsan.so", "libhwasan.so", "libclang_rt."].iter().any(|prefix| library.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check scripts, text, garbage and missing files.
    #[test]
    fn programs_are_classified() {
        let dir = tempfile::tempdir().expect("tempdir");
        let file = |name: &str, content: &[u8]| {
            let path = dir.path().join(name);
            std::fs::write(&path, content).expect("write");
            path
        };
        assert_eq!(accepts_agent(Path::new("/bin/sh")), Ok(()));
        assert_eq!(accepts_agent(&file("script", b"#! /bin/sh -e\ntrue\n")), Ok(()));
        assert_eq!(accepts_agent(&file("text", b"true\n")), Ok(()));
        assert_eq!(accepts_agent(&file("loop", format!("#!{}", dir.path().join("loop").display()).as_bytes())), Err(Agentless::Unreadable));
        assert_eq!(accepts_agent(&dir.path().join("missing")), Err(Agentless::Unreadable));
        assert_eq!(accepts_agent(dir.path()), Err(Agentless::Unreadable));
        assert_eq!(preloaded_sanitizer(Some("/x/libmy.so:/usr/lib/libasan.so.8".into())).as_deref(), Some("libasan.so.8"));
        assert_eq!(preloaded_sanitizer(Some("/libasan.so.8/libmy.so".into())), None);
        let elf = std::fs::read("/bin/sh").expect("a shell");
        for cut in [4, 16, 40, 63, 64, 100] {
            assert!(accepts_agent(&file("cut", &elf[..cut])).is_err(), "{cut} bytes");
        }
    }
}
