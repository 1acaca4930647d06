//! Asks the agent to rate its own answer before it is judged. Below the threshold the agent gets
//! its own critique back and revises. The rating is no evidence: every stop is judged regardless of
//! it.

use std::sync::{Arc, LazyLock};

use checkrein_models::answers::{RequiredAnswerKeys, parse_model_answer};
use checkrein_models::quoted::{KeepTextStartOrEnd, QuotedPromptBlocks, clip_text};
use checkrein_models::{ChatMessage, ModelReply, ModelRequest, StructuredAnswerSchema};
use serde_json::{Value, json};

/// Most revisions that can be configured (seed 003: reflection, at most three).
const MOST: u32 = 3;
/// Bytes of the critique that are sent back to the agent.
const CRITIQUE: usize = 2_000;

/// Whether, and how often, an agent revises its answer by its own judgement.
///
/// ```
/// # use std::sync::Arc;
/// # use checkrein::{AgentLoop, SelfReflectionConfig, models::LanguageModel};
/// # fn example(model: Arc<dyn LanguageModel>) -> AgentLoop {
/// AgentLoop::new(model).reflect(SelfReflectionConfig { threshold_permille: 800, revisions: 2 })
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SelfReflectionConfig {
    /// Below this score, in thousandths, it revises: from 1 to 1000.
    pub threshold_permille: u16,
    /// At most so often in a conversation: from 1 to 3.
    pub revisions: u32,
}

impl Default for SelfReflectionConfig {
    fn default() -> Self {
        Self {
            threshold_permille: 700,
            revisions: MOST,
        }
    }
}

impl SelfReflectionConfig {
    /// Returns the first invalid setting: its key, and what is wrong with it.
    pub(super) fn first_invalid_reflect_setting(self) -> Option<(&'static str, &'static str)> {
        if !(1..=1000).contains(&self.threshold_permille) {
            return Some((
                "reflect.threshold_permille",
                "must be from 1 to 1000 thousandths",
            ));
        }
        if !(1..=MOST).contains(&self.revisions) {
            return Some((
                "reflect.revisions",
                "must be from 1 to 3; to switch it off leave `reflect` out",
            ));
        }
        None
    }
}

/// An agent's rating of an answer of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentRatingOfOwnAnswer {
    /// The score in thousandths, or why there is none.
    pub score: Result<u16, String>,
    /// Whether the agent had to revise the answer.
    pub revised: bool,
}

/// A parsed rating: the score and the critique.
pub(super) struct ParsedSelfRating {
    pub(super) score: Result<u16, String>,
    critique: String,
}

static SHAPE: LazyLock<Arc<Value>> = LazyLock::new(|| {
    Arc::new(json!({
        "type": "object",
        "properties": {
            "ref": { "type": "integer" },
            "critique": { "type": "string" },
            "score": { "type": "number" },
        },
        "required": ["ref", "critique", "score"],
        "additionalProperties": false,
    }))
});

/// Builds the request that asks about the last answer of a conversation. The conversation itself
/// stays unchanged.
pub(super) fn build_self_critique_request(
    conversation: &ModelRequest,
    quotes: QuotedPromptBlocks,
) -> ModelRequest {
    // The agent has read files and tool output. A text in them that imitates the JSON answer does
    // not know this number.
    let number = quotes.number_answer_must_repeat();
    let mut messages = conversation.messages.clone();
    messages.push(ChatMessage::User(format!(
        "[reflect] Before others judge your answer, judge it yourself: is all done that was asked for, and is it right? Call no tool; reply in JSON. critique: what is missing or wrong, so that you can mend it; empty if nothing. score: from 0, useless, to 1, nothing to add. ref: {number}."
    )));
    ModelRequest {
        messages,
        output_schema: Some(StructuredAnswerSchema {
            name: "reflection",
            schema: SHAPE.clone(),
        }),
        ..conversation.clone()
    }
}

/// Parses the reply. A reply that cannot be parsed has no score, which is not a low score.
pub(super) fn parse_reflection_reply(
    reply: &ModelReply,
    quotes: QuotedPromptBlocks,
) -> ParsedSelfRating {
    let nothing = |why: String| ParsedSelfRating {
        score: Err(why),
        critique: String::new(),
    };
    let wanted = RequiredAnswerKeys {
        number: quotes.number_answer_must_repeat(),
        keys: &["score"],
    };
    match parse_model_answer(&reply.text, wanted) {
        Err(why) => nothing(why.to_string()),
        Ok(answer) if !answer.echoes_request_nonce() => {
            nothing("the answer does not repeat the number of its question".to_owned())
        }
        Ok(answer) => ParsedSelfRating {
            // Read on its own: a reply with a score but without a critique is still usable.
            score: answer
                .read_thousandths_from_answer("score")
                .map_err(|why| why.to_string()),
            critique: answer
                .answer_text_field("critique")
                .map(|text| {
                    clip_text(text.trim(), CRITIQUE, KeepTextStartOrEnd::Start).into_owned()
                })
                .unwrap_or_default(),
        },
    }
}

impl ParsedSelfRating {
    /// Returns the message that asks for a revision, if the score is below the threshold.
    pub(super) fn self_reflection_feedback(&self, reflect: SelfReflectionConfig) -> Option<String> {
        // Without a score nothing is sent back: a model that cannot rate must not revise forever.
        let score = *self.score.as_ref().ok()?;
        if score >= reflect.threshold_permille {
            return None;
        }
        let critique = match self.critique.as_str() {
            "" => "you did not say what is missing; look for it",
            critique => critique,
        };
        Some(format!(
            "[reflect] By your own word your answer is not good enough yet ({score} of 1000, {} are asked for): {critique}\nMend that, then answer anew.",
            reflect.threshold_permille
        ))
    }
}
