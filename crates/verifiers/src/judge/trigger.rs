//! What calls for a judge, told from the answer's text and what is known beside it. Nothing is
//! asked and nothing is read: it is a fact of the stop.

use checkrein_core::input::{AnswerFact, Calling};

use super::definition::{Definition, Surface, Trigger};

/// Whether this answer calls for this judge. First what can be told without any model says whether
/// there is something to judge at all.
pub fn calling(judge: &Definition, main: bool, fact: AnswerFact, text: &str) -> Calling {
    if fact.calls_pending {
        return Calling::CallsPending;
    }
    if fact.delivered {
        return Calling::Delivered;
    }
    if fact.streamed {
        return Calling::Streamed;
    }
    if text.trim().is_empty() {
        return Calling::Empty;
    }
    if fact.heartbeat && !judge.heartbeat {
        return Calling::HeartbeatOff;
    }
    let surface = match main {
        true => Surface::Main,
        false => Surface::Subagent,
    };
    if !judge.surfaces.contains(&surface) {
        return Calling::OtherSurface;
    }
    // An answer of "all is well" holds no keyword: each is judged.
    if fact.heartbeat {
        return Calling::Heartbeat;
    }
    match judge.trigger {
        Trigger::Always => Calling::Always,
        Trigger::Keywords if judge.keywords.iter().any(|word| holds(text, word)) => {
            Calling::Keyword
        }
        Trigger::Keywords => Calling::Nothing,
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
            ("I am done.", Calling::Keyword),
            ("DONE", Calling::Keyword),
            ("Here\nyou  go: a.txt", Calling::Keyword),
            ("**Completed**, see below", Calling::Keyword),
            ("The job was abandoned.", Calling::Nothing),
            ("already there", Calling::Nothing),
            ("here you are", Calling::Nothing),
            ("Still working on it", Calling::Nothing),
            ("", Calling::Empty),
            (" \n", Calling::Empty),
        ] {
            let plain = AnswerFact::default();
            assert_eq!(calling(&judge(), true, plain, text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_known_beside_the_text_comes_first() {
        let fact = |change: fn(&mut AnswerFact)| {
            let mut fact = AnswerFact::default();
            change(&mut fact);
            fact
        };
        for (fact, expected) in [
            (
                fact(|fact| fact.calls_pending = true),
                Calling::CallsPending,
            ),
            (fact(|fact| fact.delivered = true), Calling::Delivered),
            (fact(|fact| fact.streamed = true), Calling::Streamed),
            (fact(|fact| fact.heartbeat = true), Calling::HeartbeatOff),
        ] {
            assert_eq!(calling(&judge(), true, fact, "Done."), expected);
        }
        let heartbeats = Definition {
            heartbeat: true,
            ..judge()
        };
        let beat = fact(|fact| fact.heartbeat = true);
        let ok = "HEARTBEAT_OK";
        assert_eq!(calling(&heartbeats, true, beat, ok), Calling::Heartbeat);
        // The keywords go on counting for all else.
        let plain = AnswerFact::default();
        assert_eq!(calling(&heartbeats, true, plain, ok), Calling::Nothing);
    }

    #[test]
    fn surfaces_and_every_answer() {
        let main_only = Definition {
            surfaces: vec![Surface::Main],
            ..judge()
        };
        let plain = AnswerFact::default();
        assert_eq!(
            calling(&main_only, false, plain, "Done."),
            Calling::OtherSurface
        );
        assert_eq!(calling(&judge(), false, plain, "Done."), Calling::Keyword);
        let always = Definition {
            trigger: Trigger::Always,
            ..judge()
        };
        assert_eq!(calling(&always, true, plain, "Hm."), Calling::Always);
    }
}
