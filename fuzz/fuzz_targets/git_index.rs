//! A git index with names of SHA-1 and of SHA-256, and the bitmaps of a split one: no panic, and
//! no more names than the bytes can hold.
#![no_main]

use std::time::{Duration, Instant};

use checkrein_verifiers::git::parse_index;
use libfuzzer_sys::fuzz_target;

const LARGEST: usize = 1 << 20;

fuzz_target!(|bytes: &[u8]| {
    let until = Instant::now() + Duration::from_secs(60);
    for object_name_len in [20, 32] {
        let Ok(entries) = parse_index(bytes, object_name_len, LARGEST, until) else {
            continue;
        };
        assert!(entries.names.len() <= bytes.len() / 62);
        assert!(entries.names.iter().map(Vec::len).sum::<usize>() <= LARGEST);
        if let Some(shared) = entries.shared {
            for count in [0, 1, 64, 1000] {
                let deleted = shared.deleted(count);
                assert!(deleted.is_err() || deleted.is_ok_and(|deleted| deleted.len() == count));
            }
        }
    }
});
