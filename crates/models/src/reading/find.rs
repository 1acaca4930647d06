//! Which object in what a model said is its answer: thoughts are left out, objects without what was asked
//! for looked into, and of several those believed that repeat the request's number.

use super::object::{Field, Held, Walked, held, walk};
use super::{Answer, MAX_TEXT, Unreadable, Wanted};

/// So many braces are looked at.
const MAX_TRIES: usize = 256;

/// How models mark what they only think: where it begins, and where it ends.
const THOUGHTS: [(&str, &str); 13] = [
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<thoughts>", "</thoughts>"),
    ("<reasoning>", "</reasoning>"),
    ("<reflection>", "</reflection>"),
    ("<scratchpad>", "</scratchpad>"),
    ("<analysis>", "</analysis>"),
    ("<seed:think>", "</seed:think>"),
    ("[think]", "[/think]"),
    ("◁think▷", "◁/think▷"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|channel|>analysis", "<|channel|>final"),
];

/// See [`super::read`].
pub(super) fn find(text: &str, wanted: Wanted) -> Result<Answer<'_>, Unreadable> {
    if text.len() > MAX_TEXT {
        return Err(Unreadable::Large { bytes: text.len() });
    }
    let plain = text.trim();
    if plain.is_empty() {
        return Err(Unreadable::Empty);
    }
    // As most models answer: nothing but the object.
    if plain.starts_with('{')
        && let Walked::Whole(fields, length) = walk(plain)
        && length == plain.len()
        && let Some(signed @ (Signed::Here | Signed::Nowhere)) = signed(&fields, wanted)?
    {
        return Ok(Answer {
            fields,
            cut: false,
            signed: signed == Signed::Here,
        });
    }
    Search::over(text, wanted)?.answer(wanted)
}

/// Whose answer it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Signed {
    /// This request's.
    Here,
    /// Another's.
    Elsewhere,
    Nowhere,
}

/// Whether these are the fields of an answer, and to which request.
fn signed(fields: &[Field<'_>], wanted: Wanted) -> Result<Option<Signed>, Unreadable> {
    let first = wanted.keys.first().copied().unwrap_or_default();
    if matches!(held(fields, first), Ok(None)) {
        return Ok(None);
    }
    Ok(Some(match held(fields, "ref")? {
        Some(Held::Whole(raw)) if *raw != "null" => {
            if raw.trim_matches('"').parse() == Ok(wanted.number) {
                Signed::Here
            } else {
                Signed::Elsewhere
            }
        }
        Some(_) | None => Signed::Nowhere,
    }))
}

/// What was found in a text.
#[derive(Default)]
struct Search<'a> {
    answers: Vec<Answer<'a>>,
    /// Those before a thought's end whose beginning is not in the text, as with models whose
    /// template has it in the prompt.
    drafts: Vec<Answer<'a>>,
    /// Answers to other requests.
    strangers: usize,
    /// Objects that are no answers.
    others: usize,
    /// Why the first brace begins no object.
    not: Option<serde_json::Error>,
    thoughts: bool,
}

impl<'a> Search<'a> {
    fn over(text: &'a str, wanted: Wanted) -> Result<Self, Unreadable> {
        let mut search = Search::default();
        let mut at = 0;
        let mut tries = 0;
        while let Some((before, rest)) = next_mark(text, at) {
            if !rest.starts_with('{') {
                match thought(rest) {
                    None => at = before + rest.chars().next().map_or(1, char::len_utf8),
                    Some(Thought::Until(length)) => {
                        search.thoughts = true;
                        at = before + length;
                    }
                    Some(Thought::Ended(length)) => {
                        search.thoughts = true;
                        search.drafts.append(&mut search.answers);
                        at = before + length;
                    }
                }
                continue;
            }
            tries += 1;
            if tries > MAX_TRIES {
                return Err(Unreadable::Braces);
            }
            at = match walk(rest) {
                Walked::Whole(fields, length) => {
                    if search.take(fields, false, wanted)? {
                        before + length
                    } else {
                        // An answer may be wrapped in it.
                        before + 1
                    }
                }
                Walked::Cut(fields) => {
                    search.take(fields, true, wanted)?;
                    // All that follows is in it.
                    break;
                }
                Walked::Not(error) => {
                    search.not.get_or_insert(error);
                    before + 1
                }
            };
        }
        Ok(search)
    }

    /// Whether these are the fields of an answer, to whatever request.
    fn take(
        &mut self,
        fields: Vec<Field<'a>>,
        cut: bool,
        wanted: Wanted,
    ) -> Result<bool, Unreadable> {
        let signed = match signed(&fields, wanted)? {
            None => {
                self.others += 1;
                return Ok(false);
            }
            Some(Signed::Elsewhere) => {
                self.strangers += 1;
                return Ok(true);
            }
            Some(signed) => signed == Signed::Here,
        };
        self.answers.push(Answer {
            fields,
            cut,
            signed,
        });
        Ok(true)
    }

    fn answer(mut self, wanted: Wanted) -> Result<Answer<'a>, Unreadable> {
        if !self.answers.iter().any(Answer::signed) {
            self.answers.append(&mut self.drafts);
        }
        if self.answers.iter().any(Answer::signed) {
            self.answers.retain(Answer::signed);
        }
        let mut answers = self.answers.into_iter();
        let Some(first) = answers.next() else {
            let missing = wanted.keys.first().copied().unwrap_or_default();
            return Err(match self.not {
                _ if self.strangers > 0 => Unreadable::Number,
                _ if self.others > 0 => Unreadable::Missing(missing),
                Some(error) => Unreadable::NotJson(error.to_string()),
                None if self.thoughts => Unreadable::Thoughts,
                None => Unreadable::Prose,
            });
        };
        for other in answers {
            for key in wanted.keys {
                if held(&first.fields, key)? != held(&other.fields, key)? {
                    return Err(Unreadable::Disagree);
                }
            }
        }
        Ok(first)
    }
}

/// The next place where an object or a thought may begin, and the text from there.
fn next_mark(text: &str, at: usize) -> Option<(usize, &str)> {
    let rest = text.get(at..)?;
    let found = rest.find(['{', '<', '[', '◁'])?;
    Some((at + found, rest.get(found..)?))
}

/// A mark of a thought.
enum Thought {
    /// It begins, and is so long.
    Until(usize),
    /// It ended, the mark being so long.
    Ended(usize),
}

fn thought(rest: &str) -> Option<Thought> {
    THOUGHTS.iter().find_map(|(begin, end)| {
        if begins(rest, begin) {
            let close = rest
                .match_indices(['<', '[', '◁'])
                .map(|(at, _)| at)
                .find(|at| rest.get(*at..).is_some_and(|from| begins(from, end)));
            Some(Thought::Until(
                close.map_or(rest.len(), |at| (at + end.len()).min(rest.len())),
            ))
        } else if begins(rest, end) {
            Some(Thought::Ended(end.len()))
        } else {
            None
        }
    })
}

/// Whether a text begins with a mark, whatever its letter case; a tag may have attributes.
fn begins(text: &str, mark: &str) -> bool {
    let same = |mark: &str| {
        text.get(..mark.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(mark))
    };
    same(mark)
        || mark.strip_suffix('>').is_some_and(|name| {
            same(name)
                && text
                    .get(name.len()..)
                    .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_whitespace()))
        })
}
