//! What a judge is recorded to have said.

use checkrein_models::reading::{self, Unreadable, Wanted};
use serde_json::{Map, Value};

use super::items::kind;
use super::measure::{Judged, Side, Silence};
use crate::judge::{Category, verdict};

/// A text as it came, and the number of the request that it answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// What was said.
    pub text: String,
    /// What a verdict in it has to repeat, if it repeats a number at all.
    pub number: u32,
}

/// What was said of one answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recorded {
    /// In the judge's own words.
    Text(Text),
    /// Read by somebody already.
    Verdict(Judged),
    /// Nothing that counts.
    Silent(Silence),
}

/// What was said of two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordedChoice {
    /// In the judge's own words, and which answer it was shown first.
    Text(Text, Side),
    /// Read by somebody already.
    Choice(Side),
    /// Nothing that counts.
    Silent(Silence),
}

impl Recorded {
    pub(super) fn read(value: Value) -> Result<Self, String> {
        let mut map = match value {
            Value::String(text) => return Ok(Self::Text(Text { text, number: 0 })),
            Value::Object(map) => map,
            other => {
                return Err(format!(
                    "is {}, and must be text or an object",
                    kind(&other)
                ));
            }
        };
        if let Some(text) = own_words(&mut map)? {
            return Ok(Self::Text(text));
        }
        let passes = match map.get("verdict").and_then(Value::as_str) {
            Some("pass") => true,
            Some("fail") => false,
            _ => return Err("has neither a 'text' nor a 'verdict' of 'pass' or 'fail'".to_owned()),
        };
        let category = map.get("category").and_then(Value::as_str);
        Ok(Self::Verdict(Judged {
            passes,
            category: category.and_then(Category::read),
        }))
    }

    /// As a verdict, where a score below this one does not pass.
    pub(super) fn judged(&self, min_score: u32) -> Result<Judged, Silence> {
        match self {
            Self::Verdict(judged) => Ok(*judged),
            Self::Silent(silence) => Err(*silence),
            Self::Text(Text { text, number }) => match verdict::read(text, *number) {
                Ok(said) => Ok(Judged {
                    passes: said.passes_at(min_score),
                    category: said.category,
                }),
                Err(_) => Err(Silence::Unreadable),
            },
        }
    }
}

impl RecordedChoice {
    pub(super) fn read(value: Value, first: Side) -> Result<Self, String> {
        let mut map = match value {
            Value::String(text) => return Ok(Self::Text(Text { text, number: 0 }, first)),
            Value::Object(map) => map,
            other => {
                return Err(format!(
                    "is {}, and must be text or an object",
                    kind(&other)
                ));
            }
        };
        if let Some(text) = own_words(&mut map)? {
            return Ok(Self::Text(text, first));
        }
        match map.get("better").and_then(Value::as_str) {
            Some("a") => Ok(Self::Choice(Side::A)),
            Some("b") => Ok(Self::Choice(Side::B)),
            _ => Err("has neither a 'text' nor a 'better' of 'a' or 'b'".to_owned()),
        }
    }

    pub(super) fn choice(&self) -> Result<Side, Silence> {
        match self {
            Self::Choice(side) => Ok(*side),
            Self::Silent(silence) => Err(*silence),
            Self::Text(text, first) => match shown_first_is_better(text) {
                Ok(true) => Ok(*first),
                Ok(false) => Ok(first.other()),
                Err(_) => Err(Silence::Unreadable),
            },
        }
    }
}

/// `{"text": ..., "ref": N}`
fn own_words(map: &mut Map<String, Value>) -> Result<Option<Text>, String> {
    let text = match map.remove("text") {
        None => return Ok(None),
        Some(Value::String(text)) => text,
        Some(other) => return Err(format!("has a 'text' that is {}", kind(&other))),
    };
    let number = match map.remove("ref") {
        None | Some(Value::Null) => 0,
        Some(number) => number
            .as_u64()
            .and_then(|number| u32::try_from(number).ok())
            .ok_or_else(|| "has a 'ref' that is no number of a request".to_owned())?,
    };
    Ok(Some(Text { text, number }))
}

/// Words for the answer that is shown first, and for the other.
const WORDS: &[(&str, bool)] = &[
    ("first", true),
    ("1", true),
    ("second", false),
    ("2", false),
];

/// The object that is asked for, or one of the words and nothing else.
fn shown_first_is_better(said: &Text) -> Result<bool, Unreadable> {
    let wanted = Wanted {
        number: said.number,
        keys: &["better"],
    };
    match reading::read(&said.text, wanted) {
        Ok(answer) => answer.word("better", WORDS),
        Err(unreadable) => {
            let bare = said.text.trim().trim_end_matches('.');
            let plain = WORDS
                .iter()
                .find(|(word, _)| word.eq_ignore_ascii_case(bare));
            plain.map(|(_, first)| *first).ok_or(unreadable)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn verdicts_in_all_their_forms() {
        let judged = |value| Recorded::read(value).unwrap().judged(700);
        let yes = |passes| {
            Ok(Judged {
                passes,
                category: None,
            })
        };
        let object = r#"{"ref": 12345678, "verdict": "pass", "score": 0.9}"#;
        assert_eq!(judged(json!("PASS")), yes(true));
        assert_eq!(judged(json!({"text": object, "ref": 12345678})), yes(true));
        // A verdict on something else.
        let other = json!({"text": object, "ref": 12345679});
        assert_eq!(judged(other), Err(Silence::Unreadable));
        // Its word is yes and its score is not.
        assert_eq!(
            judged(json!(r#"{"verdict": "pass", "score": 0.6}"#)),
            yes(false)
        );
        assert_eq!(judged(json!({"verdict": "fail"})), yes(false));
        assert_eq!(judged(json!("It is fine.")), Err(Silence::Unreadable));
        for wrong in [
            json!(3),
            json!({}),
            json!({"verdict": "maybe"}),
            json!({"text": 3}),
        ] {
            assert!(Recorded::read(wrong.clone()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn choices_are_of_what_was_shown_first() {
        let choice = |value, first| RecordedChoice::read(value, first).unwrap().choice();
        assert_eq!(choice(json!("First."), Side::A), Ok(Side::A));
        assert_eq!(choice(json!("First."), Side::B), Ok(Side::B));
        assert_eq!(choice(json!("2"), Side::A), Ok(Side::B));
        let object = json!(r#"Both do, so {"why": "x", "better": "second"}"#);
        assert_eq!(choice(object, Side::B), Ok(Side::A));
        // This names the answer itself.
        assert_eq!(choice(json!({"better": "a"}), Side::B), Ok(Side::A));
        for unread in ["", "neither", "first or second", r#"{"better": "both"}"#] {
            assert_eq!(choice(json!(unread), Side::A), Err(Silence::Unreadable));
        }
    }
}
