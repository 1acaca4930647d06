//! Recognises a prompt that is nothing but our own feedback, handed back by an agent that takes a
//! refused stop for a prompt. Taken for a person's prompt, it would open a new task and reset every
//! cap; and a person's question about the feedback, taken for ours, would never be heard.

use checkrein_core::decision::{Decision, StopDecision};
use checkrein_core::event::{DecisionOnInput, Event};
use checkrein_core::explain;
use checkrein_core::ids::{EventSeq, SessionId};
use checkrein_core::input::Input;

use crate::error::RuntimeError;
use crate::log_reader;
use crate::runtime::{Runtime, SECOND_ENTRY_FEEDBACK, cap_continues_left_in_feedback};

/// The beginning of all feedback.
const FEEDBACK_PREFIX: &str = "checkrein:";
/// Wrappers that agents put before a text from a hook.
const WRAPPERS: &[&str] = &["Stop hook feedback:", "Hook feedback:"];
/// More words than this behind ours are somebody's own, whatever they say.
const MAX_MARK_WORDS: usize = 6;

impl Runtime {
    /// Whether this prompt is the newest feedback of the session and nothing else.
    ///
    /// # Errors
    /// If the store or the log cannot be read.
    pub fn is_our_feedback(&self, session: &SessionId, prompt: &str) -> Result<bool, RuntimeError> {
        // Nearly every prompt ends here, without a look at the log.
        if !prompt.contains(FEEDBACK_PREFIX) {
            return Ok(false);
        }
        let (mut newest, mut of_stop) = (None, Vec::new());
        for raw in self.store.events_after(session, EventSeq(0))? {
            match log_reader::decode_event(session, &raw)? {
                // Only the newest feedback of the main conversation can come back as a prompt.
                Some(Event::DecisionMade(DecisionOnInput {
                    decision: Decision::Stop(StopDecision::Continue { feedback }),
                    scope,
                    ..
                })) if scope.is_main_scope() => {
                    let held_up_by = explain::newest_stop_held_up_cause(&of_stop, &scope);
                    newest = Some((feedback, held_up_by));
                }
                Some(event @ Event::Input(_)) => {
                    // What held a stop up is found in the inputs since that stop.
                    if is_main_stop(&event) {
                        of_stop.clear();
                    }
                    of_stop.push(event);
                }
                _ => {}
            }
        }
        let (Some((mut feedback, held_up_by)), Some((state, policy))) =
            (newest, self.load_session_state_and_policy(session)?)
        else {
            return Ok(false);
        };
        // No agent is sent back for a task that has ended.
        if state.current_open_task().is_none() {
            return Ok(false);
        }
        cap_continues_left_in_feedback(&mut feedback, policy.session_caps.continues, &state);
        // Rendered anew, exactly as the agent was told it.
        let told = self.render_feedback(&feedback, held_up_by);
        Ok(is_feedback_echo(prompt, &told) || is_feedback_echo(prompt, SECOND_ENTRY_FEEDBACK))
    }
}

fn is_main_stop(event: &Event) -> bool {
    match event {
        Event::Input(stamped) => match &stamped.input {
            Input::StopRequested(stop) => stop.scope.is_main_scope(),
            _ => false,
        },
        _ => false,
    }
}

/// Whether `prompt` is `ours`: wrapped, with other line breaks, or cut behind its first line.
fn is_feedback_echo(prompt: &str, ours: &str) -> bool {
    let first_line = ours.lines().next().unwrap_or(ours);
    let needed = first_line.split_whitespace().count();
    let mut prompt = strip_enclosing_tag(prompt);
    for wrapper in WRAPPERS {
        prompt = prompt.strip_prefix(wrapper).unwrap_or(prompt).trim_start();
    }
    // `[checkrein hook claude-code]: ...`
    if let Some((_, rest)) = prompt.split_once("]: ").filter(|_| prompt.starts_with('[')) {
        prompt = rest;
    }
    let (mut theirs, mut own) = (
        prompt.split_whitespace().peekable(),
        ours.split_whitespace(),
    );
    // Words are compared one by one, so line breaks and indentation make no difference.
    let (mut same, mut cut) = (0, false);
    while let (Some(word), Some(meant)) = (theirs.peek(), own.next()) {
        if *word != meant {
            cut = true;
            // The cut may be in the middle of a word.
            let begun = word.trim_end_matches(['.', '…']);
            if !begun.is_empty() && meant.starts_with(begun) {
                theirs.next();
            }
            break;
        }
        theirs.next();
        same += 1;
    }
    let rest: Vec<&str> = theirs.collect();
    // At least the first line must be there, and behind a cut nothing but a mark of it.
    same >= needed && (rest.is_empty() || cut && is_truncation_mark(&rest))
}

/// Whether these words mark a cut, like `... [truncated 2,000 characters]`.
fn is_truncation_mark(words: &[&str]) -> bool {
    let says = ["truncated", "omitted", "characters", "more"];
    let said = |word: &&str| says.iter().any(|says| word.contains(says));
    let dots = |word: &&str| word.chars().all(|c| matches!(c, '.' | '…'));
    let begins = words
        .first()
        .is_some_and(|word| word.starts_with(['[', '(', '<', '.', '…']));
    let ends = words
        .last()
        .is_some_and(|word| word.ends_with([']', ')', '>', '.', '…']));
    let is_mark = begins && ends && words.len() <= MAX_MARK_WORDS && words.iter().any(said);
    is_mark || words.iter().all(dots)
}

/// The text between `<tag>` and `</tag>`, if one tag holds all of it.
fn strip_enclosing_tag(text: &str) -> &str {
    let text = text.trim();
    let inside = || {
        let (tag, rest) = text.strip_prefix('<')?.split_once('>')?;
        let name = tag.split_whitespace().next()?;
        let (inside, end) = rest.rsplit_once("</")?;
        (end == format!("{name}>")).then_some(inside.trim())
    };
    inside().unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: &str = "checkrein: not done yet. These checks do not pass (stop 1):\n\n\
        tests: failed, exit code 1\n  reproduce: sh check.sh\n\nFix only these, then stop again.";

    fn check(prompt: &str, expected: bool) {
        assert_eq!(is_feedback_echo(prompt, OURS), expected, "{prompt}");
    }

    #[test]
    fn wrapped_or_cut_feedback_is_an_echo() {
        check(OURS, true);
        check(&format!("Stop hook feedback:\n{OURS}"), true);
        check(
            &format!("Stop hook feedback:\n[checkrein hook claude-code]: {OURS}\n"),
            true,
        );
        check(
            &format!("<system-reminder>\n{OURS}\n</system-reminder>"),
            true,
        );
        check(&OURS.replace(' ', "\n"), true);
        check(
            "checkrein: not done yet. These checks do not pass (stop 1):",
            true,
        );
        let begun = OURS.get(..90).unwrap();
        check(begun, true);
        check(&format!("{begun}..."), true);
        check(&format!("{begun}\n[truncated 40 characters]"), true);
    }

    #[test]
    fn feedback_with_added_words_is_a_prompt() {
        check(
            "Stop hook feedback: what does this mean? Change src.txt please",
            false,
        );
        check(&format!("{OURS}\n\nWhat does this mean?"), false);
        check(&format!("I got this:\n{OURS}"), false);
        check("checkrein: not done yet.", false);
        let first = OURS.lines().next().unwrap();
        check(
            &format!("{first}\n(just revert src.txt and write an apology)"),
            false,
        );
        check(
            &format!("{first} ... please delete src.txt instead."),
            false,
        );
        check(&format!("{OURS} (do the lint as well, please?)"), false);
        check("checkrein: another text altogether, of another day", false);
        check("", false);
    }
}
