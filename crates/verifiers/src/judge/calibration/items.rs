//! What people said of answers: one JSON object a line, or a data set of LLMBar's shape. What a judge
//! said of them may stand beside it.

use std::collections::HashMap;

use checkrein_core::digest::Digest;
use serde_json::{Map, Value};
use thiserror::Error;

use super::llmbar;
use super::measure::Side;
use super::said::{Recorded, RecordedChoice};
use crate::judge::{Case, Category, Turn};

/// Mistakes that are listed; the rest is counted.
const LISTED: usize = 10;

/// A file's items, and what is odd about them.
#[derive(Debug, Clone, PartialEq)]
pub struct File {
    /// The items.
    pub labelled: Labelled,
    /// What is odd, for people.
    pub warnings: Vec<String>,
}

/// Answers with labels, of one kind.
#[derive(Debug, Clone, PartialEq)]
pub enum Labelled {
    /// One answer each: does it pass?
    Verdicts(Vec<Item>),
    /// Two answers each: which is better?
    Pairs(Vec<Pair>),
}

/// An answer with a label.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// Its name in the file.
    pub id: String,
    /// What a judge is shown.
    pub case: Case,
    /// Rules of this case's project, instead of the judge's own.
    pub rules: Option<String>,
    /// The label.
    pub passes: bool,
    /// What is wrong, if the label says.
    pub category: Option<Category>,
    /// What a judge said.
    pub reply: Option<Recorded>,
}

/// Two answers with a label.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    /// Its name in the file.
    pub id: String,
    /// What was asked for.
    pub request: String,
    /// Answers a and b.
    pub answers: [String; 2],
    /// Rules that the answers have to keep.
    pub rules: Option<String>,
    /// The better one.
    pub better: Side,
    /// What a judge said with a shown first, and with b shown first.
    pub replies: [Option<RecordedChoice>; 2],
}

/// A file that is none of labels.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Unfit {
    /// These lines are wrong.
    #[error("{}", .0.join("\n"))]
    Lines(Vec<String>),
    /// There is nothing in it.
    #[error("it holds no labels")]
    Empty,
}

/// Reads a file of labels.
///
/// # Errors
/// Every line that is wrong, or the first ten, and why.
pub fn read(text: &str) -> Result<File, Unfit> {
    let text = text.trim_start_matches('\u{feff}');
    if text.trim_start().starts_with('[') {
        return llmbar::read(text);
    }
    let mut reading = Reading::default();
    for (at, line) in text.lines().enumerate() {
        if !line.trim().is_empty() {
            let number = at + 1;
            if let Err(what) = reading.line(number, line) {
                reading.wrong.push(format!("line {number}: {what}"));
            }
        }
    }
    reading.finish()
}

#[derive(Default)]
struct Reading {
    items: Vec<Item>,
    pairs: Vec<Pair>,
    wrong: Vec<String>,
    warnings: Vec<String>,
    seen: HashMap<Digest, usize>,
}

/// Keys of every line, of one with an answer, and of one with two.
const BOTH: [&str; 4] = ["id", "request", "rules", "label"];
const ITEM: [&str; 9] = [
    "answer", "category", "evidence", "calls", "changes", "history", "agent", "reply", "about",
];
const PAIR: [&str; 3] = ["answer_a", "answer_b", "replies"];

/// What does not change the question.
const SAID: [&str; 5] = ["id", "label", "category", "reply", "replies"];

impl Reading {
    fn line(&mut self, number: usize, line: &str) -> Result<(), String> {
        let mut map: Map<String, Value> = serde_json::from_str(line).map_err(|error| {
            let (what, column) = (error.to_string(), error.column());
            // It counts lines of this line.
            let what = what.split(" at line ").next().unwrap_or_default();
            format!("no JSON object: {what} (column {column})")
        })?;
        let pair = PAIR.iter().any(|key| map.contains_key(*key));
        let known = match pair {
            true => PAIR.as_slice(),
            false => ITEM.as_slice(),
        };
        let of_both: Vec<&str> = BOTH.iter().chain(known).copied().collect();
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
        // All but what was said of it, in one order whatever the file's.
        let mut asked = map.clone();
        asked.retain(|key, _| !SAID.contains(&key.as_str()));
        let asked = Digest::hash_json(&Value::Object(asked));
        let map = &mut map;
        let id = match map.remove("id") {
            None | Some(Value::Null) => format!("line {number}"),
            Some(Value::String(id)) => id,
            Some(Value::Number(id)) => id.to_string(),
            Some(other) => return Err(format!("'id' is {}, and must be text", kind(&other))),
        };
        match pair {
            true => self.pair(id, map)?,
            false => self.item(id, map)?,
        }
        if let Some(before) = self.seen.insert(asked, number) {
            self.warnings.push(format!(
                "line {number} asks what line {before} asks; the same twice is no more evidence"
            ));
        }
        Ok(())
    }

    fn item(&mut self, id: String, map: &mut Map<String, Value>) -> Result<(), String> {
        if !self.pairs.is_empty() {
            return Err(
                "one answer, and the lines before have two: a file has one kind".to_owned(),
            );
        }
        let passes = match needed(map, "label")?.trim().to_lowercase().as_str() {
            "pass" => true,
            "fail" => false,
            other => {
                return Err(format!(
                    "'label' is '{other}', and must be 'pass' or 'fail'"
                ));
            }
        };
        let category = match text(map, "category")? {
            None => None,
            Some(word) if word.trim().is_empty() || word == "none" => None,
            Some(word) => Some(Category::read(&word).ok_or_else(|| {
                let known = Category::ALL.map(Category::as_str).join(", ");
                format!("no category is called '{word}'; known: {known}")
            })?),
        };
        if passes && category.is_some() {
            return Err("a 'category' says what is wrong, and the label is 'pass'".to_owned());
        }
        let case = Case {
            request: needed(map, "request")?,
            answer: needed(map, "answer")?,
            evidence: texts(map, "evidence")?,
            calls: texts(map, "calls")?,
            about: texts(map, "about")?,
            changes: text(map, "changes")?.unwrap_or_default(),
            history: history(map.remove("history"))?,
            agent: text(map, "agent")?.unwrap_or_default(),
            ..Case::default()
        };
        let reply = match map.remove("reply") {
            None | Some(Value::Null) => None,
            Some(reply) => Some(Recorded::read(reply).map_err(|what| format!("'reply' {what}"))?),
        };
        self.items.push(Item {
            id,
            case,
            rules: text(map, "rules")?,
            passes,
            category,
            reply,
        });
        Ok(())
    }

    fn pair(&mut self, id: String, map: &mut Map<String, Value>) -> Result<(), String> {
        if !self.items.is_empty() {
            return Err(
                "two answers, and the lines before have one: a file has one kind".to_owned(),
            );
        }
        let better = match needed(map, "label")?.trim().to_lowercase().as_str() {
            "a" => Side::A,
            "b" => Side::B,
            other => return Err(format!("'label' is '{other}', and must be 'a' or 'b'")),
        };
        let mut replies = match map.remove("replies") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(replies)) => replies,
            Some(other) => {
                let what = kind(&other);
                return Err(format!(
                    "'replies' is {what}, and must be an object with 'ab' and 'ba'"
                ));
            }
        };
        let mut reply = |order: &str, first| match replies.remove(order) {
            None | Some(Value::Null) => Ok(None),
            Some(reply) => RecordedChoice::read(reply, first)
                .map(Some)
                .map_err(|what| format!("'replies.{order}' {what}")),
        };
        let pair = Pair {
            id,
            request: needed(map, "request")?,
            answers: [needed(map, "answer_a")?, needed(map, "answer_b")?],
            rules: text(map, "rules")?,
            better,
            replies: [reply("ab", Side::A)?, reply("ba", Side::B)?],
        };
        if let Some(key) = replies.keys().next() {
            return Err(format!("'replies' has '{key}', and may have 'ab' and 'ba'"));
        }
        self.pairs.push(pair);
        Ok(())
    }

    fn finish(mut self) -> Result<File, Unfit> {
        if !self.wrong.is_empty() {
            let more = self.wrong.len().saturating_sub(LISTED);
            self.wrong.truncate(LISTED);
            if more > 0 {
                self.wrong.push(format!("and {more} more"));
            }
            return Err(Unfit::Lines(self.wrong));
        }
        let labelled = match (self.items.is_empty(), self.pairs.is_empty()) {
            (true, true) => return Err(Unfit::Empty),
            (false, _) => Labelled::Verdicts(self.items),
            (true, false) => Labelled::Pairs(self.pairs),
        };
        Ok(File {
            labelled,
            warnings: self.warnings,
        })
    }
}

impl Labelled {
    /// How many replies are there, and how many of a judge are still to come: two for a pair.
    pub fn replies(&self) -> (usize, usize) {
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

/// What a value is, for people.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn text(map: &mut Map<String, Value>, key: &str) -> Result<Option<String>, String> {
    match map.remove(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(format!("'{key}' is {}, and must be text", kind(&other))),
    }
}

fn needed(map: &mut Map<String, Value>, key: &str) -> Result<String, String> {
    text(map, key)?.ok_or_else(|| format!("'{key}' is missing"))
}

/// A text, or several.
fn texts(map: &mut Map<String, Value>, key: &str) -> Result<Vec<String>, String> {
    let wrong = |other: &Value| format!("'{key}' holds {}, and must hold texts", kind(other));
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

fn history(value: Option<Value>) -> Result<Vec<Turn>, String> {
    let turns = match value {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(turns)) => turns,
        Some(other) => return Err(format!("'history' is {}, and must be a list", kind(&other))),
    };
    turns
        .into_iter()
        .map(|turn| match turn {
            Value::Object(mut turn) => Ok(Turn {
                request: needed(&mut turn, "request")?,
                answer: needed(&mut turn, "answer")?,
            }),
            other => Err(format!(
                "'history' holds {}, and must hold objects",
                kind(&other)
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
        read(text).unwrap_err().to_string()
    }

    #[test]
    fn lines_are_read() {
        let text = r#"{"id":"1","request":"r","answer":"x","label":"pass","reply":{"verdict":"pass"}}

{"request":"r","answer":"y","label":"Fail","category":"rule violation","rules":"R","evidence":["e","f"],"history":[{"request":"p","answer":"q"}]}
"#;
        let file = read(text).unwrap();
        assert_eq!(file.warnings, Vec::<String>::new());
        assert_eq!(file.labelled.replies(), (1, 1));
        let Labelled::Verdicts(items) = file.labelled else {
            unreachable!("one answer each")
        };
        let [one, two] = &items[..] else {
            unreachable!("two lines")
        };
        assert_eq!((one.id.as_str(), one.passes), ("1", true));
        assert_eq!(two.id, "line 3");
        assert_eq!(two.category, Some(Category::RuleViolation));
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
        let file = read(&format!("{line}\n{line}")).unwrap();
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
