//! Sets of numbers in the kernel's form: bits in words.

const WORD_BITS: usize = libc::c_ulong::BITS as usize;

/// The words of a set, as many as it needs, at least one.
pub fn from_numbers(numbers: &[u32]) -> Vec<libc::c_ulong> {
    let last = numbers.iter().max().copied().unwrap_or(0) as usize;
    let mut words = vec![0; last / WORD_BITS + 1];
    for number in numbers {
        if let Some(word) = words.get_mut(*number as usize / WORD_BITS) {
            *word |= 1 << (*number as usize % WORD_BITS);
        }
    }
    words
}

/// The numbers of a set, sorted.
pub fn to_numbers(words: &[libc::c_ulong]) -> Vec<u32> {
    let bits = words.iter().enumerate().flat_map(|(index, word)| (0..WORD_BITS).map(move |bit| (index * WORD_BITS + bit, word >> bit & 1)));
    bits.filter(|(_, set)| *set == 1).filter_map(|(number, _)| u32::try_from(number).ok()).collect()
}

pub const fn bits(words: &[libc::c_ulong]) -> libc::c_ulong {
    (words.len() * WORD_BITS) as libc::c_ulong
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check sets at the ends of words: converted to words and back, they stay the same.
    #[test]
    fn sets_come_back() {
        for (numbers, words) in [(&[][..], &[0][..]), (&[0], &[1]), (&[1, 63], &[2 | 1 << 63]), (&[63, 64, 130], &[1 << 63, 1, 4])] {
            assert_eq!(from_numbers(numbers), words, "{numbers:?}");
            assert_eq!(to_numbers(words), numbers);
            assert_eq!(bits(words) as usize, words.len() * 64);
        }
    }
}
