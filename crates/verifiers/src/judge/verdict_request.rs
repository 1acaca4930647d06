//! Builds the request to a judge: instructions, then data in quotes, with what matters most at both
//! ends. A model reads the middle of a long text least (Liu et al. 2023, "Lost in the Middle").

use std::sync::{Arc, LazyLock};

use checkrein_models::quoted::{KeepTextStartOrEnd, QuotedPromptBlocks, RULE, clip_text};
use checkrein_models::{ChatMessage, ModelRequest, StructuredAnswerSchema};
use serde_json::{Value, json};

use super::case::{JudgeInput, StandingTasksThenAndNow};
use super::definition::JudgeDefinition;

/// Characters of the whole prompt, unless the person's request alone is longer.
const BUDGET: usize = 32_000;
/// Characters of rules that are kept if the whole is too long.
const RULES_LEFT: usize = 8_000;
/// Characters of the answer that are kept if the whole is still too long.
const ANSWER_LEFT: usize = 12_000;
/// Bytes of what was done, changed and found that are shown at all.
const CALLS: usize = 2_000;
const CHANGES: usize = 6_000;
const FOUND: usize = 3_000;
/// Bytes of the project's rules that are shown at all.
const RULES: usize = 64 * 1024;
/// Output tokens that a verdict may take, including thoughts before it.
const MOST_TOKENS: u32 = 16_000;

const INSTRUCTIONS: &str = "You review the last answer of an AI agent before it reaches the person who asked. Judge the work, not its tone of confidence: that the agent says it is done is no evidence. Think about three things in turn:
1. goal: does the answer do what was asked?
2. completeness: is anything that was asked for missing, cut off or only promised?
3. rules: does it keep the rules of the project?
What tools found (block 'found') weighs more than what the answer claims. In a heartbeat nobody asked for anything: the rules name standing tasks, and an answer that all is well although one of them is open misses the goal.
If something is wrong, say in `feedback` what the agent has to do, a line for each point, so that it can act on it. `category` is what is wrong most: goal_missed, incomplete, rule_violation, tone_mismatch (wrong register for the reader), refusal (it refused what it should do); none if nothing is. `score` is from 0 (useless) to 1 (nothing to add). `verdict` is pass or fail. `ref` is the number that the message begins with.
Answer with one JSON object: {\"ref\": number, \"goal\": text, \"completeness\": text, \"rules\": text, \"score\": number, \"verdict\": \"pass\" or \"fail\", \"category\": text, \"feedback\": text}.";

/// The JSON Schema of a verdict.
static SHAPE: LazyLock<Arc<Value>> = LazyLock::new(|| {
    let text = json!({"type": "string"});
    Arc::new(json!({
        "type": "object",
        "properties": {
            "ref": {"type": "integer"},
            "goal": text,
            "completeness": text,
            "rules": text,
            "score": {"type": "number"},
            "verdict": {"type": "string", "enum": ["pass", "fail"]},
            "category": {"type": "string", "enum": [
                "none", "goal_missed", "incomplete", "rule_violation", "tone_mismatch", "refusal"
            ]},
            "feedback": text,
        },
        "required": ["ref", "goal", "completeness", "rules", "score", "verdict", "category", "feedback"],
        "additionalProperties": false,
    }))
});

/// The order in which a judge reads its material.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestOrAnswerFirst {
    /// The request first, the answer last.
    RequestFirst,
    /// The other way round.
    AnswerFirst,
}

/// The blocks of a prompt, in reading order.
struct JudgePromptSections {
    request: String,
    rules: String,
    history: Vec<String>,
    about: String,
    feedback: String,
    answer: String,
}

/// Builds the request for a verdict about this case.
pub(super) fn verdict_request(
    judge: &JudgeDefinition,
    case: &JudgeInput,
    quotes: QuotedPromptBlocks,
    order: RequestOrAnswerFirst,
) -> ModelRequest {
    let mut system = format!("{INSTRUCTIONS}\n{RULE}");
    if let Some(rubric) = &judge.rubric {
        system.push_str("\nThe project asks you to look at this besides:\n");
        system.push_str(rubric);
    }
    let mut blocks = JudgePromptSections::build_judge_prompt_sections(judge, case);
    blocks.trim_judge_prompt_to_budget(BUDGET.saturating_sub(char_count(&system)));
    ModelRequest {
        system: system.into(),
        messages: vec![ChatMessage::User(blocks.render_judge_prompt(quotes, order))],
        tools: Vec::new(),
        output_schema: Some(StructuredAnswerSchema {
            name: "verdict",
            schema: SHAPE.clone(),
        }),
        max_tokens: Some(MOST_TOKENS),
    }
}

impl JudgePromptSections {
    fn build_judge_prompt_sections(judge: &JudgeDefinition, case: &JudgeInput) -> Self {
        // Standing tasks are rules for heartbeats only. Older builds sealed them together with the
        // rules.
        let tasks = case.tasks.as_ref().filter(|_| case.heartbeat);
        let sealed = case.heartbeat && tasks.is_none();
        let meant = judge
            .rules
            .iter()
            .filter(|rules| sealed || rules.name != "HEARTBEAT.md");
        let mut rules: Vec<String> = meant
            .map(|rules| format!("{}:\n{}", rules.name, rules.text))
            .collect();
        rules.extend(tasks.map(heartbeat_tasks_then_and_now_text));
        let history = case.history.iter();
        let turn = |turn: &super::case::RequestAndAnswer| {
            format!("asked: {}\nanswered: {}", turn.request, turn.answer)
        };
        let mut about = case.about.join("\n");
        let mut section = |head: &str, text: &str, most: usize, keep: KeepTextStartOrEnd| {
            if !text.is_empty() {
                about.push_str(&format!("\n{head}:\n{}", clip_text(text, most, keep)));
            }
        };
        section(
            "found by tools",
            &case.evidence.join("\n"),
            FOUND,
            KeepTextStartOrEnd::Start,
        );
        section(
            "tool calls",
            &case.calls.join("\n"),
            CALLS,
            // Of the tool calls the last ones tell how the work ended.
            KeepTextStartOrEnd::End,
        );
        section("changes", &case.changes, CHANGES, KeepTextStartOrEnd::Start);
        Self {
            request: case.request.clone(),
            rules: clip_text(&rules.join("\n\n"), RULES, KeepTextStartOrEnd::Start).into_owned(),
            history: history.map(turn).collect(),
            about,
            feedback: case.feedback.join("\n"),
            answer: case.answer.clone(),
        }
    }

    // Counted in characters, as the budget is; bytes would halve it for some languages.
    fn prompt_char_count(&self) -> usize {
        let texts = [
            &self.request,
            &self.rules,
            &self.about,
            &self.feedback,
            &self.answer,
        ];
        let history = self.history.iter().map(|turn| char_count(turn));
        texts
            .into_iter()
            .map(|text| char_count(text))
            .chain(history)
            .sum()
    }

    /// Trims the prompt to the budget: history first, oldest turn first, then rules, then the end
    /// of the answer. The request is never cut.
    fn trim_judge_prompt_to_budget(&mut self, budget: usize) {
        while self.prompt_char_count() > budget && !self.history.is_empty() {
            self.history.remove(0);
        }
        if self.prompt_char_count() > budget {
            truncate_chars(&mut self.rules, RULES_LEFT);
        }
        if self.prompt_char_count() > budget {
            truncate_chars(&mut self.answer, ANSWER_LEFT);
        }
    }

    fn render_judge_prompt(
        &self,
        quotes: QuotedPromptBlocks,
        order: RequestOrAnswerFirst,
    ) -> String {
        let history = self.history.join("\n\n");
        let mut blocks = [
            ("request", self.request.as_str()),
            ("rules", &self.rules),
            ("history", &history),
            ("about", &self.about),
            ("earlier feedback", &self.feedback),
            ("answer", &self.answer),
        ];
        // Reversing keeps request and answer at the two ends, which are read best.
        if order == RequestOrAnswerFirst::AnswerFirst {
            blocks.reverse();
        }
        let mut text = quotes.prompt_start_with_quote_number();
        for (label, data) in blocks.into_iter().filter(|(_, data)| !data.is_empty()) {
            quotes.push_quoted_block(&mut text, label, data);
        }
        text
    }
}

/// Renders the standing tasks as they are, beside what they were: a tick is the agent's own word
/// and proves nothing.
fn heartbeat_tasks_then_and_now_text(tasks: &StandingTasksThenAndNow) -> String {
    let now = tasks
        .now
        .as_deref()
        .unwrap_or("(there is none, or none that can be read)");
    let before = match (&tasks.before, &tasks.now) {
        (None, _) => "(not known)",
        (Some(before), Some(now)) if before == now => "(the same)",
        // An empty text at the start means that the file did not exist.
        (Some(before), _) if before.is_empty() => "(there was none)",
        (Some(before), _) => before,
    };
    format!(
        "HEARTBEAT.md, the standing tasks, as it is now (a tick is the agent's own word):\n{now}\n\nHEARTBEAT.md, as it was when the task began:\n{before}"
    )
}

fn truncate_chars(text: &mut String, most: usize) {
    if let Some((at, _)) = text.char_indices().nth(most) {
        *text = clip_text(text, at, KeepTextStartOrEnd::Start).into_owned();
    }
}

fn char_count(text: &str) -> usize {
    text.chars().count()
}
