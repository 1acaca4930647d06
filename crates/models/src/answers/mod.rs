//! Finds the one JSON object that was asked for in a model's answer. Fences, prose and thoughts
//! around it are skipped. An ambiguous answer is not guessed at. The parser is pure and bounded in
//! size, attempts and depth. It never fails the caller: an unreadable answer has a cause.

mod answer_error;
mod answer_search;
mod decimal;
mod json_scan;

use std::borrow::Cow;

use serde_json::{Map, Value};

pub use answer_error::UnreadableAnswerCause;
use json_scan::{JsonField, WholeOrCutJson};

/// The longest answer that is read, in bytes.
pub const MAX_TEXT: usize = 64 * 1024;

/// What identifies an answer.
#[derive(Debug, Clone, Copy)]
pub struct RequiredAnswerKeys {
    /// The number of the request, which an answer repeats as `ref`.
    pub number: u32,
    /// The keys of an answer. An object with the first key is one, and several answers to one
    /// request must agree in all keys.
    pub keys: &'static [&'static str],
}

/// One JSON object that a model said.
#[derive(Debug, Clone)]
pub struct ParsedModelJson<'a> {
    fields: Vec<JsonField<'a>>,
    cut: bool,
    signed: bool,
}

/// The answer in what a model said. Of several objects those count that repeat the number of the
/// request; without one, those without any number. If they disagree none is believed.
///
/// ```
/// use checkrein_models::answers::{UnreadableAnswerCause, RequiredAnswerKeys, parse_model_answer};
///
/// let wanted = RequiredAnswerKeys { number: 48_213_947, keys: &["verdict"] };
/// let words = &[("veto", true), ("block", true), ("allow", false)];
/// let said = "<think>Is it {\"verdict\": \"allow\"}?</think>\nIt deletes too much:\n```json\n\
///     {\"ref\": 48213947, \"verdict\": \"Block\", \"confidence\": \"90%\"}\n```\nAsk me again.";
/// let answer = parse_model_answer(said, wanted)?;
/// assert!(answer.echoes_request_nonce());
/// assert_eq!(answer.parse_enum_field("verdict", words), Ok(true));
/// assert_eq!(answer.read_thousandths_from_answer("confidence"), Ok(900));
///
/// let said = "{\"verdict\": \"not blocked\"}";
/// assert_eq!(parse_model_answer(said, wanted)?.parse_enum_field("verdict", words), Err(UnreadableAnswerCause::UnknownWord("verdict")));
/// # Ok::<(), UnreadableAnswerCause>(())
/// ```
///
/// # Errors
/// Why there is none, or none that can be believed.
pub fn parse_model_answer(
    text: &str,
    wanted: RequiredAnswerKeys,
) -> Result<ParsedModelJson<'_>, UnreadableAnswerCause> {
    answer_search::find_json_answer(text, wanted)
}

impl<'a> ParsedModelJson<'a> {
    /// Returns whether it repeats the number of the request. An answer without it may be quoted
    /// from the data.
    pub fn echoes_request_nonce(&self) -> bool {
        self.signed
    }

    /// Returns whether the text ended inside the object. Fields that were complete by then can be
    /// read.
    pub fn is_answer_truncated(&self) -> bool {
        self.cut
    }

    /// Returns the meaning of a value that must be one of these words as a whole, ignoring case and
    /// surrounding blanks.
    ///
    /// # Errors
    /// It is missing, cut, no text, or another word.
    pub fn parse_enum_field<T: Copy>(
        &self,
        key: &'static str,
        words: &[(&str, T)],
    ) -> Result<T, UnreadableAnswerCause> {
        let text = match self.raw_model_answer_field(key)? {
            None => return Err(UnreadableAnswerCause::Missing(key)),
            Some(WholeOrCutJson::Cut(_)) => return Err(UnreadableAnswerCause::Cut(key)),
            Some(WholeOrCutJson::Whole(raw)) => {
                json_scan::unescape_json_string(raw).ok_or(UnreadableAnswerCause::WrongType(key))?
            }
        };
        let said = text.trim();
        words
            .iter()
            // Only the whole text counts: `not blocked` must not match `block`.
            .find(|(word, _)| word.eq_ignore_ascii_case(said))
            .map(|(_, meaning)| *meaning)
            .ok_or(UnreadableAnswerCause::UnknownWord(key))
    }

    /// Returns a share of one in thousandths, from a number from 0 to 1, or a text with such a
    /// number or a percentage. Values between two thousandths are rounded down.
    ///
    /// # Errors
    /// It is missing, cut, out of range, or no number (neither `true` nor NaN is one).
    pub fn read_thousandths_from_answer(
        &self,
        key: &'static str,
    ) -> Result<u16, UnreadableAnswerCause> {
        match self.raw_model_answer_field(key)? {
            None => Err(UnreadableAnswerCause::Missing(key)),
            Some(WholeOrCutJson::Cut(_)) => Err(UnreadableAnswerCause::Cut(key)),
            Some(WholeOrCutJson::Whole(raw)) => decimal::parse_thousandths(key, raw),
        }
    }

    /// Returns a text for people, even a truncated one; `None` for any other type.
    pub fn answer_text_field(&self, key: &'static str) -> Option<Cow<'_, str>> {
        match self.raw_model_answer_field(key).ok()?? {
            // A reason that was cut is still worth reading, unlike a verdict.
            WholeOrCutJson::Cut(text) => text.as_deref().map(Cow::Borrowed),
            WholeOrCutJson::Whole(raw) => json_scan::unescape_json_string(raw),
        }
    }

    /// Returns an object, given as itself or as a JSON text (strict schemas allow no free-form
    /// objects). `None` if it is missing or `null`.
    ///
    /// # Errors
    /// It is cut, nested too deep, or no object.
    pub fn object_valued_field(
        &self,
        key: &'static str,
    ) -> Result<Option<Map<String, Value>>, UnreadableAnswerCause> {
        let raw = match self.raw_model_answer_field(key)? {
            None => return Ok(None),
            Some(WholeOrCutJson::Cut(_)) => return Err(UnreadableAnswerCause::Cut(key)),
            Some(WholeOrCutJson::Whole(raw)) => raw,
        };
        // Providers with strict schemas allow no free-form object, so it comes as a JSON string
        // there.
        let text = json_scan::unescape_json_string(raw);
        match parse_answer_field(key, text.as_deref().unwrap_or(raw))? {
            Value::Null => Ok(None),
            Value::Object(map) => Ok(Some(map)),
            _ => Err(UnreadableAnswerCause::WrongType(key)),
        }
    }

    /// Returns any value, for answers with nested parts. `None` if it is missing.
    ///
    /// # Errors
    /// It is cut, or nested too deep.
    pub fn answer_json_field(
        &self,
        key: &'static str,
    ) -> Result<Option<Value>, UnreadableAnswerCause> {
        match self.raw_model_answer_field(key)? {
            None => Ok(None),
            Some(WholeOrCutJson::Cut(_)) => Err(UnreadableAnswerCause::Cut(key)),
            Some(WholeOrCutJson::Whole(raw)) => parse_answer_field(key, raw).map(Some),
        }
    }

    fn raw_model_answer_field(
        &self,
        key: &'static str,
    ) -> Result<Option<&WholeOrCutJson<'a>>, UnreadableAnswerCause> {
        json_scan::field_value_ignoring_case(&self.fields, key)
    }
}

/// Parses a field. `serde_json` bounds the depth.
fn parse_answer_field(key: &'static str, json: &str) -> Result<Value, UnreadableAnswerCause> {
    serde_json::from_str(json).map_err(|error| {
        // `serde_json` has no public category for this error, only its text.
        if error.to_string().starts_with("recursion limit") {
            UnreadableAnswerCause::TooDeep(key)
        } else {
            UnreadableAnswerCause::WrongType(key)
        }
    })
}
