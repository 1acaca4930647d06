//! What calls for a judge, told from the answer's text and what is known beside it. Nothing is
//! asked and nothing is read: it is a fact of the stop.

use checkrein_core::input::{AgentAnswerFlags, JudgeTrigger};

use super::definition::{Definition, Surface, Trigger};

/// Whether this answer calls for this judge. First what can be told without any model says whether
/// there is something to judge at all.
pub fn calling(judge: &Definition, main: bool, fact: AgentAnswerFlags, text: &str) -> JudgeTrigger {
    if fact.calls_pending {
        return JudgeTrigger::CallsPending;
    }
    if fact.delivered {
        return JudgeTrigger::Delivered;
    }
    if fact.streamed {
        return JudgeTrigger::Streamed;
    }
    if text.trim().is_empty() {
        return JudgeTrigger::Empty;
    }
    if fact.heartbeat && !judge.heartbeat {
        return JudgeTrigger::HeartbeatOff;
    }
    let surface = match main {
        true => Surface::Main,
        false => Surface::Subagent,
    };
    if !judge.surfaces.contains(&surface) {
        return JudgeTrigger::OtherSurface;
    }
    // An answer of "all is well" holds no keyword: each is judged.
    if fact.heartbeat {
        return JudgeTrigger::Heartbeat;
    }
    match judge.trigger {
        Trigger::Always => JudgeTrigger::Always,
        Trigger::Keywords if judge.keywords.iter().any(|word| holds(text, word)) => {
            JudgeTrigger::Keyword
        }
        Trigger::Keywords => JudgeTrigger::Nothing,
    }
}

/// Whether a text holds a word or phrase, whatever its letter case and blanks: "done" is not in
/// "abandoned".
fn holds(text: &str, phrase: &str) -> bool {
    let words: Vec<String> = words(phrase).collect();
    let Some(first) = words.first() else {
        return false;
    };
    let text: Vec<String> = self::words(text).collect();
    let at = |start: usize| text.get(start..start + words.len()) == Some(words.as_slice());
    let begins = text.iter().enumerate().filter(|(_, word)| *word == first);
    begins.map(|(start, _)| start).any(at)
}

fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::definition::KEYWORDS;

    fn judge() -> Definition {
        Definition {
            model: None,
            trigger: Trigger::Keywords,
            keywords: KEYWORDS.map(str::to_owned).to_vec(),
            heartbeat: false,
            surfaces: vec![Surface::Main, Surface::Subagent],
            min_score: 700,
            rubric: None,
            rules: Vec::new(),
        }
    }

    #[test]
    fn keywords_are_words() {
        for (text, expected) in [
            ("I am done.", JudgeTrigger::Keyword),
            ("DONE", JudgeTrigger::Keyword),
            ("Here\nyou  go: a.txt", JudgeTrigger::Keyword),
            ("**Completed**, see below", JudgeTrigger::Keyword),
            ("The job was abandoned.", JudgeTrigger::Nothing),
            ("already there", JudgeTrigger::Nothing),
            ("here you are", JudgeTrigger::Nothing),
            ("Still working on it", JudgeTrigger::Nothing),
            ("", JudgeTrigger::Empty),
            (" \n", JudgeTrigger::Empty),
        ] {
            let plain = AgentAnswerFlags::default();
            assert_eq!(calling(&judge(), true, plain, text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_known_beside_the_text_comes_first() {
        let fact = |change: fn(&mut AgentAnswerFlags)| {
            let mut fact = AgentAnswerFlags::default();
            change(&mut fact);
            fact
        };
        for (fact, expected) in [
            (
                fact(|fact| fact.calls_pending = true),
                JudgeTrigger::CallsPending,
            ),
            (fact(|fact| fact.delivered = true), JudgeTrigger::Delivered),
            (fact(|fact| fact.streamed = true), JudgeTrigger::Streamed),
            (
                fact(|fact| fact.heartbeat = true),
                JudgeTrigger::HeartbeatOff,
            ),
        ] {
            assert_eq!(calling(&judge(), true, fact, "Done."), expected);
        }
        let heartbeats = Definition {
            heartbeat: true,
            ..judge()
        };
        let beat = fact(|fact| fact.heartbeat = true);
        let ok = "HEARTBEAT_OK";
        assert_eq!(
            calling(&heartbeats, true, beat, ok),
            JudgeTrigger::Heartbeat
        );
        // The keywords go on counting for all else.
        let plain = AgentAnswerFlags::default();
        assert_eq!(calling(&heartbeats, true, plain, ok), JudgeTrigger::Nothing);
    }

    #[test]
    fn surfaces_and_every_answer() {
        let main_only = Definition {
            surfaces: vec![Surface::Main],
            ..judge()
        };
        let plain = AgentAnswerFlags::default();
        assert_eq!(
            calling(&main_only, false, plain, "Done."),
            JudgeTrigger::OtherSurface
        );
        assert_eq!(
            calling(&judge(), false, plain, "Done."),
            JudgeTrigger::Keyword
        );
        let always = Definition {
            trigger: Trigger::Always,
            ..judge()
        };
        assert_eq!(calling(&always, true, plain, "Hm."), JudgeTrigger::Always);
    }
}
