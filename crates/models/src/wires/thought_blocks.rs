//! Thoughts that a provider wants to see again: kept with the first call of an answer, in the order
//! that the answer had, and put back in their places.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::RequestedToolCall;

/// A part of an answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ReplyBlock {
    /// As the provider writes it.
    Thought(Value),
    Text(String),
    /// By its id.
    Call(String),
}

/// What is kept of these parts; nothing if there is no thought among them.
pub(super) fn encode_thinking_blocks_to_keep(blocks: &[ReplyBlock]) -> Option<String> {
    let thoughts = |block: &ReplyBlock| matches!(block, ReplyBlock::Thought(_));
    let any = blocks.iter().any(thoughts);
    any.then(|| serde_json::to_string(blocks).ok()).flatten()
}

/// A part of an answer that is sent again.
pub(super) enum ResentReplyPart<'a> {
    Thought(Value),
    Text(String),
    Call(&'a RequestedToolCall),
}

/// An answer in its parts: the text, then the calls, and thoughts in their places where they are
/// known and are of this very answer.
pub(super) fn reply_parts_to_resend<'a>(
    text: &str,
    calls: &'a [RequestedToolCall],
) -> Vec<ResentReplyPart<'a>> {
    reply_parts_in_order(text, calls).unwrap_or_else(|| {
        let text = (!text.trim().is_empty()).then(|| ResentReplyPart::Text(text.to_owned()));
        text.into_iter()
            .chain(calls.iter().map(ResentReplyPart::Call))
            .collect()
    })
}

fn reply_parts_in_order<'a>(
    text: &str,
    calls: &'a [RequestedToolCall],
) -> Option<Vec<ResentReplyPart<'a>>> {
    let (mut said, mut left, mut parts) = (String::new(), calls.iter(), Vec::new());
    for block in decode_kept_reply_blocks(calls)? {
        match block {
            ReplyBlock::Thought(thought) => parts.push(ResentReplyPart::Thought(thought)),
            ReplyBlock::Text(text) => {
                said.push_str(&text);
                // No provider takes one that says nothing.
                if !text.trim().is_empty() {
                    parts.push(ResentReplyPart::Text(text));
                }
            }
            ReplyBlock::Call(id) => parts.push(ResentReplyPart::Call(
                left.next().filter(|call| call.id == id)?,
            )),
        }
    }
    (said == text && left.next().is_none()).then_some(parts)
}

/// The thoughts alone, where they have a place of their own.
pub(super) fn thoughts_kept_with_tool_calls(calls: &[RequestedToolCall]) -> String {
    let texts = decode_kept_reply_blocks(calls)
        .into_iter()
        .flatten()
        .filter_map(|block| match block {
            ReplyBlock::Thought(Value::String(text)) => Some(text),
            _ => None,
        });
    texts.collect()
}

fn decode_kept_reply_blocks(calls: &[RequestedToolCall]) -> Option<Vec<ReplyBlock>> {
    serde_json::from_str(calls.first()?.provider_state.as_deref()?).ok()
}
