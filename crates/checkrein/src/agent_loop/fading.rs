//! What later rounds of a conversation have of a result: the model sees it once as it was given, and
//! from then on as middleware would have it kept.

use checkrein_models::Message;
use checkrein_runtime::text_of;
use serde_json::Value;

/// Results that the model has not been asked with yet.
#[derive(Default)]
pub(super) struct Fading(Vec<(usize, String)>);

impl Fading {
    /// The next message is a result of which this is kept.
    pub(super) fn keep(&mut self, messages: &[Message], kept: Option<&Value>) {
        let kept = kept.map(text_of);
        self.0.extend(kept.map(|text| (messages.len(), text)));
    }

    /// The model has seen them.
    pub(super) fn fade(&mut self, messages: &mut [Message]) {
        for (at, kept) in self.0.drain(..) {
            if let Some(Message::Result { text, .. }) = messages.get_mut(at) {
                *text = kept;
            }
        }
    }
}
