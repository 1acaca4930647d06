//! An answer while it comes, the same for every wire.

use serde_json::{Value, json};

use super::Fault;
use super::kept::{Block, kept};
use crate::{Call, Ended, Reply, Usage};

/// No model wants more at once; it bounds the search for the call that a piece belongs to.
const MAX_CALLS: usize = 128;

/// What has come so far.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(crate) text: String,
    /// Text that counts only if it does not come again as a whole.
    pub(crate) pieces: String,
    pub(crate) refused: bool,
    /// Its parts in their order, each under its key, where a provider may want to see that again.
    blocks: Vec<(String, Block)>,
    /// Whether thoughts that are nothing but a text are wanted again.
    pub(crate) keeps_thoughts: bool,
    calls: Vec<Part>,
    /// Known once the provider has said why the answer ended: then it is whole.
    pub(crate) ended: Option<Ended>,
    /// Nothing further is to come.
    pub(crate) closed: bool,
    pub(crate) usage: Usage,
}

/// A call while it comes.
#[derive(Debug, Default)]
pub(crate) struct Part {
    /// What the pieces of one call have in common on this wire.
    key: String,
    pub(crate) id: String,
    pub(crate) tool: String,
    pub(crate) arguments: String,
    pub(crate) kept: Option<String>,
}

impl Draft {
    /// Of a provider that wants its thoughts back, or not.
    pub(crate) fn new(keeps_thoughts: bool) -> Self {
        Self {
            keeps_thoughts,
            ..Self::default()
        }
    }

    /// The call with this key; a new one if there is none.
    pub(crate) fn call(&mut self, key: &str) -> Result<&mut Part, Fault> {
        let at = match self.calls.iter().position(|part| part.key == key) {
            Some(at) => at,
            None if self.calls.len() >= MAX_CALLS => {
                return Err(Fault::Unreadable(format!(
                    "it makes more than {MAX_CALLS} calls"
                )));
            }
            None => {
                let key = key.to_owned();
                self.calls.push(Part {
                    key,
                    ..Part::default()
                });
                self.calls.len() - 1
            }
        };
        let lost = || Fault::Unreadable("a call was lost".to_owned());
        self.calls.get_mut(at).ok_or_else(lost)
    }

    /// The call with this key, if there is one.
    pub(crate) fn known(&mut self, key: &str) -> Option<&mut Part> {
        self.calls.iter_mut().find(|part| part.key == key)
    }

    /// Nothing was said and nothing called.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.calls.is_empty()
    }

    /// Begins a part of the answer.
    pub(super) fn begin(&mut self, key: &str, block: Block) -> Result<(), Fault> {
        if self.blocks.len() >= MAX_CALLS * 4 {
            return Err(Fault::Unreadable("it has too many parts".to_owned()));
        }
        self.blocks.push((key.to_owned(), block));
        Ok(())
    }

    /// Adds to a part: to its text, or to this field of a thought.
    pub(super) fn add(&mut self, key: &str, field: &str, piece: &str) {
        let begun = self.blocks.iter_mut().rev().find(|(own, _)| own == key);
        match begun {
            Some((_, Block::Text(text) | Block::Thought(Value::String(text)))) => {
                text.push_str(piece);
            }
            Some((_, Block::Thought(thought))) => {
                if let Some(Value::String(text)) = thought.get_mut(field) {
                    text.push_str(piece);
                }
            }
            Some((_, Block::Call(_))) | None => {}
        }
    }

    /// Whether a part has been begun under this key.
    pub(super) fn has(&self, key: &str) -> bool {
        self.blocks.iter().any(|(own, _)| own == key)
    }

    /// A key that no call has yet, where the wire gives none.
    pub(crate) fn next_key(&self) -> String {
        format!("#{}", self.calls.len())
    }

    /// The key of the call that came last.
    pub(crate) fn last_key(&self) -> Option<String> {
        self.calls.last().map(|part| part.key.clone())
    }

    /// The answer, if it is whole.
    pub(crate) fn finish(self) -> Result<Reply, Fault> {
        let Some(ended) = self.ended else {
            return Err(Fault::Broken);
        };
        let mut calls: Vec<Call> = self.calls.into_iter().map(Part::finish).collect();
        let blocks: Vec<Block> = self.blocks.into_iter().map(|(_, block)| block).collect();
        if let (Some(first), Some(kept)) = (calls.first_mut(), kept(&blocks)) {
            first.kept = Some(kept);
        }
        if calls.iter().any(|call| call.tool.is_empty()) {
            return Err(Fault::Unreadable("a call names no tool".to_owned()));
        }
        // Several providers end an answer with calls as any other.
        let ended = match ended {
            _ if self.refused => Ended::Refused,
            Ended::Turn if !calls.is_empty() => Ended::Calls,
            other => other,
        };
        Ok(Reply {
            text: self.text,
            calls,
            ended,
            usage: self.usage,
        })
    }
}

impl Part {
    fn finish(self) -> Call {
        // No arguments at all are written as nothing.
        let arguments = match self.arguments.trim() {
            "" => Ok(json!({})),
            text => serde_json::from_str(text).map_err(|_| self.arguments),
        };
        let id = match self.id {
            id if id.is_empty() => format!("call_{:016x}", fastrand::u64(..)),
            id => id,
        };
        Call {
            id,
            tool: self.tool,
            arguments,
            kept: self.kept,
        }
    }
}

/// Tokens under this name, if it says any.
pub(crate) fn tokens(usage: &Value, pointer: &str) -> Option<u64> {
    usage.pointer(pointer).and_then(Value::as_u64)
}

/// How the providers that count all input together are counted here.
pub(crate) fn apart(
    input: Option<u64>,
    cached: Option<u64>,
    written: Option<u64>,
    output: Option<u64>,
) -> Usage {
    let elsewhere = cached.unwrap_or(0).saturating_add(written.unwrap_or(0));
    Usage {
        input: input.map(|all| all.saturating_sub(elsewhere)),
        cached,
        written,
        output,
    }
}
