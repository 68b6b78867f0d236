//! What watchpoints cost on this machine, measured on firsttouch itself.

use super::debug_registers::{RING_PAGES, SLOTS, STACK_BYTES};
use super::pace::ArmedCost;
use super::pattern::median;
use crate::perf::ring::PerfRing;
use firsttouch_system::calls::clock::monotonic_ns;
use firsttouch_system::calls::fresh_pages::touch_fresh_pages;
use firsttouch_system::calls::perf::{Attributes, Event};
use firsttouch_system::debug_exceptions::Guard;
use std::hint::black_box;

/// The costs of watchpoints.
#[derive(Clone, Copy, Debug)]
pub struct Calibration {
    /// ns of one watchpoint trap.
    pub trap_ns: f64,
    pub armed: ArmedCost,
}

/// Measures what watchpoints cost; `None` if no watchpoint can be set.
#[must_use]
pub fn calibrate() -> Option<Calibration> {
    // A hit whose cause the hypervisor loses would end firsttouch.
    let _guard = Guard::set();
    let trap_ns = trap_ns()?;
    Some(Calibration { trap_ns, armed: armed_cost(trap_ns) })
}

/// The cost of one watchpoint trap, ns: the median over hits on a variable of this function.
fn trap_ns() -> Option<f64> {
    let mut cell = Box::new(0u64);
    let address = std::ptr::from_mut::<u64>(&mut cell) as u64;
    let attr = Attributes::watchpoint(address, STACK_BYTES);
    let event = Event::open(&attr, 0, -1).ok()?;
    let _ring = PerfRing::map(&event, RING_PAGES).ok();
    let mut hit = || {
        let start = monotonic_ns();
        for _ in 0..4 {
            // Seen as used, so that every store happens.
            *black_box(&mut *cell) = start;
        }
        black_box(&mut *cell);
        (monotonic_ns() - start) as f64 / 4.0
    };
    let bare = median(&(0..32).map(|_| hit()).collect::<Vec<f64>>());
    event.enable().ok()?;
    let watched = median(&(0..16).map(|_| hit()).collect::<Vec<f64>>());
    Some((watched - bare).max(0.0))
}

/// What armed watchpoints add to a page fault, ns: the fastest of several bursts with and without them. A wait (two context switches)
/// is assumed to cost half a trap: measured 4.7 us against 9.8 us on a virtual machine.
fn armed_cost(trap_ns: f64) -> ArmedCost {
    let cell = Box::new([0u64; SLOTS * 8]);
    let bare = fault_ns();
    let address = cell.as_ptr() as u64;
    let attr = Attributes::watchpoint(address, STACK_BYTES);
    let events: Vec<Event> = (0..SLOTS as u64).filter_map(|i| Event::open(&attr.at(address + 64 * i), 0, -1).ok()).collect();
    for event in &events {
        let _ = event.enable();
    }
    let armed = fault_ns();
    ArmedCost { fault_ns: (armed - bare).max(0.0), wait_ns: trap_ns / 2.0 }
}

/// Time of one first touch, ns.
fn fault_ns() -> f64 {
    const PAGES: usize = 64;
    (0..5).filter_map(|_| touch_fresh_pages(PAGES).ok()).map(|ns| ns as f64 / PAGES as f64).reduce(f64::min).unwrap_or(0.0)
}
