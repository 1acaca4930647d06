//! A trace file: read as a whole and line by line it gives the same items.
#![no_main]

use checkrein_adapters::generic::trace::{
    AgentTraceLine, AgentTraceReader, read_generic_trace_items,
};
use checkrein_adapters::history::AgentHistoryReader;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let whole: Vec<AgentTraceLine> = read_generic_trace_items(bytes).collect();
    let mut reader = AgentTraceReader::default();
    let mut pieces = Vec::new();
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        reader.read_trace_line(line);
        while let Some(item) = reader.next_trace_item() {
            pieces.push(item);
        }
    }
    assert_eq!(format!("{whole:?}"), format!("{pieces:?}"));
    // The rules of another agent read more of each call, and agents' own files are read as well.
    let mut history = AgentHistoryReader::new(AgentTraceReader::new_with_openclaw_facts());
    for line in bytes.split(|byte| *byte == b'\n') {
        history.read_history_line(line);
        while history.next_trace_item().is_some() {}
    }
    history.end_history();
});
