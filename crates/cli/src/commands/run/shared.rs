//! `firsttouch run --shm|--file`: a policy for shared memory, which applies to every process that uses it.

use super::request;
use crate::arguments::{Run, Segment};
use crate::exit::{self, Usage};
use crate::output::{message, print};
use anyhow::{Result, anyhow};
use firsttouch_launch::{home_node, policy};
use firsttouch_model::policy::Mode;
use firsttouch_system::calls::shared_memory::{SharedMemory, Source, Wanted};
use std::fmt::Write;

/// The shared memory that the options name, if any.
pub fn wanted(segment: &Segment) -> Option<Wanted> {
    let file = segment.file.clone().map(Source::File);
    let source = file.or_else(|| Some(Source::SystemV { key_file: segment.shm.clone()?, id: segment.shmid, huge: segment.huge }))?;
    Some(Wanted { source, offset: segment.offset, length: segment.length, mode: segment.shmmode })
}

pub fn run(arguments: &Run, wanted: &Wanted) -> Result<u8> {
    let options = &arguments.segment;
    let request = request(arguments);
    let policy = policy(&request, None)?;
    let home = arguments.home_node.as_deref().map(|list| home_node(&request, list)).transpose()?;
    if home.is_some() && !policy.as_ref().is_some_and(|policy| matches!(policy.mode, Mode::Bind | Mode::PreferredMany)) {
        return Err(Usage(anyhow!("--home-node needs --membind or --preferred-many: other policies do not choose among nodes")).into());
    }
    if policy.is_none() && !(options.touch || options.dump || options.dump_nodes) {
        return Err(Usage(anyhow!("nothing to do: give a policy such as --interleave all, or --touch, --dump or --dump-nodes")).into());
    }
    let segment = SharedMemory::attach(wanted)?;
    if let Some(policy) = &policy {
        segment.set_policy(policy, options.strict)?;
    }
    if let (Source::File(path), false) = (&wanted.source, segment.keeps_policies()) {
        message(&format!(
            "{} is neither in tmpfs (/dev/shm) nor in hugetlbfs: its file system keeps no policy, so other processes do not follow it",
            path.display()
        ));
    }
    if let Some(node) = home {
        segment.set_home_node(node)?;
    }
    if options.touch {
        segment.touch();
    }
    let mut text = String::new();
    if options.dump {
        for part in segment.policies()? {
            let _ = writeln!(text, "{:016x}-{:016x}: {}", part.from, part.to, part.value);
        }
    }
    if options.dump_nodes {
        for part in segment.nodes()? {
            let _ = writeln!(text, "{:016x}-{:016x}: {}", part.from, part.to, part.value);
        }
    }
    print(&text)?;
    Ok(exit::DONE)
}
