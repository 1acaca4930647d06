//! Opens trace files of recorded runs, packed or not, for reading line by line: they can be larger than the
//! memory.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use checkrein_adapters::generic::trace::AgentTraceReader;
use checkrein_core::policy::{PinnedLoopRules, Policy};
use flate2::read::MultiGzDecoder;

/// Bytes that are read at once.
const BUFFER_BYTES: usize = 1 << 20;

/// Opens a trace file; one that ends in `.gz` is unpacked on the way.
pub(super) fn open_trace_file_for_reading(path: &Path) -> io::Result<Box<dyn BufRead>> {
    let file = File::open(path)?;
    Ok(
        match path.extension().is_some_and(|ending| ending == "gz") {
            true => Box::new(BufReader::with_capacity(
                BUFFER_BYTES,
                MultiGzDecoder::new(file),
            )),
            false => Box::new(BufReader::with_capacity(BUFFER_BYTES, file)),
        },
    )
}

/// Creates a reader that finds out what this policy's rules for loops read of a call.
pub(super) fn trace_reader_for_policy(policy: &Policy) -> AgentTraceReader {
    match policy.loops.pinned {
        Some(PinnedLoopRules::OpenClaw) => AgentTraceReader::new_with_openclaw_facts(),
        None => AgentTraceReader::default(),
    }
}
