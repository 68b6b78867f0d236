//! The system: readers of /proc and /sys, system calls, and the launch of programs.
//!
//! Only this crate and `firsttouch_capture` (which maps the rings of events) make system calls and contain `unsafe` code. Readers take
//! a root directory (normally `/`), and are tested on recorded machines.
//!
//! | module | what it does | rests on |
//! |---|---|---|
//! | [`calls`] | system calls, one wrapper each: affinity, memory policy, move_pages, perf_event_open, ... | |
//! | [`proc`] | parsers of /proc, one file each | |
//! | `files` | small files below a root; lists, sizes and choices as the kernel writes them | |
//! | [`topology`] | nodes, CPUs, caches, distances | `files`, `proc` |
//! | [`machine`] | the machine that a profile is taken on, and the one it is judged on (`target_machine.rs`: `virtual:N`, hwloc files) | `files`, `proc`, [`hwloc`] |
//! | [`process`] | threads and memory of a process | `proc` |
//! | [`cgroups`] | memory by node of control groups (version 2) | `files` |
//! | [`counters`], [`balancing`], [`devices`] | counters of placement; NUMA balancing; the node of a device | `files` |
//! | [`bandwidth`] | counters of memory bandwidth: memory controllers, resctrl | `files`, `calls` |
//! | [`node_memory`] | memory of each node by what it is used for | `files` |
//! | [`debug_exceptions`] | whether a hypervisor may lose their causes | |
//! | [`facts`] | what `firsttouch doctor` judges | all of the above |
//! | [`hwloc`] | topologies in hwloc's XML | |
//! | [`program`] | a program's libraries and OpenMP runtime, from its file | `preload` |
//! | [`launch`] | starts programs, passes signals on | |
//! | [`run_directory`] | a directory for the files of one run, held while it lasts | |
//! | [`leftovers`] | files that earlier runs left in temporary and cache directories | |
//! | [`preload`] | libraries for LD_PRELOAD: whether a program can load them, and where they are stored | |

pub mod balancing;
pub mod bandwidth;
pub mod calls;
pub mod cgroups;
pub mod counters;
pub mod debug_exceptions;
pub mod devices;
pub mod facts;
mod files;
pub mod hwloc;
pub mod launch;
pub mod launchers;
pub mod leftovers;
pub mod machine;
pub mod node_memory;
pub mod preload;
pub mod proc;
pub mod process;
pub mod program;
pub mod run_directory;
pub mod topology;

pub use files::{ListError, parse_list, read_bounded, read_bounded_text, too_large};
pub use machine::{ImportedMachine, MachineInfo, Permissions, TargetError, TargetMachine};
