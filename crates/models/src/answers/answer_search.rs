//! Chooses the object in a model's text that is its answer. Thoughts are skipped, objects without
//! the wanted key are searched inside, and objects that repeat the request's number take
//! precedence.

use super::json_scan::{
    JsonField, JsonObjectScanResult, WholeOrCutJson, field_value_ignoring_case, scan_json_object,
};
use super::{MAX_TEXT, ParsedModelJson, RequiredAnswerKeys, UnreadableAnswerCause};

/// The number of braces that are tried.
const MAX_TRIES: usize = 256;

/// How models mark thoughts: begin and end.
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

/// See [`super::parse_model_answer`].
pub(super) fn find_json_answer(
    text: &str,
    wanted: RequiredAnswerKeys,
) -> Result<ParsedModelJson<'_>, UnreadableAnswerCause> {
    if text.len() > MAX_TEXT {
        return Err(UnreadableAnswerCause::TooLarge { bytes: text.len() });
    }
    let plain = text.trim();
    if plain.is_empty() {
        return Err(UnreadableAnswerCause::Empty);
    }
    // The fast path for most answers: the text is nothing but the object.
    if plain.starts_with('{')
        && let JsonObjectScanResult::Whole(fields, length) = scan_json_object(plain)
        && length == plain.len()
        && let Some(
            signed @ (ModelAnswerRequestMatch::ThisRequest | ModelAnswerRequestMatch::Unsigned),
        ) = match_model_answer_to_request(&fields, wanted)?
    {
        return Ok(ParsedModelJson {
            fields,
            cut: false,
            signed: signed == ModelAnswerRequestMatch::ThisRequest,
        });
    }
    AnswersFoundInReply::scan_reply_for_answers(text, wanted)?.pick_model_json_answer(wanted)
}

/// The request that an answer belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ModelAnswerRequestMatch {
    /// This request's.
    ThisRequest,
    /// Another's.
    OtherRequest,
    Unsigned,
}

/// Returns whether these are the fields of an answer, and to which request.
fn match_model_answer_to_request(
    fields: &[JsonField<'_>],
    wanted: RequiredAnswerKeys,
) -> Result<Option<ModelAnswerRequestMatch>, UnreadableAnswerCause> {
    let first = wanted.keys.first().copied().unwrap_or_default();
    // An object that has the first key twice is an answer, too. The contradiction is reported when
    // the field is read.
    if matches!(field_value_ignoring_case(fields, first), Ok(None)) {
        return Ok(None);
    }
    Ok(Some(match field_value_ignoring_case(fields, "ref")? {
        // Models write the number as a number or as a text.
        Some(WholeOrCutJson::Whole(raw)) if *raw != "null" => {
            if raw.trim_matches('"').parse() == Ok(wanted.number) {
                ModelAnswerRequestMatch::ThisRequest
            } else {
                ModelAnswerRequestMatch::OtherRequest
            }
        }
        Some(_) | None => ModelAnswerRequestMatch::Unsigned,
    }))
}

/// What was found in a text.
#[derive(Default)]
struct AnswersFoundInReply<'a> {
    answers: Vec<ParsedModelJson<'a>>,
    /// Answers before the end of a thought whose beginning is not in the text, as with models whose
    /// template puts it into the prompt.
    drafts: Vec<ParsedModelJson<'a>>,
    /// Answers to other requests.
    other_requests: usize,
    /// Objects that are no answers.
    others: usize,
    /// Why the first brace begins no object.
    first_error: Option<serde_json::Error>,
    thoughts: bool,
}

impl<'a> AnswersFoundInReply<'a> {
    fn scan_reply_for_answers(
        text: &'a str,
        wanted: RequiredAnswerKeys,
    ) -> Result<Self, UnreadableAnswerCause> {
        let mut search = AnswersFoundInReply::default();
        let mut at = 0;
        let mut tries = 0;
        while let Some((before, rest)) = next_possible_object_or_thought_start(text, at) {
            if !rest.starts_with('{') {
                match parse_thinking_tag(rest) {
                    None => at = before + rest.chars().next().map_or(1, char::len_utf8),
                    Some(ThinkingTag::Until(length)) => {
                        search.thoughts = true;
                        at = before + length;
                    }
                    Some(ThinkingTag::Ended(length)) => {
                        search.thoughts = true;
                        // Everything before a lone end mark was thought and not said. It is kept as
                        // a fallback.
                        search.drafts.append(&mut search.answers);
                        at = before + length;
                    }
                }
                continue;
            }
            tries += 1;
            // Each brace may cost a scan of the rest, so a text of nothing but braces would take
            // quadratic time.
            if tries > MAX_TRIES {
                return Err(UnreadableAnswerCause::TooManyBraces);
            }
            at = match scan_json_object(rest) {
                JsonObjectScanResult::Whole(fields, length) => {
                    if search.collect_object_if_answer(fields, false, wanted)? {
                        before + length
                    } else {
                        // An answer may be nested in this object.
                        before + 1
                    }
                }
                JsonObjectScanResult::Cut(fields) => {
                    search.collect_object_if_answer(fields, true, wanted)?;
                    // Everything that follows is inside the truncated object.
                    break;
                }
                JsonObjectScanResult::Not(error) => {
                    search.first_error.get_or_insert(error);
                    before + 1
                }
            };
        }
        Ok(search)
    }

    /// Collects an object. Returns whether it is an answer, to this or another request.
    fn collect_object_if_answer(
        &mut self,
        fields: Vec<JsonField<'a>>,
        cut: bool,
        wanted: RequiredAnswerKeys,
    ) -> Result<bool, UnreadableAnswerCause> {
        let signed = match match_model_answer_to_request(&fields, wanted)? {
            None => {
                self.others += 1;
                return Ok(false);
            }
            Some(ModelAnswerRequestMatch::OtherRequest) => {
                self.other_requests += 1;
                return Ok(true);
            }
            Some(signed) => signed == ModelAnswerRequestMatch::ThisRequest,
        };
        self.answers.push(ParsedModelJson {
            fields,
            cut,
            signed,
        });
        Ok(true)
    }

    fn pick_model_json_answer(
        mut self,
        wanted: RequiredAnswerKeys,
    ) -> Result<ParsedModelJson<'a>, UnreadableAnswerCause> {
        // An answer with the request's number cannot be quoted from the data, so it wins over all
        // others, even over a later one without it.
        if !self
            .answers
            .iter()
            .any(ParsedModelJson::echoes_request_nonce)
        {
            self.answers.append(&mut self.drafts);
        }
        if self
            .answers
            .iter()
            .any(ParsedModelJson::echoes_request_nonce)
        {
            self.answers.retain(ParsedModelJson::echoes_request_nonce);
        }
        let mut answers = self.answers.into_iter();
        let Some(first) = answers.next() else {
            let missing = wanted.keys.first().copied().unwrap_or_default();
            return Err(match self.first_error {
                _ if self.other_requests > 0 => UnreadableAnswerCause::WrongNumber,
                _ if self.others > 0 => UnreadableAnswerCause::Missing(missing),
                Some(error) => UnreadableAnswerCause::NotJson(error.to_string()),
                None if self.thoughts => UnreadableAnswerCause::OnlyThoughts,
                None => UnreadableAnswerCause::NoObject,
            });
        };
        // Several answers that agree are one answer. If they differ, any choice would be a guess.
        for other in answers {
            for key in wanted.keys {
                if field_value_ignoring_case(&first.fields, key)?
                    != field_value_ignoring_case(&other.fields, key)?
                {
                    return Err(UnreadableAnswerCause::Disagree);
                }
            }
        }
        Ok(first)
    }
}

/// Returns the next position where an object or a thought may begin, and the text from there.
fn next_possible_object_or_thought_start(text: &str, at: usize) -> Option<(usize, &str)> {
    let rest = text.get(at..)?;
    let found = rest.find(['{', '<', '[', '◁'])?;
    Some((at + found, rest.get(found..)?))
}

/// A mark of a thought.
enum ThinkingTag {
    /// A thought begins and has this length.
    Until(usize),
    /// A thought ended, and its end mark has this length.
    Ended(usize),
}

fn parse_thinking_tag(rest: &str) -> Option<ThinkingTag> {
    THOUGHTS.iter().find_map(|(begin, end)| {
        if starts_with_tag(rest, begin) {
            let close = rest
                .match_indices(['<', '[', '◁'])
                .map(|(at, _)| at)
                .find(|at| {
                    rest.get(*at..)
                        .is_some_and(|from| starts_with_tag(from, end))
                });
            Some(ThinkingTag::Until(
                close.map_or(rest.len(), |at| (at + end.len()).min(rest.len())),
            ))
        } else if starts_with_tag(rest, end) {
            Some(ThinkingTag::Ended(end.len()))
        } else {
            None
        }
    })
}

/// Returns whether a text begins with a mark, ignoring case. A tag may have attributes.
fn starts_with_tag(text: &str, mark: &str) -> bool {
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
