//! What was said in a run so far, and what that came to: the part of a run that outlives its process.

use checkrein_models::{AnswerTokenUsage, ChatMessage, ModelRequest};

use super::fading::Fading;
use super::journal::{Answer, Entry, Outcome, Reflected};
use super::reflect::Reflection;

/// A conversation, as the model is asked to go on with it.
pub(super) struct Conversation {
    pub(super) request: ModelRequest,
    /// What the model said last.
    pub(super) output: String,
    /// Its answers, those about itself included.
    pub(super) rounds: u32,
    /// The answer before was cut by its output limit.
    pub(super) cut_before: bool,
    /// Revisions by its own judgement since a person said something.
    pub(super) revised: u32,
    pub(super) usage: AnswerTokenUsage,
    pub(super) cost: Option<u64>,
    pub(super) fading: Fading,
    /// What it thought of the last answer, if nothing followed from that yet.
    pub(super) reflected: Option<Reflected>,
    pub(super) reflections: Vec<Reflection>,
}

impl Conversation {
    pub(super) fn new(request: ModelRequest) -> Self {
        let none = Some(0);
        Self {
            request,
            output: String::new(),
            rounds: 0,
            cut_before: false,
            revised: 0,
            usage: AnswerTokenUsage {
                input: none,
                cache_read: none,
                cache_write: none,
                output: none,
            },
            cost: none,
            fading: Fading::default(),
            reflected: None,
            reflections: Vec::new(),
        }
    }

    /// Goes through what was said before; what is left of it to be done is the first thing to do.
    pub(super) fn recall(&mut self, said: Vec<Entry>) -> Option<(Answer, Vec<Outcome>)> {
        let mut last: Option<(Answer, Vec<Outcome>)> = None;
        let mut cut = false;
        for entry in said {
            self.hear(&entry);
            match entry {
                Entry::Begun { .. } => {}
                Entry::Passed(_) => {
                    if let Some(outcome) = last.as_mut().and_then(|(_, told)| told.last_mut()) {
                        outcome.ran = None;
                    }
                }
                Entry::User { prompt, .. } => {
                    last = None;
                    if prompt {
                        cut = false;
                        self.revised = 0;
                    }
                }
                Entry::Reflected(reflected) => {
                    self.think(&reflected);
                    self.reflected = Some(reflected);
                }
                Entry::Answer(answer) => {
                    self.cut_before = std::mem::replace(&mut cut, answer.cut);
                    self.count(&answer);
                    last = Some((answer, Vec::new()));
                }
                Entry::Result(outcome) => {
                    if let Some((_, outcomes)) = &mut last {
                        outcomes.push(outcome);
                    }
                }
            }
        }
        if last.is_none() {
            self.cut_before = cut;
        }
        last
    }

    /// Adds to the conversation.
    pub(super) fn hear(&mut self, entry: &Entry) {
        let messages = &mut self.request.messages;
        match entry {
            Entry::Answer(_) => self.fading.fade(messages),
            Entry::Passed(passed) => {
                if let Some(ChatMessage::ToolResult { text, .. }) = messages.last_mut() {
                    text.clone_from(&passed.given);
                }
                self.fading.keep(messages, passed.kept.as_deref());
            }
            Entry::Begun { .. } | Entry::User { .. } | Entry::Result(_) | Entry::Reflected(_) => {}
        }
        messages.extend(entry.message());
    }

    pub(super) fn count(&mut self, answer: &Answer) {
        self.output.clone_from(&answer.text);
        self.reflected = None;
        self.spend(answer);
    }

    fn spend(&mut self, answer: &Answer) {
        self.rounds += 1;
        let sum = |before: Option<u64>, more: Option<u64>| Some(before?.saturating_add(more?));
        let used = answer.usage();
        self.usage = AnswerTokenUsage {
            input: sum(self.usage.input, used.input),
            cache_read: sum(self.usage.cache_read, used.cache_read.or(Some(0))),
            cache_write: sum(self.usage.cache_write, used.cache_write.or(Some(0))),
            output: sum(self.usage.output, used.output),
        };
        self.cost = sum(self.cost, answer.spent().cost);
    }

    pub(super) fn think(&mut self, reflected: &Reflected) {
        self.spend(&reflected.answer);
        self.revised += u32::from(reflected.feedback.is_some());
        self.reflections.push(Reflection {
            score: reflected.score.clone(),
            revised: reflected.feedback.is_some(),
        });
    }
}
