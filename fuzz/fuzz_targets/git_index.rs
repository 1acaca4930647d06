//! A git index with names of SHA-1 and of SHA-256, and the bitmaps of a split one: no panic, and
//! no more names than the bytes can hold.
#![no_main]

use std::time::{Duration, Instant};

use checkrein_verifiers::git::{GitIndexEntry, GitIndexEntryKind, parse_git_index};
use libfuzzer_sys::fuzz_target;

const LARGEST: usize = 1 << 20;

fuzz_target!(|bytes: &[u8]| {
    let until = Instant::now() + Duration::from_secs(60);
    for object_name_len in [20, 32] {
        let Ok(index) = parse_git_index(bytes, object_name_len, LARGEST, until) else {
            continue;
        };
        assert!(index.entries.len() <= bytes.len() / 62);
        assert!(
            index
                .entries
                .iter()
                .map(|entry| entry.name.len())
                .sum::<usize>()
                <= LARGEST
        );
        if let Some(shared) = index.shared {
            for count in [0, 1, 64, 1000] {
                let base = vec![
                    GitIndexEntry {
                        name: b"a".to_vec(),
                        kind: GitIndexEntryKind::File,
                    };
                    count
                ];
                let own = index.entries.len();
                let entries = shared.merge_split_git_index_entries(base, index.entries.clone());
                assert!(entries.is_err() || entries.is_ok_and(|all| all.len() <= count + own));
            }
        }
    }
});
