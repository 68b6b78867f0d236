//! What is present or mapped is asked of the kernel, not of the library.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use firsttouch_alloc::{
    FtVec, MAX_PARTS, Pages, Partition, Replicated, Team, expect, last_doubt, localise, nodes, place, report, static_bounds, verify,
};
use std::ffi::{c_int, c_void};
use std::io::ErrorKind;
use std::sync::Arc;

unsafe extern "C" {
    fn mincore(address: *mut c_void, bytes: usize, states: *mut u8) -> c_int;
}

const N: usize = 1_000_000;

/// The present pages of memory that begins at a page; `None` if it is not mapped.
fn present(address: usize, bytes: usize) -> Option<usize> {
    let mut states = vec![0; bytes.div_ceil(4096)];
    // SAFETY: the call reads no memory at the address, and writes one byte a page.
    let status = unsafe { mincore(std::ptr::without_provenance_mut(address), bytes, states.as_mut_ptr()) };
    (status == 0).then(|| states.iter().filter(|&&state| state & 1 == 1).count())
}

fn address<T>(slice: &[T]) -> usize {
    slice.as_ptr().addr()
}

/// Check that an array touches nothing, reads as zero, and is unmapped when it is dropped.
#[test]
fn touches_nothing_and_is_freed() {
    let a = FtVec::<f64>::zeroed(N, &Partition::blocked()).unwrap();
    let place = address(&a);
    assert_eq!(present(place, N * 8), Some(0));
    assert_eq!(a.iter().sum::<f64>(), 0.0);
    drop(a);
    assert_eq!(present(place, N * 8), None);
}

/// Check arrays of few elements, which come from malloc, and of none.
#[test]
fn small_arrays() {
    for _ in 0..100 {
        let mut a = FtVec::<u32>::zeroed(100, &Partition::cyclic(3)).unwrap();
        assert!(a.iter().all(|&x| x == 0));
        a.fill(7);
    }
    assert!(FtVec::<u32>::zeroed(0, &Partition::local()).unwrap().is_empty());
    assert_eq!(FtVec::<[u8; 0]>::zeroed(5, &Partition::local()).unwrap().len(), 5);
}

/// Check that values set through `MaybeUninit` are there, and are dropped once.
#[test]
fn elements_are_dropped_once() {
    let value = Arc::new(());
    for count in [10, 100_000] {
        let mut a = FtVec::<Arc<()>>::uninit(count, &Partition::blocked(), Pages::Small).unwrap();
        for element in &mut *a {
            element.write(Arc::clone(&value));
        }
        // SAFETY: all elements are set.
        let a = unsafe { a.assume_init() };
        assert_eq!(Arc::strong_count(&value), count + 1);
        drop(a);
        assert_eq!(Arc::strong_count(&value), 1);
    }
}

/// Check that threads of a scope set their blocks, and that all pages are on target.
#[test]
fn threads_set_their_blocks() {
    let partition = Partition::blocked().parts(3);
    let mut a = FtVec::<f64>::zeroed(N, &partition).unwrap();
    let bounds = static_bounds(N, 3);
    assert_eq!(bounds, [0, 333_334, 666_667, 1_000_000]);
    let mut rest = &mut a[..];
    std::thread::scope(|scope| {
        for border in bounds.windows(2) {
            let (block, others) = rest.split_at_mut(border[1] - border[0]);
            rest = others;
            scope.spawn(move || block.fill(1.0));
        }
    });
    assert_eq!(a.iter().sum::<f64>(), N as f64);
    let verdict = verify(&a, &partition).unwrap();
    assert!(verdict.share.unwrap() > 0.99 && verdict.present > 1900, "{verdict:?}");
    assert_eq!(verdict.node_pages.iter().sum::<usize>(), verdict.present);
    assert!(expect(&a, &partition, 0.99).unwrap());
    assert!(report(&a, &partition, "the array").contains("the array"));
}

/// Check slices of memory from elsewhere.
#[test]
fn memory_that_exists() {
    // Large enough for huge pages, which have to be split.
    let count = N as u64;
    let mut a: Vec<u64> = (0..count).collect();
    for partition in
        [Partition::interleaved(), Partition::weighted([1.0, 2.0]), Partition::cyclic(512).in_rows_of(10), Partition::bind(nodes()[0])]
    {
        place(&mut a, &partition).unwrap();
        assert!(expect(&a, &partition, 0.99).unwrap(), "{partition:?}: {}", report(&a, &partition, "a"));
    }
    let last = *nodes().last().unwrap();
    place(&mut a, &Partition::bind(last)).unwrap();
    let verdict = verify(&a, &Partition::bind(last)).unwrap();
    assert!(verdict.node_pages[last as usize] * 100 >= verdict.present * 99, "{verdict:?}");
    localise(&mut a, &Partition::blocked()).unwrap();
    assert!(a.iter().copied().eq(0..count));
    let untouched = FtVec::<u8>::zeroed(N, &Partition::blocked()).unwrap();
    assert!(expect(&untouched, &Partition::blocked(), 0.0).is_err(), "no page is present: not known");
}

/// Check that each thread reads the same table.
#[test]
fn tables() {
    for count in [10, N] {
        let mut table = Replicated::<u32>::new(count, |all| all.iter_mut().zip(0..).for_each(|(x, i)| *x = i)).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| assert!(table.local().iter().copied().eq(0..count as u32)));
            }
        });
        table.change(|all| all[3] = 9).unwrap();
        assert_eq!(table.local()[3], 9);
    }
}

/// Check that invalid arguments are errors that say what failed.
#[test]
fn invalid_arguments() {
    for partition in [
        Partition::by_bounds([0, 9, 5]),
        Partition::by_bounds([]),
        Partition::weighted([1.0, -1.0]),
        Partition::weighted([f64::NAN]),
        Partition::cyclic(0),
        Partition::cyclic(1).parts(usize::MAX),
        Partition::blocked().parts(MAX_PARTS + 1),
        Partition::blocked().parts(1 << 44),
        Partition::blocked().parts(usize::MAX),
        Partition::blocked().parts(usize::MAX).in_rows_of(usize::MAX),
    ] {
        let error = FtVec::<f64>::zeroed(N, &partition).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{partition:?}: {error}");
    }
    let mut memory = vec![0.0; N];
    let too_many = Partition::blocked().parts(usize::MAX);
    for error in [
        verify(&memory, &too_many).unwrap_err(),
        expect(&memory, &too_many, 0.5).unwrap_err(),
        place(&mut memory, &too_many).unwrap_err(),
        localise(&mut memory, &too_many).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
    }
    assert!(report(&memory, &too_many, "memory").contains("memory"));
    for threads in [0, MAX_PARTS + 1, usize::MAX] {
        assert!(std::panic::catch_unwind(|| static_bounds(10, threads)).is_err(), "{threads} threads");
    }
    assert_eq!(static_bounds(10, MAX_PARTS).len(), MAX_PARTS + 1);
    let error = FtVec::<f64>::zeroed(usize::MAX / 2, &Partition::local()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    assert!(error.to_string().starts_with("cannot allocate 9223372036854775807 elements of 8 bytes"), "{error}");
    assert_eq!(FtVec::<u8>::zeroed(1 << 60, &Partition::local()).unwrap_err().kind(), ErrorKind::OutOfMemory);
    assert!(Team::new(64).is_err());
    assert!(Team::new(5).unwrap().join(2, 2).is_err());
    // Another team than the default one, which other tests use.
    Team::new(5).unwrap().join(0, 2).unwrap();
    assert_eq!(Team::new(5).unwrap().threads(), 2);
    let _ = last_doubt();
}
