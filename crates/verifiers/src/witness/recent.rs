//! The end of a conversation, as a witness is shown it: a few messages, each cut.

use std::borrow::Cow;

use checkrein_models::quoted::{Keep, clip};
use checkrein_models::{Call, Message};
use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};

/// A conversation, of which the last few messages are shown.
#[derive(Clone, Copy)]
pub(crate) struct Recent<'a> {
    /// Oldest first.
    pub(crate) messages: &'a [Message],
    /// So many messages, of so many bytes.
    pub(crate) most: (usize, usize),
}

impl Recent<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }
}

impl Serialize for Recent<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (count, bytes) = self.most;
        let from = self.messages.len().saturating_sub(count);
        let last = self.messages.get(from..).unwrap_or_default();
        let mut list = serializer.serialize_seq(Some(last.len()))?;
        for message in last {
            list.serialize_element(&Shown::of(message, bytes))?;
        }
        list.end()
    }
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Shown<'a> {
    User(Cow<'a, str>),
    Assistant(Cow<'a, str>),
    Result(Cow<'a, str>),
    Failed(Cow<'a, str>),
}

impl<'a> Shown<'a> {
    fn of(message: &'a Message, bytes: usize) -> Self {
        match message {
            Message::User(text) => Self::User(clip(text, bytes, Keep::Start)),
            Message::Assistant { text, calls } if calls.is_empty() => {
                Self::Assistant(clip(text, bytes, Keep::Start))
            }
            Message::Assistant { text, calls } => {
                let mut said = text.clone();
                for call in calls {
                    if !said.is_empty() {
                        said.push('\n');
                    }
                    said.push_str(&called(call));
                }
                Self::Assistant(Cow::Owned(clip(&said, bytes, Keep::Start).into_owned()))
            }
            Message::Result { text, failed, .. } => {
                let text = clip(text, bytes, Keep::Start);
                if *failed {
                    Self::Failed(text)
                } else {
                    Self::Result(text)
                }
            }
        }
    }
}

fn called(call: &Call) -> String {
    match &call.arguments {
        Ok(arguments) => format!("{}({arguments})", call.tool),
        Err(text) => format!("{}({text})", call.tool),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_few_messages_are_shown_cut() {
        let call = Call {
            id: "1".to_owned(),
            tool: "grep".to_owned(),
            arguments: Ok(serde_json::json!({"pattern": "x"})),
            kept: None,
        };
        let result = |text: &str, failed| Message::Result {
            call: "1".to_owned(),
            tool: "grep".to_owned(),
            text: text.to_owned(),
            failed,
        };
        let messages = [
            Message::User("too long ago".to_owned()),
            Message::User("find the first one of them".to_owned()),
            Message::Assistant {
                text: "Looking.".to_owned(),
                calls: vec![call],
            },
            result("a:1: x", false),
            result("no such file", true),
        ];
        let recent = Recent {
            messages: &messages,
            most: (4, 18),
        };
        assert_eq!(
            serde_json::to_value(recent).unwrap(),
            serde_json::json!([
                {"user": "find the first one[... 8 bytes cut]"},
                {"assistant": "Looking.\ngrep({\"pa[... 12 bytes cut]"},
                {"result": "a:1: x"},
                {"failed": "no such file"},
            ])
        );
    }
}
