// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All end-to-end tests in one binary, which links once. Each module tests a command or a property; `make e2e E2E=noharm::` runs one module.
//!
//! `corpus`, `fixes`, `truth` and `outside` profile programs and check the figures, so no other test may run at the same time: `scripts/e2e` runs them last,
//! one test at a time. The other modules compare outputs, or read the recorded profiles in `fixtures/profiles`.

mod agreement;
mod allocations;
mod bandwidth;
mod bench;
mod check;
mod command_line;
mod container;
mod corpus;
mod diff;
mod export;
mod failure;
mod faults;
mod first_hour;
mod fixes;
mod hostile;
mod html;
mod limits;
mod map;
mod merge;
mod metrics;
mod migrate;
mod mpi_corpus;
mod names;
mod new_user;
mod noharm;
mod noharm_real;
mod outside;
mod pictures;
mod plan;
mod predict;
mod profile_file;
mod ranks;
mod reproduce;
mod run;
mod slurm;
mod surroundings;
mod top;
mod truth;
mod tune;
