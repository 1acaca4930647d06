//! Classifies what a tool call does, from the tool's name and arguments. There is one table for all
//! agents, so that the same call gets the same answer at every entry point. Nothing here looks at a
//! file: whether a path is protected, and where it really lies, is decided in the runtime.

mod address;
mod arguments;
mod code;
mod command;
mod named_program;
mod options;
mod patch_headers;
mod tool_names;
mod verbs;
mod waiting;

use serde_json::Value;

use crate::input::ToolKind;
use arguments::ToolArgumentPathScan;
use code::ToolCallCodeReader;
use tool_names::{KnownToolKind, ToolNameWithoutServer};
use verbs::ToolNameMeaning;

/// What one tool call does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolAction {
    /// The kind of tool, as the core counts it.
    pub kind: ToolKind,
    /// How far a call reaches that neither runs a command nor writes a named file.
    pub reach: ToolReach,
    /// The command that it runs.
    pub command: Option<ScriptOrArgvOfToolCall>,
    /// The folders that it names beside its command or patch. It starts in one of them.
    pub folders: Vec<CallStartFolder>,
    /// An MCP server runs it, whose working folder may differ from the agent's.
    pub is_of_server: bool,
    /// The text of the patch that it applies.
    pub patch: Option<String>,
    /// The files that it writes.
    pub writes: Vec<String>,
    /// The files and folders that it removes or moves away.
    pub removes: Vec<String>,
    /// The files that it reads.
    pub reads: Vec<String>,
    /// Arguments that may name a file that it writes, for tools that are not known to read only.
    pub may_write: Vec<String>,
    /// The arguments hold more texts, or deeper nesting, than was scanned.
    pub is_cut: bool,
}

/// How far a call reaches that neither runs a command nor writes a named file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolReach {
    /// It looks at what is here, plans, or talks to the person.
    ReadsOnly,
    /// It asks the network.
    Network,
    /// It may do anything.
    Unknown,
}

/// A command in the arguments of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptOrArgvOfToolCall {
    /// A text for a shell.
    Script(String),
    /// Words for no shell.
    Argv(Vec<String>),
}

/// A folder in the arguments of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallStartFolder {
    /// The call starts there.
    Named(String),
    /// It may start there: the argument can mean another thing as well.
    Possible(String),
    /// It starts in a folder that is known only at run time.
    Unknown,
}

impl CallStartFolder {
    /// Returns whether the call starts in a folder that it names.
    pub fn tool_call_names_its_start_folder(&self) -> bool {
        !matches!(self, Self::Possible(_))
    }

    /// Its path, if that is known.
    pub fn folder_path_if_known(&self) -> Option<&str> {
        match self {
            Self::Named(path) | Self::Possible(path) => Some(path),
            Self::Unknown => None,
        }
    }
}

impl Default for ToolAction {
    fn default() -> Self {
        Self {
            kind: ToolKind::Other,
            reach: ToolReach::Unknown,
            command: None,
            folders: Vec::new(),
            is_of_server: false,
            patch: None,
            writes: Vec::new(),
            removes: Vec::new(),
            reads: Vec::new(),
            may_write: Vec::new(),
            is_cut: false,
        }
    }
}

impl ToolAction {
    /// Returns whether it may do anything: it neither runs a command nor writes a named file, and
    /// is not known to read only.
    pub fn call_may_have_unknown_effects(&self) -> bool {
        self.kind == ToolKind::Other && self.reach != ToolReach::ReadsOnly
    }

    /// Returns whether it runs a command that waits for something.
    pub fn runs_waiting_command(&self) -> bool {
        self.command.as_ref().is_some_and(waiting::command_waits)
    }

    /// The script that it runs.
    pub fn shell_script_of_call(&self) -> Option<&str> {
        match self.command.as_ref()? {
            ScriptOrArgvOfToolCall::Script(script) => Some(script),
            ScriptOrArgvOfToolCall::Argv(_) => None,
        }
    }

    /// Returns the action of a call that applies this patch.
    pub fn action_from_patch_text(text: &str) -> Self {
        Self {
            kind: ToolKind::Write,
            patch: Some(text.to_owned()),
            ..Self::default()
        }
    }

    /// Returns the action of a call that runs this script.
    pub fn shell_action_from_script(text: &str) -> Self {
        Self {
            kind: ToolKind::Shell,
            command: Some(ScriptOrArgvOfToolCall::Script(text.to_owned())),
            ..Self::default()
        }
    }
}

/// Classifies a call of this tool with these arguments. Tools of MCP servers are named
/// `mcp__SERVER__TOOL`. What a server says about its tools (`readOnlyHint`) excuses nothing.
pub fn classify_call(tool: &str, args: &Value) -> ToolAction {
    let name = ToolNameWithoutServer::parse_tool_name(tool);
    ToolAction {
        is_of_server: name.is_mcp_server_tool(),
        ..classify_tool(&name, args)
    }
}

fn classify_tool(name: &ToolNameWithoutServer<'_>, args: &Value) -> ToolAction {
    match tool_names::known_tool_kind(name, args) {
        Some(KnownToolKind::Shell) => {
            shell_tool_action(name, command::shell_tool_command(name, args), args)
        }
        Some(KnownToolKind::Poll) => polling_tool_action(name, args),
        Some(KnownToolKind::Write) => classify_writing_tool(name, args),
        // A known name is no proof: the arguments may still ask for a write.
        Some(KnownToolKind::ReadsOnly) => {
            let found = ToolArgumentPathScan::paths_named_in_tool_arguments(args);
            match tool_writes_despite_name(name, &found) {
                true => classify_possibly_writing_tool(name, args),
                false => ToolAction {
                    reach: ToolReach::ReadsOnly,
                    is_cut: false,
                    ..classify_reading_tool(name, found)
                },
            }
        }
        Some(KnownToolKind::Network) => ToolAction {
            reach: ToolReach::Network,
            ..ToolAction::default()
        },
        Some(KnownToolKind::Agent) => ToolAction::default(),
        // A command in the arguments decides before the words of the name. `list_files` with a
        // `command` runs it.
        None => match find_command_in_tool_call(name, args) {
            Some(command) => shell_tool_action(name, Some(command), args),
            None if name.tool_may_type_into_process() => classify_terminal_input_tool(name, args),
            None => classify_tool_by_name_words(name, args),
        },
    }
}

fn find_command_in_tool_call(
    name: &ToolNameWithoutServer<'_>,
    args: &Value,
) -> Option<ScriptOrArgvOfToolCall> {
    let command = command::command_in_tool_arguments(
        args,
        ToolCallCodeReader::code_reader_for_tool(name, args),
    );
    named_program::command_of_program_named_tool(name, args, command.as_ref()).or(command)
}

/// Classifies a tool that runs a command. It may write whatever else its arguments name.
fn shell_tool_action(
    name: &ToolNameWithoutServer<'_>,
    command: Option<ScriptOrArgvOfToolCall>,
    args: &Value,
) -> ToolAction {
    let found = ToolArgumentPathScan::scan_tool_args_beside_command(args);
    let mut may_write = found.paths_written_by_reading_tool(false, false);
    // `{"command": "create", "path": "a"}` is a call of an editor, not of a shell.
    if command.as_ref().is_none_or(is_one_word_mutating_command) {
        let possible = found
            .starts
            .iter()
            .filter(|start| !start.tool_call_names_its_start_folder());
        may_write
            .extend(possible.filter_map(|start| start.folder_path_if_known().map(str::to_owned)));
    }
    may_write.extend(found.named);
    // For an agent's own shell, the other arguments (a description, a timeout) are known to name no
    // files.
    if name.is_mcp_server_tool() || !name.is_shell_tool_name() {
        may_write.extend(found.others);
    }
    ToolAction {
        kind: ToolKind::Shell,
        command,
        folders: found.starts,
        may_write,
        is_cut: found.is_cut,
        ..ToolAction::default()
    }
}

/// Returns whether the command is a single word that does not mean reading.
fn is_one_word_mutating_command(command: &ScriptOrArgvOfToolCall) -> bool {
    let ScriptOrArgvOfToolCall::Script(script) = command else {
        return false;
    };
    !script.trim().contains(char::is_whitespace)
        && verbs::tool_name_meaning(&tool_names::split_tool_name_into_words(script))
            != ToolNameMeaning::OnlyReads
}

/// Classifies a tool that polls a running process or types into it.
fn polling_tool_action(name: &ToolNameWithoutServer<'_>, args: &Value) -> ToolAction {
    let may_write = match name.is_mcp_server_tool() {
        true => classify_possibly_writing_tool(name, args).may_write,
        false => Vec::new(),
    };
    ToolAction {
        kind: ToolKind::Poll,
        command: command::command_typed_to_process(args),
        // Its folder was decided by what was typed before.
        folders: vec![CallStartFolder::Unknown],
        may_write,
        ..ToolAction::default()
    }
}

/// Classifies a tool that types into a running process.
fn classify_terminal_input_tool(name: &ToolNameWithoutServer<'_>, args: &Value) -> ToolAction {
    let action = classify_tool_by_name_words(name, args);
    let Some(command) = command::command_typed_to_process(args) else {
        return action;
    };
    // What it names beside the command counts as well.
    let may_write = [action.writes, action.removes, action.may_write].concat();
    ToolAction {
        kind: ToolKind::Other,
        command: Some(command),
        folders: vec![CallStartFolder::Unknown],
        reach: action.reach,
        is_cut: action.is_cut,
        may_write,
        ..ToolAction::default()
    }
}

/// Classifies a tool that is not in the table, by the words of its name.
fn classify_tool_by_name_words(name: &ToolNameWithoutServer<'_>, args: &Value) -> ToolAction {
    let found = ToolArgumentPathScan::paths_named_in_tool_arguments(args);
    match name.tool_name_meaning() {
        ToolNameMeaning::ChangesFiles => classify_writing_tool(name, args),
        ToolNameMeaning::OnlyReads if !tool_writes_despite_name(name, &found) => {
            classify_reading_tool(name, found)
        }
        ToolNameMeaning::LeavesFiles | ToolNameMeaning::FormatsFiles
            if found.has_content || found.opens_to_write =>
        {
            classify_possibly_writing_tool(name, args)
        }
        ToolNameMeaning::FormatsFiles if !found.only_checks => {
            classify_possibly_writing_tool(name, args)
        }
        ToolNameMeaning::OutsideFiles
        | ToolNameMeaning::LeavesFiles
        | ToolNameMeaning::FormatsFiles => ToolAction {
            may_write: found.outputs.clone(),
            is_cut: found.is_cut,
            ..ToolAction::default()
        },
        ToolNameMeaning::OnlyReads | ToolNameMeaning::Unknown => {
            classify_possibly_writing_tool(name, args)
        }
    }
}

/// Returns whether its arguments do not fit a reading tool: text for a file, a file opened for
/// writing, a place for something fetched.
fn tool_writes_despite_name(
    name: &ToolNameWithoutServer<'_>,
    found: &ToolArgumentPathScan,
) -> bool {
    let puts = found.has_content || found.is_fetched && !found.named.is_empty();
    found.opens_to_write || puts && name.is_text_reading_tool()
}

/// Classifies a tool that reads what it names and may write its result somewhere.
fn classify_reading_tool(
    name: &ToolNameWithoutServer<'_>,
    found: ToolArgumentPathScan,
) -> ToolAction {
    ToolAction {
        may_write: found.paths_written_by_reading_tool(
            name.agent_tool_name_says_compare(),
            name.tool_reads_logs(),
        ),
        reads: found.named,
        is_cut: found.is_cut,
        ..ToolAction::default()
    }
}

/// Classifies a tool that is not known to read only. It may write any path that it names.
fn classify_possibly_writing_tool(name: &ToolNameWithoutServer<'_>, args: &Value) -> ToolAction {
    let found = ToolArgumentPathScan::paths_named_in_tool_arguments(args);
    let names_no_file = found.named.is_empty();
    let results = found.paths_written_by_reading_tool(false, false);
    let mut may_write = [found.named, found.others, results, found.patched].concat();
    if names_no_file {
        may_write.extend(found.labels);
    }
    if names_no_file || name.is_patch_tool_name() {
        may_write.extend(found.patched_in_content);
    }
    // What the code does with the words cannot be read, so each that could be a path counts.
    if name.tool_name_has_execute_verb() {
        let codes = code::code_in_tool_arguments(args);
        may_write.extend(
            codes
                .iter()
                .flat_map(|code| arguments::path_like_words_in_code(code)),
        );
    }
    ToolAction {
        may_write,
        is_cut: found.is_cut,
        ..ToolAction::default()
    }
}

fn classify_writing_tool(name: &ToolNameWithoutServer<'_>, args: &Value) -> ToolAction {
    let ToolArgumentPathScan {
        named,
        sources,
        patched,
        patched_in_content,
        mut others,
        labels,
        is_cut,
        folders,
        starts,
        ..
    } = ToolArgumentPathScan::paths_named_in_tool_arguments(args);
    let names_no_file = named.is_empty();
    let mut writes = named;
    // A tool that removes a folder names nothing else, so the folder itself is what it writes.
    if writes.is_empty() && name.tool_removes_files(args) {
        writes.clone_from(&folders);
    }
    let mut reads = Vec::new();
    if name.tool_name_means_copy_only() {
        writes.retain(|path| !sources.contains(path));
        reads.clone_from(&sources);
    }
    if name.tool_name_has_copy_or_move_verb() {
        // A file that is moved into a folder keeps its own name there.
        let folders: Vec<String> = writes
            .iter()
            .filter(|path| !sources.contains(path))
            .cloned()
            .collect();
        for folder in &folders {
            let inside = |source: &String| arguments::folder_joined_with_base_name(folder, source);
            writes.extend(sources.iter().filter_map(inside));
        }
    }
    let in_content = names_no_file || name.is_patch_tool_name();
    let patched = patched
        .into_iter()
        .chain(patched_in_content.into_iter().filter(|_| in_content));
    for path in patched {
        // A relative path in a patch may be meant from the folder beside it or from the working
        // folder, so both count.
        let below = folders.iter().filter(|_| !path.starts_with('/'));
        writes.extend(below.map(|folder| format!("{}/{path}", folder.trim_end_matches('/'))));
        writes.push(path);
    }
    if names_no_file {
        others.extend(labels);
    }
    let patch = name
        .tool_applies_patch()
        .then(|| command::patch_argument(args))
        .flatten();
    let removes = match name.tool_removes_files(args) {
        true => writes.clone(),
        false => Vec::new(),
    };
    // A server's tool that names no file here changes something elsewhere, such as an issue.
    let elsewhere = name.is_mcp_server_tool() && writes.is_empty() && patch.is_none();
    ToolAction {
        kind: match elsewhere || writes.is_empty() && !name.is_known_writing_tool() {
            true => ToolKind::Other,
            false => ToolKind::Write,
        },
        folders: starts,
        patch,
        writes,
        removes,
        reads,
        may_write: others,
        is_cut,
        ..ToolAction::default()
    }
}

#[cfg(test)]
mod tests;
