//! Defines the journal of a conversation: one entry a message, saved to the store, so that a run
//! whose process died can be resumed. Secrets are redacted in the journal, as in everything that is
//! stored; the conversation in memory still holds them.

use checkrein_models::{AnswerTokenUsage, ChatMessage, RequestedToolCall};
use checkrein_runtime::RuntimeError;
use serde::{Deserialize, Serialize};

use super::AgentLoopStartError;
use crate::{AnswerUsage, Session};

/// One entry. Its format does not depend on the provider's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum AgentLoopJournalEntry {
    /// The model and the purpose, written by the host and read back by the host.
    Begun {
        model: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[serde(rename = "errand")]
        purpose: Option<String>,
    },
    /// A message from a person, or from the loop in a person's place.
    User {
        text: String,
        /// Whether a person wrote it: it then opens a task.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        prompt: bool,
    },
    /// An answer of the model.
    Answer(ModelAnswer),
    /// The result of a call.
    Result(ToolCallOutcome),
    /// The preceding result as middleware rewrote it.
    #[serde(rename = "passed")]
    ResultRewritten(ResultRewriteEntry),
    /// The model's rating of its preceding answer.
    Reflected(AnswerRatingJournalEntry),
}

/// See [`AgentLoopJournalEntry::Reflected`]. The conversation does not contain it, only the
/// feedback that may follow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct AnswerRatingJournalEntry {
    /// The text of the rating, and the tokens that it used.
    pub(super) answer: ModelAnswer,
    pub(super) score: Result<u16, String>,
    /// The message to the model, if it has to revise its answer.
    pub(super) feedback: Option<String>,
}

/// See [`AgentLoopJournalEntry::ResultRewritten`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ResultRewriteEntry {
    /// The text that the model is given.
    pub(super) given: String,
    /// The text that replaces it once the model has seen it, if it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) kept: Option<String>,
}

/// An answer of the model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct ModelAnswer {
    pub(super) text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    calls: Vec<JournaledToolCall>,
    /// Whether its output limit cut it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) cut: bool,
    used: TokenCounts,
    cost: Option<u64>,
}

/// The result of a call, as the model is given it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ToolCallOutcome {
    pub(super) call: String,
    pub(super) tool: String,
    pub(super) text: String,
    pub(super) failed: bool,
    /// The advice that a loop detector adds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) advice: Option<String>,
    /// The output of the tool, if it ran.
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
    /// Whether a secret in the arguments was redacted: they then differ from what the model sent.
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
            // Opaque to us: a provider may verify a signature over it.
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
                // Redaction may have made the text invalid JSON. The call is then answered as one
                // with arguments that are no JSON.
                JsonOrTextArguments::Json(text) => {
                    serde_json::from_str(text).map_err(|_| text.clone())
                }
                JsonOrTextArguments::Text(text) => Err(text.clone()),
            },
            provider_state: call.kept.clone(),
        });
        calls.collect()
    }

    /// Returns whether the journaled arguments of this call differ from what the model sent.
    pub(super) fn are_call_arguments_redacted(&self, nth: usize) -> bool {
        self.calls.get(nth).is_some_and(|call| call.redacted)
    }

    // Redacting arguments makes the call impossible to replay. The flag tells a resumed run not to
    // execute it.
    fn redact_model_answer_secrets(&mut self, redacted: &RedactFn<'_>) {
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
    /// Returns whether the entry is an answer of the model, which counts as a round.
    pub(super) fn is_model_answer(&self) -> bool {
        matches!(self, Self::Answer(_) | Self::Reflected(_))
    }

    /// Converts the entry to a message for the provider; `None` if the provider does not see it.
    pub(super) fn journal_entry_as_model_message(&self) -> Option<ChatMessage> {
        Some(match self {
            // Replacements change the preceding message, and ratings stay out of the conversation.
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
        // The entry holds only texts, numbers and JSON, so serialising cannot fail.
        let body = serde_json::to_vec(&self).unwrap_or_default();
        session.append_conversation_message(&body)
    }

    /// Redacts secrets. A call's `kept` stays as it is, since the provider expects it back
    /// unchanged.
    fn redact_journal_entry(&mut self, redacted: &RedactFn<'_>) {
        match self {
            // The host compares these with its own on resume, so they must stay as they are.
            Self::Begun {
                model: _,
                purpose: _,
            } => {}
            Self::User { text, prompt: _ } => {
                redact_text(text, redacted);
            }
            Self::Answer(answer) => answer.redact_model_answer_secrets(redacted),
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
                reflected.answer.redact_model_answer_secrets(redacted);
                redact_optional_text(&mut reflected.feedback, redacted);
                if let Err(why) = &mut reflected.score {
                    redact_text(why, redacted);
                }
            }
        }
    }
}

/// Returns a text without its secrets; `None` if it contains none.
type RedactFn<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// Redacts a text in place; returns whether it contained a secret.
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

/// Reads a whole conversation. If one entry cannot be read, the conversation is refused, because
/// later events are keyed by what came before them.
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
            let reflected = AnswerRatingJournalEntry {
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
