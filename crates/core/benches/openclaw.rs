//! Nanoseconds per call of OpenClaw's rules for loops, restated: digests of a parsed call and its result,
//! the verdict, the record of both. `cargo bench -p checkrein-core --bench openclaw -- TRACE...`; beside
//! the real detector by `cargo xtask bench loops`.

#![expect(
    clippy::print_stdout,
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "a measurement has a clock, arguments and an output; the rules measured have none"
)]

use std::hint::black_box;
use std::time::Instant;

use checkrein_core::detectors::openclaw::OpenClawCallHistory;
use checkrein_core::tool_outcome::openclaw::{
    OpenClawResult, OpenClawTool, openclaw_outcome_facts,
};
use serde_json::{Value, json};

/// Runs over each trace. The best counts, as in the peer's own measurement.
const REPEATS: usize = 3;

struct ParsedCall {
    tool: String,
    args: Value,
    result: Value,
    error: Value,
    result_json: Option<String>,
}

fn main() -> std::io::Result<()> {
    for file in std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with("--"))
    {
        let text = std::fs::read_to_string(&file)?;
        let calls: Vec<ParsedCall> = text.lines().filter_map(parse_call).collect();
        let nanoseconds = (0..REPEATS)
            .map(|_| {
                let began = Instant::now();
                black_box(judge_calls(&calls));
                began.elapsed().as_nanos() / calls.len().max(1) as u128
            })
            .min();
        let name = std::path::Path::new(&file)
            .file_stem()
            .map(|name| name.to_string_lossy());
        println!(
            "{}",
            json!({"trace": name, "calls": calls.len(), "ns_per_call": nanoseconds.map(|nanoseconds| nanoseconds as u64)})
        );
    }
    Ok(())
}

fn parse_call(line: &str) -> Option<ParsedCall> {
    let mut line: Value = serde_json::from_str(line).ok()?;
    let mut take = |key: &str| line.get_mut(key).map(Value::take).unwrap_or_default();
    let (args, result, error) = (take("args"), take("result"), take("error"));
    Some(ParsedCall {
        tool: line.get("tool")?.as_str()?.to_owned(),
        // As the trace has it, but for the order of keys.
        result_json: result.is_object().then(|| result.to_string()),
        args,
        result,
        error,
    })
}

fn judge_calls(calls: &[ParsedCall]) -> u64 {
    let mut history = OpenClawCallHistory::default();
    let mut found = 0;
    for call in calls {
        let tool = OpenClawTool::from_tool_name(&call.tool);
        let facts = tool.call_facts(tool.call_digest(&call.args), &call.args, None, None);
        history.record_call(facts);
        found += u64::from(history.judge_newest_call().is_some());
        let came_back = OpenClawResult {
            result: &call.result,
            error: &call.error,
            result_json: call.result_json.as_deref(),
        };
        if let Some(outcome) = openclaw_outcome_facts(&call.args, came_back, facts) {
            history.record_outcome(&outcome);
        }
    }
    found
}
