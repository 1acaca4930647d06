//! Three bytes of a text in any letter case, as a place in a map of 32,768 bits. `build.rs` fills
//! the map and the library reads it, so both include this file.

/// Words of 64 bits in the map.
pub(crate) const WORDS: usize = 512;

/// The place after one more byte: that of the last three.
pub(crate) fn next_trigram(place: u16, byte: u8) -> u16 {
    ((place << 5) ^ u16::from(byte.to_ascii_lowercase())) & 0x7fff
}

/// Whether the map has this place.
pub(crate) fn is_in_trigram_map(map: &[u64; WORDS], place: u16) -> bool {
    let word = map.get(usize::from(place / 64)).copied();
    word.unwrap_or_default() >> (place % 64) & 1 == 1
}

/// The place of the first three bytes.
pub(crate) fn leading_trigram_index(text: &[u8]) -> u16 {
    text.iter()
        .take(3)
        .fold(0, |place, byte| next_trigram(place, *byte))
}
