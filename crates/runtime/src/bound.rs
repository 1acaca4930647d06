//! Makes events fit to be kept: secrets are hidden and every text is bounded, so that no event is
//! longer than 64 KiB. Digests were taken of the whole text before; facts that decide are not
//! touched.

use std::borrow::Cow;

use checkrein_core::digest::Digest;
use checkrein_core::ids::{ScopeId, SessionId};
use checkrein_core::input::{Input, ModelToolCallOpinionFact, PersonAnswer, ToolRequestFacts};
use checkrein_core::middleware::MiddlewareAnswerFact;

use checkrein_redaction::Redactor;

use crate::middleware::tool_result_text;

/// Bytes of arguments, of a prompt or of a message within an event, as JSON.
const LONG_TEXT_LIMIT: usize = 24 * 1024;
/// Bytes at either end of a huge text that are scanned for secrets.
const SCANNED_END: usize = 64 * 1024;
/// Bytes of a name or a reason.
const SHORT_TEXT_LIMIT: usize = 1024;
/// Bytes of the reason why a patch is refused, with what the files hold instead: the agent acts on
/// it.
const REFUSAL_LIMIT: usize = 2560;
/// Bytes of all commands of a call together, and of all pieces that could not be read.
const COMMANDS_LIMIT: usize = 12 * 1024;
/// Bytes of everything that layers of middleware say of one input.
const LAYERS_LIMIT: usize = 12 * 1024;
/// A longer id is replaced by its digest.
const ID_LIMIT: usize = 200;

/// Hides and bounds all texts of an input.
pub(crate) fn redact_and_limit_input(redactor: &Redactor, input: &mut Input) {
    match input {
        Input::SessionStarted(started) => {
            if let Some(parent) = &mut started.parent
                && let Some(short) = hash_overlong_id(parent.as_str())
            {
                *parent = SessionId::new(short);
            }
        }
        Input::PromptSubmitted(prompt) => {
            redact_and_limit_text(redactor, &mut prompt.text, LONG_TEXT_LIMIT)
        }
        Input::ToolRequested(request) => {
            hash_overlong_scope_id(&mut request.scope);
            hash_overlong_call_id(&mut request.call_id);
            redact_and_limit_text(redactor, &mut request.tool, SHORT_TEXT_LIMIT);
            redact_and_limit_text(redactor, &mut request.args, LONG_TEXT_LIMIT);
        }
        Input::ToolReturned(returned) => {
            hash_overlong_scope_id(&mut returned.scope);
            hash_overlong_call_id(&mut returned.call_id);
        }
        Input::RoundEnded(round) => hash_overlong_scope_id(&mut round.scope),
        Input::StopRequested(stop) => {
            hash_overlong_scope_id(&mut stop.scope);
            redact_and_limit_text(redactor, &mut stop.message, LONG_TEXT_LIMIT);
        }
        Input::StopFailed(failed) => {
            hash_overlong_scope_id(&mut failed.scope);
            redact_and_limit_text(redactor, &mut failed.native_reason, SHORT_TEXT_LIMIT);
        }
        Input::SessionEnded(ended) => {
            redact_and_limit_text(redactor, &mut ended.native_reason, SHORT_TEXT_LIMIT)
        }
        Input::ProcessFailed(failed) => {
            redact_and_limit_text(redactor, &mut failed.what, SHORT_TEXT_LIMIT)
        }
        Input::StanceUsed(used) => {
            hash_overlong_scope_id(&mut used.scope);
            redact_and_limit_text(redactor, &mut used.why, SHORT_TEXT_LIMIT);
        }
        Input::ConfigEdited(edited) => {
            for path in &mut edited.paths {
                redact_and_limit_text(redactor, path, SHORT_TEXT_LIMIT);
            }
        }
        Input::PersonAnswered(answered) => {
            redact_and_limit_text(redactor, &mut answered.what, SHORT_TEXT_LIMIT);
            redact_and_limit_person_answer(redactor, &mut answered.answer);
        }
        Input::EvidenceArrived(_) | Input::TreeRead(_) | Input::Interrupted | Input::TimePassed => {
        }
    }
}

/// Hides and bounds a person's answer. A second time changes nothing.
pub(crate) fn redact_and_limit_person_answer(redactor: &Redactor, answer: &mut PersonAnswer) {
    redact_and_limit_text(redactor, &mut answer.by, SHORT_TEXT_LIMIT);
    if let Some(reason) = &mut answer.reason {
        redact_and_limit_text(redactor, reason, SHORT_TEXT_LIMIT);
    }
}

/// Hides and bounds what was found out about a call. The rules' decision stays.
pub(crate) fn redact_and_limit_tool_facts(redactor: &Redactor, facts: &mut ToolRequestFacts) {
    let mut room = COMMANDS_LIMIT;
    facts.commands.retain_mut(|command| {
        redactor.redact_command_words(&mut command.argv);
        let words = command
            .argv
            // Three more bytes for each word, quotes and comma, and forty for the rest of a
            // command.
            .iter()
            .map(|word| json_escaped_length(word) + 3);
        // A command without room is dropped whole: half a command says something else.
        match room.checked_sub(words.sum::<usize>() + 40) {
            Some(left) => {
                room = left;
                true
            }
            None => false,
        }
    });
    for piece in &mut facts.unresolved {
        redact_and_limit_text(redactor, piece, COMMANDS_LIMIT / 16);
    }
    if let Some(reason) = &mut facts.reason {
        redact_and_limit_text(redactor, reason, SHORT_TEXT_LIMIT);
    }
    if let Some(said) = &mut facts.veto {
        redact_and_limit_veto(redactor, said);
    }
    if let Some(progress) = &mut facts.progress {
        redact_and_limit_text(redactor, &mut progress.reason, SHORT_TEXT_LIMIT);
        if let Some(suggestion) = &mut progress.suggestion {
            redact_and_limit_text(redactor, suggestion, SHORT_TEXT_LIMIT);
        }
    }
    if let Some(patch) = &mut facts.patch {
        for path in &mut patch.paths {
            redact_and_limit_text(redactor, path, SHORT_TEXT_LIMIT / 4);
        }
        if let Some(refused) = &mut patch.refused {
            redact_and_limit_text(redactor, refused, REFUSAL_LIMIT);
        }
    }
}

/// Hides and bounds what a model said about a call. A second time changes nothing.
pub(crate) fn redact_and_limit_veto(redactor: &Redactor, veto: &mut ModelToolCallOpinionFact) {
    redact_and_limit_text(redactor, &mut veto.reason, SHORT_TEXT_LIMIT);
    // Half of the arguments are none.
    let whole = |arguments: &String| {
        arguments.len() <= REFUSAL_LIMIT && redactor.redact_text(arguments) == *arguments
    };
    veto.arguments = veto.arguments.take().filter(whole);
}

/// Hides and bounds the answers of middleware layers.
pub(crate) fn redact_and_limit_middleware_facts(
    redactor: &Redactor,
    layers: &mut [MiddlewareAnswerFact],
) {
    // The layers share the room, however many they are.
    let most = (LAYERS_LIMIT / layers.len().max(1)).min(SHORT_TEXT_LIMIT);
    let mut room = REFUSAL_LIMIT;
    for fact in layers {
        redact_and_limit_text(redactor, &mut fact.reason, most);
        // Half of the arguments are none.
        fact.arguments = fact.arguments.take().filter(|arguments| {
            let whole = arguments.len() <= room && redactor.redact_text(arguments) == *arguments;
            room -= if whole { arguments.len() } else { 0 };
            whole
        });
    }
}

/// Replaces a native id that is too long for the index of keys.
pub(crate) fn hash_overlong_id(id: &str) -> Option<String> {
    (id.len() > ID_LIMIT).then(|| Digest::hash_bytes(id.as_bytes()).to_hex())
}

fn hash_overlong_call_id(call: &mut Option<String>) {
    if let Some(short) = call.as_deref().and_then(hash_overlong_id) {
        *call = Some(short);
    }
}

fn hash_overlong_scope_id(scope: &mut ScopeId) {
    if let Some(short) = hash_overlong_id(scope.as_str()) {
        *scope = ScopeId::new(short);
    }
}

/// Hides and bounds one text.
pub(crate) fn redact_and_limit_text(redactor: &Redactor, text: &mut String, limit: usize) {
    let whole = text.len();
    // Of a huge text only the ends are scanned, with more than is kept of them.
    if let Some(ends) = huge_text_ends(text) {
        *text = ends;
    }
    // Hidden before it is cut: a cut through a secret would leave a part that no rule finds.
    if let Cow::Owned(hidden) = redactor.redact_text(text) {
        *text = hidden;
    }
    if let Some(cut) = truncate_middle(text, limit, whole) {
        *text = cut;
    }
}

/// Returns beginning and end of a huge text, each longer than what [`truncate_middle`] keeps of it
/// plus any secret at its seam.
fn huge_text_ends(text: &str) -> Option<String> {
    if text.len() <= 4 * SCANNED_END {
        return None;
    }
    let head = text.get(..text.floor_char_boundary(SCANNED_END))?;
    let tail = text.get(text.ceil_char_boundary(text.len() - SCANNED_END)..)?;
    Some([head, tail].concat())
}

/// Cuts the middle out of a text that does not fit; `None` if it fits. Three quarters of the room
/// go to the beginning, the rest to the end: a command begins with what it is, and often ends with
/// what it is for.
fn truncate_middle(text: &str, limit: usize, whole: usize) -> Option<String> {
    // Most texts are far shorter than their bound, whatever is in them.
    if text.len() * 6 <= limit || json_escaped_length(text) <= limit {
        return None;
    }
    // Room for the mark in the middle.
    let room = limit.saturating_sub(80);
    let head = fitting_byte_count(text.chars(), room / 4 * 3);
    let tail = fitting_byte_count(text.chars().rev(), room / 4);
    let head = text.get(..head).unwrap_or_default();
    let tail = text.get(text.len() - tail..).unwrap_or_default();
    Some(format!(
        "{head}… [cut by checkrein: {whole} bytes in all] …{tail}"
    ))
}

/// How many bytes of the text's characters fit.
fn fitting_byte_count(chars: impl Iterator<Item = char>, limit: usize) -> usize {
    let mut room = limit;
    let mut bytes = 0;
    for char in chars {
        let Some(left) = room.checked_sub(json_char_length(char)) else {
            break;
        };
        room = left;
        bytes += char.len_utf8();
    }
    bytes
}

fn json_escaped_length(text: &str) -> usize {
    text.chars().map(json_char_length).sum()
}

/// Bytes of a character within a JSON string.
fn json_char_length(char: char) -> usize {
    match char {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        // JSON writes these as `\u00XX`.
        '\0'..='\u{1f}' => 6,
        _ => char.len_utf8(),
    }
}

/// Bytes of a result's beginning and of its end that are kept for a second model.
const EXCERPT_HEAD: usize = 200;
const EXCERPT_TAIL: usize = 160;
/// Bytes at the cut of a huge result in which half a secret may stand.
const UNSEEN_AT_CUT: usize = 8 * 1024;

/// Returns the beginning and the end of a result, on one line and without secrets.
pub(crate) fn excerpt_of_result(redactor: &Redactor, result: &serde_json::Value) -> Box<str> {
    let text = tool_result_text(result);
    let is_cut = text.len() > SCANNED_END;
    let head_end = text.floor_char_boundary(text.len().min(SCANNED_END));
    let tail_begin = text.ceil_char_boundary(text.len().saturating_sub(SCANNED_END));
    let on_one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let hidden = redactor.redact_text(text.get(..head_end).unwrap_or_default());
    // A secret across the cut was not seen as a whole: what lies near the cut is left out.
    let seen = hidden
        .len()
        .saturating_sub(if is_cut { UNSEEN_AT_CUT } else { 0 });
    let head = on_one_line(
        hidden
            .get(..hidden.floor_char_boundary(seen))
            .unwrap_or_default(),
    );
    if !is_cut && head.len() <= EXCERPT_HEAD + EXCERPT_TAIL {
        return head.into();
    }
    let tail = match is_cut {
        true => {
            let hidden = redactor.redact_text(text.get(tail_begin..).unwrap_or_default());
            let unseen = hidden.ceil_char_boundary(UNSEEN_AT_CUT.min(hidden.len()));
            on_one_line(hidden.get(unseen..).unwrap_or_default())
        }
        // All of it is in the head.
        false => head.clone(),
    };
    let head = head
        .get(..head.floor_char_boundary(EXCERPT_HEAD))
        .unwrap_or_default();
    let tail_len = tail.len().saturating_sub(EXCERPT_TAIL);
    let tail = tail
        .get(tail.ceil_char_boundary(tail_len)..)
        .unwrap_or_default();
    format!("{head} [...] {tail}").into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use checkrein_core::input::CommandWithRuleDecision;

    #[test]
    fn both_ends_are_kept_and_the_rest_is_counted() {
        assert_eq!(truncate_middle("short", 1000, 5), None);
        let exact = "a".repeat(1000);
        assert_eq!(truncate_middle(&exact, 1000, 1000), None);
        let long = format!("begin{}é{}end", "a".repeat(4000), "b".repeat(4000));
        let cut = truncate_middle(&long, 1000, long.len()).unwrap();
        assert!(
            cut.starts_with("beginaaa") && cut.ends_with("bbbend"),
            "{cut}"
        );
        assert!(cut.contains("8010 bytes in all]"), "{cut}");
        assert!(cut.len() <= 1000);
    }

    #[test]
    fn the_bound_is_that_of_the_bytes_written() {
        for char in ["\u{1}", "\"", "é", "\n"] {
            let cut = truncate_middle(&char.repeat(10_000), 1000, 10_000).unwrap();
            let written = serde_json::to_string(&cut).unwrap();
            assert!(written.len() <= 1002, "{}", written.len());
        }
    }

    #[test]
    fn commands_that_find_no_room_go_whole() {
        let command = CommandWithRuleDecision {
            argv: vec!["word".repeat(60); 10],
            rule: None,
        };
        let mut known = ToolRequestFacts {
            commands: vec![command; 64],
            ..ToolRequestFacts::default()
        };
        redact_and_limit_tool_facts(&Redactor::default(), &mut known);
        assert!(serde_json::to_vec(&known.commands).unwrap().len() < COMMANDS_LIMIT);
        assert_eq!(known.commands.len(), 4);
    }
}
