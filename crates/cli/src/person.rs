//! Finds out whether a person is asking. What loosens something is for a person at a terminal: two
//! terminals, no agent's mark in the environment, no agent among the ancestors. Under one account
//! this is a hurdle and a record, not a wall: see docs/threat-model.md.

use std::ffi::OsStr;
use std::io::IsTerminal as _;

use checkrein_verifiers::withheld;
use serde::{Deserialize, Serialize};

use crate::ui::errors::CommandError;

/// What was checked before an act was taken for a person's. It is recorded with the act.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PersonCallerEvidence {
    /// The account's name, as the environment has it.
    #[serde(default)]
    pub(crate) who: String,
    /// stdin and stderr are terminals.
    pub(crate) terminal: bool,
    /// Variables that agents set for what they run.
    pub(crate) marks: Vec<String>,
    /// Names of the processes above this one, nearest first; `None` where they cannot be told.
    pub(crate) ancestors: Option<Vec<String>>,
}

impl PersonCallerEvidence {
    /// Summarises the check in one line, for logs.
    pub(crate) fn person_presence_log_line(&self) -> String {
        let who = self.person_display_name();
        match &self.ancestors {
            Some(names) => format!(
                "{who}: terminal, no agent's marks, under {}",
                names.join(" < ")
            ),
            None => format!("{who}: terminal, no agent's marks, ancestors unknown"),
        }
    }

    /// Returns the person's name in a word or two.
    pub(crate) fn person_display_name(&self) -> &str {
        match self.who.as_str() {
            "" => "a person",
            who => who,
        }
    }
}

/// Agents by the names of their processes. `checkrein` is among them because a check or an agent
/// that we started runs under one of our own processes.
const AGENT_PROCESS_NAMES: &[&str] = &[
    "checkrein",
    "claude",
    "codex",
    "copilot",
    "cursor-agent",
    "gemini",
    "opencode",
];

/// Packages that agents come in, as their paths show when an interpreter runs them.
const AGENT_PACKAGE_PATHS: &[&str] = &[
    "/claude-code/",
    "/@openai/codex/",
    "/gemini-cli/",
    "/opencode-ai/",
];

/// Programs that run a script named by their first plain argument.
const INTERPRETERS: &[&str] = &["node", "nodejs", "bun", "deno", "python", "python3"];

/// Ancestors that are examined; no terminal is deeper than that.
#[cfg(target_os = "linux")]
const MAX_ANCESTORS: usize = 64;

/// Lets a person go on with `act`, and returns what was checked.
///
/// # Errors
/// If the caller is no person, as far as one can tell.
pub(crate) fn require_person(act: &str) -> Result<PersonCallerEvidence, CommandError> {
    let (checked, agent) = identify_person_or_agent();
    // The mark is named first: it is what a person can see and unset in a terminal of their own.
    let why = if let Some(mark) = checked.marks.first() {
        format!("{mark} is set, as it is for what an agent or CI runs")
    } else if let Some(agent) = agent {
        format!("it was started under `{agent}`")
    } else if !checked.terminal {
        "stdin and stderr are not both a terminal".to_owned()
    } else {
        return Ok(checked);
    };
    Err(CommandError::caller_not_allowed_error(
        format!("`checkrein {act}` is for a person at a terminal, and {why}"),
        "type it yourself, in a terminal of your own",
    ))
}

/// Lets `act` go on unless an agent asks: a person, cron and CI may.
///
/// # Errors
/// If the caller is an agent, as far as one can tell.
pub(crate) fn forbid_agent_callers(act: &str) -> Result<(), CommandError> {
    let (checked, agent) = identify_person_or_agent();
    // No terminal is needed here, since cron has none.
    let why = if let Some(mark) = checked.marks.iter().find(|mark| *mark != "CI") {
        format!("{mark} is set, as it is for what an agent runs")
    } else if let Some(agent) = agent {
        format!("it was started under `{agent}`")
    } else {
        return Ok(());
    };
    Err(CommandError::caller_not_allowed_error(
        format!("`checkrein {act}` is not for agents, and {why}"),
        "type it yourself, or have cron run it",
    ))
}

/// Returns what can be found out, and the name of an agent above this process.
fn identify_person_or_agent() -> (PersonCallerEvidence, Option<String>) {
    let marks = agent_env_markers(std::env::vars_os().filter_map(|(name, value)| {
        let name = name.into_string().ok()?;
        (!value.is_empty()).then_some((name, value.to_string_lossy().into_owned()))
    }));
    let (ancestors, agent) = match ancestor_processes() {
        Some(found) => {
            let agent = found.iter().find(|process| process.is_agent);
            let agent = agent.map(|process| process.name.clone());
            let names = found.into_iter().map(|process| process.name).collect();
            (Some(names), agent)
        }
        None => (None, None),
    };
    // For the record only. The environment can claim any name, so nothing is decided by it.
    let who = ["USER", "LOGNAME", "USERNAME"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
    let checked = PersonCallerEvidence {
        who: who.unwrap_or_default(),
        terminal: std::io::stdin().is_terminal() && std::io::stderr().is_terminal(),
        marks,
        ancestors,
    };
    (checked, agent)
}

/// Returns the variables that say that an agent or CI is at work.
fn agent_env_markers(env: impl Iterator<Item = (String, String)>) -> Vec<String> {
    // Settings that people export for good, in the shell's profile.
    let setting = |name: &str| {
        matches!(
            name,
            "CHECKREIN_STATE" | "CHECKREIN_PROFILE" | "CURSOR_TRACE_ID"
        ) || name.starts_with("CLAUDE_CODE_") && !CLAUDE_CODE_CHILD_VARIABLES.contains(&name)
    };
    let mut found: Vec<String> = env
        .filter(|(name, value)| match name.as_str() {
            // Some people export `CI=false`, which says that this is no CI.
            "CI" => value != "false" && value != "0",
            // The settings come before the prefixes, which they have in common.
            name if setting(name) => false,
            name => {
                withheld::AGENT_MARKS.contains(&name)
                    || withheld::PREFIXES
                        .iter()
                        .any(|prefix| name.starts_with(prefix))
            }
        })
        .map(|(name, _)| name)
        .collect();
    found.sort();
    found
}

/// Variables that Claude Code 2.1.330 sets for what it starts. It reads hundreds of other variables
/// with that prefix, which people export in their profile: those say nothing about who asks.
const CLAUDE_CODE_CHILD_VARIABLES: &[&str] = &[
    "CLAUDE_CODE_BRIDGE_SESSION_ID",
    "CLAUDE_CODE_CHILD_SESSION",
    "CLAUDE_CODE_CLOUD_SESSION_ID",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_HOST_SESSION_ID",
    "CLAUDE_CODE_REMOTE_SESSION_ID",
    "CLAUDE_CODE_SESSION_ATTENDED",
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_CODE_TOOL_USE_ID",
];

/// A process above this one.
#[derive(Debug)]
struct AncestorProcess {
    name: String,
    is_agent: bool,
}

#[cfg(target_os = "linux")]
fn ancestor_processes() -> Option<Vec<AncestorProcess>> {
    let mut found = Vec::new();
    let mut pid = parent_pid("self")?;
    while pid > 0 && found.len() < MAX_ANCESTORS {
        let folder = format!("/proc/{pid}");
        // A parent that we may not look at is another user's: no agent of this one.
        let Ok(name) = std::fs::read_to_string(format!("{folder}/comm")) else {
            break;
        };
        // `comm` is at most 15 characters and may be set by the process; the command line shows a
        // script that an interpreter runs.
        let line = std::fs::read(format!("{folder}/cmdline")).unwrap_or_default();
        let words: Vec<String> = line
            .split(|byte| *byte == 0)
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect();
        let name = name.trim_end().to_owned();
        let is_agent = is_agent_process(&name, &words);
        found.push(AncestorProcess { name, is_agent });
        let Some(parent) = parent_pid(&pid.to_string()) else {
            break;
        };
        pid = parent;
    }
    Some(found)
}

#[cfg(not(target_os = "linux"))]
fn ancestor_processes() -> Option<Vec<AncestorProcess>> {
    None
}

#[cfg(target_os = "linux")]
fn parent_pid(pid: &str) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // A process's name may hold brackets and blanks, so the fields begin behind the last bracket
    // (proc(5)).
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

/// Returns whether a process of this name, started by these words, is an agent.
#[cfg_attr(
    not(target_os = "linux"),
    expect(dead_code, reason = "only Linux tells")
)]
fn is_agent_process(name: &str, words: &[String]) -> bool {
    let base = |word: &str| {
        let path = std::path::Path::new(word);
        // The stem, so that `claude.exe` and `codex.js` are recognised too.
        let stem = path.file_stem().unwrap_or(OsStr::new(word));
        stem.to_string_lossy().into_owned()
    };
    let agent = |word: &str| {
        AGENT_PROCESS_NAMES.contains(&base(word).as_str())
            || AGENT_PACKAGE_PATHS
                .iter()
                .any(|package| word.contains(package))
    };
    let Some((program, arguments)) = words.split_first() else {
        return agent(name);
    };
    // Only the first plain argument is the script. Later ones are data: an editor that opens
    // `claude.md` is no agent.
    let script = arguments.iter().find(|word| !word.starts_with('-'));
    let interprets = INTERPRETERS.contains(&base(program).as_str());
    agent(name) || agent(program) || (interprets && script.is_some_and(|script| agent(script)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_known_by_its_name_or_by_the_script_that_runs() {
        let check = |line: &str, expected: bool| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let name = words[0].rsplit('/').next().unwrap_or_default().to_owned();
            assert_eq!(is_agent_process(&name, &words), expected, "{line}");
        };
        check("/usr/local/bin/claude -p x", true);
        check("claude", true);
        check("codex exec x", true);
        check(
            "node /usr/lib/node_modules/@anthropic-ai/claude-code/cli.js",
            true,
        );
        check("node --no-warnings /usr/bin/codex", true);
        check("/opt/checkrein run -- sh", true);
        check("bash", false);
        check("vim claude", false);
        check("tmux new -s codex", false);
        check("node server.js", false);
        check("python3 -m http.server", false);
        // A thread may have renamed itself: the words still tell, and the other way round.
        assert!(is_agent_process(
            "MainThread",
            &["/usr/bin/claude".to_owned()]
        ));
        assert!(is_agent_process("claude", &[String::new()]));
    }

    #[test]
    fn marks_of_a_session_count_and_settings_of_a_profile_do_not() {
        let check = |name: &str, value: &str, expected: bool| {
            let env = [(name.to_owned(), value.to_owned())];
            assert_eq!(
                !agent_env_markers(env.into_iter()).is_empty(),
                expected,
                "{name}"
            );
        };
        for name in [
            "CLAUDECODE",
            "CLAUDE_CODE_SESSION_ID",
            "CLAUDE_CODE_ENTRYPOINT",
            "CLAUDE_CODE_SESSION_ATTENDED",
            "CODEX_SANDBOX",
            "CODEX_THREAD_ID",
            "GEMINI_CLI",
            "CHECKREIN_SESSION",
            "CHECKREIN_TASK",
            "CHECKREIN_CHECK",
        ] {
            check(name, "1", true);
        }
        for name in [
            "CODEX_HOME",
            "CLAUDE_CODE_USE_BEDROCK",
            "CLAUDE_CODE_EFFORT_LEVEL",
            "CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS",
            "CLAUDE_CODE_TMPDIR",
            "CLAUDE_CODE_SSE_PORT",
            "CHECKREIN_STATE",
            "TERM",
        ] {
            check(name, "1", false);
        }
        check("CI", "true", true);
        check("CI", "false", false);
    }
}
