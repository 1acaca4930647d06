//! What a model that watches another agent has in common, whatever it is asked: one question, data in a
//! block of its own, an answer that repeats the question's number, and a cause where nothing was said
//! that counts. Never an error, never a verdict that nobody gave.

mod prompt_lines;
mod recent_messages;
mod unit_fraction;

use std::borrow::Cow;

use checkrein_models::answers::{
    ParsedModelJson, RequiredAnswerKeys, UnreadableAnswerCause, parse_model_answer,
};
use checkrein_models::quoted::QuotedPromptBlocks;
use checkrein_models::{
    AnswerTokenUsage, ChatMessage, FinishReason, ModelError, ModelReply, ModelRequest, OutputSchema,
};

pub use prompt_lines::push_json_string;
pub(crate) use prompt_lines::{PromptLines, push_one_line};
pub(crate) use recent_messages::ConversationExcerptLimits;
pub use unit_fraction::{ParseFractionError, UnitFraction};

/// Most tokens of an answer: of one that thinks first as well.
const MAX_TOKENS: u32 = 2048;

/// Room for a short question, in bytes.
const ROOM: usize = 1_024;

/// Why a witness said nothing that counts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnusableModelAnswer {
    /// It gave no answer.
    #[error("the model gave no answer: {0}")]
    Model(ModelError),
    /// It would not answer, or its provider would not let it.
    #[error("the model refused to answer")]
    Refused,
    /// What it said cannot be read.
    #[error("{0}")]
    Unreadable(#[from] UnreadableAnswerCause),
    /// The number of the question is not in the answer, so that it may be quoted from the data.
    #[error("the answer does not repeat the number of its question")]
    Unsigned,
    /// It wants other arguments, and names none.
    #[error("the answer rewrites a call without saying how")]
    NoArguments,
    /// The arguments that it wants are none of the tool's.
    #[error("the arguments of the rewritten call do not fit: {0}")]
    InvalidArguments(String),
}

/// What came of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelQuestionOutcome<T> {
    /// What it said, or why that is nothing.
    pub result: Result<T, UnusableModelAnswer>,
    /// What the answer used; `None` if there was none.
    pub usage: Option<AnswerTokenUsage>,
}

/// A question that is ready to be asked.
#[derive(Debug)]
pub struct PreparedModelQuestion {
    /// What the model is asked.
    pub request: ModelRequest,
    number: u32,
}

/// A kind of question: what is the same whenever it is asked.
pub(crate) struct ReviewTemplate {
    pub(crate) system: &'static str,
    /// What our block of data is called.
    pub(crate) label: &'static str,
    pub(crate) shape: OutputSchema,
    /// See [`RequiredAnswerKeys::keys`].
    pub(crate) keys: &'static [&'static str],
}

impl ReviewTemplate {
    /// Asks about this data.
    pub(crate) fn build_reviewer_request(
        &self,
        data: impl FnOnce(&mut PromptLines<'_>),
    ) -> PreparedModelQuestion {
        let quotes = QuotedPromptBlocks::with_random_quote_number();
        // One block, which begins with the number: a heading would only say it again.
        let mut prompt = String::with_capacity(ROOM);
        quotes.push_quoted_block_by_writer(&mut prompt, self.label, |prompt| {
            data(&mut PromptLines::new(prompt));
        });
        let request = ModelRequest {
            system: Cow::Borrowed(self.system),
            messages: vec![ChatMessage::User(prompt)],
            tools: Vec::new(),
            output_schema: Some(self.shape.clone()),
            max_tokens: Some(MAX_TOKENS),
        };
        PreparedModelQuestion {
            request,
            number: quotes.number_answer_must_repeat(),
        }
    }

    /// What came of it.
    pub(crate) fn review_outcome_from_reply<T>(
        &self,
        asking: &PreparedModelQuestion,
        reply: Result<ModelReply, ModelError>,
        read: impl FnOnce(&ParsedModelJson<'_>) -> Result<T, UnusableModelAnswer>,
    ) -> ModelQuestionOutcome<T> {
        match reply {
            Ok(reply) => ModelQuestionOutcome {
                result: self
                    .parse_review_answer(asking, &reply)
                    .and_then(|answer| read(&answer)),
                usage: Some(reply.usage),
            },
            Err(error) => ModelQuestionOutcome {
                result: Err(UnusableModelAnswer::Model(error)),
                usage: None,
            },
        }
    }

    fn parse_review_answer<'a>(
        &self,
        asking: &PreparedModelQuestion,
        reply: &'a ModelReply,
    ) -> Result<ParsedModelJson<'a>, UnusableModelAnswer> {
        if reply.finish_reason == FinishReason::Refused {
            return Err(UnusableModelAnswer::Refused);
        }
        let wanted = RequiredAnswerKeys {
            number: asking.number,
            keys: self.keys,
        };
        let answer = parse_model_answer(&reply.text, wanted)?;
        if answer.answer_repeats_request_number() {
            Ok(answer)
        } else {
            Err(UnusableModelAnswer::Unsigned)
        }
    }
}
