//! First touches: each object in turn is touched evenly, by one thread or by all at once.

use crate::scenery::{address, touching};
use crate::{PAGE, Pattern, SECOND, START, Size, USED_FROM};
use firsttouch_model::rows::{FirstTouch, Id, Profile};

pub fn add(profile: &mut Profile, size: &Size) {
    let (each, objects) = (size.touches_an_object() as u64, size.third().min(size.objects));
    // The last second of the initialisation is quiet.
    let step = ((USED_FROM - SECOND - START) / (objects as u64 * each)).max(1);
    profile.first_touches = (0..objects as u64 * each).map(|row| touch(size, row, each, step)).collect();
}

fn touch(size: &Size, row: u64, each: u64, step: u64) -> FirstTouch {
    let (object, number) = ((row / each) as usize, row % each);
    let threads = (size.threads as u64).min(each);
    let by_one = Pattern::of(object).is_touched_by_one();
    // Where all touch, each goes through its block while the others go through theirs.
    let a_thread = each / threads;
    let at = if by_one || number >= a_thread * threads { number } else { number % threads * a_thread + number / threads };
    let page = at * size.pages() / each;
    let thread = if by_one { 0 } else { (page * size.threads as u64 / size.pages()) as Id };
    FirstTouch {
        id: row as Id + 1,
        process: 0,
        time_ns: START + SECOND / 100 + row * step,
        thread,
        cpu: thread as u32,
        address: address(size, object) + page * PAGE,
        weight: size.pages() as f64 / each as f64,
        by_kernel: false,
        site: Some(touching(size, object)),
        mapped_bytes: Some(0),
        node: None,
    }
}
