//! Asks the kernel, without a target, whether a profile could be taken here.

use crate::perf::{Attributes, Event};
use firsttouch_model::facts::{Probe, Probes};

/// An address nobody uses, aligned as a watchpoint must be: the event is never enabled.
const NOWHERE: u64 = 0x1000;
/// Bytes of stack in a sample: the kernel wants a multiple of 8.
const STACK_BYTES: u32 = 8;

/// Adds what perf_event_open answers to the events that [`crate::profile`] rests on, on the calling thread; they are closed
/// without having counted.
#[must_use]
pub fn ask(probes: Probes) -> Probes {
    let page_faults = Attributes::page_faults(u64::from(u32::MAX), STACK_BYTES).exclude_kernel(true);
    Probes { page_faults: open(&page_faults), watchpoint: open(&Attributes::watchpoint(NOWHERE, STACK_BYTES)), ..probes }
}

fn open(attributes: &Attributes) -> Probe {
    match Event::open(attributes, 0, -1) {
        Ok(_) => Probe::Allowed,
        Err(error) => Probe::Refused(error.raw_os_error().unwrap_or(0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that the kernel gives an answer, and that the others are kept.
    #[test]
    fn the_kernel_answers() {
        let probes = ask(Probes { mbind: Probe::Refused(1), ..Probes::default() });
        assert!(probes.page_faults != Probe::NotTried && probes.watchpoint != Probe::NotTried);
        assert_eq!((probes.mbind, probes.get_mempolicy), (Probe::Refused(1), Probe::NotTried));
    }
}
