use crate::partition::Partition;
use crate::{Error, raw};
use std::fmt;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Types for which zero bytes are a value, and whose values need no `drop`.
///
/// # Safety
///
/// Memory of zero bytes must be a valid value of the type.
pub unsafe trait Zeroable: Copy {}

macro_rules! zeroable {
    ($($type:ty),*) => { $(
        // SAFETY: zero bytes are the number 0, or false.
        unsafe impl Zeroable for $type {}
    )* };
}
zeroable!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize, f32, f64, bool);

// SAFETY: an array of zeroable elements has nothing but these elements.
unsafe impl<T: Zeroable, const N: usize> Zeroable for [T; N] {}

/// Flags of an allocation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pages {
    /// What the system does by default.
    #[default]
    Default,
    /// Asks for huge pages where a whole one lies inside one part.
    Huge,
    /// No huge pages.
    Small,
}

impl Pages {
    const fn flags(self) -> u32 {
        match self {
            Self::Default => 0,
            Self::Huge => 1,
            Self::Small => 2,
        }
    }
}

/// An array of fixed length whose pages lie by a partition. It derefs to a slice, so that iterators, `chunks_mut` and rayon work on it.
///
/// Memory that the kernel does not place is given all the same: [`crate::last_doubt`] says what was not done.
pub struct FtVec<T> {
    pointer: NonNull<T>,
    length: usize,
}

// SAFETY: an FtVec owns its elements, as Vec does; ft_free may be called by any thread.
unsafe impl<T: Send> Send for FtVec<T> {}
// SAFETY: a shared FtVec gives shared references to its elements only.
unsafe impl<T: Sync> Sync for FtVec<T> {}

impl<T: Zeroable> FtVec<T> {
    /// `length` zeros. No page is touched if the array has 64 KiB or more: the kernel's new pages are zero.
    pub fn zeroed(length: usize, partition: &Partition) -> Result<Self, Error> {
        let array = FtVec::<T>::uninit(length, partition, Pages::Default)?;
        let pointer = array.pointer.as_ptr();
        if length.saturating_mul(size_of::<T>()) < raw::SMALL_BYTES {
            // SAFETY: the block has `length` elements, and Zeroable says that zero bytes are values.
            unsafe { pointer.write_bytes(0, length) };
        }
        // SAFETY: the block comes from malloc and was set to zero, or reads as zero by the contract of ft_alloc.
        Ok(unsafe { array.assume_init() })
    }
}

impl<T> FtVec<T> {
    /// `length` elements without values, to be set in parallel before [`FtVec::assume_init`]. No page is touched.
    pub fn uninit(length: usize, partition: &Partition, pages: Pages) -> Result<FtVec<MaybeUninit<T>>, Error> {
        let describe = || format!("allocate {length} elements of {} bytes", size_of::<T>());
        let bytes = length.checked_mul(size_of::<T>()).filter(|&bytes| isize::try_from(bytes).is_ok());
        let bytes = bytes.ok_or_else(|| Error::no_memory(describe()))?;
        if bytes == 0 {
            return Ok(FtVec { pointer: NonNull::dangling(), length });
        }
        if align_of::<T>() > 16 && bytes < raw::SMALL_BYTES || align_of::<T>() > 4096 {
            return Err(Error::invalid(format!(
                "{}: they are aligned to {} bytes, and the library aligns to 16, or to 4096 from 64 KiB on",
                describe(),
                align_of::<T>()
            )));
        }
        // SAFETY: the partition lives until the call returns.
        let pointer = partition.in_bytes(length, size_of::<T>(), |partition| unsafe { raw::ft_alloc(bytes, partition, pages.flags()) });
        let pointer = NonNull::new(pointer.cast()).ok_or_else(|| Error::last(describe()))?;
        Ok(FtVec { pointer, length })
    }
}

impl<T> FtVec<MaybeUninit<T>> {
    /// The same memory, with values.
    ///
    /// # Safety
    ///
    /// All elements must have been set.
    pub unsafe fn assume_init(self) -> FtVec<T> {
        let array = ManuallyDrop::new(self);
        FtVec { pointer: array.pointer.cast(), length: array.length }
    }
}

impl<T> Deref for FtVec<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the block has `length` elements, which are values (or MaybeUninit), until the FtVec is dropped.
        unsafe { std::slice::from_raw_parts(self.pointer.as_ptr(), self.length) }
    }
}

impl<T> DerefMut for FtVec<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in deref, and the FtVec is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.pointer.as_ptr(), self.length) }
    }
}

impl<T> Drop for FtVec<T> {
    fn drop(&mut self) {
        // SAFETY: the elements are dropped once; the memory came from ft_alloc unless it has no bytes.
        unsafe {
            std::ptr::drop_in_place(std::ptr::slice_from_raw_parts_mut(self.pointer.as_ptr(), self.length));
            if self.length * size_of::<T>() != 0 {
                raw::ft_free(self.pointer.as_ptr().cast());
            }
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for FtVec<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// A table that all threads read: one copy a node.
pub struct Replicated<T: Zeroable> {
    first: FtVec<T>,
}

impl<T: Zeroable> Replicated<T> {
    /// A table of `length` elements that `fill` sets; then it is copied to all nodes.
    pub fn new(length: usize, fill: impl FnOnce(&mut [T])) -> Result<Self, Error> {
        let mut first = FtVec::zeroed(length, &Partition::replicated())?;
        fill(&mut first);
        let mut table = Self { first };
        table.copy()?;
        Ok(table)
    }

    /// Changes the table, and copies it again.
    pub fn change(&mut self, change: impl FnOnce(&mut [T])) -> Result<(), Error> {
        change(&mut self.first);
        self.copy()
    }

    fn copy(&mut self) -> Result<(), Error> {
        if size_of_val(&*self.first) == 0 {
            return Ok(());
        }
        // SAFETY: the block was allocated with a replicated partition, and is borrowed mutably, so that nobody reads.
        if unsafe { raw::ft_replicate(self.first.pointer.as_ptr().cast()) } < 0 {
            return Err(Error::last("copy a table to the nodes"));
        }
        Ok(())
    }

    /// The copy on the node of the calling thread, which asks once, after it is pinned.
    pub fn local(&self) -> &[T] {
        if size_of_val(&*self.first) == 0 {
            return &self.first;
        }
        // SAFETY: the pointer is a replicated block's, whose copies have the same length and live as long as it.
        unsafe { std::slice::from_raw_parts(raw::ft_local_copy(self.first.pointer.as_ptr().cast()).cast(), self.first.length) }
    }
}
