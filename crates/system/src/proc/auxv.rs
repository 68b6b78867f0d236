//! /proc/PID/auxv: the auxiliary vector, pairs of native words.

/// AT_PAGESZ: the size of a base page.
#[must_use]
pub fn page_bytes(vector: &[u8]) -> Option<u64> {
    const AT_PAGESZ: usize = 6;
    const WORD: usize = size_of::<usize>();
    let word = |slice: &[u8]| slice.try_into().map(usize::from_ne_bytes).ok();
    vector
        .chunks_exact(2 * WORD)
        .find(|pair| word(&pair[..WORD]) == Some(AT_PAGESZ))
        .and_then(|pair| word(&pair[WORD..]))
        .filter(|size| size.is_power_of_two() && *size >= 1024)
        .map(|size| size as u64)
}

#[cfg(test)]
mod tests {
    use super::page_bytes;

    /// Check the page size among other entries, and a table of malformed vectors.
    #[test]
    fn page_sizes_are_read() {
        let vector = |pairs: &[[usize; 2]]| pairs.iter().flatten().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>();
        assert_eq!(page_bytes(&vector(&[[3, 64], [6, 4096], [0, 0]])), Some(4096));
        for pairs in [&[][..], &[[3, 64]], &[[6, 0]], &[[6, 4095]], &[[6, 512]]] {
            assert_eq!(page_bytes(&vector(pairs)), None, "{pairs:?}");
        }
        assert_eq!(page_bytes(&vector(&[[6, 4096]])[..12]), None, "cut off");
    }
}
