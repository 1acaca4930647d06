//! What a judge is recorded to have said.

use checkrein_models::reading::{self, RequiredAnswerKeys};
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
        let mut map = object(value)?;
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
        let mut map = object(value)?;
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
                Some(true) => Ok(*first),
                Some(false) => Ok(first.other()),
                None => Err(Silence::Unreadable),
            },
        }
    }
}

/// A bare text is none: what does not repeat a number is no verdict at a stop either.
fn object(value: Value) -> Result<Map<String, Value>, String> {
    match value {
        Value::Object(map) => Ok(map),
        other => Err(format!("is {}, and must be an object", kind(&other))),
    }
}

/// `{"text": ..., "ref": N}`
fn own_words(map: &mut Map<String, Value>) -> Result<Option<Text>, String> {
    let text = match map.remove("text") {
        None => return Ok(None),
        Some(Value::String(text)) => text,
        Some(other) => return Err(format!("has a 'text' that is {}", kind(&other))),
    };
    let number = map
        .remove("ref")
        .and_then(|number| u32::try_from(number.as_u64()?).ok())
        .ok_or("has a 'text', and no 'ref' with the number of the request that it answers")?;
    Ok(Some(Text { text, number }))
}

/// Words for the answer that is shown first, and for the other.
const WORDS: &[(&str, bool)] = &[
    ("first", true),
    ("1", true),
    ("second", false),
    ("2", false),
];

/// Read as a judge's verdict is: what does not repeat the number may be quoted.
fn shown_first_is_better(said: &Text) -> Option<bool> {
    let wanted = RequiredAnswerKeys {
        number: said.number,
        keys: &["better"],
    };
    let answer = reading::parse_model_answer(&said.text, wanted).ok()?;
    let better = answer.field_matching_allowed_words("better", WORDS).ok()?;
    answer.answer_repeats_request_number().then_some(better)
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
        let text = |text: &str, number: u32| json!({"text": text, "ref": number});
        let object = r#"{"ref": 12345678, "verdict": "pass", "score": 0.9}"#;
        assert_eq!(judged(text(object, 12_345_678)), yes(true));
        // A verdict on something else, and one on nobody knows what.
        for other in [object, r#"{"verdict": "pass"}"#, "PASS", "It is fine."] {
            assert_eq!(judged(text(other, 12_345_679)), Err(Silence::Unreadable));
        }
        // Its word is yes and its score is not.
        let low = r#"{"ref": 12345678, "verdict": "pass", "score": 0.6}"#;
        assert_eq!(judged(text(low, 12_345_678)), yes(false));
        assert_eq!(judged(json!({"verdict": "fail"})), yes(false));
        for wrong in [
            json!(3),
            json!("PASS"),
            json!({}),
            json!({"verdict": "maybe"}),
            json!({"text": 3, "ref": 1}),
            json!({"text": object}),
            json!({"text": object, "ref": -1}),
        ] {
            assert!(Recorded::read(wrong.clone()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn choices_are_of_what_was_shown_first() {
        let said = |better: &str| json!({"text": format!("So {{\"ref\": 7, \"better\": \"{better}\"}}"), "ref": 7});
        let choice = |value, first| RecordedChoice::read(value, first).unwrap().choice();
        assert_eq!(choice(said("First"), Side::A), Ok(Side::A));
        assert_eq!(choice(said("first"), Side::B), Ok(Side::B));
        assert_eq!(choice(said("2"), Side::A), Ok(Side::B));
        assert_eq!(choice(said("second"), Side::B), Ok(Side::A));
        // This names the answer itself.
        assert_eq!(choice(json!({"better": "a"}), Side::B), Ok(Side::A));
        for unread in [
            said("both"),
            json!({"text": "first", "ref": 7}),
            json!({"text": r#"{"better": "first"}"#, "ref": 7}),
        ] {
            assert_eq!(choice(unread, Side::A), Err(Silence::Unreadable));
        }
    }
}
