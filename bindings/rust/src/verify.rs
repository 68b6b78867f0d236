use crate::partition::Partition;
use crate::{Error, raw};
use std::ffi::{CString, c_void};
use std::mem::MaybeUninit;

/// Where the pages of a slice are, compared with where a partition wants them.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Pages that the slice has whole.
    pub pages: usize,
    /// Of them, present in memory.
    pub present: usize,
    /// Of these, where the partition wants them.
    pub on_target: usize,
    /// Of the present ones, pages with bytes of two parts on different nodes: either node counts as the target.
    pub border: usize,
    /// `on_target / present`; `None` if no page is present.
    pub share: Option<f64>,
    /// Present pages by node number; nodes from 64 on are counted in the last.
    pub node_pages: [usize; 64],
}

/// Asks the kernel where each page of the slice is. Touches nothing.
pub fn verify<T>(slice: &[T], partition: &Partition) -> Result<Verdict, Error> {
    let mut found = MaybeUninit::<raw::Verdict>::zeroed();
    let status = partition.in_bytes(slice.len(), size_of::<T>(), |partition| {
        // SAFETY: the slice, the partition and the verdict live until the call returns; the slice is not written.
        unsafe { raw::ft_verify(slice.as_ptr().cast(), size_of_val(slice), partition, found.as_mut_ptr()) }
    });
    if status != 0 {
        return Err(Error::last("ask the kernel where the memory is"));
    }
    // SAFETY: zero bytes are a valid verdict, and ft_verify has filled it.
    let found = unsafe { found.assume_init() };
    let share = (!found.share.is_nan()).then_some(found.share);
    let raw::Verdict { pages, present, on_target, border, node_pages, .. } = found;
    Ok(Verdict { pages, present, on_target, border, share, node_pages })
}

/// For tests: whether at least `share` (0 to 1) of the present pages are on target. An error if that is not known: not known is never
/// a success. On one node everything is on target, and [`crate::last_doubt`] says that nothing was tested.
pub fn expect<T>(slice: &[T], partition: &Partition, share: f64) -> Result<bool, Error> {
    let answer = partition.in_bytes(slice.len(), size_of::<T>(), |partition| {
        // SAFETY: as in `verify`.
        unsafe { raw::ft_expect(slice.as_ptr().cast(), size_of_val(slice), partition, share) }
    });
    match answer {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Error::last("judge where the memory is")),
    }
}

/// One or more lines in words about where the slice is and where it should be.
pub fn report<T>(slice: &[T], partition: &Partition, name: &str) -> String {
    // A name with a zero byte is cut there.
    let name = CString::new(name.split('\0').next().unwrap_or_default()).unwrap_or_default();
    let pointer: *const c_void = slice.as_ptr().cast();
    partition.in_bytes(slice.len(), size_of::<T>(), |partition| {
        let ask = |text: &mut [u8]| {
            // SAFETY: the text has the length that is given, and all pointers live until the call returns.
            unsafe { raw::ft_report(text.as_mut_ptr().cast(), text.len(), name.as_ptr(), pointer, size_of_val(slice), partition) }
        };
        let mut text = vec![0; ask(&mut []) + 1];
        let length = ask(&mut text).min(text.len() - 1);
        String::from_utf8_lossy(&text[..length]).into_owned()
    })
}

/// Places memory that exists, from any allocator: moves pages that are elsewhere, and returns how many.
pub fn place<T>(slice: &mut [T], partition: &Partition) -> Result<usize, Error> {
    let moved = partition.in_bytes(slice.len(), size_of::<T>(), |partition| {
        // SAFETY: the slice and the partition live until the call returns; contents stay.
        unsafe { raw::ft_place(slice.as_mut_ptr().cast(), size_of_val(slice), partition, 0) }
    });
    usize::try_from(moved).map_err(|_| Error::last("place the memory"))
}

/// Places memory and lets the kernel populate its pages, before one thread reads a file into it. Contents stay.
pub fn localise<T>(slice: &mut [T], partition: &Partition) -> Result<(), Error> {
    let status = partition.in_bytes(slice.len(), size_of::<T>(), |partition| {
        // SAFETY: as in `place`.
        unsafe { raw::ft_localise(slice.as_mut_ptr().cast(), size_of_val(slice), partition) }
    });
    if status == 0 { Ok(()) } else { Err(Error::last("localise the memory")) }
}
