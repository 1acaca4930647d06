//! What later rounds of a conversation have of a result: the model sees it once as it was given, and
//! from then on as middleware would have it kept.

use checkrein_models::ChatMessage;

/// Results that the model has not been asked with yet.
#[derive(Default)]
pub(super) struct PendingResultReplacements(Vec<(usize, String)>);

impl PendingResultReplacements {
    /// Of the newest message this stays.
    pub(super) fn queue_tool_result_replacement(
        &mut self,
        messages: &[ChatMessage],
        kept: Option<&str>,
    ) {
        let newest = messages.len().saturating_sub(1);
        self.0.extend(kept.map(|text| (newest, text.to_owned())));
    }

    /// The model has seen them.
    pub(super) fn replace_seen_tool_results(&mut self, messages: &mut [ChatMessage]) {
        for (at, kept) in self.0.drain(..) {
            if let Some(ChatMessage::ToolResult { text, .. }) = messages.get_mut(at) {
                *text = kept;
            }
        }
    }
}
