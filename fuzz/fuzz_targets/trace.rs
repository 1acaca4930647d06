//! A trace file: read as a whole and line by line it gives the same items.
#![no_main]

use checkrein_adapters::generic::trace::{Item, Reader, items};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let whole: Vec<Item> = items(bytes).collect();
    let mut reader = Reader::default();
    let mut pieces = Vec::new();
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        reader.feed(line);
        while let Some(item) = reader.next_item() {
            pieces.push(item);
        }
    }
    assert_eq!(format!("{whole:?}"), format!("{pieces:?}"));
});
