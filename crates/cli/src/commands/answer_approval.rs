//! `checkrein approve` and `checkrein deny`: a person at a terminal answers a parked question after
//! seeing exactly what it is about.

use std::io::BufRead as _;
use std::path::Path;
use std::process::ExitCode;

use checkrein_core::input::PersonAnswer;
use checkrein_runtime::config::TaskDriverKind;
use checkrein_runtime::{ApprovalSubjectFreshness, Deadline};
use checkrein_store::{ApprovalStatus, ApprovalSubject, StoredApprovalRequest};

use crate::args::ApprovalAnswerArgs;
use crate::commands::trust::ask_yes_no;
use crate::commands::{approvals, engine};
use crate::person::{self, PersonCallerEvidence};
use crate::ui::errors::CommandError;
use crate::ui::line::StyledLine;
use crate::ui::printable::escape_hidden_chars;
use crate::ui::style::{TextStyle, count_with_noun, format_duration, format_local_time_of_day};
use crate::{exit_code, locate, signals, ui};

pub(crate) fn run_approve_command(args: &ApprovalAnswerArgs) -> Result<ExitCode, CommandError> {
    let by = person::require_person("approve")?;
    record_approval_answer(args, true, &by)
}

pub(crate) fn run_deny_command(args: &ApprovalAnswerArgs) -> Result<ExitCode, CommandError> {
    let by = person::require_person("deny")?;
    record_approval_answer(args, false, &by)
}

fn record_approval_answer(
    args: &ApprovalAnswerArgs,
    approved: bool,
    by: &PersonCallerEvidence,
) -> Result<ExitCode, CommandError> {
    let located = locate::locate_project(&std::env::current_dir()?, None);
    let rows = approvals::load_approvals(&located)?;
    let row = find_approval(&rows, &args.id)?;
    let now = checkrein_runtime::now_millis();
    let stands = row.approval_status_at(now);
    // An answer that came too late or twice must not look as if it counted.
    if stands != ApprovalStatus::Asked {
        return Err(CommandError::cli_failure_error(match stands {
            ApprovalStatus::Expired => format!(
                "{} ran out at {}: the agent has to ask again",
                row.id,
                format_local_time_of_day(row.until, now)
            ),
            stands => format!("{} was answered before: it is {}", row.id, stands.as_str()),
        }));
    }
    let store = engine::open_store(&located.place)?;
    // The question may have been asked in another checkout that shares this state folder.
    let at_root = located.with_project_root(Path::new(&row.root));
    let runtime = engine::build_checkrein_runtime(&at_root, store, TaskDriverKind::Hook);
    let patience = Deadline {
        due_at: None,
        cancelled: &signals::CANCELLED,
    };
    // A call is fixed by its own text. Only work depends on the tree as it lies there now.
    let lies = match &row.about {
        ApprovalSubject::Call { .. } => None,
        ApprovalSubject::Work { .. } => {
            Some(runtime.compare_tree_with_approval_subject(row, patience)?)
        }
    };
    print_approval(row, lies.as_ref().and_then(Option::as_ref));
    // Before the question: a person must not be asked for a yes that cannot be given. A no
    // always can.
    if approved {
        ensure_approvable(row, lies.as_ref())?;
    }
    let Some(reason) = confirm_approval_and_ask_reason(args, approved)? else {
        ui::print_line_to_stdout("not approved: it waits on");
        return Ok(exit_code::to_exit_code(exit_code::NO));
    };
    if approved && lies.is_some() {
        // The person may have looked for a while, and the tree may have changed meanwhile.
        ensure_approvable(
            row,
            Some(&runtime.compare_tree_with_approval_subject(row, patience)?),
        )?;
    }
    let answer = PersonAnswer {
        approved,
        by: by.person_presence_log_line(),
        reason,
    };
    let answered = runtime.answer_approval(row, answer, patience)?;
    let until = format_local_time_of_day(answered.until, checkrein_runtime::now_millis());
    ui::print_line_to_stdout(&match (approved, &row.about) {
        (true, ApprovalSubject::Call { .. }) => {
            format!("approved: exactly this call may be made once, until {until}")
        }
        (true, ApprovalSubject::Work { .. }) => {
            format!("approved: exactly this, until {until}; an edit voids it")
        }
        (false, ApprovalSubject::Call { .. }) => {
            format!("denied: exactly this call is refused, until {until}")
        }
        (false, ApprovalSubject::Work { .. }) => format!("denied: exactly this, until {until}"),
    });
    // An approved call is asked for by the agent again; approved work waits for the next
    // stop.
    match &row.about {
        ApprovalSubject::Work { message: None, .. } if approved => {
            ui::print_wrapped_to_stderr(
                "The agent's next stop is judged by it: prompt it again, or run it again.",
            );
        }
        ApprovalSubject::Work { .. } if approved => {
            ui::print_wrapped_to_stderr(
                "The session's next stop is judged by it, on this tree: prompt it again, or checkrein run --resume ID.",
            );
        }
        _ => {}
    }
    Ok(exit_code::to_exit_code(exit_code::YES))
}

/// Checks that a person can say yes: they see all of it, and what lies here is what it is about.
fn ensure_approvable(
    row: &StoredApprovalRequest,
    lies: Option<&Option<ApprovalSubjectFreshness>>,
) -> Result<(), CommandError> {
    let id = &row.id;
    if let Some(unseen) = row.unapprovable_reason() {
        return Err(CommandError::cli_failure_error(format!(
            "{id} cannot be approved: {unseen}. The agent has to ask again, for what can be shown; checkrein deny {id} refuses this"
        )));
    }
    match lies {
        None
        | Some(Some(ApprovalSubjectFreshness {
            is_unchanged: true, ..
        })) => Ok(()),
        Some(Some(ApprovalSubjectFreshness {
            is_unchanged: false,
            ..
        })) => Err(CommandError::cli_failure_error(format!(
            "{id} was asked about other content than lies in {} now: what you see there is not what you would approve. It is asked anew when the agent stops again",
            escape_hidden_chars(&row.root)
        ))),
        Some(None) => Err(CommandError::cli_failure_error(format!(
            "{id} is asked by nothing any more: the policy of its session has changed, or an earlier version of checkrein asked it"
        ))),
    }
}

/// Finds the question by its id, with or without `ap-`.
fn find_approval<'a>(
    rows: &'a [StoredApprovalRequest],
    id: &str,
) -> Result<&'a StoredApprovalRequest, CommandError> {
    let wanted = id.trim_start_matches("ap-");
    let fits = |row: &&StoredApprovalRequest| {
        let long = row.long_approval_id();
        // An empty id would fit every question.
        !wanted.is_empty() && long.trim_start_matches("ap-").starts_with(wanted)
    };
    let fitting: Vec<&StoredApprovalRequest> = rows.iter().filter(fits).collect();
    match fitting.as_slice() {
        [] => Err(CommandError::usage_error(
            format!("nothing that was asked here is known as '{id}'"),
            "checkrein approvals lists them",
        )),
        [one] => Ok(one),
        several => {
            let named = several.iter().map(|row| {
                let mut long = row.long_approval_id();
                // Eight more characters than were typed tell the candidates apart.
                long.truncate((id.len() + 8).max(16));
                format!(
                    "{long} ({})",
                    StyledLine::from(&approvals::approval_summary(row))
                        .truncated_to_width(40)
                        .text_without_styling()
                )
            });
            let named: Vec<String> = named.take(8).collect();
            Err(CommandError::usage_error(
                format!("'{id}' could be several: {}", named.join(", ")),
                "write as much of one of these ids as tells it from the others",
            ))
        }
    }
}

/// Commands of a call that are listed, the severest first.
const MAX_COMMANDS: usize = 12;
/// Columns of each command.
const COMMAND_COLUMNS: usize = 160;
/// More blanks than this in a row only push text out of sight.
const MAX_BLANKS: usize = 20;

/// Prints everything as it will be recorded. Nothing here is taken from the agent's description.
fn print_approval(row: &StoredApprovalRequest, lies: Option<&ApprovalSubjectFreshness>) {
    let row_of = |name: &str, text: &str| ui::print_line_to_stdout(&format!("  {name:<9}{text}"));
    let line = |name: &str, text: &str| row_of(name, &escape_hidden_chars(text));
    let lines = |name: &str, text: &str| {
        for (at, text) in replace_empty_lines_by_count(text).iter().enumerate() {
            line(if at == 0 { name } else { "" }, text);
        }
    };
    let hidden = |words: u32| {
        if words > 0 {
            line(
                "hidden",
                &format!("{}, taken for a secret", count_with_noun(words, "word")),
            );
        }
    };
    ui::print_line_to_stdout(StyledLine::line_from_styled_text(
        TextStyle::Strong,
        &row.id,
    ));
    match &row.about {
        ApprovalSubject::Call {
            tool,
            text,
            details: beside,
        } => {
            line("tool", tool);
            lines("call", text);
            if let Some(beside) = beside {
                lines("with", &beside.args.join("\n"));
                lines("in", beside.folder.as_deref().unwrap_or_default());
                hidden(beside.hidden);
            }
        }
        ApprovalSubject::Work {
            verifier,
            subject,
            message,
        } => {
            line("verifier", verifier);
            line("on", &subject.to_hex());
            if let Some(message) = message {
                lines("message", &message.text);
                hidden(message.hidden);
            } else if let Some(lies) = lies {
                match lies.inputs.is_empty() {
                    true => line("files", "all that are judged here"),
                    false => lines("files", &lies.inputs.join("\n")),
                }
            }
        }
    }
    lines("why", &row.why);
    line("agent", &format!("{} in {}", row.agent, row.root));
    line(
        "asked",
        &format!(
            "{} ago",
            format_duration(checkrein_runtime::now_millis().millis_since(row.at))
        ),
    );
    // The commands stand nearest to the question, however long the call is.
    if let ApprovalSubject::Call {
        text,
        details: beside,
        ..
    } = &row.about
    {
        let commands = beside.as_ref().map_or(&[][..], |beside| &beside.commands);
        if !commands.is_empty() {
            let of = count_with_noun(text.lines().count() as u64, "line");
            line("runs", &format!("in {of}, the severest first:"));
        }
        for command in commands.iter().take(MAX_COMMANDS) {
            // The whole command stands above, in the call.
            let command = escape_hidden_chars(&shorten_blank_runs(command));
            row_of(
                "",
                &StyledLine::from(&command)
                    .truncated_to_width(COMMAND_COLUMNS)
                    .text_without_styling(),
            );
        }
        let more = commands.len().saturating_sub(MAX_COMMANDS);
        if more > 0 {
            line("", &format!("and {more} more, in the call above"));
        }
    }
}

/// Returns the lines of a text, with empty lines counted and not shown.
fn replace_empty_lines_by_count(text: &str) -> Vec<String> {
    let mut folded = Vec::new();
    let mut empty = 0_u64;
    // The chained empty line counts itself, hence the `- 1` below.
    for line in text.lines().chain([""]).map(shorten_blank_runs) {
        if line.trim().is_empty() {
            empty += 1;
            continue;
        }
        if empty > 0 {
            folded.push(format!("({})", count_with_noun(empty, "empty line")));
        }
        empty = 0;
        folded.push(line);
    }
    if empty > 1 {
        folded.push(format!("({})", count_with_noun(empty - 1, "empty line")));
    }
    folded
}

fn shorten_blank_runs(line: &str) -> String {
    let mut kept = String::new();
    let mut rest = line;
    while let Some(begin) = rest.find(char::is_whitespace) {
        let (before, after) = rest.split_at(begin);
        let next = after.trim_start();
        let gap = after.len() - next.len();
        let blanks = after.get(..gap).unwrap_or_default();
        kept.push_str(before);
        match blanks.chars().count() {
            // A gap at the end of a line hides nothing.
            many if many > MAX_BLANKS && !next.is_empty() => {
                kept.push_str(&format!(" ({many} blanks) "));
            }
            _ => kept.push_str(blanks),
        }
        rest = next;
    }
    kept.push_str(rest);
    kept
}

/// Asks for the reason. Returns `None` if the person does not approve after all; the yes is asked
/// for before the reason.
fn confirm_approval_and_ask_reason(
    args: &ApprovalAnswerArgs,
    approved: bool,
) -> Result<Option<Option<String>>, CommandError> {
    let given = args
        .reason
        .as_deref()
        .map(str::trim)
        .filter(|text| !text.is_empty())
        .map(str::to_owned);
    if !approved {
        return Ok(Some(given));
    }
    if !ask_yes_no("Approve exactly this?")? {
        return Ok(None);
    }
    if given.is_some() {
        return Ok(Some(given));
    }
    ui::print_question("Why, in a few words (nothing: not approved): ");
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    let line = line.trim();
    Ok((!line.is_empty()).then(|| Some(line.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use checkrein_core::digest::Digest;

    #[test]
    fn emptiness_is_told_of() {
        let check = |text: &str, expected: &[&str]| {
            assert_eq!(replace_empty_lines_by_count(text), expected, "{text:?}")
        };
        check("ls", &["ls"]);
        check("ls\n", &["ls"]);
        check("a\n\nb", &["a", "(1 empty line)", "b"]);
        let long = format!("rm -rf ~{}git push", "\n \t".repeat(60) + "\n");
        check(&long, &["rm -rf ~", "(60 empty lines)", "git push"]);
        check("a\n\n\n", &["a", "(2 empty lines)"]);
        let wide = format!("rm -rf ~;{}git push", " ".repeat(5000));
        check(&wide, &["rm -rf ~; (5000 blanks) git push"]);
        check("a  b   c", &["a  b   c"]);
    }

    #[test]
    fn two_questions_of_one_id_can_be_told_apart() {
        let row = |key: &str| -> StoredApprovalRequest {
            let key = Digest::hash_bytes(key.as_bytes()).to_hex();
            let text = format!(
                r#"{{"id":"ap-00000001","key":"{key}","nth":0,"session":"s","task":1,"agent":"codex","root":"/r",
                "about":{{"call":{{"tool":"Bash","text":"ls"}}}},"why":"w","at":1,"until":2,"answer":null,"used_at":null}}"#
            );
            serde_json::from_str(&text).unwrap()
        };
        let rows = [row("one"), row("other")];
        for id in ["ap-00000001", "0", ""] {
            assert!(find_approval(&rows, id).is_err(), "{id}");
        }
        for row in &rows {
            let mut more = row.long_approval_id();
            more.truncate(20);
            assert_eq!(find_approval(&rows, &more).ok(), Some(row));
        }
        assert_eq!(find_approval(&rows[..1], "ap-00000001").ok(), rows.first());
    }
}
