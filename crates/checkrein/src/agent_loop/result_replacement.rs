//! Replaces tool results that the model has seen. Middleware can give the model one text and keep
//! another: the model sees the first once, and every later round holds the second.

use checkrein_models::ChatMessage;

/// Replacements for results that the model has not seen yet, by message index.
#[derive(Default)]
pub(super) struct PendingResultReplacements(Vec<(usize, String)>);

impl PendingResultReplacements {
    /// Queues the text that replaces the newest message.
    pub(super) fn queue_tool_result_replacement(
        &mut self,
        messages: &[ChatMessage],
        kept: Option<&str>,
    ) {
        let newest = messages.len().saturating_sub(1);
        self.0.extend(kept.map(|text| (newest, text.to_owned())));
    }

    /// Replaces the queued results. Call when the model has seen them.
    pub(super) fn replace_seen_tool_results(&mut self, messages: &mut [ChatMessage]) {
        for (at, kept) in self.0.drain(..) {
            if let Some(ChatMessage::ToolResult { text, .. }) = messages.get_mut(at) {
                *text = kept;
            }
        }
    }
}
