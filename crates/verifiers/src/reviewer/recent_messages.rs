//! Renders the end of a conversation for a reviewer: a few messages, each cut, and the oldest of
//! them left out if there is no room for all.

use checkrein_models::{ChatMessage, RequestedToolCall};

use super::prompt_lines::PromptLineWriter;

/// How much of a conversation is shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConversationExcerptLimits {
    /// Most messages.
    pub(crate) count: usize,
    /// Most bytes of each message.
    pub(crate) each: usize,
    /// Most bytes of all messages, approximately.
    pub(crate) all: usize,
}

/// With less room than this, in bytes, a message is left out.
const SENSE: usize = 24;
/// Marks a message that was cut.
const CUT: &str = " ...";

impl ConversationExcerptLimits {
    /// Writes a line for each message, oldest first.
    pub(super) fn write_recent_messages(
        self,
        messages: &[ChatMessage],
        out: &mut PromptLineWriter<'_>,
    ) {
        let mut room = self.all;
        let mut shown = 0;
        // Counted from the newest, which says most about the step in question.
        for message in messages.iter().rev().take(self.count) {
            if room < SENSE {
                break;
            }
            room = room.saturating_sub(chat_message_len(message).min(self.each));
            shown += 1;
        }
        let from = messages.len().saturating_sub(shown);
        // The newest may use what the others leave; the oldest gets what is left.
        let mut most = self.each.min(self.all);
        if shown > 0 && room == 0 {
            most = self.room_left_for_oldest_message(messages.get(from + 1..).unwrap_or_default());
        }
        for (nth, message) in messages.iter().skip(from).enumerate() {
            write_recent_message_to_prompt(message, if nth == 0 { most } else { self.each }, out);
        }
    }

    /// Returns the room left for the oldest message shown, before `newer` ones.
    fn room_left_for_oldest_message(self, newer: &[ChatMessage]) -> usize {
        let used: usize = newer
            .iter()
            .map(|one| chat_message_len(one).min(self.each))
            .sum();
        self.all.saturating_sub(used).min(self.each)
    }
}

fn chat_message_len(message: &ChatMessage) -> usize {
    match message {
        ChatMessage::User(text) | ChatMessage::ToolResult { text, .. } => text.len(),
        // An estimate: calls are rendered only if they are shown.
        ChatMessage::Assistant { text, calls } => text.len() + calls.len() * 2 * SENSE,
    }
}

fn write_recent_message_to_prompt(
    message: &ChatMessage,
    most: usize,
    out: &mut PromptLineWriter<'_>,
) {
    let (who, text) = match message {
        ChatMessage::User(text) => ("user", text),
        ChatMessage::Assistant { text, calls } if calls.is_empty() => ("assistant", text),
        ChatMessage::Assistant { text, calls } => {
            ("assistant", &render_message_for_reviewer(text, calls))
        }
        ChatMessage::ToolResult { text, failed, .. } => {
            (if *failed { "failed" } else { "result" }, text)
        }
    };
    let kept = text.split_at(text.floor_char_boundary(most)).0;
    out.begin_labelled_prompt_line(who);
    out.append_to_current_line(kept);
    if kept.len() < text.len() {
        out.append_to_current_line(CUT);
    }
}

/// Calls come first: if the end is cut, what was done says more than what was said about it.
fn render_message_for_reviewer(text: &str, calls: &[RequestedToolCall]) -> String {
    let mut said = String::new();
    for call in calls {
        said.push_str(&match &call.arguments {
            Ok(arguments) => format!("{}({arguments}) ", call.tool),
            Err(text) => format!("{}({text}) ", call.tool),
        });
    }
    said + text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(messages: &[ChatMessage], count: usize, each: usize, all: usize) -> String {
        let mut text = String::new();
        ConversationExcerptLimits { count, each, all }
            .write_recent_messages(messages, &mut PromptLineWriter::new(&mut text));
        text
    }

    #[test]
    fn the_last_few_messages_are_shown_cut() {
        let call = RequestedToolCall {
            id: "1".to_owned(),
            tool: "grep".to_owned(),
            arguments: Ok(json!({"pattern": "x"})),
            provider_state: None,
        };
        let result = |text: &str, failed| ChatMessage::ToolResult {
            call: "1".to_owned(),
            tool: "grep".to_owned(),
            text: text.to_owned(),
            failed,
        };
        let messages = [
            ChatMessage::User("too long ago".to_owned()),
            ChatMessage::User("find the first one of them".to_owned()),
            ChatMessage::Assistant {
                text: "Looking.".to_owned(),
                calls: vec![call],
            },
            result("a:1: x", false),
            result("no such file", true),
        ];
        assert_eq!(
            shown(&messages, 4, 18, 1_000),
            "user: find the first one ...\nassistant: grep({\"pattern\":\"x ...\nresult: a:1: x\nfailed: no such file"
        );
        assert_eq!(shown(&messages, 4, 18, 0), "");
        assert_eq!(shown(&[], 4, 18, 100), "");
    }

    #[test]
    fn where_there_is_no_room_the_oldest_are_left_out() {
        let messages: Vec<ChatMessage> = ["a", "b", "c"]
            .map(|letter| ChatMessage::User(letter.repeat(100)))
            .into();
        let cut = |letter: &str, kept: usize| format!("user: {} ...", letter.repeat(kept));
        assert_eq!(
            shown(&messages, 4, 60, 120),
            format!("{}\n{}", cut("b", 60), cut("c", 60))
        );
        assert_eq!(
            shown(&messages, 4, 60, 100),
            format!("{}\n{}", cut("b", 40), cut("c", 60))
        );
        assert_eq!(shown(&messages, 4, 60, 70), cut("c", 60));
    }
}
