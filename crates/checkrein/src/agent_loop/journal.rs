//! The conversation of a run as it is kept in the store, message by message, so that a run whose
//! process died can be taken up where it was. Secrets are hidden in it, as in everything that is kept;
//! the run that goes on still has them.

use checkrein_models::{AnswerTokenUsage, ChatMessage, RequestedToolCall};
use checkrein_runtime::RuntimeError;
use serde::{Deserialize, Serialize};

use super::AgentLoopStartError;
use crate::{AnswerUsage, Session};

/// One entry. The form is ours, whatever a provider's is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum AgentLoopJournalEntry {
    /// Who works, and for what: told by the host, read by the host.
    Begun {
        model: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[serde(rename = "errand")]
        purpose: Option<String>,
    },
    /// From the person, or from us in their place.
    User {
        text: String,
        /// It begins a task, or is one more thing to be done in it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        prompt: bool,
    },
    /// From the model.
    Answer(ModelAnswer),
    /// What came of a call.
    Result(ToolCallOutcome),
    /// What middleware made of the result before this.
    #[serde(rename = "passed")]
    ResultRewritten(ResultRewriteEntry),
    /// What the model thought of its answer before this.
    Reflected(ReflectionEntry),
}

/// See [`AgentLoopJournalEntry::Reflected`]. The conversation hears of it only what follows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ReflectionEntry {
    /// Its own words, and what they used.
    pub(super) answer: ModelAnswer,
    pub(super) score: Result<u16, String>,
    /// What it is told, if it is to revise its answer.
    pub(super) feedback: Option<String>,
}

/// See [`AgentLoopJournalEntry::ResultRewritten`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ResultRewriteEntry {
    /// What the model is told.
    pub(super) given: String,
    /// What stays of it once it was told, if that is something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) kept: Option<String>,
}

/// An answer of the model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct ModelAnswer {
    pub(super) text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    calls: Vec<JournaledToolCall>,
    /// Its output limit cut it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) cut: bool,
    used: TokenCounts,
    cost: Option<u64>,
}

/// What the model is told of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ToolCallOutcome {
    pub(super) call: String,
    pub(super) tool: String,
    pub(super) text: String,
    pub(super) failed: bool,
    /// What a detector says beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) advice: Option<String>,
    /// The tool ran, and this is what it said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ran: Option<String>,
}

impl ToolCallOutcome {
    pub(super) fn text_with_advice(&self, text: String) -> String {
        match &self.advice {
            Some(advice) => format!("{text}\n{advice}"),
            None => text,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct JournaledToolCall {
    id: String,
    tool: String,
    arguments: JsonOrTextArguments,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kept: Option<String>,
    /// Something in the arguments was hidden when they were kept: they are not what the model said.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    redacted: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum JsonOrTextArguments {
    /// JSON, as a text: within an entry it would nest deeper than what reads it allows.
    Json(String),
    Text(String),
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct TokenCounts {
    input: Option<u64>,
    cached: Option<u64>,
    written: Option<u64>,
    output: Option<u64>,
}

impl ModelAnswer {
    pub(super) fn new(
        text: String,
        calls: Vec<RequestedToolCall>,
        cut: bool,
        used: &AnswerTokenUsage,
        cost: Option<u64>,
    ) -> Self {
        let calls = calls.into_iter().map(|call| JournaledToolCall {
            id: call.id,
            tool: call.tool,
            arguments: match call.arguments {
                Ok(value) => JsonOrTextArguments::Json(value.to_string()),
                Err(text) => JsonOrTextArguments::Text(text),
            },
            kept: call.provider_state,
            redacted: false,
        });
        Self {
            text,
            calls: calls.collect(),
            cut,
            used: TokenCounts {
                input: used.input,
                cached: used.cache_read,
                written: used.cache_write,
                output: used.output,
            },
            cost,
        }
    }

    pub(super) fn requested_calls(&self) -> Vec<RequestedToolCall> {
        let calls = self.calls.iter().map(|call| RequestedToolCall {
            id: call.id.clone(),
            tool: call.tool.clone(),
            arguments: match &call.arguments {
                JsonOrTextArguments::Json(text) => {
                    serde_json::from_str(text).map_err(|_| text.clone())
                }
                JsonOrTextArguments::Text(text) => Err(text.clone()),
            },
            provider_state: call.kept.clone(),
        });
        calls.collect()
    }

    /// Whether the arguments of this call are not what the model said.
    pub(super) fn are_call_arguments_redacted(&self, nth: usize) -> bool {
        self.calls.get(nth).is_some_and(|call| call.redacted)
    }

    fn redact_answer_secrets(&mut self, redacted: &RedactFn<'_>) {
        redact_text(&mut self.text, redacted);
        for call in &mut self.calls {
            let (JsonOrTextArguments::Json(text) | JsonOrTextArguments::Text(text)) =
                &mut call.arguments;
            call.redacted |= redact_text(text, redacted);
        }
    }

    pub(super) fn model_reply_token_usage(&self) -> AnswerTokenUsage {
        AnswerTokenUsage {
            input: self.used.input,
            cache_read: self.used.cached,
            cache_write: self.used.written,
            output: self.used.output,
        }
    }

    pub(super) fn model_answer_usage(&self) -> AnswerUsage {
        AnswerUsage {
            output_tokens: self.used.output,
            cost: self.cost,
        }
    }
}

impl AgentLoopJournalEntry {
    /// Whether the model was asked for it: such are counted.
    pub(super) fn is_model_answer(&self) -> bool {
        matches!(self, Self::Answer(_) | Self::Reflected(_))
    }

    /// As a provider is told of it; `None` if that is nothing.
    pub(super) fn journal_entry_as_model_message(&self) -> Option<ChatMessage> {
        Some(match self {
            Self::Begun { .. } | Self::ResultRewritten(_) | Self::Reflected(_) => return None,
            Self::User { text, .. } => ChatMessage::User(text.clone()),
            Self::Answer(answer) => ChatMessage::Assistant {
                text: answer.text.clone(),
                calls: answer.requested_calls(),
            },
            Self::Result(outcome) => ChatMessage::ToolResult {
                call: outcome.call.clone(),
                tool: outcome.tool.clone(),
                text: outcome.text.clone(),
                failed: outcome.failed,
            },
        })
    }

    pub(super) fn save_conversation_entry(
        mut self,
        session: &Session<'_>,
    ) -> Result<(), RuntimeError> {
        self.redact_journal_entry(&|text| session.redact_secrets(text));
        // Texts, numbers and JSON: serialising cannot fail.
        let body = serde_json::to_vec(&self).unwrap_or_default();
        session.append_conversation_message(&body)
    }

    /// Hides secrets. What a provider wants back to the letter (`kept` of a call) stays.
    fn redact_journal_entry(&mut self, redacted: &RedactFn<'_>) {
        match self {
            // The host's own words, which it compares.
            Self::Begun {
                model: _,
                purpose: _,
            } => {}
            Self::User { text, prompt: _ } => {
                redact_text(text, redacted);
            }
            Self::Answer(answer) => answer.redact_answer_secrets(redacted),
            Self::Result(outcome) => {
                redact_text(&mut outcome.text, redacted);
                redact_optional_text(&mut outcome.advice, redacted);
                redact_optional_text(&mut outcome.ran, redacted);
            }
            Self::ResultRewritten(passed) => {
                redact_text(&mut passed.given, redacted);
                redact_optional_text(&mut passed.kept, redacted);
            }
            Self::Reflected(reflected) => {
                reflected.answer.redact_answer_secrets(redacted);
                redact_optional_text(&mut reflected.feedback, redacted);
                if let Err(why) = &mut reflected.score {
                    redact_text(why, redacted);
                }
            }
        }
    }
}

/// A text without secrets; `None` if it has none.
type RedactFn<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// Whether something was hidden.
fn redact_text(text: &mut String, redacted: &RedactFn<'_>) -> bool {
    match redacted(text) {
        Some(hidden) => {
            *text = hidden;
            true
        }
        None => false,
    }
}

fn redact_optional_text(text: &mut Option<String>, redacted: &RedactFn<'_>) {
    if let Some(text) = text {
        redact_text(text, redacted);
    }
}

/// All of a conversation. One of which a part cannot be read is none: what follows is keyed by what
/// came before.
pub(super) fn read_agent_loop_journal(
    session: &Session<'_>,
) -> Result<Vec<AgentLoopJournalEntry>, AgentLoopStartError> {
    let kept = session.messages()?;
    let entries = kept.iter().enumerate().map(|(nth, body)| {
        serde_json::from_slice(body).map_err(|error| AgentLoopStartError::Unreadable {
            session: session.session_id().clone(),
            nth,
            what: error.to_string(),
        })
    });
    entries.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As deep as what is read from a provider may be.
    fn deep(levels: usize) -> serde_json::Value {
        (0..levels).fold(serde_json::json!("x"), |within, _| {
            serde_json::json!([within])
        })
    }

    #[test]
    fn a_conversation_is_read_as_it_was_written() {
        let call = |arguments| RequestedToolCall {
            id: "1".to_owned(),
            tool: "shell".to_owned(),
            arguments,
            provider_state: Some("signature".to_owned()),
        };
        let calls = vec![
            call(Ok(serde_json::json!({ "command": "ls" }))),
            call(Ok(deep(124))),
            call(Err("{\"command".to_owned())),
        ];
        let usage = AnswerTokenUsage {
            input: Some(1),
            cache_read: None,
            cache_write: Some(0),
            output: Some(7),
        };
        let answer = ModelAnswer::new("look".to_owned(), calls.clone(), true, &usage, Some(9));
        let entry = AgentLoopJournalEntry::Answer(answer.clone());
        let body = serde_json::to_vec(&entry).unwrap();
        let AgentLoopJournalEntry::Answer(back) = serde_json::from_slice(&body).unwrap() else {
            panic!("another entry");
        };
        assert_eq!(back, answer);
        assert_eq!(
            (back.requested_calls(), back.model_reply_token_usage()),
            (calls, usage)
        );
        let spent = AnswerUsage {
            output_tokens: Some(7),
            cost: Some(9),
        };
        assert_eq!(back.model_answer_usage(), spent);
    }

    #[test]
    fn what_it_thought_of_its_answer_is_read_as_it_was_written() {
        for score in [Ok(400), Err("no JSON".to_owned())] {
            let reflected = ReflectionEntry {
                answer: ModelAnswer::default(),
                feedback: score.is_ok().then(|| "[reflect] more".to_owned()),
                score,
            };
            let entry = AgentLoopJournalEntry::Reflected(reflected);
            assert_eq!(entry.journal_entry_as_model_message(), None);
            let body = serde_json::to_vec(&entry).unwrap();
            assert_eq!(
                serde_json::from_slice::<AgentLoopJournalEntry>(&body).unwrap(),
                entry
            );
        }
    }
}
