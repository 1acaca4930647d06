//! What a tool call does, as far as the tool's name and its arguments tell: one table for every
//! agent, so that the same call gets the same answer at every entry point. Nothing here looks at a
//! file; whether a path is protected, and where it really lies, is the runtime's question.

mod address;
mod arguments;
mod code;
mod command;
mod names;
mod options;
mod patch_headers;
mod program;
mod verbs;

use serde_json::Value;

use crate::input::ToolKind;
use arguments::FoundPaths;
use code::CodeReader;
use names::{BareName, KnownTool};
use verbs::Says;

/// What one tool call does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolAction {
    /// The kind of tool, as the core counts it.
    pub kind: ToolKind,
    /// How far a call reaches that neither runs a command nor writes a named file.
    pub reach: ToolReach,
    /// The command that it runs.
    pub command: Option<ToolCommand>,
    /// The folders that it names beside its command, or its patch: it starts in one of them.
    pub folders: Vec<CallFolder>,
    /// A server runs it, whose own folder need not be the agent's.
    pub is_of_server: bool,
    /// The text of the patch that it applies.
    pub patch: Option<String>,
    /// The files that it writes.
    pub writes: Vec<String>,
    /// The files and folders that it removes or moves away.
    pub removes: Vec<String>,
    /// The files that it reads.
    pub reads: Vec<String>,
    /// Arguments that may name a file that it writes: those of a tool that is not known to read only.
    pub may_write: Vec<String>,
    /// The arguments hold more texts, or hold them deeper, than were looked at.
    pub is_cut: bool,
}

/// How far a call reaches that neither runs a command nor writes a named file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolReach {
    /// It looks at what is here, plans, or talks to the person.
    ReadsOnly,
    /// It asks the network.
    Network,
    /// Whatever it likes.
    Unknown,
}

/// A command in the arguments of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolCommand {
    /// A text for a shell.
    Script(String),
    /// Words for no shell.
    Argv(Vec<String>),
}

/// A folder in the arguments of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallFolder {
    /// The call starts there.
    Named(String),
    /// It may start there: the argument can mean another thing as well.
    Possible(String),
    /// It starts in a folder that only the run knows.
    Unknown,
}

impl CallFolder {
    /// Whether the call starts in a folder that it names.
    pub fn is_sure(&self) -> bool {
        !matches!(self, Self::Possible(_))
    }

    /// Its path, if that is known.
    pub fn path(&self) -> Option<&str> {
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
    /// Whether it may do anything: it neither runs a command nor writes a named file, and is not
    /// known to read only.
    pub fn may_act(&self) -> bool {
        self.kind == ToolKind::Other && self.reach != ToolReach::ReadsOnly
    }

    /// The script that it runs.
    pub fn script(&self) -> Option<&str> {
        match self.command.as_ref()? {
            ToolCommand::Script(script) => Some(script),
            ToolCommand::Argv(_) => None,
        }
    }

    /// A call that applies this patch.
    pub fn of_patch(text: &str) -> Self {
        Self {
            kind: ToolKind::Write,
            patch: Some(text.to_owned()),
            ..Self::default()
        }
    }

    /// A call that runs this script.
    pub fn of_script(text: &str) -> Self {
        Self {
            kind: ToolKind::Shell,
            command: Some(ToolCommand::Script(text.to_owned())),
            ..Self::default()
        }
    }
}

/// What a call of this tool with these arguments does. Tools of MCP servers are named
/// `mcp__SERVER__TOOL`; what a server says of its tools (`readOnlyHint`) excuses nothing.
pub fn classify_call(tool: &str, args: &Value) -> ToolAction {
    let name = BareName::of(tool);
    ToolAction {
        is_of_server: name.is_server_tool(),
        ..classify(&name, args)
    }
}

fn classify(name: &BareName<'_>, args: &Value) -> ToolAction {
    match names::known_tool(name, args) {
        Some(KnownTool::Shell) => runs(name, command::of_shell_tool(name, args), args),
        Some(KnownTool::Poll) => polls(name, args),
        Some(KnownTool::Write) => writes(name, args),
        Some(KnownTool::ReadsOnly) => {
            let found = FoundPaths::of(args);
            match writes_for_all_its_name(name, &found) {
                true => may_write(name, args),
                false => ToolAction {
                    reach: ToolReach::ReadsOnly,
                    is_cut: false,
                    ..reads(name, found)
                },
            }
        }
        Some(KnownTool::Network) => ToolAction {
            reach: ToolReach::Network,
            ..ToolAction::default()
        },
        Some(KnownTool::Agent) => ToolAction::default(),
        None => match command_of_any_tool(name, args) {
            Some(command) => runs(name, Some(command), args),
            None if name.may_type() => types(name, args),
            None => of_unknown(name, args),
        },
    }
}

fn command_of_any_tool(name: &BareName<'_>, args: &Value) -> Option<ToolCommand> {
    let command = command::of_any_tool(args, CodeReader::of(name, args));
    program::of(name, args, command.as_ref()).or(command)
}

/// A tool that runs a command. What else its arguments name it may write.
fn runs(name: &BareName<'_>, command: Option<ToolCommand>, args: &Value) -> ToolAction {
    let found = FoundPaths::beside_command(args);
    let mut may_write = found.results(false, false);
    // `{"command": "create", "path": "a"}`: an editor, and no shell.
    if command.as_ref().is_none_or(is_word_of_change) {
        let possible = found.starts.iter().filter(|start| !start.is_sure());
        may_write.extend(possible.filter_map(|start| start.path().map(str::to_owned)));
    }
    may_write.extend(found.named);
    // What the arguments of an agent's own shell mean is known.
    if name.is_server_tool() || !name.is_shell() {
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

/// Whether a command is one word, and not of one who looks.
fn is_word_of_change(command: &ToolCommand) -> bool {
    let ToolCommand::Script(script) = command else {
        return false;
    };
    !script.trim().contains(char::is_whitespace) && verbs::of(&names::words(script)) != Says::Looks
}

/// A tool that asks for the state of something that runs, or types at it.
fn polls(name: &BareName<'_>, args: &Value) -> ToolAction {
    let may_write = match name.is_server_tool() {
        true => may_write(name, args).may_write,
        false => Vec::new(),
    };
    ToolAction {
        kind: ToolKind::Poll,
        command: command::typed(args),
        // Where it stands was settled by what was typed before.
        folders: vec![CallFolder::Unknown],
        may_write,
        ..ToolAction::default()
    }
}

/// A tool that types at something that runs.
fn types(name: &BareName<'_>, args: &Value) -> ToolAction {
    let action = of_unknown(name, args);
    let Some(command) = command::typed(args) else {
        return action;
    };
    // What it names beside the command counts as well.
    let may_write = [action.writes, action.removes, action.may_write].concat();
    ToolAction {
        kind: ToolKind::Other,
        command: Some(command),
        folders: vec![CallFolder::Unknown],
        reach: action.reach,
        is_cut: action.is_cut,
        may_write,
        ..ToolAction::default()
    }
}

/// A tool whose name is not in the table: the words of its name tell what it does.
fn of_unknown(name: &BareName<'_>, args: &Value) -> ToolAction {
    let found = FoundPaths::of(args);
    match name.says() {
        Says::Changes => writes(name, args),
        Says::Looks if !writes_for_all_its_name(name, &found) => reads(name, found),
        Says::Leaves | Says::Formats if found.has_content || found.opens_to_write => {
            may_write(name, args)
        }
        Says::Formats if !found.only_checks => may_write(name, args),
        Says::Elsewhere | Says::Leaves | Says::Formats => ToolAction {
            may_write: found.outputs.clone(),
            is_cut: found.is_cut,
            ..ToolAction::default()
        },
        Says::Looks | Says::Nothing => may_write(name, args),
    }
}

/// Whether its arguments are none of a tool that reads: text for a file, a file that is opened to be
/// written, the place for something that is fetched.
fn writes_for_all_its_name(name: &BareName<'_>, found: &FoundPaths) -> bool {
    let puts = found.has_content || found.is_fetched && !found.named.is_empty();
    found.opens_to_write || puts && name.reads_text()
}

/// A tool that reads what it names, and may write where its result is to go.
fn reads(name: &BareName<'_>, found: FoundPaths) -> ToolAction {
    ToolAction {
        may_write: found.results(name.compares(), name.is_about_logs()),
        reads: found.named,
        is_cut: found.is_cut,
        ..ToolAction::default()
    }
}

/// A tool that is not known to read only: it may write whatever it names.
fn may_write(name: &BareName<'_>, args: &Value) -> ToolAction {
    let found = FoundPaths::of(args);
    let names_no_file = found.named.is_empty();
    let results = found.results(false, false);
    let mut may_write = [found.named, found.others, results, found.patched].concat();
    if names_no_file {
        may_write.extend(found.labels);
    }
    if names_no_file || name.is_about_patches() {
        may_write.extend(found.patched_in_content);
    }
    if name.executes() {
        let codes = code::texts(args);
        may_write.extend(codes.iter().flat_map(|code| arguments::named_in_code(code)));
    }
    ToolAction {
        may_write,
        is_cut: found.is_cut,
        ..ToolAction::default()
    }
}

fn writes(name: &BareName<'_>, args: &Value) -> ToolAction {
    let FoundPaths {
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
    } = FoundPaths::of(args);
    let names_no_file = named.is_empty();
    let mut writes = named;
    if writes.is_empty() && name.takes_away(args) {
        writes.clone_from(&folders);
    }
    let mut reads = Vec::new();
    if name.only_copies() {
        writes.retain(|path| !sources.contains(path));
        reads.clone_from(&sources);
    }
    if name.relocates() {
        // Into a folder a file goes under its own name.
        let folders: Vec<String> = writes
            .iter()
            .filter(|path| !sources.contains(path))
            .cloned()
            .collect();
        for folder in &folders {
            let inside = |source: &String| arguments::inside(folder, source);
            writes.extend(sources.iter().filter_map(inside));
        }
    }
    let in_content = names_no_file || name.is_about_patches();
    let patched = patched
        .into_iter()
        .chain(patched_in_content.into_iter().filter(|_| in_content));
    for path in patched {
        let below = folders.iter().filter(|_| !path.starts_with('/'));
        writes.extend(below.map(|folder| format!("{}/{path}", folder.trim_end_matches('/'))));
        writes.push(path);
    }
    if names_no_file {
        others.extend(labels);
    }
    let patch = name.applies_patch().then(|| command::patch(args)).flatten();
    let removes = match name.takes_away(args) {
        true => writes.clone(),
        false => Vec::new(),
    };
    // A server's tool that names no file here changes something elsewhere.
    let elsewhere = name.is_server_tool() && writes.is_empty() && patch.is_none();
    ToolAction {
        kind: match elsewhere || writes.is_empty() && !name.is_known_writer() {
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
