//! Programs that ask a model, told by what they name. Nothing is parsed: a program that hides
//! what it does is not found, and the table says what was found, not what is safe.

use std::path::Path;

use super::walk::{self, Text};
use super::{Found, Kind, Tier};

const ENDINGS: &[&str] = &[
    "py", "js", "mjs", "cjs", "ts", "mts", "rs", "go", "rb", "sh", "bash", "yaml", "yml", "toml",
    "json",
];

/// Words of a program that asks a model.
const ASKS: &[&str] = &[
    "messages.create(",
    "messages.stream(",
    "completions.create(",
    "responses.create(",
    "/v1/messages",
    "/v1/responses",
    "/chat/completions",
    "generate_content(",
    "generateContent(",
    "litellm.completion(",
    "ollama.chat(",
    "generateText(",
    "claude -p",
    "codex exec ",
    "gemini -p",
];

/// Libraries with which a program asks one.
const LIBRARIES: &[&str] = &[
    "agents",
    "anthropic",
    "@anthropic-ai",
    "autogen",
    "claude_agent_sdk",
    "crewai",
    "google.genai",
    "langchain",
    "langgraph",
    "litellm",
    "ollama",
    "openai",
    "pydantic_ai",
    "smolagents",
];

/// Words in the name of a file of settings that is an agent's.
const NAMES: &[&str] = &["agent", "crew", "graph", "loop", "llm", "bot"];

/// Beginnings of a loop without an end of its own, blanks left out.
const ENDLESS: &[&str] = &[
    "whileTrue:",
    "while1:",
    "while(true)",
    "while(1)",
    "for(;;)",
    "whiletrue;do",
    "while:;do",
    "whiletrue",
    "while:",
    "loop{",
    "for{",
];

/// Names of caps, as programs and settings write them.
const CAPS: &[&str] = &[
    "max_turns",
    "max-turns",
    "maxTurns",
    "max_iterations",
    "max-iterations",
    "maxIterations",
    "max_steps",
    "max-steps",
    "maxSteps",
    "max_rounds",
    "maxRounds",
    "recursion_limit",
    "recursionLimit",
    "max_execution_time",
    "max_budget_usd",
    "max-budget-usd",
];

/// Signs that the model's own word ends the work.
const ENDS: &[&str] = &[
    "tools_condition",
    "create_react_agent",
    "create_agent(",
    "end_turn",
    "finish_reason",
    "stop_reason",
    "tool_calls",
    "function_call",
    "TASK_COMPLETE",
    "claude -p",
    "codex exec ",
    "\"DONE\"",
    "'DONE'",
];

/// Signs that a person is asked.
const PEOPLE: &[&str] = &[
    "interrupt(",
    "interrupt_before",
    "interrupt_after",
    "HumanInTheLoopMiddleware",
    "human_input=True",
    "input(",
    "readline.question(",
    "read -r yes",
];

pub(super) fn read(root: &Path, found: &mut Found) {
    for file in walk::texts(root, ENDINGS) {
        // Hooks and policies are read by who knows them.
        if file.name != crate::locate::CONFIG {
            one(&file, found);
        }
    }
}

fn one(file: &Text, found: &mut Found) {
    let is_code = !["yaml", "yml", "toml", "json"]
        .iter()
        .any(|ending| file.name.ends_with(&format!(".{ending}")));
    if !is_code && !is_of_an_agent(&file.name) {
        return;
    }
    if is_code && line_with(file, "checkrein run").is_some() {
        found.run = true;
    }
    let graph = is_code && file.text.lines().any(|line| imports(line, "langgraph"));
    let asks = is_code && (first(file, ASKS).is_some() || file.text.lines().any(is_import));
    let endless = asks
        .then(|| file.text.lines().position(is_endless))
        .flatten();
    let caps: Vec<(usize, String)> = file
        .text
        .lines()
        .enumerate()
        .filter_map(|(at, line)| Some((at + 1, cap(line)?)))
        .collect();
    let kind = match (graph, endless, asks) {
        (true, ..) => Kind::LangGraph,
        (false, Some(_), _) => Kind::BareLoop,
        (false, None, asks) if !caps.is_empty() && (asks || !is_code) => Kind::CapsOnly,
        // A program that asks once is none of ours to judge.
        (false, None, _) => return,
    };
    found.setup(kind, &file.name);
    if is_code && line_with(file, "claude -p").is_some() {
        found.started = Some(Kind::ClaudeCode);
    } else if is_code && line_with(file, "codex exec ").is_some() {
        found.started = Some(Kind::Codex);
    }
    for (line, cap) in caps {
        found.fill(Tier::Soft, cap, format!("{}:{line}", file.name));
    }
    if !is_code {
        return;
    }
    if let Some((line, word)) = first(file, ENDS) {
        found.fill(
            Tier::Lazy,
            format!("the model's last word ({word})"),
            format!("{}:{line}", file.name),
        );
    }
    if let Some((line, word)) = first(file, PEOPLE) {
        found.fill(
            Tier::Human,
            format!("a person is asked ({})", word.trim_end_matches('(')),
            format!("{}:{line}", file.name),
        );
    }
}

/// Whether a loop begins in this line.
pub(super) fn is_loop(line: &str) -> bool {
    let line = line.trim_start();
    is_endless(line) || line.starts_with("for ") || line.starts_with("while ")
}

fn is_endless(line: &str) -> bool {
    let bare: String = line.chars().filter(|c| !c.is_whitespace()).collect();
    ENDLESS.iter().any(|begin| match *begin {
        // A word that may go on: only the whole line will do.
        "whiletrue" | "while:" => bare == *begin,
        begin => bare.starts_with(begin),
    })
}

fn is_of_an_agent(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or(file).to_ascii_lowercase();
    NAMES.iter().any(|word| name.contains(word))
}

/// Whether this line brings in something with which a model is asked.
fn is_import(line: &str) -> bool {
    LIBRARIES.iter().any(|library| imports(line, library))
}

fn imports(line: &str, library: &str) -> bool {
    let line = line.trim_start();
    if let Some(rest) = line
        .strip_prefix("from ")
        .or_else(|| line.strip_prefix("import "))
    {
        let after = rest.strip_prefix(library);
        let whole = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric());
        return after.is_some_and(whole)
            || ["\"", "'"]
                .iter()
                .any(|quote| rest.contains(&format!("{quote}{library}")));
    }
    line.contains(&format!("require(\"{library}")) || line.contains(&format!("require('{library}"))
}

fn is_comment(line: &str) -> bool {
    let code = line.trim_start();
    ["#", "//", "*", "--"]
        .iter()
        .any(|mark| code.starts_with(mark))
}

/// `max_turns = 40` of a line that sets a cap.
fn cap(line: &str) -> Option<String> {
    if is_comment(line) {
        return None;
    }
    CAPS.iter().find_map(|name| {
        let (_, rest) = line.split_once(name)?;
        let number = rest.trim_start_matches(|c: char| " \t\"'=:(".contains(c));
        let digits: String = number
            .chars()
            .take_while(|c| c.is_ascii_digit() || *c == '_' || *c == '.')
            .collect();
        digits
            .starts_with(|c: char| c.is_ascii_digit())
            .then(|| format!("{name} = {digits}"))
    })
}

fn line_with(file: &Text, word: &str) -> Option<usize> {
    let at = file
        .text
        .lines()
        .position(|line| line.contains(word) && !is_comment(line))?;
    Some(at + 1)
}

/// The first of these words that is there.
fn first(file: &Text, words: &[&'static str]) -> Option<(usize, &'static str)> {
    words
        .iter()
        .filter_map(|word| Some((line_with(file, word)?, *word)))
        .min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_without_an_end_are_told_from_others() {
        for (line, endless) in [
            ("    while True:", true),
            ("while (true) {", true),
            ("for (;;) {", true),
            ("while :; do", true),
            ("while true", true),
            ("while turns < 30:", false),
            ("while truename:", false),
            ("for step in range(10):", false),
        ] {
            assert_eq!(is_endless(line), endless, "{line}");
        }
    }

    #[test]
    fn a_model_is_asked_by_who_brings_in_its_library() {
        for (line, asks) in [
            ("import anthropic", true),
            ("from openai import OpenAI", true),
            ("import OpenAI from \"openai\";", true),
            ("const { Anthropic } = require('@anthropic-ai/sdk');", true),
            ("from agents import Runner", true),
            ("import agentsmith", false),
            ("# import anthropic", false),
            ("from .openai_prices import table", false),
        ] {
            assert_eq!(is_import(line), asks, "{line}");
        }
    }

    #[test]
    fn caps_are_numbers() {
        for (line, seen) in [
            ("max_turns = 40", Some("max_turns = 40")),
            ("claude -p --max-turns 12 \"$1\"", Some("max-turns = 12")),
            (
                "graph.invoke(x, {\"recursion_limit\": 50})",
                Some("recursion_limit = 50"),
            ),
            ("  maxIterations: 8,", Some("maxIterations = 8")),
            ("# max_turns = 40", None),
            ("max_turns = None", None),
            ("print(max_turns)", None),
        ] {
            assert_eq!(cap(line).as_deref(), seen, "{line}");
        }
    }
}
