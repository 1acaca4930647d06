//! Opens files of recorded runs, packed or not, for reading line by line: they can be larger than the memory.
//! A file is a trace, a transcript of Claude Code or a rollout of Codex.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::Path;

use checkrein_adapters::generic::trace::AgentTraceReader;
use checkrein_adapters::history::AgentHistoryReader;
use checkrein_core::policy::{PinnedLoopRules, Policy};
use flate2::read::MultiGzDecoder;

/// Longer lines are cut, and then cannot be read.
const MAX_LINE_BYTES: u64 = 16 << 20;
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

/// Creates a reader of recorded histories that finds out what this policy's rules for loops read of a
/// call.
pub(super) fn history_reader_for_policy(policy: &Policy) -> AgentHistoryReader {
    AgentHistoryReader::new(match policy.loops.pinned {
        Some(PinnedLoopRules::OpenClaw) if policy.loops.detectors.is_empty() => {
            AgentTraceReader::new_for_openclaw_alone()
        }
        Some(PinnedLoopRules::OpenClaw) => AgentTraceReader::new_with_openclaw_facts(),
        None => AgentTraceReader::default(),
    })
}

/// Reads a line, which may be longer than what is kept of it. Returns `false` at the end of the file.
pub(super) fn read_bounded_line(lines: &mut dyn BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let read = lines.take(MAX_LINE_BYTES).read_until(b'\n', line)?;
    if read as u64 == MAX_LINE_BYTES && !line.ends_with(b"\n") {
        // What is left of it would be read as a line of its own.
        lines.skip_until(b'\n')?;
    }
    Ok(read > 0)
}
