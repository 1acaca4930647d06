//! Decodes compressed bitmaps (EWAH), in which a split index records what it takes from the shared
//! one. The format is git's `ewah` serialization: a bit count, a word count, the words, the place
//! of the last marker.

use super::index_format::ByteReader;

/// Reads one bitmap and returns `len` bits; `None` if it is damaged or sets a bit beyond `len`.
pub(super) fn read_ewah_bitmap(bytes: &mut ByteReader<'_>, len: usize) -> Option<Vec<bool>> {
    // The bit count and the last marker's place are not needed: `len` is known from the shared
    // index.
    let _bits = bytes.read_u32()?;
    let words = usize::try_from(bytes.read_u32()?).ok()?;
    let mut words = bytes.take_bytes(words.checked_mul(8)?)?.chunks_exact(8);
    let _last_marker = bytes.read_u32()?;
    let mut bitmap = Vec::new();
    while let Some(marker) = words.next() {
        // One bit to repeat, how many words of it, and how many plain words follow.
        let marker = u64::from_be_bytes(marker.try_into().ok()?);
        let repeated = marker & 1 == 1;
        let bits = usize::try_from((marker >> 1) & 0xffff_ffff)
            .ok()?
            .checked_mul(64)?;
        // Zeros at the end need not be there.
        let left = len.saturating_sub(bitmap.len());
        // A run of ones past the end is damage. A run of zeros is cut instead, so that a marker
        // cannot make us allocate without bound.
        if repeated && bits > left {
            return None;
        }
        bitmap.resize(bitmap.len() + bits.min(left), repeated);
        for _ in 0..marker >> 33 {
            let word = u64::from_be_bytes(words.next()?.try_into().ok()?);
            for bit in 0..64 {
                let is_set = (word >> bit) & 1 == 1;
                if bitmap.len() < len {
                    bitmap.push(is_set);
                } else if is_set {
                    return None;
                }
            }
        }
    }
    bitmap.resize(len, false);
    Some(bitmap)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(words: &[u64], len: usize, expected: Option<&[usize]>) {
        let mut bytes = 0u32.to_be_bytes().to_vec();
        bytes.extend(u32::try_from(words.len()).unwrap().to_be_bytes());
        bytes.extend(words.iter().flat_map(|word| word.to_be_bytes()));
        bytes.extend(0u32.to_be_bytes());
        let bitmap = read_ewah_bitmap(&mut ByteReader::new(&bytes), len);
        let set = bitmap.map(|bitmap| {
            assert_eq!(bitmap.len(), len);
            let set = bitmap.iter().enumerate().filter(|(_, set)| **set);
            set.map(|(at, _)| at).collect::<Vec<_>>()
        });
        assert_eq!(set.as_deref(), expected, "{words:?}");
    }

    #[test]
    fn bits_are_those_of_the_words() {
        let marker = |bit: u64, repeated: u64, plain: u64| bit | (repeated << 1) | (plain << 33);
        check(&[], 3, Some(&[]));
        check(&[marker(0, 0, 1), 0b101], 3, Some(&[0, 2]));
        check(&[marker(0, 1, 1), 0b10], 70, Some(&[65]));
        check(&[marker(1, 1, 0)], 64, Some(&(0..64).collect::<Vec<_>>()));
        // Damaged ones, and those that would have us count for ever.
        check(&[marker(0, 0, 1)], 3, None);
        check(&[marker(0, 0, 1), 0b1000], 3, None);
        check(&[marker(1, 0xffff_ffff, 0)], 64, None);
        check(&[marker(0, 0xffff_ffff, 0)], 64, Some(&[]));
        check(&[marker(0, 0, 0x7fff_ffff)], 64, None);
    }
}
