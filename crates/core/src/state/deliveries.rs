//! Remembers the newest prompt and stops, so that a repeated delivery by another installed hook
//! entry is recognised.
//!
//! Neither has a native id, and an agent that says "Done." four times sends the same bytes four
//! times. So the newest one is remembered with the entries that delivered it, until the agent has
//! done something else. Counting instead would drift as soon as one entry missed one delivery.

use serde::{Deserialize, Serialize};

use crate::ids::{EventSeq, ScopeId, SourceName, UnixMillis};

/// Installed entries remembered per delivery.
const MAX_SOURCES: usize = 8;
/// Scopes whose newest stop is remembered. The oldest sub-agent's is dropped first.
const MAX_STOPS: usize = 24;

/// A prompt or stop, and the hook entries that delivered it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveredPromptOrStop {
    /// Its input.
    pub seq: EventSeq,
    /// When it was first recorded.
    pub at: UnixMillis,
    /// The installed entries that delivered it.
    pub sources: Vec<SourceName>,
}

/// The newest prompt and the newest stop of each scope.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct NewestPromptAndStop {
    pub(super) prompt: Option<DeliveredPromptOrStop>,
    stops: Vec<(ScopeId, DeliveredPromptOrStop)>,
}

impl DeliveredPromptOrStop {
    fn new(seq: EventSeq, at: UnixMillis, source: &SourceName) -> Self {
        Self {
            seq,
            at,
            sources: vec![source.clone()],
        }
    }

    fn add_delivering_hook_entry(&mut self, source: &SourceName) {
        // Bounded, like everything in the state.
        if self.sources.len() < MAX_SOURCES && !self.sources.contains(source) {
            self.sources.push(source.clone());
        }
    }
}

impl NewestPromptAndStop {
    pub(super) fn newest_delivered_stop(&self, scope: &ScopeId) -> Option<&DeliveredPromptOrStop> {
        let mut stops = self.stops.iter();
        stops.find(|(id, _)| id == scope).map(|(_, stop)| stop)
    }

    pub(super) fn record_prompt_delivery(
        &mut self,
        seq: EventSeq,
        at: UnixMillis,
        source: &SourceName,
    ) {
        self.prompt = Some(DeliveredPromptOrStop::new(seq, at, source));
        // A new prompt ends every earlier stop: the same text after it is a new stop.
        self.stops.clear();
    }

    pub(super) fn forget_prompt_and_stop_deliveries(&mut self, scope: &ScopeId) {
        // The agent has acted, so the same prompt again would be a new one.
        self.prompt = None;
        self.stops.retain(|(id, _)| id != scope);
    }

    pub(super) fn record_stop_received_from_hook(
        &mut self,
        scope: &ScopeId,
        seq: EventSeq,
        at: UnixMillis,
        source: &SourceName,
    ) {
        self.forget_prompt_and_stop_deliveries(scope);
        if self.stops.len() >= MAX_STOPS
            // The main conversation's stop is never dropped: counting it twice would count an
            // attempt twice.
            && let Some(oldest) = self.stops.iter().position(|(id, _)| !id.is_main_scope())
        {
            self.stops.remove(oldest);
        }
        let stop = DeliveredPromptOrStop::new(seq, at, source);
        self.stops.push((scope.clone(), stop));
    }

    /// Records that another entry delivered the same input.
    pub(super) fn record_redelivery(&mut self, of: EventSeq, source: &SourceName) {
        let stops = self.stops.iter_mut().map(|(_, stop)| stop);
        let mut known = self.prompt.iter_mut().chain(stops);
        if let Some(delivered) = known.find(|delivered| delivered.seq == of) {
            delivered.add_delivering_hook_entry(source);
        }
    }
}
