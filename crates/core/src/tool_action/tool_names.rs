//! Names of tools: a table of those that agents have built in, and the parts of names by which the
//! others are classified.

use serde_json::Value;

use super::verbs::{self, ToolNameMeaning};

/// What a tool of the table does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KnownToolKind {
    /// Runs a command.
    Shell,
    /// Writes files.
    Write,
    /// Asks for the state of something that runs.
    Poll,
    /// Looks at what is here, plans, or talks to the person.
    ReadsOnly,
    /// Asks the network.
    Network,
    /// A tool of the agent itself. Its arguments name no command and no file that it writes.
    Agent,
}

/// A tool's name without its server.
#[derive(Debug)]
pub(super) struct ToolNameWithoutServer<'a> {
    whole: &'a str,
    last: String,
    words: Vec<String>,
}

impl<'a> ToolNameWithoutServer<'a> {
    pub(super) fn parse_tool_name(tool: &'a str) -> Self {
        let named = tool.strip_prefix("mcp__").and_then(|rest| {
            let (_, name) = rest.split_once("__")?;
            Some(name)
        });
        // MCP tools are called `mcp__SERVER__TOOL`. The server's name must not count as a verb.
        let last = tool.rsplit("__").next().unwrap_or(tool);
        Self {
            whole: tool,
            last: last.to_ascii_lowercase(),
            words: split_tool_name_into_words(named.unwrap_or(tool)),
        }
    }

    pub(super) fn is_mcp_server_tool(&self) -> bool {
        self.whole.contains("__")
    }

    /// Returns whether the table has it among those that run commands.
    pub(super) fn is_shell_tool_name(&self) -> bool {
        SHELLS.contains(&self.last.as_str())
    }

    /// Returns whether it may type into a running process.
    pub(super) fn tool_may_type_into_process(&self) -> bool {
        self.tool_name_has_word(&[
            "console", "keys", "process", "pty", "repl", "stdin", "terminal", "tmux",
        ])
    }

    /// Returns what the words of its name say about it.
    pub(super) fn tool_name_meaning(&self) -> ToolNameMeaning {
        verbs::tool_name_meaning(&self.words)
    }

    /// Returns whether it returns a text unchanged.
    pub(super) fn is_text_reading_tool(&self) -> bool {
        let ends = [self.words.first(), self.words.last()];
        let is = |word: &String| verbs::READS_TEXT.contains(&word.as_str());
        ends.into_iter().flatten().any(is)
    }

    /// Returns whether it compares two things.
    pub(super) fn agent_tool_name_says_compare(&self) -> bool {
        self.tool_name_has_word(&["compare", "diff"])
    }

    /// Returns whether it reads a log.
    pub(super) fn tool_reads_logs(&self) -> bool {
        self.tool_name_has_word(&["log", "logs"])
    }

    /// Returns whether its name is that of a patch tool.
    pub(super) fn is_patch_tool_name(&self) -> bool {
        self.tool_name_has_word(&["apply", "diff", "hunk", "patch"])
    }

    /// Returns whether it runs code: its name has such a verb, or consists only of a language and
    /// where it runs. Code that runs in a browser page touches no file here.
    pub(super) fn tool_name_runs_code(&self) -> bool {
        let in_browser = BROWSERS
            .iter()
            .any(|word| self.whole.to_ascii_lowercase().contains(word));
        let runs = self.tool_name_has_execute_verb()
            && !matches!(
                self.tool_name_meaning(),
                ToolNameMeaning::LeavesFiles | ToolNameMeaning::OutsideFiles
            );
        let is_code = |word: &String| CODE_WORDS.contains(&word.as_str());
        !in_browser && (runs || !self.words.is_empty() && self.words.iter().all(is_code))
    }

    /// Returns whether its name has a verb of execution.
    pub(super) fn tool_name_has_execute_verb(&self) -> bool {
        self.tool_name_has_word(EXECUTES)
    }

    /// Returns whether its name mentions code.
    pub(super) fn tool_name_mentions_code(&self) -> bool {
        self.tool_name_has_word(CODE_WORDS)
    }

    /// The words of its name.
    pub(super) fn tool_name_words(&self) -> &[String] {
        &self.words
    }

    pub(super) fn tool_name_means_copy_only(&self) -> bool {
        self.tool_name_has_word(&["copy", "cp"]) && !self.tool_name_has_word(verbs::TAKES_AWAY)
    }

    /// Returns whether it copies or moves files.
    pub(super) fn tool_name_has_copy_or_move_verb(&self) -> bool {
        self.tool_name_has_word(&["copy", "cp", "move", "mv", "rename"])
    }

    /// Returns whether the files that it names are gone afterwards.
    pub(super) fn tool_removes_files(&self, args: &Value) -> bool {
        let said = tool_action_argument(args);
        self.tool_name_has_word(verbs::TAKES_AWAY)
            || is_editor_tool_with_action_argument(&self.last)
                && matches!(said.as_deref(), Some("delete" | "rename"))
    }

    pub(super) fn tool_applies_patch(&self) -> bool {
        self.last == "apply_patch"
    }

    pub(super) fn is_known_writing_tool(&self) -> bool {
        WRITERS.contains(&self.last.as_str()) || is_editor_tool_with_action_argument(&self.last)
    }

    fn tool_name_has_word(&self, verbs: &[&str]) -> bool {
        verbs::has_any_word(&self.words, verbs)
    }
}

/// Splits a name into lower-case words: `move_file`, `moveFile` and `move-file` are `move` and
/// `file`.
pub(super) fn split_tool_name_into_words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut begins = true;
    let mut before_is_upper = false;
    for c in name.chars() {
        if !c.is_alphanumeric() {
            begins = true;
            continue;
        }
        // A run of capitals is one word, so `readURL` splits into `read` and `url`.
        if begins || c.is_uppercase() && !before_is_upper {
            words.push(String::new());
        }
        (begins, before_is_upper) = (false, c.is_uppercase());
        if let Some(word) = words.last_mut() {
            word.extend(c.to_lowercase());
        }
    }
    words
}

/// Returns what the table says about a tool; `None` if it is not listed. Some tools do several
/// things, which an argument tells apart.
pub(super) fn known_tool_kind(
    name: &ToolNameWithoutServer<'_>,
    args: &Value,
) -> Option<KnownToolKind> {
    let last = name.last.as_str();
    if is_editor_tool_with_action_argument(last) {
        return Some(match tool_action_argument(args).as_deref() {
            Some("view" | "read") => KnownToolKind::ReadsOnly,
            // Without the argument, it is not known to read only.
            _ => KnownToolKind::Write,
        });
    }
    // OpenClaw's `process` polls only with these actions. With others it writes to a process or
    // kills it.
    if last == "process" {
        return matches!(tool_action_argument(args).as_deref(), Some("log" | "poll"))
            .then_some(KnownToolKind::Poll);
    }
    if SHELLS.contains(&last) {
        return Some(KnownToolKind::Shell);
    }
    if WRITERS.contains(&last) {
        return Some(KnownToolKind::Write);
    }
    if POLLS.contains(&last) {
        return Some(KnownToolKind::Poll);
    }
    // A server can name its tools as it likes, so a reader's name proves nothing. The kinds above
    // are the stricter ones and may be taken from any name.
    if name.is_mcp_server_tool() {
        return None;
    }
    if READERS.contains(&last) {
        return Some(KnownToolKind::ReadsOnly);
    }
    if NETWORK.contains(&name.whole) {
        return Some(KnownToolKind::Network);
    }
    // Compared with case: `Task` is Claude Code's tool, `task` may be anybody's.
    AGENTS.contains(&name.whole).then_some(KnownToolKind::Agent)
}

/// Returns the action argument of a tool that does several things.
fn tool_action_argument(args: &Value) -> Option<String> {
    const KEYS: &[&str] = &["command", "action", "operation", "op"];
    let map = args.as_object()?;
    let named = |key: &str| map.iter().find(|(name, _)| name.eq_ignore_ascii_case(key));
    let (_, value) = KEYS.iter().find_map(|key| named(key))?;
    Some(value.as_str()?.to_ascii_lowercase())
}

/// Returns whether it is an editor tool, which names its action in an argument.
fn is_editor_tool_with_action_argument(last: &str) -> bool {
    matches!(
        last,
        "memory" | "str_replace_based_edit_tool" | "str_replace_editor" | "text_editor"
    )
}

/// Verbs of tools that run code.
const EXECUTES: &[&str] = &[
    "eval",
    "evaluate",
    "exec",
    "execute",
    "execution",
    "executor",
    "interpret",
    "run",
    "runner",
];

/// Languages, and what code of them is run in.
const CODE_WORDS: &[&str] = &[
    "bun",
    "cell",
    "cells",
    "code",
    "deno",
    "inline",
    "interactive",
    "interpreter",
    "ipython",
    "irb",
    "javascript",
    "js",
    "jupyter",
    "kernel",
    "node",
    "nodejs",
    "notebook",
    "perl",
    "php",
    "py",
    "python",
    "python3",
    "repl",
    "ruby",
    "sandbox",
    "snippet",
    "tool",
    "ts",
    "typescript",
];

/// Words of tools whose code runs in a browser.
const BROWSERS: &[&str] = &[
    "browser",
    "chrome",
    "page",
    "playwright",
    "puppeteer",
    "selenium",
];

const SHELLS: &[&str] = &[
    "bash",
    "cmd",
    "exec",
    "exec_command",
    "execute_bash",
    "execute_command",
    "local_shell",
    "monitor",
    "powershell",
    "run_bash",
    "run_command",
    "run_in_terminal",
    "run_shell_command",
    "run_terminal_cmd",
    "sh",
    "shell",
    "shell_command",
    "terminal",
];

const WRITERS: &[&str] = &[
    "apply_diff",
    "apply_patch",
    "create",
    "create_file",
    "delete_file",
    "edit",
    "edit_file",
    "insert",
    "insert_edit_into_file",
    "multi_edit",
    "multiedit",
    "notebookedit",
    "patch",
    "replace",
    "replace_in_file",
    "search_replace",
    "str_replace",
    "write",
    "write_file",
    "write_to_file",
];

const POLLS: &[&str] = &[
    "agentoutputtool",
    "bash_output",
    "bashoutput",
    "command_status",
    "get_terminal_output",
    "task_output",
    "taskoutput",
    "wait",
    "write_stdin",
];

/// Tools that only read. A tool that is missing here is taken to do anything.
const READERS: &[&str] = &[
    "askuserquestion",
    "enterplanmode",
    "exitplanmode",
    "find",
    "find_files",
    "get_file_contents",
    "glob",
    "glob_file_search",
    "grep",
    "grep_search",
    "list_dir",
    "list_directory",
    "list_files",
    "list_mcp_resources",
    "listmcpresourcestool",
    "ls",
    "lsp",
    "notebookread",
    "open_file",
    "read",
    "read_file",
    "read_many_files",
    "read_mcp_resource",
    "readmcpresourcetool",
    "request_user_input",
    "search",
    "search_file_content",
    "search_files",
    "todoread",
    "todowrite",
    "tool_search",
    "toolsearch",
    "update_plan",
    "view",
    "view_file",
    "view_image",
];

const NETWORK: &[&str] = &["WebFetch", "WebSearch", "web_search"];

/// Tools of Claude Code.
const AGENTS: &[&str] = &[
    "Agent",
    "CronCreate",
    "CronDelete",
    "CronList",
    "EnterWorktree",
    "ExitWorktree",
    "KillShell",
    "ListAgents",
    "ReportFindings",
    "ScheduleWakeup",
    "SendMessage",
    "Skill",
    "SlashCommand",
    "StructuredOutput",
    "Task",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskStop",
    "TaskUpdate",
    "Workflow",
];
