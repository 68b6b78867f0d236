//! Finds separate debug information as gdb does: by build ID, then by `.gnu_debuglink`.
//! <https://sourceware.org/gdb/current/onlinedocs/gdb.html/Separate-Debug-Files.html>

use crate::elf::{Elf, with_elf};
use object::Object;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The references of an ELF file to its debug information.
#[derive(Default)]
pub(crate) struct Links {
    pub(crate) build_id: Option<Vec<u8>>,
    /// File name and CRC-32 of the whole debug file (`.gnu_debuglink`).
    debug_link: Option<(PathBuf, u32)>,
    /// File shared by several debug files (`.gnu_debugaltlink`, made by dwz).
    shared: Option<(PathBuf, Vec<u8>)>,
}

impl Links {
    pub(crate) fn read(elf: &Elf<'_>) -> Self {
        let path = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
        Self {
            build_id: elf.build_id().ok().flatten().map(<[u8]>::to_vec),
            debug_link: elf.gnu_debuglink().ok().flatten().map(|(name, crc)| (path(name), crc)),
            shared: elf.gnu_debugaltlink().ok().flatten().map(|(name, id)| (path(name), id.to_vec())),
        }
    }
}

/// Where distributions store debug files.
pub(crate) fn default_roots() -> Vec<PathBuf> {
    vec![PathBuf::from("/usr/lib/debug")]
}

/// The separate debug file of `module`, checked to belong to it.
pub(crate) fn find(module: &Path, links: &Links, roots: &[PathBuf]) -> Option<PathBuf> {
    let by_id = links.build_id.as_deref().and_then(|id| find_by_build_id(id, roots));
    by_id.or_else(|| find_by_link(module, links, roots))
}

/// The file that a debug file shares with others, checked by its build id.
pub(crate) fn find_shared(debug_file: &Path, links: &Links, roots: &[PathBuf]) -> Option<PathBuf> {
    let (name, id) = links.shared.as_ref()?;
    let beside = debug_file.parent().map(|directory| directory.join(name));
    let found = beside.filter(|path| build_id(path).as_ref() == Some(id));
    found.or_else(|| find_by_build_id(id, roots))
}

fn find_by_build_id(id: &[u8], roots: &[PathBuf]) -> Option<PathBuf> {
    let (first, rest) = id.split_first().filter(|(_, rest)| !rest.is_empty())?;
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let name = format!(".build-id/{first:02x}/{}.debug", hex(rest));
    let installed = roots.iter().map(|root| root.join(&name));
    let downloaded = debuginfod_cache().map(|cache| cache.join(hex(id)).join("debuginfo"));
    installed.chain(downloaded).find(|path| build_id(path).as_deref() == Some(id))
}

/// Files that gdb or perf downloaded earlier. This crate does not download files.
fn debuginfod_cache() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    variable("DEBUGINFOD_CACHE_PATH")
        .or_else(|| variable("XDG_CACHE_HOME").map(|cache| cache.join("debuginfod_client")))
        .or_else(|| variable("HOME").map(|home| home.join(".cache/debuginfod_client")))
}

fn find_by_link(module: &Path, links: &Links, roots: &[PathBuf]) -> Option<PathBuf> {
    let (name, crc) = links.debug_link.as_ref()?;
    // Use only the file name: a damaged or hostile path must not lead to another directory.
    let name = Path::new(name.file_name()?);
    let module = module.canonicalize().ok()?;
    let directory = module.parent()?;
    let below_root = directory.strip_prefix("/").unwrap_or(directory);
    let mut candidates = vec![directory.join(name), directory.join(".debug").join(name)];
    candidates.extend(roots.iter().map(|root| root.join(below_root).join(name)));
    candidates.into_iter().find(|path| *path != module && belongs(path, links.build_id.as_deref(), *crc))
}

/// Files belong together if their build ids are equal; without build ids, if the checksum matches.
fn belongs(path: &Path, id: Option<&[u8]>, crc: u32) -> bool {
    if !path.is_file() {
        return false;
    }
    match (id, build_id(path)) {
        (Some(wanted), Some(found)) => wanted == found,
        _ => crc32(path) == Some(crc),
    }
}

fn build_id(path: &Path) -> Option<Vec<u8>> {
    with_elf(path, |elf| elf.build_id().ok().flatten().map(<[u8]>::to_vec)).ok().flatten()
}

fn crc32(path: &Path) -> Option<u32> {
    std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    let mut file = File::open(path).ok()?;
    let mut hasher = crc32fast::Hasher::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer).ok()? {
            0 => return Some(hasher.finalize()),
            count => hasher.update(buffer.get(..count)?),
        }
    }
}
