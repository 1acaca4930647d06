//! What all questions to a model that watches another agent have in common: one question, data in a
//! block of its own, an answer that repeats the question's number, and a cause if the answer does
//! not count. A problem is never an error, and an answer that does not count is never taken for a
//! verdict.

mod prompt_lines;
mod recent_messages;
mod unit_fraction;

use std::borrow::Cow;

use checkrein_models::answers::{
    ParsedModelJson, RequiredAnswerKeys, UnreadableAnswerCause, parse_model_answer,
};
use checkrein_models::quoted::QuotedPromptBlocks;
use checkrein_models::{
    AnswerTokenUsage, ChatMessage, FinishReason, ModelError, ModelReply, ModelRequest,
    StructuredAnswerSchema,
};

pub use prompt_lines::push_json_string;
pub(crate) use prompt_lines::{PromptLineWriter, push_text_as_one_line};
pub(crate) use recent_messages::ConversationExcerptLimits;
pub use unit_fraction::{ParseFractionError, UnitFraction};

/// Tokens of an answer, including thoughts before it.
const MAX_TOKENS: u32 = 2048;

/// Room for a short question, in bytes.
const ROOM: usize = 1_024;

/// Why a reviewer's answer does not count.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnusableModelAnswer {
    /// The model gave no answer.
    #[error("the model gave no answer: {0}")]
    Model(ModelError),
    /// The model or its provider refused to answer.
    #[error("the model refused to answer")]
    Refused,
    /// The answer cannot be parsed.
    #[error("{0}")]
    Unreadable(#[from] UnreadableAnswerCause),
    /// The answer does not contain the number of the question, so it may be quoted from the data.
    #[error("the answer does not repeat the number of its question")]
    Unsigned,
    /// It rewrites a call without naming arguments.
    #[error("the answer rewrites a call without saying how")]
    NoArguments,
    /// The arguments that it proposes do not fit the tool's schema.
    #[error("the arguments of the rewritten call do not fit: {0}")]
    InvalidArguments(String),
}

/// The outcome of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelQuestionOutcome<T> {
    /// The answer, or why it does not count.
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

/// The constant part of a kind of question.
pub(crate) struct ReviewerQuestionSpec {
    pub(crate) system: &'static str,
    /// The label of the data block.
    pub(crate) label: &'static str,
    pub(crate) shape: StructuredAnswerSchema,
    /// See [`RequiredAnswerKeys::keys`].
    pub(crate) keys: &'static [&'static str],
}

impl ReviewerQuestionSpec {
    /// Builds a request about this data.
    pub(crate) fn build_model_question_about_data(
        &self,
        data: impl FnOnce(&mut PromptLineWriter<'_>),
    ) -> PreparedModelQuestion {
        let quotes = QuotedPromptBlocks::new_with_random_quote_number();
        // The block begins with the number already; a heading would repeat it at a cost.
        let mut prompt = String::with_capacity(ROOM);
        quotes.push_quoted_block_from_writer(&mut prompt, self.label, |prompt| {
            data(&mut PromptLineWriter::new(prompt));
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

    /// Turns a reply into an outcome.
    pub(crate) fn question_outcome_from_reply<T>(
        &self,
        asking: &PreparedModelQuestion,
        reply: Result<ModelReply, ModelError>,
        read: impl FnOnce(&ParsedModelJson<'_>) -> Result<T, UnusableModelAnswer>,
    ) -> ModelQuestionOutcome<T> {
        match reply {
            Ok(reply) => ModelQuestionOutcome {
                result: self
                    .parse_reviewer_reply_as_json(asking, &reply)
                    .and_then(|answer| read(&answer)),
                // Also of an answer that does not count: it is paid for.
                usage: Some(reply.usage),
            },
            Err(error) => ModelQuestionOutcome {
                result: Err(UnusableModelAnswer::Model(error)),
                usage: None,
            },
        }
    }

    fn parse_reviewer_reply_as_json<'a>(
        &self,
        asking: &PreparedModelQuestion,
        reply: &'a ModelReply,
    ) -> Result<ParsedModelJson<'a>, UnusableModelAnswer> {
        // Before parsing: a refusal is a text too, and may quote the data.
        if reply.finish_reason == FinishReason::Refused {
            return Err(UnusableModelAnswer::Refused);
        }
        let wanted = RequiredAnswerKeys {
            number: asking.number,
            keys: self.keys,
        };
        let answer = parse_model_answer(&reply.text, wanted)?;
        // Data cannot contain the number, which was drawn after it was written.
        if answer.echoes_request_nonce() {
            Ok(answer)
        } else {
            Err(UnusableModelAnswer::Unsigned)
        }
    }
}
