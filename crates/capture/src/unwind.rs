//! Call stacks from a sample's registers and stack bytes, by the unwind tables of the mapped files (framehop).

use crate::perf::records::Sample;
use firsttouch_symbols::file_part;
use framehop::{ExplicitModuleSectionInfo, MayAllocateDuringUnwind, Module, Unwinder as _};
use hashbrown::HashMap;
use object::elf::{FileHeader64, PT_LOAD};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};
use object::{Endianness, ReadCache};
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[cfg(target_arch = "aarch64")]
type NativeUnwinder = framehop::aarch64::UnwinderAarch64<Arc<[u8]>>;
#[cfg(target_arch = "x86_64")]
type NativeUnwinder = framehop::x86_64::UnwinderX86_64<Arc<[u8]>>;
#[cfg(target_arch = "aarch64")]
type NativeCache = framehop::aarch64::CacheAarch64<MayAllocateDuringUnwind>;
#[cfg(target_arch = "x86_64")]
type NativeCache = framehop::x86_64::CacheX86_64<MayAllocateDuringUnwind>;

/// Deepest stack kept.
const MAX_FRAMES: usize = 24;

/// What an unwinder needs of one ELF file, read once.
struct Tables {
    /// (file offset, size, address) of the loadable segments.
    segments: Vec<(u64, u64, u64)>,
    eh_frame: Option<(std::ops::Range<u64>, Arc<[u8]>)>,
    eh_frame_hdr: Option<(std::ops::Range<u64>, Arc<[u8]>)>,
}

/// Tables of every file seen, shared by all processes.
#[derive(Default)]
pub struct TableStore {
    files: HashMap<PathBuf, Option<Arc<Tables>>>,
}

impl TableStore {
    fn get(&mut self, path: &Path) -> Option<Arc<Tables>> {
        self.files.entry(path.to_owned()).or_insert_with(|| read_tables(path).map(Arc::new)).clone()
    }
}

fn read_tables(path: &Path) -> Option<Tables> {
    if !path.is_absolute() || !path.is_file() {
        return None;
    }
    let file = std::fs::File::open(path).ok()?;
    // Reads only the headers and the tables, and no symbols. A mapping would be fatal if the file were truncated meanwhile.
    let data = ReadCache::new(&file);
    let header = FileHeader64::<Endianness>::parse(&data).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, &data).ok()?;
    let section = |name: &[u8]| {
        let (_, section) = sections.section_by_name(endian, name)?;
        let (offset, bytes) = section.file_range(endian)?;
        let address = section.sh_addr(endian);
        Some((address..address.checked_add(bytes)?, file_part(&file, offset, bytes)?))
    };
    let segments = header.program_headers(endian, &data).ok()?.iter().filter(|segment| segment.p_type(endian) == PT_LOAD);
    Some(Tables {
        segments: segments.map(|segment| (segment.p_offset(endian), segment.p_filesz(endian), segment.p_vaddr(endian))).collect(),
        eh_frame: section(b".eh_frame"),
        eh_frame_hdr: section(b".eh_frame_hdr"),
    })
}

/// The unwinder of one process.
pub struct Unwinder {
    unwinder: NativeUnwinder,
    cache: NativeCache,
}

impl Default for Unwinder {
    fn default() -> Self {
        Self { unwinder: NativeUnwinder::new(), cache: NativeCache::new_in() }
    }
}

impl Unwinder {
    /// Adds an executable mapping.
    pub fn add(&mut self, store: &mut TableStore, start: u64, length: u64, file_offset: u64, path: &str) {
        let Some(tables) = store.get(Path::new(path)) else { return };
        // A range that overflows comes from a damaged record or file.
        let Some(mapped_to) = file_offset.checked_add(length) else { return };
        let overlaps =
            |(offset, size, _): &&(u64, u64, u64)| offset.checked_add(*size).is_some_and(|end| mapped_to > *offset && file_offset < end);
        let Some((offset, _, address)) = tables.segments.iter().find(overlaps).copied() else { return };
        // base: what to add to an ELF address, from the mapping's start and file offset.
        let base = start.wrapping_sub(file_offset).wrapping_sub(address.wrapping_sub(offset));
        let (eh_frame_svma, eh_frame) = tables.eh_frame.clone().unzip();
        let (eh_frame_hdr_svma, eh_frame_hdr) = tables.eh_frame_hdr.clone().unzip();
        let sections =
            ExplicitModuleSectionInfo { base_svma: 0, eh_frame_svma, eh_frame, eh_frame_hdr_svma, eh_frame_hdr, ..Default::default() };
        self.unwinder.remove_module(start);
        self.unwinder.add_module(Module::new(path.to_owned(), start..start.saturating_add(length), base, sections));
    }

    /// Code addresses, leaf first: the sample's own (user-mode) instruction, then return addresses.
    pub fn stack(&mut self, sample: &Sample) -> Vec<u64> {
        #[cfg(target_arch = "x86_64")]
        let (ip, stack_pointer, registers) = match sample.registers[..] {
            [_, _, _, bp, sp, ip] => (ip, sp, framehop::x86_64::UnwindRegsX86_64::new(ip, sp, bp)),
            _ => return vec![sample.ip],
        };
        #[cfg(target_arch = "aarch64")]
        let (ip, stack_pointer, registers) = match sample.registers[..] {
            [fp, lr, sp, pc] => (pc, sp, framehop::aarch64::UnwindRegsAarch64::new(lr, sp, fp)),
            _ => return vec![sample.ip],
        };
        let mut read = |address: u64| {
            let at = usize::try_from(address.checked_sub(stack_pointer).ok_or(())?).map_err(|_| ())?;
            let bytes = sample.stack.get(at..at.checked_add(8).ok_or(())?).ok_or(())?;
            Ok(u64::from_ne_bytes(bytes.try_into().map_err(|_| ())?))
        };
        let mut frames = self.unwinder.iter_frames(ip, registers, &mut self.cache, &mut read);
        let mut stack = Vec::with_capacity(8);
        while let Ok(Some(frame)) = frames.next() {
            stack.push(frame.address());
            if stack.len() == MAX_FRAMES {
                break;
            }
        }
        if stack.is_empty() {
            stack.push(ip);
        }
        stack
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::{Object, ObjectSection};

    /// Check that an index of unwind tables whose entries point before the tables loses the stack and does not panic. The
    /// file is this test, with every entry of its index damaged.
    #[test]
    fn a_damaged_index_is_survived() {
        let folder = tempfile::tempdir().expect("a folder");
        let copy = folder.path().join("damaged");
        let mut bytes = std::fs::read("/proc/self/exe").expect("this test");
        let (index, code) = {
            let elf = object::File::parse(&*bytes).expect("an ELF file");
            let index = elf.section_by_name(".eh_frame_hdr").and_then(|section| section.file_range()).expect("an index");
            (index, elf.section_by_name(".text").expect("code").address())
        };
        // After the header of 12 bytes: pairs of a code address and that of its table, each 4 bytes and relative to the index.
        let (start, end) = (usize::try_from(index.0).expect("an offset"), usize::try_from(index.0 + index.1).expect("an offset"));
        for entry in bytes[start + 12..end].chunks_exact_mut(8) {
            entry[4..].copy_from_slice(&(-16i32).to_le_bytes());
        }
        std::fs::write(&copy, &bytes).expect("the copy");
        let (mut store, mut unwinder) = (TableStore::default(), Unwinder::default());
        unwinder.add(&mut store, 0, 1 << 40, 0, copy.to_str().expect("text"));
        for address in (code..code + 0x10000).step_by(64) {
            let registers = vec![0, 0, 0, 0x7000, 0x7000, address];
            let stack = unwinder.stack(&Sample { ip: address, registers, stack: vec![0; 64], ..Sample::default() });
            assert_eq!(stack.first(), Some(&address));
        }
    }

    /// Check that an impossible mapping of a readable file is ignored.
    #[test]
    fn impossible_mappings_are_left_out() {
        let executable = std::env::current_exe().expect("this test");
        let (mut store, mut unwinder) = (TableStore::default(), Unwinder::default());
        for (start, length, file_offset) in [(0, u64::MAX, u64::MAX), (u64::MAX, u64::MAX, 0), (0x1000, 0, u64::MAX), (0x1000, u64::MAX, 1)]
        {
            unwinder.add(&mut store, start, length, file_offset, executable.to_str().expect("text"));
            let registers = vec![0, 0, 0, 0x7000, 0x7000, 0x2000];
            assert_eq!(unwinder.stack(&Sample { ip: 0x2000, registers, ..Sample::default() }).first(), Some(&0x2000));
        }
    }
}
