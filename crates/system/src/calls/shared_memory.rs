//! Shared memory with its own memory policy: files of tmpfs and hugetlbfs, System V segments.

use super::refusal::{Cause, Refusal};
use super::sysconf::page_bytes;
use super::{mask, policy_refused, refused};
use crate::proc::meminfo;
use firsttouch_model::Error;
use firsttouch_model::policy::Policy;
use firsttouch_model::topology::format_list;
use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

const MPOL_F_NODE: libc::c_ulong = 1;
const MPOL_F_ADDR: libc::c_ulong = 2;
const MPOL_MF_STRICT: libc::c_uint = 1;
/// The kernel's names by number, as numactl prints them (linux/mempolicy.h).
const NAMES: [&str; 7] = ["default", "preferred", "bind", "interleave", "local", "preferred-many", "weighted interleave"];
/// More nodes than any kernel is built for, in words.
const WORDS: usize = 64;

/// Which memory to attach, and how to create it if it does not exist.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub source: Source,
    pub offset: u64,
    /// To the end if `None`.
    pub length: Option<u64>,
    pub mode: u32,
}

#[derive(Clone, Debug)]
pub enum Source {
    File(PathBuf),
    /// The key is made from the file and the number (ftok(3)).
    SystemV {
        key_file: PathBuf,
        id: i32,
        huge: bool,
    },
}

/// Memory mapped into this process until this is dropped.
#[derive(Debug)]
pub struct SharedMemory {
    /// Start of the mapping: `skipped` bytes before the memory that was asked for.
    mapping: *mut libc::c_void,
    mapped_bytes: usize,
    is_system_v: bool,
    keeps_policies: bool,
    skipped: usize,
    offset: u64,
    length: usize,
    page_bytes: usize,
}

/// A part of a segment with one policy, or on one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part<T> {
    /// Bytes from the beginning of the file or segment.
    pub from: u64,
    pub to: u64,
    pub value: T,
}

impl SharedMemory {
    /// # Errors
    /// When it does not exist and cannot be created, is too short, or does not begin and end at pages.
    pub fn attach(wanted: &Wanted) -> Result<Self, Error> {
        match &wanted.source {
            Source::File(path) => Self::file(path, wanted),
            Source::SystemV { key_file, id, huge } => Self::system_v(key_file, *id, *huge, wanted),
        }
    }

    /// Whether other processes that use the memory follow a policy that is set here: files on disks keep none.
    #[must_use]
    pub fn keeps_policies(&self) -> bool {
        self.keeps_policies
    }

    fn file(path: &Path, wanted: &Wanted) -> Result<Self, Error> {
        let cannot = |action: &str, error: io::Error| Error::caused_by(error, format!("cannot {action} {}", path.display()));
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        let file = match options.open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && wanted.length.is_some() => {
                options.create(true).mode(wanted.mode).open(path).map_err(|error| cannot("create", error))?
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Error::not_found(format!("{} does not exist: with --length it is created", path.display())));
            }
            opened => opened.map_err(|error| cannot("open", error))?,
        };
        let bytes = file.metadata().map_err(|error| cannot("examine", error))?.len();
        let length = wanted.length.unwrap_or(bytes.saturating_sub(wanted.offset));
        let end = wanted
            .offset
            .checked_add(length)
            .ok_or_else(|| Error::invalid_input("offset and length together are larger than any memory"))?;
        let (page_bytes, keeps_policies) = file_system_of(&file).map_err(|error| cannot("examine", error))?;
        let length = checked(wanted.offset, length, page_bytes)?;
        if end > bytes {
            file.set_len(end).map_err(|error| cannot("make longer", error))?;
        }
        let offset = libc::off_t::try_from(wanted.offset).map_err(|_| Error::invalid_input("the offset is larger than any file"))?;
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let mapping = unsafe {
            libc::mmap(std::ptr::null_mut(), length, libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED, file.as_raw_fd(), offset)
        };
        if mapping == libc::MAP_FAILED {
            return Err(cannot("map", io::Error::last_os_error()));
        }
        Ok(Self {
            mapping,
            mapped_bytes: length,
            is_system_v: false,
            keeps_policies,
            skipped: 0,
            offset: wanted.offset,
            length,
            page_bytes,
        })
    }

    fn system_v(key_file: &Path, id: i32, huge: bool, wanted: &Wanted) -> Result<Self, Error> {
        let name = format!("the shared memory of {}", key_file.display());
        let cannot = |action: &str| Error::caused_by(io::Error::last_os_error(), format!("cannot {action} {name}"));
        let key = key(key_file, id, wanted)?;
        let flags = if huge { libc::SHM_HUGETLB } else { 0 };
        let bytes = wanted.length.map_or(Ok(0), |length| usize::try_from(length.saturating_add(wanted.offset)));
        let bytes = bytes.map_err(|_| Error::invalid_input("the length is larger than any memory"))?;
        // SAFETY: system calls on numbers; `state` is plain data that the kernel fills.
        let (handle, state) = unsafe {
            let mut handle = libc::shmget(key, bytes, flags);
            if handle < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ENOENT) {
                if wanted.length.is_none() {
                    return Err(Error::not_found(format!("{name} does not exist: with --length it is created")));
                }
                let mode = i32::try_from(wanted.mode).unwrap_or(0o600);
                handle = libc::shmget(key, bytes, flags | libc::IPC_CREAT | mode);
            }
            if handle < 0 {
                return Err(cannot("get"));
            }
            let mut state: libc::shmid_ds = std::mem::zeroed();
            if libc::shmctl(handle, libc::IPC_STAT, &raw mut state) < 0 {
                return Err(cannot("examine"));
            }
            (handle, state)
        };
        let page_bytes = if huge { huge_page_bytes() } else { page_bytes() };
        let whole = state.shm_segsz as u64;
        let length = wanted.length.unwrap_or(whole.saturating_sub(wanted.offset));
        if wanted.offset.saturating_add(length) > whole {
            return Err(Error::invalid_input(format!("{name} has only {whole} bytes")));
        }
        let length = checked(wanted.offset, length, page_bytes)?;
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let mapping = unsafe { libc::shmat(handle, std::ptr::null(), 0) };
        if mapping.addr() == usize::MAX {
            return Err(cannot("attach"));
        }
        let skipped = usize::try_from(wanted.offset).unwrap_or(0);
        Ok(Self {
            mapping,
            mapped_bytes: skipped + length,
            is_system_v: true,
            keeps_policies: true,
            skipped,
            offset: wanted.offset,
            length,
            page_bytes,
        })
    }

    fn start(&self) -> *mut u8 {
        self.mapping.cast::<u8>().wrapping_add(self.skipped)
    }

    fn pages(&self) -> impl Iterator<Item = usize> {
        (0..self.length).step_by(self.page_bytes.max(1))
    }

    /// Sets a policy that stays with the memory. With `strict`, pages on other nodes are an error.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn set_policy(&self, policy: &Policy, strict: bool) -> Result<(), Refusal> {
        let words = mask::from_numbers(&policy.nodes);
        let (nodes, bits) = if policy.nodes.is_empty() { (std::ptr::null(), 0) } else { (words.as_ptr(), mask::bits(&words) + 1) };
        let flags = if strict { MPOL_MF_STRICT } else { 0 };
        // SAFETY: the kernel reads `bits - 1` bits, which outlive the call; the range is this segment's mapping.
        let status =
            unsafe { libc::syscall(libc::SYS_mbind, self.start(), self.length, libc::c_long::from(policy.number()), nodes, bits, flags) };
        if status == 0 {
            return Ok(());
        }
        Err(policy_refused(refused(format!("set the policy {policy} of the shared memory"), "mbind"), policy.since()))
    }

    /// Names the home node: of the nodes of the policy that was set before, the kernel prefers those nearest to it.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn set_home_node(&self, node: u32) -> Result<(), Refusal> {
        // SAFETY: the range is this segment's mapping.
        let status = unsafe { libc::syscall(libc::SYS_set_mempolicy_home_node, self.start(), self.length, libc::c_ulong::from(node), 0) };
        if status == 0 {
            return Ok(());
        }
        let mut refusal = refused(format!("make node {node} the home of the shared memory"), "set_mempolicy_home_node");
        if matches!(refusal.cause, Cause::Call { errno: libc::ENOSYS, .. }) && super::is_older(&super::running_kernel(), "5.17") {
            refusal.cause = Cause::Kernel { needs: "5.17", running: super::running_kernel() };
        }
        Err(refusal)
    }

    /// Touches every page without changing its contents.
    pub fn touch(&self) {
        for at in self.pages() {
            // SAFETY: within this segment's mapping; the atomic adds 0, because other processes may use the memory.
            unsafe { &*self.start().wrapping_add(at).cast::<std::sync::atomic::AtomicU8>() }
                .fetch_add(0, std::sync::atomic::Ordering::Relaxed);
        }
    }

    /// The policies, such as `bind 0-1`; ranges without a policy are left out.
    ///
    /// # Errors
    /// When the kernel refuses to answer.
    pub fn policies(&self) -> Result<Vec<Part<String>>, Refusal> {
        let mut parts = self.parts(|address| {
            let (mut mode, mut words) = (0, [0; WORDS]);
            ask(address, &mut mode, Some(&mut words), MPOL_F_ADDR)?;
            let name = usize::try_from(mode)
                .ok()
                .and_then(|mode| NAMES.get(mode))
                .map_or_else(|| format!("mode {mode}"), |name| (*name).to_owned());
            let nodes = mask::to_numbers(&words);
            Ok(if nodes.is_empty() { name } else { format!("{name} {}", format_list(&nodes)) })
        })?;
        parts.retain(|part| part.value != NAMES[0]);
        Ok(parts)
    }

    /// The nodes that the pages are on. This touches the pages.
    ///
    /// # Errors
    /// When the kernel refuses to answer.
    pub fn nodes(&self) -> Result<Vec<Part<u32>>, Refusal> {
        self.parts(|address| {
            let mut node = 0;
            ask(address, &mut node, None, MPOL_F_ADDR | MPOL_F_NODE)?;
            Ok(u32::try_from(node).unwrap_or(0))
        })
    }

    /// Adjacent pages with the same answer form one part.
    fn parts<T: PartialEq>(&self, answer: impl Fn(*mut u8) -> Result<T, Refusal>) -> Result<Vec<Part<T>>, Refusal> {
        let mut parts: Vec<Part<T>> = Vec::new();
        for at in self.pages() {
            let value = answer(self.start().wrapping_add(at))?;
            let from = self.offset + at as u64;
            let to = self.offset + (at + self.page_bytes).min(self.length) as u64;
            match parts.last_mut().filter(|last| last.value == value) {
                Some(last) => last.to = to,
                None => parts.push(Part { from, to, value }),
            }
        }
        Ok(parts)
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: this segment's mapping, to which no references remain.
        unsafe {
            if self.is_system_v {
                libc::shmdt(self.mapping);
            } else {
                libc::munmap(self.mapping, self.mapped_bytes);
            }
        }
    }
}

fn ask(
    address: *mut u8,
    answer: &mut libc::c_int,
    nodes: Option<&mut [libc::c_ulong; WORDS]>,
    flags: libc::c_ulong,
) -> Result<(), Refusal> {
    let (nodes, bits) = nodes.map_or((std::ptr::null_mut(), 0), |words| (words.as_mut_ptr(), (WORDS * 64) as libc::c_ulong));
    // SAFETY: the kernel writes one int and at most `bits` bits, which outlive the call.
    let status = unsafe { libc::syscall(libc::SYS_get_mempolicy, std::ptr::from_mut(answer), nodes, bits, address, flags) };
    if status == 0 { Ok(()) } else { Err(refused("read the policy of the shared memory".to_owned(), "get_mempolicy")) }
}

/// Offset and length must be whole pages.
fn checked(offset: u64, length: u64, page_bytes: usize) -> Result<usize, Error> {
    let page = page_bytes.max(1) as u64;
    if length == 0 {
        return Err(Error::invalid_input("the memory is empty, so there is nothing to set a policy on; give a --length"));
    }
    if !offset.is_multiple_of(page) || !length.is_multiple_of(page) {
        return Err(Error::invalid_input(format!("offset {offset} and length {length} must be whole pages, of {page} bytes here")));
    }
    usize::try_from(length).map_err(|_| Error::invalid_input("the length is larger than any memory"))
}

/// ftok(3). Creates the key file if it does not exist.
fn key(key_file: &Path, id: i32, wanted: &Wanted) -> Result<libc::key_t, Error> {
    let path = CString::new(key_file.as_os_str().as_bytes()).map_err(|_| Error::invalid_input("a path cannot contain a NUL byte"))?;
    // SAFETY: a string that ends with NUL.
    let key = unsafe { libc::ftok(path.as_ptr(), id) };
    if key != -1 {
        return Ok(key);
    }
    let cannot = || Error::caused_by(io::Error::last_os_error(), format!("cannot create the key file {}", key_file.display()));
    if wanted.length.is_none() {
        return Err(Error::not_found(format!("{}: {}; with --length it is created", key_file.display(), io::Error::last_os_error())));
    }
    // SAFETY: the descriptor is new, and nothing else owns it.
    let key = unsafe {
        let descriptor = libc::open(path.as_ptr(), libc::O_CREAT | libc::O_WRONLY | libc::O_CLOEXEC, wanted.mode);
        if descriptor < 0 {
            return Err(cannot());
        }
        drop(File::from_raw_fd(descriptor));
        libc::ftok(path.as_ptr(), id)
    };
    if key == -1 { Err(cannot()) } else { Ok(key) }
}

/// The page size of a file's file system (hugetlbfs has its own), and whether its files keep memory policies.
fn file_system_of(file: &File) -> io::Result<(usize, bool)> {
    const HUGETLBFS_MAGIC: libc::c_long = 0x958458f6u32 as libc::c_long;
    // SAFETY: plain data that the kernel fills.
    let state = unsafe {
        let mut state: libc::statfs = std::mem::zeroed();
        if libc::fstatfs(file.as_raw_fd(), &raw mut state) != 0 {
            return Err(io::Error::last_os_error());
        }
        state
    };
    Ok(match state.f_type {
        HUGETLBFS_MAGIC => (usize::try_from(state.f_bsize).unwrap_or(0), true),
        kind => (page_bytes(), kind == libc::TMPFS_MAGIC),
    })
}

/// The default huge page; a base page where the kernel does not say.
fn huge_page_bytes() -> usize {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    meminfo::bytes(&text, None, "Hugepagesize").and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or_else(page_bytes)
}
