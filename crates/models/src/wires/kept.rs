//! Thoughts that a provider wants to see again: kept with the first call of an answer, in the order
//! that the answer had, and put back in their places.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Call;

/// A part of an answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Block {
    /// As the provider writes it.
    Thought(Value),
    Text(String),
    /// By its id.
    Call(String),
}

/// What is kept of these parts; nothing if there is no thought among them.
pub(super) fn kept(blocks: &[Block]) -> Option<String> {
    let thoughts = |block: &Block| matches!(block, Block::Thought(_));
    let any = blocks.iter().any(thoughts);
    any.then(|| serde_json::to_string(blocks).ok()).flatten()
}

/// A part of an answer that is sent again.
pub(super) enum Part<'a> {
    Thought(Value),
    Text(String),
    Call(&'a Call),
}

/// An answer in its parts: the text, then the calls, and thoughts in their places where they are
/// known and are of this very answer.
pub(super) fn parts<'a>(text: &str, calls: &'a [Call]) -> Vec<Part<'a>> {
    in_order(text, calls).unwrap_or_else(|| {
        let text = (!text.trim().is_empty()).then(|| Part::Text(text.to_owned()));
        text.into_iter()
            .chain(calls.iter().map(Part::Call))
            .collect()
    })
}

fn in_order<'a>(text: &str, calls: &'a [Call]) -> Option<Vec<Part<'a>>> {
    let (mut said, mut left, mut parts) = (String::new(), calls.iter(), Vec::new());
    for block in blocks(calls)? {
        match block {
            Block::Thought(thought) => parts.push(Part::Thought(thought)),
            Block::Text(text) => {
                said.push_str(&text);
                // No provider takes one that says nothing.
                if !text.trim().is_empty() {
                    parts.push(Part::Text(text));
                }
            }
            Block::Call(id) => parts.push(Part::Call(left.next().filter(|call| call.id == id)?)),
        }
    }
    (said == text && left.next().is_none()).then_some(parts)
}

/// The thoughts alone, where they have a place of their own.
pub(super) fn thoughts(calls: &[Call]) -> String {
    let texts = blocks(calls)
        .into_iter()
        .flatten()
        .filter_map(|block| match block {
            Block::Thought(Value::String(text)) => Some(text),
            _ => None,
        });
    texts.collect()
}

fn blocks(calls: &[Call]) -> Option<Vec<Block>> {
    serde_json::from_str(calls.first()?.kept.as_deref()?).ok()
}
