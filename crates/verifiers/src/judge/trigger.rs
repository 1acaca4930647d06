//! Decides whether an answer calls for a judge, from its text and the facts of the stop. Nothing is
//! asked and nothing is read, so the result is itself a fact of the stop.

use checkrein_core::input::{AgentAnswerFacts, JudgeTriggerOrSkipReason};

use super::definition::{JudgeDefinition, JudgeTriggerMode, MainOrSubagentConversation};

/// Returns whether this answer calls for this judge, and why. Facts that need no model come first:
/// they say whether there is anything to judge at all.
pub fn evaluate_judge_trigger(
    judge: &JudgeDefinition,
    main: bool,
    fact: AgentAnswerFacts,
    text: &str,
) -> JudgeTriggerOrSkipReason {
    // With calls still open this is no final answer.
    if fact.calls_pending {
        return JudgeTriggerOrSkipReason::CallsPending;
    }
    // What the person has seen already cannot be held back.
    if fact.delivered {
        return JudgeTriggerOrSkipReason::Delivered;
    }
    if fact.streamed {
        return JudgeTriggerOrSkipReason::Streamed;
    }
    // An empty answer claims nothing.
    if text.trim().is_empty() {
        return JudgeTriggerOrSkipReason::Empty;
    }
    if fact.heartbeat && !judge.heartbeat {
        return JudgeTriggerOrSkipReason::HeartbeatOff;
    }
    let surface = match main {
        true => MainOrSubagentConversation::Main,
        false => MainOrSubagentConversation::Subagent,
    };
    if !judge.surfaces.contains(&surface) {
        return JudgeTriggerOrSkipReason::OtherSurface;
    }
    // An answer of "all is well" contains no keyword, so every answer to a heartbeat is judged.
    if fact.heartbeat {
        return JudgeTriggerOrSkipReason::Heartbeat;
    }
    match judge.trigger {
        JudgeTriggerMode::Always => JudgeTriggerOrSkipReason::Always,
        JudgeTriggerMode::Keywords
            if judge
                .keywords
                .iter()
                .any(|word| contains_phrase(text, word)) =>
        {
            JudgeTriggerOrSkipReason::Keyword
        }
        JudgeTriggerMode::Keywords => JudgeTriggerOrSkipReason::Nothing,
    }
}

/// Returns whether a text contains a word or phrase, regardless of case and blanks: "done" is not
/// in "abandoned".
fn contains_phrase(text: &str, phrase: &str) -> bool {
    // Word by word, so that a line break or punctuation within a phrase does not matter.
    let words: Vec<String> = lowercase_words(phrase).collect();
    let Some(first) = words.first() else {
        return false;
    };
    let text: Vec<String> = self::lowercase_words(text).collect();
    let at = |start: usize| text.get(start..start + words.len()) == Some(words.as_slice());
    let begins = text.iter().enumerate().filter(|(_, word)| *word == first);
    begins.map(|(start, _)| start).any(at)
}

fn lowercase_words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::definition::DEFAULT_KEYWORDS;

    fn judge() -> JudgeDefinition {
        JudgeDefinition {
            model: None,
            trigger: JudgeTriggerMode::Keywords,
            keywords: DEFAULT_KEYWORDS.map(str::to_owned).to_vec(),
            heartbeat: false,
            surfaces: vec![
                MainOrSubagentConversation::Main,
                MainOrSubagentConversation::Subagent,
            ],
            min_score: 700,
            rubric: None,
            rules: Vec::new(),
        }
    }

    #[test]
    fn keywords_are_words() {
        for (text, expected) in [
            ("I am done.", JudgeTriggerOrSkipReason::Keyword),
            ("DONE", JudgeTriggerOrSkipReason::Keyword),
            ("Here\nyou  go: a.txt", JudgeTriggerOrSkipReason::Keyword),
            (
                "**Completed**, see below",
                JudgeTriggerOrSkipReason::Keyword,
            ),
            ("The job was abandoned.", JudgeTriggerOrSkipReason::Nothing),
            ("already there", JudgeTriggerOrSkipReason::Nothing),
            ("here you are", JudgeTriggerOrSkipReason::Nothing),
            ("Still working on it", JudgeTriggerOrSkipReason::Nothing),
            ("", JudgeTriggerOrSkipReason::Empty),
            (" \n", JudgeTriggerOrSkipReason::Empty),
        ] {
            let plain = AgentAnswerFacts::default();
            assert_eq!(
                evaluate_judge_trigger(&judge(), true, plain, text),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_known_beside_the_text_comes_first() {
        let fact = |change: fn(&mut AgentAnswerFacts)| {
            let mut fact = AgentAnswerFacts::default();
            change(&mut fact);
            fact
        };
        for (fact, expected) in [
            (
                fact(|fact| fact.calls_pending = true),
                JudgeTriggerOrSkipReason::CallsPending,
            ),
            (
                fact(|fact| fact.delivered = true),
                JudgeTriggerOrSkipReason::Delivered,
            ),
            (
                fact(|fact| fact.streamed = true),
                JudgeTriggerOrSkipReason::Streamed,
            ),
            (
                fact(|fact| fact.heartbeat = true),
                JudgeTriggerOrSkipReason::HeartbeatOff,
            ),
        ] {
            assert_eq!(
                evaluate_judge_trigger(&judge(), true, fact, "Done."),
                expected
            );
        }
        let heartbeats = JudgeDefinition {
            heartbeat: true,
            ..judge()
        };
        let beat = fact(|fact| fact.heartbeat = true);
        let ok = "HEARTBEAT_OK";
        assert_eq!(
            evaluate_judge_trigger(&heartbeats, true, beat, ok),
            JudgeTriggerOrSkipReason::Heartbeat
        );
        // The keywords go on counting for all else.
        let plain = AgentAnswerFacts::default();
        assert_eq!(
            evaluate_judge_trigger(&heartbeats, true, plain, ok),
            JudgeTriggerOrSkipReason::Nothing
        );
    }

    #[test]
    fn surfaces_and_every_answer() {
        let main_only = JudgeDefinition {
            surfaces: vec![MainOrSubagentConversation::Main],
            ..judge()
        };
        let plain = AgentAnswerFacts::default();
        assert_eq!(
            evaluate_judge_trigger(&main_only, false, plain, "Done."),
            JudgeTriggerOrSkipReason::OtherSurface
        );
        assert_eq!(
            evaluate_judge_trigger(&judge(), false, plain, "Done."),
            JudgeTriggerOrSkipReason::Keyword
        );
        let always = JudgeDefinition {
            trigger: JudgeTriggerMode::Always,
            ..judge()
        };
        assert_eq!(
            evaluate_judge_trigger(&always, true, plain, "Hm."),
            JudgeTriggerOrSkipReason::Always
        );
    }
}
