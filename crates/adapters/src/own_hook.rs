//! Recognises our own hook entries: exactly one call of `checkrein hook AGENT`, alone or behind one
//! of the guards that `init` writes. Anything else in the line makes the entry somebody else's,
//! because our entries are removed, reviewed in a person's name, and tried out.

use crate::settings::HookHandlerInvocation;

/// The guard of a committed entry: on a machine without checkrein the agent goes on.
pub const SKIP_IF_MISSING: &str = "command -v checkrein >/dev/null 2>&1 || exit 0; exec ";
/// The guard that stands before `hook ...`: `$0` is the program, `$1` the message if the program is
/// gone. The agent's request is refused then.
pub const REFUSE_IF_MISSING: &str = "test -x \"$0\" || { echo \"$1\" >&2; exit 2; }; exec \"$0\" ";

/// Returns [`SKIP_IF_MISSING`] for the beginning of a session, where a person is told that
/// checkrein is missing. `None` if the message could be more than a message to a shell.
pub fn missing_checkrein_warning_script(message: &str) -> Option<String> {
    let plain = |c: char| !c.is_control() && !"\"'$`\\!".contains(c);
    message
        .chars()
        .all(plain)
        .then(|| format!("{NOTICE_GUARD_START}{message}{NOTICE_GUARD_END}"))
}

const NOTICE_GUARD_START: &str = "command -v checkrein >/dev/null 2>&1 || { grep -q \"source.*startup\" && echo \"{\\\"systemMessage\\\":\\\"";
const NOTICE_GUARD_END: &str = "\\\"}\"; exit 0; }; exec ";

/// The one call of an entry of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckreinHookCommand {
    /// The program, `hook`, the agent, and all that follows.
    pub words: Vec<String>,
    wrapper: HookShellWrapper,
}

/// The shell code around a call.
#[derive(Debug, Clone, PartialEq, Eq)]
enum HookShellWrapper {
    Bare,
    /// `sh -c GUARD...`, in which the call is spelled out.
    Guard {
        shell: String,
        guard: String,
    },
    /// The same, with the program as `$0` and a note as `$1`.
    Note {
        shell: String,
        note: String,
    },
}

impl CheckreinHookCommand {
    /// Recognises an entry of ours. `None` if this is anything else, or anything more.
    pub fn recognize_hook_command(call: &HookHandlerInvocation) -> Option<Self> {
        let words = match call {
            HookHandlerInvocation::Command {
                command,
                args: Some(args),
            } => std::iter::once(command).chain(args).cloned().collect(),
            HookHandlerInvocation::Command {
                command,
                args: None,
            } => split_plain_command_words(command)?,
            // Handlers that are no commands (HTTP, MCP, prompts) are never written by `init`.
            HookHandlerInvocation::Other(_) => return None,
        };
        match words.as_slice() {
            [shell, flag, script, rest @ ..]
                // Only the shells that `init` writes. Another shell may read the same script
                // differently.
                if flag == "-c" && matches!(shell.as_str(), "sh" | "/bin/sh") =>
            {
                parse_guarded_hook_script(shell, script, rest)
            }
            _ => is_hook_command(&words).then_some(Self {
                words,
                wrapper: HookShellWrapper::Bare,
            }),
        }
    }

    /// Returns the same entry with these words in place of its own, in the form of `like`.
    pub fn hook_with_replaced_command(
        &self,
        words: &[String],
        like: &HookHandlerInvocation,
    ) -> HookHandlerInvocation {
        let spelled = |words: &[String]| {
            let quoted: Vec<String> = words.iter().map(|word| quote_shell_word(word)).collect();
            quoted.join(" ")
        };
        let all = match &self.wrapper {
            HookShellWrapper::Bare => words.to_vec(),
            HookShellWrapper::Guard { shell, guard } => {
                vec![
                    shell.clone(),
                    "-c".to_owned(),
                    format!("{guard}{}", spelled(words)),
                ]
            }
            HookShellWrapper::Note { shell, note } => {
                // The program stays outside of the script, as `$0`: the guard tests it before it is
                // started.
                let (program, rest) = words
                    .split_first()
                    .map_or((String::new(), &[][..]), |(program, rest)| {
                        (program.clone(), rest)
                    });
                let script = format!("{REFUSE_IF_MISSING}{}", spelled(rest));
                vec![
                    shell.clone(),
                    "-c".to_owned(),
                    script,
                    program,
                    note.clone(),
                ]
            }
        };
        match (like, all.split_first()) {
            (HookHandlerInvocation::Command { args: Some(_), .. }, Some((program, rest))) => {
                HookHandlerInvocation::Command {
                    command: program.clone(),
                    args: Some(rest.to_vec()),
                }
            }
            _ => HookHandlerInvocation::Command {
                command: spelled(&all),
                args: None,
            },
        }
    }
}

fn parse_guarded_hook_script(
    shell: &str,
    script: &str,
    rest: &[String],
) -> Option<CheckreinHookCommand> {
    let shell = shell.to_owned();
    if let (Some(call), [program, note]) = (script.strip_prefix(REFUSE_IF_MISSING), rest) {
        let mut words = vec![program.clone()];
        words.extend(split_plain_command_words(call)?);
        let around = HookShellWrapper::Note {
            shell,
            note: note.clone(),
        };
        return is_hook_command(&words).then_some(CheckreinHookCommand {
            words,
            wrapper: around,
        });
    }
    // The guard is rebuilt from its message and compared as a whole: a prefix alone could be
    // followed by other commands.
    let guard = match script.strip_prefix(NOTICE_GUARD_START) {
        Some(told) => missing_checkrein_warning_script(told.split_once(NOTICE_GUARD_END)?.0)?,
        None => SKIP_IF_MISSING.to_owned(),
    };
    let words = split_plain_command_words(script.strip_prefix(&guard)?)?;
    // These guards look for `checkrein` on the PATH, so a path here was not written by `init`.
    let named = words.first().is_some_and(|program| program == "checkrein");
    (rest.is_empty() && named && is_hook_command(&words)).then_some(CheckreinHookCommand {
        words,
        wrapper: HookShellWrapper::Guard { shell, guard },
    })
}

/// Returns whether the words are `checkrein hook AGENT ...`. A binary by another name is recognised
/// by the arguments that `init` writes behind it.
fn is_hook_command(words: &[String]) -> bool {
    let [program, hook, agent, rest @ ..] = words else {
        return false;
    };
    let name = program.rsplit(['/', '\\']).next().unwrap_or(program);
    let named = name == "checkrein" || name.eq_ignore_ascii_case("checkrein.exe");
    let written = || {
        matches!(rest, [source, _, deadline, ..] if source == "--source" && deadline == "--deadline")
            // Such a binary has to be named by a path: a bare name could be any program.
            && program.len() > name.len()
    };
    let agent_named = agent.starts_with(|c: char| c.is_ascii_alphabetic());
    hook == "hook" && agent_named && (named || written()) && !is_assignment(program)
}

/// Returns whether a word is `NAME=...`, which sets a variable for a command and is no program.
fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        name.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic())
            && name
                .chars()
                .all(|c| c == '_' || c == '+' || c.is_ascii_alphanumeric())
    })
}

/// Splits one simple command in which a shell has nothing to expand; `None` for all else.
fn split_plain_command_words(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let (mut word, mut begun, mut quote) = (String::new(), false, None);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        // A line break separates commands, and no entry of ours holds any other control.
        if c.is_control() {
            return None;
        }
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            // Within single quotes everything is literal, so this arm is before the expansions.
            (Some('\''), c) => word.push(c),
            // These expand within double quotes; `!` is history expansion in interactive shells.
            (Some(_), '$' | '`' | '!') => return None,
            // POSIX: within double quotes a backslash escapes only `"`, `\`, `$` and a backquote.
            (Some(_), '\\') => match chars.next_if(|next| "\"\\$`".contains(*next)) {
                Some(next) => word.push(next),
                None => word.push('\\'),
            },
            (Some(_), c) => word.push(c),
            (None, '\'' | '"') => (quote, begun) = (Some(c), true),
            (None, '\\') => {
                word.push(chars.next().filter(|next| !next.is_control())?);
                begun = true;
            }
            (None, ' ') => {
                if begun {
                    words.push(std::mem::take(&mut word));
                }
                begun = false;
            }
            (None, c) if is_shell_plain_char(c) => {
                word.push(c);
                begun = true;
            }
            // Anything else may be an operator, a glob or an expansion to some shell.
            (None, _) => return None,
        }
    }
    if begun {
        words.push(word);
    }
    // A quote that is still open is a syntax error to a shell.
    quote.is_none().then_some(words)
}

/// Returns whether a character has no meaning to any shell, wherever it stands in a word.
fn is_shell_plain_char(c: char) -> bool {
    c.is_alphanumeric() || "/._-+:=@%,".contains(c)
}

fn quote_shell_word(word: &str) -> String {
    if !word.is_empty() && word.chars().all(is_shell_plain_char) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(command: &str) -> HookHandlerInvocation {
        HookHandlerInvocation::Command {
            command: command.to_owned(),
            args: None,
        }
    }

    fn direct(command: &str, args: &[&str]) -> HookHandlerInvocation {
        HookHandlerInvocation::Command {
            command: command.to_owned(),
            args: Some(args.iter().map(|arg| (*arg).to_owned()).collect()),
        }
    }

    #[test]
    fn our_entries_are_known_in_every_form_we_write() {
        let shared =
            format!("{SKIP_IF_MISSING}checkrein hook codex --source project --deadline 10");
        let told = format!(
            "{}checkrein hook codex",
            missing_checkrein_warning_script("It is gone (.codex/hooks.json).").unwrap()
        );
        let must = format!("{REFUSE_IF_MISSING}hook codex --source user");
        for ours in [
            direct("checkrein", &["hook", "claude-code"]),
            direct("/opt/my tools/checkrein", &["hook", "codex"]),
            direct(
                "/tmp/rein-2",
                &["hook", "codex", "--source", "user", "--deadline", "3"],
            ),
            shell("checkrein hook codex --source project"),
            shell("'/opt/it'\\''s/checkrein' hook codex"),
            shell("\"C:\\\\x\\\\checkrein.exe\" hook codex"),
            shell("'/opt/a=b/rein 2' hook codex --source user --deadline 3 --state '/a b'"),
            shell(&format!("sh -c {}", quote_shell_word(&shared))),
            shell(&format!("sh -c {}", quote_shell_word(&told))),
            shell(&format!(
                "sh -c {} /x/checkrein 'gone; see $HOME'",
                quote_shell_word(&must)
            )),
            direct("sh", &["-c", &shared]),
        ] {
            let known = CheckreinHookCommand::recognize_hook_command(&ours)
                .unwrap_or_else(|| panic!("{ours:?}"));
            let again = known.hook_with_replaced_command(&known.words, &ours);
            assert_eq!(
                CheckreinHookCommand::recognize_hook_command(&again),
                Some(known),
                "{ours:?} {again:?}"
            );
        }
    }

    #[test]
    fn one_call_and_nothing_beside_it() {
        for (before, behind) in [
            ("touch x; ", ""),
            ("touch x && ", ""),
            ("touch x || ", ""),
            ("touch x | ", ""),
            ("touch x & ", ""),
            ("touch x\n", ""),
            ("$(touch x) ", ""),
            ("`touch x` ", ""),
            ("A=b ", ""),
            ("A=/x/", ""),
            ("env A=b ", ""),
            ("exec ", ""),
            ("time ", ""),
            ("! ", ""),
            ("(", ")"),
            ("{ ", "; }"),
            ("./tools/x ", ""),
            ("\"$(touch x)/\"", ""),
            ("~/", ""),
            ("$HOME/", ""),
            ("", "; touch x"),
            ("", " && touch x"),
            ("", " || touch x"),
            ("", " | sh"),
            ("", " & touch x"),
            ("", "\ntouch x"),
            ("", " $(touch x)"),
            ("", " \"$(touch x)\""),
            ("", " `touch x`"),
            ("", " <(touch x)"),
            ("", " > x"),
            ("", " < x"),
            ("", " # x"),
            ("", " *"),
            ("", " 'open"),
        ] {
            let line =
                format!("{before}checkrein hook codex --source project --deadline 3{behind}");
            assert_eq!(
                CheckreinHookCommand::recognize_hook_command(&shell(&line)),
                None,
                "{line}"
            );
            let nested = format!("sh -c {}", quote_shell_word(&line));
            assert_eq!(
                CheckreinHookCommand::recognize_hook_command(&shell(&nested)),
                None,
                "{nested}"
            );
            assert_eq!(
                CheckreinHookCommand::recognize_hook_command(&direct("sh", &["-c", &line])),
                None,
                "{line}"
            );
            let guarded = format!("{SKIP_IF_MISSING}{line}");
            if !before.is_empty() || !behind.is_empty() {
                assert_eq!(
                    CheckreinHookCommand::recognize_hook_command(&direct("sh", &["-c", &guarded])),
                    None,
                    "{guarded}"
                );
            }
        }
        let good = format!("{SKIP_IF_MISSING}checkrein hook codex");
        let must = format!("{REFUSE_IF_MISSING}hook codex");
        for other in [
            direct("checkrein", &["check"]),
            direct("checkrein", &["hook"]),
            direct("sh", &["-c", "checkrein check"]),
            direct("sh", &["-c", "checkrein hook codex"]),
            direct("./sh", &["-c", &good]),
            direct("bash", &["-c", &good]),
            direct("sh", &["-c", &good, "more"]),
            direct("sh", &["-c", &must]),
            direct("sh", &["-c", &must, "./other", "gone"]),
            direct("sh", &["-c", &must, "/x/checkrein", "gone", "more"]),
            direct("sh", &["-x", "-c", &good]),
            direct(
                "rein",
                &["hook", "codex", "--source", "user", "--deadline", "3"],
            ),
            shell(
                "touch x; sh -c 'command -v checkrein >/dev/null 2>&1 || exit 0; exec checkrein hook codex'",
            ),
            shell("echo 'checkrein hook codex'"),
            shell("mycheckrein hook codex"),
            shell("checkrein-wrapper hook codex"),
            shell("hook checkrein"),
            HookHandlerInvocation::Other("http".to_owned()),
        ] {
            assert_eq!(
                CheckreinHookCommand::recognize_hook_command(&other),
                None,
                "{other:?}"
            );
        }
        assert_eq!(missing_checkrein_warning_script("\"; touch x; \""), None);
        let told = format!(
            "{NOTICE_GUARD_START}\\\"}}\"; touch x; echo \"{NOTICE_GUARD_END}checkrein hook codex"
        );
        assert_eq!(
            CheckreinHookCommand::recognize_hook_command(&direct("sh", &["-c", &told])),
            None
        );
    }
}
