//! An answer under construction, the same for every wire.

use serde_json::{Value, json};

use super::ModelAnswerDecodeError;
use super::thought_blocks::{ReplyBlock, encode_thinking_blocks_to_keep};
use crate::{AnswerTokenUsage, FinishReason, ModelReply, RequestedToolCall};

/// The largest number of calls in one answer. It bounds the search for the call that a piece
/// belongs to.
const MAX_CALLS: usize = 128;

/// What has come so far.
#[derive(Debug, Default)]
pub(crate) struct PartialReply {
    pub(crate) text: String,
    /// Text from deltas, which is used only if the complete text does not follow.
    pub(crate) text_deltas: String,
    pub(crate) refused: bool,
    /// The parts in order, each under its key, where a provider may want them back.
    blocks: Vec<(String, ReplyBlock)>,
    /// Whether thoughts that are plain text must be sent back.
    pub(crate) keeps_thoughts: bool,
    calls: Vec<PartialToolCall>,
    /// Set once the provider has said why the answer ended. The answer is then complete.
    pub(crate) ended: Option<FinishReason>,
    /// Nothing further is expected.
    pub(crate) closed: bool,
    pub(crate) usage: AnswerTokenUsage,
}

/// A call while it comes.
#[derive(Debug, Default)]
pub(crate) struct PartialToolCall {
    /// What identifies the pieces of one call on this wire.
    key: String,
    pub(crate) id: String,
    pub(crate) tool: String,
    pub(crate) arguments: String,
    pub(crate) kept: Option<String>,
}

impl PartialReply {
    /// Creates an empty reply, for a provider that wants its thoughts back or one that does not.
    pub(crate) fn new(keeps_thoughts: bool) -> Self {
        Self {
            keeps_thoughts,
            ..Self::default()
        }
    }

    /// The call with this key; a new one if there is none.
    pub(crate) fn get_or_add_tool_call(
        &mut self,
        key: &str,
    ) -> Result<&mut PartialToolCall, ModelAnswerDecodeError> {
        let at = match self.calls.iter().position(|part| part.key == key) {
            Some(at) => at,
            None if self.calls.len() >= MAX_CALLS => {
                return Err(ModelAnswerDecodeError::Unreadable(format!(
                    "it makes more than {MAX_CALLS} calls"
                )));
            }
            None => {
                let key = key.to_owned();
                self.calls.push(PartialToolCall {
                    key,
                    ..PartialToolCall::default()
                });
                self.calls.len() - 1
            }
        };
        let lost = || ModelAnswerDecodeError::Unreadable("a call was lost".to_owned());
        self.calls.get_mut(at).ok_or_else(lost)
    }

    /// The call with this key, if there is one.
    pub(crate) fn find_streamed_call_mut(&mut self, key: &str) -> Option<&mut PartialToolCall> {
        self.calls.iter_mut().find(|part| part.key == key)
    }

    /// Returns whether there is neither text nor a call.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.calls.is_empty()
    }

    /// Begins a part of the answer.
    pub(super) fn begin_model_reply_block(
        &mut self,
        key: &str,
        block: ReplyBlock,
    ) -> Result<(), ModelAnswerDecodeError> {
        // Bounds memory and the search for a block. An answer has text and thoughts between its
        // calls.
        if self.blocks.len() >= MAX_CALLS * 4 {
            return Err(ModelAnswerDecodeError::Unreadable(
                "it has too many parts".to_owned(),
            ));
        }
        self.blocks.push((key.to_owned(), block));
        Ok(())
    }

    /// Adds to a part: to its text, or to this field of a thought.
    pub(super) fn append_to_model_reply_block(&mut self, key: &str, field: &str, piece: &str) {
        let begun = self.blocks.iter_mut().rev().find(|(own, _)| own == key);
        match begun {
            Some((_, ReplyBlock::Text(text) | ReplyBlock::Thought(Value::String(text)))) => {
                text.push_str(piece);
            }
            Some((_, ReplyBlock::Thought(thought))) => {
                if let Some(Value::String(text)) = thought.get_mut(field) {
                    text.push_str(piece);
                }
            }
            Some((_, ReplyBlock::Call(_))) | None => {}
        }
    }

    /// Returns whether a part has been begun under this key.
    pub(super) fn has_begun_reply_block(&self, key: &str) -> bool {
        self.blocks.iter().any(|(own, _)| own == key)
    }

    /// A key that no call has yet, where the wire gives none.
    pub(crate) fn generate_call_key(&self) -> String {
        format!("#{}", self.calls.len())
    }

    /// The key of the call that came last.
    pub(crate) fn last_streamed_call_key(&self) -> Option<String> {
        self.calls.last().map(|part| part.key.clone())
    }

    /// The answer, if it is whole.
    pub(crate) fn into_model_reply(self) -> Result<ModelReply, ModelAnswerDecodeError> {
        // Without a reason the stream was cut, and a call could lack half of its arguments.
        let Some(ended) = self.ended else {
            return Err(ModelAnswerDecodeError::CutOff);
        };
        let mut calls: Vec<RequestedToolCall> = self
            .calls
            .into_iter()
            .map(PartialToolCall::into_complete_tool_call)
            .collect();
        let blocks: Vec<ReplyBlock> = self.blocks.into_iter().map(|(_, block)| block).collect();
        if let (Some(first), Some(kept)) =
            (calls.first_mut(), encode_thinking_blocks_to_keep(&blocks))
        {
            first.provider_state = Some(kept);
        }
        // A call without a tool cannot be made or answered.
        if calls.iter().any(|call| call.tool.is_empty()) {
            return Err(ModelAnswerDecodeError::Unreadable(
                "a call names no tool".to_owned(),
            ));
        }
        // Several providers end an answer with calls like any other.
        let ended = match ended {
            _ if self.refused => FinishReason::Refused,
            FinishReason::EndOfTurn if !calls.is_empty() => FinishReason::Calls,
            other => other,
        };
        Ok(ModelReply {
            text: self.text,
            calls,
            finish_reason: ended,
            usage: self.usage,
        })
    }
}

impl PartialToolCall {
    fn into_complete_tool_call(self) -> RequestedToolCall {
        // A call without arguments comes as an empty text.
        let arguments = match self.arguments.trim() {
            "" => Ok(json!({})),
            text => serde_json::from_str(text).map_err(|_| self.arguments),
        };
        let id = match self.id {
            // Some answers carry no ids, but results are matched by id.
            id if id.is_empty() => format!("call_{:016x}", fastrand::u64(..)),
            id => id,
        };
        RequestedToolCall {
            id,
            tool: self.tool,
            arguments,
            provider_state: self.kept,
        }
    }
}

/// Tokens under this name, if it says any.
pub(crate) fn usage_token_count(usage: &Value, pointer: &str) -> Option<u64> {
    usage.pointer(pointer).and_then(Value::as_u64)
}

/// Returns the usage for providers that count all input together: cached tokens are subtracted.
pub(crate) fn usage_from_inclusive_totals(
    input: Option<u64>,
    cached: Option<u64>,
    written: Option<u64>,
    output: Option<u64>,
) -> AnswerTokenUsage {
    let elsewhere = cached.unwrap_or(0).saturating_add(written.unwrap_or(0));
    AnswerTokenUsage {
        // Each kind has its own price, so no token may be counted twice.
        input: input.map(|all| all.saturating_sub(elsewhere)),
        cache_read: cached,
        cache_write: written,
        output,
    }
}
