//! Builds the request to choose the better of two answers.

use std::sync::{Arc, LazyLock};

use checkrein_models::quoted::{QuotedPromptBlocks, RULE};
use checkrein_models::{ChatMessage, ModelRequest, StructuredAnswerSchema};
use serde_json::{Value, json};

use super::label_file::LabelledAnswerPair;
use super::statistics::AnswerSide;
use crate::judge::JudgeDefinition;

/// Output tokens that a choice may take, including thoughts before it.
const MOST_TOKENS: u32 = 16_000;

const INSTRUCTIONS: &str = "You compare two answers to the same request and say which does better what was asked. Judge the work: what was asked for and is there, what is missing, what breaks the rules if there are any. Neither length, nor tone, nor which answer is shown first makes one better. There is no draw. `better` is first or second, as they are shown. `ref` is the number that the message begins with.
Answer with one JSON object: {\"ref\": number, \"why\": text, \"better\": \"first\" or \"second\"}.";

static SHAPE: LazyLock<Arc<Value>> = LazyLock::new(|| {
    Arc::new(json!({
        "type": "object",
        "properties": {
            "ref": {"type": "integer"},
            "why": {"type": "string"},
            "better": {"type": "string", "enum": ["first", "second"]},
        },
        "required": ["ref", "why", "better"],
        "additionalProperties": false,
    }))
});

/// Builds the request with the answer `first` shown first.
pub(super) fn pairwise_choice_request(
    judge: &JudgeDefinition,
    pair: &LabelledAnswerPair,
    first: AnswerSide,
    quotes: QuotedPromptBlocks,
) -> ModelRequest {
    let mut system = format!("{INSTRUCTIONS}\n{RULE}");
    if let Some(rubric) = &judge.rubric {
        system.push_str("\nThe project asks you to look at this besides:\n");
        system.push_str(rubric);
    }
    let [a, b] = &pair.answers;
    let (one, two) = match first {
        AnswerSide::A => (a, b),
        AnswerSide::B => (b, a),
    };
    let mut prompt = quotes.prompt_start_with_quote_number();
    quotes.push_quoted_block(&mut prompt, "request", &pair.request);
    if let Some(rules) = &pair.rules {
        quotes.push_quoted_block(&mut prompt, "rules", rules);
    }
    quotes.push_quoted_block(&mut prompt, "first answer", one);
    quotes.push_quoted_block(&mut prompt, "second answer", two);
    ModelRequest {
        system: system.into(),
        messages: vec![ChatMessage::User(prompt)],
        tools: Vec::new(),
        output_schema: Some(StructuredAnswerSchema {
            name: "choice",
            schema: SHAPE.clone(),
        }),
        max_tokens: Some(MOST_TOKENS),
    }
}
