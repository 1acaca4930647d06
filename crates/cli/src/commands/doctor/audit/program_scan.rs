//! Finds programs that ask a model by the words in them. Nothing is parsed: a program that hides
//! what it does is not found. The table says what was found, not what is safe.

use std::path::Path;

use super::text_files::{self, AuditedTextFile};
use super::{AuditedAgentSetupKind, DoctorAuditReport, StopCriterionTier};

const ENDINGS: &[&str] = &[
    "py", "js", "mjs", "cjs", "ts", "mts", "rs", "go", "rb", "sh", "bash", "yaml", "yml", "toml",
    "json",
];

/// Words of a program that asks a model.
const MODEL_CALL_WORDS: &[&str] = &[
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

/// Libraries by which a program asks a model.
const MODEL_LIBRARIES: &[&str] = &[
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

/// Words in the name of a settings file that belongs to an agent.
const AGENT_FILE_WORDS: &[&str] = &["agent", "crew", "graph", "loop", "llm", "bot"];

/// Beginnings of a loop that has no end of its own, without blanks.
const ENDLESS_LOOP_STARTS: &[&str] = &[
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
const CAP_NAMES: &[&str] = &[
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
const MODEL_END_SIGNS: &[&str] = &[
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
const PERSON_ASKED_SIGNS: &[&str] = &[
    "interrupt(",
    "interrupt_before",
    "interrupt_after",
    "HumanInTheLoopMiddleware",
    "human_input=True",
    "input(",
    "readline.question(",
    "read -r yes",
];

pub(super) fn find_agent_loops_in_code(root: &Path, found: &mut DoctorAuditReport) {
    for file in text_files::read_text_files_with_endings(root, ENDINGS) {
        // Hooks and policies are read by the other parts of the audit.
        if file.name != crate::locate::CONFIG {
            audit_code_file_for_agent_loops(&file, found);
        }
    }
}

fn audit_code_file_for_agent_loops(file: &AuditedTextFile, found: &mut DoctorAuditReport) {
    let is_code = !["yaml", "yml", "toml", "json"]
        .iter()
        .any(|ending| file.name.ends_with(&format!(".{ending}")));
    // Most settings files have nothing to do with agents, and a cap in them means something
    // else.
    if !is_code && !file_name_suggests_agent_source(&file.name) {
        return;
    }
    if is_code && line_number_containing_word(file, "checkrein run").is_some() {
        found.has_run_script = true;
    }
    let graph = is_code
        && file
            .text
            .lines()
            .any(|line| imports_library(line, "langgraph"));
    let asks = is_code
        && (earliest_word_in_file(file, MODEL_CALL_WORDS).is_some()
            || file.text.lines().any(imports_model_client_library));
    let endless = asks
        .then(|| file.text.lines().position(is_endless_loop_start_line))
        .flatten();
    let caps: Vec<(usize, String)> = file
        .text
        .lines()
        .enumerate()
        .filter_map(|(at, line)| Some((at + 1, cap_setting_in_code_line(line)?)))
        .collect();
    // Of several kinds the most telling one: a graph may contain a loop, and a loop may have
    // caps.
    let kind = match (graph, endless, asks) {
        (true, ..) => AuditedAgentSetupKind::LangGraph,
        (false, Some(_), _) => AuditedAgentSetupKind::BareLoop,
        (false, None, asks) if !caps.is_empty() && (asks || !is_code) => {
            AuditedAgentSetupKind::CapsOnly
        }
        // A program that asks once has no end to judge.
        (false, None, _) => return,
    };
    found.record_agent_setup_found(kind, &file.name);
    if is_code && line_number_containing_word(file, "claude -p").is_some() {
        found.headless_agent = Some(AuditedAgentSetupKind::ClaudeCode);
    } else if is_code && line_number_containing_word(file, "codex exec ").is_some() {
        found.headless_agent = Some(AuditedAgentSetupKind::Codex);
    }
    for (line, cap) in caps {
        found.record_satisfied_stop_criterion(
            StopCriterionTier::Soft,
            cap,
            format!("{}:{line}", file.name),
        );
    }
    // Settings end nothing and ask nobody: only caps count in them.
    if !is_code {
        return;
    }
    if let Some((line, word)) = earliest_word_in_file(file, MODEL_END_SIGNS) {
        found.record_satisfied_stop_criterion(
            StopCriterionTier::Lazy,
            format!("the model's last word ({word})"),
            format!("{}:{line}", file.name),
        );
    }
    if let Some((line, word)) = earliest_word_in_file(file, PERSON_ASKED_SIGNS) {
        found.record_satisfied_stop_criterion(
            StopCriterionTier::Human,
            format!("a person is asked ({})", word.trim_end_matches('(')),
            format!("{}:{line}", file.name),
        );
    }
}

/// Returns whether a loop begins in this line.
pub(super) fn is_code_loop_start_line(line: &str) -> bool {
    let line = line.trim_start();
    is_endless_loop_start_line(line) || line.starts_with("for ") || line.starts_with("while ")
}

fn is_endless_loop_start_line(line: &str) -> bool {
    let bare: String = line.chars().filter(|c| !c.is_whitespace()).collect();
    ENDLESS_LOOP_STARTS.iter().any(|begin| match *begin {
        // These may be the beginning of a longer word, so only the whole line counts.
        "whiletrue" | "while:" => bare == *begin,
        begin => bare.starts_with(begin),
    })
}

fn file_name_suggests_agent_source(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or(file).to_ascii_lowercase();
    AGENT_FILE_WORDS.iter().any(|word| name.contains(word))
}

/// Returns whether this line imports a library that asks models.
fn imports_model_client_library(line: &str) -> bool {
    MODEL_LIBRARIES
        .iter()
        .any(|library| imports_library(line, library))
}

fn imports_library(line: &str, library: &str) -> bool {
    let line = line.trim_start();
    if let Some(rest) = line
        .strip_prefix("from ")
        .or_else(|| line.strip_prefix("import "))
    {
        // `agents` must not be found in `agentsmith`.
        let after = rest.strip_prefix(library);
        let whole = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric());
        return after.is_some_and(whole)
            || ["\"", "'"]
                .iter()
                .any(|quote| rest.contains(&format!("{quote}{library}")));
    }
    line.contains(&format!("require(\"{library}")) || line.contains(&format!("require('{library}"))
}

fn is_comment_line(line: &str) -> bool {
    let code = line.trim_start();
    ["#", "//", "*", "--"]
        .iter()
        .any(|mark| code.starts_with(mark))
}

/// Returns `max_turns = 40` for a line that sets a cap.
fn cap_setting_in_code_line(line: &str) -> Option<String> {
    if is_comment_line(line) {
        return None;
    }
    CAP_NAMES.iter().find_map(|name| {
        let (_, rest) = line.split_once(name)?;
        // Python, JSON, YAML and command lines write the value in different ways.
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

fn line_number_containing_word(file: &AuditedTextFile, word: &str) -> Option<usize> {
    let at = file
        .text
        .lines()
        .position(|line| line.contains(word) && !is_comment_line(line))?;
    Some(at + 1)
}

/// Returns the earliest of these words in the file, with its line.
fn earliest_word_in_file(
    file: &AuditedTextFile,
    words: &[&'static str],
) -> Option<(usize, &'static str)> {
    words
        .iter()
        .filter_map(|word| Some((line_number_containing_word(file, word)?, *word)))
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
            assert_eq!(is_endless_loop_start_line(line), endless, "{line}");
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
            assert_eq!(imports_model_client_library(line), asks, "{line}");
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
            assert_eq!(cap_setting_in_code_line(line).as_deref(), seen, "{line}");
        }
    }
}
