//! Reads recorded judge replies.

use checkrein_models::answers::{self, RequiredAnswerKeys};
use serde_json::{Map, Value};

use super::label_file::json_type_name;
use super::statistics::{AnswerSide, NoJudgeVerdictReason, PredictedLabel};
use crate::judge::{JudgeFaultCategory, verdict};

/// The text of a reply, and the number of the request that it answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnparsedJudgeReply {
    /// The text.
    pub text: String,
    /// The number that a verdict in the text has to repeat.
    pub number: u32,
}

/// A reply about one answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordedCalibrationReply {
    /// In the judge's own words.
    Text(UnparsedJudgeReply),
    /// Already parsed.
    Verdict(PredictedLabel),
    /// No verdict.
    NoVerdict(NoJudgeVerdictReason),
}

/// A reply about two answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordedPairChoice {
    /// In the judge's own words, and which answer it was shown first.
    Text(UnparsedJudgeReply, AnswerSide),
    /// Already parsed.
    Choice(AnswerSide),
    /// No choice.
    NoChoice(NoJudgeVerdictReason),
}

impl RecordedCalibrationReply {
    pub(super) fn from_json(value: Value) -> Result<Self, String> {
        let mut map = require_json_object(value)?;
        // The raw text is preferred: it is parsed by today's rules and under the limit that is
        // asked about.
        if let Some(text) = parse_raw_judge_reply(&mut map)? {
            return Ok(Self::Text(text));
        }
        let passes = match map.get("verdict").and_then(Value::as_str) {
            Some("pass") => true,
            Some("fail") => false,
            _ => return Err("has neither a 'text' nor a 'verdict' of 'pass' or 'fail'".to_owned()),
        };
        let category = map.get("category").and_then(Value::as_str);
        Ok(Self::Verdict(PredictedLabel {
            passes,
            category: category.and_then(JudgeFaultCategory::parse_fault_category_name),
        }))
    }

    /// Returns the verdict, where a score below `min_score` does not pass.
    pub(super) fn predicted_label(
        &self,
        min_score: u32,
    ) -> Result<PredictedLabel, NoJudgeVerdictReason> {
        match self {
            Self::Verdict(judged) => Ok(*judged),
            Self::NoVerdict(silence) => Err(*silence),
            Self::Text(UnparsedJudgeReply { text, number }) => {
                match verdict::parse_judge_verdict(text, *number) {
                    Ok(said) => Ok(PredictedLabel {
                        passes: said.passes_min_score(min_score),
                        category: said.category,
                    }),
                    Err(_) => Err(NoJudgeVerdictReason::Unreadable),
                }
            }
        }
    }
}

impl RecordedPairChoice {
    pub(super) fn parse_recorded_choice(value: Value, first: AnswerSide) -> Result<Self, String> {
        let mut map = require_json_object(value)?;
        if let Some(text) = parse_raw_judge_reply(&mut map)? {
            return Ok(Self::Text(text, first));
        }
        match map.get("better").and_then(Value::as_str) {
            Some("a") => Ok(Self::Choice(AnswerSide::A)),
            Some("b") => Ok(Self::Choice(AnswerSide::B)),
            _ => Err("has neither a 'text' nor a 'better' of 'a' or 'b'".to_owned()),
        }
    }

    pub(super) fn preferred_side_in_recorded_reply(
        &self,
    ) -> Result<AnswerSide, NoJudgeVerdictReason> {
        match self {
            Self::Choice(side) => Ok(*side),
            Self::NoChoice(silence) => Err(*silence),
            Self::Text(text, first) => match reply_prefers_first_shown(text) {
                // The judge names positions; which answer stood there is known from the order.
                Some(true) => Ok(*first),
                Some(false) => Ok(first.other_answer_of_pair()),
                None => Err(NoJudgeVerdictReason::Unreadable),
            },
        }
    }
}

/// Requires an object. A bare text has no request number to be checked against and would be no
/// verdict at a stop either.
fn require_json_object(value: Value) -> Result<Map<String, Value>, String> {
    match value {
        Value::Object(map) => Ok(map),
        other => Err(format!(
            "is {}, and must be an object",
            json_type_name(&other)
        )),
    }
}

/// `{"text": ..., "ref": N}`
fn parse_raw_judge_reply(
    map: &mut Map<String, Value>,
) -> Result<Option<UnparsedJudgeReply>, String> {
    let text = match map.remove("text") {
        None => return Ok(None),
        Some(Value::String(text)) => text,
        Some(other) => return Err(format!("has a 'text' that is {}", json_type_name(&other))),
    };
    // Without the number nothing tells the reply from one that quotes its data.
    let number = map
        .remove("ref")
        .and_then(|number| u32::try_from(number.as_u64()?).ok())
        .ok_or("has a 'text', and no 'ref' with the number of the request that it answers")?;
    Ok(Some(UnparsedJudgeReply { text, number }))
}

/// Words for the answer shown first, and for the other.
const WORDS: &[(&str, bool)] = &[
    ("first", true),
    ("1", true),
    ("second", false),
    ("2", false),
];

/// Parsed like a judge's verdict: a choice that does not repeat the number may be quoted.
fn reply_prefers_first_shown(said: &UnparsedJudgeReply) -> Option<bool> {
    let wanted = RequiredAnswerKeys {
        number: said.number,
        keys: &["better"],
    };
    let answer = answers::parse_model_answer(&said.text, wanted).ok()?;
    let better = answer.parse_enum_field("better", WORDS).ok()?;
    answer.echoes_request_nonce().then_some(better)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn verdicts_in_all_their_forms() {
        let judged = |value| {
            RecordedCalibrationReply::from_json(value)
                .unwrap()
                .predicted_label(700)
        };
        let yes = |passes| {
            Ok(PredictedLabel {
                passes,
                category: None,
            })
        };
        let text = |text: &str, number: u32| json!({"text": text, "ref": number});
        let object = r#"{"ref": 12345678, "verdict": "pass", "score": 0.9}"#;
        assert_eq!(judged(text(object, 12_345_678)), yes(true));
        // A verdict on something else, and one on nobody knows what.
        for other in [object, r#"{"verdict": "pass"}"#, "PASS", "It is fine."] {
            assert_eq!(
                judged(text(other, 12_345_679)),
                Err(NoJudgeVerdictReason::Unreadable)
            );
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
            assert!(
                RecordedCalibrationReply::from_json(wrong.clone()).is_err(),
                "{wrong}"
            );
        }
    }

    #[test]
    fn choices_are_of_what_was_shown_first() {
        let said = |better: &str| json!({"text": format!("So {{\"ref\": 7, \"better\": \"{better}\"}}"), "ref": 7});
        let choice = |value, first| {
            RecordedPairChoice::parse_recorded_choice(value, first)
                .unwrap()
                .preferred_side_in_recorded_reply()
        };
        assert_eq!(choice(said("First"), AnswerSide::A), Ok(AnswerSide::A));
        assert_eq!(choice(said("first"), AnswerSide::B), Ok(AnswerSide::B));
        assert_eq!(choice(said("2"), AnswerSide::A), Ok(AnswerSide::B));
        assert_eq!(choice(said("second"), AnswerSide::B), Ok(AnswerSide::A));
        // This names the answer itself.
        assert_eq!(
            choice(json!({"better": "a"}), AnswerSide::B),
            Ok(AnswerSide::A)
        );
        for unread in [
            said("both"),
            json!({"text": "first", "ref": 7}),
            json!({"text": r#"{"better": "first"}"#, "ref": 7}),
        ] {
            assert_eq!(
                choice(unread, AnswerSide::A),
                Err(NoJudgeVerdictReason::Unreadable)
            );
        }
    }
}
