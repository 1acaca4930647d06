//! Maps three bytes of a text, regardless of letter case, to an index in a map of 32,768 bits.
//! `build.rs` fills the map and the library reads it, so both include this file.

/// Size of the map in words of 64 bits.
pub(crate) const WORDS: usize = 512;

/// Returns the index of the last three bytes, given the index before and one more byte.
pub(crate) fn trigram_index_after_byte(place: u16, byte: u8) -> u16 {
    // Shifting 15 bits by 5 drops a byte after three more, so no byte has to be subtracted.
    ((place << 5) ^ u16::from(byte.to_ascii_lowercase())) & 0x7fff
}

/// Returns whether the map contains this index.
pub(crate) fn trigram_map_contains_index(map: &[u64; WORDS], place: u16) -> bool {
    let word = map.get(usize::from(place / 64)).copied();
    word.unwrap_or_default() >> (place % 64) & 1 == 1
}

/// Returns the index of the first three bytes.
pub(crate) fn leading_trigram_index(text: &[u8]) -> u16 {
    text.iter()
        .take(3)
        .fold(0, |place, byte| trigram_index_after_byte(place, *byte))
}
