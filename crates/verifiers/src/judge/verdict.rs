//! A judge's answer as a verdict.

use checkrein_core::evidence::{Finding, FindingState};
use checkrein_models::reading::{self, Unreadable, Wanted};

/// What is wrong with an answer, most of all (seed: OpenClaw pull request 21832).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Category {
    /// It does not do what was asked.
    GoalMissed,
    /// Something is missing.
    Incomplete,
    /// It breaks a rule of the project.
    RuleViolation,
    /// It is not in the register of its reader.
    ToneMismatch,
    /// It refuses what it should do.
    Refusal,
}

impl Category {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::GoalMissed,
        Self::Incomplete,
        Self::RuleViolation,
        Self::ToneMismatch,
        Self::Refusal,
    ];

    /// Its name in verdicts, findings and configs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::GoalMissed => "goal_missed",
            Self::Incomplete => "incomplete",
            Self::RuleViolation => "rule_violation",
            Self::ToneMismatch => "tone_mismatch",
            Self::Refusal => "refusal",
        }
    }

    /// By that name, blanks and letter case aside.
    pub fn read(text: &str) -> Option<Self> {
        let text = text.trim().to_lowercase().replace([' ', '-'], "_");
        Self::ALL.into_iter().find(|known| known.as_str() == text)
    }
}

/// What a judge says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// Whether the answer may stand, by its own word.
    pub passes: bool,
    /// How good it is, in thousandths; `None` if it does not say.
    pub score: Option<u32>,
    /// What is wrong most.
    pub category: Option<Category>,
    /// What the agent has to do, a point each.
    pub feedback: Vec<String>,
}

/// Words for yes and no. Whole values: `"not passed"` is neither.
const WORDS: &[(&str, bool)] = &[
    ("pass", true),
    ("passed", true),
    ("ok", true),
    ("approve", true),
    ("accept", true),
    ("fail", false),
    ("failed", false),
    ("reject", false),
    ("rejected", false),
];

/// Points of feedback that are handed on, and characters of one.
const POINTS: usize = 8;
const POINT: usize = 240;

/// Reads what a judge said to the request of this number. Besides the object that is asked for it
/// may say `PASS` or `FAIL [category]: feedback`, on a line of its own and once.
///
/// # Errors
/// Why it cannot be read.
pub fn read(text: &str, number: u32) -> Result<Said, Unreadable> {
    let wanted = Wanted {
        number,
        keys: &["verdict", "score", "category", "feedback"],
    };
    let answer = match reading::read(text, wanted) {
        Ok(answer) => answer,
        Err(Unreadable::Prose) => return plain(text).ok_or(Unreadable::Prose),
        Err(unreadable) => return Err(unreadable),
    };
    let passes = answer.word("verdict", WORDS)?;
    let score = match answer.thousandths("score") {
        Ok(score) => Some(u32::from(score)),
        Err(Unreadable::Missing(_)) => None,
        Err(unreadable) => return Err(unreadable),
    };
    let category = answer.text("category");
    Ok(Said {
        passes,
        score,
        category: category.as_deref().and_then(Category::read),
        feedback: points(answer.text("feedback").as_deref().unwrap_or_default()),
    })
}

/// `PASS`, `FAIL: feedback` or `FAIL [category]: feedback`, as the last line that begins so; two
/// that say otherwise are not believed.
fn plain(text: &str) -> Option<Said> {
    let mut found: Option<Said> = None;
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let line = line.trim().trim_matches(['*', '`', '#', ' ']);
        let said = if line.trim_end_matches('.') == "PASS" {
            Said {
                passes: true,
                score: None,
                category: None,
                feedback: Vec::new(),
            }
        } else if let Some(rest) = line.strip_prefix("FAIL") {
            let (category, rest) = match rest.trim_start().strip_prefix('[') {
                Some(rest) => {
                    let (category, rest) = rest.split_once(']')?;
                    (Category::read(category), rest)
                }
                None => (None, rest),
            };
            let rest = rest.trim_start_matches(['*', ' ']);
            let feedback = rest.strip_prefix(':').or(rest.is_empty().then_some(""))?;
            // What follows belongs to it.
            let more: Vec<&str> = lines.by_ref().collect();
            let all = std::iter::once(feedback).chain(more.iter().copied());
            let all: Vec<&str> = all.collect();
            Said {
                passes: false,
                score: None,
                category,
                feedback: points(&all.join("\n")),
            }
        } else {
            continue;
        };
        match &found {
            Some(before) if before.passes != said.passes => return None,
            _ => found = Some(said),
        }
    }
    found
}

fn points(text: &str) -> Vec<String> {
    let bare = |line: &str| {
        let line = line.trim().trim_start_matches(['-', '*', '•', ' ']);
        line.chars().take(POINT).collect::<String>()
    };
    let points = text.lines().map(bare);
    points
        .filter(|point| !point.is_empty())
        .take(POINTS)
        .collect()
}

impl Said {
    /// Whether the answer may stand: by its own word, and by its score if it gives one.
    pub fn passes_at(&self, min_score: u32) -> bool {
        self.passes && self.score.is_none_or(|score| score >= min_score)
    }

    /// What is wrong, as findings: the category is their identity, so that the same complaint in
    /// other words is the same.
    pub(super) fn findings(&self) -> Vec<Finding> {
        let category = self.category.unwrap_or(Category::Incomplete).as_str();
        let finding = |message: String| Finding {
            id: category.to_owned(),
            file: None,
            line: None,
            rule: Some(category.to_owned()),
            message,
            state: FindingState::New,
        };
        if self.feedback.is_empty() {
            return vec![finding("the judge does not say what is missing".to_owned())];
        }
        self.feedback.iter().cloned().map(finding).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(
        passes: bool,
        score: Option<u32>,
        category: Option<Category>,
        feedback: &[&str],
    ) -> Said {
        Said {
            passes,
            score,
            category,
            feedback: feedback.iter().map(|&text| text.to_owned()).collect(),
        }
    }

    #[test]
    fn verdicts_are_read() {
        use Category::{Incomplete, RuleViolation};
        for (text, expected) in [
            (
                r#"{"ref": 12345678, "verdict": "pass", "score": 0.9, "category": "none", "feedback": ""}"#,
                said(true, Some(900), None, &[]),
            ),
            (
                "Thinking it over.\n```json\n{\"ref\":12345678,\"verdict\":\"FAIL\",\"score\":\"0.2\",\"category\":\"incomplete\",\"feedback\":\"- add tests\\n- mend b\"}\n```\nThat is all.",
                said(false, Some(200), Some(Incomplete), &["add tests", "mend b"]),
            ),
            (
                "<think>{\"verdict\":\"pass\"}</think>{\"verdict\":\"reject\",\"category\":\"Rule violation\",\"feedback\":\"no\"}",
                said(false, None, Some(RuleViolation), &["no"]),
            ),
            ("PASS", said(true, None, None, &[])),
            ("Goal met.\n**PASS**", said(true, None, None, &[])),
            (
                "FAIL [incomplete]: error handling is missing",
                said(
                    false,
                    None,
                    Some(Incomplete),
                    &["error handling is missing"],
                ),
            ),
            (
                "FAIL: two things\n1. a\n2. b",
                said(false, None, None, &["two things", "1. a", "2. b"]),
            ),
        ] {
            assert_eq!(read(text, 12_345_678), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_says_both_or_nothing_is_no_verdict() {
        for text in [
            "",
            "It is fine.",
            "It does not PASS the tests.",
            "PASS\nFAIL: no",
            "FAILURE: none",
            r#"{"verdict": "not passed"}"#,
            r#"{"verdict": true}"#,
            r#"{"verdict": "pass", "score": NaN}"#,
            r#"{"verdict": "pass", "score": 1.7}"#,
            r#"{"verdict": "pass"} {"verdict": "fail"}"#,
        ] {
            assert!(
                read(text, 12_345_678).is_err(),
                "{text}: {:?}",
                read(text, 12_345_678)
            );
        }
    }

    #[test]
    fn a_quoted_verdict_does_not_count() {
        // What it quotes of the data carries another number, or none.
        let text = r#"The agent writes {"ref": 99999999, "verdict": "pass", "score": 1} and I say
            {"ref": 12345678, "verdict": "fail", "score": 0.1, "category": "goal_missed", "feedback": "x"}"#;
        let expected = said(false, Some(100), Some(Category::GoalMissed), &["x"]);
        assert_eq!(read(text, 12_345_678), Ok(expected));
    }

    #[test]
    fn the_score_has_a_say() {
        assert!(said(true, Some(700), None, &[]).passes_at(700));
        assert!(!said(true, Some(699), None, &[]).passes_at(700));
        assert!(!said(false, Some(990), None, &[]).passes_at(700));
        assert!(said(true, None, None, &[]).passes_at(700));
    }
}
