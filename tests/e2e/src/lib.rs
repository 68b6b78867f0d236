// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Shared code of the end-to-end tests: finds the firsttouch under test, builds the programs under `tests/programs` and
//! `corpus`, runs a command bare and profiled, and compares the results.
//!
//! ```text
//! paths     paths of files and tools     programs  build from the `corpus: build` header, cached
//! process   run, signal, time out        case      one program, run bare and profiled, compared
//! tool      the firsttouch under test    terminal  run on a pseudo-terminal
//! corpus    what the corpus promises     recorded  profiles recorded once, read by tests
//! expected  what a report must say about a program of the corpus
//! edits     fixes of a report, applied to a copy of a program
//! real      real programs, run bare and profiled
//! browser   a headless browser that shows a page
//! agreement  whether report and plan contradict each other
//! documented  commands that the documentation prints
//! mpi       jobs of Open MPI and MPICH, with firsttouch before the launcher or behind it
//! picture   SVG pictures as a reader sees them
//! skip      report loudly what was not tested
//! side_by_side  judge or build several things at a time
//! ```

pub mod agreement;
pub mod browser;
pub mod case;
pub mod corpus;
pub mod documented;
pub mod edits;
pub mod expected;
pub mod mpi;
pub mod paths;
pub mod picture;
pub mod process;
pub mod programs;
pub mod real;
pub mod recorded;
pub mod side_by_side;
pub mod skip;
pub mod small_disk;
pub mod terminal;
pub mod tool;
