//! Holds the state of a conversation: messages, usage and counters. All of it can be rebuilt from
//! the journal, so it outlives the process.

use checkrein_models::{AnswerTokenUsage, ChatMessage, ModelRequest};

use super::journal::{
    AgentLoopJournalEntry, AnswerRatingJournalEntry, ModelAnswer, ToolCallOutcome,
};
use super::reflection::AgentRatingOfOwnAnswer;
use super::result_replacement::PendingResultReplacements;

/// A conversation, with the request that the model is sent next.
pub(super) struct AgentLoopConversation {
    pub(super) request: ModelRequest,
    /// What the model said last.
    pub(super) output: String,
    /// Number of model answers, reflections included.
    pub(super) rounds: u32,
    /// Whether the preceding answer was cut by its output limit.
    pub(super) cut_before: bool,
    /// Revisions by self-reflection since the last prompt.
    pub(super) revisions: u32,
    pub(super) usage: AnswerTokenUsage,
    pub(super) cost: Option<u64>,
    pub(super) replacements: PendingResultReplacements,
    /// The rating of the last answer, if nothing has followed from it yet.
    pub(super) reflected: Option<AnswerRatingJournalEntry>,
    pub(super) reflections: Vec<AgentRatingOfOwnAnswer>,
}

impl AgentLoopConversation {
    pub(super) fn new(request: ModelRequest) -> Self {
        let none = Some(0);
        Self {
            request,
            output: String::new(),
            rounds: 0,
            cut_before: false,
            revisions: 0,
            usage: AnswerTokenUsage {
                input: none,
                cache_read: none,
                cache_write: none,
                output: none,
            },
            cost: none,
            replacements: PendingResultReplacements::default(),
            reflected: None,
            reflections: Vec::new(),
        }
    }

    /// Replays the journal. Returns the last answer with the results it has so far, if it has not
    /// been followed by a message; the run continues with it.
    pub(super) fn replay_conversation_entries(
        &mut self,
        said: Vec<AgentLoopJournalEntry>,
    ) -> Option<(ModelAnswer, Vec<ToolCallOutcome>)> {
        let mut last: Option<(ModelAnswer, Vec<ToolCallOutcome>)> = None;
        let mut cut = false;
        for entry in said {
            self.add_conversation_entry(&entry);
            match entry {
                AgentLoopJournalEntry::Begun { .. } => {}
                AgentLoopJournalEntry::ResultRewritten(_) => {
                    if let Some(outcome) = last.as_mut().and_then(|(_, told)| told.last_mut()) {
                        // Middleware has processed the result. Without `ran` it is not passed
                        // through again.
                        outcome.ran = None;
                    }
                }
                AgentLoopJournalEntry::User { prompt, .. } => {
                    // A message is only appended once the answer before it was processed.
                    last = None;
                    if prompt {
                        cut = false;
                        self.revisions = 0;
                    }
                }
                AgentLoopJournalEntry::Reflected(reflected) => {
                    self.record_answer_self_rating(&reflected);
                    self.reflected = Some(reflected);
                }
                AgentLoopJournalEntry::Answer(answer) => {
                    // `cut_before` describes the answer before `last`, which is not processed yet.
                    self.cut_before = std::mem::replace(&mut cut, answer.cut);
                    self.count_round_and_usage(&answer);
                    last = Some((answer, Vec::new()));
                }
                AgentLoopJournalEntry::Result(outcome) => {
                    if let Some((_, outcomes)) = &mut last {
                        outcomes.push(outcome);
                    }
                }
            }
        }
        if last.is_none() {
            // No answer is pending: the next one follows the last one of the journal.
            self.cut_before = cut;
        }
        last
    }

    /// Adds an entry to the messages.
    pub(super) fn add_conversation_entry(&mut self, entry: &AgentLoopJournalEntry) {
        let messages = &mut self.request.messages;
        match entry {
            AgentLoopJournalEntry::Answer(_) => {
                // An answer means that the model has seen the results before it.
                self.replacements.replace_seen_tool_results(messages)
            }
            AgentLoopJournalEntry::ResultRewritten(passed) => {
                if let Some(ChatMessage::ToolResult { text, .. }) = messages.last_mut() {
                    text.clone_from(&passed.given);
                }
                self.replacements
                    .queue_tool_result_replacement(messages, passed.kept.as_deref());
            }
            AgentLoopJournalEntry::Begun { .. }
            | AgentLoopJournalEntry::User { .. }
            | AgentLoopJournalEntry::Result(_)
            | AgentLoopJournalEntry::Reflected(_) => {}
        }
        messages.extend(entry.journal_entry_as_model_message());
    }

    pub(super) fn count_round_and_usage(&mut self, answer: &ModelAnswer) {
        self.output.clone_from(&answer.text);
        self.reflected = None;
        self.add_answer_token_usage(answer);
    }

    fn add_answer_token_usage(&mut self, answer: &ModelAnswer) {
        self.rounds += 1;
        // An unknown part makes the sum unknown: a sum without it would pass for the whole.
        let sum = |before: Option<u64>, more: Option<u64>| Some(before?.saturating_add(more?));
        let used = answer.model_reply_token_usage();
        self.usage = AnswerTokenUsage {
            input: sum(self.usage.input, used.input),
            // Providers without a prompt cache report neither of the two, which means 0.
            cache_read: sum(self.usage.cache_read, used.cache_read.or(Some(0))),
            cache_write: sum(self.usage.cache_write, used.cache_write.or(Some(0))),
            output: sum(self.usage.output, used.output),
        };
        self.cost = sum(self.cost, answer.model_answer_usage().cost);
    }

    pub(super) fn record_answer_self_rating(&mut self, reflected: &AnswerRatingJournalEntry) {
        self.add_answer_token_usage(&reflected.answer);
        self.revisions += u32::from(reflected.feedback.is_some());
        self.reflections.push(AgentRatingOfOwnAnswer {
            score: reflected.score.clone(),
            revised: reflected.feedback.is_some(),
        });
    }
}
