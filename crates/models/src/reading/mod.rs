//! What a model said → the one JSON object that was asked for. Fences, prose and thoughts around it
//! are read past; what could be meant in two ways is not guessed at. Pure, bounded in size, tries and
//! depth, and never an error to anyone: what cannot be read has a cause.

mod find;
mod number;
mod object;
mod unreadable;

use std::borrow::Cow;

use serde_json::{Map, Value};

use object::{Field, Held};
pub use unreadable::Unreadable;

/// Longer than this no answer is read.
pub const MAX_TEXT: usize = 64 * 1024;

/// What an answer has to be.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// The number of the request, which an answer repeats as `ref`.
    pub number: u32,
    /// What makes an answer: it has the first, and several answers to one request are equal in all.
    pub keys: &'static [&'static str],
}

/// One JSON object that a model said.
#[derive(Debug, Clone)]
pub struct Answer<'a> {
    fields: Vec<Field<'a>>,
    cut: bool,
    signed: bool,
}

/// The answer in what a model said. Of several objects those count that repeat the number of the
/// request; without one, those without any number. If they disagree none is believed.
///
/// ```
/// use checkrein_models::reading::{Unreadable, Wanted, read};
///
/// let wanted = Wanted { number: 48_213_947, keys: &["verdict"] };
/// let words = &[("veto", true), ("block", true), ("allow", false)];
/// let said = "<think>Is it {\"verdict\": \"allow\"}?</think>\nIt deletes too much:\n```json\n\
///     {\"ref\": 48213947, \"verdict\": \"Block\", \"confidence\": \"90%\"}\n```\nAsk me again.";
/// let answer = read(said, wanted)?;
/// assert!(answer.signed());
/// assert_eq!(answer.word("verdict", words), Ok(true));
/// assert_eq!(answer.thousandths("confidence"), Ok(900));
///
/// let said = "{\"verdict\": \"not blocked\"}";
/// assert_eq!(read(said, wanted)?.word("verdict", words), Err(Unreadable::Word("verdict")));
/// # Ok::<(), Unreadable>(())
/// ```
///
/// # Errors
/// Why there is none, or none that can be believed.
pub fn read(text: &str, wanted: Wanted) -> Result<Answer<'_>, Unreadable> {
    find::find(text, wanted)
}

impl<'a> Answer<'a> {
    /// Whether it repeats the number of the request. One that does not may be quoted from the data.
    pub fn signed(&self) -> bool {
        self.signed
    }

    /// Whether the text ended before the object did. What was whole by then can be read.
    pub fn cut(&self) -> bool {
        self.cut
    }

    /// A value that is one of a few words, as a whole, letter case and blanks around aside.
    ///
    /// # Errors
    /// It is missing, cut, no text, or another word.
    pub fn word<T: Copy>(&self, key: &'static str, words: &[(&str, T)]) -> Result<T, Unreadable> {
        let text = match self.held(key)? {
            None => return Err(Unreadable::Missing(key)),
            Some(Held::Cut(_)) => return Err(Unreadable::Cut(key)),
            Some(Held::Whole(raw)) => object::text(raw).ok_or(Unreadable::Kind(key))?,
        };
        let said = text.trim();
        words
            .iter()
            .find(|(word, _)| word.eq_ignore_ascii_case(said))
            .map(|(_, meaning)| *meaning)
            .ok_or(Unreadable::Word(key))
    }

    /// A share of one, in thousandths: a number from 0 to 1, or a text with one or with a percentage.
    /// What lies between two thousandths counts as the lower.
    ///
    /// # Errors
    /// It is missing, cut, no number (`true` is none, nor NaN), or not in this range.
    pub fn thousandths(&self, key: &'static str) -> Result<u16, Unreadable> {
        match self.held(key)? {
            None => Err(Unreadable::Missing(key)),
            Some(Held::Cut(_)) => Err(Unreadable::Cut(key)),
            Some(Held::Whole(raw)) => number::thousandths(key, raw),
        }
    }

    /// A text for people: also one that was cut; `None` for whatever is no text.
    pub fn text(&self, key: &'static str) -> Option<Cow<'_, str>> {
        match self.held(key).ok()?? {
            Held::Cut(text) => text.as_deref().map(Cow::Borrowed),
            Held::Whole(raw) => object::text(raw),
        }
    }

    /// An object, as itself or, since strict shapes know no free ones, as a text of JSON. `None` if it is
    /// missing or `null`.
    ///
    /// # Errors
    /// It is cut, nested too deep, or no object.
    pub fn object(&self, key: &'static str) -> Result<Option<Map<String, Value>>, Unreadable> {
        let raw = match self.held(key)? {
            None => return Ok(None),
            Some(Held::Cut(_)) => return Err(Unreadable::Cut(key)),
            Some(Held::Whole(raw)) => raw,
        };
        let text = object::text(raw);
        match parsed(key, text.as_deref().unwrap_or(raw))? {
            Value::Null => Ok(None),
            Value::Object(map) => Ok(Some(map)),
            _ => Err(Unreadable::Kind(key)),
        }
    }

    /// Any value, for answers with parts of their own. `None` if it is missing.
    ///
    /// # Errors
    /// It is cut, or nested too deep.
    pub fn value(&self, key: &'static str) -> Result<Option<Value>, Unreadable> {
        match self.held(key)? {
            None => Ok(None),
            Some(Held::Cut(_)) => Err(Unreadable::Cut(key)),
            Some(Held::Whole(raw)) => parsed(key, raw).map(Some),
        }
    }

    fn held(&self, key: &'static str) -> Result<Option<&Held<'a>>, Unreadable> {
        object::held(&self.fields, key)
    }
}

/// Bounded in depth by the reader.
fn parsed(key: &'static str, json: &str) -> Result<Value, Unreadable> {
    serde_json::from_str(json).map_err(|error| {
        if error.to_string().starts_with("recursion limit") {
            Unreadable::Deep(key)
        } else {
            Unreadable::Kind(key)
        }
    })
}
