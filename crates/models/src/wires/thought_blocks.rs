//! Thoughts that a provider wants back. They are kept with the first call of an answer, in the
//! answer's order, and put back in their places.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::RequestedToolCall;

/// A part of an answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ReplyBlock {
    /// As written by the provider.
    Thought(Value),
    Text(String),
    /// A call, by its id.
    Call(String),
}

/// Returns what is kept of these parts; `None` if there is no thought among them.
pub(super) fn encode_thinking_blocks_to_keep(blocks: &[ReplyBlock]) -> Option<String> {
    let thoughts = |block: &ReplyBlock| matches!(block, ReplyBlock::Thought(_));
    let any = blocks.iter().any(thoughts);
    any.then(|| serde_json::to_string(blocks).ok()).flatten()
}

/// A part of an answer that is sent back.
pub(super) enum ResentReplyPart<'a> {
    Thought(Value),
    Text(String),
    Call(&'a RequestedToolCall),
}

/// Returns an answer in its parts: the text, then the calls, with thoughts in their places where
/// they are known and belong to this very answer.
pub(super) fn reply_parts_to_resend<'a>(
    text: &str,
    calls: &'a [RequestedToolCall],
) -> Vec<ResentReplyPart<'a>> {
    resent_reply_parts_in_order(text, calls).unwrap_or_else(|| {
        let text = (!text.trim().is_empty()).then(|| ResentReplyPart::Text(text.to_owned()));
        text.into_iter()
            .chain(calls.iter().map(ResentReplyPart::Call))
            .collect()
    })
}

fn resent_reply_parts_in_order<'a>(
    text: &str,
    calls: &'a [RequestedToolCall],
) -> Option<Vec<ResentReplyPart<'a>>> {
    let (mut said, mut left, mut parts) = (String::new(), calls.iter(), Vec::new());
    for block in decode_kept_reply_blocks(calls)? {
        match block {
            ReplyBlock::Thought(thought) => parts.push(ResentReplyPart::Thought(thought)),
            ReplyBlock::Text(text) => {
                said.push_str(&text);
                // No provider accepts an empty text.
                if !text.trim().is_empty() {
                    parts.push(ResentReplyPart::Text(text));
                }
            }
            ReplyBlock::Call(id) => parts.push(ResentReplyPart::Call(
                left.next().filter(|call| call.id == id)?,
            )),
        }
    }
    // The kept parts fit only the answer they came with. If the caller edited its text or calls,
    // the thoughts are dropped.
    (said == text && left.next().is_none()).then_some(parts)
}

/// Returns the thoughts alone, for wires that have a field for them.
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
