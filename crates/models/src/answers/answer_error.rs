//! Why an answer cannot be read or believed. Each cause becomes evidence, and none is an error to
//! the agent.

/// The cause of an unreadable answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnreadableAnswerCause {
    /// Nothing was said.
    #[error("the answer is empty")]
    Empty,
    /// More was said than is read.
    #[error(
        "the answer has {bytes} bytes, and at most {} are read",
        super::MAX_TEXT
    )]
    TooLarge {
        /// How much it was.
        bytes: usize,
    },
    /// It consists of thoughts only.
    #[error("the answer is all thoughts")]
    OnlyThoughts,
    /// It is prose.
    #[error("there is no JSON object in the answer")]
    NoObject,
    /// There is something like an object. Single quotes are not accepted as JSON: with an
    /// apostrophe inside, where such a text ends is a guess.
    #[error("what looks like an object in the answer is no JSON: {0}")]
    NotJson(String),
    /// There are more braces in it than are looked at.
    #[error("the answer has too many braces to look at")]
    TooManyBraces,
    /// It contains several answers that differ.
    #[error("the answer says several things that disagree")]
    Disagree,
    /// It repeats another request's number, which is quoted or made up.
    #[error("the answer carries a number that is not this request's")]
    WrongNumber,
    /// It has no such field.
    #[error("the answer has no '{0}'")]
    Missing(&'static str),
    /// The text ended in it.
    #[error("the answer was cut in '{0}'")]
    Cut(&'static str),
    /// Not the kind of value that was asked for.
    #[error("'{0}' of the answer is of another kind than was asked for")]
    WrongType(&'static str),
    /// Not one of the words that were asked for.
    #[error("'{0}' of the answer is none of the words that were asked for")]
    UnknownWord(&'static str),
    /// A number outside of its range.
    #[error("'{0}' of the answer is not between 0 and 1")]
    OutOfRange(&'static str),
    /// Nested deeper than is read.
    #[error("'{0}' of the answer is nested too deep")]
    TooDeep(&'static str),
}
