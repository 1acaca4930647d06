//! What a check printed: findings within bounds, whatever it was. The reader is private to
//! its crate, so its source is included here.
#![no_main]
#![allow(
    dead_code,
    unused_imports,
    reason = "parts of another crate, not all of them used here"
)]

#[path = "../../crates/verifiers/src/findings/mod.rs"]
mod findings;
#[path = "../../crates/verifiers/src/output/mod.rs"]
mod output;
#[path = "../../crates/verifiers/src/patterns.rs"]
mod patterns;

use std::path::Path;

use checkrein_core::evidence::MAX_FINDINGS;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let mut reader = findings::FindingReader::new(Path::new("/repo"));
    text.lines()
        .for_each(|line| reader.scan_line_for_findings(line));
    let (found, all) = reader.into_findings_and_total();
    assert!(found.len() <= MAX_FINDINGS && all as usize >= found.len());
});
