//! Parses files of human labels for answers: one JSON object per line, or a data set in LLMBar's
//! format. Recorded judge replies may be included.

use std::collections::HashMap;

use checkrein_core::digest::Digest;
use serde_json::{Map, Value};
use thiserror::Error;

use super::llmbar;
use super::recorded_reply::{RecordedCalibrationReply, RecordedPairChoice};
use super::statistics::AnswerSide;
use crate::judge::{JudgeFaultCategory, JudgeInput, RequestAndAnswer};

/// Errors that are listed; the rest are counted.
const LISTED: usize = 10;

/// The items of a file, and warnings about them.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgeLabelFile {
    /// The items.
    pub labelled: LabelledAnswerSet,
    /// Warnings, for people.
    pub warnings: Vec<String>,
}

/// Answers with labels, of one kind.
#[derive(Debug, Clone, PartialEq)]
pub enum LabelledAnswerSet {
    /// One answer each: does it pass?
    Verdicts(Vec<LabelledAnswer>),
    /// Two answers each: which is better?
    Pairs(Vec<LabelledAnswerPair>),
}

/// An answer with a label.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelledAnswer {
    /// Its name in the file.
    pub id: String,
    /// What a judge is shown.
    pub case: JudgeInput,
    /// Rules of this case's project, instead of the judge's own.
    pub rules: Option<String>,
    /// The label.
    pub passes: bool,
    /// What is wrong, if the label says.
    pub category: Option<JudgeFaultCategory>,
    /// A recorded judge reply.
    pub reply: Option<RecordedCalibrationReply>,
}

/// Two answers with a label.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelledAnswerPair {
    /// Its name in the file.
    pub id: String,
    /// The request.
    pub request: String,
    /// Answers a and b.
    pub answers: [String; 2],
    /// Rules that the answers have to keep.
    pub rules: Option<String>,
    /// The better one.
    pub better: AnswerSide,
    /// Recorded judge replies with a shown first, and with b shown first.
    pub replies: [Option<RecordedPairChoice>; 2],
}

/// Why a file is not a file of labels.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LabelFileError {
    /// These lines are wrong.
    #[error("{}", .0.join("\n"))]
    Lines(Vec<String>),
    /// The file holds no items.
    #[error("it holds no labels")]
    Empty,
}

/// Parses a file of labels.
///
/// # Errors
/// If lines are wrong: all of them, or the first ten, each with the reason.
pub fn parse_label_file(text: &str) -> Result<JudgeLabelFile, LabelFileError> {
    let text = text.trim_start_matches('\u{feff}');
    // A line of ours is an object, so a list can only be a data set of LLMBar's.
    if text.trim_start().starts_with('[') {
        return llmbar::parse_llmbar(text);
    }
    let mut reading = LabelFileParser::default();
    for (at, line) in text.lines().enumerate() {
        if !line.trim().is_empty() {
            let number = at + 1;
            if let Err(what) = reading.parse_calibration_line(number, line) {
                reading.wrong.push(format!("line {number}: {what}"));
            }
        }
    }
    reading.finish_parsing_label_file()
}

#[derive(Default)]
struct LabelFileParser {
    items: Vec<LabelledAnswer>,
    pairs: Vec<LabelledAnswerPair>,
    wrong: Vec<String>,
    warnings: Vec<String>,
    seen: HashMap<Digest, usize>,
}

/// Keys of every line, of a line with one answer, and of a line with two.
const BOTH: [&str; 4] = ["id", "request", "rules", "label"];
const ITEM: [&str; 9] = [
    "answer", "category", "evidence", "calls", "changes", "history", "agent", "reply", "about",
];
const PAIR: [&str; 3] = ["answer_a", "answer_b", "replies"];

/// Keys that do not change the question.
const SAID: [&str; 5] = ["id", "label", "category", "reply", "replies"];

impl LabelFileParser {
    fn parse_calibration_line(&mut self, number: usize, line: &str) -> Result<(), String> {
        let mut map: Map<String, Value> = serde_json::from_str(line).map_err(|error| {
            let (what, column) = (error.to_string(), error.column());
            // The parser's line number is relative to this line.
            let what = what.split(" at line ").next().unwrap_or_default();
            format!("no JSON object: {what} (column {column})")
        })?;
        let pair = PAIR.iter().any(|key| map.contains_key(*key));
        let known = match pair {
            true => PAIR.as_slice(),
            false => ITEM.as_slice(),
        };
        let of_both: Vec<&str> = BOTH.iter().chain(known).copied().collect();
        // A warning and no error: files may carry notes of their own, but a misspelt `label` must
        // not go unnoticed.
        for key in map.keys().filter(|key| !of_both.contains(&key.as_str())) {
            let near = |known: &&&str| strsim::damerau_levenshtein(key, known) <= 2;
            let meant = match of_both.iter().find(near) {
                Some(near) => format!("; is '{near}' meant?"),
                None => String::new(),
            };
            self.warnings.push(format!(
                "line {number}: '{key}' is not known and says nothing{meant}"
            ));
        }
        // The question without its answers, in a canonical order, so that the order of keys makes
        // no difference.
        let mut asked = map.clone();
        asked.retain(|key, _| !SAID.contains(&key.as_str()));
        let asked = Digest::hash_json(&Value::Object(asked));
        let map = &mut map;
        let id = match map.remove("id") {
            // An item without an id is named by its line, so that messages can point to it.
            None | Some(Value::Null) => format!("line {number}"),
            Some(Value::String(id)) => id,
            Some(Value::Number(id)) => id.to_string(),
            Some(other) => {
                return Err(format!(
                    "'id' is {}, and must be text",
                    json_type_name(&other)
                ));
            }
        };
        match pair {
            true => self.parse_calibration_pair(id, map)?,
            false => self.parse_human_labelled_answer(id, map)?,
        }
        // Repeated items would make the interval narrower than the evidence allows.
        if let Some(before) = self.seen.insert(asked, number) {
            self.warnings.push(format!(
                "line {number} asks what line {before} asks; the same twice is no more evidence"
            ));
        }
        Ok(())
    }

    fn parse_human_labelled_answer(
        &mut self,
        id: String,
        map: &mut Map<String, Value>,
    ) -> Result<(), String> {
        // The two kinds have different statistics, which cannot be added up.
        if !self.pairs.is_empty() {
            return Err(
                "one answer, and the lines before have two: a file has one kind".to_owned(),
            );
        }
        let passes = match take_required_string(map, "label")?
            .trim()
            .to_lowercase()
            .as_str()
        {
            "pass" => true,
            "fail" => false,
            other => {
                return Err(format!(
                    "'label' is '{other}', and must be 'pass' or 'fail'"
                ));
            }
        };
        let category = match take_string_field(map, "category")? {
            None => None,
            // `none` is what a judge is told to answer for a pass.
            Some(word) if word.trim().is_empty() || word == "none" => None,
            Some(word) => Some(
                JudgeFaultCategory::parse_fault_category_name(&word).ok_or_else(|| {
                    let known = JudgeFaultCategory::ALL
                        .map(JudgeFaultCategory::as_str)
                        .join(", ");
                    format!("no category is called '{word}'; known: {known}")
                })?,
            ),
        };
        // One of the two must be a mistake.
        if passes && category.is_some() {
            return Err("a 'category' says what is wrong, and the label is 'pass'".to_owned());
        }
        let case = JudgeInput {
            request: take_required_string(map, "request")?,
            answer: take_required_string(map, "answer")?,
            evidence: take_string_or_list(map, "evidence")?,
            calls: take_string_or_list(map, "calls")?,
            about: take_string_or_list(map, "about")?,
            changes: take_string_field(map, "changes")?.unwrap_or_default(),
            history: parse_conversation_turns(map.remove("history"))?,
            agent: take_string_field(map, "agent")?.unwrap_or_default(),
            ..JudgeInput::default()
        };
        let reply = match map.remove("reply") {
            None | Some(Value::Null) => None,
            Some(reply) => Some(
                RecordedCalibrationReply::from_json(reply)
                    .map_err(|what| format!("'reply' {what}"))?,
            ),
        };
        self.items.push(LabelledAnswer {
            id,
            case,
            rules: take_string_field(map, "rules")?,
            passes,
            category,
            reply,
        });
        Ok(())
    }

    fn parse_calibration_pair(
        &mut self,
        id: String,
        map: &mut Map<String, Value>,
    ) -> Result<(), String> {
        if !self.items.is_empty() {
            return Err(
                "two answers, and the lines before have one: a file has one kind".to_owned(),
            );
        }
        let better = match take_required_string(map, "label")?
            .trim()
            .to_lowercase()
            .as_str()
        {
            "a" => AnswerSide::A,
            "b" => AnswerSide::B,
            other => return Err(format!("'label' is '{other}', and must be 'a' or 'b'")),
        };
        let mut replies = match map.remove("replies") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(replies)) => replies,
            Some(other) => {
                let what = json_type_name(&other);
                return Err(format!(
                    "'replies' is {what}, and must be an object with 'ab' and 'ba'"
                ));
            }
        };
        let mut reply = |order: &str, first| match replies.remove(order) {
            None | Some(Value::Null) => Ok(None),
            Some(reply) => RecordedPairChoice::parse_recorded_choice(reply, first)
                .map(Some)
                .map_err(|what| format!("'replies.{order}' {what}")),
        };
        let pair = LabelledAnswerPair {
            id,
            request: take_required_string(map, "request")?,
            answers: [
                take_required_string(map, "answer_a")?,
                take_required_string(map, "answer_b")?,
            ],
            rules: take_string_field(map, "rules")?,
            better,
            replies: [reply("ab", AnswerSide::A)?, reply("ba", AnswerSide::B)?],
        };
        // `remove` took the known keys; what is left is a typo, and a reply under it would be lost.
        if let Some(key) = replies.keys().next() {
            return Err(format!("'replies' has '{key}', and may have 'ab' and 'ba'"));
        }
        self.pairs.push(pair);
        Ok(())
    }

    fn finish_parsing_label_file(mut self) -> Result<JudgeLabelFile, LabelFileError> {
        if !self.wrong.is_empty() {
            let more = self.wrong.len().saturating_sub(LISTED);
            self.wrong.truncate(LISTED);
            if more > 0 {
                self.wrong.push(format!("and {more} more"));
            }
            return Err(LabelFileError::Lines(self.wrong));
        }
        let labelled = match (self.items.is_empty(), self.pairs.is_empty()) {
            (true, true) => return Err(LabelFileError::Empty),
            (false, _) => LabelledAnswerSet::Verdicts(self.items),
            (true, false) => LabelledAnswerSet::Pairs(self.pairs),
        };
        Ok(JudgeLabelFile {
            labelled,
            warnings: self.warnings,
        })
    }
}

impl LabelledAnswerSet {
    /// Counts the recorded replies, and those that a judge still has to give: two for a pair.
    pub fn count_recorded_and_missing_replies(&self) -> (usize, usize) {
        let (there, all) = match self {
            Self::Verdicts(items) => (
                items.iter().filter(|item| item.reply.is_some()).count(),
                items.len(),
            ),
            Self::Pairs(pairs) => {
                let replies = pairs.iter().flat_map(|pair| &pair.replies);
                (replies.flatten().count(), pairs.len() * 2)
            }
        };
        (there, all - there)
    }
}

/// Names the type of a value, for people.
pub(super) fn json_type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn take_string_field(map: &mut Map<String, Value>, key: &str) -> Result<Option<String>, String> {
    match map.remove(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(format!(
            "'{key}' is {}, and must be text",
            json_type_name(&other)
        )),
    }
}

fn take_required_string(map: &mut Map<String, Value>, key: &str) -> Result<String, String> {
    take_string_field(map, key)?.ok_or_else(|| format!("'{key}' is missing"))
}

/// Takes a text or a list of texts.
fn take_string_or_list(map: &mut Map<String, Value>, key: &str) -> Result<Vec<String>, String> {
    let wrong = |other: &Value| {
        format!(
            "'{key}' holds {}, and must hold texts",
            json_type_name(other)
        )
    };
    match map.remove(key) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(vec![text]),
        Some(Value::Array(all)) => all
            .into_iter()
            .map(|one| match one {
                Value::String(text) => Ok(text),
                other => Err(wrong(&other)),
            })
            .collect(),
        Some(other) => Err(wrong(&other)),
    }
}

fn parse_conversation_turns(value: Option<Value>) -> Result<Vec<RequestAndAnswer>, String> {
    let turns = match value {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(turns)) => turns,
        Some(other) => {
            return Err(format!(
                "'history' is {}, and must be a list",
                json_type_name(&other)
            ));
        }
    };
    turns
        .into_iter()
        .map(|turn| match turn {
            Value::Object(mut turn) => Ok(RequestAndAnswer {
                request: take_required_string(&mut turn, "request")?,
                answer: take_required_string(&mut turn, "answer")?,
            }),
            other => Err(format!(
                "'history' holds {}, and must hold objects",
                json_type_name(&other)
            )),
        })
        .collect::<Result<_, _>>()
        .map_err(|what: String| match what.starts_with("'history'") {
            true => what,
            false => format!("'history': {what}"),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> String {
        parse_label_file(text).unwrap_err().to_string()
    }

    #[test]
    fn lines_are_read() {
        let text = r#"{"id":"1","request":"r","answer":"x","label":"pass","reply":{"verdict":"pass"}}

{"request":"r","answer":"y","label":"Fail","category":"rule violation","rules":"R","evidence":["e","f"],"history":[{"request":"p","answer":"q"}]}
"#;
        let file = parse_label_file(text).unwrap();
        assert_eq!(file.warnings, Vec::<String>::new());
        assert_eq!(file.labelled.count_recorded_and_missing_replies(), (1, 1));
        let LabelledAnswerSet::Verdicts(items) = file.labelled else {
            unreachable!("one answer each")
        };
        let [one, two] = &items[..] else {
            unreachable!("two lines")
        };
        assert_eq!((one.id.as_str(), one.passes), ("1", true));
        assert_eq!(two.id, "line 3");
        assert_eq!(two.category, Some(JudgeFaultCategory::RuleViolation));
        assert_eq!(two.case.evidence, ["e", "f"]);
        assert_eq!(two.case.history.len(), 1);
        assert_eq!(two.rules.as_deref(), Some("R"));
    }

    #[test]
    fn what_is_wrong_says_where() {
        for (text, said) in [
            ("", "it holds no labels"),
            (
                "nonsense",
                "line 1: no JSON object: expected ident (column 2)",
            ),
            ("\n3", "line 2: no JSON object"),
            (
                r#"{"request":"r","answer":"x"}"#,
                "line 1: 'label' is missing",
            ),
            (
                r#"{"request":"r","label":"pass"}"#,
                "line 1: 'answer' is missing",
            ),
            (
                r#"{"request":"r","answer":"x","label":"good"}"#,
                "line 1: 'label' is 'good', and must be 'pass' or 'fail'",
            ),
            (
                r#"{"request":["r"],"answer":"x","label":"pass"}"#,
                "line 1: 'request' is a list, and must be text",
            ),
            (
                r#"{"request":"r","answer":"x","label":"fail","category":"bad"}"#,
                "line 1: no category is called 'bad'; known: goal_missed",
            ),
            (
                r#"{"request":"r","answer":"x","label":"pass","category":"refusal"}"#,
                "the label is 'pass'",
            ),
            (
                r#"{"request":"r","answer":"x","label":"pass","reply":{"verdict":"maybe"}}"#,
                "line 1: 'reply'",
            ),
            (
                r#"{"request":"r","answer_a":"x","answer_b":"y","label":"1"}"#,
                "line 1: 'label' is '1', and must be 'a' or 'b'",
            ),
            (
                r#"{"request":"r","answer_a":"x","answer_b":"y","label":"a","replies":{"aa":{"better":"a"}}}"#,
                "line 1: 'replies' has 'aa'",
            ),
            (
                "{\"request\":\"r\",\"answer\":\"x\",\"label\":\"pass\"}\n{\"request\":\"r\",\"answer_a\":\"x\",\"answer_b\":\"y\",\"label\":\"a\"}",
                "line 2: two answers, and the lines before have one",
            ),
        ] {
            assert!(wrong(text).contains(said), "{text}: {}", wrong(text));
        }
        let many = "x\n".repeat(30);
        assert_eq!(wrong(&many).lines().count(), 11);
        assert!(wrong(&many).ends_with("and 20 more"));
    }

    #[test]
    fn what_is_odd_is_told() {
        let line = r#"{"request":"r","answer":"x","label":"pass","lable":"fail"}"#;
        let file = parse_label_file(&format!("{line}\n{line}")).unwrap();
        assert_eq!(
            file.warnings,
            [
                "line 1: 'lable' is not known and says nothing; is 'label' meant?",
                "line 2: 'lable' is not known and says nothing; is 'label' meant?",
                "line 2 asks what line 1 asks; the same twice is no more evidence",
            ]
        );
    }
}
