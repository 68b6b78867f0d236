//! Analysis against profiles with known truth: simulated programs, constructed profiles, malformed ones.
#![allow(clippy::unwrap_used)]

mod births;
mod bursts;
mod c_library;
mod chunks;
mod estimator;
mod findings;
mod fixes;
mod fork_server;
mod gaps;
mod growing;
mod hot_lines;
mod idle_threads;
mod in_turn;
mod jobs;
mod kinds;
mod laps;
mod large;
mod limits;
mod many_processes;
mod names;
mod near_bar;
mod pools;
mod recorded_machine;
mod rows;
mod rust_library;
mod samples;
mod seeds;
mod shared_memory;
mod simulated;
mod successors;
mod together;
mod uneven_ticks;
mod weights;
mod without_perf;
